//! What the four kinds have in common: both configurations, attributes in two planes, the edits and what they disturb.

use super::SwitchRead;
use super::body::{port, system};
use super::sonic::config_db::ConfigDb;
use super::sonic::edit::{Edit, Edits, takes_port_down};
use super::sonic::port_view::{LosslessBuffer, PortView};
use crate::base::nodeset;
use crate::resource::{Action, Answers, Assessment, Attribute, Disruption, Plane, Read, Reading, Wish};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The word of the transaction that all changes of a switch make.
const TRANSACTION: &str = "switch";

/// What a step may do after the change has been proven.
const SAVE: &str = "save_switch";

/// What a switch says: both configurations, which all wishes of it share.
pub struct Said {
    running: Result<Arc<ConfigDb>, String>,
    /// Nothing where nothing that makes sense is saved.
    saved: Result<Arc<Option<ConfigDb>>, String>,
}

impl Said {
    /// Both configurations.
    pub fn of(wish: &Wish, answers: &Answers) -> Self {
        let system = system(wish);
        let read = |of| Read::Switch { system, of };
        let running = answers.decoded(&read(SwitchRead::Running), |code, out| match code {
            0 => ConfigDb::parse(out),
            69 => Err("sonic-cfggen is not on this host; is it a switch with SONiC?".to_owned()),
            code => Err(format!("sonic-cfggen ended with status {code}")),
        });
        let saved = answers.decoded(&read(SwitchRead::Saved), |code, out| match code {
            0 => ConfigDb::parse(out).map(Some),
            1 => Ok(None),
            code => Err(format!("reading it ended with status {code}")),
        });
        Said { running, saved }
    }

    /// What runs, where it could be read.
    pub fn running(&self) -> Option<&ConfigDb> {
        self.running.as_deref().ok()
    }

    /// An attribute in both planes: what is wanted, and how it is found in a configuration.
    fn attribute(&self, wanted: Reading, found: impl Fn(&ConfigDb) -> Reading) -> Attribute {
        let unknown = |reason: &String| Reading::Unknown(reason.clone());
        let running = self.running.as_deref().map_or_else(unknown, &found);
        let saved = self.saved.as_deref().map_or_else(unknown, |saved| saved.as_ref().map_or(Reading::Absent, &found));
        Attribute::in_plane(Plane::Running, wanted.clone(), running).and(Plane::Persisted, wanted, saved)
    }

    /// Notes whether the switch made the buffer that a paused priority needs. It does so by itself, a moment after it was told of PFC and
    /// the cable, or not at all, which is told once both are so.
    pub fn note_lossless(&self, assessment: &mut Assessment, port: &str, priority: u64, cable_m: u64) {
        let view = self.running().and_then(|db| PortView::of(db, port));
        let found = match &self.running {
            Err(reason) => Reading::Unknown(reason.clone()),
            Ok(_) => view.map_or(Reading::Absent, |view| lossless(view, priority, cable_m)),
        };
        let attribute = Attribute::in_plane(Plane::Running, Reading::is("there"), found).that_settles();
        let lacks = !attribute.differences().is_empty();
        assessment.attributes.insert("lossless_buffer".to_owned(), attribute);
        let Some(view) = view else { return };
        if lacks && view.pfc().contains(&priority) && view.cable_m() == Some(cable_m) {
            let speed = view.speed_mbps().map_or_else(|| "its speed".to_owned(), |speed| format!("{} Gb/s", speed / 1000));
            assessment.refusal = Some(format!(
                "SONiC made no lossless buffer on {port}: it has no row for {speed} and {cable_m} m (pg_profile_lookup.ini), or works buffers out \
                 only where BUFFER_PG|{port}|{priority} says so"
            ));
        }
        if lacks {
            assessment.transaction = Some(TRANSACTION.to_owned());
        }
    }
}

fn lossless(view: PortView, priority: u64, cable_m: u64) -> Reading {
    if !view.is_up() {
        return Reading::NotApplicable("the port is down, and has no buffer then".to_owned());
    }
    match view.lossless(view.group(priority).unwrap_or(priority)) {
        None => Reading::Absent,
        Some(LosslessBuffer::ForCable(cable)) if cable != format!("{cable_m}m") => Reading::is(format!("for a cable of {cable}")),
        Some(_) => Reading::is("there"),
    }
}

/// Judges an attribute after the other, in both planes.
pub struct Judge<'a> {
    wish: &'a Wish,
    said: &'a Said,
    /// What came of it.
    pub assessment: Assessment,
}

impl<'a> Judge<'a> {
    /// Nothing is judged yet.
    pub fn new(wish: &'a Wish, said: &'a Said) -> Self {
        Judge { wish, said, assessment: Assessment::default() }
    }

    /// An attribute: what is wanted, and how it is found in a port.
    pub fn attribute(&mut self, name: &str, wanted: impl Into<Value>, found: impl Fn(PortView) -> Reading) {
        let port = port(self.wish);
        let found = |db: &ConfigDb| PortView::of(db, port).map_or(Reading::Absent, &found);
        let attribute = self.said.attribute(Reading::Is(wanted.into()), found);
        self.assessment.attributes.insert(name.to_owned(), attribute);
    }

    /// The actions: what runs is changed first, and saved once it is so. `touched`: the fields of the port's own rows that the wish may
    /// come to change.
    pub fn finish(mut self, touched: &[Touched], edits: impl Fn(&ConfigDb) -> Result<Vec<Edit>, String>) -> Assessment {
        let Some(running) = self.said.running() else { return self.assessment };
        let port = port(self.wish);
        let Some(view) = PortView::of(running, port) else {
            let known = nodeset::fold(&running.ports());
            self.assessment.refusal = Some(format!("the switch has no port {port}; it has {known}"));
            return self.assessment;
        };
        let edits = match edits(running) {
            Ok(edits) => edits,
            Err(why) => {
                self.assessment.refusal = Some(why);
                return self.assessment;
            }
        };
        self.assessment.before = before(running, touched);
        act(&mut self.assessment, self.wish, edits, view.is_up());
        self.assessment
    }
}

/// What runs is changed first; it is saved once it has been seen to be right.
fn act(assessment: &mut Assessment, wish: &Wish, edits: Vec<Edit>, is_up: bool) {
    let differs = |plane: Plane| assessment.attributes.values().flat_map(Attribute::differences).any(|(at, ..)| at == plane);
    let (of_running, of_saved) = (differs(Plane::Running), differs(Plane::Persisted));
    let system = system(wish);
    if of_running && !edits.is_empty() {
        disturb(assessment, &edits, port(wish), is_up);
        assessment.actions.push(Action::EditSwitch { system, edits });
        assessment.announced.push(SAVE.to_owned());
    } else if of_saved && !of_running {
        assessment.disruption = Disruption::Reload;
        assessment.actions.push(Action::SaveSwitch { system });
    }
    if !assessment.actions.is_empty() {
        assessment.transaction = Some(TRANSACTION.to_owned());
    }
}

/// What the edits do to the port.
fn disturb(assessment: &mut Assessment, edits: &[Edit], port: &str, up: bool) {
    let mut tables: Vec<&str> = edits.iter().filter(|edit| takes_port_down(edit)).map(|edit| edit.table.as_str()).collect();
    tables.sort_unstable();
    tables.dedup();
    if up && !tables.is_empty() {
        assessment.disruption = Disruption::LinkBlip;
        let why = format!("{port} goes down and comes back: SONiC changes {} of a port that is down", tables.join(" and "));
        assessment.interrupts.push(why);
    } else {
        assessment.disruption = Disruption::Reload;
    }
}

/// A table, the key of a row that is of one port alone, and fields of it.
pub type Touched<'a> = (&'a str, String, &'a [&'a str]);

/// What stands in these fields, so that it can be put back: the maps and profiles of ours are shared, and stay.
fn before(running: &ConfigDb, touched: &[Touched]) -> Value {
    let field = |table: &str, key: &str, field: &str| running.reference(table, key, field).map_or(Value::Null, Value::from);
    let row = |(table, key, fields): &Touched| {
        let fields: Map<String, Value> = fields.iter().map(|name| ((*name).to_owned(), field(table, key, name))).collect();
        (format!("{table}|{key}"), Value::Object(fields))
    };
    Value::Object(touched.iter().map(row).collect())
}

/// Puts back the fields of the port's own rows as they were before us; rows that came with us and have nothing left go.
pub fn take_back(wish: &Wish, before: &Value, answers: &Answers) -> Assessment {
    let said = Said::of(wish, answers);
    let mut assessment = Assessment { before: before.clone(), ..Assessment::default() };
    let running = match &said.running {
        Ok(running) => running,
        Err(reason) => {
            let unknown = Attribute::in_plane(Plane::Running, Reading::is("as before"), Reading::Unknown(reason.clone()));
            assessment.attributes.insert("settings".to_owned(), unknown);
            return assessment;
        }
    };
    let Some(view) = PortView::of(running, port(wish)) else {
        assessment.residue.push(format!("nothing is left of {}: the switch has no such port any more", port(wish)));
        return assessment;
    };
    let mut edits = Edits::of(running);
    for (row, fields) in before.as_object().into_iter().flatten() {
        let Some((table, key)) = row.split_once('|') else { continue };
        let fields: Vec<(&String, Option<&str>)> =
            fields.as_object().into_iter().flatten().map(|(name, old)| (name, old.as_str())).collect();
        for (field, old) in &fields {
            let reading = |db: &ConfigDb| db.reference(table, key, field).map_or(Reading::Absent, Reading::is);
            let attribute = said.attribute(old.map_or(Reading::Absent, Reading::is), reading);
            assessment.attributes.insert(called(port(wish), key, field), attribute);
            match old {
                Some(old) => edits.set(table, key, field, old),
                None => edits.unset(table, key, field),
            }
        }
        let goes = |name: &String| fields.iter().any(|(field, old)| *field == name && old.is_none());
        if running.row(table, key).is_some_and(|row| !row.is_empty() && row.keys().all(goes)) {
            edits.remove(table, key);
        }
    }
    act(&mut assessment, wish, edits.finish(), view.is_up());
    // What is only forgotten goes along, so that what is taken back around it is one step.
    assessment.transaction = Some(TRANSACTION.to_owned());
    assessment
}

/// What a field of a port's own row is called, alike for all ports.
fn called(port: &str, key: &str, field: &str) -> String {
    match key.strip_prefix(port).map(|rest| rest.trim_start_matches('|')) {
        Some("") => field.to_owned(),
        Some(queue) => format!("queue {queue} {field}"),
        None => "cable_length".to_owned(),
    }
}
