//! `railwright explain WHAT`: what a code means and what to do; or why a host or a cluster gets
//! what it gets.

use super::{CommandFailure, Exit, explain_host};
use include_dir::{Dir, include_dir};
use railwright_base::Diagnostic;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_report::{document, knowledge, out, wrap};
use railwright_session::{Knowledge, read_inventory};
use std::path::{Path, PathBuf};

static CODES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/docs/codes");

/// Explain a code such as RW0112, or why a host, a switch or a Kubernetes cluster gets what it
/// gets: host/gpu01, switch/leaf1, kube/prod
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The code, as it stands after `error` or `warning`; or host/NAME, host/NAME/KIND/RESOURCE,
    /// switch/NAME, kube/NAME, an address below it, or what a screen calls it: 'gpu01 link ens4'
    what: String,
    /// The folder that holds the spec; this one unless said otherwise
    inventory: Option<PathBuf>,
    /// Only this: KIND/RESOURCE, or KIND/RESOURCE/FIELD such as link/ens4/mtu
    #[arg(long, value_name = "PATH")]
    attribute: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Explains a code by its page, its rule or its symptom, or a target by the inventory.
pub fn run(arguments: &Explain) -> Result<Exit, CommandFailure> {
    if arguments.what.trim().contains(['/', ' ']) {
        return explain_subject(arguments);
    }
    let code = arguments.what.to_uppercase();
    if let Some((_, page)) = list_code_pages().find(|(name, _)| *name == code) {
        return print_page(&code, page, arguments.json);
    }
    // An inventory may hold rules of its own.
    let known = match &arguments.inventory {
        Some(inventory) => read_inventory(inventory)?.knowledge,
        None => Knowledge::read("", &[])?,
    };
    if let Some(rule) = known.rules.rules.get(&code) {
        match arguments.json {
            true => out::print_result(&document::render_json_document(
                &document::RulesDocument::of([rule]),
            )),
            false => out::print_result(&knowledge::render_rule_page(rule)),
        }
        return Ok(Exit::Done);
    }
    let symptoms = super::doctor::load_shipped_symptoms()?;
    if let Some(symptom) = symptoms.iter().find(|symptom| symptom.code == code) {
        return print_page(
            &code,
            &super::doctor::render_symptom_page(symptom),
            arguments.json,
        );
    }
    let of_pages = list_code_pages().map(|(name, _)| name);
    let of_rules = known.rules.rules.keys().map(String::as_str);
    let of_symptoms = symptoms.iter().map(|symptom| symptom.code.as_str());
    let near = find_nearest_word(&code, of_pages.chain(of_rules).chain(of_symptoms));
    Err(report_unknown_code(&arguments.what, near).into())
}

/// Explains a target or what is below it, by its address or as a screen names it.
fn explain_subject(arguments: &Explain) -> Result<Exit, CommandFailure> {
    let inventory = arguments.inventory.as_deref().unwrap_or(Path::new("."));
    let what = arguments.what.trim();
    let is_address = ["host/", "kube/", "switch/"]
        .iter()
        .any(|target| what.starts_with(target))
        && !what.contains(' ');
    let what = if is_address {
        what.to_owned()
    } else {
        explain_host::resolve_address(what, inventory)?
    };
    explain_host::explain_target(
        &what,
        arguments.attribute.as_deref(),
        inventory,
        arguments.json,
    )
}

fn report_unknown_code(what: &str, near: Option<&str>) -> Diagnostic {
    let next = match near {
        Some(near) => format!("did you mean `railwright explain {near}`?"),
        None => "codes look like RW0112; a host is named host/NAME".to_owned(),
    };
    let message = format!("there is no code `{}`", one_line(what, 40));
    Diagnostic::error("RW1008", message).next(next)
}

/// A page, which is text.
fn print_page(code: &str, page: &str, json: bool) -> Result<Exit, CommandFailure> {
    if json {
        let only = Diagnostic::error(
            "RW1032",
            format!("the page of {code} is text; rules and hosts are explained as JSON"),
        );
        return Err(only.next(format!("railwright explain {code}")).into());
    }
    out::print_result(&wrap::wrap_text_page(
        &page.replacen("# ", &format!("{code}: "), 1),
        100,
    ));
    Ok(Exit::Done)
}

/// Every code with its page, by code.
pub fn list_code_pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    CODES
        .files()
        .filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_starts_with_its_title() {
        assert!(list_code_pages().count() > 20);
        for (name, page) in list_code_pages() {
            let wide = wrap::wrap_text_page(page, 100)
                .lines()
                .find(|line| line.chars().count() > 100)
                .map(str::to_owned);
            assert_eq!(wide, None, "{name}");
            assert!(
                name.len() == 6 && name.starts_with("RW") && page.starts_with("# "),
                "{name}"
            );
        }
    }
}
