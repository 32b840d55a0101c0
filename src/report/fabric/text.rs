//! The picture as text of 100 columns, without colour, and the findings below it.

use super::picture::{Block, FabricLinkRow, Picture, Sums, fold_device_names};
use super::{FabricSubject, words};
use crate::wrap::{self, COLUMNS, render_heading};
use railwright_base::nodeset::fold_node_set;
use railwright_base::text::{format_count, one_line};
use railwright_verify::CheckVerdict;
use railwright_verify::fabric::{FabricFinding, LinkReport, Tier};
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthStr as _;

/// The whole screen.
pub fn render_fabric_screen(subject: &FabricSubject) -> String {
    let report = subject.report;
    let head = render_fabric_header(subject);
    let mut out = String::new();
    if let Some((file, at)) = subject.recorded {
        out.push_str(&wrap::wrap_labelled_text(
            "",
            &format!(
                "as recorded {} in {}",
                one_line(at, 40),
                one_line(file, 200)
            ),
            COLUMNS,
        ));
    }
    out.push_str(&wrap::wrap_labelled_text("", &head, COLUMNS));
    out.push_str(&render_heading("FABRIC: both ends of every link"));
    out.push_str(&render_fabric_picture(subject));
    for (verdict, mark, title) in [
        (
            CheckVerdict::Failed,
            '!',
            "WRONG: the ends do not agree, or something is lost",
        ),
        (CheckVerdict::Unknown, '?', "UNKNOWN: inconclusive"),
    ] {
        let findings: Vec<&FabricFinding> = report
            .findings
            .iter()
            .filter(|finding| finding.kind.verdict() == verdict)
            .collect();
        if !findings.is_empty() {
            out.push_str(&render_heading(title));
            for finding in findings {
                out.push_str(&render_fabric_finding(finding, mark, subject));
            }
        }
    }
    out.push_str(&render_fabric_conclusion(subject));
    out
}

/// How many devices and links were looked at, and for how long.
fn render_fabric_header(subject: &FabricSubject) -> String {
    let report = subject.report;
    let time = report
        .seconds
        .map_or_else(String::new, |seconds| format!("   {seconds:.0} s"));
    let (hosts, leaves, spines) = (
        count_devices(&report.links, Tier::Host),
        count_devices(&report.links, Tier::Leaf),
        count_devices(&report.links, Tier::Spine),
    );
    format!(
        "verify fabric {}   {hosts}, {leaves}, {spines}, {}{time}",
        subject.inventory,
        format_count(report.links.len(), "link")
    )
}

fn count_devices(links: &[LinkReport], tier: Tier) -> String {
    let mut names = BTreeSet::new();
    for report in links {
        for end in [&report.link.from, &report.link.to] {
            if end.tier == tier {
                names.insert(&end.device);
            }
        }
    }
    format_tier_count(names.len(), tier)
}

fn format_tier_count(count: usize, tier: Tier) -> String {
    match (tier, count) {
        (Tier::Leaf, 2..) | (Tier::Leaf, 0) => format!("{count} leaves"),
        _ => format_count(count, tier.word()),
    }
}

fn render_fabric_picture(subject: &FabricSubject) -> String {
    let links = &subject.report.links;
    let picture = Picture::of(links, subject.desired);
    let mut out = String::new();
    let mut above = String::new();
    for row in &picture.uplinks {
        let ((leaves, _), (spines, _)) = (row.side(links, true), row.side(links, false));
        if spines != above {
            out.push_str(&format!(
                "{}  |\n",
                wrap::wrap_labelled_text(" ", &spines, COLUMNS)
            ));
            above = spines;
        }
        out.push_str(&render_line_with_state(
            "  +-- ",
            &format!("{leaves}   {}", format_count(row.links.len(), "link")),
            &row.state(),
        ));
        out.push_str(&format!(
            "{}  |\n",
            render_link_cells("  |     ", row, subject)
        ));
    }
    let blocks: Vec<String> = picture
        .blocks
        .iter()
        .map(|block| draw_block(block, subject))
        .collect();
    out.push_str(&blocks.join("\n"));
    let apart = if out.is_empty() || picture.peers.is_empty() {
        ""
    } else {
        "\n"
    };
    out + apart + &render_peers(&picture.peers, subject)
}

/// Links between switches of one tier.
fn render_peers(peers: &[FabricLinkRow], subject: &FabricSubject) -> String {
    let links = &subject.report.links;
    let mut texts = Vec::new();
    for row in peers {
        let names = format!(
            "{} -- {}   {}",
            row.side(links, true).0,
            row.side(links, false).0,
            format_count(row.links.len(), "link")
        );
        let head = render_line_with_state(" ", &names, &row.state());
        texts.push(head + &render_link_cells("        ", row, subject));
    }
    texts.join("\n")
}

fn draw_block(block: &Block, subject: &FabricSubject) -> String {
    let leaves = fold_device_names(&block.leaves);
    let mut head = format!("{leaves} -- {}", fold_device_names(&block.hosts));
    if block.pods > 1 {
        let (hosts, leaves) = (
            block.hosts.len() / block.pods,
            block.leaves.len() / block.pods,
        );
        head.push_str(&format!(
            "   {} identical pods, each {}, {}",
            block.pods,
            format_tier_count(leaves, Tier::Leaf),
            format_count(hosts, "host")
        ));
    }
    let mut out = wrap::wrap_labelled_text(" ", &head, COLUMNS);
    out.push_str("  |\n");
    let last = block.rows.len().saturating_sub(1);
    for (place, row) in block.rows.iter().enumerate() {
        let (from, to) = (
            row.side(&subject.report.links, true),
            row.side(&subject.report.links, false),
        );
        let rails: Vec<String> = row.rails.iter().map(|rail| format!("rail{rail}")).collect();
        let label = format!(
            "{}  {}   {}",
            fold_node_set(&rails),
            from.1,
            format_count(row.links.len(), "link")
        );
        let stem = if place == last {
            "        "
        } else {
            "  |     "
        };
        out.push_str(&render_line_with_state("  +-- ", &label, &row.state()));
        if block.rows.len() > 1 {
            out.push_str(&wrap::wrap_labelled_text(
                stem,
                &format!("{} on {}", from.0, to.0),
                COLUMNS,
            ));
        }
        out.push_str(&render_link_cells(stem, row, subject));
    }
    out
}

/// A line with its state at the right edge, or below where there is no room.
fn render_line_with_state(stem: &str, text: &str, state: &str) -> String {
    let text = wrap::wrap_labelled_text(stem, text, COLUMNS);
    let line = text.trim_end_matches('\n');
    let last = line.lines().last().unwrap_or_default();
    match COLUMNS.checked_sub(last.width() + state.width()) {
        Some(room) if room > 1 => format!("{line}{}{state}\n", " ".repeat(room)),
        _ => format!(
            "{line}\n{}{state}\n",
            " ".repeat(COLUMNS.saturating_sub(state.width()))
        ),
    }
}

/// What the links are set to, and what their counters did.
fn render_link_cells(stem: &str, row: &FabricLinkRow, subject: &FabricSubject) -> String {
    let cells = &row.cells;
    let mut settings = Vec::new();
    for (word, text) in [
        ("mtu", &cells.mtu),
        ("dscp", &cells.dscp),
        ("pfc", &cells.pfc),
        ("ecn", &cells.ecn),
    ] {
        if !text.is_empty() {
            settings.push(format!("{word} {text}"));
        }
    }
    let mut out = wrap::wrap_labelled_text(stem, &settings.join("   "), COLUMNS);
    if subject.desired.counts {
        out.push_str(&wrap::wrap_labelled_text(
            stem,
            &format_counter_sums(&row.sums(&subject.report.links, subject.desired)),
            COLUMNS,
        ));
    }
    out
}

/// What the counters did in words.
pub fn format_counter_sums(sums: &Sums) -> String {
    let waits: Vec<String> = sums
        .told_to_wait
        .iter()
        .map(|(tier, sum)| format!("{} {sum}", tier.word()))
        .collect();
    format!(
        "pause frames: {}   ECN-marked {}   CNP {}   drops {}",
        waits.join(", "),
        sums.marked,
        sums.notified,
        sums.lost
    )
}

fn render_fabric_finding(finding: &FabricFinding, mark: char, subject: &FabricSubject) -> String {
    let texts = words::describe_fabric_finding(finding, subject);
    let count = words::format_finding_count(finding);
    let mut out = wrap::wrap_labelled_text(
        &format!(" {mark} "),
        &format!(
            "{}{count}   {}",
            one_line(&finding.said, 300),
            finding.kind.code()
        ),
        COLUMNS,
    );
    out.push_str(&wrap::wrap_labelled_text(
        "       where   ",
        &words::format_finding_links(finding, &subject.report.links),
        COLUMNS,
    ));
    if !texts.means.is_empty() {
        out.push_str(&wrap::wrap_labelled_text(
            "       means   ",
            &texts.means,
            COLUMNS,
        ));
    }
    for next in &texts.next {
        let next = one_line(next, 1500);
        out.push_str(&wrap::wrap_labelled_text("       next    ", &next, COLUMNS));
    }
    out
}

fn render_fabric_conclusion(subject: &FabricSubject) -> String {
    let report = subject.report;
    let verdict = match report.verdict() {
        CheckVerdict::Failed => "The fabric is not as it must be.",
        CheckVerdict::Unknown if report.links.is_empty() => "There is no link to look at.",
        CheckVerdict::Unknown => "Inconclusive: something could not be found out.",
        _ => "The ends of every link agree.",
    };
    let counts = format_link_counts(&report.links);
    let unsure = if subject.desired.counts && has_partial_sums(subject) {
        " A number with `?` is of the ends that could be asked: of others it is not known, so that \
         it may be more."
    } else {
        ""
    };
    let looked = if subject.desired.counts {
        ""
    } else {
        " Counters were not looked at."
    };
    format!(
        "\n{}",
        wrap::wrap_labelled_text("", &format!("{verdict}{counts}{looked}{unsure}"), COLUMNS)
    )
}

/// How many links there are, and of how many the ends agree.
fn format_link_counts(links: &[LinkReport]) -> String {
    let mut parts = Vec::new();
    for (verdict, word) in [
        (CheckVerdict::Passed, "agree"),
        (CheckVerdict::Failed, "wrong"),
        (CheckVerdict::Unknown, "unknown"),
    ] {
        let of_verdict = links.iter().filter(|link| link.verdict() == verdict);
        match of_verdict.count() {
            0 => {}
            count => parts.push(format!("{count} {word}")),
        }
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(
        " {}: {}.",
        format_count(links.len(), "link"),
        parts.join(", ")
    )
}

/// Whether a number on the screen is of some ends alone.
fn has_partial_sums(subject: &FabricSubject) -> bool {
    let links = &subject.report.links;
    let picture = Picture::of(links, subject.desired);
    let of_switches = picture.uplinks.iter().chain(&picture.peers);
    let mut rows = of_switches.chain(picture.blocks.iter().flat_map(|block| &block.rows));
    rows.any(|row| row.sums(links, subject.desired).is_in_part())
}
