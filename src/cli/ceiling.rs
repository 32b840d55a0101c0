//! A command ends by itself before it takes all memory and time of this machine, as long as it has contacted no target.

use super::{Exit, Failure};
use railwright_base::{Diagnostic, text};
use railwright_system::ceiling::{self, Ceiling, Reached};
use railwright_system::environment;

/// Sets another ceiling of memory, in MiB.
const MEMORY_VARIABLE: &str = "RAILWRIGHT_MEMORY_MIB";
/// Sets another ceiling of processor time, in seconds.
const PROCESSOR_VARIABLE: &str = "RAILWRIGHT_PROCESSOR_S";

/// Does a command's work. What is left of it where a ceiling was reached ends with the process.
pub fn below(work: impl FnOnce() -> Exit + Send + 'static) -> Result<Exit, Failure> {
    let ceiling = Ceiling::of_this_machine(number(MEMORY_VARIABLE)?, number(PROCESSOR_VARIABLE)?);
    let worked = ceiling::work_below(ceiling, work).map_err(|error| super::no_threads(&error))?;
    worked.map_err(|reached| is_reached(reached).into())
}

fn number(variable: &str) -> Result<Option<u64>, Failure> {
    let parse = |value: String| match value.parse() {
        Ok(0) | Err(_) => {
            let message = format!("{variable} is `{}`, which is no whole number above 0", text::one_line(&value, 40));
            Err(Failure::refused(vec![
                Diagnostic::error("RW1021", message).state("nothing was read and nothing was changed").next(format!("unset {variable}")),
            ]))
        }
        Ok(number) => Ok(number),
    };
    environment::variable(variable).map(parse).transpose()
}

fn is_reached(reached: Reached) -> Diagnostic {
    let (taken, variable, double) = match reached {
        Reached::Memory(mib) => (format!("{mib} MiB of memory"), MEMORY_VARIABLE, mib * 2),
        Reached::Processor(seconds) => (format!("{seconds} seconds of processor time"), PROCESSOR_VARIABLE, seconds * 2),
    };
    Diagnostic::error("RW1020", format!("this takes more than {taken}"))
        .effect("what was read asks for more than this command may take of this machine before it contacts a target")
        .state("no target was contacted and nothing was changed")
        .next("look whose it is: an inventory, a plan file, a recording and a folder `.railwright` can be made to take everything")
        .next(format!("{variable}={double} before the command, where it is yours and as large as it looks"))
}
