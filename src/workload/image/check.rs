//! What was asked for, checked against what can stand in a Containerfile: a value there is a word,
//! and never the beginning of another line.

use super::super::asked::RequestPlaces;
use super::super::check::{is_image, is_plain_word};
use super::{ImageRequest, RepositorySigningKey, Sound};
use railwright_base::Diagnostic;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::catalog::user_space::{AptRepository, UserSpaceEntry};
use railwright_resource::package_repository::is_armoured_key;

/// The entries that the request comes to, or all that cannot be.
pub(super) fn check_image_request<'a>(
    request: &'a ImageRequest,
    catalog: &'a Catalog,
    asked: &RequestPlaces,
) -> Result<Sound<'a>, Vec<Diagnostic>> {
    let mut problems = check_base_and_suite(request, asked);
    let entry = catalog.user_space.get(&request.fabric);
    if entry.is_none() {
        problems.push(report_unknown_fabric(&request.fabric, catalog, asked));
    }
    // What is no suite at all was reported already.
    let repository = entry
        .filter(|_| is_suite(&request.suite))
        .and_then(|entry| match resolve_repository(request, entry, asked) {
            Ok(repository) => repository,
            Err(error) => {
                problems.push(*error);
                None
            }
        });
    let example = request
        .example
        .as_deref()
        .map(|name| (name, catalog.example.get(name)));
    if let Some((name, None)) = example {
        problems.push(report_unknown_example(name, catalog, asked));
    }
    match entry.filter(|_| problems.is_empty()) {
        Some(entry) => Ok(Sound {
            request,
            entry,
            repository,
            example: example.and_then(|(_, entry)| entry),
        }),
        None => Err(problems),
    }
}

fn report_unknown_fabric(fabric: &str, catalog: &Catalog, asked: &RequestPlaces) -> Diagnostic {
    let entries = catalog.user_space.entries();
    let known: Vec<&str> = entries.map(|entry| entry.content.name.as_str()).collect();
    let message = format!(
        "no libraries are known for a fabric of kind `{}`",
        one_line(fabric, 40)
    );
    let error = Diagnostic::error("RW1271", message)
        .state("nothing was rendered")
        .next(format!(
            "--fabric {}; `railwright catalog user-space` shows what is known of each",
            known.join(" | ")
        ));
    asked.at(error, "image.fabric", "nothing is known of it")
}

fn report_unknown_example(name: &str, catalog: &Catalog, asked: &RequestPlaces) -> Diagnostic {
    let entries = catalog.example.entries();
    let known: Vec<&str> = entries.map(|entry| entry.content.name.as_str()).collect();
    let near = match find_nearest_word(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    let message = format!("there is no example `{}`{near}", one_line(name, 40));
    let error = Diagnostic::error("RW1274", message)
        .state("nothing was rendered")
        .next(format!("--example {}", known.join(" | ")));
    asked.at(error, "image.example", "no such example")
}

/// Base and suite, each one word.
fn check_base_and_suite(request: &ImageRequest, asked: &RequestPlaces) -> Vec<Diagnostic> {
    let base = (
        &request.base,
        "image.base",
        "an image",
        "--base REGISTRY/NAME:TAG, or NAME@sha256:...",
        is_image(&request.base),
    );
    let suite = (
        &request.suite,
        "image.suite",
        "a suite",
        "--suite jammy: VERSION_CODENAME of the base's /etc/os-release",
        is_suite(&request.suite),
    );
    let mut errors = Vec::new();
    for (text, path, what, next, is_sound) in [base, suite] {
        if is_sound {
            continue;
        }
        let message = format!("`{}` cannot be {what}", one_line(text, 80));
        let error = Diagnostic::error("RW1270", message)
            .effect("each value of a Containerfile is one word; more would be a line of its own")
            .state("nothing was rendered")
            .next(next);
        let label = "letters, digits and a few marks, and no blanks";
        errors.push(asked.at(error, path, label));
    }
    errors
}

fn is_suite(text: &str) -> bool {
    let mut characters = text.chars();
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 40
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

type Repository<'a> = Option<(
    &'a AptRepository,
    &'a str,
    &'a RepositorySigningKey,
    &'a str,
)>;

/// Where packages come from, where that is not the distribution.
fn resolve_repository<'a>(
    request: &'a ImageRequest,
    entry: &'a UserSpaceEntry,
    asked: &RequestPlaces,
) -> Result<Repository<'a>, Box<Diagnostic>> {
    let Some(repository) = &entry.repository else {
        return match &request.key {
            None => Ok(None),
            Some(key) => Err(Box::new(report_needless_key(&request.fabric, key, asked))),
        };
    };
    let Some(suite) = repository.suites.get(&request.suite) else {
        let error = report_unknown_suite(&request.suite, repository, asked);
        return Err(Box::new(error));
    };
    let Some(key) = &request.key else {
        let message = format!(
            "packages for `{}` come from {}, and no key was given",
            request.fabric, repository.url
        );
        return Err(report_key(repository, asked, message, ""));
    };
    let shown = one_line(&key.path, 80);
    let Some(path) = in_context(&key.path) else {
        return Err(report_key(
            repository,
            asked,
            format!("`{shown}` cannot be copied into the image"),
            "a path below the folder that the image is built in, without blanks",
        ));
    };
    if !is_armoured_key(&key.text) || key.text.contains("PRIVATE KEY") {
        return Err(report_key(
            repository,
            asked,
            format!("`{shown}` is no armoured public key"),
            "`gpg --armor --export KEY` writes one",
        ));
    }
    Ok(Some((repository, suite, key, path)))
}

fn report_needless_key(
    fabric: &str,
    key: &RepositorySigningKey,
    asked: &RequestPlaces,
) -> Diagnostic {
    let message = format!(
        "packages for `{}` come from the distribution, whose keys the base has",
        one_line(fabric, 40)
    );
    let error = Diagnostic::error("RW1273", message)
        .state("nothing was rendered")
        .next("leave --key out");
    let label = format!("nothing would be signed by {}", one_line(&key.path, 60));
    asked.at(error, "image.key", &label)
}

fn report_unknown_suite(
    suite: &str,
    repository: &AptRepository,
    asked: &RequestPlaces,
) -> Diagnostic {
    let known: Vec<&str> = repository.suites.keys().map(String::as_str).collect();
    let message = format!(
        "no suite of {} is known for `{}`",
        repository.url,
        one_line(suite, 40)
    );
    let error = Diagnostic::error("RW1272", message)
        .effect("packages that are built for another release lack their libraries, or bring others")
        .state("nothing was rendered")
        .next(format!("take a base of {}, with --suite", known.join(", ")))
        .next(
            "or name the suite in an entry of your own: modules/catalog/user-space.yaml of the \
             inventory",
        );
    asked.at(error, "image.suite", "none for this release")
}

/// What is wrong with the signing key, and how a right one is had.
fn report_key(
    repository: &AptRepository,
    asked: &RequestPlaces,
    message: String,
    label: &str,
) -> Box<Diagnostic> {
    let get = format!(
        "fetch {} once, compare its fingerprint with what its maker says (gpg --show-keys FILE), \
         keep it as keys/{}.asc",
        repository.key, repository.name
    );
    let error = Diagnostic::error("RW1273", message)
        .state("nothing was rendered")
        .next(get)
        .next(format!("then: --key keys/{}.asc", repository.name));
    Box::new(asked.at(error, "image.key", label))
}

/// A path as COPY takes it: a build copies only from its own folder, and reads `*`, `?`, `[` and
/// `$` as more than themselves.
fn in_context(path: &str) -> Option<&str> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_plain = is_plain_word(path, "._-/+@");
    let is_below = path
        .split('/')
        .all(|part| !part.is_empty() && part != "." && part != "..");
    (is_below && !path.starts_with('-') && path.len() <= 400 && is_plain).then_some(path)
}
