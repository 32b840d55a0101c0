//! Dotted versions, compared part by part as numbers: 5.4 is before 5.12, 24.10-1.1.4 after 24.07.

/// The numbers of a version, up to the first part that does not start with one.
pub fn parse_version_numbers(version: &str) -> Vec<u64> {
    let number = |part: &str| {
        part.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .ok()
    };
    let mut parts: Vec<u64> = version
        .split(['.', '-', '_', '+', '~'])
        .map_while(number)
        .collect();
    while parts.last() == Some(&0) {
        parts.pop();
    }
    parts
}

/// The most numbers of a release.
const NUMBERS_MAX: usize = 8;

/// The numbers of a release as it is written, zeros at its end too; nothing where it does not begin
/// with one.
pub fn parse_release_numbers(release: &str) -> Option<Vec<u64>> {
    let number = |part: &str| {
        part.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .ok()
    };
    let numbers: Vec<u64> = release
        .split(['.', '-', '_', '+', '~'])
        .map_while(number)
        .take(NUMBERS_MAX)
        .collect();
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{parse_release_numbers, parse_version_numbers};

    #[test]
    fn a_release_keeps_its_zeros() {
        assert_eq!(parse_release_numbers("12.0"), Some(vec![12, 0]));
        assert_eq!(parse_release_numbers("525.60.13"), Some(vec![525, 60, 13]));
        assert_eq!(parse_release_numbers("open"), None);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        for (before, after) in [
            ("5.4", "5.12"),
            ("24.07", "24.10-1.1.4"),
            ("535", "550.54"),
            ("2.9", "2.9.1"),
            ("", "1"),
            ("5.15-rt", "5.15.1"),
        ] {
            assert!(
                parse_version_numbers(before) < parse_version_numbers(after),
                "{before} {after}"
            );
        }
        assert_eq!(parse_version_numbers("9.0"), parse_version_numbers("9"));
        assert_eq!(parse_version_numbers("5.15.0-105-generic"), [5, 15, 0, 105]);
        assert!(parse_version_numbers("99999999999999999999999").is_empty());
    }
}
