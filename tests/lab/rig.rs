//! A lab of its own for a test: folder, ports, machines, an inventory that is the shipped one less
//! its GPU part, and snapshots of a state that took minutes to reach.

use crate::machine::Machine;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What the snapshot of the finished pair is called.
const KEPT: &str = "kept";

/// A lab in a folder of its own, on ports of its own, that is ended when the test ends, however it
/// ends.
pub struct Rig {
    folder: tempfile::TempDir,
    first_port: u16,
    _cores: Cores,
}

/// Cores in use. An emulated machine keeps one busy; with more machines than cores their clocks run
/// away from the world's, and what is tested then is how RDMA's timers bear that.
static IN_USE: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// A core for each machine of a lab, as long as the lab is there.
struct Cores(usize);

impl Cores {
    /// Waits until so many are free. A computer with fewer gives all that it has. Whoever needs one
    /// only lets the others ask first: the longest story begins at once.
    fn take(machines: usize) -> Self {
        if machines == 1 {
            std::thread::sleep(Duration::from_millis(500));
        }
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let desired = machines.min(all);
        let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        *FREED
            .wait_while(in_use, |in_use| *in_use + desired > all)
            .unwrap_or_else(PoisonError::into_inner) += desired;
        Cores(desired)
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        *IN_USE.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        FREED.notify_all();
    }
}

impl Rig {
    /// Where nothing runs yet, for so many machines; `range` keeps labs that run at the same time
    /// apart. Waits until there is a core for each.
    pub fn new(range: std::ops::Range<u16>, machines: usize) -> Self {
        let cores = Cores::take(machines);
        let folder = tempfile::tempdir().unwrap();
        let rig = Rig {
            folder,
            first_port: free_range(range),
            _cores: cores,
        };
        // Whatever it says of a lab that is not up, it makes the folder.
        rig.lab(&["status"]);
        if let Some(cache) = std::env::var_os("RAILWRIGHT_TEST_LAB_CACHE") {
            std::fs::create_dir_all(&cache).unwrap();
            std::os::unix::fs::symlink(cache, rig.lab_folder().join("cache")).unwrap();
        }
        rig
    }

    /// Where commands are run; the inventory lies in `inventories/lab`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the lab itself.
    pub fn lab_folder(&self) -> PathBuf {
        self.folder().join(".lab")
    }

    /// Machine N listens at this plus N, the repository at this plus 80.
    pub fn first_port(&self) -> u16 {
        self.first_port
    }

    /// `railwright` with these words, from the folder, for this lab; ready to run.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_railwright"));
        command
            .args(words)
            .current_dir(self.folder())
            .stdin(Stdio::null());
        command
            .env("XDG_STATE_HOME", self.folder().join(".state"))
            .env("RAILWRIGHT_LAB_DIR", self.lab_folder())
            .env("RAILWRIGHT_LAB_PORT", self.first_port.to_string());
        command
    }

    /// Runs the program to its end.
    pub fn railwright(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Checks the exit code too: standard output and standard error.
    pub fn told(&self, code: i32, words: &[&str]) -> (String, String) {
        let output = self.railwright(words);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(
            output.status.code(),
            Some(code),
            "railwright {words:?}\n{out}\n{err}"
        );
        (out, err)
    }

    /// Runs a command that prints JSON.
    pub fn json(&self, code: i32, words: &[&str]) -> Value {
        let (out, _) = self.told(code, words);
        serde_json::from_str(&out)
            .unwrap_or_else(|error| panic!("railwright {words:?}: {error}\n{out}"))
    }

    /// `railwright lab`.
    pub fn lab(&self, words: &[&str]) -> Output {
        self.railwright(&[&["lab"], words].concat())
    }

    /// Its standard output; it must end with 0.
    pub fn done(&self, words: &[&str]) -> String {
        self.told(0, &[&["lab"], words].concat()).0
    }

    /// What a script in a machine says, whether it succeeds or not.
    pub fn said(&self, machine: &str, script: &str) -> String {
        text(&self.lab(&["ssh", machine, "--", script]).stdout)
            .trim()
            .to_owned()
    }

    /// What both machines say to the same script.
    pub fn both_said(&self, script: &str) -> [String; 2] {
        std::thread::scope(|scope| {
            let asked = [1, 2].map(|number| {
                scope.spawn(move || {
                    Machine::new(self.shell(number), ())
                        .run(script)
                        .1
                        .trim()
                        .to_owned()
                })
            });
            asked.map(|said| said.join().unwrap())
        })
    }

    /// Words that feed `sh -s` in a machine, all over one connection: making one takes seconds
    /// under emulation.
    pub fn shell(&self, number: u16) -> Vec<String> {
        let port = (self.first_port + number).to_string();
        let (identity, keys) = (
            self.lab_folder().join("id"),
            self.lab_folder().join("known_hosts"),
        );
        let (keys, master) = (
            format!("UserKnownHostsFile={}", keys.display()),
            format!("ControlPath={}", self.master(number).display()),
        );
        let options = [
            "-o",
            &keys,
            "-o",
            &master,
            "-o",
            "ControlMaster=auto",
            "-o",
            "ControlPersist=120",
            "-o",
            "ServerAliveInterval=5",
        ];
        let quiet = [
            "-o",
            "ConnectTimeout=20",
            "-o",
            "BatchMode=yes",
            "-o",
            "LogLevel=ERROR",
            "root@127.0.0.1",
            "sh",
            "-s",
        ];
        let first = [
            "ssh",
            "-F",
            "/dev/null",
            "-i",
            &identity.to_string_lossy(),
            "-p",
            &port,
        ]
        .map(str::to_owned);
        first
            .into_iter()
            .chain(options.into_iter().chain(quiet).map(str::to_owned))
            .collect()
    }

    fn master(&self, number: u16) -> PathBuf {
        self.folder().join(format!("master{number}"))
    }

    /// Ends the connections that `shell` keeps: a machine that is set back knows nothing of them.
    pub fn hang_up(&self) {
        for number in [1, 2] {
            let path = format!("ControlPath={}", self.master(number).display());
            let _ = Command::new("ssh")
                .args(["-o", &path, "-O", "exit", "root@127.0.0.1"])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// The lab's inventory as it is shipped, with this lab's ports and without the GPU: its part
    /// builds a kernel module on the machines, which takes minutes under emulation.
    pub fn inventory(&self) -> String {
        let shipped = std::fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories/lab/cluster.yaml"),
        )
        .unwrap();
        let mut inside_gpu = false;
        let kept = shipped.lines().filter(|line| {
            inside_gpu = line.starts_with("    gpu:") || inside_gpu && line.starts_with("     ");
            !inside_gpu
        });
        let text: String = kept.flat_map(|line| [line, "\n"]).collect();
        assert!(!text.contains("gpu") && text.contains("node2"), "{text}");
        let port = |offset: u16| (self.first_port + offset).to_string();
        text.replace("27201", &port(1))
            .replace("27202", &port(2))
            .replace("27280", &port(80))
    }

    /// Writes the inventory.
    pub fn write_inventory(&self, text: &str) {
        let folder = self.folder().join("inventories/lab");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("cluster.yaml"), text).unwrap();
    }

    /// Keeps machines and what railwright remembers of them.
    pub fn keep(&self) {
        self.both_monitors(&format!("savevm {KEPT}"));
        let state = self.folder().join("inventories/lab/.railwright");
        copied(&state, &self.folder().join("kept-state"));
    }

    /// Goes back to what was kept. A snapshot's clock stands still, so it is set.
    pub fn go_back(&self) {
        self.hang_up();
        self.both_monitors(&format!("loadvm {KEPT}"));
        copied(
            &self.folder().join("kept-state"),
            &self.folder().join("inventories/lab/.railwright"),
        );
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let set = self.both_said(&format!("date -u -s @{now} >/dev/null && echo set"));
        assert_eq!(set, ["set", "set"]);
    }

    fn both_monitors(&self, line: &str) {
        for machine in ["node1", "node2"] {
            self.monitor(machine, line);
        }
    }

    /// The folder of a machine's QEMU.
    pub fn machine_folder(&self, machine: &str) -> PathBuf {
        self.lab_folder().join("machines").join(machine)
    }

    /// A line of a machine's monitor that must say nothing.
    pub fn monitor(&self, machine: &str, line: &str) {
        assert_eq!(monitor(&self.machine_folder(machine), line), "", "{line}");
    }
}

/// What a machine is asked when a story on it failed.
const LOOK: &str = "hostname; free -m; ip -s link show; ip neigh; ss -tn; systemctl --failed \
                    --no-legend; dmesg | tail -n 20";

impl Drop for Rig {
    fn drop(&mut self) {
        // The machines go with the rig, and with them whatever could tell why a story failed.
        if std::thread::panicking() {
            ["node1", "node2"]
                .iter()
                .for_each(|machine| eprintln!("{}\n", self.said(machine, LOOK)));
        }
        self.hang_up();
        self.lab(&["down"]);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with its plain files, in place of what was there.
pub fn copied(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let done = Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status()
        .unwrap();
    assert!(done.success());
}

/// A line of QEMU's human monitor, through its control socket; what it says is an error, as a rule.
pub fn monitor(machine: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(machine.join("qmp.sock")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(300)))
        .unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut answer = |request: Option<Value>| {
        if let Some(request) = request {
            writeln!(stream, "{request}").unwrap();
        }
        loop {
            let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            assert!(message.get("error").is_none(), "{message}");
            if let Some(answer) = message.get("return").or(message.get("QMP")) {
                return answer.clone();
            }
        }
    };
    answer(None);
    answer(Some(json!({ "execute": "qmp_capabilities" })));
    let said = answer(Some(
        json!({ "execute": "human-monitor-command", "arguments": { "command-line": line } }),
    ));
    said.as_str().unwrap_or_default().trim().to_owned()
}

/// The first port of a range in which those that the tests need are free just now.
fn free_range(range: std::ops::Range<u16>) -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    range
        .step_by(100)
        .find(|first| {
            [1, 2, 70, 80, 81, 82, 83, 85, 86]
                .iter()
                .all(|offset| free(first + offset))
        })
        .expect("some range is free")
}

/// Says why the rig is not there.
pub fn missing() -> Option<&'static str> {
    let here = |name: &str| {
        ["/usr/bin", "/usr/sbin", "/bin", "/usr/local/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    let missing = [
        "qemu-system-x86_64",
        "qemu-img",
        "mmdebstrap",
        "grub-mkimage",
        "apt-ftparchive",
        "busybox",
    ]
    .into_iter()
    .find(|name| !here(name));
    if missing.is_some() && std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1")
    {
        panic!(
            "rig `lab` is required and {} is missing; `railwright lab up` names what to install",
            missing.unwrap_or_default()
        );
    }
    missing
}
