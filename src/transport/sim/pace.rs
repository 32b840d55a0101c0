//! How long things take on a simulated host, in virtual time. The figures only have to be in
//! proportion: what the field reports for servers (a reboot of an eight-GPU server takes many
//! minutes), and what the lab's machines took for the rest.

use railwright_resource::Action;
use std::time::Duration;

/// From the request to the first answer after it.
pub const BOOT: Duration = Duration::from_secs(300);
/// A connection, a read.
pub const ROUND_TRIP: Duration = Duration::from_millis(20);
/// What is waited for a lock of apt or dnf that another program holds.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(60);

/// How long an action takes.
pub fn compute_action_duration(action: &Action) -> Duration {
    match action {
        Action::InstallPackages { .. }
        | Action::RemovePackages { .. }
        | Action::ReleasePackages { .. } => Duration::from_secs(40),
        Action::RefreshPackages { .. }
        | Action::UpdateBootLoader
        | Action::UpdateInitialRamDisks => Duration::from_secs(10),
        Action::BuildModule { .. } | Action::FetchModuleSource { .. } => Duration::from_secs(120),
        Action::Unit { .. } | Action::ReloadSystemd | Action::ReloadLink { .. } => {
            Duration::from_secs(1)
        }
        Action::RunCommand { .. } => Duration::from_secs(5),
        // A patch of many ports takes minutes (sonic-net/sonic-buildimage#22370).
        Action::EditSwitch { .. } => Duration::from_secs(90),
        _ => Duration::from_millis(50),
    }
}
