//! `verify fabric` over real SSH: two switches with SONiC behind whose ports counters move while it
//! looks, two with Cumulus Linux, and two with EOS, of which one is reached over eAPI. Nothing on
//! them is changed by a look.

use crate::https::{PASSWORD, USER};
use crate::rig::{Switch, TOMAHAWK};
use crate::support::Place;
use serde_json::Value;

/// A leaf and a spine, or two of whatever these are.
struct Pair {
    ends: [Switch; 2],
    place: Place,
}

const TAIL: &str = "rollout: { switch_rollback_timer: 60s }\n";

impl Pair {
    fn of(ends: [Switch; 2], systems: [&str; 2], ports: [&str; 2]) -> Pair {
        let place = Place::new();
        let reached = |n: usize| match &ends[n].api {
            Some(api) => format!(
                "eapi: {{ address: 127.0.0.1, port: {}, user: {USER}, password: {{ file: password \
                 }}, certificate: '{{name}}.pem' }}",
                api.port()
            ),
            None => format!(
                "ssh: {{ user: root, address: 127.0.0.1, port: {}, identities: [id{n}] }}",
                ends[n].server.port
            ),
        };
        let group = |n: usize| {
            let (mtu, cable) = if systems[n] == "eos" {
                (9214, "")
            } else {
                (9216, " cable_length_m: 40,")
            };
            format!(
                "  - {{ name: sw{n}, os: {}, {}, ports: {}, mtu: {mtu},{cable}\n\
                 \x20     ecn: {{ min_bytes: 1000000, max_bytes: 2000000, probability_percent: 10 \
                 }}, watchdog: true }}\n",
                systems[n],
                reached(n),
                ports[n]
            )
        };
        let spec = format!(
            "cluster: fab\n\
             fabric: {{ kind: rocev2, mtu: 9000, lossless: {{ priority: 3, dscp: 26, cnp: {{ \
             priority: 6, dscp: 48 }} }} }}\n\
             ssh: {{ host_keys: known_hosts }}\n\
             switches:\n\
             {}{}cabling: cabling.csv\n\
             {TAIL}",
            group(0),
            group(1)
        );
        place.write("inv/cluster.yaml", spec).write(
            "inv/cabling.csv",
            format!("host,nic,switch,port\nsw0,{},sw1,{}\n", ports[0], ports[1]),
        );
        place.write(
            "inv/known_hosts",
            ends.iter()
                .map(|end| end.known_hosts() + "\n")
                .collect::<String>(),
        );
        for (n, end) in ends.iter().enumerate() {
            place.write(&format!("inv/id{n}"), end.identity());
            if let Some(api) = &end.api {
                place
                    .write(&format!("inv/sw{n}.pem"), api.certificate())
                    .write("inv/password", PASSWORD);
            }
        }
        Pair { ends, place }
    }

    fn look(&self, words: &[&str]) -> String {
        let said = self
            .place
            .run(&[&["verify", "fabric", "inv"], words].concat());
        // How long it looked is as this machine is slow.
        let timed = |line: &str| {
            line.rsplit_once("   ")
                .filter(|_| line.starts_with("verify fabric "))
                .map(|(head, _)| head.to_owned())
        };
        said.lines()
            .map(|line| timed(line).unwrap_or_else(|| line.to_owned()) + "\n")
            .collect()
    }
}

/// The oid of a counter's object in COUNTERS_DB.
fn oid(switch: &Switch, map: &str, name: &str) -> String {
    switch.row(2, map)[name].clone()
}

/// Counts one on, ten times a second, while something is done.
fn while_it_counts<T>(switch: &Switch, object: &str, field: &str, work: impl FnOnce() -> T) -> T {
    let script = format!(
        "touch /run/counting; while [ -e /run/counting ]; do redis-cli -s /run/redis/redis.sock -n \
         2 hincrby 'COUNTERS:{object}' {field} 1 >/dev/null; sleep 0.1; done"
    );
    std::thread::scope(|scope| {
        scope.spawn(|| switch.must(&script));
        while switch.sh("test -e /run/counting").code != Some(0) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let done = work();
        switch.must("rm /run/counting");
        done
    })
}

#[test]
fn counters_of_sonic_are_read_twice_while_they_move() {
    let (Some(one), Some(other)) = (
        Switch::start("fabric-0", TOMAHAWK),
        Switch::start("fabric-1", TOMAHAWK),
    ) else {
        return;
    };
    let pair = Pair::of([one, other], ["sonic", "sonic"], ["Ethernet0", "Ethernet0"]);
    let before: Vec<Value> = pair.ends.iter().map(Switch::config).collect();
    // As it is delivered 26 is in a lossy class, and nobody marks as in the spec; both ends
    // agree in that.
    insta::assert_snapshot!("fabric_delivered", pair.look(&["--for", "1s"]));
    assert_eq!(
        pair.ends.iter().map(Switch::config).collect::<Vec<_>>(),
        before,
        "a look changes nothing"
    );

    let applied = pair.place.run(&["apply", "inv", "--yes"]);
    assert!(applied.ends_with("--- exit 0 ---\n"), "{applied}");
    let said = pair.look(&["--for", "1s"]);
    assert!(
        said.contains("pause frames: spine 0")
            && said.contains("drops 0")
            && said.ends_with("--- exit 0 ---\n"),
        "{said}"
    );

    let port = oid(&pair.ends[0], "COUNTERS_PORT_NAME_MAP", "Ethernet0");
    let said = while_it_counts(&pair.ends[0], &port, "SAI_PORT_STAT_PFC_3_RX_PKTS", || {
        pair.look(&["--for", "2s"])
    });
    assert!(
        !said.contains("pause frames: spine 0 ") && said.ends_with("--- exit 0 ---\n"),
        "pauses of the lossless class are no trouble: {said}"
    );
    let said = while_it_counts(&pair.ends[0], &port, "SAI_PORT_STAT_PFC_4_RX_PKTS", || {
        pair.look(&["--for", "2s"])
    });
    assert!(
        said.contains("was told to pause priority 4") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    let queue = oid(&pair.ends[1], "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3");
    let said = while_it_counts(
        &pair.ends[1],
        &queue,
        "SAI_QUEUE_STAT_DROPPED_PACKETS",
        || pair.look(&["--for", "2s"]),
    );
    assert!(
        said.contains("spine: dropped of priority 3 for want of a buffer (+")
            && said.contains("RW0844"),
        "{said}"
    );
    let said = while_it_counts(
        &pair.ends[1],
        &queue,
        "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS",
        || pair.look(&["--for", "2s"]),
    );
    assert!(
        !said.contains("marked 0 ") && said.ends_with("--- exit 0 ---\n"),
        "{said}"
    );
    pair.ends[1].must(&format!(
        "redis-cli -s /run/redis/redis.sock -n 2 hset 'COUNTERS:{queue}' PFC_WD_STATUS stormed"
    ));
    let said = pair.look(&["--for", "1s"]);
    assert!(
        said.contains("the watchdog holds priority 3 down now   RW0846")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    pair.ends[1].must(&format!(
        "redis-cli -s /run/redis/redis.sock -n 2 hdel 'COUNTERS:{queue}' PFC_WD_STATUS"
    ));

    pair.ends[1].must("redis-cli -s /run/redis/redis.sock -n 4 hset 'PORT|Ethernet0' mtu 9100");
    let said = pair.look(&["--for", "0"]);
    assert!(
        said.contains("! MTU: spine 9100, spine 9216   RW0840")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}

#[test]
#[ignore = "long: make test-deep"]
fn counters_of_cumulus_are_read_by_nvue() {
    let (Some(one), Some(other)) = (
        Switch::start_cumulus("cumulus-fabric-0"),
        Switch::start_cumulus("cumulus-fabric-1"),
    ) else {
        return;
    };
    let pair = Pair::of([one, other], ["cumulus", "cumulus"], ["swp1", "swp2"]);
    pair.ends
        .iter()
        .for_each(|end| drop(end.must("nv set qos roce && nv config apply -y")));
    let applied = pair.place.run(&["apply", "inv", "--yes"]);
    assert!(applied.ends_with("--- exit 0 ---\n"), "{applied}");
    let said = pair.look(&["--for", "1s"]);
    assert!(
        said.contains("pause frames: spine 0   ECN-marked 0   CNP -   drops 0")
            && said.ends_with("--- exit 0 ---\n"),
        "{said}"
    );
    assert_eq!(
        pair.ends[0].must("nv config diff -o json"),
        "",
        "nothing of ours waits"
    );
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(5));
            pair.ends[1].fault(
                "counters",
                r#"{"swp2 pfc-stats 3 rx-pause-frames": 12, "swp2 egress-queue-stats 3 wred-discards": 3, "swp2  3 deadlock-count": 1}"#,
            );
        });
        pair.look(&["--for", "12s"])
    });
    assert!(
        said.contains("pause frames: spine 12   ECN-marked 0   CNP -   drops 3"),
        "{said}"
    );
    assert!(
        said.contains("RW0844") && said.contains("RW0846") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    pair.ends[0].fault("nvued-away", "");
    let said = pair.look(&["--for", "0"]);
    assert!(
        said.contains("RW0847") && said.ends_with("--- exit 3 ---\n"),
        "{said}"
    );
}

/// What a switch with EOS reports is read twice, over SSH and over eAPI; what it does not report is
/// unknown.
#[test]
#[ignore = "long: make test-deep"]
fn counters_of_eos_are_read_over_both_ways() {
    let (Some(one), Some(other)) = (
        Switch::start_eos("eos-fabric-0"),
        Switch::start_eapi("eos-fabric-1"),
    ) else {
        return;
    };
    let pair = Pair::of([one, other], ["eos", "eos"], ["Ethernet2/1", "Ethernet3/1"]);
    let applied = pair.place.run(&["apply", "inv", "--yes"]);
    assert!(applied.ends_with("--- exit 0 ---\n"), "{applied}");
    let running = || {
        pair.ends
            .iter()
            .map(|end| end.must("FastCli -p 15 -c 'show running-config'"))
            .collect::<Vec<_>>()
    };
    let before = running();
    insta::assert_snapshot!("fabric_eos", pair.look(&["--for", "1s"]));
    for (end, port) in [
        (&pair.ends[0], "Ethernet2/1"),
        (&pair.ends[1], "Ethernet3/1"),
    ] {
        let look = |counters: &[(&str, &str, u32)]| {
            let laid: serde_json::Map<String, Value> = counters
                .iter()
                .map(|(command, place, count)| {
                    (format!("show {command} {port} {place}"), (*count).into())
                })
                .collect();
            let read = |end: &Switch| {
                end.log("told")
                    .iter()
                    .filter(|command| command.contains("discards"))
                    .count()
            };
            let before: usize = pair.ends.iter().map(read).sum();
            let said = std::thread::scope(|scope| {
                scope.spawn(|| {
                    // After the first reading of both, and before the second.
                    while pair.ends.iter().map(read).sum::<usize>() < before + 2 {
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                    end.fault("counters", &Value::Object(laid).to_string());
                });
                pair.look(&["--for", "6s"])
            });
            end.fix("counters");
            said
        };
        let said = look(&[
            (
                "priority-flow-control counters detail",
                "priorities 3 rxFrames",
                12,
            ),
            ("qos interfaces ecn counters queue", "queueCounters 3", 40),
            (
                "interfaces counters queue detail",
                "ucastQueues trafficClasses TC0 dropPrecedences DP0 droppedPackets",
                9,
            ),
        ]);
        assert!(
            said.contains("pause frames: spine 12   ECN-marked 40   CNP -   drops 0")
                && said.ends_with("--- exit 0 ---\n"),
            "{said}"
        );
        let said = look(&[
            (
                "priority-flow-control counters detail",
                "priorities 4 txFrames",
                5,
            ),
            (
                "interfaces counters queue detail",
                "ucastQueues trafficClasses TC3 dropPrecedences DP0 droppedPackets",
                3,
            ),
            (
                "priority-flow-control counters watchdog",
                "txQueues 3 stuckCount",
                1,
            ),
            ("interfaces counters discards", "inDiscards", 7),
        ]);
        for told in [
            "told the other end to pause priority 4, which has no PFC here (+5)   RW0845",
            "dropped of priority 3 for want of a buffer (+3)   RW0844",
            "the watchdog cut off a pause without end of priority 3 (+1)   RW0846",
            "packets were dropped as they came; of which class, and why, is not told (+7)",
        ] {
            assert!(
                said.contains(told) && said.ends_with("--- exit 1 ---\n"),
                "{told}\n{said}"
            );
        }
        // A chip that has no such counters refuses to tell them.
        end.fault(
            "uncounted",
            "show interfaces counters queue detail\nshow priority-flow-control counters watchdog",
        );
        let said = pair.look(&["--for", "1s"]);
        for command in [
            "show interfaces counters queue detail",
            "show priority-flow-control counters watchdog",
        ] {
            assert!(
                said.contains(&format!(
                    "? spine: `{command}` tells nothing of the port   RW0847"
                )),
                "{said}"
            );
        }
        assert!(
            said.contains("drops 0?") && said.ends_with("--- exit 3 ---\n"),
            "{said}"
        );
        end.fix("uncounted");
    }
    assert_eq!(running(), before, "a look changes nothing");
}
