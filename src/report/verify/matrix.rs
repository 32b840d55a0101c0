//! What the pairs delivered, rail by rail: every cell for a few hosts, percentiles and the worst
//! pairs for many.

use crate::wrap::render_heading;
use railwright_base::nodeset::natural_order;
use railwright_base::text::format_count;
use railwright_verify::schedule::FULL_MATRIX_HOSTS;
use railwright_verify::{Measurement, VerifyReport};
use std::collections::{BTreeMap, BTreeSet};

/// Pairs listed as the worst.
const WORST: usize = 5;
/// Columns of a screen.
const SCREEN: usize = 100;

/// One measured quantity.
struct Quantity {
    title: &'static str,
    unit: &'static str,
    value: fn(&Measurement) -> Option<f64>,
    more_is_better: bool,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity {
        title: "BANDWIDTH, ib_write_bw",
        unit: "Gb/s",
        value: |m| m.bandwidth_gbps,
        more_is_better: true,
    },
    Quantity {
        title: "GPUDIRECT, ib_write_bw",
        unit: "Gb/s",
        value: |m| m.gpu_bandwidth_gbps,
        more_is_better: true,
    },
    Quantity {
        title: "LATENCY, ib_read_lat, typical",
        unit: "us",
        value: |m| m.latency_us,
        more_is_better: false,
    },
];

/// The quantities of every rail; GPUDirect only where something was measured.
pub fn render_bandwidth_matrix(report: &VerifyReport) -> String {
    let mut rails: BTreeMap<u32, Vec<&Measurement>> = BTreeMap::new();
    for cell in &report.matrix {
        rails.entry(cell.rail).or_default().push(cell);
    }
    let mut out = String::new();
    for (rail, cells) in &rails {
        let mut hosts: Vec<&str> = cells
            .iter()
            .flat_map(|c| [c.from.as_str(), c.to.as_str()])
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        hosts.sort_by(|a, b| natural_order(a, b));
        for quantity in &QUANTITIES {
            let was_measured = cells.iter().any(|c| (quantity.value)(c).is_some());
            if quantity.title.starts_with("GPUDIRECT") && !was_measured {
                continue;
            }
            if hosts.len() <= FULL_MATRIX_HOSTS {
                out.push_str(&render_heading(&format!(
                    "{}, {}, rail {rail} (row sends to column)",
                    quantity.title, quantity.unit
                )));
                out.push_str(&render_full_matrix(&hosts, cells, quantity));
            } else {
                out.push_str(&render_heading(&format!(
                    "{}, {}, rail {rail}",
                    quantity.title, quantity.unit
                )));
                out.push_str(&render_percentiles(hosts.len(), cells, quantity));
            }
        }
    }
    out
}

/// Every cell. Where names are too long for the screen, columns are numbered.
fn render_full_matrix(hosts: &[&str], cells: &[&Measurement], quantity: &Quantity) -> String {
    let longest = hosts.iter().map(|h| h.chars().count()).max().unwrap_or(0);
    let width = longest.max(8) + 2;
    let named = 4 + longest + hosts.len() * width <= SCREEN;
    let width = if named { width } else { 10 };
    let label_width = hosts
        .iter()
        .enumerate()
        .map(|(i, h)| label_host(named, i, h).chars().count())
        .max()
        .unwrap_or(0);
    let mut out = format!("   {:label_width$}", "");
    for (place, host) in hosts.iter().enumerate() {
        let head = if named {
            (*host).to_owned()
        } else {
            (place + 1).to_string()
        };
        out.push_str(&format!("{head:>width$}"));
    }
    out.push('\n');
    for (place, from) in hosts.iter().enumerate() {
        out.push_str(&format!(
            "   {:<label_width$}",
            label_host(named, place, from)
        ));
        for to in hosts {
            let cell = cells.iter().find(|c| c.from == *from && c.to == *to);
            let text = match cell.map(|c| (quantity.value)(c)) {
                Some(Some(value)) => format!("{value:.2}"),
                Some(None) => "none".to_owned(),
                None => "-".to_owned(),
            };
            out.push_str(&format!("{text:>width$}"));
        }
        out.push('\n');
    }
    out
}

fn label_host(named: bool, place: usize, host: &str) -> String {
    if named {
        host.to_owned()
    } else {
        format!(
            "{} {}",
            place + 1,
            railwright_base::text::one_line(host, 12)
        )
    }
}

fn render_percentiles(hosts: usize, cells: &[&Measurement], quantity: &Quantity) -> String {
    let mut valued: Vec<(f64, &Measurement)> = cells
        .iter()
        .filter_map(|c| Some(((quantity.value)(c)?, *c)))
        .collect();
    valued.sort_by(|a, b| {
        a.0.total_cmp(&b.0)
            .then_with(|| (&a.1.from, &a.1.to).cmp(&(&b.1.from, &b.1.to)))
    });
    let without = cells.len() - valued.len();
    let mut out = format!(
        "   {} of {} directed pairs of {}\n   min {:.2}   p5 {:.2}   median {:.2}   p95 {:.2}   max {:.2}\n",
        cells.len(),
        hosts * (hosts - 1),
        format_count(hosts, "host"),
        select_percentile(&valued, 0),
        select_percentile(&valued, 5),
        select_percentile(&valued, 50),
        select_percentile(&valued, 95),
        select_percentile(&valued, 100)
    );
    if without > 0 {
        out.push_str(&format!(
            "   {} gave no number\n",
            format_count(without, "pair")
        ));
    }
    if quantity.more_is_better {
        valued.reverse();
    }
    for (value, cell) in valued.iter().rev().take(WORST) {
        out.push_str(&format!(
            "   worst {value:>10.2}   {} -> {}\n",
            cell.from, cell.to
        ));
    }
    out
}

fn select_percentile(valued: &[(f64, &Measurement)], percent: usize) -> f64 {
    valued
        .get((valued.len().saturating_sub(1)) * percent / 100)
        .map_or(0.0, |(value, _)| *value)
}
