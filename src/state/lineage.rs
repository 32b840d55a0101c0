//! Which runs wrote a target's record, one after the other: it shows that a record comes after
//! another one, whatever is counted.

use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};

/// What is kept: so many runs, each of which may write a record often. The last 16 are
/// distinguished from one that is remembered.
const KEPT: usize = 17;

/// One part of a run. A run that goes on does so as another part, perhaps from a copy of the
/// folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPart {
    /// The run.
    pub run: String,
    /// Random, new for each part.
    #[serde(default)]
    pub part: String,
}

/// For people: `r0001-cb62f4 (part 5f0c12ab)`. What a target says may be anything.
impl std::fmt::Display for RunPart {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part: String = one_line(&self.part, 40).chars().take(8).collect();
        let run = one_line(&self.run, 40);
        match part.as_str() {
            "" => write!(out, "{run}"),
            part => write!(out, "{run} (part {part})"),
        }
    }
}

#[cfg(test)]
impl RunPart {
    /// The only part of a run.
    pub(super) fn of(run: &str) -> Self {
        RunPart {
            run: run.to_owned(),
            part: String::new(),
        }
    }
}

/// The latest record that a part of a run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestWrite {
    /// By whom.
    #[serde(flatten)]
    pub by: RunPart,
    /// The serial of the record.
    pub serial: u64,
    /// How far that is known.
    #[serde(default, skip_serializing_if = "WriteStatus::is_done")]
    pub status: WriteStatus,
    /// The record of the run's journal up to which more is remembered than it says: the run was
    /// killed before the next write, or somebody decided something on this side. 0 where it says
    /// all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub behind: u64,
}

/// What is known of a write, by who remembers it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteStatus {
    /// It stood on the target.
    #[default]
    Done,
    /// It may stand there or not.
    Tried,
}

impl LatestWrite {
    /// A write of which more is known by nobody.
    pub(super) fn new(by: RunPart, serial: u64, status: WriteStatus) -> Self {
        LatestWrite {
            by,
            serial,
            status,
            behind: 0,
        }
    }
}

fn is_zero(sequence: &u64) -> bool {
    *sequence == 0
}

impl WriteStatus {
    fn is_done(&self) -> bool {
        *self == WriteStatus::Done
    }
}

/// The runs that wrote a record, the latest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lineage(Vec<LatestWrite>);

/// How a record stands to what is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// It is what is remembered, or was before what may never have been written down there.
    Known,
    /// It was what is remembered, and something later is known to have stood there: the target was
    /// put back to how it was then.
    PutBack,
    /// It was written after what is remembered, by whoever knew that.
    Later,
    /// Whoever wrote it did not know what is remembered.
    Forked,
}

impl Lineage {
    /// Whether a part of this run wrote one of the records.
    pub fn has_run(&self, run: &str) -> bool {
        self.0.iter().any(|write| write.by.run == run)
    }

    /// The serial of the latest record; 0 where there is none.
    pub fn serial(&self) -> u64 {
        self.0.last().map_or(0, |latest| latest.serial)
    }

    /// The highest serial in it, which is that of the latest record unless somebody made it up.
    pub fn highest_serial(&self) -> u64 {
        self.0
            .iter()
            .map(|write| write.serial)
            .max()
            .unwrap_or_default()
    }

    /// The latest write.
    pub fn latest(&self) -> Option<&LatestWrite> {
        self.0.last()
    }

    /// Adds a write, unless it is there already. What the same part of the run wrote right before
    /// is part of it.
    pub fn note(&mut self, by: &RunPart, serial: u64) {
        self.add(LatestWrite::new(by.clone(), serial, WriteStatus::Done));
    }

    /// Adds a write of which nobody knows whether it came to stand on the target.
    pub fn note_tried(&mut self, by: &RunPart, serial: u64) {
        self.add(LatestWrite::new(by.clone(), serial, WriteStatus::Tried));
    }

    /// More is remembered, by this part of a run up to this record of its journal, than any record
    /// of the target says. What others write without it does not follow from here; what the same
    /// part writes does, and it may still live where this is a copy of its folder.
    pub fn note_behind(&mut self, by: &RunPart, sequence: u64) {
        match self.0.last_mut().filter(|latest| latest.by == *by) {
            Some(latest) => latest.behind = sequence,
            None => self.add(LatestWrite {
                behind: sequence,
                ..LatestWrite::new(by.clone(), self.serial(), WriteStatus::Tried)
            }),
        }
    }

    /// Adds a write, as far as it is known, unless a later one is there already.
    pub(super) fn add(&mut self, write: LatestWrite) {
        let is_known = self.has(&write);
        match self.0.last_mut().filter(|latest| latest.by == write.by) {
            Some(latest) if latest.serial <= write.serial => *latest = write,
            None if !is_known => self.0.push(write),
            _ => {}
        }
        let excess = self.0.len().saturating_sub(KEPT);
        self.0.drain(..excess);
    }

    /// How a record of this lineage stands to one of the other, which is remembered.
    pub fn descent_from(&self, known: &Lineage) -> Descent {
        let (Some(latest), Some(remembered)) = (self.latest(), known.latest()) else {
            return Descent::Later;
        };
        // What came before the oldest that is kept is unknown.
        let is_told = self.0.len() < KEPT || self.0[0].serial <= remembered.serial;
        match known.place(latest) {
            Some(place) if known.stood().is_some_and(|stood| place < stood) => Descent::PutBack,
            Some(_) => Descent::Known,
            None if self.knows(remembered) || !is_told => Descent::Later,
            None => Descent::Forked,
        }
    }

    /// Whether whoever wrote this knew all that is remembered with that write.
    fn knows(&self, remembered: &LatestWrite) -> bool {
        self.0.iter().any(|own| {
            let is_as_late = own.serial == remembered.serial && own.behind >= remembered.behind;
            own.by == remembered.by && (own.serial > remembered.serial || is_as_late)
        })
    }

    fn has(&self, write: &LatestWrite) -> bool {
        self.place(write).is_some()
    }

    /// Where a write is, which may be one that the same part of a run wrote before what is kept of
    /// it. Places have an order.
    fn place(&self, write: &LatestWrite) -> Option<(usize, u64)> {
        let place = self
            .0
            .iter()
            .position(|own| own.by == write.by && own.serial >= write.serial)?;
        Some((place, write.serial))
    }

    /// The place of the latest write that is known to have stood on the target.
    fn stood(&self) -> Option<(usize, u64)> {
        let place = self.0.iter().rposition(|write| write.status.is_done())?;
        Some((place, self.0[place].serial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(writes: &[(&str, u64)]) -> Lineage {
        let mut lineage = Lineage::default();
        writes
            .iter()
            .for_each(|(run, serial)| lineage.note(&RunPart::of(run), *serial));
        lineage
    }

    #[test]
    fn parts_of_one_run_are_told_apart() {
        let part = |part: &str| RunPart {
            part: part.to_owned(),
            ..RunPart::of("r0001-cb62f4")
        };
        assert_eq!(part("").to_string(), "r0001-cb62f4");
        assert_eq!(
            part("0123456789abcdef").to_string(),
            "r0001-cb62f4 (part 01234567)"
        );
    }

    #[test]
    fn what_no_record_says_yet_is_known_to_who_did_it_alone() {
        let stood = [("a", 2), ("b", 5)];
        let after = |writes: &[(&str, u64)]| lineage(&[&stood, writes].concat());
        let (mut killed, mut tried) = (after(&[]), after(&[]));
        killed.note_behind(&RunPart::of("c"), 9);
        tried.note_tried(&RunPart::of("c"), 6);
        for (record, of_killed, of_tried) in [
            (lineage(&[("a", 2)]), Descent::PutBack, Descent::PutBack),
            (
                lineage(&[("a", 2), ("b", 4)]),
                Descent::PutBack,
                Descent::PutBack,
            ),
            (after(&[]), Descent::Known, Descent::Known),
            (after(&[("c", 6)]), Descent::Later, Descent::Known),
            (after(&[("c", 7)]), Descent::Later, Descent::Later),
            (after(&[("d", 6)]), Descent::Forked, Descent::Forked),
            (after(&[("c", 6), ("d", 7)]), Descent::Later, Descent::Later),
        ] {
            assert_eq!(
                (record.descent_from(&killed), record.descent_from(&tried)),
                (of_killed, of_tried),
                "{record:?}"
            );
        }
        tried.note(&RunPart::of("c"), 6);
        assert_eq!(
            after(&[]).descent_from(&tried),
            Descent::PutBack,
            "it is known to have stood there"
        );
        tried.note_behind(&RunPart::of("c"), 9);
        assert_eq!(
            after(&[]).descent_from(&tried),
            Descent::PutBack,
            "it stood there, whatever is remembered besides"
        );
        assert_eq!(
            after(&[("c", 6), ("d", 7)]).descent_from(&tried),
            Descent::Forked
        );
        // Who went on with the same journal knew it; a copy of before did not.
        for (behind, descent) in [(9, Descent::Later), (8, Descent::Forked)] {
            let mut went_on = after(&[("c", 6)]);
            went_on.note_behind(&RunPart::of("c"), behind);
            went_on.note(&RunPart::of("d"), 7);
            assert_eq!(went_on.descent_from(&tried), descent);
        }
        tried.note(&RunPart::of("c"), 7);
        assert_eq!(
            after(&[("c", 7), ("d", 8)]).descent_from(&tried),
            Descent::Later
        );
    }

    #[test]
    fn a_record_is_later_where_whoever_wrote_it_knew_what_is_remembered() {
        let known = lineage(&[("a", 2), ("b", 5)]);
        for (record, descent) in [
            (lineage(&[("a", 2), ("b", 5)]), Descent::Known),
            (lineage(&[("a", 1)]), Descent::PutBack),
            (lineage(&[("a", 2), ("b", 4)]), Descent::PutBack),
            (lineage(&[("a", 2), ("b", 6)]), Descent::Later),
            (lineage(&[("a", 2), ("b", 5), ("c", 6)]), Descent::Later),
            (lineage(&[("c", 1)]), Descent::Forked),
            (lineage(&[("c", 9)]), Descent::Forked),
            (lineage(&[("a", 2), ("b", 4), ("c", 9)]), Descent::Forked),
        ] {
            assert_eq!(record.descent_from(&known), descent, "{record:?}");
        }
        assert_eq!(
            known.descent_from(&Lineage::default()),
            Descent::Later,
            "nothing is remembered"
        );
        let many: Vec<String> = (0..KEPT).map(|number| number.to_string()).collect();
        let of = |first: u64| {
            lineage(
                &many
                    .iter()
                    .zip(first..)
                    .map(|(run, serial)| (run.as_str(), serial))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            (of(4).descent_from(&known), of(6).descent_from(&known)),
            (Descent::Forked, Descent::Later),
            "what is no longer kept"
        );
    }
}
