//! `railwright sudoers`.

use super::session::open_session;
use super::{CommandFailure, Exit};
use railwright_observe::sealed;
use railwright_report as report;
use railwright_resource::{Read, rights};
use railwright_session::{Inventory, SessionRequest, SigningKeys};
use railwright_state::ClusterState;
use std::path::PathBuf;

/// Print the lines of sudoers by which a user without rights can read these hosts for plan and
/// drift
///
/// Exact commands that only read, never a shell. Without them the user sees what the world may see,
/// and the rest is unknown. Connects to nothing.
#[derive(Debug, clap::Args)]
pub struct Sudoers {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// The user on the hosts
    #[arg(long, value_name = "NAME", value_parser = Inventory::user_name, default_value = "railwright-drift")]
    pub user: String,
}

/// Prints the lines for everything that these hosts are asked.
pub fn run(arguments: &Sudoers) -> Result<Exit, CommandFailure> {
    let session = open_session(
        &arguments.inventory,
        &SessionRequest::of_spec_alone().with_keys(SigningKeys::WhereAStepNeedsThem),
    )?;
    let last = ClusterState::load(&session.folder)?.last_applied;
    // Not the host's own record: it holds what stood in files before they were changed.
    let mut needs =
        rights::collect_root_access_needs(&sealed::reads_of_all(&session.desired.resources, &last));
    if session.inventory.loaded.cabling.is_some() {
        needs.extend(rights::collect_root_access_needs(&[Read::LldpNeighbours]));
    }
    report::out::print_result(&report::sudoers::render_sudoers_fragment(
        &arguments.user,
        &session.inventory.word,
        &needs,
    ));
    Ok(Exit::Done)
}
