//! Where two versions of an object differ: the smallest fields, by their paths.

use serde_json::{Map, Value};

/// One step of a path into an object.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldPathStep {
    /// A field of a map.
    Field(String),
    /// An item of a list.
    Item {
        /// Its place.
        index: usize,
        /// The item, by whose own fields it is known.
        item: Value,
        /// What no other item of the list is called: the value of the field that names the items,
        /// or the place where none does.
        label: String,
    },
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldDifference {
    /// Where in the object. Where the text of a field is JSON itself, the path ends at that field.
    pub path: Vec<FieldPathStep>,
    /// The path for people, on into a text that is JSON: `data."config.json":
    /// configList[rdma_a].rdmaHcaMax`. No two places of an object have the same, for changes go
    /// by it.
    pub shown: String,
    /// What is desired; nothing where the field is to go.
    pub desired: Option<Value>,
    /// What is there; nothing where it is absent.
    pub actual: Option<Value>,
}

impl FieldDifference {
    /// The path without anything that the object holds: items by their places, and nothing of the
    /// inside of a text.
    pub fn format_place(&self) -> String {
        self.path
            .iter()
            .fold(String::new(), |out, step| match step {
                FieldPathStep::Field(name) => append_field_name(out, name),
                FieldPathStep::Item { index, .. } => format!("{out}[{index}]"),
            })
    }

    /// True for a part of a text that is JSON: the text stays where the part goes.
    pub fn is_within_text(&self) -> bool {
        self.shown != format_field_path(&self.path)
    }
}

/// Fields by which the items of a list are known, the first that all have and no two share.
const KEYS: [&str; 7] = [
    "name",
    "resourceName",
    "key",
    "type",
    "mountPath",
    "containerPort",
    "ip",
];

/// Every smallest field in which `actual` is not `desired`. `partly`: what `desired` does not name
/// is left alone.
pub fn diff_fields(desired: &Value, actual: &Value, partly: bool) -> Vec<FieldDifference> {
    let mut walk = FieldDiffWalk {
        partly,
        path: Vec::new(),
        inner: None,
        out: Vec::new(),
    };
    walk.values(Some(desired), Some(actual));
    walk.out
}

/// Every smallest field of a value, by its path for people; texts that are JSON are read.
pub fn collect_leaf_fields(value: &Value) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    leaves_below(value, (&mut Vec::new(), &mut None), &mut out);
    out
}

fn leaves_below(value: &Value, (path, inner): Place<'_>, out: &mut Vec<(String, Value)>) {
    if let (None, Some(text)) = (&inner, value.as_str().and_then(parse_inner_json)) {
        return leaves_below(&text, (path, &mut Some(Vec::new())), out);
    }
    let children = pair_children(value, None);
    if children.is_empty() {
        out.push((format_place(path, inner.as_deref()), value.clone()));
    }
    for (step, value, _) in children {
        inner.as_mut().unwrap_or(path).push(step);
        leaves_below(value, (path, inner), out);
        inner.as_mut().unwrap_or(path).pop();
    }
}

fn new_field_step(name: &str) -> FieldPathStep {
    FieldPathStep::Field(name.to_owned())
}

/// `key`: the field by which the items of the list are known.
fn new_item_step(index: usize, item: &Value, key: Option<&str>) -> FieldPathStep {
    let label = match key.and_then(|key| item.get(key)) {
        Some(Value::String(name)) if is_plain_label(name) => name.clone(),
        Some(value) => value.to_string(),
        None => index.to_string(),
    };
    FieldPathStep::Item {
        index,
        item: item.clone(),
        label,
    }
}

/// Every field of `desired`, whole maps and lists too, with what `actual` has in its place.
pub fn collect_all_fields(desired: &Value, actual: &Value) -> Vec<FieldDifference> {
    let mut out = Vec::new();
    every_below(
        desired,
        Some(actual),
        (&mut Vec::new(), &mut None),
        &mut out,
    );
    out.retain(|field| !field.path.is_empty());
    out
}

/// A path, and the one within a text that is JSON.
type Place<'a> = (
    &'a mut Vec<FieldPathStep>,
    &'a mut Option<Vec<FieldPathStep>>,
);

fn every_below(
    desired: &Value,
    actual: Option<&Value>,
    (path, inner): Place<'_>,
    out: &mut Vec<FieldDifference>,
) {
    out.push(FieldDifference {
        path: path.clone(),
        shown: format_place(path, inner.as_deref()),
        desired: Some(desired.clone()),
        actual: actual.cloned(),
    });
    if let (None, Some(text)) = (&inner, desired.as_str().and_then(parse_inner_json)) {
        let actual = actual.and_then(Value::as_str).and_then(parse_inner_json);
        return every_below(&text, actual.as_ref(), (path, &mut Some(Vec::new())), out);
    }
    for (step, desired, actual) in pair_children(desired, actual) {
        inner.as_mut().unwrap_or(path).push(step);
        every_below(desired, actual, (path, inner), out);
        inner.as_mut().unwrap_or(path).pop();
    }
}

/// The fields of a map or the items of a list of maps, each with what `actual` has in its place:
/// items by a field that names them, or else by their places.
fn pair_children<'v>(
    desired: &'v Value,
    actual: Option<&'v Value>,
) -> Vec<(FieldPathStep, &'v Value, Option<&'v Value>)> {
    match desired {
        Value::Object(map) => {
            let mut children = Vec::new();
            for (name, value) in map {
                let other = actual.and_then(|actual| actual.get(name));
                children.push((new_field_step(name), value, other));
            }
            children
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            let key = KEYS.into_iter().find(|key| is_key(key, list));
            let others = actual.and_then(Value::as_array).map(Vec::as_slice);
            let others = others.unwrap_or_default();
            let mut children = Vec::new();
            for (index, item) in list.iter().enumerate() {
                let other = match key {
                    Some(key) => others.iter().find(|other| other.get(key) == item.get(key)),
                    None => others.get(index),
                };
                children.push((new_item_step(index, item, key), item, other));
            }
            children
        }
        _ => Vec::new(),
    }
}

struct FieldDiffWalk {
    partly: bool,
    path: Vec<FieldPathStep>,
    /// The path within a text that is JSON.
    inner: Option<Vec<FieldPathStep>>,
    out: Vec<FieldDifference>,
}

impl FieldDiffWalk {
    fn values(&mut self, desired: Option<&Value>, actual: Option<&Value>) {
        match (desired, actual) {
            (Some(desired), Some(actual))
                if desired == actual || (self.partly && is_same_quantity(desired, actual)) => {}
            (None, Some(_)) if self.partly => {}
            // A server keeps no empty map or list (`nodeSelector: {}`), which only a dry run tells.
            (Some(desired), None) if self.partly && is_nothing(desired) => {}
            (Some(Value::Object(desired)), Some(Value::Object(actual))) => {
                self.maps(desired, actual)
            }
            (Some(Value::Array(desired)), Some(Value::Array(actual))) => {
                self.lists(desired, actual)
            }
            (Some(Value::String(desired_text)), Some(Value::String(actual_text))) => {
                match (
                    parse_inner_json(desired_text),
                    parse_inner_json(actual_text),
                ) {
                    (Some(inner_desired), Some(inner_found)) if self.inner.is_none() => {
                        self.texts(&inner_desired, &inner_found, (desired, actual))
                    }
                    _ => self.note(desired, actual),
                }
            }
            _ => self.note(desired, actual),
        }
    }

    fn maps(&mut self, desired: &Map<String, Value>, actual: &Map<String, Value>) {
        let mut names: Vec<&String> = desired.keys().chain(actual.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            self.step(new_field_step(name), desired.get(name), actual.get(name));
        }
    }

    /// Items are paired by a field that names them; lists without one are compared as a whole.
    fn lists(&mut self, desired: &[Value], actual: &[Value]) {
        let key = KEYS
            .into_iter()
            .find(|key| is_key(key, desired) && is_key(key, actual));
        if let Some(key) = key {
            return self.keyed_lists(key, desired, actual);
        }
        let all_maps = desired.iter().chain(actual).all(Value::is_object);
        if desired.len() != actual.len() || !all_maps {
            return self.note_lists(desired.to_vec(), actual.to_vec());
        }
        for (index, (desired, actual)) in desired.iter().zip(actual).enumerate() {
            self.step(
                new_item_step(index, actual, None),
                Some(desired),
                Some(actual),
            );
        }
    }

    fn keyed_lists(&mut self, key: &str, desired: &[Value], actual: &[Value]) {
        let (in_order, as_found) = (
            collect_item_keys(key, desired),
            collect_item_keys(key, actual),
        );
        // The order of containers and of variables counts.
        if in_order != as_found
            && in_order.len() == as_found.len()
            && in_order.iter().all(|name| as_found.contains(name))
        {
            self.note_lists(in_order, as_found);
        }
        for (index, item) in desired.iter().enumerate() {
            let other = actual.iter().find(|other| other.get(key) == item.get(key));
            self.step(new_item_step(index, item, Some(key)), Some(item), other);
        }
        for (index, item) in actual.iter().enumerate() {
            if !desired.iter().any(|other| other.get(key) == item.get(key)) {
                self.step(new_item_step(index, item, Some(key)), None, Some(item));
            }
        }
    }

    fn note_lists(&mut self, desired: Vec<Value>, actual: Vec<Value>) {
        self.note(Some(&Value::Array(desired)), Some(&Value::Array(actual)));
    }

    /// Two texts that are JSON: only what they say counts. Texts that say the same in other words
    /// still differ for the server.
    fn texts(&mut self, desired: &Value, actual: &Value, texts: (Option<&Value>, Option<&Value>)) {
        let before = self.out.len();
        self.inner = Some(Vec::new());
        self.values(Some(desired), Some(actual));
        self.inner = None;
        if self.out.len() == before && !self.partly {
            self.note(texts.0, texts.1);
        }
    }

    fn step(&mut self, step: FieldPathStep, desired: Option<&Value>, actual: Option<&Value>) {
        self.inner.as_mut().unwrap_or(&mut self.path).push(step);
        self.values(desired, actual);
        self.inner.as_mut().unwrap_or(&mut self.path).pop();
    }

    fn note(&mut self, desired: Option<&Value>, actual: Option<&Value>) {
        self.out.push(FieldDifference {
            path: self.path.clone(),
            shown: format_place(&self.path, self.inner.as_deref()),
            desired: desired.cloned(),
            actual: actual.cloned(),
        });
    }
}

fn collect_item_keys(key: &str, items: &[Value]) -> Vec<Value> {
    let keys = items.iter().filter_map(|item| item.get(key));
    keys.cloned().collect()
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A text that is a map or a list in JSON.
fn parse_inner_json(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text)
        .ok()
        .filter(|value| value.is_object() || value.is_array())
}

/// Every item is a map that has it, and no two have the same.
fn is_key(key: &str, items: &[Value]) -> bool {
    let values: Option<Vec<&Value>> = items.iter().map(|item| item.get(key)).collect();
    values.is_some_and(|values| {
        values
            .iter()
            .enumerate()
            .all(|(at, value)| !values[..at].contains(value))
    })
}

/// A path for people, and the one within a text that is JSON behind it.
fn format_place(path: &[FieldPathStep], inner: Option<&[FieldPathStep]>) -> String {
    let outer = format_field_path(path);
    match inner {
        Some(inner) => format!("{outer}: {}", format_field_path(inner)),
        None => outer,
    }
}

/// A path for people: `spec.containers[rdma].image`, `metadata.labels."example.org/pool"`.
fn format_field_path(path: &[FieldPathStep]) -> String {
    path.iter().fold(String::new(), |out, step| match step {
        FieldPathStep::Field(name) => append_field_name(out, name),
        FieldPathStep::Item { label, .. } => format!("{out}[{label}]"),
    })
}

/// True where a path of names with dots between them is this one or leads on from it.
pub(crate) fn is_at_or_below(path: &str, above: &str) -> bool {
    let below = path.strip_prefix(above);
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A path for people, a field further. A name that could be taken for several steps of a path, or
/// for another word of the line, is quoted, or one field would go by the path of another.
pub fn append_field_name(path: String, name: &str) -> String {
    let name = match name.is_empty() || contains_separator(name, ".:[]\"'#") {
        true => Value::from(name).to_string(),
        false => name.to_owned(),
    };
    match path.is_empty() {
        true => name,
        false => format!("{path}.{name}"),
    }
}

/// True for a name of an item that ends where its bracket does, and is no number or another value.
fn is_plain_label(name: &str) -> bool {
    !name.is_empty()
        && !contains_separator(name, "[]\"")
        && serde_json::from_str::<Value>(name).is_err()
}

fn contains_separator(name: &str, separators: &str) -> bool {
    name.contains(|c: char| separators.contains(c) || c.is_whitespace() || c.is_control())
}

/// True where both are the same number, written as a number or as a quantity (`1000m` and `1`,
/// `1Ki` and `1024`): the server writes a quantity in its own way
/// (kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity).
pub fn is_same_quantity(one: &Value, other: &Value) -> bool {
    match (read_quantity(one), read_quantity(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

fn read_quantity(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse_quantity(text),
        _ => None,
    }
}

pub(super) fn parse_quantity(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 16] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| Some(text.strip_suffix(suffix)?.parse::<f64>().ok()? * factor))
        .filter(|n| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown_of(
        desired: Value,
        actual: Value,
        partly: bool,
    ) -> Vec<(String, Option<Value>, Option<Value>)> {
        diff_fields(&desired, &actual, partly)
            .into_iter()
            .map(|field| (field.shown, field.desired, field.actual))
            .collect()
    }

    #[test]
    fn the_smallest_fields_are_named() {
        let container =
            |name: &str, image: &str| json!({ "name": name, "image": image, "args": ["-v", "2"] });
        let desired = json!({ "spec": { "replicas": 2, "containers": [container("a", "x:1"), container("b", "y:1")] } });
        let actual = json!({ "spec": { "replicas": 2, "containers": [container("a", "x:1"), container("b", "y:2")], "paused": true } });
        assert_eq!(
            shown_of(desired.clone(), actual.clone(), false),
            [
                (
                    "spec.containers[b].image".to_owned(),
                    Some(json!("y:1")),
                    Some(json!("y:2"))
                ),
                ("spec.paused".to_owned(), None, Some(json!(true)))
            ]
        );
        assert_eq!(
            shown_of(desired, actual, true).len(),
            1,
            "what is not declared is left alone"
        );
        let empty = json!({ "spec": { "nodeSelector": {}, "tolerations": [], "affinity": null } });
        assert_eq!(
            shown_of(empty.clone(), json!({ "spec": {} }), true),
            [],
            "no server keeps what is empty"
        );
        assert_eq!(shown_of(empty, json!({ "spec": {} }), false).len(), 3);
    }

    #[test]
    fn no_two_fields_have_one_path() {
        let paths = |desired: Value, actual: Value| -> Vec<String> {
            let all = shown_of(desired, actual, false);
            all.into_iter().map(|(path, ..)| path).collect()
        };
        let list = |v: u8| {
            let keys = [json!(1), json!("1"), json!("a].v")];
            json!({ "p": keys.map(|key| json!({ "key": key, "v": v })) })
        };
        for (desired, actual, shown) in [
            (
                json!({ "a": { "b": "evil" }, "a.b": "good" }),
                json!({ "a": { "b": "good" } }),
                vec!["a.b", r#""a.b""#],
            ),
            (
                json!({ "l": [{ "name": "x", "v": 2 }], "l[x].v": 1, "": 1, "a\"b": 1, "a: b": 1 }),
                json!({ "l": [{ "name": "x", "v": 1 }] }),
                vec![r#""""#, r#""a\"b""#, r#""a: b""#, "l[x].v", r#""l[x].v""#],
            ),
            (
                json!({ "env": [{ "name": "A", "value": "evil" }, { "name": "A", "value": "y" }] }),
                json!({ "env": [{ "name": "A", "value": "good" }, { "name": "A", "value": "x" }] }),
                vec!["env[0].value", "env[1].value"],
            ),
            (
                list(1),
                list(2),
                vec!["p[1].v", r#"p["1"].v"#, r#"p["a].v"].v"#],
            ),
        ] {
            assert_eq!(paths(desired.clone(), actual), shown);
            let every = collect_all_fields(&desired, &Value::Null);
            let leaves = collect_leaf_fields(&desired);
            let of_every: std::collections::BTreeSet<_> =
                every.iter().map(|field| &field.shown).collect();
            let of_leaves: std::collections::BTreeSet<_> =
                leaves.iter().map(|(path, _)| path).collect();
            assert_eq!(
                (of_every.len(), of_leaves.len()),
                (every.len(), leaves.len())
            );
        }
    }

    #[test]
    fn the_order_of_named_items_counts() {
        let list = |names: [&str; 2]| json!({ "initContainers": names.map(|name| json!({ "name": name, "image": "x" })) });
        let found = shown_of(list(["a", "b"]), list(["b", "a"]), false);
        assert_eq!(
            found,
            [(
                "initContainers".to_owned(),
                Some(json!(["a", "b"])),
                Some(json!(["b", "a"]))
            )]
        );
    }

    #[test]
    fn json_in_a_text_is_compared_by_what_it_says() {
        let config = |max: u32| json!({ "data": { "config.json": format!(r#"{{"configList": [{{"resourceName": "a", "rdmaHcaMax": {max}}}]}}"#) } });
        assert_eq!(
            shown_of(config(63), config(1000), false),
            [(
                "data.\"config.json\": configList[a].rdmaHcaMax".to_owned(),
                Some(json!(63)),
                Some(json!(1000))
            )]
        );
        let spaced = json!({ "data": { "config.json": r#"{"configList":[{"resourceName":"a","rdmaHcaMax":63}]}"# } });
        assert_eq!(
            shown_of(config(63), spaced.clone(), false).len(),
            1,
            "the server would store another text"
        );
        assert_eq!(shown_of(config(63), spaced, true), []);
    }

    #[test]
    fn every_leaf_is_named_once() {
        let object = json!({ "data": { "c.json": r#"{"list":[{"name":"a","max":1}]}"#, "t": "x" }, "args": ["-v"], "none": {} });
        let texts: Vec<String> = collect_leaf_fields(&object)
            .into_iter()
            .map(|(path, value)| format!("{path} {value}"))
            .collect();
        assert_eq!(
            texts,
            [
                "args [\"-v\"]",
                "data.\"c.json\": list[a].max 1",
                "data.\"c.json\": list[a].name \"a\"",
                "data.t \"x\"",
                "none {}"
            ]
        );
    }

    #[test]
    fn quantities_are_numbers_where_nobody_previewed() {
        for (one, other) in [
            (json!("1000m"), json!("1")),
            (json!(1), json!("1")),
            (json!("1Gi"), json!("1024Mi")),
            (json!("2k"), json!(2000)),
        ] {
            assert_eq!(
                shown_of(json!({ "cpu": one }), json!({ "cpu": other }), true),
                []
            );
        }
        for (one, other) in [
            (json!("1"), json!("2")),
            (json!("x"), json!("y")),
            (json!("1Gi"), json!("1G")),
        ] {
            assert_eq!(
                shown_of(json!({ "cpu": one }), json!({ "cpu": other }), true).len(),
                1
            );
        }
    }

    #[test]
    fn lists_without_names_are_compared_as_one_or_item_by_item() {
        assert_eq!(
            shown_of(json!({ "args": ["a"] }), json!({ "args": ["b"] }), false)[0].0,
            "args"
        );
        assert_eq!(
            shown_of(
                json!({ "rules": [{ "verbs": ["get"] }] }),
                json!({ "rules": [{ "verbs": ["list"] }] }),
                false
            )[0]
            .0,
            "rules[0].verbs"
        );
    }
}
