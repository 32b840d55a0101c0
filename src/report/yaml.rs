//! A JSON value as YAML for people: blocks, short lists in one line, and comments above what they
//! are about.

use railwright_base::text::{format_yaml_text, one_line};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Comments by the JSON pointer of what they stand above, a line each.
pub type Comments = BTreeMap<String, Vec<String>>;

/// Lists that would be longer are written an item a line.
const COLUMNS: usize = 120;
/// A document that is a map.
pub fn render_yaml_document(value: &Map<String, Value>, comments: &Comments) -> String {
    let mut out = String::new();
    write_yaml_map(&mut out, value, 0, "", comments);
    out
}

fn write_yaml_map(
    out: &mut String,
    value: &Map<String, Value>,
    indent: usize,
    at: &str,
    comments: &Comments,
) {
    for (key, value) in value {
        let at = format!("{at}/{key}");
        write_yaml_comment(out, indent, &at, comments);
        // The first key of an item stands behind its dash.
        if out.is_empty() || out.ends_with('\n') {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(&format_yaml_text(key));
        out.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                write_yaml_map(out, inner, indent + 2, &at, comments);
            }
            Value::Array(items) => write_yaml_list(out, items, indent + 2, &at, comments),
            other => out.push_str(&format!(" {}\n", format_flow_value(other))),
        }
    }
}

fn write_yaml_list(
    out: &mut String,
    items: &[Value],
    indent: usize,
    at: &str,
    comments: &Comments,
) {
    let line = format!(
        "[{}]",
        items
            .iter()
            .map(format_flow_value)
            .collect::<Vec<_>>()
            .join(", ")
    );
    let column = out.rsplit('\n').next().map_or(0, str::len);
    if !items.iter().any(is_filled_map) && column + line.len() < COLUMNS {
        out.push_str(&format!(" {line}\n"));
        return;
    }
    out.push('\n');
    for (index, item) in items.iter().enumerate() {
        let at = format!("{at}/{index}");
        write_yaml_comment(out, indent, &at, comments);
        out.push_str(&format!("{}- ", " ".repeat(indent)));
        match item {
            Value::Object(inner) if !inner.is_empty() => {
                write_yaml_map(out, inner, indent + 2, &at, comments)
            }
            other => out.push_str(&format!("{}\n", format_flow_value(other))),
        }
    }
}

fn is_filled_map(item: &Value) -> bool {
    item.as_object().is_some_and(|item| !item.is_empty())
}

fn write_yaml_comment(out: &mut String, indent: usize, at: &str, comments: &Comments) {
    for line in comments.get(at).into_iter().flatten() {
        out.push_str(&format!(
            "{}# {}\n",
            " ".repeat(indent),
            one_line(line, 300)
        ));
    }
}

/// A value in one line.
fn format_flow_value(value: &Value) -> String {
    match value {
        Value::String(text) => format_yaml_text(text),
        Value::Array(items) => format!(
            "[{}]",
            items
                .iter()
                .map(format_flow_value)
                .collect::<Vec<_>>()
                .join(", ")
        ),
        Value::Object(inner) => {
            let pairs = inner
                .iter()
                .map(|(key, value)| {
                    format!("{}: {}", format_yaml_text(key), format_flow_value(value))
                })
                .collect::<Vec<_>>();
            if pairs.is_empty() {
                "{}".to_owned()
            } else {
                format!("{{ {} }}", pairs.join(", "))
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_again_as_it_was() {
        let long: Vec<String> = (0..40).map(|n| format!("name-{n}")).collect();
        let value = json!({
            "kind": "Role", "metadata": { "name": "no", "labels": {} }, "empty": [], "on": true, "count": 3,
            "rules": [{ "apiGroups": ["", "*"], "names": long }, { "text": "a: 'b' # \"c\"\u{e4}\n", "deep": [{ "x": [["y"], { "z": null }] }] }],
        });
        let comments = Comments::from([
            ("/rules/1".to_owned(), vec!["why\nnot".to_owned()]),
            ("/metadata".to_owned(), vec!["its name".to_owned()]),
        ]);
        let text = render_yaml_document(value.as_object().unwrap(), &comments);
        assert_eq!(
            serde_yaml::from_str::<Value>(&text).unwrap(),
            value,
            "{text}"
        );
        assert!(
            text.contains("  # why not\n  - deep:") && text.contains("\n# its name\nmetadata:"),
            "{text}"
        );
    }
}
