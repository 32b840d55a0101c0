//! How long the steps of a training took: as its log says it, or by the times at which its lines of
//! progress came.
//!
//! Sources of what logs say: NVIDIA/Megatron-LM (`megatron/training/training.py`),
//! deepspeedai/DeepSpeed (`deepspeed/runtime/pipe/engine.py`), pytorch/examples
//! (`imagenet/main.py`).

use jiff::Timestamp;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// What comes before the time of a step, and how many of its units make a second.
pub const SAID: [(&str, f64); 3] = [
    ("elapsed time per iteration (ms): ", 1e3),
    ("iter time (s): ", 1.0),
    ("\tTime ", 1.0),
];

/// What stands behind the time on a line of Megatron-LM, with the samples of a step over all ranks.
const BATCH: &str = "global batch size:";

/// What a step can take, in seconds: a log can say anything.
const STEP_S: std::ops::RangeInclusive<f64> = 1e-6..=86_400.0;

/// Values that are kept; of more, half are let go, chosen by a hash: every second one would be all
/// the slow ones, or none of them, where each second step also exchanges gradients.
const VALUES_MAX: usize = 4096;

/// Steps below which a median says nothing: the first one compiles, connects and warms up.
pub const STEPS_MIN: u64 = 3;

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepUnit {
    /// A step of the training, by what its log says of it.
    Step,
    /// From one line of progress to the next, which is so many samples.
    Samples(u64),
    /// A whole epoch.
    Epoch,
}

impl StepUnit {
    /// For people.
    pub fn word(self) -> String {
        match self {
            StepUnit::Step => "a step".to_owned(),
            StepUnit::Samples(samples) => format!("{samples} samples"),
            StepUnit::Epoch => "an epoch".to_owned(),
        }
    }
}

/// Seconds of which the median is asked, in a memory that does not grow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampledDurations {
    values: Vec<(u64, f64)>,
    /// How many there were.
    pub count: u64,
    /// Of how many values about one is kept, as a power of two.
    thinned: u32,
}

impl SampledDurations {
    fn put(&mut self, seconds: f64) {
        if !(STEP_S.contains(&seconds)) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        self.count.hash(&mut hasher);
        let place = hasher.finish();
        while self.values.len() >= VALUES_MAX {
            self.thinned += 1;
            self.values
                .retain(|(place, _)| place.trailing_zeros() >= self.thinned);
        }
        if place.trailing_zeros() >= self.thinned {
            self.values.push((place, seconds));
        }
        self.count += 1;
    }

    /// The value in the middle.
    pub fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.values.iter().map(|(_, seconds)| *seconds).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

/// The steps of a training.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Steps {
    /// As the log says them.
    said: SampledDurations,
    /// By the times of its lines.
    timed: SampledDurations,
    /// Samples from line to line; 0 where a line is an epoch.
    samples: Option<u64>,
    /// Samples of one step over all ranks.
    batch: Option<u64>,
    /// Where the last line was, and when it came.
    last: Option<((u64, u64), Timestamp)>,
}

impl Steps {
    /// The text behind one of the words of `SAID`.
    pub fn said(&mut self, text: &str, in_a_second: f64) {
        let text = text.trim_start();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(text.len());
        if let Ok(value) = text[..end].parse::<f64>() {
            self.said.put(value / in_a_second);
        }
        if let Some((_, rest)) = text.split_once(BATCH) {
            let rest = rest.trim_start();
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
            if let Ok(batch) = digits.unwrap_or_default().parse() {
                self.batch = Some(batch);
            }
        }
    }

    /// A line of progress that came at this time.
    pub fn came(&mut self, time: Option<&str>, epoch: u64, done: Option<u64>) {
        let Some(now) = time.and_then(|time| time.parse::<Timestamp>().ok()) else {
            return;
        };
        let place = (epoch, done.unwrap_or_default());
        let Some((before, then)) = self.last else {
            self.last = Some((place, now));
            return;
        };
        if place <= before {
            // Another rank says the same, or the log of another pod begins.
            if now < then {
                self.last = Some((place, now));
            }
            return;
        }
        self.last = Some((place, now));
        let samples = match done {
            Some(done) if epoch == before.0 => done - before.1,
            None if epoch == before.0 + 1 => 0,
            // Between two epochs a training is evaluated.
            _ => return,
        };
        if *self.samples.get_or_insert(samples) == samples {
            self.timed.put(now.duration_since(then).as_secs_f64());
        }
    }

    /// A step was logged.
    pub fn are_there(&self) -> bool {
        self.said.count > 0 || self.timed.count > 0
    }

    /// Samples of one step over all ranks, where the log says it.
    pub fn batch(&self) -> Option<u64> {
        self.batch
    }

    /// What a step is, and all of them; what the log says itself goes before what was reckoned from
    /// times. Nothing where there are too few.
    pub fn measured(&self) -> Option<(StepUnit, &SampledDurations)> {
        let of_lines = match self.samples {
            Some(0) => StepUnit::Epoch,
            samples => StepUnit::Samples(samples.unwrap_or_default()),
        };
        [(StepUnit::Step, &self.said), (of_lines, &self.timed)]
            .into_iter()
            .find(|(_, sampled)| sampled.count >= STEPS_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timed(lines: &[(u64, u64, Option<u64>)]) -> Steps {
        let mut steps = Steps::default();
        for (second, epoch, done) in lines {
            steps.came(
                Some(&format!(
                    "2026-01-01T00:{:02}:{:02}.5Z",
                    second / 60,
                    second % 60
                )),
                *epoch,
                *done,
            );
        }
        steps
    }

    #[test]
    fn steps_by_the_times_of_lines() {
        let steps = timed(&[
            (0, 1, Some(0)),
            (9, 1, Some(640)),
            (11, 1, Some(1280)),
            (13, 1, Some(1920)),
            (60, 2, Some(0)),
            (62, 2, Some(640)),
        ]);
        let (unit, sampled) = steps.measured().unwrap();
        assert_eq!(
            (unit, sampled.count, sampled.median()),
            (StepUnit::Samples(640), 4, Some(2.0)),
            "what lies between two epochs is no step"
        );
        // Two ranks that say the same, and the log of the next pod, which begins again.
        let twice = [
            (0, 1, Some(0)),
            (1, 1, Some(0)),
            (4, 1, Some(64)),
            (5, 1, Some(64)),
            (8, 1, Some(128)),
            (9, 1, Some(64)),
        ];
        let again: Vec<_> = twice.iter().chain(&twice).copied().collect();
        assert_eq!(
            timed(&again)
                .measured()
                .map(|(_, sampled)| (sampled.count, sampled.median())),
            Some((4, Some(4.0)))
        );
        let epochs = timed(&[(0, 1, None), (30, 2, None), (60, 3, None), (90, 4, None)]);
        assert_eq!(
            epochs
                .measured()
                .map(|(unit, sampled)| (unit, sampled.median())),
            Some((StepUnit::Epoch, Some(30.0)))
        );
        assert!(
            timed(&[(0, 1, Some(0)), (2, 1, Some(64)), (4, 1, Some(128))])
                .measured()
                .is_none(),
            "two steps are too few"
        );
        let mut untimed = Steps::default();
        [None, Some("yesterday")]
            .into_iter()
            .for_each(|time| untimed.came(time, 1, None));
        assert_eq!(untimed, Steps::default());
    }

    #[test]
    fn steps_as_logs_say_them() {
        let mut steps = Steps::default();
        for text in [
            "271607.0 | learning rate",
            "2000.0/2100.0 |",
            " 2000",
            "nan",
            "",
        ] {
            steps.said(text, 1e3);
        }
        let (unit, sampled) = steps.measured().unwrap();
        assert_eq!(
            (unit, sampled.count, sampled.median()),
            (StepUnit::Step, 3, Some(2.0))
        );
    }

    proptest! {
        #[test]
        fn the_median_stays_in_the_middle_of_any_number_of_values(count in 1u64..40_000) {
            // Of a multiple the values are not all different.
            prop_assume!(count % 7919 != 0);
            let mut sampled = SampledDurations::default();
            (0..count).for_each(|n| sampled.put((n * 7919 % count + 1) as f64));
            let middle = sampled.median().unwrap() / count as f64;
            prop_assert!(sampled.count == count && sampled.values.len() <= VALUES_MAX);
            prop_assert!(count < 100 || (0.35..0.65).contains(&middle), "{middle}");
        }
    }
}
