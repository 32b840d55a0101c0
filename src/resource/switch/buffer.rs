//! `switch_buffer`: how long the cable of a port is, by which the switch sizes the buffer that
//! takes in what still comes after a pause, and whether there is such a buffer: a length that the
//! switch has no row for leaves the port without one, and only a log says so.

use super::before::merge_before_values;
use super::body::{
    build_switch_reads, check_common_fields, extract_port_name, extract_switch_system, system_of,
};
use super::configuration::DesiredPortSetting;
use super::judge::{SwitchConfigurations, SwitchDiffBuilder, take_back};
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
        for field in ["cable_m", "priority"]
            .iter()
            .filter(|field| body.get(**field).is_none())
        {
            fields.error("", format!("`{field}` is missing"), None);
        }
        fields.number("cable_m", 1..=9999);
        fields.number("priority", 0..=7);
        if let Some(system) = system_of(body).filter(|system| !system.has_cables()) {
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

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        build_switch_reads(wish)
    }

    fn part<'a>(&self, wish: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(wish))
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let said = SwitchConfigurations::of(wish, answers);
        let number = |field: &str| {
            wish.body
                .get(field)
                .and_then(Value::as_u64)
                .unwrap_or_default()
        };
        let (cable_m, priority) = (number("cable_m"), number("priority"));
        let mut judge = SwitchDiffBuilder::new(wish, &said);
        judge.attribute("cable_m", cable_m, |port| port.cable_m().into());
        let mut assessment = judge.finish(&DesiredPortSetting::Cable { metres: cable_m });
        if extract_switch_system(wish).makes_buffers() {
            said.note_made_buffer(&mut assessment, extract_port_name(wish), priority, cable_m);
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
