//! `railwright doctor --ladder`: the trials, one after the other, each job taken away again.

use super::cluster::Cluster;
use super::deliver::Ground;
use crate::base::Digest;
use crate::base::text::{duration, one_line};
use crate::cli::pipeline;
use crate::cli::{Exit, Failure, verification};
use crate::doctor::ladder::{Ladder, Outcome, Rung, judge};
use crate::job::{self, Found, Look, Phase, Progress, Submitted, View};
use crate::report::job::ladder as screen;
use crate::report::out;
use crate::system::clock::{self, Stopwatch};
use crate::system::signals;
use crate::transport::TransportError;
use crate::verify::nccl::{self, Decoder, Expected};
use crate::verify::{Verdict, verify};
use crate::workload::{Asked, Devices, NcclTest, Pods, Request};
use std::path::Path;
use std::time::Duration;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(2);
/// Lines of a pod's log that are read.
const LINES: u32 = 200_000;

/// What the trials are made with.
#[derive(Debug, Clone, clap::Args)]
pub struct Trials {
    /// An image with NCCL's tests, Open MPI and sshd, which the trials run
    #[arg(long, requires = "ladder")]
    image: Option<String>,
    /// How many workers a trial has
    #[arg(long, value_name = "N", default_value_t = 2, requires = "ladder", value_parser = clap::value_parser!(u32).range(2..))]
    workers: u32,
    /// GPUs of a worker; those of the hosts when left out
    #[arg(long, value_name = "N", requires = "ladder")]
    gpus: Option<u32>,
    /// A further network of the pods with RDMA, by the name of its NetworkAttachmentDefinition
    #[arg(long, value_name = "NAME", requires = "ladder")]
    network: Option<String>,
    /// The test, with its path where it is not on the image's PATH
    #[arg(long, value_name = "PROGRAM", default_value = "all_reduce_perf", requires = "ladder")]
    program: String,
    /// A trial is given up after this: `10m`
    #[arg(long = "for", value_name = "DURATION", value_parser = super::watch::seconds, default_value = "10m", requires = "ladder")]
    limit_s: u64,
    /// A trial that runs and writes nothing for this long hangs
    #[arg(long = "stuck-after", value_name = "DURATION", value_parser = super::watch::seconds, default_value = "2m", requires = "ladder")]
    stuck_s: u64,
}

/// Makes them, the lowest first, until one fails.
pub async fn run(trials: &Trials, inventory: &Path, namespace: &str, json: bool) -> Result<Exit, Failure> {
    let ground = Ground::read(Some(&inventory.to_path_buf()))?;
    let cluster = Cluster::of(inventory).await?;
    // Trials of two people at the same time are two.
    let mark = Digest::of_bytes(format!("{} {}", clock::now(), inventory.display()).as_bytes()).short().chars().take(4).collect();
    let climb = Climb { trials, ground, cluster, namespace, inventory, mark };
    let mut interrupts = signals::interrupts();
    let mut ladder = Ladder::default();
    for rung in Rung::ALL {
        out::note(&format!("trying: {}", rung.word()));
        let tried = tokio::select! {
            // The job of this trial is taken away before anybody leaves.
            _ = interrupts.changed() => None,
            outcome = climb.step(rung) => Some(outcome?),
        };
        if let Some(job) = rung.job() {
            climb.clean(job).await;
        }
        let Some(outcome) = tried else { return Ok(Exit::Interrupted) };
        if !json {
            out::print(&screen::rung(rung, &outcome));
        }
        let failed = matches!(outcome, Outcome::Fails(_));
        ladder.rungs.push((rung, outcome));
        if failed {
            break;
        }
    }
    out::print(&if json { screen::json(&ladder) } else { screen::end(&ladder, &one_line(&inventory.display().to_string(), 120)) });
    Ok(match (ladder.first_that_fails(), ladder.goes()) {
        (Some(_), _) => Exit::Failed,
        (None, true) => Exit::Done,
        (None, false) => Exit::Incomplete,
    })
}

struct Climb<'a> {
    trials: &'a Trials,
    ground: Ground,
    cluster: Cluster,
    namespace: &'a str,
    inventory: &'a Path,
    /// Of these trials alone.
    mark: String,
}

impl Climb<'_> {
    async fn step(&self, rung: Rung) -> Result<Outcome, Failure> {
        match rung.job() {
            None => self.hosts().await,
            Some(job) => self.pods(rung, job).await,
        }
    }

    /// Real traffic between the hosts, as `verify` does it.
    async fn hosts(&self) -> Result<Outcome, Failure> {
        let prepared = pipeline::prepare_to_act(self.inventory)?;
        let request = verification::request(&prepared);
        if request.hosts.is_empty() {
            return Ok(Outcome::NotKnown("no host is reached over SSH".to_owned()));
        }
        let report = verify(&*prepared.connector()?, &request, &|_| {}).await;
        let wrong = report.results.iter().find(|result| result.verdict == report.verdict());
        let found = wrong.map_or(String::new(), |result| {
            let (code, hosts) = (result.code.unwrap_or_default(), one_line(&result.hosts.join(" to "), 80));
            format!("{code} {} of {hosts}: {}", result.check.word(), result.measured)
        });
        Ok(match report.verdict() {
            Verdict::Failed => Outcome::Fails(found),
            Verdict::Unknown | Verdict::NotRun => Outcome::NotKnown(found),
            _ => Outcome::Goes("verify passed".to_owned()),
        })
    }

    fn name(&self, job: &str) -> String {
        format!("railwright-{job}-{}", self.mark)
    }

    async fn pods(&self, rung: Rung, job: &str) -> Result<Outcome, Failure> {
        let text = match self.rendered(rung, &self.name(job)) {
            Ok(text) => text,
            Err(failure) => {
                let why = failure.diagnostics.first().map_or(String::new(), |one| format!("{}: {}", one.code, one.message));
                return Ok(Outcome::NotKnown(format!("no job could be rendered: {why}")));
            }
        };
        let submission = job::read(&text, Some(self.namespace)).map_err(|why| super::submit::bad("the trial", &why))?;
        let submitted = job::submit(&self.cluster.writer(), &submission).await.map_err(|error| error.diagnostic())?;
        match submitted {
            Submitted::Made(_) => {}
            Submitted::Taken { object, .. } => return Ok(Outcome::NotKnown(format!("{object} is there already"))),
            Submitted::Refused { object, why, .. } | Submitted::Unknown { object, why, .. } => {
                return Ok(Outcome::NotKnown(format!("{object} could not be made: {}", one_line(&why, 200))));
            }
        }
        let reader = self.cluster.reader();
        let look = Look::at(&reader, self.namespace);
        let looked = look.all(&[submission.kind]).await.map_err(|error| error.diagnostic())?;
        let Some(found) = looked.jobs.into_iter().find(|found| found.job.name == submission.name) else {
            return Ok(Outcome::NotKnown("the job is gone: somebody deleted it".to_owned()));
        };
        self.to_its_end(rung, &look, &found).await.map_err(|error| error.diagnostic().into())
    }

    fn rendered(&self, rung: Rung, name: &str) -> Result<String, Failure> {
        let pods = Pods {
            name: name.to_owned(),
            namespace: self.namespace.to_owned(),
            image: self.trials.image.clone().unwrap_or_default(),
            host_network: rung == Rung::HostNetwork,
            network: self.trials.network.clone().filter(|_| rung == Rung::WithRdma),
            trial: true,
            devices: if rung == Rung::WithoutRdma { Devices::None } else { Devices::OfCluster },
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
        let words = [("job.kind", "nccl-test".to_owned()), ("job.image", format!("--image={}", job.pods.image))];
        self.ground.objects(&Request::NcclTest(job), &Asked::of_options("railwright doctor --ladder", words))
    }

    /// Until the job ends, hangs or takes too long; then its log is judged.
    async fn to_its_end(&self, rung: Rung, look: &Look<'_>, found: &Found) -> Result<Outcome, TransportError> {
        let (began, mut progress, mut lines) = (Stopwatch::start(), Progress::new(self.trials.stuck_s), 0);
        loop {
            let Some(view) = look.view(found).await? else {
                return Ok(Outcome::NotKnown("the job is gone: somebody deleted it".to_owned()));
            };
            let log = log(look, &view).await?;
            let all = log.lines().count();
            let new = all.saturating_sub(lines);
            lines = all;
            let seconds = began.elapsed().as_secs();
            let stall = progress.look(seconds, view.kind, view.phase, new);
            let proof = || {
                let mut decoder = Decoder::default();
                decoder.feed(log.as_bytes());
                judge(rung, &nccl::judge(&decoder.finish(), &expected()))
            };
            if let Some(stall) = stall {
                return Ok(Outcome::Fails(stall.lines.first().cloned().unwrap_or_default()));
            }
            match view.phase {
                Phase::Succeeded => return Ok(proof()),
                Phase::Failed => {
                    let said = if let Outcome::Fails(said) = proof() { said } else { view.why.unwrap_or_default() };
                    return Ok(Outcome::Fails(format!("the job failed: {said}")));
                }
                _ if seconds >= self.trials.limit_s => return Ok(late(&view, seconds)),
                _ => clock::pause(LOOK).await,
            }
        }
    }

    /// The trial leaves nothing.
    async fn clean(&self, job: &str) {
        let (reader, writer, name) = (self.cluster.reader(), self.cluster.writer(), self.name(job));
        let objects = job::objects_of(&reader, self.namespace, &name, &self.jobs(&name).await).await.unwrap_or_default();
        for object in objects {
            if !matches!(job::delete(&writer, &object).await, Ok(Ok(_))) {
                out::note(&format!("{object} could not be taken away: railwright job delete {name} -n {} takes it", self.namespace));
            }
        }
    }

    async fn jobs(&self, name: &str) -> Vec<Found> {
        let reader = self.cluster.reader();
        let looked = Look::at(&reader, self.namespace).all(&[job::JobKind::Mpi]).await.unwrap_or_default();
        looked.jobs.into_iter().filter(|found| found.job.name == name && found.job.job.as_deref() == Some(name)).collect()
    }
}

/// It did not end in its time: what keeps it, else that it goes on.
fn late(view: &View, seconds: u64) -> Outcome {
    let kept = view.kept.first().map(|kept| one_line(&kept.why, 200));
    match (view.phase, kept) {
        (_, Some(why)) => Outcome::NotKnown(format!("it is {} after {}: {why}", view.phase.word(), duration(seconds))),
        (Phase::Running, None) => Outcome::Fails(format!("it runs and has not ended after {}", duration(seconds))),
        (_, None) => Outcome::NotKnown(format!("it is {} after {}", view.phase.word(), duration(seconds))),
    }
}

/// The logs of all pods that have one.
async fn log(look: &Look<'_>, view: &View) -> Result<String, TransportError> {
    let mut all = String::new();
    for pod in view.pods.iter().filter(|pod| pod.phase != "Pending") {
        let Ok((text, _)) = look.log(pod, LINES, None).await? else { continue };
        // The kubelet's time stands before each line.
        all.extend(text.lines().map(|line| format!("{}\n", line.split_once(' ').map_or("", |(_, said)| said))));
    }
    Ok(all)
}

fn expected() -> Expected {
    Expected {
        node_gbps: None,
        source: String::new(),
        least_percent: 80,
        acs: None,
        needs_gpudirect: false,
        log: "the trial".to_owned(),
        words: "--log FILE".to_owned(),
    }
}
