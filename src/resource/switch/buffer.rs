//! `switch_buffer`: how long the cable of a port is, by which the switch sizes the buffer that
//! takes in what still comes after a pause, and whether there is such a buffer: a length that the
//! switch has no row for leaves the port without one, and only a log says so.

use super::before::merge_before_values;
use super::body::{
    build_switch_reads, check_common_fields, check_required_fields, extract_number_field,
    extract_port_name, extract_switch_system, system_of,
};
use super::configuration::DesiredPortSetting;
use super::diff::{SwitchConfigurations, SwitchDiffBuilder, take_back};
use crate::{Assessment, BodyError, DesiredResource, Read, ReadResults, ResourceKind};
use railwright_base::TargetKind;
use serde_json::Value;

/// The kind.
pub struct SwitchBuffer;

impl ResourceKind for SwitchBuffer {
    fn name(&self) -> &'static str {
        "switch_buffer"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("port")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = check_common_fields(body, &["cable_m", "priority"]);
        check_required_fields(&mut fields, body, &["cable_m", "priority"]);
        fields.number("cable_m", 1..=9999);
        fields.number("priority", 0..=7);
        if let Some(system) = system_of(body)
            && !system.has_cables()
        {
            let help = "the switch sizes its buffers by profiles of the whole switch; leave \
                        `cable_length_m` to rules that compare"
                .to_owned();
            fields.error(
                "/system",
                format!("{} has no setting for the length of a cable", system.name()),
                Some(help),
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
        let cable_m = extract_number_field(&desired.body, "cable_m");
        let priority = extract_number_field(&desired.body, "priority");
        let mut diff = SwitchDiffBuilder::new(desired, &configurations);
        diff.attribute("cable_m", cable_m, |port| port.cable_m().into());
        let mut assessment = diff.finish(&DesiredPortSetting::Cable { metres: cable_m });
        if extract_switch_system(desired).makes_buffers() {
            configurations.note_made_buffer(
                &mut assessment,
                extract_port_name(desired),
                priority,
                cable_m,
            );
        }
        assessment
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

    /// The switch makes the buffer for a priority with PFC alone.
    fn after_kinds(&self) -> &'static [&'static str] {
        &["switch_qos"]
    }
}
