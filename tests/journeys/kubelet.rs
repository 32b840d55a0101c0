//! The static CPU policy of a kubelet that is ours: a fake refuses what the kubelet refuses at
//! its start.

use crate::fixture::repository;
use crate::machine::Machine;

const UNIT: &str = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/kubelet\n";
const CONFIG: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\n\
                      cpuManagerPolicy: none\n\
                      kind: KubeletConfiguration\n\
                      maxPods: 200";

fn kubelet() -> Option<Machine> {
    let [systemctl, kubelet] =
        ["systemctl", "kubelet"].map(|tool| repository("tests/fakes").join(tool));
    let machine = Machine::start(
        "a kubelet",
        "",
        &[
            (&systemctl, "usr/bin/systemctl"),
            (&kubelet, "usr/bin/kubelet"),
        ],
    )?;
    let place = &machine.place;
    let spec = std::fs::read_to_string(place.path().join("inv/cluster.yaml")).unwrap();
    std::fs::remove_dir_all(place.path().join("inv/modules")).unwrap();
    place.write(
        "inv/cluster.yaml",
        format!(
            "{spec}modules: {{ kubelet-cpu-policy: {{ enabled: true, parameters: {{ owned: true }} \
             }} }}\n"
        ),
    );
    machine.host.must(&format!(
        "chmod 755 /usr/bin/kubelet /usr/bin/systemctl; mkdir -p /var/lib/kubelet /etc/systemd/system
         printf '{UNIT}' >/etc/systemd/system/kubelet.service; printf '{CONFIG}' >/var/lib/kubelet/config.yaml; systemctl start kubelet"
    ));
    Some(machine)
}

#[test]
fn the_static_policy_is_set_on_an_empty_node_or_not_at_all() {
    let Some(machine) = kubelet() else { return };
    let state = |machine: &Machine| {
        machine
            .host
            .must("cat /var/lib/kubelet/cpu_manager_state; systemctl is-active kubelet")
    };
    assert!(state(&machine).starts_with("{\"policyName\":\"none\""));
    let plan = machine.run(&["plan", "inv"]);
    assert!(
        plan.contains("DRAIN") && plan.contains("command kubelet-cpu-policy"),
        "{plan}"
    );
    let said = machine.run(&["apply", "inv", "--yes"]);
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
    let desired = "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 200
cpuManagerPolicy: static
reservedSystemCPUs: \"0\"
topologyManagerPolicy: best-effort
";
    assert_eq!(
        machine.file("/var/lib/kubelet/config.yaml").as_deref(),
        Some(desired)
    );
    assert!(
        state(&machine).starts_with("{\"policyName\":\"static\"")
            && state(&machine).ends_with("active\n"),
        "{}",
        state(&machine)
    );
    assert!(machine.run(&["plan", "inv"]).contains("No changes."));

    // Somebody writes the file anew, as kubeadm does at an upgrade; the kubelet goes on with its
    // state.
    machine
        .host
        .must(&format!("printf '{CONFIG}' >/var/lib/kubelet/config.yaml"));
    let drift = machine.run(&["drift", "inv"]);
    assert!(
        drift.contains("command/kubelet-cpu-policy") && drift.ends_with("--- exit 2 ---\n"),
        "{drift}"
    );

    // A kubelet that does not take it has what it had before, and runs.
    let spec = std::fs::read_to_string(machine.place.path().join("inv/cluster.yaml")).unwrap();
    machine.place.write(
        "inv/cluster.yaml",
        spec.replace("owned: true", "owned: true, topology_policy: numa"),
    );
    let said = machine.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("the kubelet does not start; the kubelet has its configuration of before")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    assert_eq!(
        machine.file("/var/lib/kubelet/config.yaml").as_deref(),
        Some(CONFIG)
    );
    assert!(
        state(&machine).starts_with("{\"policyName\":\"none\"")
            && state(&machine).ends_with("active\n"),
        "{}",
        state(&machine)
    );
    assert_eq!(
        machine.file("/var/lib/kubelet/config.yaml.before-railwright"),
        None
    );
}
