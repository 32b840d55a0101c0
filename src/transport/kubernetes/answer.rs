//! What a reply means for the read that asked: an exit status as
//! `resource::kubernetes_object::request` has them.

use super::server::KubernetesReply;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_object::refusal::Refusal;
use railwright_resource::kubernetes_object::request::{
    ABSENT, KubernetesRead, NO_KIND, NOT_SAID, ObjectName, REFUSED,
};
use railwright_resource::{AnswerStatus, ReadResult};
use serde_json::Value;

/// An answer that ended with this status.
pub fn new_exit_answer(code: i32, out: impl Into<String>) -> ReadResult {
    ReadResult {
        status: AnswerStatus::Exit(code),
        out: out.into(),
    }
}

/// The reply to a read of an object or to a preview.
pub fn answer_from_reply(
    read: &KubernetesRead,
    object: &ObjectName,
    plural: &str,
    reply: &KubernetesReply,
) -> ReadResult {
    if let Some(verb) = find_denied_verb(reply) {
        return new_denied_answer(object, &verb, plural);
    }
    let previews = matches!(read, KubernetesRead::Preview { .. });
    match reply.status {
        200 | 201 if reply.cut => ReadResult {
            status: AnswerStatus::TooLong,
            out: String::from_utf8_lossy(&reply.body).into_owned(),
        },
        200 | 201 => match reply.json().filter(|found| is_of(object, found)) {
            Some(found) => new_exit_answer(0, found.to_string()),
            None => new_exit_answer(NOT_SAID, format!("what came is no {}", object.kind)),
        },
        404 if reply.is_not_found() && previews => new_exit_answer(NO_KIND, reply.message()),
        404 if reply.is_not_found() => new_exit_answer(ABSENT, ""),
        404 => new_exit_answer(
            NOT_SAID,
            format!("what answers there is no API server: {}", reply.message()),
        ),
        400 if reply.message().contains("does not support dry run") => {
            new_exit_answer(NOT_SAID, reply.message())
        }
        400..=428 | 430..=499 if previews => new_refused_answer(&of_status(reply)),
        500 if previews && reply.is_about_schema() => new_refused_answer(&of_status(reply)),
        _ => new_exit_answer(NOT_SAID, reply.message()),
    }
}

/// Whether a document is this object.
pub fn is_of(object: &ObjectName, found: &Value) -> bool {
    let is_named = found
        .pointer("/metadata/name")
        .is_some_and(|name| *name == *object.name);
    is_named && found.get("kind").is_none_or(|kind| *kind == *object.kind)
}

/// The answer to a preview of what is not taken.
pub fn new_refused_answer(refusal: &Refusal) -> ReadResult {
    new_exit_answer(REFUSED, refusal.to_answer())
}

fn of_status(reply: &KubernetesReply) -> Refusal {
    Refusal::of_status(&reply.json().unwrap_or_default(), reply.message())
}

/// A group that cannot be listed.
pub fn of_kinds(api_version: &str, reply: &KubernetesReply) -> ReadResult {
    let place = one_line(api_version, 80);
    match reply.status {
        403 => ReadResult {
            status: AnswerStatus::Denied,
            out: format!("get on the kinds of {place} (a role with nonResourceURLs: /api*)\n"),
        },
        200 => new_exit_answer(
            NOT_SAID,
            format!("what came is no list of the kinds of {place}"),
        ),
        _ => new_exit_answer(
            NOT_SAID,
            format!("the kinds of {place}: {}", reply.message()),
        ),
    }
}

/// The verb that no role allows, as every authorizer's refusal has it (`User "ann" cannot patch
/// resource ...`): the apply of an object that is not there needs `create` besides. Admission
/// refuses with the same status what was allowed.
pub fn find_denied_verb(reply: &KubernetesReply) -> Option<String> {
    let message = reply.message();
    let (_, rest) = message
        .split_once("User \"")
        .filter(|_| reply.status == 403)?;
    let verb = rest.split_once("\" cannot ")?.1.split_whitespace().next()?;
    Some(verb.to_owned())
}

/// What a request for our own object came to, by its name for people.
pub fn describe_failed_request(
    what: &str,
    object: &ObjectName,
    plural: &str,
    reply: &KubernetesReply,
) -> String {
    match find_denied_verb(reply) {
        Some(verb) => format!(
            "{what}: a rule is missing: {}",
            describe_missing_rule(object, &verb, plural)
        ),
        None => format!("{what}: {}", reply.message()),
    }
}

/// No role allows the read.
pub fn new_denied_answer(object: &ObjectName, verb: &str, plural: &str) -> ReadResult {
    ReadResult {
        status: AnswerStatus::Denied,
        out: describe_missing_rule(object, verb, plural) + "\n",
    }
}

/// What a role lacks, so that it can be added.
pub fn describe_missing_rule(object: &ObjectName, verb: &str, plural: &str) -> String {
    let group = if object.group().is_empty() {
        "\"\""
    } else {
        object.group()
    };
    let place = object.namespace.as_ref().map_or_else(
        || "the whole cluster".to_owned(),
        |namespace| format!("namespace {namespace}"),
    );
    one_line(
        &format!("verb {verb}, resource {plural}, API group {group}, {place}"),
        300,
    )
}
