//! For the tests of the kinds: resources and answers without ceremony.

use super::body::BodyType;
use super::{
    AnswerStatus, DesiredResource, Read, ReadResult, ReadResults, ResourceDeclaration,
    ResourceDiff, ResourceKind,
};
use railwright_base::Address;
use serde_json::Value;

/// A checked resource on host `n1`.
pub fn resource(kind: &dyn ResourceKind, body: Value) -> DesiredResource {
    let errors = kind.check(&body);
    assert!(errors.is_empty(), "{errors:?}");
    let name = kind.address_name(&body).expect("the body has a name");
    DesiredResource {
        address: Address::host("n1", kind.name(), &name),
        after: vec![],
        declaration: ResourceDeclaration {
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

/// A made-up kind that reads nothing, whatever the resource.
pub struct Scripted {
    /// What a comparison comes to.
    pub diff: fn() -> ResourceDiff,
    /// What undoing it comes to, by what was there before.
    pub undo: fn(&Value) -> ResourceDiff,
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
    fn diff(&self, _: &DesiredResource, _: &ReadResults) -> ResourceDiff {
        (self.diff)()
    }
    fn undo(&self, _: &DesiredResource, before: &Value, _: &ReadResults) -> ResourceDiff {
        (self.undo)(before)
    }
}
