//! `switch_port`: how large the packets of a port may be, and whether it is up.

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
pub struct SwitchPort;

/// The desired state of a port.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchPortBody {
    system: SwitchSystem,
    port: String,
    mtu: Option<u64>,
    up: Option<bool>,
}

impl Body for SwitchPortBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        check_port_name(errors, &self.port);
        errors.check_range("mtu", self.mtu, self.system.mtus());
        errors.require(
            self.mtu.is_some() || self.up.is_some(),
            "",
            "nothing is desired of the port",
            "give `mtu` or `up`",
        );
    }
}

impl ResourceKind for SwitchPort {
    fn name(&self) -> &'static str {
        "switch_port"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "port").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<SwitchPortBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        build_switch_reads(read_body::<SwitchPortBody>(&resource.body).system)
    }

    fn part<'a>(&self, resource: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(resource))
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let configurations = SwitchConfigurations::decode(resource, answers);
        let SwitchPortBody { mtu, up, .. } = read_body(&resource.body);
        let mut diff = SwitchDiffBuilder::new(resource, &configurations);
        if let Some(mtu) = mtu {
            diff.attribute("mtu", mtu, |port| port.mtu().into());
        }
        if let Some(up) = up {
            diff.attribute("up", up, |port| port.up().into());
        }
        diff.finish(&DesiredPortSetting::Port { mtu, up })
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

    fn open_fields(&self) -> &'static [&'static str] {
        &["mtu", "up"]
    }
}
