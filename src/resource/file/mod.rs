//! `file`: a whole file with its content, mode and owner.
//!
//! A different file that is already there is a difference, not an error: it is taken over and kept
//! for undoing. A folder or a link at the path is refused, because replacing it would change more
//! than one file.

pub mod base64;
pub mod found;
pub mod script;
pub mod sealed;

use super::body::{Body, BodyErrors, BodyType, Presence, read_body};
use super::json_fields::read_text_field;
use super::names::{is_clean_path, is_word};
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use found::{FileContent, FileState, Regular, normal_mode, shown_content};
use railwright_base::{Reason, seal, secret};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The kind.
pub struct File;

/// Where railwright keeps its record, lock and running steps on a host: a resource that changed
/// those would break the run that applies it.
pub const OWN_FOLDER: &str = "/var/lib/railwright";

/// The desired state of a file.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileBody {
    path: String,
    content: Option<String>,
    /// Octal digits in quotes, for example "0644".
    mode: Option<String>,
    owner: Option<String>,
    group: Option<String>,
    #[serde(default)]
    state: Presence,
    rollback_timer: Option<bool>,
    /// Put in when a spec is turned into a plan ([`sealed`]).
    #[schemars(skip)]
    sealed: Option<Value>,
    #[schemars(skip)]
    sealed_before: Option<Value>,
}

impl Body for FileBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        for (name, value) in [
            ("sealed", &self.sealed),
            ("sealed_before", &self.sealed_before),
        ] {
            let message = format!("unknown field `{name}`");
            errors.require(
                value.is_none(),
                &format!("/{name}"),
                &message,
                "leave it out",
            );
        }
        self.check_path(errors);
        self.check_rights(errors);
        self.check_content(errors);
    }
}

impl FileBody {
    fn mode(&self) -> String {
        normal_mode(self.mode.as_deref().unwrap_or("0644"))
    }

    fn owner(&self) -> &str {
        self.owner.as_deref().unwrap_or("root")
    }

    fn group(&self) -> &str {
        self.group.as_deref().unwrap_or("root")
    }

    fn check_path(&self, errors: &mut BodyErrors) {
        errors.require(
            is_clean_path(&self.path),
            "/path",
            "the path must be absolute and without `..`",
            "write it as /etc/name.conf",
        );
        errors.require(
            self.path != OWN_FOLDER && !self.path.starts_with(&format!("{OWN_FOLDER}/")),
            "/path",
            "railwright keeps its own record of the host there",
            "choose a path outside of /var/lib/railwright",
        );
    }

    /// Checks mode, owner and group.
    fn check_rights(&self, errors: &mut BodyErrors) {
        let octal = |mode: &String| {
            (3..=5).contains(&mode.len()) && mode.chars().all(|c| ('0'..='7').contains(&c))
        };
        errors.require(
            self.mode.as_ref().is_none_or(octal),
            "/mode",
            "the mode must be octal digits in quotes",
            "for example \"0644\"",
        );
        for (field, name) in [("owner", self.owner()), ("group", self.group())] {
            errors.require(
                is_word(name, "._-"),
                &format!("/{field}"),
                "this is no user or group name",
                "for example root",
            );
        }
    }

    /// Checks that there is a content where there is to be a file, and that it can be written.
    fn check_content(&self, errors: &mut BodyErrors) {
        errors.require(
            self.state == Presence::Absent || self.content.is_some(),
            "",
            "`content` is missing",
            "give the content, or `template`, or `state: absent`",
        );
        let content = self.content.as_deref().unwrap_or_default();
        errors.require(
            secret::list_secret_names(content).is_empty() || self.mode().ends_with('0'),
            "/mode",
            "every user of the host could read the secret in this file",
            "give a mode without rights for others, such as \"0600\" or \"0640\"",
        );
        errors.require(
            !content.contains('\0'),
            "/content",
            "the content holds a NUL byte",
            "only text can be written",
        );
    }
}

/// The file of a resource, ready to be compared.
struct DesiredFile<'a> {
    body: FileBody,
    /// The seal of the content, or why it is not known, where the content holds a secret.
    sealed: Option<Result<&'a str, Reason>>,
}

impl<'a> DesiredFile<'a> {
    fn of(resource: &'a DesiredResource) -> Self {
        DesiredFile {
            body: read_body(&resource.body),
            sealed: sealed::find_desired_seal(resource),
        }
    }

    fn is_present(&self) -> bool {
        self.body.state == Presence::Present
    }

    fn content(&self) -> String {
        self.body.content.clone().unwrap_or_default()
    }

    fn reading(&self, value: String) -> Reading {
        if self.is_present() {
            Reading::is(value)
        } else {
            Reading::Absent
        }
    }

    /// The content as it is compared and shown.
    fn shown(&self) -> String {
        match &self.sealed {
            None => shown_content(&FileContent::Text(self.content())),
            Some(Ok(seal)) => (*seal).to_owned(),
            Some(Err(_)) => seal::VEIL.to_owned(),
        }
    }

    fn attributes(&self, actual: &FileState) -> Vec<(String, Attribute)> {
        let of = |name: &str, desired: String, actual: Reading| {
            (
                name.to_owned(),
                Attribute::in_plane(Plane::Persisted, self.reading(desired), actual),
            )
        };
        let content = actual.content_reading();
        let content = self.sealed.iter().fold(content, |content, desired| {
            sealed::check_seal_comparability(desired, content)
        });
        vec![
            of("content", self.shown(), content),
            of(
                "mode",
                self.body.mode(),
                actual.reading(|file| file.mode.clone()),
            ),
            of(
                "owner",
                format!("{}:{}", self.body.owner(), self.body.group()),
                actual.reading(|file| format!("{}:{}", file.owner, file.group)),
            ),
        ]
    }

    fn actions(&self, found: &FileState) -> Vec<Action> {
        let path = self.body.path.clone();
        match found {
            FileState::Absent { .. } if !self.is_present() => Vec::new(),
            _ if !self.is_present() => vec![Action::RemoveFile { path, below: None }],
            // One of which only mode or owner differ is written anew too: whoever has it open could
            // go on writing.
            _ => vec![Action::WriteFile {
                path,
                content: self.content(),
                mode: self.body.mode(),
                owner: self.body.owner().to_owned(),
                group: self.body.group().to_owned(),
            }],
        }
    }
}

impl ResourceKind for File {
    fn name(&self) -> &'static str {
        "file"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "path").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<FileBody>()
    }

    fn needs_rollback_timer(&self, resource: &DesiredResource) -> bool {
        read_body::<FileBody>(&resource.body).rollback_timer == Some(true)
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        vec![sealed::build_file_read(resource)]
    }

    fn may_hold_secret(&self, pointer: &str) -> bool {
        pointer == "/content"
    }

    fn is_same_resource(&self, applied: &DesiredResource, resource: &DesiredResource) -> bool {
        applied.digest() == resource.digest() || sealed::differ_in_being_sealed(applied, resource)
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let desired = DesiredFile::of(resource);
        let actual = FileState::by(&sealed::build_file_read(resource), answers);
        let mut diff = ResourceDiff {
            before: actual.remember(),
            ..ResourceDiff::default()
        };
        diff.attributes.extend(desired.attributes(&actual));
        if let FileState::Other { what } = &actual {
            diff.refusal = Some(format!(
                "there is a {what} at {}; railwright replaces only regular files",
                desired.body.path
            ));
        } else if let (Some(Err(why)), true) = (&desired.sealed, desired.is_present()) {
            diff.refusal = Some(format!(
                "its content holds a secret that cannot be had now: {why}"
            ));
        } else if !diff.is_met() {
            diff.actions = desired.actions(&actual);
        }
        if let FileState::Regular(Regular {
            content: FileContent::TooLarge { bytes, .. },
            ..
        }) = &actual
        {
            diff.residue.push(format!(
                "the earlier content of {} ({bytes} bytes) is too large to be kept",
                desired.body.path
            ));
        }
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let path = read_body::<FileBody>(&last_applied.body).path;
        let (now, earlier) = (
            FileState::by(&sealed::build_file_read(last_applied), answers),
            FileState::remembered(Some(before)),
        );
        let (actions, residue) = earlier.restore(&path, &now);
        let mut diff = ResourceDiff {
            actions,
            residue: residue.into_iter().collect(),
            ..ResourceDiff::default()
        };
        let desired = sealed::find_earlier_content_seal(last_applied, &earlier)
            .unwrap_or_else(|| earlier.restored_reading(&now));
        let mut readings = vec![("content", desired, now.content_reading())];
        if let (FileState::Regular(file), FileState::Regular(_)) = (&earlier, &now)
            && !matches!(
                file.content,
                FileContent::TooLarge { .. } | FileContent::Sealed(_)
            )
        {
            readings.push((
                "mode",
                Reading::is(file.mode.clone()),
                now.reading(|f| f.mode.clone()),
            ));
            readings.push((
                "owner",
                Reading::is(format!("{}:{}", file.owner, file.group)),
                now.reading(|f| format!("{}:{}", f.owner, f.group)),
            ));
        }
        for (name, desired, actual) in readings {
            let attribute = Attribute::in_plane(Plane::Persisted, desired, actual);
            diff.attributes.insert(name.to_owned(), attribute);
        }
        diff
    }

    fn can_read_before(&self, before: &Value) -> bool {
        FileState::deserialize(before).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, resource};
    use serde_json::json;

    #[test]
    fn a_directory_is_refused_and_another_file_is_taken_over() {
        let resource = resource(&File, json!({ "path": "/etc/a", "content": "new\n" }));
        let read = &File.reads(&resource)[0];
        let refused = File.diff(
            &resource,
            &answered(&[(read, 0, "755 root root 4096 directory\n")]),
        );
        assert!(
            refused.refusal.unwrap().contains("a directory at /etc/a")
                && refused.actions.is_empty()
        );
        let taken = File.diff(
            &resource,
            &answered(&[(read, 0, "600 bob bob 4 regular file\nold\n")]),
        );
        assert_eq!(
            taken.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["write_file"]
        );
        assert!(!taken.is_absent());
        assert_eq!(taken.before["regular"]["content"]["text"], "old\n");
    }

    #[test]
    fn the_mode_alone_needs_no_new_content() {
        let resource = resource(
            &File,
            json!({ "path": "/etc/a", "content": "x\n", "mode": "0600" }),
        );
        let read = &File.reads(&resource)[0];
        let found = File.diff(
            &resource,
            &answered(&[(read, 0, "644 root root 2 regular file\nx\n")]),
        );
        assert_eq!(
            found.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["write_file"]
        );
        assert!(
            File.diff(
                &resource,
                &answered(&[(read, 0, "600 root root 2 regular file\nx\n")])
            )
            .is_met()
        );
    }

    #[test]
    fn what_was_not_answered_is_unknown_and_not_absent() {
        let resource = resource(&File, json!({ "path": "/etc/a", "content": "x\n" }));
        let diff = File.diff(&resource, &ReadResults::default());
        assert!(diff.has_unknown() && !diff.is_absent() && !diff.is_met());
    }

    #[test]
    fn our_own_record_is_declared_by_nobody() {
        let said = |path: &str| {
            File.check(&json!({ "path": path, "content": "x" }))
                .into_iter()
                .map(|e| e.pointer)
                .collect::<Vec<_>>()
        };
        for path in [
            "/var/lib/railwright/record.json",
            "/var/lib/railwright",
            "/var/lib/railwright/run/x",
        ] {
            assert_eq!(said(path), ["/path"], "{path}");
        }
        assert!(said("/var/lib/railwright-tools/x").is_empty());
    }

    #[test]
    fn bodies_that_cannot_be_written_are_named() {
        let said = |body: Value| {
            let errors = File.check(&body).into_iter();
            errors.map(|error| error.pointer).collect::<Vec<_>>()
        };
        assert_eq!(
            said(json!({ "path": "etc/a", "mode": "rw", "owner": "a b", "content": "x" })),
            ["/path", "/mode", "/owner"]
        );
        for field in ["state", "contents", "sealed", "sealed_before"] {
            let mut body = json!({ "path": "/etc/a", "content": "x" });
            body[field] = json!("gone");
            assert_eq!(said(body), [format!("/{field}")]);
        }
        assert_eq!(
            File.check(&json!({ "path": "/etc/a" }))[0].message,
            "`content` is missing"
        );
    }
}
