//! One change in a JSON text that somebody else owns, by JSON pointer (RFC 6901) through maps.
//! Everything that is not edited keeps its bytes: order, spacing and the way in which numbers are
//! written. What is put in is written in one line, indented as its neighbours.

use super::same::canonicalize_json;
use super::text::{JsonTextDocument, JsonTextPart};
use railwright_base::Reason;
use railwright_base::bounded_json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What stands at a pointer. JSON's `null` is a value. Two are equal where they say the same,
/// however that is written.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JsonPointerValue {
    /// This value.
    Is(Value),
    /// The value that these bytes say, which are written otherwise than we would, or hold too many
    /// levels: what is put back are the bytes.
    Written(String),
    /// Nothing.
    Absent,
}

impl JsonPointerValue {
    /// The value of these bytes.
    pub fn of(bytes: &str) -> Result<Self, Reason> {
        let value: Value =
            serde_json::from_str(bytes).map_err(|error| format!("it is no JSON ({error})"))?;
        let ours = value.to_string();
        Ok(if ours == bytes && bounded_json::is_shallow(bytes) {
            JsonPointerValue::Is(value)
        } else {
            JsonPointerValue::Written(bytes.to_owned())
        })
    }

    /// The value, where there is one; of a number as much as fits.
    pub fn value(&self) -> Option<Value> {
        match self {
            JsonPointerValue::Is(value) => Some(value.clone()),
            JsonPointerValue::Written(bytes) => serde_json::from_str(bytes).ok(),
            JsonPointerValue::Absent => None,
        }
    }

    /// The value as JSON.
    pub fn json(&self) -> Option<String> {
        match self {
            JsonPointerValue::Is(value) => Some(value.to_string()),
            JsonPointerValue::Written(bytes) => Some(bytes.clone()),
            JsonPointerValue::Absent => None,
        }
    }
}

impl PartialEq for JsonPointerValue {
    fn eq(&self, other: &Self) -> bool {
        let [own, theirs] =
            [self, other].map(|value| value.json().map(|json| canonicalize_json(&json)));
        own == theirs
    }
}

impl Eq for JsonPointerValue {}

/// One change, which holds only where the text still says what it goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum JsonEdit {
    /// The value at a pointer.
    Value {
        pointer: String,
        old: JsonPointerValue,
        new: JsonPointerValue,
        /// Where the value goes: the outermost map above it that goes along once it is empty,
        /// because it came with the value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up_to: Option<String>,
    },
    /// One element of the list at a pointer, whatever else the list holds.
    Element {
        pointer: String,
        element: Value,
        /// It is put at the end; else it is taken out.
        present: bool,
    },
}

/// The text after these edits, one after the other; why not, where it does not say what an edit
/// goes by.
pub fn apply_json_edits(text: &str, edits: &[JsonEdit]) -> Result<String, Reason> {
    edits
        .iter()
        .try_fold(text.to_owned(), |text, edit| edit.of(&text))
}

/// True where a text says what these edits leave behind.
pub fn are_made(text: &str, edits: &[JsonEdit]) -> bool {
    edits
        .iter()
        .all(|edit| edit.is_made(text).unwrap_or_default())
}

impl JsonEdit {
    fn is_made(&self, text: &str) -> Result<bool, Reason> {
        let document = JsonTextDocument::of(text)?;
        let part = document.part(self.pointer())?;
        Ok(match (self, &part) {
            (JsonEdit::Value { new, .. }, _) => read_pointer_value(&document, &part)? == *new,
            (
                JsonEdit::Element {
                    element, present, ..
                },
                JsonTextPart::Value(list),
            ) => {
                let desired = Ok(JsonPointerValue::Is(element.clone()));
                let items = document.items(list, b'[').unwrap_or_default();
                items
                    .iter()
                    .any(|item| JsonPointerValue::of(document.bytes(&item.value)) == desired)
                    == *present
            }
            (JsonEdit::Element { present, .. }, JsonTextPart::Missing { .. }) => !present,
        })
    }

    /// Where it is.
    pub fn pointer(&self) -> &str {
        let (JsonEdit::Value { pointer, .. } | JsonEdit::Element { pointer, .. }) = self;
        pointer
    }

    fn of(&self, text: &str) -> Result<String, Reason> {
        let document = JsonTextDocument::of(text)?;
        let part = document.part(self.pointer())?;
        let now = read_pointer_value(&document, &part)?;
        match self {
            JsonEdit::Value { pointer, old, .. } if now != *old => {
                Err(describe_changed_value(pointer, &now).into())
            }
            JsonEdit::Value {
                new: JsonPointerValue::Written(bytes),
                ..
            } if JsonPointerValue::of(bytes).is_err() => {
                Err("what is to be put back is no JSON".into())
            }
            JsonEdit::Value {
                pointer,
                new,
                up_to,
                ..
            } => match (part, new.json()) {
                (JsonTextPart::Value(value), Some(new)) => Ok(document.with(&value, &new)),
                (JsonTextPart::Missing { map, names }, Some(new)) => {
                    Ok(document.with_member(&map, &names, &new))
                }
                (JsonTextPart::Value(_), None) => remove_member(text, pointer, up_to.as_deref()),
                (JsonTextPart::Missing { .. }, None) => Ok(text.to_owned()),
            },
            JsonEdit::Element {
                pointer,
                element,
                present,
            } => {
                let JsonTextPart::Value(list) = part else {
                    return Err(describe_changed_value(pointer, &now).into());
                };
                let items = document
                    .items(&list, b'[')
                    .ok_or_else(|| describe_changed_value(pointer, &now))?;
                let desired = Ok(JsonPointerValue::Is(element.clone()));
                let at = items
                    .iter()
                    .position(|item| JsonPointerValue::of(document.bytes(&item.value)) == desired);
                match (at, present) {
                    (None, true) => Ok(document.with_element(&list, element)),
                    (Some(at), false) => Ok(document.without_item(&list, &items, at)),
                    _ => Err(describe_changed_value(pointer, &now).into()),
                }
            }
        }
    }
}

/// What stands there.
pub fn read_pointer_value(
    document: &JsonTextDocument<'_>,
    part: &JsonTextPart,
) -> Result<JsonPointerValue, Reason> {
    match part {
        JsonTextPart::Value(value) => JsonPointerValue::of(document.bytes(value)),
        JsonTextPart::Missing { .. } => Ok(JsonPointerValue::Absent),
    }
}

fn remove_member(text: &str, pointer: &str, up_to: Option<&str>) -> Result<String, Reason> {
    let (mut text, mut pointer) = (
        JsonTextDocument::of(text)?.without_member(pointer)?,
        pointer,
    );
    while let Some((above, _)) = pointer
        .rsplit_once('/')
        .filter(|(above, _)| up_to.is_some_and(|up_to| is_below(above, up_to)))
    {
        let document = JsonTextDocument::of(&text)?;
        match document.part(above)? {
            JsonTextPart::Value(map)
                if document
                    .items(&map, b'{')
                    .is_some_and(|items| items.is_empty()) =>
            {
                text = document.without_member(above)?
            }
            _ => break,
        }
        pointer = above;
    }
    Ok(text)
}

/// True when a pointer is this one, or leads on from it.
pub fn is_below(pointer: &str, above: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn describe_changed_value(pointer: &str, now: &JsonPointerValue) -> String {
    let now = now.value().map_or_else(
        || "not there".to_owned(),
        |value| railwright_base::text::one_line(&value.to_string(), 80),
    );
    format!(
        "{} is {now} by now",
        super::text::format_json_pointer(pointer)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn set(pointer: &str, old: Option<Value>, new: Option<Value>) -> JsonEdit {
        let held =
            |value: Option<Value>| value.map_or(JsonPointerValue::Absent, JsonPointerValue::Is);
        JsonEdit::Value {
            pointer: pointer.to_owned(),
            old: held(old),
            new: held(new),
            up_to: None,
        }
    }

    fn element(pointer: &str, element: Value, present: bool) -> JsonEdit {
        JsonEdit::Element {
            pointer: pointer.to_owned(),
            element,
            present,
        }
    }

    const TEXT: &str = "{\n  \"version\": \"1\",\n  \"ratio\": 1.50,\n  \"tags\": { \"a/b\": \"x\" },\n  \"list\": [1, 2]\n\
                        }\n";

    #[test]
    fn a_value_that_lies_too_deep_is_kept_as_its_bytes() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let held = |levels: usize| JsonPointerValue::of(&deep(levels)).unwrap();
        assert!(matches!(held(100), JsonPointerValue::Is(_)));
        assert!(matches!(held(101), JsonPointerValue::Written(bytes) if bytes == deep(101)));
    }

    #[test]
    fn only_what_is_edited_changes() {
        let to = |edits: &[JsonEdit], from: &str, to: &str| {
            assert_eq!(
                apply_json_edits(TEXT, edits).unwrap(),
                TEXT.replace(from, to),
                "{edits:?}"
            )
        };
        to(
            &[set("/version", Some(json!("1")), Some(json!("2")))],
            "\"1\"",
            "\"2\"",
        );
        to(
            &[set("/tags/a~1b", Some(json!("x")), Some(json!(null)))],
            "\"x\"",
            "null",
        );
        to(
            &[set("/tags/c", None, Some(json!(true)))],
            "\"x\" }",
            "\"x\", \"c\": true }",
        );
        to(
            &[set("/erdma", None, Some(json!(false)))],
            "[1, 2]\n",
            "[1, 2],\n  \"erdma\": false\n",
        );
        to(
            &[set("/filter/a/b", None, Some(json!(1)))],
            "[1, 2]\n",
            "[1, 2],\n  \"filter\": {\"a\":{\"b\":1}}\n",
        );
        to(
            &[set("/version", Some(json!("1")), None)],
            "\n  \"version\": \"1\",",
            "",
        );
        to(
            &[set("/list", Some(json!([1, 2])), None)],
            ",\n  \"list\": [1, 2]",
            "",
        );
        to(
            &[set("/tags/a~1b", Some(json!("x")), None)],
            "{ \"a/b\": \"x\" }",
            "{}",
        );
        to(
            &[element("/list", json!({ "k": 3 }), true)],
            "[1, 2]",
            "[1, 2, {\"k\":3}]",
        );
        to(&[element("/list", json!(1), false)], "[1, 2]", "[2]");
        to(&[element("/list", json!(2), false)], "[1, 2]", "[1]");
        // Numbers are the same however they are written, and what is put back has its own bytes.
        to(
            &[set("/ratio", Some(json!(1.5)), Some(json!(2)))],
            "1.50",
            "2",
        );
        let back = JsonEdit::Value {
            pointer: "/ratio".to_owned(),
            old: JsonPointerValue::of("15e-1").unwrap(),
            new: JsonPointerValue::of("0.10000000000000000555").unwrap(),
            up_to: None,
        };
        to(&[back], "1.50", "0.10000000000000000555");
        to(&[element("/list", json!(2.0), false)], "[1, 2]", "[1]");
        assert_eq!(
            apply_json_edits("{}", &[set("/a", None, Some(json!([])))]).unwrap(),
            r#"{"a":[]}"#
        );
        assert_eq!(
            apply_json_edits(r#"{"a":[]}"#, &[element("/a", json!(1), true)]).unwrap(),
            r#"{"a":[1]}"#
        );
    }

    #[test]
    fn maps_that_came_along_go_along() {
        let gone = |pointer: &str, up_to: &str| {
            let edit = JsonEdit::Value {
                pointer: pointer.to_owned(),
                old: JsonPointerValue::Is(json!(1)),
                new: JsonPointerValue::Absent,
                up_to: Some(up_to.to_owned()),
            };
            apply_json_edits(r#"{"a":{"b":{"c":1},"d":{"e":1}},"f":{"g":1}}"#, &[edit]).unwrap()
        };
        assert_eq!(gone("/a/b/c", "/a"), r#"{"a":{"d":{"e":1}},"f":{"g":1}}"#);
        assert_eq!(gone("/a/b/c", "/a/b"), r#"{"a":{"d":{"e":1}},"f":{"g":1}}"#);
        assert_eq!(gone("/f/g", "/f"), r#"{"a":{"b":{"c":1},"d":{"e":1}}}"#);
    }

    #[test]
    fn what_moved_is_left_alone() {
        for (edit, why) in [
            (
                set("/version", Some(json!("0")), Some(json!("2"))),
                "version is \"1\" by now",
            ),
            (
                set("/version", None, Some(json!("2"))),
                "version is \"1\" by now",
            ),
            (
                set("/absent", Some(json!(1)), None),
                "absent is not there by now",
            ),
            (
                set("/version/x", None, Some(json!(1))),
                "`version` is no map",
            ),
            (
                set("/list/0", Some(json!(1)), Some(json!(2))),
                "`list` is no map",
            ),
            (element("/list", json!(1), true), "list is [1,2] by now"),
            (element("/list", json!(3), false), "list is [1,2] by now"),
            (
                element("/version", json!(3), true),
                "version is \"1\" by now",
            ),
            (element("/none", json!(3), true), "none is not there by now"),
        ] {
            let said = apply_json_edits(TEXT, &[edit]).unwrap_err();
            assert!(said.as_words().contains(why), "{said}");
        }
        for text in ["", "[]", "1", "{", "{\"a\":1,}", "# x\n{}", "{} {}"] {
            assert!(
                apply_json_edits(text, &[set("/a", None, Some(json!(1)))]).is_err(),
                "{text}"
            );
        }
        let twice = apply_json_edits(
            r#"{"a":1,"a":2}"#,
            &[set("/a", Some(json!(2)), Some(json!(3)))],
        )
        .unwrap_err();
        assert!(twice.as_words().contains("twice"), "{twice}");
    }

    /// Any JSON map, small.
    fn maps() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from)
        ];
        let value = leaf.prop_recursive(3, 12, 4, |inner| {
            let map = proptest::collection::btree_map("[a-c/~.\"]{0,2}", inner.clone(), 0..4)
                .prop_map(|map| map.into_iter().collect());
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Value::from),
                map
            ]
        });
        proptest::collection::btree_map("[a-c/~.\"]{0,2}", value, 0..4)
            .prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        /// An edit and its inverse leave the document as it was, and in between it says what the
        /// edit says.
        #[test]
        fn an_edit_can_be_taken_back(map in maps(), pointer in "(/[a-c]){1,3}", new in maps(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&map).unwrap() } else { map.to_string() };
            let document = JsonTextDocument::of(&text).unwrap();
            let Ok(part) = document.part(&pointer) else { return Ok(()) };
            let (old, up_to) = (read_pointer_value(&document, &part).unwrap(), part.outermost(&pointer));
            let after = apply_json_edits(&text, &[JsonEdit::Value { pointer: pointer.clone(), old: old.clone(), new: JsonPointerValue::Is(new.clone()), up_to: None }]).unwrap();
            let parsed: Value = serde_json::from_str(&after).unwrap();
            prop_assert_eq!(parsed.pointer(&pointer), Some(&new));
            let back = apply_json_edits(&after, &[JsonEdit::Value { pointer, old: JsonPointerValue::Is(new), new: old, up_to }]).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&back).unwrap(), map);
        }

        #[test]
        fn no_text_panics(text in ".{0,60}", pointer in "[/~a-c0-9]{0,8}") {
            for edit in [set(&pointer, None, Some(json!(1))), set(&pointer, Some(json!(1)), None), element(&pointer, json!(1), true)] {
                let _ = apply_json_edits(&text, &[edit]);
            }
        }
    }
}
