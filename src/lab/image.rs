//! The disk of the machines and what belongs to it, built once for a recipe by mmdebstrap and kept in the cache.

use super::event::{Event, Listener, Step, timed};
use super::folder::{Folder, trouble};
use super::recipe::{self, Network};
use super::sources::{self, Source};
use super::{Result, assets};
use crate::base::{Diagnostic, text};
use crate::system::files;
use crate::system::process::{self, Ending, Program};
use std::path::{Path, PathBuf};

/// A built image.
#[derive(Debug, Clone)]
pub struct Image {
    /// Names the recipe.
    pub digest: String,
    /// Holds `disk.qcow2`, `grub.lkrn`, `vmlinuz`, `initrd`, `kernel-version` and `packages/`.
    pub folder: PathBuf,
}

/// The image of this recipe, built when the cache has none.
pub fn ensure(folder: &Folder, network: Network, listener: Listener<'_>) -> Result<Image> {
    let sources = sources::of_this_computer()?;
    let digest = recipe::digest(network, &sources);
    let name = format!("{}-{}", network.word(), digest.short());
    let target = folder.cache().join(&name);
    let image = Image { digest: digest.as_str().to_owned(), folder: target.clone() };
    if files::exists(&target.join("kernel-version")) {
        return Ok(image);
    }
    timed(listener, Step::Image, || build(folder, network, &sources, &target, listener))?;
    Ok(image)
}

/// Builds beside the target and renames: an aborted build leaves nothing that looks whole.
fn build(folder: &Folder, network: Network, sources: &[Source], target: &Path, listener: Listener<'_>) -> Result<()> {
    let scratch = folder.cache().join("building");
    files::remove(&scratch).map_err(|error| trouble(&scratch, &error))?;
    let (recipe_folder, out) = (scratch.join("assets"), scratch.join("out"));
    files::make_folder(&out).map_err(|error| trouble(&out, &error))?;
    assets::write_out(&recipe_folder)?;
    let log = folder.path("image.log");
    files::remove(&log).map_err(|error| trouble(&log, &error))?;
    let program = mmdebstrap(network, sources, &recipe_folder, &out);
    let ending = program
        .run_logged(&log, Step::Image.limit(), &mut |line| {
            if let Some(part) = line.strip_prefix("step ") {
                listener(Event::Note(text::one_line(part, 100)));
            }
        })
        .map_err(|error| trouble(&log, &error))?;
    if ending != Ending::Success {
        let _ = files::remove(&scratch);
        return Err(failed(ending, &log));
    }
    files::rename(&out, target).map_err(|error| trouble(target, &error))?;
    files::remove(&scratch).map_err(|error| trouble(&scratch, &error))
}

fn mmdebstrap(network: Network, sources: &[Source], assets: &Path, out: &Path) -> Program {
    // mmdebstrap hands a hook to a shell with the new root as $1, so the paths in it are quoted. The assets travel by
    // sync-in because the hook's user, in a user namespace, may not be able to read this folder.
    let quoted = |path: &Path| crate::base::quote::sh(&path.to_string_lossy());
    Program::new("nice")
        .folder(Path::new("/"))
        .arguments(["mmdebstrap", "--variant=minbase", "--format=null"])
        .argument(if process::is_root() { "--mode=root" } else { "--mode=unshare" })
        .argument(format!("--include={}", recipe::installed(network).join(",")))
        .arguments(["man", "doc", "locale"].map(|what| format!("--dpkgopt=path-exclude=/usr/share/{what}/*")))
        .argument("--aptopt=Apt::Install-Recommends \"false\"")
        .argument("--customize-hook=mkdir \"$1/lab-assets\"")
        .argument(format!("--customize-hook=sync-in {} /lab-assets", quoted(assets)))
        .argument("--customize-hook=sh \"$1/lab-assets/recipe/image.sh\" \"$1\"")
        .argument(format!("--customize-hook=sync-out /lab-out {}", quoted(out)))
        .arguments([sources::SUITE, "-"])
        .arguments(sources.iter().map(Source::line))
        .environment("NETWORK", network.word())
        .environment("SERVED", recipe::served().join(" "))
        .environment("DISK_SIZE", recipe::DISK_SIZE)
}

fn failed(ending: Ending, log: &Path) -> Box<Diagnostic> {
    let tail = files::tail(log, 4000).unwrap_or_default();
    let last: Vec<&str> = tail.lines().rev().take(8).collect();
    let last = last.into_iter().rev().map(|line| format!("  {}", text::one_line(line, 160))).collect::<Vec<_>>().join("\n");
    let how = if ending == Ending::TimedOut { "took more than ten times its usual time" } else { "failed" };
    let mut diagnostic = Diagnostic::error("RW0903", format!("building the machines' disk {how}; the end of its log:\n{last}"))
        .state("no machine was started; the unfinished disk was removed")
        .next(format!("see all of {}", log.display()))
        .next("railwright lab up");
    if !process::is_root() {
        diagnostic = diagnostic
            .effect("as a plain user the disk is built in a user namespace: this needs newuidmap, a range in /etc/subuid and kernel.unprivileged_userns_clone=1; root needs none of these");
    }
    diagnostic.into()
}
