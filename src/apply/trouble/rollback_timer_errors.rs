//! What became of the automatic rollback of a step: it could not be armed, it rolled the change
//! back, or nobody has seen what it did.

use super::{NextCommands, extract_exclude_address};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;

/// The host could not be made to watch over the step.
pub fn rollback_timer_not_armed(node: &str, reason: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0642",
        format!(
            "the automatic rollback of the step could not be armed: {}",
            one_line(reason, 300)
        ),
    )
    .on(node)
    .effect(
        "without it nobody could reach the host any more if the step went wrong; the host counts \
         as out of service",
    )
    .state("nothing of the step was done; the rest of this host was left alone")
    .next(format!("fix the cause on the host, then {}", next.resume()))
    .next(format!(
        "or leave it out: {} --exclude {}",
        next.plan(),
        extract_exclude_address(node)
    ))
}

/// Nobody answered whether the automatic rollback is armed, nor whether it was disarmed.
pub fn rollback_timer_in_doubt(
    node: &str,
    reason: &str,
    seconds: u32,
    next: &NextCommands,
) -> Diagnostic {
    Diagnostic::error(
        "RW0642",
        format!(
            "whether the automatic rollback of the step is armed is not known: {}",
            one_line(reason, 300)
        ),
    )
    .on(node)
    .effect(format!(
        "if it is, it rolls back after {seconds} s whatever was changed meanwhile of what the step \
         is about, by whomever"
    ))
    .state("nothing of the step was done; the rest of the target was left alone")
    .next(format!(
        "change nothing there by hand for {seconds} s; then {}",
        next.resume()
    ))
}

/// Hosts behind a switch passed their gate before an earlier attempt of this run, and do not pass
/// it now.
pub fn hosts_not_recovered(node: &str, hosts: &str, why: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0641",
        format!(
            "{hosts} behind it passed their gate before an earlier attempt, and do not pass it now: \
             {}",
            one_line(why, 300)
        ),
    )
    .on(node)
    .effect("the change may be what broke them, and nothing would prove that they bear it")
    .state("the change was not made again, and nothing of it was confirmed")
    .next(format!("bring {hosts} into service again, then {}", next.resume()))
    .next(format!(
        "or leave it out: {} --exclude {}",
        next.plan(),
        extract_exclude_address(node)
    ))
}

/// The step was not confirmed, and the host has put back what was there before.
pub fn taken_back(
    node: &str,
    host: &str,
    why: &str,
    as_before: bool,
    failed: &str,
    next: &NextCommands,
) -> Diagnostic {
    let state = match (as_before, failed.is_empty()) {
        (true, _) => {
            format!("{host} is as it was before the change; the rest of it was left alone")
        }
        (false, true) => format!(
            "{host} can be reached again, and is not as it was before in all that the step touches"
        ),
        (false, false) => format!(
            "{host} can be reached again; the automatic rollback failed for: {}",
            one_line(failed, 400)
        ),
    };
    Diagnostic::error(
        "RW0641",
        format!(
            "the change was rolled back automatically: {}",
            one_line(why, 300)
        ),
    )
    .on(node)
    .effect(format!(
        "with it nobody could have reached {host}, or it did not do what it should; it counts as \
         out of service"
    ))
    .state(state)
    .next(format!("correct the spec, then {}", next.plan()))
    .next(format!(
        "or, if the spec is right and something else was in the way: {} tries it again, under \
         an automatic rollback again",
        next.resume()
    ))
}

/// The rollback timer has expired, and nobody has seen what it did.
pub fn rollback_timer_not_seen(
    node: &str,
    host: &str,
    token: &str,
    why: &str,
    next: &NextCommands,
) -> Diagnostic {
    Diagnostic::error(
        "RW0643",
        format!(
            "the step was not confirmed ({}), and whether everything was rolled back is not \
             known",
            one_line(why, 200)
        ),
    )
    .on(node)
    .effect(format!(
        "{host} may not be reachable; it keeps its place in the budget"
    ))
    .state(
        "the automatic rollback stays armed there: it acts when its timer expires or at next boot",
    )
    .next(format!(
        "look at {host}'s console through the BMC: journalctl -u railwright-rollback-{token}"
    ))
    .next(format!(
        "a reboot of {host} puts everything back as well; then {}",
        next.resume()
    ))
}
