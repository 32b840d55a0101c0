//! Why a host gets what it gets: the entries of the catalogue that are about it, and for each
//! resource the module, the conditions with the facts that they looked at, and the lines of the
//! spec that its values come from.

use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use indexmap::IndexMap;
use railwright_base::text::{format_count, one_line, sanitize_text};
use railwright_base::{Address, SourceLocation};
use railwright_knowledge::module::{LeftOut, ResourceProvenance};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most names of resources that are identical in a line.
const NAMES_SHOWN: usize = 4;

/// Why a host gets what it gets.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// The host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The Kubernetes cluster, where it is no host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The switch, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The entries of the catalogue that are about it.
    pub catalogue: Vec<EntryExplained>,
    /// The releases that go together: what the spec fixes, and what was chosen of the rest.
    pub releases: Vec<ReleaseExplained>,
    /// Its resources, by address.
    pub resources: Vec<ResourceExplained>,
    /// Findings of rules about it: code and message, those that are waived too.
    pub rules: Vec<RuleExplained>,
    /// Modules that the host lacks something for: those that the spec enables, and without SSH all
    /// that would be for it.
    pub left_out: Vec<LeftOut>,
}

/// An entry that is about a host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntryExplained {
    /// `gpu`, `nic`, `instance` or `os`.
    pub category: &'static str,
    /// What the spec says.
    pub named: String,
    /// The entry in short; nothing where there is none.
    pub entry: Option<String>,
    /// Where the entry is: file and line.
    pub place: Option<String>,
    /// Where it was taken from.
    pub source: Option<String>,
}

/// A release of a part, of the spec or chosen.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReleaseExplained {
    /// The part: `driver`, `cuda`.
    pub part: &'static str,
    /// The release; nothing where too little is known to choose one.
    pub release: Option<String>,
    /// Where the spec fixes it; nothing for a chosen one.
    pub place: Option<SourceLocation>,
    /// Where the chosen one's entry is: file and line.
    pub entry: Option<String>,
    /// Where the entry was taken from.
    pub source: Option<String>,
    /// What a chosen one needs, what needs it, and why it is not the newest of all.
    pub because: Vec<String>,
}

/// A finding about a host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleExplained {
    /// The rule.
    pub code: String,
    /// What it says.
    pub message: String,
    /// True where it is waived.
    pub waived: bool,
}

/// One resource of a host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResourceExplained {
    /// Its address.
    pub address: Address,
    /// What is desired, in the fields of its kind.
    pub desired: Value,
    /// The modules that want it.
    pub because: Vec<ModuleReason>,
    /// The values of the spec that it was made from.
    pub places: Vec<SourceLocation>,
}

/// Why a module wants a resource.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModuleReason {
    /// The module and the id of the resource in its manifest.
    pub module: String,
    /// What the module is for.
    pub summary: String,
    /// The conditions that hold.
    pub conditions: Vec<String>,
    /// The facts that they look at.
    pub facts: BTreeMap<String, Value>,
}

impl ModuleReason {
    /// Of what the modules recorded.
    pub fn of(why: &ResourceProvenance) -> Self {
        let ResourceProvenance {
            module,
            summary,
            conditions,
            facts,
        } = why.clone();
        ModuleReason {
            module,
            summary,
            conditions,
            facts,
        }
    }
}

/// The screen. With an `attribute` (`mtu`) only what is desired of it is shown, of each resource.
pub fn render_explanation_screen(explanation: &Explanation, attribute: Option<&str>) -> String {
    let named = match (&explanation.host, &explanation.switch, &explanation.cluster) {
        (Some(host), ..) => format!("host {host}"),
        (None, Some(switch), _) => format!("switch {switch}"),
        (None, None, cluster) => format!(
            "Kubernetes cluster {}",
            cluster.as_deref().unwrap_or_default()
        ),
    };
    let mut out = format!(
        "{named}   {}\n",
        format_count(explanation.resources.len(), "resource")
    );
    if attribute.is_none() {
        out.push_str(&render_knowledge_sections(explanation));
        out.push_str(&render_left_out_modules(&explanation.left_out));
    }
    let mut modules: IndexMap<String, Vec<&ResourceExplained>> = IndexMap::new();
    for resource in &explanation.resources {
        let names = resource
            .because
            .iter()
            .map(|why| format!("{} {}", why.module, why.conditions.join(" and ")))
            .collect::<Vec<_>>();
        modules.entry(names.join(", ")).or_default().push(resource);
    }
    for resources in modules.values() {
        out.push_str(&render_resource_group(resources, attribute));
    }
    sanitize_text(&out)
}

/// What the catalogue and the rules say of the host, and which releases go together.
fn render_knowledge_sections(explanation: &Explanation) -> String {
    let mut out = String::new();
    if !explanation.catalogue.is_empty() {
        out.push_str(&render_heading("CATALOGUE: what is known of its parts"));
        for entry in &explanation.catalogue {
            out.push_str(&render_explained_entry(entry));
        }
    }
    // a kernel alone goes together with everything
    if explanation.releases.iter().any(|one| one.part != "kernel") {
        out.push_str(&render_heading(
            "RELEASES: of the spec, and the newest of the rest that go together with them",
        ));
        for release in &explanation.releases {
            out.push_str(&render_explained_release(release));
        }
    }
    if !explanation.rules.is_empty() {
        out.push_str(&render_heading("RULES"));
        for one in &explanation.rules {
            let waived = if one.waived { " (waived)" } else { "" };
            out.push_str(&wrap_labelled_text(
                &format!(" ! {} ", one.code),
                &format!("{}{waived}", one.message),
                COLUMNS,
            ));
        }
    }
    out
}

/// Modules that are not for this host, with what it lacks for them.
fn render_left_out_modules(left_out: &[LeftOut]) -> String {
    let mut out = String::new();
    let (unreached, lacking): (Vec<&LeftOut>, Vec<&LeftOut>) =
        left_out.iter().partition(|one| one.is_for_want_of_ssh());
    if let Some(first) = unreached.first() {
        out.push_str(&render_heading(&format!(
            "NOT HERE: what needs {}",
            first.needs
        )));
        let modules: Vec<&str> = unreached.iter().map(|one| one.module.as_str()).collect();
        out.push_str(&wrap_labelled_text(" - ", &modules.join(", "), COLUMNS));
    }
    if !lacking.is_empty() {
        out.push_str(&render_heading(
            "NOT HERE: modules that the spec enables, and what this host lacks for them",
        ));
    }
    for one in lacking {
        out.push_str(&wrap_labelled_text(
            &format!(" - {} ", one.module),
            &format!("needs {}", one.needs),
            COLUMNS,
        ));
    }
    out
}

fn render_explained_entry(one: &EntryExplained) -> String {
    let label = format!(" . {:<9} ", one.category);
    let Some(entry) = &one.entry else {
        return wrap_labelled_text(
            &label,
            &format!("{}: no entry is about it", one.named),
            COLUMNS,
        );
    };
    wrap_labelled_text(&label, &format!("{}: {entry}", one.named), COLUMNS)
        + &render_entry_origin(one.place.as_deref(), one.source.as_deref())
}

fn render_explained_release(one: &ReleaseExplained) -> String {
    let label = format!(" . {:<9} ", one.part);
    let Some(release) = &one.release else {
        return wrap_labelled_text(
            &label,
            "not chosen: too little is known, or the requirements exclude each other",
            COLUMNS,
        );
    };
    let origin = match &one.place {
        Some(place) => format!("of the spec, {place} {}", place.path),
        None => "chosen".to_owned(),
    };
    let mut out = wrap_labelled_text(&label, &format!("{release}: {origin}"), COLUMNS);
    for why in &one.because {
        out.push_str(&wrap_labelled_text("             because ", why, COLUMNS));
    }
    out + &render_entry_origin(one.entry.as_deref(), one.source.as_deref())
}

/// Where an entry of the catalogue is, and where it was taken from.
fn render_entry_origin(place: Option<&str>, source: Option<&str>) -> String {
    let mut out = String::new();
    for (label, text) in [("entry   ", place), ("source  ", source)] {
        if let Some(text) = text {
            out.push_str(&wrap_labelled_text(
                &format!("             {label}"),
                text,
                COLUMNS,
            ));
        }
    }
    out
}

/// Resources that the same part of a module wants for the same reasons.
fn render_resource_group(resources: &[&ResourceExplained], attribute: Option<&str>) -> String {
    let Some(first) = resources.first() else {
        return String::new();
    };
    let modules: Vec<&str> = first
        .because
        .iter()
        .map(|why| why.module.as_str())
        .collect();
    let summary = first.because.first().map_or("", |why| why.summary.as_str());
    let mut out = render_heading(&modules.join(", "));
    out.push_str(&wrap_labelled_text("   ", summary, COLUMNS));
    out.push_str(&wrap_labelled_text(
        "   wants    ",
        &format_resource_names(resources),
        COLUMNS,
    ));
    let body = format_desired_body(&first.desired, attribute);
    let example = match resources {
        [_] => String::new(),
        _ => format!(" (of {})", format_resource_name(&first.address)),
    };
    out.push_str(&wrap_labelled_text(
        "   as       ",
        &format!("{body}{example}"),
        COLUMNS,
    ));
    for why in &first.because {
        out.push_str(&wrap_labelled_text(
            "   because  ",
            &format_module_reason(why),
            COLUMNS,
        ));
    }
    let places: Vec<String> = first
        .places
        .iter()
        .map(|place| format!("{}:{} {}", place.file, place.line, place.path))
        .collect();
    if !places.is_empty() {
        out.push_str(&wrap_labelled_text(
            "   from     ",
            &places.join(", "),
            COLUMNS,
        ));
    }
    out
}

/// The names of the first resources, and how many more there are.
fn format_resource_names(resources: &[&ResourceExplained]) -> String {
    let names: Vec<String> = resources
        .iter()
        .take(NAMES_SHOWN)
        .map(|resource| format_resource_name(&resource.address))
        .collect();
    match resources.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// All fields of a resource, or one attribute of it, which may be within another (`a.b`).
fn format_desired_body(desired: &Value, attribute: Option<&str>) -> String {
    let Some(attribute) = attribute else {
        return format_body_fields(desired);
    };
    let actual = desired
        .get(attribute)
        .or_else(|| desired.pointer(&format!("/{}", attribute.replace('.', "/"))));
    match actual {
        Some(value) => format!("{attribute}: {value}"),
        None => format!("{attribute}: not declared; it is left alone"),
    }
}

/// The conditions that hold, and the facts that they look at.
fn format_module_reason(why: &ModuleReason) -> String {
    let facts: Vec<String> = why
        .facts
        .iter()
        .map(|(name, value)| format!("{name} is {}", format_plain_value(value)))
        .collect();
    let facts = match facts.is_empty() {
        true => String::new(),
        false => format!("; {}", facts.join(", ")),
    };
    let conditions = match why.conditions.is_empty() {
        true => "always".to_owned(),
        false => why.conditions.join(" and "),
    };
    format!("{conditions}{facts}")
}

/// Kind and name: `link ens4`, `file /etc/hosts`.
fn format_resource_name(address: &Address) -> String {
    address.words()
}

/// The fields of a body, long texts by their lines.
fn format_body_fields(body: &Value) -> String {
    let fields = body.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| format!("{name} {}", shorten_field_value(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn shorten_field_value(value: &Value) -> String {
    match value {
        Value::String(text) if text.lines().count() > 1 => {
            format_count(text.lines().count(), "line") + " of text"
        }
        other => one_line(&format_plain_value(other), 80),
    }
}

fn format_plain_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
