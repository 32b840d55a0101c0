//! The answer of `Read::Unit`, decoded: properties of `systemctl show`.

use crate::{Read, ReadResults, Reading};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use railwright_base::Reason;
use std::collections::BTreeMap;

/// For how long a service has to be active before a start of ours counts, in seconds. That a program
/// ends over its configuration is not reported to its starter: `Type=simple` counts as active once
/// it was forked (systemd.service(5)).
pub const STEADY_S: u64 = 5;

/// How a unit stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundUnit {
    properties: BTreeMap<String, String>,
}

/// Where unit files lie (systemd.unit(5)), and what stands in the place of a masked one.
const UNIT_FOLDERS: [&str; 6] = [
    "/etc/systemd/",
    "/run/systemd/",
    "/usr/lib/systemd/",
    "/usr/local/lib/systemd/",
    "/lib/systemd/",
    "/dev/null",
];

impl FoundUnit {
    /// The unit by the answers; the error fits after "unknown:".
    pub fn of(name: &str, answers: &ReadResults) -> Result<Self, Reason> {
        match answers.output(&Read::Unit {
            name: name.to_owned(),
        })? {
            (0, out) => Self::decode(out).ok_or_else(|| "systemd's answer makes no sense".into()),
            (69, _) => Err("systemd does not run on this host".into()),
            (code, _) => Err(format!("systemctl ended with status {code}").into()),
        }
    }

    fn decode(out: &str) -> Option<Self> {
        let mut unit = FoundUnit::default();
        for line in out.lines() {
            if let Some((name, value)) = line.split_once('=') {
                unit.properties.insert(name.to_owned(), value.to_owned());
            }
        }
        unit.properties.contains_key("LoadState").then_some(unit)
    }

    /// A property, empty when it is not there.
    pub fn property(&self, name: &str) -> &str {
        self.properties.get(name).map_or("", String::as_str)
    }

    /// systemd knows no such unit.
    pub fn is_missing(&self) -> bool {
        self.property("LoadState") == "not-found"
    }

    /// A file of it has changed or gone since systemd read it.
    pub fn is_stale(&self) -> bool {
        self.property("NeedDaemonReload") == "yes"
    }

    /// The unit that this name is only another name of (`Alias=`, or a link of the distribution).
    /// What systemctl does by an alias it does to that unit, and `disable` takes the alias away.
    pub fn find_aliased_unit(&self, name: &str) -> Option<&str> {
        let id = self.property("Id");
        (!id.is_empty() && id != name).then_some(id)
    }

    /// Linked to /dev/null, for good or until the next boot.
    pub fn is_masked(&self) -> bool {
        self.property("LoadState") == "masked"
            || self.property("UnitFileState").starts_with("masked")
    }

    /// Linked to /dev/null by a link that a boot does not take away.
    pub fn is_masked_for_good(&self) -> bool {
        self.is_masked() && self.property("UnitFileState") != "masked-runtime"
    }

    /// A oneshot that is inactive again as soon as it has run.
    pub fn runs_once(&self) -> bool {
        self.property("Type") == "oneshot" && self.property("RemainAfterExit") == "no"
    }

    /// Processes of it run, or it remains active. A oneshot that has run does not.
    pub fn is_running(&self) -> bool {
        let state = self.property("ActiveState");
        ["active", "activating", "reloading"].contains(&state)
    }

    /// Nothing keeps it loaded: systemd lets it go when it has run well, with when and how it ran.
    pub fn is_let_go(&self) -> bool {
        self.property("InMemory") == "no"
    }

    /// What `enabled` is found to be.
    pub fn enabled(&self) -> Reading {
        if self.is_missing() {
            return Reading::Absent;
        }
        match self.property("UnitFileState") {
            "enabled" | "alias" => Reading::is(true),
            "disabled" | "enabled-runtime" | "linked" | "linked-runtime" | "masked" => {
                Reading::is(false)
            }
            // What starts it shows when the boot has taken the mask away.
            "masked-runtime" => Reading::is(
                ["WantedBy", "RequiredBy"]
                    .iter()
                    .any(|wanted_by| !self.property(wanted_by).is_empty()),
            ),
            // no unit file of its own, or one without [Install]: something else decides when it
            // starts
            word @ ("static" | "generated" | "transient" | "indirect") => Reading::NotApplicable(
                format!("the unit is {word}; it cannot be enabled by itself").into(),
            ),
            "" => Reading::Absent,
            other => Reading::Unknown(
                format!(
                    "its state is `{}`",
                    railwright_base::text::one_line(other, 40)
                )
                .into(),
            ),
        }
    }

    /// What `enabled` is found to be of a unit whose file is this: it is enabled where the file says
    /// only once the links are there.
    pub fn enabled_by(&self, content: Option<&str>) -> Reading {
        let links = match (self.enabled(), self.properties.get("Links")) {
            (found, Some(links)) if found == Reading::is(true) => links,
            (found, _) => return found,
        };
        let mut missing = content.into_iter().flat_map(list_install_folders);
        match missing.find(|folder| !links.split_whitespace().any(|link| link == folder)) {
            Some(folder) => Reading::is(format!("not in {folder}")),
            None => Reading::is(true),
        }
    }

    /// The file elsewhere that its name is a link to (`systemctl link`, or `enable` with a path):
    /// `disable` takes that link away too (systemctl(1)).
    pub fn find_linked_file(&self) -> Option<&str> {
        let file = self.property("LinkTo");
        let is_own = |folder: &&str| file.starts_with(*folder);
        (!file.is_empty() && !UNIT_FOLDERS.iter().any(is_own)).then_some(file)
    }

    /// What `active` is found to be. A oneshot that does not remain after its exit counts when it
    /// has run with success since boot.
    pub fn active(&self) -> Reading {
        if self.is_missing() {
            return Reading::Absent;
        }
        if self.runs_once() {
            return Reading::is(
                self.property("Result") == "success"
                    && self.seconds("ExecMainExitTimestamp").is_some(),
            );
        }
        match self.property("ActiveState") {
            "active" | "reloading" => Reading::is(true),
            "failed" => Reading::is("failed"),
            "activating" => Reading::is("activating"),
            _ => Reading::is(false),
        }
    }

    /// When it became active, in whole seconds since 1970; none while it is not active. It is
    /// systemd's own note of the clock that files are stamped by: counted from the time of boot,
    /// which is in whole seconds and moves when the clock is set, a unit could seem to have started
    /// seconds before a file that it has read.
    pub fn active_since_s(&self) -> Option<i64> {
        let since = self
            .seconds("ActiveEnterTimestamp")
            .or_else(|| self.seconds("ExecMainExitTimestamp"));
        since.filter(|_| self.active() == Reading::is(true))
    }

    /// How `active` reads of a service that became active less than `STEADY_S` ago, by systemd's note
    /// of the monotonic clock and the uptime of the host; none where they are not shown, or not of
    /// one clock (a container may have an uptime of its own).
    pub fn unsteady(&self) -> Option<Reading> {
        let restarts: u64 = self.property("NRestarts").parse().ok()?;
        let age_s: u64 = self.property("ActiveSeconds").parse().ok()?;
        let runs = self.property("ActiveState") == "active" && self.property("Type") != "oneshot";
        // Both clocks are cut off at whole seconds.
        (runs && age_s <= STEADY_S).then(|| {
            let restarts = match restarts {
                0 => String::new(),
                n => format!("; systemd has restarted it {n} times since it was started"),
            };
            Reading::is(format!("active for less than {STEADY_S} s{restarts}"))
        })
    }

    /// A time such as `Tue 2026-11-24 21:07:36 UTC`; none where there was none yet.
    fn seconds(&self, name: &str) -> Option<i64> {
        let (_day, time) = self.property(name).strip_suffix(" UTC")?.split_once(' ')?;
        let time = DateTime::strptime("%Y-%m-%d %H:%M:%S", time).ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
    }
}

/// The folders of links that `enable` makes of a unit file (systemd.unit(5), "[Install]").
fn list_install_folders(content: &str) -> Vec<String> {
    let (mut folders, mut is_install) = (Vec::new(), false);
    for line in content.lines().map(str::trim) {
        if line.starts_with('[') {
            is_install = line == "[Install]";
        }
        for (key, kind) in [("WantedBy", "wants"), ("RequiredBy", "requires")] {
            let units = line.strip_prefix(key).map(str::trim_start);
            let Some(units) = units.and_then(|rest| rest.strip_prefix('=')) else {
                continue;
            };
            // What systemd fills in is not known here.
            let units = units.split_whitespace().filter(|unit| !unit.contains('%'));
            folders.extend(
                units
                    .filter(|_| is_install)
                    .map(|unit| format!("{unit}.{kind}")),
            );
        }
    }
    folders
}

/// Times of change from `Read::Modified`, in seconds since 1970, by path. A path that is not
/// there is left out.
pub fn decode_modification_times(
    paths: &[String],
    answers: &ReadResults,
) -> Result<BTreeMap<String, i64>, Reason> {
    let (_, out) = answers.output(&Read::Modified {
        paths: paths.to_vec(),
    })?;
    Ok(out
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(time, path)| Some((path.to_owned(), time.parse().ok()?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    // `systemctl show` of systemd 252 (Debian 12)
    const OPENIBD: &str = "Type=oneshot\n\
                           RemainAfterExit=yes\n\
                           Result=success\n\
                           LoadState=loaded\n\
                           ActiveState=active\n\
                           SubState=exited\n\
                           UnitFileState=enabled\n\
                           NeedDaemonReload=no\n\
                           ActiveEnterTimestamp=Thu 1970-01-01 00:16:45 UTC\n\
                           ExecMainExitTimestamp=Thu 1970-01-01 00:16:44 UTC\n";

    #[test]
    fn each_sort_of_unit() {
        let with = |changes: &[(&str, &str)]| {
            let text = changes.iter().fold(OPENIBD.to_owned(), |text, (from, to)| {
                text.replace(from, to)
            });
            let unit = FoundUnit::decode(&text).unwrap();
            (unit.enabled(), unit.active(), unit.active_since_s())
        };
        assert_eq!(
            with(&[]),
            (Reading::is(true), Reading::is(true), Some(1005))
        );
        let once = ("RemainAfterExit=yes", "RemainAfterExit=no");
        let inactive = ("ActiveState=active", "ActiveState=inactive");
        assert_eq!(with(&[once, inactive]).1, Reading::is(true));
        assert_eq!(
            with(&[(
                "ActiveEnterTimestamp=Thu 1970-01-01 00:16:45 UTC",
                "ActiveEnterTimestamp="
            )])
            .2,
            Some(1004)
        );
        assert_eq!(
            with(&[(" UTC", " CEST")]).2,
            None,
            "no other zone is taken for UTC"
        );
        assert_eq!(
            with(&[once, inactive, ("Result=success", "Result=exit-code")]).1,
            Reading::is(false)
        );
        assert_eq!(with(&[inactive]).1, Reading::is(false));
        assert_eq!(
            with(&[("ActiveState=active", "ActiveState=failed")]).1,
            Reading::is("failed")
        );
        assert_eq!(
            with(&[("LoadState=loaded", "LoadState=not-found")]).1,
            Reading::Absent
        );
        assert!(matches!(
            with(&[("UnitFileState=enabled", "UnitFileState=static")]).0,
            Reading::NotApplicable(_)
        ));
        assert!(FoundUnit::decode("System has not been booted with systemd\n").is_none());
    }

    /// By systemd 252: `NRestarts` is of services alone.
    #[test]
    fn a_service_counts_as_started_once_it_has_been_active_for_seconds() {
        const STARTED: &str = "Type=simple\n\
                               LoadState=loaded\n\
                               ActiveState=active\n\
                               NRestarts=0\n\
                               ActiveSeconds=0\n";
        let young = Some("active for less than 5 s");
        let restarted =
            Some("active for less than 5 s; systemd has restarted it 2 times since it was started");
        for (line, other, reading) in [
            ("", "", young),
            ("ActiveSeconds=0", "ActiveSeconds=5", young),
            ("ActiveSeconds=0", "ActiveSeconds=6", None),
            ("ActiveSeconds=0\n", "", None),
            ("NRestarts=0", "NRestarts=2", restarted),
            ("NRestarts=0\n", "", None),
            ("Type=simple", "Type=oneshot", None),
            ("=active", "=inactive", None),
            ("=active", "=failed", None),
        ] {
            let unit = FoundUnit::decode(&STARTED.replacen(line, other, 1)).unwrap();
            assert_eq!(
                unit.unsteady(),
                reading.map(Reading::is),
                "{line} -> {other}"
            );
        }
        assert_eq!(
            FoundUnit::decode(OPENIBD).unwrap().unsteady(),
            None,
            "an old recording"
        );
    }
}
