//! `kernel_module_build`: an out-of-tree kernel module, fetched with proof of what it is, built by
//! DKMS (or plain make) and installed for the running kernel. Loading it is a resource of its own
//! (`kernel_module`).

pub mod script;
pub mod source;

use super::file::found::FileState;
use super::json_fields::read_text_field;
use super::names::is_word;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use railwright_base::{Digest, Reason};
use schemars::JsonSchema;
use script::{record_path, source_folder};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use source::{ModuleBuildTool, SourceBody};

/// The kind.
pub struct KernelModuleBuild;

/// The desired state of a module that is built on the host.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModuleBuildBody {
    name: String,
    version: String,
    /// `git` and `revision`, or `archive` and `sha256`.
    source: SourceBody,
    module: Option<String>,
    dkms: Option<bool>,
    dkms_conf: Option<String>,
}

impl Body for ModuleBuildBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        for (field, word) in [
            ("name", Some(&self.name)),
            ("version", Some(&self.version)),
            ("module", self.module.as_ref()),
        ] {
            errors.require(
                word.is_none_or(|word| is_word(word, "._+-")),
                &format!("/{field}"),
                "this is not one word",
                "letters, digits, `.`, `_`, `+` and `-`",
            );
        }
        self.source.find_errors(errors);
        errors.require(
            self.dkms_conf.is_none() || self.dkms != Some(false),
            "/dkms_conf",
            "`dkms_conf` has no meaning without DKMS",
            "leave it out, or `dkms: true`",
        );
    }
}

/// What was there before our first change.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorModuleBuild {
    tree: bool,
    installed: Option<Value>,
}

struct DesiredModuleBuild {
    name: String,
    version: String,
    module: String,
    builder: ModuleBuildTool,
    source: SourceBody,
    dkms_conf: Option<String>,
    /// Of the source as it is declared.
    digest: String,
}

impl DesiredModuleBuild {
    fn of(resource: &DesiredResource) -> Self {
        let body: ModuleBuildBody = read_body(&resource.body);
        let builder = match body.dkms {
            Some(false) => ModuleBuildTool::Make,
            _ => ModuleBuildTool::Dkms,
        };
        let written = (resource.body.get("source"), resource.body.get("dkms_conf"));
        DesiredModuleBuild {
            module: body.module.unwrap_or_else(|| body.name.clone()),
            name: body.name,
            version: body.version,
            builder,
            source: body.source,
            dkms_conf: body.dkms_conf,
            digest: Digest::of(&written).short().to_owned(),
        }
    }

    fn read(&self) -> Read {
        Read::ModuleBuild {
            name: self.name.clone(),
            version: self.version.clone(),
            module: self.module.clone(),
        }
    }

    fn record(&self) -> Read {
        Read::File {
            path: record_path(&self.name, &self.version),
        }
    }

    fn build(&self) -> Action {
        Action::BuildModule {
            name: self.name.clone(),
            version: self.version.clone(),
            module: self.module.clone(),
            builder: self.builder,
        }
    }

    fn fetch(&self) -> Option<Action> {
        Some(Action::FetchModuleSource {
            name: self.name.clone(),
            version: self.version.clone(),
            source: self.source.to_source()?,
            dkms_conf: self.dkms_conf.clone(),
            digest: self.digest.clone(),
        })
    }

    fn remove(&self, version: &str) -> Action {
        Action::RemoveModuleBuild {
            name: self.name.clone(),
            version: version.to_owned(),
            module: self.module.clone(),
        }
    }
}

/// How a build stands on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FoundBuild {
    kernel: String,
    tree: bool,
    plain: bool,
    dkms: Vec<String>,
    /// DKMS is gone, and what it built is not.
    lacks_dkms: bool,
    /// Our own records: the file, and the name of the module where it stands there.
    records: Vec<(String, String)>,
}

fn decode_build_state(
    desired: &DesiredModuleBuild,
    answers: &ReadResults,
) -> Result<FoundBuild, Reason> {
    let (_, out) = answers.output(&desired.read())?;
    let mut kernel = None;
    let mut actual = FoundBuild::default();
    for line in out.lines() {
        match line.split_once('\t') {
            Some(("kernel", release)) => kernel = kernel.or(Some(release)),
            Some(("dkms", status)) => actual.dkms.push(status.to_owned()),
            Some(("record", record)) => {
                let (file, name) = record.split_once('\t').unwrap_or((record, ""));
                actual.records.push((file.to_owned(), name.to_owned()));
            }
            Some(_) => {}
            None => {
                actual.tree |= line == "tree";
                actual.plain |= line == "plain";
                actual.lacks_dkms |= line == "no_dkms";
            }
        }
    }
    let kernel = kernel.ok_or("the kernel was not answered")?;
    actual.kernel = kernel.to_owned();
    Ok(actual)
}

/// DKMS's word for a version and kernel. Two notations: `name/version, kernel, arch: installed`
/// (3.x) and `name, version, kernel, arch: installed` (2.8); `(original_module exists)` and
/// warnings may follow.
fn dkms_state(lines: &[String], name: &str, version: &str, kernel: &str) -> Option<String> {
    let mut best: Option<String> = None;
    for line in lines {
        let Some((place, state)) = line.split_once(": ") else {
            continue;
        };
        let place = normalize_dkms_place(place, name, version);
        let fields: Vec<&str> = place.split(", ").collect();
        let state = state
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned();
        match fields[..] {
            [which, its_kernel, ..]
                if which == format!("{name}/{version}") && its_kernel == kernel =>
            {
                return Some(state);
            }
            [which] if which == format!("{name}/{version}") => best = Some(state),
            _ => {}
        }
    }
    best
}

fn normalize_dkms_place(place: &str, name: &str, version: &str) -> String {
    let (earlier, later) = (format!("{name}, {version}"), format!("{name}/{version}"));
    place.replacen(&earlier, &later, 1)
}

/// Versions of ours besides the desired one: our record of it names the module, or is an earlier
/// one without a name, and DKMS knows that version.
fn list_other_versions(desired: &DesiredModuleBuild, actual: &FoundBuild) -> Vec<String> {
    let name = &desired.name;
    let is_in_dkms = |version: &str| {
        actual.dkms.iter().any(|line| {
            let line = normalize_dkms_place(line, name, version);
            line.split([',', ':']).next() == Some(&format!("{name}/{version}"))
        })
    };
    let mut versions = Vec::new();
    for (file, owner) in &actual.records {
        let version = file
            .strip_prefix(&format!("{name}-"))
            .and_then(|rest| rest.strip_suffix(".railwright"));
        let Some(version) = version.filter(|version| is_word(version, "._+-")) else {
            continue;
        };
        let is_ours = owner == name || (owner.is_empty() && is_in_dkms(version));
        if is_ours && version != desired.version {
            versions.push(version.to_owned());
        }
    }
    versions
}

fn installed_reading(desired: &DesiredModuleBuild, actual: &FoundBuild) -> Reading {
    match desired.builder {
        ModuleBuildTool::Make if actual.plain => Reading::is("installed"),
        ModuleBuildTool::Make => Reading::Absent,
        ModuleBuildTool::Dkms => dkms_state(
            &actual.dkms,
            &desired.name,
            &desired.version,
            &actual.kernel,
        )
        .map_or(Reading::Absent, Reading::is),
    }
}

fn source_reading(record: &FileState, found: &FoundBuild) -> Reading {
    match record {
        FileState::Unknown { reason } => Reading::Unknown(reason.clone()),
        _ if !found.tree => Reading::Absent,
        _ => {
            let digest = record
                .text()
                .and_then(|text| text.lines().find_map(|line| line.strip_prefix("source ")));
            Reading::is(digest.unwrap_or("not from railwright"))
        }
    }
}

fn diff_module_build(
    desired: &DesiredModuleBuild,
    to: [Reading; 2],
    build: &Result<FoundBuild, Reason>,
    record: &FileState,
    diff: &mut ResourceDiff,
) {
    let readings = match build {
        Ok(actual) => [
            source_reading(record, actual),
            installed_reading(desired, actual),
        ],
        Err(reason) => [
            Reading::Unknown(reason.clone()),
            Reading::Unknown(reason.clone()),
        ],
    };
    for ((name, desired), actual) in ["source", "installed"].into_iter().zip(to).zip(readings) {
        let attribute = Attribute::in_plane(Plane::Persisted, desired, actual);
        diff.attributes.insert(name.to_owned(), attribute);
    }
}

/// Another version of ours stays beside it until the resource leaves the spec: other kernels may
/// have that one alone, and a build that fails leaves it.
fn plan_build_actions(desired: &DesiredModuleBuild, diff: &mut ResourceDiff) {
    let [source, installed] =
        ["source", "installed"].map(|name| !diff.attributes[name].differences().is_empty());
    if source {
        diff.actions.extend(desired.fetch());
    }
    if source || installed {
        diff.actions.push(desired.build());
        let module = super::kernel_module::found::normal_name(&desired.module);
        diff.disturbs = vec![format!("kernel_module/{module}")];
    }
}

impl ResourceKind for KernelModuleBuild {
    fn name(&self) -> &'static str {
        "kernel_module_build"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<ModuleBuildBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let desired = DesiredModuleBuild::of(resource);
        vec![desired.record(), desired.read()]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let desired = DesiredModuleBuild::of(resource);
        let (record, build) = (
            FileState::at(&record_path(&desired.name, &desired.version), answers),
            decode_build_state(&desired, answers),
        );
        let mut diff = ResourceDiff::default();
        diff_module_build(
            &desired,
            [
                Reading::is(desired.digest.as_str()),
                Reading::is("installed"),
            ],
            &build,
            &record,
            &mut diff,
        );
        plan_build_actions(&desired, &mut diff);
        if let Ok(actual) = &build {
            let strange = actual.tree && matches!(record, FileState::Absent { .. });
            diff.refusal = strange.then(|| {
                let folder = source_folder(&desired.name, &desired.version);
                format!(
                    "{folder} is there and did not come from railwright; remove it (and `dkms \
                     remove` it), or declare another version"
                )
            });
            let before = PriorModuleBuild {
                tree: actual.tree,
                installed: installed_reading(&desired, actual).value().cloned(),
            };
            diff.before = serde_json::to_value(before).unwrap_or_default();
        }
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let desired = DesiredModuleBuild::of(last_applied);
        let (record, build) = (
            FileState::at(&record_path(&desired.name, &desired.version), answers),
            decode_build_state(&desired, answers),
        );
        let mut diff = ResourceDiff::default();
        if PriorModuleBuild::deserialize(before).map_or(true, |prior| prior.tree) {
            let folder = source_folder(&desired.name, &desired.version);
            diff.residue.push(format!(
                "{folder} and its module stay: something was there before us and was not kept"
            ));
            return diff;
        }
        if build.as_ref().is_ok_and(|actual| actual.lacks_dkms) {
            let reason = "DKMS is gone, and what it built is not".into();
            return ResourceDiff::unknown_undo(Plane::Persisted, before, reason);
        }
        diff_module_build(
            &desired,
            [Reading::Absent, Reading::Absent],
            &build,
            &record,
            &mut diff,
        );
        let mut names = ["source", "installed"].iter();
        if names.any(|name| !diff.attributes[*name].differences().is_empty()) {
            diff.actions.push(desired.remove(&desired.version));
        }
        let others = build
            .iter()
            .flat_map(|actual| list_other_versions(&desired, actual));
        for version in others {
            let actual = Reading::is(source_folder(&desired.name, &version));
            let attribute = Attribute::in_plane(Plane::Persisted, Reading::Absent, actual);
            let name = format!("version {version}");
            diff.attributes.insert(name, attribute);
            diff.actions.push(desired.remove(&version));
        }
        diff
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorModuleBuild::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "file"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, resource};
    use serde_json::json;

    #[test]
    fn reads_both_notations_of_dkms() {
        // dkms 3.0.10 (Debian 12), 2.8.1 (Ubuntu 20.04), with the remarks that may follow
        for (line, state) in [
            (
                "nv_peer_mem/1.3, 6.1.0-37-amd64, x86_64: installed",
                Some("installed"),
            ),
            (
                "nv_peer_mem, 1.3, 6.1.0-37-amd64, x86_64: installed",
                Some("installed"),
            ),
            (
                "nv_peer_mem/1.3, 6.1.0-37-amd64, x86_64: installed (original_module exists)",
                Some("installed"),
            ),
            (
                "nv_peer_mem/1.3, 6.1.0-37-amd64, x86_64: built",
                Some("built"),
            ),
            ("nv_peer_mem/1.3, 5.10.0-1-amd64, x86_64: installed", None),
            ("nv_peer_mem/1.3: added", Some("added")),
            ("nv_peer_mem/1.2, 6.1.0-37-amd64, x86_64: installed", None),
        ] {
            assert_eq!(
                dkms_state(&[line.to_owned()], "nv_peer_mem", "1.3", "6.1.0-37-amd64").as_deref(),
                state,
                "{line}"
            );
        }
    }

    fn body() -> Value {
        json!({ "name": "nv_peer_mem", "version": "1.0", "source": { "git": "https://example.org/nv.git", "revision": "1.0-9" } })
    }

    #[test]
    fn an_installed_module_of_another_kernel_is_built_again() {
        let resource = resource(&KernelModuleBuild, body());
        let reads = KernelModuleBuild.reads(&resource);
        let record = format!(
            "644 root root 50 regular file\nsource {}\ncommit 1234\n",
            DesiredModuleBuild::of(&resource).digest
        );
        let status = |kernel: &str| {
            format!("kernel\t6.1\ntree\ndkms\tnv_peer_mem/1.0, {kernel}, x86_64: installed\n")
        };
        let diff = |status: &str| {
            KernelModuleBuild.diff(
                &resource,
                &answered(&[(&reads[0], 0, &record), (&reads[1], 0, status)]),
            )
        };
        assert!(diff(&status("6.1")).is_met());
        let other = diff(&status("5.10"));
        assert_eq!(
            other.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["build_module"]
        );
        assert!(KernelModuleBuild.can_read_before(&other.before));
    }

    #[test]
    fn another_version_of_ours_stays_with_the_change_and_goes_with_the_undo() {
        let removals = |dkms: bool, records: &str| {
            let mut body = body();
            body["version"] = json!("2.0");
            body["dkms"] = json!(dkms);
            let resource = resource(&KernelModuleBuild, body);
            let reads = KernelModuleBuild.reads(&resource);
            let digest = DesiredModuleBuild::of(&resource).digest;
            let record = format!("644 root root 50 regular file\nsource {digest}\n");
            let state = format!(
                "kernel\t6.1\ntree\nplain\n\
                 dkms\tnv_peer_mem/2.0, 6.1, x86_64: installed\n\
                 dkms\tnv_peer_mem/1.0, 5.10, x86_64: installed\n{records}"
            );
            let answers = answered(&[(&reads[0], 0, &record), (&reads[1], 0, &state)]);
            let before = json!({ "tree": false, "installed": null });
            [
                KernelModuleBuild.diff(&resource, &answers),
                KernelModuleBuild.undo(&resource, &before, &answers),
            ]
            .map(|diff| {
                let words = diff.actions.iter().map(|action| match action {
                    Action::RemoveModuleBuild { version, .. } => format!("remove {version}"),
                    other => other.word(),
                });
                words.collect::<Vec<_>>().join(", ")
            })
        };
        let own = "record\tnv_peer_mem-2.0.railwright\tnv_peer_mem\n";
        let with = |records: &str| format!("{own}{records}");
        for (dkms, records, undo) in [
            (true, "", "remove 2.0"),
            // Of a version of railwright that wrote no name: by what DKMS knows.
            (
                true,
                "record\tnv_peer_mem-1.0.railwright\t\n",
                "remove 2.0, remove 1.0",
            ),
            (
                true,
                "record\tnv_peer_mem-0.9.railwright\tnv_peer_mem\n",
                "remove 2.0, remove 0.9",
            ),
            (
                false,
                "record\tnv_peer_mem-1.0.railwright\tnv_peer_mem\n",
                "remove 2.0, remove 1.0",
            ),
            // The version 1.0 of a module `nv_peer_mem-x`, and one that nobody knows.
            (
                true,
                "record\tnv_peer_mem-x-1.0.railwright\tnv_peer_mem-x\n\
                 record\tnv_peer_mem-0.8.railwright\t\n",
                "remove 2.0",
            ),
        ] {
            assert_eq!(
                removals(dkms, &with(records)),
                ["", undo],
                "{dkms} {records}"
            );
        }
    }

    #[test]
    fn what_dkms_built_is_not_taken_back_without_it() {
        let resource = resource(&KernelModuleBuild, body());
        let reads = KernelModuleBuild.reads(&resource);
        let answers = answered(&[
            (&reads[0], 1, "folder /usr/src\n"),
            (&reads[1], 0, "kernel\t6.1\nno_dkms\n"),
        ]);
        let before = json!({ "tree": false, "installed": null });
        let undo = KernelModuleBuild.undo(&resource, &before, &answers);
        assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
    }

    #[test]
    fn a_source_of_somebody_else_is_not_overwritten() {
        let resource = resource(&KernelModuleBuild, body());
        let reads = KernelModuleBuild.reads(&resource);
        let found = KernelModuleBuild.diff(
            &resource,
            &answered(&[
                (&reads[0], 1, "folder /usr/src\n"),
                (&reads[1], 0, "kernel\t6.1\ntree\n"),
            ]),
        );
        assert!(
            found
                .refusal
                .unwrap()
                .starts_with("/usr/src/nv_peer_mem-1.0 is there")
        );
    }

    #[test]
    fn a_source_without_proof_is_an_error() {
        let with = |source: Value| {
            KernelModuleBuild.check(&json!({ "name": "a", "version": "1", "source": source }))
        };
        assert_eq!(
            with(json!({ "archive": "https://h/a.tar.gz" }))[0].message,
            "`sha256` is missing"
        );
        assert_eq!(with(json!({ "archive": "a.tar", "sha256": "12" })).len(), 2);
        assert_eq!(with(json!({}))[0].pointer, "/source");
        assert!(with(json!({ "git": "--upload-pack=x", "revision": "-x" })).len() == 2);
    }
}
