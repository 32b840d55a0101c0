//! Hosts without SSH: nothing is planned for them, and which modules they go without.

use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::clean_line;
use railwright_plan::HostsWithoutSsh;

/// They and their modules, folded by what they go without.
pub fn render_hosts_without_ssh(all: &[HostsWithoutSsh]) -> String {
    if all.is_empty() {
        return String::new();
    }
    render_heading(
        "NO SSH, by the spec: these hosts are not asked, and go without the modules for hosts",
    ) + &all
        .iter()
        .map(|one| {
            let without = match one.modules.is_empty() {
                true => "no module would be for them".to_owned(),
                false => format!("without {}", one.modules.join(", ")),
            };
            wrap_labelled_text(
                &format!(" . {:<14} ", clean_line(&one.hosts)),
                &without,
                COLUMNS,
            )
        })
        .collect::<String>()
}
