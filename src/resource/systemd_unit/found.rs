//! The answer of `Read::Unit`, decoded: properties of `systemctl show`.

use crate::{Read, ReadResults, Reading};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use railwright_base::Reason;
use std::collections::BTreeMap;

/// How a unit stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundUnit {
    properties: BTreeMap<String, String>,
}

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

    /// Linked to /dev/null.
    pub fn is_masked(&self) -> bool {
        self.property("LoadState") == "masked"
            || self.property("UnitFileState").starts_with("masked")
    }

    /// What `enabled` is found to be.
    pub fn enabled(&self) -> Reading {
        if self.is_missing() {
            return Reading::Absent;
        }
        match self.property("UnitFileState") {
            "enabled" | "alias" => Reading::is(true),
            "disabled" | "enabled-runtime" | "linked" | "linked-runtime" | "masked"
            | "masked-runtime" => Reading::is(false),
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

    /// What `active` is found to be. A oneshot that does not remain after its exit counts when it
    /// has run with success since boot.
    pub fn active(&self) -> Reading {
        if self.is_missing() {
            return Reading::Absent;
        }
        if self.property("Type") == "oneshot" && self.property("RemainAfterExit") == "no" {
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

    /// A time such as `Tue 2026-11-24 21:07:36 UTC`; none where there was none yet.
    fn seconds(&self, name: &str) -> Option<i64> {
        let (_day, time) = self.property(name).strip_suffix(" UTC")?.split_once(' ')?;
        let time = DateTime::strptime("%Y-%m-%d %H:%M:%S", time).ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
    }
}

/// Modification times from `Read::Modified`, in seconds since 1970, by path. A path that is not
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
}
