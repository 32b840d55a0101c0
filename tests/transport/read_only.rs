//! A user who may only read: what the world may see is as root sees it, and what it may not is
//! denied with its name; with lines of sudoers for exact commands it is seen, and a shell still is
//! not to be had.

use crate::open;
use crate::server::{Server, must};
use crate::user::User;
use railwright_resource::action::PackageManager;
use railwright_resource::probe::Probe;
use railwright_resource::{Action, AnswerStatus, Read, ReadResult, ReadResults, rights};
use railwright_transport::{Fence, SshAccess, TransportError, Upkeep};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Files that root keeps to itself in many ways; they go with the value.
struct Kept(PathBuf);

impl Kept {
    fn make(port: u16) -> Kept {
        let kept = Kept(PathBuf::from(format!("/etc/railwright-test-{port}")));
        let at = |name: &str| kept.0.join(name);
        fs::create_dir_all(at("shut/inner")).unwrap();
        for (name, text, mode) in [
            ("open.conf", "open\n", 0o644),
            ("closed.conf", "text\n\n", 0o600),
            ("closed.bin", "\u{0}\u{1}\u{2}b\n", 0o600),
            ("empty", "", 0o640),
            ("shut/inner/deep.conf", "deep\n", 0o644),
            ("large", &"x".repeat(300_000), 0o600),
            ("with space", "spaced\n", 0o600),
        ] {
            fs::write(at(name), text).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(at("closed.conf"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("shut"), at("way")).unwrap();
        kept
    }
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
    fn file(&self, name: &str) -> Read {
        Read::File {
            path: self.path(name),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One of every sort of read, on what every machine has.
fn all(kept: &Kept) -> Vec<Read> {
    let text = str::to_owned;
    let names = [
        "open.conf",
        "closed.conf",
        "closed.bin",
        "empty",
        "shut/inner/deep.conf",
        "shut/absent",
        "large",
        "with space",
        "link",
        "way/inner/deep.conf",
        "absent",
        "absent/deeper",
        "shut",
    ];
    let mut reads: Vec<Read> = names.iter().map(|name| kept.file(name)).collect();
    reads.extend(["/etc/os-release", "/etc/shadow"].map(|path| Read::File { path: text(path) }));
    reads.extend(
        ["net.core.bpf_jit_harden", "kernel.ostype", "no.such"]
            .map(|key| Read::Sysctl { key: text(key) }),
    );
    reads.extend(
        ["open.conf", "shut/inner/deep.conf"].map(|name| Read::Modified {
            paths: vec![kept.path(name)],
        }),
    );
    let lists = |manager| Read::RepositoryLists {
        manager,
        name: text("n"),
        url: text("http://x/y"),
        suite: text("z"),
    };
    reads.extend([
        Read::KernelModule {
            name: text("configfs"),
        },
        lists(PackageManager::Apt),
        lists(PackageManager::Dnf),
        Read::Packages {
            names: vec![text("dpkg"), text("nothing")],
        },
        Read::Unit {
            name: text("ssh.service"),
        },
        Read::Boot,
        Read::Link { netdev: text("lo") },
        Read::LinkManager { netdev: text("lo") },
        Read::LinkLayers { netdev: text("lo") },
        Read::NetdevName {
            device: text("0000:00:00.0"),
            name: text("rail0"),
        },
        Read::LinkQos { netdev: text("lo") },
        Read::Hardware,
        Read::Platform,
        Read::VirtualFunctions { netdev: text("lo") },
        Read::CageModules,
        Read::RdmaLinks,
        Read::LldpNeighbours,
        Read::Configfs {
            path: text("rdma_cm"),
        },
        Read::LinkEcn { netdev: text("lo") },
        Read::FirmwareSettings {
            netdev: text("eth1"),
            settings: vec![text("SRIOV_EN")],
        },
        Read::PciDevice { device: text("lo") },
        Read::PciBridges,
        Read::Interrupts { netdev: text("lo") },
        Read::ModuleBuild {
            name: text("n"),
            version: text("1"),
            module: text("m"),
        },
        Read::Command {
            script: text("id -u"),
        },
        Read::SealedFile {
            path: kept.path("closed.conf"),
        },
    ]);
    reads.extend(function().map(|device| Read::PciDevice { device }));
    reads
}

/// A PCI function of this machine, if it has any.
fn function() -> Option<String> {
    let entries = fs::read_dir("/sys/bus/pci/devices")
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .min()
}

/// What this machine keeps and who its users are belongs to one of these tests at a time.
static THIS_MACHINE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

struct Rig {
    _alone: tokio::sync::MutexGuard<'static, ()>,
    _server: Server,
    kept: Kept,
    user: User,
    root: SshAccess,
}

impl Rig {
    async fn start() -> Option<Rig> {
        let alone = THIS_MACHINE.lock().await;
        let server = Server::start(&["ed25519"], &[])?;
        let user = User::add(format!("rwlook{}", server.port))?;
        let root = server.access(&server.line("ed25519"));
        Some(Rig {
            kept: Kept::make(server.port),
            user,
            root,
            _server: server,
            _alone: alone,
        })
    }

    fn access(&self) -> SshAccess {
        SshAccess {
            user: self.user.0.clone(),
            read_only: true,
            ..self.root.clone()
        }
    }

    async fn both(&self, reads: &[Read]) -> (ReadResults, ReadResults) {
        let as_root = open(&self.root).await.unwrap().read(reads).await.unwrap();
        (
            as_root,
            open(&self.access())
                .await
                .unwrap()
                .read(reads)
                .await
                .unwrap(),
        )
    }

    /// Installs the lines that these reads need, after visudo agreed to them.
    fn allow(&self, reads: &[Read]) -> String {
        let fragment = railwright_report::sudoers::render_sudoers_fragment(
            &self.user.0,
            "inv",
            &rights::collect_root_access_needs(reads),
        );
        fs::write(self.user.sudoers(), &fragment).unwrap();
        fs::set_permissions(self.user.sudoers(), fs::Permissions::from_mode(0o440)).unwrap();
        must(
            "/usr/sbin/visudo",
            &["-c", "-s", "-f", &self.user.sudoers()],
        );
        fragment
    }

    /// What sudo lets the user do, as the user.
    fn may(&self, words: &[&str]) -> bool {
        let mut command = std::process::Command::new("setpriv");
        command
            .args([
                "--reuid",
                &self.user.0,
                "--clear-groups",
                "sudo",
                "-n",
                "--",
            ])
            .args(words);
        command
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null());
        command.status().unwrap().success()
    }
}

fn is_denied(answer: &ReadResult) -> bool {
    answer.status == AnswerStatus::Denied
}

#[tokio::test]
async fn it_is_as_root_sees_it_or_denied_and_never_absent() {
    let Some(rig) = Rig::start().await else {
        return;
    };
    let reads = all(&rig.kept);
    let (root, user) = rig.both(&reads).await;
    let mut denied = Vec::new();
    for read in &reads {
        let (as_root, as_user) = (root.get(read).unwrap(), user.get(read).unwrap());
        let setting = as_user.out.strip_prefix(
            "denied\treads /proc/sys/net/core/bpf_jit_harden\t/usr/bin/cat \
             /proc/sys/net/core/bpf_jit_harden\n",
        );
        if let Some(rest) = setting {
            assert_eq!(
                as_root.out.split_once('\n').unwrap().1,
                rest,
                "what is on disk is read all the same"
            );
            denied.push(read.key());
        } else if is_denied(as_user) {
            denied.push(read.key().replace(&rig.kept.path(""), ""));
        } else {
            assert_eq!(as_root, as_user, "{read:?}");
        }
    }
    denied.sort();
    let expected = [
        "command:DIGEST",
        "file:/etc/shadow",
        "file:closed.bin",
        "file:closed.conf",
        "file:empty",
        "file:large",
        "file:shut/absent",
        "file:shut/inner/deep.conf",
        "file:way/inner/deep.conf",
        "file:with space",
        "firmware_settings:eth1:SRIOV_EN",
        "lldp_neighbours",
        "modified:shut/inner/deep.conf",
        "pci_bridges",
        "pci_device:FUNCTION",
        "sealed_file:closed.conf",
        "sysctl:net.core.bpf_jit_harden",
    ];
    let command = reads
        .iter()
        .map(Read::key)
        .find(|key| key.starts_with("command:"))
        .unwrap();
    let function = function().map(|address| format!("pci_device:{address}"));
    let expected: Vec<String> = expected
        .iter()
        .filter(|key| **key != "pci_device:FUNCTION" || function.is_some())
        .filter(|key| **key != "lldp_neighbours" || Path::new("/usr/sbin/lldpctl").exists())
        .map(|key| {
            key.replace("command:DIGEST", &command).replace(
                "pci_device:FUNCTION",
                function.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(denied, expected, "what is denied without a line of sudoers");
    assert!(!reads.iter().any(|read| is_denied(root.get(read).unwrap())));
    let closed = user.output(&rig.kept.file("closed.conf")).unwrap_err();
    let path = rig.kept.path("closed.conf");
    assert_eq!(
        closed,
        format!("only root reads {path} (line for sudoers: /usr/bin/cat {path})").into()
    );
    let sealed = user
        .output(&Read::SealedFile { path: path.clone() })
        .unwrap_err();
    assert_eq!(
        sealed,
        format!("only root reads {path}").into(),
        "a secret has no line"
    );
}

#[tokio::test]
async fn a_closed_folder_of_settings_is_no_empty_one() {
    let Some(rig) = Rig::start().await else {
        return;
    };
    for (folder, name, read) in [
        (
            "/run/sysctl.d",
            "x.conf",
            Read::Sysctl {
                key: "kernel.ostype".to_owned(),
            },
        ),
        (
            "/run/modprobe.d",
            "x.conf",
            Read::KernelModule {
                name: "configfs".to_owned(),
            },
        ),
        (
            "/run/modules-load.d",
            "x.conf",
            Read::KernelModule {
                name: "configfs".to_owned(),
            },
        ),
    ] {
        let there = Path::new(folder).exists();
        fs::create_dir_all(folder).unwrap();
        let file = format!("{folder}/railwright-test-{}-{name}", rig.root.port);
        fs::write(&file, "# nothing\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let (_, user) = rig.both(std::slice::from_ref(&read)).await;
        let closed_file = user.output(&read).unwrap_err();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let (root, opened) = rig.both(std::slice::from_ref(&read)).await;
        let (root, opened) = (root.get(&read).cloned(), opened.get(&read).cloned());
        fs::remove_file(&file).unwrap();
        if !there {
            fs::remove_dir(folder).unwrap();
        }
        assert_eq!(closed_file, format!("only root reads {file}").into());
        assert_eq!(root, opened, "positive control");
    }
}

#[tokio::test]
async fn with_its_lines_it_sees_what_root_sees_and_has_no_shell() {
    let Some(rig) = Rig::start().await else {
        return;
    };
    let reads = all(&rig.kept);
    assert!(
        !rig.may(&["/usr/bin/cat", &rig.kept.path("closed.conf")]),
        "before there is a line"
    );
    let fragment = rig.allow(&reads);
    let (root, user) = rig.both(&reads).await;
    let mut denied = Vec::new();
    for read in &reads {
        let (as_root, as_user) = (root.get(read).unwrap(), user.get(read).unwrap());
        let above_is_unknown = read == &rig.kept.file("shut/absent");
        match is_denied(as_user) {
            true => denied.push(read.key().split(':').next().unwrap().to_owned()),
            false if above_is_unknown => assert_eq!(
                (as_user.status.clone(), as_user.out.as_str()),
                (AnswerStatus::Exit(1), "")
            ),
            false => assert_eq!(as_root, as_user, "{read:?}"),
        }
    }
    denied.sort();
    assert_eq!(
        denied,
        [
            "command",
            "file",
            "firmware_settings",
            "modified",
            "pci_bridges",
            "sealed_file"
        ],
        "a probe, a path with a space, firmware, a time, bridges, a secret"
    );
    assert!(
        user.output(&rig.kept.file("with space")).is_err()
            && fragment.contains("with space, because no exact command")
    );
    assert!(
        rig.may(&["/usr/bin/cat", &rig.kept.path("closed.conf")]),
        "positive control"
    );
    let closed = rig.kept.path("closed.conf");
    for words in [
        &["/bin/sh", "-c", "id"][..],
        &["/bin/sh"],
        &["/usr/bin/cat"],
        &["/usr/bin/cat", "/etc/gshadow"],
        &["/usr/bin/cat", &closed, "/etc/gshadow"],
        &["/usr/bin/cat", &format!("{closed}/../../gshadow")],
        &["/usr/bin/stat", "-c", "%n", &closed],
        &["/usr/bin/tee", &closed],
        &["/usr/sbin/netplan", "apply"],
    ] {
        assert!(!rig.may(words), "{words:?}");
    }
}

#[tokio::test]
async fn it_is_asked_for_nothing_but_reads() {
    let Some(rig) = Rig::start().await else {
        return;
    };
    fs::write(
        rig.user.sudoers(),
        format!("{} ALL=(root) NOPASSWD: ALL\n", rig.user.0),
    )
    .unwrap();
    let link = open(&rig.access()).await.unwrap();
    let touch = rig.kept.path("touched");
    let action = Action::WriteFile {
        path: touch.clone(),
        content: "x".to_owned(),
        mode: "0644".to_owned(),
        owner: "root".to_owned(),
        group: "root".to_owned(),
    };
    let long = Action::RunCommand {
        script: format!("touch {touch}"),
        limit_s: 7000,
        environment: Default::default(),
        input: None,
    };
    let fence = Fence::new("test", 1);
    let refused =
        |result: Result<_, TransportError>| matches!(result, Err(TransportError::ReadOnly { .. }));
    assert!(
        refused(link.perform(&action, "t", Some(&fence)).await)
            && refused(link.perform(&long, "t", Some(&fence)).await)
    );
    assert!(refused(
        link.probe(&Probe::Rails {
            netdevs: Vec::new()
        })
        .await
    ));
    let probe = Probe::ModuleCheck {
        script: format!("touch {touch}"),
    };
    assert!(
        refused(link.probe(&probe).await),
        "also in the login itself"
    );
    for upkeep in [
        Upkeep::ReadRecord,
        Upkeep::ReadLock,
        Upkeep::Lock {
            holder: "{}".to_owned(),
            fence: 1,
        },
    ] {
        assert!(refused(link.upkeep(&upkeep).await), "{upkeep:?}");
    }
    assert!(!Path::new(&touch).exists());
    // However much sudo would let this user do: the reads do not go through a shell of root's.
    let host = link.read(&[Read::Host]).await.unwrap();
    assert_ne!(
        railwright_resource::host::decode_host_facts(&host)
            .unwrap()
            .uid,
        0
    );
}
