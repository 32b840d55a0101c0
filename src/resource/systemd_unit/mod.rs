//! `systemd_unit`: a unit, its file and drop-ins (persisted), whether it starts at boot (next boot)
//! and whether it runs (running). A restart that is owed is no event: it is the difference between
//! when a watched file changed and when the unit became active, and it plans itself until it is
//! done.

mod body;
pub mod found;
mod refusal;
pub mod script;
mod undo;

use super::action::UnitVerb;
use super::assessment::WatchedFiles;
use super::file::found::{FileState, build_config_file_action};
use super::json_fields::read_text_field;
use super::merged_before::merge_before_values;
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
            "masked": unit.is_masked_for_good(),
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
            let wanted = || Reading::is(masked);
            let [running, next_boot] = [FoundUnit::is_masked, FoundUnit::is_masked_for_good]
                .map(|is_masked| self.reading(|unit| Reading::is(is_masked(unit))));
            assessment.attributes.insert(
                "masked".to_owned(),
                Attribute::in_plane(Plane::Running, wanted(), running).and(
                    Plane::NextBoot,
                    wanted(),
                    next_boot,
                ),
            );
        }
        if let Some(enabled) = body.enabled {
            let content = body.content.as_deref();
            let found = self.reading(|unit| unit.enabled_by(content));
            insert_flag(assessment, "enabled", Plane::NextBoot, enabled, found);
        }
        if let Some(active) = body.active {
            let found = self.reading(|unit| match unit.is_missing() {
                false if !active => Reading::is(unit.is_running()),
                _ => unit.active(),
            });
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
    let enabled = assessment.attributes.get("enabled");
    let enabled_elsewhere = enabled.is_some_and(|enabled| {
        let found = enabled.found.get(Plane::NextBoot);
        matches!(found, Some(Reading::Is(Value::String(_))))
    });
    for (attribute, desired, yes, no) in [
        (
            "masked",
            body.masked,
            &[UnitVerb::Mask][..],
            // Below a mask for good there may be one of /run.
            &[UnitVerb::Unmask, UnitVerb::UnmaskRuntime][..],
        ),
        (
            "enabled",
            body.enabled,
            // Links of an earlier [Install] go first.
            match enabled_elsewhere {
                true => &[UnitVerb::Disable, UnitVerb::Enable],
                false => &[UnitVerb::Enable],
            },
            &[UnitVerb::Disable],
        ),
    ] {
        if has_attribute_difference(assessment, attribute) {
            let verbs = if desired == Some(true) { yes } else { no };
            let actions = verbs.iter().map(|verb| body.build_action(*verb));
            assessment.actions.extend(actions);
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
        if let Ok(unit) = &judged.unit {
            let refusal = refusal::find_unit_refusal(&body, unit, &assessment, files_change);
            assessment.refusal = refusal;
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

    fn unsteady(
        &self,
        wish: &DesiredResource,
        answers: &ReadResults,
    ) -> Option<(&'static str, Reading)> {
        let unit = FoundUnit::of(wish.text("name")?, answers).ok()?;
        Some(("active", unit.unsteady()?))
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

    /// What a host says of q.service, where some lines are others than while it runs.
    fn said(changes: &[(&str, &str)]) -> String {
        changes.iter().fold(RUNS.to_owned(), |text, (line, other)| {
            assert!(text.contains(line), "{line}");
            text.replace(line, other)
        })
    }

    /// The assessment of a wish without files, by what a host says of q.service.
    fn assess_state(body: &Value, show: &str) -> (Assessment, DesiredResource, ReadResults) {
        let mut body = body.clone();
        body["name"] = json!("q.service");
        let wish = wish(&SystemdUnit, body);
        let answers = answered(&[(&SystemdUnit.reads(&wish)[0], 0, show)]);
        (SystemdUnit.assess(&wish, &answers), wish, answers)
    }

    #[test]
    fn an_alias_of_another_unit_is_refused_and_not_rolled_back() {
        let off = json!({ "enabled": false, "active": false });
        let alias = format!("{RUNS}Id=real.service\n");
        for (show, is_refused) in [
            (RUNS, false),
            (&format!("{RUNS}Id=q.service\n"), false),
            (&alias, true),
        ] {
            let (assessment, ..) = assess_state(&off, show);
            let refusal = assessment.refusal.as_deref();
            let words = "q.service is another name of real.service on this host: give that as \
                         `name`";
            assert_eq!(refusal, is_refused.then_some(words), "{show}");
        }
        let before = assess_state(&off, RUNS).0.before;
        let (_, wish, as_before) = assess_state(&off, &alias);
        let undo = diff_removal(&SystemdUnit, &wish, &before, &as_before);
        assert!(undo.is_met() && undo.actions.is_empty(), "{undo:?}");
        let (_, wish, disabled) = assess_state(&off, &alias.replace("=enabled", "=disabled"));
        let undo = diff_removal(&SystemdUnit, &wish, &before, &disabled);
        assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
    }

    #[test]
    fn a_unit_is_enabled_where_its_file_says_once_the_links_are_there() {
        let content = "[Unit]\nWantedBy=no\n[Install]\nWantedBy = a.target b%i.target\n\
                       RequiredBy=c.target\n";
        let both = Reading::is(true);
        for (links, found) in [
            ("", both.clone()),
            (
                "Links= a.target.wants c.target.requires d.target.wants\n",
                both,
            ),
            (
                "Links= c.target.requires\n",
                Reading::is("not in a.target.wants"),
            ),
            ("Links=\n", Reading::is("not in a.target.wants")),
        ] {
            let name = "q.service".to_owned();
            let answers = answered(&[(&Read::Unit { name }, 0, &format!("{RUNS}{links}"))]);
            let unit = FoundUnit::of("q.service", &answers).unwrap();
            assert_eq!(unit.enabled_by(Some(content)), found, "{links}");
            assert_eq!(unit.enabled_by(None), Reading::is(true));
        }
        let body = json!({ "name": "q.service", "content": content, "enabled": true });
        let wish = wish(&SystemdUnit, body);
        let show = format!("{RUNS}Links= old.target.wants\n");
        let file = format!("644 root root 9 regular file\n{content}");
        let [unit, own, times] = <[Read; 3]>::try_from(SystemdUnit.reads(&wish)).unwrap();
        let answers = answered(&[(&unit, 0, &show), (&own, 0, &file), (&times, 0, "")]);
        let assessment = SystemdUnit.assess(&wish, &answers);
        assert_eq!(words(&assessment), "disable enable", "{assessment:?}");
    }

    /// `systemctl disable` takes every link to a unit file away.
    #[test]
    fn a_unit_that_is_a_link_to_a_file_elsewhere_keeps_its_link() {
        let link_to = |file: &str, state: &str| {
            let state = format!("UnitFileState={state}");
            said(&[("UnitFileState=enabled", &state)]) + &format!("LinkTo={file}\n")
        };
        let linked = link_to("/opt/app/q.service", "linked");
        let elsewhere = link_to("/opt/app/q.service", "enabled");
        for (wished, show, is_refused) in [
            (true, &linked, true),
            (false, &linked, false),
            (true, &elsewhere, false),
            (false, &elsewhere, true),
            (
                false,
                &link_to("/usr/lib/systemd/system/q.service", "enabled"),
                false,
            ),
            (true, &link_to("/dev/null", "disabled"), false),
        ] {
            let (assessment, ..) = assess_state(&json!({ "enabled": wished }), show);
            assert_eq!(assessment.refusal.is_some(), is_refused, "{wished} {show}");
        }
        let before = assess_state(&json!({ "enabled": true }), &linked).0.before;
        let (_, wish, answers) = assess_state(&json!({ "enabled": true }), &elsewhere);
        let undo = SystemdUnit.undo(&wish, &before, &answers);
        assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
    }

    /// By systemd 252: `Result` and the time of the exit stay after `stop`, as long as something
    /// keeps the unit loaded.
    #[test]
    fn a_oneshot_that_has_run_is_stopped_and_is_not_taken_back() {
        let fresh = said(&[("simple", "oneshot"), ("=active", "=inactive")]);
        let exited = "ExecMainExitTimestamp=Thu 1970-01-01 00:16:44 UTC\n";
        let has_run = format!("{fresh}{exited}");
        let runs = fresh.replace("=inactive", "=activating");
        let (on, off) = (json!({ "active": true }), json!({ "active": false }));
        let before = [&fresh, &has_run].map(|show| assess_state(&on, show).0.before);
        for (show, met, undone) in [
            (&fresh, [false, true], ["", ""]),
            (&has_run, [true, true], ["", ""]),
            (&runs, [false, false], ["stop", ""]),
        ] {
            let (is_on, wish, answers) = assess_state(&on, show);
            let (is_off, ..) = assess_state(&off, show);
            assert_eq!([is_on.is_met(), is_off.is_met()], met, "{show}");
            let undo = |before| SystemdUnit.undo(&wish, before, &answers);
            let actions = [undo(&before[0]), undo(&before[1])].map(|undo| words(&undo));
            assert_eq!(actions, undone, "{show}");
        }
    }

    #[test]
    fn a_oneshot_whose_run_systemd_forgets_is_refused() {
        let let_go = said(&[("simple", "oneshot"), ("=active", "=inactive")]) + "InMemory=no\n";
        let missing = let_go
            .replace("=loaded", "=not-found")
            .replace("Type=oneshot", "Type=");
        let content = |more: &str| format!("[Service]\nType=oneshot\nExecStart=/x\n{more}");
        let ran = format!("{let_go}ExecMainExitTimestamp=Thu 1970-01-01 00:16:44 UTC\n");
        let remains = json!({ "a": "[Service]\nRemainAfterExit = yes\n" });
        for (body, show, is_refused) in [
            (json!({ "active": true }), &let_go, true),
            (json!({ "active": true, "enabled": false }), &let_go, true),
            (json!({ "active": true, "enabled": true }), &let_go, false),
            (json!({ "active": false }), &let_go, false),
            (
                json!({ "active": true }),
                &let_go.replace("=no\n", "=yes\n"),
                false,
            ),
            (
                json!({ "active": true }),
                &let_go.replace("InMemory", "x"),
                false,
            ),
            (json!({ "active": true }), &ran, false),
            (json!({ "active": true }), &missing, false),
            (
                json!({ "active": true, "content": content("") }),
                &missing,
                true,
            ),
            (
                json!({ "active": true, "content": "[Service]\nExecStart=/x\n" }),
                &let_go,
                false,
            ),
            (
                json!({ "active": true, "content": content("RemainAfterExit=yes\n") }),
                &missing,
                false,
            ),
            (
                json!({ "active": true, "dropins": remains }),
                &let_go,
                false,
            ),
        ] {
            let mut body = body;
            body["name"] = json!("q.service");
            let wish = wish(&SystemdUnit, body);
            let answers: Vec<(Read, i32, &str)> = SystemdUnit
                .reads(&wish)
                .into_iter()
                .map(|read| match read {
                    Read::Unit { .. } => (read, 0, show.as_str()),
                    Read::File { .. } => (read, 1, "folder /etc/systemd/system\n"),
                    _ => (read, 0, ""),
                })
                .collect();
            let answers: Vec<_> = answers
                .iter()
                .map(|(r, code, out)| (r, *code, *out))
                .collect();
            let refusal = SystemdUnit.assess(&wish, &answered(&answers)).refusal;
            let words = "systemd forgets that q.service has run";
            let is_so = refusal.is_some_and(|refusal| refusal.starts_with(words));
            assert_eq!(is_so, is_refused, "{}\n{show}", wish.body);
        }
    }

    #[test]
    fn a_mask_that_the_next_boot_loses_is_none_there() {
        let mask = |state: &str| {
            let state = format!("UnitFileState={state}");
            said(&[
                ("LoadState=loaded", "LoadState=masked"),
                ("UnitFileState=enabled", &state),
            ])
        };
        let (runtime, for_good) = (mask("masked-runtime"), mask("masked"));
        let wanted = format!("{runtime}WantedBy=multi-user.target\n");
        let in_etc = format!("{RUNS}FragmentPath=/etc/systemd/system/q.service\n");
        let mask_and_disable = json!({ "masked": true, "enabled": false });
        for (body, show, actions, is_refused) in [
            (json!({ "masked": true }), RUNS, "mask", false),
            (json!({ "masked": true }), &runtime, "mask", false),
            (json!({ "masked": true }), &for_good, "", false),
            (json!({ "masked": true }), &in_etc, "mask", true),
            (json!({ "masked": false }), RUNS, "", false),
            (
                json!({ "masked": false }),
                &runtime,
                "unmask unmaskruntime",
                false,
            ),
            (
                json!({ "masked": false }),
                &for_good,
                "unmask unmaskruntime",
                false,
            ),
            (json!({ "enabled": false }), &runtime, "", false),
            (json!({ "enabled": false }), &wanted, "disable", true),
            (mask_and_disable, &wanted, "mask disable", false),
        ] {
            let (assessment, ..) = assess_state(&body, show);
            assert_eq!(words(&assessment), actions, "{body} {show}");
            assert_eq!(assessment.refusal.is_some(), is_refused, "{body} {show}");
        }
        let (assessment, wish, as_before) = assess_state(&json!({ "masked": true }), &runtime);
        assert!(assessment.differs_in(Plane::NextBoot) && !assessment.differs_in(Plane::Running));
        let before = assessment.before;
        assert!(SystemdUnit.undo(&wish, &before, &as_before).is_met());
        // What was there before us stays: the mask in /run.
        let (_, wish, masked) = assess_state(&json!({ "masked": true }), &for_good);
        let undo = SystemdUnit.undo(&wish, &before, &masked);
        assert_eq!(words(&undo), "unmask");
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
