//! `railwright image check`: whether a root or a pod has what programs load to use RDMA. Reads only.

use super::ground::Fabric;
use crate::cli::job::{Cluster, name};
use crate::cli::{Exit, Failure};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_report::image::{ImageDocument, screen};
use railwright_report::{document, out};
use railwright_resource::kubernetes_object::exec::{PodExec, Ran};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{AnswerStatus, Answers, Read};
use railwright_system::rooted::Rooted;
use railwright_verify::Verdict;
use railwright_verify::image::{Finding, Seen, Wanted, judge, judge::unknown, program, root, verdict};
use std::io;
use std::path::{Path, PathBuf};

/// Look into an image, unpacked or as a pod, for the libraries without which NCCL goes over TCP and says nothing
///
/// By what the loader and libibverbs would find; neither is run, and nothing is written. In a pod also the RDMA devices that it was given, and how much memory it
/// may lock. Ends with 0 where all is there, with 1 where something is missing, and with 3 where that cannot be found out.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// A root file system in a folder of this machine: an image that was unpacked (podman image mount, docker export)
    #[arg(long, value_name = "FOLDER", required_unless_present = "pod")]
    root: Option<PathBuf>,
    /// A pod that runs, in the cluster of the inventory; programs of its image are run in it: sh, grep, head, od
    #[arg(long, value_name = "POD", conflicts_with = "root", requires = "inventory", value_parser = name)]
    pod: Option<String>,
    /// The pod's namespace
    #[arg(short, long, value_name = "NAME", default_value = "default", value_parser = name)]
    namespace: String,
    /// The container, where the pod has several
    #[arg(short, long, value_name = "NAME", requires = "pod", value_parser = name)]
    container: Option<String>,
    #[command(flatten)]
    fabric: Fabric,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks.
pub async fn run(arguments: &Check) -> Result<Exit, Failure> {
    let ground = arguments.fabric.ground()?;
    let drivers: Vec<&str> = ground.drivers.iter().map(String::as_str).collect();
    let wanted = match ground.catalog.user_space.get(&ground.fabric) {
        Some(row) => Wanted::of(&ground.fabric, row, &drivers),
        None => return Err(no_libraries(&ground.fabric).into()),
    };
    let (looked_into, findings) = match &arguments.pod {
        Some(pod) => (format!("{}/{pod}", arguments.namespace), of_pod(arguments, pod, &wanted).await?),
        None => {
            let folder = arguments.root.as_deref().unwrap_or(Path::new("."));
            (folder.display().to_string(), of_root(arguments, folder, &wanted)?)
        }
    };
    out::print(&match arguments.json {
        true => document::text(&ImageDocument::of(&looked_into, &wanted, &findings)),
        false => screen(&looked_into, &wanted, &findings),
    });
    Ok(match verdict(&findings) {
        Verdict::Failed => Exit::Failed,
        Verdict::Unknown => Exit::Incomplete,
        _ => Exit::Done,
    })
}

fn no_libraries(fabric: &str) -> Diagnostic {
    Diagnostic::error("RW1271", format!("no libraries are known for a fabric of kind `{}`", one_line(fabric, 40)))
        .state("nothing was looked at")
        .next("say another with --fabric; `railwright catalog user-space` shows what is known of each")
}

/// The command that writes an image with all of it.
fn render(arguments: &Check, wanted: &Wanted) -> String {
    let key = if wanted.fabric == "erdma" { " --key keys/erdma.asc" } else { "" };
    format!("railwright image render --base IMAGE --suite SUITE {}{key} >Containerfile", arguments.fabric.words())
}

fn of_root(arguments: &Check, folder: &Path, wanted: &Wanted) -> Result<Vec<Finding>, Failure> {
    let problem = |error: io::Error| {
        Diagnostic::error("RW1275", format!("{} cannot be looked into: {error}", one_line(&folder.display().to_string(), 80)))
            .state("nothing was judged")
            .next("name the folder of an unpacked image: mkdir root && docker export CONTAINER | tar -C root -x; as a user who may read all of it")
    };
    let rooted = Rooted::open(folder).map_err(problem)?;
    // A wrong folder would be told as an image without libraries.
    if !["/usr", "/lib", "/etc"].iter().any(|name| rooted.is_folder(name)) {
        return Err(problem(io::Error::other("it has neither /usr nor /lib nor /etc")).into());
    }
    let seen = root::read(&rooted, wanted).map_err(|error| incomplete(problem(error)))?;
    Ok(judge(&seen, wanted, &render(arguments, wanted)))
}

/// What nobody could look at is not missing.
fn incomplete(diagnostic: Diagnostic) -> Failure {
    Failure { exit: Exit::Incomplete, ..Failure::from(diagnostic) }
}

async fn of_pod(arguments: &Check, pod: &str, wanted: &Wanted) -> Result<Vec<Finding>, Failure> {
    let folder = arguments.fabric.inventory.as_deref().unwrap_or(Path::new("."));
    let reader = Cluster::of(folder).await?.reader();
    let argv = ["sh", "-c", &program::program(wanted)].map(str::to_owned).to_vec();
    let exec = PodExec { namespace: arguments.namespace.clone(), pod: pod.to_owned(), container: arguments.container.clone(), argv };
    let read = Read::Kubernetes(KubernetesRead::PodExec(Box::new(exec)));
    let answers = reader.read(std::slice::from_ref(&read)).await.map_err(|error| incomplete(error.diagnostic()))?;
    let container = arguments.container.as_ref().map_or(String::new(), |name| format!(" -c {name}"));
    let next =
        format!("kubectl -n {} exec {pod}{container} -- ls -l /etc/libibverbs.d; kubectl -n {0} describe pod {pod}", arguments.namespace);
    Ok(match said(&answers, &read) {
        Ok(seen) => judge(&seen, wanted, &render(arguments, wanted)),
        Err(why) => unknown(wanted, &why, &next),
    })
}

fn said(answers: &Answers, read: &Read) -> Result<Seen, String> {
    if answers.get(read).is_some_and(|answer| answer.status == AnswerStatus::TooLong) {
        return Err("its output is longer than the program's can be".to_owned());
    }
    match answers.output(read)? {
        (0, out) => {
            let ran: Ran = serde_json::from_str(out).map_err(|_| "what came back is no answer of a program".to_owned())?;
            match ran.code {
                0 => program::parse(&ran.out),
                126 | 127 => {
                    Err(format!("the image has no sh, or it cannot be run: unpack it, and use --root ({})", one_line(&ran.err, 80)))
                }
                code => Err(format!("the program ended with exit status {code}: {}", one_line(&ran.err, 120))),
            }
        }
        (_, why) => Err(one_line(why, 300)),
    }
}
