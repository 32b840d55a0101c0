//! A simulated host over time: steps that take a while, go on without a connection, are killed, or
//! are found again by their token; and the troubles that befall a host.

use super::fault::SimulatedTrouble;
use super::host::{Done, SimulatedHost};
use super::pace;
use crate::target_lock::{Fence, NO_RECORD, RECORD_MOVED};
use crate::{ExecutionOutcome, FencedWrite, Upkeep};
use railwright_base::Digest;
use railwright_resource::Action;
use railwright_resource::complaint::LOCKED;
use std::time::Duration;

/// What runs on the host without anybody being connected to it, or until it answers.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedRunningAction {
    /// What it does when it ends.
    pub action: Action,
    /// The name under which it was begun.
    pub token: String,
    /// Virtual time since the fleet's start at which it ends.
    pub until: Duration,
    /// What goes wrong with it.
    pub trouble: Option<SimulatedTrouble>,
}

impl SimulatedRunningAction {
    /// Whether it is in the way of whoever asks whether the host is idle: a long step of the run
    /// that goes on is found again by its token, so only who asks for its attempt waits for it.
    fn is_in_the_way(&self, attempt: Option<&str>, run: Option<&str>) -> bool {
        !self.action.is_long() || self.is_part_of(attempt) || !self.is_part_of(run)
    }

    /// Whether its token begins with this name, of an attempt or of a run.
    fn is_part_of(&self, name: Option<&str>) -> bool {
        let rest = name.and_then(|name| self.token.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with('-'))
    }
}

/// How a step began.
#[derive(Debug, Clone, PartialEq)]
pub enum SimulatedStepStart {
    /// Nobody hears of it any more.
    Lost,
    /// It is over.
    Over(ExecutionOutcome),
    /// It runs until then; `Host::outcome` tells how it ended.
    Until(Duration),
}

fn new_lost_outcome() -> ExecutionOutcome {
    ExecutionOutcome::Unknown {
        reason: "the connection ended: reset by the peer".into(),
    }
}

fn outcome_from_done(done: Done) -> ExecutionOutcome {
    let (code, stderr) = done.map_or_else(|(code, stderr)| (code, stderr), |()| (0, String::new()));
    ExecutionOutcome::Ended {
        code,
        stdout: String::new(),
        stderr,
    }
}

/// How a step ends at once where its trouble keeps it from doing anything.
fn end_without_effect(
    action: &Action,
    trouble: Option<&SimulatedTrouble>,
) -> Option<SimulatedStepStart> {
    let ended = match trouble? {
        SimulatedTrouble::LostBefore => return Some(SimulatedStepStart::Lost),
        SimulatedTrouble::Fails => {
            outcome_from_done(Err((1, "no such \u{1b}[31mdevice".to_owned())))
        }
        SimulatedTrouble::NoEffect => outcome_from_done(Ok(())),
        SimulatedTrouble::Echoes => {
            let echo = serde_json::to_string(action).unwrap_or_default();
            ExecutionOutcome::Ended {
                code: 2,
                stdout: echo.clone(),
                stderr: echo,
            }
        }
        _ => return None,
    };
    Some(SimulatedStepStart::Over(ended))
}

/// The virtual time that a step takes with this trouble.
fn compute_step_duration(action: &Action, trouble: Option<&SimulatedTrouble>) -> Duration {
    let usual = pace::compute_action_duration(action);
    match trouble {
        Some(SimulatedTrouble::GoesOn(seconds)) => usual + Duration::from_secs((*seconds).into()),
        Some(SimulatedTrouble::Slow(factor)) => usual * (*factor).max(1),
        Some(SimulatedTrouble::Killed) => usual / 2,
        Some(SimulatedTrouble::PackagesLocked(_)) => Duration::ZERO,
        _ => usual,
    }
}

impl SimulatedHost {
    /// Begins a step.
    pub fn begin(
        &mut self,
        action: &Action,
        token: &str,
        now: Duration,
        trouble: Option<SimulatedTrouble>,
    ) -> SimulatedStepStart {
        self.tokens.push(token.to_owned());
        if let Some(earlier) = self.find_earlier_step(action, token) {
            return earlier;
        }
        if let Some(without_effect) = end_without_effect(action, trouble.as_ref()) {
            return without_effect;
        }
        if *action == Action::Reboot {
            return self.begin_reboot(now, trouble);
        }
        let (wait, trouble) = self.wait_for_package_lock(action, now, trouble);
        let silent = matches!(
            trouble,
            Some(SimulatedTrouble::GoesOn(_) | SimulatedTrouble::Killed)
        );
        let until = now + (wait + compute_step_duration(action, trouble.as_ref()));
        self.running = Some(SimulatedRunningAction {
            action: action.clone(),
            token: token.to_owned(),
            until,
            trouble,
        });
        if silent {
            SimulatedStepStart::Lost
        } else {
            SimulatedStepStart::Until(until)
        }
    }

    /// A long step is found again by its token, whether it has ended or still runs; beside a step
    /// that runs no other begins. Nothing where the host is free for this one.
    fn find_earlier_step(&mut self, action: &Action, token: &str) -> Option<SimulatedStepStart> {
        if action.is_long() {
            match self.ended.get(token).cloned() {
                Some(Some(done)) => return Some(SimulatedStepStart::Over(outcome_from_done(done))),
                Some(None) => {
                    self.ended.remove(token);
                    let reason = "it was ended without an exit status".to_owned();
                    let ended = ExecutionOutcome::Unknown {
                        reason: reason.into(),
                    };
                    return Some(SimulatedStepStart::Over(ended));
                }
                None => {}
            }
        }
        let running = self.running.as_ref()?;
        if action.is_long() && running.token == token {
            return Some(SimulatedStepStart::Until(running.until));
        }
        let why = "railwright: an earlier step is still running on the host".to_owned();
        let refused = outcome_from_done(Err((LOCKED, why)));
        Some(SimulatedStepStart::Over(refused))
    }

    /// How long a step waits for another program that has the package manager's lock, and what
    /// then goes wrong with it: nobody waits longer than apt does.
    fn wait_for_package_lock(
        &self,
        action: &Action,
        now: Duration,
        trouble: Option<SimulatedTrouble>,
    ) -> (Duration, Option<SimulatedTrouble>) {
        let needs_lock = matches!(
            action,
            Action::InstallPackages { .. }
                | Action::RemovePackages { .. }
                | Action::ReleasePackages { .. }
                | Action::RefreshPackages { .. }
        );
        if !needs_lock {
            return (Duration::ZERO, trouble);
        }
        let wait = self.packages_locked_until.saturating_sub(now);
        if wait > pace::LOCK_PATIENCE {
            let locked = SimulatedTrouble::PackagesLocked(0);
            return (pace::LOCK_PATIENCE, Some(locked));
        }
        (wait, trouble)
    }

    fn begin_reboot(
        &mut self,
        now: Duration,
        trouble: Option<SimulatedTrouble>,
    ) -> SimulatedStepStart {
        match trouble {
            Some(SimulatedTrouble::OldKernel) => self.reboot_into_old(now),
            _ => self.reboot(now),
        }
        if let Some(SimulatedTrouble::BackAfter(seconds)) = trouble {
            self.down_until = now + Duration::from_secs(seconds.into());
        }
        self.told.push(Action::Reboot.word());
        if trouble == Some(SimulatedTrouble::LostAfter) {
            SimulatedStepStart::Lost
        } else {
            SimulatedStepStart::Over(outcome_from_done(Ok(())))
        }
    }

    /// Ends what has run for long enough; then a rollback whose timer has expired puts back what it
    /// keeps.
    pub fn settle(&mut self, now: Duration) {
        self.end_step(now);
        self.revert_what_is_due(now);
        self.units.pass_time(self.clock_s(now));
    }

    fn end_step(&mut self, now: Duration) {
        let Some(running) = self.running.take_if(|running| running.until <= now) else {
            return;
        };
        let done = match &running.trouble {
            Some(SimulatedTrouble::Killed) => return self.killed(running),
            Some(SimulatedTrouble::PackagesLocked(_)) => Err(self.packages.locked()),
            _ => {
                self.told.push(running.action.word());
                self.act(&running.action, running.until)
            }
        };
        self.ended.insert(running.token, Some(done));
    }

    /// What a step leaves behind that did not come to its end.
    fn killed(&mut self, running: SimulatedRunningAction) {
        match &running.action {
            Action::InstallPackages { packages, .. } => self.packages.half_install(packages),
            Action::EditSwitch { edits, .. } => self.half_edit_switch(edits),
            _ => {}
        }
        self.ended.insert(running.token, None);
    }

    /// How a step ended whose time is over, for whoever was connected all the time.
    pub fn outcome(&mut self, token: &str, trouble_after: bool) -> ExecutionOutcome {
        match self.ended.get(token) {
            _ if trouble_after => new_lost_outcome(),
            Some(Some(done)) => outcome_from_done(done.clone()),
            _ => new_lost_outcome(),
        }
    }

    /// Something befalls the host.
    pub fn suffer(&mut self, trouble: SimulatedTrouble, now: Duration) {
        match trouble {
            SimulatedTrouble::PowerLost => {
                if let Some(running) = self.running.take() {
                    self.killed(running);
                }
                self.reboot(now);
            }
            SimulatedTrouble::Unreachable(seconds) => {
                let until = now + Duration::from_secs(seconds.into());
                self.down_until = self.down_until.max(until);
            }
            SimulatedTrouble::DiskFull(calls) => self.disk.full_for = calls,
            SimulatedTrouble::Clock(seconds) => self.skew_s += seconds,
            SimulatedTrouble::PackagesLocked(seconds) => {
                self.packages_locked_until = now + Duration::from_secs(seconds.into());
            }
            SimulatedTrouble::Stranger(action) => drop(self.act(&action, now)),
            _ => {}
        }
    }

    /// Record, lock, fence and automatic rollbacks, with the exit statuses of `Upkeep`; or who has
    /// the lock instead.
    pub fn upkeep(
        &mut self,
        upkeep: &Upkeep,
        now: Duration,
    ) -> Result<(i32, String), Option<String>> {
        let uptime = self.uptime(now);
        Ok(match upkeep {
            Upkeep::ReadRecord => self
                .record
                .clone()
                .map_or((1, String::new()), |json| (0, json)),
            Upkeep::Lock { .. } if self.disk.full_for > 0 => (74, String::new()),
            Upkeep::Lock { holder, fence } => {
                let record = self.record_digest();
                self.lock
                    .take(&Fence::new(holder, *fence), uptime, &record)
                    .exit()
            }
            Upkeep::Steal {
                holder,
                fence,
                grounds,
            } => self.lock.steal(holder, *fence, *grounds, &uptime).exit(),
            Upkeep::ReadLock => self
                .lock
                .read(&uptime)
                .map_or((1, String::new()), |reading| (0, reading.print())),
            Upkeep::Idle { attempt, run } if self.is_busy(attempt.as_deref(), run.as_deref()) => {
                (77, String::new())
            }
            Upkeep::Idle { .. } => self.pending_rollback(now),
            Upkeep::RollbackStatus { token } => self.rollback_status(token, now),
            Upkeep::Write { fence, write } => {
                self.lock.check(fence)?;
                self.write(fence, write, now)?
            }
        })
    }

    /// What the holder of the lock writes.
    fn write(
        &mut self,
        fence: &Fence,
        write: &FencedWrite,
        now: Duration,
    ) -> Result<(i32, String), Option<String>> {
        let uptime = self.uptime(now);
        Ok(match write {
            FencedWrite::Record { .. } if self.disk.full_for > 0 => (74, String::new()),
            FencedWrite::Record { json, replaces, .. } => {
                if !replaces.is_empty() && !replaces.contains(&self.record_digest()) {
                    return Ok((RECORD_MOVED, String::new()));
                }
                self.record = Some(json.clone());
                (0, String::new())
            }
            FencedWrite::Unlock => {
                self.lock.release(fence)?;
                (0, String::new())
            }
            FencedWrite::Beat { note } => {
                self.lock.beat(fence, note, uptime)?;
                (0, String::new())
            }
            FencedWrite::Arm { .. } | FencedWrite::ServerReads if self.running.is_some() => {
                (LOCKED, String::new())
            }
            FencedWrite::Arm {
                token,
                scope,
                seconds,
            } => self.arm(token, scope, *seconds, now),
            FencedWrite::Disarm { token } => self.disarm(token, now),
            FencedWrite::Fire { token } => self.fire(token, now),
            FencedWrite::ServerReads => (0, String::new()),
        })
    }

    /// What the host says of its record: it keeps it with a line's end.
    fn record_digest(&self) -> String {
        let Some(json) = &self.record else {
            return NO_RECORD.to_owned();
        };
        let digest = Digest::of_bytes(format!("{json}\n").as_bytes());
        digest.as_str().to_owned()
    }

    fn is_busy(&self, attempt: Option<&str>, run: Option<&str>) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.is_in_the_way(attempt, run))
    }
}
