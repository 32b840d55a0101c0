//! The systems of switches that railwright reaches, and in what they differ.

use super::configuration::Configuration;
use super::cumulus::Nvue;
use super::edit::SwitchEdit;
use super::eos::Config;
use super::sonic::config_db::ConfigDb;
use super::{Watchdog, cumulus, eos, sonic};
use railwright_base::quote::sh;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The system of a switch that railwright reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// SONiC.
    Sonic,
    /// NVIDIA Cumulus Linux.
    Cumulus,
    /// Arista EOS.
    Eos,
}

impl System {
    /// All of them, as specs name them.
    pub const NAMES: &str = "sonic, cumulus, eos";

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            System::Sonic => "SONiC",
            System::Cumulus => "Cumulus Linux",
            System::Eos => "EOS",
        }
    }

    /// The configuration that a read printed; the error fits after "unknown:".
    pub fn configuration(self, text: &str) -> Result<Box<dyn Configuration>, String> {
        match self {
            System::Sonic => ConfigDb::parse(text).map(|db| Box::new(db) as Box<dyn Configuration>),
            System::Cumulus => Nvue::parse(text).map(|nvue| Box::new(nvue) as Box<dyn Configuration>),
            System::Eos => Config::parse(text).map(|config| Box::new(config) as Box<dyn Configuration>),
        }
    }

    /// Where the configuration is saved.
    pub fn saved(self) -> &'static str {
        match self {
            System::Sonic => sonic::script::SAVED,
            System::Cumulus => cumulus::script::SAVED,
            System::Eos => eos::script::SAVED,
        }
    }

    /// What is asked for what runs.
    pub fn asked(self) -> &'static str {
        match self {
            System::Sonic => "sonic-cfggen",
            System::Cumulus => "nv",
            System::Eos => "FastCli",
        }
    }

    /// What the answer is where that is not on the host.
    pub fn is_not_there(self) -> &'static str {
        match self {
            System::Sonic => "sonic-cfggen is not on this host; is it a switch with SONiC?",
            System::Cumulus => "nv is not on this host; is it a switch with Cumulus Linux?",
            System::Eos => "FastCli is not on this host; is it a switch with EOS?",
        }
    }

    /// Why a change of it is guarded.
    pub fn guarded_because(self) -> &'static str {
        match self {
            System::Sonic => "SONiC takes nothing back by itself",
            System::Cumulus => "what Cumulus Linux applied stays so",
            System::Eos => "what EOS committed stays so until a reload",
        }
    }

    /// The largest and smallest packets of a port: sonic-net/sonic-buildimage, src/sonic-yang-models/yang-models/sonic-port.yang;
    /// CumulusNetworks/docs, content/nvue-reference/Set-and-Unset-Commands/Interface.md; aristanetworks/avd (molecule, mtu 9214).
    pub fn mtus(self) -> RangeInclusive<u64> {
        match self {
            System::Sonic => 68..=9216,
            System::Cumulus => 552..=9216,
            System::Eos => 68..=9214,
        }
    }

    /// What of a watchdog is wished where only a part of it is stated. SONiC and EOS come back after the time that they wait; Cumulus after one look
    /// without a pause, and it looks every 100 ms where nobody said otherwise (`content/cumulus-linux-512/.../Quality-of-Service/_index.md`).
    pub fn watchdog(self, detection_ms: u64, restoration_ms: Option<u64>, action: Option<&str>) -> Watchdog {
        let restoration_ms = restoration_ms.unwrap_or(match self {
            System::Cumulus if detection_ms.is_multiple_of(cumulus::POLLING_MS) => cumulus::POLLING_MS,
            System::Sonic | System::Cumulus | System::Eos => detection_ms,
        });
        Watchdog { detection_ms, restoration_ms, action: action.unwrap_or("drop").to_owned() }
    }

    /// True where the switch makes the buffer of a paused priority by itself, or not at all.
    pub fn makes_buffers(self) -> bool {
        self == System::Sonic
    }

    /// True where a port is told how long its cable is.
    pub fn has_cables(self) -> bool {
        self != System::Eos
    }

    /// True where buffers for paused packets are set aside for the whole switch.
    pub fn has_pools(self) -> bool {
        self == System::Cumulus
    }

    /// Makes these edits.
    pub fn edit_script(self, edits: &[SwitchEdit]) -> String {
        match self {
            System::Sonic => sonic::script::edit_script(&SwitchEdit::sonic(edits)),
            System::Cumulus => cumulus::script::edit_script(&SwitchEdit::cumulus(edits)),
            System::Eos => eos::script::edit_script(&SwitchEdit::eos(edits)),
        }
    }

    /// Saves the configuration that runs.
    pub fn save_script(self) -> String {
        match self {
            System::Sonic => sonic::script::save_script(),
            System::Cumulus => cumulus::script::save_script(),
            System::Eos => eos::script::save_script(),
        }
    }

    /// Keeps the configuration that runs and the one that is saved, in the folder of a guard.
    pub fn keep_script(self, name: &str) -> String {
        let runs = match self {
            System::Sonic => sonic::script::keep_script(name),
            System::Cumulus => cumulus::script::keep_script(name),
            System::Eos => eos::script::keep_script(name),
        };
        format!(
            "{runs}\nif [ -e {saved} ]; then cp -a {saved} \"$k/{name}.file\"; else : >\"$k/{name}.absent\"; fi || exit 74",
            saved = self.saved()
        )
    }

    /// Makes what is of these ports, or of our own making, run again as it was. Where somebody has saved since, be it we, what runs then is
    /// saved anew, so that what others saved with it stays; and where that cannot be, the saved file is put back. Where there was none before,
    /// what is saved since stays, be it others' or ours, and that is told.
    pub fn restore_script(self, name: &str, ports: &BTreeSet<String>) -> String {
        let ports = sh(&ports.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
        let runs = match self {
            System::Sonic => sonic::script::restore_script(name, &ports),
            System::Cumulus => cumulus::script::restore_script(name, &ports),
            System::Eos => eos::script::restore_script(name, &ports),
        };
        format!(
            "(\n{runs})\ns=$?; f={saved}; o=$k/{name}.file\n\
             if [ -e \"$k/{name}.absent\" ]; then [ -e \"$f\" ] || exit $s; else ! cmp -s \"$f\" \"$o\" || exit $s; fi\n\
             if [ -s \"$f\" ]; then\n\
             cp -a \"$f\" \"$k/{name}.since\" || exit\n\
             if [ \"$s\" = 0 ]; then (\n{save}) && [ -s \"$f\" ] && exit 0; s=1; fi\n\
             if [ -e \"$k/{name}.absent\" ]; then\n\
             s=1; o=$k/{name}.since; echo \"nothing was saved before; what is saved since stays, and the next boot begins with it\"\n\
             ! cmp -s \"$f\" \"$o\" || exit $s\n\
             fi\n\
             elif [ -e \"$k/{name}.absent\" ]; then rm -f \"$f\"; exit $s; fi\n\
             cp -a \"$o\" \"$f.new\" && mv -f \"$f.new\" \"$f\" || exit\n\
             exit $s\n",
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

    /// EOS with nothing saved before and `saved` since, whose `copy` does this: the exit status of the way back, and what is saved then.
    fn put_back(saved: &str, copy: &str) -> (Option<i32>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
        std::fs::create_dir(at("kept")).unwrap();
        write("kept/0", "hostname a\nend\n");
        write("kept/0.absent", "");
        write("startup", saved);
        let (startup, copied) = (sh(&at("startup")), "echo 'Copy completed successfully.'");
        write(
            "FastCli",
            &format!(
                "#!/bin/sh\nf={startup}; ok() {{ {copied}; }}\ncase $4 in show*) printf 'hostname a\\nend\\n' ;; copy*) {copy} ;; esac\n"
            ),
        );
        std::fs::set_permissions(at("FastCli"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let script = System::Eos.restore_script("0", &["Ethernet1/1".to_owned()].into()).replace(System::Eos.saved(), &startup);
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let ended = Command::new("sh").args(["-c", &script]).env("PATH", path).env("k", at("kept")).output().unwrap();
        (ended.status.code(), std::fs::read_to_string(at("startup")).ok())
    }

    #[test]
    fn what_others_saved_where_nothing_was_saved_before_stays() {
        let saved = |text: &str| Some(text.to_owned());
        assert_eq!(put_back("theirs\n", "echo anew >$f; ok"), (Some(0), saved("anew\n")));
        assert_eq!(put_back("theirs\n", "echo '% Error: no space'"), (Some(1), saved("theirs\n")));
        assert_eq!(put_back("theirs\n", ": >$f; echo '% Error: no space'"), (Some(1), saved("theirs\n")));
        assert_eq!(put_back("", "echo anew >$f; ok"), (Some(0), None), "a save of ours that came to nothing");
    }
}
