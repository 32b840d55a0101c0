//! Whether a job that runs goes on: by the lines that it writes. A launcher that hangs writes none,
//! and its pods run all the same.

use super::kind::{JobKind, Phase};
use railwright_base::text::format_duration;

/// A job that writes nothing for so long is called stuck, in seconds, where nobody says otherwise:
/// a step of a large model takes minutes.
pub const STALLED_S: u64 = 600;

/// A job that runs and writes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// In words, with what to do.
    pub lines: Vec<String>,
}

/// What is known of a job's progress.
#[derive(Debug, Clone)]
pub struct JobProgress {
    limit_s: u64,
    /// When the last line came, or the job began to run, in seconds.
    last_s: Option<u64>,
    lines: u64,
    told: bool,
}

impl JobProgress {
    /// Nothing is known yet; stuck after so many seconds.
    pub fn new(limit_s: u64) -> Self {
        JobProgress {
            limit_s,
            last_s: None,
            lines: 0,
            told: false,
        }
    }

    /// After a look at this second: so many lines are new. A stall is reported once, until lines
    /// come again.
    pub fn look(&mut self, now_s: u64, kind: JobKind, phase: Phase, new: usize) -> Option<Stall> {
        if phase != Phase::Running || kind.stays() {
            self.last_s = None;
            return None;
        }
        self.lines += new as u64;
        if new > 0 || self.last_s.is_none() {
            (self.last_s, self.told) = (Some(now_s), false);
        }
        let quiet = now_s.saturating_sub(self.last_s.unwrap_or(now_s));
        if self.told || quiet < self.limit_s {
            return None;
        }
        self.told = true;
        Some(Stall {
            lines: self.words(kind, quiet),
        })
    }

    fn words(&self, kind: JobKind, quiet_s: u64) -> Vec<String> {
        let mut lines = vec![format!(
            "it runs and has written nothing for {}: it is stuck, or its steps are that long",
            format_duration(quiet_s)
        )];
        match kind {
            // open-mpi/ompi: HCOLL is tried first where it is installed (NVIDIA/nccl#1564 of a
            // launcher that hung in it).
            JobKind::Mpi => lines.extend([
                "  start it with `-mca coll_hcoll_enable 0`, as `railwright job render nccl-test` \
                 does: HCOLL hangs where its own fabric is not set up"
                    .to_owned(),
                "  and with `-mca btl tcp,self`, with the management network in \
                 `btl_tcp_if_include` and `oob_tcp_if_include`"
                    .to_owned(),
            ]),
            JobKind::Pytorch => lines.push(
                "  a rank that waits for others hangs in init_process_group: are all workers \
                 there, and is the master's port reached?"
                    .to_owned(),
            ),
            JobKind::Ray | JobKind::Deployment | JobKind::Batch | JobKind::Pod => {}
        }
        if self.lines == 0 {
            lines.push("  nothing was written since it began".to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_told_once_and_again_after_new_lines() {
        let mut progress = JobProgress::new(60);
        let mut look = |now, phase, new| {
            progress
                .look(now, JobKind::Mpi, phase, new)
                .map(|stall| stall.lines.join("\n"))
        };
        assert_eq!(look(0, Phase::Waiting, 0), None);
        assert_eq!(
            look(500, Phase::Running, 0),
            None,
            "what waited was not stuck"
        );
        assert_eq!(look(559, Phase::Running, 0), None);
        let told = look(560, Phase::Running, 0).unwrap();
        assert!(
            told.contains("nothing for 1 min")
                && told.contains("coll_hcoll_enable 0")
                && told.contains("since it began"),
            "{told}"
        );
        assert_eq!(look(900, Phase::Running, 0), None);
        assert_eq!(look(901, Phase::Running, 3), None);
        assert!(
            !look(961, Phase::Running, 0)
                .unwrap()
                .contains("since it began")
        );
        assert_eq!(look(2000, Phase::Succeeded, 0), None);
        let mut stays = JobProgress::new(60);
        assert!(
            stays.look(0, JobKind::Ray, Phase::Running, 0).is_none()
                && stays.look(999, JobKind::Ray, Phase::Running, 0).is_none()
        );
    }
}
