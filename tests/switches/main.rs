//! Switches: a real OpenSSH server, with SONiC a real Redis, behind the commands of SONiC, of
//! Cumulus Linux and of EOS that railwright uses, which are fakes
//! (`tests/fakes/{sonic,cumulus,eos}`). The fake itself is tried (that it refuses, flaps,
//! derives and forgets as it says), then railwright on it.

// A story that cannot go on stops where it is; that is what `unwrap` says here.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod bad_days;
mod cumulus;
mod delivered;
mod derived;
mod eapi;
mod eos;
mod fabric;
mod https;
mod inventories;
mod journeys;
#[path = "../journeys/machine.rs"]
#[allow(dead_code, reason = "the journeys use the rest of it")]
mod machine;
mod nvue;
mod refusals;
mod rig;
#[path = "../kinds/rig.rs"]
#[allow(dead_code, reason = "the stories of the kinds use the rest of it")]
mod root;
mod saved;
#[path = "../transport/server.rs"]
#[allow(dead_code, reason = "the stories of the transport use the rest of it")]
mod server;
#[path = "../journeys/support.rs"]
#[allow(dead_code, reason = "the journeys use the rest of it")]
mod support;

mod unchanged;
mod unreadable;

macro_rules! stories {
    ($($name:ident)*) => { $(#[test] fn $name() { journeys::$name(); })* };
}

stories! {
    a_leaf_is_planned_applied_found_changed_and_given_back
    a_switch_without_classes_of_its_own_has_none_again
    a_patch_that_is_refused_changes_nothing
    a_change_that_does_not_come_about_is_taken_back
    a_port_that_does_not_come_up_again_is_taken_back
    where_a_rollback_is_refused_what_others_run_comes_back
    a_connection_that_breaks_in_the_middle_is_found_again
    a_switch_that_is_left_alone_comes_back_by_itself
    a_switch_without_power_in_the_middle_is_as_it_was
    a_full_flash_loses_no_saved_configuration
    another_fabrics_switch_is_left_alone_until_it_is_taken_over
}
