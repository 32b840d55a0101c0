//! `railwright drift`.

use super::pipeline::{self, Observed, Source};
use super::{Exit, Failure};
use crate::base::text::one_line;
use crate::drift::findings;
use crate::plan::judge::reached;
use crate::report;
use crate::resource::{Wish, kind_named};
use std::path::PathBuf;

/// Find what is no longer as the spec wants it, in each plane: persisted, running, next boot
///
/// Reads only. Exit code 2 when something drifted, 3 when something could not be found out.
#[derive(Debug, clap::Args)]
pub struct Drift {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Look at an observation that `facts` recorded instead of the hosts
    #[arg(long, value_name = "FILE")]
    pub observations: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Finds drift.
pub async fn run(arguments: &Drift) -> Result<Exit, Failure> {
    let source = arguments.observations.clone().map_or(Source::Live, Source::Recorded);
    let prepared = pipeline::prepare(&arguments.inventory, &source)?;
    let Observed { observation, state, wishes } = pipeline::observe(&prepared).await?;
    let silent = prepared.targets.iter().filter_map(|target| Some((target.clone(), reached(&observation, target).err()?))).collect();
    let assess = |wish: &Wish| {
        let kind = kind_named(&wish.kind).ok_or_else(|| format!("this railwright has no resource kind `{}`", wish.kind))?;
        let found = observation.targets.get(&wish.address.target).ok_or("its target is not in the observation")?;
        Ok(kind.assess(wish, &found.answers))
    };
    let report = findings(&prepared.inventory.origin, &wishes, &silent, &assess, &state.last_applied);
    let text = if arguments.json { report::drift::json(&report) } else { report::drift::screen(&report) };
    if let (Some(file), false) = (&arguments.observations, arguments.json) {
        let recorded = one_line(&observation.recorded_at, 40);
        report::out::print(&format!("as recorded {recorded} in {}\n", file.display()));
    }
    report::out::print(&text);
    Ok(match (report.has_drift(), report.is_incomplete()) {
        (true, _) => Exit::Changes,
        (false, true) => Exit::Incomplete,
        (false, false) => Exit::Done,
    })
}
