//! Where packages and secrets come from. Repository values end up in files of apt and dnf, so each must be one word.

use super::{Checker, error, is_one_word, is_plain_name, shown};
use crate::spec::model::{Repository, SecretReference, Spec};
use std::collections::HashMap;

pub fn check(checker: &mut Checker<'_>, spec: &Spec) {
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (index, repository) in spec.repositories.iter().enumerate() {
        let at = format!("repositories[{index}]");
        if let Some(first) = names.insert(&repository.name, index) {
            let finding = error(
                "RW0118",
                format!("two repositories are called `{}`", shown(&repository.name)),
                "they would share one file on the hosts, and one would be lost",
                "give each its own name",
            );
            let finding = checker.pointed(&format!("{at}.name"), "again here", finding);
            checker.find(&format!("repositories[{first}].name"), "first here", finding);
        }
        check_repository(checker, &at, repository);
    }
    for (name, secret) in &spec.secrets {
        check_secret(checker, name, secret);
    }
}

fn check_repository(checker: &mut Checker<'_>, at: &str, repository: &Repository) {
    let effect = "the package manager would refuse its lists, and no package could be installed";
    let complete = checker.complete;
    let mut find = |key: &str, label: &str, message: String, fix: &str| {
        checker.find(&format!("{at}.{key}"), label, error("RW0118", message, effect, fix));
    };
    if !is_plain_name(&repository.name, 64) {
        find(
            "name",
            "not a name",
            format!("`{}` cannot be a repository's name", shown(&repository.name)),
            "use letters, digits and `-`, at most 64",
        );
    }
    let has_scheme = ["https://", "http://", "file:/"].iter().any(|scheme| repository.url.starts_with(scheme));
    if !has_scheme || !is_one_word(&repository.url) {
        find(
            "url",
            "not an address",
            format!("`{}` is no repository address", shown(&repository.url)),
            "start it with https://, http:// or file:/",
        );
    }
    if repository.key.is_empty() || repository.key.chars().any(char::is_control) {
        find("key", "not a file name", "the signing key has no file".to_owned(), "name the armoured key's file, relative to the inventory");
    }
    if repository.priority == Some(0) {
        find("priority", "0 means nothing", "a pin priority of 0 is undefined".to_owned(), "see apt_preferences(5): 100 to 990 are common");
    }
    for (index, component) in repository.components.iter().enumerate().filter(|(_, component)| !is_one_word(component)) {
        find(
            &format!("components[{index}]"),
            "not a component",
            format!("`{}` is no component", shown(component)),
            "write one word, such as `main`",
        );
    }
    match repository.suite.as_deref() {
        Some(suite) if !is_one_word(suite) => {
            find("suite", "not a suite", format!("`{}` is no suite", shown(suite)), "write one word, such as `bookworm` or `./`")
        }
        Some(suite) if suite.ends_with('/') && !repository.components.is_empty() => {
            find(
                "components",
                "not with this suite",
                "a suite that ends in `/` has no components".to_owned(),
                "remove the components, or the `/`",
            );
        }
        Some(suite) if complete && !suite.ends_with('/') && repository.components.is_empty() => {
            find(
                "suite",
                "no `components` beside it",
                format!("the suite `{}` needs components", shown(suite)),
                "add `components: [main]`, or end the suite in `/`",
            );
        }
        None if complete && !repository.components.is_empty() => find(
            "components",
            "no `suite` beside it",
            "components need a suite".to_owned(),
            "add `suite:` for apt, or remove the components for dnf",
        ),
        _ => {}
    }
}

fn check_secret(checker: &mut Checker<'_>, name: &str, secret: &SecretReference) {
    let effect = "whatever needs this secret cannot be set up";
    let at = format!("secrets[\"{name}\"]");
    let path = if name.contains(['.', '[', '"']) { at } else { format!("secrets.{name}") };
    let sources = [secret.env.is_some(), secret.file.is_some(), secret.command.is_some()].iter().filter(|said| **said).count();
    let (key, label, message, fix) = match secret {
        _ if !is_plain_name(&name.replace('_', "-"), 64) => {
            ("", "not a name", "cannot be a secret's name", "use letters, digits, `_` and `-`, at most 64")
        }
        _ if sources == 0 && checker.complete => ("", "no source", "has no source", "add one of `env`, `file` or `command`"),
        _ if sources > 1 => ("", "more than one source", "has more than one source", "keep one of `env`, `file` and `command`"),
        SecretReference { env: Some(variable), .. } if !is_variable(variable) => {
            (".env", "not a variable", "is read from what cannot be an environment variable", "use letters, digits and `_`")
        }
        SecretReference { file: Some(file), .. } if file.is_empty() || file.chars().any(char::is_control) => {
            (".file", "not a file name", "is read from what cannot be a file", "write a path relative to the inventory")
        }
        SecretReference { command: Some(words), .. } if words.first().is_none_or(String::is_empty) => {
            (".command", "no program", "is read from an empty command", "write the program and its arguments, such as `[pass, show, NAME]`")
        }
        _ => return,
    };
    checker.find(&format!("{path}{key}"), label, error("RW0117", format!("the secret `{}` {message}", shown(name)), effect, fix));
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
