//! The disk of the machines and what belongs to it, built once for a recipe by mmdebstrap and kept
//! in the cache.

use super::event::{LabEvent, LabStep, Listener, run_timed_step};
use super::folder::{self, LabFolder, new_folder_error};
use super::recipe::{self, Flavour};
use super::sources::{self, AptSource};
use super::{Result, assets, logged};
use railwright_base::{Diagnostic, Reason};
use railwright_system::lock_file::{LockAttempt, LockFile};
use railwright_system::process::{self, Program};
use railwright_system::{clock, files};
use std::path::{Path, PathBuf};

/// A built image.
#[derive(Debug, Clone)]
pub struct Image {
    /// Names this one build: the same recipe built again gives other bytes, which no older disk
    /// fits.
    pub build: String,
    /// Holds `disk.qcow2`, `grub.lkrn`, `vmlinuz`, `initrd`, `kernel-version`, `packages/` and
    /// `build`.
    pub folder: PathBuf,
}

/// The image of this recipe, built when the cache has none; with Kubernetes, from these programs.
pub fn ensure_image(
    folder: &LabFolder,
    flavour: Flavour,
    programs: Option<&Path>,
    listener: Listener<'_>,
) -> Result<Image> {
    let sources = sources::of_this_computer()?;
    let target = compute_image_path(folder, flavour, &sources);
    if let Some(image) = read_built_image(&target) {
        return Ok(image);
    }
    let _lock = lock_cache(folder, listener)?;
    if read_built_image(&target).is_none() {
        run_timed_step(listener, LabStep::Image, || {
            build_image(folder, flavour, programs, &sources, &target, listener)
        })?;
    }
    read_built_image(&target).ok_or_else(|| {
        new_folder_error(
            &target,
            &std::io::Error::other("what was just built cannot be read"),
        )
    })
}

/// The image of this recipe, if the cache has it.
pub fn find_image(folder: &LabFolder, flavour: Flavour) -> Result<Option<Image>> {
    Ok(read_built_image(&compute_image_path(
        folder,
        flavour,
        &sources::of_this_computer()?,
    )))
}

fn compute_image_path(folder: &LabFolder, flavour: Flavour, sources: &[AptSource]) -> PathBuf {
    folder.cache().join(format!(
        "{}-{}",
        flavour.word(),
        recipe::compute_recipe_digest(flavour, sources).short()
    ))
}

fn read_built_image(target: &Path) -> Option<Image> {
    let build = files::read_limited(&target.join("build"), 200).ok()?;
    Some(Image {
        build: String::from_utf8(build).ok()?,
        folder: target.to_owned(),
    })
}

/// Labs may share a cache: one builds, the others wait for it and then find what they need.
fn lock_cache(folder: &LabFolder, listener: Listener<'_>) -> Result<LockFile> {
    let path = folder.cache().join("lock");
    files::make_folder(&folder.cache())
        .map_err(|error| new_folder_error(&folder.cache(), &error))?;
    let watch = clock::Stopwatch::start();
    let mut said = false;
    loop {
        let other = match LockFile::try_take(&path, &folder::format_lock_holder())
            .map_err(|error| new_folder_error(&path, &error))?
        {
            LockAttempt::Taken(lock) => return Ok(lock),
            LockAttempt::Held(other) => folder::describe_lock_holder(&other),
        };
        if watch.elapsed() > LabStep::Image.limit() {
            return Err(Diagnostic::error(
                "RW0907",
                format!(
                    "{other} has been building in {} for too long",
                    folder.cache().display()
                ),
            )
            .state("nothing was changed by this command")
            .next("end that command, then run this one again")
            .into());
        }
        if !std::mem::replace(&mut said, true) {
            listener(LabEvent::Note(format!(
                "{other} builds in this cache; waiting for it"
            )));
        }
        clock::block_for(500);
    }
}

/// Builds beside the target and renames: an aborted build leaves nothing that looks whole.
fn build_image(
    folder: &LabFolder,
    flavour: Flavour,
    programs: Option<&Path>,
    sources: &[AptSource],
    target: &Path,
    listener: Listener<'_>,
) -> Result<()> {
    let scratch = folder.cache().join("building");
    files::remove_path(&scratch).map_err(|error| new_folder_error(&scratch, &error))?;
    let (recipe_folder, out) = (scratch.join("assets"), scratch.join("out"));
    files::make_folder(&out).map_err(|error| new_folder_error(&out, &error))?;
    assets::write_out(&recipe_folder)?;
    let log = folder.path("image.log");
    files::remove_path(&log).map_err(|error| new_folder_error(&log, &error))?;
    let program = build_mmdebstrap_program(flavour, programs, sources, &recipe_folder, &out);
    if let Err(how) = logged::run_logged_build(&program, LabStep::Image, &log, listener)? {
        let _ = files::remove_path(&scratch);
        return Err(new_build_error(&how, &log));
    }
    let (id, path) = (
        clock::generate_nonce().map_err(|error| new_folder_error(&out, &error))?,
        out.join("build"),
    );
    files::write_atomic(&path, id.as_bytes(), 0o644)
        .map_err(|error| new_folder_error(&path, &error))?;
    files::rename_path(&out, target).map_err(|error| new_folder_error(target, &error))?;
    files::remove_path(&scratch).map_err(|error| new_folder_error(&scratch, &error))
}

fn build_mmdebstrap_program(
    flavour: Flavour,
    programs: Option<&Path>,
    sources: &[AptSource],
    assets: &Path,
    out: &Path,
) -> Program {
    // mmdebstrap hands a hook to a shell with the new root as $1, so the paths in it are quoted.
    // The assets travel by sync-in because the hook's user, in a user namespace, may not be able to
    // read this folder.
    let quoted = |path: &Path| railwright_base::quote::quote_for_shell(&path.to_string_lossy());
    let with_programs = programs.map(|programs| {
        format!(
            "--customize-hook=sync-in {} /lab-programs",
            quoted(programs)
        )
    });
    Program::new("mmdebstrap")
        .folder(Path::new("/"))
        .arguments(["--variant=minbase", "--format=null"])
        .argument(if process::is_root() {
            "--mode=root"
        } else {
            "--mode=unshare"
        })
        .argument(format!(
            "--include={}",
            recipe::list_installed_packages(flavour).join(",")
        ))
        .arguments(
            ["man", "doc", "locale"]
                .map(|what| format!("--dpkgopt=path-exclude=/usr/share/{what}/*")),
        )
        .argument("--aptopt=Apt::Install-Recommends \"false\"")
        .argument("--customize-hook=mkdir \"$1/lab-assets\"")
        .arguments(
            with_programs
                .iter()
                .map(|_| "--customize-hook=mkdir \"$1/lab-programs\""),
        )
        .arguments(with_programs.iter())
        .argument(format!(
            "--customize-hook=sync-in {} /lab-assets",
            quoted(assets)
        ))
        .argument("--customize-hook=sh \"$1/lab-assets/recipe/image.sh\" \"$1\"")
        .argument(format!(
            "--customize-hook=sync-out /lab-out {}",
            quoted(out)
        ))
        .arguments([sources::SUITE, "-"])
        .arguments(sources.iter().map(AptSource::line))
        .environment("NETWORK", flavour.network.word())
        .environment("SERVED", recipe::list_served_packages().join(" "))
        .environment("DISK_SIZE", recipe::DISK_SIZE)
}

fn new_build_error(how: &Reason, log: &Path) -> Box<Diagnostic> {
    let mut diagnostic = Diagnostic::error("RW0903", format!("building the machines' disk {how}"))
        .state("no machine was started; the unfinished disk was removed")
        .next(format!("see all of {}", log.display()))
        .next("railwright lab up");
    if !process::is_root() {
        diagnostic = diagnostic.effect(
            "as a plain user the disk is built in a user namespace: this needs newuidmap, a range \
             in /etc/subuid and kernel.unprivileged_userns_clone=1; root needs none of these",
        );
    }
    diagnostic.into()
}
