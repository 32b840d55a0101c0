//! One machine for the stories of bad days: an inventory of it, a door that stays open when SSH is
//! cut, and a power switch.

use crate::machine::Machine;
use crate::rig::{Rig, copied};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

/// The machine's name, in the lab and in the inventory.
const NODE: &str = "node1";
/// The inventory's folder, from where commands are run.
pub const INV: &str = "night";
/// The name of what is kept of the machine before any story.
pub const GROUND: &str = "ground";
/// Where the door is on this computer, from the lab's first port on.
const DOOR: u16 = 70;

/// One machine and one inventory of it.
pub struct Night<'a> {
    rig: &'a Rig,
}

/// `railwright`, while it runs or when it has ended.
pub struct Run {
    child: Child,
    said: PathBuf,
}

impl<'a> Night<'a> {
    /// Starts the machine. Its SSH server listens at a second port too: that is the door, which no
    /// story shuts.
    pub fn new(rig: &'a Rig) -> Self {
        rig.done(&["up", "1"]);
        rig.said(
            NODE,
            "printf 'Port 22\\nPort 2222\\n' >/etc/ssh/sshd_config.d/door.conf; systemctl restart \
             ssh",
        );
        let night = Night { rig };
        night.open_door();
        let (lab, ssh, repository) = (
            rig.lab_folder(),
            rig.first_port() + 1,
            rig.first_port() + 80,
        );
        std::fs::create_dir_all(rig.folder().join(INV).join("modules/story")).unwrap();
        let spec = format!(
            "cluster: night\n\
             ssh: {{ user: root, host_keys: {0}/known_hosts, identities: [{0}/id] }}\n\
             nodes: [{{ name: {NODE}, os: debian-12, ssh: {{ address: 127.0.0.1, port: {ssh} }} \
             }}]\n\
             repositories: [{{ name: lab, url: http://10.0.2.2:{repository}/, suite: ./, key: \
             {0}/repository.asc }}]\n\
             rollout: {{ canary: 1, max_unavailable: 1, max_disruption: reboot }}\n",
            lab.display()
        );
        std::fs::write(rig.folder().join(INV).join("cluster.yaml"), spec).unwrap();
        night
    }

    fn open_door(&self) {
        self.rig.monitor(
            NODE,
            &format!(
                "hostfwd_add management tcp:127.0.0.1:{}-:2222",
                self.rig.first_port() + DOOR
            ),
        );
    }

    /// What the spec declares besides the package repository and a packet filter: the resources of
    /// a module, indented as in a list.
    pub fn resource(&self, resources: &str) {
        let text = format!(
            "module: story\n\
             summary: what a bad day interrupts\n\
             after: [package-repositories]\n\
             resources:\n  - id: filter\n    package: {{ name: nftables }}\n\
             {resources}"
        );
        std::fs::write(
            self.rig
                .folder()
                .join(INV)
                .join("modules/story/module.yaml"),
            text,
        )
        .unwrap();
    }

    /// Runs the program and checks its exit code; all of its output.
    pub fn told(&self, code: i32, words: &[&str]) -> String {
        let (out, err) = self.rig.told(code, words);
        err + &out
    }

    /// Nothing is left to do.
    pub fn is_true(&self) {
        self.told(0, &["plan", INV, "--detailed-exitcode"]);
    }

    /// Starts the program.
    pub fn begin(&self, words: &[&str]) -> Run {
        let said = self.rig.folder().join("said");
        let file = File::create(&said).unwrap();
        let child = self
            .rig
            .command(words)
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Run { child, said }
    }

    /// Where the program remembers.
    fn state(&self) -> PathBuf {
        self.rig.folder().join(INV).join(".railwright")
    }

    /// The folder of the newest run that has begun to write.
    pub fn newest_run(&self) -> Option<PathBuf> {
        let runs = std::fs::read_dir(self.state().join("runs"))
            .ok()?
            .map(|run| run.unwrap().path());
        runs.filter(|run| run.join("journal.jsonl").exists()).max()
    }

    /// The journal of the newest run, without a torn last line.
    pub fn journal(&self) -> Vec<Value> {
        let Some(run) = self.newest_run() else {
            return Vec::new();
        };
        let text = std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
        text.lines()
            .map_while(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// How many records of the newest run are of this kind and hold these words.
    pub fn records(&self, kind: &str, words: &str) -> usize {
        let is = |record: &&Value| {
            record["entry"]["record"] == kind && record["entry"].to_string().contains(words)
        };
        self.journal().iter().filter(is).count()
    }

    /// The machine behind its door.
    pub fn machine(&self) -> Machine {
        let mut words = self.rig.shell(1);
        let at = words.iter().position(|word| word == "-p").unwrap() + 1;
        let alias = format!("HostKeyAlias=[127.0.0.1]:{}", words[at]);
        words[at] = (self.rig.first_port() + DOOR).to_string();
        words.splice(at + 1..at + 1, ["-o".to_owned(), alias]);
        Machine::new(words, ())
    }

    /// What a script says in the machine, through the door.
    pub fn said(&self, script: &str) -> String {
        self.machine().run(script).1.trim().to_owned()
    }

    /// Waits until SSH answers again at its own port.
    pub fn ssh_answers(&self) {
        until("SSH to answer again", || {
            self.rig.said(NODE, "echo yes") == "yes"
        });
    }

    /// Waits in the machine, a while and without many connections: true when a test holds there.
    pub fn holds(&self, test: &str) -> bool {
        self.said(&format!(
            "i=0; until {test}; do i=$((i+1)); [ $i -lt 20 ] || exit 1; sleep 0.5; done \
             2>/dev/null; echo yes"
        )) == "yes"
    }

    /// Keeps the machine and what the program remembers under a name.
    pub fn keep(&self, name: &str) {
        self.rig.monitor(NODE, &format!("savevm {name}"));
        copied(&self.state(), &self.rig.folder().join(name));
    }

    /// Goes back to what was kept. A snapshot's clock stands still, so it is set.
    pub fn go_back(&self, name: &str) {
        self.rig.hang_up();
        self.rig.monitor(NODE, &format!("loadvm {name}"));
        copied(&self.rig.folder().join(name), &self.state());
        self.set_clock();
    }

    fn set_clock(&self) {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        until("the machine to answer at its door", || {
            self.said(&format!("date -u -s @{now} >/dev/null && echo set")) == "set"
        });
    }

    /// Takes the power away: what the machine had not written to its disk is lost. Its QEMU's
    /// command line.
    pub fn off(&self) -> Vec<String> {
        self.rig.hang_up();
        let record =
            std::fs::read_to_string(self.rig.machine_folder(NODE).join("qemu.pid")).unwrap();
        let process = PathBuf::from("/proc").join(record.split(' ').next().unwrap());
        let words = std::fs::read_to_string(process.join("cmdline")).unwrap();
        let ended = Command::new("kill")
            .arg(record.split(' ').next().unwrap())
            .status()
            .unwrap();
        assert!(ended.success());
        let gone = || {
            std::fs::read_to_string(process.join("stat")).map_or(true, |stat| stat.contains(") Z "))
        };
        until("the machine's QEMU to end", gone);
        words.split_terminator('\0').map(str::to_owned).collect()
    }

    /// Gives it back: the machine boots from its disk. The lab finds it by its record, and ends it
    /// with the others.
    pub fn on(&self, words: &[String]) {
        let folder = self.rig.machine_folder(NODE);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "\"$@\" </dev/null >qemu.log 2>&1 & echo $!", "sh"])
            .args(words)
            .current_dir(&folder);
        let process = String::from_utf8(shell.output().unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned();
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let began = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .nth(19)
            .unwrap()
            .to_owned();
        std::fs::write(folder.join("qemu.pid"), format!("{process} {began}\n")).unwrap();
        until("the machine's monitor", || {
            std::os::unix::net::UnixStream::connect(folder.join("qmp.sock")).is_ok()
        });
        self.open_door();
        self.set_clock();
    }
}

impl Run {
    /// All that it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    /// It has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits while it runs until something holds; it must not end before.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        until(what, || {
            let over = self.is_over();
            holds() || {
                assert!(!over, "it ended before {what}:\n{}", self.said());
                false
            }
        });
    }

    /// Waits until it has said these words.
    pub fn until_said(&mut self, words: &str) {
        let said = self.said.clone();
        self.until(words, || {
            std::fs::read_to_string(&said).is_ok_and(|said| said.contains(words))
        });
    }

    /// Ends it without a word.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end and checks its exit code; all of its output.
    pub fn ends(mut self, code: i32) -> String {
        until(&format!("exit code {code}"), || self.is_over());
        let said = self.said();
        assert_eq!(self.child.wait().unwrap().code(), Some(code), "{said}");
        said
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again, for far longer than it takes.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it was waited for in vain: {what}");
}

/// Words that must all have been said.
pub fn all_of(said: &str, words: &[&str]) {
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words
        .iter()
        .for_each(|word| assert!(flat.contains(word), "`{word}` was not said:\n{said}"));
}
