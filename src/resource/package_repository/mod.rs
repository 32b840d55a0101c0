//! `package_repository`: a signed repository of packages for apt or dnf. Persisted: the files that
//! name it and its key. Running: its package lists have been fetched, so that a failed refresh
//! shows up in the next plan by itself.

pub mod script;

use super::action::PackageManager;
use super::file::found::{FileState, build_config_file_action};
use super::json_fields::read_text_field;
use super::names::is_word;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kind.
pub struct PackageRepository;

/// The file that names one of our repositories to apt.
pub fn apt_sources_path(name: &str) -> String {
    format!("/etc/apt/sources.list.d/railwright-{name}.sources")
}

/// A public key as apt and dnf take it, and no other sort of key.
pub fn is_armoured_key(text: &str) -> bool {
    text.trim()
        .starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----")
        && text.trim().ends_with("-----END PGP PUBLIC KEY BLOCK-----")
}

/// A declared repository.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RepositoryBody {
    name: String,
    manager: PackageManager,
    /// https://host/path, http://host/path or file:/path.
    url: String,
    /// The armoured public key that signs it: `gpg --armor --export KEY`.
    key: String,
    suite: Option<String>,
    #[serde(default)]
    components: Vec<String>,
    #[serde(default)]
    architectures: Vec<String>,
    priority: Option<u64>,
}

impl Body for RepositoryBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            is_word(&self.name, "_-"),
            "/name",
            "the name becomes a file name: letters, digits, `-` and `_`",
            "for example rdma",
        );
        self.check_url(errors);
        errors.require(
            is_armoured_key(&self.key),
            "/key",
            "this is no armoured public key",
            "`gpg --armor --export KEY`; unsigned repositories are refused",
        );
        for (pointer, words) in [
            ("/suite", self.suite.as_slice()),
            ("/components", &self.components),
            ("/architectures", &self.architectures),
        ] {
            errors.require(
                words.iter().all(|word| is_word(word, "._/-")),
                pointer,
                "this is not one word",
                "letters, digits, `.`, `-` and `/`",
            );
        }
        let is_flat = self.suite().ends_with('/');
        errors.require(
            self.manager == PackageManager::Dnf || is_flat == self.components.is_empty(),
            "/components",
            "a suite needs components, a flat repository (suite `./`) has none",
            "for example suite: stable, components: [main]",
        );
    }
}

impl RepositoryBody {
    fn check_url(&self, errors: &mut BodyErrors) {
        let known = ["https://", "http://", "file:/"]
            .iter()
            .any(|scheme| self.url.starts_with(scheme));
        let clean = !self
            .url
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || "\"'`\\[]".contains(c));
        errors.require(
            known && clean,
            "/url",
            "this is no URL of a repository",
            "https://host/path, http://host/path or file:/path",
        );
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or_default();
        errors.require(
            !host.contains('@'),
            "/url",
            "the URL carries a user name or password",
            "put credentials into /etc/apt/auth.conf.d by a secret reference",
        );
    }

    fn suite(&self) -> &str {
        self.suite.as_deref().unwrap_or("./")
    }

    fn key(&self) -> String {
        format!("{}\n", self.key.trim())
    }

    /// Each file by the attribute that stands for it: path, and the desired content (none: must not
    /// be there).
    fn files(&self) -> Vec<(&'static str, String, Option<String>)> {
        let name = &self.name;
        match self.manager {
            PackageManager::Apt => {
                let key = format!("/etc/apt/keyrings/railwright-{name}.asc");
                let pin = format!("/etc/apt/preferences.d/railwright-{name}.pref");
                vec![
                    ("key", key.clone(), Some(self.key())),
                    ("pin", pin, self.priority.map(|priority| self.pin(priority))),
                    ("source", apt_sources_path(name), Some(self.deb822(&key))),
                ]
            }
            PackageManager::Dnf => {
                let key = format!("/etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-{name}");
                let source = self.dnf_source(&key);
                vec![
                    ("key", key, Some(self.key())),
                    (
                        "source",
                        format!("/etc/yum.repos.d/railwright-{name}.repo"),
                        Some(source),
                    ),
                ]
            }
        }
    }

    fn deb822(&self, key: &str) -> String {
        let (components, architectures) = (&self.components, &self.architectures);
        let mut out = format!(
            "# Written by railwright; a change by hand is drift.\n\
             Types: deb\n\
             URIs: {}\n\
             Suites: {}\n",
            self.url,
            self.suite()
        );
        if !components.is_empty() {
            out.push_str(&format!("Components: {}\n", components.join(" ")));
        }
        if !architectures.is_empty() {
            out.push_str(&format!("Architectures: {}\n", architectures.join(" ")));
        }
        out.push_str(&format!("Signed-By: {key}\n"));
        out
    }

    /// By origin, which is the host name of the URL, as apt_preferences(5) has it; a `file:` source
    /// has the empty one.
    fn pin(&self, priority: u64) -> String {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest
            .split('/')
            .next()
            .unwrap_or_default()
            .rsplit('@')
            .next()
            .unwrap_or_default()
            .split(':')
            .next()
            .unwrap_or_default();
        format!("Package: *\nPin: origin \"{host}\"\nPin-Priority: {priority}\n")
    }

    fn dnf_source(&self, key: &str) -> String {
        let priority = self
            .priority
            .map(|priority| format!("priority={priority}\n"))
            .unwrap_or_default();
        format!(
            "# Written by railwright; a change by hand is drift.\n\
             [railwright-{name}]\n\
             name=railwright-{name}\n\
             baseurl={url}\n\
             enabled=1\n\
             gpgcheck=1\n\
             gpgkey=file://{key}\n\
             {priority}",
            name = self.name,
            url = self.url,
        )
    }

    fn lists(&self) -> Read {
        Read::RepositoryLists {
            manager: self.manager,
            name: self.name.clone(),
            url: self.url.clone(),
            suite: self.suite().to_owned(),
        }
    }

    fn refresh(&self) -> Action {
        Action::RefreshPackages {
            manager: self.manager,
            repository: Some(self.name.clone()),
        }
    }

    fn forget(&self) -> Action {
        Action::ForgetPackageLists {
            manager: self.manager,
            name: self.name.clone(),
            url: self.url.clone(),
            suite: self.suite().to_owned(),
        }
    }
}

/// What the host answers of the lists where it does not have the declared package manager.
const NO_MANAGER: &str = "no manager";

fn has_no_manager(desired: &RepositoryBody, answers: &ReadResults) -> bool {
    matches!(answers.output(&desired.lists()), Ok((0, out)) if out.trim() == NO_MANAGER)
}

fn lists_reading(desired: &RepositoryBody, answers: &ReadResults) -> Reading {
    match answers.output(&desired.lists()) {
        Ok((0, out)) if out.trim() == "fetched" => Reading::is("fetched"),
        Ok((0, out)) if out.trim() == "absent" => Reading::Absent,
        Ok((0, out)) if out.trim() == NO_MANAGER => Reading::Unknown(
            format!("{} is not on this host", desired_word(desired.manager)).into(),
        ),
        Ok((code, _)) => {
            Reading::Unknown(format!("the package lists could not be read (exit {code})").into())
        }
        Err(reason) => Reading::Unknown(reason),
    }
}

fn desired_word(manager: PackageManager) -> &'static str {
    match manager {
        PackageManager::Apt => "apt",
        PackageManager::Dnf => "dnf",
    }
}

impl ResourceKind for PackageRepository {
    fn name(&self) -> &'static str {
        "package_repository"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<RepositoryBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let desired = read_body::<RepositoryBody>(&resource.body);
        let mut reads: Vec<_> = desired
            .files()
            .into_iter()
            .map(|(_, path, _)| Read::File { path })
            .collect();
        reads.push(desired.lists());
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let desired = read_body::<RepositoryBody>(&resource.body);
        let mut diff = ResourceDiff::default();
        let mut before = Map::new();
        for (name, path, content) in desired.files() {
            let actual = FileState::at(&path, answers);
            before.insert(path.clone(), actual.remember());
            let reading = content.clone().map_or(Reading::Absent, Reading::is);
            if let FileState::Other { what } = &actual {
                diff.refusal = Some(format!(
                    "there is a {what} at {path}; railwright replaces only regular files"
                ));
            }
            let shown = actual.content_reading();
            if shown != reading {
                diff.actions.push(content.map_or_else(
                    || Action::RemoveFile {
                        path: path.clone(),
                        below: None,
                    },
                    |content| build_config_file_action(&path, content),
                ));
            }
            diff.attributes.insert(
                name.to_owned(),
                Attribute::in_plane(Plane::Persisted, reading, shown),
            );
        }
        let lists = lists_reading(&desired, answers);
        if lists != Reading::is("fetched") || !diff.actions.is_empty() {
            diff.actions.push(desired.refresh());
        }
        if has_no_manager(&desired, answers) {
            diff.refusal = Some(format!(
                "{} does not keep the packages of this host",
                desired_word(desired.manager)
            ));
        }
        diff.attributes.insert(
            "lists".to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is("fetched"), lists),
        );
        diff.before = Value::Object(before);
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let desired = read_body::<RepositoryBody>(&last_applied.body);
        let mut diff = ResourceDiff::default();
        // the source goes first, so that no moment has a source without its key
        for (name, path, _) in desired.files().into_iter().rev() {
            let (earlier, now) = (
                FileState::remembered(before.get(&path)),
                FileState::at(&path, answers),
            );
            let (actions, residue) = earlier.restore(&path, &now);
            diff.actions.extend(actions);
            diff.residue.extend(residue);
            let attribute = Attribute::in_plane(
                Plane::Persisted,
                earlier.restored_reading(&now),
                now.content_reading(),
            );
            diff.attributes.insert(name.to_owned(), attribute);
        }
        let brought = desired.files().iter().any(|(name, path, _)| {
            *name == "source"
                && matches!(
                    FileState::remembered(before.get(path)),
                    FileState::Absent { .. }
                )
        });
        let lists = lists_reading(&desired, answers);
        if brought {
            if lists == Reading::is("fetched") {
                diff.actions.push(desired.forget());
            }
            diff.attributes.insert(
                "lists".to_owned(),
                Attribute::in_plane(Plane::Running, Reading::Absent, lists),
            );
        }
        if desired.manager == PackageManager::Dnf && !diff.actions.is_empty() {
            let name = &desired.name;
            diff.residue.push(format!(
                "the key of {name} stays in rpm's own database; `rpm -qa gpg-pubkey` shows it"
            ));
        }
        diff
    }

    fn can_read_before(&self, before: &Value) -> bool {
        BTreeMap::<String, FileState>::deserialize(before).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::resource;
    use serde_json::json;

    const KEY: &str =
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----";

    #[test]
    fn an_unsigned_or_leaky_repository_is_refused() {
        let body = |url: &str, key: &str| json!({ "name": "a", "manager": "apt", "url": url, "suite": "stable", "components": ["main"], "key": key });
        assert!(
            PackageRepository
                .check(&body("https://h/deb", KEY))
                .is_empty()
        );
        assert_eq!(
            PackageRepository.check(&body("https://h/deb", "none"))[0].pointer,
            "/key"
        );
        assert_eq!(
            PackageRepository.check(&body("ftp://h/deb", KEY))[0].pointer,
            "/url"
        );
        assert!(
            PackageRepository.check(&body("https://u:p@h/deb", KEY))[0]
                .message
                .contains("password")
        );
        let unsigned = json!({ "name": "a", "manager": "dnf", "url": "https://h/rpm" });
        assert_eq!(
            PackageRepository.check(&unsigned)[0].message,
            "`key` is missing"
        );
    }

    #[test]
    fn the_files_are_what_the_managers_read() {
        let apt = resource(
            &PackageRepository,
            json!({
                "name": "lab", "manager": "apt", "url": "http://10.0.2.2:8000/deb", "suite": "stable", "components": ["main"], "key": KEY, "priority": 700,
            }),
        );
        let files: Vec<_> = read_body::<RepositoryBody>(&apt.body)
            .files()
            .into_iter()
            .skip(1)
            .map(|(_, path, content)| (path, content.unwrap()))
            .collect();
        let (pin, sources) = (&files[0], &files[1]);
        assert_eq!(pin.0, "/etc/apt/preferences.d/railwright-lab.pref");
        assert_eq!(
            pin.1,
            "Package: *\nPin: origin \"10.0.2.2\"\nPin-Priority: 700\n"
        );
        assert_eq!(sources.0, "/etc/apt/sources.list.d/railwright-lab.sources");
        let lines = "Types: deb\n\
                     URIs: http://10.0.2.2:8000/deb\n\
                     Suites: stable\n\
                     Components: main\n\
                     Signed-By: /etc/apt/keyrings/railwright-lab.asc\n";
        assert_eq!(sources.1.split_once('\n').unwrap().1, lines);
    }
}
