//! `switch_ecn`: from how many bytes in the queue of a priority on a port marks packets, so that
//! senders slow down before anybody is paused.

use super::EcnMarkingThresholds;
use super::before::merge_before_values;
use super::body::{
    build_switch_reads, check_common_fields, extract_port_name, parse_marking_thresholds,
};
use super::configuration::{DesiredPortSetting, SwitchPortSettings};
use super::judge::{SwitchConfigurations, SwitchDiffBuilder, take_back};
use crate::{Assessment, BodyError, DesiredResource, Read, ReadResults, ResourceKind};
use railwright_base::TargetKind;
use serde_json::Value;

/// The kind.
pub struct SwitchEcn;

impl ResourceKind for SwitchEcn {
    fn name(&self) -> &'static str {
        "switch_ecn"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("port")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = check_common_fields(
            body,
            &["priority", "min_bytes", "max_bytes", "probability_percent"],
        );
        let required = ["priority", "min_bytes", "max_bytes", "probability_percent"];
        for field in required.iter().filter(|field| body.get(**field).is_none()) {
            fields.error("", format!("`{field}` is missing"), None);
        }
        fields.number("priority", 0..=7);
        fields.number("min_bytes", 1..=u64::from(u32::MAX));
        fields.number("max_bytes", 1..=u64::from(u32::MAX));
        fields.number("probability_percent", 1..=100);
        let wanted = parse_marking_thresholds(body);
        if wanted.min_bytes > wanted.max_bytes {
            let help =
                "packets are marked from the lower one on, and all of them above the higher one";
            fields.error(
                "/min_bytes",
                "`min_bytes` is above `max_bytes`",
                Some(help.to_owned()),
            );
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        build_switch_reads(wish)
    }

    fn part<'a>(&self, wish: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(wish))
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let said = SwitchConfigurations::of(wish, answers);
        let wanted = parse_marking_thresholds(&wish.body);
        let queue = extract_ecn_priority(wish);
        let mut judge = SwitchDiffBuilder::new(wish, &said);
        let mut attribute = |name: &str, value: u64, of: fn(EcnMarkingThresholds) -> u64| {
            let found = |port: &dyn SwitchPortSettings| port.marking(queue).map(of).into();
            judge.attribute(name, value, found);
        };
        attribute("min_bytes", wanted.min_bytes, |found| found.min_bytes);
        attribute("max_bytes", wanted.max_bytes, |found| found.max_bytes);
        attribute("probability_percent", wanted.probability_percent, |found| {
            found.probability_percent
        });
        judge.finish(&DesiredPortSetting::Marking {
            queue,
            thresholds: wanted,
        })
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        merge_before_values(first, now)
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        take_back(last_applied, before, answers)
    }
}

fn extract_ecn_priority(wish: &DesiredResource) -> u64 {
    wish.body
        .get("priority")
        .and_then(Value::as_u64)
        .unwrap_or_default()
}
