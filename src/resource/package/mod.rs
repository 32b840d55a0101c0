//! `package`: a package of the host's own manager (apt or dnf), by any version or an exact one.
//!
//! Everything of one host goes out as one run of the manager. A package that no repository has
//! *yet* is still planned, because a repository may come in the same run; if it does not, the
//! manager's own refusal is reported.

pub mod apt;
pub mod dnf;
pub mod found;
pub mod release;
pub mod script;

use super::action::{PackageManager, PackageVersion};
use super::json_fields::read_text_field;
use super::names::is_word;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, Presence, read_body};
use found::{FoundPackage, PackageState, UnknownPackage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The kind.
pub struct Package;

/// The desired state of a package.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PackageBody {
    /// One package, without its version.
    name: String,
    /// In the manager's own notation, such as 1.2-3.
    version: Option<String>,
    #[serde(default)]
    state: Presence,
    hold: Option<bool>,
}

impl Body for PackageBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        // apt takes a hyphen at the end for the order to remove (apt-get(8)).
        let is_name = is_word(&self.name, ".+_:-")
            && self.name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !self.name.ends_with('-');
        errors.require(
            is_name,
            "/name",
            "this is no package name",
            "one package, without its version",
        );
        let version = self.version.as_deref();
        errors.require(
            version.is_none_or(|version| is_word(version, ".+_:~^-")),
            "/version",
            "this is no version",
            "the manager's own notation, such as 1.2-3",
        );
        let alone = self.version.is_none() && self.hold != Some(true);
        errors.require(
            self.state == Presence::Present || alone,
            "/state",
            "an absent package has no version and no hold",
            "leave `version` and `hold` out",
        );
    }
}

/// The word under which all package changes of a host go out together.
pub const TRANSACTION: &str = "packages";

fn state_reading(found: &FoundPackage) -> Reading {
    match &found.state {
        PackageState::NotInstalled { .. } => Reading::Absent,
        PackageState::Installed { .. } => Reading::is("installed"),
        PackageState::Broken { how, .. } => Reading::is(how.as_str()),
    }
}

fn version_reading(found: &FoundPackage) -> Reading {
    found.version().map_or(Reading::Absent, Reading::is)
}

fn hold_reading(found: &FoundPackage) -> Reading {
    match found.state {
        PackageState::NotInstalled { .. } => Reading::Absent,
        _ => Reading::is(found.held),
    }
}

fn build_persisted_attribute(desired: Reading, actual: Reading) -> Attribute {
    Attribute::in_plane(Plane::Persisted, desired, actual)
}

fn diff_present(body: &PackageBody, actual: &FoundPackage, diff: &mut ResourceDiff) {
    let (name, version, hold) = (&body.name, body.version.as_deref(), body.hold);
    record_state(Reading::is("installed"), state_reading(actual), diff);
    if let Some(version) = version {
        let there = actual
            .version()
            .filter(|_| actual.is(version))
            .unwrap_or(version);
        diff.attributes.insert(
            "version".to_owned(),
            build_persisted_attribute(Reading::is(there), version_reading(actual)),
        );
    }
    if let Some(hold) = hold {
        diff.attributes.insert(
            "hold".to_owned(),
            build_persisted_attribute(Reading::is(hold), hold_reading(actual)),
        );
    }
    let wrong_version =
        actual.version().is_none() || version.is_some_and(|desired| !actual.is(desired));
    if wrong_version {
        if actual.held && hold.is_none() {
            let there = actual.version().unwrap_or("its version");
            diff.refusal = Some(format!(
                "{name} is held at {there} by somebody else; say `hold: true` or `hold: false` to \
                 decide"
            ));
        }
        if actual.held {
            let release = build_hold_action(actual.manager, name, false);
            diff.actions.push(release);
        }
        let packages = vec![PackageVersion {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        }];
        diff.actions.push(Action::InstallPackages {
            manager: actual.manager,
            packages,
        });
    }
    let held_after = actual.held && !wrong_version;
    if let Some(hold) = hold.filter(|hold| *hold != held_after) {
        let change = build_hold_action(actual.manager, name, hold);
        diff.actions.push(change);
    }
    diff.residue = list_package_residue(actual);
}

fn build_hold_action(manager: PackageManager, name: &str, hold: bool) -> Action {
    Action::HoldPackages {
        manager,
        names: vec![name.to_owned()],
        hold,
    }
}

/// What undoing would leave: what the package made, and what the manager pulled in for it.
fn list_package_residue(found: &FoundPackage) -> Vec<String> {
    let hint = match found.manager {
        PackageManager::Apt => "apt-get autoremove --dry-run",
        PackageManager::Dnf => "dnf autoremove --assumeno",
    };
    match found.state {
        PackageState::NotInstalled { .. } => {
            vec![format!(
                "what it made itself and configuration that was changed stay, and packages that \
                 came as its dependencies; `{hint}` on the host names these"
            )]
        }
        _ => Vec::new(),
    }
}

fn diff_absent(body: &PackageBody, found: &FoundPackage, diff: &mut ResourceDiff) {
    let name = &body.name;
    record_state(Reading::Absent, state_reading(found), diff);
    if state_reading(found) == Reading::Absent {
        return;
    }
    if found.held && body.hold.is_none() {
        diff.refusal = Some(format!(
            "{name} is held at its version; say `hold: false` beside `state: absent` to decide"
        ));
    }
    if found.held {
        let release = build_hold_action(found.manager, name, false);
        diff.actions.push(release);
    }
    if !found.beside.is_empty() {
        let beside = found.beside.join(", ");
        diff.refusal = Some(format!(
            "{name} is installed in several versions ({beside} too), and all of them would go; \
             leave it out of the spec"
        ));
    }
    diff.actions.push(Action::RemovePackages {
        manager: found.manager,
        names: vec![name.to_owned()],
    });
}

fn set_unknown_state(unknown: UnknownPackage, diff: &mut ResourceDiff) {
    let reason = match unknown {
        UnknownPackage::NoManager => {
            let refusal = "neither apt nor dnf keeps the packages of this host";
            diff.refusal = Some(refusal.to_owned());
            refusal.into()
        }
        UnknownPackage::Unread(reason) => reason,
    };
    record_state(Reading::is("installed"), Reading::Unknown(reason), diff);
}

impl ResourceKind for Package {
    fn name(&self) -> &'static str {
        "package"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<PackageBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        vec![Read::Packages {
            names: vec![read_body::<PackageBody>(&resource.body).name],
        }]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body: PackageBody = read_body(&resource.body);
        let mut diff = ResourceDiff {
            transaction: Some(TRANSACTION.to_owned()),
            ..ResourceDiff::default()
        };
        match FoundPackage::of(&body.name, body.version.as_deref(), answers) {
            Err(unknown) => set_unknown_state(unknown, &mut diff),
            Ok(found) => {
                diff.before = serde_json::to_value(&found).unwrap_or_default();
                match body.state {
                    Presence::Absent => diff_absent(&body, &found, &mut diff),
                    Presence::Present => diff_present(&body, &found, &mut diff),
                }
            }
        }
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let name = &read_body::<PackageBody>(&last_applied.body).name;
        let mut diff = ResourceDiff {
            transaction: Some(TRANSACTION.to_owned()),
            ..ResourceDiff::default()
        };
        let earlier = serde_json::from_value::<FoundPackage>(before.clone()).ok();
        let now = match FoundPackage::of(
            name,
            earlier.as_ref().and_then(FoundPackage::version),
            answers,
        ) {
            Ok(now) => now,
            Err(unknown) => {
                set_unknown_state(unknown, &mut diff);
                return diff;
            }
        };
        let Some(earlier) = earlier else {
            diff.residue.push(format!(
                "{name} stays: whether it was there before is not recorded"
            ));
            return diff;
        };
        undo_to(name, &earlier, &now, &mut diff);
        diff
    }

    fn can_read_before(&self, before: &Value) -> bool {
        FoundPackage::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package_repository"]
    }
}

fn undo_to(name: &str, earlier: &FoundPackage, now: &FoundPackage, diff: &mut ResourceDiff) {
    record_state(state_reading(earlier), state_reading(now), diff);
    match &earlier.state {
        PackageState::NotInstalled { .. } if now.left && now.version().is_some() => {
            record_state(state_reading(now), state_reading(now), diff);
            diff.residue.push(format!(
                "{name} stays as a dependency of other packages and goes with them"
            ));
        }
        PackageState::NotInstalled { .. } if !now.beside.is_empty() => {
            record_state(state_reading(now), state_reading(now), diff);
            diff.residue.push(format!(
                "{name} stays: it is installed in several versions, and which of them came with us \
                 is not known"
            ));
        }
        PackageState::NotInstalled { configuration_left }
            if state_reading(now) != Reading::Absent =>
        {
            if now.held {
                let release = build_hold_action(now.manager, name, false);
                diff.actions.push(release);
            }
            diff.actions.push(Action::ReleasePackages {
                manager: now.manager,
                names: vec![name.to_owned()],
                purge: !configuration_left,
            });
            diff.residue = list_package_residue(earlier);
        }
        PackageState::Installed { version } => {
            restore_installed_version(name, version, earlier.held, now, diff);
        }
        // nobody wants a half-configured package back
        _ => record_state(state_reading(now), state_reading(now), diff),
    }
}

fn record_state(desired: Reading, actual: Reading, diff: &mut ResourceDiff) {
    diff.attributes.insert(
        "state".to_owned(),
        build_persisted_attribute(desired, actual),
    );
}

/// Installs the version of before over another one, and holds it where it was held. A version that
/// dnf keeps beside it stays.
fn restore_installed_version(
    name: &str,
    version: &str,
    was_held: bool,
    now: &FoundPackage,
    diff: &mut ResourceDiff,
) {
    diff.attributes.insert(
        "version".to_owned(),
        build_persisted_attribute(Reading::is(version), version_reading(now)),
    );
    diff.attributes.insert(
        "hold".to_owned(),
        build_persisted_attribute(Reading::is(was_held), hold_reading(now)),
    );
    let other = now.version() != Some(version);
    if other && now.held {
        let release = build_hold_action(now.manager, name, false);
        diff.actions.push(release);
    }
    if !other && !now.beside.is_empty() {
        diff.residue.push(format!(
            "{name} {} stays beside it: dnf keeps several versions",
            now.beside.join(", ")
        ));
    }
    if other {
        let packages = vec![PackageVersion {
            name: name.to_owned(),
            version: Some(version.to_owned()),
        }];
        diff.actions.push(Action::InstallPackages {
            manager: now.manager,
            packages,
        });
    }
    if was_held != (now.held && !other) {
        let hold = build_hold_action(now.manager, name, was_held);
        diff.actions.push(hold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, resource};
    use serde_json::json;

    fn diff_from(body: Value, out: &str) -> (ResourceDiff, String) {
        let resource = resource(&Package, body);
        let diff = Package.diff(
            &resource,
            &answered(&[(
                &Package.reads(&resource)[0],
                0,
                &format!("manager\tapt\n{out}"),
            )]),
        );
        let words = diff
            .actions
            .iter()
            .map(Action::word)
            .collect::<Vec<_>>()
            .join(" ");
        (diff, words)
    }

    #[test]
    fn each_state_asks_for_its_own_step() {
        for (body, out, words) in [
            (json!({ "name": "x" }), "", "install_packages"),
            (
                json!({ "name": "x" }),
                "dpkg\trc \tx\t1\n",
                "install_packages",
            ),
            (
                json!({ "name": "x" }),
                "dpkg\tiF \tx\t1\n",
                "install_packages",
            ),
            (json!({ "name": "x" }), "dpkg\tii \tx\t1\n", ""),
            (
                json!({ "name": "x", "version": "2" }),
                "dpkg\tii \tx\t1\n",
                "install_packages",
            ),
            (
                json!({ "name": "x", "version": "2", "hold": true }),
                "dpkg\thi \tx\t1\n",
                "hold_packages install_packages hold_packages",
            ),
            (
                json!({ "name": "x", "hold": true }),
                "dpkg\tii \tx\t1\n",
                "hold_packages",
            ),
            (
                json!({ "name": "x", "hold": false }),
                "dpkg\thi \tx\t1\n",
                "hold_packages",
            ),
            (
                json!({ "name": "x", "state": "absent" }),
                "dpkg\tii \tx\t1\n",
                "remove_packages",
            ),
            (
                json!({ "name": "x", "state": "absent" }),
                "dpkg\trc \tx\t1\n",
                "",
            ),
            (
                json!({ "name": "x", "state": "absent", "hold": false }),
                "dpkg\thi \tx\t1\n",
                "hold_packages remove_packages",
            ),
        ] {
            let (diff, found) = diff_from(body.clone(), out);
            assert_eq!(found, words, "{body} {out:?}");
            assert_eq!(diff.is_met(), words.is_empty(), "{body} {out:?}");
        }
    }

    #[test]
    fn a_hold_of_somebody_else_is_not_broken() {
        let (diff, _) = diff_from(json!({ "name": "x", "version": "2" }), "dpkg\thi \tx\t1\n");
        assert!(diff.refusal.unwrap().contains("x is held at 1"));
        let (diff, _) = diff_from(
            json!({ "name": "x", "state": "absent" }),
            "dpkg\thi \tx\t1\n",
        );
        assert!(
            diff.refusal
                .unwrap()
                .contains("say `hold: false` beside `state: absent`")
        );
    }

    #[test]
    fn a_host_without_a_manager_is_refused_and_an_unread_one_unknown() {
        let resource = resource(&Package, json!({ "name": "x" }));
        let none = Package.diff(
            &resource,
            &answered(&[(&Package.reads(&resource)[0], 0, "manager\tnone\n")]),
        );
        assert!(none.refusal.is_some());
        let unread = Package.diff(&resource, &ReadResults::default());
        assert!(unread.refusal.is_none() && unread.has_unknown());
    }

    #[test]
    fn undo_removes_only_what_we_brought() {
        let resource = resource(&Package, json!({ "name": "x" }));
        let read = Package.reads(&resource).remove(0);
        let undo = |before: &str, now: &str| {
            let answers =
                |out: &str| answered(&[(&read, 0, &format!("manager\tapt\n{out}") as &str)]);
            Package
                .undo(
                    &resource,
                    &Package.diff(&resource, &answers(before)).before,
                    &answers(now),
                )
                .actions
        };
        let manager = PackageManager::Apt;
        let remove = |purge| {
            [Action::ReleasePackages {
                manager,
                names: vec!["x".into()],
                purge,
            }]
        };
        assert_eq!(undo("", "dpkg\tii \tx\t1\n"), remove(true));
        assert_eq!(
            undo("dpkg\trc \tx\t1\n", "dpkg\tii \tx\t1\n"),
            remove(false)
        );
        assert_eq!(undo("dpkg\tii \tx\t1\n", "dpkg\tii \tx\t1\n"), []);
        let packages = vec![PackageVersion {
            name: "x".into(),
            version: Some("1".into()),
        }];
        assert_eq!(
            undo("dpkg\tii \tx\t1\n", "dpkg\tii \tx\t2\n"),
            [Action::InstallPackages { manager, packages }]
        );
    }

    #[test]
    fn a_package_that_was_left_to_others_is_taken_back() {
        let resource = resource(&Package, json!({ "name": "x" }));
        let read = Package.reads(&resource).remove(0);
        let answers = |out: &str| answered(&[(&read, 0, out)]);
        for (manager, there) in [("apt", "dpkg\tii \tx\t1\n"), ("dnf", "rpm\tx\t1-1\n")] {
            let before = Package
                .diff(&resource, &answers(&format!("manager\t{manager}\n")))
                .before;
            for (left, is_done) in [
                ("", false),
                ("left\ty\n", false),
                ("left\tx\n", true),
                ("left\ty\nleft\tx\n", true),
            ] {
                let undo = Package.undo(
                    &resource,
                    &before,
                    &answers(&format!("manager\t{manager}\n{there}{left}")),
                );
                assert_eq!(
                    (undo.is_met(), undo.actions.is_empty()),
                    (is_done, is_done),
                    "{manager} {left:?}"
                );
            }
            // It stays there, and is remembered as what it is to whoever asks for it next.
            let now = answers(&format!("manager\t{manager}\n{there}left\tx\n"));
            let again = Package.diff(&resource, &now);
            assert!(
                again.is_met()
                    && again.before
                        == Package
                            .diff(&resource, &answers(&format!("manager\t{manager}\n{there}")))
                            .before
            );
        }
    }

    #[test]
    fn several_versions_of_a_package_stay_beside_each_other() {
        let answers = |out: &str| {
            answered(&[(
                &Read::Packages {
                    names: vec!["kernel".into()],
                },
                0,
                &format!("manager\tdnf\n{out}"),
            )])
        };
        let (one, two) = (
            answers("rpm\tkernel\t(none):1-1\n"),
            answers("rpm\tkernel\t(none):1-1\nrpm\tkernel\t(none):2-1\n"),
        );
        let desired = resource(&Package, json!({ "name": "kernel", "version": "1-1" }));
        assert!(Package.diff(&desired, &two).is_met());
        for before in [
            Package.diff(&desired, &one).before,
            Package.diff(&desired, &answers("")).before,
        ] {
            assert!(Package.can_read_before(&before));
            let undone = Package.undo(&desired, &before, &two);
            assert!(
                undone.is_met() && undone.residue[0].contains("stays"),
                "{undone:?}"
            );
        }
        let refused = Package
            .diff(
                &resource(&Package, json!({ "name": "kernel", "state": "absent" })),
                &two,
            )
            .refusal
            .unwrap();
        assert!(refused.contains("1-1 too"), "{refused}");
    }

    #[test]
    fn a_package_that_shall_not_be_there_is_not_left_to_others() {
        let (diff, words) = diff_from(
            json!({ "name": "x", "state": "absent" }),
            "dpkg\tii \tx\t1\nleft\tx\n",
        );
        assert_eq!((diff.is_met(), words.as_str()), (false, "remove_packages"));
    }
}
