//! What programs say of nodes, and what it comes to. The outputs are of iproute2 6.1 (`rdma -j link
//! show`, `ip -j route show`) and rdma-core (`ibv_devinfo`), with the names and metrics of an
//! instance with eRDMA.

use super::*;
use crate::kubernetes_object::request::NOT_SAID;
use crate::{AnswerStatus, ReadResult};
use railwright_base::{Address, Target};
use serde_json::json;
use std::sync::Arc;

const TWO: &str = r#"[{"ifindex":0,"ifname":"erdma_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eth0","netdev_index":2},
                      {"ifindex":1,"ifname":"erdma_1","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eth1","netdev_index":3}]"#;

fn devices() -> Value {
    json!({
        "name": "erdma-devices",
        "nodes": ["gpu1", "gpu2", "gpu3"],
        "pod": { "namespace": "ack-erdma-controller", "daemon_set": "alibabacloud-erdma-agent" },
        "argv": ["nsenter", "-t", "1", "-m", "--", "rdma", "-j", "link", "show"],
        "rows": { "of": { "field": "ifname", "begins": "erdma_" }, "count": { "gpu1": 2, "gpu2": 2, "gpu3": 1 }, "each": { "state": "ACTIVE" } },
    })
}

fn resource(body: Value) -> DesiredResource {
    let target = Target {
        kind: TargetKind::Kube,
        name: "prod".into(),
    };
    let address = Address {
        target,
        path: Arc::new(["node_probe".to_owned(), "x".to_owned()]),
        attribute: None,
    };
    DesiredResource::of(address, "node_probe", body)
}

fn ran(code: i32, out: &str, err: &str) -> ReadResult {
    let text = serde_json::to_string(&PodExecResult {
        code,
        out: out.to_owned(),
        err: err.to_owned(),
    })
    .unwrap();
    ReadResult {
        status: AnswerStatus::Exit(0),
        out: text,
    }
}

/// What is made of these answers, one a node.
fn told(body: Value, of_nodes: &[ReadResult]) -> (Reading, usize) {
    let resource = resource(body);
    let mut answers = ReadResults::default();
    for (read, answer) in NodeProbe.reads(&resource).iter().zip(of_nodes) {
        answers.insert(read.key(), answer.clone());
    }
    let diff = NodeProbe.diff(&resource, &answers);
    (
        diff.attributes[SAYS]
            .actual
            .get(Plane::Running)
            .unwrap()
            .clone(),
        diff.actions.len(),
    )
}

#[test]
fn every_node_has_the_devices_that_the_spec_says_and_they_are_active() {
    let one = |state: &str| {
        ran(
            0,
            &format!(
                r#"[{{"ifname":"erdma_0","port":1,"state":"{state}"}},{{"ifname":"mlx5_0","state":"DOWN"}}]"#
            ),
            "",
        )
    };
    let two = || ran(0, TWO, "");
    assert_eq!(
        told(devices(), &[two(), two(), one("ACTIVE")]),
        (Reading::is("3 nodes in sync"), 0)
    );
    let found = told(devices(), &[two(), one("ACTIVE"), one("DOWN")]);
    let words = "1 of 3 nodes in sync; gpu2: 1 erdma_* instead of 2; gpu3: erdma_0 has state \
                 DOWN instead of ACTIVE";
    assert_eq!(found, (Reading::is(words), 1), "and it is waited for");
    let none =
        "0 of 3 nodes in sync; gpu3: 0 erdma_* instead of 1; gpu[1-2]: 0 erdma_* instead of 2";
    assert_eq!(
        told(
            devices(),
            &[ran(0, "[]", ""), ran(0, "", ""), ran(0, "[ ]\n", "")]
        ),
        (Reading::is(none), 1)
    );
}

#[test]
fn what_nobody_can_say_is_unknown_and_why() {
    let answer = |code: i32, out: &str| ReadResult {
        status: AnswerStatus::Exit(code),
        out: out.to_owned(),
    };
    let two = || ran(0, TWO, "");
    let absent = || answer(ABSENT, "no pod of it is there");
    let denied = || ReadResult {
        status: AnswerStatus::Denied,
        out: "verb create, resource pods/exec, API group \"\", namespace n\n".to_owned(),
    };
    let (unknown, waits) = told(devices(), &[absent(), absent(), absent()]);
    assert_eq!(
        (unknown, waits),
        (
            Reading::Unknown("gpu[1-3]: no pod of it is there".into()),
            1
        ),
        "the agent may come"
    );
    let (unknown, waits) = told(devices(), &[denied(), denied(), denied()]);
    let Reading::Unknown(why) = unknown else {
        panic!("{unknown:?}")
    };
    assert!(
        why.as_words().contains("pods/exec") && waits == 0,
        "no time brings a right: {why}"
    );
    let (unknown, waits) = told(
        devices(),
        &[
            two(),
            two(),
            answer(NOT_SAID, "error dialing backend: \u{1b}[2J"),
        ],
    );
    assert_eq!(
        (unknown, waits),
        (
            Reading::Unknown("gpu3: error dialing backend: \u{fffd}[2J".into()),
            0
        )
    );
    let both = told(devices(), &[ran(0, "[]", ""), absent(), two()]);
    let words = "0 of 3 nodes in sync; gpu1: 0 erdma_* instead of 2; gpu3: 2 erdma_* instead of \
                 1; unknown: gpu2: no pod of it is there";
    assert_eq!(both.0, Reading::is(words));
    for (strange, why) in [
        (ran(0, "{}", ""), "its output is no list in JSON"),
        (ran(0, "<html>", ""), "its output is no list in JSON"),
        (answer(0, "x"), "what came back is no answer of a program"),
        (
            ran(
                1,
                "",
                "nsenter: reassociate to namespace 'ns/mnt' failed: Operation not permitted\n",
            ),
            "`nsenter -t 1 -m -- rdma -j link show` ended with exit status 1: nsenter: reassociate \
             to namespace 'ns/mnt' failed: Operation not permitted",
        ),
    ] {
        assert_eq!(
            told(devices(), &[two(), two(), strange]).0,
            Reading::Unknown(format!("gpu3: {why}").into())
        );
    }
}

#[test]
fn an_exit_status_may_say_something_of_the_node() {
    let body = json!({ "name": "eadm", "nodes": ["a"], "pod": { "namespace": "n", "daemon_set": "d" }, "argv": ["eadm", "ver"],
                       "exits": { "127": "eadm is not installed" } });
    assert_eq!(NodeProbe.check(&body), []);
    assert_eq!(
        told(body.clone(), &[ran(0, "1.2.3\n", "")]),
        (Reading::is("1 node in sync"), 0)
    );
    assert_eq!(
        told(body.clone(), &[ran(127, "", "x")]),
        (
            Reading::is("0 of 1 node in sync; a: eadm is not installed"),
            1
        )
    );
    assert_eq!(
        told(body, &[ran(2, "", "")]).0,
        Reading::Unknown("a: `eadm ver` ended with exit status 2: it says nothing".into())
    );
}

#[test]
fn lines_of_a_text_are_counted_by_how_they_begin() {
    let text = "hca_id:\terdma_0\n\
                \ttransport:\t\t\teRDMA (1)\n\
                \t\tport:\t1\n\
                \t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\
                \t\t\tmax_mtu:\t\t4096 (5)\n";
    let body = |lines: Value| json!({ "name": "ibv", "nodes": ["a"], "pod": { "namespace": "n", "daemon_set": "d" }, "argv": ["ibv_devinfo"], "lines": lines });
    let desired = json!([{ "begin": "hca_id: erdma_", "count": { "a": 1 } }, { "begin": "state: PORT_ACTIVE", "count": 1 }]);
    assert_eq!(
        told(body(desired.clone()), &[ran(0, text, "")]).0,
        Reading::is("1 node in sync")
    );
    let down = told(
        body(desired),
        &[ran(0, &text.replace("ACTIVE (4)", "DOWN (1)"), "")],
    );
    assert_eq!(
        down.0,
        Reading::is("0 of 1 node in sync; a: 0 lines begin with `state: PORT_ACTIVE` instead of 1")
    );
    assert_eq!(
        told(body(json!([{ "begin": "port:" }])), &[ran(0, text, "")]).0,
        Reading::is("1 node in sync")
    );
    let not_said = told(
        body(json!([{ "begin": "port:", "count": { "b": 1 } }])),
        &[ran(0, text, "")],
    );
    assert_eq!(
        not_said.0,
        Reading::Unknown("a: what is expected of this node is not said".into())
    );
}

#[test]
fn routes_of_attached_interfaces_give_way_to_the_others() {
    let routes = |routes: &str, netdevs: Value| {
        let body = json!({
            "name": "routes", "nodes": ["a"], "pod": { "namespace": "n", "daemon_set": "d" }, "argv": ["ip", "-j", "route", "show"],
            "rows": { "of": { "field": "dev", "is": { "a": netdevs } }, "above": { "field": "metric", "within": "dst" } },
        });
        assert_eq!(NodeProbe.check(&body), []);
        told(body, &[ran(0, routes, "")]).0
    };
    let eth0 = r#"{"dst":"default","gateway":"10.0.0.253","dev":"eth0","protocol":"dhcp","metric":100,"flags":[]}"#;
    let net = |dev: &str, metric: &str| {
        format!(r#"{{"dst":"10.0.0.0/24","dev":"{dev}","scope":"link"{metric}}}"#)
    };
    let eth1 = |metric: u32| {
        format!(
            r#"{{"dst":"default","gateway":"10.0.0.253","dev":"eth1","metric":{metric},"flags":[]}}"#
        )
    };
    let good = format!(
        "[{eth0},{},{},{}]",
        eth1(200),
        net("eth0", ""),
        net("eth1", r#","metric":200"#)
    );
    for netdevs in [json!(["eth1"]), json!(["eth0", "eth1"]), json!(["eth7"])] {
        assert_eq!(routes(&good, netdevs), Reading::is("1 node in sync"));
    }
    let equal = routes(&format!("[{eth0},{}]", eth1(100)), json!(["eth1"]));
    assert_eq!(
        equal,
        Reading::is(
            "0 of 1 node in sync; a: dst default: eth1 has metric 100, and eth0 has metric 100"
        )
    );
    let first = routes(&format!("[{eth0},{}]", eth1(50)), json!(["eth1"]));
    assert_eq!(
        first,
        Reading::is(
            "0 of 1 node in sync; a: dst default: eth1 has metric 50, and eth0 has metric 100"
        )
    );
    let both = routes(
        &format!("[{},{}]", net("eth0", ""), net("eth1", "")),
        json!(["eth0", "eth1"]),
    );
    assert_eq!(
        both,
        Reading::is(
            "0 of 1 node in sync; a: dst 10.0.0.0/24: eth0 has metric 0, and eth1 has metric 0"
        )
    );
    // A number that is written as a text is none, on whichever row it stands.
    for (from, to) in [
        ("\"metric\":200,\"flags", "\"metric\":\"200\",\"flags"),
        ("\"metric\":100", "\"metric\":\"900\""),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good);
        assert!(
            matches!(routes(&text, json!(["eth1"])), Reading::Unknown(_)),
            "{text}"
        );
    }
}

#[test]
fn a_body_that_says_too_little_is_refused() {
    let errors = |field: &str, value: Value| {
        let mut body = devices();
        body[field] = value;
        NodeProbe
            .check(&body)
            .into_iter()
            .map(|error| error.pointer)
            .collect::<Vec<_>>()
    };
    assert_eq!(NodeProbe.check(&devices()), []);
    assert_eq!(errors("name", json!("a b")), ["/name"]);
    assert_eq!(errors("nodes", json!([])), ["/nodes"]);
    assert_eq!(errors("nodes", json!("gpu1")), ["/nodes"]);
    assert_eq!(errors("argv", json!([])), ["/argv"]);
    assert_eq!(errors("argv", json!("rdma link")), ["/argv"]);
    assert_eq!(errors("pod", Value::Null), [""]);
    assert_eq!(errors("pod", json!({ "namespace": "n" })), ["/pod"]);
    assert_eq!(
        errors("pod", json!({ "namespace": "../n", "daemon_set": "d" })),
        ["/pod/namespace"]
    );
    assert_eq!(
        errors("rows", json!({ "of": { "field": "x" }, "cuont": 1 })),
        ["/rows/cuont"]
    );
    assert_eq!(
        errors("lines", json!([{ "begin": "x", "count": "many" }])),
        ["/lines/0/count"]
    );
    assert_eq!(errors("within_s", json!(0)), ["/within_s"]);
}

#[test]
fn a_field_of_another_type_is_told_at_its_place() {
    let told = |field: &str, value: Value| {
        let mut body = devices();
        body[field] = value;
        let error = NodeProbe.check(&body).pop().unwrap();
        (error.message, error.help.unwrap_or_default())
    };
    let rows = told("rows", json!({ "of": { "field": "x" }, "cuont": 1 }));
    assert_eq!(
        rows,
        (
            "unknown field `cuont`".to_owned(),
            "did you mean `count`?".to_owned()
        )
    );
    let lines = told("lines", json!([{ "begin": "x", "count": "many" }]));
    assert_eq!(
        lines,
        (
            "`lines/0/count` must be a map or a whole number".to_owned(),
            "How many there have to be; one at least unless said.".to_owned()
        )
    );
    let exits = told("exits", json!({ "1": 2 }));
    assert_eq!(
        exits,
        (
            "`exits/1` must be text".to_owned(),
            "What an exit status says of the node, in words. Any other than these and 0 says \
             nothing of it."
                .to_owned()
        )
    );
}

#[test]
fn it_needs_leave_to_run_programs_in_that_namespace_alone() {
    let rights = NodeProbe.rights(&resource(devices()));
    let told: Vec<(Option<&str>, &str, &str)> = rights
        .iter()
        .map(|(right, _)| {
            (
                right.namespace.as_deref(),
                right.resource.as_str(),
                right.verb.word(),
            )
        })
        .collect();
    let namespace = Some("ack-erdma-controller");
    assert_eq!(
        told,
        [
            (namespace, "pods", "list"),
            (namespace, "pods/exec", "get"),
            (namespace, "pods/exec", "create")
        ]
    );
}
