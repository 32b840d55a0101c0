//! The units of a simulated host: what systemd loaded, what is enabled, what runs and since when.

use super::disk::Disk;
use super::host::{Answered, Done};
use railwright_resource::action::UnitVerb;
use railwright_resource::systemd_unit::found::STEADY_S;
use std::collections::{BTreeMap, BTreeSet};

/// Where units lie, the strongest first.
const FOLDERS: [&str; 3] = [
    "/etc/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A unit as systemd knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedUnit {
    /// The text that was loaded: its file and its drop-ins.
    pub loaded: String,
    /// It runs, or its last run ended well and it remains.
    pub active: bool,
    /// When it became active, in seconds since 1970 by the host's clock.
    pub since_s: u64,
}

/// All units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Units {
    /// By name, those that systemd has loaded.
    pub known: BTreeMap<String, SimulatedUnit>,
    /// Started at boot.
    pub enabled: BTreeSet<String>,
    /// Linked to /dev/null.
    pub masked: BTreeSet<String>,
    /// What time it is, as `SimulatedUnit::since_s`.
    pub now_s: u64,
}

/// The file and the drop-ins of a unit, as one text.
fn read_unit_text(name: &str, disk: &Disk) -> Option<String> {
    let own = FOLDERS
        .iter()
        .find_map(|folder| disk.text(&format!("{folder}/{name}")))?;
    let drop_ins = FOLDERS.iter().flat_map(|folder| {
        let folder = format!("{folder}/{name}.d");
        disk.below(&folder, ".conf")
            .map(|(_, text)| text)
            .collect::<Vec<_>>()
    });
    Some(std::iter::once(own).chain(drop_ins).collect())
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found.trim() == line)
}

fn format_yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// As `systemctl show` writes a time.
fn format_systemd_time(since_s: u64) -> String {
    let time = i64::try_from(since_s)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .unwrap_or_default();
    time.strftime("%a %Y-%m-%d %H:%M:%S UTC").to_string()
}

/// After how many seconds its program ends by itself.
fn find_run_time_s(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let argument = lines.find_map(|line| line.strip_prefix("ExecStart=/bin/sleep "))?;
    argument.parse().ok()
}

/// It runs once and is gone.
fn is_inactive_after_run(text: &str) -> bool {
    has_line(text, "Type=oneshot") && !has_line(text, "RemainAfterExit=yes")
}

fn new_missing_unit_error(name: &str) -> (i32, String) {
    (
        5,
        format!(
            "Failed: Unit {name} not found.\nrailwright: systemctl failed: LoadState=not-found"
        ),
    )
}

impl Units {
    /// What systemd has in memory: what runs, and what an enabled unit's target wants. Everything
    /// else is let go, and read from the disk whenever it is asked for.
    fn kept(&self, name: &str) -> Option<&SimulatedUnit> {
        self.known
            .get(name)
            .filter(|unit| unit.active || self.enabled.contains(name))
    }

    /// Forgets all else: whoever asks systemd cannot tell the difference.
    pub fn let_go(&mut self) {
        let enabled = &self.enabled;
        self.known
            .retain(|name, unit| unit.active || enabled.contains(name));
    }

    /// It is so late by now, and programs have ended by themselves.
    pub fn pass_time(&mut self, now_s: u64) {
        self.now_s = now_s;
        for unit in self.known.values_mut() {
            let run_time_s = find_run_time_s(&unit.loaded);
            let has_ended = run_time_s.is_some_and(|seconds| now_s >= unit.since_s + seconds);
            unit.active &= !has_ended;
        }
    }

    /// The answer to `Read::Unit`.
    pub fn read(&self, name: &str, disk: &Disk) -> Answered {
        let (unit, file) = (self.kept(name), read_unit_text(name, disk));
        let loaded = unit.map(|unit| unit.loaded.as_str()).or(file.as_deref());
        let (masked, active) = (
            self.masked.contains(name),
            unit.is_some_and(|unit| unit.active),
        );
        let load = match loaded {
            _ if masked => "masked",
            Some(_) => "loaded",
            None => "not-found",
        };
        let state = match loaded {
            _ if masked => "masked",
            None => "",
            // Whoever wants it counts before what its file says (systemd, src/shared/install.c,
            // `unit_file_lookup_state`).
            Some(_) if self.enabled.contains(name) => "enabled",
            Some(text) if !text.contains("[Install]") => "static",
            Some(_) => "disabled",
        };
        let text = loaded.unwrap_or_default();
        let (kind, remains) = (
            if has_line(text, "Type=oneshot") {
                "oneshot"
            } else {
                "simple"
            },
            has_line(text, "RemainAfterExit=yes"),
        );
        let since = unit
            .filter(|unit| unit.active)
            .map_or_else(String::new, |unit| format_systemd_time(unit.since_s));
        let runs = active && !is_inactive_after_run(text);
        let stale = unit.is_some_and(|unit| file.as_deref() != Some(unit.loaded.as_str()));
        let out = format!(
            "Id={name}\nLoadState={load}\nActiveState={}\nSubState={}\nUnitFileState={state}\nNeedDaemonReload={}\nType={kind}\nRemainAfterExit={}\nResult=success\nActiveEnterTimestamp={}\nExecMainExitTimestamp={}\nNRestarts=0\n{}",
            if runs { "active" } else { "inactive" },
            if runs { "running" } else { "dead" },
            format_yes_no(stale),
            format_yes_no(remains),
            if runs { since.as_str() } else { "" },
            if kind == "oneshot" {
                since.as_str()
            } else {
                ""
            },
            match unit.map(|unit| self.now_s.saturating_sub(unit.since_s)) {
                Some(age @ ..=STEADY_S) => format!("ActiveSeconds={age}\n"),
                _ => String::new(),
            },
        );
        (0, out)
    }

    /// `systemctl daemon-reload`: what has no file any more is known only as long as it runs.
    pub fn reload(&mut self, disk: &Disk) {
        for folder in FOLDERS {
            for path in disk
                .files
                .keys()
                .filter(|path| path.starts_with(&format!("{folder}/")))
            {
                let name = path[folder.len() + 1..].to_owned();
                if let (false, Some(loaded)) = (name.contains('/'), read_unit_text(&name, disk)) {
                    self.known.entry(name).or_default().loaded = loaded;
                }
            }
        }
        self.known
            .retain(|name, unit| unit.active || read_unit_text(name, disk).is_some());
        for (name, unit) in &mut self.known {
            unit.loaded = read_unit_text(name, disk).unwrap_or_default();
        }
    }

    /// Tells a unit something.
    pub fn tell(&mut self, name: &str, verb: UnitVerb, disk: &Disk, now_s: u64) -> Done {
        let file = read_unit_text(name, disk);
        match verb {
            UnitVerb::Mask => drop(self.masked.insert(name.to_owned())),
            UnitVerb::Unmask => drop(self.masked.remove(name)),
            // No mask of it is lost by a boot.
            UnitVerb::UnmaskRuntime => (),
            UnitVerb::Disable => drop(self.enabled.remove(name)),
            UnitVerb::Enable => {
                file.ok_or_else(|| new_missing_unit_error(name))?;
                self.check_unmasked(name, "enable")?;
                self.enabled.insert(name.to_owned());
            }
            UnitVerb::Stop => {
                if let Some(unit) = self.known.get_mut(name) {
                    unit.active = false;
                } else {
                    file.ok_or_else(|| new_missing_unit_error(name))?;
                }
            }
            UnitVerb::Start => self.start(name, file, false, now_s)?,
            UnitVerb::Restart => self.start(name, file, true, now_s)?,
        }
        if matches!(
            verb,
            UnitVerb::Enable
                | UnitVerb::Disable
                | UnitVerb::Mask
                | UnitVerb::Unmask
                | UnitVerb::UnmaskRuntime
        ) {
            // systemctl(1): these have the manager's configuration read again.
            self.reload(disk);
        }
        Ok(())
    }

    /// Starts a unit whose file says this; one that is active only where it is restarted.
    fn start(&mut self, name: &str, file: Option<String>, restart: bool, now_s: u64) -> Done {
        self.check_unmasked(name, "start")?;
        // What is in memory is read again by daemon-reload alone.
        if self.kept(name).is_none() {
            let loaded = file.ok_or_else(|| new_missing_unit_error(name))?;
            self.known.insert(
                name.to_owned(),
                SimulatedUnit {
                    loaded,
                    ..SimulatedUnit::default()
                },
            );
        }
        let unit = self.known.entry(name.to_owned()).or_default();
        if restart || !unit.active {
            (unit.active, unit.since_s) = (true, now_s);
        }
        Ok(())
    }

    /// What systemctl says to this verb for a unit that is masked.
    fn check_unmasked(&self, name: &str, verb: &str) -> Done {
        if self.masked.contains(name) {
            return Err((
                1,
                format!("railwright: systemctl {verb} {name} failed: LoadState=masked"),
            ));
        }
        Ok(())
    }

    /// What a boot starts.
    pub fn boot(&mut self, disk: &Disk, booted_s: u64) {
        self.known.clear();
        self.reload(disk);
        for (name, unit) in &mut self.known {
            unit.active = self.enabled.contains(name) && !self.masked.contains(name);
            unit.since_s = booted_s + 10;
        }
    }
}
