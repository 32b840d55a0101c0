//! An inventory of the repository, opened, observed and planned.

use super::*;
use railwright_plan::PlanSelection;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The first plan of an inventory for its cluster as it is delivered.
#[tokio::test]
async fn an_inventory_is_opened_observed_and_planned() {
    let session = SessionRequest::from_recording(repository("plans/roce-h100-rail/bare.json"))
        .with_keys(SigningKeys::WhereAStepNeedsThem)
        .open(&repository("inventories/roce-h100-rail"))
        .unwrap();
    session.check_rules().unwrap();
    let observed = session.observe(&|_| {}).await.unwrap();
    let host = session.targets[0].to_string();
    let plan = session
        .plan(
            &observed,
            PlanSelection {
                targets: vec![host],
                excludes: Vec::new(),
            },
        )
        .unwrap();
    assert_eq!(plan.spec_digest, session.inventory.loaded.digest);
    let targets: Vec<_> = plan
        .nodes
        .iter()
        .filter_map(|node| node.target.as_ref())
        .collect();
    assert!(!targets.is_empty());
    assert!(
        targets
            .iter()
            .all(|target| session.targets.contains(target))
    );
    assert!(session.contact.is_none());
}

#[test]
fn what_cannot_be_opened_is_told_with_its_warnings() {
    let inventory = repository("inventories/roce-h100-rail");
    let error = SessionRequest::from_recording("no/such/recording")
        .open(&inventory)
        .err()
        .unwrap();
    assert_eq!(error.diagnostics[0].code, "RW1010");
    assert!(!error.is_input && !error.is_refused);
    let known: Vec<_> = error.warnings.iter().map(|one| &*one.code).collect();
    assert!(known.contains(&"RW1005"), "{known:?}");
}
