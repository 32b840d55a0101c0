//! `switch_port`: how large the packets of a port may be, and whether it is up.

use super::before::merge_before_values;
use super::body::{build_switch_reads, check_common_fields, extract_port_name, find_mtu_range};
use super::configuration::DesiredPortSetting;
use super::diff::{SwitchConfigurations, SwitchDiffBuilder, take_back};
use crate::{Assessment, BodyError, DesiredResource, Read, ReadResults, ResourceKind};
use railwright_base::TargetKind;
use serde_json::Value;

/// The kind.
pub struct SwitchPort;

impl ResourceKind for SwitchPort {
    fn name(&self) -> &'static str {
        "switch_port"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("port")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = check_common_fields(body, &["mtu", "up"]);
        fields.number("mtu", find_mtu_range(body));
        fields.flag("up");
        if fields.get("mtu").is_none() && fields.get("up").is_none() {
            fields.error(
                "",
                "nothing is desired of the port",
                Some("give `mtu` or `up`".to_owned()),
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
        let mtu = desired.body.get("mtu").and_then(Value::as_u64);
        let up = desired.body.get("up").and_then(Value::as_bool);
        let mut diff = SwitchDiffBuilder::new(desired, &configurations);
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
    ) -> Assessment {
        take_back(last_applied, before, answers)
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["mtu", "up"]
    }
}
