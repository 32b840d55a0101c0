//! The boot loader of a simulated host: what runs, and what the menu would boot next.

use super::disk::Disk;
use super::host::{Answered, Done};
use railwright_resource::complaint::UNAVAILABLE;
use railwright_resource::kernel_parameter::command_line::DefaultFiles;

/// Who keeps the boot entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedBootLoaderKind {
    /// GRUB with /etc/default/grub.d and update-grub.
    Grub,
    /// grubby.
    Grubby,
    /// None.
    None,
}

/// Command lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedBootLoader {
    /// Who keeps the entries.
    pub keeper: SimulatedBootLoaderKind,
    /// The words of the command line that runs.
    pub running: Vec<String>,
    /// The words that the default entry holds.
    pub next: Vec<String>,
}

/// The words that GRUB itself puts in front.
const OWN: [&str; 2] = ["root=/dev/vda1", "ro"];

impl SimulatedBootLoader {
    /// A host that booted with `quiet`.
    pub fn of(keeper: SimulatedBootLoaderKind) -> Self {
        let words: Vec<String> = OWN
            .iter()
            .copied()
            .chain(["quiet"])
            .map(str::to_owned)
            .collect();
        SimulatedBootLoader {
            keeper,
            running: words.clone(),
            next: words,
        }
    }

    /// The answer to `Read::Boot`.
    pub fn read(&self, disk: &Disk) -> Answered {
        let mut out = format!("running\t{}\n", self.running.join(" "));
        match self.keeper {
            SimulatedBootLoaderKind::None => out.push_str("loader\tnone\n"),
            SimulatedBootLoaderKind::Grubby => out.push_str(&format!(
                "loader\tgrubby\ngrubby\targs=\"{}\"\n",
                self.next.join(" ")
            )),
            SimulatedBootLoaderKind::Grub => {
                out.push_str("loader\tgrub\n");
                for (path, text) in default_files(disk) {
                    out.push_str(&format!("default\t{path}\n"));
                    for line in text.lines().map(str::trim) {
                        if line.starts_with("GRUB_CMDLINE_LINUX") {
                            out.push_str(&format!("set\t{line}\n"));
                        }
                    }
                }
                let entry = format!(
                    "menu\tmenuentry 'Linux' {{\nmenu\tlinux /vmlinuz {}\nmenu\t}}\n",
                    self.next.join(" ")
                );
                out.push_str(&entry);
            }
        }
        (0, out)
    }

    /// `update-grub`.
    pub fn update(&mut self, disk: &Disk) -> Done {
        if self.keeper == SimulatedBootLoaderKind::None {
            return Err((
                UNAVAILABLE,
                "railwright: neither update-grub nor grub2-mkconfig is on this host".to_owned(),
            ));
        }
        if self.keeper == SimulatedBootLoaderKind::Grub {
            disk.room()?;
            let mut all = DefaultFiles::default();
            for (_, text) in default_files(disk) {
                text.lines().for_each(|line| all.take(line));
            }
            self.next = OWN
                .iter()
                .map(ToString::to_string)
                .chain(all.tokens())
                .collect();
        }
        Ok(())
    }

    /// `grubby --args` and `--remove-args`: a name has one value.
    pub fn set_argument(&mut self, argument: &str, present: bool) -> Done {
        if self.keeper != SimulatedBootLoaderKind::Grubby {
            return Err((
                UNAVAILABLE,
                "railwright: grubby is not on this host".to_owned(),
            ));
        }
        let name = argument.split('=').next();
        self.next.retain(|other| other.split('=').next() != name);
        if present {
            self.next.push(argument.to_owned());
        }
        Ok(())
    }
}

/// In the order in which grub-mkconfig sources them.
fn default_files(disk: &Disk) -> Vec<(String, String)> {
    let mut files = Vec::new();
    if let Some(text) = disk.text("/etc/default/grub") {
        files.push(("/etc/default/grub".to_owned(), text));
    }
    for (path, text) in disk.below("/etc/default/grub.d", ".cfg") {
        files.push((path.clone(), text));
    }
    files
}
