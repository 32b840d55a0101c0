//! NCCL's tests as they can be asked for: sizes, iterations, the program, what they have to reach.
//! What cannot be is found here, before anybody is asked.

use super::hosts::Host;
use super::model::{GpuSpec, NcclTests, Spec};
use super::window;
use std::collections::BTreeMap;

/// The program unless another is named.
pub const PROGRAM: &str = "all_reduce_perf";
/// The smallest and the largest message unless others are named.
pub const SIZES: (&str, &str) = ("8", "8G");
/// Turns of each size unless it is said.
pub const TURNS: u32 = 20;
/// The least share of what the NICs carry that proves the bandwidth, in percent, unless it is said.
pub const LEAST_PERCENT: u32 = 80;
/// A run is ended after so many seconds unless it is said.
pub const LIMIT_S: u32 = 15 * 60;
/// More iterations of one size take hours, and are more than the counter of the program holds well
/// before 2^31.
const TURNS_MAX: u32 = 1_000_000;
/// No message is larger than the memory of a GPU.
const BYTES_MAX: f64 = (1u64 << 42) as f64;

/// Something that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcclTestFault {
    /// The word that says it: `program`, `from`, `to`, `turns`, `least_percent`, `within`.
    pub key: &'static str,
    /// What is the matter.
    pub message: String,
    /// What can be, for the caret.
    pub label: &'static str,
    /// What to write.
    pub fix: String,
}

/// The bytes of a size as the program reads it: a number, and K, M or G of 1024 (NVIDIA/nccl-tests:
/// src/common.cu, `parsesize`, which passes over what follows the letter; `8T` and `eight` are
/// refused there).
pub fn parse_message_size(text: &str) -> Option<u64> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 'K' | 'k') => (&text[..at], 1u64 << 10),
        (at, 'M' | 'm') => (&text[..at], 1 << 20),
        (at, 'G' | 'g') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let bytes = number.parse::<f64>().ok().filter(|_| is_number)? * unit as f64;
    (bytes <= BYTES_MAX).then_some(bytes as u64)
}

/// The part of it that the program is given.
#[derive(Debug, Clone, Copy)]
pub struct NcclProgramOptions<'a> {
    /// Its name or path.
    pub program: &'a str,
    /// The smallest message.
    pub from: &'a str,
    /// The largest message.
    pub to: &'a str,
    /// Turns of each size.
    pub turns: u32,
}

/// What of it cannot be: the program, the sizes, the number of iterations.
pub fn find_nccl_test_faults(words: NcclProgramOptions<'_>) -> Vec<NcclTestFault> {
    let mut faults = Vec::new();
    faults.extend(find_program_fault(words.program));
    faults.extend(find_size_fault("from", words.from));
    faults.extend(find_size_fault("to", words.to));
    faults.extend(find_size_order_fault(words));
    if !(1..=TURNS_MAX).contains(&words.turns) {
        faults.push(NcclTestFault {
            key: "turns",
            message: format!("{} iterations of each size measure nothing", words.turns),
            label: "1 to 1000000",
            fix: "write such as `20`".to_owned(),
        });
    }
    faults
}

fn truncate_option(text: &str) -> String {
    railwright_base::text::one_line(text, 60)
}

/// A path that does not begin at the root is looked for in a folder that is made for the job alone.
fn find_program_fault(program: &str) -> Option<NcclTestFault> {
    let shown = truncate_option(program);
    let is_broken = program.chars().any(|c| c.is_control() || c.is_whitespace());
    let (message, label, fix) = if program.is_empty() || program.starts_with('-') || is_broken {
        (
            format!("`{shown}` cannot be the name of a program"),
            "a name on PATH, or a path",
            "name it as it is found on the hosts: all_reduce_perf",
        )
    } else if program.contains('/') && !program.starts_with('/') {
        (
            format!("`{shown}` is no path that is the same on every host"),
            "a path from `/` on",
            "write the whole path: /opt/nccl-tests/build/all_reduce_perf",
        )
    } else {
        return None;
    };
    Some(NcclTestFault {
        key: "program",
        message,
        label,
        fix: fix.to_owned(),
    })
}

fn find_size_fault(key: &'static str, text: &str) -> Option<NcclTestFault> {
    let (message, label, fix) = match parse_message_size(text) {
        None => (
            format!("`{}` is no size of a message", truncate_option(text)),
            "a number, and K, M or G of 1024",
            "write such as `8`, `256M` or `8G`; 4096G at most",
        ),
        // The program multiplies the size by 2 until it is beyond the largest (NVIDIA/nccl-tests:
        // src/common.cu), and 0 never is.
        Some(0) => (
            "messages of 0 bytes never come to an end".to_owned(),
            "at least 1",
            "write such as `8`",
        ),
        Some(_) => return None,
    };
    Some(NcclTestFault {
        key,
        message,
        label,
        fix: fix.to_owned(),
    })
}

/// Sizes that are wrong by themselves are not compared.
fn find_size_order_fault(words: NcclProgramOptions<'_>) -> Option<NcclTestFault> {
    let from = parse_message_size(words.from)?;
    let to = parse_message_size(words.to)?;
    if to == 0 || from <= to {
        return None;
    }
    Some(NcclTestFault {
        key: "from",
        message: format!(
            "the smallest message, {}, is larger than the largest, {}",
            truncate_option(words.from),
            truncate_option(words.to)
        ),
        label: "more than the largest",
        fix: "write the smaller one first".to_owned(),
    })
}

/// Hosts that are reached and have GPUs that are fit for it, by model and number of GPUs: hosts of
/// one sort run together, with a process for each GPU.
pub fn group_hosts_by_gpu<'h>(
    spec: &Spec,
    hosts: &'h [Host],
    is_fit: impl Fn(&GpuSpec) -> bool,
) -> BTreeMap<(String, u32), Vec<&'h Host>> {
    let mut sorts: BTreeMap<(String, u32), Vec<&Host>> = BTreeMap::new();
    for host in hosts.iter().filter(|host| host.ssh.is_some()) {
        let gpu = spec
            .nodes
            .get(host.group)
            .and_then(|group| group.gpu.as_ref());
        if let Some(gpu) = gpu.filter(|gpu| gpu.count > 0 && is_fit(gpu)) {
            sorts
                .entry((gpu.model.clone(), gpu.count))
                .or_default()
                .push(host);
        }
    }
    sorts
}

impl NcclTests {
    /// What the program is given.
    pub fn words(&self) -> NcclProgramOptions<'_> {
        NcclProgramOptions {
            program: self.program.as_deref().unwrap_or(PROGRAM),
            from: self.from.as_deref().unwrap_or(SIZES.0),
            to: self.to.as_deref().unwrap_or(SIZES.1),
            turns: self.turns.unwrap_or(TURNS),
        }
    }

    /// The least share of what the NICs carry, in percent.
    pub fn least_percent(&self) -> u32 {
        self.least_percent.unwrap_or(LEAST_PERCENT)
    }

    /// After how many seconds a run is ended; nothing where what is said is no such time.
    pub fn limit_s(&self) -> Option<u32> {
        let Some(text) = &self.within else {
            return Some(LIMIT_S);
        };
        let seconds = u32::try_from(window::parse_duration(text)?.as_secs()).ok()?;
        (10..=86_400).contains(&seconds).then_some(seconds)
    }

    /// What of it cannot be.
    pub fn faults(&self) -> Vec<NcclTestFault> {
        let mut found = find_nccl_test_faults(self.words());
        if !(1..=100).contains(&self.least_percent()) {
            let message = format!(
                "{} % is no share of what the NICs carry",
                self.least_percent()
            );
            found.push(NcclTestFault {
                key: "least_percent",
                message,
                label: "1 to 100",
                fix: "write such as `80`".to_owned(),
            });
        }
        if let Some(within) = self.within.as_ref().filter(|_| self.limit_s().is_none()) {
            let message = format!(
                "`{}` is no time in which a run could end",
                railwright_base::text::one_line(within, 60)
            );
            found.push(NcclTestFault {
                key: "within",
                message,
                label: "10s to 24h",
                fix: "write such as `15m`".to_owned(),
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_program_reads_them() {
        let read = ["8", "8G", "8g", "256M", "1.5k", "0", "4096G"].map(parse_message_size);
        assert_eq!(
            read,
            [
                Some(8),
                Some(8 << 30),
                Some(8 << 30),
                Some(256 << 20),
                Some(1536),
                Some(0),
                Some(1 << 42)
            ]
        );
        for text in [
            "", "G", "8T", "eight", "-8", "8 G", "1e9", "inf", "nan", "4097G", "8GB", ".5G",
            "1.2.3", "8\u{e9}",
        ] {
            assert_eq!(parse_message_size(text), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_found_at_its_word() {
        let keys = |program, from, to, turns| {
            find_nccl_test_faults(NcclProgramOptions {
                program,
                from,
                to,
                turns,
            })
            .iter()
            .map(|fault| fault.key)
            .collect::<Vec<_>>()
        };
        assert_eq!(keys("all_reduce_perf", "8", "8G", 20), Vec::<&str>::new());
        assert_eq!(
            keys("/opt/nccl-tests/build/all_gather_perf", "1G", "1G", 1),
            Vec::<&str>::new()
        );
        for program in [
            "",
            "-x",
            "a b",
            "a\nb",
            "./build/all_reduce_perf",
            "build/x",
            "~/all_reduce_perf",
        ] {
            assert_eq!(keys(program, "8", "8G", 20), ["program"], "{program}");
        }
        assert_eq!(keys("x", "0", "8T", 0), ["from", "to", "turns"]);
        assert_eq!(keys("x", "1G", "8M", 20), ["from"]);
        let asked = NcclTests {
            least_percent: Some(101),
            within: Some("soon".to_owned()),
            ..NcclTests::default()
        };
        assert_eq!(
            asked
                .faults()
                .iter()
                .map(|fault| fault.key)
                .collect::<Vec<_>>(),
            ["least_percent", "within"]
        );
        assert_eq!(
            (
                NcclTests::default().limit_s(),
                NcclTests::default().faults().len()
            ),
            (Some(900), 0)
        );
    }
}
