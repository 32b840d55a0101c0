//! `railwright explain host/NAME`, `switch/NAME` and `kube/NAME`: why a host, a switch or a cluster
//! gets what it gets.

use super::session::open_quietly;
use super::spoken::{About, match_resource_name};
use super::subject::resolve_addresses;
use super::{CommandFailure, Exit};
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Address, Diagnostic, Target, TargetKind};
use railwright_knowledge::catalog::release::HostComponent;
use railwright_knowledge::catalog::{Catalog, CatalogRow, CatalogTable};
use railwright_knowledge::solve::{Choice, ReleaseConstraint};
use railwright_knowledge::spec::Host;
use railwright_report::explanation::{
    Explanation, ModuleReason, ReleaseExplained, ResourceExplained, RowExplained, RuleExplained,
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
        return Err(not_there(&session, &target).into());
    }
    let path: Vec<&str> = below.into_iter().chain(attribute).collect();
    let path = path.join("/");
    let mut resources = explain_resources(&session, &target);
    let field = select_by_path(&mut resources, &path)
        .map_err(|near| nothing_wished(&session, &target, &path, near))?;
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
    let named = |kind: TargetKind| (target.kind == kind).then(|| name.to_owned());
    let host = session.inventory.loaded.host(name);
    let host = host.filter(|_| target.kind == TargetKind::Host);
    let left_out = session.desired.left_out.iter();
    Explanation {
        host: named(TargetKind::Host),
        cluster: named(TargetKind::Kube),
        switch: named(TargetKind::Switch),
        catalogue: host
            .map(|host| collect_host_entries(session, host))
            .unwrap_or_default(),
        releases: host
            .map(|host| explain_releases(session, host))
            .unwrap_or_default(),
        resources,
        rules: explain_rules(session, name),
        left_out: left_out.filter(|one| one.host == name).cloned().collect(),
    }
}

/// The address of what is called so without its target (`node_taint nvidia.com/gpu:NoSchedule`), or
/// as the screens print it.
pub fn resolve_address(what: &str, inventory: &Path) -> Result<String, CommandFailure> {
    let session = open_quietly(
        inventory,
        &SessionRequest::of_spec_alone().with_keys(SigningKeys::WhereAStepNeedsThem),
    )?;
    let all = resolve_addresses(&session, &[what.to_owned()])?;
    let wrong =
        |message: String, next: String| Err(Diagnostic::error("RW1032", message).next(next).into());
    let (what, path) = (one_line(what, 80), &session.inventory.word);
    match &all[..] {
        [one] => Ok(one.clone()),
        [] => wrong(
            format!("no resource is declared for `{what}`"),
            format!("railwright plan {path} shows what is declared"),
        ),
        [first, ..] => wrong(
            format!("`{what}` is on {} targets", all.len()),
            format!("name one of them: railwright explain {first} {path}"),
        ),
    }
}

fn not_there(session: &Session, target: &Target) -> Diagnostic {
    let inventory = &session.inventory;
    let (sort, what, near) = match target.kind {
        TargetKind::Kube => (
            "kube",
            "Kubernetes cluster",
            inventory.loaded.kubernetes_name(),
        ),
        TargetKind::Switch => {
            let near = find_nearest_word(
                &target.name,
                inventory
                    .loaded
                    .switches
                    .iter()
                    .map(|switch| switch.name.as_str()),
            );
            ("switch", "switch", near)
        }
        _ => (
            "host",
            "host",
            find_nearest_word(
                &target.name,
                inventory.loaded.hosts.iter().map(|host| host.name.as_str()),
            ),
        ),
    };
    let next = near.map_or_else(
        || format!("name a {what} of the inventory, and the inventory after it"),
        |near| format!("did you mean `{sort}/{near}`?"),
    );
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

fn nothing_wished(
    session: &Session,
    target: &Target,
    path: &str,
    near: Option<Address>,
) -> CommandFailure {
    let all = || {
        format!(
            "all of them: railwright explain {target} {}",
            session.inventory.word
        )
    };
    let next = near.map_or_else(all, |near| format!("did you mean `{near}`?"));
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
    let desired = &session.desired;
    let explained = |wish: &railwright_resource::DesiredResource| ResourceExplained {
        address: wish.address.clone(),
        wanted: kubernetes_object::manifest::parse_manifest(&wish.body)
            .ok()
            .filter(|_| wish.kind == "kubernetes_object")
            .unwrap_or_else(|| wish.body.clone()),
        because: desired
            .why
            .get(&wish.address)
            .into_iter()
            .flatten()
            .map(ModuleReason::of)
            .collect(),
        places: wish.places.clone(),
    };
    desired
        .wishes
        .iter()
        .filter(|wish| wish.address.target == *target)
        .map(explained)
        .collect()
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
    let field = found.iter().flatten().filter_map(|about| {
        if let About::Field(field) = about {
            Some(field.clone())
        } else {
            None
        }
    });
    // Of two names, one of which goes on with the other, the longer is meant.
    let meant = match field.min_by_key(String::len) {
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

/// The rows of the catalogue that are about a host.
fn collect_host_entries(session: &Session, host: &Host) -> Vec<RowExplained> {
    let catalog = &session.inventory.knowledge.catalog;
    let group = session.inventory.loaded.group_of(host);
    let mut rows = Vec::new();
    if let Some(gpu) = &group.gpu {
        rows.push(explain_entry(
            catalog,
            &catalog.gpu,
            &gpu.model,
            catalog.gpu.get(&gpu.model),
        ));
    }
    if let Some(nics) = &group.nics {
        rows.push(explain_entry(
            catalog,
            &catalog.nic,
            &nics.model,
            catalog.nic.get(&nics.model),
        ));
    }
    if let Some(name) = &group.instance {
        rows.push(explain_entry(
            catalog,
            &catalog.instance,
            name,
            catalog.instance_of(name),
        ));
    }
    if let Some(os) = &group.os {
        rows.push(explain_entry(catalog, &catalog.os, os, catalog.system(os)));
    }
    rows
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
    let wished = question.wishes.iter().flat_map(|wish| {
        let part = wish.parts.first().filter(|(part, _)| {
            !matches!(
                part,
                HostComponent::Os | HostComponent::Nic | HostComponent::Gpu
            )
        });
        let value = wish
            .said
            .split_once(": ")
            .map(|(_, value)| value.to_owned());
        part.map(|(part, _)| ReleaseExplained {
            part: part.key(),
            release: value,
            place: loaded.place(&wish.path),
            row: None,
            source: None,
            because: Vec::new(),
        })
    });
    let chosen = question.asked.iter().map(|part| {
        let choice = answer.choices.iter().find(|choice| choice.part == *part);
        ReleaseExplained {
            part: part.key(),
            release: choice.map(|choice| choice.known.release.clone()),
            place: None,
            row: choice.map(|choice| choice.known.place.clone()),
            source: choice.map(|choice| choice.known.source.clone()),
            because: choice.map(explain_choice).unwrap_or_default(),
        }
    });
    wished.chain(chosen).collect()
}

/// Why a release was chosen, and why not a newer one.
fn explain_choice(choice: &Choice) -> Vec<String> {
    let said = |fact: &ReleaseConstraint| format!("{} ({})", fact.says, fact.place);
    let mut because = Vec::new();
    for (part, release) in &choice.known.brings {
        because.push(format!(
            "it was released with {}, and needs no newer one",
            part.with(release)
        ));
    }
    because.extend(choice.because.iter().map(said));
    for fact in &choice.against {
        because.push(format!("not a newer one: {}", said(fact)));
    }
    because
}

fn explain_entry<R: CatalogRow + Serialize>(
    catalog: &Catalog,
    table: &CatalogTable<R>,
    named: &str,
    row: Option<&R>,
) -> RowExplained {
    let entry = row.and_then(|row| table.entry(&row.identity()));
    RowExplained {
        sort: R::KEY,
        named: named.to_owned(),
        row: row.map(knowledge::row_in_short),
        place: entry.map(|entry| catalog.place(entry)),
        source: row.map(|row| row.source().to_owned()),
    }
}

fn explain_rules(session: &Session, name: &str) -> Vec<RuleExplained> {
    let judgement = &session.judgement;
    let found = judgement
        .findings
        .iter()
        .filter(|finding| finding.hosts.iter().any(|host| host == name))
        .map(|finding| RuleExplained {
            code: finding.diagnostic.code.to_string(),
            message: finding.diagnostic.message.clone(),
            waived: false,
        });
    let names = |nodes: &Option<String>| {
        nodes
            .as_deref()
            .and_then(|nodes| railwright_base::nodeset::expand_node_set(nodes).ok())
            .unwrap_or_default()
    };
    let waived = judgement
        .waived
        .iter()
        .filter(|waived| names(&waived.nodes).iter().any(|host| host == name));
    let waived = waived.map(|one| RuleExplained {
        code: one.code.clone(),
        message: one.message.clone(),
        waived: true,
    });
    found.chain(waived).collect()
}
