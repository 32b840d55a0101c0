//! A revision of NVUE as one configuration among those of other systems: which edits a wish comes
//! to, and what is put back.

use super::OURS;
use super::config::Nvue;
use super::edit::{CumulusEdit, CumulusEditBuilder, Leaf};
use super::plan_edits::{self, format_port_profile_name};
use super::port_view::CumulusPortView;
use super::profile::QosProfileKind;
use crate::Reading;
use crate::switch::configuration::{
    DesiredPortSetting, RestorableSetting, SwitchConfiguration, SwitchPortSettings,
    unlike_as_a_whole,
};
use crate::switch::edit::SwitchEdit;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Below it `before` has what all ports of the switch share, which is not put back.
const SHARED: &str = "shared";

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

    fn edits(&self, port: &str, wanted: &DesiredPortSetting) -> Result<Vec<SwitchEdit>, String> {
        let edits = match wanted {
            DesiredPortSetting::Port { mtu, up } => {
                plan_edits::plan_cumulus_port_edits(self, port, *mtu, *up)
            }
            DesiredPortSetting::Qos(wanted) => {
                plan_edits::plan_cumulus_qos_edits(self, port, wanted)?
            }
            DesiredPortSetting::Marking { queue, thresholds } => {
                plan_edits::plan_cumulus_marking_edits(self, port, *queue, *thresholds)?
            }
            DesiredPortSetting::Cable { metres } => {
                plan_edits::plan_cumulus_cable_edits(self, port, *metres)?
            }
        };
        Ok(wrap_cumulus_edits(edits))
    }

    fn before(&self, port: &str, wanted: &DesiredPortSetting) -> Value {
        let profile = format_port_profile_name(port);
        let places: Vec<(String, Value)> = match wanted {
            // A port that we brought up is never taken down again: others may have come to use it.
            DesiredPortSetting::Port { mtu, .. } => mtu
                .iter()
                .map(|_| self.remember_place(format!("interface {port} link mtu")))
                .collect(),
            DesiredPortSetting::Cable { .. } => {
                let cable = self
                    .effective(port, QosProfileKind::Pfc)
                    .get("cable-length")
                    .cloned();
                vec![(
                    format!("qos pfc {profile} cable-length"),
                    cable.unwrap_or_default(),
                )]
            }
            DesiredPortSetting::Marking { queue, .. } => {
                let part = format!("traffic-class {queue}");
                vec![self.remember_profile(port, QosProfileKind::Marking, &part)]
            }
            DesiredPortSetting::Qos(wanted) => {
                let mut places = vec![
                    self.remember_binding(port, QosProfileKind::Mapping),
                    self.remember_binding(port, QosProfileKind::Scheduler),
                    self.remember_profile(port, QosProfileKind::Pfc, "switch-priority"),
                ];
                if wanted.watchdog.is_some() {
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
        let kept = |(path, was): (Vec<&str>, &Value)| {
            let is = self
                .at(&path)
                .map_or(Reading::Absent, |is| build_setting_reading(port, is));
            RestorableSetting {
                called: describe_setting_path(port, &path),
                was: build_setting_reading(port, was),
                is,
            }
        };
        self.places(port, before).into_iter().map(kept).collect()
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
        wrap_cumulus_edits(back)
    }

    fn stays(&self, before: &Value) -> Vec<String> {
        let places = before
            .get(SHARED)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let stays = places.filter_map(|(path, was)| {
            let is = self
                .at(&path.split(' ').collect::<Vec<_>>())
                .filter(|is| *is != was)?;
            Some(format!(
                "{path} stays {is}: other ports may need it (`nv unset {path}`)"
            ))
        });
        stays.collect()
    }

    fn unlike(&self, other: &dyn SwitchConfiguration) -> Option<BTreeSet<String>> {
        unlike_as_a_whole(self, other)
    }
}

impl Nvue {
    /// A place with what it holds.
    fn remember_place(&self, path: String) -> (String, Value) {
        let is = self.at(&path.split(' ').collect::<Vec<_>>());
        let is = is.map_or(Value::Null, wrap_tree_value);
        (path, is)
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
        let places = before
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(path, _)| *path != SHARED);
        let places = places.map(|(path, was)| {
            (
                path.split(' ').collect::<Vec<_>>(),
                was.get(0).unwrap_or(was),
            )
        });
        // A profile that came with a binding goes with it, whatever a later wish of the port found
        // in it.
        let goes = |family: &str| {
            before
                .get(format!("interface {port} qos {family} profile"))
                .is_some()
        };
        let is_there = |path: &[&str]| match path {
            ["qos", family, profile, ..] if *profile == format_port_profile_name(port) => {
                self.at(&path[..3]).is_some() && !goes(family)
            }
            ["interface", ..] => true,
            _ => false,
        };
        places.filter(|(path, _)| is_there(path)).collect()
    }
}

/// A tree is remembered as one: a later wish of the port adds nothing to it.
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
    let mut edits = CumulusEditBuilder::of(nvue);
    if was.is_empty() {
        edits.set(path, Leaf::Entry {});
    }
    edits.copy(path, was, &[]);
    edits
        .finish()
        .into_iter()
        .map(|edit| CumulusEdit {
            copied: false,
            ..edit
        })
        .collect()
}

fn wrap_cumulus_edits(edits: Vec<CumulusEdit>) -> Vec<SwitchEdit> {
    edits.into_iter().map(SwitchEdit::Cumulus).collect()
}

/// A value, or the names of what is there; alike for all ports.
fn build_setting_reading(port: &str, value: &Value) -> Reading {
    match value {
        Value::String(name) if *name == format_port_profile_name(port) => {
            Reading::is(format!("{OURS}'s own"))
        }
        Value::Null => Reading::Absent,
        Value::Object(map) if map.is_empty() => Reading::is("there"),
        Value::Object(map) => Reading::is(map.keys().cloned().collect::<Vec<_>>().join(", ")),
        other => Reading::Is(other.clone()),
    }
}

/// What a place is called, alike for all ports.
fn describe_setting_path(port: &str, path: &[&str]) -> String {
    let words = path.iter().filter(|word| {
        ![
            "interface",
            "qos",
            "link",
            port,
            &format_port_profile_name(port),
        ]
        .contains(word)
    });
    words.copied().collect::<Vec<_>>().join(" ")
}
