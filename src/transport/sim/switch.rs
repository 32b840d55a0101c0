//! A simulated switch with SONiC: tables of fields that run, and the file that the next boot begins
//! with. It takes edits as values, and like the real one it refuses a change of what is not there.
//! It has no packets: of its ports, one carries our own connection.

use super::disk::{Disk, SimulatedFile};
use super::host::{Answered, Done, SimulatedHost};
use railwright_resource::Action;
use railwright_resource::switch::edit::SwitchEdit;
use railwright_resource::switch::sonic::edit::{SonicEdit, There};
use railwright_resource::switch::{SwitchRead, SwitchSystem};
use std::collections::BTreeMap;

/// Tables of rows of fields.
pub type Tables = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;

/// A TCP segment needs an MTU of so much (RFC 9293, section 3.7.1: hosts take in 576 bytes).
const SMALLEST_MTU: u64 = 576;

/// What makes a host a switch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SimulatedSwitch {
    /// What runs.
    pub running: Tables,
    /// The port that carries our connection.
    pub reached_over: Option<String>,
}

impl SimulatedHost {
    /// A switch that runs what it has saved, and is reached over one of its ports.
    pub fn switch(tables: Tables, reached_over: &str) -> Self {
        let mut host = SimulatedHost::fresh();
        host.disk.folders.insert("/etc/sonic".to_owned());
        host.disk.put(
            SwitchSystem::Sonic.saved(),
            SimulatedFile::from(serde_json::json!(tables).to_string().as_str()),
        );
        host.switch = Some(SimulatedSwitch {
            running: tables,
            reached_over: Some(reached_over.to_owned()),
        });
        host
    }

    pub(super) fn read_switch(&self, system: SwitchSystem, of: SwitchRead) -> Answered {
        match (&self.switch, of) {
            (Some(switch), SwitchRead::Running) if system == SwitchSystem::Sonic => {
                (0, serde_json::json!(switch.running).to_string())
            }
            (Some(_), SwitchRead::Saved) if system == SwitchSystem::Sonic => self
                .disk
                .text(system.saved())
                .map_or((1, String::new()), |text| (0, text)),
            _ => (69, String::new()),
        }
    }

    /// The answer to `Read::SwitchCounters`: nothing is ever paused here, and nothing lost.
    pub(super) fn read_switch_counters(&self, system: SwitchSystem, ports: &[String]) -> Answered {
        let Some(switch) = self
            .switch
            .as_ref()
            .filter(|_| system == SwitchSystem::Sonic)
        else {
            return (69, String::new());
        };
        let counters: String = (0..8)
            .map(|n| {
                format!(
                    "SAI_PORT_STAT_PFC_{n}_RX_PKTS 0\n\
                     SAI_PORT_STAT_PFC_{n}_TX_PKTS 0\n\
                     SAI_QUEUE_STAT_DROPPED_PACKETS/{n} 0\n"
                )
            })
            .collect();
        let rows = switch.running.get("PORT");
        let mut out = String::new();
        for port in ports {
            let is_there = rows.is_some_and(|rows| rows.contains_key(port));
            let lines = if is_there {
                counters.as_str()
            } else {
                "absent\n"
            };
            out.push_str(&format!("port {port}\n{lines}"));
        }
        (0, out)
    }

    /// A patch is made as a whole or not at all, and what runs is saved as it is.
    pub(super) fn act_on_switch(&mut self, action: &Action) -> Done {
        let Some(switch) = &mut self.switch else {
            return Err((69, "config of SONiC is not on this host".to_owned()));
        };
        if let Action::EditSwitch { edits, .. } = action {
            let mut changed = switch.running.clone();
            for edit in list_patch_edits(edits) {
                apply_edit(&mut changed, &edit)?;
            }
            switch.running = changed;
        } else {
            self.disk.put(
                SwitchSystem::Sonic.saved(),
                SimulatedFile::from(serde_json::json!(switch.running).to_string().as_str()),
            );
        }
        Ok(())
    }

    /// What a patch leaves behind that was ended half way: `config apply-patch` makes one change
    /// after the other.
    pub(super) fn half_edit_switch(&mut self, edits: &[SwitchEdit]) {
        if let Some(switch) = &mut self.switch {
            let all = list_patch_edits(edits);
            for edit in &all[..all.len() / 2] {
                let _ = apply_edit(&mut switch.running, edit);
            }
        }
    }
}

impl SimulatedSwitch {
    /// What only ran is gone.
    pub(super) fn boot(&mut self, disk: &Disk) {
        let saved = disk.text(SwitchSystem::Sonic.saved());
        self.running = saved
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
    }

    /// The port that carries our connection carries nothing.
    pub(super) fn is_cut_off(&self) -> bool {
        let Some(port) = &self.reached_over else {
            return false;
        };
        let Some(fields) = self.running.get("PORT").and_then(|ports| ports.get(port)) else {
            return true;
        };
        let is_up = fields.get("admin_status").is_some_and(|word| word == "up");
        let mtu = fields.get("mtu").and_then(|mtu| mtu.parse::<u64>().ok());
        !is_up || mtu.is_some_and(|mtu| mtu < SMALLEST_MTU)
    }
}

/// The edits as the patch has them: of a row that goes nothing else is said.
fn list_patch_edits(edits: &[SwitchEdit]) -> Vec<SonicEdit> {
    let all = SwitchEdit::sonic(edits);
    let mut kept = all.clone();
    kept.retain(|edit| {
        let row_goes = all.iter().any(|other| {
            other.field.is_empty() && (&other.table, &other.key) == (&edit.table, &edit.key)
        });
        edit.field.is_empty() || !row_goes
    });
    kept
}

fn apply_edit(tables: &mut Tables, edit: &SonicEdit) -> Done {
    let row = tables
        .get_mut(&edit.table)
        .and_then(|rows| rows.get_mut(&edit.key));
    match (&edit.value, row) {
        (Some(value), Some(row)) => {
            if edit.there == There::Field && !row.contains_key(&edit.field) {
                return Err((
                    65,
                    format!(
                        "SONiC does not take the patch: {} {} has no {}",
                        edit.table, edit.key, edit.field
                    ),
                ));
            }
            row.insert(edit.field.clone(), value.clone());
        }
        (Some(value), None) => {
            let row = BTreeMap::from([(edit.field.clone(), value.clone())]);
            tables
                .entry(edit.table.clone())
                .or_default()
                .insert(edit.key.clone(), row);
        }
        (None, Some(_)) if edit.field.is_empty() => {
            let rows = tables.entry(edit.table.clone()).or_default();
            rows.remove(&edit.key);
        }
        (None, Some(row)) => drop(row.remove(&edit.field)),
        (None, None) => {
            return Err((
                65,
                format!(
                    "SONiC does not take the patch: there is no {} {}",
                    edit.table, edit.key
                ),
            ));
        }
    }
    Ok(())
}
