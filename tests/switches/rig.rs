//! The rig: a switch with SONiC, Cumulus Linux or EOS, which is a fake. Real are its OpenSSH
//! server on loopback, its Debian root in namespaces of its own, with SONiC its Redis on a unix
//! socket in there and the JSON patches. Any number of them run side by side, and each ends with
//! its value.

use crate::https::Https;
pub use crate::root::Host;
use crate::root::Root;
use crate::server::Server;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A leaf of 32 ports of 100G, `Ethernet0` to `Ethernet124`: Broadcom, the traditional buffer
/// model, SKU `Arista-7060CX-32S-C32`.
pub const TOMAHAWK: &str = "tomahawk-32";

/// A leaf of 64 ports of 800G, `Ethernet0` to `Ethernet504`: Mellanox, the dynamic buffer model,
/// SKU `ACS-SN5600`.
pub const SN5600: &str = "sn5600-64";

/// What a system's fake is made of.
struct Parts {
    /// Its folder in `tests/fakes`, and the first word of its folders on the switch.
    name: &'static str,
    /// Its commands, of which the last comes up with the switch.
    tools: &'static [&'static str],
}

const SONIC: Parts = Parts {
    name: "sonic",
    tools: &["config", "sonic-cfggen", "sonic-db-cli", "sonic-boot"],
};
const CUMULUS: Parts = Parts {
    name: "cumulus",
    tools: &["nv", "ip", "cumulus-boot"],
};
const EOS: Parts = Parts {
    name: "eos",
    tools: &["FastCli", "sudo", "eos-boot"],
};

/// Where the commands are.
const PATH: &str = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH\n";

/// A switch.
pub struct Switch {
    pub host: Host,
    pub server: Server,
    /// Its API, where it has one.
    pub api: Option<Https>,
    parts: &'static Parts,
    boots: tempfile::TempDir,
    boot: u32,
}

/// What a command on the switch came to.
#[derive(Debug)]
pub struct Outcome {
    /// Its status; none when the session was cut.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

impl Switch {
    /// A SONiC switch as a model is delivered (`tests/fakes/sonic/delivered`); none when a rig
    /// is missing here.
    pub fn start(story: &str, model: &str) -> Option<Switch> {
        Self::start_of(&SONIC, story, Some(model))
    }

    /// A switch with Cumulus Linux (`tests/fakes/cumulus/delivered`).
    pub fn start_cumulus(story: &str) -> Option<Switch> {
        Self::start_of(&CUMULUS, story, None)
    }

    /// A switch with EOS (`tests/fakes/eos/delivered`).
    pub fn start_eos(story: &str) -> Option<Switch> {
        Self::start_of(&EOS, story, None)
    }

    /// A switch as a model of a system is delivered: `sonic`, `cumulus` or `eos`.
    pub fn start_as(story: &str, system: &str, model: &str) -> Option<Switch> {
        let parts = [&SONIC, &CUMULUS, &EOS]
            .into_iter()
            .find(|parts| parts.name == system)
            .unwrap();
        Self::start_of(parts, story, Some(model))
    }

    /// A switch with eAPI (`tests/fakes/eos/eapi`).
    pub fn start_eapi(story: &str) -> Option<Switch> {
        let switch = Self::start_eos(story)?;
        let api = Some(Https::start("eos/eapi/server.py", switch.host.entry()));
        Some(Switch { api, ..switch })
    }

    /// A switch with Cumulus Linux and the REST API of NVUE (`tests/fakes/cumulus/nvue`).
    pub fn start_nvue(story: &str) -> Option<Switch> {
        let switch = Self::start_cumulus(story)?;
        let api = Some(Https::start("cumulus/nvue/server.py", switch.host.entry()));
        Some(Switch { api, ..switch })
    }

    /// Its API.
    pub fn api(&self) -> &Https {
        self.api.as_ref().unwrap()
    }

    fn start_of(parts: &'static Parts, story: &str, model: Option<&str>) -> Option<Switch> {
        let boots = tempfile::tempdir().unwrap();
        std::fs::write(boots.path().join("model"), model.unwrap_or_default()).unwrap();
        let of = repository("tests/fakes").join(parts.name);
        let home = format!("opt/{}-fake", parts.name);
        let mut copies = vec![
            (of.clone(), home.clone()),
            (
                repository("tests/fakes/switch"),
                "opt/switch-fakes".to_owned(),
            ),
            (boots.path().join("model"), format!("{home}/model")),
            (
                repository("tests/fakes/sonic/bin/reboot"),
                "usr/sbin/reboot".to_owned(),
            ),
        ];
        for tool in parts.tools {
            copies.push((of.join("bin").join(tool), format!("usr/local/bin/{tool}")));
        }
        for tool in ["systemctl", "systemd-run", "systemd-detect-virt"] {
            copies.push((
                repository("tests/fakes").join(tool),
                format!("usr/bin/{tool}"),
            ));
        }
        let copies: Vec<(&Path, &str)> = copies
            .iter()
            .map(|(from, to)| (from.as_path(), to.as_str()))
            .collect();
        let host = Host::start_from(Root::Switch, story, &copies)?;
        let server = Server::start(
            &["ed25519"],
            &["ForceCommand exec sh {folder}/enter".to_owned()],
        )?;
        std::fs::write(server.path("known_hosts"), server.line("ed25519") + "\n").unwrap();
        let mut switch = Switch {
            host,
            server,
            api: None,
            parts,
            boots,
            boot: 0,
        };
        switch.come_up();
        Some(switch)
    }

    /// /run is new, the kernel has another boot id, and SONiC starts from what is saved.
    fn come_up(&mut self) {
        self.boot += 1;
        let id = self.boots.path().join(format!("boot_id-{}", self.boot));
        let fresh = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
        std::fs::write(&id, fresh).unwrap();
        self.host
            .mount(&["-t", "tmpfs", "-o", "mode=755", "run"], "/run");
        self.host.mount(
            &["--bind", id.to_str().unwrap()],
            "/proc/sys/kernel/random/boot_id",
        );
        self.must(self.parts.tools[self.parts.tools.len() - 1]);
        let enter = format!(
            "exec {} /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
            self.host.entry()
        );
        std::fs::write(self.server.path("enter"), enter).unwrap();
    }

    /// Power off and on: sessions end, what runs ends, what was not saved is gone, the boot id is
    /// another.
    pub fn reboot(&mut self) {
        self.server.go_down();
        self.api.iter().for_each(Https::go_down);
        self.host.restart(&[]);
        self.come_up();
        self.server.listen_again();
        self.api.iter().for_each(|api| api.moved(self.host.entry()));
    }

    /// Whether somebody on the switch asked for a reboot, which is then done with
    /// [`Switch::reboot`].
    pub fn wants_reboot(&self) -> bool {
        self.host.sh("test -e /run/sonic-fake/reboot").0 == 0
    }

    /// The `ssh` of a switch or node in an inventory whose folder has [`Switch::known_hosts`] and
    /// [`Switch::identity`].
    pub fn ssh(&self) -> String {
        format!("{{ address: 127.0.0.1, port: {} }}", self.server.port)
    }

    /// Its line of known_hosts.
    pub fn known_hosts(&self) -> String {
        self.server.line("ed25519")
    }

    /// The private key that gets in as root.
    pub fn identity(&self) -> Vec<u8> {
        std::fs::read(self.server.path("id")).unwrap()
    }

    /// A script on the switch, not over SSH.
    pub fn sh(&self, script: &str) -> Outcome {
        let (code, out, err) = self.host.sh(&format!("{PATH}{script}"));
        Outcome {
            code: Some(code),
            out,
            err,
        }
    }

    /// A script that must succeed.
    pub fn must(&self, script: &str) -> String {
        let outcome = self.sh(script);
        assert_eq!(outcome.code, Some(0), "{script}\n{outcome:?}");
        outcome.out
    }

    /// A command over SSH with the client of this machine; 255 when the session is cut.
    pub fn over_ssh(&self, command: &str) -> Outcome {
        let known = self.server.path("known_hosts");
        let mut ssh = Command::new("ssh");
        ssh.args([
            "-F",
            "none",
            "-o",
            "BatchMode=yes",
            "-o",
            &format!("UserKnownHostsFile={}", known.display()),
        ]);
        ssh.arg("-i").arg(self.server.path("id")).args([
            "-p",
            &self.server.port.to_string(),
            "root@127.0.0.1",
            command,
        ]);
        let output = ssh.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// A file of the switch is written.
    pub fn write(&self, path: &str, text: &str) {
        self.must(&format!(
            "mkdir -p \"$(dirname {path})\" && cat >{path} <<'END OF FILE'\n{text}\nEND OF FILE"
        ));
    }

    /// `config apply-patch` with this patch, over SSH.
    pub fn patch(&self, operations: &Value) -> Outcome {
        self.write("/tmp/patch.json", &operations.to_string());
        self.over_ssh("config apply-patch /tmp/patch.json")
    }

    /// The whole configuration of SONiC, as `sonic-cfggen` shows it.
    pub fn config(&self) -> Value {
        serde_json::from_str(&self.must("sonic-cfggen -d --print-data")).unwrap()
    }

    /// A row as Redis has it, from a database by its number; empty where there is none.
    pub fn row(&self, database: u8, key: &str) -> BTreeMap<String, String> {
        let out = self.must(&format!(
            "redis-cli -s /run/redis/redis.sock -n {database} --json hgetall '{key}'"
        ));
        serde_json::from_str(&out).unwrap_or_default()
    }

    /// The keys of a database that a pattern of Redis meets.
    pub fn keys(&self, database: u8, pattern: &str) -> Vec<String> {
        let out = self.must(&format!(
            "redis-cli -s /run/redis/redis.sock -n {database} --raw keys '{pattern}'"
        ));
        let mut keys: Vec<String> = out
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        keys.sort();
        keys
    }

    /// Lays a fault (`tests/fakes/{sonic,cumulus,eos}/README.md` list them).
    pub fn fault(&self, name: &str, text: &str) {
        self.write(
            &format!("/etc/{}-fake/faults/{name}", self.parts.name),
            text,
        );
    }

    /// Takes a fault away.
    pub fn fix(&self, name: &str) {
        self.must(&format!(
            "rm -f /etc/{}-fake/faults/{name}",
            self.parts.name
        ));
    }

    /// A log of the fake: `flaps` (a port a line), `steps` (an operation a line), `syslog`.
    pub fn log(&self, name: &str) -> Vec<String> {
        self.sh(&format!("cat /var/log/{}-fake/{name}", self.parts.name))
            .out
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Waits for something that the fake says it does: `hanging`, `dropping`, `reboot`.
    pub fn wait_for(&self, mark: &str) {
        let since = Instant::now();
        while self
            .sh(&format!("test -e /run/{}-fake/{mark}", self.parts.name))
            .code
            != Some(0)
        {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "the switch never said `{mark}`"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends every session of the SSH server and every connection to the API, as a line that breaks
    /// does; what they started goes on.
    pub fn cut(&self) {
        self.api.iter().for_each(Https::cut);
        for session in self.server.sessions() {
            let _ = Command::new("kill")
                .args(["-9", &session.to_string()])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Waits until a log has so many lines.
    pub fn wait_for_log(&self, name: &str, lines: usize) {
        let since = Instant::now();
        while self.log(name).len() < lines {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "the log `{name}` never had {lines} lines"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs something in whose first patch every session is cut after this many steps; the patch
    /// then goes on as far as it can without anybody to speak to.
    pub fn cut_after<T>(&self, steps: u32, run: impl FnOnce() -> T) -> T {
        self.must(&format!("rm -f /run/{}-fake/dropping", self.parts.name));
        self.fault("drop-after", &steps.to_string());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                self.wait_for("dropping");
                self.cut();
                self.fix("drop-after");
            });
            run()
        })
    }
}
