//! `verify fabric` on recorded observations: a small fabric that is bent in one place after the
//! other, the example with two pods as its switches are delivered, and this machine itself.

use crate::support::Place;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

const SPEC: &str = "cluster: c
fabric: { kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } } }
ssh: { user: root, host_keys: known_hosts }
nodes: [{ name: 'gpu[1-2]', nics: { model: soft-roce, rails: 2, netdev: 'ens{rail}f0np0' } }]
switches:
  - { name: 'leaf[1-2]', os: sonic, ssh: { user: admin }, ecn: { min_bytes: 1000000, max_bytes: 2000000, probability_percent: 10 } }
  - { name: spine1, os: cumulus, ssh: { user: admin } }
cabling: cabling.csv
";

const TABLE: &str = "host,nic,switch,port
gpu[1-2],ens0f0np0,leaf1,Ethernet[0-4/4]
gpu[1-2],ens1f0np0,leaf2,Ethernet[0-4/4]
leaf[1-2],Ethernet8,spine1,swp[1-2]
";

fn answer(out: &str) -> Value {
    json!({ "status": { "exit": 0 }, "out": out })
}

fn host() -> Value {
    let link = "mtu=9000\nflags=0x1003\noperstate=up\ncarrier=1\n";
    let qos = "\n\
               == pfc 0\n\
               |{\"prio_pfc\":[false,false,false,true,false,false,false,false]}\n\
               \n\
               == app 0\n\
               |{\"dscp_prio\":[[26,3],[48,6]]}\n";
    let counters = |uptime: u32, pauses: u32| {
        let port = |rail: u32| {
            format!(
                "port ens{rail}f0np0\n\
                 rx_prio3_pause {pauses}\n\
                 rx_prio5_pause 0\n\
                 rx_prio3_buf_discard 0\n\
                 np_cnp_sent 7\n"
            )
        };
        answer(&format!("uptime {uptime}.00\n{}{}", port(0), port(1)))
    };
    json!({ "answers": {
        "link:ens0f0np0": answer(link), "link:ens1f0np0": answer(link), "link_qos:ens0f0np0": answer(qos), "link_qos:ens1f0np0": answer(qos),
        "link_counters:first": counters(100, 5), "link_counters:second": counters(130, 9),
    } })
}

fn leaf() -> Value {
    let ports = ["Ethernet0", "Ethernet4", "Ethernet8"];
    let each = |row: &Value| -> Value {
        ports
            .iter()
            .map(|port| ((*port).to_owned(), row.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let queues: serde_json::Map<String, Value> = ports
        .iter()
        .map(|port| (format!("{port}|3"), json!({ "wred_profile": "W" })))
        .collect();
    let map = json!({ "M": { "3": "3", "6": "6" } });
    let running = json!({
        "PORT": each(&json!({ "mtu": "9216", "admin_status": "up" })),
        "PORT_QOS_MAP": each(&json!({ "dscp_to_tc_map": "M", "tc_to_queue_map": "M", "pfc_enable": "3" })),
        "DSCP_TO_TC_MAP": { "M": { "26": "3", "48": "6" } }, "TC_TO_QUEUE_MAP": map, "QUEUE": queues,
        "WRED_PROFILE": { "W": { "ecn": "ecn_all", "green_min_threshold": "1000000", "green_max_threshold": "2000000", "green_drop_probability": "10" } },
    });
    let counters = |uptime: u32| {
        let port = |port: &&str| {
            format!(
                "port {port}\n\
                 SAI_PORT_STAT_PFC_3_RX_PKTS 1\n\
                 SAI_QUEUE_STAT_DROPPED_PACKETS/3 4\n\
                 PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED/3 0\n"
            )
        };
        answer(&format!(
            "uptime {uptime}\n{}",
            ports.iter().map(port).collect::<String>()
        ))
    };
    json!({ "answers": { "switch:running": answer(&running.to_string()), "switch_counters:first": counters(7), "switch_counters:second": counters(37) } })
}

fn spine() -> Value {
    let set = json!({ "ports": ["swp1", "swp2"], "set": { "qos": { "roce": { "mode": "lossless" } }, "interface": {
        "swp1": { "link": { "state": { "up": {} } } }, "swp2": { "link": { "state": { "up": {} } } } } } });
    let counters = "uptime 5\n\
                    port swp1\n\
                    rx-pause-frames/3 0\n\
                    rx-buffer-discards/3 0 Bytes\n\
                    deadlock-count/3 0\n\
                    status/3 OK\n\
                    port swp2\n\
                    rx-pause-frames/3 0\n";
    let second = counters.replace("uptime 5", "uptime 35");
    json!({ "answers": { "switch:running": answer(&set.to_string()), "switch_counters:first": answer(counters), "switch_counters:second": answer(&second) } })
}

/// An answer in which a text is another one: target, key, from, to.
type Bend = (&'static str, &'static str, &'static str, &'static str);

fn place(bends: &[Bend]) -> Place {
    let mut targets = json!({ "host/gpu1": host(), "host/gpu2": host(), "switch/leaf1": leaf(), "switch/leaf2": leaf(), "switch/spine1": spine() });
    for (target, key, from, to) in bends {
        let out = &mut targets[target]["answers"][key]["out"];
        let text = out.as_str().unwrap_or_else(|| panic!("{target} {key}"));
        assert!(text.contains(from), "{text}");
        *out = text.replace(from, to).into();
    }
    let observation = json!({ "format_version": "3.0", "recorded_at": "2026-01-01T00:00:00Z", "texts": {}, "targets": targets });
    let place = Place::new();
    place
        .write("inv/cluster.yaml", SPEC)
        .write("inv/cabling.csv", TABLE)
        .write("seen.json", observation.to_string());
    place
}

const RECORDED: [&str; 5] = ["verify", "fabric", "inv", "--observations", "seen.json"];

#[test]
fn a_fabric_whose_ends_agree_is_drawn_and_nothing_is_told() {
    let place = place(&[]);
    insta::assert_snapshot!(place.run(&RECORDED));
    let json = place
        .command(&[&RECORDED[..], &["--json"]].concat())
        .output()
        .unwrap();
    assert_eq!(json.status.code(), Some(0));
    crate::documents::holds("fabric", &serde_json::from_slice(&json.stdout).unwrap());
}

/// A broken case of each code, with the exit code.
#[test]
fn each_finding_has_its_code() {
    let cases: [(Bend, &str, u8); 11] = [
        (
            ("switch/leaf1", "switch:running", "9216", "1500"),
            "! MTU: host 9000, leaf 1500   RW0840",
            1,
        ),
        (
            ("host/gpu2", "link_qos:ens1f0np0", "[26,3],", ""),
            "! DSCP 26 has priority: host none, leaf 3, the fabric 3   RW0841",
            1,
        ),
        (
            ("switch/spine1", "switch:running", "lossless", "lossy"),
            "! PFC: leaf 3, spine none, the fabric 3   RW0842",
            1,
        ),
        (
            (
                "host/gpu2",
                "link_qos:ens1f0np0",
                "== pfc 0\n|{\"prio_pfc\":[false,false,false,true,false,false,false,false]}",
                "== pfc 1\n|Attribute read: Operation not supported",
            ),
            "! PFC: host none, leaf 3, the fabric 3   RW0842",
            1,
        ),
        (
            (
                "host/gpu2",
                "link_qos:ens1f0np0",
                "== pfc 0",
                "== virtual-function\n\n== pfc 0",
            ),
            "? host: ens1f0np0 is a virtual function; only the physical function of a port has \
             PFC   RW0847",
            3,
        ),
        (
            ("switch/leaf2", "switch:running", "ecn_all", "ecn_none"),
            "! leaf: the queue of the lossless class is not marked   RW0843",
            1,
        ),
        (
            (
                "switch/leaf1",
                "switch_counters:second",
                "DROPPED_PACKETS/3 4",
                "DROPPED_PACKETS/3 5",
            ),
            "! leaf: dropped of priority 3 for want of a buffer (+3)   RW0844",
            1,
        ),
        (
            (
                "host/gpu1",
                "link_counters:second",
                "rx_prio5_pause 0",
                "rx_prio5_pause 2",
            ),
            "! host: was told to pause priority 5, which has no PFC here (+4)   RW0845",
            1,
        ),
        (
            (
                "switch/spine1",
                "switch_counters:second",
                "3 OK",
                "3 DEADLOCK",
            ),
            "! spine: the watchdog holds priority 3 down now   RW0846",
            1,
        ),
        (
            (
                "switch/leaf1",
                "switch_counters:second",
                "PFC_3_RX_PKTS 1",
                "PFC_3_RX_PKTS 0",
            ),
            "? leaf: a counter was set back between the readings   RW0847",
            3,
        ),
        (
            ("host/gpu1", "link:ens0f0np0", "carrier=1", "carrier=0"),
            "! host: down, or without a link   RW0848",
            1,
        ),
    ];
    for (bend, line, exit) in cases {
        let place = place(&[bend]);
        let said = place.run(&RECORDED);
        assert!(
            said.contains(line) && said.ends_with(&format!("--- exit {exit} ---\n")),
            "{line}\n{said}"
        );
        let code = line.rsplit(' ').next().unwrap();
        assert!(
            place.run(&["explain", code]).ends_with("--- exit 0 ---\n"),
            "{code}"
        );
        let json = place
            .command(&[&RECORDED[..], &["--json"]].concat())
            .output()
            .unwrap();
        crate::documents::holds("fabric", &serde_json::from_slice(&json.stdout).unwrap());
    }
    let both = place(&[
        ("switch/leaf1", "switch:running", "9216", "1500"),
        (
            "switch/leaf1",
            "switch_counters:second",
            "DROPPED_PACKETS/3 4",
            "DROPPED_PACKETS/3 400",
        ),
    ]);
    insta::assert_snapshot!(both.run(&RECORDED));
}

#[test]
fn a_picture_is_written_whole_and_over_nothing() {
    let place = place(&[]);
    let words = [&RECORDED[..], &["--svg", "fabric.svg"]].concat();
    assert!(
        place
            .run(&words)
            .contains("the fabric is drawn in fabric.svg")
    );
    let file = place.path().join("fabric.svg");
    let drawn = fs::read_to_string(&file).unwrap();
    assert!(
        drawn.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ")
            && drawn.ends_with("</svg>\n"),
        "{drawn}"
    );
    fs::write(&file, "mine").unwrap();
    let refused = place.run(&words);
    assert!(
        refused.contains("error RW1046: fabric.svg is there already")
            && refused.ends_with("--- exit 4 ---\n"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    place.run(&[&words[..], &["--force"]].concat());
    assert_eq!(fs::read_to_string(&file).unwrap(), drawn);
    let nowhere = place.run(&[&RECORDED[..], &["--svg", "none/fabric.svg"]].concat());
    assert!(
        nowhere.contains("RW1010") && nowhere.ends_with("--- exit 1 ---\n"),
        "{nowhere}"
    );
}

/// What is no observation is told at once, however long it is; of what nobody counts there is no
/// number; and where nobody answers nothing is waited for.
#[test]
fn what_cannot_be_is_told_at_once() {
    let recorded = place(&[("switch/leaf1", "switch:running", "9216", "1500")]);
    for (file, why) in [
        ("/dev/zero", "it does not begin with `{`"),
        ("/dev/null", "it does not begin with `{`"),
    ] {
        let said = recorded.run(&["verify", "fabric", "inv", "--observations", file]);
        assert!(
            said.contains(&format!("error RW1012: {file} is no observation: {why}")),
            "{said}"
        );
    }
    let json = recorded
        .command(&[&RECORDED[..], &["--json"]].concat())
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&json["findings"][0]["kind"], &json["findings"][0]["count"]),
        (&json!("mtu"), &Value::Null)
    );
    assert_eq!(json["links"][0]["troubles"][0]["count"], Value::Null);

    let away = Place::new();
    let spec = "cluster: here\n\
                fabric: { kind: rocev2 }\n\
                ssh: { user: root, address: 127.0.0.1, port: 1, host_keys: known_hosts }\n\
                nodes: [{ name: n1, nics: { model: soft-roce, netdev: ens1 } }]\n\
                switches: [{ name: leaf1 }]\n\
                cabling: cabling.csv\n";
    away.write("inv/cluster.yaml", spec).write(
        "inv/cabling.csv",
        "host,nic,switch,port\nn1,ens1,leaf1,Ethernet0\n",
    );
    away.write("inv/known_hosts", "[127.0.0.1]:1 ssh-ed25519 \
                                   AAAAC3NzaC1lZDI1NTE5AAAAIGr8oSp2sK9qJLZ5Q0yZ1PSmTBbYmVhN0dUm0cN8hEcn\n");
    let since = std::time::Instant::now();
    let said = away.run(&["verify", "fabric", "inv", "--for", "60m"]);
    assert!(
        said.ends_with("--- exit 3 ---\n") && !said.contains("counters are looked at"),
        "{said}"
    );
    assert!(
        since.elapsed() < std::time::Duration::from_secs(300),
        "{said}"
    );
    let refused = away.run(&["verify", "fabric", "inv", "--host", "gpu001"]);
    assert!(
        refused.contains("name hosts of the inventory: --host n1\n"),
        "{refused}"
    );
}

/// Two leaves that are joined are drawn beside each other, and a spine above them, whichever end
/// the file names first.
#[test]
fn switches_are_drawn_where_they_stand() {
    let place = Place::new();
    let spec = "cluster: here\n\
                fabric: { kind: rocev2 }\n\
                ssh: { address: local }\n\
                nodes: [{ name: n1, nics: { model: soft-roce, netdev: lo } }]\n\
                switches: [{ name: 'leaf[1-2]', role: leaf }, { name: spine1, role: spine }]\n\
                cabling: cabling.csv\n";
    let table = "host,nic,switch,port\nn1,lo,leaf1,E0\nspine1,E1,leaf1,E1\nleaf2,E1,spine1,E2\nleaf2,E8,leaf1,E8\n";
    place
        .write("inv/cluster.yaml", spec)
        .write("inv/cabling.csv", table);
    let said = place.run(&[
        "verify",
        "fabric",
        "inv",
        "--for",
        "0",
        "--svg",
        "fabric.svg",
    ]);
    assert!(
        said.contains("verify fabric inv   1 host, 2 leaves, 1 spine, 4 links\n"),
        "{said}"
    );
    assert!(
        said.contains("\n spine1\n  |\n  +-- leaf[1-2]   2 links ")
            && said.contains("\n leaf2 -- leaf1   1 link "),
        "{said}"
    );
    let drawn = fs::read_to_string(place.path().join("fabric.svg")).unwrap();
    let boxes = |name: &str| drawn.matches(&format!("<title>{name}</title>")).count();
    assert_eq!(
        (boxes("spine1"), boxes("leaf2"), boxes("n1")),
        (1, 1, 1),
        "{drawn}"
    );
}

/// Where a result has no place nobody is asked; where its place goes away meanwhile it is kept in
/// another one, and shown.
#[test]
fn a_result_has_its_place_before_anybody_is_asked_and_is_never_lost() {
    let place = Place::new();
    let spec = "cluster: here\n\
                fabric: { kind: rocev2 }\n\
                ssh: { address: local }\n\
                nodes: [{ name: n1, nics: { model: soft-roce, netdev: lo } }]\n\
                switches: [{ name: leaf1 }]\n\
                cabling: cabling.csv\n";
    place.write("inv/cluster.yaml", spec).write(
        "inv/cabling.csv",
        "host,nic,switch,port\nn1,lo,leaf1,Ethernet0\n",
    );
    place.write("out/other", "");
    for words in [
        &["verify", "fabric", "inv", "--for", "1s", "--svg"][..],
        &["verify", "fabric", "inv", "--for", "1s", "--record"],
        &["discover", "cabling", "inv", "-o"],
        &["facts", "inv", "-o"],
        &["plan", "inv", "-o"],
        &["drift", "inv", "-o"],
    ] {
        let nowhere = place.run(&[words, &["none/x"]].concat());
        assert!(
            nowhere.contains("error RW1010: none/x: No such file or directory"),
            "{nowhere}"
        );
        assert!(
            nowhere.contains("no host was contacted, and nothing was written")
                && !nowhere.contains("counters are looked at"),
            "{nowhere}"
        );
        let folder = place.run(&[words, &["out"]].concat());
        assert!(
            folder.contains("error RW1010: out is a folder")
                && folder.contains("name a file in it: out/NAME"),
            "{folder}"
        );
    }
    assert_eq!(
        fs::read_dir(place.path().join("out")).unwrap().count(),
        1,
        "nothing is left of the look"
    );

    let words = [
        "verify",
        "fabric",
        "inv",
        "--for",
        "3s",
        "--svg",
        "out/fabric.svg",
        "--record",
        "out/seen.json",
    ];
    let looks = place
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("TMPDIR", place.path())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    fs::remove_dir_all(place.path().join("out")).unwrap();
    let said = looks.wait_with_output().unwrap();
    let (shown, told) = (
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr),
    );
    assert!(
        shown.starts_with("verify fabric ") && said.status.code() == Some(1),
        "{shown}{told}"
    );
    for (name, begins) in [("fabric.svg", "<?xml"), ("seen.json", "{\n")] {
        let kept = told
            .split([' ', '\n'])
            .find(|word| word.starts_with('/') && word.ends_with(name))
            .unwrap_or_else(|| panic!("{told}"));
        assert!(
            fs::read_to_string(kept).unwrap().starts_with(begins),
            "{kept}"
        );
    }
}

/// What `facts` recorded has no counters; what is not in the file is not known.
#[test]
fn without_counters_the_rest_is_evaluated() {
    let place = place(&[]);
    let mut seen: Value =
        serde_json::from_slice(&fs::read(place.path().join("seen.json")).unwrap()).unwrap();
    for target in seen["targets"].as_object_mut().unwrap().values_mut() {
        target["answers"]
            .as_object_mut()
            .unwrap()
            .retain(|key, _| !key.contains("_counters:"));
    }
    place.write("seen.json", seen.to_string());
    let said = place.run(&RECORDED);
    assert!(
        said.contains("? host: the observation has no counters   RW0847")
            && said.contains(
                "railwright verify fabric inv --for 0 --observations seen.json checks the rest"
            )
            && said.ends_with("--- exit 3 ---\n"),
        "{said}"
    );
    let said = place.run(&[&RECORDED[..], &["--for", "0"]].concat());
    assert!(
        said.contains("6 links: 6 agree. Counters were not looked at.\n--- exit 0 ---"),
        "{said}"
    );
    seen["targets"]
        .as_object_mut()
        .unwrap()
        .remove("switch/leaf2");
    place.write("seen.json", seen.to_string());
    let said = place.run(&[&RECORDED[..], &["--for", "0"]].concat());
    assert!(
        said.contains("? leaf: it was not asked, or is not in the observation   RW0847")
            && said.ends_with("--- exit 3 ---\n"),
        "{said}"
    );
    assert!(
        place
            .run(&["verify", "fabric", "inv", "--for", "2h"])
            .ends_with("--- exit 64 ---\n")
    );
}

/// Two pods of eight leaves, as SONiC delivers them and no host is set yet.
#[test]
fn the_example_with_two_pods_as_it_is_delivered() {
    let place = Place::new();
    for path in [
        "inventories/rail-optimised/cluster.yaml",
        "inventories/rail-optimised/cabling.csv",
        "plans/rail-optimised/bare.json",
    ] {
        place.write(
            path,
            fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap(),
        );
    }
    let words = [
        "verify",
        "fabric",
        "inventories/rail-optimised",
        "--observations",
        "plans/rail-optimised/bare.json",
        "--for",
        "0",
    ];
    insta::assert_snapshot!(place.run(&words));
}

/// This machine is asked twice, what it said is kept, and evaluated again as it was.
#[test]
fn what_was_read_is_recorded_and_compared_again() {
    let place = Place::new();
    let spec = "cluster: here\n\
                fabric: { kind: rocev2 }\n\
                ssh: { address: local }\n\
                nodes: [{ name: n1, nics: { model: soft-roce, netdev: lo } }]\n\
                switches: [{ name: leaf1 }]\n\
                cabling: cabling.csv\n";
    place.write("inv/cluster.yaml", spec).write(
        "inv/cabling.csv",
        "host,nic,switch,port\nn1,lo,leaf1,Ethernet0\n",
    );
    let live = place
        .command(&[
            "verify",
            "fabric",
            "inv",
            "--for",
            "1s",
            "--record",
            "seen.json",
            "--json",
        ])
        .output()
        .unwrap();
    assert_eq!(
        live.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&live.stderr)
    );
    let live: Value = serde_json::from_slice(&live.stdout).unwrap();
    assert!(
        live["seconds"]
            .as_f64()
            .is_some_and(|seconds| (0.9..60.0).contains(&seconds)),
        "{live}"
    );
    assert_eq!(
        live["findings"][0]["says"],
        "leaf: the spec does not say how it is reached (`ssh`)"
    );
    let again = place
        .command(&[
            "verify",
            "fabric",
            "inv",
            "--observations",
            "seen.json",
            "--json",
        ])
        .output()
        .unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(
        (&again["links"], &again["recorded_at"]),
        (&live["links"], &"2026-01-01T00:00:00Z".into())
    );
    let refused = place.run(&["verify", "fabric", "inv", "--record", "seen.json"]);
    assert!(
        refused.contains("RW1046") && refused.ends_with("--- exit 4 ---\n"),
        "{refused}"
    );
}
