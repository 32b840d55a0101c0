//! The environment of a job, settled: what the user says goes before what the spec says, that
//! before what a table or the inventory gives. Every variable keeps its reason, and what it takes
//! the place of.

use super::asked::RequestPlaces;
use super::derive::{DerivedVariable, describe_spec_path};
use indexmap::IndexMap;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, suggest};
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::catalog::job::VariableEntry;
use railwright_knowledge::spec::LoadedSpec;
use schemars::JsonSchema;
use serde::Serialize;

/// The variable that names the devices.
const HCA: &str = "NCCL_IB_HCA";

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VariableOrigin {
    /// The command line, or the line of Arena.
    Asked,
    /// `jobs.environment` of the spec.
    Spec,
    /// The catalogue's entry of Alibaba Container Compute Service.
    Table,
    /// What the inventory says of fabric and hosts.
    Derived,
    /// Arena gives it to every job.
    Arena,
    /// It is the half over TCP of a pair that is compared.
    Pair,
}

/// A variable of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, which may be empty: that is not the same as leaving it out.
    pub value: String,
    /// Where the value comes from.
    pub origin: VariableOrigin,
    /// Why it has this value.
    pub reason: String,
    /// The value that it would have had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// What it decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// What a job pays for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// What it is where nobody sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What pages advise, and what is to be said of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Where this is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Puts variables on top of each other.
#[derive(Debug, Default)]
pub(super) struct Settling {
    variables: IndexMap<String, SettledVariable>,
}

#[derive(Debug)]
struct SettledVariable {
    value: String,
    origin: VariableOrigin,
    reason: String,
    instead_of: Option<String>,
}

impl Settling {
    /// A value that goes before what is there.
    pub(super) fn put(&mut self, name: &str, value: &str, origin: VariableOrigin, reason: String) {
        let instead_of = match self.variables.get(name) {
            Some(before) if before.value != value => Some(before.value.clone()),
            _ => None,
        };
        self.variables.insert(
            name.to_owned(),
            SettledVariable {
                value: value.to_owned(),
                origin,
                reason,
                instead_of,
            },
        );
    }

    /// What follows from the inventory.
    pub(super) fn derived(&mut self, derived: Vec<DerivedVariable>) {
        for one in derived {
            self.put(one.name, &one.value, VariableOrigin::Derived, one.because);
        }
    }

    /// What the spec says of all jobs.
    pub(super) fn spec(&mut self, loaded: &LoadedSpec) {
        for (name, value) in &loaded.spec.jobs.environment {
            let reason = format!(
                "the spec says so for all jobs: {}",
                describe_spec_path(loaded, &format!("jobs.environment.{name}"))
            );
            self.put(name, value, VariableOrigin::Spec, reason);
        }
    }

    /// What was asked for.
    pub(super) fn asked(&mut self, environment: &[(String, String)]) {
        for (name, value) in environment {
            self.put(name, value, VariableOrigin::Asked, "you set it".to_owned());
        }
    }

    /// All of them, with what the catalogue knows.
    pub(super) fn settled(self, catalog: &Catalog, nccl: Option<&str>) -> Vec<Variable> {
        let mut variables = Vec::new();
        for (name, settled) in self.variables {
            let mut variable = Variable {
                name,
                value: settled.value,
                origin: settled.origin,
                reason: settled.reason,
                instead_of: settled.instead_of,
                meaning: None,
                cost: None,
                default: None,
                advice: None,
                source: None,
            };
            if let Some(entry) = catalog.variable.get(&variable.name) {
                let release = nccl.filter(|_| entry.program == "nccl");
                variable.meaning = Some(entry.meaning.clone());
                variable.cost = Some(entry.cost.clone());
                variable.default = entry.default_in_words(release);
                variable.advice = entry.advice.clone();
                variable.source = Some(entry.source.clone());
            }
            variables.push(variable);
        }
        variables
    }
}

/// Values that their variable cannot have, and names that look mistyped; `devices` are those of the
/// hosts, as far as they are known.
pub(super) fn check_variables(
    variables: &[Variable],
    loaded: &LoadedSpec,
    catalog: &Catalog,
    asked: &RequestPlaces,
    devices: &[String],
) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for variable in variables {
        if !matches!(
            variable.origin,
            VariableOrigin::Asked | VariableOrigin::Spec
        ) {
            continue;
        }
        let Some((warning, label)) = check_variable(variable, catalog, devices) else {
            continue;
        };
        let path = format!("jobs.environment.{}", variable.name);
        let caret = asked
            .label(&path, label)
            .or_else(|| loaded.label(&path, label));
        warnings.push(match caret {
            Some(caret) => warning.labelled(caret),
            None => warning,
        });
    }
    warnings
}

/// What is to be said of a variable, and the label for its place.
fn check_variable(
    variable: &Variable,
    catalog: &Catalog,
    devices: &[String],
) -> Option<(Diagnostic, &'static str)> {
    let value = &variable.value;
    let Some(entry) = catalog.variable.get(&variable.name) else {
        let warning = warn_mistyped_name(&variable.name, catalog)?;
        return Some((warning, "nobody reads this"));
    };
    let values = entry.values.as_ref();
    if entry.name == HCA && values.is_none_or(|values| values.holds(value)) {
        let warning = warn_unknown_devices(value, devices)?;
        return Some((warning, "no device of the hosts"));
    }
    Some((out_of_range(entry, value)?, "cannot be"))
}

fn out_of_range(entry: &VariableEntry, value: &str) -> Option<Diagnostic> {
    let values = entry
        .values
        .as_ref()
        .filter(|values| !value.is_empty() && !values.holds(value))?;
    let mut told = Diagnostic::warning(
        "RW1226",
        format!(
            "`{}={}` is none of its values: {}",
            entry.name,
            one_line(value, 60),
            values.in_words()
        ),
    )
    .effect(
        "what becomes of it is the program's own affair: it may take what it can read of the \
         value, or its default, without a word",
    )
    .next(format!(
        "railwright catalog variable {} tells more",
        entry.name
    ));
    told.source = Some(entry.source.clone());
    Some(told)
}

/// Devices that are named and that no host has: NCCL says nothing of a name that fits none, and
/// goes on with the others or with TCP.
fn warn_unknown_devices(value: &str, devices: &[String]) -> Option<Diagnostic> {
    let (is_whole, names) = match value.strip_prefix('=') {
        Some(names) => (true, names),
        None => (false, value),
    };
    let mut strange = Vec::new();
    for name in names.split(',') {
        let name = name.split(':').next().unwrap_or_default();
        let is_there = devices.iter().any(|device| match is_whole {
            true => device == name,
            false => device.starts_with(name),
        });
        if !name.is_empty() && !is_there {
            strange.push(one_line(name, 40));
        }
    }
    if strange.is_empty() || devices.is_empty() || names.starts_with('^') {
        return None;
    }
    let told = Diagnostic::warning(
        "RW1231",
        format!(
            "`{HCA}` names {}, which no host of the job has",
            strange.join(", ")
        ),
    );
    let told = told.effect(
        "NCCL leaves out a name that fits no device, and where none fits it goes over TCP, without \
         an error",
    );
    Some(told.next(format!("the spec gives: {HCA}=={}", devices.join(","))))
}

fn warn_mistyped_name(name: &str, catalog: &Catalog) -> Option<Diagnostic> {
    let known = catalog
        .variable
        .entries()
        .map(|entry| entry.content.name.as_str());
    let near = suggest::suggest_correction(name, known).filter(|near| *near != name)?;
    let told = Diagnostic::warning(
        "RW1227",
        format!("no program is known that reads `{}`", one_line(name, 60)),
    );
    Some(
        told.effect("a variable that nobody reads does nothing, without a word")
            .next(format!("did you mean `{near}`?")),
    )
}
