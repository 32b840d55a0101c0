//! A revision of NVUE as one configuration among those of other systems: which edits a desired
//! setting comes to, and what is put back.

use super::OURS;
use super::config::Nvue;
use super::edit::{CumulusEdit, CumulusEditBuilder, Leaf};
use super::plan_edits::{self, format_port_profile_name};
use super::port_view::CumulusPortView;
use super::profile::QosProfileKind;
use crate::Reading;
use crate::switch::SwitchError;
use crate::switch::configuration::{
    DesiredPortSetting, RestorableSetting, SHARED, SwitchConfiguration, SwitchPortSettings,
    list_shared_settings, unlike_as_a_whole,
};
use crate::switch::edit::SwitchEdit;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What all ports share and we may come to set.
const SHARED_PLACES: [&str; 3] = [
    "qos traffic-pool default-lossless memory-percent",
    "qos pfc-watchdog polling-interval",
    "qos pfc-watchdog robustness",
];

impl SwitchConfiguration for Nvue {
    fn ports(&self) -> Vec<&str> {
        self.port_names()
    }

    fn port<'a>(&'a self, name: &'a str) -> Option<Box<dyn SwitchPortSettings + 'a>> {
        CumulusPortView::of(self, name).map(|view| Box::new(view) as Box<dyn SwitchPortSettings>)
    }

    fn edits(
        &self,
        port: &str,
        desired: &DesiredPortSetting,
    ) -> Result<Vec<SwitchEdit>, SwitchError> {
        let edits = match desired {
            DesiredPortSetting::Port { mtu, up } => {
                plan_edits::plan_cumulus_port_edits(self, port, *mtu, *up)
            }
            DesiredPortSetting::Qos(desired) => {
                plan_edits::plan_cumulus_qos_edits(self, port, desired)?
            }
            DesiredPortSetting::Marking { queue, thresholds } => {
                plan_edits::plan_cumulus_marking_edits(self, port, *queue, *thresholds)?
            }
            DesiredPortSetting::Cable { metres } => {
                plan_edits::plan_cumulus_cable_edits(self, port, *metres)?
            }
        };
        Ok(edits.into_iter().map(SwitchEdit::Cumulus).collect())
    }

    fn before(&self, port: &str, desired: &DesiredPortSetting) -> Value {
        let profile = format_port_profile_name(port);
        let places: Vec<(String, Value)> = match desired {
            // A port that we brought up is never taken down again: others may have come to use it.
            DesiredPortSetting::Port { mtu: Some(_), .. } => {
                vec![self.remember_place(format!("interface {port} link mtu"))]
            }
            DesiredPortSetting::Port { mtu: None, .. } => Vec::new(),
            DesiredPortSetting::Cable { .. } => {
                let mut members = self.effective(port, QosProfileKind::Pfc);
                let cable = members.remove("cable-length").unwrap_or_default();
                vec![(format!("qos pfc {profile} cable-length"), cable)]
            }
            DesiredPortSetting::Marking { queue, .. } => {
                let part = format!("traffic-class {queue}");
                vec![self.remember_profile(port, QosProfileKind::Marking, &part)]
            }
            DesiredPortSetting::Qos(desired) => {
                let mut places = vec![
                    self.remember_binding(port, QosProfileKind::Mapping),
                    self.remember_binding(port, QosProfileKind::Scheduler),
                    self.remember_profile(port, QosProfileKind::Pfc, "switch-priority"),
                ];
                if desired.watchdog.is_some() {
                    places.push(self.remember_place(format!("interface {port} qos pfc-watchdog")));
                }
                let shared = SHARED_PLACES.map(|place| self.remember_place(place.to_owned()));
                let shared = Value::Object(shared.into_iter().collect());
                places.push((SHARED.to_owned(), shared));
                places
            }
        };
        Value::Object(places.into_iter().collect::<Map<_, _>>())
    }

    fn kept(&self, port: &str, before: &Value) -> Vec<RestorableSetting> {
        let mut settings = Vec::new();
        for (path, was) in self.places(port, before) {
            settings.push(RestorableSetting {
                called: describe_setting_path(port, &path),
                was: build_setting_reading(port, was),
                is: build_setting_reading(port, self.at(&path).unwrap_or(&Value::Null)),
            });
        }
        settings
    }

    fn put_back(&self, port: &str, before: &Value) -> Vec<SwitchEdit> {
        let mut edits = CumulusEditBuilder::of(self);
        let profile = format_port_profile_name(port);
        let mut back = Vec::new();
        for (path, was) in self.places(port, before) {
            match was {
                Value::Null => edits.unset(&path),
                Value::Object(was) => back.extend(build_subtree_restore_edits(self, &path, was)),
                was => edits.set(&path, Leaf::of(was).unwrap_or(Leaf::Entry {})),
            }
            // The profile of the port alone goes once the port is bound to it no more.
            if let ["interface", _, "qos", family, "profile"] = path.as_slice()
                && was.as_str() != Some(&profile)
            {
                edits.unset(&["qos", family, &profile]);
            }
        }
        back.extend(edits.finish());
        back.sort();
        back.dedup();
        back.into_iter().map(SwitchEdit::Cumulus).collect()
    }

    fn stays(&self, before: &Value) -> Vec<String> {
        let mut stays = Vec::new();
        for (path, was) in list_shared_settings(before) {
            if let Some(is) = self.at_place(path)
                && is != was
            {
                stays.push(format!(
                    "{path} stays {is}: other ports may need it (`nv unset {path}`)"
                ));
            }
        }
        stays
    }

    fn unlike(&self, other: &dyn SwitchConfiguration) -> Option<BTreeSet<String>> {
        unlike_as_a_whole(self, other)
    }
}

impl Nvue {
    /// What is set at a place, by its words in a row.
    fn at_place(&self, place: &str) -> Option<&Value> {
        self.at(&Vec::from_iter(place.split(' ')))
    }

    /// A place with what it holds.
    fn remember_place(&self, place: String) -> (String, Value) {
        let is = self.at_place(&place).map_or(Value::Null, wrap_tree_value);
        (place, is)
    }

    fn remember_binding(&self, port: &str, family: QosProfileKind) -> (String, Value) {
        self.remember_place(format!("interface {port} qos {} profile", family.word()))
    }

    /// Which profile the port is bound to. One that is bound to its own profile already is put back
    /// to what this part of that says.
    fn remember_profile(&self, port: &str, family: QosProfileKind, part: &str) -> (String, Value) {
        let profile = format_port_profile_name(port);
        if self.bound(port, family) == Some(&profile) {
            self.remember_place(format!("qos {} {profile} {part}", family.word()))
        } else {
            self.remember_binding(port, family)
        }
    }

    /// What `before` has of the port alone, without what went with a profile.
    fn places<'a>(&self, port: &str, before: &'a Value) -> Vec<(Vec<&'a str>, &'a Value)> {
        let own_profile = format_port_profile_name(port);
        let mut places = list_before_places(before).unwrap_or_default();
        places.retain(|(path, _)| match path.as_slice() {
            ["qos", family, profile, ..] => {
                // A profile that came with a binding goes with it, whatever a later resource of the
                // port found in it.
                let binding = format!("interface {port} qos {family} profile");
                *profile == own_profile
                    && self.at(&path[..3]).is_some()
                    && before.get(binding).is_none()
            }
            _ => true,
        });
        places
    }
}

/// The places of single ports that `before` has, with what they held; none where this version does
/// not know one of its names or values.
pub fn list_before_places(before: &Value) -> Option<Vec<(Vec<&str>, &Value)>> {
    let mut places = Vec::new();
    for (path, was) in before.as_object()? {
        let path = Vec::from_iter(path.split(' '));
        let was = match was.as_array().map(Vec::as_slice) {
            Some([tree]) => tree,
            _ => was,
        };
        let can_be_set = was.is_null() || was.is_object() || Leaf::of(was).is_some();
        match path.as_slice() {
            [SHARED] if was.is_object() => {}
            ["interface", ..] | ["qos", _, _, ..] if can_be_set => places.push((path, was)),
            _ => return None,
        }
    }
    Some(places)
}

/// A tree is remembered as one: a later resource of the port adds nothing to it.
fn wrap_tree_value(value: &Value) -> Value {
    if value.is_object() {
        Value::Array(vec![value.clone()])
    } else {
        value.clone()
    }
}

/// A place as it was, and nothing beside.
fn build_subtree_restore_edits(
    nvue: &Nvue,
    path: &[&str],
    was: &Map<String, Value>,
) -> Vec<CumulusEdit> {
    let mut builder = CumulusEditBuilder::of(nvue);
    if was.is_empty() {
        builder.set(path, Leaf::Entry {});
    }
    builder.copy(path, was, &[]);
    let mut edits = builder.finish();
    for edit in &mut edits {
        edit.copied = false;
    }
    edits
}

/// A value, or the names of what is there; identical for all ports.
fn build_setting_reading(port: &str, value: &Value) -> Reading {
    match value {
        Value::String(name) if *name == format_port_profile_name(port) => {
            Reading::is(format!("{OURS}'s own"))
        }
        Value::Null => Reading::Absent,
        Value::Object(map) if map.is_empty() => Reading::is("there"),
        Value::Object(map) => Reading::is(Vec::from_iter(map.keys().cloned()).join(", ")),
        other => Reading::Is(other.clone()),
    }
}

/// What a place is called, identical for all ports.
fn describe_setting_path(port: &str, path: &[&str]) -> String {
    let profile = format_port_profile_name(port);
    let left_out = ["interface", "qos", "link", port, &profile];
    let words = path.iter().copied().filter(|word| !left_out.contains(word));
    Vec::from_iter(words).join(" ")
}
