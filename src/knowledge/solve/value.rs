//! A release or a sort of a part, ordered, and ranges of them: what requirements and needs are made
//! of.

use crate::catalog::release::{HostComponent, ReleaseRequirement};
use pubgrub::Ranges;
use railwright_base::version::parse_release_numbers;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;

/// What a part can be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A release, by its numbers; the greatest number stands for all that could follow.
    Number(Vec<u64>),
    /// A sort.
    Name(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(parts) => {
                let shown = parts
                    .iter()
                    .filter(|part| **part != u64::MAX)
                    .map(u64::to_string);
                f.write_str(&shown.collect::<Vec<_>>().join("."))
            }
            Value::Name(name) => f.write_str(name),
        }
    }
}

impl Value {
    /// A release as the files write it; nothing where it is none.
    pub(super) fn of(part: HostComponent, text: &str) -> Option<Value> {
        match part.is_numbered() {
            true => parse_release_numbers(text).map(Value::Number),
            false => Some(Value::Name(text.to_owned())),
        }
    }

    /// The last of all releases that begin so.
    fn last(&self) -> Value {
        match self {
            Value::Number(parts) => {
                Value::Number(parts.iter().copied().chain([u64::MAX]).collect())
            }
            Value::Name(_) => self.clone(),
        }
    }
}

/// The release itself and all that begin so: `535` is also `535.104.05`.
pub(super) fn parse_release_line(part: HostComponent, text: &str) -> Option<Ranges<Value>> {
    let first = Value::of(part, text)?;
    let last = first.last();
    Some(Ranges::from_range_bounds(first..=last))
}

/// From a release on, up to another with all that begin like it.
pub(super) fn build_range_between(from: Option<&str>, to: Option<&str>) -> Ranges<Value> {
    let from = match from.and_then(parse_release_numbers) {
        Some(from) => Ranges::higher_than(Value::Number(from)),
        None => Ranges::full(),
    };
    let to = match to.and_then(parse_release_numbers) {
        Some(to) => Ranges::lower_than(Value::Number(to).last()),
        None => Ranges::full(),
    };
    from.intersection(&to)
}

/// One of these names.
pub(super) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Ranges<Value> {
    // In order, because each range goes behind the last one then; name by name the union of all so
    // far would be copied.
    let names: BTreeSet<&str> = names.into_iter().collect();
    let ends = names.into_iter().map(|name| {
        let end = Bound::Included(Value::Name(name.to_owned()));
        (end.clone(), end)
    });
    ends.collect()
}

/// What will do of the other part.
pub(super) fn compute_allowed_range(need: &ReleaseRequirement) -> Ranges<Value> {
    if need.part.is_numbered() {
        return build_range_between(need.from.as_deref(), need.to.as_deref());
    }
    let only = if need.only.is_empty() {
        Ranges::full()
    } else {
        one_of(need.only.iter().map(String::as_str))
    };
    let not = one_of(need.not.iter().map(String::as_str));
    only.intersection(&not.complement())
}

/// The ends of a range, which are releases that a search has to look at.
pub(super) fn list_range_ends(range: &Ranges<Value>) -> impl Iterator<Item = Value> + '_ {
    let ends = range.iter().flat_map(|(low, high)| [low, high]);
    ends.filter_map(|end| match end {
        Bound::Included(value) | Bound::Excluded(value) => Some(value.clone()),
        Bound::Unbounded => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_is_the_union_of_its_names() {
        for names in [
            vec![],
            vec!["a"],
            vec!["c", "a", "b"],
            vec!["b", "a", "b", "a"],
        ] {
            let single = |name: &&str| Ranges::<Value>::singleton(Value::Name((*name).to_owned()));
            let united = names
                .iter()
                .map(single)
                .fold(Ranges::empty(), |all: Ranges<Value>, one| all.union(&one));
            assert_eq!(one_of(names.iter().copied()), united, "{names:?}");
        }
    }
}
