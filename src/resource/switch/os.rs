//! What a system of switches has of its own; one folder a system implements it.

use super::configuration::SwitchConfiguration;
use super::edit::{Disturbance, SwitchEdit};
use super::edit_line::SwitchEditLine;
use super::{PfcWatchdogSettings, SwitchError, SwitchRead};
use crate::counters::names::VendorCounter;
use crate::lldp::{self, Lldp};
use railwright_base::quote::quote_for_shell;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A system of switches. Scripts are POSIX sh for the switch itself.
pub trait SwitchOs: Sync {
    /// The word in the spec, which is the name of its row in the catalogue too.
    fn word(&self) -> &'static str;

    /// As people call it.
    fn name(&self) -> &'static str;

    /// Whether a port of the front panel can have this name.
    fn has_port_named(&self, port: &str) -> bool;

    /// Names of ports as an example in a sentence.
    fn port_name_examples(&self) -> &'static str;

    /// A node-set of ports as an example.
    fn port_set_example(&self) -> &'static str;

    /// The command on the switch that lists its ports.
    fn port_list_command(&self) -> &'static str;

    /// The smallest and largest packets of a port, in bytes.
    fn mtus(&self) -> RangeInclusive<u64>;

    /// After how many milliseconds its watchdog comes back where the spec does not say so.
    fn default_restoration_ms(&self, detection_ms: u64) -> u64 {
        detection_ms
    }

    /// True where the switch makes the buffer of a paused priority by itself, or not at all.
    fn makes_buffers(&self) -> bool {
        false
    }

    /// True where the length of its cable is a setting of a port.
    fn has_cables(&self) -> bool {
        true
    }

    /// True where buffers for paused packets are set aside for the whole switch.
    fn has_pools(&self) -> bool {
        false
    }

    /// Why a change of it rolls back unless it is confirmed.
    fn automatic_rollback_reason(&self) -> &'static str;

    /// The configuration that a read printed; the error fits after "unknown:".
    fn configuration(&self, text: &str) -> Result<Box<dyn SwitchConfiguration>, SwitchError>;

    /// False where this version does not know a name or value of `before`, as one of its
    /// configurations wrote it.
    fn can_read_before(&self, before: &Value) -> bool;

    /// The service of systemd that has to be up before anything of the configuration can be set,
    /// where there is one.
    fn configuration_service(&self) -> Option<&'static str> {
        None
    }

    /// Where the configuration is saved.
    fn saved(&self) -> &'static str;

    /// What is read for what runs.
    fn asked(&self) -> &'static str;

    /// Prints a configuration.
    fn read_script(&self, read: SwitchRead) -> String;

    /// Makes these edits.
    fn edit_script(&self, edits: &[SwitchEdit]) -> String;

    /// The lines that these edits are on a screen.
    fn edit_lines(&self, edits: &[SwitchEdit]) -> Vec<SwitchEditLine>;

    /// What such lines are called there, in one word.
    fn edit_lines_label(&self) -> &'static str;

    /// What the edits do to the port.
    fn disturbance(&self, edits: &[SwitchEdit], port: &str, is_up: bool) -> Disturbance;

    /// Saves the configuration that runs.
    fn save_script(&self) -> String;

    /// Keeps the configuration that runs under this name in the folder of an automatic rollback.
    fn keep_running_script(&self, name: &str) -> String;

    /// Makes what is of these ports (one quoted word), or of our own making, run again as it was.
    fn restore_running_script(&self, name: &str, ports: &str) -> String;

    /// Prints what these ports count (`counters`). Exit 69 where it is another system.
    fn counters_script(&self, ports: &[String]) -> String;

    /// What it calls its counters.
    fn counter_names(&self) -> &'static [VendorCounter];

    /// Prints which ports have a link, and what LLDP heard on them.
    fn neighbours_script(&self) -> String;

    /// What that printed.
    fn neighbours(&self, out: &str) -> Result<Lldp, lldp::Silence> {
        lldp::parse_lldpctl_answer(out)
    }

    /// What to look at where LLDP does not answer.
    fn lldp_help(&self) -> &'static str;

    /// What the answer is where that is not on the host.
    fn is_not_there(&self) -> String {
        format!(
            "{} is not on this host; is it a switch with {}?",
            self.asked(),
            self.name()
        )
    }

    /// The desired watchdog where only a part of it is stated.
    fn watchdog(
        &self,
        detection_ms: u64,
        restoration_ms: Option<u64>,
        action: Option<&str>,
    ) -> PfcWatchdogSettings {
        PfcWatchdogSettings {
            detection_ms,
            restoration_ms: restoration_ms
                .unwrap_or_else(|| self.default_restoration_ms(detection_ms)),
            action: action.unwrap_or("drop").to_owned(),
        }
    }

    /// Keeps the running and the saved configuration, in the folder of an automatic rollback.
    fn keep_script(&self, name: &str) -> String {
        format!(
            "{runs}\n\
             if [ -e {saved} ]; then cp -a {saved} \"$k/{name}.file\"; else : \
             >\"$k/{name}.absent\"; fi || exit 74",
            runs = self.keep_running_script(name),
            saved = self.saved()
        )
    }

    /// Makes what is of these ports, or of our own making, run again as it was. Where somebody has
    /// saved since, be it we, what runs then is saved anew, so that what others saved with it
    /// stays. Where that cannot be, all that was saved since stays, be it others' or ours, and that
    /// is reported; a file that is empty or gone is the one from before again.
    fn restore_script(&self, name: &str, ports: &BTreeSet<String>) -> String {
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        let ports = quote_for_shell(&ports.join(" "));
        let runs = self.restore_running_script(name, &ports);
        format!(
            "(\n\
             {runs})\n\
             s=$?; f={saved}; o=$k/{name}.file\n\
             if [ -e \"$k/{name}.absent\" ]; then [ -e \"$f\" ] || exit $s; else ! cmp -s \"$f\" \
             \"$o\" || exit $s; fi\n\
             if [ -s \"$f\" ]; then\n\
             o=$k/{name}.since; cp -a \"$f\" \"$o\" || exit\n\
             if [ \"$s\" = 0 ]; then (\n\
             {save}) && [ -s \"$f\" ] && exit 0; fi\n\
             s=1; echo \"what was saved since stays, and the next boot begins with it\"\n\
             ! cmp -s \"$f\" \"$o\" || exit $s\n\
             elif [ -e \"$k/{name}.absent\" ]; then rm -f \"$f\"; exit $s; fi\n\
             cp -a \"$o\" \"$f.new\" && mv -f \"$f.new\" \"$f\" || exit\n\
             exit $s\n",
            saved = self.saved(),
            save = self.save_script(),
        )
    }
}

/// A number of a port or a lane: digits, four at most.
pub fn is_port_number(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
