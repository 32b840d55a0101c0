//! What EOS has of its own.

use super::EosConfig;
use super::{configuration, counters, edit, edit_lines, lldp, script};
use crate::counters::names::VendorCounter;
use crate::lldp::{Lldp, Silence};
use crate::switch::configuration::SwitchConfiguration;
use crate::switch::edit::{Disturbance, SwitchEdit};
use crate::switch::edit_line::SwitchEditLine;
use crate::switch::os::{SwitchOs, is_port_number};
use crate::switch::{SwitchError, SwitchRead};
use serde_json::Value;
use std::ops::RangeInclusive;

/// Arista EOS.
pub struct Eos;

impl SwitchOs for Eos {
    fn word(&self) -> &'static str {
        "eos"
    }

    fn name(&self) -> &'static str {
        "EOS"
    }

    /// `Ethernet1`, `Ethernet1/1` of a port with lanes, `Ethernet3/1/1` of a line card (the EOS
    /// manual, Ethernet Ports).
    fn has_port_named(&self, port: &str) -> bool {
        let Some(rest) = port.strip_prefix("Ethernet") else {
            return false;
        };
        rest.split('/').all(is_port_number) && rest.split('/').count() <= 3
    }

    fn port_name_examples(&self) -> &'static str {
        "`Ethernet1`, `Ethernet1/1` or `Ethernet3/1/1`"
    }

    fn port_set_example(&self) -> &'static str {
        "Ethernet[1-32]/1"
    }

    fn port_list_command(&self) -> &'static str {
        "show interfaces status"
    }

    /// aristanetworks/avd (molecule, mtu 9214).
    fn mtus(&self) -> RangeInclusive<u64> {
        68..=9214
    }

    fn has_cables(&self) -> bool {
        false
    }

    fn automatic_rollback_reason(&self) -> &'static str {
        "what EOS committed stays so until a reload"
    }

    fn configuration(&self, text: &str) -> Result<Box<dyn SwitchConfiguration>, SwitchError> {
        Ok(Box::new(EosConfig::parse(text)?))
    }

    fn can_read_before(&self, before: &Value) -> bool {
        configuration::list_before_settings(before).is_some()
    }

    fn saved(&self) -> &'static str {
        script::SAVED
    }

    fn asked(&self) -> &'static str {
        "FastCli"
    }

    fn read_script(&self, read: SwitchRead) -> String {
        script::read_script(read)
    }

    fn edit_script(&self, edits: &[SwitchEdit]) -> String {
        script::edit_script(&SwitchEdit::eos(edits))
    }

    fn edit_lines(&self, edits: &[SwitchEdit]) -> Vec<SwitchEditLine> {
        edit_lines::list_eos_command_lines(&SwitchEdit::eos(edits))
    }

    fn edit_lines_label(&self) -> &'static str {
        "eos"
    }

    fn disturbance(&self, edits: &[SwitchEdit], port: &str, is_up: bool) -> Disturbance {
        edit::compute_eos_disruption(&SwitchEdit::eos(edits), port, is_up)
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
        counters::render_eos_counters_script(ports)
    }

    fn counter_names(&self) -> &'static [VendorCounter] {
        counters::COUNTERS
    }

    fn neighbours_script(&self) -> String {
        lldp::render_eos_lldp_script()
    }

    fn neighbours(&self, out: &str) -> Result<Lldp, Silence> {
        lldp::parse_eos_lldp_answer(out)
    }

    fn lldp_help(&self) -> &'static str {
        "on the switch: show lldp; lldp run switches it on"
    }
}
