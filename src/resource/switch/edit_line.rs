//! The edits of a switch, line by line, in its own words.

/// One line. Lines whose texts are equal differ in their port or number alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchEditLine {
    /// The line, with `PORT_SIGN` where the port stands and `NUMBER_SIGN` where the number does.
    pub text: String,
    /// The port that it is about; of the whole switch there is none.
    pub port: Option<String>,
    /// The number of a collection that it is about.
    pub number: Option<u64>,
}

/// Stands for the port; no key can hold a control character.
pub const PORT_SIGN: &str = "\u{3}";

/// Stands for the number.
pub const NUMBER_SIGN: &str = "\u{4}";

/// The word with the sign in the place of the port.
pub(super) fn mask_port(word: &str, port: Option<&str>) -> String {
    match port {
        Some(port) => word.replacen(port, PORT_SIGN, 1),
        None => word.to_owned(),
    }
}
