//! What `doctor` knows, as a page: `docs/symptoms.md` is made of `modules/catalog/symptoms/*.yaml`;
//! RAILWRIGHT_UPDATE=1 writes it anew.

use crate::{none, root};
use railwright_jobs::doctor::{Layer, Symptom};

fn symptoms() -> Vec<Symptom> {
    railwright_jobs::doctor::load_symptoms().unwrap_or_else(|(problems, _)| panic!("{problems:#?}"))
}

#[test]
fn the_page_of_symptoms_is_what_its_data_says() {
    let all = symptoms();
    let mut text = format!(
        "# What `railwright doctor` knows\n\
         \n\
         {} symptoms that a log can show, layer by layer: `railwright doctor --log FILE` walks the \
         layers in this order, and the\n\
         first one that is broken has the first cause. `railwright explain CODE` shows the cause, \
         the commands that go on, and a log as an example;\n\
         each symptom is held to that log by `cargo test --lib doctor`. Made of \
         `modules/catalog/symptoms/*.yaml`.\n",
        all.len()
    );
    for layer in Layer::ALL {
        text.push_str(&format!(
            "\n## {}\n\n| code | what is wrong | cause | next | source |\n|---|---|---|---|---|\n",
            layer.word()
        ));
        for symptom in all.iter().filter(|symptom| symptom.layer == layer) {
            let cells = [
                &symptom.code,
                &symptom.title,
                &symptom.cause,
                &symptom.next[0],
                &symptom.source,
            ];
            let cells: Vec<String> = cells
                .iter()
                .map(|cell| cell.trim().replace('|', "\\|").replace('\n', " "))
                .collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    let path = root().join("docs/symptoms.md");
    if std::env::var_os("RAILWRIGHT_UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        text,
        "RAILWRIGHT_UPDATE=1 writes it anew"
    );
}

/// A code of a symptom is nobody else's, and what a symptom goes by has a page.
#[test]
fn codes_of_symptoms_are_their_own() {
    let page = |code: &str| root().join(format!("docs/codes/{code}.md")).is_file();
    let all = symptoms();
    let mut findings: Vec<String> = all
        .iter()
        .filter(|symptom| page(&symptom.code))
        .map(|symptom| format!("{}: {} has a page already", symptom.id, symptom.code))
        .collect();
    for symptom in &all {
        findings.extend(
            symptom
                .verdict
                .iter()
                .chain(&symptom.failed)
                .filter(|code| !page(code))
                .map(|code| format!("{}: no page of {code}", symptom.id)),
        );
    }
    none(&findings);
}
