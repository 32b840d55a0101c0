//! Where packages and secrets come from. Repository values end up in files of apt and dnf, so each
//! must be one word.

use super::{SpecChecker, is_one_word, is_plain_name, new_spec_error, truncate_user_text};
use crate::spec::model::{RepositorySpec, SecretReference, Spec};
use std::collections::HashMap;

/// The sections `repositories` and `secrets`.
pub fn check_repositories_and_secrets(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (index, repository) in spec.repositories.iter().enumerate() {
        let at = format!("repositories[{index}]");
        if let Some(first) = names.insert(&repository.name, index) {
            let finding = new_spec_error(
                "RW0118",
                format!(
                    "two repositories are called `{}`",
                    truncate_user_text(&repository.name)
                ),
                "they would share one file on the hosts, and one would be lost",
                "give each its own name",
            );
            let finding = checker.pointed(&format!("{at}.name"), "again here", finding);
            checker.find(
                &format!("repositories[{first}].name"),
                "first here",
                finding,
            );
        }
        check_repository(checker, &at, repository);
    }
    for (name, secret) in &spec.secrets {
        check_named_secret(checker, name, secret);
    }
}

fn check_named_secret(checker: &mut SpecChecker<'_>, name: &str, secret: &SecretReference) {
    let path = if name.contains(['.', '[', '"']) {
        format!("secrets[\"{name}\"]")
    } else {
        format!("secrets.{name}")
    };
    let what = format!("the secret `{}`", truncate_user_text(name));
    if is_plain_name(&name.replace('_', "-"), 64) {
        return check_secret(checker, &path, &what, secret);
    }
    let message = format!("{what} cannot be a secret's name");
    let fix = "use letters, digits, `_` and `-`, at most 64";
    let finding = new_spec_error("RW0117", message, SECRET_EFFECT, fix);
    checker.find(&path, "not a name", finding);
}

const SECRET_EFFECT: &str = "whatever needs this secret cannot be set up";

/// One finding about a key of a repository.
fn report_repository_finding(
    checker: &mut SpecChecker<'_>,
    path: &str,
    label: &str,
    message: String,
    fix: &str,
) {
    let effect = "the package manager would refuse its lists, and no package could be installed";
    checker.find(path, label, new_spec_error("RW0118", message, effect, fix));
}

fn check_repository(checker: &mut SpecChecker<'_>, at: &str, repository: &RepositorySpec) {
    if !is_plain_name(&repository.name, 64) {
        let message = format!(
            "`{}` cannot be a repository's name",
            truncate_user_text(&repository.name)
        );
        report_repository_finding(
            checker,
            &format!("{at}.name"),
            "not a name",
            message,
            "use letters, digits and `-`, at most 64",
        );
    }
    let has_scheme = ["https://", "http://", "file:/"]
        .iter()
        .any(|scheme| repository.url.starts_with(scheme));
    if !has_scheme || !is_one_word(&repository.url) {
        let message = format!(
            "`{}` is no repository address",
            truncate_user_text(&repository.url)
        );
        report_repository_finding(
            checker,
            &format!("{at}.url"),
            "not an address",
            message,
            "start it with https://, http:// or file:/",
        );
    }
    if repository.key.is_empty() || repository.key.chars().any(char::is_control) {
        let fix = "name the armoured key's file, relative to the inventory";
        report_repository_finding(
            checker,
            &format!("{at}.key"),
            "not a file name",
            "the signing key has no file".to_owned(),
            fix,
        );
    }
    if repository.priority == Some(0) {
        let message = "a pin priority of 0 is undefined".to_owned();
        report_repository_finding(
            checker,
            &format!("{at}.priority"),
            "0 means nothing",
            message,
            "see apt_preferences(5): 100 to 990 are common",
        );
    }
    check_suite(checker, at, repository);
}

/// Suite and components of an apt source: a suite that ends in `/` stands for itself, any other
/// needs components.
fn check_suite(checker: &mut SpecChecker<'_>, at: &str, repository: &RepositorySpec) {
    for (index, component) in repository.components.iter().enumerate() {
        if is_one_word(component) {
            continue;
        }
        report_repository_finding(
            checker,
            &format!("{at}.components[{index}]"),
            "not a component",
            format!("`{}` is no component", truncate_user_text(component)),
            "write one word, such as `main`",
        );
    }
    let fault = find_suite_fault(repository, checker.complete);
    if let Some((key, label, message, fix)) = fault {
        report_repository_finding(checker, &format!("{at}.{key}"), label, message, fix);
    }
}

/// The key, the label, what is wrong and what to write. `complete` is false where a suite or
/// components may stand in a part that did not decode.
fn find_suite_fault(
    repository: &RepositorySpec,
    complete: bool,
) -> Option<(&'static str, &'static str, String, &'static str)> {
    let suite = repository.suite.as_deref();
    let has_components = !repository.components.is_empty();
    Some(match suite {
        Some(suite) if !is_one_word(suite) => (
            "suite",
            "not a suite",
            format!("`{}` is no suite", truncate_user_text(suite)),
            "write one word, such as `bookworm` or `./`",
        ),
        Some(suite) if has_components && suite.ends_with('/') => (
            "components",
            "not with this suite",
            "a suite that ends in `/` has no components".to_owned(),
            "remove the components, or the `/`",
        ),
        Some(suite) if complete && !has_components && !suite.ends_with('/') => (
            "suite",
            "no `components` beside it",
            format!("the suite `{}` needs components", truncate_user_text(suite)),
            "add `components: [main]`, or end the suite in `/`",
        ),
        None if complete && has_components => (
            "components",
            "no `suite` beside it",
            "components need a suite".to_owned(),
            "add `suite:` for apt, or remove the components for dnf",
        ),
        _ => return None,
    })
}

/// One reference to a secret, at its path in the spec; `what` names it in messages.
pub(super) fn check_secret(
    checker: &mut SpecChecker<'_>,
    path: &str,
    what: &str,
    secret: &SecretReference,
) {
    let fault = find_secret_fault(secret, checker.complete);
    if let Some((key, label, message, fix)) = fault {
        checker.find(
            &format!("{path}{key}"),
            label,
            new_spec_error("RW0117", format!("{what} {message}"), SECRET_EFFECT, fix),
        );
    }
}

/// The key with its dot, the label, what is wrong and what to write. `complete` is false where a
/// source may stand in a part that did not decode.
fn find_secret_fault(
    secret: &SecretReference,
    complete: bool,
) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
    let SecretReference { env, file, command } = secret;
    let sources =
        usize::from(env.is_some()) + usize::from(file.is_some()) + usize::from(command.is_some());
    if sources == 0 && complete {
        let fix = "add one of `env`, `file` or `command`";
        return Some(("", "no source", "has no source", fix));
    }
    if sources > 1 {
        return Some((
            "",
            "more than one source",
            "has more than one source",
            "keep one of `env`, `file` and `command`",
        ));
    }
    if let Some(variable) = env
        && !is_variable(variable)
    {
        return Some((
            ".env",
            "not a variable",
            "is read from what cannot be an environment variable",
            "use letters, digits and `_`",
        ));
    }
    if let Some(file) = file
        && (file.is_empty() || file.chars().any(char::is_control))
    {
        return Some((
            ".file",
            "not a file name",
            "is read from what cannot be a file",
            "write a path relative to the inventory",
        ));
    }
    let program = command.as_ref()?.first();
    program.is_none_or(String::is_empty).then_some((
        ".command",
        "no program",
        "is read from an empty command",
        "write the program and its arguments, such as `[pass, show, NAME]`",
    ))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
