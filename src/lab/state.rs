//! What the last `lab up` made, for the commands after it.

use super::folder::{LabFolder, new_folder_error};
use super::recipe::Flavour;
use super::{Result, machine_range};
use railwright_base::Diagnostic;
use railwright_system::files;
use serde::{Deserialize, Serialize};

/// The record in `lab.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabState {
    /// How many machines.
    pub machines: u8,
    /// What they are.
    #[serde(flatten)]
    pub flavour: Flavour,
    /// Memory of each, MiB.
    pub memory_mib: u32,
    /// `kvm` or `tcg`.
    pub accelerator: super::accelerator::Accelerator,
    /// The image's name in the cache.
    pub image: String,
}

impl LabState {
    /// The record, when a lab was brought up here.
    pub fn read(folder: &LabFolder) -> Option<LabState> {
        let state: LabState =
            serde_json::from_slice(&files::read_limited(&folder.path("lab.json"), 1 << 16).ok()?)
                .ok()?;
        machine_range(state.machines).map(|_| state)
    }

    /// Keeps the record.
    pub fn write(&self, folder: &LabFolder) -> Result<()> {
        let path = folder.path("lab.json");
        let text = serde_json::to_vec_pretty(self).expect("a record of plain words and numbers");
        files::write_atomic(&path, &text, 0o644).map_err(|error| new_folder_error(&path, &error))
    }

    /// The record of a lab that must be there.
    pub fn expect(folder: &LabFolder) -> Result<LabState> {
        LabState::read(folder).ok_or_else(|| {
            Diagnostic::error(
                "RW0910",
                format!("there is no lab in {}", folder.root().display()),
            )
            .next("railwright lab up")
            .into()
        })
    }
}
