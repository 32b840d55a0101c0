//! The disk of the machines and what belongs to it, built once for a recipe by mmdebstrap and kept in the cache.

use super::event::{Event, Listener, Step, timed};
use super::folder::{self, Folder, trouble};
use super::recipe::{self, Flavour};
use super::sources::{self, Source};
use super::{Result, assets, logged};
use railwright_base::Diagnostic;
use railwright_system::lock_file::{LockFile, Tried};
use railwright_system::process::{self, Program};
use railwright_system::{clock, files};
use std::path::{Path, PathBuf};

/// A built image.
#[derive(Debug, Clone)]
pub struct Image {
    /// Names this one build: the same recipe built again gives other bytes, which no older disk fits.
    pub build: String,
    /// Holds `disk.qcow2`, `grub.lkrn`, `vmlinuz`, `initrd`, `kernel-version`, `packages/` and `build`.
    pub folder: PathBuf,
}

/// The image of this recipe, built when the cache has none; with Kubernetes, from these programs.
pub fn ensure(folder: &Folder, flavour: Flavour, programs: Option<&Path>, listener: Listener<'_>) -> Result<Image> {
    let sources = sources::of_this_computer()?;
    let target = place(folder, flavour, &sources);
    if let Some(image) = built(&target) {
        return Ok(image);
    }
    let _lock = lock_cache(folder, listener)?;
    if built(&target).is_none() {
        timed(listener, Step::Image, || build(folder, flavour, programs, &sources, &target, listener))?;
    }
    built(&target).ok_or_else(|| trouble(&target, &std::io::Error::other("what was just built cannot be read")))
}

/// The image of this recipe, if the cache has it.
pub fn find(folder: &Folder, flavour: Flavour) -> Result<Option<Image>> {
    Ok(built(&place(folder, flavour, &sources::of_this_computer()?)))
}

fn place(folder: &Folder, flavour: Flavour, sources: &[Source]) -> PathBuf {
    folder.cache().join(format!("{}-{}", flavour.word(), recipe::digest(flavour, sources).short()))
}

fn built(target: &Path) -> Option<Image> {
    let build = files::read_limited(&target.join("build"), 200).ok()?;
    Some(Image { build: String::from_utf8(build).ok()?, folder: target.to_owned() })
}

/// Labs may share a cache: one builds, the others wait for it and then find what they need.
fn lock_cache(folder: &Folder, listener: Listener<'_>) -> Result<LockFile> {
    let path = folder.cache().join("lock");
    files::make_folder(&folder.cache()).map_err(|error| trouble(&folder.cache(), &error))?;
    let watch = clock::Stopwatch::start();
    let mut said = false;
    loop {
        let other = match LockFile::try_take(&path, &folder::holder()).map_err(|error| trouble(&path, &error))? {
            Tried::Taken(lock) => return Ok(lock),
            Tried::Held(other) => folder::who(&other),
        };
        if watch.elapsed() > Step::Image.limit() {
            return Err(Diagnostic::error("RW0907", format!("{other} has been building in {} for too long", folder.cache().display()))
                .state("nothing was changed by this command")
                .next("end that command, then run this one again")
                .into());
        }
        if !std::mem::replace(&mut said, true) {
            listener(Event::Note(format!("{other} builds in this cache; waiting for it")));
        }
        clock::block_for(500);
    }
}

/// Builds beside the target and renames: an aborted build leaves nothing that looks whole.
fn build(
    folder: &Folder,
    flavour: Flavour,
    programs: Option<&Path>,
    sources: &[Source],
    target: &Path,
    listener: Listener<'_>,
) -> Result<()> {
    let scratch = folder.cache().join("building");
    files::remove(&scratch).map_err(|error| trouble(&scratch, &error))?;
    let (recipe_folder, out) = (scratch.join("assets"), scratch.join("out"));
    files::make_folder(&out).map_err(|error| trouble(&out, &error))?;
    assets::write_out(&recipe_folder)?;
    let log = folder.path("image.log");
    files::remove(&log).map_err(|error| trouble(&log, &error))?;
    let program = mmdebstrap(flavour, programs, sources, &recipe_folder, &out);
    if let Err(how) = logged::run(&program, Step::Image, &log, listener)? {
        let _ = files::remove(&scratch);
        return Err(failed(&how, &log));
    }
    let (id, path) = (clock::nonce().map_err(|error| trouble(&out, &error))?, out.join("build"));
    files::write_atomic(&path, id.as_bytes(), 0o644).map_err(|error| trouble(&path, &error))?;
    files::rename(&out, target).map_err(|error| trouble(target, &error))?;
    files::remove(&scratch).map_err(|error| trouble(&scratch, &error))
}

fn mmdebstrap(flavour: Flavour, programs: Option<&Path>, sources: &[Source], assets: &Path, out: &Path) -> Program {
    // mmdebstrap hands a hook to a shell with the new root as $1, so the paths in it are quoted. The assets travel by
    // sync-in because the hook's user, in a user namespace, may not be able to read this folder.
    let quoted = |path: &Path| railwright_base::quote::sh(&path.to_string_lossy());
    let with_programs = programs.map(|programs| format!("--customize-hook=sync-in {} /lab-programs", quoted(programs)));
    Program::new("mmdebstrap")
        .folder(Path::new("/"))
        .arguments(["--variant=minbase", "--format=null"])
        .argument(if process::is_root() { "--mode=root" } else { "--mode=unshare" })
        .argument(format!("--include={}", recipe::installed(flavour).join(",")))
        .arguments(["man", "doc", "locale"].map(|what| format!("--dpkgopt=path-exclude=/usr/share/{what}/*")))
        .argument("--aptopt=Apt::Install-Recommends \"false\"")
        .argument("--customize-hook=mkdir \"$1/lab-assets\"")
        .arguments(with_programs.iter().map(|_| "--customize-hook=mkdir \"$1/lab-programs\""))
        .arguments(with_programs.iter())
        .argument(format!("--customize-hook=sync-in {} /lab-assets", quoted(assets)))
        .argument("--customize-hook=sh \"$1/lab-assets/recipe/image.sh\" \"$1\"")
        .argument(format!("--customize-hook=sync-out /lab-out {}", quoted(out)))
        .arguments([sources::SUITE, "-"])
        .arguments(sources.iter().map(Source::line))
        .environment("NETWORK", flavour.network.word())
        .environment("SERVED", recipe::served().join(" "))
        .environment("DISK_SIZE", recipe::DISK_SIZE)
}

fn failed(how: &str, log: &Path) -> Box<Diagnostic> {
    let mut diagnostic = Diagnostic::error("RW0903", format!("building the machines' disk {how}"))
        .state("no machine was started; the unfinished disk was removed")
        .next(format!("see all of {}", log.display()))
        .next("railwright lab up");
    if !process::is_root() {
        diagnostic = diagnostic
            .effect("as a plain user the disk is built in a user namespace: this needs newuidmap, a range in /etc/subuid and kernel.unprivileged_userns_clone=1; root needs none of these");
    }
    diagnostic.into()
}
