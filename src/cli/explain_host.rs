//! `railwright explain host/NAME` and `kube/NAME`: why a host or a cluster gets what it gets.

use super::pipeline::{self, Prepared};
use super::{Exit, Failure};
use crate::base::suggest::nearest;
use crate::base::text::one_line;
use crate::base::{Diagnostic, Target, TargetKind};
use crate::catalog::release::Part;
use crate::catalog::{Catalog, Row, Table};
use crate::report::explanation::{Because, Explanation, ReleaseExplained, ResourceExplained, RowExplained, RuleExplained, screen};
use crate::report::{document, knowledge, out};
use crate::resource::kubernetes_object;
use crate::solve::Fact;
use crate::spec::Host;
use serde::Serialize;
use std::path::Path;

/// Explains `host/NAME`, or what is below it: `host/NAME/link/ens4/mtu`, the part after the name also as `attribute`; and
/// `kube/NAME`, or an object below it.
pub fn run(what: &str, attribute: Option<&str>, inventory: &Path, json: bool) -> Result<Exit, Failure> {
    let (sort, named) = what.split_once('/').unwrap_or(("host", what));
    let (name, below) = named.split_once('/').map_or((named, None), |(name, below)| (name, Some(below)));
    // The objects of a cluster are made from the facts of all hosts.
    let (target, prepared) = match sort {
        "kube" => (Target::kube(name), pipeline::prepare_to_record(inventory)?),
        _ => (Target::host(name), pipeline::prepare_host(inventory, name)?),
    };
    let loaded = &prepared.inventory.loaded;
    let host = loaded.host(name).filter(|_| target.kind == TargetKind::Host);
    let cluster = loaded.kubernetes_name().filter(|known| target.kind == TargetKind::Kube && *known == name);
    if host.is_none() && cluster.is_none() {
        return Err(not_there(&prepared, &target).into());
    }
    let path: Vec<&str> = below.into_iter().chain(attribute).flat_map(|path| path.split('/')).filter(|word| !word.is_empty()).collect();
    let mut resources = resources(&prepared, &target);
    let field = narrow(&mut resources, &path).map_err(|near| nothing_wished(&prepared, &target, &path, near))?;
    let explanation = Explanation {
        host: host.map(|host| host.name.clone()),
        cluster: cluster.map(str::to_owned),
        catalogue: host.map(|host| rows(&prepared, host)).unwrap_or_default(),
        releases: host.map(|host| releases(&prepared, host)).unwrap_or_default(),
        resources,
        rules: rules(&prepared, name),
        left_out: prepared.desired.left_out.iter().filter(|one| one.host == name).cloned().collect(),
    };
    match json {
        true => out::print(&document::text(&document::ExplanationDocument::of(explanation))),
        false => out::print(&screen(&explanation, field.as_deref())),
    }
    Ok(Exit::Done)
}

fn not_there(prepared: &Prepared, target: &Target) -> Diagnostic {
    let inventory = &prepared.inventory;
    let (sort, what, near) = match target.kind {
        TargetKind::Kube => ("kube", "Kubernetes cluster", inventory.loaded.kubernetes_name()),
        _ => ("host", "host", nearest(&target.name, inventory.loaded.hosts.iter().map(|host| host.name.as_str()))),
    };
    let next = near.map_or_else(
        || format!("name a {what} of the inventory, and the inventory after it"),
        |near| format!("did you mean `{sort}/{near}`?"),
    );
    Diagnostic::error("RW1032", format!("the inventory {} has no {what} `{}`", inventory.path, one_line(&target.name, 60))).next(next)
}

fn nothing_wished(prepared: &Prepared, target: &Target, path: &[&str], near: Option<String>) -> Failure {
    let all = || format!("all of them: railwright explain {target} {}", prepared.inventory.path);
    let next = near.map_or_else(all, |near| format!("did you mean `{near}`?"));
    Diagnostic::error("RW1032", format!("nothing is wished for `{}` of {}", one_line(&path.join("/"), 80), target.name)).next(next).into()
}

/// All resources of a target; an object of a cluster is shown as its manifest, which its body holds as a map or as a text.
fn resources(prepared: &Prepared, target: &Target) -> Vec<ResourceExplained> {
    let desired = &prepared.desired;
    let explained = |wish: &crate::resource::Wish| ResourceExplained {
        address: wish.address.clone(),
        wanted: kubernetes_object::manifest::manifest(&wish.body)
            .ok()
            .filter(|_| wish.kind == "kubernetes_object")
            .unwrap_or_else(|| wish.body.clone()),
        because: desired.why.get(&wish.address).into_iter().flatten().map(Because::of).collect(),
        places: wish.places.clone(),
    };
    desired.wishes.iter().filter(|wish| wish.address.target == *target).map(explained).collect()
}

/// Keeps what a path names: a kind, a resource, or a field of one, which comes back. Where nothing is left, the nearest name.
fn narrow(resources: &mut Vec<ResourceExplained>, path: &[&str]) -> Result<Option<String>, Option<String>> {
    if path.is_empty() {
        return Ok(None);
    }
    let starts = |resource: &ResourceExplained, words: &[&str]| {
        let own: Vec<&str> = resource.address.path.iter().map(String::as_str).collect();
        own.starts_with(words)
    };
    // A kind and a name; of a cluster a namespace between them.
    let depth = resources.iter().map(|resource| resource.address.path.len()).max().unwrap_or_default();
    let is_field = path.len() > depth && resources.iter().any(|resource| starts(resource, &path[..depth]));
    let field = is_field.then(|| path[depth..].join("."));
    let wanted = if is_field { &path[..depth] } else { path };
    let names: Vec<String> = resources.iter().map(|resource| resource.address.path.join("/")).collect();
    resources.retain(|resource| starts(resource, wanted));
    match resources.is_empty() {
        true => Err(nearest(&path.join("/"), names.iter().map(String::as_str)).map(str::to_owned)),
        false => Ok(field),
    }
}

/// The rows of the catalogue that are about a host.
fn rows(prepared: &Prepared, host: &Host) -> Vec<RowExplained> {
    let catalog = &prepared.inventory.knowledge.catalog;
    let group = prepared.inventory.loaded.group_of(host);
    let mut rows = Vec::new();
    if let Some(gpu) = &group.gpu {
        rows.push(explained(catalog, &catalog.gpu, &gpu.model, catalog.gpu.get(&gpu.model)));
    }
    if let Some(nics) = &group.nics {
        rows.push(explained(catalog, &catalog.nic, &nics.model, catalog.nic.get(&nics.model)));
    }
    if let Some(name) = &group.instance {
        rows.push(explained(catalog, &catalog.instance, name, catalog.instance_of(name)));
    }
    if let Some(os) = &group.os {
        rows.push(explained(catalog, &catalog.os, os, catalog.system(os)));
    }
    rows
}

/// What the spec fixes of the releases, and what was chosen of the rest.
fn releases(prepared: &Prepared, host: &Host) -> Vec<ReleaseExplained> {
    let loaded = &prepared.inventory.loaded;
    let answers = &prepared.answers;
    let (Some(question), Some(answer)) = (answers.questions.get(host.group), answers.group(host.group)) else { return Vec::new() };
    let wished = question.wishes.iter().flat_map(|wish| {
        let part = wish.parts.first().filter(|(part, _)| !matches!(part, Part::Os | Part::Nic | Part::Gpu));
        let value = wish.said.split_once(": ").map(|(_, value)| value.to_owned());
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
        let brings = choice.into_iter().flat_map(|choice| &choice.known.brings);
        let said = |fact: &Fact| format!("{} ({})", fact.says, fact.place);
        let mut because: Vec<String> =
            brings.map(|(part, release)| format!("it was released with {}, and needs no newer one", part.with(release))).collect();
        because.extend(choice.into_iter().flat_map(|choice| &choice.because).map(said));
        because.extend(choice.into_iter().flat_map(|choice| &choice.against).map(|fact| format!("not a newer one: {}", said(fact))));
        ReleaseExplained {
            part: part.key(),
            release: choice.map(|choice| choice.known.release.clone()),
            place: None,
            row: choice.map(|choice| choice.known.place.clone()),
            source: choice.map(|choice| choice.known.source.clone()),
            because,
        }
    });
    wished.chain(chosen).collect()
}

fn explained<R: Row + Serialize>(catalog: &Catalog, table: &Table<R>, named: &str, row: Option<&R>) -> RowExplained {
    let entry = row.and_then(|row| table.entry(&row.identity()));
    RowExplained {
        sort: R::KEY,
        named: named.to_owned(),
        row: row.map(knowledge::row_in_short),
        place: entry.map(|entry| catalog.place(entry)),
        source: row.map(|row| row.source().to_owned()),
    }
}

fn rules(prepared: &Prepared, name: &str) -> Vec<RuleExplained> {
    let judgement = &prepared.judgement;
    let found = judgement.findings.iter().filter(|finding| finding.hosts.iter().any(|host| host == name)).map(|finding| RuleExplained {
        code: finding.diagnostic.code.to_string(),
        message: finding.diagnostic.message.clone(),
        waived: false,
    });
    let names = |nodes: &Option<String>| nodes.as_deref().and_then(|nodes| crate::base::nodeset::expand(nodes).ok()).unwrap_or_default();
    let waived = judgement.waived.iter().filter(|waived| names(&waived.nodes).iter().any(|host| host == name));
    let waived = waived.map(|one| RuleExplained { code: one.code.clone(), message: one.message.clone(), waived: true });
    found.chain(waived).collect()
}
