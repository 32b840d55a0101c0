//! Plans an inventory from a program of its own: `cargo run -p railwright-session --example
//! plan_inventory -- INVENTORY RECORDING`, where `railwright facts INVENTORY -o RECORDING` made the
//! recording. No target is contacted.

use railwright_plan::{Plan, PlanSelection};
use railwright_session::{SessionError, SessionRequest};
use std::path::Path;

/// The plan of an inventory for what was recorded of its targets.
async fn plan_recording(inventory: &Path, recording: &Path) -> Result<Plan, SessionError> {
    let session = SessionRequest::from_recording(recording).open(inventory)?;
    session.check_rules()?;
    let observed = session.observe(&|_| {}).await?;
    session.plan(&observed, PlanSelection::default())
}

#[tokio::main]
async fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [inventory, recording] = &arguments[..] else {
        return Err("name an inventory and a recording".to_owned());
    };
    let plan = plan_recording(Path::new(inventory), Path::new(recording))
        .await
        .map_err(|error| format!("{:#?}", error.diagnostics))?;
    let steps = serde_json::to_string_pretty(&plan.nodes).map_err(|error| error.to_string())?;
    std::io::Write::write_all(&mut std::io::stdout(), steps.as_bytes())
        .map_err(|error| error.to_string())
}
