//! A simulated host and a real machine come to the same effect, action by action: what each kind
//! finds is the same on both before the first action, after each one, and after each one of taking
//! it back.

use crate::machine::{Machine, resource};
use crate::rig::Rig;
use railwright_resource::{Action, DesiredResource, Planes, Reading, ResourceDiff, kind_named};
use railwright_transport::sim::SimulatedHost;
use railwright_transport::sim::links::SimulatedNetdev;
use railwright_transport::sim::modules::ModuleFile;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const NETDEV: &str = "ens1f0np0";
const PACKAGE: &str = "rdmacm-utils";

/// A machine, and a host in memory that began like it.
struct Both<'a> {
    machine: &'a Machine,
    host: SimulatedHost,
    /// Virtual seconds; every action takes one, as file times have whole seconds.
    now: Duration,
}

/// The actual values, by attribute.
fn found(diff: &ResourceDiff) -> BTreeMap<&String, &Planes<Reading>> {
    diff.attributes
        .iter()
        .map(|(name, attribute)| (name, &attribute.actual))
        .collect()
}

impl Both<'_> {
    fn on_host(&self, resource: &DesiredResource) -> railwright_resource::ReadResults {
        let mut answers = railwright_resource::ReadResults::default();
        for read in kind_named(&resource.kind).unwrap().reads(resource) {
            let (code, out) = self.host.answer(&read);
            let status = railwright_resource::AnswerStatus::Exit(code);
            answers.insert(read.key(), railwright_resource::ReadResult { status, out });
        }
        answers
    }

    /// Both see the same, and would do the same about it.
    fn agree(&self, resource: &DesiredResource, when: &str) -> ResourceDiff {
        let kind = kind_named(&resource.kind).unwrap();
        let real = self.machine.diff(kind, resource);
        let simulated = kind.diff(resource, &self.on_host(resource));
        assert_eq!(
            found(&simulated),
            found(&real),
            "{} {when}",
            resource.address
        );
        assert_eq!(
            simulated.actions, real.actions,
            "{} {when}",
            resource.address
        );
        assert_eq!(
            (simulated.needs_reboot, &simulated.refusal),
            (real.needs_reboot, &real.refusal),
            "{} {when}",
            resource.address
        );
        real
    }

    fn carry_out(&mut self, resource: &DesiredResource, actions: &[Action]) {
        for action in actions {
            self.machine.sh("sleep 1");
            self.now += Duration::from_secs(2);
            self.machine.perform(std::slice::from_ref(action));
            self.host
                .act(action, self.now)
                .unwrap_or_else(|why| panic!("{action:?}: {why:?}"));
            self.agree(resource, &format!("after {}", action.word()));
        }
    }

    /// Declared, declared otherwise, undone.
    fn story(&mut self, kind: &str, first: Value, second: Value) {
        let kind = kind_named(kind).unwrap();
        let (one, two) = (resource(kind, first), resource(kind, second));
        let before = self.agree(&one, "at first");
        assert!(!before.is_met(), "{}: there is nothing to do", one.address);
        self.carry_out(&one, &before.actions);
        let further = self.agree(&two, "declared otherwise");
        self.carry_out(&two, &further.actions);
        let undo = kind.undo(&two, &before.before, &self.machine.read(&kind.reads(&two)));
        assert_eq!(
            kind.undo(&two, &before.before, &self.on_host(&two)).actions,
            undo.actions,
            "{}",
            two.address
        );
        self.carry_out(&two, &undo.actions);
        self.agree(&one, "taken back");
    }
}

/// A host in memory with what the machine has, as far as the stories look at it.
fn like(machine: &Machine) -> SimulatedHost {
    let mut host = SimulatedHost::fresh();
    let words = |script: &str| machine.sh(script).trim().to_owned();
    for path in words(
        "find /etc/default/grub /etc/default/grub.d /etc/systemd/network -type f 2>/dev/null; true",
    )
    .lines()
    {
        host.disk
            .put(path, words(&format!("cat {path}")).as_str().into());
    }
    host.kernel.sysctls = [(
        "net.core.rmem_max".to_owned(),
        words("cat /proc/sys/net/core/rmem_max"),
    )]
    .into();
    // udev looks at each new disk, and a module that is looked at does not unload.
    let parameter = |name: &str| {
        let script = format!(
            "modprobe null_blk; cat /sys/module/null_blk/parameters/{name}; udevadm settle; \
             modprobe -r null_blk"
        );
        (name.to_owned(), words(&script))
    };
    host.kernel.on_disk.insert(
        "null_blk".to_owned(),
        ModuleFile {
            parameters: [parameter("gb"), parameter("nr_devices")].into(),
            ..ModuleFile::default()
        },
    );
    let version = words(&format!(
        "apt-cache policy {PACKAGE} | sed -n 's/^ *Candidate: //p'"
    ));
    host.packages.offered = BTreeMap::from([(PACKAGE.to_owned(), vec![version])]);
    host.loader.running = words("cat /proc/cmdline")
        .split(' ')
        .map(str::to_owned)
        .collect();
    let mut link = SimulatedNetdev::of(
        words(&format!(
            "ip -d -o link show dev {NETDEV} | sed -n 's/.* maxmtu \\([0-9]*\\).*/\\1/p'"
        ))
        .parse()
        .unwrap(),
        None,
    );
    let file = words(&format!(
        "sed -n 's/^NETWORK_FILE=//p' /run/systemd/netif/links/$(cat \
         /sys/class/net/{NETDEV}/ifindex)"
    ));
    link.network_file = Some(file).filter(|file| !file.is_empty());
    link.mtu = words(&format!("cat /sys/class/net/{NETDEV}/mtu"))
        .parse()
        .unwrap();
    host.links.0.insert(NETDEV.to_owned(), link);
    host.units.reload(&host.disk);
    host
}

/// The lab's repository, with its key.
pub fn with_packages(rig: &Rig, machine: &Machine) {
    let key = std::fs::read_to_string(rig.lab_folder().join("repository.asc")).unwrap();
    let source = format!(
        "deb [signed-by=/etc/apt/keyrings/lab.asc] http://10.0.2.2:{}/ ./",
        rig.first_port() + 80
    );
    machine.sh(&format!(
        "mkdir -p /etc/apt/keyrings; cat > /etc/apt/keyrings/lab.asc <<'EOF'\n\
         {key}\n\
         EOF\n\
         echo '{source}' > /etc/apt/sources.list.d/lab.list; apt-get -q update </dev/null \
         >/dev/null 2>&1\n"
    ));
}

pub fn a_simulated_host_does_what_the_machine_does(rig: &Rig, machine: &Machine) {
    with_packages(rig, machine);
    let mut both = Both {
        machine,
        host: like(machine),
        now: Duration::from_secs(60),
    };
    both.story(
        "file",
        json!({ "path": "/opt/sim/a/x.conf", "content": "one\n" }),
        json!({ "path": "/opt/sim/a/x.conf", "content": "zw\u{f6}lf\n", "mode": "0600" }),
    );
    both.story(
        "sysctl",
        json!({ "key": "net.core.rmem_max", "value": 4194304 }),
        json!({ "key": "net.core.rmem_max", "value": 8388608 }),
    );
    let module = |gb: u32| json!({ "name": "null_blk", "loaded": true, "at_boot": true, "options": { "gb": gb } });
    both.story("kernel_module", module(1), module(2));
    both.story(
        "package",
        json!({ "name": PACKAGE }),
        json!({ "name": PACKAGE, "hold": true }),
    );
    let unit = |state: bool| {
        let content =
            "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
        json!({ "name": "sim-probe.service", "content": content, "enabled": state, "active": true })
    };
    both.story("systemd_unit", unit(true), unit(false));
    both.story(
        "link",
        json!({ "netdev": NETDEV, "mtu": 4200 }),
        json!({ "netdev": NETDEV, "mtu": 9000 }),
    );
    both.story(
        "kernel_parameter",
        json!({ "parameter": "iommu", "value": "pt" }),
        json!({ "parameter": "iommu", "value": "off" }),
    );
}

/// What either refuses, the other refuses.
pub fn a_simulated_host_refuses_what_the_machine_refuses(machine: &Machine) {
    let mut host = like(machine);
    let package = |name: &str| Action::InstallPackages {
        manager: railwright_resource::action::PackageManager::Apt,
        packages: vec![railwright_resource::action::PackageVersion {
            name: name.to_owned(),
            version: Some("0-none".to_owned()),
        }],
    };
    for action in [
        Action::SetSysctl {
            key: "net.core.there_is_none".into(),
            value: "1".into(),
        },
        Action::SetSysctl {
            key: "net.core.rmem_max".into(),
            value: "many".into(),
        },
        Action::LoadModule {
            name: "there_is_none".into(),
            parameters: BTreeMap::new(),
        },
        Action::SetLink {
            netdev: NETDEV.into(),
            mtu: Some(1_000_000),
            up: None,
            add_addresses: Vec::new(),
            remove_addresses: Vec::new(),
        },
        Action::SetLink {
            netdev: "none0".into(),
            mtu: Some(1500),
            up: None,
            add_addresses: Vec::new(),
            remove_addresses: Vec::new(),
        },
        Action::Unit {
            name: "there-is-none.service".into(),
            verb: railwright_resource::action::UnitVerb::Start,
        },
        package(PACKAGE),
    ] {
        let (ran, _) = machine.run(&action.script());
        assert!(!ran, "the machine takes {action:?}");
        assert!(
            host.act(&action, Duration::from_secs(60)).is_err(),
            "the simulated host takes {action:?}"
        );
    }
}
