//! `bond`: several ports as one netdev: its members, mode and settings, running now and made at
//! boot by the manager that owns it. Its name is the netdev's.
//!
//! It is compared and never made or changed by us: ports leave their addresses behind when they
//! join, and a change of mode or members takes the bond down, which on most hosts carries our own
//! connection. What differs is refused with the lines to write by hand, in the words of the manager
//! that the host really uses.

mod by_hand;

use super::fields::{Fields, is_netdev};
use super::link::layers::{self, MODES, OnDisk, RunningLinkLayers, Settings};
use super::{
    Assessment, BodyError, DesiredResource, Plane, Read, ReadResults, Reading, ResourceKind,
};
use crate::body::read_text_field;
use railwright_base::units::Milliseconds;
use serde::Deserialize;
use serde_json::{Value, json};

/// The kind.
pub struct Bond;

const FIELDS: [&str; 8] = [
    "netdev",
    "members",
    "mode",
    "miimon",
    "lacp_rate",
    "xmit_hash_policy",
    "primary",
    "known_after",
];

/// Hash policies (the Linux kernel: Documentation/networking/bonding.rst).
pub const HASH_POLICIES: [&str; 6] = [
    "layer2",
    "layer2+3",
    "layer3+4",
    "encap2+3",
    "encap3+4",
    "vlan+srcmac",
];

/// A checked body.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct BondBody {
    netdev: String,
    members: Vec<String>,
    mode: String,
    miimon: Option<Milliseconds>,
    lacp_rate: Option<String>,
    xmit_hash_policy: Option<String>,
    primary: Option<String>,
}

impl BondBody {
    fn of(wish: &DesiredResource) -> Self {
        let mut body: BondBody = serde_json::from_value(wish.body.clone()).unwrap_or_default();
        body.members.sort();
        body
    }

    fn wanted(&self) -> Settings {
        let mut all = Settings::new();
        all.insert("mode".to_owned(), json!(self.mode));
        all.insert("members".to_owned(), json!(self.members));
        let texts = [
            ("lacp_rate", &self.lacp_rate),
            ("xmit_hash_policy", &self.xmit_hash_policy),
            ("primary", &self.primary),
        ];
        all.extend(
            texts
                .into_iter()
                .filter_map(|(word, text)| Some((word.to_owned(), json!(text.as_ref()?)))),
        );
        all.extend(
            self.miimon
                .map(|miimon| ("miimon".to_owned(), json!(miimon.0))),
        );
        all
    }
}

impl ResourceKind for Bond {
    fn name(&self) -> &'static str {
        "bond"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(body, &FIELDS);
        let netdev = fields.netdev(true);
        let members = check_members(&mut fields, netdev);
        check_words(&mut fields);
        fields.number("miimon", 0..=60_000);
        if fields
            .text("primary", false)
            .is_some_and(|primary| !members.contains(&primary))
        {
            fields.error("/primary", "`primary` must be one of `members`", None);
        }
        fields.resource("known_after");
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let body = BondBody::of(wish);
        layers::build_layer_reads(&body.netdev, &body.members)
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let body = BondBody::of(wish);
        let found = layers::decode_running_layers(answers, &body.netdev).and_then(|running| {
            Ok((
                running,
                layers::on_disk(answers, &body.netdev, "bond", &body.members)?,
            ))
        });
        let mut assessment = match found {
            Ok((running, on_disk)) => diff_bond(&body, running.as_ref(), &on_disk),
            Err(reason) => {
                layers::diff_layer_settings(&body.wanted(), |_, _| Reading::Unknown(reason.clone()))
            }
        };
        if assessment.refusal.is_some()
            && wish
                .text("known_after")
                .is_some_and(|_| assessment.is_absent())
        {
            assessment.refusal = None;
            assessment.wait_or_refuse(wish, &[], String::new);
        }
        assessment
    }

    /// We never made it, so there is nothing to take back.
    fn undo(&self, _: &DesiredResource, _: &Value, _: &ReadResults) -> Assessment {
        Assessment::default()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["miimon", "lacp_rate", "xmit_hash_policy", "primary"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["kernel_module", "kernel_module_build"]
    }
}

/// Checks the members of a bond of this name, and returns those that are texts.
fn check_members<'a>(fields: &mut Fields<'a>, netdev: Option<&str>) -> Vec<&'a str> {
    let listed = fields.get("members").and_then(Value::as_array);
    let members: Vec<&str> = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut once = members.clone();
    once.sort_unstable();
    once.dedup();
    if members.is_empty()
        || listed.map_or(0, Vec::len) != once.len()
        || members
            .iter()
            .any(|name| !is_netdev(name) || Some(*name) == netdev)
    {
        fields.error(
            "/members",
            "`members` must be a list of netdevs, each once",
            Some("such as [eno1, eno2]".to_owned()),
        );
    }
    members
}

/// Checks the fields that take one word of a list.
fn check_words(fields: &mut Fields<'_>) {
    let mode = fields.text("mode", true);
    let lacp_rate = fields.text("lacp_rate", false);
    let hash_policy = fields.text("xmit_hash_policy", false);
    for (field, text, all) in [
        ("mode", mode, &MODES[..]),
        ("lacp_rate", lacp_rate, &["slow", "fast"][..]),
        ("xmit_hash_policy", hash_policy, &HASH_POLICIES[..]),
    ] {
        if let Some(text) = text.filter(|text| !all.contains(text)) {
            fields.error(
                &format!("/{field}"),
                format!("`{text}` is no {field} of a bond"),
                Some(format!("one of {}", all.join(", "))),
            );
        }
    }
}

fn diff_bond(body: &BondBody, running: Option<&RunningLinkLayers>, on_disk: &OnDisk) -> Assessment {
    let is_bond = running.is_none_or(|running| running.kind.as_deref() == Some("bond"));
    let mut assessment = layers::diff_layer_settings(&body.wanted(), |word, plane| {
        let settings = match plane {
            Plane::Persisted => Some(&on_disk.settings),
            _ => running.map(|running| &running.settings),
        };
        settings
            .and_then(|settings| settings.get(word))
            .cloned()
            .map_or(Reading::Absent, Reading::Is)
    });
    if assessment.is_met() || assessment.has_unknown() {
        return assessment;
    }
    assessment.refusal = Some(match is_bond {
        true => by_hand::render_manual_bond_steps(body, running.is_some(), on_disk.manager),
        false => format!(
            "{} is there and is no bond; give the bond another name, or that netdev",
            body.netdev
        ),
    });
    assessment
}

#[cfg(test)]
mod tests;
