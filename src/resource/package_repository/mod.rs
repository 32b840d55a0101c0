//! `package_repository`: a signed repository of packages for apt or dnf. Persisted: the files that
//! name it and its key. Running: its package lists have been fetched, so that a failed refresh
//! shows up in the next plan by itself.

pub mod script;

use super::action::PackageManager;
use super::body::{
    FieldShape, check_fields, is_word, new_body_error, new_optional_field, new_required_field,
    read_text_field, read_text_list_field, require_condition,
};
use super::file::found::{FileState, build_config_file_action};
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Plane, Read, ReadResults, Reading,
    ResourceKind,
};
use serde_json::{Map, Value};

/// The kind.
pub struct PackageRepository;

const FIELDS: &[super::body::BodyField] = &[
    new_required_field("name", FieldShape::Text),
    new_required_field("manager", FieldShape::Text),
    new_required_field("url", FieldShape::Text),
    new_required_field("key", FieldShape::Text),
    new_optional_field("suite", FieldShape::Text),
    new_optional_field("components", FieldShape::Texts),
    new_optional_field("architectures", FieldShape::Texts),
    new_optional_field("priority", FieldShape::Number),
];

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

/// A repository as it is wished.
struct DesiredRepository<'a> {
    name: &'a str,
    manager: PackageManager,
    url: &'a str,
    suite: &'a str,
    body: &'a Value,
}

impl<'a> DesiredRepository<'a> {
    fn of(wish: &'a DesiredResource) -> Self {
        let manager = if wish.text("manager") == Some("dnf") {
            PackageManager::Dnf
        } else {
            PackageManager::Apt
        };
        DesiredRepository {
            name: wish.text("name").unwrap_or_default(),
            manager,
            url: wish.text("url").unwrap_or_default(),
            suite: wish.text("suite").unwrap_or("./"),
            body: &wish.body,
        }
    }

    fn priority(&self) -> Option<u64> {
        self.body.get("priority").and_then(Value::as_u64)
    }

    fn key(&self) -> String {
        format!(
            "{}\n",
            read_text_field(self.body, "key").unwrap_or_default().trim()
        )
    }

    /// Each file by the attribute that stands for it: path, and the content that is wanted (none:
    /// must not be there).
    fn files(&self) -> Vec<(&'static str, String, Option<String>)> {
        let name = self.name;
        match self.manager {
            PackageManager::Apt => {
                let key = format!("/etc/apt/keyrings/railwright-{name}.asc");
                let pin = format!("/etc/apt/preferences.d/railwright-{name}.pref");
                vec![
                    ("key", key.clone(), Some(self.key())),
                    (
                        "pin",
                        pin,
                        self.priority().map(|priority| self.pin(priority)),
                    ),
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
        let (components, architectures) = (
            read_text_list_field(self.body, "components"),
            read_text_list_field(self.body, "architectures"),
        );
        let mut out = format!(
            "# Written by railwright; a change by hand is drift.\n\
             Types: deb\n\
             URIs: {}\n\
             Suites: {}\n",
            self.url, self.suite
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
            .priority()
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
            name: self.name.to_owned(),
            url: self.url.to_owned(),
            suite: self.suite.to_owned(),
        }
    }

    fn refresh(&self) -> Action {
        Action::RefreshPackages {
            manager: self.manager,
            repository: Some(self.name.to_owned()),
        }
    }

    fn forget(&self) -> Action {
        Action::ForgetPackageLists {
            manager: self.manager,
            name: self.name.to_owned(),
            url: self.url.to_owned(),
            suite: self.suite.to_owned(),
        }
    }
}

/// What the host answers of the lists where it does not have the wish's package manager.
const NO_MANAGER: &str = "no manager";

fn has_no_manager(wanted: &DesiredRepository, answers: &ReadResults) -> bool {
    matches!(answers.output(&wanted.lists()), Ok((0, out)) if out.trim() == NO_MANAGER)
}

fn lists_reading(wanted: &DesiredRepository, answers: &ReadResults) -> Reading {
    match answers.output(&wanted.lists()) {
        Ok((0, out)) if out.trim() == "fetched" => Reading::is("fetched"),
        Ok((0, out)) if out.trim() == "absent" => Reading::Absent,
        Ok((0, out)) if out.trim() == NO_MANAGER => {
            Reading::Unknown(format!("{} is not on this host", wanted_word(wanted.manager)).into())
        }
        Ok((code, _)) => {
            Reading::Unknown(format!("the package lists could not be read (exit {code})").into())
        }
        Err(reason) => Reading::Unknown(reason),
    }
}

fn wanted_word(manager: PackageManager) -> &'static str {
    match manager {
        PackageManager::Apt => "apt",
        PackageManager::Dnf => "dnf",
    }
}

fn check_url(text: &str, errors: &mut Vec<BodyError>) {
    let known = ["https://", "http://", "file:/"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let clean = !text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || "\"'`\\[]".contains(c));
    require_condition(
        errors,
        known && clean,
        "/url",
        "this is no URL of a repository",
        "https://host/path, http://host/path or file:/path",
    );
    let bare = !text.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
    });
    require_condition(
        errors,
        bare,
        "/url",
        "the URL carries a user name or password",
        "put credentials into /etc/apt/auth.conf.d by a secret reference",
    );
}

fn check_words(pointer: &str, values: &[String], errors: &mut Vec<BodyError>) {
    for value in values {
        require_condition(
            errors,
            is_word(value, "._/-"),
            pointer,
            "this is not one word",
            "letters, digits, `.`, `-` and `/`",
        );
    }
}

impl ResourceKind for PackageRepository {
    fn name(&self) -> &'static str {
        "package_repository"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut errors = check_fields(body, "", FIELDS);
        if let Some(name) = read_text_field(body, "name") {
            require_condition(
                &mut errors,
                is_word(name, "_-"),
                "/name",
                "the name becomes a file name: letters, digits, `-` and `_`",
                "for example rdma",
            );
        }
        if let Some(url) = read_text_field(body, "url") {
            check_url(url, &mut errors);
        }
        if let Some(key) = read_text_field(body, "key") {
            require_condition(
                &mut errors,
                is_armoured_key(key),
                "/key",
                "this is no armoured public key",
                "`gpg --armor --export KEY`; unsigned repositories are refused",
            );
        }
        let suite: Vec<String> = read_text_field(body, "suite")
            .map(str::to_owned)
            .into_iter()
            .collect();
        let components = read_text_list_field(body, "components");
        let architectures = read_text_list_field(body, "architectures");
        check_words("/suite", &suite, &mut errors);
        check_words("/components", &components, &mut errors);
        check_words("/architectures", &architectures, &mut errors);
        match read_text_field(body, "manager") {
            Some("apt") => {
                let flat = read_text_field(body, "suite").is_none_or(|suite| suite.ends_with('/'));
                require_condition(
                    &mut errors,
                    flat == components.is_empty(),
                    "/components",
                    "a suite needs components, a flat repository (suite `./`) has none",
                    "for example suite: stable, components: [main]",
                );
            }
            Some("dnf") | None => {}
            Some(_) => errors.push(new_body_error(
                "/manager",
                "the manager is `apt` or `dnf`",
                None,
            )),
        }
        errors
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let wanted = DesiredRepository::of(wish);
        let mut reads: Vec<_> = wanted
            .files()
            .into_iter()
            .map(|(_, path, _)| Read::File { path })
            .collect();
        reads.push(wanted.lists());
        reads
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let wanted = DesiredRepository::of(wish);
        let mut assessment = Assessment::default();
        let mut before = Map::new();
        for (name, path, content) in wanted.files() {
            let found = FileState::at(&path, answers);
            before.insert(path.clone(), found.remember());
            let reading = content.clone().map_or(Reading::Absent, Reading::is);
            if let FileState::Other { what } = &found {
                assessment.refusal = Some(format!(
                    "there is a {what} at {path}; railwright replaces only regular files"
                ));
            }
            let shown = found.content_reading();
            if shown != reading {
                assessment.actions.push(content.map_or_else(
                    || Action::RemoveFile {
                        path: path.clone(),
                        below: None,
                    },
                    |content| build_config_file_action(&path, content),
                ));
            }
            assessment.attributes.insert(
                name.to_owned(),
                Attribute::in_plane(Plane::Persisted, reading, shown),
            );
        }
        let lists = lists_reading(&wanted, answers);
        if lists != Reading::is("fetched") || !assessment.actions.is_empty() {
            assessment.actions.push(wanted.refresh());
        }
        if has_no_manager(&wanted, answers) {
            assessment.refusal = Some(format!(
                "{} does not keep the packages of this host",
                wanted_word(wanted.manager)
            ));
        }
        assessment.attributes.insert(
            "lists".to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is("fetched"), lists),
        );
        assessment.before = Value::Object(before);
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        let wanted = DesiredRepository::of(last_applied);
        let mut assessment = Assessment::default();
        // the source goes first, so that no moment has a source without its key
        for (name, path, _) in wanted.files().into_iter().rev() {
            let (earlier, now) = (
                FileState::remembered(before.get(&path)),
                FileState::at(&path, answers),
            );
            let (actions, residue) = earlier.restore(&path, &now);
            assessment.actions.extend(actions);
            assessment.residue.extend(residue);
            let attribute = Attribute::in_plane(
                Plane::Persisted,
                earlier.restored_reading(&now),
                now.content_reading(),
            );
            assessment.attributes.insert(name.to_owned(), attribute);
        }
        let brought = wanted.files().iter().any(|(name, path, _)| {
            *name == "source"
                && matches!(
                    FileState::remembered(before.get(path)),
                    FileState::Absent { .. }
                )
        });
        let lists = lists_reading(&wanted, answers);
        if brought {
            if lists == Reading::is("fetched") {
                assessment.actions.push(wanted.forget());
            }
            assessment.attributes.insert(
                "lists".to_owned(),
                Attribute::in_plane(Plane::Running, Reading::Absent, lists),
            );
        }
        if wanted.manager == PackageManager::Dnf && !assessment.actions.is_empty() {
            let name = wanted.name;
            assessment.residue.push(format!(
                "the key of {name} stays in rpm's own database; `rpm -qa gpg-pubkey` shows it"
            ));
        }
        assessment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::wish;
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
        let apt = wish(
            &PackageRepository,
            json!({
                "name": "lab", "manager": "apt", "url": "http://10.0.2.2:8000/deb", "suite": "stable", "components": ["main"], "key": KEY, "priority": 700,
            }),
        );
        let files: Vec<_> = DesiredRepository::of(&apt)
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
