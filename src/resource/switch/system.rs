//! The systems of switches that railwright reaches, and in what they differ.

use super::configuration::SwitchConfiguration;
use super::cumulus::Nvue;
use super::edit::SwitchEdit;
use super::eos::EosConfig;
use super::sonic::config_db::ConfigDb;
use super::{PfcWatchdogSettings, cumulus, eos, sonic};
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
    /// SONiC.
    Sonic,
    /// NVIDIA Cumulus Linux.
    Cumulus,
    /// Arista EOS.
    Eos,
}

impl SwitchSystem {
    /// All of them, as specs name them.
    pub const NAMES: &str = "sonic, cumulus, eos";

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            SwitchSystem::Sonic => "SONiC",
            SwitchSystem::Cumulus => "Cumulus Linux",
            SwitchSystem::Eos => "EOS",
        }
    }

    /// The configuration that a read printed; the error fits after "unknown:".
    pub fn configuration(self, text: &str) -> Result<Box<dyn SwitchConfiguration>, String> {
        match self {
            SwitchSystem::Sonic => {
                ConfigDb::parse(text).map(|db| Box::new(db) as Box<dyn SwitchConfiguration>)
            }
            SwitchSystem::Cumulus => {
                Nvue::parse(text).map(|nvue| Box::new(nvue) as Box<dyn SwitchConfiguration>)
            }
            SwitchSystem::Eos => EosConfig::parse(text)
                .map(|config| Box::new(config) as Box<dyn SwitchConfiguration>),
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

    /// What of a watchdog is wished where only a part of it is stated. SONiC and EOS come back
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

    /// True where a port is told how long its cable is.
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
            "{runs}\nif [ -e {saved} ]; then cp -a {saved} \"$k/{name}.file\"; else : \
             >\"$k/{name}.absent\"; fi || exit 74",
            saved = self.saved()
        )
    }

    /// Makes what is of these ports, or of our own making, run again as it was. Where somebody has
    /// saved since, be it we, what runs then is saved anew, so that what others saved with it
    /// stays; and where that cannot be, the saved file is put back. Where there was none before,
    /// what is saved since stays, be it others' or ours, and that is told.
    pub fn restore_script(self, name: &str, ports: &BTreeSet<String>) -> String {
        let ports = quote_for_shell(
            &ports
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" "),
        );
        let runs = match self {
            SwitchSystem::Sonic => sonic::script::restore_script(name, &ports),
            SwitchSystem::Cumulus => cumulus::script::restore_script(name, &ports),
            SwitchSystem::Eos => eos::script::restore_script(name, &ports),
        };
        format!(
            "(\n{runs})\ns=$?; f={saved}; o=$k/{name}.file\nif [ -e \"$k/{name}.absent\" ]; then [ \
             -e \"$f\" ] || exit $s; else ! cmp -s \"$f\" \"$o\" || exit $s; fi\nif [ -s \"$f\" ]; \
             then\ncp -a \"$f\" \"$k/{name}.since\" || exit\nif [ \"$s\" = 0 ]; then (\n{save}) && \
             [ -s \"$f\" ] && exit 0; s=1; fi\nif [ -e \"$k/{name}.absent\" ]; then\ns=1; \
             o=$k/{name}.since; echo \"nothing was saved before; what is saved since stays, and \
             the next boot begins with it\"\n! cmp -s \"$f\" \"$o\" || exit $s\nfi\nelif [ -e \
             \"$k/{name}.absent\" ]; then rm -f \"$f\"; exit $s; fi\ncp -a \"$o\" \"$f.new\" && mv \
             -f \"$f.new\" \"$f\" || exit\nexit $s\n",
            saved = self.saved(),
            save = self.save_script(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    /// EOS with nothing saved before and `saved` since, whose `copy` does this: the exit status of
    /// the way back, and what is saved then.
    fn put_back(saved: &str, copy: &str) -> (Option<i32>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
        std::fs::create_dir(at("kept")).unwrap();
        write("kept/0", "hostname a\nend\n");
        write("kept/0.absent", "");
        write("startup", saved);
        let (startup, copied) = (
            quote_for_shell(&at("startup")),
            "echo 'Copy completed successfully.'",
        );
        write(
            "FastCli",
            &format!(
                "#!/bin/sh\nf={startup}; ok() {{ {copied}; }}\ncase $4 in show*) printf 'hostname \
                 a\\nend\\n' ;; copy*) {copy} ;; esac\n"
            ),
        );
        std::fs::set_permissions(at("FastCli"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let script = SwitchSystem::Eos
            .restore_script("0", &["Ethernet1/1".to_owned()].into())
            .replace(SwitchSystem::Eos.saved(), &startup);
        let path = format!(
            "{}:{}",
            folder.path().display(),
            std::env::var("PATH").unwrap()
        );
        let ended = Command::new("sh")
            .args(["-c", &script])
            .env("PATH", path)
            .env("k", at("kept"))
            .output()
            .unwrap();
        (
            ended.status.code(),
            std::fs::read_to_string(at("startup")).ok(),
        )
    }

    #[test]
    fn what_others_saved_where_nothing_was_saved_before_stays() {
        let saved = |text: &str| Some(text.to_owned());
        assert_eq!(
            put_back("theirs\n", "echo anew >$f; ok"),
            (Some(0), saved("anew\n"))
        );
        assert_eq!(
            put_back("theirs\n", "echo '% Error: no space'"),
            (Some(1), saved("theirs\n"))
        );
        assert_eq!(
            put_back("theirs\n", ": >$f; echo '% Error: no space'"),
            (Some(1), saved("theirs\n"))
        );
        assert_eq!(
            put_back("", "echo anew >$f; ok"),
            (Some(0), None),
            "a save of ours that came to nothing"
        );
    }
}
