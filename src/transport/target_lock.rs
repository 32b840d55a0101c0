//! The rules of the lock that every target keeps for itself, as pure values. The scripts of
//! `fenced_script` follow them on hosts, the simulated fleet runs them as they are, and a test holds the
//! two against each other.
//!
//! Whoever writes shows a `Fence`: its holder's line and the fencing token of this taking. Both
//! have to be what stands in the lock at that moment, under the target's own mutex, so that a run
//! that slept, was copied or lost its lock by force changes nothing any more. Silence is measured
//! by the target's own monotonic clock.

use super::{ExecutionOutcome, TransportError};
use railwright_base::text::one_line;
use railwright_resource::complaint::find_failure_message;

/// The exit status of a script that found that the lock is no longer its writer's.
pub(super) const LOCK_LOST: i32 = 80;
/// The exit status of a script that found another record than it was to replace.
pub(super) const RECORD_MOVED: i32 = 81;
/// What stands for the digest of a record where there is none.
pub const NO_RECORD: &str = "none";

/// What a writer shows before every write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The line of the holder, as the lock keeps it.
    pub holder: String,
    /// The fencing token of this taking.
    pub number: u64,
}

impl Fence {
    /// With the holder as one line; what is none, is made one.
    pub fn new(holder: &str, number: u64) -> Self {
        Fence {
            holder: holder
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect(),
            number,
        }
    }
}

/// A moment of a target's monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uptime {
    /// The boot that it counts from.
    pub boot: String,
    /// Seconds since then.
    pub seconds: u64,
}

impl Uptime {
    /// Seconds from an earlier moment to this one. Those of another boot are not known: then it
    /// counts from this boot.
    pub fn since(&self, earlier: &Uptime) -> u64 {
        match self.seconds.checked_sub(earlier.seconds) {
            Some(seconds) if self.boot == earlier.boot => seconds,
            _ => self.seconds,
        }
    }
}

/// Why a lock may be taken from its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grounds {
    /// Its process is provably dead.
    Dead,
    /// It gave no heartbeat for at least so many seconds, which the target sees itself.
    Silent(u64),
    /// Somebody said so.
    Forced,
}

/// The lock that somebody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// By whom.
    pub fence: Fence,
    /// The latest heartbeat, or the taking.
    pub seen: Uptime,
    /// What came with that heartbeat.
    pub note: String,
}

/// The lock of one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetLock {
    /// Who has it.
    pub held: Option<HeldBy>,
    /// The highest fencing token that was seen here.
    pub highest: u64,
}

/// A lock as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockReading {
    /// The holder's line.
    pub holder: String,
    /// What came with its latest heartbeat.
    pub note: String,
    /// Seconds since then.
    pub silence_s: u64,
    /// The highest fencing token that was seen there.
    pub highest: u64,
}

/// How an attempt to take a lock ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOutcome {
    /// It is ours. The digest of the record that stands there now, where the target tells it.
    Taken(Option<String>),
    /// Another holder has it: its line.
    Held(String),
    /// The fencing token is lower than this one, which was seen there.
    Behind(u64),
    /// It cannot be taken there.
    Impossible(String),
    /// Nobody knows.
    Unknown(String),
}

/// How an attempt to take a lock away ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StealOutcome {
    /// Nobody has it any more, and no lower fencing token takes it again.
    Taken,
    /// Nobody had it.
    Free,
    /// Another holder than the one that was looked at has it: its line.
    Other(String),
    /// The holder gave a heartbeat meanwhile, so many seconds ago.
    Alive(u64),
    /// It cannot be done there.
    Impossible(String),
    /// Nobody knows.
    Unknown(String),
}

/// What a target keeps as its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordReading {
    /// There is nothing in its place.
    Absent,
    /// Its text.
    Text(String),
    /// Something is there and cannot be read: why.
    Unreadable(String),
    /// Nobody knows.
    Unknown(String),
}

/// How a record was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordOutcome {
    /// It stands there.
    Written,
    /// The target keeps none.
    NotKept,
    /// Another one stands there than it was to replace; it was left.
    Moved,
    /// It was not written.
    Failed(String),
    /// Nobody knows.
    Unknown(String),
}

impl TargetLock {
    /// Takes the lock; its holder may ask again.
    pub fn take(&mut self, fence: &Fence, now: Uptime, record: &str) -> LockOutcome {
        if let Some(other) = self
            .held
            .as_ref()
            .filter(|held| held.fence.holder != fence.holder)
        {
            return LockOutcome::Held(other.fence.holder.clone());
        }
        if fence.number < self.highest {
            return LockOutcome::Behind(self.highest);
        }
        self.highest = fence.number;
        self.held = Some(HeldBy {
            fence: fence.clone(),
            seen: now,
            note: String::new(),
        });
        LockOutcome::Taken(Some(record.to_owned()))
    }

    /// Whether it is still this writer's; else who has it.
    pub fn check(&self, fence: &Fence) -> Result<(), Option<String>> {
        match &self.held {
            Some(held) if held.fence == *fence => Ok(()),
            other => Err(other.as_ref().map(|held| held.fence.holder.clone())),
        }
    }

    /// A heartbeat of its holder.
    pub fn beat(&mut self, fence: &Fence, note: &str, now: Uptime) -> Result<(), Option<String>> {
        self.check(fence)?;
        if let Some(held) = &mut self.held {
            (held.seen, held.note) = (now, note.to_owned());
        }
        Ok(())
    }

    /// Lets it go.
    pub fn release(&mut self, fence: &Fence) -> Result<(), Option<String>> {
        self.check(fence)?;
        self.held = None;
        Ok(())
    }

    /// Takes it away from this holder.
    pub fn steal(
        &mut self,
        holder: &str,
        number: u64,
        grounds: Grounds,
        now: &Uptime,
    ) -> StealOutcome {
        let Some(held) = &self.held else {
            return StealOutcome::Free;
        };
        if held.fence.holder != holder {
            return StealOutcome::Other(held.fence.holder.clone());
        }
        let silence = now.since(&held.seen);
        if matches!(grounds, Grounds::Silent(seconds) if silence < seconds) {
            return StealOutcome::Alive(silence);
        }
        (self.held, self.highest) = (None, self.highest.max(number));
        StealOutcome::Taken
    }

    /// How it stands.
    pub fn read(&self, now: &Uptime) -> Option<LockReading> {
        let held = self.held.as_ref()?;
        let (holder, note, silence_s) = (
            held.fence.holder.clone(),
            held.note.clone(),
            now.since(&held.seen),
        );
        Some(LockReading {
            holder,
            note,
            silence_s,
            highest: self.highest,
        })
    }
}

/// An ending that is none of those with a meaning: why.
fn describe_other_ending(code: i32, stderr: &str) -> String {
    find_failure_message(stderr)
        .unwrap_or_else(|| format!("exit status {code}: {}", one_line(stderr, 600)))
}

fn first_line(stdout: &str) -> String {
    stdout.split('\n').next().unwrap_or_default().to_owned()
}

impl LockOutcome {
    /// As a script of `Upkeep::Lock` ended.
    pub(super) fn parse(performed: ExecutionOutcome) -> Self {
        match performed {
            ExecutionOutcome::Ended {
                code: 0, stdout, ..
            } => LockOutcome::Taken(Some(first_line(&stdout)).filter(|digest| !digest.is_empty())),
            ExecutionOutcome::Ended {
                code: 75, stdout, ..
            } => LockOutcome::Held(first_line(&stdout)),
            // A number that cannot be read is higher than any of ours.
            ExecutionOutcome::Ended {
                code: 76, stdout, ..
            } => LockOutcome::Behind(parse_fencing_token(&stdout)),
            ExecutionOutcome::Ended { code, stderr, .. } => {
                LockOutcome::Impossible(describe_other_ending(code, &stderr))
            }
            ExecutionOutcome::Unknown { reason } => LockOutcome::Unknown(reason.to_string()),
        }
    }

    /// The exit status and the output that say so.
    pub(super) fn exit(&self) -> (i32, String) {
        match self {
            LockOutcome::Taken(record) => (0, record.clone().unwrap_or_default()),
            LockOutcome::Held(line) => (75, line.clone()),
            LockOutcome::Behind(highest) => (76, highest.to_string()),
            LockOutcome::Impossible(why) | LockOutcome::Unknown(why) => (74, why.clone()),
        }
    }
}

impl StealOutcome {
    /// As a script of `Upkeep::Steal` ended.
    pub(super) fn parse(performed: ExecutionOutcome) -> Self {
        match performed {
            ExecutionOutcome::Ended { code: 0, .. } => StealOutcome::Taken,
            ExecutionOutcome::Ended { code: 1, .. } => StealOutcome::Free,
            ExecutionOutcome::Ended {
                code: 75, stdout, ..
            } => StealOutcome::Other(first_line(&stdout)),
            ExecutionOutcome::Ended {
                code: 77, stdout, ..
            } => StealOutcome::Alive(stdout.trim().parse().unwrap_or_default()),
            ExecutionOutcome::Ended { code, stderr, .. } => {
                StealOutcome::Impossible(describe_other_ending(code, &stderr))
            }
            ExecutionOutcome::Unknown { reason } => StealOutcome::Unknown(reason.to_string()),
        }
    }

    /// The exit status and the output that say so.
    pub(super) fn exit(&self) -> (i32, String) {
        match self {
            StealOutcome::Taken => (0, String::new()),
            StealOutcome::Free => (1, String::new()),
            StealOutcome::Other(line) => (75, line.clone()),
            StealOutcome::Alive(silence_s) => (77, silence_s.to_string()),
            StealOutcome::Impossible(why) | StealOutcome::Unknown(why) => (74, why.clone()),
        }
    }
}

impl RecordReading {
    /// As a script of `Upkeep::ReadRecord` ended.
    pub(super) fn parse(performed: ExecutionOutcome) -> Self {
        match performed {
            ExecutionOutcome::Ended {
                code: 0, stdout, ..
            } => RecordReading::Text(stdout),
            ExecutionOutcome::Ended { code: 1, .. } => RecordReading::Absent,
            ExecutionOutcome::Ended { code, stderr, .. } => {
                RecordReading::Unreadable(describe_other_ending(code, &stderr))
            }
            ExecutionOutcome::Unknown { reason } => RecordReading::Unknown(reason.to_string()),
        }
    }
}

impl RecordOutcome {
    /// As the write of a record ended.
    pub(super) fn parse(performed: ExecutionOutcome) -> Self {
        match performed {
            ExecutionOutcome::Ended { code: 0, .. } => RecordOutcome::Written,
            ExecutionOutcome::Ended {
                code: railwright_resource::complaint::UNAVAILABLE,
                ..
            } => RecordOutcome::NotKept,
            ExecutionOutcome::Ended {
                code: RECORD_MOVED, ..
            } => RecordOutcome::Moved,
            ExecutionOutcome::Ended { code, stderr, .. } => {
                RecordOutcome::Failed(describe_other_ending(code, &stderr))
            }
            ExecutionOutcome::Unknown { reason } => RecordOutcome::Unknown(reason.to_string()),
        }
    }
}

/// The fencing token that a target tells: none where it tells none, and the highest where it is one
/// that cannot be read.
pub(super) fn parse_fencing_token(text: &str) -> u64 {
    match text.trim() {
        "" => 0,
        text => text.parse().unwrap_or(u64::MAX),
    }
}

impl LockReading {
    /// What a script of `Upkeep::ReadLock` printed.
    pub(super) fn parse(stdout: &str) -> Self {
        let mut lines = stdout.split('\n');
        let holder = lines.next().unwrap_or_default();
        let note = lines.next().unwrap_or_default();
        let silence = lines.next().unwrap_or_default();
        let highest = lines.next().unwrap_or_default();
        // One that cannot be read, or lies in the future, is no silence.
        let silence_s = silence.trim().parse().unwrap_or_default();
        LockReading {
            holder: holder.to_owned(),
            note: note.to_owned(),
            silence_s,
            highest: parse_fencing_token(highest),
        }
    }

    /// Renders the state of the lock as that script prints it.
    pub(super) fn print(&self) -> String {
        format!(
            "{}\n{}\n{}\n{}\n",
            self.holder, self.note, self.silence_s, self.highest
        )
    }
}

/// The error of a write that was refused.
pub(super) fn lock_lost(host: &str, holder: Option<&str>) -> TransportError {
    let holder = holder
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned);
    TransportError::LockLost {
        host: host.to_owned(),
        holder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fencing_number_beyond_all_numbers_is_the_highest() {
        for (said, highest) in [("7\n", 7), ("99999999999999999999\n", u64::MAX)] {
            let ended = ExecutionOutcome::Ended {
                code: 76,
                stdout: said.to_owned(),
                stderr: String::new(),
            };
            assert_eq!(LockOutcome::parse(ended), LockOutcome::Behind(highest));
        }
    }
}
