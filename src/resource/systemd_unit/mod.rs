//! `systemd_unit`: a unit, its file and drop-ins (persisted), whether it starts at boot (next boot)
//! and whether it runs (running). A restart that is owed is no event: it is the difference between
//! when a watched file changed and when the unit became active, and it plans itself until it is
//! done.

pub mod found;
pub mod script;
mod undo;

use super::action::UnitVerb;
use super::assessment::WatchedFiles;
use super::body::{
    FieldShape, check_fields, is_clean_path, is_word, new_body_error, new_optional_field,
    new_required_field, read_flag_field, read_text_field, read_text_list_field, require_condition,
};
use super::file::found::{FileState, build_config_file_action};
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Disruption, Plane, Read,
    ReadResults, Reading, ResourceKind,
};
use found::{FoundUnit, decode_modification_times};
use railwright_base::Reason;
use serde_json::{Map, Value, json};

/// The kind.
pub struct SystemdUnit;

const FIELDS: &[super::body::BodyField] = &[
    new_required_field("name", FieldShape::Text),
    new_optional_field("content", FieldShape::Text),
    new_optional_field("dropins", FieldShape::Map),
    new_optional_field("enabled", FieldShape::Flag),
    new_optional_field("active", FieldShape::Flag),
    new_optional_field("masked", FieldShape::Flag),
    new_optional_field("restart_on", FieldShape::Texts),
    new_optional_field("guard", FieldShape::Flag),
];

const SUFFIXES: [&str; 8] = [
    ".service",
    ".socket",
    ".target",
    ".timer",
    ".mount",
    ".path",
    ".slice",
    ".automount",
];

fn extract_unit_name(wish: &DesiredResource) -> &str {
    wish.text("name").unwrap_or_default()
}

/// The files of ours: attribute, path, content.
fn list_unit_files(wish: &DesiredResource) -> Vec<(String, String, String)> {
    let unit = extract_unit_name(wish);
    let own = wish.text("content").map(|content| {
        (
            "content".to_owned(),
            format!("/etc/systemd/system/{unit}"),
            content.to_owned(),
        )
    });
    let dropins = wish.body.get("dropins").and_then(Value::as_object);
    let dropins = dropins.into_iter().flatten().filter_map(|(file, content)| {
        let path = format!(
            "/etc/systemd/system/{unit}.d/{}.conf",
            file.trim_end_matches(".conf")
        );
        Some((format!("dropin {file}"), path, content.as_str()?.to_owned()))
    });
    own.into_iter().chain(dropins).collect()
}

/// Every path whose change makes a restart owed.
fn list_restart_triggers(wish: &DesiredResource) -> Vec<String> {
    list_unit_files(wish)
        .into_iter()
        .map(|(_, path, _)| path)
        .chain(read_text_list_field(&wish.body, "restart_on"))
        .collect()
}

fn new_unit_action(wish: &DesiredResource, verb: UnitVerb) -> Action {
    Action::Unit {
        name: extract_unit_name(wish).to_owned(),
        verb,
    }
}

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
    wish: &'a DesiredResource,
    unit: Result<FoundUnit, Reason>,
    newer: Result<Vec<String>, Reason>,
}

impl<'a> UnitComparison<'a> {
    fn new(wish: &'a DesiredResource, answers: &ReadResults) -> Self {
        let unit = FoundUnit::of(extract_unit_name(wish), answers);
        let watched = list_restart_triggers(wish);
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
        UnitComparison { wish, unit, newer }
    }

    fn reading(&self, of: impl Fn(&FoundUnit) -> Reading) -> Reading {
        match &self.unit {
            Ok(unit) => of(unit),
            Err(reason) => Reading::Unknown(reason.clone()),
        }
    }

    fn diff(&self, assessment: &mut Assessment) {
        let body = &self.wish.body;
        if let Some(masked) = read_flag_field(body, "masked") {
            let found = self.reading(|unit| Reading::is(unit.is_masked()));
            insert_flag(assessment, "masked", Plane::NextBoot, masked, found);
        }
        if let Some(enabled) = read_flag_field(body, "enabled") {
            let found = self.reading(FoundUnit::enabled);
            insert_flag(assessment, "enabled", Plane::NextBoot, enabled, found);
        }
        let active = read_flag_field(body, "active");
        if let Some(active) = active {
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
        if active == Some(true) && !list_restart_triggers(self.wish).is_empty() {
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
    wish: &DesiredResource,
    files_change: bool,
    unit_runs: bool,
    assessment: &mut Assessment,
) {
    if files_change || has_attribute_difference(assessment, "loaded") {
        assessment.actions.push(Action::ReloadSystemd);
        assessment.disruption = Disruption::Reload;
    }
    for (attribute, yes, no) in [
        ("masked", UnitVerb::Mask, UnitVerb::Unmask),
        ("enabled", UnitVerb::Enable, UnitVerb::Disable),
    ] {
        if has_attribute_difference(assessment, attribute) {
            let is_desired = read_flag_field(&wish.body, attribute) == Some(true);
            let verb = if is_desired { yes } else { no };
            assessment.actions.push(new_unit_action(wish, verb));
        }
    }
    let active_differs = has_attribute_difference(assessment, "active");
    let (verb, interrupts) = match read_flag_field(&wish.body, "active") {
        Some(true) if active_differs => (UnitVerb::Start, None),
        Some(true)
            if unit_runs && (files_change || has_attribute_difference(assessment, "restarted")) =>
        {
            (UnitVerb::Restart, Some("restarts"))
        }
        Some(false) if active_differs => (UnitVerb::Stop, Some("stops")),
        _ => return,
    };
    assessment.actions.push(new_unit_action(wish, verb));
    if let Some(interrupts) = interrupts {
        assessment
            .interrupts
            .push(format!("{} {interrupts}", extract_unit_name(wish)));
        assessment.disruption = Disruption::Restart;
    }
}

fn check_files(body: &Value, errors: &mut Vec<BodyError>) {
    if let Some(content) = read_text_field(body, "content") {
        let install = content.lines().any(|line| line.trim() == "[Install]");
        let wanted = read_flag_field(body, "enabled") == Some(true);
        require_condition(
            errors,
            install || !wanted,
            "/content",
            "the unit is to be enabled but has no [Install] section",
            "add [Install] with WantedBy=",
        );
        require_condition(
            errors,
            read_flag_field(body, "masked") != Some(true),
            "/masked",
            "a unit with `content` cannot be masked",
            "leave one of the two out",
        );
    }
    for (file, content) in body
        .get("dropins")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let is_alone = !body["dropins"]
            .get(format!("{file}.conf"))
            .is_some_and(Value::is_string);
        require_condition(
            errors,
            is_alone,
            &format!("/dropins/{file}"),
            &format!("`{file}.conf` is the same file"),
            "leave one of the two out",
        );
        let clean = is_word(file, "._-") && content.is_string();
        require_condition(
            errors,
            clean,
            &format!("/dropins/{file}"),
            "a drop-in is a file name with text",
            "for example 10-memlock: \"[Service]\\nLimitMEMLOCK=infinity\\n\"",
        );
    }
    for path in read_text_list_field(body, "restart_on") {
        require_condition(
            errors,
            is_clean_path(&path),
            "/restart_on",
            "this is no absolute path",
            "for example /etc/service.conf",
        );
    }
}

impl ResourceKind for SystemdUnit {
    fn name(&self) -> &'static str {
        "systemd_unit"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut errors = check_fields(body, "", FIELDS);
        if let Some(name) = read_text_field(body, "name") {
            let unit =
                is_word(name, "._@:\\-") && SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
            require_condition(
                &mut errors,
                unit,
                "/name",
                "this is no unit name",
                "write it with its suffix, such as openibd.service",
            );
        }
        check_files(body, &mut errors);
        let wishes = ["content", "dropins", "enabled", "active", "masked"]
            .iter()
            .any(|field| body.get(*field).is_some());
        if body.is_object() && !wishes {
            errors.push(new_body_error(
                "",
                "nothing is wished of the unit",
                Some("give `content`, `dropins`, `enabled`, `active` or `masked`"),
            ));
        }
        errors
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let mut reads = vec![Read::Unit {
            name: extract_unit_name(wish).to_owned(),
        }];
        reads.extend(
            list_unit_files(wish)
                .into_iter()
                .map(|(_, path, _)| Read::File { path }),
        );
        let paths = list_restart_triggers(wish);
        if !paths.is_empty() {
            reads.push(Read::Modified { paths });
        }
        reads
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let judged = UnitComparison::new(wish, answers);
        let masked = judged.unit.as_ref().is_ok_and(FoundUnit::is_masked);
        let mut assessment = Assessment::default();
        let mut kept = Map::new();
        for (attribute, path, content) in list_unit_files(wish) {
            let found = FileState::at(&path, answers);
            kept.insert(path.clone(), found.remember());
            // A mask is such a link, and it may be wished away.
            let is_lifted = masked
                && read_flag_field(&wish.body, "masked") == Some(false)
                && attribute == "content";
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
        plan_unit_actions(wish, files_change, runs, &mut assessment);
        if masked
            && read_flag_field(&wish.body, "masked") != Some(false)
            && assessment.refusal.is_none()
            && (read_flag_field(&wish.body, "active") == Some(true)
                || read_flag_field(&wish.body, "enabled") == Some(true))
        {
            assessment.refusal = Some(format!(
                "{} is masked; say `masked: false` to lift that",
                extract_unit_name(wish)
            ));
        }
        assessment.before = json!({ "unit": build_unit_snapshot(&judged.unit), "files": kept });
        let paths = read_text_list_field(&wish.body, "restart_on");
        if runs
            && read_flag_field(&wish.body, "active") == Some(true)
            && !paths.is_empty()
            && assessment.disruption < Disruption::Restart
        {
            let interrupts = format!("{} restarts", extract_unit_name(wish));
            assessment.watch = Some(WatchedFiles {
                paths,
                disruption: Disruption::Restart,
                interrupts,
            });
        }
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        undo::plan_systemd_unit_undo(last_applied, before, answers)
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
