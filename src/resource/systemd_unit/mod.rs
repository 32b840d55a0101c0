//! `systemd_unit`: a unit, its file and drop-ins (persisted), whether it starts at boot (next boot)
//! and whether it runs (running). A restart that is owed is no event: it is the difference between
//! when a watched file changed and when the unit became active, and it plans itself until it is
//! done.

mod body;
pub mod found;
pub mod script;
mod undo;

use super::action::UnitVerb;
use super::assessment::WatchedFiles;
use super::file::found::{FileState, build_config_file_action};
use super::json_fields::read_text_field;
use super::switch::before::merge_before_values;
use super::{
    Action, Assessment, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
    ResourceKind,
};
use crate::body::{BodyType, read_body};
use body::UnitBody;
use found::{FoundUnit, decode_modification_times};
use railwright_base::Reason;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The kind.
pub struct SystemdUnit;

/// The state of the unit as far as undoing needs it.
fn build_unit_snapshot(unit: &Result<FoundUnit, Reason>) -> Value {
    match unit {
        Ok(unit) => json!({
            "there": !unit.is_missing(),
            "masked": unit.is_masked(),
            "enabled": unit.enabled().value().and_then(Value::as_bool),
            "active": unit.active() == Reading::is(true),
        }),
        Err(_) => Value::Null,
    }
}

/// What is judged of the unit itself, beside its files.
struct UnitComparison<'a> {
    body: &'a UnitBody,
    unit: Result<FoundUnit, Reason>,
    newer: Result<Vec<String>, Reason>,
}

impl<'a> UnitComparison<'a> {
    fn new(body: &'a UnitBody, answers: &ReadResults) -> Self {
        let unit = FoundUnit::of(&body.name, answers);
        let watched = body.list_restart_triggers();
        let newer = match &unit {
            _ if watched.is_empty() => Ok(Vec::new()),
            Ok(unit) => decode_modification_times(&watched, answers).map(|times| {
                let since = unit.active_since_s().unwrap_or(i64::MAX);
                times
                    .into_iter()
                    .filter(|(_, time)| *time > since)
                    .map(|(path, _)| path)
                    .collect()
            }),
            Err(reason) => Err(reason.clone()),
        };
        UnitComparison { body, unit, newer }
    }

    fn reading(&self, of: impl Fn(&FoundUnit) -> Reading) -> Reading {
        match &self.unit {
            Ok(unit) => of(unit),
            Err(reason) => Reading::Unknown(reason.clone()),
        }
    }

    fn diff(&self, assessment: &mut Assessment) {
        let body = self.body;
        if let Some(masked) = body.masked {
            let found = self.reading(|unit| Reading::is(unit.is_masked()));
            insert_flag(assessment, "masked", Plane::NextBoot, masked, found);
        }
        if let Some(enabled) = body.enabled {
            let found = self.reading(FoundUnit::enabled);
            insert_flag(assessment, "enabled", Plane::NextBoot, enabled, found);
        }
        if let Some(active) = body.active {
            let found = match self.reading(FoundUnit::active) {
                Reading::Is(Value::String(_)) if !active => Reading::is(false),
                found => found,
            };
            insert_flag(assessment, "active", Plane::Running, active, found);
        }
        let loaded = self.reading(|unit| match unit.is_missing() {
            true => Reading::NotApplicable("systemd does not know the unit yet".into()),
            false => Reading::is(!unit.is_stale()),
        });
        insert_flag(assessment, "loaded", Plane::Running, true, loaded);
        if body.active == Some(true) && !body.list_restart_triggers().is_empty() {
            let found = match &self.newer {
                Ok(newer) if newer.is_empty() => Reading::is(true),
                Ok(newer) => Reading::is(format!("{} changed since it started", newer.join(", "))),
                Err(reason) => Reading::Unknown(reason.clone()),
            };
            insert_flag(assessment, "restarted", Plane::Running, true, found);
        }
    }
}

/// A unit that is not there is neither enabled nor active nor masked.
fn insert_flag(
    assessment: &mut Assessment,
    name: &str,
    plane: Plane,
    wanted: bool,
    found: Reading,
) {
    let found = match found {
        Reading::Absent if !wanted => Reading::is(false),
        found => found,
    };
    let attribute = Attribute::in_plane(plane, Reading::is(wanted), found);
    assessment.attributes.insert(name.to_owned(), attribute);
}

fn has_attribute_difference(assessment: &Assessment, attribute: &str) -> bool {
    assessment
        .attributes
        .get(attribute)
        .is_some_and(|attribute| !attribute.differences().is_empty())
}

/// The verbs that fix what differs, in the order that systemd needs.
fn plan_unit_actions(
    body: &UnitBody,
    files_change: bool,
    unit_runs: bool,
    assessment: &mut Assessment,
) {
    if files_change || has_attribute_difference(assessment, "loaded") {
        assessment.actions.push(Action::ReloadSystemd);
        assessment.disruption = Disruption::Reload;
    }
    for (attribute, desired, yes, no) in [
        ("masked", body.masked, UnitVerb::Mask, UnitVerb::Unmask),
        ("enabled", body.enabled, UnitVerb::Enable, UnitVerb::Disable),
    ] {
        if has_attribute_difference(assessment, attribute) {
            let verb = if desired == Some(true) { yes } else { no };
            assessment.actions.push(body.build_action(verb));
        }
    }
    let active_differs = has_attribute_difference(assessment, "active");
    let (verb, interrupts) = match body.active {
        Some(true) if active_differs => (UnitVerb::Start, None),
        Some(true)
            if unit_runs && (files_change || has_attribute_difference(assessment, "restarted")) =>
        {
            (UnitVerb::Restart, Some("restarts"))
        }
        Some(false) if active_differs => (UnitVerb::Stop, Some("stops")),
        _ => return,
    };
    assessment.actions.push(body.build_action(verb));
    if let Some(interrupts) = interrupts {
        assessment
            .interrupts
            .push(format!("{} {interrupts}", body.name));
        assessment.disruption = Disruption::Restart;
    }
}

impl ResourceKind for SystemdUnit {
    fn name(&self) -> &'static str {
        "systemd_unit"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<UnitBody>()
    }

    fn is_guarded(&self, wish: &DesiredResource) -> bool {
        read_body::<UnitBody>(&wish.body).guard == Some(true)
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let body: UnitBody = read_body(&wish.body);
        let files = body.list_files().into_iter();
        let paths = body.list_restart_triggers();
        let mut reads = vec![Read::Unit { name: body.name }];
        reads.extend(files.map(|(_, path, _)| Read::File { path }));
        if !paths.is_empty() {
            reads.push(Read::Modified { paths });
        }
        reads
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let body: UnitBody = read_body(&wish.body);
        let judged = UnitComparison::new(&body, answers);
        let masked = judged.unit.as_ref().is_ok_and(FoundUnit::is_masked);
        let mut assessment = Assessment::default();
        let mut kept = Map::new();
        for (attribute, path, content) in body.list_files() {
            let found = FileState::at(&path, answers);
            kept.insert(path.clone(), found.remember());
            // A mask is such a link, and it may be wished away.
            let is_lifted = masked && body.masked == Some(false) && attribute == "content";
            if let (FileState::Other { what }, false) = (&found, is_lifted) {
                assessment.refusal = Some(format!(
                    "there is a {what} at {path}; railwright replaces only regular files (take it \
                     away, or leave `{attribute}` out)"
                ));
            }
            let (wanted, shown) = (Reading::is(content.as_str()), found.content_reading());
            if wanted != shown {
                assessment
                    .actions
                    .push(build_config_file_action(&path, content));
            }
            assessment.attributes.insert(
                attribute,
                Attribute::in_plane(Plane::Persisted, wanted, shown),
            );
        }
        judged.diff(&mut assessment);
        let files_change = !assessment.actions.is_empty();
        let runs = judged.reading(FoundUnit::active) == Reading::is(true);
        plan_unit_actions(&body, files_change, runs, &mut assessment);
        if masked
            && body.masked != Some(false)
            && assessment.refusal.is_none()
            && (body.active == Some(true) || body.enabled == Some(true))
        {
            assessment.refusal = Some(format!(
                "{} is masked; say `masked: false` to lift that",
                body.name
            ));
        }
        assessment.before = json!({ "unit": build_unit_snapshot(&judged.unit), "files": kept });
        if runs
            && body.active == Some(true)
            && !body.restart_on.is_empty()
            && assessment.disruption < Disruption::Restart
        {
            let interrupts = format!("{} restarts", body.name);
            assessment.watch = Some(WatchedFiles {
                paths: body.restart_on,
                disruption: Disruption::Restart,
                interrupts,
            });
        }
        assessment
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        merge_before_values(first, now)
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        undo::plan_systemd_unit_undo(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        let is_snapshot = |unit: &Value| {
            let mut flags = ["there", "masked", "active"].iter();
            unit.is_null() || flags.all(|flag| unit[flag].is_boolean())
        };
        before.get("unit").is_some_and(is_snapshot)
            && BTreeMap::<String, FileState>::deserialize(&before["files"]).is_ok()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["enabled", "active", "masked", "content"]
    }

    fn open_maps(&self) -> &'static [&'static str] {
        &["dropins"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "file", "kernel_module"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redacted_assessment::diff_removal;
    use crate::test_support::{answered, wish};

    const RUNS: &str = "Type=simple\n\
                        RemainAfterExit=no\n\
                        Result=success\n\
                        LoadState=loaded\n\
                        ActiveState=active\n\
                        SubState=running\n\
                        UnitFileState=enabled\n\
                        NeedDaemonReload=no\n\
                        ActiveEnterTimestamp=Thu 1970-01-01 00:16:45 UTC\n";

    fn unit() -> DesiredResource {
        let content = "[Service]\nExecStart=/x\n[Install]\nWantedBy=multi-user.target\n";
        wish(
            &SystemdUnit,
            json!({ "name": "q.service", "content": content, "enabled": true, "active": true, "restart_on": ["/etc/q.conf"] }),
        )
    }

    fn answers(show: &str, file: (i32, &str), times: &str) -> ReadResults {
        let reads = SystemdUnit.reads(&unit());
        answered(&[
            (&reads[0], 0, show),
            (&reads[1], file.0, file.1),
            (&reads[2], 0, times),
        ])
    }

    fn there() -> String {
        format!(
            "644 root root 50 regular file\n{}",
            unit().text("content").unwrap()
        )
    }

    fn words(assessment: &Assessment) -> String {
        let word = |action: &Action| match action {
            Action::Unit { verb, .. } => format!("{verb:?}").to_lowercase(),
            other => other.word(),
        };
        assessment
            .actions
            .iter()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn a_restart_is_owed_until_it_has_happened() {
        let file = there();
        let owed = SystemdUnit.assess(
            &unit(),
            &answers(
                RUNS,
                (0, &file),
                "900 /etc/systemd/system/q.service\n1006 /etc/q.conf\n",
            ),
        );
        assert_eq!(
            (words(&owed).as_str(), owed.disruption),
            ("restart", Disruption::Restart)
        );
        let found = owed.attributes["restarted"].found.running.clone();
        assert_eq!(
            found,
            Some(Reading::is("/etc/q.conf changed since it started"))
        );
        let paid = RUNS.replace("00:16:45", "00:16:46");
        assert!(
            SystemdUnit
                .assess(&unit(), &answers(&paid, (0, &file), "1006 /etc/q.conf\n"))
                .is_met()
        );
    }

    #[test]
    fn each_difference_asks_for_its_verbs() {
        let file = there();
        for (changes, file, actions) in [
            (
                vec![
                    ("LoadState=loaded", "LoadState=not-found"),
                    ("UnitFileState=enabled", "UnitFileState="),
                ],
                (1, "folder /etc/systemd/system\n"),
                "write_file reload_systemd enable start",
            ),
            (
                vec![],
                (0, "644 root root 2 regular file\nx\n"),
                "write_file reload_systemd restart",
            ),
            (
                vec![("Reload=no", "Reload=yes")],
                (0, file.as_str()),
                "reload_systemd",
            ),
            (
                vec![("ActiveState=active", "ActiveState=failed")],
                (0, &file),
                "start",
            ),
            (
                vec![("UnitFileState=enabled", "UnitFileState=disabled")],
                (0, &file),
                "enable",
            ),
            (vec![], (0, &file), ""),
        ] {
            let show = changes
                .iter()
                .fold(RUNS.to_owned(), |text, (from, to)| text.replace(from, to));
            assert_eq!(
                words(&SystemdUnit.assess(&unit(), &answers(&show, file, ""))),
                actions,
                "{changes:?}"
            );
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_left_alone() {
        let link = (0, "777 root root 9 symbolic link\n");
        let masked = RUNS
            .replace("LoadState=loaded", "LoadState=masked")
            .replace("UnitFileState=enabled", "UnitFileState=masked");
        for show in [RUNS, &masked] {
            let refused = SystemdUnit
                .assess(&unit(), &answers(show, link, ""))
                .refusal
                .unwrap();
            assert!(
                refused.starts_with("there is a symbolic link at /etc/systemd/system/q.service"),
                "{refused}"
            );
        }
        let mut body = unit().body.clone();
        body["masked"] = json!(false);
        let lifted = SystemdUnit.assess(&wish(&SystemdUnit, body), &answers(&masked, link, ""));
        assert!(
            lifted.refusal.is_none()
                && words(&lifted).starts_with("write_file reload_systemd unmask"),
            "{lifted:?}"
        );
    }

    #[test]
    fn what_runs_with_a_drop_in_is_restarted_without_it() {
        let undone = |active: bool| {
            let mut body = json!({ "name": "q.service", "dropins": { "a": "[Service]\nLimitMEMLOCK=infinity\n" } });
            body.as_object_mut()
                .unwrap()
                .extend(active.then(|| ("active".to_owned(), json!(true))));
            let wish = wish(&SystemdUnit, body);
            let reads = SystemdUnit.reads(&wish);
            let asked = |file: (i32, &str)| {
                answered(&[
                    (&reads[0], 0, RUNS),
                    (&reads[1], file.0, file.1),
                    (&reads[2], 0, ""),
                ])
            };
            let before = SystemdUnit
                .assess(&wish, &asked((1, "folder /etc/systemd/system\n")))
                .before;
            SystemdUnit.undo(
                &wish,
                &before,
                &asked((0, "644 root root 2 regular file\nx\n")),
            )
        };
        let (ours, theirs) = (undone(true), undone(false));
        assert_eq!(
            (words(&ours).as_str(), ours.disruption),
            ("remove_file reload_systemd restart", Disruption::Restart)
        );
        assert_eq!(words(&theirs), "remove_file reload_systemd");
        assert!(
            theirs.residue[0].contains("until it is restarted"),
            "{theirs:?}"
        );
    }

    #[test]
    fn undo_stops_and_disables_before_the_file_goes() {
        let missing = RUNS
            .replace("=loaded", "=not-found")
            .replace("=active", "=inactive")
            .replace("UnitFileState=enabled", "UnitFileState=");
        let before = SystemdUnit
            .assess(
                &unit(),
                &answers(&missing, (1, "folder /etc/systemd/system\n"), ""),
            )
            .before;
        assert!(SystemdUnit.can_read_before(&before));
        let undone = SystemdUnit.undo(&unit(), &before, &answers(RUNS, (0, &there()), ""));
        assert_eq!(words(&undone), "disable stop remove_file reload_systemd");
        let again = SystemdUnit.undo(
            &unit(),
            &before,
            &answers(&missing, (1, "folder /etc/systemd/system\n"), ""),
        );
        assert!(again.is_met() && again.actions.is_empty(), "{again:?}");
        let cut_short = missing
            .replace("=not-found", "=loaded")
            .replace("Reload=no", "Reload=yes");
        let rest = SystemdUnit.undo(
            &unit(),
            &before,
            &answers(&cut_short, (1, "folder /etc/systemd/system\n"), ""),
        );
        assert!(
            !rest.is_met() && words(&rest) == "reload_systemd",
            "{rest:?}"
        );
    }

    #[test]
    fn a_unit_that_is_gone_since_is_not_brought_back() {
        let wish = wish(
            &SystemdUnit,
            json!({ "name": "q.service", "enabled": false, "active": false }),
        );
        let asked = |out: &str| answered(&[(&SystemdUnit.reads(&wish)[0], 0, out)]);
        let before = SystemdUnit.assess(&wish, &asked(RUNS)).before;
        let stopped = RUNS
            .replace("ActiveState=active", "ActiveState=inactive")
            .replace("=enabled", "=disabled");
        assert_eq!(
            words(&SystemdUnit.undo(&wish, &before, &asked(&stopped))),
            "enable start"
        );
        let gone = SystemdUnit.undo(
            &wish,
            &before,
            &asked(
                &stopped
                    .replace("=loaded", "=not-found")
                    .replace("=disabled", "="),
            ),
        );
        assert!(
            gone.is_met()
                && gone.actions.is_empty()
                && gone.residue[0].contains("its unit file is gone since"),
            "{gone:?}"
        );
    }

    #[test]
    fn a_unit_of_which_too_little_is_known_is_not_taken_back() {
        let before = SystemdUnit
            .assess(&unit(), &answers(RUNS, (0, &there()), ""))
            .before;
        let reads = SystemdUnit.reads(&unit());
        let no_bus = answered(&[(&reads[0], 1, ""), (&reads[1], 0, &there())]);
        let odd = RUNS.replace("=enabled", "=bad");
        let odd = answers(&odd, (0, &there()), "");
        let not_recorded = json!({ "unit": null, "files": before["files"] });
        let runs = answers(RUNS, (0, &there()), "");
        for (before, answers) in [(&before, no_bus), (&before, odd), (&not_recorded, runs)] {
            let undo = diff_removal(&SystemdUnit, &unit(), before, &answers);
            assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
        }
    }

    #[test]
    fn a_drop_in_that_came_later_is_taken_back_too() {
        let with = |file: &str| {
            let text = "[Service]\nLimitMEMLOCK=infinity\n";
            wish(
                &SystemdUnit,
                json!({ "name": "q.service", "dropins": { file: text } }),
            )
        };
        let answered = |wish: &DesiredResource, file: (i32, &str)| {
            let reads = SystemdUnit.reads(wish);
            answered(&[(&reads[0], 0, RUNS), (&reads[1], file.0, file.1)])
        };
        let (first, later) = (with("10-a"), with("20-b"));
        let [before, now] = [&first, &later].map(|wish| {
            let absent = (1, "folder /etc/systemd/system\n");
            SystemdUnit.assess(wish, &answered(wish, absent)).before
        });
        let before = SystemdUnit.remembered(&before, &now);
        let there = (0, "644 root root 2 regular file\nx\n");
        let undo = SystemdUnit.undo(&later, &before, &answered(&later, there));
        assert_eq!(words(&undo), "remove_file reload_systemd");
        let paths = ["10-a", "20-b"].map(|f| format!("/etc/systemd/system/q.service.d/{f}.conf"));
        assert!(paths.iter().all(|path| !before["files"][path].is_null()));
    }

    #[test]
    fn a_unit_that_cannot_be_enabled_is_an_error_of_the_body() {
        let errors =
            SystemdUnit.check(&json!({ "name": "q", "content": "[Service]\n", "enabled": true }));
        assert_eq!(
            errors
                .iter()
                .map(|e| e.pointer.as_str())
                .collect::<Vec<_>>(),
            ["/name", "/content"]
        );
    }
}
