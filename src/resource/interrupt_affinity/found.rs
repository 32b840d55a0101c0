//! The answer of `Read::Interrupts`, decoded.

use crate::{Read, ReadResults};
use railwright_base::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// More CPUs than any kernel of ours counts (NR_CPUS of x86 is at most 8192).
const CPUS: u32 = 8192;

/// One interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// The CPUs that may handle it, as the kernel lists them: `0-3`.
    pub list: String,
    /// What asked for it: `mlx5_comp0@pci:0000:3b:00.0`.
    pub name: String,
    /// The kernel spreads it by itself, and refuses to bind it.
    pub is_managed: bool,
}

/// The interrupts of a netdev's function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// By number.
    pub all: BTreeMap<u32, Interrupt>,
    /// The CPUs of the function's NUMA node.
    pub local: Vec<u32>,
    /// CPUs that are there to be used.
    pub online: BTreeSet<u32>,
}

/// What the host reports about a netdev's interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterruptFacts {
    /// No such netdev.
    Missing,
    /// It has no interrupts of its own (a bridge, a VLAN, a NIC without MSI).
    NoInterrupts,
    /// It has.
    There(Interrupts),
}

/// The CPUs of a list such as `0-3,8`, in order and each once; none where it is no list.
pub fn parse_cpu_list(list: &str) -> Option<Vec<u32>> {
    let mut all = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (parse_cpu_number(first)?, parse_cpu_number(last)?);
        if first > last {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all.into_iter().collect())
}

fn parse_cpu_number(text: &str) -> Option<u32> {
    let number = text.parse::<u32>().ok()?;
    let is_plain = text.chars().all(|c| c.is_ascii_digit());
    (number < CPUS && is_plain).then_some(number)
}

/// The value of the first line `KEY VALUE`.
fn find_line_value<'o>(out: &'o str, key: &str) -> Option<&'o str> {
    out.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
}

/// The error fits after "unknown:".
pub fn read_interrupts(answers: &ReadResults, netdev: &str) -> Result<InterruptFacts, Reason> {
    let (code, out) = answers.output(&Read::Interrupts {
        netdev: netdev.to_owned(),
    })?;
    match code {
        1 => return Ok(InterruptFacts::Missing),
        0 if out.lines().any(|line| line == "none") => return Ok(InterruptFacts::NoInterrupts),
        0 => {}
        code => return Err(format!("the interrupts could not be read (status {code})").into()),
    }
    let local = find_line_value(out, "local_cpulist")
        .and_then(parse_cpu_list)
        .ok_or("the CPUs near the device could not be read")?;
    let online = find_line_value(out, "online")
        .and_then(parse_cpu_list)
        .ok_or("the CPUs that are online could not be read")?;
    let managed: BTreeSet<u32> = out.lines().filter_map(parse_managed_interrupt).collect();
    let mut interrupts = Interrupts {
        all: BTreeMap::new(),
        local,
        online: online.into_iter().collect(),
    };
    for line in out.lines() {
        let words: Vec<&str> = line.splitn(4, '\t').collect();
        if let ["irq", number, list, name] = words.as_slice()
            && let Ok(number) = number.parse::<u32>()
        {
            let is_managed = managed.contains(&number);
            interrupts.all.insert(
                number,
                Interrupt {
                    list: (*list).to_owned(),
                    name: (*name).to_owned(),
                    is_managed,
                },
            );
        }
    }
    Ok(InterruptFacts::There(interrupts))
}

/// The number in `mode 444 /proc/irq/41/smp_affinity_list`: nobody may write it (kernel/irq/proc.c,
/// register_irq_proc).
fn parse_managed_interrupt(line: &str) -> Option<u32> {
    let (mode, path) = line.strip_prefix("mode ")?.split_once(' ')?;
    let number = path
        .strip_suffix("/smp_affinity_list")?
        .rsplit('/')
        .next()?
        .parse()
        .ok()?;
    let mode = u32::from_str_radix(mode, 8).ok()?;
    (mode & 0o200 == 0).then_some(number)
}

impl Interrupts {
    /// Those that can be bound, each with its CPU: one after the other to the next CPU of the list.
    pub fn spread(&self, cpus: &[u32]) -> BTreeMap<u32, u32> {
        let free = self
            .all
            .iter()
            .filter(|(_, interrupt)| !interrupt.is_managed)
            .map(|(number, _)| *number);
        free.zip(cpus.iter().copied().cycle()).collect()
    }
}
