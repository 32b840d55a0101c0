//! The screen of `doctor` and its JSON: the layers that show nothing, the first cause with its
//! lines and the next command, then what follows from it or comes after it, one line each.

use crate::document as documents;
use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::{clean_line, format_count};
use railwright_jobs::doctor::{Diagnosis, Layer, SymptomFinding};
use railwright_verify::nccl::transport::Transport;
use railwright_verify::nccl::{Aspect, JobVerdict};
use railwright_verify::result::CheckVerdict;
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document.
const FORMAT_VERSION: &str = "2.0";

/// The whole screen; `name` is what the log is called, `words` those by which a command that goes
/// on finds it.
pub fn render_diagnosis_screen(diagnosis: &Diagnosis, name: &str, words: &str) -> String {
    let log = &diagnosis.log;
    let mut out = format!(
        "doctor {name}   {}, transport {}\n",
        format_count(log.lines as usize, "line"),
        diagnosis.proof.transport.word()
    );
    let Some((first, rest)) = diagnosis.found.split_first() else {
        out.push_str(&render_no_cause_found(diagnosis, words));
        return out;
    };
    out.push_str(&render_heading("FIRST CAUSE"));
    let sound: Vec<&str> = diagnosis.sound_layers().map(Layer::word).collect();
    if !sound.is_empty() {
        out.push_str(&wrap_labelled_text(
            "   layers ",
            &format!(
                "{}: nothing in the log speaks against them",
                sound.join(", ")
            ),
            COLUMNS,
        ));
    }
    out.push_str(&render_first_cause(first));
    if !rest.is_empty() {
        out.push_str(&render_heading("FOLLOWS FROM IT, OR COMES AFTER IT"));
        for later in rest {
            out.push_str(&render_later_symptom(later));
        }
    }
    out
}

/// Renders the diagnosis as a JSON document.
pub fn render_diagnosis_json(diagnosis: &Diagnosis, name: &str) -> String {
    documents::render_json_document(&DiagnosisDocument::of(diagnosis, name))
}

fn render_no_cause_found(diagnosis: &Diagnosis, words: &str) -> String {
    let (title, next) = match diagnosis.proof.verdict {
        JobVerdict::Passed if !diagnosis.job_goes() => (
            "INCONCLUSIVE: RDMA was set up between hosts, and no line that can be read says that the \
             job goes on",
            "take the log again once the job has gone on for a while; of one that hangs, `py-spy \
             dump` or the stacks of its ranks tell more"
                .to_owned(),
        ),
        JobVerdict::Passed if list_proof_warnings(diagnosis).next().is_some() => (
            "THE JOB GOES: the log proves that RDMA was used, and not all is as it should be",
            format!("railwright job prove {words} tells more"),
        ),
        JobVerdict::Passed => (
            "NOTHING WRONG: the log proves that RDMA was used",
            format!("railwright job prove {words} tells more"),
        ),
        _ => (
            "INCONCLUSIVE: no symptom that railwright knows is in the log",
            format!(
                "railwright job prove {words} says what is missing; the log of another rank, of \
                 the operator or of the node may show it"
            ),
        ),
    };
    let doubts: String = list_proof_warnings(diagnosis)
        .map(|(aspect, code, measured)| {
            wrap_labelled_text(
                &format!(" ~ {:<12} {code}   ", aspect.word()),
                measured,
                COLUMNS,
            )
        })
        .collect();
    format!(
        "{}{doubts}{}",
        render_heading(title),
        wrap_labelled_text("   next     ", &next, COLUMNS)
    )
}

/// What the proof warns of: no cause for a job that does not go, and yet not as it should be.
fn list_proof_warnings(
    diagnosis: &Diagnosis,
) -> impl Iterator<Item = (Aspect, &'static str, &str)> {
    let warned = diagnosis
        .proof
        .aspects
        .iter()
        .filter(|(_, evaluation)| evaluation.verdict == CheckVerdict::Warning);
    warned.filter_map(|(aspect, evaluation)| {
        Some((*aspect, evaluation.code?, evaluation.measured.as_str()))
    })
}

fn render_first_cause(found: &SymptomFinding) -> String {
    let symptom = &found.symptom;
    let mut out = wrap_labelled_text(
        &format!(" ! {:<12} {}   ", symptom.layer.word(), symptom.code),
        &symptom.title,
        COLUMNS,
    );
    for seen in &found.lines {
        let often = if seen.lines > 1 {
            format!(" ({} times)", seen.lines)
        } else {
            String::new()
        };
        out.push_str(&wrap_labelled_text(
            &format!("       line {:<5}", seen.line),
            &format!("{}{often}", seen.text),
            COLUMNS,
        ));
    }
    let mut rows = vec![("cause", &symptom.cause), ("means", &symptom.means)];
    rows.extend(symptom.next.iter().map(|next| ("next", next)));
    rows.push(("source", &symptom.source));
    for (word, text) in rows {
        out.push_str(&wrap_labelled_text(
            &format!("       {word:<8}"),
            text,
            COLUMNS,
        ));
    }
    out
}

fn render_later_symptom(found: &SymptomFinding) -> String {
    let symptom = &found.symptom;
    let line = found
        .lines
        .first()
        .map_or(String::new(), |seen| format!(" (line {})", seen.line));
    wrap_labelled_text(
        &format!(" ~ {:<12} {}   ", symptom.layer.word(), symptom.code),
        &format!("{}{line}", symptom.title),
        COLUMNS,
    )
}

/// `doctor --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiagnosisDocument<'a> {
    format_version: &'static str,
    /// The log, as it was named.
    log: &'a str,
    /// Lines of it.
    lines: u64,
    /// What carried the data between hosts.
    transport: Transport,
    /// Whether the log proves that RDMA was used.
    verdict: JobVerdict,
    /// Layers below the first broken one.
    sound_layers: Vec<Layer>,
    /// Symptoms: the first is the first cause, and the others follow from it or come after it.
    found: Vec<FoundDocument<'a>>,
}

/// A symptom.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundDocument<'a> {
    id: &'a str,
    /// A code of `railwright explain`.
    code: &'a str,
    layer: Layer,
    title: &'a str,
    cause: &'a str,
    /// What it does to the job.
    means: &'a str,
    /// What to run or to edit, in order.
    next: &'a [String],
    /// Where that is stated.
    source: &'a str,
    /// The lines that show it, the first of each of its words.
    seen: Vec<SeenDocument>,
}

/// A line of the log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SeenDocument {
    /// From 1.
    line: u64,
    text: String,
    /// Lines that say the same.
    times: u64,
}

impl<'a> DiagnosisDocument<'a> {
    /// Of a log.
    pub fn of(diagnosis: &'a Diagnosis, log: &'a str) -> Self {
        DiagnosisDocument {
            format_version: FORMAT_VERSION,
            log,
            lines: diagnosis.log.lines,
            transport: diagnosis.proof.transport,
            verdict: diagnosis.proof.verdict,
            sound_layers: match diagnosis.found.is_empty() {
                true => Vec::new(),
                false => diagnosis.sound_layers().collect(),
            },
            found: diagnosis.found.iter().map(build_found_document).collect(),
        }
    }
}

fn build_found_document(found: &SymptomFinding) -> FoundDocument<'_> {
    let symptom = &found.symptom;
    FoundDocument {
        id: &symptom.id,
        code: &symptom.code,
        layer: symptom.layer,
        title: &symptom.title,
        cause: &symptom.cause,
        means: &symptom.means,
        next: &symptom.next,
        source: &symptom.source,
        seen: found
            .lines
            .iter()
            .map(|seen| SeenDocument {
                line: seen.line,
                text: clean_line(&seen.text),
                times: seen.lines,
            })
            .collect(),
    }
}
