//! The systems of switches that railwright reaches, and in what they differ.

use super::configuration::SwitchConfiguration;
use super::cumulus::Nvue;
use super::edit::SwitchEdit;
use super::eos::EosConfig;
use super::sonic::config_db::ConfigDb;
use super::{PfcWatchdogSettings, SwitchError, cumulus, eos, sonic};
use railwright_base::quote::quote_for_shell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The system of a switch that railwright reaches.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SwitchSystem {
    /// SONiC, configured in CONFIG_DB.
    Sonic,
    /// NVIDIA Cumulus Linux, configured by NVUE.
    Cumulus,
    /// Arista EOS.
    Eos,
}

impl SwitchSystem {
    /// All of them.
    pub const ALL: [SwitchSystem; 3] = [
        SwitchSystem::Sonic,
        SwitchSystem::Cumulus,
        SwitchSystem::Eos,
    ];

    /// The word in the spec, which is the name of its row in the catalogue too.
    pub fn word(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "sonic",
            SwitchSystem::Cumulus => "cumulus",
            SwitchSystem::Eos => "eos",
        }
    }

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "SONiC",
            SwitchSystem::Cumulus => "Cumulus Linux",
            SwitchSystem::Eos => "EOS",
        }
    }

    /// The configuration that a read printed; the error fits after "unknown:".
    pub fn configuration(self, text: &str) -> Result<Box<dyn SwitchConfiguration>, SwitchError> {
        match self {
            SwitchSystem::Sonic => Ok(Box::new(ConfigDb::parse(text)?)),
            SwitchSystem::Cumulus => Ok(Box::new(Nvue::parse(text)?)),
            SwitchSystem::Eos => Ok(Box::new(EosConfig::parse(text)?)),
        }
    }

    /// Where the configuration is saved.
    pub fn saved(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => sonic::script::SAVED,
            SwitchSystem::Cumulus => cumulus::script::SAVED,
            SwitchSystem::Eos => eos::script::SAVED,
        }
    }

    /// What is asked for what runs.
    pub fn asked(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "sonic-cfggen",
            SwitchSystem::Cumulus => "nv",
            SwitchSystem::Eos => "FastCli",
        }
    }

    /// What the answer is where that is not on the host.
    pub fn is_not_there(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "sonic-cfggen is not on this host; is it a switch with SONiC?",
            SwitchSystem::Cumulus => "nv is not on this host; is it a switch with Cumulus Linux?",
            SwitchSystem::Eos => "FastCli is not on this host; is it a switch with EOS?",
        }
    }

    /// Why a change of it is guarded.
    pub fn guarded_because(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "SONiC takes nothing back by itself",
            SwitchSystem::Cumulus => "what Cumulus Linux applied stays so",
            SwitchSystem::Eos => "what EOS committed stays so until a reload",
        }
    }

    /// The largest and smallest packets of a port: sonic-net/sonic-buildimage,
    /// src/sonic-yang-models/yang-models/sonic-port.yang; CumulusNetworks/docs,
    /// content/nvue-reference/Set-and-Unset-Commands/Interface.md; aristanetworks/avd (molecule,
    /// mtu 9214).
    pub fn mtus(self) -> RangeInclusive<u64> {
        match self {
            SwitchSystem::Sonic => 68..=9216,
            SwitchSystem::Cumulus => 552..=9216,
            SwitchSystem::Eos => 68..=9214,
        }
    }

    /// The desired watchdog where only a part of it is stated. SONiC and EOS come back
    /// after the time that they wait; Cumulus after one look without a pause, and it looks every
    /// 100 ms where nobody said otherwise
    /// (`content/cumulus-linux-512/.../Quality-of-Service/_index.md`).
    pub fn watchdog(
        self,
        detection_ms: u64,
        restoration_ms: Option<u64>,
        action: Option<&str>,
    ) -> PfcWatchdogSettings {
        let restoration_ms = restoration_ms.unwrap_or(match self {
            SwitchSystem::Cumulus if detection_ms.is_multiple_of(cumulus::POLLING_MS) => {
                cumulus::POLLING_MS
            }
            SwitchSystem::Sonic | SwitchSystem::Cumulus | SwitchSystem::Eos => detection_ms,
        });
        PfcWatchdogSettings {
            detection_ms,
            restoration_ms,
            action: action.unwrap_or("drop").to_owned(),
        }
    }

    /// True where the switch makes the buffer of a paused priority by itself, or not at all.
    pub fn makes_buffers(self) -> bool {
        self == SwitchSystem::Sonic
    }

    /// True where the length of its cable is a setting of a port.
    pub fn has_cables(self) -> bool {
        self != SwitchSystem::Eos
    }

    /// True where buffers for paused packets are set aside for the whole switch.
    pub fn has_pools(self) -> bool {
        self == SwitchSystem::Cumulus
    }

    /// Makes these edits.
    pub fn edit_script(self, edits: &[SwitchEdit]) -> String {
        match self {
            SwitchSystem::Sonic => sonic::script::edit_script(&SwitchEdit::sonic(edits)),
            SwitchSystem::Cumulus => cumulus::script::edit_script(&SwitchEdit::cumulus(edits)),
            SwitchSystem::Eos => eos::script::edit_script(&SwitchEdit::eos(edits)),
        }
    }

    /// Saves the configuration that runs.
    pub fn save_script(self) -> String {
        match self {
            SwitchSystem::Sonic => sonic::script::save_script(),
            SwitchSystem::Cumulus => cumulus::script::save_script(),
            SwitchSystem::Eos => eos::script::save_script(),
        }
    }

    /// Keeps the configuration that runs and the one that is saved, in the folder of a guard.
    pub fn keep_script(self, name: &str) -> String {
        let runs = match self {
            SwitchSystem::Sonic => sonic::script::keep_script(name),
            SwitchSystem::Cumulus => cumulus::script::keep_script(name),
            SwitchSystem::Eos => eos::script::keep_script(name),
        };
        format!(
            "{runs}\n\
             if [ -e {saved} ]; then cp -a {saved} \"$k/{name}.file\"; else : \
             >\"$k/{name}.absent\"; fi || exit 74",
            saved = self.saved()
        )
    }

    /// Makes what is of these ports, or of our own making, run again as it was. Where somebody has
    /// saved since, be it we, what runs then is saved anew, so that what others saved with it
    /// stays. Where that cannot be, all that was saved since stays, be it others' or ours, and that
    /// is told; a file that is empty or gone is the one from before again.
    pub fn restore_script(self, name: &str, ports: &BTreeSet<String>) -> String {
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        let ports = quote_for_shell(&ports.join(" "));
        let runs = match self {
            SwitchSystem::Sonic => sonic::script::restore_script(name, &ports),
            SwitchSystem::Cumulus => cumulus::script::restore_script(name, &ports),
            SwitchSystem::Eos => eos::script::restore_script(name, &ports),
        };
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
