//! For the tests of the kinds: wishes and answers without ceremony.

use super::body::BodyType;
use super::{
    AnswerStatus, Assessment, DesiredResource, Read, ReadResult, ReadResults, ResourceKind, Want,
};
use railwright_base::Address;
use serde_json::Value;

/// A checked wish on host `n1`.
pub fn wish(kind: &dyn ResourceKind, body: Value) -> DesiredResource {
    let errors = kind.check(&body);
    assert!(errors.is_empty(), "{errors:?}");
    let name = kind.address_name(&body).expect("the body has a name");
    DesiredResource {
        address: Address::host("n1", kind.name(), &name),
        after: vec![],
        want: Want {
            kind: kind.name().to_owned(),
            body,
            module: "test/one".into(),
            places: Vec::new(),
        }
        .into(),
    }
}

/// Answers with exit status and output.
pub fn answered(answers: &[(&Read, i32, &str)]) -> ReadResults {
    let mut all = ReadResults::default();
    for (read, code, out) in answers {
        all.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(*code),
                out: (*out).to_owned(),
            },
        );
    }
    all
}

/// A made-up kind that reads nothing, whatever the wish.
pub struct Scripted {
    /// What a comparison comes to.
    pub assess: fn() -> Assessment,
    /// What taking it back comes to, by what was there before.
    pub undo: fn(&Value) -> Assessment,
}

impl ResourceKind for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn address_name(&self, _: &Value) -> Option<String> {
        None
    }
    fn body_type(&self) -> BodyType {
        BodyType::of::<Value>()
    }
    fn reads(&self, _: &DesiredResource) -> Vec<Read> {
        Vec::new()
    }
    fn assess(&self, _: &DesiredResource, _: &ReadResults) -> Assessment {
        (self.assess)()
    }
    fn undo(&self, _: &DesiredResource, before: &Value, _: &ReadResults) -> Assessment {
        (self.undo)(before)
    }
}
