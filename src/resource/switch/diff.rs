//! What the four kinds have in common: both configurations, attributes in two planes, the edits and
//! what they disturb.

use super::body::{extract_port_name, extract_switch_system};
use super::configuration::{
    DesiredPortSetting, RestorableSetting, SwitchConfiguration, SwitchPortSettings,
};
use super::edit::SwitchEdit;
use super::{SwitchRead, SwitchSystem};
use crate::{
    Action, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading, ResourceDiff,
};
use railwright_base::Reason;
use railwright_base::nodeset;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The word of the transaction that all changes of a switch make.
const TRANSACTION: &str = "switch";

/// What a step may do after the change has been confirmed.
const SAVE: &str = "save_switch";

/// Both configurations of a switch, which all its desired resources share.
pub struct SwitchConfigurations {
    running: Result<Arc<Box<dyn SwitchConfiguration>>, Reason>,
    saved: Saved,
}

/// The configuration that is saved; nothing where nothing that makes sense is.
type Saved = Result<Arc<Option<Arc<Box<dyn SwitchConfiguration>>>>, Reason>;

/// The configuration that runs; the error fits after "unknown:".
pub fn decode_running_configuration(
    system: SwitchSystem,
    answers: &ReadResults,
) -> Result<Arc<Box<dyn SwitchConfiguration>>, Reason> {
    answers.decoded(
        &Read::Switch {
            system,
            of: SwitchRead::Running,
        },
        |code, out| match code {
            0 => system
                .configuration(out)
                .map_err(|error| error.to_string().into()),
            69 => Err(system.is_not_there().into()),
            code => Err(format!("{} ended with status {code}", system.asked()).into()),
        },
    )
}

/// Where all that runs is saved, both are the same text on some systems, and it is decoded once.
fn decode_saved_configuration(system: SwitchSystem, answers: &ReadResults) -> Saved {
    let running = answers.output(&Read::Switch {
        system,
        of: SwitchRead::Running,
    });
    answers.decoded(
        &Read::Switch {
            system,
            of: SwitchRead::Saved,
        },
        |code, out| match code {
            0 if running == Ok((0, out)) => decode_running_configuration(system, answers).map(Some),
            0 => match system.configuration(out) {
                Ok(saved) => Ok(Some(Arc::new(saved))),
                Err(error) => Err(error.to_string().into()),
            },
            1 => Ok(None),
            code => Err(format!("reading it ended with status {code}").into()),
        },
    )
}

/// The ports of which one switch says something else than the other, as far as a desired resource
/// is compared with it; nothing where it is not of single ports, or one of them says nothing that
/// makes sense.
pub fn list_differing_ports(
    system: SwitchSystem,
    of: SwitchRead,
    a: &ReadResults,
    b: &ReadResults,
) -> Option<BTreeSet<String>> {
    match of {
        SwitchRead::Running => {
            let one = decode_running_configuration(system, a).ok()?;
            let other = decode_running_configuration(system, b).ok()?;
            one.unlike(other.as_ref().as_ref())
        }
        SwitchRead::Saved => {
            let one = decode_saved_configuration(system, a).ok()?;
            let other = decode_saved_configuration(system, b).ok()?;
            one.as_deref()?.unlike(other.as_deref()?.as_ref())
        }
    }
}

impl SwitchConfigurations {
    /// Decodes both configurations.
    pub fn decode(resource: &DesiredResource, answers: &ReadResults) -> Self {
        let system = extract_switch_system(resource);
        let running = decode_running_configuration(system, answers);
        // Where nobody knows what runs nothing can be done about what is saved, which is made from
        // it.
        let saved = match &running {
            Ok(_) => decode_saved_configuration(system, answers),
            Err(reason) => Err(reason.clone()),
        };
        SwitchConfigurations { running, saved }
    }

    /// What runs, where it could be read.
    fn running(&self) -> Option<&dyn SwitchConfiguration> {
        self.running.as_deref().ok().map(Box::as_ref)
    }

    /// An attribute in both planes: what is desired, and how it is read from a configuration.
    fn attribute(
        &self,
        desired: Reading,
        read: impl Fn(&dyn SwitchConfiguration) -> Reading,
    ) -> Attribute {
        let running = match &self.running {
            Ok(running) => read(running.as_ref().as_ref()),
            Err(reason) => Reading::Unknown(reason.clone()),
        };
        let saved = match self.saved.as_deref() {
            Ok(Some(saved)) => read(saved.as_ref().as_ref()),
            Ok(None) => Reading::Absent,
            Err(reason) => Reading::Unknown(reason.clone()),
        };
        Attribute::in_plane(Plane::Running, desired.clone(), running).and(
            Plane::Persisted,
            desired,
            saved,
        )
    }

    /// A setting that is put back, in both planes.
    fn restorable_attribute(
        &self,
        port: &str,
        before: &Value,
        setting: &RestorableSetting,
    ) -> Attribute {
        self.attribute(setting.was.clone(), |configuration| {
            let mut settings = configuration.kept(port, before).into_iter();
            match settings.find(|other| other.called == setting.called) {
                Some(other) => other.is,
                None => Reading::Absent,
            }
        })
    }

    /// Why a port that does not run may be there again; nothing where the saved configuration
    /// has nothing of it either. While a switch is reloaded nothing runs until all that is saved
    /// is loaded (SONiC: `config reload` empties CONFIG_DB first).
    fn find_why_port_may_return(
        &self,
        running: &dyn SwitchConfiguration,
        port: &str,
        before: &Value,
    ) -> Option<Reason> {
        if running.ports().is_empty() {
            let why = "its running configuration has no port at all: is it being reloaded?";
            return Some(why.into());
        }
        let saved = match self.saved.as_deref() {
            Ok(Some(saved)) => saved,
            Ok(None) => {
                let why = "its running configuration has no such port, and none is saved";
                return Some(why.into());
            }
            Err(reason) => return Some(reason.clone()),
        };
        // Not every system says in what is saved which ports there are.
        let mut settings = saved.kept(port, before).into_iter();
        let is_saved =
            saved.ports().contains(&port) || settings.any(|setting| setting.is != Reading::Absent);
        is_saved.then(|| {
            "its running configuration has no such port, and its saved one has: is it being \
             reloaded?"
                .into()
        })
    }

    /// Notes whether the switch made the buffer that a paused priority needs, where that is its own
    /// doing.
    pub fn note_made_buffer(
        &self,
        diff: &mut ResourceDiff,
        port: &str,
        priority: u64,
        cable_m: u64,
    ) {
        let (actual, never) = match &self.running {
            Err(reason) => (Reading::Unknown(reason.clone()), None),
            Ok(running) => match running.port(port) {
                Some(port) => port.made_buffer(priority, cable_m),
                None => (Reading::Absent, None),
            },
        };
        let attribute =
            Attribute::in_plane(Plane::Running, Reading::is("there"), actual).that_settles();
        let lacks = !attribute.differences().is_empty();
        diff.attributes
            .insert("lossless_buffer".to_owned(), attribute);
        if never.is_some() {
            diff.refusal = never;
        }
        if lacks {
            diff.transaction = Some(TRANSACTION.to_owned());
        }
    }
}

/// Compares an attribute after the other, in both planes.
pub struct SwitchDiffBuilder<'a> {
    resource: &'a DesiredResource,
    configurations: &'a SwitchConfigurations,
    /// What came of it.
    pub diff: ResourceDiff,
}

impl<'a> SwitchDiffBuilder<'a> {
    /// Nothing is compared yet.
    pub fn new(resource: &'a DesiredResource, configurations: &'a SwitchConfigurations) -> Self {
        SwitchDiffBuilder {
            resource,
            configurations,
            diff: ResourceDiff::default(),
        }
    }

    /// An attribute: what is desired, and how it is read from a port.
    pub fn attribute(
        &mut self,
        name: &str,
        desired: impl Into<Value>,
        read: impl Fn(&dyn SwitchPortSettings) -> Reading,
    ) {
        let port = extract_port_name(self.resource);
        let desired = Reading::Is(desired.into());
        let attribute = self
            .configurations
            .attribute(desired, |configuration| match configuration.port(port) {
                Some(port) => read(port.as_ref()),
                None => Reading::Absent,
            });
        self.diff.attributes.insert(name.to_owned(), attribute);
    }

    /// The actions: what runs is changed first, and saved once it is so.
    pub fn finish(mut self, desired: &DesiredPortSetting) -> ResourceDiff {
        let Some(running) = self.configurations.running() else {
            return self.diff;
        };
        let port = extract_port_name(self.resource);
        let Some(view) = running.port(port) else {
            let known = nodeset::fold_node_set(&running.ports());
            self.diff.refusal = Some(format!("the switch has no port {port}; it has {known}"));
            return self.diff;
        };
        let edits = match running.edits(port, desired) {
            Ok(edits) => edits,
            Err(why) => {
                self.diff.refusal = Some(why.to_string());
                return self.diff;
            }
        };
        self.diff.before = running.before(port, desired);
        plan_switch_actions(&mut self.diff, self.resource, edits, view.is_up());
        self.diff
    }
}

/// What runs is changed first; it is saved once it has been seen to be right.
fn plan_switch_actions(
    diff: &mut ResourceDiff,
    resource: &DesiredResource,
    edits: Vec<SwitchEdit>,
    is_up: bool,
) {
    let (mut of_running, mut of_saved) = (false, false);
    for attribute in diff.attributes.values() {
        for (plane, ..) in attribute.differences() {
            of_running |= plane == Plane::Running;
            of_saved |= plane == Plane::Persisted;
        }
    }
    let system = extract_switch_system(resource);
    if of_running && !edits.is_empty() {
        let disturbance = system.disturbance(&edits, extract_port_name(resource), is_up);
        diff.disruption = disturbance.disruption;
        diff.interrupts.extend(disturbance.interrupts);
        diff.actions.push(Action::EditSwitch { system, edits });
        diff.announced.push(SAVE.to_owned());
    } else if of_saved && !of_running {
        diff.disruption = Disruption::Reload;
        diff.actions.push(Action::SaveSwitch { system });
    }
    if !diff.actions.is_empty() {
        diff.transaction = Some(TRANSACTION.to_owned());
    }
}

/// False where no system writes `before` like this; no two of them have a name and value in common.
pub fn can_read_before(before: &Value) -> bool {
    let mut systems = SwitchSystem::ALL.iter();
    systems.any(|system| system.can_read_before(before))
}

/// Puts back what is the port's own as it was before us.
pub fn take_back(
    resource: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let configurations = SwitchConfigurations::decode(resource, answers);
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    let running = match &configurations.running {
        Ok(running) => running.as_ref().as_ref(),
        Err(reason) => return ResourceDiff::unknown_undo(Plane::Running, before, reason.clone()),
    };
    let port = extract_port_name(resource);
    let Some(view) = running.port(port) else {
        if let Some(reason) = configurations.find_why_port_may_return(running, port, before) {
            return ResourceDiff::unknown_undo(Plane::Running, before, reason);
        }
        diff.residue.push(format!(
            "nothing is left of {port}: the switch has no such port any more"
        ));
        return diff;
    };
    for setting in running.kept(port, before) {
        let attribute = configurations.restorable_attribute(port, before, &setting);
        diff.attributes.insert(setting.called, attribute);
    }
    diff.residue = running.stays(before);
    plan_switch_actions(
        &mut diff,
        resource,
        running.put_back(port, before),
        view.is_up(),
    );
    // What is only forgotten goes along, so that what is undone around it is one step.
    diff.transaction = Some(TRANSACTION.to_owned());
    diff
}
