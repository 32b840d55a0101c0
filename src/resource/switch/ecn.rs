//! `switch_ecn`: from how many bytes in the queue of a priority on a port marks packets, so that
//! senders slow down before anybody is paused.

use super::body::{build_switch_reads, check_port_name, extract_port_name};
use super::configuration::DesiredPortSetting;
use super::diff::{SwitchConfigurations, SwitchDiffBuilder, can_read_before, take_back};
use super::{EcnMarkingThresholds, SwitchSystem};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use crate::merged_before::merge_before_values;
use crate::{DesiredResource, Read, ReadResults, ResourceDiff, ResourceKind};
use railwright_base::TargetKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// One of the numbers of thresholds.
type ThresholdMember = fn(EcnMarkingThresholds) -> u64;

/// The kind.
pub struct SwitchEcn;

/// The desired state of the marking of packets on a port.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchEcnBody {
    system: SwitchSystem,
    port: String,
    /// 0 to 7.
    priority: u64,
    /// Bytes in the queue from which packets are marked.
    min_bytes: u64,
    /// Bytes in the queue above which all packets are marked.
    max_bytes: u64,
    /// The percentage of packets that are marked at `max_bytes`, 1 to 100.
    probability_percent: u64,
}

impl Body for SwitchEcnBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        let bytes = 1..=u64::from(u32::MAX);
        check_port_name(errors, &self.port);
        errors.check_range("priority", Some(self.priority), 0..=7);
        errors.check_range("min_bytes", Some(self.min_bytes), bytes.clone());
        errors.check_range("max_bytes", Some(self.max_bytes), bytes);
        errors.check_range(
            "probability_percent",
            Some(self.probability_percent),
            1..=100,
        );
        errors.require(
            self.min_bytes <= self.max_bytes,
            "/min_bytes",
            "`min_bytes` is above `max_bytes`",
            "packets are marked from the lower one on, and all of them above the higher one",
        );
    }
}

impl SwitchEcnBody {
    fn thresholds(&self) -> EcnMarkingThresholds {
        EcnMarkingThresholds {
            min_bytes: self.min_bytes,
            max_bytes: self.max_bytes,
            probability_percent: self.probability_percent,
        }
    }
}

impl ResourceKind for SwitchEcn {
    fn name(&self) -> &'static str {
        "switch_ecn"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "port").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<SwitchEcnBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        build_switch_reads(read_body::<SwitchEcnBody>(&resource.body).system)
    }

    fn part<'a>(&self, resource: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(resource))
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let configurations = SwitchConfigurations::decode(resource, answers);
        let body = read_body::<SwitchEcnBody>(&resource.body);
        let (desired, queue) = (body.thresholds(), body.priority);
        let mut diff = SwitchDiffBuilder::new(resource, &configurations);
        let members: [(&str, ThresholdMember); 3] = [
            ("min_bytes", |thresholds| thresholds.min_bytes),
            ("max_bytes", |thresholds| thresholds.max_bytes),
            ("probability_percent", |thresholds| {
                thresholds.probability_percent
            }),
        ];
        for (name, member) in members {
            diff.attribute(name, member(desired), |port| {
                port.marking(queue).map(member).into()
            });
        }
        diff.finish(&DesiredPortSetting::Marking {
            queue,
            thresholds: desired,
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
    ) -> ResourceDiff {
        take_back(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        can_read_before(before)
    }
}
