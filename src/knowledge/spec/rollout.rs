//! The rollout's numbers, with their defaults filled in.

use super::model::{Drain, DrainPods, Rollout};
use super::window;
use railwright_resource::Disruption;
use serde_json::Value;

/// Within a shorter time no connection could be lost and made again; within a longer one somebody
/// comes to look.
const ROLLBACK_TIMER_S: std::ops::RangeInclusive<u32> = 20..=3600;

/// A switch has up to two hours: changes of one with hundreds of ports take many minutes.
const SWITCH_ROLLBACK_TIMER_S: std::ops::RangeInclusive<u32> = 20..=7200;
/// Pods are given 30 s to end unless they ask for more; a node that is not empty after a day keeps
/// a run for nothing.
const DRAIN_S: std::ops::RangeInclusive<u32> = 60..=86_400;
/// How long a node may take to be emptied, or to come back, unless the spec says otherwise,
/// seconds.
pub const DRAIN_DEFAULT_S: u32 = 15 * 60;

/// How many hosts may be out of service at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostBudget {
    /// So many.
    Hosts(usize),
    /// A share of all hosts; rounds down.
    Percent(u8),
}

impl HostBudget {
    /// The number for a cluster of so many hosts.
    pub fn of(self, hosts: usize) -> usize {
        match self {
            HostBudget::Hosts(count) => count,
            HostBudget::Percent(percent) => hosts.saturating_mul(percent as usize) / 100,
        }
    }

    /// Reads a count or a text like `10%`; nothing for anything else.
    pub fn read(value: &Value) -> Option<HostBudget> {
        match value {
            Value::Number(number) => {
                let hosts = usize::try_from(number.as_u64()?).ok()?;
                Some(HostBudget::Hosts(hosts))
            }
            Value::String(text) => {
                let digits = text.strip_suffix('%')?.trim_end();
                let percent = digits.parse().ok()?;
                (percent <= 100).then_some(HostBudget::Percent(percent))
            }
            _ => None,
        }
    }
}

impl Drain {
    /// What disturbs at least so much needs an empty node.
    pub fn from(&self) -> Disruption {
        self.from.unwrap_or(Disruption::LinkBlip)
    }

    /// After how many seconds a node that is not empty is given back; nothing where what is said is
    /// no such time.
    pub fn timeout_s(&self) -> Option<u32> {
        let Some(text) = &self.timeout else {
            return Some(DRAIN_DEFAULT_S);
        };
        let seconds = u32::try_from(window::parse_duration(text)?.as_secs()).ok()?;
        DRAIN_S.contains(&seconds).then_some(seconds)
    }
}

impl Rollout {
    /// Hosts that may be out of service at the same time, in a cluster of so many; at least 1 in a
    /// spec that was loaded.
    pub fn max_unavailable(&self, hosts: usize) -> usize {
        self.max_unavailable
            .as_ref()
            .and_then(HostBudget::read)
            .unwrap_or(HostBudget::Hosts(1))
            .of(hosts)
    }

    /// How many hosts each wave after the first has, the last repeated; empty where nothing is
    /// said.
    pub fn batches(&self, hosts: usize) -> Vec<usize> {
        self.batches
            .iter()
            .filter_map(HostBudget::read)
            .map(|batch| batch.of(hosts).max(1))
            .collect()
    }

    /// How many hosts may be lost before nothing new is begun; nothing where it is not said.
    pub fn failure_budget(&self, hosts: usize) -> Option<usize> {
        Some(
            self.failure_budget
                .as_ref()
                .and_then(HostBudget::read)?
                .of(hosts),
        )
    }

    /// Hosts of each hardware class in the first wave.
    pub fn canary(&self) -> usize {
        self.canary.unwrap_or(1) as usize
    }

    /// What disturbs at least so much waits for a window.
    pub fn windows_for(&self) -> Disruption {
        self.windows_for.unwrap_or(Disruption::LinkBlip)
    }

    /// How many seconds a run may go on.
    pub fn deadline_s(&self) -> Option<u64> {
        let deadline = window::parse_duration(self.deadline.as_deref()?)?;
        Some(deadline.as_secs().unsigned_abs().max(1))
    }

    /// After how many seconds a host rolls back what was not confirmed; nothing where it is not
    /// said, or is no such time.
    pub fn rollback_timer_s(&self) -> Option<u32> {
        seconds_within(self.rollback_timer.as_deref()?, ROLLBACK_TIMER_S)
    }

    /// After how many seconds a switch rolls back what was not confirmed; nothing where it is not
    /// said, or is no such time.
    pub fn switch_rollback_timer_s(&self) -> Option<u32> {
        seconds_within(
            self.switch_rollback_timer.as_deref()?,
            SWITCH_ROLLBACK_TIMER_S,
        )
    }

    /// How nodes are emptied; nothing where they are not.
    pub fn drain(&self) -> Option<Drain> {
        let drain = self.drain.clone().unwrap_or_default();
        (drain.pods != DrainPods::Leave && self.max_disruption() >= Disruption::Drain)
            .then_some(drain)
    }

    /// Changes that disturb more are blocked.
    pub fn max_disruption(&self) -> Disruption {
        self.max_disruption.unwrap_or(Disruption::Reboot)
    }
}
/// The seconds of a duration; nothing where it is none, or is not within this.
fn seconds_within(text: &str, allowed: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let seconds = u32::try_from(window::parse_duration(text)?.as_secs()).ok()?;
    allowed.contains(&seconds).then_some(seconds)
}
