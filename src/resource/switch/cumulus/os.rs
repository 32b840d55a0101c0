//! What Cumulus Linux has of its own.

use super::Nvue;
use super::{POLLING_MS, configuration, counters, edit, edit_lines, script};
use crate::counters::names::VendorCounter;
use crate::switch::configuration::SwitchConfiguration;
use crate::switch::edit::{Disturbance, SwitchEdit};
use crate::switch::edit_line::SwitchEditLine;
use crate::switch::os::{SwitchOs, is_port_number};
use crate::switch::{SwitchError, SwitchRead};
use serde_json::Value;
use std::ops::RangeInclusive;

/// NVIDIA Cumulus Linux.
pub struct Cumulus;

impl SwitchOs for Cumulus {
    fn word(&self) -> &'static str {
        "cumulus"
    }

    fn name(&self) -> &'static str {
        "Cumulus Linux"
    }

    /// `swp1`, and `swp1s0` of a port that is divided (CumulusNetworks/docs,
    /// content/cumulus-linux-512, Switch Port Attributes).
    fn has_port_named(&self, port: &str) -> bool {
        let Some(rest) = port.strip_prefix("swp") else {
            return false;
        };
        let (port, lane) = rest.split_once('s').unwrap_or((rest, "0"));
        is_port_number(port) && is_port_number(lane)
    }

    fn port_name_examples(&self) -> &'static str {
        "`swp1`, or `swp1s0` where it is divided"
    }

    fn port_set_example(&self) -> &'static str {
        "swp[1-32]"
    }

    fn port_list_command(&self) -> &'static str {
        "nv show interface"
    }

    /// CumulusNetworks/docs, content/nvue-reference/Set-and-Unset-Commands/Interface.md.
    fn mtus(&self) -> RangeInclusive<u64> {
        552..=9216
    }

    /// It comes back after one look without a pause, and it looks every 100 ms where nobody set
    /// otherwise (`content/cumulus-linux-512/.../Quality-of-Service/_index.md`).
    fn default_restoration_ms(&self, detection_ms: u64) -> u64 {
        match detection_ms.is_multiple_of(POLLING_MS) {
            true => POLLING_MS,
            false => detection_ms,
        }
    }

    fn has_pools(&self) -> bool {
        true
    }

    fn automatic_rollback_reason(&self) -> &'static str {
        "what Cumulus Linux applied stays so"
    }

    fn configuration(&self, text: &str) -> Result<Box<dyn SwitchConfiguration>, SwitchError> {
        Ok(Box::new(Nvue::parse(text)?))
    }

    fn can_read_before(&self, before: &Value) -> bool {
        configuration::list_before_places(before).is_some()
    }

    /// The daemon behind NVUE.
    fn configuration_service(&self) -> Option<&'static str> {
        Some("nvued.service")
    }

    fn saved(&self) -> &'static str {
        script::SAVED
    }

    fn asked(&self) -> &'static str {
        "nv"
    }

    fn read_script(&self, read: SwitchRead) -> String {
        script::read_script(read)
    }

    fn edit_script(&self, edits: &[SwitchEdit]) -> String {
        script::edit_script(&SwitchEdit::cumulus(edits))
    }

    fn edit_lines(&self, edits: &[SwitchEdit]) -> Vec<SwitchEditLine> {
        edit_lines::list_nvue_lines(&SwitchEdit::cumulus(edits))
    }

    fn edit_lines_label(&self) -> &'static str {
        "nv"
    }

    fn disturbance(&self, edits: &[SwitchEdit], port: &str, is_up: bool) -> Disturbance {
        edit::compute_cumulus_disruption(&SwitchEdit::cumulus(edits), port, is_up)
    }

    fn save_script(&self) -> String {
        script::save_script()
    }

    fn keep_running_script(&self, name: &str) -> String {
        script::keep_script(name)
    }

    fn restore_running_script(&self, name: &str, ports: &str) -> String {
        script::restore_script(name, ports)
    }

    fn counters_script(&self, ports: &[String]) -> String {
        counters::render_cumulus_counters_script(ports)
    }

    fn counter_names(&self) -> &'static [VendorCounter] {
        counters::COUNTERS
    }

    /// Its lldpd is the switch's own (CumulusNetworks/docs:
    /// content/cumulus-linux-512/Layer-2/Link-Layer-Discovery-Protocol.md), and calls its ports as
    /// the kernel does.
    fn neighbours_script(&self) -> String {
        crate::lldp::script::read_script()
    }

    fn lldp_help(&self) -> &'static str {
        "on the switch: systemctl status lldpd"
    }
}
