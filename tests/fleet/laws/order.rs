//! Law 5: the plan's bytes do not depend on host order or parallelism. Law 6: `--target X` is X and its prerequisites,
//! `--exclude X` is all but X and what needs X.

use super::case::{Case, benign, cases};
use super::{Held, ensure, law};
use railwright::base::Address;
use railwright::plan::{Plan, Selection, file};
use railwright::resource::{Wish, kind_named};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn law_5_the_plan_does_not_depend_on_order_or_parallelism() {
    law("law_5", cases(5, benign(), 0), async |case: &Case| {
        let room = case.room();
        let last = room.state().last_applied;
        let mut wishes = room.wishes.clone();
        let observation = room.observe(&wishes, &last, 1).await;
        let plan = file::bytes(&room.plan_of(&wishes, &last, &observation, Selection::default()));
        // A shuffle by the case's own numbers, so that it can be run again.
        let salt = case.crash.0;
        wishes.sort_by_key(|wish| railwright::base::Digest::of(&(salt, &wish.address)).to_string());
        let observation = room.observe(&wishes, &last, 64).await;
        ensure!(plan == file::bytes(&room.plan_of(&wishes, &last, &observation, Selection::default())), "the order of the wishes shows");
        Ok(if case.hosts.len() > 1 { Held::Yes } else { Held::Beside })
    });
}

fn resources(plan: &Plan) -> BTreeSet<Address> {
    plan.nodes.iter().flat_map(|node| node.members()).map(|member| member.wish.address.clone()).collect()
}

/// Of each resource, all that come before it: by the spec's own word, and, if it counts, by the kinds'.
fn before(wishes: &[Wish], kinds_count: bool) -> BTreeMap<&Address, BTreeSet<&Address>> {
    let direct = |late: &Wish| -> BTreeSet<&Address> {
        let kinds = if kinds_count { kind_named(&late.kind).unwrap().after_kinds() } else { &[] };
        let first = |early: &&Wish| {
            let of_kind = early.address.target == late.address.target && kinds.contains(&early.kind.as_str());
            late.after.contains(&early.address) || of_kind
        };
        wishes.iter().filter(first).map(|early| &early.address).collect()
    };
    let mut all: BTreeMap<&Address, BTreeSet<&Address>> = wishes.iter().map(|wish| (&wish.address, direct(wish))).collect();
    for _ in wishes {
        for address in wishes.iter().map(|wish| &wish.address) {
            let further: BTreeSet<&Address> = all[address].iter().flat_map(|early| all[early].iter().copied()).collect();
            all.get_mut(address).unwrap().extend(further);
        }
    }
    all
}

#[test]
fn law_6_target_and_exclude_are_one_another_turned_round() {
    law("law_6", cases(3, benign(), 0), async |case: &Case| {
        let room = case.room();
        let last = room.state().last_applied;
        let observation = room.observe(&room.wishes, &last, 8).await;
        let plan = |selection| room.plan_of(&room.wishes, &last, &observation, selection);
        let whole = plan(Selection::default());
        let all = resources(&whole);
        let Some(address) = all.iter().nth(case.crash.0 % all.len().max(1)) else { return Ok(Held::Beside) };
        let x = address.to_string();
        let only = plan(Selection { targets: vec![x.clone()], excludes: Vec::new() });
        let without = plan(Selection { targets: Vec::new(), excludes: vec![x.clone()] });
        ensure!(
            only.narrowed == [format!("--target {x}")] && without.narrowed == [format!("--exclude {x}")],
            "it does not say that it is narrowed"
        );
        let (only, without) = (resources(&only), resources(&without));
        ensure!(only.contains(address) && !without.contains(address), "{x} itself is on the wrong side");
        ensure!(only.is_subset(&all) && without.is_subset(&all), "there is more in a part than in the whole");
        let (said, ruled) = (before(&room.wishes, false), before(&room.wishes, true));
        for other in all.iter().filter(|other| *other != address) {
            let (with, apart) = (only.contains(other), without.contains(other));
            // A kind's own rule gives way to the spec, so it may bring something along and need not.
            ensure!(!(with && apart) || ruled[address].contains(other), "{other} is in both, and {x} does not need it");
            ensure!(with || apart || ruled[other].contains(address), "{other} is in neither, and does not need {x}");
            ensure!(with || !said[address].contains(other), "{x} needs {other}, which --target leaves out");
            ensure!(!apart || !said[other].contains(address), "{other} needs {x}, and --exclude keeps it");
        }
        Ok(Held::Yes)
    });
}
