//! `railwright doctor --ladder`: the trials, one after the other, each job taken away again.

use super::cluster::Cluster;
use super::deliver::JobRenderContext;
use super::trial_logs::TrialLogs;
use crate::cli::session::open_session;
use crate::cli::{CommandFailure, Exit, verification};
use railwright_base::Reason;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::quote;
use railwright_base::text::{format_duration, one_line};
use railwright_jobs::doctor::ladder::{Ladder, Rung, TrialOutcome};
use railwright_jobs::job::{
    self, ClusterJob, Deletable, JobProgress, JobReader, JobSubmissionOutcome, JobView,
    ObjectDeletionOutcome, Phase, Submission,
};
use railwright_report::job::ladder as screen;
use railwright_report::out;
use railwright_session::SessionRequest;
use railwright_system::clock::{self, Stopwatch};
use railwright_system::signals::{self, wait_for_interrupts};
use railwright_transport::{TargetContact, TransportError};
use railwright_verify::{CheckVerdict, verify_hosts};
use railwright_workload::{Devices, JobRequest, NcclTest, Pods, RequestPlaces};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::watch;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(2);
/// An API server that has not answered a submission within this does not.
const SUBMITTED_WITHIN: Duration = Duration::from_secs(60);
/// An operator ends a trial so long after our own limit, in seconds.
const LEASE_SLACK_S: u64 = 60;

/// What the trials are made with.
#[derive(Debug, Clone, clap::Args)]
pub struct Trials {
    /// An image with NCCL's tests, Open MPI and sshd, which the trials run
    #[arg(long, requires = "ladder")]
    image: Option<String>,
    /// How many workers a trial has
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        requires = "ladder",
        value_parser = clap::value_parser!(u32).range(2..)
    )]
    workers: u32,
    /// GPUs of a worker; those of the hosts when left out
    #[arg(long, value_name = "N", requires = "ladder")]
    gpus: Option<u32>,
    /// A further network of the pods with RDMA, by the name of its NetworkAttachmentDefinition
    #[arg(long, value_name = "NAME", requires = "ladder")]
    network: Option<String>,
    /// The test, with its path where it is not on the image's PATH
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "all_reduce_perf",
        requires = "ladder"
    )]
    program: String,
    /// A trial is given up after this: `10m`
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = super::watch::parse_job_duration,
        default_value = "10m",
        requires = "ladder"
    )]
    limit_s: u64,
    /// A trial that runs and writes nothing for this long hangs
    #[arg(
        long = "stuck-after",
        value_name = "DURATION",
        value_parser = super::watch::parse_job_duration,
        default_value = "2m",
        requires = "ladder"
    )]
    stuck_s: u64,
}

/// Makes them, the lowest first, until one fails.
pub async fn run_trials(
    trials: &Trials,
    inventory: &Path,
    namespace: &str,
    json: bool,
) -> Result<Exit, CommandFailure> {
    let ground = JobRenderContext::read(Some(&inventory.to_path_buf()))?;
    let cluster = Cluster::of(inventory).await?;
    let climb = Climb {
        trials,
        ground,
        cluster,
        namespace,
        inventory,
        there: Mutex::default(),
    };
    let mut interrupts = signals::watch_interrupts();
    let mut again = interrupts.clone();
    tokio::select! {
        () = wait_for_interrupts(&mut again, 2) => {
            climb.print_left_job();
            Ok(Exit::Interrupted)
        }
        climbed = climb.try_rungs(&mut interrupts, json) => climbed,
    }
}

fn explain_unrendered(failure: &CommandFailure) -> TrialOutcome {
    let why = failure
        .error
        .diagnostics
        .first()
        .map_or(String::new(), |one| {
            format!("{}: {}", one.code, one.message)
        });
    TrialOutcome::NotKnown(format!("no job could be rendered: {why}"))
}

struct Climb<'a> {
    trials: &'a Trials,
    ground: JobRenderContext,
    cluster: Cluster,
    namespace: &'a str,
    inventory: &'a Path,
    /// The job of a trial that was not taken away yet.
    there: Mutex<Option<String>>,
}

impl Climb<'_> {
    async fn try_rungs(
        &self,
        interrupts: &mut watch::Receiver<u32>,
        json: bool,
    ) -> Result<Exit, CommandFailure> {
        let mut ladder = Ladder::default();
        for rung in Rung::ALL {
            out::print_note(&format!("trying: {}", rung.word()));
            let tried = match rung.job() {
                None => tokio::select! {
                    _ = interrupts.changed() => None,
                    outcome = self.try_hosts() => Some(outcome?),
                },
                Some(job) => self.run_trial(rung, job, interrupts).await?,
            };
            let Some(outcome) = tried else {
                return Ok(Exit::Interrupted);
            };
            if !json {
                out::print_result(&screen::render_trial(rung, &outcome));
            }
            let failed = matches!(outcome, TrialOutcome::Fails(_));
            ladder.rungs.push((rung, outcome));
            if failed {
                break;
            }
        }
        out::print_result(&if json {
            screen::render_ladder_json(&ladder)
        } else {
            screen::render_ladder_conclusion(&ladder, &quote::quote_path(self.inventory))
        });
        Ok(match (ladder.first_that_fails(), ladder.goes()) {
            (Some(_), _) => Exit::Failed,
            (None, true) => Exit::Done,
            (None, false) => Exit::Incomplete,
        })
    }

    /// Somebody asked twice, and nobody waits for the trial to be taken away.
    fn print_left_job(&self) {
        let there = lock_ignoring_poison(&self.there);
        if let Some(name) = there.as_ref() {
            let place = format!(
                "-i {} -n {}",
                quote::quote_path(self.inventory),
                self.namespace
            );
            let after = format_duration(self.lease_s());
            out::print_note(&format!(
                "left at once: the job {name} may still be there; its pods end {after} after it \
                 began, and railwright job delete {name} {place} takes it away"
            ));
        }
    }

    /// The operator ends a trial by itself after so many seconds, where nobody is left to do it
    /// (kubeflow/mpi-operator: `runPolicy.activeDeadlineSeconds`).
    fn lease_s(&self) -> u64 {
        self.trials.limit_s + LEASE_SLACK_S
    }

    /// Real traffic between the hosts, as `verify` does it.
    async fn try_hosts(&self) -> Result<TrialOutcome, CommandFailure> {
        let contact = TargetContact::begin();
        let session = open_session(
            self.inventory,
            &SessionRequest::from_targets(contact).to_change_targets(),
        )?;
        let request = verification::build_verify_request(&session);
        if request.hosts.is_empty() {
            return Ok(TrialOutcome::NotKnown(
                "no host is reached over SSH".to_owned(),
            ));
        }
        let report = verify_hosts(&*session.connector(contact)?, &request, &|_| {}).await;
        let wrong = report
            .results
            .iter()
            .find(|result| result.verdict == report.verdict());
        let found = wrong.map_or(String::new(), |result| {
            let (code, hosts) = (
                result.code.unwrap_or_default(),
                one_line(&result.hosts.join(" to "), 80),
            );
            format!(
                "{code} {} of {hosts}: {}",
                result.check.word(),
                result.measured
            )
        });
        Ok(match report.verdict() {
            CheckVerdict::Failed => TrialOutcome::Fails(found),
            CheckVerdict::Unknown | CheckVerdict::NotRun => TrialOutcome::NotKnown(found),
            _ => TrialOutcome::Goes("verify passed".to_owned()),
        })
    }

    /// A trial in pods. Whatever comes of it, and whoever asks to stop, its job is taken away
    /// again: its name is of this trial alone.
    async fn run_trial(
        &self,
        rung: Rung,
        job: &str,
        interrupts: &mut watch::Receiver<u32>,
    ) -> Result<Option<TrialOutcome>, CommandFailure> {
        let nonce = clock::generate_nonce().map_err(|error| {
            super::submit::report_invalid_submission("the trial", &error.to_string())
        })?;
        let name = format!("railwright-{job}-{}", nonce.get(..8).unwrap_or(&nonce));
        let text = match self.render_trial_job(rung, &name) {
            Ok(text) => text,
            Err(failure) => return Ok(Some(explain_unrendered(&failure))),
        };
        let submission = self
            .parse_trial(&text)
            .map_err(|why| super::submit::report_invalid_submission("the trial", why.as_words()))?;
        *lock_ignoring_poison(&self.there) = Some(name.clone());
        // A request on its way is waited for, so that nothing is made after it was looked for.
        let writer = self.cluster.writer();
        let submitted = tokio::select! {
            () = clock::sleep_for(SUBMITTED_WITHIN) => None,
            submitted = job::submit_job(&writer, &submission, &nonce) => Some(submitted),
        };
        let outcome = match submitted {
            Some(Ok(JobSubmissionOutcome::Made(_))) => tokio::select! {
                _ = interrupts.changed() => Ok(None),
                outcome = self.wait_for_trial(rung, &submission) => {
                    outcome.map(Some).map_err(|error| error.diagnostic().into())
                }
            },
            Some(Ok(JobSubmissionOutcome::Taken { object, .. })) => {
                return Ok(Some(TrialOutcome::NotKnown(format!(
                    "{object} is there already"
                ))));
            }
            Some(Ok(
                JobSubmissionOutcome::Refused { object, why, .. }
                | JobSubmissionOutcome::UnknownKind { object, why, .. }
                | JobSubmissionOutcome::Unknown { object, why, .. },
            )) => Ok(Some(TrialOutcome::NotKnown(format!(
                "{object} could not be made: {}",
                one_line(&why, 200)
            )))),
            Some(Err(error)) => Err(error.diagnostic().into()),
            None => Ok(Some(TrialOutcome::NotKnown(
                "the API server did not say whether it made the job".to_owned(),
            ))),
        };
        self.delete_trial(&submission, &nonce).await;
        // An interrupt that came while the job was made.
        if interrupts.has_changed().unwrap_or(false) {
            Ok(None)
        } else {
            outcome
        }
    }

    /// The objects of a trial, whose operator ends it by itself when its lease is over.
    fn parse_trial(&self, text: &str) -> Result<Submission, Reason> {
        let mut submission = job::parse_submission(text, Some(self.namespace))?;
        for (object, value) in &mut submission.objects {
            if object.kind == submission.kind.word() {
                value["spec"]["runPolicy"]["activeDeadlineSeconds"] = self.lease_s().into();
            }
        }
        Ok(submission)
    }

    async fn wait_for_trial(
        &self,
        rung: Rung,
        submission: &Submission,
    ) -> Result<TrialOutcome, TransportError> {
        let reader = self.cluster.reader();
        let look = JobReader::at(&reader, self.namespace);
        let looked = look.all(&[submission.kind]).await?;
        let unread = looked.unread.first().map(|(_, why)| one_line(why, 200));
        match (
            looked
                .jobs
                .into_iter()
                .find(|found| found.job.name == submission.name),
            unread,
        ) {
            (Some(found), _) => self.watch_trial(rung, &look, &found).await,
            (None, Some(why)) => Ok(TrialOutcome::NotKnown(format!(
                "the job could not be looked at: {why}"
            ))),
            (None, None) => Ok(TrialOutcome::NotKnown(
                "the job is gone: somebody deleted it".to_owned(),
            )),
        }
    }

    fn render_trial_job(&self, rung: Rung, name: &str) -> Result<String, CommandFailure> {
        let pods = Pods {
            name: name.to_owned(),
            namespace: self.namespace.to_owned(),
            image: self.trials.image.clone().unwrap_or_default(),
            host_network: rung == Rung::HostNetwork,
            network: self
                .trials
                .network
                .clone()
                .filter(|_| rung == Rung::WithRdma),
            trial: true,
            devices: if rung == Rung::WithoutRdma {
                Devices::None
            } else {
                Devices::OfCluster
            },
            gpu_resource: "nvidia.com/gpu".to_owned(),
            gpus: self.trials.gpus,
            ..Pods::default()
        };
        let job = NcclTest {
            pods,
            workers: Some(self.trials.workers),
            program: self.trials.program.clone(),
            from: "8".to_owned(),
            to: "1G".to_owned(),
            turns: 20,
            shared_memory: "16Gi".to_owned(),
        };
        let words = [
            ("job.kind", "nccl-test".to_owned()),
            ("job.image", format!("--image={}", job.pods.image)),
        ];
        self.ground.objects(
            &JobRequest::NcclTest(job),
            &RequestPlaces::of_options("railwright doctor --ladder", words),
        )
    }

    /// Until the job ends, hangs or takes too long; then its log is evaluated.
    async fn watch_trial(
        &self,
        rung: Rung,
        look: &JobReader<'_>,
        found: &ClusterJob,
    ) -> Result<TrialOutcome, TransportError> {
        let (began, mut progress, mut heard) = (
            Stopwatch::start(),
            JobProgress::new(self.trials.stuck_s),
            TrialLogs::default(),
        );
        loop {
            let Some(view) = look.view(found).await? else {
                return Ok(TrialOutcome::NotKnown(
                    "the job is gone: somebody deleted it".to_owned(),
                ));
            };
            let new = heard.listen(look, &view).await?;
            let seconds = began.elapsed().as_secs();
            let stall = progress.look(seconds, view.kind, view.phase, new);
            if let Some(stall) = stall {
                return Ok(TrialOutcome::Fails(
                    stall.lines.first().cloned().unwrap_or_default(),
                ));
            }
            match view.phase {
                Phase::Succeeded => return Ok(heard.proof(rung)),
                Phase::Failed => {
                    let said = if let TrialOutcome::Fails(said) = heard.proof(rung) {
                        said
                    } else {
                        view.why.unwrap_or_default()
                    };
                    return Ok(TrialOutcome::Fails(format!("the job failed: {said}")));
                }
                _ if seconds >= self.trials.limit_s => return Ok(classify_timeout(&view, seconds)),
                _ => clock::sleep_for(LOOK).await,
            }
        }
    }

    /// The trial leaves nothing; what could not be taken away is named.
    async fn delete_trial(&self, submission: &Submission, word: &str) {
        for (object, _) in submission.objects.iter().rev() {
            let which = Deletable::Submitted { name: object, word };
            if !matches!(
                job::delete_job_object(&self.cluster.writer(), which).await,
                Ok(Ok((
                    ObjectDeletionOutcome::Gone | ObjectDeletionOutcome::WasGone,
                    _
                )))
            ) {
                let (name, place) = (
                    &submission.name,
                    format!(
                        "-i {} -n {}",
                        quote::quote_path(self.inventory),
                        self.namespace
                    ),
                );
                out::print_note(&format!(
                    "{object} may still be there: railwright job delete {name} {place} takes it \
                     away"
                ));
            }
        }
        *lock_ignoring_poison(&self.there) = None;
    }
}

/// It did not end in its time: what keeps it, else that it goes on.
fn classify_timeout(view: &JobView, seconds: u64) -> TrialOutcome {
    let kept = view.kept.first().map(|kept| one_line(&kept.why, 200));
    match (view.phase, kept) {
        (_, Some(why)) => TrialOutcome::NotKnown(format!(
            "it is {} after {}: {why}",
            view.phase.word(),
            format_duration(seconds)
        )),
        (Phase::Running, None) => TrialOutcome::Fails(format!(
            "it runs and has not ended after {}",
            format_duration(seconds)
        )),
        (_, None) => TrialOutcome::NotKnown(format!(
            "it is {} after {}",
            view.phase.word(),
            format_duration(seconds)
        )),
    }
}
