//! Who says a line: what NCCL writes before its text, and what launchers and log readers put before
//! whole lines.
//!
//! Sources: `src/debug.cc` of NVIDIA/nccl (`HOST:PID:TID [DEVICE] NCCL INFO TEXT`; a warning has
//! its place in the source before the word, and from 2.27 on a time in brackets before all);
//! `--tag-output` of Open MPI's mpirun(1) (`[1,0]<stdout>:`); `kubectl logs --prefix` and
//! `--timestamps`; the log format of the Container Runtime Interface (`TIME stdout F TEXT`);
//! ProcessGroupNCCL of PyTorch (`[rank0]:`), Ray (`(Worker pid=1, ip=10.0.0.1)`).

use memchr::memmem::Finder;

/// How NCCL says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NcclLogLevel {
    /// `NCCL INFO`.
    Info,
    /// `NCCL WARN`: NCCL's word for errors.
    Warn,
}

/// Whose form a line has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// NCCL.
    Nccl,
    /// `ring_all_reduce` of the lab (`src/lab/assets/kubernetes/ring`): the same form by another
    /// name, as it is neither NCCL nor has a GPU.
    Ring,
}

/// One text of NCCL, or of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NcclMessage<'a> {
    /// Who.
    pub speaker: Speaker,
    /// `HOST:PID`; nothing where a log was shortened by hand.
    pub process: Option<LogProcessTag<'a>>,
    /// How.
    pub level: NcclLogLevel,
    /// What.
    pub text: &'a str,
}

/// A process of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogProcessTag<'a> {
    /// `HOST:PID`, which is its name here.
    pub name: &'a str,
    /// The host or pod.
    pub host: &'a str,
    /// On that host.
    pub pid: u32,
}

/// Finds the texts of NCCL in lines. Lines of several ranks can run into each other, so there can
/// be several in one.
#[derive(Debug)]
pub struct Speakers {
    nccl: Finder<'static>,
    ring: Finder<'static>,
}

/// Bytes of the word of a speaker with the space behind it.
const WORD: usize = 5;

impl Default for Speakers {
    fn default() -> Self {
        Speakers {
            nccl: Finder::new("NCCL "),
            ring: Finder::new("RING "),
        }
    }
}

impl Speakers {
    /// The texts of NCCL in a line, or those of a ring; false where there is none.
    pub fn each<'a>(&self, line: &'a str, mut each: impl FnMut(NcclMessage<'a>)) -> bool {
        self.of((Speaker::Nccl, &self.nccl), line, &mut each)
            || self.of((Speaker::Ring, &self.ring), line, &mut each)
    }

    fn of<'a>(
        &self,
        (speaker, word): (Speaker, &Finder<'_>),
        line: &'a str,
        each: &mut impl FnMut(NcclMessage<'a>),
    ) -> bool {
        let mut marks = word
            .find_iter(line.as_bytes())
            .filter_map(|at| Some((at, parse_level(&line[at + WORD..])?)));
        let Some((mut at, mut how)) = marks.next() else {
            return false;
        };
        let mut before = 0;
        loop {
            let next = marks.next();
            let text = &line[at + 2 * WORD..next.map_or(line.len(), |(next, _)| next)];
            each(NcclMessage {
                speaker,
                process: parse_process_tag(&line[before..at]),
                level: how,
                text: text.trim_end(),
            });
            let Some(following) = next else { return true };
            before = at + 2 * WORD;
            (at, how) = following;
        }
    }
}

fn parse_level(text: &str) -> Option<NcclLogLevel> {
    match text.get(..5)? {
        "INFO " => Some(NcclLogLevel::Info),
        "WARN " => Some(NcclLogLevel::Warn),
        _ => None,
    }
}

/// `HOST:PID:TID [DEVICE] ` at the end of what stands before; a warning has `FILE:LINE ` after it.
fn parse_process_tag(before: &str) -> Option<LogProcessTag<'_>> {
    let mut words = before
        .trim_end()
        .rsplit(' ')
        .filter(|word| !word.is_empty());
    let mut word = words.next()?;
    if !word.ends_with(']') {
        word = words.next()?;
    }
    if !(word.starts_with('[') && word.ends_with(']')) {
        return None;
    }
    let triple = words.next()?;
    let (name, thread) = triple.rsplit_once(':')?;
    let (host, pid) = name.rsplit_once(':')?;
    let pid: u32 = pid.parse().ok()?;
    if !thread.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let start = match host.rfind([':', '>', ']', ')']) {
        Some(at) => at + 1,
        None => 0,
    };
    let (name, host) = (&name[start..], &host[start..]);
    (!host.is_empty()).then_some(LogProcessTag { name, host, pid })
}

/// The time that log readers put before a line, and the line without that and all the rest that is
/// put before it.
pub fn split_line_tags(line: &str) -> (Option<&str>, &str) {
    let (mut time, mut rest) = (None, line);
    for _ in 0..4 {
        let Some(next) = without_tag(rest) else { break };
        if rest.starts_with(|first: char| first.is_ascii_digit()) {
            time = rest.get(..rest.len() - next.len()).map(str::trim_end);
        }
        rest = next;
    }
    (time, rest)
}

fn without_tag(line: &str) -> Option<&str> {
    match line.as_bytes().first()? {
        b'[' => {
            let (tag, rest) = line.split_once(']')?;
            for channel in ["<stdout>:", "<stderr>:"] {
                if let Some(text) = rest.strip_prefix(channel) {
                    return Some(text);
                }
            }
            let text = if tag.starts_with("[rank") {
                rest.strip_prefix(':')?
            } else if tag.starts_with("[pod/") {
                rest.strip_prefix(' ')?
            } else {
                return None;
            };
            Some(text.strip_prefix(' ').unwrap_or(text))
        }
        b'(' => {
            let (tag, rest) = line.split_once(')')?;
            if !tag.contains(" pid=") {
                return None;
            }
            rest.strip_prefix(' ')
        }
        b'0'..=b'9' => {
            let (time, rest) = line.split_once(' ')?;
            let is_time = time.len() >= 20
                && time.as_bytes().get(4) == Some(&b'-')
                && time.as_bytes().get(10) == Some(&b'T');
            is_time.then_some(rest)
        }
        b's' => line
            .strip_prefix("stdout F ")
            .or_else(|| line.strip_prefix("stderr F ")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told<'a> = (Option<(&'a str, &'a str, u32)>, NcclLogLevel, &'a str);

    fn of(line: &str) -> Vec<Told<'_>> {
        let mut told = Vec::new();
        let found = Speakers::default().each(line, |said| {
            told.push((
                said.process
                    .map(|process| (process.name, process.host, process.pid)),
                said.level,
                said.text,
            ));
        });
        assert_eq!(found, !told.is_empty());
        told
    }

    #[test]
    fn who_says_it_is_found_behind_whatever_stands_before() {
        let me = Some(("gpu-01:12", "gpu-01", 12));
        for before in [
            "",
            "[1,0]<stdout>:",
            "[pod/nccl-launcher-x/nccl] ",
            "2025-06-01T12:00:00.123456789Z stdout F ",
            "[rank0]: ",
            "  3: ",
            "(W pid=7) ",
        ] {
            assert_eq!(
                of(&format!(
                    "{before}gpu-01:12:34 [0] NCCL INFO Using network IB"
                )),
                [(me, NcclLogLevel::Info, "Using network IB")]
            );
        }
        let warning =
            "[2025-09-01 12:00:00] gpu-01:12:34 [3] transport/net_ib.cc:1234 NCCL WARN NET/IB : x";
        assert_eq!(of(warning), [(me, NcclLogLevel::Warn, "NET/IB : x")]);
        assert_eq!(
            of("NCCL INFO Using network IB"),
            [(None, NcclLogLevel::Info, "Using network IB")]
        );
        assert_eq!(of("NCCL version 2.21.5+cuda12.4"), []);
        assert_eq!(of("gpu-01:12:34 [0] NCCL"), []);
    }

    #[test]
    fn a_ring_is_not_taken_for_nccl() {
        let speaker = |line: &str| {
            let mut told = Vec::new();
            Speakers::default().each(line, |said| {
                told.push((
                    said.speaker,
                    said.process.map(|process| process.host.to_owned()),
                ))
            });
            told
        };
        assert_eq!(
            speaker("node1:7:7 [0] RING INFO Using network IB"),
            [(Speaker::Ring, Some("node1".to_owned()))]
        );
        assert_eq!(
            speaker("node1:7:7 [0] NCCL INFO Using network IB"),
            [(Speaker::Nccl, Some("node1".to_owned()))]
        );
        assert_eq!(speaker("node1:7:7 [0] RING of ranks"), []);
    }

    #[test]
    fn lines_that_ran_into_each_other_are_told_apart() {
        let line = "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] ->b:3:4 [1] NCCL INFO Using network IB";
        let told = of(line);
        assert_eq!(told[0].2, "Channel 00/0 : 0[0] ->b:3:4 [1]");
        assert_eq!(told[1].1, NcclLogLevel::Info);
        assert_eq!(told[1].2, "Using network IB");
    }

    #[test]
    fn tags_of_launchers_and_log_readers_are_taken_off() {
        for (line, rest) in [
            ("[1,0]<stdout>:       8", "       8"),
            ("2025-06-01T12:00:00.123456789Z stderr F # Avg", "# Avg"),
            ("2025-06-01T12:00:00.123456789Z # Avg", "# Avg"),
            ("[pod/a-launcher/b] # Avg", "# Avg"),
            ("[rank0]: # Avg", "# Avg"),
            ("   8589934592 1", "   8589934592 1"),
            ("[0xa4]", "[0xa4]"),
            ("[é", "[é"),
        ] {
            assert_eq!(split_line_tags(line).1, rest);
        }
        let time = "2025-06-01T12:00:00.123456789Z";
        for line in [
            format!("[pod/a/b] {time} stdout F [rank0]: x"),
            format!("{time} x"),
            format!("{time} [1,0]<stdout>:x"),
        ] {
            assert_eq!(split_line_tags(&line), (Some(time), "x"), "{line}");
        }
        assert_eq!(split_line_tags("[rank0]: x"), (None, "x"));
    }
}
