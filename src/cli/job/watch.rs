//! `railwright job watch`.

use super::cluster::{Cluster, JobNameArguments, find_single_job};
use crate::cli::{CommandFailure, Exit};
use railwright_base::text::{self, clean_line, format_duration, one_line};
use railwright_base::{Diagnostic, Reason, quote};
use railwright_jobs::job::{
    ClusterJob, JobKind, JobProgress, JobReader, JobView, Phase, STALLED_S, Tail,
};
use railwright_report::running_jobs::WatchedJobDocument;
use railwright_report::{document, out};
use railwright_resource::kubernetes_job::JobPod;
use railwright_system::clock::{self, Stopwatch};
use railwright_system::signals;
use railwright_transport::{Reader, TransportError};
use std::time::Duration;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// Looks that may fail one after the other before it is given up: an API server that is renewed is
/// away for a minute.
const FAILURES: u32 = 60;

/// Watch a job: how far it is, what keeps its pods, its log, whether it goes on
///
/// Ends when the job does: exit code 0 when it succeeded (of a job that stays: when it runs), 1
/// when it failed, 3 when the time is over or a kind could not be read. The first Ctrl-C leaves the
/// job alone.
#[derive(Debug, clap::Args)]
pub struct JobWatchArguments {
    #[command(flatten)]
    named: JobNameArguments,
    #[command(flatten)]
    patience: JobWatchOptions,
}

/// How long it is watched, and what is shown of it.
#[derive(Debug, Clone, clap::Args)]
pub struct JobWatchOptions {
    /// Watch no longer than this: `30m`, `2h`
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_job_duration)]
    limit_s: Option<u64>,
    /// Call it stuck when it runs and writes nothing for this long
    #[arg(
        long = "stuck-after",
        value_name = "DURATION",
        value_parser = parse_job_duration,
        default_value_t = STALLED_S
    )]
    stuck_s: u64,
    /// Lines of the log that are shown of the time before
    #[arg(long, value_name = "N", default_value_t = 10)]
    lines: u32,
    /// Print JSON at the end, and nothing before it
    #[arg(long)]
    json: bool,
}

/// `90`, `90s`, `30m`, `2h`, a month at most.
pub fn parse_job_duration(text: &str) -> Result<u64, Reason> {
    let seconds = text::parse_seconds(text, &[('s', 1), ('m', 60), ('h', 3600)]);
    seconds
        .filter(|seconds| (1..=2_678_400).contains(seconds))
        .ok_or_else(|| "seconds, minutes or hours: `90s`, `30m`, `2h`".into())
}

/// Watches it.
pub async fn run(arguments: &JobWatchArguments) -> Result<Exit, CommandFailure> {
    let place = &arguments.named.place;
    let reader = Cluster::of(&place.inventory).await?.reader();
    let found = find_single_job(&reader, &arguments.named).await?;
    follow_job(
        &reader,
        &found,
        &arguments.patience,
        &format!(
            "-i {} -n {}",
            quote::quote_path(&place.inventory),
            place.namespace()
        ),
    )
    .await
}

/// Until it ends, the time is over, or somebody asks to stop.
pub async fn follow_job(
    reader: &Reader,
    found: &ClusterJob,
    patience: &JobWatchOptions,
    place: &str,
) -> Result<Exit, CommandFailure> {
    let mut interrupts = signals::watch_interrupts();
    let mut watching = JobWatchSession::begin(reader, found, patience);
    loop {
        let looked = tokio::select! {
            _ = interrupts.changed() => return Ok(watching.left(place)),
            // A server that does not answer holds nobody longer than was asked for.
            () = clock::sleep_for(watching.left_s()) => Some(Exit::Incomplete),
            looked = watching.look() => looked?,
        };
        if let Some(exit) = looked {
            return Ok(watching.end(exit));
        }
        tokio::select! {
            _ = interrupts.changed() => return Ok(watching.left(place)),
            () = clock::sleep_for(LOOK) => {}
        }
    }
}

/// What is known of the job so far.
struct JobWatchSession<'a> {
    look: JobReader<'a>,
    found: &'a ClusterJob,
    patience: &'a JobWatchOptions,
    began: Stopwatch,
    last: Option<JobView>,
    /// The pod whose log is read, and how far.
    speaker: Option<(String, Tail)>,
    progress: JobProgress,
    stuck: bool,
    failures: u32,
}

impl<'a> JobWatchSession<'a> {
    fn begin(reader: &'a Reader, found: &'a ClusterJob, patience: &'a JobWatchOptions) -> Self {
        JobWatchSession {
            look: JobReader::at(reader, &found.job.namespace),
            found,
            patience,
            began: Stopwatch::start(),
            last: None,
            speaker: None,
            progress: JobProgress::new(patience.stuck_s),
            stuck: false,
            failures: 0,
        }
    }

    fn say(&self, line: &str) {
        if !self.patience.json {
            out::print_result(&format!("{line}\n"));
        }
    }

    /// One look; how it ended, if it did.
    async fn look(&mut self) -> Result<Option<Exit>, CommandFailure> {
        match self.once().await {
            Ok(ended) => {
                self.failures = 0;
                ended.map_or_else(|| Ok(self.is_over_time()), |exit| exit.map(Some))
            }
            Err(error) if self.failures < FAILURES => {
                self.failures += 1;
                if self.failures == 1 {
                    out::print_note(&format!(
                        "the cluster did not answer, and is asked again: {}",
                        error.one_line()
                    ));
                }
                Ok(self.is_over_time())
            }
            Err(error) => Err(error.diagnostic().into()),
        }
    }

    async fn once(&mut self) -> Result<Option<Result<Exit, CommandFailure>>, TransportError> {
        let Some(view) = self.look.view(self.found).await? else {
            return Ok(Some(Err(report_deleted_job(
                self.found.kind,
                &self.found.job.namespace,
                &self.found.job.name,
            )
            .into())));
        };
        for line in view.news(self.last.as_ref()) {
            self.say(&line);
        }
        let new = match view.speaker().cloned() {
            Some(pod) => self.read_log(&pod).await?,
            None => 0,
        };
        let seconds = self.began.elapsed().as_secs();
        if let Some(stall) = self.progress.look(seconds, view.kind, view.phase, new) {
            self.stuck = true;
            for line in &stall.lines {
                self.say(line);
            }
        } else if new > 0 {
            self.stuck = false;
        }
        let exit = match view.phase {
            Phase::Succeeded => Some(Exit::Done),
            Phase::Failed => Some(Exit::Failed),
            Phase::Running if view.kind.stays() => Some(Exit::Done),
            _ => None,
        };
        self.last = Some(view);
        Ok(exit.map(Ok))
    }

    /// The new lines of a pod's log, and how many they are.
    async fn read_log(&mut self, pod: &JobPod) -> Result<usize, TransportError> {
        let is_new = self
            .speaker
            .as_ref()
            .is_none_or(|(name, _)| *name != pod.name);
        if is_new {
            self.speaker = Some((pod.name.clone(), Tail::default()));
        }
        let Some((_, tail)) = &mut self.speaker else {
            return Ok(0);
        };
        let since = tail.since();
        let lines = if since.is_some() {
            10_000
        } else {
            self.patience.lines
        };
        // A log that cannot be had now may be had the next time; that nothing comes is reported
        // as a stall.
        let Ok((text, _)) = self.look.log(pod, lines, since.as_deref()).await? else {
            return Ok(0);
        };
        let new = tail.take(&text);
        for line in &new {
            self.say(&format!("  | {}", clean_line(line)));
        }
        Ok(new.len())
    }

    /// The time that is left.
    fn left_s(&self) -> Duration {
        let limit = self
            .patience
            .limit_s
            .map_or(Duration::MAX, Duration::from_secs);
        limit
            .saturating_sub(self.began.elapsed())
            .min(Duration::from_secs(2_678_400))
    }

    fn is_over_time(&self) -> Option<Exit> {
        let limit_s = self.patience.limit_s?;
        (self.began.elapsed().as_secs() >= limit_s).then_some(Exit::Incomplete)
    }

    fn end(&self, exit: Exit) -> Exit {
        let watched_s = self.began.elapsed().as_secs();
        match (&self.last, self.patience.json) {
            (Some(view), true) => out::print_result(&document::render_json_document(
                &WatchedJobDocument::of(view, self.stuck, watched_s),
            )),
            (_, true) => {}
            (_, false) if exit == Exit::Incomplete => {
                self.say(&format!(
                    "the time is over: it was watched for {}, and goes on by itself",
                    format_duration(watched_s)
                ));
            }
            (Some(view), false) => self.say(&format!(
                "{} after {} of watching",
                view.phase.word(),
                format_duration(watched_s)
            )),
            (None, false) => {}
        }
        exit
    }

    /// Somebody asked to stop.
    fn left(&self, place: &str) -> Exit {
        let name = one_line(&self.found.job.name, 63);
        out::print_note(&format!(
            "the job is left as it is, and goes on by itself\n  watch it again: railwright job watch {name} {place}\n  delete it:      railwright job delete {name} {place}"
        ));
        Exit::Interrupted
    }
}

/// It was deleted while it was watched.
pub fn report_deleted_job(kind: JobKind, namespace: &str, name: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1246",
        format!(
            "{} {namespace}/{name} is gone: somebody deleted it, or its time to live was over",
            kind.word()
        ),
    )
    .state("its pods go with it; what they wrote on volumes stays")
    .next("submit it again, where that was not meant")
}
