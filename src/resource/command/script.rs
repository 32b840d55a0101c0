//! The scripts of `command`, as POSIX sh.

use crate::file::script::BUILT_IN;
use railwright_base::quote::quote_for_shell;
use std::collections::BTreeMap;

/// The read probe, as the module wrote it. It runs in a shell of its own, so that it cannot end
/// ours.
pub fn read_script(script: &str) -> String {
    format!("sh -c {} </dev/null\n", quote_for_shell(script))
}

/// The command, as the module wrote it. Variables and input stand in the script that we feed to the
/// host's shell, so that no process list ever shows them; `export` and `printf` are of the shell
/// itself.
pub fn run_script(
    script: &str,
    environment: &BTreeMap<String, String>,
    input: Option<&str>,
) -> String {
    let variables: String = environment
        .iter()
        .map(|(name, value)| format!("{name}={}; export {name}\n", quote_for_shell(value)))
        .collect();
    let script = quote_for_shell(script);
    match input {
        None => format!("{variables}sh -c {script} </dev/null\n"),
        Some(input) => format!(
            "{BUILT_IN}{variables}printf %s {} | sh -c {script}\n",
            quote_for_shell(input)
        ),
    }
}
