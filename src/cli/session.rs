//! An inventory's session for a command: opened, observed and planned, with what looks wrong of it
//! reported on stderr.

use super::CommandFailure;
use railwright_base::text::format_count;
use railwright_knowledge::spec::Sources;
use railwright_plan::{Plan, PlanSelection};
use railwright_report as report;
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::progress::HostReadProgress;
use railwright_session::{
    ObservationSource, ObservedTargets, Session, SessionError, SessionRequest,
};
use std::path::Path;

/// Opens an inventory, and says what looks wrong of it. A recording was warned of when it was made.
pub fn open_session(path: &Path, request: &SessionRequest) -> Result<Session, CommandFailure> {
    if matches!(request.source(), ObservationSource::Recorded(_)) {
        return open_quietly(path, request);
    }
    let session = request.open(path)?;
    let sources = &session.inventory.loaded.sources;
    for warnings in [&session.inventory.warnings, &session.desired.warnings] {
        print_diagnostics(warnings, sources);
    }
    Ok(session)
}

/// Opens an inventory for a command that leaves out what looks wrong of it.
pub fn open_quietly(path: &Path, request: &SessionRequest) -> Result<Session, CommandFailure> {
    let opened = request.open(path).map_err(|error| SessionError {
        warnings: Vec::new(),
        ..error
    });
    Ok(opened?)
}

/// Refuses a spec with errors of rules; what else they find is a line.
pub fn check_rules(session: &Session) -> Result<(), CommandFailure> {
    session.check_rules()?;
    print_rules_line(session);
    Ok(())
}

/// A line on stderr about what the rules find.
pub fn print_rules_line(session: &Session) {
    let line = report::knowledge::in_short(&session.evaluation, &session.inventory.word);
    if let Some(line) = line {
        report::out::print_note(&line);
    }
}

/// Reads the targets, or takes what was recorded of them.
pub async fn observe_targets(session: &Session) -> Result<ObservedTargets, CommandFailure> {
    let progress = HostReadProgress::new(session.targets.len());
    let observed = session.observe(&|event| progress.show(&event)).await;
    if session.contact.is_some() {
        progress.end();
    }
    let observed = observed?;
    print_diagnostics(&observed.warnings, &Sources::default());
    Ok(observed)
}

/// Observes the targets and plans.
pub async fn make_plan(
    session: &Session,
    selection: PlanSelection,
) -> Result<Plan, CommandFailure> {
    session.check_selection_keys(&selection)?;
    let observed = observe_targets(session).await?;
    Ok(session.plan(&observed, selection)?)
}

/// Says on stderr when the newest run is over and left open steps, with the command that goes on
/// with it; gives back the first half: `run r0034 was interrupted with 1 step open`. Nothing while
/// the run goes on.
pub fn print_open_run(session: &Session) -> Result<Option<String>, CommandFailure> {
    let Some(open) = session.find_open_run()? else {
        return Ok(None);
    };
    let left = format!(
        "run {} was interrupted with {} open",
        open.run,
        format_count(open.open, "step")
    );
    report::out::print_note(&format!(
        "{left}: railwright resume {}",
        session.inventory.word
    ));
    Ok(Some(left))
}
