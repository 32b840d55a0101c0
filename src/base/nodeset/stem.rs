//! Names that count on: identical but for their numbers, so that a node-set names all at once.

use super::fold_node_set;
use std::collections::BTreeMap;

/// A name with its digits masked: names that count on have the same stem.
pub fn mask_digits(name: &str) -> String {
    name.replace(|c: char| c.is_ascii_digit(), "#")
}

/// A name with each of its numbers masked, however many digits they have: `Ethernet4` and
/// `Ethernet12` are of one pattern.
pub fn mask_numbers(name: &str) -> String {
    let mut out = mask_digits(name);
    while out.contains("##") {
        out = out.replace("##", "#");
    }
    out
}

/// A name without anything that a node-set gives a meaning.
pub fn is_plain(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "._:-".contains(c))
}

/// The names, those that count on as one node-set each; in the order of their stems.
pub fn fold_by_stem(names: &[&str]) -> Vec<String> {
    let mut stems: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    names
        .iter()
        .for_each(|name| stems.entry(mask_digits(name)).or_default().push(name));
    stems
        .into_values()
        .map(|identical| fold_names_of_one_stem(&identical))
        .collect()
}

/// Names of one stem as a node-set; a single one as it is.
pub fn fold_names_of_one_stem(names: &[&str]) -> String {
    match names {
        [only] => (*only).to_owned(),
        all => fold_node_set(all),
    }
}
