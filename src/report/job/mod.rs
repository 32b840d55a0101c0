//! The screen of `job prove`: the answer first, then each aspect with what was found, what it means
//! and what to do, then what else the log says of the job.

pub mod compare;
pub mod diagnosis;
pub mod document;
pub mod ladder;
pub mod ray;

use super::document as documents;
use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::{format_count, one_line};
use railwright_verify::CheckVerdict;
use railwright_verify::nccl::{Aspect, JobVerdict, NcclExpectations, NcclLog, NcclProof, devices};
use railwright_verify::result::CheckOutcome;

/// The whole screen.
pub fn render_proof_screen(
    log: &NcclLog,
    proof: &NcclProof,
    expected: &NcclExpectations,
) -> String {
    let mut out = format!("job prove {}   {}\n", expected.log, describe_log_size(log));
    let title = match proof.verdict {
        JobVerdict::Passed => "PASSED: RDMA was used",
        JobVerdict::Failed => "FAILED: not as it must be",
        JobVerdict::Inconclusive => "INCONCLUSIVE: the log does not say enough",
    };
    out.push_str(&render_heading(title));
    for aspect in &proof.aspects {
        out.push_str(&render_aspect(aspect));
    }
    let facts = collect_job_facts(log);
    if !facts.is_empty() {
        out.push_str(&render_heading("THE JOB"));
        for (word, text) in &facts {
            out.push_str(&wrap_labelled_text(
                &format!("   {word:<12} "),
                text,
                COLUMNS,
            ));
        }
    }
    out
}

/// Renders the proof as a JSON document.
pub fn render_proof_json(log: &NcclLog, proof: &NcclProof, expected: &NcclExpectations) -> String {
    documents::render_json_document(&document::ProofDocument::of(log, proof, expected))
}

fn describe_log_size(log: &NcclLog) -> String {
    let hosts = log.hosts().len();
    let named = if hosts == 0 {
        String::new()
    } else {
        format!(", {}", format_count(hosts, "host"))
    };
    let ranks = match log.world {
        Some(world) => format!(", {}", format_count(world as usize, "rank")),
        None => String::new(),
    };
    format!("{}{named}{ranks}", format_count(log.lines as usize, "line"))
}

fn render_aspect((aspect, evaluation): &(Aspect, CheckOutcome)) -> String {
    render_result_row(aspect.word(), evaluation)
}

/// One result below its word.
fn render_result_row(word: &str, evaluation: &CheckOutcome) -> String {
    let mark = match evaluation.verdict {
        CheckVerdict::Failed => '!',
        CheckVerdict::Unknown | CheckVerdict::NotRun => '?',
        CheckVerdict::Warning => '~',
        CheckVerdict::NotApplicable => '-',
        CheckVerdict::Passed => ' ',
    };
    let Some(code) = evaluation.code else {
        return wrap_labelled_text(
            &format!(" {mark} {word:<12} "),
            &evaluation.measured,
            COLUMNS,
        );
    };
    let mut out = format!(" {mark} {word:<12} {code}\n");
    let rows = [
        ("actual", &evaluation.measured),
        ("desired", &evaluation.expected),
        ("means", &evaluation.effect),
        ("next", &evaluation.next),
    ];
    for (word, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
        out.push_str(&wrap_labelled_text(
            &format!("       {word:<8}"),
            text,
            COLUMNS,
        ));
    }
    out
}

/// What else the log says.
fn collect_job_facts(log: &NcclLog) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if log.is_of_ring() {
        let ring = "a ring of MPI's ranks, with no GPU and no NCCL: it tests fabric, pods and MPI \
                    only";
        facts.push(("program", ring.to_owned()));
    }
    if !log.versions.is_empty() {
        facts.push((
            "NCCL",
            log.versions.iter().cloned().collect::<Vec<_>>().join(", "),
        ));
    }
    for group in devices::group_hosts_by_devices(log).iter().take(8) {
        facts.push(("devices", describe_device_group(group)));
    }
    facts.extend(describe_channels(log).map(|words| ("channels", words)));
    for (name, values) in log.environment.iter().take(24) {
        let value = values
            .iter()
            .map(|value| if value.is_empty() { "(empty)" } else { value })
            .collect::<Vec<_>>()
            .join(" or ");
        facts.push(("environment", format!("{name}={value}")));
    }
    if let Some((runs, least, most)) = log.perftest {
        facts.push((
            "perftest",
            format!(
                "{} of ib_write_bw: {least} to {most} Gb/s",
                format_count(runs as usize, "run")
            ),
        ));
    }
    if let (warnings, Some((line, text))) = &log.warnings {
        facts.push((
            "warnings",
            format!("{warnings} of NCCL, the first in line {line}: {text}"),
        ));
    }
    if log.cut > 0 {
        facts.push((
            "cut",
            format!(
                "{} too long, looked at in part",
                format_count(log.cut as usize, "line")
            ),
        ));
    }
    facts
}

fn describe_device_group(group: &devices::HostDeviceGroup) -> String {
    let on = if group.hosts.is_empty() {
        String::new()
    } else {
        format!(" on {}", one_line(&group.hosts, 300))
    };
    let plural = if group.processes == 1 { "" } else { "es" };
    let ranks = if group.ranks.is_empty() {
        String::new()
    } else {
        format!(", rank {}", group.ranks)
    };
    format!(
        "{}{on}, {} process{plural}{ranks}",
        devices::format_device_names(&group.devices),
        group.processes
    )
}

/// How many channels go which way; nothing for a log that names none.
fn describe_channels(log: &NcclLog) -> Option<String> {
    let channels = log.channels();
    if channels.all() == 0 {
        return None;
    }
    let mut words = Vec::new();
    for (count, way) in [
        (channels.rdma_direct, "over verbs with GPUDirect"),
        (channels.rdma, "over verbs through host memory"),
        (channels.socket, "over TCP"),
        (channels.plugin, "over a plugin"),
        (channels.peer, "from GPU to GPU"),
        (channels.shared, "over shared memory"),
    ] {
        if count > 0 {
            words.push(format!("{count} {way}"));
        }
    }
    Some(words.join(", "))
}
