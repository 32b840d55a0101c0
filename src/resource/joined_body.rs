//! One body for two desired states of a resource, so that what either may have made is ours.

use serde_json::Value;

/// The first body, with what the second has beside it of these fields and of the entries of these
/// maps, which a body may leave out; nothing for a kind without any.
pub(super) fn join_open_parts(
    fields: &[&str],
    maps: &[&str],
    first: &Value,
    second: &Value,
) -> Option<Value> {
    if fields.is_empty() && maps.is_empty() {
        return None;
    }
    let mut joined = first.as_object()?.clone();
    for name in fields.iter().chain(maps) {
        let Some(theirs) = second.get(*name).filter(|value| !value.is_null()) else {
            continue;
        };
        let ours = joined.entry(*name).or_insert(Value::Null);
        match (&mut *ours, theirs) {
            (Value::Null, _) => *ours = theirs.clone(),
            (Value::Object(ours), Value::Object(theirs)) if maps.contains(name) => {
                for (key, value) in theirs {
                    ours.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            _ => {}
        }
    }
    Some(Value::Object(joined))
}

#[cfg(test)]
mod tests {
    use crate::kind_named;
    use serde_json::json;

    #[test]
    fn a_body_for_two_has_what_either_has() {
        let cases = [
            (
                "firmware_setting",
                json!({ "netdev": "en1", "settings": { "A": 1 } }),
                json!({ "netdev": "en1", "settings": { "A": 2, "B": 1 } }),
                json!({ "netdev": "en1", "settings": { "A": 1, "B": 1 } }),
            ),
            (
                "link_qos",
                json!({ "netdev": "en1", "pfc": [3] }),
                json!({ "netdev": "en1", "pfc": [4], "pause": false }),
                json!({ "netdev": "en1", "pfc": [3], "pause": false }),
            ),
            (
                "link",
                json!({ "netdev": "en1", "mtu": 1500, "addresses": ["10.0.0.1/24"], "exclusive": false }),
                json!({ "netdev": "en1", "mtu": 9000, "up": true, "addresses": ["10.0.0.1/24", "10.1.0.1/24"], "exclusive": true }),
                json!({ "netdev": "en1", "mtu": 1500, "up": true, "addresses": ["10.0.0.1/24", "10.1.0.1/24"], "exclusive": true }),
            ),
        ];
        for (kind, first, second, both) in cases {
            let kind = kind_named(kind).unwrap();
            assert_eq!(kind.join_bodies(&first, &second), Some(both));
        }
        let file = json!({ "path": "/etc/a", "content": "x" });
        assert_eq!(kind_named("file").unwrap().join_bodies(&file, &file), None);
    }
}
