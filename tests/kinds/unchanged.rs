//! Law 4 with the real scripts: what is read of a host changes nothing of it. Every read of every
//! kind, of every shipped inventory and of every command that asks hosts runs as the transport
//! renders it, as root and as somebody who may only read, in dash and in busybox, on hosts with the
//! hardware of the fixtures. Before and after are compared: the whole tree, the settings below
//! /proc/sys, the kernel's modules, and the network.

use crate::bodies::bodies;
use crate::models::{MODELS, Model, Nic};
use crate::rig::{Host, Root, resource};
use crate::tree;
use railwright_observe::sealed::reads_of_all;
use railwright_resource::action::PackageManager;
use railwright_resource::counters::CounterSampleOrdinal;
use railwright_resource::{AnswerStatus, Read, kind_named, program};
use railwright_session::{SessionRequest, SigningKeys};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A program of reads has at most so many, so that one that changes something is soon found.
const AT_ONCE: usize = 100;

/// By `sh`, which is dash, and by busybox with all its programs before the system's.
const DASH: &[&str] = &["sh"];
const BUSYBOX: &[&str] = &["env", "PATH=/busybox:/usr/sbin:/usr/bin:/sbin:/bin", "sh"];

type Render = fn(&[Read], &str, &str) -> String;

/// What commands ask of hosts that no kind does.
fn reads_of_commands() -> Vec<Read> {
    let netdevs = || vec!["eth0".to_owned(), "eth1".to_owned()];
    let lists = |manager| Read::RepositoryLists {
        manager,
        name: "own".into(),
        url: "http://x/deb".into(),
        suite: "stable".into(),
    };
    vec![
        Read::Host,
        Read::Hardware,
        Read::Platform,
        Read::CageModules,
        Read::Boot,
        Read::LldpNeighbours,
        Read::RdmaLinks,
        Read::PciBridges,
        Read::LinkCounters {
            netdevs: netdevs(),
            sample: CounterSampleOrdinal::First,
        },
        Read::RailTraffic { netdevs: netdevs() },
        Read::VirtualFunctions {
            netdev: "eth1".into(),
        },
        Read::Modified {
            paths: vec!["/etc/hosts".into(), "/etc/os-release".into()],
        },
        Read::ModuleBuild {
            name: "n".into(),
            version: "1".into(),
            module: "m".into(),
        },
        Read::SealedFile {
            path: "/etc/shadow".into(),
        },
        lists(PackageManager::Apt),
        lists(PackageManager::Dnf),
    ]
}

/// What is asked of hosts for the shipped inventories.
fn reads_of_inventories() -> BTreeSet<Read> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let of = |path: &PathBuf| {
        let session = SessionRequest::of_spec_alone()
            .with_keys(SigningKeys::WhereAStepNeedsThem)
            .open(path)
            .unwrap_or_else(|error| panic!("{}: {:?}", path.display(), error.diagnostics));
        reads_of_all(&session.desired.resources, &Default::default())
    };
    paths.iter().flat_map(of).collect()
}

/// All that a host is ever asked, each once.
fn reads() -> Vec<Read> {
    let of_kind = |(kind, body)| kind_named(kind).unwrap().reads(&resource(kind, body));
    let asked = bodies()
        .into_iter()
        .flat_map(of_kind)
        .chain(reads_of_inventories())
        .chain(reads_of_commands());
    let of_hosts = asked.filter(|read| !matches!(read, Read::Kubernetes(_) | Read::HelmRelease(_)));
    of_hosts.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A host of a model with its netdevs and a network that has come to rest. Nothing runs on it that
/// would change it by itself. What the fakes keep in the place of hardware is not compared.
fn host(model: &Model) -> Option<Host> {
    let folder = tempfile::tempdir().unwrap();
    tree::write(folder.path(), model);
    let made = |name: &str| folder.path().join(name);
    let copies = [
        (made("sys"), "sys"),
        (made("etc"), "etc"),
        (made("boot"), "boot"),
        (made("modules"), "usr/lib/modules"),
    ];
    let fakes = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes");
    let tools = [
        ("systemctl", "usr/bin/systemctl"),
        ("dcb", "usr/sbin/dcb"),
        ("ethtool", "usr/sbin/ethtool"),
        ("mlxconfig", "usr/bin/mlxconfig"),
    ];
    let tools = tools.map(|(tool, at)| (fakes.join(tool), at));
    let copies: Vec<(&Path, &str)> = copies
        .iter()
        .chain(&tools)
        .map(|(from, to)| (from.as_path(), *to))
        .collect();
    let host = Host::start_from(Root::Fixture, "law 4 with the real scripts", &copies)?;
    let netdevs = model.netdevs().join(" ");
    host.must(&format!(
        "set -e; mkdir -p /run/sysfs /run/systemd/system /run/fakes /busybox; mount -t sysfs \
         -o ro sysfs /run/sysfs\n\
         mount -t tmpfs fakes /run/fakes; mkdir /run/fakes/units\n\
         busybox --install -s /busybox && echo 0123456789abcdef0123456789abcdef >/etc/machine-id\n\
         echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up\n\
         for n in {netdevs}; do ip link add \"$n\" type veth peer name \"to-$n\" && ip link set \
         \"to-$n\" up && ip link set \"$n\" up || exit; done\n"
    ));
    if !model.is_debian() {
        host.must(RED_HAT);
    }
    Some(host)
}

/// As on a server of the Red Hat family: packages of rpm, and none of Debian.
const RED_HAT: &str = "set -e; rm -rf /var/lib/dpkg /etc/apt /etc/default/grub.d; rm -f \
                       /usr/bin/apt* /usr/bin/dpkg* /usr/sbin/update-grub\n\
                       rpm --initdb; rpm -qa >/dev/null\n";

/// What every reader of rpm's database writes: the index of its log, which is memory that SQLite's
/// readers share, in a file (sqlite.org/walformat.html, "The WAL-Index File Format"). As root `rpm
/// -q` has no way around it.
const SHARED_BY_READERS: &str = "/rpmdb.sqlite-shm";

/// A host at one moment, as lines.
fn standing(host: &Host) -> BTreeSet<String> {
    let (_, of_the_kernel, _) = host.sh(
        "cd /proc/sys && find . -type f -perm /222 -print0 | xargs -0 grep -Has ''\n\
         cut -d' ' -f1 /proc/modules 2>/dev/null | sed 's/^/module /'; ls /run/sysfs/module | sed \
         's/^/module /'\n\
         ip -d -o link | sed 's/^/link /'; ip -o address | sed 's/^/address /'; ip rule | sed \
         's/^/rule /'\n\
         ip route show table all | sed 's/^/route /'; ip neighbour | sed 's/^/neighbour /'\n",
    );
    let written = host
        .written()
        .into_iter()
        .filter(|line| !name(line).ends_with(SHARED_BY_READERS));
    written
        .chain(of_the_kernel.lines().map(str::to_owned))
        .collect()
}

/// The part before the value: what a setting is that has another value every time.
fn name(line: &str) -> &str {
    line.split([':', ' ']).next().unwrap_or(line)
}

/// What differs, but for what changes without anybody's doing.
fn changes(
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
    restless: &BTreeSet<String>,
) -> Vec<String> {
    let gone = before
        .difference(after)
        .map(|line| (name(line), format!("- {line}")));
    let new = after
        .difference(before)
        .map(|line| (name(line), format!("+ {line}")));
    gone.chain(new)
        .filter(|(name, _)| !restless.contains(*name))
        .map(|(_, line)| line)
        .collect()
}

/// The settings that change while nobody does anything.
fn restless(host: &Host) -> BTreeSet<String> {
    let (first, second) = (standing(host), standing(host));
    first
        .symmetric_difference(&second)
        .map(|line| name(line).to_owned())
        .collect()
}

/// What is found changed after these reads, with the reads that do it.
fn tried(
    host: &Host,
    shell: &[&str],
    render: Render,
    reads: &[Read],
    restless: &BTreeSet<String>,
) -> BTreeMap<String, Vec<String>> {
    let run = |reads: &[Read]| {
        let before = standing(host);
        let (_, out, _) = host.sh_by(shell, &render(reads, "", "feedc0ffee"));
        (
            changes(&before, &standing(host), restless),
            program::parse_program_answers(reads, "feedc0ffee", out.as_bytes()),
        )
    };
    let mut found = BTreeMap::new();
    for some in reads.chunks(AT_ONCE) {
        let (changed, answers) = run(some);
        for read in some {
            let answered = answers
                .get(read)
                .is_some_and(|answer| answer.status != AnswerStatus::CutOff);
            assert!(answered, "{} has no answer", read.key());
        }
        if !changed.is_empty() {
            let each = some
                .iter()
                .map(|read| (read.key(), run(std::slice::from_ref(read)).0));
            found.extend(
                each.filter(|(_, changed)| !changed.is_empty())
                    .chain([("all of them".to_owned(), changed)]),
            );
        }
    }
    found
}

/// The models whose hosts are asked: with the netdevs of the bodies, and with those of the
/// inventories on both families of systems.
fn models() -> [Model; 3] {
    let rails = &MODELS[1];
    let red_hat = MODELS.iter().find(|model| !model.is_debian()).unwrap();
    [
        Model {
            nic: Nic {
                netdev: "eth{rail}",
                ..rails.nic
            },
            ports: &[],
            ..*rails
        },
        *rails,
        *red_hat,
    ]
}

#[test]
fn law_4_what_is_read_changes_nothing() {
    let reads = reads();
    assert!(reads.len() > 200, "{} reads", reads.len());
    for (n, model) in models().iter().enumerate() {
        let Some(host) = host(model) else { return };
        let restless = restless(&host);
        let by_others: &[(&[&str], Render)] = &[
            (BUSYBOX, program::render_read_program),
            (DASH, program::render_for_others),
        ];
        for (shell, render) in [(DASH, program::render_read_program as Render)]
            .iter()
            .chain(by_others.iter().filter(|_| n == 0))
        {
            let found = tried(&host, shell, *render, &reads, &restless);
            assert!(
                found.is_empty(),
                "reads changed the host, by {shell:?}: {found:#?}"
            );
        }
    }
}

#[test]
fn a_read_that_changes_something_is_found() {
    let Some(host) = host(&models()[0]) else {
        return;
    };
    let restless = restless(&host);
    for script in [
        "touch /tmp/own; rm /tmp/own",
        ": >>/etc/hosts",
        "chmod 600 /etc/os-release",
        "rm -f /etc/debian_version",
        "echo 1 >/proc/sys/net/ipv4/ip_forward",
        "ip link set eth1 mtu 1400",
        "ip address add 192.0.2.7/24 dev eth0",
    ] {
        let found = tried(
            &host,
            DASH,
            program::render_read_program,
            &[Read::Command {
                script: script.to_owned(),
            }],
            &restless,
        );
        assert!(!found.is_empty(), "nobody saw {script:?}");
    }
}
