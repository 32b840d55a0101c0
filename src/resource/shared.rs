//! What several reads of one program would each ask the host for is asked once, in the shell of the
//! quick reads: their sections find it in variables. A section that finds none (a program with one
//! read, a user without rights, a section that is asked in the long way) asks for itself.

use super::{Read, file, link, package, sysctl};
use std::collections::BTreeMap;

/// The first line of a script that may run in the shell of the quick reads itself, without a
/// process of its own: it neither ends the shell nor changes its folder, its arguments or its
/// options.
pub const HERE: &str = ": here";

/// What several reads may need of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SharedQueryTopic {
    Files,
    Sysctls,
    Links,
    Packages,
    Managers,
}

/// The script that asks for what more than one of these reads needs. It prints nothing.
pub fn render_shared_queries(reads: &[&Read]) -> String {
    let mut desired: BTreeMap<SharedQueryTopic, Vec<&str>> = BTreeMap::new();
    for (topic, names) in reads.iter().filter_map(|read| find_shared_topic(read)) {
        desired.entry(topic).or_default().extend(names);
    }
    let mut script = String::new();
    for (topic, names) in desired {
        if names.len() < 2 {
            continue;
        }
        script.push_str(&match topic {
            SharedQueryTopic::Files => file::script::shared_script(&names),
            SharedQueryTopic::Sysctls => sysctl::script::shared_script(&names),
            SharedQueryTopic::Links => link::state::SHARED.to_owned(),
            SharedQueryTopic::Packages => package::script::shared_script(&names),
            SharedQueryTopic::Managers => link::owner::shared_script(&names),
        });
    }
    script
}

/// What a read is about, and the names that it asks of that.
fn find_shared_topic(read: &Read) -> Option<(SharedQueryTopic, Vec<&str>)> {
    Some(match read {
        Read::File { path } | Read::SealedFile { path } => (SharedQueryTopic::Files, vec![path]),
        Read::Sysctl { key } => (SharedQueryTopic::Sysctls, vec![key]),
        Read::Link { netdev } => (SharedQueryTopic::Links, vec![netdev]),
        Read::Packages { names } => (
            SharedQueryTopic::Packages,
            names.iter().map(String::as_str).collect(),
        ),
        Read::LinkManager { netdev } => (SharedQueryTopic::Managers, vec![netdev]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    fn answers(shell: &[&str], reads: &[Read]) -> crate::ReadResults {
        let mut command = Command::new(shell[0]);
        command
            .args(&shell[1..])
            .arg("-s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(program::render_read_program(reads, "", "c0ffee").as_bytes())
            .unwrap();
        program::parse_program_answers(reads, "c0ffee", &child.wait_with_output().unwrap().stdout)
    }

    /// This machine answers many reads at once as each alone, in every shell that it has.
    #[test]
    fn what_is_asked_once_is_what_each_would_have_asked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b'c");
        std::fs::write(&file, "one\ntwo").unwrap();
        let absent = folder.path().join("no/such/file");
        let of = |path: &std::path::Path| Read::File {
            path: path.display().to_string(),
        };
        let mut reads = vec![of(&file), of(&absent), of(folder.path())];
        for (name, content) in [
            ("empty", &b""[..]),
            ("nul", b"a\0b\n"),
            ("latin", b"\xe4\n"),
            ("bell", b"a\x07"),
            ("text", b"a\tb\r\n"),
            ("a\nb", b"c"),
        ] {
            std::fs::write(folder.path().join(name), content).unwrap();
            reads.push(of(&folder.path().join(name)));
        }
        std::os::unix::fs::symlink(&file, folder.path().join("link")).unwrap();
        reads.push(of(&folder.path().join("link")));
        // A list with tabs, one of several lines where the kernel has it, words, and one that is
        // nowhere.
        let keys = [
            "net.ipv4.tcp_rmem",
            "dev.cdrom.info",
            "kernel.ostype",
            "fs.file-max",
            "kernel.nonexistent",
            "net.ipv4.ip_forward",
        ];
        reads.extend(keys.map(|key| Read::Sysctl {
            key: key.to_owned(),
        }));
        let netdevs = std::fs::read_dir("/sys/class/net")
            .unwrap()
            .take(4)
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let netdevs: Vec<String> = netdevs.chain(["nonexistent0".to_owned()]).collect();
        reads.extend(netdevs.iter().map(|netdev| Read::Link {
            netdev: netdev.clone(),
        }));
        reads.extend(netdevs.iter().map(|netdev| Read::LinkManager {
            netdev: netdev.clone(),
        }));
        let packages: [&[&str]; 3] = [
            &["bash"],
            &["nonexistent-package"],
            &["dash", "coreutils", "nonexistent-package"],
        ];
        reads.extend(packages.map(|names| Read::Packages {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }));
        for shell in [vec!["sh"], vec!["bash", "--posix"], vec!["busybox", "sh"]] {
            if Command::new(shell[0])
                .arg("--help")
                .stdin(Stdio::null())
                .output()
                .is_err()
            {
                continue;
            }
            let together = answers(&shell, &reads);
            for read in &reads {
                let alone = answers(&shell, std::slice::from_ref(read));
                assert_eq!(
                    together.get(read).unwrap(),
                    alone.get(read).unwrap(),
                    "{shell:?} {}",
                    read.key()
                );
                assert!(together.output(read).is_ok(), "{shell:?} {}", read.key());
            }
        }
    }

    #[test]
    fn one_read_shares_with_nobody() {
        let one = Read::Sysctl {
            key: "kernel.ostype".to_owned(),
        };
        let two = Read::Sysctl {
            key: "kernel.osrelease".to_owned(),
        };
        assert_eq!(render_shared_queries(&[&one]), "");
        assert!(render_shared_queries(&[&one, &two]).contains("/proc/sys/'kernel/osrelease'"));
    }
}
