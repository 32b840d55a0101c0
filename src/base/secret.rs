//! Where a secret will stand. The core never holds the secret itself: templates write a mark,
//! resources, plans and journals carry the mark, and it is filled in on an action's way to the
//! target. The mark is made of two private-use code points, which no input may hold, so that no
//! user text can pass for one.

use serde_json::Value;

/// Opens a mark.
pub const OPEN: char = '\u{E000}';
/// Closes a mark.
pub const CLOSE: char = '\u{E001}';
const PLAIN: &str = "secret:";
const IN_SHELL_QUOTES: &str = "secret-in-quotes:";

/// The mark of a secret by its name in the spec.
pub fn new_secret_mark(name: &str) -> String {
    format!("{OPEN}{PLAIN}{name}{CLOSE}")
}

/// The byte at which a text holds a code point that is kept for marks, if it does.
pub fn find_mark_character(text: &str) -> Option<usize> {
    text.find([OPEN, CLOSE])
}

/// The value as one shell word (`quote::quote_for_shell`), with its marks noted as standing between
/// single quotes, so that the secret is later filled in quoted as well.
pub fn shell_word(value: &str) -> String {
    super::quote::quote_for_shell(value).replace(
        &format!("{OPEN}{PLAIN}"),
        &format!("{OPEN}{IN_SHELL_QUOTES}"),
    )
}

/// The names of the secrets whose marks a text holds, in the order of the text.
pub fn list_secret_names(text: &str) -> Vec<&str> {
    text.split(OPEN)
        .skip(1)
        .filter_map(|rest| rest.split_once(CLOSE))
        .filter_map(|(inside, _)| {
            inside
                .strip_prefix(PLAIN)
                .or_else(|| inside.strip_prefix(IN_SHELL_QUOTES))
        })
        .collect()
}

/// A secret of this name is not to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSecret(pub String);

/// The text with every mark filled in; the first secret that `find` does not have as the error. The
/// result is secret: it goes to the target and nowhere else.
pub fn fill_secrets(
    text: &str,
    find: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownSecret> {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split(OPEN);
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (inside, rest) = part.split_once(CLOSE).unwrap_or((part, ""));
        if let Some(name) = inside.strip_prefix(IN_SHELL_QUOTES) {
            let quoted = super::quote::quote_for_shell(
                &find(name).ok_or_else(|| UnknownSecret(name.to_owned()))?,
            );
            // Our own word stands between the quotes of the word around it.
            out.push_str(&quoted[1..quoted.len() - 1]);
        } else {
            let name = inside.strip_prefix(PLAIN).unwrap_or(inside);
            out.push_str(&find(name).ok_or_else(|| UnknownSecret(name.to_owned()))?);
        }
        out.push_str(rest);
    }
    Ok(out)
}

/// True when every code point that is kept for marks belongs to a whole mark: a filter of a
/// template may have cut one.
pub fn is_whole(text: &str) -> bool {
    let bare = list_secret_names(text)
        .iter()
        .fold(text.to_owned(), |bare, name| {
            [PLAIN, IN_SHELL_QUOTES].iter().fold(bare, |bare, kind| {
                bare.replace(&format!("{OPEN}{kind}{name}{CLOSE}"), "")
            })
        });
    find_mark_character(&bare).is_none()
}

/// Every text of a JSON value that holds a mark, keys of maps among them, with its JSON pointer.
pub fn find_marked_texts(value: &Value) -> Vec<(String, &str)> {
    let mut out = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::String(text) if find_mark_character(text).is_some() => {
                out.push((at, text.as_str()))
            }
            Value::Array(items) => open.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(n, item)| (format!("{at}/{n}"), item)),
            ),
            Value::Object(map) => {
                out.extend(
                    map.keys()
                        .filter(|key| find_mark_character(key).is_some())
                        .map(|key| (at.clone(), key.as_str())),
                );
                open.extend(map.iter().map(|(key, item)| {
                    (
                        format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                        item,
                    )
                }));
            }
            _ => {}
        }
    }
    out.sort();
    out
}

/// The names of the secrets that a JSON value holds, wherever it holds them.
pub fn names_in(value: &Value) -> Vec<&str> {
    find_marked_texts(value)
        .into_iter()
        .flat_map(|(_, text)| list_secret_names(text))
        .collect()
}

/// The text with its marks as a person reads them.
pub fn render_secret_marks(text: &str) -> String {
    fill_secrets(text, |name| Some(format!("[secret {name}]"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_filled_in_as_they_stand() {
        let find = |name: &str| (name == "token").then(|| "it's $(reboot)".to_owned());
        let file = format!("a={}\n", new_secret_mark("token"));
        assert_eq!(fill_secrets(&file, find).unwrap(), "a=it's $(reboot)\n");
        let script = format!(
            "login {}",
            shell_word(&format!("x{}", new_secret_mark("token")))
        );
        assert_eq!(list_secret_names(&script), ["token"]);
        assert_eq!(
            fill_secrets(&script, find).unwrap(),
            r"login 'xit'\''s $(reboot)'"
        );
        assert_eq!(
            fill_secrets(&new_secret_mark("other"), find),
            Err(UnknownSecret("other".to_owned()))
        );
    }

    #[test]
    fn a_mark_that_was_cut_is_not_whole() {
        let whole = format!(
            "a={} {}",
            new_secret_mark("a"),
            shell_word(&new_secret_mark("b-c"))
        );
        assert!(is_whole(&whole) && is_whole("plain"));
        for broken in [
            new_secret_mark("a").to_uppercase(),
            new_secret_mark("a")[..8].to_owned(),
            format!("{CLOSE}"),
            format!("{OPEN}{}", new_secret_mark("a")),
        ] {
            assert!(!is_whole(&broken), "{broken:?}");
        }
    }

    #[test]
    fn marks_are_found_wherever_they_stand_in_a_value() {
        let body =
            serde_json::json!({ "a/b": [1, new_secret_mark("x")], new_secret_mark("k"): "plain" });
        assert_eq!(
            find_marked_texts(&body)
                .into_iter()
                .map(|(at, _)| at)
                .collect::<Vec<_>>(),
            ["", "/a~1b/1"]
        );
    }
}
