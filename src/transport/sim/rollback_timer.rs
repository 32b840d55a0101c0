//! Automatic rollbacks of a simulated host: what is kept is a copy of its parts, and virtual time
//! or a boot puts it back.

use super::host::{Answered, SimulatedHost};
use railwright_resource::Action;
use railwright_resource::action::UnitVerb;
use railwright_resource::rollback_scope::{Keep, RollbackScope};
use std::time::Duration;

/// An automatic rollback, until another one is armed.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedArmedRollback {
    /// Its name.
    pub token: String,
    /// What it keeps.
    pub scope: RollbackScope,
    /// The host as it was.
    before: Box<SimulatedHost>,
    /// Virtual time at which it puts that back, by itself or because it was told to.
    pub until: Duration,
    /// It did.
    pub reverted: bool,
}

impl SimulatedArmedRollback {
    /// How long a step that still runs is waited for, so that nothing comes after what is put back.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.scope.is_of_switch() { 600 } else { 30 })
    }

    /// As the host tells it.
    fn standing(&self, now: Duration) -> String {
        match self.until.checked_sub(now) {
            _ if self.reverted => "reverted ".to_owned(),
            Some(left) if left > Duration::ZERO => format!("armed {}", left.as_secs()),
            _ => "reverting".to_owned(),
        }
    }
}

impl SimulatedHost {
    /// Keeps everything from now on; exit 75 while another rollback is armed.
    pub fn arm(
        &mut self,
        token: &str,
        scope: &RollbackScope,
        seconds: u32,
        now: Duration,
    ) -> Answered {
        if self.disk.full_for > 0 {
            return (74, String::new());
        }
        if let Some(other) = self.armed_rollback.as_ref().filter(|other| !other.reverted) {
            return (75, format!("{}\n", other.token));
        }
        self.armed_rollback = None;
        let (before, until) = (
            Box::new(self.clone()),
            now + Duration::from_secs(seconds.into()),
        );
        self.armed_rollback = Some(SimulatedArmedRollback {
            token: token.to_owned(),
            scope: scope.clone(),
            before,
            until,
            reverted: false,
        });
        (0, String::new())
    }

    /// Confirms, if there still is something to confirm.
    pub fn disarm(&mut self, token: &str, now: Duration) -> Answered {
        match self
            .armed_rollback
            .take_if(|armed| armed.token == token && now < armed.until)
        {
            Some(_) => (0, String::new()),
            None if self
                .armed_rollback
                .as_ref()
                .is_some_and(|armed| armed.token == token) =>
            {
                (75, String::new())
            }
            None => (1, String::new()),
        }
    }

    /// Puts everything back now.
    pub fn fire(&mut self, token: &str, now: Duration) -> Answered {
        match self
            .armed_rollback
            .as_mut()
            .filter(|armed| armed.token == token && now < armed.until)
        {
            Some(armed) => armed.until = now,
            None => return (1, String::new()),
        }
        self.revert_what_is_due(now);
        (0, String::new())
    }

    /// The state of an automatic rollback.
    pub fn rollback_status(&self, token: &str, now: Duration) -> Answered {
        match self
            .armed_rollback
            .as_ref()
            .filter(|armed| armed.token == token)
        {
            None => (1, String::new()),
            Some(armed) => (0, format!("{}\n", armed.standing(now))),
        }
    }

    /// What is armed, as `Upkeep::Idle` tells it.
    pub fn pending_rollback(&self, now: Duration) -> Answered {
        match self.armed_rollback.as_ref().filter(|armed| !armed.reverted) {
            None => (0, String::new()),
            Some(armed) => (78, format!("{} {}\n", armed.token, armed.standing(now))),
        }
    }

    /// A rollback whose timer has expired puts back what it keeps, once no step runs any more.
    pub fn revert_what_is_due(&mut self, now: Duration) {
        let Some(armed) = &self.armed_rollback else {
            return;
        };
        let waits = self.running.is_some() && now < armed.until + armed.patience();
        if !armed.reverted && armed.until <= now && !waits {
            self.revert(now);
        }
    }

    /// Puts back what the rollback keeps.
    pub fn revert(&mut self, now: Duration) {
        let Some(mut armed) = self.armed_rollback.take() else {
            return;
        };
        for keep in &armed.scope.keeps {
            if let Keep::File { path } = keep {
                match armed.before.disk.files.get(path) {
                    Some(file) => self.disk.put(path, file.clone()),
                    None => self.remove_with_folders(path, &armed.before),
                }
            }
        }
        if armed.scope.systemd {
            self.units.reload(&self.disk);
        }
        if !armed.scope.reloads.is_empty() {
            self.links.reload(&self.disk);
        }
        for keep in &armed.scope.keeps {
            self.put_back(keep, &armed.before, now);
        }
        armed.reverted = true;
        self.armed_rollback = Some(armed);
    }

    /// Folders that came with a file go with it, as long as they are empty.
    fn remove_with_folders(&mut self, path: &str, before: &SimulatedHost) {
        let below = path
            .rmatch_indices('/')
            .map(|(at, _)| &path[..at])
            .find(|folder| before.disk.folders.contains(*folder));
        self.disk.remove(path, below);
    }

    fn put_back(&mut self, keep: &Keep, before: &SimulatedHost, now: Duration) {
        match keep {
            Keep::Sysctl { key } => {
                let key = super::modules::format_dotted_key(key);
                if let Some(value) = before.kernel.sysctls.get(&key) {
                    self.kernel.sysctls.insert(key, value.clone());
                }
            }
            Keep::Link { netdev } => {
                if let Some(link) = before.links.0.get(netdev) {
                    self.links.0.insert(netdev.clone(), link.clone());
                }
            }
            Keep::Unit { name } => {
                let masked = before.units.masked.contains(name);
                let enabled = before.units.enabled.contains(name);
                let active = before.units.known.get(name).is_some_and(|unit| unit.active);
                let verbs = [
                    if masked {
                        UnitVerb::Mask
                    } else {
                        UnitVerb::Unmask
                    },
                    if enabled {
                        UnitVerb::Enable
                    } else {
                        UnitVerb::Disable
                    },
                    if active {
                        UnitVerb::Restart
                    } else {
                        UnitVerb::Stop
                    },
                ];
                for verb in verbs {
                    let name = name.clone();
                    // What systemd does not know cannot be told anything, and was not there before
                    // either.
                    let _ = self.act(&Action::Unit { name, verb }, now);
                }
            }
            Keep::Switch { system, .. } => {
                self.switch = before.switch.clone();
                match before.disk.files.get(system.saved()) {
                    Some(file) => self.disk.put(system.saved(), file.clone()),
                    None => self.disk.remove(system.saved(), None),
                }
            }
            Keep::File { .. } | Keep::Connection { .. } | Keep::Ipv6 => {}
        }
    }
}
