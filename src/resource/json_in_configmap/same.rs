//! Whether two JSON texts say the same: numbers by what they are worth and not by how they are
//! written, with all of their digits, which no floating point number has.

use super::text::Items;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

/// A text as every other one that says the same has it, too; what is no JSON says itself alone.
pub fn canonicalize_json(json: &str) -> String {
    match serde_json::from_str::<IgnoredAny>(json) {
        Ok(IgnoredAny) => of_json(json.trim()),
        Err(_) => json.to_owned(),
    }
}

fn of_json(json: &str) -> String {
    match Items::of(json) {
        Some(Items::Map(members)) => {
            let members: BTreeMap<String, String> = members
                .into_iter()
                .map(|(name, value)| (name, of_json(value)))
                .collect();
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| format!("{}:{value}", Value::from(name)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Some(Items::List(elements)) => format!(
            "[{}]",
            elements
                .into_iter()
                .map(of_json)
                .collect::<Vec<_>>()
                .join(",")
        ),
        None => canonicalize_number(json).unwrap_or_else(|| {
            serde_json::from_str(json)
                .map_or_else(|_| json.to_owned(), |value: Value| value.to_string())
        }),
    }
}

/// A number as its digits and a power of ten (RFC 8259, section 6).
fn canonicalize_number(json: &str) -> Option<String> {
    let (sign, rest) = json
        .strip_prefix('-')
        .map_or(("", json), |rest| ("-", rest));
    let (digits, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let short = digits.trim_end_matches('0');
    if short.is_empty() {
        return Some("0".to_owned());
    }
    let (below, above) = (
        i64::try_from(fraction.len()).ok()?,
        i64::try_from(digits.len() - short.len()).ok()?,
    );
    let power = exponent
        .parse::<i64>()
        .ok()?
        .checked_sub(below)?
        .checked_add(above)?;
    Some(format!("{sign}{short}e{power}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_the_same_by_what_they_are_worth() {
        for same in [
            &["1", "1.0", "1e0", "10E-1", "0.1e+1"][..],
            &["0", "-0", "0.0", "0e7"],
            &["12345678901234567890123", "12345678901234567890.123e3"],
            &["[1,{\"a\":2.50}]", " [ 1.0 , { \"\\u0061\" : 2.5 } ] "],
            &["{\"a\":1,\"b\":[]}", "{ \"b\": [ ], \"a\": 1.00 }"],
        ] {
            let all: Vec<String> = same.iter().map(|text| canonicalize_json(text)).collect();
            assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
        }
        for (a, b) in [
            ("1", "-1"),
            ("1", "\"1\""),
            ("12345678901234567890123", "12345678901234567890124"),
            ("0.1", "0.10000000000000000555"),
            ("{}", "[]"),
            ("[1,2]", "[2,1]"),
        ] {
            assert_ne!(canonicalize_json(a), canonicalize_json(b));
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+0-9.eE{}\\[\\]:,\" a]{0,20}") {
            canonicalize_json(&text);
        }
    }
}
