//! From a request to what is printed: the inventory is read, the job rendered, and objects, reasons or JSON delivered.

use crate::base::{Diagnostic, Severity};
use crate::cli::inventory::{self, Inventory};
use crate::cli::knowledge::Knowledge;
use crate::cli::{Exit, Failure};
use crate::report::out::{self, Look};
use crate::report::{diagnostic, document, knowledge, workload as screen};
use crate::spec::{self, Loaded, Sources};
use crate::system::clock;
use crate::workload::{Asked, Inputs, Rendered, Request, Templates, render};
use std::path::PathBuf;

/// What is printed.
#[derive(Debug, Clone, clap::Args)]
pub struct Delivery {
    /// Print why each variable and each argument is there, and what it costs, in the place of the objects
    #[arg(long)]
    explain: bool,
    /// Print JSON: objects, reasons and findings
    #[arg(long, conflicts_with = "explain")]
    json: bool,
}

/// The inventory that a job is rendered with, if there is one, and what is known.
pub struct Ground {
    inventory: Option<Inventory>,
    knowledge: Knowledge,
    loaded: Loaded,
}

impl Ground {
    /// Of an inventory; without one nothing is known of hosts and fabric.
    pub fn read(path: Option<&PathBuf>) -> Result<Ground, Failure> {
        let Some(path) = path else {
            let loaded = spec::case(&serde_json::json!({})).map_err(|why| Diagnostic::error("RW1229", why))?;
            return Ok(Ground { inventory: None, knowledge: Knowledge::read("", &[])?, loaded });
        };
        let read = inventory::read(path)?;
        Ok(Ground { knowledge: read.knowledge.clone(), loaded: read.loaded.clone(), inventory: Some(read) })
    }

    fn templates(&self) -> Result<Templates, Failure> {
        match &self.inventory {
            Some(inventory) => inventory.job_templates(),
            None => Templates::load("", []).map_err(|(problems, sources)| Failure::of_input(problems, &sources)),
        }
    }

    /// Renders without printing; what rules refuse is an error.
    pub fn objects(&self, request: &Request, asked: &Asked) -> Result<String, Failure> {
        let templates = self.templates()?;
        let (rendered, sources) = self.rendered(request, asked, &templates)?;
        let told = rendered.told();
        match told.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            true => Err(refused(told, &sources)),
            false => Ok(screen::objects(&rendered)),
        }
    }

    fn rendered(&self, request: &Request, asked: &Asked, templates: &Templates) -> Result<(Rendered, Sources), Failure> {
        let now = clock::now();
        let mut sources = self.knowledge.sources(&self.loaded.sources);
        sources.join(&templates.sources);
        asked.source().into_iter().for_each(|line| sources.add(line.clone()));
        let inputs = Inputs {
            loaded: &self.loaded,
            catalog: &self.knowledge.catalog,
            rules: &self.knowledge.rules,
            templates,
            today: now.get(..10).unwrap_or_default(),
            derives: self.inventory.is_some(),
        };
        match render(inputs, request, asked) {
            Ok(rendered) => Ok((rendered, sources)),
            Err(problems) => Err(Failure::from(problems).with_sources(&sources)),
        }
    }

    /// Renders and prints.
    pub fn deliver(&self, request: &Request, asked: &Asked, delivery: &Delivery) -> Result<Exit, Failure> {
        let templates = self.templates()?;
        let (rendered, sources) = self.rendered(request, asked, &templates)?;
        let told = rendered.told();
        if delivery.json {
            out::print(&document::text(&screen::JobDocument::of(&rendered, &sources)));
            return Ok(if rendered.is_lawful() { Exit::Done } else { Exit::Failed });
        }
        if told.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Err(refused(told, &sources));
        }
        if !told.is_empty() {
            out::note(&diagnostic::text(&told, &sources, Look::of_stderr()));
        }
        if delivery.explain {
            out::print(&screen::explained(&rendered));
            out::print(&knowledge::waived(&rendered.judgement.waived));
        } else {
            out::print(&screen::objects(&rendered));
        }
        Ok(Exit::Done)
    }
}

/// What rules refuse is not printed: nobody should apply it by a pipe.
fn refused(told: Vec<Diagnostic>, sources: &Sources) -> Failure {
    let told = told.into_iter().map(|diagnostic| match diagnostic.severity {
        Severity::Error => diagnostic.state("nothing was rendered"),
        Severity::Warning => diagnostic,
    });
    Failure::from(told.collect::<Vec<_>>()).with_sources(sources)
}
