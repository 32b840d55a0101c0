//! `systemd_unit`: a unit, its file and drop-ins (persisted), whether it starts at boot (next boot) and whether it runs
//! (running). A restart that is owed is no event: it is the difference between when a watched file changed and when the
//! unit became active, and it plans itself until it is done.

pub mod found;
pub mod script;
mod undo;

use super::action::UnitVerb;
use super::assessment::Watch;
use super::body::{Shape, check_fields, demand, error, flag, is_clean_path, is_word, optional, required, texts};
use super::file::found::{Found, put};
use super::{Action, Answers, Assessment, Attribute, BodyError, Disruption, Kind, Plane, Read, Reading, Wish};
use found::{FoundUnit, modified};
use serde_json::{Map, Value, json};

/// The kind.
pub struct SystemdUnit;

const FIELDS: &[super::body::Field] = &[
    required("name", Shape::Text),
    optional("content", Shape::Text),
    optional("dropins", Shape::Map),
    optional("enabled", Shape::Flag),
    optional("active", Shape::Flag),
    optional("masked", Shape::Flag),
    optional("restart_on", Shape::Texts),
    optional("guard", Shape::Flag),
];

const SUFFIXES: [&str; 8] = [".service", ".socket", ".target", ".timer", ".mount", ".path", ".slice", ".automount"];

fn name(wish: &Wish) -> &str {
    wish.text("name").unwrap_or_default()
}

/// The files of ours: attribute, path, content.
fn files(wish: &Wish) -> Vec<(String, String, String)> {
    let unit = name(wish);
    let own = wish.text("content").map(|content| ("content".to_owned(), format!("/etc/systemd/system/{unit}"), content.to_owned()));
    let dropins = wish.body.get("dropins").and_then(Value::as_object);
    let dropins = dropins.into_iter().flatten().filter_map(|(file, content)| {
        let path = format!("/etc/systemd/system/{unit}.d/{}.conf", file.trim_end_matches(".conf"));
        Some((format!("dropin {file}"), path, content.as_str()?.to_owned()))
    });
    own.into_iter().chain(dropins).collect()
}

/// Every path whose change makes a restart owed.
fn watched(wish: &Wish) -> Vec<String> {
    files(wish).into_iter().map(|(_, path, _)| path).chain(texts(&wish.body, "restart_on")).collect()
}

fn verb(wish: &Wish, verb: UnitVerb) -> Action {
    Action::Unit { name: name(wish).to_owned(), verb }
}

/// The state of the unit as far as undoing needs it.
fn remember(unit: &Result<FoundUnit, String>) -> Value {
    match unit {
        Ok(unit) => json!({
            "there": !unit.is_missing(), "masked": unit.is_masked(),
            "enabled": unit.enabled().value().and_then(Value::as_bool), "active": unit.active() == Reading::is(true),
        }),
        Err(_) => Value::Null,
    }
}

/// What is judged of the unit itself, beside its files.
struct Judged<'a> {
    wish: &'a Wish,
    unit: Result<FoundUnit, String>,
    newer: Result<Vec<String>, String>,
}

impl<'a> Judged<'a> {
    fn new(wish: &'a Wish, answers: &Answers) -> Self {
        let unit = FoundUnit::of(name(wish), answers);
        let watched = watched(wish);
        let newer = match &unit {
            _ if watched.is_empty() => Ok(Vec::new()),
            Ok(unit) => modified(&watched, answers).map(|times| {
                let since = unit.active_since_s().unwrap_or(i64::MAX);
                times.into_iter().filter(|(_, time)| *time > since).map(|(path, _)| path).collect()
            }),
            Err(reason) => Err(reason.clone()),
        };
        Judged { wish, unit, newer }
    }

    fn reading(&self, of: impl Fn(&FoundUnit) -> Reading) -> Reading {
        self.unit.as_ref().map_or_else(|reason| Reading::Unknown(reason.clone()), of)
    }

    fn judge(&self, assessment: &mut Assessment) {
        let mut add = |name: &str, plane, wanted: bool, found: Reading| {
            // a unit that is not there is neither enabled nor active nor masked
            let found = if !wanted && found == Reading::Absent { Reading::is(false) } else { found };
            assessment.attributes.insert(name.to_owned(), Attribute::in_plane(plane, Reading::is(wanted), found));
        };
        let body = &self.wish.body;
        if let Some(masked) = flag(body, "masked") {
            add("masked", Plane::NextBoot, masked, self.reading(|unit| Reading::is(unit.is_masked())));
        }
        if let Some(enabled) = flag(body, "enabled") {
            add("enabled", Plane::NextBoot, enabled, self.reading(FoundUnit::enabled));
        }
        if let Some(active) = flag(body, "active") {
            let found = match self.reading(FoundUnit::active) {
                Reading::Is(Value::String(_)) if !active => Reading::is(false),
                found => found,
            };
            add("active", Plane::Running, active, found);
        }
        let loaded = |unit: &FoundUnit| match unit.is_missing() {
            true => Reading::NotApplicable("systemd does not know the unit yet".to_owned()),
            false => Reading::is(!unit.is_stale()),
        };
        add("loaded", Plane::Running, true, self.reading(loaded));
        if flag(body, "active") == Some(true) && !watched(self.wish).is_empty() {
            let found = match &self.newer {
                Ok(newer) if newer.is_empty() => Reading::is(true),
                Ok(newer) => Reading::is(format!("{} changed since it started", newer.join(", "))),
                Err(reason) => Reading::Unknown(reason.clone()),
            };
            add("restarted", Plane::Running, true, found);
        }
    }
}

fn differs(assessment: &Assessment, attribute: &str) -> bool {
    assessment.attributes.get(attribute).is_some_and(|attribute| !attribute.differences().is_empty())
}

/// The verbs that mend what differs, in the order that systemd needs.
fn verbs(wish: &Wish, files_change: bool, unit_runs: bool, assessment: &mut Assessment) {
    if files_change || differs(assessment, "loaded") {
        assessment.actions.push(Action::ReloadSystemd);
        assessment.disruption = Disruption::Reload;
    }
    let wants = |field: &str| flag(&wish.body, field);
    for (attribute, yes, no) in [("masked", UnitVerb::Mask, UnitVerb::Unmask), ("enabled", UnitVerb::Enable, UnitVerb::Disable)] {
        if differs(assessment, attribute) {
            assessment.actions.push(verb(wish, if wants(attribute) == Some(true) { yes } else { no }));
        }
    }
    match wants("active") {
        Some(true) if differs(assessment, "active") => assessment.actions.push(verb(wish, UnitVerb::Start)),
        Some(true) if unit_runs && (files_change || differs(assessment, "restarted")) => {
            assessment.actions.push(verb(wish, UnitVerb::Restart));
            assessment.interrupts.push(format!("{} restarts", name(wish)));
            assessment.disruption = Disruption::Restart;
        }
        Some(false) if differs(assessment, "active") => {
            assessment.actions.push(verb(wish, UnitVerb::Stop));
            assessment.interrupts.push(format!("{} stops", name(wish)));
            assessment.disruption = Disruption::Restart;
        }
        _ => {}
    }
}

fn check_files(body: &Value, errors: &mut Vec<BodyError>) {
    if let Some(content) = body.get("content").and_then(Value::as_str) {
        let install = content.lines().any(|line| line.trim() == "[Install]");
        let wanted = flag(body, "enabled") == Some(true);
        demand(
            errors,
            install || !wanted,
            "/content",
            "the unit is to be enabled but has no [Install] section",
            "add [Install] with WantedBy=",
        );
        demand(errors, flag(body, "masked") != Some(true), "/masked", "a unit with `content` cannot be masked", "leave one of the two out");
    }
    for (file, content) in body.get("dropins").and_then(Value::as_object).into_iter().flatten() {
        let is_alone = !body["dropins"].get(format!("{file}.conf")).is_some_and(Value::is_string);
        demand(errors, is_alone, &format!("/dropins/{file}"), &format!("`{file}.conf` is the same file"), "leave one of the two out");
        let clean = is_word(file, "._-") && content.is_string();
        demand(
            errors,
            clean,
            &format!("/dropins/{file}"),
            "a drop-in is a file name with text",
            "for example 10-memlock: \"[Service]\\nLimitMEMLOCK=infinity\\n\"",
        );
    }
    for path in texts(body, "restart_on") {
        demand(errors, is_clean_path(&path), "/restart_on", "this is no absolute path", "for example /etc/service.conf");
    }
}

impl Kind for SystemdUnit {
    fn name(&self) -> &'static str {
        "systemd_unit"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("name").and_then(Value::as_str).map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut errors = check_fields(body, "", FIELDS);
        if let Some(name) = body.get("name").and_then(Value::as_str) {
            let unit = is_word(name, "._@:\\-") && SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
            demand(&mut errors, unit, "/name", "this is no unit name", "write it with its suffix, such as openibd.service");
        }
        check_files(body, &mut errors);
        let wishes = ["content", "dropins", "enabled", "active", "masked"].iter().any(|field| body.get(*field).is_some());
        if body.is_object() && !wishes {
            errors.push(error("", "nothing is wished of the unit", Some("give `content`, `dropins`, `enabled`, `active` or `masked`")));
        }
        errors
    }

    fn reads(&self, wish: &Wish) -> Vec<Read> {
        let mut reads = vec![Read::Unit { name: name(wish).to_owned() }];
        reads.extend(files(wish).into_iter().map(|(_, path, _)| Read::File { path }));
        let paths = watched(wish);
        if !paths.is_empty() {
            reads.push(Read::Modified { paths });
        }
        reads
    }

    fn assess(&self, wish: &Wish, answers: &Answers) -> Assessment {
        let judged = Judged::new(wish, answers);
        let masked = judged.unit.as_ref().is_ok_and(FoundUnit::is_masked);
        let mut assessment = Assessment::default();
        let mut kept = Map::new();
        for (attribute, path, content) in files(wish) {
            let found = Found::at(&path, answers);
            kept.insert(path.clone(), found.remember());
            // A mask is such a link, and it may be wished away.
            let is_lifted = masked && flag(&wish.body, "masked") == Some(false) && attribute == "content";
            if let (Found::Other { what }, false) = (&found, is_lifted) {
                assessment.refusal = Some(format!(
                    "there is a {what} at {path}; railwright replaces only regular files (take it away, or leave `{attribute}` out)"
                ));
            }
            let (wanted, shown) = (Reading::is(content.as_str()), found.content_reading());
            if wanted != shown {
                assessment.actions.push(put(&path, content));
            }
            assessment.attributes.insert(attribute, Attribute::in_plane(Plane::Persisted, wanted, shown));
        }
        judged.judge(&mut assessment);
        let files_change = !assessment.actions.is_empty();
        let runs = judged.reading(FoundUnit::active) == Reading::is(true);
        verbs(wish, files_change, runs, &mut assessment);
        if masked
            && flag(&wish.body, "masked") != Some(false)
            && assessment.refusal.is_none()
            && (flag(&wish.body, "active") == Some(true) || flag(&wish.body, "enabled") == Some(true))
        {
            assessment.refusal = Some(format!("{} is masked; say `masked: false` to lift that", name(wish)));
        }
        assessment.before = json!({ "unit": remember(&judged.unit), "files": kept });
        let paths = texts(&wish.body, "restart_on");
        if runs && flag(&wish.body, "active") == Some(true) && !paths.is_empty() && assessment.disruption < Disruption::Restart {
            let interrupts = format!("{} restarts", name(wish));
            assessment.watch = Some(Watch { paths, disruption: Disruption::Restart, interrupts });
        }
        assessment
    }

    fn undo(&self, last_applied: &Wish, before: &Value, answers: &Answers) -> Assessment {
        undo::undo(last_applied, before, answers)
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["enabled", "active", "masked"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "file", "kernel_module"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, wish};

    const RUNS: &str = "Type=simple\nRemainAfterExit=no\nResult=success\nLoadState=loaded\nActiveState=active\nSubState=running\n\
        UnitFileState=enabled\nNeedDaemonReload=no\nActiveEnterTimestamp=Thu 1970-01-01 00:16:45 UTC\n";

    fn unit() -> Wish {
        let content = "[Service]\nExecStart=/x\n[Install]\nWantedBy=multi-user.target\n";
        wish(
            &SystemdUnit,
            json!({ "name": "q.service", "content": content, "enabled": true, "active": true, "restart_on": ["/etc/q.conf"] }),
        )
    }

    fn answers(show: &str, file: (i32, &str), times: &str) -> Answers {
        let reads = SystemdUnit.reads(&unit());
        answered(&[(&reads[0], 0, show), (&reads[1], file.0, file.1), (&reads[2], 0, times)])
    }

    fn there() -> String {
        format!("644 root root 50 regular file\n{}", unit().text("content").unwrap())
    }

    fn words(assessment: &Assessment) -> String {
        let word = |action: &Action| match action {
            Action::Unit { verb, .. } => format!("{verb:?}").to_lowercase(),
            other => other.word(),
        };
        assessment.actions.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_restart_is_owed_until_it_has_happened() {
        let file = there();
        let owed = SystemdUnit.assess(&unit(), &answers(RUNS, (0, &file), "900 /etc/systemd/system/q.service\n1006 /etc/q.conf\n"));
        assert_eq!((words(&owed).as_str(), owed.disruption), ("restart", Disruption::Restart));
        let found = owed.attributes["restarted"].found.running.clone();
        assert_eq!(found, Some(Reading::is("/etc/q.conf changed since it started")));
        let paid = RUNS.replace("00:16:45", "00:16:46");
        assert!(SystemdUnit.assess(&unit(), &answers(&paid, (0, &file), "1006 /etc/q.conf\n")).is_met());
    }

    #[test]
    fn each_difference_asks_for_its_verbs() {
        let file = there();
        for (changes, file, actions) in [
            (
                vec![("LoadState=loaded", "LoadState=not-found"), ("UnitFileState=enabled", "UnitFileState=")],
                (1, "folder /etc/systemd/system\n"),
                "write_file reload_systemd enable start",
            ),
            (vec![], (0, "644 root root 2 regular file\nx\n"), "write_file reload_systemd restart"),
            (vec![("Reload=no", "Reload=yes")], (0, file.as_str()), "reload_systemd"),
            (vec![("ActiveState=active", "ActiveState=failed")], (0, &file), "start"),
            (vec![("UnitFileState=enabled", "UnitFileState=disabled")], (0, &file), "enable"),
            (vec![], (0, &file), ""),
        ] {
            let show = changes.iter().fold(RUNS.to_owned(), |text, (from, to)| text.replace(from, to));
            assert_eq!(words(&SystemdUnit.assess(&unit(), &answers(&show, file, ""))), actions, "{changes:?}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_left_alone() {
        let link = (0, "777 root root 9 symbolic link\n");
        let masked = RUNS.replace("LoadState=loaded", "LoadState=masked").replace("UnitFileState=enabled", "UnitFileState=masked");
        for show in [RUNS, &masked] {
            let refused = SystemdUnit.assess(&unit(), &answers(show, link, "")).refusal.unwrap();
            assert!(refused.starts_with("there is a symbolic link at /etc/systemd/system/q.service"), "{refused}");
        }
        let mut body = unit().body.clone();
        body["masked"] = json!(false);
        let lifted = SystemdUnit.assess(&wish(&SystemdUnit, body), &answers(&masked, link, ""));
        assert!(lifted.refusal.is_none() && words(&lifted).starts_with("write_file reload_systemd unmask"), "{lifted:?}");
    }

    #[test]
    fn what_runs_with_a_drop_in_is_restarted_without_it() {
        let undone = |active: bool| {
            let mut body = json!({ "name": "q.service", "dropins": { "a": "[Service]\nLimitMEMLOCK=infinity\n" } });
            body.as_object_mut().unwrap().extend(active.then(|| ("active".to_owned(), json!(true))));
            let wish = wish(&SystemdUnit, body);
            let reads = SystemdUnit.reads(&wish);
            let asked = |file: (i32, &str)| answered(&[(&reads[0], 0, RUNS), (&reads[1], file.0, file.1), (&reads[2], 0, "")]);
            let before = SystemdUnit.assess(&wish, &asked((1, "folder /etc/systemd/system\n"))).before;
            SystemdUnit.undo(&wish, &before, &asked((0, "644 root root 2 regular file\nx\n")))
        };
        let (ours, theirs) = (undone(true), undone(false));
        assert_eq!((words(&ours).as_str(), ours.disruption), ("remove_file reload_systemd restart", Disruption::Restart));
        assert_eq!(words(&theirs), "remove_file reload_systemd");
        assert!(theirs.residue[0].contains("until it is restarted"), "{theirs:?}");
    }

    #[test]
    fn undo_stops_and_disables_before_the_file_goes() {
        let missing =
            RUNS.replace("=loaded", "=not-found").replace("=active", "=inactive").replace("UnitFileState=enabled", "UnitFileState=");
        let before = SystemdUnit.assess(&unit(), &answers(&missing, (1, "folder /etc/systemd/system\n"), "")).before;
        let undone = SystemdUnit.undo(&unit(), &before, &answers(RUNS, (0, &there()), ""));
        assert_eq!(words(&undone), "disable stop remove_file reload_systemd");
        let again = SystemdUnit.undo(&unit(), &before, &answers(&missing, (1, "folder /etc/systemd/system\n"), ""));
        assert!(again.is_met() && again.actions.is_empty(), "{again:?}");
        let cut_short = missing.replace("=not-found", "=loaded").replace("Reload=no", "Reload=yes");
        let rest = SystemdUnit.undo(&unit(), &before, &answers(&cut_short, (1, "folder /etc/systemd/system\n"), ""));
        assert!(!rest.is_met() && words(&rest) == "reload_systemd", "{rest:?}");
    }

    #[test]
    fn a_unit_that_is_gone_since_is_not_brought_back() {
        let wish = wish(&SystemdUnit, json!({ "name": "q.service", "enabled": false, "active": false }));
        let asked = |out: &str| answered(&[(&SystemdUnit.reads(&wish)[0], 0, out)]);
        let before = SystemdUnit.assess(&wish, &asked(RUNS)).before;
        let stopped = RUNS.replace("ActiveState=active", "ActiveState=inactive").replace("=enabled", "=disabled");
        assert_eq!(words(&SystemdUnit.undo(&wish, &before, &asked(&stopped))), "enable start");
        let gone = SystemdUnit.undo(&wish, &before, &asked(&stopped.replace("=loaded", "=not-found").replace("=disabled", "=")));
        assert!(gone.is_met() && gone.actions.is_empty() && gone.residue[0].contains("its unit file is gone since"), "{gone:?}");
    }

    #[test]
    fn a_unit_that_cannot_be_enabled_is_an_error_of_the_body() {
        let errors = SystemdUnit.check(&json!({ "name": "q", "content": "[Service]\n", "enabled": true }));
        assert_eq!(errors.iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(), ["/name", "/content"]);
    }
}
