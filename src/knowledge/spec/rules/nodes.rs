//! Names: the cluster's, and which host belongs to which group.

use super::{SpecChecker, is_plain_name, new_spec_error, truncate_user_text};
use crate::spec::hosts::{Host, list_placeholders};
use crate::spec::model::Spec;
use crate::spec::tree::SpecTree;
use railwright_base::Diagnostic;
use railwright_base::nodeset::{NAMES_MAX, NodeSetError, fold_node_set, without_brackets};
use railwright_resource::kubernetes_object::manifest::is_subdomain;
use std::collections::{BTreeMap, HashMap};

/// The cluster's own name.
pub fn check_cluster_name(checker: &mut SpecChecker<'_>, spec: &Spec) {
    // An undecodable or missing name was reported already and is empty here.
    if checker.tree.find("cluster").is_some()
        && !spec.cluster.is_empty()
        && !is_plain_name(&spec.cluster, 63)
    {
        let effect = "the name stands in state files, units and labels";
        let fix = "use letters, digits and `-`, at most 63, starting with a letter or digit";
        checker.find(
            "cluster",
            "not a name",
            new_spec_error(
                "RW0121",
                format!(
                    "`{}` cannot be a cluster's name",
                    truncate_user_text(&spec.cluster)
                ),
                effect,
                fix,
            ),
        );
    }
}

/// A node-set that cannot be unfolded; the caret stands under the wrong part of it.
pub fn bad_node_set(tree: &SpecTree, group: usize, problem: NodeSetError) -> Diagnostic {
    let effect = "no host of this group can be named, so none is planned";
    let fix = problem.fix.unwrap_or_else(|| {
        "a node-set looks like `gpu[001-064]`, `n1,n2` or `r[1-4]n[1-16/2]`".to_owned()
    });
    let finding = new_spec_error("RW0110", "this is no node-set", effect, fix);
    match tree.find(&format!("nodes[{group}].name")) {
        Some(location) => {
            finding.labelled(tree.label_within(location, problem.span, &problem.message))
        }
        None => finding,
    }
}

/// All groups together stand for more hosts than we take.
pub fn too_many_hosts(tree: &SpecTree, group: usize) -> Diagnostic {
    let finding = new_spec_error(
        "RW0104",
        format!("the spec has more than {NAMES_MAX} hosts"),
        "plans of this size were never tried",
        "split the cluster into several inventories",
    );
    match tree.find(&format!("nodes[{group}].name")) {
        Some(location) => finding.labelled(tree.label(location, "the limit is passed here")),
        None => finding,
    }
}

/// `gpu01-16` is a host name like any other, and most likely sixteen of them. Where another host
/// has that beginning (`r1-1` beside `r1-2`) it is a name.
pub fn check_ranges_without_brackets(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    for (index, group) in spec.nodes.iter().enumerate() {
        for name in group.name.split(',').map(str::trim) {
            let Some(meant) = without_brackets(name) else {
                continue;
            };
            let start = name.rsplit_once('-').map_or(name, |(start, _)| start);
            let start = format!("{start}-");
            let identical = hosts.iter().filter(|host| host.name.starts_with(&start));
            if identical.count() > 1 {
                continue;
            }
            let finding = Diagnostic::warning(
                "RW0135",
                format!("`{}` is one host of that name", truncate_user_text(name)),
            )
            .effect(
                "if a range was meant, its hosts are not in the cluster: nothing is planned for \
                 them and nothing proven",
            )
            .next(format!(
                "write `{}` for a range; a host that is really called so can stay",
                truncate_user_text(&meant)
            ));
            checker.find(
                &format!("nodes[{index}].name"),
                "a range has brackets",
                finding,
            );
        }
    }
}

/// A host that two groups name: one finding for each pair of groups.
pub fn check_hosts_in_two_groups(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let mut first_group: HashMap<&str, usize> = HashMap::with_capacity(hosts.len());
    let mut shared: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for host in hosts {
        if let Some(first) = first_group.get(host.name.as_str()) {
            shared
                .entry((*first, host.group))
                .or_default()
                .push(&host.name);
        } else {
            first_group.insert(&host.name, host.group);
        }
    }
    for ((first, second), names) in shared {
        let what = if names.len() == 1 {
            "the host"
        } else {
            "the hosts"
        };
        let verb = if names.len() == 1 { "is" } else { "are" };
        let finding = new_spec_error(
            "RW0111",
            format!(
                "{what} {} {verb} in two groups",
                truncate_user_text(&fold_node_set(&names))
            ),
            "the two groups may want different things of the same machine",
            format!(
                "take them out of `{}` or of `{}`",
                truncate_user_text(&spec.nodes[first].name),
                truncate_user_text(&spec.nodes[second].name)
            ),
        );
        let finding = checker.pointed(&format!("nodes[{second}].name"), "again here", finding);
        checker.find(&format!("nodes[{first}].name"), "first here", finding);
    }
}

/// Names of nodes: patterns that can be filled, and what comes of them as the API server takes it,
/// each once. Only the first finding is reported.
pub fn check_kubernetes_nodes(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let mut seen: HashMap<&str, &Host> = HashMap::with_capacity(hosts.len());
    for host in hosts {
        let pattern = spec.nodes[host.group].kubernetes_node.as_deref();
        let other = seen.insert(&host.node, host);
        let mut fault = pattern.and_then(find_placeholder_fault);
        // Who has no cluster may call hosts as they like.
        if pattern.is_some() || spec.kubernetes.is_some() {
            fault = fault
                .or_else(|| find_node_name_fault(host, pattern.is_some()))
                .or_else(|| find_same_node_fault(other?, host, pattern.is_some()));
        }
        if let Some((label, message, fix)) = fault {
            let effect = "what its node has to give to pods could not be looked up, so the cluster \
                          would never be found ready";
            let key = if pattern.is_some() {
                "kubernetes_node"
            } else {
                "name"
            };
            let finding = new_spec_error("RW0138", message, effect, fix);
            return checker.find(&format!("nodes[{}].{key}", host.group), label, finding);
        }
    }
}

/// The label at the caret, what is wrong and what to write.
type NodeNameFault = (&'static str, String, &'static str);

fn find_placeholder_fault(pattern: &str) -> Option<NodeNameFault> {
    let unknown = list_placeholders(pattern)
        .into_iter()
        .find(|name| !matches!(*name, "name" | "index"))?;
    let shown = truncate_user_text(unknown);
    let message = format!("`{{{shown}}}` stands for nothing here");
    Some(("not known", message, "use `{name}` and `{index}`"))
}

fn find_node_name_fault(host: &Host, has_pattern: bool) -> Option<NodeNameFault> {
    if is_subdomain(&host.node) {
        return None;
    }
    let fix = if has_pattern {
        "small letters, digits, `-` and `.`, a letter or digit at both ends of each part, at most \
         253"
    } else {
        "say with kubernetes_node what the node is called (kubectl get nodes): the host's name is \
         taken where it says nothing"
    };
    let shown = truncate_user_text(&host.node);
    let message = format!("`{shown}` cannot be the name of a node");
    Some(("the API server takes no such name", message, fix))
}

fn find_same_node_fault(other: &Host, host: &Host, has_pattern: bool) -> Option<NodeNameFault> {
    if other.name == host.name {
        return None;
    }
    let fix = if has_pattern {
        "let `{index}` or `{name}` stand in it"
    } else {
        "a kubelet makes small letters of its host's name: say with kubernetes_node what the nodes \
         are called"
    };
    let message = format!(
        "`{}` and `{}` would both be the node `{}`",
        truncate_user_text(&other.name),
        truncate_user_text(&host.name),
        truncate_user_text(&host.node)
    );
    Some(("the same for two hosts", message, fix))
}
