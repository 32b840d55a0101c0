//! A command ends by itself before it takes all memory and time of this machine, as long as it has
//! contacted no target.

use super::{CommandFailure, Exit};
use railwright_base::{Diagnostic, text};
use railwright_system::ceiling::{self, Ceiling, ReachedCeiling};
use railwright_system::environment;

/// Sets another ceiling of memory, in MiB.
const MEMORY_VARIABLE: &str = "RAILWRIGHT_MEMORY_MIB";
/// Sets another ceiling of processor time, in seconds.
const PROCESSOR_VARIABLE: &str = "RAILWRIGHT_PROCESSOR_S";

/// Does a command's work. What is left of it where a ceiling was reached ends with the process.
pub fn run_below_ceiling(
    work: impl FnOnce() -> Exit + Send + 'static,
) -> Result<Exit, CommandFailure> {
    let ceiling = Ceiling::of_this_machine(
        read_limit_variable(MEMORY_VARIABLE)?,
        read_limit_variable(PROCESSOR_VARIABLE)?,
    );
    let worked =
        ceiling::work_below(ceiling, work).map_err(|error| super::report_no_threads(&error))?;
    worked.map_err(|reached| report_reached_ceiling(reached).into())
}

fn read_limit_variable(variable: &str) -> Result<Option<u64>, CommandFailure> {
    let Some(value) = environment::read_variable(variable) else {
        return Ok(None);
    };
    match value.parse() {
        Ok(0) | Err(_) => {
            let message = format!(
                "{variable} is `{}`, which is no whole number above 0",
                text::one_line(&value, 40)
            );
            Err(CommandFailure::refused(vec![
                Diagnostic::error("RW1021", message)
                    .state("nothing was read and nothing was changed")
                    .next(format!("unset {variable}")),
            ]))
        }
        Ok(number) => Ok(Some(number)),
    }
}

fn report_reached_ceiling(reached: ReachedCeiling) -> Diagnostic {
    let (taken, variable, double) = match reached {
        ReachedCeiling::Memory(mib) => (format!("{mib} MiB of memory"), MEMORY_VARIABLE, mib * 2),
        ReachedCeiling::Processor(seconds) => (
            format!("{seconds} seconds of processor time"),
            PROCESSOR_VARIABLE,
            seconds * 2,
        ),
    };
    Diagnostic::error("RW1020", format!("this takes more than {taken}"))
        .effect(
            "what was read asks for more than this command may take of this machine before it \
             contacts a target",
        )
        .state("no target was contacted and nothing was changed")
        .next(
            "look whose it is: an inventory, a plan file, a recording and a folder `.railwright` \
             can be made to take everything",
        )
        .next(format!(
            "{variable}={double} before the command, where it is yours and as large as it looks"
        ))
}
