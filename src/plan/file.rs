//! Plan files: canonical bytes out, and a strict reading back in that refuses what was edited or is
//! of another version.

use super::content::compute_plan_digest;
use super::model::{FORMAT_VERSION, NodeKind, Plan};
use railwright_base::nodeset::NAMES_MAX;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Reason, nodeset};
use std::collections::HashSet;

/// The file's bytes.
pub fn serialize_plan(plan: &Plan) -> Vec<u8> {
    let mut text = serde_json::to_string_pretty(plan)
        .expect("a plan has string keys and serialises without fail");
    text.push('\n');
    text.into_bytes()
}

/// Reads a plan file.
pub fn parse_plan_file(name: &str, bytes: &[u8]) -> Result<Plan, Diagnostic> {
    let value: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|error| not_a_plan(name, &error.to_string()))?;
    let version = value["format_version"].as_str().unwrap_or("none");
    if major_version(version) != major_version(FORMAT_VERSION) {
        return Err(Diagnostic::error(
            "RW0303",
            format!(
                "{name} has plan format {}; this railwright reads {FORMAT_VERSION}",
                one_line(version, 20)
            ),
        )
        .state("nothing was changed")
        .next(format!(
            "make the plan again with this railwright: railwright plan INVENTORY -o {name}"
        )));
    }
    let mut plan: Plan =
        serde_json::from_value(value).map_err(|error| not_a_plan(name, &error.to_string()))?;
    let carried = std::mem::take(&mut plan.digest);
    if compute_plan_digest(&plan).as_str() != carried {
        return Err(Diagnostic::error(
            "RW0304",
            format!(
                "{name} was changed after it was made: its content does not have the digest that \
                 it carries"
            ),
        )
        .effect("what would be applied is not what was planned and reviewed")
        .state("nothing was changed")
        .next(format!(
            "make the plan again: railwright plan INVENTORY -o {name}"
        )));
    }
    for node in &plan.nodes {
        if matches!(node.kind, NodeKind::Change { .. } | NodeKind::Adopt { .. })
            && node.members().is_empty()
        {
            let why = format!("its node `{}` has no members", node.id);
            return Err(not_a_plan(name, &why));
        }
    }
    check_out_of_service(&plan).map_err(|error| not_a_plan(name, error.as_words()))?;
    Ok(Plan {
        digest: carried,
        ..plan
    })
}

fn major_version(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

/// A plan names each host out of service once by itself and once by its node, and no more hosts
/// than a spec can have: a few bytes of node-sets that overlap would otherwise stand for any number
/// of names.
fn check_out_of_service(plan: &Plan) -> Result<(), Reason> {
    let (mut by_themselves, mut by_their_nodes) = (HashSet::new(), HashSet::new());
    for unavailable in &plan.unavailable {
        let hosts = one_line(&unavailable.hosts, 80);
        let names = nodeset::expand_node_set(&unavailable.hosts)
            .map_err(|error| format!("its hosts out of service, `{hosts}`: {error}"))?;
        let seen = match unavailable.why.is_of_node() {
            true => &mut by_their_nodes,
            false => &mut by_themselves,
        };
        if seen.len() + names.len() > NAMES_MAX {
            return Err(format!("it has more than {NAMES_MAX} hosts out of service").into());
        }
        for name in names {
            if let Some(twice) = seen.replace(name) {
                return Err(format!("the host `{twice}` is out of service twice").into());
            }
        }
    }
    Ok(())
}

fn not_a_plan(name: &str, error: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0302",
        format!("{name} is no plan file: {}", one_line(error, 200)),
    )
    .state("nothing was changed")
    .next("make a plan: railwright plan INVENTORY -o FILE")
}
