//! Which runs wrote a target's record, one after the other: by it a record is told to come after another one, whatever is counted.

use serde::{Deserialize, Serialize};

/// What is kept: so many runs, each of which may write a record often. The last 16 are told apart from one that is remembered.
const KEPT: usize = 17;

/// The latest record that a run wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestWrite {
    /// The run.
    pub run: String,
    /// The serial of the record.
    pub serial: u64,
}

/// The runs that wrote a record, the latest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lineage(Vec<LatestWrite>);

/// How a record stands to what is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// It is what is remembered, or was before that.
    Known,
    /// It was written after what is remembered, by whoever knew that.
    Later,
    /// Whoever wrote it did not know what is remembered.
    Forked,
}

impl Lineage {
    /// The serial of the latest record; 0 where there is none.
    pub fn serial(&self) -> u64 {
        self.0.last().map_or(0, |latest| latest.serial)
    }

    /// The highest serial in it, which is that of the latest record unless somebody made it up.
    pub fn highest_serial(&self) -> u64 {
        self.0.iter().map(|write| write.serial).max().unwrap_or_default()
    }

    /// The latest write.
    pub fn latest(&self) -> Option<&LatestWrite> {
        self.0.last()
    }

    /// Adds a write of a run, unless it is there already. What the run wrote right before is part of it.
    pub fn note(&mut self, run: &str, serial: u64) {
        let write = LatestWrite { run: run.to_owned(), serial };
        if self.has(&write) {
            return;
        }
        match self.0.last_mut().filter(|latest| latest.run == run) {
            Some(latest) => *latest = write,
            None => self.0.push(write),
        }
        let excess = self.0.len().saturating_sub(KEPT);
        self.0.drain(..excess);
    }

    /// The number of the latest record counts on: none that was read before is later.
    pub fn count_on(&mut self) {
        self.0.last_mut().into_iter().for_each(|latest| latest.serial += 1);
    }

    /// How a record of this lineage stands to one of the other, which is remembered.
    pub fn descent_from(&self, known: &Lineage) -> Descent {
        let (Some(latest), Some(remembered)) = (self.latest(), known.latest()) else { return Descent::Later };
        // What came before the oldest that is kept cannot be told.
        let is_told = self.0.len() < KEPT || self.0[0].serial <= remembered.serial;
        match () {
            () if known.has(latest) => Descent::Known,
            () if self.has(remembered) || !is_told => Descent::Later,
            () => Descent::Forked,
        }
    }

    fn has(&self, write: &LatestWrite) -> bool {
        self.0.iter().any(|own| own.run == write.run && own.serial >= write.serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(writes: &[(&str, u64)]) -> Lineage {
        let mut lineage = Lineage::default();
        writes.iter().for_each(|(run, serial)| lineage.note(run, *serial));
        lineage
    }

    #[test]
    fn a_record_is_later_where_whoever_wrote_it_knew_what_is_remembered() {
        let known = lineage(&[("a", 2), ("b", 5)]);
        for (record, descent) in [
            (lineage(&[("a", 2), ("b", 5)]), Descent::Known),
            (lineage(&[("a", 1)]), Descent::Known),
            (lineage(&[("a", 2), ("b", 4)]), Descent::Known),
            (lineage(&[("a", 2), ("b", 6)]), Descent::Later),
            (lineage(&[("a", 2), ("b", 5), ("c", 6)]), Descent::Later),
            (lineage(&[("c", 1)]), Descent::Forked),
            (lineage(&[("c", 9)]), Descent::Forked),
            (lineage(&[("a", 2), ("b", 4), ("c", 9)]), Descent::Forked),
        ] {
            assert_eq!(record.descent_from(&known), descent, "{record:?}");
        }
        assert_eq!(known.descent_from(&Lineage::default()), Descent::Later, "nothing is remembered");
        let many: Vec<String> = (0..KEPT).map(|number| number.to_string()).collect();
        let of = |first: u64| lineage(&many.iter().zip(first..).map(|(run, serial)| (run.as_str(), serial)).collect::<Vec<_>>());
        assert_eq!((of(4).descent_from(&known), of(6).descent_from(&known)), (Descent::Forked, Descent::Later), "what is no longer kept");
    }
}
