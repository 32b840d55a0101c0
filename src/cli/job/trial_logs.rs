//! The logs of a trial's pods, read while it runs, and what they prove when it is over.

use railwright_jobs::doctor::ladder::{Rung, TrialOutcome, evaluate_trial};
use railwright_jobs::job::{JobReader, JobView, Tail};
use railwright_transport::TransportError;
use railwright_verify::nccl::{self, NcclExpectations, NcclLogDecoder};
use std::collections::BTreeMap;

/// Lines of a pod's log that are read at a look.
const LINES: u32 = 200_000;

/// What the logs of a trial's pods have printed so far, each read on from where it was left.
#[derive(Default)]
pub(super) struct TrialLogs {
    tails: BTreeMap<String, Tail>,
    decoder: NcclLogDecoder,
}

impl TrialLogs {
    /// The lines that the logs of all pods have more than at the look before, and how many they
    /// are.
    pub(super) async fn listen(
        &mut self,
        look: &JobReader<'_>,
        view: &JobView,
    ) -> Result<usize, TransportError> {
        let mut new = 0;
        for pod in view.pods.iter().filter(|pod| pod.phase != "Pending") {
            let tail = self.tails.entry(pod.uid.clone()).or_default();
            let since = tail.since();
            let Ok((text, _)) = look.log(pod, LINES, since.as_deref()).await? else {
                continue;
            };
            for line in tail.take(&text) {
                new += 1;
                self.decoder.feed(line.as_bytes());
                self.decoder.feed(b"\n");
            }
        }
        Ok(new)
    }

    /// What they prove of a trial that is over.
    pub(super) fn proof(self, rung: Rung) -> TrialOutcome {
        let log = self.decoder.finish();
        evaluate_trial(
            rung,
            log.hosts().len(),
            &nccl::check_nccl_log(&log, &NcclExpectations::of("the trial", "--log FILE")),
        )
    }
}
