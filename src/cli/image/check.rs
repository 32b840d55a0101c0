//! `railwright image check`: whether a root or a pod has what programs load to use RDMA. Reads
//! only.

use super::ground::ImageFabricArguments;
use crate::cli::job::{Cluster, parse_kubernetes_name};
use crate::cli::{CommandFailure, Exit};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Reason};
use railwright_report::image::{ImageDocument, render_image_screen};
use railwright_report::{document, out};
use railwright_resource::kubernetes_object::exec::{PodExec, PodExecResult};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::{AnswerStatus, Read, ReadResults};
use railwright_system::rooted::RootedFolder;
use railwright_verify::CheckVerdict;
use railwright_verify::image::{
    ImageContents, ImageFinding, ImageRequirements, check_image_contents, compute_image_verdict,
    evaluation::list_unknown_findings, program, root,
};
use std::path::{Path, PathBuf};

/// Look into an image, unpacked or as a pod, for the libraries without which NCCL goes over TCP and
/// says nothing
///
/// By what the loader and libibverbs would find; neither is run, and nothing is written. In a pod
/// also the RDMA devices that it was given, and how much memory it may lock. Ends with 0 where all
/// is there, with 1 where something is missing, and with 3 where that cannot be found out.
#[derive(Debug, clap::Args)]
pub struct ImageCheckArguments {
    /// A root file system in a folder of this machine: an image that was unpacked (podman image
    /// mount, docker export)
    #[arg(long, value_name = "FOLDER", required_unless_present = "pod")]
    root: Option<PathBuf>,
    /// A pod that runs, in the cluster of the inventory; programs of its image are run in it: sh,
    /// grep, head, od
    #[arg(
        long,
        value_name = "POD",
        conflicts_with = "root",
        requires = "inventory",
        value_parser = parse_kubernetes_name
    )]
    pod: Option<String>,
    /// The pod's namespace
    #[arg(short, long, value_name = "NAME", default_value = "default", value_parser = parse_kubernetes_name)]
    namespace: String,
    /// The container, where the pod has several
    #[arg(short, long, value_name = "NAME", requires = "pod", value_parser = parse_kubernetes_name)]
    container: Option<String>,
    #[command(flatten)]
    fabric: ImageFabricArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks.
pub async fn run(arguments: &ImageCheckArguments) -> Result<Exit, CommandFailure> {
    let ground = arguments.fabric.ground()?;
    let drivers: Vec<&str> = ground.drivers.iter().map(String::as_str).collect();
    let desired = match ground.catalog.user_space.get(&ground.fabric) {
        Some(entry) => ImageRequirements::of(&ground.fabric, entry, &drivers),
        None => return Err(report_no_libraries(&ground.fabric).into()),
    };
    let (looked_into, findings) = match &arguments.pod {
        Some(pod) => (
            format!("{}/{pod}", arguments.namespace),
            check_pod(arguments, pod, &desired).await?,
        ),
        None => {
            let folder = arguments.root.as_deref().unwrap_or(Path::new("."));
            (
                folder.display().to_string(),
                check_root(arguments, folder, &desired)?,
            )
        }
    };
    out::print_result(&match arguments.json {
        true => {
            document::render_json_document(&ImageDocument::of(&looked_into, &desired, &findings))
        }
        false => render_image_screen(&looked_into, &desired, &findings),
    });
    Ok(match compute_image_verdict(&findings) {
        CheckVerdict::Failed => Exit::Failed,
        CheckVerdict::Unknown => Exit::Incomplete,
        _ => Exit::Done,
    })
}

fn report_no_libraries(fabric: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1271",
        format!(
            "no libraries are known for a fabric of kind `{}`",
            one_line(fabric, 40)
        ),
    )
    .state("nothing was looked at")
    .next("say another with --fabric; `railwright catalog user-space` shows what is known of each")
}

/// The command that writes an image with all of it.
fn format_render_command(arguments: &ImageCheckArguments, desired: &ImageRequirements) -> String {
    let key = if desired.fabric == "erdma" {
        " --key keys/erdma.asc"
    } else {
        ""
    };
    format!(
        "railwright image render --base IMAGE --suite SUITE {}{key} >Containerfile",
        arguments.fabric.words()
    )
}

fn check_root(
    arguments: &ImageCheckArguments,
    folder: &Path,
    desired: &ImageRequirements,
) -> Result<Vec<ImageFinding>, CommandFailure> {
    let rooted = RootedFolder::open(folder)
        .map_err(|error| report_unreadable_root(folder, &error.to_string()))?;
    // A wrong folder would be reported as an image without libraries.
    if !["/usr", "/lib", "/etc"]
        .iter()
        .any(|name| rooted.is_folder(name))
    {
        let why = "it has neither /usr nor /lib nor /etc";
        return Err(report_unreadable_root(folder, why).into());
    }
    let seen = root::inspect_root(&rooted, desired)
        .map_err(|error| fail_as_incomplete(report_unreadable_root(folder, &error.to_string())))?;
    Ok(check_image_contents(
        &seen,
        desired,
        &format_render_command(arguments, desired),
    ))
}

fn report_unreadable_root(folder: &Path, why: &str) -> Diagnostic {
    let shown = one_line(&folder.display().to_string(), 80);
    Diagnostic::error("RW1275", format!("{shown} cannot be looked into: {why}"))
        .state("nothing was checked")
        .next(
            "name the folder of an unpacked image: mkdir root && docker export CONTAINER | tar -C \
             root -x; as a user who may read all of it",
        )
}

/// What nobody could look at is not missing.
fn fail_as_incomplete(diagnostic: Diagnostic) -> CommandFailure {
    CommandFailure::with_exit(Exit::Incomplete, diagnostic)
}

async fn check_pod(
    arguments: &ImageCheckArguments,
    pod: &str,
    desired: &ImageRequirements,
) -> Result<Vec<ImageFinding>, CommandFailure> {
    let folder = arguments
        .fabric
        .inventory
        .as_deref()
        .unwrap_or(Path::new("."));
    let reader = Cluster::of(folder).await?.reader();
    let argv = ["sh", "-c", &program::build_inspection_script(desired)]
        .map(str::to_owned)
        .to_vec();
    let exec = PodExec {
        namespace: arguments.namespace.clone(),
        pod: pod.to_owned(),
        container: arguments.container.clone(),
        argv,
    };
    let read = Read::Kubernetes(KubernetesRead::PodExec(Box::new(exec)));
    let answers = reader
        .read(std::slice::from_ref(&read))
        .await
        .map_err(|error| fail_as_incomplete(error.diagnostic()))?;
    let container = arguments
        .container
        .as_ref()
        .map_or(String::new(), |name| format!(" -c {name}"));
    let next = format!(
        "kubectl -n {} exec {pod}{container} -- ls -l /etc/libibverbs.d; kubectl -n {0} describe \
         pod {pod}",
        arguments.namespace
    );
    Ok(match parse_pod_output(&answers, &read) {
        Ok(seen) => {
            check_image_contents(&seen, desired, &format_render_command(arguments, desired))
        }
        Err(why) => list_unknown_findings(desired, why.as_words(), &next),
    })
}

fn parse_pod_output(answers: &ReadResults, read: &Read) -> Result<ImageContents, Reason> {
    if answers
        .get(read)
        .is_some_and(|answer| answer.status == AnswerStatus::TooLong)
    {
        return Err("its output is longer than the program's can be".into());
    }
    match answers.output(read)? {
        (0, out) => {
            let ran: PodExecResult = serde_json::from_str(out)
                .map_err(|_| "what came back is no answer of a program".to_owned())?;
            match ran.code {
                0 => program::parse_inspection_output(&ran.out),
                126 | 127 => Err(format!(
                    "the image has no sh, or it cannot be run: unpack it, and use --root ({})",
                    one_line(&ran.err, 80)
                )
                .into()),
                code => Err(format!(
                    "the program ended with exit status {code}: {}",
                    one_line(&ran.err, 120)
                )
                .into()),
            }
        }
        (_, why) => Err(one_line(why, 300).into()),
    }
}
