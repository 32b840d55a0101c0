//! What images need of RDMA, as entries: packages, libraries and providers by kind of fabric, and
//! examples that an image can bring.
//!
//! An entry becomes lines of a Containerfile. What could be more than the word that it stands for
//! is refused here, where entries are read, and quoted there besides.

use super::table::CategoryEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The RDMA user space of a kind of fabric.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserSpaceEntry {
    /// The kind of fabric, as the spec has it.
    pub name: String,
    /// Other kinds of which the same is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Packages of apt.
    pub packages: Vec<String>,
    /// Where they come from, where that is not the distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<AptRepository>,
    /// Libraries that programs load, by the names that they load.
    pub libraries: Vec<String>,
    /// What libibverbs loads for a NIC; the first is meant where no NIC is known.
    pub providers: Vec<IbverbsProvider>,
    /// Where this is said.
    pub source: String,
}

/// A repository of apt that is not the distribution's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AptRepository {
    /// What its files are called.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Its suite by the code name of a release.
    pub suites: BTreeMap<String, String>,
    /// Its components.
    pub components: Vec<String>,
    /// Where its maker gives the key.
    pub key: String,
}

/// What libibverbs loads for NICs of a driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IbverbsProvider {
    /// The driver, as entries of NICs have it.
    pub driver: String,
    /// The name: `mlx5` of `libmlx5-rdmav34.so` and of the line `driver mlx5`.
    pub name: String,
}

/// An example that an image can bring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleEntry {
    /// Its name.
    pub name: String,
    /// The folder of the image that it goes into.
    pub folder: String,
    /// Its data.
    pub files: Vec<DataFile>,
    /// Its code.
    pub code: Code,
    /// Where this is said.
    pub source: String,
}

/// A file of data, packed with gzip where it is fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// Where it goes, below the example's folder.
    pub path: String,
    /// Where it comes from.
    pub url: String,
    /// Of the packed file.
    pub sha256: String,
}

/// A folder of a git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The repository.
    pub url: String,
    /// The tag.
    pub tag: String,
    /// The folder in it.
    pub folder: String,
    /// Where that goes, below the example's folder.
    pub at: String,
    /// The file in it that names packages of Python.
    pub requirements: String,
}

impl UserSpaceEntry {
    /// The providers for NICs of these drivers; the first where none is known.
    pub fn providers_of<'a>(&'a self, drivers: &[&str]) -> Vec<&'a str> {
        let mut names = Vec::new();
        for provider in &self.providers {
            if drivers.contains(&provider.driver.as_str()) {
                names.push(provider.name.as_str());
            }
        }
        if names.is_empty() {
            names.extend(self.providers.first().map(|first| first.name.as_str()));
        }
        names
    }
}

/// One word of letters and digits, and of these marks behind its beginning.
fn is_word(text: &str, marks: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 200
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
}

fn is_https(text: &str) -> bool {
    text.strip_prefix("https://")
        .is_some_and(|rest| is_word(rest, "._/-~+"))
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// A path below something: none of its parts leads out.
fn is_below(text: &str) -> bool {
    is_word(text, "._/-")
        && text
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// What is wrong with the first value that is not sound.
fn describe_first_wrong<'a>(values: impl IntoIterator<Item = (&'a str, bool)>) -> Option<String> {
    let wrong = values.into_iter().find(|(_, is_sound)| !is_sound)?;
    Some(format!(
        "`{}` is nothing that can stand in a Containerfile there",
        railwright_base::text::one_line(wrong.0, 60)
    ))
}

impl CategoryEntry for UserSpaceEntry {
    const KEY: &'static str = "user-space";
    fn name(&self) -> &str {
        &self.name
    }
    fn aliases(&self) -> &[String] {
        &self.aliases
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn in_words(&self, field: &str) -> Option<String> {
        match field {
            "providers" => Some(
                self.providers
                    .iter()
                    .map(|one| format!("{} for {}", one.name, one.driver))
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
            "repository" => self.repository.as_ref().map(|one| one.url.clone()),
            _ => None,
        }
    }
    fn find_fault(&self) -> Option<String> {
        if self.packages.is_empty() || self.libraries.is_empty() || self.providers.is_empty() {
            return Some("it names no packages, no libraries or no provider".to_owned());
        }
        let mut values: Vec<(&str, bool)> = Vec::new();
        for text in self.packages.iter().chain(&self.libraries) {
            values.push((text, is_word(text, "+.-_")));
        }
        for provider in &self.providers {
            values.push((&provider.name, is_word(&provider.name, "_")));
        }
        if let Some(repository) = &self.repository {
            values.push((&repository.name, is_word(&repository.name, "-")));
            values.push((&repository.url, is_https(&repository.url)));
            values.push((&repository.key, is_https(&repository.key)));
            for (release, suite) in &repository.suites {
                values.push((release, is_word(release, "-")));
                values.push((suite, is_word(suite, "._/-")));
            }
            for component in &repository.components {
                values.push((component, is_word(component, "._/-")));
            }
        }
        describe_first_wrong(values)
    }
}

impl CategoryEntry for ExampleEntry {
    const KEY: &'static str = "example";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn in_words(&self, field: &str) -> Option<String> {
        match field {
            "files" => Some(
                self.files
                    .iter()
                    .map(|one| one.path.clone())
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
            "code" => Some(format!(
                "{} of {} at {}",
                self.code.folder, self.code.url, self.code.tag
            )),
            _ => None,
        }
    }
    fn find_fault(&self) -> Option<String> {
        let mut values: Vec<(&str, bool)> = Vec::new();
        for file in &self.files {
            values.push((&file.path, is_below(&file.path)));
            values.push((&file.url, is_https(&file.url)));
            values.push((&file.sha256, is_sha256(&file.sha256)));
        }
        let code = &self.code;
        let folder = self.folder.strip_prefix('/');
        values.extend([
            (&*self.folder, folder.is_some_and(is_below)),
            (&*code.url, is_https(&code.url)),
            (&*code.tag, is_word(&code.tag, ".-_")),
            (&*code.folder, is_below(&code.folder)),
            (&*code.at, is_below(&code.at)),
            (&*code.requirements, is_below(&code.requirements)),
        ]);
        describe_first_wrong(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> UserSpaceEntry {
        let catalog = crate::catalog::load_catalog("", [])
            .map_err(|problems| problems.diagnostics)
            .unwrap();
        catalog.user_space.get("erdma").unwrap().clone()
    }

    #[test]
    fn an_entry_holds_nothing_that_could_become_another_line() {
        assert_eq!(entry().find_fault(), None);
        let with = |change: fn(&mut UserSpaceEntry)| {
            let mut entry = entry();
            change(&mut entry);
            entry.find_fault()
        };
        for wrong in [
            with(|entry| entry.packages[0] = "a b".into()),
            with(|entry| entry.packages[0] = "-o=Dir=/".into()),
            with(|entry| entry.libraries[0] = "a\nRUN id".into()),
            with(|entry| entry.libraries[0] = "../a".into()),
            with(|entry| entry.providers[0].name = "a/b".into()),
            with(|entry| entry.providers.clear()),
            with(|entry| entry.repository.as_mut().unwrap().url = "http://h/apt".into()),
            with(|entry| entry.repository.as_mut().unwrap().url = "https://h/apt'; id".into()),
            with(|entry| {
                drop(
                    entry
                        .repository
                        .as_mut()
                        .unwrap()
                        .suites
                        .insert("x".into(), "a\nb".into()),
                )
            }),
        ] {
            assert!(wrong.is_some());
        }
    }

    #[test]
    fn an_example_stays_in_its_folder_and_has_sums() {
        let catalog = crate::catalog::load_catalog("", [])
            .map_err(|problems| problems.diagnostics)
            .unwrap();
        let shipped = catalog.example.get("mnist").unwrap();
        assert_eq!(shipped.find_fault(), None);
        let with = |change: fn(&mut ExampleEntry)| {
            let mut entry = shipped.clone();
            change(&mut entry);
            entry.find_fault()
        };
        for wrong in [
            with(|entry| entry.files[0].path = "../x".into()),
            with(|entry| entry.files[0].sha256 = "f68b3c2dcbeaaa9fbdd348bbdeb94873".into()),
            with(|entry| entry.folder = "workspace".into()),
            with(|entry| entry.folder = "/".into()),
            with(|entry| entry.code.tag = "--upload-pack=id".into()),
            with(|entry| entry.code.at = "a/./b".into()),
        ] {
            assert!(wrong.is_some());
        }
    }

    #[test]
    fn providers_are_those_of_the_nics() {
        let catalog = crate::catalog::load_catalog("", [])
            .map_err(|problems| problems.diagnostics)
            .unwrap();
        let entry = catalog.user_space.get("rocev2").unwrap();
        assert_eq!(entry.providers_of(&[]), ["mlx5"]);
        assert_eq!(entry.providers_of(&["ice", "mlx5_core"]), ["mlx5", "irdma"]);
        assert_eq!(entry.providers_of(&["unheard"]), ["mlx5"]);
        assert_eq!(
            catalog
                .user_space
                .get("rocev1")
                .map(|entry| entry.name.as_str()),
            Some("rocev2")
        );
    }
}
