//! From a request to what is printed: the inventory is read, the job rendered, and objects, reasons
//! or JSON delivered.

use crate::cli::{CommandFailure, Exit};
use railwright_base::{Diagnostic, Severity};
use railwright_knowledge::spec::{self, LoadedSpec, Sources};
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::out;
use railwright_report::pair::{self as screen_of_pair, PairDocument};
use railwright_report::{document, knowledge, workload as screen};
use railwright_session::{Inventory, Knowledge, read_inventory};
use railwright_system::{clock, terminal};
use railwright_workload::{
    Half, JobRenderInputs, JobRequest, Pair, RequestPlaces, Templates, render_job, render_job_pair,
};
use std::path::PathBuf;

/// What is printed.
#[derive(Debug, Clone, clap::Args)]
pub struct Delivery {
    /// Print why each variable and each argument is there, and what it costs, in the place of the
    /// objects
    #[arg(long)]
    explain: bool,
    /// Print JSON: objects, reasons and findings
    #[arg(long, conflicts_with = "explain")]
    json: bool,
}

impl Delivery {
    /// Who asks for JSON gets it of a job that was refused as well, whatever refused it.
    pub fn answered(&self, made: Result<Exit, CommandFailure>) -> Result<Exit, CommandFailure> {
        match made {
            Err(failure) if self.json => {
                out::print_result(&document::render_json_document(
                    &screen::RefusedJobDocument::of(
                        &failure.error.diagnostics,
                        &failure.error.sources,
                    ),
                ));
                Ok(failure.exit)
            }
            made => made,
        }
    }
}

/// What is desired of a pair.
#[derive(Debug, Clone, Copy)]
pub struct JobPairOptions {
    /// One half alone.
    pub only: Option<Half>,
    /// The size of the model.
    pub parameters: Option<u64>,
}

/// The inventory that a job is rendered with, if there is one, and what is known.
pub struct JobRenderContext {
    inventory: Option<Inventory>,
    knowledge: Knowledge,
    loaded: LoadedSpec,
}

impl JobRenderContext {
    /// The inventory, where one was given.
    pub fn inventory(&self) -> Option<&Inventory> {
        self.inventory.as_ref()
    }

    /// Of an inventory; without one nothing is known of hosts and fabric.
    pub fn read(path: Option<&PathBuf>) -> Result<JobRenderContext, CommandFailure> {
        let Some(path) = path else {
            let loaded = spec::load_case_spec(&serde_json::json!({}))
                .map_err(|why| Diagnostic::error("RW1229", why))?;
            return Ok(JobRenderContext {
                inventory: None,
                knowledge: Knowledge::read("", &[])?,
                loaded,
            });
        };
        Ok(JobRenderContext::of(read_inventory(path)?))
    }

    /// Of an inventory that was read.
    pub fn of(read: Inventory) -> JobRenderContext {
        JobRenderContext {
            knowledge: read.knowledge.clone(),
            loaded: read.loaded.clone(),
            inventory: Some(read),
        }
    }

    fn templates(&self) -> Result<Templates, CommandFailure> {
        match &self.inventory {
            Some(inventory) => Ok(inventory.job_templates()?),
            None => Templates::load("", [])
                .map_err(|(problems, sources)| CommandFailure::of_input(problems, &sources)),
        }
    }

    /// Renders without printing; what rules refuse is an error.
    pub fn objects(
        &self,
        request: &JobRequest,
        asked: &RequestPlaces,
    ) -> Result<String, CommandFailure> {
        let (rendered, sources) =
            self.render(asked, |inputs| render_job(inputs, request, asked))?;
        let diagnostics = rendered.told();
        match has_errors(&diagnostics) {
            true => Err(refuse_rendering(diagnostics, &sources)),
            false => Ok(screen::render_job_objects(&rendered)),
        }
    }

    /// Renders and prints.
    pub fn deliver(
        &self,
        request: &JobRequest,
        asked: &RequestPlaces,
        delivery: &Delivery,
    ) -> Result<Exit, CommandFailure> {
        let (rendered, sources) =
            self.render(asked, |inputs| render_job(inputs, request, asked))?;
        if delivery.json {
            out::print_result(&document::render_json_document(&screen::JobDocument::of(
                &rendered, &sources,
            )));
            return Ok(if rendered.is_lawful() {
                Exit::Done
            } else {
                Exit::Failed
            });
        }
        print_warnings_or_fail(rendered.told(), &sources)?;
        if delivery.explain {
            out::print_result(&screen::render_job_explanation(&rendered));
            out::print_result(&knowledge::render_waived_rules(&rendered.evaluation.waived));
        } else {
            out::print_result(&screen::render_job_objects(&rendered));
        }
        Ok(Exit::Done)
    }

    /// Renders a job with RDMA and without, and prints both or one of them; `place` is where they
    /// are compared.
    pub fn deliver_pair(
        &self,
        request: &JobRequest,
        asked: &RequestPlaces,
        delivery: &Delivery,
        desired: JobPairOptions,
        place: &str,
    ) -> Result<Exit, CommandFailure> {
        let (both, sources) = self.render(asked, |inputs| {
            render_job_pair(inputs, request, asked, desired.parameters)
        })?;
        let next = screen_of_pair::list_pair_commands(
            &select_typed_words(delivery, desired),
            &request.pods().name,
            place,
        );
        if delivery.json {
            out::print_result(&document::render_json_document(&PairDocument::of(
                &both, &sources, &next,
            )));
            return Ok(if both.rdma.is_lawful() && both.tcp.is_lawful() {
                Exit::Done
            } else {
                Exit::Failed
            });
        }
        print_warnings_or_fail(collect_pair_diagnostics(&both), &sources)?;
        match (delivery.explain, desired.only) {
            (true, _) => out::print_result(&screen_of_pair::render_pair_explanation(&both, &next)),
            (false, None) => {
                out::print_result(&format!(
                    "{}---\n{}",
                    screen::render_job_objects(&both.rdma),
                    screen::render_job_objects(&both.tcp)
                ));
                out::print_note(&screen_of_pair::render_pair_hint(&next));
            }
            (false, Some(Half::Rdma)) => out::print_result(&screen::render_job_objects(&both.rdma)),
            (false, Some(Half::Tcp)) => out::print_result(&screen::render_job_objects(&both.tcp)),
        }
        Ok(Exit::Done)
    }

    /// Renders with the inventory and what is known; with the files that diagnostics point into.
    pub fn render<T>(
        &self,
        asked: &RequestPlaces,
        render: impl FnOnce(JobRenderInputs<'_>) -> Result<T, Vec<Diagnostic>>,
    ) -> Result<(T, Sources), CommandFailure> {
        let templates = self.templates()?;
        let now = clock::read_current_time();
        let mut sources = self.knowledge.sources(&self.loaded.sources);
        sources.join(&templates.sources);
        if let Some(line) = asked.source() {
            sources.add(line.clone());
        }
        let inputs = JobRenderInputs {
            loaded: &self.loaded,
            catalog: &self.knowledge.catalog,
            rules: &self.knowledge.rules,
            templates: &templates,
            today: now.get(..10).unwrap_or_default(),
            derives: self.inventory.is_some(),
        };
        match render(inputs) {
            Ok(rendered) => Ok((rendered, sources)),
            Err(problems) => Err(CommandFailure::from(problems).with_sources(&sources)),
        }
    }
}

/// What is reported of both is reported once.
fn collect_pair_diagnostics(both: &Pair) -> Vec<Diagnostic> {
    let of_rdma = both.rdma.told();
    let mut of_tcp = both.tcp.told();
    of_tcp.retain(|diagnostic| !of_rdma.contains(diagnostic));
    [of_rdma, of_tcp, both.forecast.clone()].concat()
}

/// What was typed behind `compare`, without which half and what is printed in the place of the
/// objects.
fn select_typed_words(delivery: &Delivery, desired: JobPairOptions) -> Vec<String> {
    let words = terminal::collect_typed_words();
    let mut words: Vec<String> = words
        .into_iter()
        .skip_while(|word| word != "compare")
        .skip(1)
        .collect();
    // It stands before the kind, so nothing of the job's own command is taken for it.
    if let Some(place) = words.iter().position(|word| {
        desired.only.is_some() && (word == "--only" || word.starts_with("--only="))
    }) {
        let end = if words[place] == "--only" {
            place + 2
        } else {
            place + 1
        };
        words.drain(place..end.min(words.len()));
    }
    for (is_set, option) in [(delivery.explain, "--explain"), (delivery.json, "--json")] {
        if let Some(place) = words.iter().position(|word| is_set && word == option) {
            words.remove(place);
        }
    }
    words
}

/// Prints warnings; errors end it.
pub fn print_warnings_or_fail(
    diagnostics: Vec<Diagnostic>,
    sources: &Sources,
) -> Result<(), CommandFailure> {
    if has_errors(&diagnostics) {
        return Err(refuse_rendering(diagnostics, sources));
    }
    print_diagnostics(&diagnostics, sources);
    Ok(())
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    let mut diagnostics = diagnostics.iter();
    diagnostics.any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// What rules refuse is not printed: nobody should apply it by a pipe.
fn refuse_rendering(diagnostics: Vec<Diagnostic>, sources: &Sources) -> CommandFailure {
    let diagnostics = diagnostics
        .into_iter()
        .map(|diagnostic| match diagnostic.severity {
            Severity::Error => diagnostic.state("nothing was rendered"),
            Severity::Warning => diagnostic,
        });
    CommandFailure::from(diagnostics.collect::<Vec<_>>()).with_sources(sources)
}
