//! `switch_buffer`: how long the cable of a port is, by which the switch sizes the buffer that
//! takes in what still comes after a pause, and whether there is such a buffer: a length that the
//! switch has no row for leaves the port without one, and only a log says so.

use super::SwitchSystem;
use super::body::{build_switch_reads, check_port_name, extract_port_name};
use super::configuration::DesiredPortSetting;
use super::diff::{SwitchConfigurations, SwitchDiffBuilder, can_read_before, take_back};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use crate::merged_before::merge_before_values;
use crate::{DesiredResource, Read, ReadResults, ResourceDiff, ResourceKind};
use railwright_base::TargetKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The kind.
pub struct SwitchBuffer;

/// The desired state of the buffer of a port.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchBufferBody {
    system: SwitchSystem,
    port: String,
    /// Metres, 1 to 9999.
    cable_m: u64,
    /// The lossless priority, 0 to 7.
    priority: u64,
}

impl Body for SwitchBufferBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        check_port_name(errors, &self.port);
        errors.check_range("cable_m", Some(self.cable_m), 1..=9999);
        errors.check_range("priority", Some(self.priority), 0..=7);
        let name = self.system.name();
        errors.require(
            self.system.has_cables(),
            "/system",
            &format!("{name} has no setting for the length of a cable"),
            "the switch sizes its buffers by profiles of the whole switch; leave `cable_length_m` \
             to rules that compare",
        );
    }
}

impl ResourceKind for SwitchBuffer {
    fn name(&self) -> &'static str {
        "switch_buffer"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "port").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<SwitchBufferBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        build_switch_reads(read_body::<SwitchBufferBody>(&resource.body).system)
    }

    fn part<'a>(&self, resource: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(resource))
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let configurations = SwitchConfigurations::decode(resource, answers);
        let body = read_body::<SwitchBufferBody>(&resource.body);
        let mut builder = SwitchDiffBuilder::new(resource, &configurations);
        builder.attribute("cable_m", body.cable_m, |port| port.cable_m().into());
        let metres = body.cable_m;
        let mut diff = builder.finish(&DesiredPortSetting::Cable { metres });
        if body.system.makes_buffers() {
            configurations.note_made_buffer(&mut diff, &body.port, body.priority, metres);
        }
        diff
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

    /// The switch makes the buffer for a priority with PFC alone.
    fn after_kinds(&self) -> &'static [&'static str] {
        &["switch_qos"]
    }
}
