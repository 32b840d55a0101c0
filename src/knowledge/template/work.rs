//! How much work a template may do, not only how much text it may make. Tera counts nothing itself,
//! so the text that Tera is given (`counted`) counts: every loop is charged for all of its turns
//! before the first one, every filter for what it is given, and every operator for what is in its
//! values. What is charged depends on the template and its values alone. Beneath that is a net: a
//! clock of the thread, for what is dearer than it is charged for.

use super::output_limit;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::cell::Cell;
use tera::{Error, Kwargs, State, Tera, TeraResult, Value};

/// The most units of work of one rendering. A unit is about one step of Tera's interpreter; a loop
/// over the nodes of a large cluster, with their rails, takes a tenth of this.
pub const WORK_MAX: u64 = 4 << 20;

/// What is said of more.
pub const TOO_MUCH_WORK: &str = "this goes through more turns than a template may take";

/// Units that all templates may take together for each target; our own modules take 2,300 for a
/// host of `inventories/roce-h100-rail`.
const TOGETHER_A_TARGET: u64 = 1 << 16;
/// Units that they may take besides, however few the targets are.
const TOGETHER_MIN: u64 = 16 << 20;
/// The most that they may take, however many the targets are: about ten seconds (50 million plain
/// steps a second, measured).
const TOGETHER_MAX: u64 = 480 << 20;

/// What is said of more.
pub const TOO_MUCH_TOGETHER: &str =
    "with this, the templates go through more turns than all of them may take together";

/// The most milliseconds of its thread's processor that one rendering may take.
const TIME_MAX: i64 = 5000;
/// What is said of more.
pub const TOO_LONG: &str = "this takes more than 5 seconds of work";
/// What a rendering that took too long has taken of the shared allowance: so many units are done in
/// that time.
const UNITS_OF_TIME_MAX: u64 = 240 << 20;
/// The clock is looked at once for so many charges.
const CHARGES_A_LOOK: u32 = 64;

/// Bytes of a text that a filter handles in one unit.
pub const BYTES_A_UNIT: u64 = 64;

/// Parts of a value (an element, or `BYTES_A_PART` of a text) that an operator handles in one unit.
/// With `WORK_MAX` it holds the memory that one expression can take.
const PARTS_A_UNIT: u64 = 4;
const BYTES_A_PART: u64 = 4;

/// Bytes of all that templates make that may be kept for each target; our own modules take 130 KB
/// for a host of `inventories/roce-h100-rail`.
const KEPT_A_TARGET: u64 = 1 << 20;
/// Bytes that may be kept besides, however few the targets are.
const KEPT_MIN: u64 = 64 << 20;

/// Charges a loop for its turns.
pub const TURNS_FILTER: &str = "_turns";
/// Charges for a text by its length, and one unit for any other value.
pub const TEXT_FILTER: &str = "_text";
/// Charges for the elements of a value.
pub const ELEMENTS_FILTER: &str = "_elements";
/// Charges for all that is in a value, lists in lists too.
pub const WHOLE_FILTER: &str = "_whole";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spent {
    Units,
    Time,
}

#[derive(Clone, Copy)]
struct RenderBudget {
    left: u64,
    spent: Option<Spent>,
    charges: u32,
    /// The milliseconds of this thread's processor at which the rendering ends; set with the first
    /// look at the clock.
    until: Option<i64>,
}

impl RenderBudget {
    const fn new(left: u64) -> Self {
        RenderBudget {
            left,
            spent: None,
            charges: 0,
            until: None,
        }
    }
}

thread_local! {
    /// Of the rendering that goes on in this thread: Tera's filters cannot be handed anything else
    /// that changes.
    static BUDGET: Cell<RenderBudget> = const { Cell::new(RenderBudget::new(WORK_MAX)) };

    /// What the templates that this thread fills in may still take together, while they share an
    /// allowance.
    static SHARED: Cell<Option<u64>> = const { Cell::new(None) };

    /// Bytes of what they make that may still be kept, while they share an allowance.
    static KEPT: Cell<u64> = const { Cell::new(KEPT_MIN) };
}

/// While it lives, all templates that this thread fills in share one allowance.
#[must_use]
pub struct SharedAllowance {
    is_outermost: bool,
}

/// One allowance for all templates that are filled in for so many targets; within another one it is
/// that one.
pub fn share_allowance(targets: usize) -> SharedAllowance {
    let is_outermost = SHARED.get().is_none();
    if is_outermost {
        SHARED.set(Some(compute_allowance(targets)));
        KEPT.set(
            KEPT_A_TARGET
                .saturating_mul(targets as u64)
                .saturating_add(KEPT_MIN),
        );
    }
    SharedAllowance { is_outermost }
}

fn compute_allowance(targets: usize) -> u64 {
    TOGETHER_A_TARGET
        .saturating_mul(targets as u64)
        .saturating_add(TOGETHER_MIN)
        .min(TOGETHER_MAX)
}

impl Drop for SharedAllowance {
    fn drop(&mut self) {
        if self.is_outermost {
            SHARED.set(None);
        }
    }
}

/// Takes units of the shared allowance for work that is no rendering; false when that is more than
/// is left.
pub fn take_shared(units: u64) -> bool {
    let Some(shared) = SHARED.get() else {
        return true;
    };
    SHARED.set(Some(shared.saturating_sub(units)));
    units < shared
}

/// Takes bytes that are kept until all targets are done; false when that is more than is left, and
/// then the shared allowance is used up.
pub fn take_kept_bytes(bytes: usize) -> bool {
    let left = KEPT.get().checked_sub(bytes as u64);
    match left {
        _ if SHARED.get().is_none() => true,
        Some(left) => {
            KEPT.set(left);
            true
        }
        None => {
            SHARED.set(Some(0));
            false
        }
    }
}

/// True when the shared allowance is used up: nothing more can be filled in, and that was said.
pub fn is_allowance_used_up() -> bool {
    SHARED.get() == Some(0)
}

/// Begins a rendering.
pub fn begin_rendering() {
    BUDGET.set(RenderBudget::new(
        SHARED.get().map_or(WORK_MAX, |shared| shared.min(WORK_MAX)),
    ));
}

/// Ends the rendering in this thread: what is said where it took more than it may.
pub fn end_rendering() -> Option<&'static str> {
    let budget = BUDGET.get();
    let shared = SHARED.get();
    if let Some(shared) = shared {
        let taken = if budget.spent == Some(Spent::Time) {
            UNITS_OF_TIME_MAX
        } else {
            shared.min(WORK_MAX) - budget.left
        };
        // What is used up was said to be.
        SHARED.set(Some(
            shared
                .saturating_sub(taken)
                .max(u64::from(budget.spent.is_none() && shared > 0)),
        ));
    }
    match budget.spent? {
        Spent::Time => Some(TOO_LONG),
        Spent::Units if shared.is_some_and(|shared| shared <= WORK_MAX) => Some(TOO_MUCH_TOGETHER),
        Spent::Units => Some(TOO_MUCH_WORK),
    }
}

/// Takes units away.
pub fn charge_units(units: u64) -> TeraResult<()> {
    let mut budget = BUDGET.get();
    if budget.left < units {
        budget.spent.get_or_insert(Spent::Units);
    }
    budget.left = budget.left.saturating_sub(units);
    budget.charges = budget.charges.wrapping_add(1);
    if budget.charges.is_multiple_of(CHARGES_A_LOOK)
        && let Some(now) = processor_time()
        && now > *budget.until.get_or_insert(now + TIME_MAX)
    {
        budget.spent.get_or_insert(Spent::Time);
    }
    BUDGET.set(budget);
    if budget.spent.is_some() {
        Err(Error::message(TOO_MUCH_WORK))
    } else {
        Ok(())
    }
}

/// The milliseconds for which a processor worked on this thread so far. It stands while the thread
/// waits or is stopped.
fn processor_time() -> Option<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    Some(usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds())
}

/// A text was made or is handled.
pub fn charge_text(text: &str) -> TeraResult<()> {
    if text.len() > output_limit::TEXT_MAX {
        return Err(Error::message(output_limit::TOO_MUCH));
    }
    charge_units(1 + text.len() as u64 / BYTES_A_UNIT)
}

/// Puts the filters that charge into an engine, and those of Tera's that would take more time than
/// what they are given shows.
pub fn register_charging_filters(tera: &mut Tera) {
    tera.register_filter(TURNS_FILTER, charge_loop_turns);
    tera.register_filter(TEXT_FILTER, charge_text_value);
    tera.register_filter(ELEMENTS_FILTER, charge_elements);
    tera.register_filter(WHOLE_FILTER, charge_whole_value);
    tera.register_filter("split", split_text);
    tera.register_filter("unique", remove_duplicates);
    tera.register_function("range", build_range);
}

fn charge_loop_turns(value: Value, arguments: Kwargs, _: &State) -> TeraResult<Value> {
    charge_units(measure_value(&value).saturating_mul(arguments.must_get::<u64>("body")?))?;
    Ok(value)
}

fn charge_text_value(value: Value, _: Kwargs, _: &State) -> TeraResult<Value> {
    charge_text(value.as_str().unwrap_or_default())?;
    Ok(value)
}

fn charge_elements(value: Value, _: Kwargs, _: &State) -> TeraResult<Value> {
    charge_text(value.as_str().unwrap_or_default())?;
    if value.as_str().is_none() {
        charge_units(measure_value(&value))?;
    }
    Ok(value)
}

fn charge_whole_value(value: Value, arguments: Kwargs, _: &State) -> TeraResult<Value> {
    let times = arguments.get::<u64>("times")?.unwrap_or(1);
    charge_text(value.as_str().unwrap_or_default())?;
    let (mut open, mut parts) = (vec![&value], 0);
    while let Some(value) = open.pop() {
        let text = value.as_str().unwrap_or_default();
        parts += 1 + text.len() as u64 / BYTES_A_PART;
        open.extend(value.as_array().unwrap_or_default());
        if let Some(map) = value.as_map() {
            open.extend(map.values());
        }
        // Now and then, so that it ends with the budget.
        if parts >= 1 << 12 {
            charge_units((parts / PARTS_A_UNIT).saturating_mul(times))?;
            parts = 0;
        }
    }
    charge_units((parts / PARTS_A_UNIT).saturating_mul(times))?;
    Ok(value)
}

/// Bytes of a text, elements of anything else.
fn measure_value(value: &Value) -> u64 {
    let length = match value.as_str() {
        Some(text) => text.len(),
        None => value.len().unwrap_or_default(),
    };
    length as u64
}

/// Tera's `split`, charged for every part.
fn split_text(value: Value, arguments: Kwargs, _: &State) -> TeraResult<Vec<Value>> {
    let text = value
        .as_str()
        .ok_or_else(|| Error::message("this filter takes text"))?;
    let between = arguments.must_get::<String>("pat")?;
    charge_text(&between)?;
    text.split(&between)
        .map(|part| charge_units(2).map(|()| Value::from(part)))
        .collect()
}

/// Tera's `unique` compares every element with every other.
fn remove_duplicates(value: Value, _: Kwargs, _: &State) -> TeraResult<Vec<Value>> {
    let items = value
        .as_array()
        .ok_or_else(|| Error::message("this filter takes a list"))?;
    let mut out: Vec<Value> = Vec::new();
    for item in items {
        charge_units(
            (1 + out.len() as u64 / 2).saturating_mul(1 + measure_value(item) / PARTS_A_UNIT),
        )?;
        if !out.contains(item) {
            out.push(item.clone());
        }
    }
    Ok(out)
}

/// Tera's `range`, charged for its length.
fn build_range(arguments: Kwargs, _: &State) -> TeraResult<Vec<i64>> {
    let (start, end) = (
        arguments.get::<i64>("start")?.unwrap_or_default(),
        arguments.must_get::<i64>("end")?,
    );
    let step = arguments.get::<i64>("step_by")?.unwrap_or(1);
    if step == 0 || (start > end && step > 0) {
        return Err(Error::message(
            "`range` needs a `start` that is not behind its `end`, and a `step_by` that is not 0",
        ));
    }
    let length = if step > 0 || start > end {
        start.abs_diff(end).div_ceil(step.unsigned_abs())
    } else {
        0
    };
    charge_units(length)?;
    Ok((0..length)
        .map(|n| start.saturating_add((n as i64).saturating_mul(step)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_ends_what_is_dearer_than_it_is_charged_for() {
        let shared = share_allowance(100_000);
        begin_rendering();
        (0..1000).for_each(|_| charge_units(1).unwrap());
        let late = RenderBudget {
            until: Some(-1),
            ..BUDGET.get()
        };
        BUDGET.set(late);
        assert!((0..CHARGES_A_LOOK).any(|_| charge_units(0).is_err()));
        assert_eq!(end_rendering(), Some(TOO_LONG));
        assert_eq!(
            SHARED.get(),
            Some(TOGETHER_MAX - UNITS_OF_TIME_MAX),
            "it took its time from the others"
        );
        drop(shared);
    }

    #[test]
    fn what_all_may_take_has_an_end_however_many_the_targets_are() {
        assert!(
            compute_allowance(1) < compute_allowance(100)
                && compute_allowance(100) < compute_allowance(6000)
        );
        assert_eq!(
            (compute_allowance(100_000), compute_allowance(usize::MAX)),
            (TOGETHER_MAX, TOGETHER_MAX)
        );
    }
}
