//! Law 1: after a run in which every step ended done and none was held, the next plan is empty. Law 2: applying twice
//! equals once.

use super::case::{Case, benign, cases, troubles};
use super::{Held, ensure, law, switch_off_and_on};
use crate::room::Room;
use railwright::apply::{Decisions, Ending, apply, resume};
use railwright::plan::Plan;
use railwright::plan::by_hand::released;
use std::time::Duration;

/// Nothing goes wrong any more, and everybody is back.
async fn calm(room: &Room) {
    for host in room.context.hosts.keys() {
        room.host(host, |host| host.faults.clear());
    }
    tokio::time::sleep(Duration::from_secs(10_000)).await;
}

fn shown(plan: &Plan) -> String {
    let nodes: Vec<String> =
        plan.nodes.iter().map(|node| format!("{} {:?}", node.id, node.members().first().map(|m| (&m.reason, &m.differences)))).collect();
    format!("{}; unknown: {:?}", nodes.join("; "), plan.unknown)
}

#[test]
fn law_1_after_a_run_that_is_done_there_is_nothing_to_do() {
    law("law_1", cases(4, troubles(), 4), async |case: &Case| {
        let room = case.room();
        case.strike(&room);
        let plan = room.plan().await;
        let mut outcome = apply(&plan, &room.context, room.sink()).await;
        let plan = released(&plan).unwrap_or(plan);
        while outcome.ending == Ending::Waiting {
            ensure!(!outcome.power_cycles.is_empty(), "it waits for nobody: {:?}", outcome.outcomes);
            switch_off_and_on(&room, &outcome, case.crash.1, true).await;
            outcome = resume(&room.context, Decisions::default(), room.sink()).await;
        }
        if outcome.ending != Ending::Done || !plan.unknown.is_empty() || plan.nodes.iter().any(|node| node.held.is_some()) {
            return Ok(Held::Beside);
        }
        calm(&room).await;
        let next = room.plan().await;
        ensure!(next.nodes.is_empty() && next.unknown.is_empty(), "after a run that was done there is: {}", shown(&next));
        Ok(Held::Yes)
    });
}

#[test]
fn law_2_applying_twice_is_applying_once() {
    law("law_2", cases(3, benign(), 2), async |case: &Case| {
        let room = case.room();
        case.strike(&room);
        let plan = room.plan().await;
        if apply(&plan, &room.context, room.sink()).await.ending != Ending::Done || plan.nodes.is_empty() {
            return Ok(Held::Beside);
        }
        calm(&room).await;
        let (effects, told) = (room.fleet.effects(), room.fleet.log().len());
        let again = apply(&plan, &room.context, room.sink()).await;
        ensure!(matches!(again.ending, Ending::Refused | Ending::Done), "the same plan again ended {:?}", again.ending);
        let next = room.plan().await;
        let empty = apply(&next, &room.context, room.sink()).await;
        ensure!(empty.ending == Ending::Done && empty.run.is_none(), "the next plan began a run: {}", shown(&next));
        ensure!(room.fleet.effects() == effects, "the fleet is another one after the second time");
        ensure!(room.fleet.log().len() == told, "hosts were told {:?}", &room.fleet.log()[told..]);
        Ok(Held::Yes)
    });
}
