//! The answer of `Read::Boot`, decoded: the command line that runs, the one that the next boot
//! gets, and what the configuration would make of it.

use super::command_line::{CommandLineParameter, DefaultFiles, split_command_line};
use super::grub;
use crate::{Read, ReadResults, Reading};
use railwright_base::Reason;
use serde_json::Value;

/// Who keeps the boot entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootLoaderKind {
    /// GRUB with /etc/default/grub.d and update-grub (Debian's family).
    Grub,
    /// Boot entries kept by grubby (Red Hat's family).
    Grubby,
    /// None that we know: a container, another loader.
    None,
}

/// A file below /etc/default with its assignments.
#[derive(Debug, Clone)]
pub struct DefaultFile {
    /// Its path.
    pub path: String,
    /// The lines that set a command line.
    pub lines: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Boot {
    /// Who keeps the boot entries.
    pub loader: BootLoaderKind,
    /// The tokens of /proc/cmdline.
    pub running: Vec<String>,
    /// The tokens of the default entry, or why they are not known.
    pub next_boot: Result<Vec<String>, Reason>,
    /// What /etc/default says, in the order in which it is read.
    pub files: Vec<DefaultFile>,
}

impl Boot {
    /// From the answers; the error fits after "unknown:".
    pub fn of(answers: &ReadResults) -> Result<Self, Reason> {
        let (_, out) = answers.output(&Read::Boot)?;
        let (mut running, mut loader, mut saved) = (None, None, None);
        let (mut grubby, mut menu) = (Vec::new(), Vec::new());
        for line in out.lines() {
            match line.split_once('\t') {
                Some(("running", text)) => running = running.or(Some(text)),
                Some(("loader", text)) => loader = loader.or(Some(text)),
                Some(("saved", text)) => saved = saved.or(Some(text)),
                Some(("grubby", text)) => grubby.push(text),
                Some(("menu", text)) => menu.push(text),
                _ => {}
            }
        }
        let loader = match loader {
            Some("grub") => BootLoaderKind::Grub,
            Some("grubby") => BootLoaderKind::Grubby,
            _ => BootLoaderKind::None,
        };
        let running = running.ok_or("the running command line was not answered")?;
        let next_boot = match loader {
            BootLoaderKind::Grubby => grubby_tokens(&grubby),
            _ => grub::default_command_line(&menu, saved).map(|line| split_command_line(&line)),
        };
        Ok(Boot {
            loader,
            running: split_command_line(running),
            next_boot,
            files: default_files(out),
        })
    }

    /// The tokens that the files of /etc/default come to, with one of them replaced.
    pub fn persisted_with(&self, replaced: Option<(&str, &str)>) -> Vec<String> {
        let mut files = self.files.clone();
        if let Some((path, content)) = replaced {
            files.retain(|file| file.path != path);
            files.push(DefaultFile {
                path: path.to_owned(),
                lines: content.lines().map(str::to_owned).collect(),
            });
            // /etc/default/grub comes first, then the drop-ins in the shell's order
            files.sort_by(|a, b| {
                (a.path != "/etc/default/grub", &a.path)
                    .cmp(&(b.path != "/etc/default/grub", &b.path))
            });
        }
        let mut all = DefaultFiles::default();
        files
            .iter()
            .flat_map(|file| &file.lines)
            .for_each(|line| all.take(line));
        all.tokens()
    }
}

/// What a command line says of a parameter.
pub fn find_parameter_reading(parameter: &CommandLineParameter, tokens: &[String]) -> Reading {
    parameter
        .found_in(tokens)
        .map_or(Reading::Absent, token_reading)
}

/// A token's value; `true` for a bare word.
pub fn token_reading(token: &str) -> Reading {
    match token.split_once('=') {
        Some((_, value)) => Reading::is(value),
        None => Reading::Is(Value::Bool(true)),
    }
}

fn default_files(out: &str) -> Vec<DefaultFile> {
    let mut files: Vec<DefaultFile> = Vec::new();
    for (word, text) in out.lines().filter_map(|line| line.split_once('\t')) {
        match (word, files.last_mut()) {
            ("default", _) => files.push(DefaultFile {
                path: text.to_owned(),
                lines: Vec::new(),
            }),
            ("set", Some(file)) => file.lines.push(text.to_owned()),
            _ => {}
        }
    }
    files
}

/// `args="ro crashkernel=1G"` of `grubby --info=DEFAULT`.
fn grubby_tokens(lines: &[&str]) -> Result<Vec<String>, Reason> {
    let args = lines.iter().find_map(|line| line.strip_prefix("args="));
    let args = args.ok_or("grubby did not show the default entry")?;
    let inner = args
        .trim()
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(args);
    Ok(split_command_line(&inner.replace("\\\"", "\"")))
}
