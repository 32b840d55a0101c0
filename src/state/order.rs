//! Orders to a run that goes on: a small file in its folder, which the run looks at. No connection,
//! no signal: whoever may write to the state folder may order.

use super::folder::{StateFolder, below_runs};
use super::journal::JournalEntry;
use super::lock::ClusterLock;
use super::run_status;
use railwright_base::Diagnostic;
use railwright_system::{clock, files, identity};
use serde::{Deserialize, Serialize};

/// What can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderKind {
    /// Start nothing new until `Continue`.
    Pause,
    /// Go on.
    Continue,
    /// Start nothing new, finish what runs, end.
    Abort,
}

impl OrderKind {
    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            OrderKind::Pause => "pause",
            OrderKind::Continue => "continue",
            OrderKind::Abort => "abort",
        }
    }
}

/// One order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrder {
    /// What.
    pub order: OrderKind,
    /// The user who ordered it.
    pub who: String,
    /// The machine that it was ordered on.
    pub machine: String,
    /// When, RFC 3339.
    pub at: String,
    /// Tells it from another one like it.
    pub nonce: String,
}

/// An order is small.
const LIMIT_BYTES: u64 = 4096;

impl StateFolder {
    /// The latest order to a run; nothing when there is none, or none that can be read.
    pub fn read_order(&self, run: &str) -> Option<RunOrder> {
        let bytes = self.read(below_runs(run, "order.json"), LIMIT_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Leaves an order for the run that goes on here; gives back the run's name.
    pub fn order(&self, order: OrderKind) -> Result<String, Diagnostic> {
        let run = self
            .live_run()?
            .ok_or_else(|| report_no_live_run(self, order))?;
        // A run looks at the latest order only, and one that ends does not go on: what comes after
        // an abort would undo it.
        if order != OrderKind::Abort && self.has_abort_order(&run)? {
            return Err(report_aborted_run(self, order, &run));
        }
        self.write_order(&run, order)
            .map_err(|error| self.unusable(&error))?;
        Ok(run)
    }

    fn write_order(&self, run: &str, order: OrderKind) -> std::io::Result<()> {
        let order = RunOrder {
            order,
            who: identity::find_user_name(),
            machine: identity::read_machine_name(),
            at: clock::read_current_time(),
            nonce: clock::generate_nonce()?,
        };
        let bytes = serde_json::to_vec(&order)?;
        files::write_atomic(&self.run_folder(run).join("order.json"), &bytes, 0o600)
    }

    /// Ordered, or ended by a signal, since it was begun or resumed the last time, taken or not; an
    /// earlier order is done with.
    fn has_abort_order(&self, run: &str) -> Result<bool, Diagnostic> {
        let (mut order_before, mut was_taken) = (None, false);
        for record in self.read_journal(run)?.records {
            match record.entry {
                JournalEntry::RunResumed { last_order, .. } => {
                    (order_before, was_taken) = (last_order, false);
                }
                JournalEntry::Ordered {
                    order: OrderKind::Abort,
                    ..
                } => was_taken = true,
                _ => {}
            }
        }
        let latest = self.read_order(run);
        let is_waiting = latest.is_some_and(|latest| {
            latest.order == OrderKind::Abort && Some(latest.nonce) != order_before
        });
        Ok(was_taken || is_waiting)
    }

    /// The run that goes on here at this moment. The lock may be that of another run, or of another
    /// part of it, that still reaches its hosts: each taking has a number of its own.
    pub fn live_run(&self) -> Result<Option<String>, Diagnostic> {
        let Some(run) = self.newest_run()? else {
            return Ok(None);
        };
        let records = self.read_journal(&run)?.records;
        let is_over = run_status::fold_journal_records(&records).ending.is_some();
        let mut taken = None;
        for record in &records {
            if let JournalEntry::LockTaken { fence, .. } = record.entry {
                taken = Some(fence);
            }
        }
        let is_latest = taken == Some(self.fence()?);
        let goes_on = !is_over && is_latest && ClusterLock::is_held_here(self).unwrap_or(false);
        Ok(goes_on.then_some(run))
    }
}

fn report_aborted_run(folder: &StateFolder, order: OrderKind, run: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0710",
        format!(
            "there is nothing to {}: run {run} was told to abort",
            order.word()
        ),
    )
    .on(folder.path().display().to_string())
    .effect("it begins nothing new, and ends when what runs is over")
    .state("nothing was changed")
    .next("railwright resume INVENTORY goes on with it once it has ended")
}

fn report_no_live_run(folder: &StateFolder, order: OrderKind) -> Diagnostic {
    let inventory = folder
        .path()
        .parent()
        .map(|path| path.display().to_string())
        .filter(|path| !path.is_empty());
    Diagnostic::error(
        "RW0710",
        format!("there is nothing to {}: no run goes on here", order.word()),
    )
    .on(folder.path().display().to_string())
    .effect("a run that is still reaching its hosts, or is over, takes no orders")
    .state("nothing was changed")
    .next(format!(
        "railwright rollout status {} shows the latest run",
        inventory.as_deref().unwrap_or(".")
    ))
}
