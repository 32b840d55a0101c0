//! How much work a template may do, not only how much text it may make. Tera counts nothing itself, so the text that Tera is given
//! counts: every loop is charged for all of its turns before the first one, and every filter for what it is given. What is
//! charged depends on the template and its values alone, never on a clock.

use super::token::{Piece, Placed, Token, pieces};
use std::cell::Cell;
use std::ops::Range;
use tera::{Context, Error, Kwargs, State, Tera, TeraResult, Value};

/// The most units of work of one rendering. A unit is about one step of Tera's interpreter; a loop over the nodes of a large cluster, with
/// their rails, takes a tenth of this.
pub const WORK_MAX: u64 = 4 << 20;

/// What is said of more.
pub const TOO_MUCH_WORK: &str = "this goes through more turns than a template may take";

/// Units that all templates may take together for each target; those of our own modules take a twentieth of it.
const TOGETHER_A_TARGET: u64 = 1 << 16;
/// Units that they may take besides, however few the targets are.
const TOGETHER_MIN: u64 = 16 << 20;

/// What is said of more.
pub const TOO_MUCH_TOGETHER: &str = "with this, the templates go through more turns than all of them may take together";

/// Bytes of a text that a filter handles in one unit.
const BYTES_A_UNIT: u64 = 64;

/// Bytes of a text that an operator may copy in one unit. With `WORK_MAX` it holds the memory that one expression can take.
const COPIED_A_UNIT: u64 = 128;

/// A list of a spec up to this length is handled in the unit of the operator; its hosts may be so many.
const LIST_MAX: usize = 10_000;

/// Charges a loop for its turns.
const TURNS_FILTER: &str = "_turns";
/// Charges a filter, or a name that is set, for the value.
const WEIGH_FILTER: &str = "_weigh";
/// The name in a context of what an operator costs on the largest value in it. It stands in no shape, so no template can name it.
const LARGEST: &str = "_largest";

#[derive(Clone, Copy)]
struct Budget {
    left: u64,
    is_spent: bool,
    /// Operators of the template, each counted once.
    operators: u64,
    /// What an operator may cost on the largest value so far.
    largest: u64,
}

thread_local! {
    /// Of the rendering that goes on in this thread: Tera's filters cannot be handed anything else that changes.
    static BUDGET: Cell<Budget> = const { Cell::new(Budget { left: WORK_MAX, is_spent: false, operators: 0, largest: 0 }) };
}

thread_local! {
    /// What the templates that this thread fills in may still take together, while they share an allowance.
    static SHARED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While it lives, all templates that this thread fills in share one allowance.
#[must_use]
pub struct SharedAllowance(());

/// One allowance for all templates that are filled in for so many targets.
pub fn share_allowance(targets: usize) -> SharedAllowance {
    SHARED.set(Some(TOGETHER_MIN + TOGETHER_A_TARGET * targets as u64));
    SharedAllowance(())
}

impl Drop for SharedAllowance {
    fn drop(&mut self) {
        SHARED.set(None);
    }
}

/// True when the shared allowance is used up: nothing more can be filled in, and that was said.
pub fn is_allowance_used_up() -> bool {
    SHARED.get() == Some(0)
}

/// Begins a rendering of a template with so many operators.
pub fn begin(operators: u64, context: &Context) {
    let left = SHARED.get().map_or(WORK_MAX, |shared| shared.min(WORK_MAX));
    BUDGET.set(Budget { left, is_spent: false, operators, largest: 0 });
    // A template without an operator copies no value.
    if let Some(largest) = context.get(LARGEST).and_then(Value::as_u64) {
        let _ = hold(largest);
    }
}

/// Ends the rendering in this thread: what is said where it took more than it may.
pub fn end() -> Option<&'static str> {
    let budget = BUDGET.get();
    let Some(shared) = SHARED.get() else { return budget.is_spent.then_some(TOO_MUCH_WORK) };
    let allowed = shared.min(WORK_MAX);
    let taken = if budget.is_spent { allowed } else { allowed - budget.left };
    SHARED.set(Some(shared - taken));
    budget.is_spent.then_some(if shared > WORK_MAX { TOO_MUCH_WORK } else { TOO_MUCH_TOGETHER })
}

/// Takes units away.
pub fn charge(units: u64) -> TeraResult<()> {
    let budget = BUDGET.get();
    let left = budget.left.checked_sub(units);
    BUDGET.set(Budget { left: left.unwrap_or_default(), is_spent: budget.is_spent || left.is_none(), ..budget });
    if BUDGET.get().is_spent { Err(Error::message(TOO_MUCH_WORK)) } else { Ok(()) }
}

/// A value of this weight is there from now on, and each operator may meet it.
fn hold(weight: u64) -> TeraResult<()> {
    let budget = BUDGET.get();
    let more = weight.saturating_sub(budget.largest);
    BUDGET.set(Budget { largest: budget.largest.max(weight), ..budget });
    charge(more.saturating_mul(budget.operators))
}

/// A text was made.
pub fn made(text: &str) -> TeraResult<()> {
    charge(text.len() as u64 / BYTES_A_UNIT)?;
    hold(text.len() as u64 / COPIED_A_UNIT)
}

/// Puts the filters that charge into an engine, and those of Tera's that would take more time than what they are given shows.
pub fn register(tera: &mut Tera) {
    tera.register_filter(TURNS_FILTER, turns);
    tera.register_filter(WEIGH_FILTER, weigh);
    tera.register_filter("unique", unique);
    tera.register_function("range", range);
}

fn turns(value: Value, arguments: Kwargs, _: &State) -> TeraResult<Value> {
    let (body, operators) = (arguments.must_get::<u64>("body")?, arguments.must_get::<u64>("operators")?);
    let a_turn = body.saturating_add(operators.saturating_mul(BUDGET.get().largest));
    charge(length(&value).saturating_mul(a_turn))?;
    Ok(value)
}

fn weigh(value: Value, _: Kwargs, _: &State) -> TeraResult<Value> {
    match value.as_str() {
        Some(text) => made(text)?,
        None => charge(1 + length(&value) / 8)?,
    }
    if length(&value) > LIST_MAX as u64 && value.as_str().is_none() {
        hold(length(&value))?;
    }
    Ok(value)
}

fn length(value: &Value) -> u64 {
    value.as_str().map_or_else(|| value.len().unwrap_or_default(), str::len) as u64
}

/// Tera's `unique` compares every element with every other.
fn unique(value: Value, _: Kwargs, _: &State) -> TeraResult<Vec<Value>> {
    let items = value.as_array().ok_or_else(|| Error::message("this filter takes a list"))?;
    let mut out: Vec<Value> = Vec::new();
    for item in items {
        charge(1 + out.len() as u64 / 2)?;
        if !out.contains(item) {
            out.push(item.clone());
        }
    }
    Ok(out)
}

/// Tera's `range`, charged for its length.
fn range(arguments: Kwargs, _: &State) -> TeraResult<Vec<i64>> {
    let (start, end) = (arguments.get::<i64>("start")?.unwrap_or_default(), arguments.must_get::<i64>("end")?);
    let step = arguments.get::<i64>("step_by")?.unwrap_or(1);
    if step == 0 || (start > end && step > 0) {
        return Err(Error::message("`range` needs a `start` that is not behind its `end`, and a `step_by` that is not 0"));
    }
    let length = if step > 0 || start > end { start.abs_diff(end).div_ceil(step.unsigned_abs()) } else { 0 };
    charge(length)?;
    Ok((0..length).map(|n| start.saturating_add((n as i64).saturating_mul(step))).collect())
}

/// Puts a value into a context and notes how much the largest there weighs.
pub fn add(context: &mut Context, name: &str, value: &serde_json::Value) {
    context.insert(name.to_owned(), value);
    let known = context.get(LARGEST).and_then(Value::as_u64).unwrap_or_default();
    context.insert(LARGEST, &known.max(largest_within(value)));
}

fn largest_within(value: &serde_json::Value) -> u64 {
    match value {
        serde_json::Value::String(text) => text.len() as u64 / COPIED_A_UNIT,
        serde_json::Value::Array(items) => {
            let own = if items.len() > LIST_MAX { items.len() as u64 } else { 0 };
            items.iter().map(largest_within).max().unwrap_or_default().max(own)
        }
        serde_json::Value::Object(map) => map.values().map(largest_within).max().unwrap_or_default(),
        _ => 0,
    }
}

/// A template as Tera is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The text, with what counts in it.
    pub text: String,
    /// Bytes of the template before which something was put in, and how much.
    inserted: Vec<(usize, usize)>,
}

impl Counted {
    /// A template with what counts in its loops and before its filters.
    pub fn of(template: &str) -> Self {
        let pieces = pieces(template);
        let mut inserts: Vec<(usize, String)> = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let (Piece::Tag(_, words) | Piece::Output(_, words)) = piece else { continue };
            inserts.extend(words.iter().filter(|(word, _)| word.is("|")).map(|(_, span)| (span.start, format!("|{WEIGH_FILTER}"))));
            if matches!(piece, Piece::Output(..)) {
                continue;
            }
            let Some(expression) = bound_expression(words) else { continue };
            let charge = match words.first() {
                Some((word, _)) if word.is_word("for") => {
                    let body = body_of(&pieces[at..]);
                    format!(
                        ")|{TURNS_FILTER}(body={},operators={})",
                        body.iter().map(steps).sum::<u64>(),
                        body.iter().map(operators_of).sum::<u64>()
                    )
                }
                _ => format!(")|{WEIGH_FILTER}"),
            };
            inserts.extend([(expression.start, "(".to_owned()), (expression.end, charge)]);
        }
        // At one place what ends there comes before what begins there, which no two of these do.
        inserts.sort_by_key(|(at, _)| *at);
        let (mut text, mut from, mut inserted) = (String::with_capacity(template.len() * 2), 0, Vec::new());
        for (at, insert) in inserts {
            text.push_str(&template[from..at]);
            text.push_str(&insert);
            inserted.push((at, insert.len()));
            from = at;
        }
        text.push_str(&template[from..]);
        Counted { text, inserted }
    }

    /// The bytes of the template that these bytes of the counted text were.
    pub fn place(&self, range: &Range<usize>) -> Range<usize> {
        let back = |at: usize| {
            let mut before = 0;
            for (place, length) in &self.inserted {
                if place + before >= at {
                    break;
                }
                if at < place + before + length {
                    return *place;
                }
                before += length;
            }
            at - before
        };
        back(range.start)..back(range.end)
    }
}

/// Where in a template the tag or output stands that holds this byte.
pub fn piece_around(template: &str, at: usize) -> Option<Range<usize>> {
    pieces(template).into_iter().find_map(|piece| match piece {
        Piece::Tag(span, _) | Piece::Output(span, _) if span.contains(&at) => Some(span),
        _ => None,
    })
}

/// How many operators a template has: what may handle a whole value and is no filter.
pub fn operators(template: &str) -> u64 {
    pieces(template).iter().map(operators_of).sum()
}

/// The expression whose value a `for` or a `set` gives a name to.
fn bound_expression(words: &[Placed]) -> Option<Range<usize>> {
    let split = match words.first()? {
        (word, _) if word.is_word("for") => words.iter().position(|(word, _)| word.is_word("in"))?,
        (word, _) if word.is_word("set") || word.is_word("set_global") => words.iter().position(|(word, _)| word.is("="))?,
        _ => return None,
    };
    Some(words.get(split + 1)?.1.start..words.last()?.1.end)
}

/// The pieces of a loop, from behind its tag to its end.
fn body_of(pieces: &[Piece]) -> &[Piece] {
    let mut open = 0usize;
    for (at, piece) in pieces.iter().enumerate() {
        let Piece::Tag(_, words) = piece else { continue };
        match words.first() {
            Some((word, _)) if word.is_word("for") => open += 1,
            Some((word, _)) if word.is_word("endfor") => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return &pieces[1..at + 1];
        }
    }
    pieces.get(1..).unwrap_or_default()
}

fn steps(piece: &Piece) -> u64 {
    match piece {
        Piece::Content(span) => 1 + span.len() as u64 / BYTES_A_UNIT,
        Piece::Tag(_, words) | Piece::Output(_, words) => 1 + words.len() as u64,
        Piece::Comment => 0,
    }
}

fn operators_of(piece: &Piece) -> u64 {
    let (Piece::Tag(_, words) | Piece::Output(_, words)) = piece else { return 0 };
    let is_operator = |(word, _): &&Placed| match word {
        Token::Symbol(symbol) => !matches!(*symbol, "." | "?." | "(" | ")" | "=" | "|"),
        Token::Ident(word) => matches!(word.as_str(), "in" | "is"),
        Token::Text(_) | Token::Number => false,
    };
    let found = words.iter().filter(is_operator).count() as u64;
    // The `in` of a loop compares nothing.
    if words.first().is_some_and(|(word, _)| word.is_word("for")) { found.saturating_sub(1) } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_put_in_and_places_are_found_again() {
        let template = "a{% for x in list %}{{ x.y | lower }}é{% endfor %}";
        let counted = Counted::of(template);
        assert_eq!(counted.text, "a{% for x in (list)|_turns(body=9,operators=0) %}{{ x.y |_weigh| lower }}é{% endfor %}");
        for word in ["list", "x.y", "lower", "endfor"] {
            let (here, there) = (template.find(word).unwrap(), counted.text.find(word).unwrap());
            assert_eq!(counted.place(&(there..there + word.len())), here..here + word.len(), "{word}");
        }
        let filter = counted.text.find("_turns").unwrap();
        assert_eq!(piece_around(template, counted.place(&(filter..filter + 6)).start), Some(1..20));
    }

    proptest::proptest! {
        #[test]
        fn no_template_panics_and_no_byte_of_it_is_lost(text in "([{}%#a'\"\\\\. |é\n(]|for |in |set |=|endfor){0,30}") {
            let counted = Counted::of(&text);
            let mut left = counted.text.clone();
            for (at, length) in &counted.inserted {
                left.replace_range(*at..at + length, "");
            }
            proptest::prop_assert_eq!(left, text.clone());
            proptest::prop_assert_eq!(counted.place(&(0..counted.text.len())).end, text.len());
        }
    }
}
