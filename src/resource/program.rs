//! Many reads as *one* POSIX sh program over one channel, and its output taken apart again. Pure: text in, text out.
//!
//! Each section runs under its own time limit with its output length-limited; section borders carry a nonce that the
//! caller draws anew for each program, so that no content can forge a border. A broken section costs that answer only.

use super::{Answer, AnswerStatus, Answers, Read};
use crate::base::quote::sh;

/// Output of one section beyond this many bytes is cut off.
pub const SECTION_LIMIT_BYTES: usize = 1 << 20;

/// The program's text. `root` is a prefix for all paths (empty on a live host), `nonce` fresh random hexadecimal.
pub fn render(reads: &[Read], root: &str, nonce: &str) -> String {
    let mut out = format!(
        "LC_ALL=C; export LC_ALL\n\
         PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/opt/mellanox/iproute2/sbin:/opt/mellanox/ethtool/sbin; export PATH\n\
         R={root}; export R\n\
         T=; command -v timeout >/dev/null 2>&1 && T=timeout\n\
         s() {{\n\
         printf '\\n@{nonce} begin %s\\n' \"$1\"\n\
         {{ rc=$( {{ {{ ${{T:+timeout -k 2}} ${{T:+\"$2\"}} sh -c \"$3\" </dev/null 2>/dev/null 3>&-; echo $? >&3; }} | head -c {limit} >&4; }} 3>&1 ); }} 4>&1\n\
         printf '\\n@{nonce} end %s\\n' \"$rc\"\n\
         }}\n",
        root = sh(root),
        limit = SECTION_LIMIT_BYTES + 1,
    );
    for read in reads {
        out.push_str(&format!("s {} {} {}\n", sh(&read.key()), read.limit_s(), sh(&read.script())));
    }
    out.push_str(&format!("printf '\\n@{nonce} done\\n'\n"));
    out
}

/// The answers in a program's output. Sections that never began or never ended are `CutOff`.
pub fn parse(reads: &[Read], nonce: &str, output: &[u8]) -> Answers {
    let text = String::from_utf8_lossy(output);
    let mut answers = Answers::default();
    for read in reads {
        answers.insert(read.key(), Answer { status: AnswerStatus::CutOff, out: String::new() });
    }
    let begin = format!("\n@{nonce} begin ");
    let end = format!("\n@{nonce} end ");
    for section in text.split(begin.as_str()).skip(1) {
        let Some((key, rest)) = section.split_once('\n') else { continue };
        if !reads.iter().any(|read| read.key() == key) {
            continue;
        }
        let answer = match rest.split_once(end.as_str()) {
            None => Answer { status: AnswerStatus::CutOff, out: rest.to_owned() },
            Some((out, tail)) => Answer { status: status(tail, out), out: out.to_owned() },
        };
        answers.insert(key, answer);
    }
    answers
}

fn status(tail: &str, out: &str) -> AnswerStatus {
    if out.len() > SECTION_LIMIT_BYTES {
        return AnswerStatus::TooLong;
    }
    match tail.lines().next().unwrap_or_default().trim().parse::<i32>() {
        Ok(124 | 137) => AnswerStatus::TimedOut,
        Ok(code) => AnswerStatus::Exit(code),
        Err(_) => AnswerStatus::CutOff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    fn run(reads: &[Read]) -> Answers {
        let program = render(reads, "", "c0ffee");
        let mut child = Command::new("sh").arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        parse(reads, "c0ffee", &child.wait_with_output().unwrap().stdout)
    }

    fn command(script: &str) -> Read {
        Read::Command { script: script.to_owned() }
    }

    #[test]
    fn sections_keep_their_output_and_exit_status() {
        let there = Read::File { path: "/etc/passwd".to_owned() };
        let absent = Read::File { path: "/nonexistent/x y'z".to_owned() };
        let answers = run(&[absent.clone(), there.clone()]);
        assert!(answers.output(&there).unwrap().1.contains("root:"));
        assert_eq!(answers.output(&absent).unwrap().0, 1);
    }

    #[test]
    fn a_cut_program_leaves_the_rest_unknown() {
        let reads = [command("a"), command("b")];
        let text = format!("\n@n begin {}\nhello\n@n end 0\n\n@n begin {}\nhal", reads[0].key(), reads[1].key());
        let answers = parse(&reads, "n", text.as_bytes());
        assert_eq!(answers.output(&reads[0]).unwrap(), (0, "hello"));
        assert!(answers.output(&reads[1]).is_err());
    }
}
