//! What a write of an object goes by: the object as it was looked at. Between that look and the
//! write somebody else may make the object, delete it and make it anew, or take it over; then the
//! write leaves it alone.

use super::manifest::without_servers_part;
use super::ownership::{MEMBERSHIP, collect_object_managers, describe_object_owner, is_adopted};
use super::request::ObjectName;
use crate::json_fields::{read_text_at, read_text_field};
use railwright_base::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// How an object was when it was looked at, as far as a later write may not find it otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectPrecondition {
    /// No object of this name was there.
    Absent,
    /// It was there.
    Present {
        /// The server's own name for this very object: a recreated one has another.
        uid: String,
        /// The value of the label by which a spec knows what is its own; nothing where it bore
        /// none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part_of: Option<String>,
        /// Of an object that is to be deleted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hands: Option<Hands>,
    },
}

/// Through which hands an object has gone: what it takes to delete it goes by them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hands {
    /// It bore the mark of what was there before us.
    pub adopted: bool,
    /// Everybody who had set fields of it.
    pub managers: BTreeSet<String>,
    /// The digest of its content, without what the server and controllers note for themselves: the
    /// verdict holds for that alone.
    pub content: Digest,
}

impl Hands {
    fn of(object: &Value) -> Self {
        Hands {
            adopted: is_adopted(object),
            managers: collect_object_managers(object),
            content: Digest::of(&without_servers_part(object)),
        }
    }
}

impl ObjectPrecondition {
    /// Of an object that is there.
    pub fn of(object: &Value) -> Self {
        let uid = read_text_at(object, "/metadata/uid").unwrap_or_default();
        let labels = object.pointer("/metadata/labels");
        let part_of = labels.and_then(|labels| read_text_field(labels, MEMBERSHIP));
        ObjectPrecondition::Present {
            uid: uid.to_owned(),
            part_of: part_of.map(str::to_owned),
            hands: None,
        }
    }

    /// Of an object that is to be deleted: nobody else's hand may come to it any more, and nothing
    /// of its content may change.
    pub fn for_deletion(object: &Value) -> Self {
        let mut of = Self::of(object);
        if let ObjectPrecondition::Present { hands, .. } = &mut of {
            *hands = Some(Hands::of(object));
        }
        of
    }

    /// Whether it is of an object that is to be deleted.
    pub fn is_for_deletion(&self) -> bool {
        matches!(self, ObjectPrecondition::Present { hands: Some(_), .. })
    }

    /// Whether an object that is there now is the one that was looked at, and is whose it was.
    pub fn holds_for(&self, object: &Value) -> bool {
        let now = if self.is_for_deletion() {
            Self::for_deletion(object)
        } else {
            Self::of(object)
        };
        // An object without a UID is none that a server keeps.
        matches!(self, ObjectPrecondition::Present { uid, .. } if !uid.is_empty()) && *self == now
    }

    /// Why a write left alone what is there now.
    pub fn violated_by(&self, name: &ObjectName, found: &Value) -> String {
        let now = if self.is_for_deletion() {
            Self::for_deletion(found)
        } else {
            Self::of(found)
        };
        let maker = describe_object_owner(found);
        match (self, &now) {
            (ObjectPrecondition::Absent, _) => format!(
                "{name} was not there when it was looked at; {maker} by now, and it is left alone"
            ),
            (
                ObjectPrecondition::Present { uid, .. },
                ObjectPrecondition::Present { uid: other, .. },
            ) if uid != other => {
                format!("{name} is another object of that name by now, and is left alone: {maker}")
            }
            (
                ObjectPrecondition::Present {
                    part_of,
                    hands: Some(hands),
                    ..
                },
                ObjectPrecondition::Present {
                    part_of: other,
                    hands: Some(others),
                    ..
                },
            ) if part_of == other
                && (hands.adopted, &hands.managers) == (others.adopted, &others.managers) =>
            {
                format!("{name} was changed since it was looked at, and is left alone")
            }
            _ => format!("{name} changed hands since it was looked at, and is left alone: {maker}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_object_that_was_looked_at_is_written() {
        let object =
            |uid: &str, labels: Value| json!({ "metadata": { "uid": uid, "labels": labels } });
        let ours = object("u1", json!({ MEMBERSHIP: "train" }));
        let looked_at = ObjectPrecondition::of(&ours);
        assert!(looked_at.holds_for(&ours) && !ObjectPrecondition::Absent.holds_for(&ours));
        for other in [
            object("u2", json!({ MEMBERSHIP: "train" })),
            object("u1", json!({ MEMBERSHIP: "other" })),
            object("u1", json!(null)),
        ] {
            assert!(!looked_at.holds_for(&other), "{other}");
        }
        let nameless = json!({ "metadata": {} });
        assert!(!ObjectPrecondition::of(&nameless).holds_for(&nameless));
        let name = ObjectName {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("n".into()),
            name: "a".into(),
        };
        let theirs = object("u1", json!({ MEMBERSHIP: "other" }));
        let said = "ConfigMap.core n/a changed hands since it was looked at, and is left alone: it \
                    belongs to the spec `other` of railwright";
        assert_eq!(looked_at.violated_by(&name, &theirs), said);
    }
}
