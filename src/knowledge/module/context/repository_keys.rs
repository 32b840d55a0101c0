//! The signing keys of the package repositories: files beside the spec, whose texts the templates
//! need.

use super::{RepositoryNames, Texts};
use crate::spec::LoadedSpec;
use railwright_base::{Diagnostic, SourceLocation};

/// The code for a signing key that the spec names and that is not there.
pub const KEY_IS_ABSENT: &str = "RW0214";

/// The files outside of the YAML whose texts the templates need, with where the spec names them.
pub fn list_referenced_files(loaded: &LoadedSpec) -> Vec<(String, Option<SourceLocation>)> {
    let keys = loaded.spec.repositories.iter().enumerate();
    keys.map(|(index, repository)| {
        (
            repository.key.clone(),
            loaded.place(&format!("repositories[{index}].key")),
        )
    })
    .collect()
}

/// The most bytes of the signing keys of all repositories together: each host's templates can name
/// all of them. A distribution's keyring has 100 KB.
const KEYS_BYTES_MAX: usize = 4 << 20;

/// How large the signing keys are together, as far as they were read.
#[derive(Default)]
pub struct KeysSize(usize);

impl KeysSize {
    /// Adds the key of the repository with this number; an error from where the limit is passed on.
    pub fn add(
        &mut self,
        loaded: &LoadedSpec,
        index: usize,
        bytes: usize,
    ) -> Result<(), Diagnostic> {
        self.0 += bytes;
        if self.is_too_large() {
            Err(keys_too_large(loaded, index))
        } else {
            Ok(())
        }
    }

    /// Whether the limit was passed.
    pub fn is_too_large(&self) -> bool {
        self.0 > KEYS_BYTES_MAX
    }
}

/// The repositories with their keys; a key whose text is not there is an error.
pub fn collect_repositories(
    loaded: &LoadedSpec,
    texts: &Texts,
) -> Result<Vec<RepositoryNames>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let (mut out, mut size) = (Vec::new(), KeysSize::default());
    for (index, repository) in loaded.spec.repositories.iter().enumerate() {
        let Some(key_text) = texts.get(&repository.key) else {
            errors.push(key_absent(loaded, index, &repository.key));
            continue;
        };
        if let Err(error) = size.add(loaded, index, key_text.len()) {
            errors.push(error);
            break;
        }
        out.push(RepositoryNames {
            name: repository.name.clone(),
            url: repository.url.clone(),
            suite: repository.suite.clone(),
            components: repository.components.clone(),
            key_text: key_text.clone(),
            priority: repository.priority,
        });
    }
    if errors.is_empty() {
        Ok(out)
    } else {
        Err(errors)
    }
}

/// The signing keys of the repositories up to this one are too large together.
fn keys_too_large(loaded: &LoadedSpec, index: usize) -> Diagnostic {
    let error = Diagnostic::error(
        "RW0104",
        format!(
            "the signing keys have more than {} MiB together",
            KEYS_BYTES_MAX >> 20
        ),
    )
    .effect("every host would be planned with all of them, and railwright would run out of memory")
    .next(
        "export each repository's own key alone, and name it once: several `components` can be in \
         one repository",
    );
    let label = loaded.label(
        &format!("repositories[{index}].key"),
        "the limit is passed here",
    );
    label.into_iter().fold(error, Diagnostic::labelled)
}

fn key_absent(loaded: &LoadedSpec, index: usize, path: &str) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(
        KEY_IS_ABSENT,
        format!("the signing key `{path}` is not there"),
    )
    .effect(
        "packages of a repository whose key nobody knows would be installed unchecked, so nothing \
         that needs it is planned",
    )
    .next("put the armoured key at that path; the lab's own is written by `railwright lab up`")
    .next("or plan from an observation: it holds the text that was read when it was recorded");
    if let Some(label) = loaded.label(&format!("repositories[{index}].key"), "named here") {
        diagnostic = diagnostic.labelled(label);
    }
    diagnostic
}
