//! Law 9: no answer of a host, however hostile, panics, and nothing reaches a shell unquoted.
//! Documents: `tests/hostile`.

use crate::hostile::bodies::bodies;
use proptest::prelude::*;
use railwright_base::quote::quote_for_shell;
use railwright_resource::action::{NetworkManagerKind, PackageManager, PackageVersion, UnitVerb};
use railwright_resource::counters::CounterSampleOrdinal;
use railwright_resource::interrupt_affinity::script::InterruptBinding;
use railwright_resource::json_in_configmap::mark::RestartMark;
use railwright_resource::kernel_module_build::source::{ModuleBuildTool, ModuleSource};
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::{KubernetesRead, ObjectName};
use railwright_resource::node_field::edit::{NodeEdit, NodeFieldChange};
use railwright_resource::node_field::{Effect, NodeField};
use railwright_resource::pci_setting::script::{PciRegister, PciWrite};
use railwright_resource::switch::SwitchSystem;
use railwright_resource::{
    Action, AnswerStatus, Read, ReadResult, ReadResults, list_resource_kinds, rights,
};
use serde_json::Value;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(crate::laws::config())]

    #[test]
    fn law_9_no_answer_panics(lines in proptest::collection::vec((0..PIECES.len(), "[ -~\t]{0,20}"), 0..30), code in -1i32..130, status in 0u8..6, is_whole: bool) {
        // EOS says by its last line that nothing is cut off.
        let end = if is_whole { "end\n" } else { "" };
        let out = lines.iter().map(|(n, rest)| format!("{}{rest}\n", PIECES[*n])).collect::<String>() + end;
        let status = match status {
            0 => AnswerStatus::TimedOut,
            1 => AnswerStatus::CutOff,
            2 => AnswerStatus::TooLong,
            _ => AnswerStatus::Exit(if status == 3 { 0 } else { code }),
        };
        for (name, body) in bodies() {
            let kind = list_resource_kinds().iter().find(|kind| kind.name() == name).unwrap();
            let resource = crate::room::resource("a", name, body, &[]);
            let mut answers = ReadResults::default();
            for read in kind.reads(&resource) {
                answers.insert(read.key(), ReadResult { status: status.clone(), out: out.clone() });
            }
            let found = kind.diff(&resource, &answers);
            kind.undo(&resource, &found.before, &answers);
            kind.undo(&resource, &Value::Null, &answers);
        }
    }

    #[test]
    fn law_9_nothing_reaches_a_shell_unquoted(hostile in "[ -,;-^`{-~\n\u{e4}]{1,12}") {
        for (bland, evil) in actions(BLAND).into_iter().zip(actions(&hostile)) {
            prop_assert_eq!(evil.script(), with(&bland.script(), &hostile), "{}", bland.word());
        }
        for (bland, evil) in reads(BLAND).into_iter().zip(reads(&hostile)) {
            prop_assert_eq!(evil.script(), with(&bland.script(), &hostile), "{}", bland.key());
            prop_assert_eq!(rights::render_unprivileged_section(&evil), with(&rights::render_unprivileged_section(&bland), &hostile), "{}", bland.key());
        }
    }
}

/// Beginnings of lines that the decoders look for.
const PIECES: [&str; 78] = [
    "{\"PORT\":{\"Ethernet0\":{\"mtu\":",
    "! railwright running\ninterface Ethernet1/1\n",
    "\n   uc-tx-queue 3\n      random-detect ecn minimum-threshold 1 bytes maximum-threshold ",
    "\n   priority-flow-control pause watchdog port timer timeout 0. polling-interval auto \
     recovery-time 9999999999999999999999",
    "\nqos map dscp 0-99999999999999999999 26 to traffic-class ",
    "{\"ports\":[\"swp1\"],\"set\":{\"interface\":{\"swp1\":{\"qos\":{\"pfc\":{\"profile\":",
    "{\"set\":{\"qos\":{\"mapping\":{\"default-global\":{\"dscp\":{\"26\":",
    "\n== netdev 0",
    "|kind=vlan",
    "|id=",
    "\n== netdev-file 644 root root /x",
    "644 root root 3 regular file",
    "folder /",
    "running\t",
    "file\t/etc/sysctl.d/x.conf",
    "line\t/etc/sysctl.d/x.conf:",
    "none",
    "kernel\t6.1",
    "loaded\tm_two 1 2 a,b, Live",
    "parameter\tsize\t",
    "boot\t/etc/modules-load.d/x.conf\t",
    "modprobe\t/etc/modprobe.d/x.conf\toptions m_two ",
    "manager\tapt",
    "manager\tdnf",
    "dpkg\tii \ttool\t",
    "rpm\ttool\t",
    "lock\ttool-",
    "LoadState=",
    "UnitFileState=",
    "ActiveEnterTimestamp=",
    "loader\tgrub",
    "loader\tgrubby",
    "grubby\targs=",
    "menu\tmenuentry ",
    "menu\t}",
    "set\tGRUB_CMDLINE_LINUX_DEFAULT=",
    "mtu=",
    "addr=2: eth1 inet ",
    "\n== networkd 644 root root /run/x",
    "|NETWORK_FILE=",
    "\n== device rxe0",
    "\n== port 1",
    "|gids/0:",
    "\n== pfc 0",
    "|{\"prio_pfc\":",
    "dkms\t",
    "address 0000:3b:00.0",
    "setpci",
    "lockdown [none] integrity",
    "device 0x060400 0x1000 pci0000:3a/0000:3a:00.0",
    "device 0x020000 0x15b3 pci0000:3a/0000:3a:00.0/0000:3b:00.0",
    "passed pci0000:3a/0000:3a:00.0/0000:3b:00.0",
    "netdev eth1 0000:3b:00.0",
    "\n== config 0000:3a:00.0",
    "\n== config 0000:3b:00.0",
    "|000000 00 00",
    "local_cpulist 0-3",
    "online 0-7",
    "irq\t41\t0-7\t",
    "mode 444 /proc/irq/41/smp_affinity_list",
    "netdev eth7 0000:3b:00.0 b8:ce:f6:00:00:01 -",
    "\n== udev",
    "\n== rules",
    "|/etc/udev/rules.d/7.rules:NAME=\"",
    "\n== link-file /x",
    "|Name=",
    "\n== platform",
    "|sys_vendor=\u{1b}[2J",
    "|acpi=1",
    "|iommu_known=1",
    "\n== functions",
    "|total=8",
    "|bar=0x0 0xffffffffffffffff 0x0",
    "\n== end",
    "{\"data\":{\"b\":\"{\\\"c\\\":{\\\"d\\\":2},\\\"e\\\":[]}\"},\"metadata\":{},\"spec\":{\"template\":{}}}",
    "{\"data\":{\"b\":\"{\\\"c\\\":[],\\\"e\\\":\\\"\\\"}\"}}",
    "{\"installed\":{\"chart\":\"a\",\"version\":\"1\",\"revision\":1,\"status\":\"pending-\",\"description\":\"\",\"updated\":\"\",\"ours\":true,\"kept\":[],\"defines\":[],\"runs\":[]},",
    "\"preview\":{\"is\":{\"chart\":\"a\",\"version\":\"2\",\"changes\":[{\"name\":\"values.c\",\"desired\":1,\"actual\":null}]}}}",
];

/// A word that has to be quoted, in whose place the hostile ones are put.
const BLAND: &str = "Q W Q";

/// The script with the hostile text in the place of the bland one, wherever that stands between
/// single quotes.
fn with(script: &str, hostile: &str) -> String {
    let pieces: Vec<&str> = script.split('\'').collect();
    let mut out = String::new();
    for (n, piece) in pieces.iter().enumerate() {
        match (n % 2 == 1, piece.contains(BLAND)) {
            (true, true) => out.push_str(&quote_for_shell(&piece.replace(BLAND, hostile))),
            (true, false) => out.push_str(&format!("'{piece}'")),
            (false, _) => out.push_str(piece),
        }
    }
    out
}

/// Every action that holds a text, with this text in every place.
fn actions(text: &str) -> Vec<Action> {
    let own = || text.to_owned();
    let path = || format!("/etc/{text}");
    let (apt, dnf) = (PackageManager::Apt, PackageManager::Dnf);
    let map = || BTreeMap::from([("k".to_owned(), own())]);
    let packages = || {
        vec![
            PackageVersion {
                name: own(),
                version: Some(own()),
            },
            PackageVersion {
                name: own(),
                version: None,
            },
        ]
    };
    let mut all = vec![
        Action::WriteFile {
            path: path(),
            content: own(),
            mode: own(),
            owner: own(),
            group: own(),
        },
        Action::WriteBinaryFile {
            path: path(),
            base64: own(),
            mode: own(),
            owner: own(),
            group: own(),
        },
        Action::RemoveFile {
            path: path(),
            below: None,
        },
        Action::RemoveFile {
            path: path(),
            below: Some(own()),
        },
        Action::SetSysctl {
            key: own(),
            value: own(),
        },
        Action::LoadModule {
            name: own(),
            parameters: map(),
        },
        Action::UnloadModule { name: own() },
        Action::SetKernelArgument {
            argument: own(),
            present: true,
        },
        Action::Unit {
            name: own(),
            verb: UnitVerb::Restart,
        },
        Action::SetLink {
            netdev: own(),
            mtu: Some(9000),
            up: Some(true),
            add_addresses: vec![own()],
            remove_addresses: vec![own()],
        },
        Action::ReloadLink {
            netdev: own(),
            manager: NetworkManagerKind::NetworkManager,
        },
        Action::ReloadLink {
            netdev: own(),
            manager: NetworkManagerKind::Ifupdown,
        },
        Action::AddVlan {
            netdev: own(),
            parent: own(),
            id: 100,
        },
        Action::RemoveVlan { netdev: own() },
        Action::ModifyConnection {
            uuid: own(),
            settings: map(),
        },
        Action::SetInterfacesMtu {
            path: path(),
            netdev: own(),
            from: 1500,
            to: 9000,
        },
        Action::SetDcb {
            commands: vec![vec![own(), own()]],
        },
        Action::SetMlnxQos {
            commands: vec![vec![own()]],
        },
        Action::SetPause {
            netdev: own(),
            on: true,
        },
        Action::AddRdmaLink {
            name: own(),
            link_type: own(),
            netdev: own(),
        },
        Action::RemoveRdmaLink { name: own() },
        Action::SetConfigfs {
            path: path(),
            value: own(),
        },
        Action::SetLinkEcn {
            netdev: own(),
            settings: BTreeMap::from([(own(), own())]),
        },
        Action::SetFirmware {
            device: own(),
            settings: map(),
        },
        Action::SetPci {
            writes: vec![PciWrite {
                address: own(),
                register: PciRegister::AcsControl,
                value: 0,
                mask: 0x7f,
            }],
        },
        Action::SetInterrupts {
            interrupts: vec![InterruptBinding {
                number: 41,
                cpus: own(),
            }],
        },
        Action::BuildModule {
            name: own(),
            version: own(),
            module: own(),
            builder: ModuleBuildTool::Dkms,
        },
        Action::EditConfigMap {
            object: object(text),
            precondition: ObjectPrecondition::Present {
                uid: own(),
                part_of: None,
                hands: None,
            },
            key: own(),
            edits: Vec::new(),
            mark: Some(RestartMark {
                name: own(),
                value: Some(own()),
            }),
        },
        Action::EditNodes {
            field: NodeField::Label { key: own() },
            edits: vec![NodeEdit {
                nodes: vec![own()],
                change: NodeFieldChange {
                    old: Some(own()),
                    new: Some(own()),
                    mark: None,
                },
            }],
        },
        Action::UnmarkObject {
            object: object(text),
            precondition: ObjectPrecondition::Present {
                uid: own(),
                part_of: Some(own()),
                hands: None,
            },
        },
        Action::MarkPodTemplate {
            object: object(text),
            precondition: ObjectPrecondition::Present {
                uid: own(),
                part_of: None,
                hands: None,
            },
            mark: RestartMark {
                name: own(),
                value: None,
            },
        },
        Action::RunCommand {
            script: own(),
            limit_s: 9,
            environment: map(),
            input: Some(own()),
        },
    ];
    let git = ModuleSource::Git {
        url: own(),
        revision: own(),
    };
    let (name, version) = (own(), own());
    all.push(Action::FetchModuleSource {
        name,
        version,
        source: git,
        dkms_conf: Some(own()),
        digest: own(),
    });
    for manager in [apt, dnf] {
        all.push(Action::InstallPackages {
            manager,
            packages: packages(),
        });
        all.push(Action::RemovePackages {
            manager,
            names: vec![own()],
        });
        all.push(Action::HoldPackages {
            manager,
            names: vec![own()],
            hold: true,
        });
        all.push(Action::RefreshPackages {
            manager,
            repository: Some(own()),
        });
    }
    all
}

/// An object with the text in every place.
fn object(text: &str) -> ObjectName {
    let own = || text.to_owned();
    ObjectName {
        api_version: own(),
        kind: own(),
        namespace: Some(own()),
        name: own(),
    }
}

/// Reads with the text in every place.
fn reads(text: &str) -> Vec<Read> {
    let own = || text.to_owned();
    vec![
        Read::File {
            path: format!("/etc/{text}"),
        },
        Read::Sysctl {
            key: format!("net.{text}"),
        },
        Read::KernelModule { name: own() },
        Read::Packages { names: vec![own()] },
        Read::Unit { name: own() },
        Read::Modified {
            paths: vec![own(), own()],
        },
        Read::Link { netdev: own() },
        Read::LinkManager { netdev: own() },
        Read::LinkLayers { netdev: own() },
        Read::NetdevName {
            device: own(),
            name: own(),
        },
        Read::LinkQos { netdev: own() },
        Read::Configfs { path: own() },
        Read::LinkEcn { netdev: own() },
        Read::FirmwareSettings {
            netdev: own(),
            settings: vec![own(), own()],
        },
        Read::PciDevice { device: own() },
        Read::Interrupts { netdev: own() },
        Read::LinkCounters {
            netdevs: vec![own(), own()],
            sample: CounterSampleOrdinal::First,
        },
        Read::SwitchCounters {
            system: SwitchSystem::Sonic,
            ports: vec![own()],
            sample: CounterSampleOrdinal::Second,
        },
        Read::SwitchCounters {
            system: SwitchSystem::Cumulus,
            ports: vec![own()],
            sample: CounterSampleOrdinal::Second,
        },
        Read::VirtualFunctions { netdev: own() },
        Read::ModuleBuild {
            name: own(),
            version: own(),
            module: own(),
        },
        Read::Command { script: own() },
        Read::Kubernetes(KubernetesRead::Object(object(text))),
        Read::Kubernetes(KubernetesRead::NodeField(NodeField::Taint {
            key: own(),
            effect: Effect::NoExecute,
        })),
        Read::Kubernetes(KubernetesRead::PodsOn(text.to_owned())),
    ]
}
