//! The picture as SVG: spines above, leaves below them, hosts at the bottom; rows of identical
//! links are one line. What a colour says is also written, and what does not fit is in the title of
//! its element, which viewers show.

use super::FabricSubject;
use super::picture::{Block, FabricLinkRow, Picture, fold_device_names};
use super::text::format_counter_sums;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use railwright_base::nodeset::fold_node_set;
use railwright_base::text::{clean_line, format_count, one_line};
use railwright_verify::CheckVerdict;
use std::io;

/// Width of the whole, in user units.
const WIDTH: usize = 1000;
/// Pods beside each other.
const ACROSS: usize = 3;
/// Between boxes, in user units.
const GAP: usize = 20;
/// Height of a box.
const BOX: usize = 44;
/// Height of a row of links.
const ROW: usize = 46;

type Out = Writer<Vec<u8>>;

/// The whole document.
pub fn render_fabric_svg(subject: &FabricSubject) -> String {
    let picture = Picture::of(&subject.report.links, subject.desired);
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    draw_fabric(&mut out, subject, &picture).expect("memory takes every write");
    let mut text = String::from_utf8(out.into_inner()).expect("it was made of text");
    text.push('\n');
    text
}

fn draw_fabric(out: &mut Out, subject: &FabricSubject, picture: &Picture) -> io::Result<()> {
    let top =
        60 + picture.uplinks.len() * (BOX + ROW) + picture.peers.len() * (2 * BOX + ROW + GAP);
    let mut lines: Vec<usize> = Vec::new();
    for line in picture.blocks.chunks(ACROSS) {
        let highest = line.iter().map(compute_block_height).max();
        lines.push(highest.unwrap_or(0));
    }
    let height = top + lines.iter().map(|height| height + GAP).sum::<usize>() + 40;
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let view = format!("0 0 {WIDTH} {height}");
    let (wide, high) = (WIDTH.to_string(), height.to_string());
    let root = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("viewBox", &view),
        ("width", &wide),
        ("height", &high),
    ];
    let root = out
        .create_element("svg")
        .with_attributes(root)
        .with_attribute(("font-family", "sans-serif"));
    root.write_inner_content(|out| {
        draw_rectangle(out, [0, 0, WIDTH, height], "#ffffff")?;
        write_text_element(
            out,
            [GAP, 30],
            18,
            &format!("verify fabric {}", subject.inventory),
        )?;
        write_text_element(out, [GAP, 48], 12, &format_svg_summary(subject))?;
        for (place, row) in picture.uplinks.iter().enumerate() {
            draw_uplink(out, subject, row, 60 + place * (BOX + ROW))?;
        }
        for (place, row) in picture.peers.iter().enumerate() {
            draw_peers(
                out,
                subject,
                row,
                60 + picture.uplinks.len() * (BOX + ROW) + place * (2 * BOX + ROW + GAP),
            )?;
        }
        let mut y = top;
        for (line, height) in picture.blocks.chunks(ACROSS).zip(&lines) {
            for (column, block) in line.iter().enumerate() {
                let wide = (WIDTH - GAP) / ACROSS;
                draw_pod(out, subject, block, [GAP + column * wide, y, wide - GAP])?;
            }
            y += height + GAP;
        }
        Ok(())
    })?;
    Ok(())
}

fn compute_block_height(block: &Block) -> usize {
    2 * BOX + block.rows.len() * ROW
}

fn format_svg_summary(subject: &FabricSubject) -> String {
    let report = subject.report;
    let verdict = match report.verdict() {
        CheckVerdict::Failed => "not as it must be",
        CheckVerdict::Unknown => "inconclusive",
        _ => "the ends of every link agree",
    };
    let time = report.seconds.map_or_else(String::new, |seconds| {
        format!(", counters of {seconds:.0} s")
    });
    format!(
        "{}: {verdict}{time}",
        format_count(report.links.len(), "link")
    )
}

fn draw_uplink(
    out: &mut Out,
    subject: &FabricSubject,
    row: &FabricLinkRow,
    y: usize,
) -> io::Result<()> {
    let links = &subject.report.links;
    let (leaves, spines) = (row.side(links, true).0, row.side(links, false).0);
    draw_device(out, [GAP, y, WIDTH - 2 * GAP], &spines)?;
    draw_link_bundle(
        out,
        subject,
        row,
        [WIDTH / 2 - 200, y + BOX],
        &format!("{leaves}   {}", format_count(row.links.len(), "link")),
    )
}

/// Two switches of one tier: a box for each, and the links between them.
fn draw_peers(
    out: &mut Out,
    subject: &FabricSubject,
    row: &FabricLinkRow,
    y: usize,
) -> io::Result<()> {
    let links = &subject.report.links;
    draw_device(out, [GAP, y, WIDTH - 2 * GAP], &row.side(links, true).0)?;
    draw_link_bundle(
        out,
        subject,
        row,
        [WIDTH / 2 - 200, y + BOX],
        &format_count(row.links.len(), "link"),
    )?;
    draw_device(
        out,
        [GAP, y + BOX + ROW, WIDTH - 2 * GAP],
        &row.side(links, false).0,
    )
}

fn draw_pod(
    out: &mut Out,
    subject: &FabricSubject,
    block: &Block,
    [x, y, wide]: [usize; 3],
) -> io::Result<()> {
    let identical = if block.pods > 1 {
        format!("   ({} identical pods)", block.pods)
    } else {
        String::new()
    };
    draw_device(
        out,
        [x, y, wide],
        &format!("{}{identical}", fold_device_names(&block.leaves)),
    )?;
    for (place, row) in block.rows.iter().enumerate() {
        let rails: Vec<String> = row.rails.iter().map(|rail| format!("rail{rail}")).collect();
        let label = format!(
            "{}   {}",
            fold_node_set(&rails),
            format_count(row.links.len(), "link")
        );
        draw_link_bundle(out, subject, row, [x + GAP, y + BOX + place * ROW], &label)?;
    }
    draw_device(
        out,
        [x, y + BOX + block.rows.len() * ROW, wide],
        &fold_device_names(&block.hosts),
    )
}

/// A box with a name.
fn draw_device(out: &mut Out, [x, y, wide]: [usize; 3], name: &str) -> io::Result<()> {
    let fits = wide / 8;
    out.create_element("g").write_inner_content(|out| {
        write_title_element(out, name)?;
        draw_rectangle(out, [x, y, wide, BOX], "#eef1f5")?;
        write_text_element(out, [x + 10, y + 27], 13, &one_line(name, fits))
    })?;
    Ok(())
}

/// Links that are identical: a line with their labels.
fn draw_link_bundle(
    out: &mut Out,
    subject: &FabricSubject,
    row: &FabricLinkRow,
    [x, y]: [usize; 2],
    label: &str,
) -> io::Result<()> {
    let cells = &row.cells;
    let worst = row.cells.kinds.iter().map(|kind| kind.verdict()).min();
    let (colour, dashes) = match worst {
        Some(CheckVerdict::Failed) => ("#c62828", "none"),
        Some(_) => ("#757575", "6 4"),
        None => ("#2e7d32", "none"),
    };
    let sums = row.sums(&subject.report.links, subject.desired);
    let title = describe_link_bundle(subject, row, &format_counter_sums(&sums));
    let ends = [x, y, x, y + ROW].map(|place| place.to_string());
    out.create_element("g").write_inner_content(|out| {
        write_title_element(out, &title)?;
        let line = [
            ("x1", ends[0].as_str()),
            ("y1", &ends[1]),
            ("x2", &ends[2]),
            ("y2", &ends[3]),
        ];
        let line = out
            .create_element("line")
            .with_attributes(line)
            .with_attribute(("stroke", colour));
        line.with_attribute(("stroke-width", "4"))
            .with_attribute(("stroke-dasharray", dashes))
            .write_empty()?;
        write_text_element(
            out,
            [x + 12, y + 19],
            12,
            &one_line(&format!("{label}   {}", row.state()), 60),
        )?;
        write_text_element(
            out,
            [x + 12, y + 35],
            11,
            &one_line(
                &format!("mtu {}  pfc {}  lost {}", cells.mtu, cells.pfc, sums.lost),
                60,
            ),
        )
    })?;
    Ok(())
}

/// Both ends of the links, what they are set to, and what was counted on them.
fn describe_link_bundle(subject: &FabricSubject, row: &FabricLinkRow, counted: &str) -> String {
    let (cells, links) = (&row.cells, &subject.report.links);
    let (from, to) = (row.side(links, true), row.side(links, false));
    format!(
        "{} {} - {} {}: mtu {}, dscp {}, pfc {}, ecn {}; {counted}",
        from.0, from.1, to.0, to.1, cells.mtu, cells.dscp, cells.pfc, cells.ecn
    )
}

fn draw_rectangle(out: &mut Out, [x, y, wide, high]: [usize; 4], fill: &str) -> io::Result<()> {
    let [x, y, wide, high] = [x, y, wide, high].map(|number| number.to_string());
    let place = [
        ("x", x.as_str()),
        ("y", &y),
        ("width", &wide),
        ("height", &high),
    ];
    out.create_element("rect")
        .with_attributes(place)
        .with_attribute(("fill", fill))
        .with_attribute(("stroke", "#90a4ae"))
        .write_empty()?;
    Ok(())
}

fn write_title_element(out: &mut Out, text: &str) -> io::Result<()> {
    out.create_element("title")
        .write_text_content(BytesText::new(&clean_xml_text(text)))?;
    Ok(())
}

fn write_text_element(
    out: &mut Out,
    [x, y]: [usize; 2],
    size: usize,
    text: &str,
) -> io::Result<()> {
    let (x, y, size) = (x.to_string(), y.to_string(), size.to_string());
    let place = [("x", x.as_str()), ("y", &y), ("font-size", &size)];
    out.create_element("text")
        .with_attributes(place)
        .write_text_content(BytesText::new(&clean_xml_text(text)))?;
    Ok(())
}

/// XML has no U+FFFE and U+FFFF (its production `Char`), and control characters are made visible
/// anyway.
fn clean_xml_text(text: &str) -> String {
    clean_line(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
