//! `railwright drift --watch`: every host is checked again and again, each for itself. A round
//! asks every host that is not being asked already, so that there is one connection attempt a host
//! a round; a host's answer is shown when it comes, so that one that hangs delays nobody.

use super::drift::exit_from_drift;
use super::session::{open_quietly, open_session};
use super::{CommandFailure, Exit, look};
use railwright_base::Target;
use railwright_drift::DriftReport;
use railwright_knowledge::spec::Sources;
use railwright_observe::{self as observe, HostRequest};
use railwright_plan::UnknownFinding;
use railwright_report as report;
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::drift::watch::DriftWatchHistory;
use railwright_resource::{Observation, TargetObservation};
use railwright_session::{ObservationRequest, Session, SessionRequest};
use railwright_system::{clock, signals};
use railwright_transport::TargetContact;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Hosts that are read at the same time. Those that gave no answer the last time have as many
/// places of their own: however many hang, they take none from the others.
const AT_ONCE: usize = 64;

/// What one host answered, with what it is compared with.
struct WatchedTargetReading {
    target: Target,
    question: ObservationRequest,
    session: Arc<Session>,
    found: TargetObservation,
}

/// What is known of the hosts from their last answers.
struct DriftWatchSession {
    contact: TargetContact,
    session: Arc<Session>,
    running: JoinSet<WatchedTargetReading>,
    asked: BTreeSet<Target>,
    last: BTreeMap<Target, DriftReport>,
    lines: DriftWatchHistory,
    healthy: Arc<Semaphore>,
    silent: Arc<Semaphore>,
    /// Ages can be kept.
    ages: bool,
}

/// Watches until somebody asks to stop.
pub async fn watch_drift(
    inventory: &Path,
    read_as: Option<String>,
    every: Duration,
) -> Result<Exit, CommandFailure> {
    let mut interrupts = signals::watch_interrupts();
    let mut watching = DriftWatchSession::begin(inventory, TargetContact::begin(), read_as)?;
    let (hosts, seconds) = (
        railwright_base::text::format_count(watching.session.targets.len(), "host"),
        every.as_secs(),
    );
    report::out::print_note(&format!(
        "watching {hosts}, a look every {seconds} s; Ctrl-C ends it"
    ));
    watching.ask()?;
    let mut pause = Box::pin(clock::sleep_for(every));
    loop {
        tokio::select! {
            _ = interrupts.changed() => break,
            () = &mut pause => {
                pause = Box::pin(clock::sleep_for(every));
                watching.next_round(inventory);
            }
            Some(answer) = watching.running.join_next() => match answer {
                Ok(answer) => watching.take(answer),
                Err(error) => report::out::print_note(&format!("a look at a host ended early: \
                                                                {error}")),
            },
        }
    }
    let all = watching.remember();
    report::out::print_note(&report::drift::format_drift_summary(&all));
    Ok(exit_from_drift(&all))
}

impl DriftWatchSession {
    fn begin(
        inventory: &Path,
        contact: TargetContact,
        read_as: Option<String>,
    ) -> Result<Self, CommandFailure> {
        Ok(DriftWatchSession {
            contact,
            session: Arc::new(
                open_session(inventory, &SessionRequest::from_targets(contact))?.read_as(read_as),
            ),
            running: JoinSet::new(),
            asked: BTreeSet::new(),
            last: BTreeMap::new(),
            lines: DriftWatchHistory::default(),
            healthy: Arc::new(Semaphore::new(AT_ONCE)),
            silent: Arc::new(Semaphore::new(AT_ONCE)),
            ages: true,
        })
    }

    /// The files may have changed since: they are read again, and as they were before when they are
    /// wrong now.
    fn next_round(&mut self, inventory: &Path) {
        self.remember();
        match open_quietly(inventory, &SessionRequest::from_targets(self.contact)) {
            Ok(session) => {
                let read_as = self.session.inventory.read_as.clone();
                self.session = Arc::new(session.read_as(read_as));
            }
            Err(failure) => {
                failure.show();
            }
        }
        if let Err(failure) = self.ask() {
            failure.show();
        }
    }

    /// The last look at every host, noted for the ages; what prevents that is reported once.
    fn remember(&mut self) -> DriftReport {
        let mut all = self.all();
        self.ages = self.ages && look::tell_ages(&self.session, &mut all);
        all
    }

    /// Asks every host that is not being asked already.
    fn ask(&mut self) -> Result<(), CommandFailure> {
        let question = self.session.build_observation_request()?;
        let connector = self.session.connector(self.contact)?;
        let requests: Vec<HostRequest> = question.requests(&self.session);
        let mut questions = question.by_host();
        for request in requests {
            let target = request.access.target();
            let question = questions.remove(&*target.name).unwrap_or_default();
            if !self.asked.insert(target.clone()) {
                continue;
            }
            let was_silent = self
                .last
                .get(&target)
                .is_some_and(|report| is_silent(report, &target));
            let lane = Arc::clone(if was_silent {
                &self.silent
            } else {
                &self.healthy
            });
            let (connector, session) = (Arc::clone(&connector), Arc::clone(&self.session));
            self.running.spawn(async move {
                // It is never closed, so the place is always given.
                let _place = lane.acquire().await;
                let found = observe::observe_host(&*connector, &request, &|_| {}).await;
                WatchedTargetReading {
                    target,
                    question,
                    session,
                    found,
                }
            });
        }
        Ok(())
    }

    /// Judges a host's answer and tells what changed.
    fn take(&mut self, answer: WatchedTargetReading) {
        let WatchedTargetReading {
            target,
            question,
            session,
            found,
        } = answer;
        self.asked.remove(&target);
        if !session.targets.contains(&target) {
            return;
        }
        let observation = Observation {
            targets: [(target.clone(), found)].into(),
            ..Observation::at(clock::read_current_time())
        };
        let observed = match question.answered(&session, observation) {
            Ok(observed) => observed,
            Err(error) => {
                CommandFailure::from(error).show();
                return;
            }
        };
        print_diagnostics(&observed.warnings, &Sources::default());
        let mut report =
            look::build_drift_report(&session, &observed, std::slice::from_ref(&target));
        railwright_drift::accept::apply_acceptances(
            &mut report,
            &session.inventory.loaded.spec.drift.accept,
        );
        for change in self.lines.take(&report) {
            report::out::print_result(&change);
        }
        self.last.insert(target, report);
    }

    /// The last look at every host; one that never answered is not compared.
    fn all(&self) -> DriftReport {
        let mut all = DriftReport {
            checked_at: clock::read_current_time(),
            cluster: self.session.inventory.loaded.spec.cluster.clone(),
            inventory: self.session.inventory.origin.clone(),
            targets: self.session.targets.clone(),
            ..DriftReport::default()
        };
        for target in &self.session.targets {
            let Some(last) = self.last.get(target) else {
                all.not_compared.push(UnknownFinding::new(
                    target.to_string(),
                    "it was not looked at yet",
                ));
                continue;
            };
            all.resources += last.resources;
            all.findings.extend(last.findings.iter().cloned());
            all.not_compared.extend(last.not_compared.iter().cloned());
            all.out_of_service
                .extend(last.out_of_service.iter().cloned());
            all.removed_from_spec
                .extend(last.removed_from_spec.iter().cloned());
            all.never_applied.extend(last.never_applied.iter().cloned());
        }
        all
    }
}

fn is_silent(report: &DriftReport, target: &Target) -> bool {
    report
        .not_compared
        .iter()
        .any(|unread| unread.subject == target.to_string())
}
