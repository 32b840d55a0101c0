//! The answer of `Read::Unit`, decoded: properties of `systemctl show` and the time of boot.

use crate::resource::{Answers, Read, Reading};
use std::collections::BTreeMap;

/// How a unit stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundUnit {
    properties: BTreeMap<String, String>,
    /// Seconds since 1970 at which the host booted (`btime` of /proc/stat).
    booted_at_s: Option<u64>,
}

impl FoundUnit {
    /// The unit by the answers; the error fits after "unknown:".
    pub fn of(name: &str, answers: &Answers) -> Result<Self, String> {
        match answers.output(&Read::Unit { name: name.to_owned() })? {
            (0, out) => Self::decode(out).ok_or_else(|| "systemd's answer makes no sense".to_owned()),
            (69, _) => Err("systemd does not run on this host".to_owned()),
            (code, _) => Err(format!("systemctl ended with status {code}")),
        }
    }

    fn decode(out: &str) -> Option<Self> {
        let mut unit = FoundUnit::default();
        for line in out.lines() {
            if let Some(seconds) = line.strip_prefix("btime ") {
                unit.booted_at_s = seconds.trim().parse().ok();
            } else if let Some((name, value)) = line.split_once('=') {
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
        self.property("LoadState") == "masked" || self.property("UnitFileState").starts_with("masked")
    }

    /// What `enabled` is found to be.
    pub fn enabled(&self) -> Reading {
        if self.is_missing() {
            return Reading::Absent;
        }
        match self.property("UnitFileState") {
            "enabled" | "alias" => Reading::is(true),
            "disabled" | "enabled-runtime" | "linked" | "linked-runtime" | "masked" | "masked-runtime" => Reading::is(false),
            // no unit file of its own, or one without [Install]: something else decides when it starts
            word @ ("static" | "generated" | "transient" | "indirect") => {
                Reading::NotApplicable(format!("the unit is {word}; it cannot be enabled by itself"))
            }
            "" => Reading::Absent,
            other => Reading::Unknown(format!("its state is `{}`", crate::base::text::one_line(other, 40))),
        }
    }

    /// What `active` is found to be. A oneshot that does not remain after its exit counts when it has run with success
    /// since boot.
    pub fn active(&self) -> Reading {
        if self.is_missing() {
            return Reading::Absent;
        }
        if self.property("Type") == "oneshot" && self.property("RemainAfterExit") == "no" {
            return Reading::is(self.property("Result") == "success" && self.microseconds("ExecMainExitTimestampMonotonic") > 0);
        }
        match self.property("ActiveState") {
            "active" | "reloading" => Reading::is(true),
            "failed" => Reading::is("failed"),
            "activating" => Reading::is("activating"),
            _ => Reading::is(false),
        }
    }

    /// When it became active, in seconds since 1970; none while it is not active.
    pub fn active_since_s(&self) -> Option<u64> {
        let since = match self.microseconds("ActiveEnterTimestampMonotonic") {
            0 => self.microseconds("ExecMainExitTimestampMonotonic"),
            since => since,
        };
        let runs = self.active() == Reading::is(true) && since > 0;
        self.booted_at_s.filter(|_| runs).map(|boot| boot + since / 1_000_000)
    }

    fn microseconds(&self, name: &str) -> u64 {
        self.property(name).parse().unwrap_or(0)
    }
}

/// Modification times from `Read::Modified`, in seconds since 1970, by path. A path that is not there is left out.
pub fn modified(paths: &[String], answers: &Answers) -> Result<BTreeMap<String, u64>, String> {
    let (_, out) = answers.output(&Read::Modified { paths: paths.to_vec() })?;
    Ok(out.lines().filter_map(|line| line.split_once(' ')).filter_map(|(time, path)| Some((path.to_owned(), time.parse().ok()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    // `systemctl show` of systemd 252 (Debian 12)
    const OPENIBD: &str = "Type=oneshot\nRemainAfterExit=yes\nResult=success\nLoadState=loaded\nActiveState=active\nSubState=exited\n\
        UnitFileState=enabled\nNeedDaemonReload=no\nActiveEnterTimestampMonotonic=5000000\nExecMainExitTimestampMonotonic=4900000\nbtime 1000\n";

    #[test]
    fn each_sort_of_unit() {
        let with = |changes: &[(&str, &str)]| {
            let text = changes.iter().fold(OPENIBD.to_owned(), |text, (from, to)| text.replace(from, to));
            let unit = FoundUnit::decode(&text).unwrap();
            (unit.enabled(), unit.active(), unit.active_since_s())
        };
        assert_eq!(with(&[]), (Reading::is(true), Reading::is(true), Some(1005)));
        let once = ("RemainAfterExit=yes", "RemainAfterExit=no");
        let inactive = ("ActiveState=active", "ActiveState=inactive");
        assert_eq!(with(&[once, inactive]).1, Reading::is(true));
        assert_eq!(with(&[once, inactive, ("Result=success", "Result=exit-code")]).1, Reading::is(false));
        assert_eq!(with(&[inactive]).1, Reading::is(false));
        assert_eq!(with(&[("ActiveState=active", "ActiveState=failed")]).1, Reading::is("failed"));
        assert_eq!(with(&[("LoadState=loaded", "LoadState=not-found")]).1, Reading::Absent);
        assert!(matches!(with(&[("UnitFileState=enabled", "UnitFileState=static")]).0, Reading::NotApplicable(_)));
        assert!(FoundUnit::decode("System has not been booted with systemd\n").is_none());
    }
}
