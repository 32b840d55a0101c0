//! The pages that railwright was made from: every line of theirs is covered by something that is
//! there, or said to be open. `docs/reference-guides.md` is made of `docs/reference-guides.yaml`; RAILWRIGHT_UPDATE=1
//! writes it anew.

use crate::{none, root};
use railwright_verify::VerifyCheck;
use railwright_workload::JobRequestKind;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    pages: Vec<Page>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    page: String,
    title: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    Command,
    Value,
    Output,
    Constraint,
    Question,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    says: String,
    sort: Sort,
    #[serde(default)]
    does: Option<String>,
    #[serde(default)]
    open: Option<String>,
    #[serde(default)]
    translate: bool,
    #[serde(default)]
    modules: Vec<String>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    codes: Vec<String>,
    #[serde(default)]
    symptoms: Vec<String>,
    #[serde(default)]
    checks: Vec<String>,
    #[serde(default)]
    inventories: Vec<String>,
    #[serde(default)]
    catalog: Vec<String>,
    #[serde(default)]
    jobs: Vec<String>,
}

impl Row {
    fn covers(&self) -> Vec<String> {
        let named = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let translated = self.translate.then(|| "`railwright translate`".to_owned());
        [
            named("modules", &self.modules),
            named("rules", &self.rules),
            named("errors", &self.codes),
            named("doctor:", &self.symptoms),
            named("verify:", &self.checks),
            named("inventories", &self.inventories),
            named("catalogue:", &self.catalog),
            named("`railwright job render`:", &self.jobs),
            translated,
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn map() -> Map {
    let text = std::fs::read_to_string(root().join("docs/reference-guides.yaml"))
        .expect("docs/reference-guides.yaml is there");
    serde_yaml::from_str(&text).expect("docs/reference-guides.yaml is a map of the pages")
}

#[test]
fn every_line_of_the_seeds_is_covered_or_open() {
    let rules = railwright_knowledge::rules::load_rules("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let catalog = railwright_knowledge::catalog::load_catalog("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let symptoms = railwright_jobs::doctor::load_symptoms()
        .map_err(|(problems, _)| problems)
        .unwrap();
    let dictionary = railwright_knowledge::translate::load_translations()
        .map_err(|(problems, _)| problems)
        .unwrap();
    let checks: Vec<String> = [
        VerifyCheck::Connection,
        VerifyCheck::RunningModules,
        VerifyCheck::Gpus,
        VerifyCheck::PcieLink,
        VerifyCheck::Routes,
        VerifyCheck::GpuDirect,
        VerifyCheck::LiveTraffic,
        VerifyCheck::Netdev,
        VerifyCheck::RdmaLink,
        VerifyCheck::Gid,
        VerifyCheck::PathMtu,
        VerifyCheck::Marks,
        VerifyCheck::Loopback,
        VerifyCheck::Bandwidth,
        VerifyCheck::Latency,
        VerifyCheck::Counters,
    ]
    .iter()
    .map(VerifyCheck::word)
    .collect();
    let mut findings = Vec::new();
    for page in map().pages {
        for row in &page.rows {
            let mut wrong =
                |why: String| findings.push(format!("{}: `{}`: {why}", page.page, row.says));
            let folder = |parent: &str, name: &str| root().join(parent).join(name).is_dir();
            row.modules
                .iter()
                .filter(|name| !folder("modules", name))
                .for_each(|name| wrong(format!("no module {name}")));
            row.inventories
                .iter()
                .filter(|name| !folder("inventories", name))
                .for_each(|name| wrong(format!("no inventory {name}")));
            row.rules
                .iter()
                .filter(|code| !rules.rules.contains_key(*code))
                .for_each(|code| wrong(format!("no rule {code}")));
            let is_kind =
                |job: &&String| JobRequestKind::ALL.iter().any(|kind| kind.word() == *job);
            row.jobs
                .iter()
                .filter(|job| !is_kind(job))
                .for_each(|job| wrong(format!("no kind of job {job}")));
            let page_of = |code: &String| root().join(format!("docs/codes/{code}.md")).is_file();
            row.codes
                .iter()
                .filter(|code| !page_of(code))
                .for_each(|code| wrong(format!("no page of {code}")));
            let known = |id: &String| symptoms.iter().any(|symptom| symptom.id == *id);
            row.symptoms
                .iter()
                .filter(|id| !known(id))
                .for_each(|id| wrong(format!("no symptom {id}")));
            row.checks
                .iter()
                .filter(|check| !checks.contains(check))
                .for_each(|check| wrong(format!("no check {check}")));
            let known = |row: &String| {
                let (sort, name) = row.split_once(' ').unwrap_or((row, ""));
                match sort {
                    "gpu" => catalog.gpu.get(name).is_some(),
                    "nic" => catalog.nic.get(name).is_some(),
                    "instance" => catalog.instance_of(name).is_some(),
                    "os" => catalog.system(name).is_some(),
                    "acs" => catalog
                        .acs
                        .entries()
                        .any(|entry| entry.content.name == name),
                    "variable" => catalog.variable.get(name).is_some(),
                    "argument" => catalog.argument.get(name).is_some(),
                    "user-space" => catalog.user_space.get(name).is_some(),
                    "example" => catalog.example.get(name).is_some(),
                    "image" => catalog.image.get(name).is_some(),
                    "profiler" => catalog.profiler.get(name).is_some(),
                    _ => false,
                }
            };
            row.catalog
                .iter()
                .filter(|row| !known(row))
                .for_each(|row| wrong(format!("no row {row}")));
            let understood = || {
                railwright_knowledge::translate::translate_script(&row.says, &dictionary)
                    .is_ok_and(|said| said.is_understood())
            };
            if row.translate && !understood() {
                wrong("translate does not understand it".to_owned());
            }
            if row.covers().is_empty() == row.does.is_some() {
                wrong("what covers it and what that does go together".to_owned());
            }
            if row.covers().is_empty() && row.open.is_none() {
                wrong("neither covered nor open".to_owned());
            }
        }
    }
    none(&findings);
}

#[test]
fn the_map_of_the_seeds_is_what_its_data_says() {
    let mut text = String::from(
        "# The pages that railwright was made from\n\
         \n\
         Five pages that operators follow by hand, line by line: what of railwright covers each, \
         or what is missing yet. Made of\n\
         `reference-guides.yaml` beside it; what it names is held to what is there by `tests/tidy/reference_guides.rs`.\n",
    );
    for page in map().pages {
        let open = page.rows.iter().filter(|row| row.open.is_some()).count();
        text.push_str(&format!(
            "\n## {}: {}\n\n{} lines, {open} of them open in whole or in part.\n\n",
            page.page,
            page.title,
            page.rows.len()
        ));
        text.push_str("| the page | | railwright |\n|---|---|---|\n");
        for row in page.rows {
            let sort = match row.sort {
                Sort::Command => "command",
                Sort::Value => "value",
                Sort::Output => "output",
                Sort::Constraint => "constraint",
                Sort::Question => "question",
            };
            let covers = row.covers().join("; ");
            let does = row.does.map(|does| format!("{does} ({covers})"));
            let open = row.open.map(|open| format!("**open:** {open}"));
            let said = [does, open]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; ")
                .replace('|', "\\|");
            text.push_str(&format!(
                "| {} | {sort} | {said} |\n",
                row.says.replace('|', "\\|").replace('\n', " ")
            ));
        }
    }
    let path = root().join("docs/reference-guides.md");
    if std::env::var_os("RAILWRIGHT_UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        text,
        "RAILWRIGHT_UPDATE=1 writes it anew"
    );
}
