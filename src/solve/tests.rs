//! The shipped rows, tried by their combinations.

use super::cases::of;
use crate::catalog;

#[test]
fn shipped_combinations_hold() {
    let catalog = catalog::load("", []).map_err(|problems| format!("{:?}", problems.diagnostics)).unwrap();
    let wrong: Vec<String> = catalog
        .combination
        .entries()
        .filter_map(|entry| Some(format!("{}: {}", entry.row.name, of(&entry.row, &catalog)?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(catalog.combination.len() >= 8);
}
