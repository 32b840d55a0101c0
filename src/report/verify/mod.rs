//! The screen of `verify`: failures first with what they mean and the next command, folded by
//! node-set; then the matrix of what the pairs delivered; what passed is one line a check. Text
//! without colour, and JSON.

mod matrix;
mod subject;

use crate::document::{self, VerifyDocument};
use crate::wrap::{self, render_heading};
use indexmap::IndexMap;
use railwright_base::nodeset;
use railwright_base::text::{format_count, one_line};
use railwright_verify::nccl::evaluation::format_bytes;
use railwright_verify::{CheckResult, CheckVerdict, NcclFigure, VerifyCheck, VerifyReport};

/// The whole screen.
pub fn render_verify_screen(report: &VerifyReport) -> String {
    let mut out = render_verify_header(report);
    for verdict in [
        CheckVerdict::Failed,
        CheckVerdict::Unknown,
        CheckVerdict::NotRun,
        CheckVerdict::Warning,
    ] {
        let mut results: Vec<&CheckResult> = report.with(verdict).collect();
        // The order of the checks is from cause to effect.
        results.sort_by(|a, b| a.check.cmp(&b.check));
        if !results.is_empty() {
            out.push_str(&render_heading(select_verdict_title(verdict)));
            out.push_str(&render_check_entries(&results));
        }
    }
    out.push_str(&render_one_liners(report, CheckVerdict::NotApplicable));
    out.push_str(&matrix::render_bandwidth_matrix(report));
    out.push_str(&render_nccl_figures(report));
    out.push_str(&render_one_liners(report, CheckVerdict::Passed));
    out.push_str(&render_verify_conclusion(report));
    out
}

/// What NCCL's tests reached, a line for hosts that ran together.
fn render_nccl_figures(report: &VerifyReport) -> String {
    let lines: String = report.nccl.iter().map(render_nccl_figure).collect();
    if lines.is_empty() {
        lines
    } else {
        format!(
            "{}{lines}",
            render_heading("NCCL'S TESTS, bus bandwidth of the largest messages")
        )
    }
}

fn render_nccl_figure(figure: &NcclFigure) -> String {
    let reached = match (figure.busbw, figure.bytes) {
        (Some(busbw), Some(size)) => format!("{busbw:.2} GB/s at {}", format_bytes(size)),
        _ => "no bandwidth".to_owned(),
    };
    let ranks = format_count(figure.ranks as usize, "rank");
    let words = format!("{ranks}   {}   {reached}", figure.transport.word());
    wrap::wrap_labelled_text(
        &format!(
            "   {}   ",
            one_line(&nodeset::fold_node_set(&figure.hosts), 48)
        ),
        &words,
        wrap::COLUMNS,
    )
}

/// Renders the results as a JSON document, with the verdict of the whole.
pub fn render_verify_json(report: &VerifyReport) -> String {
    document::render_json_document(&VerifyDocument::of(report))
}

fn render_verify_header(report: &VerifyReport) -> String {
    let hosts = report.hosts.len();
    format!(
        "verify {}   {hosts} host{}: {}\n",
        report.inventory,
        if hosts == 1 { "" } else { "s" },
        nodeset::fold_node_set(&report.hosts)
    )
}

fn select_verdict_title(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Failed => "FAILED: not as it must be",
        CheckVerdict::Unknown => "UNKNOWN: inconclusive",
        CheckVerdict::NotRun => "NOT RUN: something else has to be there first",
        CheckVerdict::Warning => "WARNING: as it must be, but somebody should know",
        CheckVerdict::NotApplicable => "NOT APPLICABLE",
        CheckVerdict::Passed => "PASSED",
    }
}

/// Checks whose results are numbers of pairs.
const NUMBERS: [VerifyCheck; 3] = [
    VerifyCheck::Bandwidth,
    VerifyCheck::GpuDirect,
    VerifyCheck::Latency,
];

/// What makes two results the same entry. Bandwidth and latency differ from pair to pair: their
/// numbers are joined.
fn build_folding_key(
    result: &CheckResult,
) -> (VerifyCheck, Option<&'static str>, &str, &str, &str, &str) {
    let number = NUMBERS.contains(&result.check)
        && matches!(result.code, Some("RW0809" | "RW0810" | "RW0819"));
    let measured = if number { "" } else { result.measured.as_str() };
    (
        result.check.clone(),
        result.code,
        measured,
        &result.expected,
        &result.effect,
        &result.next,
    )
}

fn render_check_entries(results: &[&CheckResult]) -> String {
    let mut folded: IndexMap<_, Vec<&CheckResult>> = IndexMap::new();
    for result in results {
        folded
            .entry(build_folding_key(result))
            .or_default()
            .push(result);
    }
    folded
        .values()
        .map(|members| render_check_entry(members))
        .collect()
}

fn render_check_entry(members: &[&CheckResult]) -> String {
    let first = members[0];
    let mark = match first.verdict {
        CheckVerdict::Failed => '!',
        CheckVerdict::Unknown | CheckVerdict::NotRun => '?',
        _ => '~',
    };
    let code = first
        .code
        .map_or(String::new(), |code| format!("   {code}"));
    let mut out = format!(
        " {mark} {:<12} {}{code}\n",
        first.check.word(),
        subject::describe_result_subjects(members)
    );
    let rows = [
        ("actual", format_measured_range(members)),
        ("desired", first.expected.clone()),
        ("means", first.effect.clone()),
        ("next", first.next.clone()),
    ];
    for (word, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
        out.push_str(&wrap_check_line(word, &text));
    }
    out
}

/// What was found; numbers that differ from pair to pair as a range, the lowest first.
fn format_measured_range(members: &[&CheckResult]) -> String {
    let mut distinct: Vec<&str> = members.iter().map(|m| m.measured.as_str()).collect();
    distinct.sort_by(|a, b| parse_first_number(a).total_cmp(&parse_first_number(b)));
    distinct.dedup();
    match (distinct.first(), distinct.last()) {
        (Some(lowest), Some(highest)) if distinct.len() > 1 => format!("{lowest} to {highest}"),
        (Some(only), _) => (*only).to_owned(),
        _ => String::new(),
    }
}

fn parse_first_number(text: &str) -> f64 {
    text.split(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok())
        .unwrap_or(0.0)
}

/// `       actual  text`, below a check.
fn wrap_check_line(word: &str, text: &str) -> String {
    wrap::wrap_labelled_text(&format!("       {word:<8}"), text, 100)
}

/// One line a check; what does not apply says why, and a number that passed what it was
/// checked against.
fn render_one_liners(report: &VerifyReport, verdict: CheckVerdict) -> String {
    let mut by_check: IndexMap<(VerifyCheck, &str), Vec<&CheckResult>> = IndexMap::new();
    for result in report.with(verdict) {
        let reason = match verdict {
            CheckVerdict::NotApplicable => result.measured.as_str(),
            _ if NUMBERS.contains(&result.check) => result.expected.as_str(),
            _ => "",
        };
        by_check
            .entry((result.check.clone(), reason))
            .or_default()
            .push(result);
    }
    if by_check.is_empty() {
        return String::new();
    }
    let mut out = render_heading(select_verdict_title(verdict));
    for ((check, reason), members) in by_check {
        let count = members.len();
        let tail = if verdict == CheckVerdict::NotApplicable {
            reason.to_owned()
        } else {
            format!("{count} passed")
        };
        out.push_str(&format!(
            "   {:<12} {}   {tail}\n",
            check.word(),
            subject::describe_result_subjects(&members)
        ));
        if verdict == CheckVerdict::Passed && !reason.is_empty() {
            out.push_str(&wrap::wrap_labelled_text(
                &format!("   {:<12} ", ""),
                reason,
                wrap::COLUMNS,
            ));
        }
    }
    out
}

fn render_verify_conclusion(report: &VerifyReport) -> String {
    let mut parts = Vec::new();
    for (verdict, word) in [
        (CheckVerdict::Failed, "failed"),
        (CheckVerdict::Unknown, "unknown"),
        (CheckVerdict::NotRun, "not run"),
        (CheckVerdict::Warning, "with a warning"),
        (CheckVerdict::NotApplicable, "not applicable"),
        (CheckVerdict::Passed, "passed"),
    ] {
        match report.with(verdict).count() {
            0 => {}
            count => parts.push(format!("{count} {word}")),
        }
    }
    let verdict = match report.conclusion() {
        CheckVerdict::Failed => "The fabric differs from the spec.",
        CheckVerdict::Unknown => "Inconclusive: something could not be found out.",
        CheckVerdict::NotRun => "Inconclusive: there was nothing to check.",
        _ if report.with(CheckVerdict::NotRun).next().is_some() => {
            "Passed, except for what was not run."
        }
        _ => "Passed.",
    };
    let mut checks = format_count(report.results.len(), "check");
    if !parts.is_empty() {
        checks += &format!(": {}", parts.join(", "));
    }
    format!("\n{verdict} {checks}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_verify::Measurement;
    use railwright_verify::result::{CheckOutcome, FORMAT_VERSION};

    fn report(hosts: usize) -> VerifyReport {
        let names: Vec<String> = (1..=hosts).map(|i| format!("gpu{i:02}")).collect();
        let mut results = Vec::new();
        let mut matrix = Vec::new();
        for (i, name) in names.iter().enumerate() {
            for rail in 0..2 {
                let netdev = if i == 1 && rail == 1 {
                    CheckOutcome::failed("RW0803", "ens1 has mtu 1500")
                        .expected("up, mtu 9000")
                        .effect("packets vanish")
                        .next("railwright drift {inventory}")
                } else {
                    CheckOutcome::passed("ens1 up, mtu 9000")
                };
                results.push(netdev.on(
                    "inventories/lab",
                    &[name],
                    Some(rail),
                    VerifyCheck::Netdev,
                ));
            }
            results.push(
                CheckOutcome::not_applicable("nothing can count the marks here").on(
                    "",
                    &[name],
                    Some(0),
                    VerifyCheck::Marks,
                ),
            );
            for (j, other) in names.iter().enumerate().filter(|(j, _)| *j != i) {
                let gbps = 97.0 - (i + j) as f64 * 3.0 / (hosts as f64 / 10.0);
                let evaluated = if gbps < 80.0 {
                    CheckOutcome::failed("RW0809", format!("{gbps:.2} Gb/s"))
                        .expected("at least 80 Gb/s")
                        .effect("slow")
                        .next("look")
                } else {
                    CheckOutcome::passed(format!("{gbps:.2} Gb/s"))
                };
                results.push(evaluated.on("", &[name, other], Some(0), VerifyCheck::Bandwidth));
                let latency_us = Some(2.5 + j as f64 / 10.0);
                matrix.push(Measurement {
                    rail: 0,
                    from: name.clone(),
                    to: other.clone(),
                    bandwidth_gbps: Some(gbps),
                    gpu_bandwidth_gbps: None,
                    latency_us,
                    latency_p99_us: None,
                });
            }
        }
        VerifyReport {
            format_version: FORMAT_VERSION,
            inventory: "inventories/lab".into(),
            hosts: names,
            results,
            matrix,
            nccl: vec![],
        }
    }

    #[test]
    fn few_hosts_show_failures_first_and_the_whole_matrix() {
        insta::assert_snapshot!(render_verify_screen(&report(4)), @r"
        verify inventories/lab   4 hosts: gpu[01-04]

        FAILED: not as it must be -----------------------------------------------------------------------
         ! netdev       gpu02 rail 1   RW0803
               actual  ens1 has mtu 1500
               desired up, mtu 9000
               means   packets vanish
               next    railwright drift inventories/lab
         ! bandwidth    8 pairs among gpu[01-04] rail 0   RW0809
               actual  59.50 Gb/s to 74.50 Gb/s
               desired at least 80 Gb/s
               means   slow
               next    look

        NOT APPLICABLE ----------------------------------------------------------------------------------
           dscp         gpu[01-04] rail 0   nothing can count the marks here

        BANDWIDTH, ib_write_bw, Gb/s, rail 0 (row sends to column) --------------------------------------
                     gpu01     gpu02     gpu03     gpu04
           gpu01         -     89.50     82.00     74.50
           gpu02     89.50         -     74.50     67.00
           gpu03     82.00     74.50         -     59.50
           gpu04     74.50     67.00     59.50         -

        LATENCY, ib_read_lat, typical, us, rail 0 (row sends to column) ---------------------------------
                     gpu01     gpu02     gpu03     gpu04
           gpu01         -      2.60      2.70      2.80
           gpu02      2.50         -      2.70      2.80
           gpu03      2.50      2.60         -      2.80
           gpu04      2.50      2.60      2.70         -

        PASSED ------------------------------------------------------------------------------------------
           netdev       gpu02 rail 0; gpu[01,03-04] rails 0-1   7 passed
           bandwidth    gpu[02-03] -> gpu01, gpu01 -> gpu[02-03] rail 0   4 passed

        The fabric differs from the spec. 24 checks: 9 failed, 4 not applicable, 11 passed.
        ");
    }

    #[test]
    fn what_was_not_run_is_told_with_its_fix_and_what_passed_with_its_measure() {
        let mut told = report(2);
        told.results
            .retain(|result| result.check == VerifyCheck::Latency);
        let fix = "install a perftest that is built with CUDA (its `--help` lists \
                    --use_cuda_bus_id), then railwright verify {inventory}";
        for pair in [["gpu01", "gpu02"], ["gpu02", "gpu01"]] {
            let passed = CheckOutcome::passed("196.10 Gb/s")
                .expected("at least 190 Gb/s, as entry `HDR` of the catalogue has it");
            told.results
                .push(passed.on("", &pair, Some(0), VerifyCheck::Bandwidth));
            let not_run = CheckOutcome::not_run("RW0820", "ib_write_bw is built without CUDA")
                .effect("nothing proves it")
                .next(fix);
            told.results.push(not_run.on(
                "inventories/lab",
                &pair,
                Some(0),
                VerifyCheck::GpuDirect,
            ));
        }
        told.matrix
            .iter_mut()
            .for_each(|cell| cell.gpu_bandwidth_gbps = Some(187.5));
        let text = render_verify_screen(&told);
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        let (head, tail) = text.split_once("\nBANDWIDTH").unwrap();
        insta::assert_snapshot!(head, @r"
        verify inventories/lab   2 hosts: gpu[01-02]

        NOT RUN: something else has to be there first ---------------------------------------------------
         ? gpudirect    all pairs of gpu[01-02] rail 0   RW0820
               actual  ib_write_bw is built without CUDA
               means   nothing proves it
               next    install a perftest that is built with CUDA (its `--help` lists --use_cuda_bus_id),
                       then railwright verify inventories/lab
        ");
        let (matrix, tail) = tail.split_once("\nPASSED").unwrap();
        assert!(
            matrix.contains("GPUDIRECT, ib_write_bw, Gb/s, rail 0") && matrix.contains("187.50"),
            "{matrix}"
        );
        let passed: Vec<&str> = tail.lines().skip(1).collect();
        let desired = [
            "   bandwidth    all pairs of gpu[01-02] rail 0   2 passed",
            "                at least 190 Gb/s, as entry `HDR` of the catalogue has it",
            "",
            "Passed, except for what was not run. 4 checks: 2 not run, 2 passed.",
        ];
        assert_eq!(passed, desired);
    }

    #[test]
    fn a_report_without_a_check_that_was_run_proves_nothing() {
        let mut nothing = report(2);
        nothing.results.clear();
        let text = render_verify_screen(&nothing);
        assert!(
            text.ends_with("\nInconclusive: there was nothing to check. 0 checks.\n"),
            "{text}"
        );
        let json = render_verify_json(&nothing);
        assert!(json.contains("\"verdict\": \"not_run\""), "{json}");
    }

    #[test]
    fn many_hosts_show_percentiles_and_the_worst_pairs_within_100_columns() {
        let text = render_verify_screen(&report(20));
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        insta::assert_snapshot!(text, @r"
        verify inventories/lab   20 hosts: gpu[01-20]

        FAILED: not as it must be -----------------------------------------------------------------------
         ! netdev       gpu02 rail 1   RW0803
               actual  ens1 has mtu 1500
               desired up, mtu 9000
               means   packets vanish
               next    railwright drift inventories/lab
         ! bandwidth    308 pairs among gpu[01-20] rail 0   RW0809
               actual  41.50 Gb/s to 79.00 Gb/s
               desired at least 80 Gb/s
               means   slow
               next    look

        NOT APPLICABLE ----------------------------------------------------------------------------------
           dscp         gpu[01-20] rail 0   nothing can count the marks here

        BANDWIDTH, ib_write_bw, Gb/s, rail 0 ------------------------------------------------------------
           380 of 380 directed pairs of 20 hosts
           min 41.50   p5 49.00   median 68.50   p95 88.00   max 95.50
           worst      41.50   gpu19 -> gpu20
           worst      41.50   gpu20 -> gpu19
           worst      43.00   gpu18 -> gpu20
           worst      43.00   gpu20 -> gpu18
           worst      44.50   gpu17 -> gpu20

        LATENCY, ib_read_lat, typical, us, rail 0 -------------------------------------------------------
           380 of 380 directed pairs of 20 hosts
           min 2.50   p5 2.50   median 3.40   p95 4.30   max 4.40
           worst       4.40   gpu19 -> gpu20
           worst       4.40   gpu18 -> gpu20
           worst       4.40   gpu17 -> gpu20
           worst       4.40   gpu16 -> gpu20
           worst       4.40   gpu15 -> gpu20

        PASSED ------------------------------------------------------------------------------------------
           netdev       gpu02 rail 0; gpu[01,03-20] rails 0-1   39 passed
           bandwidth    72 pairs among gpu[01-12] rail 0   72 passed

        The fabric differs from the spec. 440 checks: 309 failed, 20 not applicable, 111 passed.
        ");
    }

    #[test]
    fn json_has_its_format_and_verdict() {
        let value: serde_json::Value =
            serde_json::from_str(&render_verify_json(&report(2))).unwrap();
        assert_eq!(
            (value["format_version"].as_str(), value["verdict"].as_str()),
            (Some("1.0"), Some("failed"))
        );
        assert_eq!(value["results"][0]["check"], "netdev");
    }
}
