//! Many reads as *one* POSIX sh program over one channel; `program_answers` takes its output apart
//! again. Pure: text in, text out.
//!
//! Each section runs under its own time limit with its output length-limited; section borders carry
//! a nonce that the caller draws anew for each program, so that no content can forge a border. A
//! broken section costs that answer only. The program writes nothing on the host: no temporary
//! file, no module, no lock.

use super::program_answers::border_key;
pub use super::program_answers::parse_program_answers;
use super::shared::{self, HERE};
use super::{Read, rights};
use railwright_base::quote::quote_for_shell;
use std::collections::BTreeSet;

/// Output of one section beyond this many bytes is cut off.
pub const SECTION_LIMIT_BYTES: usize = 1 << 20;

/// Output of all quick reads together.
const QUICK_OUTPUT_BYTES: usize = 8 << 20;

/// What every script of ours begins with. A login over SSH on Debian has no sbin in its path, and
/// the newer `ip`, `dcb` and `ethtool` of the RDMA stacks live below /opt/mellanox.
pub const ENVIRONMENT: &str = "LC_ALL=C; export LC_ALL\n\
                               PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/opt/mellanox/iproute2/sbin:/opt/mellanox/ethtool/sbin; \
                               export PATH\n";

/// Runs a section under a time limit: `w SECONDS SCRIPT ARGUMENT...`. `timeout` of GNU or uutils
/// ends the whole process group. busybox's ends its child alone, and a grandchild that hangs would
/// hold the pipe: there, and where there is no `timeout`, a watchdog of our own ends the group (or,
/// without `setsid`, at least the shell).
const WATCH: &str = "T=; timeout --version >/dev/null 2>&1 && T=timeout\n\
                     G=; command -v setsid >/dev/null 2>&1 && G=setsid\n\
                     w() {\n\
                     l=$1; x=$2; shift 2\n\
                     if [ -n \"$T\" ]; then timeout -k 2 \"$l\" sh -c \"$x\" w \"$@\" </dev/null \
                     2>/dev/null 3>&- 4>&-; return; fi\n\
                     $G sh -c \"$x\" w \"$@\" </dev/null 2>/dev/null 3>&- 4>&- &\n\
                     p=$!\n\
                     $G sh -c 'sleep \"$1\"; kill -TERM \"$2\" 2>/dev/null; sleep 2; kill -KILL \
                     \"$2\"' w \"$l\" \"${G:+-}$p\" </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- &\n\
                     k=$!\n\
                     wait \"$p\"; c=$?\n\
                     kill -TERM \"${G:+-}$k\" \"$k\" 2>/dev/null; wait \"$k\" 2>/dev/null\n\
                     [ \"$c\" -eq 143 ] && c=124\n\
                     return \"$c\"\n\
                     }\n";

/// For all quick reads together, in seconds; those that are not answered by then get a section
/// each.
const QUICK_LIMIT_S: u32 = 10;

/// All quick reads in one shell: `q KEY SECONDS SCRIPT KEY SECONDS SCRIPT...`. A section of its own
/// costs a host three programs (`timeout`, `sh`, `head`), which is more than most of these scripts
/// need themselves. Each that ends prints a dot on descriptor 5; if the shell does not get through,
/// the rest is asked in the long way.
///
/// The nonce comes in the environment, which only root sees: arguments are shown to every user of
/// the host.
fn render_quick_reads(nonce: &str, shared: &str) -> String {
    let each = format!(
        "N_=$N; unset N\n\
         {{\n\
         {shared}:\n\
         }} 5>&-\n\
         while [ $# -gt 0 ]; do\n\
         printf '\\n@%s begin %s\\n' \"$N_\" \"$1\"\n\
         case $3 in '{HERE}'*) {{ eval \"$3\"; }} 5>&- ;; *) ( eval \"unset N_ d f i l n; set --\n\
         $3\" ) 5>&- ;; esac\n\
         printf '\\n@%s end %s\\n' \"$N_\" $?\n\
         printf . >&5\n\
         shift 3\n\
         done\n"
    );
    format!(
        "q() {{\n\
         {{ d=$( {{ {{ N={nonce}; export N; w {QUICK_LIMIT_S} {each} \"$@\" 5>&3; }} | head -c \
         {QUICK_OUTPUT_BYTES} >&4; }} 3>&1 ); }} 4>&1\n\
         shift $((3 * ${{#d}}))\n\
         while [ $# -gt 0 ]; do s \"$1\" \"$2\" \"$3\"; shift 3; done\n\
         }}\n",
        each = quote_for_shell(&each),
    )
}

/// The program's text. `root` is a prefix for all paths (empty on a live host), `nonce` fresh
/// random hexadecimal. A read that is asked twice is answered once.
pub fn render_read_program(reads: &[Read], root: &str, nonce: &str) -> String {
    let mut asked = BTreeSet::new();
    let once = reads.iter().filter(|read| asked.insert(read.key()));
    let (mut quick, other): (Vec<_>, Vec<_>) = once.partition(|read| read.is_quick());
    // A manager that hangs is then in nobody's way.
    quick.sort_by_key(|read| matches!(read, Read::LinkManager { .. }));
    let shared = shared::render_shared_queries(&quick);
    render_program_frame(
        (
            &shared,
            &quick.into_iter().map(render_section).collect::<Vec<_>>(),
        ),
        other.into_iter().map(render_section),
        root,
        nonce,
    )
}

/// The program for a user who may read what the world may, and what sudoers has exact lines for.
/// Nothing is elevated but those commands, each for itself.
pub fn render_for_others(reads: &[Read], root: &str, nonce: &str) -> String {
    let mut asked = BTreeSet::new();
    let once = reads.iter().filter(|read| asked.insert(read.key()));
    let framed = render_program_frame(
        ("", &[]),
        once.map(|read| {
            (
                border_key(read),
                read.limit_s(),
                rights::render_unprivileged_section(read),
            )
        }),
        root,
        nonce,
    );
    format!(
        "RAILWRIGHT_READ_ONLY={}; RAILWRIGHT_NONCE={nonce}; RAILWRIGHT_SUDO=; sudo -n -l \
         >/dev/null 2>&1 && RAILWRIGHT_SUDO=1\n\
         export RAILWRIGHT_READ_ONLY RAILWRIGHT_NONCE RAILWRIGHT_SUDO\n\
         {framed}",
        quote_for_shell(rights::WITHOUT_RIGHTS)
    )
}

/// A read in a program: its key, time limit in seconds and script.
type Asked = (String, u32, String);

fn render_section(read: &Read) -> Asked {
    (border_key(read), read.limit_s(), read.script())
}

/// The program around quick reads, with what they share, and others.
fn render_program_frame(
    (shared, quickly): (&str, &[Asked]),
    sections: impl Iterator<Item = Asked>,
    root: &str,
    nonce: &str,
) -> String {
    let mut out = format!(
        "{ENVIRONMENT}R={root}; export R\n\
         {WATCH}s() {{\n\
         printf '\\n@{nonce} begin %s\\n' \"$1\"\n\
         {{ rc=$( {{ {{ w \"$2\" \"$3\"; echo $? >&3; }} | head -c {limit} >&4; }} 3>&1 ); }} \
         4>&1\n\
         printf '\\n@{nonce} end %s\\n' \"$rc\"\n\
         }}\n",
        root = quote_for_shell(root),
        limit = SECTION_LIMIT_BYTES + 1,
    );
    if !quickly.is_empty() {
        out.push_str(&render_quick_reads(nonce, shared));
        let words: Vec<String> = quickly
            .iter()
            .map(|(key, limit_s, script)| {
                format!(
                    " {} {limit_s} {}",
                    quote_for_shell(key),
                    quote_for_shell(script)
                )
            })
            .collect();
        out.push_str(&format!("q{}\n", words.concat()));
    }
    for (key, limit_s, script) in sections {
        out.push_str(&format!(
            "s {} {limit_s} {}\n",
            quote_for_shell(&key),
            quote_for_shell(&script)
        ));
    }
    out.push_str(&format!("printf '\\n@{nonce} done\\n'\n"));
    out
}

/// How long the whole program may take, in seconds: every section to its limit, and some air, but
/// never over `most`.
pub fn limit_s(reads: &[Read], most: u32) -> u32 {
    let sections: u32 = reads
        .iter()
        .map(|read| read.limit_s().saturating_add(3))
        .fold(0, u32::saturating_add);
    sections.saturating_add(QUICK_LIMIT_S + 15).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnswerStatus, ReadResult, ReadResults};
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// Every POSIX shell of this machine; the plain `sh` is always there.
    fn shells() -> Vec<Vec<&'static str>> {
        [
            vec!["sh"],
            vec!["dash"],
            vec!["bash", "--posix"],
            vec!["busybox", "sh"],
        ]
        .into_iter()
        .filter(|shell| {
            Command::new(shell[0])
                .arg("--help")
                .stdin(Stdio::null())
                .output()
                .is_ok()
        })
        .collect()
    }

    /// As `render`, but a `command` resource runs its script as it is.
    fn program(reads: &[Read]) -> String {
        let (quick, other): (Vec<&Read>, Vec<&Read>) =
            reads.iter().partition(|read| read.is_quick());
        let quick: Vec<_> = quick
            .into_iter()
            .map(|read| (border_key(read), read.limit_s(), read.script()))
            .collect();
        let sections = other.into_iter().map(|read| match read {
            Read::Command { script } => (border_key(read), 5, script.clone()),
            other => (border_key(other), other.limit_s(), other.script()),
        });
        render_program_frame(("", &quick), sections, "", "c0ffee")
    }

    fn run_in(shell: &[&str], reads: &[Read], path: Option<&str>) -> ReadResults {
        let program = program(reads);
        let mut command = Command::new(shell[0]);
        command
            .args(&shell[1..])
            .arg("-s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(program.as_bytes())
            .unwrap();
        parse_program_answers(reads, "c0ffee", &child.wait_with_output().unwrap().stdout)
    }

    fn command(script: &str) -> Read {
        Read::Command {
            script: script.to_owned(),
        }
    }

    #[test]
    fn sections_keep_their_output_and_exit_status_in_every_shell() {
        let there = Read::File {
            path: "/etc/passwd".to_owned(),
        };
        let absent = Read::File {
            path: "/nonexistent/x y'z".to_owned(),
        };
        let greedy = command("cat; printf 'no input'; exit 7");
        let noisy = command("printf 'a\\000b\\377c'; echo hidden >&2; printf '\\n\\n'");
        let reads = [
            absent.clone(),
            there.clone(),
            greedy.clone(),
            noisy.clone(),
            there.clone(),
        ];
        for shell in shells() {
            let answers = run_in(&shell, &reads, None);
            assert!(
                answers.output(&there).unwrap().1.contains("root:"),
                "{shell:?}"
            );
            assert_eq!(answers.output(&absent).unwrap().0, 1, "{shell:?}");
            assert_eq!(
                answers.output(&greedy).unwrap(),
                (7, "no input"),
                "{shell:?}"
            );
            assert_eq!(
                answers.output(&noisy).unwrap(),
                (0, "a\0b\u{fffd}c\n\n"),
                "{shell:?}"
            );
        }
    }

    #[test]
    fn a_gigabyte_is_cut_and_costs_that_answer_only() {
        let flood = command("head -c 1000000000 /dev/zero");
        let after = command("echo here");
        for shell in shells() {
            let answers = run_in(&shell, &[flood.clone(), after.clone()], None);
            let answer = answers.get(&flood).unwrap();
            assert_eq!(
                (answer.status.clone(), answer.out.len()),
                (AnswerStatus::TooLong, SECTION_LIMIT_BYTES),
                "{shell:?}"
            );
            assert_eq!(answers.output(&after).unwrap(), (0, "here\n"), "{shell:?}");
        }
    }

    /// A folder with busybox's applets and nothing of GNU, and one without `timeout` at all.
    fn poor_paths() -> Vec<tempfile::TempDir> {
        let Ok(busybox) = Command::new("sh")
            .args(["-c", "command -v busybox"])
            .output()
        else {
            return Vec::new();
        };
        let busybox = String::from_utf8(busybox.stdout).unwrap().trim().to_owned();
        if busybox.is_empty() {
            return Vec::new();
        }
        let applets = [
            "sh", "sleep", "head", "cat", "kill", "echo", "printf", "setsid", "timeout",
        ];
        [9, 8, 7]
            .into_iter()
            .map(|count| {
                let folder = tempfile::tempdir().unwrap();
                for applet in &applets[..count] {
                    std::os::unix::fs::symlink(&busybox, folder.path().join(applet)).unwrap();
                }
                folder
            })
            .collect()
    }

    #[test]
    fn a_hanging_section_is_ended_with_its_children() {
        // The pipe is held by a grandchild, which a `timeout` that ends its child alone would leave
        // behind.
        let section = (
            "command:hang".to_owned(),
            1,
            "echo before; sleep 987 | cat".to_owned(),
        );
        let frame = render_program_frame(("", &[]), std::iter::once(section), "", "c0ffee");
        let mut paths: Vec<String> = vec![std::env::var("PATH").unwrap()];
        let folders = poor_paths();
        // Without `setsid` a grandchild cannot be ended: that case is in the documentation of
        // `WATCH`.
        paths.extend(
            folders
                .iter()
                .take(2)
                .map(|folder| folder.path().display().to_string()),
        );
        for path in paths {
            let mut child = Command::new("sh");
            let mut child = child
                .arg("-s")
                .env("PATH", &path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // The frame appends sbin to PATH; the tools under test still come first.
            child
                .stdin
                .take()
                .unwrap()
                .write_all(frame.replace(":/usr/sbin:/sbin", "").as_bytes())
                .unwrap();
            let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
            assert!(
                out.contains("@c0ffee begin command:hang\nbefore\n"),
                "{path}: {out}"
            );
            assert!(
                out.contains("@c0ffee end 124") && out.contains("done"),
                "{path}: {out}"
            );
        }
    }

    /// A file of /proc that blocks, a folder on a server that is gone: the quick reads after it are
    /// answered all the same, and those before it are not asked again.
    #[test]
    fn a_quick_read_that_hangs_costs_itself_only() {
        let keys = ["before", "hangs", "after"].map(command);
        let scripts = [
            "echo one; v=kept; exit 3",
            "echo begun; sleep 987 | cat",
            "echo \"two$v$#$N$N_\"; cd /; set -f",
        ];
        let quick: Vec<_> = keys
            .iter()
            .zip(scripts)
            .map(|(read, script)| (border_key(read), 1, script.to_owned()))
            .collect();
        let text = render_program_frame(("", &quick), std::iter::empty(), "", "c0ffee");
        let text = text.replace(&format!("w {QUICK_LIMIT_S} "), "w 1 ");
        let folders = poor_paths();
        let poor = folders
            .iter()
            .take(2)
            .map(|folder| folder.path().display().to_string());
        for (shell, path) in shells()
            .into_iter()
            .map(|shell| (shell, std::env::var("PATH").unwrap()))
            .chain(poor.map(|p| (vec!["sh"], p)))
        {
            let mut child = Command::new(shell[0]);
            child
                .args(&shell[1..])
                .arg("-s")
                .env("PATH", &path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let mut child = child.spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(text.replace(":/usr/sbin:/sbin", "").as_bytes())
                .unwrap();
            let out = child.wait_with_output().unwrap().stdout;
            let answers = parse_program_answers(&keys, "c0ffee", &out);
            assert_eq!(
                answers.output(&keys[0]).unwrap(),
                (3, "one\n"),
                "{shell:?} {path}"
            );
            assert_eq!(
                answers.get(&keys[1]).unwrap(),
                &ReadResult {
                    status: AnswerStatus::TimedOut,
                    out: "begun\n".to_owned()
                },
                "{shell:?} {path}"
            );
            assert_eq!(
                answers.output(&keys[2]).unwrap(),
                (0, "two0\n"),
                "{shell:?} {path}"
            );
            let begun = |read: &Read| {
                String::from_utf8_lossy(&out)
                    .matches(&format!("begin {}\n", read.key()))
                    .count()
            };
            assert_eq!(keys.each_ref().map(begun), [1, 2, 1], "{shell:?} {path}");
        }
    }

    #[test]
    fn the_nonce_is_in_no_programs_arguments() {
        let file = Read::File {
            path: "/etc/passwd".to_owned(),
        };
        let probe = "tr '\\0' ' ' </proc/self/cmdline; for p in /proc/[0-9]*; do tr '\\0' ' ' \
                     <$p/cmdline; echo; done; env";
        let quick = [(border_key(&file), 10, probe.to_owned())];
        let text = render_program_frame(
            ("", &quick),
            std::iter::once((border_key(&command("x")), 10, probe.to_owned())),
            "",
            "c0ffeec0ffee",
        );
        let mut child = Command::new("sh")
            .arg("-s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let out = child.wait_with_output().unwrap().stdout;
        let answers = parse_program_answers(&[file.clone(), command("x")], "c0ffeec0ffee", &out);
        for read in [file, command("x")] {
            let (_, shown) = answers.output(&read).unwrap();
            assert!(
                shown.contains("PATH=") && !shown.contains("c0ffeec0ffee"),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_host_without_timeout_still_answers() {
        for folder in poor_paths() {
            let reads = [command("echo one; exit 3"), command("echo two")];
            let answers = run_in(&["sh"], &reads, Some(&folder.path().display().to_string()));
            assert_eq!(answers.output(&reads[0]).unwrap(), (3, "one\n"));
            assert_eq!(answers.output(&reads[1]).unwrap(), (0, "two\n"));
        }
    }

    #[test]
    fn a_cut_program_leaves_the_rest_unknown() {
        let reads = [command("a"), command("b")];
        let text = format!(
            "\n@n begin {}\nhello\n@n end 0\n\n@n begin {}\nhal",
            reads[0].key(),
            reads[1].key()
        );
        let answers = parse_program_answers(&reads, "n", text.as_bytes());
        assert_eq!(answers.output(&reads[0]).unwrap(), (0, "hello"));
        assert_eq!(
            answers.get(&reads[1]).unwrap(),
            &ReadResult {
                status: AnswerStatus::CutOff,
                out: "hal".to_owned()
            }
        );
    }

    #[test]
    fn a_border_without_the_nonce_is_content() {
        let read = command("x");
        let text = format!(
            "\n@n begin {}\nx\n@m end 0\n@m begin y\n@n end 4\n",
            read.key()
        );
        assert_eq!(
            parse_program_answers(std::slice::from_ref(&read), "n", text.as_bytes())
                .output(&read)
                .unwrap(),
            (4, "x\n@m end 0\n@m begin y")
        );
    }

    proptest! {
        #[test]
        fn garbage_never_panics_and_every_read_has_an_answer(
            pieces in proptest::collection::vec(prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..40),
                Just(b"\n@n begin command:aa".to_vec()), Just(b"\n@n begin host\n".to_vec()),
                Just(b"\n@n end ".to_vec()), Just(b"0\n".to_vec()), Just(b"\n@n done\n".to_vec()),
            ], 0..20)
        ) {
            let reads = [Read::Host, command("a"), Read::File { path: "a\nb".to_owned() }];
            let answers = parse_program_answers(&reads, "n", &pieces.concat());
            for read in &reads {
                prop_assert!(answers.get(read).is_some());
            }
        }
    }
}
