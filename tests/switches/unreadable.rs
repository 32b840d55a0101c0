//! A switch that holds values that make no sense: the plan says that they could not be read, with
//! their text, and sets them anew.

use crate::journeys::Fabric;

#[test]
fn what_makes_no_sense_is_told_with_its_text_and_set_anew() {
    let Some(fabric) = Fabric::start("unreadable", "60s") else {
        return;
    };
    fabric
        .switch
        .must("sonic-db-cli CONFIG_DB hset 'PORT|Ethernet0' mtu \"$(printf '\\033[2J-1')\"");
    fabric
        .switch
        .must("sonic-db-cli CONFIG_DB hset 'PORT_QOS_MAP|Ethernet4' pfc_enable 3,x");
    let plan = fabric.run(&["plan", "inv"]);
    for said in [
        "mtu (running)          unknown (mtu makes no sense: `\u{fffd}[2J-1`) -> 9216",
        "? switch/leaf1 switch_port/Ethernet0#mtu (running)\n       mtu makes no sense: `\u{fffd}[2J-1`",
        "? switch/leaf1 switch_qos/Ethernet4#pfc (running)\n       pfc_enable makes no sense: `3,x`",
    ] {
        assert!(
            plan.contains(said) && plan.ends_with("--- exit 3 ---\n"),
            "{plan}"
        );
    }
    let applied = fabric.run(&["apply", "inv", "--yes"]);
    assert!(applied.contains("--- exit 0 ---"), "{applied}");
    fabric.has_no_changes();
}
