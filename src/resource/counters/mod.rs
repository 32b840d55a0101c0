//! Counters of the ports of a fabric, read twice: only how much they rose in between says anything.
//! One text form for hosts and for switches of every system: `uptime SECONDS`, then for each port
//! `port NAME` and lines `counter value` in the vendor's own names, which `names` tells apart. What
//! a vendor does not count is absent, and never zero; what it counts and did not report is
//! `untold/COUNTER WHY`.

mod host;
pub mod names;
#[cfg(test)]
pub(crate) mod tests;

use super::{Fact, Read, ReadResults};
use names::{CounterKey, VendorCounter, Width};
use railwright_base::Reason;
use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Which of the two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterSampleOrdinal {
    /// The one before the time that is looked at.
    First,
    /// The one after it.
    Second,
}

impl CounterSampleOrdinal {
    /// The word in the key of its answer.
    pub fn word(self) -> &'static str {
        match self {
            CounterSampleOrdinal::First => "first",
            CounterSampleOrdinal::Second => "second",
        }
    }
}

/// The line of a script that prints how long its target has been up.
pub(crate) const PRINT_UPTIME: &str =
    r#"u=; { read -r u _ <"$R/proc/uptime"; } 2>/dev/null; printf 'uptime %s\n' "$u""#;

/// Ports beyond so many of one target are not taken in: the largest switches have 512.
const PORTS_MAX: usize = 4096;

/// Counters beyond so many of one port are not taken in.
const COUNTERS_MAX: usize = 4096;

/// The section that reads the counters of these netdevs.
pub fn host_script(netdevs: &[String]) -> String {
    host::render_host_counters_script(netdevs)
}

/// A port in one reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PortCounterSample {
    /// Its counters, by their vendor's names; nothing where what stood there is no number.
    pub counts: BTreeMap<String, Option<u64>>,
    /// The priorities whose queues the watchdog holds down at this moment.
    pub stormed: BTreeSet<u8>,
    /// Counters that should be there, and why they are not.
    pub untold: BTreeMap<String, String>,
    /// It is not there.
    pub is_absent: bool,
    /// Why the program that reads them failed.
    pub unread: Option<String>,
}

/// All ports of a target in one reading.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TargetCounterSample {
    /// Seconds since it was started.
    pub uptime_s: Option<f64>,
    /// What it says instead, where that is no time.
    pub odd_uptime: Option<String>,
    /// Each port.
    pub ports: BTreeMap<String, PortCounterSample>,
}

/// How the counters of a port rose between the readings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortCounterIncrease {
    /// By what they count; what nobody counts there is not in it.
    pub by: BTreeMap<CounterKey, Fact<u64>>,
    /// The priorities whose queues a watchdog holds down at the end.
    pub stormed: BTreeSet<u8>,
}

impl PortCounterIncrease {
    /// How much something rose.
    pub fn rose(&self, key: CounterKey) -> Fact<u64> {
        self.by.get(&key).cloned().unwrap_or(Fact::Absent)
    }
}

/// How the counters of all ports of a target rose, and in how many seconds by its own clock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Movement {
    /// Seconds.
    pub seconds: Option<f64>,
    /// By port.
    pub ports: BTreeMap<String, Fact<PortCounterIncrease>>,
}

/// The movement between the two readings of a target; the error fits after "unknown:". `read` is
/// the read of a sample.
pub fn diff_counter_samples(
    answers: &ReadResults,
    rows: &[VendorCounter],
    read: impl Fn(CounterSampleOrdinal) -> Read,
) -> Result<Movement, Reason> {
    let first = read_counter_sample(answers, &read(CounterSampleOrdinal::First))?;
    let second = read_counter_sample(answers, &read(CounterSampleOrdinal::Second))?;
    if let Some(odd) = first.odd_uptime.as_ref().or(second.odd_uptime.as_ref()) {
        return Err(format!(
            "its uptime makes no sense, and it may have been started anew between the readings: \
             `{odd}`"
        )
        .into());
    }
    let seconds = first
        .uptime_s
        .zip(second.uptime_s)
        .map(|(first, second)| second - first);
    if seconds.is_some_and(|seconds| seconds < 0.0) {
        return Err("it was started anew between the readings".into());
    }
    let absent = PortCounterSample {
        is_absent: true,
        ..PortCounterSample::default()
    };
    let names: BTreeSet<&String> = first.ports.keys().chain(second.ports.keys()).collect();
    let mut ports = BTreeMap::new();
    for name in names {
        let samples = [&first, &second].map(|sample| sample.ports.get(name).unwrap_or(&absent));
        ports.insert(name.clone(), diff_port_counters(samples, rows));
    }
    Ok(Movement { seconds, ports })
}

fn read_counter_sample(answers: &ReadResults, read: &Read) -> Result<TargetCounterSample, Reason> {
    match answers.output(read)? {
        (0, out) => Ok(parse_counter_sample(out)),
        (69, _) => Err("the program that reads its counters is not there".into()),
        (code, _) => Err(format!("the read of its counters ended with status {code}").into()),
    }
}

fn diff_port_counters(
    [first, second]: [&PortCounterSample; 2],
    rows: &[VendorCounter],
) -> Fact<PortCounterIncrease> {
    if let Some(why) = first.unread.as_ref().or(second.unread.as_ref()) {
        return Fact::Unknown(why.clone().into());
    }
    match (first.is_absent, second.is_absent) {
        (true, true) => return Fact::Absent,
        (false, false) => {}
        _ => return Fact::Unknown("the port came or went between the readings".into()),
    }
    let mut by: BTreeMap<CounterKey, Fact<u64>> = BTreeMap::new();
    let all: BTreeSet<&String> = first.counts.keys().chain(second.counts.keys()).collect();
    for name in all {
        let Some((key, width)) = names::find_counter_meaning(rows, name) else {
            continue;
        };
        let rise = compute_counter_increase(
            first.counts.get(name).copied(),
            second.counts.get(name).copied(),
            width,
        );
        let sum = by
            .remove(&key)
            .map_or(rise.clone(), |other| merge_counter_increases(other, rise));
        by.insert(key, sum);
    }
    for (name, why) in first.untold.iter().chain(&second.untold) {
        if let Some(meter) = names::find_meter_by_name(rows, name) {
            by.insert(CounterKey::whole(meter), Fact::Unknown(why.clone().into()));
        }
    }
    Fact::Is(PortCounterIncrease {
        by,
        stormed: second.stormed.clone(),
    })
}

/// How much one counter rose. `None` outside is a counter that is not there, inside one that is no
/// number.
fn compute_counter_increase(
    first: Option<Option<u64>>,
    second: Option<Option<u64>>,
    width: Width,
) -> Fact<u64> {
    let (first, second) = match (first, second) {
        (None, None) => return Fact::Absent,
        (Some(Some(first)), Some(Some(second))) => (first, second),
        (Some(None), _) | (_, Some(None)) => {
            return Fact::Unknown("a counter is no number".into());
        }
        _ => return Fact::Unknown("a counter came or went between the readings".into()),
    };
    match (second.checked_sub(first), width) {
        (Some(rise), _) => Fact::Is(rise),
        (None, Width::Bits32) if has_wrapped(first, second) => Fact::Is((1 << 32) - first + second),
        (None, _) => Fact::Unknown("a counter was set back between the readings".into()),
    }
}

/// A counter of 32 bits that fell from near its end to near its beginning went round; anything else
/// was set back by somebody. In between it could have been either, and is not guessed.
fn has_wrapped(first: u64, second: u64) -> bool {
    const QUARTER: u64 = 1 << 30;
    (3 * QUARTER..4 * QUARTER).contains(&first) && second < QUARTER
}

/// Two counters of the same thing: what rose is known whatever the other says, that nothing rose is
/// known only of both.
fn merge_counter_increases(one: Fact<u64>, other: Fact<u64>) -> Fact<u64> {
    match (one, other) {
        (Fact::Is(one), Fact::Is(other)) => Fact::Is(one.saturating_add(other)),
        (Fact::Is(rise), Fact::Unknown(_)) | (Fact::Unknown(_), Fact::Is(rise)) if rise > 0 => {
            Fact::Is(rise)
        }
        (unknown @ Fact::Unknown(_), _) | (_, unknown @ Fact::Unknown(_)) => unknown,
        (known @ Fact::Is(_), _) | (_, known @ Fact::Is(_)) => known,
        (one, _) => one,
    }
}

pub(crate) fn parse_counter_sample(text: &str) -> TargetCounterSample {
    let mut reading = TargetCounterSample::default();
    let mut name: Option<String> = None;
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "uptime" && name.is_none() {
            reading.uptime_s = rest
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
            reading.odd_uptime =
                (reading.uptime_s.is_none() && !rest.trim().is_empty()).then(|| one_line(rest, 40));
        } else if word == "port" {
            name = (reading.ports.len() < PORTS_MAX).then(|| rest.to_owned());
            if let Some(name) = &name {
                reading.ports.entry(name.clone()).or_default();
            }
        } else if let Some(port) = name.as_ref().and_then(|name| reading.ports.get_mut(name)) {
            port.line(word, rest.trim());
        }
    }
    reading
}

impl PortCounterSample {
    fn line(&mut self, word: &str, rest: &str) {
        match word.split_once('/') {
            _ if word == "absent" => self.is_absent = true,
            _ if word == "unread" => self.unread = Some(one_line(rest, 160)),
            Some(("untold", name)) if self.untold.len() < COUNTERS_MAX => {
                drop(self.untold.insert(name.to_owned(), one_line(rest, 160)))
            }
            Some((name, priority)) if names::STORMED.contains(&(name, rest)) => {
                self.stormed
                    .extend(priority.parse::<u8>().ok().filter(|priority| *priority < 8));
            }
            _ if self.counts.len() < COUNTERS_MAX => drop(
                self.counts
                    .insert(word.to_owned(), parse_counter_number(rest)),
            ),
            _ => {}
        }
    }
}

/// A whole number, behind which NVUE writes `Bytes`; one that was rounded to a unit (`18.98 KB`)
/// cannot be subtracted.
fn parse_counter_number(text: &str) -> Option<u64> {
    text.strip_suffix(" Bytes").unwrap_or(text).parse().ok()
}
