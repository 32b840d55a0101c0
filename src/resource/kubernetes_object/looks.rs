//! What an API server's answers about objects come to: one object, or many by name.

use super::request::{ABSENT, NO_KIND};
use crate::{Read, ReadResults};
use railwright_base::Reason;
use railwright_base::nodeset;
use railwright_base::text::one_line;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a server says of an object.
pub enum LiveObject {
    /// It is there.
    Is(Value),
    /// It is not.
    Absent,
    /// It could not be found out, in words.
    Unknown(Reason),
}

/// The answer to a read of an object.
pub fn looked_at(read: &Read, answers: &ReadResults) -> LiveObject {
    match answers.output(read) {
        Ok((0, out)) => match serde_json::from_str::<Value>(out) {
            Ok(object) if object.is_object() => LiveObject::Is(object),
            _ => LiveObject::Unknown("the server's answer is no object".into()),
        },
        Ok((ABSENT | NO_KIND, _)) => LiveObject::Absent,
        Ok((_, out)) => LiveObject::Unknown(one_line(out, 200).into()),
        Err(reason) => LiveObject::Unknown(reason),
    }
}

/// The answer to a read of many objects, by name; why they are unknown. A kind that is not there
/// has none.
pub fn read_object_list(read: &Read, answers: &ReadResults) -> Result<Map<String, Value>, Reason> {
    match answers.output(read)? {
        (0, out) => serde_json::from_str(out)
            .map_err(|_| "the server's answer is no list of objects".into()),
        (NO_KIND, _) => Ok(Map::new()),
        (_, out) => Err(one_line(out, 200).into()),
    }
}

/// Names by what is wrong with them, folded: `gpu2: 0 instead of 63; gpu[3-4]: no node of this
/// name`.
pub fn format_names_by_problem(open: &BTreeMap<String, Vec<&str>>) -> String {
    open.iter()
        .map(|(why, names)| format!("{}: {why}", nodeset::fold_node_set(names)))
        .collect::<Vec<_>>()
        .join("; ")
}
