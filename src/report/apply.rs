//! A run as it goes on: one line a turn of events, and on a terminal one line at the bottom that
//! says what is under way. With many hosts only what concerns a whole host, a gate or a failure
//! gets a line.

mod event_line;

use self::event_line::render_event_line;
use super::out;
use railwright_apply::{ApplyOutcome, RunEvent, RunExitClass, StepCounts};
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::{format_count, one_line};
use railwright_base::{Address, TargetKind, nodeset};
use railwright_plan::Plan;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Up to this many hosts every step gets a line.
const HOSTS_IN_FULL: usize = 8;
/// Away from a terminal a heartbeat comes after this long without a line.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// The view of one run.
pub struct RunView {
    terminal: bool,
    in_full: bool,
    began: Instant,
    state: Mutex<RunViewState>,
}

#[derive(Default)]
struct RunViewState {
    steps: usize,
    counts: StepCounts,
    finished: usize,
    /// What is under way: node id, what it does, since when.
    active: BTreeMap<String, (String, Option<Instant>)>,
    last_line: Option<Instant>,
    drawn: bool,
    /// The user asked to stop.
    stopping: bool,
}

impl RunView {
    /// A view for a plan with this many hosts.
    pub fn new(hosts: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        RunView {
            terminal,
            in_full: hosts <= HOSTS_IN_FULL,
            began: Instant::now(),
            state: Mutex::default(),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, RunViewState> {
        lock_ignoring_poison(&self.state)
    }

    /// Takes an event in and shows what it changes.
    pub fn show(&self, event: &RunEvent) {
        let mut state = self.lock_state();
        state.take(event);
        if let Some(line) = render_event_line(event, self.in_full) {
            self.erase(&mut state);
            out::print_note(&format!("{}  {line}", format_clock(self.began.elapsed())));
            state.last_line = Some(Instant::now());
        }
        self.draw(&mut state);
    }

    /// Called once a second: the bottom line's clock goes on; elsewhere a heartbeat now and then.
    pub fn tick(&self) {
        let mut state = self.lock_state();
        let silent = state
            .last_line
            .is_none_or(|at| at.elapsed() >= SIGN_OF_LIFE);
        if self.terminal {
            self.draw(&mut state);
        } else if silent && !state.active.is_empty() {
            out::print_note(&format!(
                "{}  {}",
                format_clock(self.began.elapsed()),
                state.bottom()
            ));
            state.last_line = Some(Instant::now());
        }
    }

    /// The run is over: the bottom line goes away.
    pub fn end(&self) {
        let mut state = self.lock_state();
        self.erase(&mut state);
    }

    fn erase(&self, state: &mut RunViewState) {
        if state.drawn {
            out::note_raw("\r\x1b[K");
            state.drawn = false;
        }
    }

    fn draw(&self, state: &mut RunViewState) {
        if self.terminal {
            let text: String =
                format!("{}  {}", format_clock(self.began.elapsed()), state.bottom())
                    .chars()
                    .take(98)
                    .collect();
            out::note_raw(&format!("\r\x1b[K{text}"));
            state.drawn = true;
        }
    }
}

impl RunViewState {
    fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::RunStarted { steps, .. } => self.steps = *steps,
            RunEvent::StepStarted { node } => drop(
                self.active
                    .insert(node.clone(), (String::new(), Some(Instant::now()))),
            ),
            RunEvent::ActionStarted { node, word, .. } => {
                self.active.entry(node.clone()).or_default().0 = word.replace('_', " ");
            }
            RunEvent::StepFinished { node, outcome } => {
                self.active.remove(node);
                if !node.starts_with("gate/") {
                    self.finished += 1;
                    self.counts.add(outcome);
                }
            }
            RunEvent::GateStarted { node, .. } => drop(
                self.active
                    .insert(node.clone(), ("checks".to_owned(), Some(Instant::now()))),
            ),
            RunEvent::GateFinished { node, .. } => drop(self.active.remove(node)),
            RunEvent::Interrupted { .. } => self.stopping = true,
            _ => {}
        }
    }

    fn bottom(&self) -> String {
        let trouble =
            self.counts.failed + self.counts.unknown + self.counts.unreachable + self.counts.stale;
        let stopping = if self.stopping {
            "stopping (Ctrl-C again leaves at once): "
        } else {
            ""
        };
        let mut text = format!(
            "{stopping}{} of {}",
            self.finished,
            format_count(self.steps, "step")
        );
        if trouble > 0 {
            text.push_str(&format!(", {trouble} not done"));
        }
        let longest = self
            .active
            .iter()
            .max_by_key(|(_, (_, since))| since.map(|at| at.elapsed()));
        if let Some((node, (word, since))) = longest {
            let waited = since.map_or(String::new(), |at| {
                format!(" {}", format_clock(at.elapsed()))
            });
            let more = if self.active.len() > 1 {
                format!(", and {} more", self.active.len() - 1)
            } else {
                String::new()
            };
            let step = describe_step(node);
            // the reboot's only action has the step's own name
            let word = if step.ends_with(word.as_str()) {
                String::new()
            } else {
                format!(" {word}")
            };
            text.push_str(&format!("; {step}{word}{waited}{more}"));
        }
        text
    }
}

fn format_clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// A node's id as a person says it: `node1  link ens4`, `node1  packages`.
pub(super) fn describe_step(node: &str) -> String {
    if let Ok(address) = node.parse::<Address>()
        && address.target.kind == TargetKind::Kube
    {
        return format!(
            "{}  {}",
            one_line(&address.target.name, 60),
            one_line(&address.words(), 90)
        );
    }
    let named = ["host/", "switch/"]
        .iter()
        .find_map(|sort| node.strip_prefix(sort))
        .unwrap_or(node);
    let mut parts = named
        .splitn(3, '/')
        .map(|part| one_line(&part.replace("%2F", "/"), 60));
    match (parts.next(), parts.next(), parts.next()) {
        (Some(host), Some(kind), Some(name)) if kind == "transaction" => format!("{host}  {name}"),
        (Some(host), Some(kind), Some(name)) => format!("{host}  {kind} {name}"),
        (Some(host), Some(kind), None) => format!("{host}  {kind}"),
        _ => one_line(node, 60),
    }
}

/// What the summary of a run has to know besides its outcome.
#[derive(Debug, Clone, Copy)]
pub struct Besides<'a> {
    /// The inventory as the user named it.
    pub inventory: &'a str,
    /// How much the plan could not find out.
    pub unknown: usize,
    /// Whether some host can be verified: test traffic is started over SSH.
    pub provable: bool,
}

/// What is printed where no step of a plan may be applied; nothing where none is needed.
pub fn nothing_done(blocked: usize, plan: &Plan, inventory: &str) -> Option<String> {
    let out: usize = plan
        .unavailable
        .iter()
        .filter(|some| some.is_left_by_run())
        .map(|some| some.names().len())
        .sum();
    let mut parts = Vec::new();
    for (number, words) in [
        (blocked, "blocked"),
        (plan.unknown.len(), "could not be found out"),
        (out, "out of service"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    }
    if parts.is_empty() {
        return None;
    }
    Some(format!(
        "incomplete: nothing was done; {}\nnext: fix what is said above, then railwright plan \
         {inventory}\n",
        parts.join(", ")
    ))
}

/// The last lines of a run: what came of it as a whole, and what to run next.
pub fn render_run_summary(
    outcome: &ApplyOutcome,
    ending: RunExitClass,
    besides: Besides<'_>,
) -> String {
    if outcome.ending == RunExitClass::Refused {
        return "refused: nothing was changed\n".to_owned();
    }
    let counts = &outcome.counts;
    let mut parts = Vec::new();
    for (number, words) in [
        (counts.done, "changed"),
        (counts.already, "already in sync"),
        (counts.failed, "failed"),
        (counts.unknown, "unknown"),
        (counts.unreachable, "not reached"),
        (counts.stale, "stale"),
        (counts.blocked, "blocked"),
        (counts.skipped, "not begun"),
        (besides.unknown, "could not be found out"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    }
    let steps = if parts.is_empty() {
        "no steps".to_owned()
    } else {
        parts.join(", ")
    };
    let run = outcome
        .run
        .as_deref()
        .map_or(String::new(), |run| format!("run {run} "));
    let next = render_next_command(outcome, besides);
    let waits = render_power_cycles(&outcome.power_cycles);
    format!("{run}{}: {steps}\n{waits}{next}\n", ending.word())
}

fn render_next_command(outcome: &ApplyOutcome, besides: Besides<'_>) -> String {
    let Besides {
        inventory,
        unknown,
        provable,
    } = besides;
    let counts = &outcome.counts;
    let open =
        counts.failed + counts.unknown + counts.unreachable + counts.blocked + counts.skipped;
    match outcome.ending {
        RunExitClass::Done if unknown > 0 => format!("next: railwright plan {inventory}"),
        RunExitClass::Done if provable => format!("next: railwright verify {inventory}"),
        RunExitClass::Done => format!("next: railwright drift {inventory}"),
        RunExitClass::Interrupted if outcome.run.is_none() => {
            "next: the same command once more".to_owned()
        }
        RunExitClass::Interrupted => format!("next: railwright resume {inventory}"),
        RunExitClass::Waiting => {
            format!(
                "next: when a host was switched off and on, railwright resume {inventory}; it \
                 tells which still wait"
            )
        }
        // what was refused as stale would be refused again
        RunExitClass::Incomplete if counts.stale > 0 && open == 0 => {
            format!("next: railwright plan {inventory}")
        }
        _ if !outcome.resumable => {
            format!("next: fix what is said above, then railwright plan {inventory}")
        }
        _ => format!(
            "next: fix what is said above, then railwright resume {inventory}, or make a new plan"
        ),
    }
}

/// The hosts that somebody has to switch off and on, and which of them go first.
fn render_power_cycles(waves: &[Vec<String>]) -> String {
    let all = nodeset::fold_node_set(&waves.concat());
    match waves {
        [] => String::new(),
        [_] => format!("power cycle, by hand: {all}\n"),
        [first, ..] => format!(
            "power cycle, by hand: {all} ({} first)\n",
            nodeset::fold_node_set(first)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_interrupts_before_a_run_has_begun_is_sent_to_no_run() {
        let told = |outcome: &ApplyOutcome| {
            render_run_summary(
                outcome,
                outcome.ending,
                Besides {
                    inventory: "inv",
                    unknown: 0,
                    provable: false,
                },
            )
        };
        let early = ApplyOutcome::not_begun(Vec::new(), true);
        assert_eq!(
            told(&early),
            "interrupted: no steps\nnext: the same command once more\n"
        );
        let late = ApplyOutcome {
            run: Some("r0001".to_owned()),
            resumable: true,
            ..early
        };
        assert_eq!(
            told(&late),
            "run r0001 interrupted: no steps\nnext: railwright resume inv\n"
        );
    }

    #[test]
    fn whoever_stops_a_run_learns_what_is_waited_for_and_how_to_leave() {
        let told = |running: &[&str], minutes: Option<u64>| {
            let running = running.iter().map(|node| (*node).to_owned()).collect();
            let event = RunEvent::Interrupted {
                running,
                reboot_limit: minutes.map(|minutes| Duration::from_secs(minutes * 60)),
            };
            let mut state = RunViewState::default();
            state.take(&event);
            assert!(
                state
                    .bottom()
                    .starts_with("stopping (Ctrl-C again leaves at once): 0 of 0 steps"),
                "{}",
                state.bottom()
            );
            render_event_line(&event, false).unwrap()
        };
        insta::assert_snapshot!(told(&["host/node1/reboot"], Some(20)), @r"
        stopping: nothing new starts; 1 step is finished first: node1  reboot
                  a reboot is waited for up to 20 min
                  Ctrl-C again leaves at once, and resume looks at what was left
        ");
        insta::assert_snapshot!(told(&["host/a/file/%2Fetc%2Fx", "host/b/link/ens1", "gate/1", "host/c/transaction/packages"], None), @r"
        stopping: nothing new starts; 4 steps are finished first: a  file /etc/x, b  link ens1,
                  gate  1, 1 more
                  Ctrl-C again leaves at once, and resume looks at what was left
        ");
        insta::assert_snapshot!(told(&[], None), @"stopping: nothing new starts; Ctrl-C again \
                                                   leaves at once, and resume looks at what was \
                                                   left");
    }

    #[test]
    fn what_is_waited_for_stays_on_the_screen() {
        let words = "2 pods are on it still: ml/train-0 (Job train): The disruption budget train \
                     needs 2 healthy pods and has 2 currently";
        let event = RunEvent::StepWaits {
            node: "host/gpu-001/drain".to_owned(),
            words: words.to_owned(),
        };
        insta::assert_snapshot!(render_event_line(&event, false).unwrap(), @r"
        gpu-001  drain  waits: 2 pods are on it still: ml/train-0 (Job train): The disruption
                  budget train needs 2 healthy pods and has 2 currently
        ");
    }
}
