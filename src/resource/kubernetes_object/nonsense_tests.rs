//! Whatever a server says: nothing panics, and a difference is named where there is one alone.

use super::tests::{answers, body, diff, resource};
use super::{KubernetesObject, paths};
use crate::ResourceKind;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any JSON, with the names that are looked for among its keys.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        Just(json!("{\"a\":[{\"name\":1},{\"name\":1}]}")),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "metadata",
            "managedFields",
            "fieldsV1",
            "f:data",
            "data",
            "labels",
            "annotations",
            "k:{",
            "v:1",
            "name",
            "finalizers"
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,6}",
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into())
        ]
    })
}

proptest! {
    #[test]
    fn no_object_of_a_server_panics(live in any_json(), preview in any_json(), codes in (0i32..6, 0i32..6)) {
        for data in [json!({ "a": "1" }), json!({})] {
            let resource = resource(body(&data, false));
            let found = diff(&resource, (codes.0, &live), (codes.1, &preview));
            let again = answers(&resource, (codes.0, &live), (codes.1, &preview));
            KubernetesObject.undo(&resource, &found.before, &again);
        }
        // Whatever differs is named, and what is equal is not.
        prop_assert_eq!(paths::diff_fields(&live, &live, false), vec![]);
        prop_assert_eq!(paths::diff_fields(&live, &preview, false).is_empty(), live == preview);
    }
}
