//! What pods of every kind of job have, on the command line.

use super::deliver::{Delivery, JobPairOptions, JobRenderContext};
use crate::cli::{CommandFailure, Exit};
use railwright_base::{Diagnostic, nodeset, quote};
use railwright_workload::{Devices, JobRequest, Pods, RequestPlaces};
use std::path::PathBuf;

/// The options that kinds have in common.
#[derive(Debug, Clone, clap::Args)]
pub struct PodOptions {
    /// The folder that holds the spec
    #[arg(short, long, value_name = "FOLDER")]
    inventory: PathBuf,
    /// The namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// When the image is pulled: Always, IfNotPresent or Never
    #[arg(long, value_name = "POLICY")]
    image_pull_policy: Option<String>,
    /// A variable of its processes, before what the spec and the fabric say; may be given more than
    /// once
    #[arg(short, long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The hosts that it may run on, as a node-set; all of the spec when left out
    #[arg(long, value_name = "HOSTS")]
    on: Option<String>,
    /// The pods have the network of their host, and with it the rails
    #[arg(long)]
    host_network: bool,
    /// A further network of the pods, by the name of its NetworkAttachmentDefinition
    #[arg(long, value_name = "NAME")]
    network: Option<String>,
    /// An RDMA device of each pod, such as aliyun/erdma=1; those that the cluster of the spec gives
    /// when left out
    #[arg(long, value_name = "RESOURCE=COUNT", conflicts_with = "without_rdma")]
    device: Vec<String>,
    /// No RDMA device: the job that another is compared with
    #[arg(long)]
    without_rdma: bool,
    /// GPUs of a pod; those of the hosts when left out
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// The resource by which GPUs are asked for
    #[arg(long, value_name = "RESOURCE", default_value = "nvidia.com/gpu")]
    gpu_resource: String,
    /// Processors of a pod, such as 128
    #[arg(long, value_name = "AMOUNT")]
    cpu: Option<String>,
    /// Memory of a pod, such as 512Gi
    #[arg(long, value_name = "AMOUNT")]
    memory: Option<String>,
    /// It is a trial: images of demonstrations are no finding
    #[arg(long)]
    trial: bool,
    #[command(flatten)]
    delivery: Delivery,
}

/// Options and what each is about, for carets.
pub type TypedOptions = Vec<(String, String)>;

impl PodOptions {
    /// The pods of a job of this name and image, and the options that were given.
    pub fn pods(&self, name: &str, image: &str) -> Result<(Pods, TypedOptions), CommandFailure> {
        let environment = self.parse_variables()?;
        let mut devices = Vec::new();
        for text in &self.device {
            devices.push(parse_name_value(text, "--device")?);
        }
        let typed = self.collect_typed_options(name, image, &environment);
        let pods = Pods {
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            image: image.to_owned(),
            image_pull_policy: self.image_pull_policy.clone(),
            environment,
            hosts: self
                .on
                .as_deref()
                .map(expand_hosts)
                .transpose()?
                .unwrap_or_default(),
            host_network: self.host_network,
            network: self.network.clone(),
            trial: self.trial,
            devices: match (self.without_rdma, devices.is_empty()) {
                (true, _) => Devices::None,
                (false, true) => Devices::OfCluster,
                (false, false) => Devices::Said(devices),
            },
            over_tcp: false,
            gpu_resource: self.gpu_resource.clone(),
            gpus: self.gpus,
            cpu: self.cpu.clone(),
            memory: self.memory.clone(),
        };
        Ok((pods, typed))
    }

    /// Names and values of `--env`; each name may be given once.
    fn parse_variables(&self) -> Result<Vec<(String, String)>, CommandFailure> {
        let mut variables: Vec<(String, String)> = Vec::new();
        for text in &self.env {
            let (name, value) = parse_name_value(text, "--env")?;
            if variables.iter().any(|(known, _)| *known == name) {
                return Err(report_duplicate_variable(&name));
            }
            variables.push((name, value));
        }
        Ok(variables)
    }

    /// The options as they were typed; `environment` holds the variables of `--env`, in order.
    fn collect_typed_options(
        &self,
        name: &str,
        image: &str,
        environment: &[(String, String)],
    ) -> TypedOptions {
        let mut typed = TypedOptions::new();
        let namespace = &self.namespace;
        typed.push(("job.name".to_owned(), format!("--name={name}")));
        typed.push(("job.image".to_owned(), format!("--image={image}")));
        typed.push((
            "job.namespace".to_owned(),
            format!("--namespace={namespace}"),
        ));
        for ((name, _), text) in environment.iter().zip(&self.env) {
            typed.push((format!("jobs.environment.{name}"), format!("--env {text}")));
        }
        for text in &self.device {
            typed.push(("job.rdma".to_owned(), format!("--device={text}")));
        }
        let pull_policy = &self.image_pull_policy;
        for (path, option, value) in [
            ("job.image_pull_policy", "--image-pull-policy", pull_policy),
            ("job.hosts", "--on", &self.on),
            ("job.network", "--network", &self.network),
            ("job.cpu", "--cpu", &self.cpu),
            ("job.memory", "--memory", &self.memory),
        ] {
            if let Some(value) = value {
                typed.push((path.to_owned(), format!("{option}={value}")));
            }
        }
        if self.host_network {
            typed.push(("job.host_network".to_owned(), "--host-network".to_owned()));
        }
        let resource = format!("--gpu-resource={}", self.gpu_resource);
        typed.push(("job.gpu_resource".to_owned(), resource));
        if let Some(gpus) = self.gpus {
            typed.push(("job.gpus".to_owned(), format!("--gpus={gpus}")));
        }
        typed
    }

    /// What is printed.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// Renders a job of these pods and prints it.
    pub fn deliver(
        &self,
        request: &JobRequest,
        typed: &TypedOptions,
    ) -> Result<Exit, CommandFailure> {
        let asked = collect_asked_options("railwright job render", request, typed);
        JobRenderContext::read(Some(&self.inventory))?.deliver(request, &asked, &self.delivery)
    }

    /// Renders it with RDMA and without, and prints both or one of them.
    pub fn deliver_pair(
        &self,
        request: &JobRequest,
        typed: &TypedOptions,
        desired: JobPairOptions,
    ) -> Result<Exit, CommandFailure> {
        let asked = collect_asked_options("railwright job render compare", request, typed);
        let place = format!(
            "-i {} -n {}",
            quote::quote_path(&self.inventory),
            self.namespace
        );
        JobRenderContext::read(Some(&self.inventory))?.deliver_pair(
            request,
            &asked,
            &self.delivery,
            desired,
            &place,
        )
    }
}

fn collect_asked_options(
    command: &str,
    request: &JobRequest,
    typed: &TypedOptions,
) -> RequestPlaces {
    let kind = request.kind().word();
    let options = std::iter::once(("job.kind", kind.to_owned())).chain(
        typed
            .iter()
            .map(|(path, option)| (path.as_str(), option.clone())),
    );
    RequestPlaces::of_options(command, options)
}

/// `NAME=VALUE` of an option.
pub fn parse_name_value(text: &str, option: &str) -> Result<(String, String), CommandFailure> {
    if let Some((name, value)) = text.split_once('=')
        && !name.is_empty()
    {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let shown = railwright_base::text::one_line(text, 60);
    let error = Diagnostic::error("RW1221", format!("`{option} {shown}` has no `=`"))
        .state("nothing was rendered");
    let next = format!("{option} NAME=VALUE; an empty value is one too: NAME=");
    Err(error.next(next).into())
}

fn report_duplicate_variable(name: &str) -> CommandFailure {
    let error = Diagnostic::error(
        "RW1221",
        format!(
            "`--env {}` is given twice",
            railwright_base::text::one_line(name, 60)
        ),
    );
    error
        .state("nothing was rendered")
        .next("a variable has one value: leave one of them out")
        .into()
}

/// The hosts of a node-set.
fn expand_hosts(text: &str) -> Result<Vec<String>, CommandFailure> {
    nodeset::expand_node_set(text).map_err(|error| {
        let shown = railwright_base::text::one_line(text, 60);
        let error = Diagnostic::error("RW1221", format!("`{shown}` names no hosts: {error}"))
            .state("nothing was rendered");
        error
            .next("name hosts as the spec does, as a node-set: NAME, NAME[01-16]")
            .into()
    })
}
