//! The steps of a JSON pointer (RFC 6901): the names of fields, in which `~` and `/` are escaped.

/// A field's name as one step of a pointer.
pub fn escape_step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The field's name of one step.
pub fn unescape_step(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_from_its_step() {
        for (name, step) in [("a", "a"), ("a/b", "a~1b"), ("~1", "~01"), ("/~", "~1~0")] {
            assert_eq!(
                (escape_step(name), unescape_step(step)),
                (step.to_owned(), name.to_owned())
            );
        }
    }
}
