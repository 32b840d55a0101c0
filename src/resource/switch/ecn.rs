//! `switch_ecn`: from how many bytes in the queue of a priority on a port marks packets, so that
//! senders slow down before anybody is paused.

use super::EcnMarkingThresholds;
use super::before::merge_before_values;
use super::body::{
    build_switch_reads, check_common_fields, check_required_fields, extract_number_field,
    extract_port_name, parse_marking_thresholds,
};
use super::configuration::DesiredPortSetting;
use super::diff::{SwitchConfigurations, SwitchDiffBuilder, take_back};
use crate::{Assessment, BodyError, DesiredResource, Read, ReadResults, ResourceKind};
use railwright_base::TargetKind;
use serde_json::Value;

/// One of the numbers of thresholds.
type ThresholdMember = fn(EcnMarkingThresholds) -> u64;

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
        let required = ["priority", "min_bytes", "max_bytes", "probability_percent"];
        let mut fields = check_common_fields(body, &required);
        check_required_fields(&mut fields, body, &required);
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

    fn reads(&self, desired: &DesiredResource) -> Vec<Read> {
        build_switch_reads(desired)
    }

    fn part<'a>(&self, desired: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(desired))
    }

    fn assess(&self, desired: &DesiredResource, answers: &ReadResults) -> Assessment {
        let configurations = SwitchConfigurations::decode(desired, answers);
        let wanted = parse_marking_thresholds(&desired.body);
        let queue = extract_number_field(&desired.body, "priority");
        let mut diff = SwitchDiffBuilder::new(desired, &configurations);
        let members: [(&str, ThresholdMember); 3] = [
            ("min_bytes", |thresholds| thresholds.min_bytes),
            ("max_bytes", |thresholds| thresholds.max_bytes),
            ("probability_percent", |thresholds| {
                thresholds.probability_percent
            }),
        ];
        for (name, member) in members {
            diff.attribute(name, member(wanted), |port| {
                port.marking(queue).map(member).into()
            });
        }
        diff.finish(&DesiredPortSetting::Marking {
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
