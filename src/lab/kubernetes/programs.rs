//! The programs of the cluster, built once from pinned Go modules: Debian has none of them.

use crate::event::{LabStep, Listener, run_timed_step};
use crate::folder::LabFolder;
use crate::recipe::Flavour;
use crate::{Result, assets, logged};
use railwright_base::{Diagnostic, Digest, Reason};
use railwright_system::files;
use railwright_system::process::{self, Program};
use std::path::{Path, PathBuf};

/// Where they are.
#[derive(Debug, Clone)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Where they lie in a lab's cache, built or not.
    pub fn of(folder: &LabFolder) -> Self {
        Programs {
            folder: folder.cache().join("kubernetes/programs"),
        }
    }

    /// The programs, where machines are to be nodes, built where the cache has none of these
    /// versions.
    pub fn ensure(
        folder: &LabFolder,
        flavour: Flavour,
        listener: Listener<'_>,
    ) -> Result<Option<Self>> {
        if !flavour.kubernetes {
            return Ok(None);
        }
        let (programs, key) = (Programs::of(folder), compute_build_key());
        if !files::read_limited(&programs.folder.join("key"), 200)
            .is_ok_and(|text| text == key.as_str().as_bytes())
        {
            run_timed_step(listener, LabStep::Kubernetes, || {
                build_programs(folder, &key, listener)
            })?;
        }
        Ok(Some(programs))
    }

    /// What the machines get: kubelet and the device plugin.
    pub fn for_nodes(&self) -> PathBuf {
        self.folder.join("node")
    }

    /// One of the control plane's.
    pub fn program(&self, name: &str) -> Program {
        Program::new(self.path(name))
    }

    /// Where one of the control plane's is.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// kubectl as the cluster's administrator, with nothing of the user's own configuration.
    pub fn kubectl(&self, folder: &LabFolder) -> Program {
        self.program("kubectl")
            .argument("--kubeconfig")
            .argument(folder.kubeconfig().to_string_lossy())
    }
}

/// Names the versions of the modules, and where built programs are taken from.
fn compute_build_key() -> Digest {
    let mut text = process::read_variable("KUBEBUILDER_ASSETS").unwrap_or_default();
    for (path, bytes) in assets::files_below("kubernetes/modules") {
        text.push_str(&format!("\n{path} {}", Digest::of_bytes(bytes)));
    }
    Digest::of_bytes(text.as_bytes())
}

fn build_programs(folder: &LabFolder, key: &Digest, listener: Listener<'_>) -> Result<()> {
    let cache = folder.cache().join("kubernetes");
    let recipe = cache.join("recipe");
    assets::write_out(&recipe)?;
    let log = folder.path("kubernetes.log");
    let program = Program::new("sh")
        .argument(recipe.join("kubernetes/build.sh").to_string_lossy())
        .argument(cache.to_string_lossy());
    let program = program.argument(key.as_str());
    logged::run_logged_build(&program, LabStep::Kubernetes, &log, listener)?
        .map_err(|how| new_build_error(&how, &log))
}

fn new_build_error(how: &Reason, log: &Path) -> Box<Diagnostic> {
    Diagnostic::error("RW0911", format!("building Kubernetes {how}"))
        .effect(
            "the control plane, kubelet and the device plugin are built from their Go modules, by \
             Go's own module proxy (GOPROXY)",
        )
        .state("no machine was started; what was built so far stays in Go's own cache")
        .next("Go 1.25 or newer, or: sudo apt-get install python3-venv")
        .next(format!("see all of {}", log.display()))
        .next("railwright lab up --kubernetes")
        .into()
}
