//! Progress of a training job, as examples of PyTorch print it: `Train Epoch: 3 [640/60000 (1%)]`.
//!
//! Sources: the MNIST examples of pytorch/examples and of kubeflow/arena
//! (`examples/pytorch/mnist/main.py`).

/// The words that a line of progress begins with.
pub const WORDS: &str = "Train Epoch: ";

/// How far a job came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrainingProgress {
    /// Lines of progress.
    pub lines: u64,
    /// The first epoch and the last one that was logged.
    pub epochs: (u64, u64),
    /// Samples done and to do of the last line.
    pub samples: Option<(u64, u64)>,
}

impl TrainingProgress {
    /// Takes the text behind the words; false where it is no progress.
    pub fn take(&mut self, text: &str) -> bool {
        let (epoch, rest) = text
            .split_once(|c: char| !c.is_ascii_digit())
            .unwrap_or((text, ""));
        let Ok(epoch) = epoch.parse() else {
            return false;
        };
        self.epochs = (
            if self.lines == 0 {
                epoch
            } else {
                self.epochs.0
            },
            epoch,
        );
        self.lines += 1;
        self.samples = parse_sample_progress(rest);
        true
    }
}

fn parse_sample_progress(text: &str) -> Option<(u64, u64)> {
    let (_, rest) = text.split_once('[')?;
    let (done, rest) = rest.split_once('/')?;
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    Some((done.trim().parse().ok()?, rest[..end].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_and_samples() {
        let mut training = TrainingProgress::default();
        assert!(training.take("1 [0/60000 (0%)]\tloss=2.3000"));
        assert!(training.take("2 [640/60000 (1%)]\tLoss: 2.29"));
        assert_eq!(
            training,
            TrainingProgress {
                lines: 2,
                epochs: (1, 2),
                samples: Some((640, 60000))
            }
        );
        assert!(training.take("3") && !training.take("x [1/2]"));
        assert_eq!(
            training,
            TrainingProgress {
                lines: 3,
                epochs: (1, 3),
                samples: None
            }
        );
    }
}
