//! What a chart renders to another word with every rendering (a random word, the time), or with
//! every revision (its number, or whether it is the first). Nobody declares one of these words: by
//! itself it is no reason for a revision, or there would be one for ever. A revision that is due
//! anyway changes all of it, and a chart that was changed may have put it where something else was.

use super::compare::{HelmReleaseChange, deletes_first, diff_rendered_objects};
use super::rendered_objects::{
    called, describe_rendered_object, index_objects_by_name, parse_rendered_name,
};
use crate::kubernetes_object::paths::collect_leaf_fields;
use railwright_base::Digest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// In the place of a word that nobody knows before.
const ANOTHER: &str = "(another with every revision)";
/// In the place of such a name.
const ANOTHER_NAME: &str = "(another name with every revision)";

/// What differs between this rendering and what is installed: first what would differ for every
/// other rendering too, then what varies.
pub fn told_apart(
    desired: &[Value],
    again: &[Value],
    installed: &[Value],
) -> (Vec<HelmReleaseChange>, Vec<HelmReleaseChange>) {
    let unsteady: BTreeSet<String> = diff_rendered_objects(desired, again)
        .into_iter()
        .map(|change| change.name)
        .collect();
    let (new, other, old) = (
        only_in(desired, again),
        only_in(again, desired),
        only_in(installed, desired),
    );
    let objects: BTreeMap<String, &Value> = index_objects_by_name(installed)
        .into_iter()
        .chain(index_objects_by_name(desired))
        .collect();
    let varies = |change: &mut HelmReleaseChange| {
        // An object goes by its name, and one with another name is known by all but the name.
        let class = objects.get(&change.name).and_then(|object| class(object));
        let is_varied = |class: &String| new.contains_key(class) && other.contains_key(class);
        match class
            .filter(is_varied)
            .filter(|_| change.actual.is_some() || unsteady.contains(&change.name))
        {
            Some(class) => {
                let is_there = new.get(&class) == old.get(&class);
                if change.actual.is_none() {
                    change.name = class;
                }
                is_there
            }
            None if !unsteady.contains(&change.name) => false,
            None => {
                if !objects.contains_key(&change.name) {
                    change.desired = change.desired.as_ref().map(|_| ANOTHER.into());
                }
                true
            }
        }
    };
    let (mut steady, mut varying) = (Vec::new(), Vec::new());
    for mut change in diff_rendered_objects(desired, installed) {
        if varies(&mut change) {
            varying.push(change)
        } else {
            steady.push(change)
        }
    }
    (steady, varying)
}

/// Shows what varies from revision to revision and is known of the next one: what `next`, the same
/// revision rendered once more, has too.
pub fn show_words_of_this_revision(
    varying: &mut [HelmReleaseChange],
    desired: &[Value],
    next: &[Value],
    installed: &[Value],
) {
    let unknown: BTreeSet<String> = diff_rendered_objects(desired, next)
        .into_iter()
        .map(|change| change.name)
        .collect();
    let words: BTreeMap<String, Option<Value>> = diff_rendered_objects(desired, installed)
        .into_iter()
        .map(|change| (change.name, change.desired))
        .collect();
    for change in varying
        .iter_mut()
        .filter(|change| !unknown.contains(&change.name))
    {
        if let Some(word) = words.get(&change.name) {
            change.desired = word.clone();
        }
    }
}

/// The objects of a revision whose names `next`, the same revision rendered once more, does not
/// have, and the others: nobody knows the names of the former before.
pub fn split_unknown_names(desired: &[Value], next: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let known = index_objects_by_name(next);
    desired.iter().cloned().partition(|object| {
        describe_rendered_object(object).is_some_and(|name| !known.contains_key(&name))
    })
}

/// What is shown of a hook whose name nobody knows before, where it deletes what has the name.
pub fn describe_unknown_deletion(hook: &Value) -> Option<HelmReleaseChange> {
    deletes_first(hook).then_some(())?;
    Some(HelmReleaseChange {
        name: class(hook)?,
        desired: Some("made; deletes any of its name".into()),
        ..HelmReleaseChange::default()
    })
}

/// The digest of the fields that two renderings share. What a chart looks up on the cluster is in
/// both.
pub fn digest_steady_fields(one: &[Value], other: &[Value]) -> String {
    let steady: Vec<_> = count_steady_fields(one, other).into_iter().collect();
    Digest::of(&steady).short().to_owned()
}

/// The objects of two renderings that a third does not have with all the fields that the two share;
/// one whose name varies goes by its class.
pub fn list_changed_objects(one: &[Value], other: &[Value], third: &[Value]) -> BTreeSet<String> {
    let thirds = count_fields(third, one);
    let mut changed = count_steady_fields(one, other);
    changed.retain(|field, count| thirds.get(field) != Some(&*count));
    changed.into_keys().map(|(object, ..)| object).collect()
}

/// Of an object, the path of a field and its value, how often they are there.
type FieldCounts = BTreeMap<(String, String, String), usize>;

fn count_steady_fields(one: &[Value], other: &[Value]) -> FieldCounts {
    let others = count_fields(other, one);
    let mut steady = count_fields(one, other);
    steady.retain(|field, count| others.get(field) == Some(&*count));
    steady
}

/// How often each field is there: of an object by its name, and of one whose name is not in the
/// other rendering by its class.
fn count_fields(one: &[Value], other: &[Value]) -> FieldCounts {
    let others = index_objects_by_name(other);
    let mut count = BTreeMap::new();
    for (name, object) in index_objects_by_name(one) {
        let known = match others.contains_key(&name) {
            true => name,
            false => class(object).unwrap_or_default(),
        };
        for (path, value) in collect_leaf_fields(object) {
            *count
                .entry((known.clone(), path, value.to_string()))
                .or_default() += 1;
        }
    }
    count
}

/// How many objects of each class are in the one and not in the other.
fn only_in(one: &[Value], other: &[Value]) -> BTreeMap<String, usize> {
    let others = index_objects_by_name(other);
    let mut count = BTreeMap::new();
    for (_, object) in index_objects_by_name(one)
        .into_iter()
        .filter(|(name, _)| !others.contains_key(name))
    {
        *count.entry(class(object).unwrap_or_default()).or_default() += 1;
    }
    count
}

/// An object without its name: `Job.batch default/(another name with every revision)`.
fn class(object: &Value) -> Option<String> {
    let mut name = parse_rendered_name(object)?;
    name.name = ANOTHER_NAME.to_owned();
    Some(called(object, &name))
}

#[cfg(test)]
mod tests {
    use super::super::compare::add_hook_collisions;
    use super::*;
    use serde_json::json;

    fn config(name: &str, word: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": word, "fixed": "a" } })
    }

    fn shown(changes: &[HelmReleaseChange]) -> Vec<String> {
        let text = |value: &Option<Value>| {
            value
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        changes
            .iter()
            .map(|change| {
                format!(
                    "{} {} {}",
                    change.name,
                    text(&change.actual),
                    text(&change.desired)
                )
            })
            .collect()
    }

    #[test]
    fn a_word_by_the_revision_is_shown_and_one_by_chance_is_not() {
        let (desired, before) = ([config("a", "x1")], [config("a", "x0")]);
        let word = |next: &str| {
            let (_, mut varying) = told_apart(&desired, &[config("a", "x2")], &before);
            show_words_of_this_revision(&mut varying, &desired, &[config("a", next)], &before);
            varying[0].desired.clone()
        };
        assert_eq!(word("x1"), Some(json!("x1")));
        assert_eq!(word("x3"), Some(json!(ANOTHER)));
    }

    #[test]
    fn what_a_hook_of_an_unknown_name_deletes_is_told() {
        let hook = |name: &str| {
            let mut hook = config(name, "a");
            hook["metadata"]["annotations"] = json!({ "helm.sh/hook": "pre-install", "helm.sh/hook-delete-policy": "before-hook-creation" });
            hook
        };
        let desired = [hook("m-1"), hook("steady")];
        let (unknown, known) = split_unknown_names(&desired, &[hook("steady"), hook("m-2")]);
        assert_eq!(
            (&unknown, &known),
            (&desired[..1].to_vec(), &desired[1..].to_vec())
        );
        let (mut changes, _) = told_apart(&unknown, &[hook("m-2")], &[]);
        let mut varying = Vec::new();
        let deletions = unknown
            .iter()
            .filter_map(describe_unknown_deletion)
            .collect();
        add_hook_collisions(&mut changes, &mut varying, deletions);
        let name = format!("hook ConfigMap.core {ANOTHER_NAME} (pre-install)");
        let said = format!("{name} - made; deletes any of its name");
        assert_eq!((shown(&changes), varying), (vec![said], vec![]));
    }

    #[test]
    fn the_digest_is_of_what_does_not_vary() {
        let digest = |fixed: &str, word: &str| {
            let mut one = config("a", word);
            one["data"]["fixed"] = json!(fixed);
            let mut other = config("a", "another");
            other["data"]["fixed"] = json!(fixed);
            digest_steady_fields(&[one], &[other])
        };
        assert_eq!(digest("a", "x1"), digest("a", "x2"));
        assert_ne!(digest("a", "x1"), digest("b", "x1"));
        // A name that varies hides nothing of its object, in whatever order they come.
        let named = |names: [&str; 2], fixed: &str| {
            let [mut one, mut other] = names.map(|name| config(name, "x"));
            one["data"]["fixed"] = json!(fixed);
            other["data"]["k"] = json!("y");
            [one, other]
        };
        let of = |fixed: &str| {
            digest_steady_fields(&named(["m-1", "m-2"], fixed), &named(["m-9", "m-3"], fixed))
        };
        assert_eq!(of("view"), of("view"));
        assert_ne!(of("view"), of("cluster-admin"));
        let changed = |fixed: &str| {
            list_changed_objects(
                &named(["m-1", "m-2"], "view"),
                &named(["m-9", "m-3"], "view"),
                &named(["m-5", "m-4"], fixed),
            )
        };
        assert_eq!(changed("view"), BTreeSet::new());
        assert_eq!(
            changed("cluster-admin"),
            BTreeSet::from([format!("ConfigMap.core {ANOTHER_NAME}")])
        );
    }

    #[test]
    fn a_word_that_varies_is_no_reason_by_itself() {
        let (steady, varying) = told_apart(
            &[config("a", "x1")],
            &[config("a", "x2")],
            &[config("a", "x0")],
        );
        assert_eq!(
            (shown(&steady), shown(&varying)),
            (
                vec![],
                vec![format!("ConfigMap.core a: data.k x0 {ANOTHER}")]
            )
        );
        let mut before = config("a", "x0");
        before["data"]["fixed"] = json!("b");
        let (steady, varying) = told_apart(&[config("a", "x1")], &[config("a", "x2")], &[before]);
        assert_eq!(
            (shown(&steady), varying.len()),
            (vec!["ConfigMap.core a: data.fixed b a".to_owned()], 1)
        );
    }

    #[test]
    fn an_object_whose_name_varies_is_there_where_as_many_of_its_kind_are() {
        let of = |installed: &[Value]| {
            told_apart(&[config("m-1", "a")], &[config("m-2", "a")], installed)
        };
        let made = format!("ConfigMap.core {ANOTHER_NAME} - made");
        let (steady, varying) = of(&[config("m-0", "a")]);
        assert_eq!(
            (shown(&steady), shown(&varying)),
            (
                vec![],
                vec![made.clone(), "ConfigMap.core m-0 present -".to_owned()]
            )
        );
        let (steady, varying) = of(&[]);
        assert_eq!(
            (shown(&steady), varying),
            (vec![made.clone()], vec![]),
            "the name stands in no plan"
        );
        let (steady, varying) = of(&[config("m-0", "a"), config("old", "a")]);
        assert_eq!((steady.len(), varying), (3, vec![]));
    }

    #[test]
    fn an_object_of_the_first_revision_or_of_the_others_alone_varies() {
        let once = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "once" } });
        let (upgrade, install) = (
            [config("a", "a"), config("later", "a")],
            [config("a", "a"), once],
        );
        let (steady, varying) = told_apart(&upgrade, &install, &install);
        assert_eq!(
            (steady, shown(&varying)),
            (
                vec![],
                vec![
                    "ConfigMap.core later - made".to_owned(),
                    "Secret.core once present -".to_owned()
                ]
            )
        );
        let (steady, _) = told_apart(&upgrade[..1], &upgrade[..1], &install);
        assert_eq!(shown(&steady), ["Secret.core once present -"]);
    }
}
