//! Values that are there and make no sense are neither the default nor wrong: nobody knows what the
//! switch makes of them.

use crate::Fact;
use railwright_base::text::one_line;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The MTUs that IP packets can have at all, whatever a switch takes: RFC 791, sections 3.1 (total
/// length) and 3.2 (68 octets).
pub const MTUS: RangeInclusive<u64> = 68..=65_535;

/// Priorities, and the classes and queues that are named by them.
pub const PRIORITIES: RangeInclusive<u64> = 0..=7;

/// Bytes in a queue, milliseconds, queues of any number, and what else has no bounds that are worth
/// a word.
pub const ANY: RangeInclusive<u64> = 0..=u32::MAX as u64;

/// Percent.
pub const PERCENT: RangeInclusive<u64> = 0..=100;

/// Characters of a value that are shown.
const SHOWN: usize = 80;

/// Nobody knows: what it is of, and what stands there.
pub fn build_unreadable_fact<T>(what: impl Display, raw: &str) -> Fact<T> {
    Fact::Unknown(format!("{what} makes no sense: `{}`", one_line(raw, SHOWN)).into())
}

/// A whole number in digits alone, within its bounds.
pub fn parse_bounded_number(
    what: impl Display,
    raw: Option<&str>,
    bounds: RangeInclusive<u64>,
) -> Fact<u64> {
    let Some(raw) = raw else { return Fact::Absent };
    match parse_digits(raw, bounds) {
        Some(number) => Fact::Is(number),
        None => build_unreadable_fact(what, raw),
    }
}

/// A whole number in digits alone; nothing where it is none, or out of its bounds.
pub fn parse_digits(raw: &str, bounds: RangeInclusive<u64>) -> Option<u64> {
    let is_plain = !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit());
    let number = raw.parse().ok()?;
    (is_plain && bounds.contains(&number)).then_some(number)
}

/// Priorities behind one another: `3,4`; none where nothing stands there.
pub fn parse_priority_list(what: impl Display, raw: Option<&str>) -> Fact<BTreeSet<u64>> {
    let raw = raw.unwrap_or_default();
    let mut priorities = BTreeSet::new();
    if raw.is_empty() {
        return Fact::Is(priorities);
    }
    for text in raw.split(',') {
        let Some(priority) = parse_digits(text.trim(), PRIORITIES) else {
            return build_unreadable_fact(what, raw);
        };
        priorities.insert(priority);
    }
    Fact::Is(priorities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_said_in_one_line_and_cut() {
        let why = |raw: &str| {
            parse_bounded_number("`mtu`", Some(raw), MTUS)
                .why_unknown()
                .map(ToString::to_string)
        };
        assert_eq!(
            parse_bounded_number("`mtu`", Some("9216"), MTUS),
            Fact::Is(9216)
        );
        assert_eq!(parse_bounded_number("`mtu`", None, MTUS), Fact::Absent);
        for raw in [
            "-1",
            "+9216",
            "",
            " ",
            "9216.0",
            "0x2400",
            "65536",
            "67",
            "99999999999999999999",
            "NaN",
        ] {
            assert!(why(raw).is_some(), "{raw}");
        }
        assert_eq!(why("-1").as_deref(), Some("`mtu` makes no sense: `-1`"));
        assert_eq!(
            why("\u{1b}[2J\n9216").as_deref(),
            Some("`mtu` makes no sense: `\u{fffd}[2J 9216`")
        );
        assert!(why(&"9".repeat(5000)).is_some_and(|why| why.chars().count() < 120));
    }

    #[test]
    fn one_priority_that_makes_no_sense_leaves_all_unknown() {
        let of = |raw: &str| parse_priority_list("`pfc_enable`", Some(raw));
        assert_eq!(
            (of("3, 4"), of("")),
            (Fact::Is(BTreeSet::from([3, 4])), Fact::Is(BTreeSet::new()))
        );
        for raw in ["3,x", "3,", ",", "8", "3-4", "3 4"] {
            assert!(of(raw).why_unknown().is_some(), "{raw}");
        }
    }
}
