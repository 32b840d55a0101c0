//! `railwright job render pytorch`: the flags of `arena submit pytorch`.

use super::pods::{PodOptions, TypedOptions, parse_name_value};
use crate::cli::{CommandFailure, Exit};
use railwright_base::{Diagnostic, Reason, quote};
use railwright_workload::{CleanPods, JobRequest, Pytorch, Tensorboard};

/// A training as a PyTorchJob, with the names, labels and environment that Arena gives; its flags
/// are those of `arena submit pytorch`
#[derive(Debug, clap::Args)]
pub struct PytorchArguments {
    /// The image
    #[arg(long)]
    image: String,
    /// The job's name; its pods are NAME-master-0 and NAME-worker-N
    #[arg(long)]
    name: String,
    /// Pods, the master among them
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: u32,
    /// Processes of a pod: a number, auto, cpu or gpu
    #[arg(long, value_name = "N")]
    nproc_per_node: Option<String>,
    /// Which pods are removed when it has ended: None, Running or All
    #[arg(long, value_name = "POLICY", default_value = "None", value_parser = parse_clean_pods)]
    clean_task_policy: CleanPods,
    /// The folder that the command runs in
    #[arg(long, value_name = "FOLDER", default_value = "/root")]
    working_dir: String,
    /// The shell that runs the command
    #[arg(long, default_value = "sh")]
    shell: String,
    /// Memory that processes of a pod share
    #[arg(long, value_name = "AMOUNT", default_value = "2Gi")]
    share_memory: String,
    /// TensorBoard beside it
    #[arg(long)]
    tensorboard: bool,
    /// The image of TensorBoard
    #[arg(long, value_name = "IMAGE", requires = "tensorboard")]
    tensorboard_image: Option<String>,
    /// The folder in which the training writes its logs
    #[arg(long, value_name = "FOLDER")]
    logdir: Option<String>,
    /// Ask for rdma/hca and for the capability to lock memory, as Arena does
    #[arg(long)]
    rdma: bool,
    /// All pods are scheduled together or not at all
    #[arg(long)]
    gang: bool,
    /// A label of the job and its pods
    #[arg(short, long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// An annotation of the job and its pods
    #[arg(short, long, value_name = "KEY=VALUE")]
    annotation: Vec<String>,
    /// A label of nodes
    #[arg(long, value_name = "KEY=VALUE")]
    selector: Vec<String>,
    /// A taint that is tolerated: all, KEY, or KEY=VALUE:EFFECT,OPERATOR
    #[arg(long, value_name = "TAINT")]
    toleration: Vec<String>,
    /// A volume: its claim and where it is mounted
    #[arg(short, long, value_name = "CLAIM:PATH")]
    data: Vec<String>,
    /// A folder of the host
    #[arg(long, value_name = "PATH")]
    data_dir: Vec<String>,
    /// A secret for the registry
    #[arg(long, value_name = "NAME")]
    image_pull_secret: Vec<String>,
    /// A priority class
    #[arg(short, long, value_name = "CLASS")]
    priority: Option<String>,
    /// A scheduler
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Seconds after which it is ended
    #[arg(long, value_name = "SECONDS")]
    running_timeout: Option<u64>,
    /// Seconds after its end until it is removed
    #[arg(long, value_name = "SECONDS")]
    ttl_after_finished: Option<u64>,
    #[command(flatten)]
    pods: PodOptions,
    /// The command, as one argument or several
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

fn parse_clean_pods(text: &str) -> Result<CleanPods, Reason> {
    match text {
        "None" => Ok(CleanPods::None),
        "Running" => Ok(CleanPods::Running),
        "All" => Ok(CleanPods::All),
        _ => Err("None, Running or All".into()),
    }
}

impl PytorchArguments {
    /// The options that kinds have in common.
    pub fn pods(&self) -> &PodOptions {
        &self.pods
    }

    /// The line that a shell of the pod is given. One argument is that line; of several, one that a
    /// shell would cut is put in quotes, and others stay, so that `$RANK` and `&&` mean there what
    /// they say.
    fn line(&self) -> String {
        if let [line] = &self.command[..] {
            return line.clone();
        }
        let mut words = Vec::new();
        for word in &self.command {
            let is_cut = word.is_empty()
                || word.contains(|c: char| c.is_whitespace() || "'\"\\()`".contains(c));
            words.push(if is_cut {
                quote::quote_for_shell(word)
            } else {
                word.clone()
            });
        }
        words.join(" ")
    }

    /// What is asked for.
    pub fn request(&self) -> Result<(JobRequest, TypedOptions), CommandFailure> {
        let (mut pods, mut typed) = self.pods.pods(&self.name, &self.image)?;
        pods.image_pull_policy
            .get_or_insert_with(|| "Always".to_owned());
        add_typed_options(self, &mut typed);
        let board = Tensorboard {
            image: self.tensorboard_image.clone().unwrap_or_default(),
            logdir: self.logdir.clone().unwrap_or_default(),
        };
        let job = Pytorch {
            pods,
            workers: self.workers,
            nproc_per_node: self.nproc_per_node.clone(),
            clean: self.clean_task_policy,
            working_dir: self.working_dir.clone(),
            shell: self.shell.clone(),
            command: self.line(),
            shared_memory: Some(self.share_memory.clone()),
            tensorboard: Some(board),
            rdma: self.rdma,
            gang: self.gang,
            labels: parse_name_values(&self.label, "--label")?,
            annotations: parse_name_values(&self.annotation, "--annotation")?,
            selectors: parse_name_values(&self.selector, "--selector")?,
            tolerations: self.toleration.clone(),
            data: self
                .data
                .iter()
                .map(|text| parse_claim_mount(text))
                .collect::<Result<_, _>>()?,
            data_dirs: self.data_dir.clone(),
            image_pull_secrets: self.image_pull_secret.clone(),
            priority: self.priority.clone(),
            scheduler: self.scheduler.clone(),
            running_timeout_s: self.running_timeout,
            ttl_after_finished_s: self.ttl_after_finished,
            ..Pytorch::default()
        };
        Ok((
            JobRequest::Pytorch(Box::new(job.with_dashboard(self.tensorboard))),
            typed,
        ))
    }
}

/// Renders it.
pub fn run(arguments: &PytorchArguments) -> Result<Exit, CommandFailure> {
    let (request, typed) = arguments.request()?;
    arguments.pods.deliver(&request, &typed)
}

/// The options that carets may point at.
fn add_typed_options(arguments: &PytorchArguments, typed: &mut TypedOptions) {
    typed.push((
        "job.workers".to_owned(),
        format!("--workers={}", arguments.workers),
    ));
    if let Some(count) = &arguments.nproc_per_node {
        typed.push(("job.nproc".to_owned(), format!("--nproc-per-node={count}")));
    }
    typed.push((
        "job.shared_memory".to_owned(),
        format!("--share-memory={}", arguments.share_memory),
    ));
    let several = [
        ("job.data", "--data", &arguments.data),
        ("job.data_dir", "--data-dir", &arguments.data_dir),
        ("job.label", "--label", &arguments.label),
        ("job.annotation", "--annotation", &arguments.annotation),
        ("job.selector", "--selector", &arguments.selector),
        ("job.toleration", "--toleration", &arguments.toleration),
        (
            "job.image_pull_secret",
            "--image-pull-secret",
            &arguments.image_pull_secret,
        ),
    ];
    for (path, option, values) in several {
        for value in values {
            typed.push((path.to_owned(), format!("{option}={value}")));
        }
    }
    if arguments.rdma {
        typed.push(("job.rdma".to_owned(), "--rdma".to_owned()));
    }
    typed.push((
        "job.command".to_owned(),
        format!("\"{}\"", arguments.line()),
    ));
}

fn parse_name_values(
    texts: &[String],
    option: &str,
) -> Result<Vec<(String, String)>, CommandFailure> {
    let texts = texts.iter();
    texts.map(|text| parse_name_value(text, option)).collect()
}

fn parse_claim_mount(text: &str) -> Result<(String, String), CommandFailure> {
    if let Some((claim, path)) = text.split_once(':')
        && !claim.is_empty()
        && path.starts_with('/')
    {
        return Ok((claim.to_owned(), path.to_owned()));
    }
    let shown = railwright_base::text::one_line(text, 60);
    let error = Diagnostic::error("RW1221", format!("`--data {shown}` is no claim and path"))
        .state("nothing was rendered");
    Err(error.next("--data CLAIM:/PATH").into())
}
