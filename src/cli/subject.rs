//! What a user names on a command line: a host, a switch, a resource, or a node-set of them. As an
//! address (`host/gpu-[001-004]/link/ens4`), and as the screens print it (`gpu-[001-004] link
//! ens4`, `n1 file /etc/x`, or `file /etc/x` for every host that has it), names that a screen folds
//! (`link ens[0-7]f0np0`) among them.

use super::CommandFailure;
use super::spoken::{About, match_resource_name};
use railwright_base::text::{format_count, one_line};
use railwright_base::{Address, Diagnostic, Reason, Target, TargetKind, nodeset};
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

impl KnownSubjects<'_> {
    fn list_names(&self, kind: TargetKind) -> BTreeSet<&str> {
        let targets = self.targets.iter().filter(|target| target.kind == kind);
        targets.map(|target| &*target.name).collect()
    }

    fn has_target(&self, kind: TargetKind, name: &str) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|target| target.kind == kind && &*target.name == name)
    }
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
    resolve_subjects(
        texts,
        &KnownSubjects {
            targets: &session.targets,
            resources: &|| list_known_addresses(session),
        },
    )
}

/// The addresses of all resources that are desired or were applied.
fn list_known_addresses(session: &Session) -> Result<BTreeSet<String>, Diagnostic> {
    let state = ClusterState::load(&session.folder)?;
    let desired = session
        .desired
        .resources
        .iter()
        .map(|resource| &resource.address);
    let applied = state.last_applied.resources.keys();
    Ok(desired.chain(applied).map(ToString::to_string).collect())
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
        let objects = resolve_cluster_subject(text, known)?;
        if !objects.is_empty() {
            out.extend(objects);
            continue;
        }
        match parse_subject(text.trim(), known).map_err(|why| report_no_address(text, &why))? {
            ParsedSubject::Here(addresses) => out.extend(unfold_names(addresses, known)?),
            ParsedSubject::Everywhere(within) => out.extend(expand_to_all_targets(&within, known)?),
        }
    }
    Ok(out)
}

/// A cluster by its name alone, and its resources in all the ways in which they are called, with or
/// without the cluster before.
fn resolve_cluster_subject(
    text: &str,
    known: &KnownSubjects,
) -> Result<Vec<String>, CommandFailure> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if known.has_target(TargetKind::Kube, &words) && !known.has_target(TargetKind::Host, &words) {
        return Ok(vec![Target::kube(&words).to_string()]);
    }
    let (cluster, below) = split_cluster(&words, known);
    let is_of_others = words.starts_with("host/") || words.starts_with("switch/");
    let names_resource = cluster.is_some() || below.contains(['/', ' ']);
    if is_of_others || !names_resource || known.list_names(TargetKind::Kube).is_empty() {
        return Ok(Vec::new());
    }
    let (mut exact, mut inside) = (Vec::new(), Vec::new());
    for address in (known.resources)()? {
        let Ok(parsed) = address.parse::<Address>() else {
            continue;
        };
        let target = &parsed.target;
        if target.kind != TargetKind::Kube || cluster.is_some_and(|name| *target.name != *name) {
            continue;
        }
        match match_resource_name(below, &parsed) {
            Some(About::Itself) => exact.push(parsed.to_string()),
            Some(About::Above) => inside.push(parsed.to_string()),
            Some(About::Field(_)) | None => {}
        }
    }
    if exact.is_empty() && cluster.is_some() {
        return Ok(inside);
    }
    Ok(exact)
}

/// The cluster that these words begin with, and what follows it.
fn split_cluster<'w>(words: &'w str, known: &KnownSubjects) -> (Option<&'w str>, &'w str) {
    if let Some(named) = words.strip_prefix("kube/") {
        return match named.split_once(['/', ' ']) {
            Some((cluster, below)) => (Some(cluster), below),
            None => (None, ""),
        };
    }
    match words.split_once(' ') {
        Some((name, below)) if known.has_target(TargetKind::Kube, name) => (Some(name), below),
        _ => (None, words),
    }
}

/// The one address that a text stands for.
pub fn resolve_single_address(
    text: &str,
    known: &KnownSubjects,
) -> Result<Address, CommandFailure> {
    match resolve_subjects(&[text.to_owned()], known)?.as_slice() {
        [address] => Ok(address
            .parse::<Address>()
            .map_err(|error| report_no_address(text, &error.to_string().into()))?),
        addresses => Err(report_no_address(
            text,
            &format!(
                "it stands for {}",
                format_count(addresses.len(), "resource")
            )
            .into(),
        )
        .into()),
    }
}

fn report_no_address(text: &str, why: &Reason) -> Diagnostic {
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

/// Where no host or switch is named: on those that have it. If none has, on all, so that whoever
/// looks for it says that it is not there.
fn expand_to_all_targets(
    within: &str,
    known: &KnownSubjects,
) -> Result<Vec<String>, CommandFailure> {
    let kind = kind_named(within.split('/').next().unwrap_or_default());
    let target_kind = kind.map_or(TargetKind::Host, |kind| kind.target_kind());
    let mut possible = Vec::new();
    for target in known.targets {
        if target.kind == target_kind {
            possible.push(format!("{target}/{within}"));
        }
    }
    let possible = unfold_names(possible, known)?;
    let existing = (known.resources)()?;
    let mut found = possible.clone();
    found.retain(|address| existing.contains(address));
    Ok(if found.is_empty() { possible } else { found })
}

/// Resources whose names count on are one entry of a screen (`link ens[0-7]f0np0`): all of them,
/// unless one is called just so.
fn unfold_names(
    addresses: Vec<String>,
    known: &KnownSubjects,
) -> Result<Vec<String>, CommandFailure> {
    if !addresses.iter().any(|address| is_folded(address)) {
        return Ok(addresses);
    }
    let existing = (known.resources)()?;
    let mut unfolded = Vec::new();
    for address in addresses {
        match unfold_name(&address) {
            Some(several) if !existing.contains(&address) => unfolded.extend(several),
            _ => unfolded.push(address),
        }
    }
    Ok(unfolded)
}

fn is_folded(address: &str) -> bool {
    let within_target = address.splitn(3, '/').nth(2);
    within_target.is_some_and(|within| within.contains('['))
}

/// The addresses that a folded one stands for; nothing for one that is not folded.
fn unfold_name(address: &str) -> Option<Vec<String>> {
    if !is_folded(address) {
        return None;
    }
    let folded = address.parse::<Address>().ok()?;
    let names = nodeset::expand_node_set(folded.name()).ok()?;
    let addresses = names.iter().map(|name| folded.renamed(name).to_string());
    Some(addresses.collect())
}

enum ParsedSubject {
    Here(Vec<String>),
    /// A resource by its address within any target.
    Everywhere(String),
}

fn parse_subject(text: &str, known: &KnownSubjects) -> Result<ParsedSubject, Reason> {
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
    if is_resource(text) {
        return Ok(ParsedSubject::Everywhere(format_resource_path(text)));
    }
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if first.contains('/') {
        return Err(match first.parse::<Target>() {
            Ok(_) => String::new().into(),
            Err(error) => error.to_string().into(),
        });
    }
    let names = nodeset::expand_node_set(first).map_err(|error| error.to_string())?;
    let below = match rest.trim() {
        "" => String::new(),
        rest => format!("/{}", format_resource_path(rest)),
    };
    // A name that only a switch has is that switch's.
    let hosts = known.list_names(TargetKind::Host);
    let switches = known.list_names(TargetKind::Switch);
    let mut addresses = Vec::new();
    for name in names {
        let only_a_switch_has_it =
            switches.contains(name.as_str()) && !hosts.contains(name.as_str());
        let target = if of_switch.is_some() || only_a_switch_has_it {
            Target::switch(&name)
        } else {
            Target::host(&name)
        };
        addresses.push(format!("{target}{below}"));
    }
    Ok(ParsedSubject::Here(addresses))
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
        None => escape_resource_name(text),
    }
}

/// On a host a resource has one name, so further slashes are part of it.
fn escape_resource_name(text: &str) -> String {
    match text.split_once('/') {
        Some((kind, name)) => format!("{kind}/{}", name.replace('/', "%2F")),
        None => text.to_owned(),
    }
}

fn expand_addresses(text: &str) -> Result<Vec<String>, Reason> {
    let mut parts = text.splitn(3, '/');
    let kind = parts.next().unwrap_or_default();
    let names = parts.next().unwrap_or_default();
    let rest = match parts.next() {
        Some(rest) if kind == "host" => Some(escape_resource_name(rest)),
        rest => rest.map(str::to_owned),
    };
    let mut addresses = Vec::new();
    for name in nodeset::expand_node_set(names).map_err(|error| error.to_string())? {
        let address = match &rest {
            None => format!("{kind}/{name}")
                .parse::<Target>()
                .map(|target| target.to_string()),
            Some(rest) => format!("{kind}/{name}/{rest}")
                .parse::<Address>()
                .map(|address| address.to_string()),
        };
        addresses.push(address.map_err(|error| error.to_string())?);
    }
    Ok(addresses)
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
