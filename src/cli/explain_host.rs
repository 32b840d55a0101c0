//! `railwright explain host/NAME`, `switch/NAME` and `kube/NAME`: why a host, a switch or a cluster
//! gets what it gets.

use super::session::open_quietly;
use super::spoken::{About, match_resource_name};
use super::subject::resolve_addresses;
use super::{CommandFailure, Exit};
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Address, Diagnostic, Target, TargetKind, nodeset};
use railwright_knowledge::catalog::release::HostComponent;
use railwright_knowledge::catalog::{Catalog, CatalogTable, CategoryEntry};
use railwright_knowledge::solve::{Choice, ReleaseConstraint};
use railwright_knowledge::spec::Host;
use railwright_report::explanation::{
    EntryExplained, Explanation, ModuleReason, ReleaseExplained, ResourceExplained, RuleExplained,
    render_explanation_screen,
};
use railwright_report::{document, knowledge, out};
use railwright_resource::kubernetes_object;
use railwright_session::{Session, SessionRequest, SigningKeys};
use serde::Serialize;
use std::path::Path;

/// Explains `host/NAME`, or what is below it: `host/NAME/link/ens4/mtu`, the part after the name
/// also as `attribute`; and `kube/NAME`, or an object below it.
pub fn explain_target(
    what: &str,
    attribute: Option<&str>,
    inventory: &Path,
    json: bool,
) -> Result<Exit, CommandFailure> {
    let (sort, named) = what.split_once('/').unwrap_or(("host", what));
    let (name, below) = named
        .split_once('/')
        .map_or((named, None), |(name, below)| (name, Some(below)));
    let (target, session) = prepare_target(sort, name, inventory)?;
    if !is_in_inventory(&session, &target) {
        return Err(report_unknown_target(&session, &target).into());
    }
    let path: Vec<&str> = below.into_iter().chain(attribute).collect();
    let path = path.join("/");
    let mut resources = explain_resources(&session, &target);
    let field = select_by_path(&mut resources, &path)
        .map_err(|near| report_unknown_resource(&session, &target, &path, near))?;
    let explanation = explain_with_resources(&session, &target, resources);
    match json {
        true => out::print_result(&document::render_json_document(
            &document::ExplanationDocument::of(explanation),
        )),
        false => out::print_result(&render_explanation_screen(&explanation, field.as_deref())),
    }
    Ok(Exit::Done)
}

/// The target, and the inventory session for it: the objects of a cluster are made from the facts
/// of all hosts, those of a host from its own.
fn prepare_target(
    sort: &str,
    name: &str,
    inventory: &Path,
) -> Result<(Target, Session), CommandFailure> {
    let target = match sort {
        "kube" => Target::kube(name),
        "switch" => Target::switch(name),
        _ => {
            return Ok((
                Target::host(name),
                open_quietly(
                    inventory,
                    &SessionRequest::of_spec_alone()
                        .with_keys(SigningKeys::WhereAStepNeedsThem)
                        .of_host(name),
                )?,
            ));
        }
    };
    let session = open_quietly(
        inventory,
        &SessionRequest::of_spec_alone().with_keys(SigningKeys::WhereAStepNeedsThem),
    )?;
    Ok((target, session))
}

fn is_in_inventory(session: &Session, target: &Target) -> bool {
    let loaded = &session.inventory.loaded;
    let name = &*target.name;
    match target.kind {
        TargetKind::Host => loaded.host(name).is_some(),
        TargetKind::Kube => loaded.kubernetes_name() == Some(name),
        TargetKind::Switch => loaded.switches.iter().any(|switch| switch.name == name),
    }
}

/// Explains a target of the inventory by these of its resources. Entries of the catalogue and
/// releases are those of hosts alone.
fn explain_with_resources(
    session: &Session,
    target: &Target,
    resources: Vec<ResourceExplained>,
) -> Explanation {
    let name = &*target.name;
    let left_out = session.desired.left_out.iter();
    let mut explanation = Explanation {
        host: None,
        cluster: None,
        switch: None,
        catalogue: Vec::new(),
        releases: Vec::new(),
        resources,
        rules: explain_rules(session, name),
        left_out: left_out.filter(|one| one.host == name).cloned().collect(),
    };
    match target.kind {
        TargetKind::Host => {
            explanation.host = Some(name.to_owned());
            if let Some(host) = session.inventory.loaded.host(name) {
                explanation.catalogue = collect_host_entries(session, host);
                explanation.releases = explain_releases(session, host);
            }
        }
        TargetKind::Kube => explanation.cluster = Some(name.to_owned()),
        TargetKind::Switch => explanation.switch = Some(name.to_owned()),
    }
    explanation
}

/// The address of what is called so without its target (`node_taint nvidia.com/gpu:NoSchedule`), or
/// as the screens print it.
pub fn resolve_address(what: &str, inventory: &Path) -> Result<String, CommandFailure> {
    let session = open_quietly(
        inventory,
        &SessionRequest::of_spec_alone().with_keys(SigningKeys::WhereAStepNeedsThem),
    )?;
    let all = resolve_addresses(&session, &[what.to_owned()])?;
    let (what, path) = (one_line(what, 80), &session.inventory.word);
    let (message, next) = match &all[..] {
        [address] => return Ok(address.clone()),
        [] => (
            format!("no resource is declared for `{what}`"),
            format!("railwright plan {path} shows what is declared"),
        ),
        [first, ..] => (
            format!("`{what}` is on {} targets", all.len()),
            format!("name one of them: railwright explain {first} {path}"),
        ),
    };
    Err(Diagnostic::error("RW1032", message).next(next).into())
}

fn report_unknown_target(session: &Session, target: &Target) -> Diagnostic {
    let inventory = &session.inventory;
    let (sort, what, near) = match target.kind {
        TargetKind::Kube => {
            let name = inventory.loaded.kubernetes_name();
            ("kube", "Kubernetes cluster", name)
        }
        TargetKind::Switch => {
            let switches = inventory.loaded.switches.iter();
            let names = switches.map(|switch| switch.name.as_str());
            ("switch", "switch", find_nearest_word(&target.name, names))
        }
        TargetKind::Host => {
            let names = inventory.loaded.hosts.iter().map(|host| host.name.as_str());
            ("host", "host", find_nearest_word(&target.name, names))
        }
    };
    let next = match near {
        Some(near) => format!("did you mean `{sort}/{near}`?"),
        None => format!("name a {what} of the inventory, and the inventory after it"),
    };
    Diagnostic::error(
        "RW1032",
        format!(
            "the inventory {} has no {what} `{}`",
            inventory.word,
            one_line(&target.name, 60)
        ),
    )
    .next(next)
}

fn report_unknown_resource(
    session: &Session,
    target: &Target,
    path: &str,
    near: Option<Address>,
) -> CommandFailure {
    let next = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "all of them: railwright explain {target} {}",
            session.inventory.word
        ),
    };
    Diagnostic::error(
        "RW1032",
        format!(
            "no resource is declared for `{}` of {}",
            one_line(path, 80),
            target.name
        ),
    )
    .next(next)
    .into()
}

/// All resources of a target; an object of a cluster is shown as its manifest, which its body holds
/// as a map or as a text.
fn explain_resources(session: &Session, target: &Target) -> Vec<ResourceExplained> {
    let mut explained = Vec::new();
    for resource in &session.desired.resources {
        if resource.address.target != *target {
            continue;
        }
        let mut desired = resource.body.clone();
        if resource.kind == "kubernetes_object"
            && let Ok(manifest) = kubernetes_object::manifest::parse_manifest(&resource.body)
        {
            desired = manifest;
        }
        let mut because = Vec::new();
        if let Some(reasons) = session.desired.why.get(&resource.address) {
            because.extend(reasons.iter().map(ModuleReason::of));
        }
        explained.push(ResourceExplained {
            address: resource.address.clone(),
            desired,
            because,
            places: resource.places.clone(),
        });
    }
    explained
}

/// Keeps what a path names: a kind, a resource, or a field of one, which comes back. Where nothing
/// is left, the nearest resource.
fn select_by_path(
    resources: &mut Vec<ResourceExplained>,
    path: &str,
) -> Result<Option<String>, Option<Address>> {
    if path.trim_matches('/').is_empty() {
        return Ok(None);
    }
    let found: Vec<Option<About>> = resources
        .iter()
        .map(|resource| match_resource_name(path, &resource.address))
        .collect();
    let mut fields = Vec::new();
    for about in &found {
        if let Some(About::Field(field)) = about {
            fields.push(field.clone());
        }
    }
    // Of two names, one of which goes on with the other, the longer is meant.
    let meant = match fields.into_iter().min_by_key(String::len) {
        _ if found.contains(&Some(About::Itself)) => About::Itself,
        Some(field) => About::Field(field),
        None => About::Above,
    };
    if !found.contains(&Some(meant.clone())) {
        let names: Vec<String> = resources
            .iter()
            .map(|resource| resource.address.path.join("/"))
            .collect();
        let near = find_nearest_word(path, names.iter().map(String::as_str));
        let near = names.iter().position(|name| Some(name.as_str()) == near);
        return Err(near.map(|near| resources[near].address.clone()));
    }
    let mut about = found.iter();
    resources.retain(|_| about.next() == Some(&Some(meant.clone())));
    Ok(if let About::Field(field) = meant {
        Some(field)
    } else {
        None
    })
}

/// The entries of the catalogue that are about a host.
fn collect_host_entries(session: &Session, host: &Host) -> Vec<EntryExplained> {
    let catalog = &session.inventory.knowledge.catalog;
    let group = session.inventory.loaded.group_of(host);
    let mut entries = Vec::new();
    if let Some(gpu) = &group.gpu {
        entries.push(explain_entry(
            catalog,
            &catalog.gpu,
            &gpu.model,
            catalog.gpu.get(&gpu.model),
        ));
    }
    if let Some(nics) = &group.nics {
        entries.push(explain_entry(
            catalog,
            &catalog.nic,
            &nics.model,
            catalog.nic.get(&nics.model),
        ));
    }
    if let Some(name) = &group.instance {
        entries.push(explain_entry(
            catalog,
            &catalog.instance,
            name,
            catalog.instance_of(name),
        ));
    }
    if let Some(os) = &group.os {
        entries.push(explain_entry(catalog, &catalog.os, os, catalog.system(os)));
    }
    entries
}

/// What the spec fixes of the releases, and what was chosen of the rest.
fn explain_releases(session: &Session, host: &Host) -> Vec<ReleaseExplained> {
    let loaded = &session.inventory.loaded;
    let answers = &session.answers;
    let (Some(question), Some(answer)) =
        (answers.questions.get(host.group), answers.group(host.group))
    else {
        return Vec::new();
    };
    let mut releases = Vec::new();
    for fixed in &question.resources {
        let Some((part, _)) = fixed.parts.first() else {
            continue;
        };
        if let HostComponent::Os | HostComponent::Nic | HostComponent::Gpu = part {
            continue;
        }
        let value = fixed.said.split_once(": ");
        releases.push(ReleaseExplained {
            part: part.key(),
            release: value.map(|(_, value)| value.to_owned()),
            place: loaded.place(&fixed.path),
            entry: None,
            source: None,
            because: Vec::new(),
        });
    }
    for part in &question.asked {
        let mut explained = ReleaseExplained {
            part: part.key(),
            release: None,
            place: None,
            entry: None,
            source: None,
            because: Vec::new(),
        };
        if let Some(choice) = answer.choices.iter().find(|choice| choice.part == *part) {
            explained.release = Some(choice.known.release.clone());
            explained.entry = Some(choice.known.place.clone());
            explained.source = Some(choice.known.source.clone());
            explained.because = explain_choice(choice);
        }
        releases.push(explained);
    }
    releases
}

fn describe_constraint(constraint: &ReleaseConstraint) -> String {
    format!("{} ({})", constraint.says, constraint.place)
}

/// Why a release was chosen, and why not a newer one.
fn explain_choice(choice: &Choice) -> Vec<String> {
    let mut because = Vec::new();
    for (part, release) in &choice.known.brings {
        because.push(format!(
            "it was released with {}, and needs no newer one",
            part.with(release)
        ));
    }
    because.extend(choice.because.iter().map(describe_constraint));
    for constraint in &choice.against {
        because.push(format!(
            "not a newer one: {}",
            describe_constraint(constraint)
        ));
    }
    because
}

fn explain_entry<R: CategoryEntry + Serialize>(
    catalog: &Catalog,
    table: &CatalogTable<R>,
    named: &str,
    entry: Option<&R>,
) -> EntryExplained {
    let loaded = entry.and_then(|entry| table.entry(&entry.identity()));
    EntryExplained {
        category: R::KEY,
        named: named.to_owned(),
        entry: entry.map(knowledge::entry_in_short),
        place: loaded.map(|loaded| catalog.place(loaded)),
        source: entry.map(|entry| entry.source().to_owned()),
    }
}

fn explain_rules(session: &Session, name: &str) -> Vec<RuleExplained> {
    let evaluation = &session.evaluation;
    let mut explained = Vec::new();
    for finding in &evaluation.findings {
        if finding.hosts.iter().any(|host| host == name) {
            explained.push(RuleExplained {
                code: finding.diagnostic.code.to_string(),
                message: finding.diagnostic.message.clone(),
                waived: false,
            });
        }
    }
    for finding in &evaluation.waived {
        let nodes = finding.nodes.as_deref().unwrap_or_default();
        let hosts = nodeset::expand_node_set(nodes).unwrap_or_default();
        if hosts.iter().any(|host| host == name) {
            explained.push(RuleExplained {
                code: finding.code.clone(),
                message: finding.message.clone(),
                waived: true,
            });
        }
    }
    explained
}
