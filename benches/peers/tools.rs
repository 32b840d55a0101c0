//! The tools that are compared, each with its own form of the same resources and ready to run
//! against the first of the hosts.

use crate::hosts::Hosts;
use railwright_resource::{Read, program};
use railwright_session::SessionRequest;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Hosts at a time: more than there are, for everybody but Ansible, which is given what the
/// comparison is known for.
const AT_ONCE: &str = "64";
const FORKS: &str = "50";

/// From PyPI. The package `ansible` is ansible-core and the collections; `sysctl` is in one of
/// them.
const PEERS: [&str; 2] = ["ansible==12.3.0", "pyinfra==3.10.0"];

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// russh as it comes, with the same program of reads.
    Bare,
    /// `railwright plan`.
    Railwright,
    /// The OpenSSH client, under xargs, running `true`.
    OpenSsh,
    /// `pyinfra --dry`.
    Pyinfra,
    /// `ansible-playbook --check --diff`.
    Ansible,
}

impl Tool {
    /// In the order of the table.
    pub const ALL: [Tool; 5] = [
        Tool::Railwright,
        Tool::Bare,
        Tool::OpenSsh,
        Tool::Pyinfra,
        Tool::Ansible,
    ];

    /// As it stands in the table.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Bare => "bare russh, the same program",
            Tool::Railwright => "railwright plan",
            Tool::OpenSsh => "xargs ssh true",
            Tool::Pyinfra => "pyinfra --dry",
            Tool::Ansible => "ansible-playbook --check --diff",
        }
    }

    /// True for one that takes minutes.
    pub fn is_slow(self) -> bool {
        matches!(self, Tool::Pyinfra | Tool::Ansible)
    }

    /// The command against the first `count` hosts, whose files were written by `lay_out`.
    pub fn command(self, hosts: &Hosts, count: usize) -> Command {
        let at = |name: &str| hosts.text(name);
        match self {
            Tool::Bare => {
                let mut command =
                    Command::new(std::env::current_exe().expect("this program has a path"));
                command.args(["--bare".to_owned(), count.to_string(), at("")]);
                command
            }
            Tool::Railwright => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_railwright"));
                command.args(["plan".to_owned(), at(&format!("inventory-{count}"))]);
                command.env_remove("SSH_AUTH_SOCK");
                command
            }
            Tool::OpenSsh => {
                let mut command = Command::new("xargs");
                command.args([
                    "-a",
                    &at(&format!("addresses-{count}")),
                    "-P",
                    AT_ONCE,
                    "-I",
                    "{}",
                    "ssh",
                    "-F",
                    "none",
                    "-i",
                    &at("id"),
                ]);
                command.args([
                    "-o",
                    &format!("UserKnownHostsFile={}", at("known_hosts")),
                    "-o",
                    "IdentitiesOnly=yes",
                    "-o",
                    "BatchMode=yes",
                ]);
                command.args(["-p", &hosts.port().to_string(), "root@{}", "true"]);
                command
            }
            Tool::Pyinfra => {
                let mut command = Command::new(venv().join("bin/pyinfra"));
                command.args([
                    "--dry",
                    "--parallel",
                    AT_ONCE,
                    &at(&format!("pyinfra-{count}.py")),
                    &at("deploy.py"),
                ]);
                command
                    .env("HOME", hosts.folder.path())
                    .current_dir(hosts.folder.path())
                    .env_remove("SSH_AUTH_SOCK");
                command
            }
            Tool::Ansible => ansible(hosts, count),
        }
    }

    /// Lets go what the tool left running, outside of the measured time.
    pub fn tidy(self, hosts: &Hosts) {
        if self == Tool::Ansible {
            for socket in fs::read_dir(hosts.path("control"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let path = format!("ControlPath={}", socket.path().display());
                let _ = Command::new("ssh")
                    .args(["-F", "none", "-o", &path, "-O", "exit", "any"])
                    .stdin(Stdio::null())
                    .output();
            }
        }
    }
}

/// With pipelining, so that no file is copied, and with ControlPersist: each run begins without a
/// connection.
fn ansible(hosts: &Hosts, count: usize) -> Command {
    let mut command = Command::new(venv().join("bin/ansible-playbook"));
    command.args([
        "--check",
        "--diff",
        "-i",
        &hosts.text(&format!("ansible-{count}.json")),
        &hosts.text("playbook.json"),
    ]);
    let ssh = format!(
        "-F none -o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile={}",
        hosts.text("known_hosts")
    );
    command
        .env("HOME", hosts.folder.path())
        .env_remove("SSH_AUTH_SOCK")
        .env("ANSIBLE_CONFIG", hosts.text("ansible.cfg"));
    command
        .env("ANSIBLE_PIPELINING", "1")
        .env("ANSIBLE_FORKS", FORKS)
        .env("ANSIBLE_SSH_ARGS", ssh);
    command
        .env("ANSIBLE_SSH_CONTROL_PATH_DIR", hosts.text("control"))
        .env("ANSIBLE_NOCOLOR", "1");
    // Ansible refuses to start in another character set.
    command.env("LC_ALL", "C.UTF-8");
    command
}

fn venv() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers-venv")
}

/// Installs the peers, once; says why they cannot be had.
pub fn install() -> Result<(), String> {
    let marker = venv().join(format!("installed-{}", PEERS.join("-")));
    if marker.exists() {
        return Ok(());
    }
    let run = |program: &Path, arguments: &[&str]| -> Result<(), String> {
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let words = String::from_utf8_lossy(&output.stderr)
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("{} {arguments:?}: {words}", program.display()))
        }
    };
    run(
        Path::new("python3"),
        &["-m", "venv", &venv().display().to_string()],
    )?;
    run(
        &venv().join("bin/pip"),
        &["install", "--quiet", PEERS[0], PEERS[1]],
    )?;
    fs::write(marker, "").map_err(|e| e.to_string())
}

/// What each tool calls its version.
pub fn version(tool: Tool) -> String {
    let first = |program: PathBuf, word: &str| {
        let output = Command::new(&program)
            .arg(word)
            .stdin(Stdio::null())
            .env("LC_ALL", "C.UTF-8")
            .output();
        let text = output
            .map(|o| [o.stdout, o.stderr].concat())
            .unwrap_or_default();
        String::from_utf8_lossy(&text)
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    match tool {
        Tool::Bare => "russh 0.65.1, its own choice of algorithms".to_owned(),
        Tool::Railwright => format!("railwright {}", env!("CARGO_PKG_VERSION")),
        Tool::OpenSsh => first("ssh".into(), "-V"),
        Tool::Pyinfra => first(venv().join("bin/pyinfra"), "--version"),
        Tool::Ansible => first(venv().join("bin/ansible-playbook"), "--version"),
    }
}

/// Writes every tool's files for the first `count` hosts.
pub fn lay_out(hosts: &Hosts, count: usize) {
    let inventory = hosts.inventory(count);
    let addresses: Vec<&str> = hosts
        .names
        .iter()
        .take(count)
        .map(|(_, address)| address.as_str())
        .collect();
    hosts.write(
        &format!("addresses-{count}"),
        &(addresses.join("\n") + "\n"),
    );
    hosts.write("program", &the_program(&inventory));
    let (port, key, known) = (hosts.port(), hosts.text("id"), hosts.text("known_hosts"));
    let of_ansible = |(name, address): &(String, String)| {
        let of = json!({ "ansible_host": address, "ansible_port": port, "ansible_user": "root", "ansible_ssh_private_key_file": key,
            "ansible_python_interpreter": "/usr/bin/python3" });
        (name.clone(), of)
    };
    let all: serde_json::Map<String, Value> =
        hosts.names.iter().take(count).map(of_ansible).collect();
    hosts.write(
        &format!("ansible-{count}.json"),
        &json!({ "all": { "hosts": all } }).to_string(),
    );
    let of_pyinfra = |address: &&str| {
        format!(
            "    (\"{address}\", {{\"ssh_port\": {port}, \"ssh_user\": \"root\", \"ssh_key\": \
             \"{key}\", \"ssh_known_hosts_file\": \"{known}\", \"ssh_strict_host_key_checking\": \
             \"yes\", \"ssh_allow_agent\": False, \"ssh_look_for_keys\": False}}),\n"
        )
    };
    let lines: String = addresses.iter().map(of_pyinfra).collect();
    hosts.write(
        &format!("pyinfra-{count}.py"),
        &format!("hosts = [\n{lines}]\n"),
    );
    hosts.write("playbook.json", &playbook(hosts).to_string());
    hosts.write("deploy.py", DEPLOY);
    hosts.write("ansible.cfg", "[defaults]\n");
    for (n, (_, content)) in hosts.resources.files.iter().enumerate() {
        hosts.write(&format!("files/{n}"), content);
    }
    let resources = &hosts.resources;
    let told = json!({ "sysctls": resources.sysctls, "modules": resources.modules, "packages": resources.packages, "units": resources.units,
        "files": resources.files.iter().enumerate().map(|(n, (path, _))| json!([hosts.text(&format!("files/{n}")), path])).collect::<Vec<_>>() });
    hosts.write("resources.json", &told.to_string());
}

/// The program that `railwright plan` sends to each of these hosts.
fn the_program(inventory: &Path) -> String {
    let Ok(session) = SessionRequest::of_spec_alone().open(inventory) else {
        panic!("the inventory of the comparison is right")
    };
    let Ok(question) = session.build_observation_request() else {
        panic!("nothing is remembered of the hosts")
    };
    let requests = question.requests(&session);
    let mut reads: BTreeSet<Read> = requests
        .first()
        .expect("a host")
        .reads
        .iter()
        .cloned()
        .collect();
    reads.insert(Read::Host);
    program::render_read_program(
        &reads.into_iter().collect::<Vec<_>>(),
        "",
        "5eed5eed5eed5eed5eed5eed5eed5eed",
    )
}

/// One task a resource, facts not gathered: no task needs them.
fn playbook(hosts: &Hosts) -> Value {
    let resources = &hosts.resources;
    let mut tasks = Vec::new();
    let mut task = |module: &str, arguments: Value| {
        tasks.push(Value::Object(
            [(module.to_owned(), arguments)].into_iter().collect(),
        ))
    };
    for (key, value) in &resources.sysctls {
        task(
            "ansible.posix.sysctl",
            json!({ "name": key, "value": value, "sysctl_set": true, "sysctl_file": "/etc/sysctl.d/90-bench.conf" }),
        );
    }
    for name in &resources.modules {
        task(
            "ansible.builtin.lineinfile",
            json!({ "path": "/etc/modules-load.d/bench.conf", "line": name, "create": true }),
        );
    }
    for (path, content) in &resources.files {
        task(
            "ansible.builtin.copy",
            json!({ "dest": path, "content": content, "mode": "0644" }),
        );
    }
    for name in &resources.packages {
        task(
            "ansible.builtin.apt",
            json!({ "name": name, "state": "present" }),
        );
    }
    for name in &resources.units {
        task(
            "ansible.builtin.systemd_service",
            json!({ "name": name, "enabled": true, "state": "started" }),
        );
    }
    assert_eq!(tasks.len(), resources.len());
    json!([{ "hosts": "all", "gather_facts": false, "tasks": tasks }])
}

const DEPLOY: &str = r#"import json
from pyinfra.operations import apt, files, server, systemd

resources = json.load(open("resources.json"))
for key, value in resources["sysctls"]:
    server.sysctl(key=key, value=int(value), persist=True, persist_file="/etc/sysctl.d/90-bench.conf")
for name in resources["modules"]:
    files.line(path="/etc/modules-load.d/bench.conf", line=name)
for source, path in resources["files"]:
    files.put(src=source, dest=path, mode="644")
for name in resources["packages"]:
    apt.packages(packages=[name])
for name in resources["units"]:
    systemd.service(service=name, running=True, enabled=True)
"#;

/// What a tool says at its end, one host's line or the whole: it tells that all did the same work.
pub fn closing(tool: Tool, output: &str) -> String {
    let words: BTreeMap<&str, &str> = [
        ("railwright", "summary"),
        ("ansible", "h01 "),
        ("pyinfra", "Grand total"),
    ]
    .into();
    let word = match tool {
        Tool::Railwright => words["railwright"],
        Tool::Ansible => words["ansible"],
        Tool::Pyinfra => words["pyinfra"],
        _ => return String::new(),
    };
    let line = output
        .lines()
        .rfind(|line| line.contains(word))
        .unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
