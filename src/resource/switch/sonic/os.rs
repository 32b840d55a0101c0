//! What SONiC has of its own.

use super::config_db::ConfigDb;
use super::{configuration, counters, edit, edit_lines, script};
use crate::counters::names::VendorCounter;
use crate::lldp::script::render_lldpctl_script;
use crate::switch::configuration::SwitchConfiguration;
use crate::switch::edit::{Disturbance, SwitchEdit};
use crate::switch::edit_line::SwitchEditLine;
use crate::switch::os::{SwitchOs, is_port_number};
use crate::switch::{SwitchError, SwitchRead};
use serde_json::Value;
use std::ops::RangeInclusive;

/// SONiC.
pub struct Sonic;

impl SwitchOs for Sonic {
    fn word(&self) -> &'static str {
        "sonic"
    }

    fn name(&self) -> &'static str {
        "SONiC"
    }

    /// `Ethernet0` (sonic-net/sonic-buildimage, port_config.ini of every device).
    fn has_port_named(&self, port: &str) -> bool {
        port.strip_prefix("Ethernet").is_some_and(is_port_number)
    }

    fn port_name_examples(&self) -> &'static str {
        "`Ethernet0`, `Ethernet4`"
    }

    fn port_set_example(&self) -> &'static str {
        "Ethernet[0-60/4]"
    }

    fn port_list_command(&self) -> &'static str {
        "show interfaces status"
    }

    /// sonic-net/sonic-buildimage, src/sonic-yang-models/yang-models/sonic-port.yang.
    fn mtus(&self) -> RangeInclusive<u64> {
        68..=9216
    }

    fn makes_buffers(&self) -> bool {
        true
    }

    fn automatic_rollback_reason(&self) -> &'static str {
        "SONiC takes nothing back by itself"
    }

    fn configuration(&self, text: &str) -> Result<Box<dyn SwitchConfiguration>, SwitchError> {
        Ok(Box::new(ConfigDb::parse(text)?))
    }

    fn can_read_before(&self, before: &Value) -> bool {
        configuration::read_prior_rows(before).is_some()
    }

    /// The database that holds it (sonic-net/sonic-buildimage: files/build_templates).
    fn configuration_service(&self) -> Option<&'static str> {
        Some("database.service")
    }

    fn saved(&self) -> &'static str {
        script::SAVED
    }

    fn asked(&self) -> &'static str {
        "sonic-cfggen"
    }

    fn read_script(&self, read: SwitchRead) -> String {
        script::read_script(read)
    }

    fn edit_script(&self, edits: &[SwitchEdit]) -> String {
        script::edit_script(&SwitchEdit::sonic(edits))
    }

    fn edit_lines(&self, edits: &[SwitchEdit]) -> Vec<SwitchEditLine> {
        edit_lines::list_sonic_patch_lines(&SwitchEdit::sonic(edits))
    }

    fn edit_lines_label(&self) -> &'static str {
        "patch"
    }

    fn disturbance(&self, edits: &[SwitchEdit], port: &str, is_up: bool) -> Disturbance {
        edit::compute_sonic_disruption(&SwitchEdit::sonic(edits), port, is_up)
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
        counters::render_sonic_counters_script(ports)
    }

    fn counter_names(&self) -> &'static [VendorCounter] {
        counters::COUNTERS
    }

    /// Its lldpd runs in a container (sonic-net/sonic-utilities: scripts/lldpshow, `docker exec -i
    /// lldp`), and calls its ports as the kernel does.
    fn neighbours_script(&self) -> String {
        render_lldpctl_script(
            "p=docker; command -v docker >/dev/null 2>&1 || p=\n",
            "docker exec lldp lldpctl",
        )
    }

    fn lldp_help(&self) -> &'static str {
        "on the switch: docker ps shows whether its container `lldp` runs; sudo config feature \
         state lldp enabled"
    }
}
