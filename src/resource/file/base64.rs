//! Base64 as `base64(1)` writes it: how a file that is not plain ASCII travels from the host.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;

/// The bytes; `None` when the text is no base64, or is cut off. White space is skipped.
pub fn decode_base64_text(text: &str) -> Option<Vec<u8>> {
    STANDARD
        .decode(text.split_ascii_whitespace().collect::<String>())
        .ok()
}

/// The text of these bytes, in one line.
pub fn encode_base64_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_what_the_tool_writes() {
        // RFC 4648, section 10, and a wrapped line
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9v\nYmFy\n", "foobar"),
        ] {
            assert_eq!(encode_base64_text(bytes.as_bytes()), text.replace('\n', ""));
            assert_eq!(decode_base64_text(text).unwrap(), bytes.as_bytes());
        }
        for cut_off_or_none in ["Zm9*", "Zg", "Zm9vYg=", "Zg==Zg==", "Zh=="] {
            assert_eq!(
                decode_base64_text(cut_off_or_none),
                None,
                "{cut_off_or_none}"
            );
        }
    }
}
