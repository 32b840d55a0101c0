//! `link_ecn` with the real shell, on files in the form of the mlx5 driver's: no such card is here.

use crate::rig::{Host, changes, resource};
use railwright_resource::Action;
use serde_json::json;

#[test]
fn points_of_ecn_are_switched_kept_and_put_back() {
    let Some(host) = Host::start("ecn", &[]) else {
        return;
    };
    host.must(
        "mkdir -p /etc/udev/rules.d; for p in roce_rp roce_np; do mkdir -p \
         /sys/class/net/ens1/ecn/$p/enable; for n in 0 1 2 3 4 5 6 7; do echo 0 \
         >/sys/class/net/ens1/ecn/$p/enable/$n; done; done\n\
         echo 0 >/sys/class/net/ens1/ecn/roce_np/cnp_dscp; echo 6 \
         >/sys/class/net/ens1/ecn/roce_np/cnp_802p_prio; mkdir /sys/class/net/inbox\n",
    );
    let say = "cd /sys/class/net/ens1/ecn && cat roce_rp/enable/3 roce_np/enable/3 \
               roce_np/cnp_dscp roce_np/enable/4";
    let before = host.must(say);
    let ours = resource(
        "link_ecn",
        json!({ "netdev": "ens1", "priorities": [3], "cnp_dscp": 48, "cnp_priority": 6 }),
    );
    // Everything but telling systemd, which is not on this host.
    let perform = |actions: Vec<Action>| {
        host.perform(
            &actions
                .into_iter()
                .filter(|a| *a != Action::ReloadSystemd)
                .collect::<Vec<_>>(),
        )
    };
    let tree = host.tree();
    let fresh = host.diff(&ours);
    assert_eq!(
        changes(&tree, &host.tree()),
        [] as [&str; 0],
        "reading changed the host"
    );
    perform(fresh.actions.clone());
    assert_eq!(host.must(say), "1\n1\n48\n0\n");
    assert!(host.diff(&ours).is_met());
    // What a boot takes away the unit brings back.
    host.must("echo 0 >/sys/class/net/ens1/ecn/roce_np/enable/3");
    assert!(!host.diff(&ours).is_met());
    host.must("sh /etc/railwright/link-ecn/ens1.sh");
    assert!(host.diff(&ours).is_met());
    perform(host.undo(&ours, &fresh.before).actions);
    assert_eq!(
        (host.must(say), changes(&tree, &host.tree())),
        (before, vec![]),
        "undone to the value"
    );

    let inbox = host.diff(&resource(
        "link_ecn",
        json!({ "netdev": "inbox", "priorities": [3] }),
    ));
    assert!(
        inbox
            .refusal
            .unwrap()
            .contains("the mlx5_core of DOCA and MLNX_OFED has")
    );
    let refused = Action::SetLinkEcn {
        netdev: "inbox".into(),
        settings: [("roce_np/cnp_dscp".to_owned(), "48".to_owned())].into(),
    };
    let (code, _, err) = host.sh(&refused.script());
    assert!(
        code == 1 && err.contains("the driver refuses '48' for 'roce_np/cnp_dscp'")
            || err.contains("the driver refuses 48"),
        "{code} {err}"
    );
}
