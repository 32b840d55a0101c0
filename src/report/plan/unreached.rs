//! Hosts without SSH: nothing is planned for them, and which modules they go without.

use crate::wrap::{COLUMNS, labelled, rule};
use railwright_base::text::clean_line;
use railwright_plan::NoSsh;

/// They and their modules, folded by what they go without.
pub fn no_ssh(all: &[NoSsh]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let entry = |one: &NoSsh| {
        let without = match one.modules.is_empty() {
            true => "no module would be for them".to_owned(),
            false => format!("without {}", one.modules.join(", ")),
        };
        labelled(&format!(" . {:<14} ", clean_line(&one.hosts)), &without, COLUMNS)
    };
    rule("NO SSH, by the spec: these hosts are not asked, and go without the modules for hosts")
        + &all.iter().map(entry).collect::<String>()
}
