//! Which plain texts are numbers: decimal ones without leading zeros and without separators, so
//! that a file mode `0644` or a version `1_0` never turns into another number.

/// A whole number such as `7`, `-3`.
pub fn parse_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !is_decimal(digits) || digits.len() > 20 {
        return None;
    }
    text.parse().ok()
}

/// A number such as `7`, `1.5`, `2e9`; never infinite.
pub fn parse_real_number(text: &str) -> Option<f64> {
    let body = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent = exponent.map(|text| text.strip_prefix(['-', '+']).unwrap_or(text));
    if !is_decimal(whole)
        || !fraction.is_none_or(has_only_digits)
        || !exponent.is_none_or(has_only_digits)
    {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// What YAML 1.1 takes for a bool and YAML 1.2 for text.
pub fn is_yaml_1_1_bool(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "yes" | "no" | "on" | "off" | "y" | "n" | "true" | "false"
    )
}

fn is_decimal(digits: &str) -> bool {
    has_only_digits(digits) && (digits.len() == 1 || !digits.starts_with('0'))
}

/// Digits, at least one.
fn has_only_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_decimals_are_numbers() {
        for (text, whole, number) in [
            ("0", Some(0), Some(0.0)),
            ("-12", Some(-12), Some(-12.0)),
            ("1.10", None, Some(1.1)),
            ("2e3", None, Some(2000.0)),
            ("0644", None, None),
            ("0x10", None, None),
            ("1_000", None, None),
            ("+1", None, None),
            (".5", None, None),
            ("1.", None, None),
            ("1e999", None, None),
            (".inf", None, None),
            ("", None, None),
            ("-", None, None),
        ] {
            assert_eq!(
                (parse_integer(text), parse_real_number(text)),
                (whole, number),
                "{text}"
            );
        }
    }
}
