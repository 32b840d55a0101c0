//! A real control plane for a test: etcd, the API server, the controllers and the scheduler, with
//! kwok for kubelets. Each test has its own, ready in a few seconds, because nodes and a server
//! that is down cannot be shared.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// What `kubectl wait` waits for of a definition of a kind. One that is a moment old has no
/// conditions, and `--for=condition` takes that for an error.
pub const ESTABLISHED: &str =
    r#"--for=jsonpath={.status.conditions[?(@.type=="Established")].status}=True"#;

/// What is running, until it is dropped.
pub struct ControlPlane {
    programs: PathBuf,
    work: PathBuf,
    keeper: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    _place: Place,
}

/// Control planes that run in this process. Each takes half a GiB, and beyond two they only wait
/// for each other's cores.
static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// One of the places for a control plane.
struct Place;

impl Place {
    fn take() -> Self {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        *ENDED
            .wait_while(running, |running| *running >= 2)
            .unwrap_or_else(PoisonError::into_inner) += 1;
        Place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

fn script(words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubernetes/controlplane.sh"))
        .args(words);
    command
}

/// The folder of the programs; the reason where it is not there and may be missing.
fn programs() -> Result<PathBuf, String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/rigs/controlplane");
    let required = std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1");
    if required {
        assert!(
            script(&["build", folder]).status().unwrap().success(),
            "rig `control plane` could not be built"
        );
    }
    let found = script(&["find", folder]).output().unwrap();
    if !found.status.success() {
        return Err(
            "`sh tests/kubernetes/controlplane.sh build target/rigs/controlplane` once (needs Go \
             1.25 or python3-venv)"
                .to_owned(),
        );
    }
    if Command::new("openssl").arg("version").output().is_err() {
        assert!(!required, "rig `control plane` needs openssl");
        return Err("openssl".to_owned());
    }
    Ok(PathBuf::from(
        String::from_utf8(found.stdout).unwrap().trim_end(),
    ))
}

/// The first of four ports that are free: above those that the kernel gives to outgoing
/// connections, and apart from those of other test processes.
fn free_ports() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 88).unwrap() * 50;
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let next = || 61_000 + (own + 4 * TAKEN.fetch_add(1, Ordering::Relaxed)) % 4_400;
    std::iter::repeat_with(next)
        .find(|first| (0..4).all(|n| is_free(first + n)))
        .unwrap()
}

impl ControlPlane {
    /// A control plane that answers; `None`, and a line that says so, where the rig is missing.
    pub fn start() -> Option<Self> {
        Self::started(None)
    }

    /// A control plane with programs of this folder in the place of those that are run in pods.
    #[allow(dead_code, reason = "the file is part of several test programs")]
    pub fn with_fakes(folder: &Path) -> Option<Self> {
        Self::started(Some(folder))
    }

    fn started(fakes: Option<&Path>) -> Option<Self> {
        let programs = match programs() {
            Ok(programs) => programs,
            Err(missing) => {
                eprintln!(
                    "skipped: rig `control plane` needs {missing}; RAILWRIGHT_REQUIRE_RIGS=1 makes \
                     this a failure"
                );
                return None;
            }
        };
        let place = Place::take();
        let port = free_ports().to_string();
        let mut words = vec!["run", programs.to_str().unwrap(), &port];
        words.extend(fakes.map(|folder| folder.to_str().unwrap()));
        let mut keeper = script(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(keeper.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let work = line
            .strip_prefix("ready ")
            .expect("the control plane did not start")
            .trim_end()
            .into();
        Some(ControlPlane {
            programs,
            work,
            orders: keeper.stdin.take(),
            keeper,
            answers,
            _place: place,
        })
    }

    /// The kubeconfig of `admin` (who may do everything), `reader` (who may read everything) or
    /// `nobody` (who may do nothing).
    pub fn kubeconfig(&self, identity: &str) -> PathBuf {
        self.work.join(format!("{identity}.kubeconfig"))
    }

    /// kubectl as the admin, not started yet.
    pub fn kubectl_command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join("kubectl"));
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig("admin"))
            .args(words)
            .env("HOME", &self.work);
        command
    }

    /// One of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// kubectl as this identity, with this input, however it ends.
    pub fn kubectl_as(&self, identity: &str, words: &[&str], input: &str) -> Output {
        let mut child = Command::new(self.programs.join("kubectl"))
            .arg("--kubeconfig")
            .arg(self.kubeconfig(identity))
            .args(words)
            .env("HOME", &self.work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // one that ends before it has read everything says why itself
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// What kubectl prints for the admin; it must end well.
    pub fn kubectl(&self, words: &[&str]) -> String {
        self.kubectl_with(words, "")
    }

    /// Applies documents as the admin.
    pub fn apply(&self, documents: &str) {
        self.kubectl_with(&["apply", "-f", "-"], documents);
    }

    fn kubectl_with(&self, words: &[&str], input: &str) -> String {
        let output = self.kubectl_as("admin", words, input);
        assert!(
            output.status.success(),
            "kubectl {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Nodes that are there and Ready, each with this much to give besides processors, memory and
    /// pods.
    pub fn nodes(&self, names: &[&str], allocatable: &[(&str, &str)]) {
        let mut gives = json!({ "cpu": "64", "memory": "1Ti", "pods": "110" });
        for (resource, amount) in allocatable {
            gives[resource] = json!(amount);
        }
        let node = |name: &&str| {
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
                    "status": { "allocatable": gives, "capacity": gives } })
        };
        let nodes: Vec<Value> = names.iter().map(node).collect();
        // not `apply`, which leaves `status` out
        self.kubectl_with(
            &["create", "-f", "-"],
            &json!({ "apiVersion": "v1", "kind": "List", "items": nodes }).to_string(),
        );
        self.kubectl(
            &[
                &["wait", "node", "--for=condition=Ready", "--timeout=120s"],
                names,
            ]
            .concat(),
        );
    }

    /// Ends the API server, as a power cut would; everything else goes on.
    pub fn stop_api_server(&mut self) {
        self.order("stop");
    }

    /// Brings it back, on its old port; returns when it answers.
    pub fn start_api_server(&mut self) {
        self.order("start");
    }

    fn order(&mut self, word: &str) {
        writeln!(self.orders.as_ref().unwrap(), "{word}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{word}: done\n"));
    }

    /// The process ids of everything that runs.
    pub fn processes(&self) -> Vec<u32> {
        let files = std::fs::read_dir(&self.work)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let pids =
            files.filter(|path| path.extension().is_some_and(|extension| extension == "pid"));
        pids.map(|path| {
            std::fs::read_to_string(path)
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        })
        .collect()
    }

    /// Where logs, kubeconfigs and the store are.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// The last lines of every log.
    fn logs(&self) -> String {
        let tail = Command::new("sh")
            .args(["-c", "tail -n 15 ./*.log"])
            .current_dir(&self.work)
            .output();
        tail.map(|tail| String::from_utf8_lossy(&tail.stdout).into_owned())
            .unwrap_or_default()
    }
}

/// Its keeper ends everything when its orders end, so this also holds for a test process that is
/// killed. The logs of a test that failed are shown with it.
impl Drop for ControlPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        drop(self.orders.take());
        let _ = self.keeper.wait();
    }
}
