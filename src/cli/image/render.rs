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
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let mut options = vec![
        ("image.base", format!("--base={}", arguments.base)),
        ("image.suite", format!("--suite={}", arguments.suite)),
        ("image.fabric", arguments.fabric.words()),
    ];
    options.extend(
        arguments
            .key
            .iter()
            .map(|path| ("image.key", format!("--key={}", shown(path)))),
    );
    options.extend(
        arguments
            .example
            .iter()
            .map(|name| ("image.example", format!("--example={name}"))),
    );
    let asked = RequestPlaces::of_options("railwright image render", options);
    let key = arguments
        .key
        .as_deref()
        .map(|path| {
            read_key(path).map(|text| RepositorySigningKey {
                path: shown(path),
                text,
            })
        })
        .transpose()?;
    let request = ImageRequest {
        base: arguments.base.clone(),
        suite: arguments.suite.clone(),
        fabric: ground.fabric,
        drivers: ground.drivers,
        key,
        example: arguments.example.clone(),
    };
    let mut sources = Sources::default();
    asked
        .source()
        .into_iter()
        .for_each(|line| sources.add(line.clone()));
    let file = render_containerfile(&request, &ground.catalog, &asked)
        .map_err(|problems| CommandFailure::from(problems).with_sources(&sources))?;
    out::print_result(&file);
    Ok(Exit::Done)
}

fn read_key(path: &Path) -> Result<String, Diagnostic> {
    let unreadable = |why: String| {
        Diagnostic::error(
            "RW1273",
            format!(
                "the key {} cannot be read: {why}",
                one_line(&path.to_string_lossy(), 80)
            ),
        )
        .state("nothing was rendered")
        .next("--key FILE names an armoured public key, from the folder that the image is built in")
    };
    let bytes =
        files::read_limited(path, KEY_MAX).map_err(|error| unreadable(error.to_string()))?;
    String::from_utf8(bytes)
        .map_err(|_| unreadable("it is no text; `gpg --armor --export KEY` writes one".to_owned()))
}
