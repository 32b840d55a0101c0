//! An inventory of a Kubernetes cluster, and the program that is run on it.

use crate::rig::ControlPlane;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The inventory's folder, in one of its own.
pub struct Cluster<'a> {
    pub plane: &'a ControlPlane,
    folder: tempfile::TempDir,
}

impl<'a> Cluster<'a> {
    /// Of no host, as this identity.
    pub fn new(plane: &'a ControlPlane, identity: &str) -> Self {
        let cluster = Cluster {
            plane,
            folder: tempfile::tempdir().unwrap(),
        };
        cluster.spec(identity, "");
        cluster
    }

    /// An inventory of before.
    pub fn again(plane: &'a ControlPlane, folder: tempfile::TempDir) -> Self {
        Cluster { plane, folder }
    }

    /// Its folder, to be used again.
    pub fn into_folder(self) -> tempfile::TempDir {
        self.folder
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the spec says, besides the cluster's access.
    pub fn spec(&self, identity: &str, more: &str) {
        let kubeconfig = self.plane.kubeconfig(identity);
        self.file(
            "inv/cluster.yaml",
            &format!("cluster: train\n{}{more}", access(&kubeconfig)),
        );
    }

    /// The resources of the operator's own module, as its manifest has them.
    pub fn resources(&self, resources: &str) {
        let text = format!(
            "module: own\nsummary: what a story wants\nwhen: \"true\"\nresources:\n{resources}"
        );
        self.file("inv/modules/own/module.yaml", &text);
    }

    pub fn file(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Starts the program.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_railwright"));
        command
            .current_dir(self.folder.path())
            .args(words)
            .env("COLUMNS", "100")
            .env_remove("KUBECONFIG");
        command
    }

    /// Runs it and checks its exit code; its output on both channels.
    pub fn told(&self, code: i32, words: &[&str]) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().unwrap();
        let said = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{words:?}:\n{said}");
        said
    }

    /// Its output as one line: screens break where they have to.
    pub fn flat(&self, code: i32, words: &[&str]) -> String {
        flat(&self.told(code, words))
    }
}

/// The section of the spec, with the rest of it to follow on lines of its own.
fn access(kubeconfig: &Path) -> String {
    format!(
        "kubernetes: {{ name: prod, kubeconfig: {} }}\n",
        kubeconfig.display()
    )
}

/// White space is one space.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
