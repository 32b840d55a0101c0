//! A job on hosts, without Kubernetes: what each host needs, and what is started there, with the
//! environment that follows from the inventory as that of pods does.
//!
//! Processes of a training are started on every host by us, and meet at the first one; those of
//! NCCL's tests by mpirun on the first host, which logs in to the others by itself.

use super::check::is_variable;
use super::derive::{self, DerivationInputs};
use super::environment::{self, Settling, Variable};
use super::meeting::Meeting;
use super::offer::Offer;
use super::pair;
use super::render::{self, JobRenderInputs};
use super::request::{JobRequestKind, NcclTest, Pods};
use super::{RequestPlaces, host_faults, mpirun};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, quote};
use railwright_knowledge::shipped::MODULES;
use railwright_knowledge::spec::Host;
use std::collections::BTreeSet;

/// The training that is shipped.
const TRAINING: &str = "broadcast.py";

/// What is run.
#[derive(Debug, Clone)]
pub enum HostKind {
    /// NCCL's tests; the pods of it say what they say of hosts.
    NcclTest(Box<NcclTest>),
    /// The shipped training: so many steps, sums of so many MiB.
    Pytorch {
        /// Steps.
        steps: u32,
        /// MiB of a sum.
        mebibytes: u32,
        /// The TCP port at which ranks meet.
        port: u16,
    },
}

/// A job on hosts.
#[derive(Debug, Clone)]
pub struct HostJob {
    /// What is run.
    pub kind: HostKind,
    /// The hosts, the first of them the one at which all meet.
    pub hosts: Vec<String>,
    /// Where each of them is reached by the others.
    pub addresses: Vec<String>,
    /// Variables and values, as they were given.
    pub environment: Vec<(String, String)>,
    /// GPUs of a host; what the spec says where nothing is said.
    pub gpus: Option<u32>,
    /// NCCL is restricted to TCP.
    pub over_tcp: bool,
}

/// What is done on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPart {
    /// The host.
    pub host: String,
    /// What it needs, in sh: `@missing WHAT` for each that is not there.
    pub needs: String,
    /// Files, and what is started; nothing where others log in and start it.
    pub start: Option<(Vec<(String, String)>, String)>,
}

/// A job, part by part.
#[derive(Debug, Clone)]
pub struct HostJobParts {
    /// By host.
    pub parts: Vec<HostPart>,
    /// The environment of its processes.
    pub variables: Vec<Variable>,
    /// What is to be said of it.
    pub warnings: Vec<Diagnostic>,
    /// Processes of a host.
    pub gpus: u32,
}

/// What the environment is derived for: the rails of the hosts themselves.
const OWN_RAILS: &str = "rails of the hosts";

/// The parts of a job.
pub fn on_hosts(
    inputs: JobRenderInputs<'_>,
    job: &HostJob,
    asked: &RequestPlaces,
) -> Result<HostJobParts, Vec<Diagnostic>> {
    let hosts = render::select_hosts(inputs.loaded, &job.hosts, asked)?;
    let faults = host_faults::find_host_job_errors(inputs, job, &hosts, asked);
    if !faults.is_empty() {
        return Err(faults);
    }
    let names = host_faults::launch_names(job).unwrap_or_default();
    let gpus = resolve_gpu_count(inputs, job, &hosts)?;
    let pods = Pods {
        host_network: true,
        ..Pods::default()
    };
    let meeting = Meeting::of(inputs.loaded, &hosts, &pods);
    let (variables, warnings) = settle_variables(inputs, job, asked, &hosts, &meeting);
    let no_names: Vec<Diagnostic> = variables
        .iter()
        .filter(|one| !is_variable(&one.name))
        .map(|one| no_name(&one.name, asked))
        .collect();
    if !no_names.is_empty() {
        return Err(no_names);
    }
    let parts = match &job.kind {
        HostKind::NcclTest(test) => {
            let of_spec = mpirun::of_spec(inputs.loaded)?;
            let processes = gpus.saturating_mul(hosts.len() as u32);
            let arguments = mpirun::build_mpirun_arguments(
                test,
                processes,
                &meeting,
                &variables,
                &of_spec,
                inputs.catalog,
            );
            let mut line = mpirun::build_mpirun_line(&arguments, &test.program);
            let slots: Vec<String> = names.iter().map(|name| format!("{name}:{gpus}")).collect();
            line.splice(1..1, ["-H".to_owned(), slots.join(",")]);
            nccl_parts(job, &names, &test.program, &line)
        }
        HostKind::Pytorch {
            steps,
            mebibytes,
            port,
        } => training_parts(job, &names, &variables, gpus, [*steps, *mebibytes], *port),
    };
    Ok(HostJobParts {
        parts,
        variables,
        warnings,
        gpus,
    })
}

/// It becomes a word of a script.
fn no_name(name: &str, asked: &RequestPlaces) -> Diagnostic {
    let error = Diagnostic::error(
        "RW1221",
        format!("`{}` cannot be the name of a variable", one_line(name, 80)),
    );
    asked.at(
        error.state("nothing was started").next("--env NAME=VALUE"),
        &format!("jobs.environment.{name}"),
        "letters, digits and `_`",
    )
}

fn resolve_gpu_count(
    inputs: JobRenderInputs<'_>,
    job: &HostJob,
    hosts: &[&Host],
) -> Result<u32, Vec<Diagnostic>> {
    if let Some(gpus) = job.gpus.filter(|gpus| *gpus > 0) {
        return Ok(gpus);
    }
    let mut counts = BTreeSet::new();
    for host in hosts {
        let gpu = inputs.loaded.group_of(host).gpu.as_ref();
        counts.insert(gpu.map_or(0, |gpu| gpu.count));
    }
    match counts.iter().next() {
        Some(count) if counts.len() == 1 && *count > 0 => Ok(*count),
        _ => Err(vec![
            Diagnostic::error(
                "RW1265",
                "how many GPUs of a host are used does not follow from the spec",
            )
            .state("nothing was started")
            .next("say it with --gpus N, or name identical hosts with --on HOSTS"),
        ]),
    }
}

fn settle_variables(
    inputs: JobRenderInputs<'_>,
    job: &HostJob,
    asked: &RequestPlaces,
    hosts: &[&Host],
    meeting: &Meeting,
) -> (Vec<Variable>, Vec<Diagnostic>) {
    let (loaded, catalog) = (inputs.loaded, inputs.catalog);
    let kind = if matches!(job.kind, HostKind::NcclTest(_)) {
        JobRequestKind::NcclTest
    } else {
        JobRequestKind::Pytorch
    };
    let mut said: BTreeSet<String> = loaded.spec.jobs.environment.keys().cloned().collect();
    said.extend(job.environment.iter().map(|(name, _)| name.clone()));
    let offers = [Offer {
        resource: OWN_RAILS.to_owned(),
        shared: true,
        rails: None,
    }];
    let of_rails = if job.over_tcp {
        Vec::new()
    } else {
        vec![OWN_RAILS.to_owned()]
    };
    let made = derive::derive_environment(
        DerivationInputs {
            loaded,
            catalog,
            hosts,
            offers: &offers,
            asked: &of_rails,
            meeting,
            by: asked,
        },
        kind,
        &said,
    );
    let mut settling = Settling::default();
    settling.derived(made.variables);
    settling.spec(loaded);
    settling.asked(&job.environment);
    if job.over_tcp {
        pair::hold_to_tcp(&mut settling);
    }
    let variables = settling.settled(catalog, loaded.spec.jobs.nccl.as_deref());
    let mut warnings = made.warnings;
    warnings.extend(environment::check_variables(
        &variables,
        loaded,
        catalog,
        asked,
        &made.devices,
    ));
    (variables, warnings)
}

/// Says what is not there; `what` is a word of the table below, with what it is about.
const MISS: &str = "miss() { echo \"@missing $*\"; }\n";

fn nccl_parts(job: &HostJob, names: &[String], program: &str, line: &[String]) -> Vec<HostPart> {
    let shown = quote::quote_for_shell(program);
    let both = format!(
        "{MISS}command -v mpirun >/dev/null 2>&1 || miss mpirun\n\
         command -v {shown} >/dev/null 2>&1 || miss program {shown}\n"
    );
    // mpirun starts its own daemon there by a login that nobody types a password for.
    let mut logins = String::new();
    for name in names.iter().skip(1) {
        let address = quote::quote_for_shell(name);
        logins.push_str(&format!(
            "{{ timeout 15 ssh -n -o BatchMode=yes -o ConnectTimeout=5 {address} true \
             >/dev/null 2>&1 || miss login {address}; }} &\n"
        ));
    }
    let line = quote::sh_words(line.iter().map(String::as_str));
    let mut parts = Vec::new();
    for (place, host) in job.hosts.iter().enumerate() {
        let is_first = place == 0;
        let logins = if is_first { logins.as_str() } else { "" };
        parts.push(HostPart {
            host: host.clone(),
            needs: format!("{both}{logins}wait\nexit 0\n"),
            start: is_first.then(|| (Vec::new(), format!("exec {line}\n"))),
        });
    }
    parts
}

fn training_parts(
    job: &HostJob,
    names: &[String],
    variables: &[Variable],
    gpus: u32,
    sizes: [u32; 2],
    port: u16,
) -> Vec<HostPart> {
    let needs = format!(
        "{MISS}if command -v python3 >/dev/null 2>&1; then\n\
         n=$(python3 -c 'import torch; print(torch.cuda.device_count())' 2>/dev/null) || n=\n\
         case $n in ''|*[!0-9]*) miss torch ;; *) [ \"$n\" -ge {gpus} ] || miss gpus \"$n\" ;; \
         esac\n\
         else miss python3; fi\n\
         exit 0\n"
    );
    let environment = render_exports(variables);
    let text = MODULES
        .get_file(format!("jobs/{TRAINING}"))
        .and_then(|file| file.contents_utf8())
        .unwrap_or_default();
    let (gpus, port, count) = (
        gpus.to_string(),
        port.to_string(),
        job.hosts.len().to_string(),
    );
    let first = names.first().map_or("", String::as_str);
    let sizes = sizes.map(|size| size.to_string());
    let mut parts = Vec::new();
    for (place, host) in job.hosts.iter().enumerate() {
        let place = place.to_string();
        let words = [
            ["python3", "-m", "torch.distributed.run"].as_slice(),
            &[
                "--nnodes",
                &count,
                "--node_rank",
                &place,
                "--nproc_per_node",
                &gpus,
            ],
            &["--master_addr", first, "--master_port", &port, TRAINING],
            &sizes.each_ref().map(String::as_str),
        ];
        let line = quote::sh_words(words.concat());
        let files = vec![(TRAINING.to_owned(), text.to_owned())];
        parts.push(HostPart {
            host: host.clone(),
            needs: needs.clone(),
            start: Some((files, format!("{environment}exec {line}\n"))),
        });
    }
    parts
}

/// The lines of a shell that give these variables to what it starts.
fn render_exports(variables: &[Variable]) -> String {
    let mut lines = String::new();
    for variable in variables {
        let value = quote::quote_for_shell(&variable.value);
        lines.push_str(&format!("export {}={value}\n", variable.name));
    }
    lines
}

/// What is missing on a host, in words, and what brings it.
pub fn describe_missing_requirement(what: &str) -> (String, String) {
    let (word, about) = what.split_once(' ').unwrap_or((what, ""));
    let about = one_line(about, 80);
    let (what, brings) = match word {
        "mpirun" => (
            "mpirun (Open MPI)".to_owned(),
            "apt-get install openmpi-bin, or dnf install openmpi with its folder in PATH"
                .to_owned(),
        ),
        "program" => (
            format!("{about} (NVIDIA/nccl-tests)"),
            "no system has a package of it: build github.com/NVIDIA/nccl-tests with `make MPI=1`, \
             and name it with --program PATH"
                .to_owned(),
        ),
        "login" => (
            format!("a login of root to {about} without a password"),
            format!(
                "mpirun starts its processes there over SSH: put the first host's key into root's \
                 authorized_keys on {about}"
            ),
        ),
        "python3" => (
            "python3".to_owned(),
            "apt-get install python3, or dnf install python3".to_owned(),
        ),
        "torch" => (
            "PyTorch (the Python module torch)".to_owned(),
            "pip install torch, as pytorch.org/get-started says for this CUDA".to_owned(),
        ),
        "gpus" => (
            format!("GPUs: PyTorch sees {about}"),
            "nvidia-smi on the host; a PyTorch without CUDA sees none; or say --gpus N".to_owned(),
        ),
        _ => (one_line(what, 80), "install it on the host".to_owned()),
    };
    (what, brings)
}
