//! The main job, as `make demo` shows it: plan, apply with a reboot and a gate, proof, drift,
//! fixing, removal.

use crate::rig::Rig;
use serde_json::{Value, json};

/// What the removed resources of the NIC have to come back to.
const SETTINGS: &str =
    "for o in pfc ets app; do dcb -j -N $o show dev ens1f0np0; done; ethtool -a ens1f0np0";

/// Everything that a plan must leave alone: what is managed, /etc, /boot, package state, modules,
/// units, our own folders. Modules come first, so that the questions that follow cannot hide one.
const SHOT: &str = r#"cut -d' ' -f1 /proc/modules | sort
find /etc /boot /usr/local /var/lib/railwright -xdev -printf '%p %y %m %U:%G %s %T@ %l\n' 2>/dev/null | sort
find /etc /boot -xdev -type f -print0 | sort -z | xargs -0 sha256sum
sha256sum /var/lib/dpkg/status; ls -l /var/lib/apt/lists
systemctl list-units --all --plain --no-legend --type=service,socket,target,timer,mount,path | awk '{ print $1, $2, $3, $4 }' | grep -v ^user
systemctl list-unit-files --plain --no-legend
ip -o link | sed 's/qlen.*//'; ip -o addr | sed 's/valid_lft.*//'; ls /sys/class/infiniband 2>/dev/null; ls -R /sys/kernel/config
for o in pfc ets app; do dcb -j -N $o show dev ens1f0np0; done; ethtool -a ens1f0np0
sysctl -a 2>/dev/null | grep -E '^net.ipv4.(neigh.default|conf.ens1f0np0)'; cat /proc/cmdline /proc/sys/kernel/random/boot_id
"#;

/// A file that was on node1 before railwright came, where one of its own goes.
const EARLIER: &str = "root - memlock 4096";
const LIMITS: &str = "/etc/security/limits.d/90-rdma.conf";

const LAB: &str = "inventories/lab";

/// The NIC's settings before anybody touched them.
pub fn settings(rig: &Rig) -> [String; 2] {
    let settings = rig.both_said(SETTINGS);
    assert!(
        settings
            .iter()
            .all(|said| said.contains("\"prio_pfc\":[false,false,false,false")),
        "{settings:?}"
    );
    settings
}

/// Law: plan, show, facts and drift change nothing on any target.
pub fn a_plan_changes_nothing(rig: &Rig) {
    rig.write_inventory(&rig.inventory());
    rig.said("node1", &format!("echo '{EARLIER}' >{LIMITS}"));
    let before = rig.both_said(SHOT);
    assert!(before.iter().all(|shot| shot.contains("fakecx")
        && shot.contains("/boot/grub/grub.cfg")
        && !shot.contains("iommu")));

    rig.told(0, &["validate", LAB]);
    let (screen, _) = rig.told(0, &["plan", LAB, "-o", "lab.plan"]);
    for part in [
        "REBOOT",
        "! node[1-2]      reboot, once",
        "packages, in one run",
        "node1 > node2",
        "2 hosts will reboot",
    ] {
        assert!(screen.contains(part), "{part} not in {screen}");
    }
    let (shown, _) = rig.told(0, &["show", "lab.plan"]);
    assert!(shown.contains("! node[1-2]      reboot, once"), "{shown}");
    assert!(
        rig.told(
            0,
            &["show", "lab.plan", "host/node1/kernel_parameter/iommu"]
        )
        .0
        .contains("write_file")
    );
    rig.told(2, &["plan", LAB, "--detailed-exitcode"]);
    rig.told(0, &["facts", LAB, "-o", "facts.json"]);
    rig.told(2, &["drift", LAB]);
    same(&before, &rig.both_said(SHOT));
    let runs = std::fs::read_dir(rig.folder().join(LAB).join(".railwright/runs"));
    assert!(
        runs.is_ok_and(|mut runs| runs.next().is_none()),
        "drift remembers the age of its findings, and no run was begun"
    );
}

fn same(before: &[String; 2], after: &[String; 2]) {
    for (before, after) in before.iter().zip(after) {
        let difference = similar::TextDiff::from_lines(before, after)
            .unified_diff()
            .context_radius(0)
            .to_string();
        assert_eq!(difference, "", "something changed");
    }
}

/// `apply` with the exit code `code`: its output, without the clock in front of each line.
pub fn applied(rig: &Rig, code: i32, words: &[&str]) -> Vec<String> {
    let (out, err) = rig.told(code, &[&["apply"], words].concat());
    let line = |line: &str| {
        line.split_once("  ")
            .map_or(line, |(_, rest)| rest)
            .trim()
            .to_owned()
    };
    (err + &out).lines().map(line).collect()
}

/// The resources that a run says it has changed: `node1  link ens1f0np0`.
fn changed(lines: &[String]) -> Vec<&str> {
    let mut done: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_suffix("  done"))
        .collect();
    done.sort_unstable();
    done
}

/// Canary first, one reboot a host, the gate before the second host is touched.
pub fn one_host_then_the_gate_then_the_other(rig: &Rig) {
    const BOOT: &str = "cat /proc/sys/kernel/random/boot_id";
    let before = rig.both_said(BOOT);
    let lines = applied(rig, 0, &["lab.plan", "--yes"]);
    let count = |text: &str| lines.iter().filter(|line| *line == text).count();
    for host in ["node1", "node2"] {
        assert_eq!(count(&format!("{host}  rebooting")), 1, "{lines:#?}");
        assert_eq!(count(&format!("{host}  gate passed")), 1, "{lines:#?}");
    }
    let passed = lines
        .iter()
        .position(|line| line == "node1  gate passed")
        .unwrap();
    let second = lines
        .iter()
        .position(|line| line.starts_with("node2") && line.ends_with("  done"))
        .unwrap();
    let last = lines
        .iter()
        .rposition(|line| line.starts_with("node1") && line.ends_with("  done"))
        .unwrap();
    assert!(last < passed && passed < second, "{lines:#?}");

    let after = rig.both_said(BOOT);
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| before != after && !after.is_empty()),
        "{before:?} {after:?}"
    );
    for cmdline in rig.both_said("cat /proc/cmdline") {
        assert!(
            cmdline.split(' ').any(|word| word == "iommu=pt"),
            "{cmdline}"
        );
    }
    let facts = rig.both_said(
        "cat /sys/class/net/ens1f0np0/mtu; ls /sys/class/infiniband; cat \
         /sys/kernel/config/rdma_cm/rocep193s0/ports/1/default_roce_tos; ulimit -l; command -v \
         ib_write_bw",
    );
    assert_eq!(
        facts,
        ["9000\nrocep193s0\n106\nunlimited\n/usr/bin/ib_write_bw"; 2]
    );
}

/// Real traffic in both directions, in the right class.
pub fn the_pair_is_proven(rig: &Rig) {
    let report = rig.json(0, &["verify", LAB, "--json"]);
    assert_eq!(report["verdict"], "passed", "{report:#}");
    let matrix = report["matrix"].as_array().unwrap();
    let pairs: Vec<_> = matrix
        .iter()
        .map(|cell| [&cell["from"], &cell["to"]])
        .collect();
    assert_eq!(
        json!(pairs),
        json!([["node1", "node2"], ["node2", "node1"]])
    );
    for cell in matrix {
        assert!(
            cell["bandwidth_gbps"].as_f64().unwrap() > 0.02
                && cell["latency_us"].as_f64().unwrap() > 0.0,
            "{cell}"
        );
    }
    let results = report["results"].as_array().unwrap();
    let of = |check: &str| {
        results
            .iter()
            .filter(|result| result["check"] == check && result["verdict"] == "passed")
            .count()
    };
    for check in [
        "netdev",
        "rdma link",
        "gid",
        "path mtu",
        "dscp",
        "bandwidth",
        "latency",
        "counters",
        "module memlock/limit",
        "module iommu/command-line",
    ] {
        assert_eq!(of(check), 2, "{check}: {report:#}");
    }
    // What the proof has started is gone.
    let left = rig.both_said(
        "systemctl list-units --all --plain --no-legend 'railwright-*' | grep -v railwright-lab | \
         grep -v '@' ; ps -e -o comm= | grep -E '^ib_(write|read)'",
    );
    assert_eq!(left, ["", ""]);
}

/// Live rates of real traffic, which the proof starts meanwhile; a quiet fabric proves nothing.
pub fn traffic_is_watched(rig: &Rig) {
    let (quiet, _) = rig.told(
        3,
        &["watch", "traffic", LAB, "--every", "1s", "--for", "2s"],
    );
    assert!(
        quiet.contains("RW0823") && quiet.contains("ens1f0np0"),
        "{quiet}"
    );
    let report = std::thread::scope(|scope| {
        // Programs of the machines may be disturbed by a look each second: what the proof comes to
        // is another story's.
        let proof = scope.spawn(|| rig.railwright(&["verify", LAB]));
        let report = rig.json(
            0,
            &[
                "watch", "traffic", LAB, "--every", "1s", "--for", "25s", "--json",
            ],
        );
        proof.join().unwrap();
        report
    });
    let rails = report["rails"].as_array().unwrap();
    assert_eq!(
        (report["verdict"].as_str(), rails.len()),
        (Some("passed"), 2),
        "{report:#}"
    );
    for rail in rails {
        assert_eq!(rail["carried"], "both_ways", "{report:#}");
        assert_eq!(
            rail["most"]["sent"]["unit"], "packets_per_second",
            "Soft-RoCE counts packets: {report:#}"
        );
    }
}

/// The plan after it is empty, and a second apply does nothing.
pub fn nothing_is_left_to_do(rig: &Rig) {
    assert!(
        rig.told(0, &["plan", LAB, "--detailed-exitcode"])
            .0
            .contains("No changes.")
    );
    rig.told(0, &["drift", LAB]);
    let before = rig.both_said(SHOT);
    assert_eq!(changed(&applied(rig, 0, &[LAB, "--yes"])), [""; 0]);
    same(&before, &rig.both_said(SHOT));
}

/// Drift names exactly what somebody did, and apply fixes exactly that.
pub fn what_was_changed_by_hand_is_found_and_mended(rig: &Rig) {
    rig.said(
        "node1",
        "ip link set ens1f0np0 mtu 1500; dcb pfc set dev ens1f0np0 prio-pfc all:off",
    );
    rig.said(
        "node2",
        &format!("echo '* hard memlock 64' >{LIMITS}; modprobe -r rdma_ucm"),
    );
    let report = rig.json(2, &["drift", LAB, "--json"]);
    let row = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(finding["last_applied"], finding["desired"], "{finding:#}");
        (
            text("address"),
            text("plane"),
            text("reason"),
            finding["desired"].clone(),
            finding["actual"].clone(),
        )
    };
    let actual: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect();
    let ours = actual
        .iter()
        .find(|row| row.0.contains("90-rdma"))
        .map(|row| row.3.clone())
        .unwrap_or_default();
    assert!(
        ours["is"]
            .as_str()
            .unwrap()
            .contains("* hard memlock unlimited"),
        "{ours}"
    );
    let limits = LIMITS.replace('/', "%2F");
    let finding = |address: &str, plane: &str, desired: Value, actual: Value| {
        (
            format!("host/{address}"),
            plane.to_owned(),
            "changed_outside".to_owned(),
            desired,
            actual,
        )
    };
    let desired = vec![
        finding(
            "node1/link/ens1f0np0#mtu",
            "running",
            json!({ "is": 9000 }),
            json!({ "is": 1500 }),
        ),
        finding(
            "node1/link_qos/ens1f0np0#pfc",
            "running",
            json!({ "is": [3] }),
            json!({ "is": [] }),
        ),
        finding(
            &format!("node2/file/{limits}#content"),
            "persisted",
            ours,
            json!({ "is": "* hard memlock 64\n" }),
        ),
        finding(
            "node2/kernel_module/rdma_ucm#loaded",
            "running",
            json!({ "is": true }),
            json!("absent"),
        ),
    ];
    assert_eq!(actual, desired);

    let lines = applied(rig, 0, &[LAB, "--yes"]);
    let fixed = [
        "node1  link ens1f0np0",
        "node1  link_qos ens1f0np0",
        &format!("node2  file {LIMITS}"),
        "node2  kernel_module rdma_ucm",
    ];
    assert_eq!(changed(&lines), fixed, "{lines:#?}");
    rig.told(0, &["plan", LAB, "--detailed-exitcode"]);
    let fixed = rig.said(
        "node2",
        &format!(
            "ulimit -l; grep -c unlimited {LIMITS}; cut -d' ' -f1 /proc/modules | grep -x rdma_ucm"
        ),
    );
    assert_eq!(fixed, "unlimited\n4\nrdma_ucm");
    assert_eq!(
        rig.said(
            "node1",
            "cat /sys/class/net/ens1f0np0/mtu; dcb pfc show dev ens1f0np0 | grep -o 3:on"
        ),
        "9000\n3:on"
    );
}

/// A lossless class and a module leave the spec: what was there before comes back, a file of
/// somebody else's too.
pub fn what_leaves_the_spec_is_taken_back(rig: &Rig, bare: &[String; 2]) {
    let whole = rig.inventory();
    let without: String = whole
        .lines()
        .filter(|line| !line.contains("lossless:"))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_ne!(without, whole);
    rig.write_inventory(&format!(
        "{without}modules: {{ memlock: {{ enabled: false }} }}\n"
    ));
    let (screen, _) = rig.told(2, &["plan", LAB, "--detailed-exitcode"]);
    assert_eq!(
        screen.matches("removed from spec").count(),
        screen.matches("\n - ").count(),
        "{screen}"
    );
    for part in [
        "link_qos ens1f0np0",
        "configfs_value ens1f0np0.default_roce_tos",
        LIMITS,
        "removed from spec",
    ] {
        assert!(screen.contains(part), "{part} not in {screen}");
    }
    applied(rig, 0, &[LAB, "--yes"]);
    assert_eq!(&rig.both_said(SETTINGS), bare);
    let files = format!(
        "cat {LIMITS} 2>/dev/null; find /etc/systemd/system.conf.d /etc/railwright \
         /etc/udev/rules.d -type f 2>/dev/null; d=/sys/kernel/config/rdma_cm/rocep193s0; mkdir -p \
         $d; cat $d/ports/1/default_roce_tos"
    );
    let [one, two] = rig.both_said(&files);
    assert!(
        one.starts_with(EARLIER) && !two.contains("memlock"),
        "{one}\n{two}"
    );
    for said in [one, two] {
        assert!(
            !said.contains("link-qos") && !said.contains("90-rdma") && said.ends_with("\n0"),
            "{said}"
        );
    }
    assert!(
        rig.told(0, &["plan", LAB, "--detailed-exitcode"])
            .0
            .contains("No changes.")
    );
    rig.told(0, &["drift", LAB]);
    rig.write_inventory(&whole);
}
