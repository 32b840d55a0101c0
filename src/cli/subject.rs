//! What a user names on a command line: a host, a switch, a resource, or a node-set of them. As an
//! address (`host/gpu-[001-004]/link/ens4`), and as the screens print it (`gpu-[001-004] link
//! ens4`, `n1 file /etc/x`, or `file /etc/x` for every host that has it), names that a screen folds
//! (`link ens[0-7]f0np0`) among them.

use super::CommandFailure;
use super::spoken::{About, match_resource_name};
use railwright_base::text::{format_count, one_line};
use railwright_base::{Address, Diagnostic, Target, TargetKind, nodeset};
use railwright_resource::kind_named;
use railwright_session::Session;
use railwright_state::ClusterState;
use std::collections::BTreeSet;

/// What there is to be named.
pub struct KnownSubjects<'a> {
    /// Every target.
    pub targets: &'a [Target],
    /// Addresses of resources; asked for only where a name leaves the host out.
    pub resources: &'a dyn Fn() -> Result<BTreeSet<String>, Diagnostic>,
}

/// The addresses of these texts of a command line, of targets that railwright reaches.
pub fn resolve_reached_addresses(
    session: &Session,
    texts: &[String],
) -> Result<Vec<String>, CommandFailure> {
    let addresses = resolve_addresses(session, texts)?;
    for address in &addresses {
        let Some(name) = address
            .strip_prefix("host/")
            .and_then(|rest| rest.split('/').next())
        else {
            continue;
        };
        let host = session.inventory.loaded.host(name);
        if host.is_some_and(|host| host.ssh.is_none()) {
            return Err(report_host_without_ssh(name, &session.inventory.word).into());
        }
    }
    Ok(addresses)
}

/// The addresses of these texts of a command line; hosts without SSH may be named too.
pub fn resolve_addresses(
    session: &Session,
    texts: &[String],
) -> Result<Vec<String>, CommandFailure> {
    let resources = || -> Result<BTreeSet<String>, Diagnostic> {
        let state = ClusterState::load(&session.folder)?;
        let desired = session.desired.wishes.iter().map(|wish| &wish.address);
        Ok(desired
            .chain(state.last_applied.resources.keys())
            .map(ToString::to_string)
            .collect())
    };
    resolve_subjects(
        texts,
        &KnownSubjects {
            targets: &session.targets,
            resources: &resources,
        },
    )
}

/// Somebody names a host that nobody may log in to.
pub fn report_host_without_ssh(host: &str, inventory: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1041",
        format!(
            "{} has no SSH: the spec says `ssh: none` of it",
            one_line(host, 60)
        ),
    )
    .on(format!("host/{}", one_line(host, 60)))
    .effect(
        "nothing is planned for it and nothing is asked of it; what is known of it is what its \
         cluster tells of its node",
    )
    .state("nothing was changed")
    .next(format!(
        "railwright plan {inventory} shows the cluster's own steps, and which modules such hosts \
         go without"
    ))
    .next("where the host can be reached after all, say so in its group: `ssh: { user: root }`")
}

/// Every address that these texts stand for; one that stands for none is an error.
pub fn resolve_subjects(
    texts: &[String],
    known: &KnownSubjects,
) -> Result<Vec<String>, CommandFailure> {
    let mut out = Vec::new();
    for text in texts {
        let objects = of_clusters(text, known)?;
        if !objects.is_empty() {
            out.extend(objects);
            continue;
        }
        match parse_subject(text.trim(), known.targets).map_err(|why| no_address(text, &why))? {
            ParsedSubject::Here(addresses) => out.extend(names_unfolded(addresses, known)?),
            ParsedSubject::Everywhere(within) => out.extend(expand_to_all_targets(&within, known)?),
        }
    }
    Ok(out)
}

/// A cluster by its name alone, and its resources in all the ways in which they are called, with or
/// without the cluster before.
fn of_clusters(text: &str, known: &KnownSubjects) -> Result<Vec<String>, CommandFailure> {
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |kind: TargetKind, name: &str| {
        known
            .targets
            .iter()
            .any(|target| target.kind == kind && &*target.name == name)
    };
    if has(TargetKind::Kube, &said) && !has(TargetKind::Host, &said) {
        return Ok(vec![Target::kube(&said).to_string()]);
    }
    let (cluster, below) = match said.strip_prefix("kube/") {
        Some(named) => named
            .split_once(['/', ' '])
            .map_or((None, ""), |(cluster, below)| (Some(cluster), below)),
        None => match said.split_once(' ') {
            Some((cluster, below)) if has(TargetKind::Kube, cluster) => (Some(cluster), below),
            _ => (None, said.as_str()),
        },
    };
    let of_others = ["host/", "switch/"]
        .iter()
        .any(|other| said.starts_with(other));
    if of_others
        || !below.contains(['/', ' ']) && cluster.is_none()
        || !known
            .targets
            .iter()
            .any(|target| target.kind == TargetKind::Kube)
    {
        return Ok(Vec::new());
    }
    let there = (known.resources)()?;
    let objects = there
        .iter()
        .filter_map(|address| address.parse::<Address>().ok())
        .filter(|a| a.target.kind == TargetKind::Kube);
    let objects = objects.filter(|a| cluster.is_none_or(|cluster| *a.target.name == *cluster));
    let about: Vec<(Address, About)> = objects
        .filter_map(|a| match_resource_name(below, &a).map(|about| (a, about)))
        .collect();
    let of = |meant: &About| {
        about
            .iter()
            .filter(|(_, about)| about == meant)
            .map(|(a, _)| a.to_string())
            .collect::<Vec<_>>()
    };
    let one = of(&About::Itself);
    Ok(if one.is_empty() && cluster.is_some() {
        of(&About::Above)
    } else {
        one
    })
}

/// The one address that a text stands for.
pub fn resolve_single_address(
    text: &str,
    known: &KnownSubjects,
) -> Result<Address, CommandFailure> {
    match resolve_subjects(&[text.to_owned()], known)?.as_slice() {
        [one] => Ok(one
            .parse::<Address>()
            .map_err(|error| no_address(text, &error.to_string()))?),
        all => Err(no_address(
            text,
            &format!("it stands for {}", format_count(all.len(), "resource")),
        )
        .into()),
    }
}

fn no_address(text: &str, why: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1011",
        format!("{} is no address: {why}", one_line(text, 80)),
    )
    .state("nothing was planned or changed")
    .next(
        "write host/NAME for a host, host/NAME/KIND/RESOURCE for one resource; NAME may be a \
         node-set; of a switch switch/NAME",
    )
    .next(
        "of a Kubernetes cluster kube/NAME, kube/NAME/KIND/NAMESPACE/OBJECT; or as the screens do, \
         in quotes: 'NAME KIND RESOURCE'",
    )
}

/// Where no host or switch is said: on those that have it. If none has, on all, so that whoever
/// looks for it says that it is not there.
fn expand_to_all_targets(
    within: &str,
    known: &KnownSubjects,
) -> Result<Vec<String>, CommandFailure> {
    let of = within
        .split('/')
        .next()
        .and_then(kind_named)
        .map_or(TargetKind::Host, |kind| kind.target_kind());
    let targets = known.targets.iter().filter(|target| target.kind == of);
    let all: Vec<String> = targets.map(|target| format!("{target}/{within}")).collect();
    let all = names_unfolded(all, known)?;
    let there = (known.resources)()?;
    let some: Vec<String> = all
        .iter()
        .filter(|address| there.contains(*address))
        .cloned()
        .collect();
    Ok(if some.is_empty() { all } else { some })
}

/// Resources whose names count on are one entry of a screen (`link ens[0-7]f0np0`): all of them,
/// unless one is called just so.
fn names_unfolded(
    addresses: Vec<String>,
    known: &KnownSubjects,
) -> Result<Vec<String>, CommandFailure> {
    let is_folded = |address: &String| {
        address
            .splitn(3, '/')
            .nth(2)
            .is_some_and(|within| within.contains('['))
    };
    if !addresses.iter().any(is_folded) {
        return Ok(addresses);
    }
    let there = (known.resources)()?;
    let unfold = |address: String| match address.parse::<Address>() {
        Ok(folded) if is_folded(&address) && !there.contains(&address) => {
            match nodeset::expand_node_set(folded.name()) {
                Ok(names) => names
                    .iter()
                    .map(|name| folded.renamed(name).to_string())
                    .collect(),
                Err(_) => vec![address],
            }
        }
        _ => vec![address],
    };
    Ok(addresses.into_iter().flat_map(unfold).collect())
}

enum ParsedSubject {
    Here(Vec<String>),
    /// A resource by its address within any target.
    Everywhere(String),
}

fn parse_subject(text: &str, targets: &[Target]) -> Result<ParsedSubject, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let begins = text.split('/').next().unwrap_or_default();
    if text.contains('/')
        && (matches!(begins, "host" | "kube")
            || begins == "switch" && !text.contains(char::is_whitespace))
    {
        return expand_addresses(text).map(ParsedSubject::Here);
    }
    // The screens print switches with their kind, and what is on them after a space.
    let of_switch = text.strip_prefix("switch/");
    let text = of_switch.unwrap_or(text);
    let (first, rest) = text
        .split_once(char::is_whitespace)
        .map_or((text, ""), |(first, rest)| (first, rest.trim()));
    if is_resource(text) {
        return Ok(ParsedSubject::Everywhere(format_resource_path(text)));
    }
    if first.contains('/') {
        return Err(first
            .parse::<Target>()
            .err()
            .map_or_else(String::new, |error| said(&error)));
    }
    let names = nodeset::expand_node_set(first).map_err(|error| said(&error))?;
    let below = if rest.is_empty() {
        String::new()
    } else {
        format!("/{}", format_resource_path(rest))
    };
    // A name that only a switch has is that switch's.
    let of = |kind: TargetKind| {
        targets
            .iter()
            .filter(move |target| target.kind == kind)
            .map(|target| &*target.name)
            .collect()
    };
    let (hosts, switches): (BTreeSet<&str>, BTreeSet<&str>) =
        (of(TargetKind::Host), of(TargetKind::Switch));
    let is_switch =
        |name: &str| of_switch.is_some() || switches.contains(name) && !hosts.contains(name);
    let called = |name: &String| {
        if is_switch(name) {
            Target::switch(name)
        } else {
            Target::host(name)
        }
    };
    Ok(ParsedSubject::Here(
        names
            .iter()
            .map(|name| format!("{}{below}", called(name)))
            .collect(),
    ))
}

/// `link ens4` or `link/ens4`: begins with the name of a kind.
fn is_resource(text: &str) -> bool {
    text.split_once(|c: char| c == '/' || c.is_whitespace())
        .is_some_and(|(kind, _)| kind_named(kind).is_some())
}

/// `file /etc/x` and `file/%2Fetc%2Fx` as the end of an address.
fn format_resource_path(text: &str) -> String {
    match text.split_once(char::is_whitespace) {
        Some((kind, name)) => Address::host("x", kind, name.trim()).within_target(),
        None => one_name(text),
    }
}

/// On a host a resource has one name, so further slashes are part of it.
fn one_name(text: &str) -> String {
    text.split_once('/').map_or_else(
        || text.to_owned(),
        |(kind, name)| format!("{kind}/{}", name.replace('/', "%2F")),
    )
}

fn expand_addresses(text: &str) -> Result<Vec<String>, String> {
    let mut parts = text.splitn(3, '/');
    let (kind, name, rest) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
        parts.next(),
    );
    let one = |name: String| match rest {
        None => format!("{kind}/{name}")
            .parse::<Target>()
            .map(|target| target.to_string()),
        Some(rest) => {
            let rest = if kind == "host" {
                one_name(rest)
            } else {
                rest.to_owned()
            };
            format!("{kind}/{name}/{rest}")
                .parse::<Address>()
                .map(|address| address.to_string())
        }
    };
    let names = nodeset::expand_node_set(name).map_err(|error| error.to_string())?;
    names
        .into_iter()
        .map(|name| one(name).map_err(|error| error.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfolded(text: &str) -> String {
        let cluster = Target {
            kind: TargetKind::Kube,
            name: "prod".into(),
        };
        let leaf = |name: &str| Target {
            kind: TargetKind::Switch,
            name: name.into(),
        };
        let targets = [
            Target::host("n1"),
            Target::host("n2"),
            Target::host("n3"),
            cluster,
            leaf("leaf1"),
            leaf("leaf2"),
            leaf("n3"),
        ];
        let resources = || -> Result<BTreeSet<String>, Diagnostic> {
            let files = ["host/n1/file/%2Fetc%2Fx", "host/n3/file/%2Fetc%2Fx"];
            let links = [
                "host/n2/link/ens6",
                "host/n2/link/ens7",
                "host/n3/link/odd[1-2]",
            ];
            let objects = [
                "kube/prod/ConfigMap.core/kube-system/rdma",
                "kube/prod/Namespace.core/-/rdma",
            ];
            let objects = objects
                .into_iter()
                .chain(["kube/prod/node_taint/nvidia.com%2Fgpu:NoSchedule"]);
            let objects = objects.chain([
                "switch/leaf1/switch_qos/Ethernet0",
                "switch/leaf2/switch_qos/Ethernet1%2F1",
            ]);
            Ok(files
                .into_iter()
                .chain(links)
                .chain(objects)
                .map(str::to_owned)
                .collect())
        };
        match resolve_subjects(
            &[text.to_owned()],
            &KnownSubjects {
                targets: &targets,
                resources: &resources,
            },
        ) {
            Ok(addresses) => addresses.join(" "),
            Err(failure) => failure.error.diagnostics[0].code.to_string(),
        }
    }

    #[test]
    fn what_the_screens_print_is_taken_like_an_address() {
        for (text, addresses) in [
            ("host/n1", "host/n1"),
            ("n1", "host/n1"),
            ("n[1-2]", "host/n1 host/n2"),
            (
                "host/n[1-2]/link/ens4",
                "host/n1/link/ens4 host/n2/link/ens4",
            ),
            (
                "n[1-2]         link ens4",
                "host/n1/link/ens4 host/n2/link/ens4",
            ),
            ("n1 link/ens4", "host/n1/link/ens4"),
            ("n1 file /etc/a b", "host/n1/file/%2Fetc%2Fa%20b"),
            ("n2             file/%2Fetc%2Fx", "host/n2/file/%2Fetc%2Fx"),
            ("host/n1/file//etc/x", "host/n1/file/%2Fetc%2Fx"),
            ("host/n1/file/%2Fetc%2Fx", "host/n1/file/%2Fetc%2Fx"),
            ("n1 reboot", "host/n1/reboot"),
            (
                "file /etc/x",
                "host/n1/file/%2Fetc%2Fx host/n3/file/%2Fetc%2Fx",
            ),
            (
                "file/%2Fetc%2Fx",
                "host/n1/file/%2Fetc%2Fx host/n3/file/%2Fetc%2Fx",
            ),
            (
                "link ens4",
                "host/n1/link/ens4 host/n2/link/ens4 host/n3/link/ens4",
            ),
            (
                "ConfigMap kube-system/rdma",
                "kube/prod/ConfigMap.core/kube-system/rdma",
            ),
            (
                "kube/prod   ConfigMap kube-system/rdma",
                "kube/prod/ConfigMap.core/kube-system/rdma",
            ),
            ("prod  Namespace rdma", "kube/prod/Namespace.core/-/rdma"),
            ("prod", "kube/prod"),
            ("kube/prod", "kube/prod"),
            (
                "kube/prod/ConfigMap/kube-system/rdma",
                "kube/prod/ConfigMap.core/kube-system/rdma",
            ),
            (
                "configmap kube-system/rdma",
                "kube/prod/ConfigMap.core/kube-system/rdma",
            ),
            (
                "kube/prod/Namespace/rdma",
                "kube/prod/Namespace.core/-/rdma",
            ),
            (
                "kube/prod/configmap",
                "kube/prod/ConfigMap.core/kube-system/rdma",
            ),
            ("kube/other/Namespace/rdma", "kube/other/Namespace/rdma"),
            (
                "kube/prod/node_taint/nvidia.com/gpu:NoSchedule",
                "kube/prod/node_taint/nvidia.com%2Fgpu:NoSchedule",
            ),
            (
                "node_taint/nvidia.com/gpu:NoSchedule",
                "kube/prod/node_taint/nvidia.com%2Fgpu:NoSchedule",
            ),
            (
                "node_taint nvidia.com%2Fgpu:NoSchedule",
                "kube/prod/node_taint/nvidia.com%2Fgpu:NoSchedule",
            ),
            (
                "n1 link ens[0-1]f0np0",
                "host/n1/link/ens0f0np0 host/n1/link/ens1f0np0",
            ),
            (
                "host/n[1-2]/link/ens[4-5]",
                "host/n1/link/ens4 host/n1/link/ens5 host/n2/link/ens4 host/n2/link/ens5",
            ),
            (
                "file /etc/[x-y]",
                "host/n1/file/%2Fetc%2F[x-y] host/n2/file/%2Fetc%2F[x-y] \
                 host/n3/file/%2Fetc%2F[x-y]",
            ),
            ("link ens[6-7]", "host/n2/link/ens6 host/n2/link/ens7"),
            ("n3 link odd[1-2]", "host/n3/link/odd[1-2]"),
            (
                "kube/prod/DaemonSet.apps/kube-system/rdma",
                "kube/prod/DaemonSet.apps/kube-system/rdma",
            ),
            ("leaf1", "switch/leaf1"),
            ("switch/leaf[1-2]", "switch/leaf1 switch/leaf2"),
            ("leaf[1-2]", "switch/leaf1 switch/leaf2"),
            ("n3", "host/n3"),
            (
                "leaf1 switch_qos Ethernet0",
                "switch/leaf1/switch_qos/Ethernet0",
            ),
            (
                "switch/leaf1 switch_qos Ethernet0",
                "switch/leaf1/switch_qos/Ethernet0",
            ),
            (
                "switch_qos Ethernet1/1",
                "switch/leaf2/switch_qos/Ethernet1%2F1",
            ),
            ("rack/1", "RW1011"),
            ("", "RW1011"),
            ("host/", "RW1011"),
            ("n[1-", "RW1011"),
        ] {
            assert_eq!(unfolded(text), addresses, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_address_stands_for_itself_also_as_a_screen_prints_it(path in "/[a-z]{1,5}(/[a-z.%# ]{1,5}){0,3}") {
            let path = path.split_whitespace().collect::<Vec<_>>().join(" ");
            let address = Address::host("n1", "file", &path);
            proptest::prop_assert_eq!(unfolded(&address.to_string()), address.to_string());
            proptest::prop_assert_eq!(unfolded(&format!("n1   file {path}")), address.to_string());
        }
    }
}
