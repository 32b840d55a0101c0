//! `interrupt_affinity` by tables: read results in, diff out.

use super::*;
use crate::test_support::{answered, resource};
use proptest::prelude::*;
use serde_json::json;

/// Four queues and an interrupt that the kernel manages, made by hand as the read's script prints
/// them.
const QUEUES: &str = "local_cpulist 0-1,8\n\
                      online 0-15\n\
                      irq\t40\t0-15\tmlx5_async0@pci:0000:3b:00.0\n\
                      irq\t41\t1\tmlx5_comp0@pci:0000:3b:00.0\n\
                      irq\t42\t0-15\tmlx5_comp1@pci:0000:3b:00.0\n\
                      irq\t43\t3\tmanaged\n\
                      irq\t44\t0\tmlx5_comp2@pci:0000:3b:00.0\n\
                      mode 644 /proc/irq/40/smp_affinity_list\n\
                      mode 644 /proc/irq/41/smp_affinity_list\n\
                      mode 644 /proc/irq/42/smp_affinity_list\n\
                      mode 444 /proc/irq/43/smp_affinity_list\n\
                      mode 644 /proc/irq/44/smp_affinity_list\n";

fn desired(cpus: &str) -> DesiredResource {
    resource(
        &InterruptAffinity,
        json!({ "netdev": "ens1", "cpus": cpus }),
    )
}

fn answers(resource: &DesiredResource, code: i32, out: &str, balancer: &str) -> ReadResults {
    let mut all = ReadResults::default();
    for read in InterruptAffinity.reads(resource) {
        let (code, out) = match read {
            Read::Interrupts { .. } => (code, out),
            Read::Unit { .. } => (0, balancer),
            _ => (1, ""),
        };
        all.merge(answered(&[(&read, code, out)]));
    }
    all
}

const STOPPED: &str = "LoadState=not-found\nActiveState=inactive\n";

fn bound(diff: &ResourceDiff) -> Vec<String> {
    let all = diff.actions.iter().filter_map(|action| match action {
        Action::SetInterrupts { interrupts } => Some(interrupts),
        _ => None,
    });
    all.flatten()
        .map(|bound| format!("{}:{}", bound.number, bound.cpus))
        .collect()
}

#[test]
fn interrupts_go_round_the_cpus_of_the_node_and_managed_ones_stay() {
    let resource = desired("numa-local");
    let found = InterruptAffinity.diff(&resource, &answers(&resource, 0, QUEUES, STOPPED));
    assert_eq!(
        bound(&found),
        ["40:0", "42:8"],
        "41 and 44 are where they belong, 43 is the kernel's"
    );
    let told = found.attributes["cpus"].actual.running.clone();
    assert_eq!(
        told,
        Some(Reading::is(
            "2 of 5 elsewhere: mlx5_async0@pci:0000:3b:00.0 on 0-15, mlx5_comp1@pci:0000:3b:00.0 \
             on 0-15"
        ))
    );
    let listed = desired("2,4-5");
    assert_eq!(
        bound(&InterruptAffinity.diff(&listed, &answers(&listed, 0, QUEUES, STOPPED))),
        ["40:2", "41:4", "42:5", "44:2"]
    );
}

#[test]
fn undo_binds_what_is_still_the_same_interrupt_as_before() {
    let resource = desired("numa-local");
    let before = InterruptAffinity
        .diff(&resource, &answers(&resource, 0, QUEUES, STOPPED))
        .before;
    assert!(InterruptAffinity.can_read_before(&before));
    let now = QUEUES
        .replace("40\t0-15", "40\t0")
        .replace("42\t0-15\tmlx5_comp1", "42\t8\tanother");
    let undo = InterruptAffinity.undo(&resource, &before, &answers(&resource, 0, &now, STOPPED));
    assert_eq!(bound(&undo), ["40:0-15"]);
    let done = InterruptAffinity.undo(&resource, &before, &answers(&resource, 0, QUEUES, STOPPED));
    assert!(done.is_met() && done.actions.is_empty(), "{done:?}");
}

#[test]
fn interrupts_that_cannot_be_read_are_not_bound_as_before() {
    let resource = desired("numa-local");
    let undo = |code| {
        let before = json!({ "interrupts": {} });
        InterruptAffinity.undo(&resource, &before, &answers(&resource, code, "", STOPPED))
    };
    let unknown = undo(2);
    assert!(
        unknown.only_unknown() && unknown.actions.is_empty(),
        "{unknown:?}"
    );
    assert!(undo(1).is_met(), "the netdev is gone");
}

#[test]
fn irqbalance_is_refused_or_waited_for() {
    let runs = "LoadState=loaded\nActiveState=active\n";
    let resource = desired("numa-local");
    let found = InterruptAffinity.diff(&resource, &answers(&resource, 0, QUEUES, runs));
    assert!(
        found
            .refusal
            .as_ref()
            .is_some_and(|why| why.contains("irqbalance: false"))
            && found.actions.is_empty()
    );
    let body = json!({ "netdev": "ens1", "cpus": "numa-local", "known_after": "systemd_unit/irqbalance.service" });
    let waits = super::super::test_support::resource(&InterruptAffinity, body);
    let found = InterruptAffinity.diff(&waits, &answers(&waits, 0, QUEUES, runs));
    assert_eq!(
        (found.known_after.as_deref(), found.refusal),
        (Some("systemd_unit/irqbalance.service"), None)
    );
    assert!(
        InterruptAffinity
            .diff(&resource, &answers(&resource, 0, QUEUES, "nonsense"))
            .has_unknown()
    );
}

#[test]
fn absent_not_applicable_and_unknown_are_three_things() {
    let resource = desired("numa-local");
    let look = |code, out: &str| {
        InterruptAffinity.diff(&resource, &answers(&resource, code, out, STOPPED))
    };
    assert_eq!(
        look(1, "").refusal.as_deref(),
        Some("there is no netdev ens1")
    );
    assert!(look(0, "none\n").is_met());
    let managed = look(0, &QUEUES.replace("mode 644", "mode 444"));
    let reading = managed.attributes["cpus"].actual.running.clone();
    assert!(
        matches!(reading, Some(Reading::NotApplicable(why)) if why.as_words().contains("manages"))
            && managed.is_met()
    );
    assert!(look(0, "irq\t40\t0\tx\n").has_unknown());
    let offline = desired("0,16");
    assert_eq!(
        InterruptAffinity
            .diff(&offline, &answers(&offline, 0, QUEUES, STOPPED))
            .refusal
            .as_deref(),
        Some("CPU 16 is not online on this host")
    );
}

#[test]
fn lists_of_cpus_are_what_the_kernel_takes() {
    assert_eq!(parse_cpu_list("0-2,8,1"), Some(vec![0, 1, 2, 8]));
    for bad in ["", "a", "3-1", "1-", "-1", "0-99999", "+1", "0;reboot"] {
        assert_eq!(parse_cpu_list(bad), None, "{bad}");
        assert_eq!(
            InterruptAffinity
                .check(&json!({ "netdev": "ens1", "cpus": bad }))
                .len(),
            1,
            "{bad}"
        );
    }
}

proptest! {
    #[test]
    fn no_answer_panics(out in "(local_cpulist |online |0-3|,|irq\t|41|\t|mode 444 \
                                /proc/irq/41/smp_affinity_list|none|\n\
                                ){0,40}", code in 0i32..3) {
        let resource = desired("numa-local");
        let found = InterruptAffinity.diff(&resource, &answers(&resource, code, &out, STOPPED));
        InterruptAffinity.undo(&resource, &found.before, &answers(&resource, code, &out, STOPPED));
    }
}
