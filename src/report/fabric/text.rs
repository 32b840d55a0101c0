//! The picture as text of 100 columns, without colour, and the findings below it.

use super::picture::{Block, FabricLinkRow, Picture, Sums};
use super::{FabricSubject, words};
use crate::wrap::{self, COLUMNS, render_heading};
use railwright_base::nodeset::fold_node_set;
use railwright_base::text::{format_count, one_line};
use railwright_verify::CheckVerdict;
use railwright_verify::fabric::{FabricFinding, Tier};
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
        (CheckVerdict::Unknown, '?', "UNKNOWN: not proven"),
    ] {
        let of: Vec<&FabricFinding> = report
            .findings
            .iter()
            .filter(|finding| finding.kind.verdict() == verdict)
            .collect();
        if !of.is_empty() {
            out.push_str(&render_heading(title));
            out.extend(
                of.into_iter()
                    .map(|finding| render_fabric_finding(finding, mark, subject)),
            );
        }
    }
    out.push_str(&render_fabric_conclusion(subject));
    out
}

/// How many devices and links were looked at, and for how long.
fn render_fabric_header(subject: &FabricSubject) -> String {
    let report = subject.report;
    let devices = |tier: Tier| {
        let ends = report
            .links
            .iter()
            .flat_map(|report| [&report.link.from, &report.link.to]);
        let names: BTreeSet<&str> = ends
            .filter(|end| end.tier == tier)
            .map(|end| end.device.as_str())
            .collect();
        counted_tier(names.len(), tier)
    };
    let time = report
        .seconds
        .map_or_else(String::new, |seconds| format!("   {seconds:.0} s"));
    let (hosts, leaves, spines) = (
        devices(Tier::Host),
        devices(Tier::Leaf),
        devices(Tier::Spine),
    );
    format!(
        "verify fabric {}   {hosts}, {leaves}, {spines}, {}{time}",
        subject.inventory,
        format_count(report.links.len(), "link")
    )
}

fn counted_tier(count: usize, tier: Tier) -> String {
    match (tier, count) {
        (Tier::Leaf, 2..) | (Tier::Leaf, 0) => format!("{count} leaves"),
        _ => format_count(count, tier.word()),
    }
}

fn render_fabric_picture(subject: &FabricSubject) -> String {
    let links = &subject.report.links;
    let picture = Picture::of(links, subject.wanted);
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
        .map(|block| drawn_block(block, subject))
        .collect();
    out.push_str(&blocks.join("\n"));
    let apart = if out.is_empty() || picture.peers.is_empty() {
        ""
    } else {
        "\n"
    };
    let peer = |row: &FabricLinkRow| {
        let names = format!(
            "{} -- {}   {}",
            row.side(links, true).0,
            row.side(links, false).0,
            format_count(row.links.len(), "link")
        );
        render_line_with_state(" ", &names, &row.state())
            + &render_link_cells("        ", row, subject)
    };
    out + apart
        + &picture
            .peers
            .iter()
            .map(peer)
            .collect::<Vec<_>>()
            .join("\n")
}

fn drawn_block(block: &Block, subject: &FabricSubject) -> String {
    let names = |all: &BTreeSet<String>| fold_node_set(&all.iter().collect::<Vec<_>>());
    let mut head = format!("{} -- {}", names(&block.leaves), names(&block.hosts));
    if block.pods > 1 {
        let (hosts, leaves) = (
            block.hosts.len() / block.pods,
            block.leaves.len() / block.pods,
        );
        head.push_str(&format!(
            "   {} pods alike, each {}, {}",
            block.pods,
            counted_tier(leaves, Tier::Leaf),
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
    match COLUMNS
        .checked_sub(last.width() + state.width())
        .filter(|room| *room > 1)
    {
        Some(room) => format!("{line}{}{state}\n", " ".repeat(room)),
        None => format!(
            "{line}\n{}{state}\n",
            " ".repeat(COLUMNS.saturating_sub(state.width()))
        ),
    }
}

/// What the links are set to, and what their counters did.
fn render_link_cells(stem: &str, row: &FabricLinkRow, subject: &FabricSubject) -> String {
    let cells = &row.cells;
    let said = [
        ("mtu", &cells.mtu),
        ("dscp", &cells.dscp),
        ("pfc", &cells.pfc),
        ("ecn", &cells.ecn),
    ];
    let said: Vec<String> = said
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(word, text)| format!("{word} {text}"))
        .collect();
    let mut out = wrap::wrap_labelled_text(stem, &said.join("   "), COLUMNS);
    if subject.wanted.counts {
        out.push_str(&wrap::wrap_labelled_text(
            stem,
            &format_counter_sums(&row.sums(&subject.report.links, subject.wanted)),
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
        "told to wait: {}   marked {}   cnp {}   lost {}",
        waits.join(", "),
        sums.marked,
        sums.notified,
        sums.lost
    )
}

fn render_fabric_finding(finding: &FabricFinding, mark: char, subject: &FabricSubject) -> String {
    let told = words::describe_fabric_finding(finding, subject);
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
    if !told.means.is_empty() {
        out.push_str(&wrap::wrap_labelled_text(
            "       means   ",
            &told.means,
            COLUMNS,
        ));
    }
    out.extend(
        told.next.iter().map(|next| {
            wrap::wrap_labelled_text("       next    ", &one_line(next, 1500), COLUMNS)
        }),
    );
    out
}

fn render_fabric_conclusion(subject: &FabricSubject) -> String {
    let report = subject.report;
    let verdict = match report.verdict() {
        CheckVerdict::Failed => "The fabric is not as it must be.",
        CheckVerdict::Unknown if report.links.is_empty() => "There is no link to look at.",
        CheckVerdict::Unknown => "The fabric is not proven: something could not be found out.",
        _ => "The ends of every link agree.",
    };
    let of = |verdict: CheckVerdict| {
        report
            .links
            .iter()
            .filter(|link| link.verdict() == verdict)
            .count()
    };
    let parts = [
        (of(CheckVerdict::Passed), "agree"),
        (of(CheckVerdict::Failed), "wrong"),
        (of(CheckVerdict::Unknown), "unknown"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let counts = if parts.is_empty() {
        String::new()
    } else {
        format!(
            " {}: {}.",
            format_count(report.links.len(), "link"),
            parts.join(", ")
        )
    };
    let picture = Picture::of(&report.links, subject.wanted);
    let rows = picture
        .uplinks
        .iter()
        .chain(&picture.peers)
        .chain(picture.blocks.iter().flat_map(|block| &block.rows));
    let is_unsure = subject.wanted.counts
        && rows
            .map(|row| row.sums(&report.links, subject.wanted))
            .any(|sums| sums.is_in_part());
    let unsure = if is_unsure {
        " A number with `?` is of the ends that could be asked: of others it is not known, so that \
         it may be more."
    } else {
        ""
    };
    let looked = if subject.wanted.counts {
        ""
    } else {
        " Counters were not looked at."
    };
    format!(
        "\n{}",
        wrap::wrap_labelled_text("", &format!("{verdict}{counts}{looked}{unsure}"), COLUMNS)
    )
}
