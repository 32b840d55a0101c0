//! The files below `crds/` that a first install makes: of the chart, and of those subcharts that
//! its values leave switched on (helm/helm: pkg/chart/chart.go, `CRDObjects`). `helm show crds` has
//! them of all subcharts, one behind the other with nothing between. A dry run tells those of the
//! chart itself, file by file. Where subcharts have more, Helm renders the chart into a folder,
//! twice: what is below a `crds/` and there only with `--include-crds` is such a file, whatever
//! stands in it.

use super::super::lists::find_json_text;
use super::preview::build_dry_run_arguments;
use super::{KubernetesLink, parse_helm_json};
use crate::kubernetes::helm::{HelmCallError, HelmOutput, HelmProgram, QUESTION};
use railwright_base::{Digest, Reason};
use railwright_resource::file::base64;
use railwright_resource::helm_release::rendered_objects::parse_manifest_objects;
use railwright_resource::helm_release::request::Release;
use railwright_system::files;
use railwright_system::folder::{self, FolderEntryKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Of one file.
const LIMIT_BYTES: u64 = 64 << 20;
/// The folder below one of ours that Helm writes into. The files of a chart that is named `..` come
/// to lie beside it.
const OUTPUT: &str = "chart";
const WITH_DEFINITIONS: &str = "--include-crds";
/// In the place of a secret of the values: what is rendered here lies on the disk for a moment.
const NO_SECRET: &str = "not-shown-";

impl KubernetesLink {
    /// The objects of these files, file by file, as Helm takes them. `dry_run`: the one of the
    /// chart, where it was made already.
    pub(super) async fn list_definition_objects(
        &self,
        program: &HelmProgram,
        release: &Release,
        chart: &Path,
        dry_run: Option<&HelmOutput>,
    ) -> Result<Vec<Value>, HelmCallError> {
        let path = chart.display().to_string();
        let shown = self.ask(program, &["show", "crds", &path]).await?;
        if !shown.well {
            return Err(HelmCallError::Local(shown.complaint.into()));
        }
        if shown.out.trim().is_empty() {
            return Ok(Vec::new());
        }
        let made;
        let dry_run = match dry_run {
            Some(dry_run) => dry_run,
            None => {
                let words = build_dry_run_arguments(program, release, chart);
                let values = release.values.as_bytes();
                made = self.helm.call(program, &words, values, QUESTION).await?;
                &made
            }
        };
        let own = match dry_run.well {
            true => list_own_texts(&parse_helm_json(dry_run)?, &shown.out),
            false => None,
        };
        let texts = match own {
            Some(texts) => texts,
            None => {
                self.list_written_texts(program, release, &path, dry_run.well)
                    .await?
            }
        };
        let mut objects = Vec::new();
        for text in &texts {
            objects.extend(parse_manifest_objects(text).map_err(HelmCallError::Local)?);
        }
        Ok(objects)
    }

    /// The texts of these files, those of subcharts among them. `asks_cluster`: the chart is
    /// rendered with what the cluster has.
    async fn list_written_texts(
        &self,
        program: &HelmProgram,
        release: &Release,
        chart: &str,
        asks_cluster: bool,
    ) -> Result<Vec<String>, HelmCallError> {
        let mut words = self.build_template_arguments(release, chart).await;
        if asks_cluster {
            words.push("--dry-run=server".to_owned());
            // To Helm 4 the one means the other, and both together are refused (helm/helm:
            // pkg/cmd/template.go).
            if !program.may_apply_on_server() {
                words.push("--validate".to_owned());
            }
        }
        let others = self.list_written_files(program, release, &words).await?;
        words.push(WITH_DEFINITIONS.to_owned());
        let files = self.list_written_files(program, release, &words).await?;
        select_definition_texts(&files, &others).map_err(HelmCallError::Local)
    }

    /// The files that `helm template` writes when it is called so, by their paths in the chart.
    async fn list_written_files(
        &self,
        program: &HelmProgram,
        release: &Release,
        words: &[String],
    ) -> Result<BTreeMap<PathBuf, String>, HelmCallError> {
        let name = format!("crds-{}", Digest::of(release).short());
        let into = self.helm.home()?.join(name);
        let local =
            |error: io::Error| HelmCallError::Local(format!("the files of crds/: {error}").into());
        files::remove_path(&into)
            .and_then(|()| files::make_private_folder(&into))
            .map_err(local)?;
        let mut words = words.to_vec();
        words.push(format!("--output-dir={}", into.join(OUTPUT).display()));
        let values = without_secrets(release);
        let said = self
            .helm
            .call(program, &words, values.as_bytes(), QUESTION)
            .await;
        let written = read_files_below(&into).and_then(keep_within_output);
        files::remove_path(&into).map_err(local)?;
        let said = said?;
        if !said.well {
            return Err(HelmCallError::Local(
                describe_failed_rendering(release, &said.complaint).into(),
            ));
        }
        written.map_err(local)
    }
}

fn describe_failed_rendering(release: &Release, complaint: &str) -> String {
    let advice = match release.hidden.is_empty() {
        true => "",
        false => {
            " with another text in the place of each secret (have the values name a Secret of the \
             cluster instead, or install the subchart as a release of its own)"
        }
    };
    format!(
        "subcharts have crds/, and to read these the chart is rendered{advice}, which fails: \
         {complaint}"
    )
}

/// The texts of these files as a dry run (Helm's JSON of it) tells them, which it does of the chart
/// itself alone; nothing where `helm show crds` has `shown` more, which is of subcharts. Some
/// versions of Helm show a line `---` between two files.
fn list_own_texts(told: &Value, shown: &str) -> Option<Vec<String>> {
    let files = told.pointer("/chart/files").and_then(Value::as_array)?;
    let mut texts = Vec::new();
    for file in files {
        let name = find_json_text(file, "/name").to_owned();
        if name.starts_with("crds/") && has_manifest_extension(&name) {
            let bytes = base64::decode_base64_text(find_json_text(file, "/data"))?;
            texts.push(String::from_utf8(bytes).ok()?);
        }
    }
    let own = texts.iter().flat_map(|text| text.lines());
    let is_all = own.filter(is_content).eq(shown.lines().filter(is_content));
    is_all.then_some(texts)
}

fn is_content(line: &&str) -> bool {
    !["", "---"].contains(&line.trim_end())
}

fn has_manifest_extension(name: &str) -> bool {
    let extension = Path::new(name).extension().unwrap_or_default();
    ["yaml", "yml", "json"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

/// The texts of `files` that are not among `others`, those of a rendering without definitions. A
/// chart that is named `.` can bring a template to the place of another chart's file.
fn select_definition_texts(
    files: &BTreeMap<PathBuf, String>,
    others: &BTreeMap<PathBuf, String>,
) -> Result<Vec<String>, Reason> {
    let mut texts = Vec::new();
    for (path, text) in files {
        if !is_definition_file(path) {
            continue;
        }
        match others.get(path) {
            None => texts.push(strip_head(path, text)?.to_owned()),
            Some(other) if count_heads(path, text) == count_heads(path, other) => {}
            Some(_) => {
                return Err(format!(
                    "the chart may have a template and a file of crds/ that are both called {}: \
                     rename one",
                    path.display()
                )
                .into());
            }
        }
    }
    Ok(texts)
}

/// How often Helm wrote to this file.
fn count_heads(path: &Path, text: &str) -> usize {
    text.matches(&format!("# Source: {}\n", path.display()))
        .count()
}

/// False for most templates, which may be written in one of two renderings alone. What leads to
/// the folder is not read: it holds names of charts, and `.` is one.
fn is_definition_file(path: &Path) -> bool {
    path.iter().any(|part| part == "crds")
}

/// A file without the head that Helm writes before it, which names the file (helm/helm:
/// pkg/action/install.go, `writeToFile`). A name with line breaks would bring YAML of its own.
fn strip_head<'t>(path: &Path, text: &'t str) -> Result<&'t str, Reason> {
    let is_refused = |c: char| c.is_control() || ['\u{2028}', '\u{2029}'].contains(&c);
    let name = path.display().to_string();
    if name.contains(is_refused) {
        return Err(format!(
            "the name of the file {name:?} of the chart holds control characters or line breaks: \
             rename it"
        )
        .into());
    }
    text.strip_prefix(&format!("---\n# Source: {name}\n"))
        .ok_or_else(|| format!("helm wrote {name} otherwise than known versions of it do").into())
}

/// The values with another text of that length where a secret is. Whether a subchart is switched on
/// is no text.
fn without_secrets(release: &Release) -> String {
    let Ok(mut values) = serde_json::from_str::<Value>(&release.values) else {
        return release.values.clone();
    };
    for pointer in &release.hidden {
        if let Some(secret) = values.pointer_mut(pointer)
            && !secret.is_boolean()
        {
            *secret = match &*secret {
                Value::String(text) => {
                    let stand_in = NO_SECRET.chars().cycle().take(text.chars().count());
                    stand_in.collect::<String>().into()
                }
                Value::Number(_) => 0.into(),
                _ => NO_SECRET.into(),
            };
        }
    }
    values.to_string()
}

/// The files by their paths below the folder that Helm was told to write into.
fn keep_within_output(files: BTreeMap<PathBuf, String>) -> io::Result<BTreeMap<PathBuf, String>> {
    let mut within = BTreeMap::new();
    for (path, text) in files {
        let Ok(name) = path.strip_prefix(OUTPUT) else {
            let words = format!("helm wrote {} outside its folder", path.display());
            return Err(io::Error::other(words));
        };
        within.insert(name.to_owned(), text);
    }
    Ok(within)
}

/// By their paths below this folder.
fn read_files_below(top: &Path) -> io::Result<BTreeMap<PathBuf, String>> {
    let (mut folders, mut found) = (vec![top.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for (path, kind) in folder::own_entries(&folder)? {
            if kind == FolderEntryKind::Folder {
                folders.push(path);
                continue;
            }
            let bytes = files::read_ordinary(&path, LIMIT_BYTES)?;
            let text = String::from_utf8(bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            found.insert(path.strip_prefix(top).unwrap_or(&path).to_owned(), text);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_secret_is_written_to_the_disk() {
        let release = Release {
            values: json!({ "a": [{ "x/y": "hunter22hunter22" }], "on": true, "n": 7 }).to_string(),
            hidden: ["/a/0/x~1y", "/gone", "/on", "/n"]
                .map(str::to_owned)
                .to_vec(),
            ..Release::default()
        };
        let values: Value = serde_json::from_str(&without_secrets(&release)).unwrap();
        let of_that_form = json!({ "a": [{ "x/y": "not-shown-not-sh" }], "on": true, "n": 0 });
        assert_eq!(values, of_that_form);
    }

    /// Whatever their names hold. What `helm show crds` has beyond them is of subcharts.
    #[test]
    fn a_dry_run_tells_the_files_of_the_chart_itself() {
        let file = |name: &str, text: &str| json!({ "name": name, "data": base64::encode_base64_text(text.as_bytes()) });
        let files = [
            file("crds/a\nitems: []\n#.yaml", "kind: A"),
            file("crds/b.JSON", "---\nkind: B\n"),
            file("crds/note.txt", "none"),
            file("other.yaml", "none"),
        ];
        let told = json!({ "chart": { "files": files } });
        let own = Some(vec!["kind: A".to_owned(), "---\nkind: B\n".to_owned()]);
        assert_eq!(list_own_texts(&told, "kind: A\n---\nkind: B\n\n"), own);
        assert_eq!(
            list_own_texts(&told, "---\nkind: A\n---\n---\nkind: B\n"),
            own
        );
        for more in [
            "kind: A\nkind: B\nkind: C\n",
            "kind: A\nkind: B\n#\n",
            "kind: A\n",
        ] {
            assert_eq!(list_own_texts(&told, more), None, "{more}");
        }
        assert_eq!(
            list_own_texts(&json!({ "chart": { "files": null } }), "kind: A\n"),
            None
        );
    }

    /// A template that Helm writes by chance in one of two renderings is no definition.
    #[test]
    fn a_template_is_no_file_of_definitions() {
        let is_one = |path: &str| is_definition_file(Path::new(path));
        assert!(is_one("c/crds/a.yaml") && is_one("c/charts/a/charts/b/crds/sub/a.yaml"));
        assert!(is_one("c/charts/crds/a.yaml") && is_one("crds/a.yaml"));
        assert!(!is_one("c/templates/a.yaml") && !is_one("c/charts/a/templates/crds.yaml"));
    }

    /// Charts may be named `.` or `..`, and then their files go by the paths of others.
    #[test]
    fn no_name_of_a_chart_hides_a_file_of_definitions() {
        let path = "c/charts/templates/crds/a.yaml";
        let written = |texts: &[&str]| {
            let heads = texts.iter();
            let text = heads.map(|text| format!("---\n# Source: {path}\n{text}\n"));
            BTreeMap::from([(PathBuf::from(path), text.collect::<String>())])
        };
        let template = written(&["kind: A"]);
        let both = written(&["kind: B", "kind: A"]);
        assert_eq!(
            select_definition_texts(&template, &BTreeMap::new()),
            Ok(vec!["kind: A\n".to_owned()])
        );
        assert_eq!(select_definition_texts(&template, &template), Ok(vec![]));
        assert!(select_definition_texts(&both, &template).is_err());

        let beside = |path: &str| BTreeMap::from([(PathBuf::from(path), String::new())]);
        let kept = keep_within_output(beside("chart/c/crds/a.yaml")).unwrap();
        assert_eq!(kept, beside("c/crds/a.yaml"));
        assert!(keep_within_output(beside("charts/x/crds/a.yaml")).is_err());
    }

    #[test]
    fn the_head_of_a_written_file_is_no_part_of_it() {
        let strip = |name: &str| {
            let text = format!("---\n# Source: {name}\n%YAML 1.1\n");
            strip_head(Path::new(name), &text).map(str::to_owned)
        };
        assert_eq!(strip("c/crds/a b.yaml"), Ok("%YAML 1.1\n".to_owned()));
        for end in ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"] {
            let refused = strip(&format!("c/crds/a{end}items: []{end}#.yaml"));
            assert!(
                refused.unwrap_err().as_words().contains("rename it"),
                "{end:?}"
            );
        }
        assert!(strip_head(Path::new("c/crds/a.yaml"), "kind: A\n").is_err());
    }
}
