//! The programs of the cluster, built once from pinned Go modules: Debian has none of them.

use crate::base::{Diagnostic, Digest, text};
use crate::lab::event::{Event, Listener, Step, timed};
use crate::lab::folder::{Folder, trouble};
use crate::lab::{Result, assets};
use crate::system::files;
use crate::system::process::{self, Ending, Program};
use std::path::{Path, PathBuf};

/// Where they are.
#[derive(Debug, Clone)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Where they lie in a lab's cache, built or not.
    pub fn of(folder: &Folder) -> Self {
        Programs { folder: folder.cache().join("kubernetes/programs") }
    }

    /// The programs, built where the cache has none of these versions.
    pub fn ensure(folder: &Folder, listener: Listener<'_>) -> Result<Self> {
        let (programs, key) = (Programs::of(folder), key());
        if files::read_limited(&programs.folder.join("key"), 200).is_ok_and(|text| text == key.as_str().as_bytes()) {
            return Ok(programs);
        }
        timed(listener, Step::Kubernetes, || build(folder, &key, listener))?;
        Ok(programs)
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
    pub fn kubectl(&self, folder: &Folder) -> Program {
        self.program("kubectl").argument("--kubeconfig").argument(folder.kubeconfig().to_string_lossy())
    }
}

/// Names the versions of the modules, and where built programs are taken from.
fn key() -> Digest {
    let mut text = process::variable("KUBEBUILDER_ASSETS").unwrap_or_default();
    for (path, bytes) in assets::files_below("kubernetes/modules") {
        text.push_str(&format!("\n{path} {}", Digest::of_bytes(bytes)));
    }
    Digest::of_bytes(text.as_bytes())
}

fn build(folder: &Folder, key: &Digest, listener: Listener<'_>) -> Result<()> {
    let cache = folder.cache().join("kubernetes");
    let recipe = cache.join("recipe");
    assets::write_out(&recipe)?;
    let log = folder.path("kubernetes.log");
    let program = Program::new("sh").argument(recipe.join("kubernetes/build.sh").to_string_lossy()).argument(cache.to_string_lossy());
    let program = program.argument(key.as_str());
    let ending = program
        .run_logged(&log, Step::Kubernetes.limit(), &mut |line| {
            if let Some(part) = line.strip_prefix("step ") {
                listener(Event::Note(text::one_line(part, 100)));
            }
        })
        .map_err(|error| trouble(&log, &error))?;
    if ending == Ending::Success { Ok(()) } else { Err(failed(ending, &log)) }
}

fn failed(ending: Ending, log: &Path) -> Box<Diagnostic> {
    let tail = files::tail(log, 4000).unwrap_or_default();
    let last: Vec<&str> = tail.lines().rev().take(6).collect();
    let last = last.into_iter().rev().map(|line| format!("  {}", text::one_line(line, 160))).collect::<Vec<_>>().join("\n");
    let how = if ending == Ending::TimedOut { "took more than ten times its usual time" } else { "failed" };
    Diagnostic::error("RW0911", format!("building Kubernetes {how}; the end of its log:\n{last}"))
        .effect("the control plane, kubelet and the device plugin are built from their Go modules, by Go's own module proxy (GOPROXY)")
        .state("no machine was started; what was built so far stays in Go's own cache")
        .next("Go 1.25 or newer, or: sudo apt-get install python3-venv")
        .next(format!("see all of {}", log.display()))
        .next("railwright lab up --kubernetes")
        .into()
}
