//! `railwright image render`: a Containerfile on stdout. Nothing is built or fetched.

use super::ground::ImageFabricArguments;
use crate::cli::{CommandFailure, Exit};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::spec::Sources;
use railwright_report::out;
use railwright_system::files;
use railwright_workload::RequestPlaces;
use railwright_workload::image::{ImageRequest, RepositorySigningKey, render_containerfile};
use std::path::{Path, PathBuf};

/// Keys have some KiB.
const KEY_MAX: u64 = 1 << 20;

/// Write a Containerfile for an image with the RDMA user space: from checked keys, with nothing
/// piped into a shell
///
/// The file goes to stdout, and says of each step why it is there. Run it in the folder that the
/// image is built in: what `--key` names is copied from there, and the build ends where it is no
/// longer the same, where the base is of another release, and where a library is missing at its
/// end.
#[derive(Debug, clap::Args)]
pub struct ImageRenderArguments {
    /// The image that it begins with, best by digest: NAME@sha256:...
    #[arg(long, value_name = "IMAGE")]
    base: String,
    /// The release that packages are of: VERSION_CODENAME in the base's /etc/os-release, such as
    /// jammy
    #[arg(long, value_name = "NAME")]
    suite: String,
    #[command(flatten)]
    fabric: ImageFabricArguments,
    /// The armoured public key of the repository, where packages come from one that is not the
    /// distribution's (eRDMA)
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// An example with its data: mnist
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
}

/// Renders it.
pub fn run(arguments: &ImageRenderArguments) -> Result<Exit, CommandFailure> {
    let ground = arguments.fabric.ground()?;
    let mut options = vec![
        ("image.base", format!("--base={}", arguments.base)),
        ("image.suite", format!("--suite={}", arguments.suite)),
        ("image.fabric", arguments.fabric.words()),
    ];
    if let Some(path) = &arguments.key {
        options.push(("image.key", format!("--key={}", path.to_string_lossy())));
    }
    if let Some(name) = &arguments.example {
        options.push(("image.example", format!("--example={name}")));
    }
    let asked = RequestPlaces::of_options("railwright image render", options);
    let key = match &arguments.key {
        Some(path) => Some(RepositorySigningKey {
            path: path.to_string_lossy().into_owned(),
            text: read_key(path)?,
        }),
        None => None,
    };
    let request = ImageRequest {
        base: arguments.base.clone(),
        suite: arguments.suite.clone(),
        fabric: ground.fabric,
        drivers: ground.drivers,
        key,
        example: arguments.example.clone(),
    };
    let mut sources = Sources::default();
    if let Some(line) = asked.source() {
        sources.add(line.clone());
    }
    let file = render_containerfile(&request, &ground.catalog, &asked)
        .map_err(|problems| CommandFailure::from(problems).with_sources(&sources))?;
    out::print_result(&file);
    Ok(Exit::Done)
}

fn read_key(path: &Path) -> Result<String, Diagnostic> {
    let bytes = files::read_limited(path, KEY_MAX)
        .map_err(|error| report_unreadable_key(path, &error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| {
        report_unreadable_key(path, "it is no text; `gpg --armor --export KEY` writes one")
    })
}

fn report_unreadable_key(path: &Path, why: &str) -> Diagnostic {
    let shown = one_line(&path.to_string_lossy(), 80);
    Diagnostic::error("RW1273", format!("the key {shown} cannot be read: {why}"))
        .state("nothing was rendered")
        .next("--key FILE names an armoured public key, from the folder that the image is built in")
}
