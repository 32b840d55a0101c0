//! `bond`: several ports as one netdev: its members, mode and settings, running now and made at
//! boot by the manager that owns it. Its name is the netdev's.
//!
//! It is compared and never made or changed by us: ports leave their addresses behind when they
//! join, and a change of mode or members takes the bond down, which on most hosts carries our own
//! connection. What differs is refused with the lines to write by hand, in the words of the manager
//! that the host really uses.

mod by_hand;

use super::link::layers::{self, MODES, OnDisk, RunningLinkLayers, Settings};
use super::names::is_netdev;
use super::{DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff, ResourceKind};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use railwright_base::units::Milliseconds;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The kind.
pub struct Bond;

/// Hash policies (the Linux kernel: Documentation/networking/bonding.rst).
pub const HASH_POLICIES: [&str; 6] = [
    "layer2",
    "layer2+3",
    "layer3+4",
    "encap2+3",
    "encap3+4",
    "vlan+srcmac",
];

/// The desired state of a bond.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BondBody {
    netdev: String,
    /// Netdevs, such as [eno1, eno2].
    members: Vec<String>,
    mode: String,
    miimon: Option<Milliseconds>,
    lacp_rate: Option<String>,
    xmit_hash_policy: Option<String>,
    primary: Option<String>,
    known_after: Option<String>,
}

impl Body for BondBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        let once: BTreeSet<_> = self.members.iter().collect();
        errors.require(
            !once.is_empty()
                && once.len() == self.members.len()
                && once
                    .iter()
                    .all(|name| is_netdev(name) && **name != self.netdev),
            "/members",
            "`members` must be a list of netdevs, each once",
            "such as [eno1, eno2]",
        );
        check_word(errors, "mode", Some(&self.mode), &MODES);
        check_word(
            errors,
            "lacp_rate",
            self.lacp_rate.as_ref(),
            &["slow", "fast"],
        );
        check_word(
            errors,
            "xmit_hash_policy",
            self.xmit_hash_policy.as_ref(),
            &HASH_POLICIES,
        );
        errors.check_range("miimon", self.miimon.map(|miimon| miimon.0), 0..=60_000);
        errors.require(
            self.primary.as_ref().is_none_or(|name| once.contains(name)),
            "/primary",
            "`primary` must be one of `members`",
            "",
        );
        errors.check_known_after(self.known_after.as_deref());
    }
}

/// Notes a word that the kernel does not know for a setting of bonds.
fn check_word(errors: &mut BodyErrors, field: &str, word: Option<&String>, all: &[&str]) {
    if let Some(word) = word.filter(|word| !all.contains(&word.as_str())) {
        errors.add(
            &format!("/{field}"),
            format!("`{word}` is no {field} of a bond"),
            &format!("one of {}", all.join(", ")),
        );
    }
}

impl BondBody {
    fn of(resource: &DesiredResource) -> Self {
        let mut body: BondBody = read_body(&resource.body);
        body.members.sort();
        body
    }

    fn desired(&self) -> Settings {
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

    fn body_type(&self) -> BodyType {
        BodyType::of::<BondBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = BondBody::of(resource);
        layers::build_layer_reads(&body.netdev, &body.members)
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = BondBody::of(resource);
        let actual = layers::decode_running_layers(answers, &body.netdev).and_then(|running| {
            Ok((
                running,
                layers::on_disk(answers, &body.netdev, "bond", &body.members)?,
            ))
        });
        let mut diff = match actual {
            Ok((running, on_disk)) => diff_bond(&body, running.as_ref(), &on_disk),
            Err(reason) => layers::diff_layer_settings(&body.desired(), |_, _| {
                Reading::Unknown(reason.clone())
            }),
        };
        if diff.refusal.is_some() && body.known_after.is_some() && diff.is_absent() {
            diff.refusal = None;
            diff.wait_or_refuse(resource, &[], String::new);
        }
        diff
    }

    /// We never made it, so there is nothing to take back.
    fn undo(&self, _: &DesiredResource, _: &Value, _: &ReadResults) -> ResourceDiff {
        ResourceDiff::default()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["miimon", "lacp_rate", "xmit_hash_policy", "primary"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["kernel_module", "kernel_module_build"]
    }
}

fn diff_bond(
    body: &BondBody,
    running: Option<&RunningLinkLayers>,
    on_disk: &OnDisk,
) -> ResourceDiff {
    let is_bond = running.is_none_or(|running| running.kind.as_deref() == Some("bond"));
    let mut diff = layers::diff_layer_settings(&body.desired(), |word, plane| {
        let settings = match plane {
            Plane::Persisted => Some(&on_disk.settings),
            _ => running.map(|running| &running.settings),
        };
        settings
            .and_then(|settings| settings.get(word))
            .cloned()
            .map_or(Reading::Absent, Reading::Is)
    });
    if diff.is_met() || diff.has_unknown() {
        return diff;
    }
    diff.refusal = Some(match is_bond {
        true => by_hand::render_manual_bond_steps(body, running.is_some(), on_disk.manager),
        false => format!(
            "{} is there and is no bond; give the bond another name, or that netdev",
            body.netdev
        ),
    });
    diff
}

#[cfg(test)]
mod tests;
