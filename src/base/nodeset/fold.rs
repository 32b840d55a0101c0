//! Folding names back into a node-set, so that a screen shows `gpu[001-064]` and not sixty-four
//! lines.

use indexmap::IndexMap;
use std::cmp::Ordering;

/// Compares as people sort: runs of digits by their value, the rest by character. `n2` comes before
/// `n10`.
pub fn natural_order(left: &str, right: &str) -> Ordering {
    let (mut a, mut b) = (left, right);
    while let (Some((a_run, a_rest)), Some((b_run, b_rest))) = (first_run(a), first_run(b)) {
        let both_numbers = is_number(a_run) && is_number(b_run);
        let order = if both_numbers {
            by_value(a_run, b_run)
        } else {
            a_run.cmp(b_run)
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (a_rest, b_rest);
    }
    a.len().cmp(&b.len()).then_with(|| left.cmp(right))
}

/// The longest start of digits only, or of no digits at all.
fn first_run(text: &str) -> Option<(&str, &str)> {
    let digits = text.chars().next()?.is_ascii_digit();
    let end = text
        .find(|c: char| c.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    Some(text.split_at(end))
}

fn is_number(run: &str) -> bool {
    run.starts_with(|c: char| c.is_ascii_digit())
}

fn by_value(a: &str, b: &str) -> Ordering {
    let (a_digits, b_digits) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a_digits
        .len()
        .cmp(&b_digits.len())
        .then_with(|| a_digits.cmp(b_digits))
}

/// One line of a fold in the making: for each number of the name the values that it takes.
type Row<'a> = Vec<Vec<&'a str>>;

/// The shortest node-set that we find for these names, in natural order; doubled names are said
/// once. For valid host names it unfolds to the same set of names.
pub fn fold_node_set<S: AsRef<str>>(names: &[S]) -> String {
    let mut sorted: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    sorted.sort_by(|a, b| natural_order(a, b));
    sorted.dedup();
    let mut identical: IndexMap<Vec<&str>, Vec<Row<'_>>> = IndexMap::new();
    for name in sorted {
        let (texts, numbers) = split_name(name);
        identical
            .entry(texts)
            .or_default()
            .push(numbers.into_iter().map(|n| vec![n]).collect());
    }
    let mut items = Vec::new();
    for (texts, rows) in identical {
        for row in merge_rows(rows) {
            items.push(render_folded_row(&texts, &row));
        }
    }
    items.join(",")
}

/// The texts around the numbers (one more than there are numbers) and the numbers.
fn split_name(name: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    let (mut text_start, mut at) = (0, 0);
    while let Some((run, _)) = first_run(&name[at..]) {
        if is_number(run) && run.len() <= super::DIGITS_MAX {
            texts.push(&name[text_start..at]);
            numbers.push(run);
            text_start = at + run.len();
        }
        at += run.len();
    }
    texts.push(&name[text_start..]);
    (texts, numbers)
}

/// Joins rows that differ in one number only, number by number from the right.
fn merge_rows(mut rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let dimensions = rows.first().map_or(0, Vec::len);
    for dimension in (0..dimensions).rev() {
        let mut joined: IndexMap<Vec<String>, Row<'_>> = IndexMap::new();
        for row in rows {
            let others = row
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != dimension)
                .map(|(_, values)| values.join(","))
                .collect();
            match joined.get_mut(&others) {
                Some(known) => known[dimension].extend(row[dimension].iter().copied()),
                None => {
                    joined.insert(others, row);
                }
            }
        }
        rows = joined.into_values().collect();
    }
    rows
}

fn render_folded_row(texts: &[&str], row: &Row<'_>) -> String {
    let mut out = String::new();
    for (index, text) in texts.iter().enumerate() {
        out.push_str(text);
        match row.get(index).map(Vec::as_slice) {
            None => {}
            Some([single]) => out.push_str(single),
            Some(values) => {
                out.push('[');
                out.push_str(&format_ranges(values));
                out.push(']');
            }
        }
    }
    out
}

/// So many numbers at one distance from each other are a range with a step; fewer are listed.
const STEPPED_FROM: usize = 5;

/// Neighbouring values as ranges; a range never changes its padding, because `expand` refuses such
/// ranges.
fn format_ranges(values: &[&str]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| by_value(a, b).then(a.len().cmp(&b.len())));
    let mut out: Vec<(&str, &str)> = Vec::new();
    for value in sorted {
        match out.last_mut() {
            Some((first, last)) if is_next_value(first, last, 1, value) => *last = value,
            _ => out.push((value, value)),
        }
    }
    let mut texts = Vec::new();
    let mut rest = out.as_slice();
    while let [(first, last), after @ ..] = rest {
        match find_stepped_run(rest) {
            Some((count, step)) => {
                texts.push(format!("{first}-{}/{step}", rest[count - 1].0));
                rest = &rest[count..];
            }
            None => {
                texts.push(if first == last {
                    (*first).to_owned()
                } else {
                    format!("{first}-{last}")
                });
                rest = after;
            }
        }
    }
    texts.join(",")
}

/// How many single numbers from the first on are at one distance from each other, and the distance;
/// nothing where they are few.
fn find_stepped_run(ranges: &[(&str, &str)]) -> Option<(usize, u64)> {
    let singles: Vec<&str> = ranges
        .iter()
        .take_while(|(first, last)| first == last)
        .map(|(first, _)| *first)
        .collect();
    let number = |at: usize| singles.get(at)?.parse::<u64>().ok();
    let step = number(1)?.checked_sub(number(0)?)?;
    let count = 1 + singles
        .windows(2)
        .take_while(|pair| is_next_value(singles[0], pair[0], step, pair[1]))
        .count();
    (count >= STEPPED_FROM).then_some((count, step))
}

fn is_next_value(first: &str, last: &str, step: u64, value: &str) -> bool {
    let width = super::padded_width(first);
    let next = last.parse::<u64>().map_or(0, |n| n.saturating_add(step));
    value == format!("{next:0width$}") && (width == 0 || value.len() == width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodeset::expand_node_set;
    use proptest::prelude::*;

    #[test]
    fn folds_as_people_write() {
        for (names, folded) in [
            ("", ""),
            ("login1", "login1"),
            ("n10 n9 n8 n8", "n[8-10]"),
            ("gpu008 gpu009 gpu010", "gpu[008-010]"),
            ("n98 n99 n100", "n[98-100]"),
            ("n098 n099 n100 n101", "n[098-101]"),
            ("n08 n99 n100", "n[08,99-100]"),
            ("r1n1 r1n2 r2n1 r2n2", "r[1-2]n[1-2]"),
            ("r1n1 r1n2 r2n1", "r1n[1-2],r2n1"),
            ("b1 a2 a1", "a[1-2],b1"),
            ("mlx5_0 mlx5_1", "mlx5_[0-1]"),
            ("e0 e4 e8 e12", "e[0,4,8,12]"),
            ("e0 e4 e8 e12 e16", "e[0-16/4]"),
            (
                "e0 e4 e8 e12 e16 e256 e260 e264 e268 e272",
                "e[0-16/4,256-272/4]",
            ),
            ("e01 e03 e05 e07 e09 e13 e14", "e[01-09/2,13-14]"),
            ("e8 e10 e12 e14 e16 e018", "e[8-16/2,018]"),
            ("e096 e098 e100 e102 e104", "e[096-104/2]"),
        ] {
            assert_eq!(
                fold_node_set(&names.split_whitespace().collect::<Vec<_>>()),
                folded
            );
        }
    }

    proptest! {
        #[test]
        fn unfolding_gives_the_same_names(
            names in proptest::collection::vec("[a-b]{1,2}[0-9]{0,3}(-[0-9]{1,2}){0,2}[a-b]?|[0-9]{1,2}\\.[0-9]", 1..40)
        ) {
            let mut desired = names.clone();
            desired.sort_by(|a, b| natural_order(a, b));
            desired.dedup();
            let mut unfolded = expand_node_set(&fold_node_set(&names)).unwrap();
            unfolded.sort_by(|a, b| natural_order(a, b));
            prop_assert_eq!(unfolded, desired);
        }

        #[test]
        fn what_counts_on_in_steps_is_found_again(first in 0u64..30, step in 1u64..9, count in 1u64..30, odd in 0u64..300, width in 1usize..4) {
            let mut desired: Vec<String> = (0..count).map(|n| format!("e{:0width$}", first + n * step)).collect();
            desired.push(format!("e{odd}"));
            desired.sort_by(|a, b| natural_order(a, b));
            desired.dedup();
            let mut unfolded = expand_node_set(&fold_node_set(&desired)).unwrap();
            unfolded.sort_by(|a, b| natural_order(a, b));
            prop_assert_eq!(unfolded, desired);
        }

        #[test]
        fn natural_order_is_an_order(a in "[a-b01]{0,5}", b in "[a-b01]{0,5}", c in "[a-b01]{0,5}") {
            prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
            prop_assert_eq!(natural_order(&a, &b) == Ordering::Equal, a == b);
            if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
                prop_assert!(natural_order(&a, &c).is_le());
            }
        }
    }
}
