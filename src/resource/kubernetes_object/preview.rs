//! What the server made of the dry run of a manifest.

use super::DesiredObject;
use super::ownership::taken_over;
use super::refusal::Refusal;
use super::request::{NO_KIND, NOT_SAID, REFUSED};
use crate::{AnswerStatus, ReadResult, ReadResults};
use railwright_base::Reason;
use railwright_base::text::one_line;
use serde_json::Value;

/// What a server says of a webhook that would change something even in a dry run: it takes the
/// object, and cannot be asked before (kubernetes/kubernetes
/// staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go).
const NO_DRY_RUN: &str = "does not support dry run";

/// What the server made of the dry run.
pub enum ObjectPreview {
    Is(Value),
    Refused(Refusal),
    /// It may not be asked for, in words; the fields of the manifest are compared instead.
    NotAllowed(Reason),
    /// Nothing can be said before another step: the kind or the namespace is not there yet, in the
    /// server's words.
    NotYet(String),
    /// The server takes the object, and cannot be asked before, in words.
    NoDryRun(Reason),
    Unknown(Reason),
}

impl ObjectPreview {
    /// The dry run of a manifest that no longer says that its object was taken over drops our marks
    /// for that: they stay.
    pub fn of_one_taken_over(self, keeps: bool) -> Self {
        match self {
            ObjectPreview::Is(object) if keeps => ObjectPreview::Is(taken_over(object)),
            other => other,
        }
    }
}

/// The answer to it.
pub fn read_object_preview(asked: &DesiredObject, answers: &ReadResults) -> ObjectPreview {
    match answers.output(&asked.preview()) {
        Err(reason)
            if matches!(
                answers.get(&asked.preview()),
                Some(ReadResult {
                    status: AnswerStatus::Denied,
                    ..
                })
            ) =>
        {
            ObjectPreview::NotAllowed(reason)
        }
        Ok((0, out)) => serde_json::from_str(out).map_or_else(
            |_| ObjectPreview::Unknown("the server's answer is no object".into()),
            ObjectPreview::Is,
        ),
        Ok((REFUSED, out)) => ObjectPreview::Refused(Refusal::of_answer(out)),
        Ok((NO_KIND, out)) => ObjectPreview::NotYet(one_line(out, 200)),
        Ok((status, out)) => {
            let said = one_line(out, 200);
            let reason = match status {
                NOT_SAID => format!("the server gave no preview: {said}").into(),
                _ => said.into(),
            };
            if out.contains(NO_DRY_RUN) {
                ObjectPreview::NoDryRun(reason)
            } else {
                ObjectPreview::Unknown(reason)
            }
        }
        Err(reason) => ObjectPreview::Unknown(reason),
    }
}
