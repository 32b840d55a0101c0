//! What went wrong with a step, for the person on call: what, where, what it means, the state now,
//! what to run next.

mod lock_errors;
mod rollback_timer_errors;
mod run_errors;

pub use lock_errors::*;
pub use rollback_timer_errors::*;
pub use run_errors::*;

use railwright_base::quote::sh_words;
use railwright_base::text::{one_line, sanitize_text};
use railwright_base::{Diagnostic, seal};
use railwright_plan::Plan;
use railwright_resource::complaint::{LOCKED, find_failure_message, status_word};
use railwright_resource::{Action, Plane, Reading, ResourceDiff};
use railwright_state::StateFolder;
use railwright_transport::TransportError;

/// Says which commands go on from here.
#[derive(Debug, Clone)]
pub struct NextCommands {
    pub(super) inventory: String,
}

impl NextCommands {
    /// For the inventory that the plan was made from.
    pub fn of(plan: &Plan) -> Self {
        NextCommands {
            inventory: if plan.inventory.path.is_empty() {
                "INVENTORY".to_owned()
            } else {
                plan.inventory.word()
            },
        }
    }

    /// For the inventory that the state folder lies in, where there is no plan to ask.
    pub fn beside(folder: &StateFolder) -> Self {
        NextCommands {
            inventory: folder.inventory(),
        }
    }

    /// The command that goes on with the run.
    pub fn resume(&self) -> String {
        format!("railwright resume {}", self.inventory)
    }

    /// The commands that replace a plan which may not be applied.
    pub fn anew(&self) -> String {
        format!(
            "railwright plan {0} -o FILE, look at it, then railwright apply FILE",
            self.inventory
        )
    }

    /// The command that prints what a run may have to be allowed on a cluster.
    pub fn rbac(&self) -> String {
        format!("railwright rbac {} --role apply", self.inventory)
    }

    /// The command that takes these hosts, a node-set, as in service.
    pub fn return_to_service(&self, hosts: &str) -> String {
        format!(
            "railwright state return-to-service {} '{hosts}' --reason TEXT",
            self.inventory
        )
    }

    /// The command that leaves these resources on their targets and remembers them no more.
    fn forget(&self, resources: &[String]) -> String {
        format!(
            "railwright state forget {} {}",
            self.inventory,
            sh_words(resources.iter().map(String::as_str))
        )
    }

    /// The command that applies what the spec says.
    pub fn apply(&self) -> String {
        format!("railwright apply {}", self.inventory)
    }

    /// The command that makes a new plan of everything.
    pub fn plan(&self) -> String {
        format!("railwright plan {}", self.inventory)
    }
}

/// One reading for a message.
fn format_reading(reading: &Reading) -> String {
    match reading {
        Reading::Is(serde_json::Value::String(text)) => one_line(seal::mask_seal(text), 80),
        Reading::Is(value) => one_line(&value.to_string(), 80),
        Reading::Absent => "absent".to_owned(),
        Reading::NotApplicable(why) => format!("not applicable ({})", one_line(why.as_words(), 60)),
        Reading::Unknown(why) => format!("unknown ({})", one_line(why.as_words(), 80)),
    }
}

/// `mtu (running): desired 9000, actual 1500; ...`, at most a handful.
pub fn describe_differences(diff: &ResourceDiff) -> String {
    let all: Vec<String> = diff
        .attributes
        .iter()
        .flat_map(|(name, attribute)| {
            attribute
                .differences()
                .into_iter()
                .map(move |(plane, desired, actual)| {
                    format_difference(name, plane, desired, actual)
                })
        })
        .collect();
    let more = if all.len() > 4 {
        format!("; and {} more", all.len() - 4)
    } else {
        String::new()
    };
    format!(
        "{}{more}",
        all.iter().take(4).cloned().collect::<Vec<_>>().join("; ")
    )
}

fn format_difference(name: &str, plane: Plane, desired: &Reading, actual: &Reading) -> String {
    format!(
        "{name} ({}): desired {}, actual {}",
        plane.word(),
        format_reading(desired),
        format_reading(actual)
    )
}

/// What a step is on, in words.
fn describe_target_kind(node: &str) -> &'static str {
    match node.split('/').next() {
        Some("kube") => "cluster",
        Some("switch") => "switch",
        _ => "host",
    }
}

/// What becomes of a host or switch whose step did not end well; of a cluster nothing is said.
fn out_of_service(node: &str) -> &'static str {
    match describe_target_kind(node) {
        "host" => "the host counts as out of service until a later run fixes it",
        "switch" => "the switch counts as out of service until a later run fixes it",
        _ => "what needs it is not begun",
    }
}

/// The target was changed by somebody else since the plan was made.
pub fn report_stale_target(node: &str, reason: &str, next: &NextCommands) -> Diagnostic {
    let place = describe_target_kind(node);
    Diagnostic::error(
        "RW0610",
        format!("the {place} is not as it was when the plan was made: {reason}"),
    )
    .on(node)
    .effect(format!(
        "the plan's reasons and previews no longer hold for this {place}"
    ))
    .state(format!(
        "this step and the rest of this {place} were left alone"
    ))
    .next(format!("{} shows what is to be done now", next.plan()))
}

/// The step would need more than the plan announced.
pub fn report_unannounced_step(node: &str, reason: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0611",
        format!("the step cannot be done as it was announced: {reason}"),
    )
    .on(node)
    .effect(format!(
        "it would disturb the {} in a way that nobody saw in the plan",
        describe_target_kind(node)
    ))
    .state(format!(
        "this step and the rest of this {} were left alone; earlier steps of it stand",
        describe_target_kind(node)
    ))
    .next(format!("{} shows what is to be done now", next.plan()))
}

/// An action ended with an error.
pub fn action_failed(
    node: &str,
    word: &str,
    code: i32,
    stdout: &str,
    stderr: &str,
    next: &NextCommands,
) -> Diagnostic {
    let text = if stderr.trim().is_empty() {
        stdout
    } else {
        stderr
    };
    let tail: Vec<&str> = text.trim().lines().rev().take(6).collect();
    let tail = sanitize_text(&tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
    let said = match (find_failure_message(stderr), tail.is_empty()) {
        (Some(sentence), _) => sentence,
        (None, false) => format!("it said: {tail}"),
        (None, true) => "it said nothing".to_owned(),
    };
    let status = status_word(code).map_or_else(String::new, |word| format!(" ({word})"));
    Diagnostic::error(
        "RW0612",
        format!(
            "{} ended with exit status {code}{status}; {said}",
            word.replace('_', " ")
        ),
    )
    .on(node)
    .effect(out_of_service(node))
    .state(after_failure(node, false, &[]))
    .next(match code {
        LOCKED => format!("when that program has ended: {}", next.resume()),
        _ => format!(
            "fix the cause on the {}, then {}; or correct the spec, then {}",
            describe_target_kind(node),
            next.resume(),
            next.plan()
        ),
    })
}

/// What cannot be rolled back, such as a package that no repository has any more, would fail with
/// every run.
pub fn or_forget(problem: Diagnostic, removals: &[String], next: &NextCommands) -> Diagnostic {
    match removals {
        [] => problem,
        _ => problem.next(format!(
            "or leave what cannot be rolled back as it is, for good: {}",
            next.forget(removals)
        )),
    }
}

/// The state that a failed step leaves, by another look at its resources.
pub fn after_failure(node: &str, untouched: bool, done: &[Action]) -> String {
    let done: Vec<String> = done
        .iter()
        .map(|action| action.word().replace('_', " "))
        .collect();
    let what = match (untouched, done.is_empty()) {
        (true, _) => "read again, everything of this step is as it was before".to_owned(),
        (false, true) => "this step may be half done".to_owned(),
        (false, false) => format!(
            "this step is half done: {} ended well before it",
            done.join(", ")
        ),
    };
    format!(
        "{what}; the rest of this {} was left alone",
        describe_target_kind(node)
    )
}

/// All actions ended well, and the resource is not as desired.
pub fn not_in_sync(node: &str, what: &str, next: &NextCommands) -> Diagnostic {
    let place = describe_target_kind(node);
    let counts = if place == "host" {
        "; the host counts as out of service"
    } else {
        ""
    };
    Diagnostic::error(
        "RW0613",
        format!("every action ended well, but read again it is not as desired: {what}"),
    )
    .on(node)
    .effect(format!(
        "something on the {place} undoes or overrides it{counts}"
    ))
    .state(format!(
        "the actions were executed; the rest of this {place} was left alone"
    ))
    .next(format!(
        "find what else sets it on the {place}, then {}",
        next.resume()
    ))
}

/// All actions ended well, and somebody else set the resource otherwise again.
pub fn fought_over(node: &str, what: &str, rival: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0653",
        format!(
            "somebody else sets it back as soon as it is applied: {}",
            one_line(what, 600)
        ),
    )
    .on(node)
    .effect(format!(
        "two owners of one field undo each other for ever ({rival}), and what needs it would not \
         last"
    ))
    .state(format!(
        "it was applied, and re-checked; it is not applied a second time, and the rest of \
         this {} was left alone",
        describe_target_kind(node)
    ))
    .next(format!(
        "end the other one's ownership (its own resource sets the field, as a rule), then {}",
        next.resume()
    ))
    .next(format!(
        "or take the field out of the spec, which leaves it to the other one, then {}",
        next.plan()
    ))
}

/// Nobody knows how the step ended.
pub fn report_unknown_outcome(
    node: &str,
    reason: &str,
    resources: &[String],
    next: &NextCommands,
) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(
        "RW0614",
        format!("how the step ended is not known: {}", one_line(reason, 300)),
    )
    .on(node)
    .effect(out_of_service(node))
    .state(format!(
        "the step was begun; the rest of this {} was left alone",
        describe_target_kind(node)
    ))
    .next(format!(
        "{} looks at the {} again",
        next.resume(),
        describe_target_kind(node)
    ));
    for resource in resources.iter().take(3) {
        diagnostic = diagnostic.next(format!(
            "or, after looking yourself: {} --redo {resource} (or --accept {resource})",
            next.resume()
        ));
    }
    diagnostic
}

/// What is said of a host on which a step could not begin.
const NOT_BEGUN: &str = "nothing was begun on it in this step; it counts as out of service, and \
                         the rest of the plan on it is left";

/// States that nothing was begun on a target of any kind. Only a host or a switch counts as out of
/// service.
fn describe_untouched_target(on: &str) -> &'static str {
    match describe_target_kind(on) {
        "host" | "switch" => NOT_BEGUN,
        _ => "nothing was begun on it in this step, and the rest of the plan on it is left",
    }
}

/// A host or a cluster cannot be reached: what the transport has to say about it, and the command
/// that goes on with the run.
pub fn not_reached(on: String, error: &TransportError, next: &NextCommands) -> Diagnostic {
    error
        .told(
            describe_untouched_target(&on),
            &format!("then {}", next.resume()),
        )
        .on(on)
}

/// A step of an earlier run does not end.
pub fn still_runs(host: &str, reason: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0627",
        format!("the host cannot be worked on: {}", one_line(reason, 300)),
    )
    .on(format!("host/{host}"))
    .effect("begun a second time beside itself, the step could leave the host half configured")
    .state(NOT_BEGUN)
    .next("`fuser -v /var/lib/railwright/step` on the host shows it; wait until it ends, or end it")
    .next(format!("then {}", next.resume()))
}

/// The host answers, and has not rebooted.
pub fn not_rebooted(host: &str, minutes: u64, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0616",
        format!("the host was told to reboot and still runs the same boot after {minutes} min"),
    )
    .on(format!("host/{host}"))
    .effect("what waits for the reboot (kernel command line, drivers) is not in effect")
    .state("the host answers; a service may hold the shutdown up")
    .next("`systemctl list-jobs` and `journalctl -b` on the host show what holds it up")
    .next(format!("reboot it by hand, then {}", next.resume()))
}

/// The host did not come back.
pub fn not_back(host: &str, minutes: u64, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0617",
        format!("the host did not come back within {minutes} min after its reboot"),
    )
    .on(format!("host/{host}"))
    .effect("it carries no traffic; it keeps its place in the budget")
    .state("the reboot was begun; what waits for it was not done")
    .next(
        "look at its console through the BMC (`ipmitool -H BMC sol activate`): boot loader, kernel \
         panic, network",
    )
    .next(format!("when it is back: {}", next.resume()))
}

/// The host came back, not as it should be.
pub fn wrong_after_reboot(host: &str, what: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error(
        "RW0618",
        format!("the host rebooted and is not as desired: {what}"),
    )
    .on(format!("host/{host}"))
    .effect("it may have booted another kernel or entry than the one that was configured")
    .state("the host is up; the rest of it was left alone")
    .next("compare /proc/cmdline with the boot loader's default entry on the host")
    .next(next.plan())
}

/// The change would cut our own connection.
pub fn cuts_connection(node: &str, host: &str, netdev: Option<&str>, word: &str) -> Diagnostic {
    let what = match netdev {
        Some(netdev) => format!(
            "interrupts {}, which carries our own connection to the host",
            one_line(netdev, 40)
        ),
        None => "can cut our own connection to the host".to_owned(),
    };
    Diagnostic::error(
        "RW0606",
        format!(
            "the step {what}, and no automatic rollback covers what {} does",
            one_line(&word.replace('_', " "), 60)
        ),
    )
    .on(node)
    .effect("if it went wrong nobody could reach the host any more, and nothing would put it back")
    .state("nothing was changed on any host")
    .next(format!(
        "reach {host} over another interface (`ssh.address` in the spec)"
    ))
    .next(format!(
        "or leave it out: --exclude {}",
        extract_exclude_address(node)
    ))
}

/// Why something on the host failed, in one line.
pub fn complaint_of(code: i32, stderr: &str) -> String {
    let said = find_failure_message(stderr).unwrap_or_else(|| one_line(stderr.trim(), 200));
    if said.is_empty() {
        format!("exit status {code}")
    } else {
        format!("exit status {code}: {said}")
    }
}

/// What a plan leaves out so that it has no such step: a transaction has no address of its own
/// there, and goes with its target.
pub fn extract_exclude_address(node: &str) -> &str {
    node.split("/transaction/").next().unwrap_or(node)
}
