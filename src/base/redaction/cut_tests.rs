//! Secrets where a text ends, or was cut off.

use super::forms::compute_prefix_overlap;
use super::*;
use crate::quote;
use crate::text::format_hex;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// One escape of each kind.
const ESCAPES: &str = r#"'\'' $'x' %41+ &amp; \u0041 "#;

#[test]
fn a_secret_is_found_at_every_place_where_a_message_was_cut_off() {
    let said = format!("{}`hunter2-hun...` makes no sense", "and... ".repeat(30));
    assert!(
        !Redaction::of([("token", "hunter2-hunter2")])
            .apply(&said)
            .contains("hunter"),
        "{said}"
    );
}

/// What repeats neither takes long nor is found where it is not.
#[test]
fn the_beginning_of_a_secret_is_found_in_one_pass() {
    for (text, form, length) in [
        ("xaab", "aabaaa", 3),
        ("aaaa", "aaaaaa", 4),
        ("aabaab", "aabaac", 3),
        ("abc", "abc", 0),
        ("", "abc", 0),
        ("x", "y", 0),
    ] {
        assert_eq!(
            compute_prefix_overlap(text.as_bytes(), form.as_bytes()),
            length,
            "{text} {form}"
        );
    }
    let (text, form) = ("a".repeat(1 << 20), "a".repeat(1 << 20) + "b");
    assert_eq!(
        compute_prefix_overlap(text.as_bytes(), form.as_bytes()),
        1 << 20
    );
}

#[test]
fn what_was_cut_off_is_known_within_a_text_as_at_its_end() {
    let secret = "it's \"7\\ü & so on";
    let redaction = Redaction::of([("token", secret)]);
    for said in [
        secret.to_owned(),
        quote::quote_for_shell(secret),
        serde_json::json!(secret).to_string(),
        STANDARD.encode(secret),
        format_hex(secret.as_bytes()),
        r#"$'it\'s "7\\\303\274 & so on'"#.to_owned(),
        "it%27s+%227%5C%C3%BC+%26+so+on".to_owned(),
        "it&#39;s &#34;7\\ü &amp; so on".to_owned(),
    ] {
        let said = format!("{ESCAPES}{said}");
        for cut in (ESCAPES.len()..=said.len()).filter(|at| said.is_char_boundary(*at)) {
            let at_end = redaction.apply(&said[..cut]);
            let within = redaction.apply(&format!("{}...{ESCAPES}", &said[..cut]));
            assert_eq!(within, format!("{at_end}...{ESCAPES}"));
        }
        assert!(redaction.apply(&said).contains("[secret token]"), "{said}");
    }
}

/// The beginning of a secret is not recognised where the cut leaves half an escape after it.
#[test]
fn what_lies_across_the_end_of_what_is_kept_is_known_whole() {
    let redaction = Redaction::of([("token", "hunter2-hunter2")]);
    let (before, secret) = ("x".repeat(100), r"hunter2\u002dhunter2");
    let text = format!("{before}{secret}{}", "ü".repeat(100));
    for length in 90..text.len() + 2 {
        let kept = redaction.apply_to_first(&text, length);
        match length {
            ..=100 => assert_eq!(kept, "x".repeat(length)),
            _ => assert!(
                kept.starts_with(&format!("{before}[secret token]")) && !kept.contains("hunter"),
                "{length}: {kept}"
            ),
        }
    }
    assert_eq!(
        redaction.apply_to_first(&text, 101),
        format!("{before}[secret token]")
    );
    assert_eq!(
        redaction.apply_to_first(&text, text.len()),
        redaction.apply(&text)
    );
    let endless = text + &"y".repeat(2 * ROOM_BYTES);
    assert_eq!(
        redaction.apply_to_first(&endless, 101),
        format!("{before}[secret token]")
    );
}
