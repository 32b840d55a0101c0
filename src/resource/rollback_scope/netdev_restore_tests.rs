//! What comes back of links, addresses and routes, with a real kernel and real netdevs.

use super::RollbackScope;
use super::tests::{adds, kept_and_put_back, of, put_back, set_link};
use crate::Action;
use serde_json::json;
use std::process::{Command, Stdio};

/// A network of one's own, and a /sys that shows it.
const NAMESPACE: [&str; 4] = ["unshare", "-nm", "sh", "-c"];
/// One end of a veth pair, which every kernel with namespaces has (`dummy` is not in all).
const NETDEV: &str =
    "mount -t sysfs sys /sys && ip link add d0 type veth peer name d1 && ip link set d1 up";

/// Does this between keeping and restoring, on netdevs that `prefix` sets up; all that `look` shows
/// is as before then.
fn assert_comes_back(scope: &RollbackScope, prefix: &str, between: &str, look: &str) {
    let prefix = format!("{NETDEV}\n{prefix}");
    let (before, after) = kept_and_put_back(scope, &prefix, between, look, "", &NAMESPACE);
    assert_eq!(before, after, "{between}");
}

/// Whether namespaces and netdevs can be had: that takes root. Without, the test says so.
fn no_namespace() -> bool {
    let made = Command::new(NAMESPACE[0])
        .args(&NAMESPACE[1..])
        .arg(NETDEV)
        .stderr(Stdio::null())
        .status();
    let missing = !made.is_ok_and(|status| status.success());
    assert!(
        !missing || !std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1"),
        "no namespace, or no `ip`"
    );
    if missing {
        eprintln!(
            "skipped: a network namespace needs root and `ip`; RAILWRIGHT_REQUIRE_RIGS=1 makes \
             this a failure"
        );
    }
    missing
}

/// Netdevs in a namespace of their own, with the kernel and `ip` as they are.
#[test]
#[cfg(target_os = "linux")]
fn a_link_comes_back_with_addresses_and_routes() {
    if no_namespace() {
        return;
    }
    let prefix = "echo 1 >/proc/sys/net/ipv6/conf/d0/addr_gen_mode; ip link set d0 up mtu 1500\n\
                  ip addr add 10.1.0.1/24 brd + dev d0; ip addr add 10.1.0.2/24 dev d0; ip addr \
                  add 10.9.0.1 peer 10.9.0.2/32 dev d0\n\
                  ip addr add fd00::1/64 dev d0 nodad; ip addr add 10.2.0.1/24 dev d0 valid_lft \
                  900 preferred_lft 800\n\
                  ip route add default via 10.1.0.254; ip route add 10.7.0.0/16 via 10.1.0.3 table \
                  77 metric 5; ip route add fd01::/64 via fd00::2\n\
                  ip addr add 10.6.0.1/24 dev d1; ip addr add fd06::1/64 dev d1 nodad; ip route \
                  add 10.8.0.0/16 nexthop via 10.1.0.3 dev d0 nexthop via 10.6.0.3 dev d1\n\
                  ip -6 route add fd08::/64 nexthop via fd00::2 dev d0 nexthop via fd06::2 dev d1; \
                  ip nexthop add id 7 via 10.1.0.3 dev d0\n\
                  ip route add 10.20.0.0/16 nhid 7 proto static; ip route add 192.168.7.0/24 via \
                  10.1.0.4 proto static; ip route add 192.168.8.0/24 via 10.1.0.4";
    // The kernel adds an IPv6 address's own route a moment after the link is up.
    let look = "n=0; until ip -6 route show table local dev d0 | grep -q fd00::1 || [ $n = 10 ]; \
                do sleep 0.1; n=$((n + 1)); done\n\
                ip -o link show d0 | sed 's/qlen.*//'; ip -o addr show dev d0 | sed 's/dynamic//; \
                s/valid_lft.*//' | sort\n\
                ip route show table all dev d0 | sort; ip -6 route show table all dev d0 | grep -v \
                ff00 | sort; ip route show 10.8.0.0/16; ip -6 route show fd08::/64";
    let scope = RollbackScope::over(
        &[adds("d0", &["10.3.0.9/24", "10.1.0.7/24", "10.1.0.1/24"])],
        [],
    )
    .unwrap();
    for between in [
        "ip link set d0 mtu 68",
        "ip link set d0 mtu 9000 down",
        "ip addr flush dev d0; ip addr add 10.3.0.9/24 dev d0; ip route add default via 10.3.0.1",
        "ip addr del 10.1.0.1/24 dev d0; ip addr add 10.1.0.7/24 dev d0",
        // The route over both goes with one of them.
        "ip link set d0 down",
    ] {
        assert_comes_back(&scope, prefix, between, look);
    }
}

/// Routes go by routes of other makers, and by next hops and groups of them, as routing daemons
/// make them.
#[test]
#[cfg(target_os = "linux")]
fn routes_come_back_whoever_made_what_they_go_by() {
    if no_namespace() {
        return;
    }
    let prefix = "echo 1 >/proc/sys/net/ipv6/conf/d0/addr_gen_mode; ip link set d0 up; ip addr add \
                  10.9.0.1/24 dev d0; ip addr add fd00::1/64 dev d0 nodad\n\
                  ip link add d2 type veth peer name d3; ip link set d3 up; ip link set d2 up; ip \
                  addr add 10.6.0.1/24 dev d2; ip addr add fd06::1/64 dev d2 nodad\n\
                  ip route add 10.50.0.1/32 dev d0 proto static scope link; ip route add default \
                  via 10.50.0.1 proto bird; ip route add 10.60.0.0/16 via 10.50.0.1 proto bgp\n\
                  ip -6 route add fd50::1/128 dev d0 proto static; ip -6 route add default via \
                  fd50::1 proto bgp; ip route add 10.61.0.0/16 via 10.9.0.1 proto bgp\n\
                  ip nexthop add id 7 via 10.9.0.3 dev d0; ip nexthop add id 8 via 10.6.0.3 dev \
                  d2; ip nexthop add id 9 group 7/8,3 proto zebra; ip nexthop add id 11 group 7\n\
                  ip nexthop add id 17 via fd00::7 dev d0; ip nexthop add id 18 via fd06::7 dev \
                  d2; ip nexthop add id 19 group 17/18; ip route add 10.34.0.0/16 nhid 19 proto \
                  bgp\n\
                  ip route add 10.30.0.0/16 nhid 9 proto bgp metric 20; ip route add 10.31.0.0/16 \
                  nhid 11 proto bgp; ip -6 route add fd30::/32 nhid 19 proto bgp\n\
                  ip nexthop add id 30 via fe80::1 dev d0 proto zebra; ip route add default nhid \
                  30 proto bgp metric 20; ip route add 10.98.0.0/16 via inet6 fe80::5 dev d0\n\
                  ip route add default via 10.9.0.4 metric 200; ip route add default via 10.6.0.3 \
                  metric 300; ip route add 10.88.0.0/16 via 10.9.0.3; ip route append 10.88.0.0/16 \
                  via 10.6.0.3\n\
                  ip -6 route add fd88::/32 dev d0 metric 9; ip -6 route append fd88::/32 dev d2 \
                  metric 9; ip -6 route add blackhole fd70::/32; ip route add blackhole \
                  10.70.0.0/16\n\
                  while ip -6 addr show | grep -q tentative; do sleep 0.1; done";
    let look = "cat /sys/class/net/d0/mtu; while ip -6 addr show | grep -q tentative; do sleep \
                0.1; done\n\
                ip -d route show table all | sort; ip -6 -d route show table all | grep -v ff00 | \
                sort; ip nexthop show | sort; cat /proc/sys/net/ipv6/conf/d0/disable_ipv6";
    let link = RollbackScope::over(&[set_link("d0")], []).unwrap();
    for between in [
        "ip link set d0 mtu 1400",
        "ip link set d0 mtu 1000",
        "ip link set d0 down",
        "ip link set d0 down; ip link set d0 up mtu 1400",
    ] {
        assert_comes_back(&link, prefix, between, look);
    }
    let ipv6 = RollbackScope::over(
        &[Action::SetSysctl {
            key: "net.ipv6.conf.d0.disable_ipv6".into(),
            value: "1".into(),
        }],
        [],
    )
    .unwrap();
    let between = "sysctl -qw net.ipv6.conf.d0.disable_ipv6=1";
    assert_comes_back(&ipv6, prefix, between, look);
}

/// The kernel takes next hops from a daemon's route, sources from routes over other netdevs, and
/// neighbours from a link that goes down.
#[test]
#[cfg(target_os = "linux")]
fn what_the_kernel_took_with_a_link_comes_back_in_full() {
    if no_namespace() {
        return;
    }
    let prefix = "echo 1 >/proc/sys/net/ipv6/conf/d0/addr_gen_mode; ip link set d0 up; ip addr add \
                  10.1.0.1/24 dev d0; ip addr add 10.1.0.5/32 dev d0 label d0:vip; ip addr add \
                  fd00::1/64 dev d0 nodad; ip addr add fd00::5/64 dev d0 nodad home\n\
                  ip link add d2 type veth peer name d3; ip link set d3 up; ip link set d2 up; ip \
                  addr add 10.6.0.1/24 dev d2; ip addr add fd06::1/64 dev d2 nodad; while ip -6 \
                  addr show | grep -q tentative; do sleep 0.1; done\n\
                  ip -6 route add fd08::/64 proto bgp nexthop via fd00::2 dev d0 nexthop via \
                  fd06::2 dev d2; ip -6 route add fd18::/64 proto bgp nexthop via fd00::2 dev d0 \
                  weight 3 nexthop via fd06::2 dev d2 nexthop via fd06::3 dev d2\n\
                  ip route add 10.99.0.0/16 via 10.6.0.3 dev d2 src 10.1.0.1; ip -6 route add \
                  fd99::/64 via fd06::3 dev d2 src fd00::1 proto bgp; ip route add 10.95.0.0/16 \
                  via 10.1.0.3 mtu lock 1400 rto_min 5ms\n\
                  ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev d0 nud permanent; ip -6 neigh \
                  add fd00::9 lladdr 02:00:00:00:00:09 router dev d0 nud permanent; ip neigh add \
                  proxy 10.1.0.50 dev d0; ip -6 neigh add proxy fd00::50 dev d0";
    let look = "n=0; until ip -6 route show table local dev d0 | grep -q fd00::5 || [ $n = 10 ]; \
                do sleep 0.1; n=$((n + 1)); done; ip -o addr show dev d0 | sed 's/valid_lft.*//' | \
                sort; ip -d route show table all | sort; ip -6 -d route show table all | grep -v \
                ff00 | sort\n\
                ip neigh show nud permanent | sort; ip -4 neigh show proxy; ip -6 neigh show proxy";
    let scope = RollbackScope::over(&[set_link("d0")], []).unwrap();
    for between in [
        "ip link set d0 mtu 1200",
        "ip link set d0 down",
        "ip addr flush dev d0",
    ] {
        assert_comes_back(&scope, prefix, between, look);
    }
}

/// A route that the kernel does not take is named, and stops no other. What others put there
/// meanwhile stays, in the place of a route over another netdev too, and so does the decision of a
/// routing daemon.
#[test]
#[cfg(target_os = "linux")]
fn what_others_put_on_a_link_meanwhile_stays() {
    if no_namespace() {
        return;
    }
    let prefix = "ip link set d0 up mtu 1500; ip addr add 10.9.0.1/24 dev d0; ip addr add \
                  10.6.0.1/24 dev d1; ip route add 10.60.0.0/16 via 10.9.0.3 proto bgp metric 20\n\
                  ip route add 10.50.0.0/16 via 10.9.0.3 src 10.6.0.1; ip route add 10.51.0.0/16 \
                  via 10.9.0.3; ip route add 10.52.0.0/16 via 10.9.0.3; ip neigh add 10.9.0.7 \
                  lladdr 02:00:00:00:00:07 dev d0 nud permanent";
    let between = "ip link set d0 mtu 1400; ip addr add 10.9.0.100/32 dev d0; ip route add \
                   10.244.3.0/24 via 10.9.0.2; ip route add 10.245.0.0/24 via 10.9.0.2 proto bgp\n\
                   ip addr add 10.9.0.55/24 dev d0; ip route replace 10.60.0.0/16 via 10.9.0.9 \
                   proto bgp metric 20; ip route del 10.51.0.0/16; ip addr del 10.6.0.1/24 dev d1; \
                   ip route replace 10.52.0.0/16 dev d1; ip neigh replace 10.9.0.7 lladdr \
                   02:00:00:00:00:08 dev d0 nud permanent";
    let look = "cat /sys/class/net/d0/mtu; ip -o -4 addr show dev d0 | awk '{ print $4 }' | \
                LC_ALL=C sort; ip route show dev d0 | sed 's/ $//' | LC_ALL=C sort; { ip route \
                show dev d1; ip neigh show dev d0 nud permanent; } | sed 's/ $//'";
    let scope = RollbackScope::over(&[adds("d0", &["10.9.0.55/24"])], []).unwrap();
    let [_, after, failed] = put_back(
        &scope,
        &format!("{NETDEV}\n{prefix}"),
        between,
        look,
        "",
        &NAMESPACE,
    );
    assert_eq!(failed.trim(), "d0");
    insta::assert_snapshot!(after, @r"
    1500
    10.9.0.1/24
    10.9.0.100/32
    10.244.3.0/24 via 10.9.0.2
    10.245.0.0/24 via 10.9.0.2 proto bgp
    10.51.0.0/16 via 10.9.0.3
    10.60.0.0/16 via 10.9.0.9 proto bgp metric 20
    10.9.0.0/24 proto kernel scope link src 10.9.0.1
    10.52.0.0/16 scope link
    10.9.0.7 lladdr 02:00:00:00:00:08 PERMANENT
    ");
    let resource = of(
        "sysctl",
        json!({ "key": "net.ipv4.conf.all.rp_filter", "value": 2 }),
    );
    let prefix = "cd /proc/sys/net/ipv4/conf; echo 0 >all/rp_filter; echo 0 >d0/rp_filter; echo 0 \
                  >d1/rp_filter";
    let between = "echo 2 >all/rp_filter; echo 1 >d0/rp_filter; echo 2 >d1/rp_filter";
    let look = "cat all/rp_filter d0/rp_filter d1/rp_filter | tr -d '\\n'";
    // After a boot it is what the host boots with.
    for (boot, not_back) in [("", "net.ipv4.conf.all.rp_filter"), ("1", "")] {
        let [before, after, failed] = put_back(
            &RollbackScope::over(&[], [&resource]).unwrap(),
            &format!("{NETDEV}\n{prefix}"),
            between,
            look,
            boot,
            &NAMESPACE,
        );
        assert_eq!(
            (before.as_str(), after.as_str(), failed.trim()),
            ("000", "010", not_back)
        );
    }
}

/// The kernel takes the MTU of what lies above down with it, below 1280 bytes with all of IPv6.
#[test]
#[cfg(target_os = "linux")]
fn what_lies_above_a_link_comes_back_with_it() {
    let macvlan = "ip link add m0 link d0 type macvlan";
    let made = Command::new(NAMESPACE[0])
        .args(&NAMESPACE[1..])
        .arg(format!("{NETDEV} && {macvlan}"))
        .status();
    if no_namespace() || !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this kernel has no macvlan");
        return;
    }
    let prefix = format!(
        "ip link set d1 mtu 9000; ip link set d0 up mtu 9000; {macvlan}; echo 1 \
         >/proc/sys/net/ipv6/conf/m0/addr_gen_mode; ip link set m0 up\n\
         ip addr add fd22::2/64 dev m0 nodad; ip addr add 10.22.0.2/24 dev m0; ip -6 route add \
         fd33::/32 via fd22::1; ip route add 10.33.0.0/16 via 10.22.0.9"
    );
    let look = "cat /sys/class/net/d0/mtu /sys/class/net/m0/mtu; ip -o addr show dev m0; ip route \
                show dev m0; ip -6 route show dev m0";
    let scope = RollbackScope::over(&[set_link("d0")], []).unwrap();
    for between in [
        "ip link set d0 mtu 1500",
        "ip link set d0 mtu 1200",
        "ip link set d0 down",
    ] {
        assert_comes_back(&scope, &prefix, between, look);
    }
}

/// What the kernel takes from all netdevs at once, and what it writes to each of them.
#[test]
#[cfg(target_os = "linux")]
fn addresses_and_routes_of_ipv6_come_back_with_the_setting_that_took_them() {
    if no_namespace() {
        return;
    }
    let prefix = "echo 1 >/proc/sys/net/ipv6/conf/d1/addr_gen_mode; echo 1 \
                  >/proc/sys/net/ipv6/conf/d0/addr_gen_mode; ip link set d0 up; ip link set lo \
                  up\n\
                  ip addr add fd00::1/64 dev d0 nodad; ip addr add fd05::1/64 dev d0; ip addr add \
                  10.1.0.1/24 dev d0; ip link add d2 type veth peer name d3\n\
                  echo 1 >/proc/sys/net/ipv6/conf/d2/disable_ipv6; ip -6 route add default via \
                  fd00::2; ip -6 route add fd01::/64 via fd00::3 table 77\n\
                  ip addr add fd06::1/64 dev d1 nodad; ip -6 route add fd07::/64 metric 7 nexthop \
                  via fd00::2 dev d0 nexthop via fd06::2 dev d1 weight 3\n\
                  ip -6 nexthop add id 17 via fd00::7 dev d0; ip -6 route add fd40::/32 nhid 17 \
                  proto static; ip -6 route add fd70::/32 via fd00::2 proto static\n\
                  ip -6 route add blackhole fd50::/32; ip -6 neigh add fd00::9 lladdr \
                  02:00:00:00:00:09 dev d0 nud permanent\n\
                  echo 0 >/proc/sys/net/ipv4/conf/all/accept_redirects\n\
                  while ip -6 addr show | grep -q tentative; do sleep 0.1; done; ip -6 route add \
                  fd02::/64 via fd05::3 src fd05::1";
    let look = "while ip -6 addr show | grep -q tentative; do sleep 0.1; done\n\
                ip -o addr show | awk '{ print $2, $4 }' | sort; ip -6 route show table all | grep \
                -v ff00 | sort\n\
                ip -6 neigh show nud permanent; grep . /proc/sys/net/ipv6/conf/*/disable_ipv6 \
                /proc/sys/net/ipv*/conf/*/forwarding\n\
                cat /proc/sys/net/ipv4/conf/all/accept_redirects";
    for (key, value) in [
        ("ipv6.conf.all.disable_ipv6", "1"),
        ("ipv6.conf.d0.disable_ipv6", "1"),
        ("ipv6.conf.all.forwarding", "1"),
        ("ipv4.conf.all.forwarding", "1"),
    ] {
        let key = format!("net.{key}");
        let resource = of("sysctl", json!({ "key": key, "value": value }));
        let scope = RollbackScope::over(&[], [&resource]).unwrap();
        let between = format!("sysctl -qw {key}={value}");
        assert_comes_back(&scope, prefix, &between, look);
    }
}

/// After a boot a lease is not ours to bring back, and what its client has now is not ours to take
/// away.
#[test]
#[cfg(target_os = "linux")]
fn a_lease_is_left_alone_after_a_boot() {
    if no_namespace() {
        return;
    }
    let prefix = "ip link set d0 up; ip addr add 10.1.0.1/24 dev d0; ip addr add 10.2.0.1/24 dev \
                  d0 valid_lft 900 preferred_lft 800";
    let between = "ip addr flush dev d0; ip addr add 10.3.0.1/24 dev d0; ip addr add 10.4.0.1/24 \
                   dev d0 valid_lft 900 preferred_lft 800";
    let look = "ip -o -4 addr show dev d0 | awk '{ print $4 }' | sort";
    let scope = RollbackScope::over(&[adds("d0", &["10.3.0.1/24"])], []).unwrap();
    let (_, after) = kept_and_put_back(
        &scope,
        &format!("{NETDEV}\n{prefix}"),
        between,
        look,
        "1",
        &NAMESPACE,
    );
    assert_eq!(after, "10.1.0.1/24\n10.4.0.1/24\n");
}

/// Disks full of logs are common on hosts whose network breaks.
#[test]
#[cfg(target_os = "linux")]
fn a_kernel_setting_comes_back_where_the_disk_is_full() {
    if no_namespace() {
        return;
    }
    let setting = json!({ "key": "net.ipv4.conf.lo.rp_filter", "value": "2" });
    let scope = RollbackScope::over(&[], [&of("sysctl", setting)]).unwrap();
    let between = "c=$(mktemp -d); cp -a \"$k/.\" \"$c\"; mount -t tmpfs -o size=64k t \"$k\"; cp -a \
                   \"$c/.\" \"$k\"; rm -r \"$c\"; cat /dev/zero >\"$k/full\" 2>/dev/null\n\
                   echo 2 >/proc/sys/net/ipv4/conf/lo/rp_filter";
    assert_comes_back(
        &scope,
        "",
        between,
        "cat /proc/sys/net/ipv4/conf/lo/rp_filter",
    );
}
