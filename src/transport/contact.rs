//! Leave to act on what an inventory names outside its folder.

use railwright_system::ceiling;

/// Proof that a command contacts targets. It opens identities, kubeconfigs, certificates and lists
/// of host keys wherever they lie, and runs the programs that an inventory or a kubeconfig names.
/// Only commands that contact targets make one (`tests/tidy` has the list), so the others can do
/// neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetContact(());

impl TargetContact {
    /// This command contacts targets.
    pub fn begin() -> Self {
        TargetContact(())
    }

    /// From here on it does: what a person asked for is not ended half way.
    pub fn lift_ceiling(self) {
        ceiling::lift_ceiling();
    }
}
