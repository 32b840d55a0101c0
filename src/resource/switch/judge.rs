//! What the four kinds have in common: both configurations, attributes in two planes, the edits and
//! what they disturb.

use super::body::{extract_port_name, extract_switch_system};
use super::configuration::{DesiredPortSetting, SwitchConfiguration, SwitchPortSettings};
use super::edit::{SwitchEdit, compute_switch_disruption};
use super::{SwitchRead, SwitchSystem};
use crate::{
    Action, Assessment, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
};
use railwright_base::nodeset;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The word of the transaction that all changes of a switch make.
const TRANSACTION: &str = "switch";

/// What a step may do after the change has been proven.
const SAVE: &str = "save_switch";

/// What a switch says: both configurations, which all wishes of it share.
pub struct SwitchConfigurations {
    running: Result<Arc<Box<dyn SwitchConfiguration>>, String>,
    saved: Saved,
}

/// The configuration that is saved; nothing where nothing that makes sense is.
type Saved = Result<Arc<Option<Arc<Box<dyn SwitchConfiguration>>>>, String>;

/// The configuration that runs; the error fits after "unknown:".
pub fn decode_running_configuration(
    system: SwitchSystem,
    answers: &ReadResults,
) -> Result<Arc<Box<dyn SwitchConfiguration>>, String> {
    answers.decoded(
        &Read::Switch {
            system,
            of: SwitchRead::Running,
        },
        |code, out| match code {
            0 => system.configuration(out),
            69 => Err(system.is_not_there().to_owned()),
            code => Err(format!("{} ended with status {code}", system.asked())),
        },
    )
}

/// Where all that runs is saved, both are the same text on some systems, and it is decoded once.
fn decode_saved_configuration(system: SwitchSystem, answers: &ReadResults) -> Saved {
    let is_what_runs = |out: &str| {
        answers.output(&Read::Switch {
            system,
            of: SwitchRead::Running,
        }) == Ok((0, out))
    };
    answers.decoded(
        &Read::Switch {
            system,
            of: SwitchRead::Saved,
        },
        |code, out| match code {
            0 if is_what_runs(out) => decode_running_configuration(system, answers).map(Some),
            0 => system.configuration(out).map(|saved| Some(Arc::new(saved))),
            1 => Ok(None),
            code => Err(format!("reading it ended with status {code}")),
        },
    )
}

/// The ports of which one switch says something else than the other that a wish may be judged by;
/// nothing where it is not of single ports, or one of them says nothing that makes sense.
pub fn list_differing_ports(
    system: SwitchSystem,
    of: SwitchRead,
    a: &ReadResults,
    b: &ReadResults,
) -> Option<BTreeSet<String>> {
    match of {
        SwitchRead::Running => decode_running_configuration(system, a).ok()?.unlike(
            decode_running_configuration(system, b)
                .ok()?
                .as_ref()
                .as_ref(),
        ),
        SwitchRead::Saved => {
            let (one, other) = (
                decode_saved_configuration(system, a).ok()?,
                decode_saved_configuration(system, b).ok()?,
            );
            one.as_deref()?.unlike(other.as_deref()?.as_ref())
        }
    }
}

impl SwitchConfigurations {
    /// Both configurations.
    pub fn of(wish: &DesiredResource, answers: &ReadResults) -> Self {
        let system = extract_switch_system(wish);
        let running = decode_running_configuration(system, answers);
        // Where nobody knows what runs nothing can be done about what is saved, which is made from
        // it.
        let saved = running
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|_| decode_saved_configuration(system, answers));
        SwitchConfigurations { running, saved }
    }

    /// What runs, where it could be read.
    fn running(&self) -> Option<&dyn SwitchConfiguration> {
        self.running.as_deref().ok().map(Box::as_ref)
    }

    /// An attribute in both planes: what is wanted, and how it is found in a configuration.
    fn attribute(
        &self,
        wanted: Reading,
        found: impl Fn(&dyn SwitchConfiguration) -> Reading,
    ) -> Attribute {
        let unknown = |reason: &String| Reading::Unknown(reason.clone());
        let running = self
            .running
            .as_deref()
            .map_or_else(unknown, |running| found(running.as_ref()));
        let in_saved = |saved: &Option<Arc<Box<dyn SwitchConfiguration>>>| {
            saved
                .as_deref()
                .map_or(Reading::Absent, |saved| found(saved.as_ref()))
        };
        let saved = self.saved.as_deref().map_or_else(unknown, in_saved);
        Attribute::in_plane(Plane::Running, wanted.clone(), running).and(
            Plane::Persisted,
            wanted,
            saved,
        )
    }

    /// Notes whether the switch made the buffer that a paused priority needs, where that is its own
    /// doing.
    pub fn note_made_buffer(
        &self,
        assessment: &mut Assessment,
        port: &str,
        priority: u64,
        cable_m: u64,
    ) {
        let made = |running: &dyn SwitchConfiguration| {
            running
                .port(port)
                .map(|port| port.made_buffer(priority, cable_m))
        };
        let (found, never) = match &self.running {
            Err(reason) => (Reading::Unknown(reason.clone()), None),
            Ok(running) => made(running.as_ref().as_ref()).unwrap_or((Reading::Absent, None)),
        };
        let attribute =
            Attribute::in_plane(Plane::Running, Reading::is("there"), found).that_settles();
        let lacks = !attribute.differences().is_empty();
        assessment
            .attributes
            .insert("lossless_buffer".to_owned(), attribute);
        if never.is_some() {
            assessment.refusal = never;
        }
        if lacks {
            assessment.transaction = Some(TRANSACTION.to_owned());
        }
    }
}

/// Judges an attribute after the other, in both planes.
pub struct SwitchDiffBuilder<'a> {
    wish: &'a DesiredResource,
    said: &'a SwitchConfigurations,
    /// What came of it.
    pub assessment: Assessment,
}

impl<'a> SwitchDiffBuilder<'a> {
    /// Nothing is judged yet.
    pub fn new(wish: &'a DesiredResource, said: &'a SwitchConfigurations) -> Self {
        SwitchDiffBuilder {
            wish,
            said,
            assessment: Assessment::default(),
        }
    }

    /// An attribute: what is wanted, and how it is found in a port.
    pub fn attribute(
        &mut self,
        name: &str,
        wanted: impl Into<Value>,
        found: impl Fn(&dyn SwitchPortSettings) -> Reading,
    ) {
        let port = extract_port_name(self.wish);
        let found = |db: &dyn SwitchConfiguration| {
            db.port(port)
                .map_or(Reading::Absent, |port| found(port.as_ref()))
        };
        let attribute = self.said.attribute(Reading::Is(wanted.into()), found);
        self.assessment
            .attributes
            .insert(name.to_owned(), attribute);
    }

    /// The actions: what runs is changed first, and saved once it is so.
    pub fn finish(mut self, wanted: &DesiredPortSetting) -> Assessment {
        let Some(running) = self.said.running() else {
            return self.assessment;
        };
        let port = extract_port_name(self.wish);
        let Some(view) = running.port(port) else {
            let known = nodeset::fold_node_set(&running.ports());
            self.assessment.refusal =
                Some(format!("the switch has no port {port}; it has {known}"));
            return self.assessment;
        };
        let edits = match running.edits(port, wanted) {
            Ok(edits) => edits,
            Err(why) => {
                self.assessment.refusal = Some(why);
                return self.assessment;
            }
        };
        self.assessment.before = running.before(port, wanted);
        plan_switch_actions(&mut self.assessment, self.wish, edits, view.is_up());
        self.assessment
    }
}

/// What runs is changed first; it is saved once it has been seen to be right.
fn plan_switch_actions(
    assessment: &mut Assessment,
    wish: &DesiredResource,
    edits: Vec<SwitchEdit>,
    is_up: bool,
) {
    let differs = |plane: Plane| {
        assessment
            .attributes
            .values()
            .flat_map(Attribute::differences)
            .any(|(at, ..)| at == plane)
    };
    let (of_running, of_saved) = (differs(Plane::Running), differs(Plane::Persisted));
    let system = extract_switch_system(wish);
    if of_running && !edits.is_empty() {
        let disturbance = compute_switch_disruption(system, &edits, extract_port_name(wish), is_up);
        assessment.disruption = disturbance.disruption;
        assessment.interrupts.extend(disturbance.interrupts);
        assessment
            .actions
            .push(Action::EditSwitch { system, edits });
        assessment.announced.push(SAVE.to_owned());
    } else if of_saved && !of_running {
        assessment.disruption = Disruption::Reload;
        assessment.actions.push(Action::SaveSwitch { system });
    }
    if !assessment.actions.is_empty() {
        assessment.transaction = Some(TRANSACTION.to_owned());
    }
}

/// Puts back what is the port's own as it was before us.
pub fn take_back(wish: &DesiredResource, before: &Value, answers: &ReadResults) -> Assessment {
    let said = SwitchConfigurations::of(wish, answers);
    let mut assessment = Assessment {
        before: before.clone(),
        ..Assessment::default()
    };
    let running = match &said.running {
        Ok(running) => running.as_ref().as_ref(),
        Err(reason) => {
            let unknown = Attribute::in_plane(
                Plane::Running,
                Reading::is("as before"),
                Reading::Unknown(reason.clone()),
            );
            assessment.attributes.insert("settings".to_owned(), unknown);
            return assessment;
        }
    };
    let port = extract_port_name(wish);
    let Some(view) = running.port(port) else {
        assessment.residue.push(format!(
            "nothing is left of {port}: the switch has no such port any more"
        ));
        return assessment;
    };
    for kept in running.kept(port, before) {
        let reading = |db: &dyn SwitchConfiguration| {
            let same = db
                .kept(port, before)
                .into_iter()
                .find(|other| other.called == kept.called);
            same.map_or(Reading::Absent, |same| same.is)
        };
        assessment.attributes.insert(
            kept.called.clone(),
            said.attribute(kept.was.clone(), reading),
        );
    }
    assessment.residue = running.stays(before);
    plan_switch_actions(
        &mut assessment,
        wish,
        running.put_back(port, before),
        view.is_up(),
    );
    // What is only forgotten goes along, so that what is taken back around it is one step.
    assessment.transaction = Some(TRANSACTION.to_owned());
    assessment
}
