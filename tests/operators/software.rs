//! The operators that are built, and a process of one.

use crate::rig::ControlPlane;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// One release of an operator: its program, and the manifests that its project ships.
pub struct Software {
    folder: PathBuf,
}

impl Software {
    /// `None`, and a line that says so, where the rig is missing and may be.
    pub fn find(name: &str) -> Option<Self> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/rigs/operators");
        let script = |word: &str| {
            let mut command = Command::new("sh");
            command.args([
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operators/build.sh"),
                word,
                folder,
                name,
            ]);
            command
        };
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let required = std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1");
        if required {
            assert!(
                is_root,
                "rig `operators` needs root, for networks of its own"
            );
            assert!(
                script("build").status().unwrap().success(),
                "rig `operators`: {name} could not be built"
            );
        }
        let found = script("find").output().unwrap();
        if !found.status.success() || !is_root {
            eprintln!(
                "skipped: rig `operators` needs root, and `sh tests/operators/build.sh build \
                 target/rigs/operators {name}` once (Go 1.25 or python3-venv); \
                 RAILWRIGHT_REQUIRE_RIGS=1 makes this a failure"
            );
            return None;
        }
        Some(Software {
            folder: String::from_utf8(found.stdout).unwrap().trim_end().into(),
        })
    }

    /// A file or a folder of what its project ships.
    pub fn shipped(&self, path: &str) -> String {
        self.folder.join(path).to_str().unwrap().to_owned()
    }

    /// Its program, not started yet. It ends with the thread that starts it, also when this process
    /// is killed.
    pub fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(self.folder.join("operator"))
            .stdin(Stdio::null());
        command
    }

    /// Its program on this control plane, as the service account by which its project gives it
    /// rights: `flag` takes the kubeconfig. As in a pod, /tmp is its own, and what its project
    /// ships lies where it runs. Its log lies beside those of the control plane, which are shown
    /// when a test fails.
    pub fn operate(
        &self,
        plane: &ControlPlane,
        (namespace, account): (&str, &str),
        flag: &str,
        more: &[&str],
    ) -> Operator {
        let token = plane.kubectl(&["-n", namespace, "create", "token", account]);
        let own = std::fs::read_to_string(plane.kubeconfig("admin")).unwrap();
        let (before, after) = own.split_once("token: \"").unwrap();
        let tmp = tempfile::tempdir().unwrap();
        let kubeconfig = [
            before,
            "token: \"",
            &token,
            &after[after.find('"').unwrap()..],
        ]
        .concat();
        std::fs::write(tmp.path().join("kubeconfig"), kubeconfig).unwrap();
        let log = File::create(plane.work().join(format!("{account}.log"))).unwrap();
        let mut command = Command::new("setpriv");
        // The program is opened first: it may lie below /tmp.
        let pod =
            "exec 3<\"$1\" && mount --bind \"$2\" /tmp && shift 2 && exec /proc/self/fd/3 \"$@\"";
        command.args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            pod,
            "sh",
        ]);
        command
            .arg(self.folder.join("operator"))
            .arg(tmp.path())
            .args([flag, "/tmp/kubeconfig"])
            .args(more);
        command
            .current_dir(&self.folder)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null());
        Operator {
            _process: Process(
                command
                    .stdout(log.try_clone().unwrap())
                    .stderr(log)
                    .spawn()
                    .unwrap(),
            ),
            tmp,
        }
    }
}

/// An operator that runs, until it is dropped.
pub struct Operator {
    _process: Process,
    /// What it sees as /tmp.
    pub tmp: tempfile::TempDir,
}

/// A process that is ended with the value.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
