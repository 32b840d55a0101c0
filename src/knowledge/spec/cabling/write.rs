//! The way back: cables as a table of few lines. Hosts whose NIC of one name is on one switch are a
//! line, as long as their ports count up with them.

use super::{COLUMNS, CableEnd};
use railwright_base::nodeset::{
    expand_node_set, expand_ports, fold_node_set, mask_numbers, natural_order,
};
use std::collections::BTreeMap;

/// Pairs of names that belong together in their order, as two node-sets: `gpu[01-16]` and
/// `Ethernet[0-60/4]`.
pub fn fold_name_pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| natural_order(a.0, b.0));
    let mut runs: Vec<Vec<(&str, &str)>> = Vec::new();
    for pair in sorted {
        match runs
            .last_mut()
            .filter(|run| run.last().is_some_and(|last| goes_on(*last, pair)))
        {
            Some(run) => run.push(pair),
            None => runs.push(vec![pair]),
        }
    }
    runs.iter().flat_map(|run| fold_pair_run(run)).collect()
}

fn goes_on(last: (&str, &str), next: (&str, &str)) -> bool {
    mask_numbers(last.0) == mask_numbers(next.0)
        && mask_numbers(last.1) == mask_numbers(next.1)
        && natural_order(last.1, next.1).is_lt()
}

/// A run as one pair of node-sets; pair by pair where the node-sets would not unfold to the same
/// again.
fn fold_pair_run(run: &[(&str, &str)]) -> Vec<(String, String)> {
    let (left, right): (Vec<&str>, Vec<&str>) = run.iter().copied().unzip();
    let (set, ports) = (fold_node_set(&left), fold_port_names(&right));
    if expand_node_set(&set).is_ok_and(|names| names == left)
        && expand_ports(&ports).is_ok_and(|names| names == right)
    {
        return vec![(set, ports)];
    }
    run.iter()
        .map(|(left, right)| ((*left).to_owned(), (*right).to_owned()))
        .collect()
}

/// Ports that count up, with the step in which they do: `Ethernet[0-60/4]`.
pub fn fold_port_names(names: &[&str]) -> String {
    fold_stepped_names(names).unwrap_or_else(|| fold_node_set(names))
}

fn fold_stepped_names(names: &[&str]) -> Option<String> {
    let (first, last) = (names.first()?, names.last().filter(|_| names.len() > 2)?);
    let head = first.len() - first.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let prefix = &first[..first.len() - head];
    let numbers: Vec<u64> = names
        .iter()
        .map(|name| parse_plain_number(name.strip_prefix(prefix)?))
        .collect::<Option<_>>()?;
    let step = numbers[1]
        .checked_sub(numbers[0])
        .filter(|step| *step > 1)?;
    let even = numbers
        .windows(2)
        .all(|two| two[1].checked_sub(two[0]) == Some(step));
    even.then(|| {
        format!(
            "{prefix}[{}-{}/{step}]",
            &first[prefix.len()..],
            &last[prefix.len()..]
        )
    })
}

/// A number without zeros before it.
fn parse_plain_number(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'));
    if is_plain { digits.parse().ok() } else { None }
}

/// Writes into memory, so that nothing can fail.
fn write_row(writer: &mut csv::Writer<Vec<u8>>, fields: [&str; 4]) {
    drop(writer.write_record(fields));
}

/// The table of these cables.
pub fn render_cabling_table(cables: &[(CableEnd, CableEnd)]) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<(&str, &str)>> = BTreeMap::new();
    for (from, to) in cables {
        groups
            .entry((&from.port, &to.device))
            .or_default()
            .push((&from.device, &to.port));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|((nic, switch), _), ((other, than), _)| {
        natural_order(nic, other).then(natural_order(switch, than))
    });
    let mut writer = csv::Writer::from_writer(Vec::new());
    write_row(&mut writer, COLUMNS);
    for ((nic, switch), pairs) in groups {
        for (hosts, ports) in fold_name_pairs(&pairs) {
            write_row(&mut writer, [&hosts, nic, switch, &ports]);
        }
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
