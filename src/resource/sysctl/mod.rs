//! `sysctl`: a kernel setting, running below /proc/sys and persisted in a drop-in of our own below
//! /etc/sysctl.d.

pub mod script;
pub mod settings;

use super::file::found::{FileState, build_config_file_action};
use super::json_fields::read_text_field;
use super::names::is_word;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind, rights,
};
use crate::body::{Body, BodyErrors, BodyType, Scalar, read_body};
use railwright_base::Reason;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use settings::{SettingFiles, key_name, key_path, normal_value};

/// The kind.
pub struct Sysctl;

/// The desired state of a setting.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SysctlBody {
    /// For example net.core.rmem_max.
    pub(super) key: String,
    /// One line, for example 1.
    pub(super) value: Scalar,
    rollback_timer: Option<bool>,
}

impl Body for SysctlBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        let path = key_path(&self.key);
        let clean = is_word(&self.key, "._-/:@")
            && path.contains('/')
            && path
                .split('/')
                .all(|part| !part.is_empty() && part != "." && part != "..");
        errors.require(
            clean,
            "/key",
            "this is no kernel setting",
            "write it as net.core.rmem_max",
        );
        let value = &self.value.0;
        errors.require(
            !value.trim().is_empty() && !value.chars().any(|c| c.is_control() && c != '\t'),
            "/value",
            "the value must be one line that is not empty",
            "for example 1",
        );
    }
}

/// The settings with which the kernel sets `accept_redirects` of all netdevs too.
const FORWARDING: [&str; 2] = ["net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"];

/// Our drop-in for a key.
fn drop_in(key: &str) -> String {
    format!(
        "/etc/sysctl.d/90-railwright-{}.conf",
        key_path(key).replace('/', ".")
    )
}

/// The running and the persisted value, with the file that decides the latter.
struct Values {
    running: Reading,
    persisted: Reading,
    files: SettingFiles,
}

impl Values {
    fn unknown(reason: Reason) -> Self {
        Values {
            running: Reading::Unknown(reason.clone()),
            persisted: Reading::Unknown(reason),
            files: SettingFiles::default(),
        }
    }
}

fn decode_sysctl_values(key: &str, answers: &ReadResults) -> Values {
    let key_read = Read::Sysctl {
        key: key.to_owned(),
    };
    let out = match answers.output(&key_read) {
        Ok((0, out)) => out,
        Ok((code, _)) => {
            return Values::unknown(format!("the settings could not be read (exit {code})").into());
        }
        Err(reason) => return Values::unknown(reason),
    };
    let first = out.lines().next().unwrap_or_default();
    let running = match first.strip_prefix("running\t") {
        Some(value) => Reading::is(normal_value(value)),
        None if first == "none" => Reading::Absent,
        None if first.starts_with("denied\t") => {
            Reading::Unknown(rights::describe_denied_access(&first["denied\t".len()..]).into())
        }
        None => Reading::Unknown("the setting cannot be read".into()),
    };
    let files = SettingFiles::decode(out);
    let persisted = files
        .effective(&key_path(key))
        .map_or(Reading::Absent, |effective| Reading::is(effective.value));
    Values {
        running,
        persisted,
        files,
    }
}

/// What is persisted once our drop-in is as it was before us.
fn read_value_after_restore(key: &str, found: &Values, kept: &FileState) -> Reading {
    if matches!(found.persisted, Reading::Unknown(_)) {
        return found.persisted.clone();
    }
    let files = match (kept, kept.text()) {
        (FileState::Absent { .. }, _) => found.files.without(&drop_in(key)),
        (_, Some(text)) => found.files.with(&drop_in(key), text),
        (_, None) => found.files.clone(),
    };
    files
        .effective(&key_path(key))
        .map_or(Reading::Absent, |effective| Reading::is(effective.value))
}

/// What was there before our first change.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorSysctl {
    running: Option<String>,
    persisted: Option<String>,
    drop_in: FileState,
}

impl ResourceKind for Sysctl {
    fn name(&self) -> &'static str {
        "sysctl"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "key").map(key_name)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<SysctlBody>()
    }

    fn needs_rollback_timer(&self, resource: &DesiredResource) -> bool {
        read_body::<SysctlBody>(&resource.body).rollback_timer == Some(true)
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let SysctlBody { key, .. } = read_body(&resource.body);
        let path = drop_in(&key);
        vec![Read::Sysctl { key }, Read::File { path }]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body: SysctlBody = read_body(&resource.body);
        let (key, value) = (body.key.as_str(), normal_value(&body.value.0));
        let (actual, own) = (
            decode_sysctl_values(key, answers),
            FileState::at(&drop_in(key), answers),
        );
        let content =
            format!("# Written by railwright; a change by hand is drift.\n{key} = {value}\n");
        let mut diff = ResourceDiff {
            before: json!({
                "running": actual.running.value(),
                "persisted": actual.persisted.value(),
                "drop_in": own.remember(),
            }),
            ..ResourceDiff::default()
        };
        let desired = Reading::is(value.clone());
        if actual.persisted != desired {
            diff.actions
                .push(build_config_file_action(&drop_in(key), content.clone()));
            let later = actual
                .files
                .with(&drop_in(key), &content)
                .effective(&key_path(key))
                .filter(|e| e.value != value);
            diff.refusal = later.map(|e| {
                format!(
                    "{} sets {key} to {} and is read after our file; change or remove that line \
                     first",
                    e.file, e.value
                )
            });
        }
        if let (Reading::Absent, Some(step)) = (&actual.running, resource.naming()) {
            diff.known_after = Some(step);
            diff.announced = ["set_sysctl", "write_file"].map(str::to_owned).to_vec();
            diff.actions.clear();
        } else if actual.running != desired {
            diff.actions.push(Action::SetSysctl {
                key: key.to_owned(),
                value,
            });
        }
        let attribute = Attribute::in_plane(Plane::Persisted, desired.clone(), actual.persisted)
            .and(Plane::Running, desired, actual.running);
        diff.attributes.insert("value".to_owned(), attribute);
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let key = &read_body::<SysctlBody>(&last_applied.body).key;
        let found = decode_sysctl_values(key, answers);
        let now = FileState::at(&drop_in(key), answers);
        let before = PriorSysctl::deserialize(before).unwrap_or_default();
        let (mut actions, residue) = before.drop_in.restore(&drop_in(key), &now);
        let mut residue: Vec<_> = residue.into_iter().collect();
        // What other files say has moved on without us, and counts once ours is as it was.
        let persisted = read_value_after_restore(key, &found, &before.drop_in);
        let earlier = before.persisted.map(Reading::is);
        let running = if matches!(persisted, Reading::Is(_)) && earlier.as_ref() != Some(&persisted)
        {
            Some(persisted.clone())
        } else {
            before.running.map(Reading::is)
        };
        let desired_running = running.clone().unwrap_or_else(|| found.running.clone());
        match running {
            Some(Reading::Is(Value::String(value))) if found.running != desired_running => {
                actions.push(Action::SetSysctl {
                    key: key.to_owned(),
                    value,
                });
            }
            Some(_) => {}
            None => residue.push(format!(
                "the running value of {key} stays until the next boot: what it was before is not \
                 known"
            )),
        }
        if FORWARDING.contains(&key_path(key).as_str()) && found.running != desired_running {
            residue.push(
                "net.ipv4.conf.all.accept_redirects is set by the kernel together with it: check \
                 its value"
                    .to_owned(),
            );
        }
        let attribute = Attribute::in_plane(Plane::Persisted, persisted, found.persisted).and(
            Plane::Running,
            desired_running,
            found.running,
        );
        ResourceDiff {
            attributes: [("value".to_owned(), attribute)].into(),
            actions,
            residue,
            ..ResourceDiff::default()
        }
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorSysctl::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["kernel_module"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, resource};

    fn diff(out: &str) -> ResourceDiff {
        let resource = resource(
            &Sysctl,
            json!({ "key": "net.core.rmem_max", "value": 16777216 }),
        );
        let reads = Sysctl.reads(&resource);
        Sysctl.diff(
            &resource,
            &answered(&[
                (&reads[0], 0, out),
                (&reads[1], 1, "folder /etc/sysctl.d\n"),
            ]),
        )
    }

    #[test]
    fn a_key_is_one_resource_however_it_is_spelled() {
        for (key, name) in [
            ("net.core.rmem_max", "net.core.rmem_max"),
            ("net/core/rmem_max", "net.core.rmem_max"),
            (
                "net.ipv4.conf.eth0/100.rp_filter",
                "net.ipv4.conf.eth0/100.rp_filter",
            ),
            (
                "net/ipv4/conf/eth0.100/rp_filter",
                "net.ipv4.conf.eth0/100.rp_filter",
            ),
        ] {
            let [named, again] = [key, name].map(|key| Sysctl.address_name(&json!({ "key": key })));
            assert_eq!(
                (named.as_deref(), again.as_deref()),
                (Some(name), Some(name)),
                "{key}"
            );
            assert_eq!(
                (key_path(key), drop_in(key)),
                (key_path(name), drop_in(name)),
                "{key}"
            );
        }
    }

    #[test]
    fn planes_are_compared_apart() {
        let words = |a: &ResourceDiff| a.actions.iter().map(Action::word).collect::<Vec<_>>();
        assert_eq!(
            words(&diff("running\t212992\n")),
            ["write_file", "set_sysctl"]
        );
        let other = "file\t/etc/sysctl.d/50-x.conf\nline\t/etc/sysctl.d/50-x.conf:net.core.rmem_max=16777216\n";
        assert_eq!(
            words(&diff(&format!("running\t212992\n{other}"))),
            ["set_sysctl"]
        );
        assert!(diff(&format!("running\t16777216\n{other}")).is_met());
        assert_eq!(words(&diff("running\t16777216\n")), ["write_file"]);
    }

    #[test]
    fn a_later_file_that_says_otherwise_is_refused_by_name() {
        let late = "running\t212992\n\
                    file\t/etc/sysctl.d/99-sysctl.conf\n\
                    line\t/etc/sysctl.d/99-sysctl.conf:net.core.rmem_max = 4096\n";
        assert!(
            diff(late)
                .refusal
                .unwrap()
                .starts_with("/etc/sysctl.d/99-sysctl.conf sets net.core.rmem_max to 4096")
        );
    }

    #[test]
    fn a_list_of_numbers_is_compared_without_its_tabs() {
        let resource = resource(
            &Sysctl,
            json!({ "key": "net.ipv4.tcp_rmem", "value": "4096 87380  16777216" }),
        );
        let reads = Sysctl.reads(&resource);
        let found = Sysctl.diff(
            &resource,
            &answered(&[
                (&reads[0], 0, "running\t4096 87380 16777216\n"),
                (&reads[1], 1, ""),
            ]),
        );
        assert_eq!(
            found.actions.len(),
            1,
            "only the file is missing: {:?}",
            found.actions
        );
    }

    #[test]
    fn undo_gives_back_the_running_value_and_removes_the_drop_in() {
        let resource = resource(&Sysctl, json!({ "key": "net.core.rmem_max", "value": "2" }));
        let reads = Sysctl.reads(&resource);
        let before = json!({ "running": "1", "persisted": null, "drop_in": { "absent": { "folder": "/etc/sysctl.d" } } });
        let own = drop_in("net.core.rmem_max");
        let now = format!("running\t2\nfile\t{own}\nline\t{own}:net.core.rmem_max = 2\n");
        let undone = Sysctl.undo(
            &resource,
            &before,
            &answered(&[
                (&reads[0], 0, &now),
                (&reads[1], 0, "644 root root 3 regular file\nx\n"),
            ]),
        );
        assert_eq!(
            undone.actions,
            [
                Action::RemoveFile {
                    path: own,
                    below: None
                },
                Action::SetSysctl {
                    key: "net.core.rmem_max".into(),
                    value: "1".into()
                }
            ]
        );
        // Somebody has set it since, in a file that counts once ours is gone.
        let theirs = format!(
            "{now}file\t/etc/sysctl.d/95-admin.conf\n\
             line\t/etc/sysctl.d/95-admin.conf:net.core.rmem_max = 7\n"
        );
        let undone = Sysctl.undo(
            &resource,
            &before,
            &answered(&[
                (&reads[0], 0, &theirs),
                (&reads[1], 0, "644 root root 3 regular file\nx\n"),
            ]),
        );
        assert_eq!(
            undone.actions[1],
            Action::SetSysctl {
                key: "net.core.rmem_max".into(),
                value: "7".into()
            }
        );
        assert_eq!(
            undone.attributes["value"].desired.persisted,
            Some(Reading::is("7"))
        );
        let done = Sysctl.undo(
            &resource,
            &before,
            &answered(&[
                (&reads[0], 0, "running\t1\n"),
                (&reads[1], 1, "folder /etc/sysctl.d\n"),
            ]),
        );
        assert!(done.is_met() && done.actions.is_empty());
        assert!(Sysctl.can_read_before(&diff("running\t1\n").before));
    }
}
