//! What a gate of a rollout has to prove besides: NCCL's tests, which need a program, sizes that it
//! takes, and two hosts that can run it.

use super::{SpecChecker, new_spec_error};
use crate::spec::hosts::Host;
use crate::spec::model::Spec;
use crate::spec::nccl;

/// The words of `rollout.gate.nccl`.
pub fn check_gate_nccl_tests(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let Some(tests) = spec
        .rollout
        .gate
        .as_ref()
        .and_then(|gate| gate.nccl.as_ref())
    else {
        return;
    };
    for fault in tests.faults() {
        let finding = new_spec_error(
            "RW1300",
            fault.message,
            "the gate would prove nothing, and no wave would begin after the first",
            fault.fix,
        );
        checker.find(
            &format!("rollout.gate.nccl.{}", fault.key),
            fault.label,
            finding,
        );
    }
}

/// Whether there are hosts between which they can run.
pub fn check_hosts(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let is_asked = spec
        .rollout
        .gate
        .as_ref()
        .is_some_and(|gate| gate.nccl.is_some());
    if !is_asked
        || nccl::group_hosts_by_gpu(spec, hosts, |_| true)
            .values()
            .any(|hosts| hosts.len() > 1)
    {
        return;
    }
    let finding = new_spec_error(
        "RW1305",
        "the gate asks for NCCL's tests, and no two hosts with GPUs of one sort are reached over \
         SSH",
        "nothing of NCCL would ever be proven between two waves",
        "write the GPUs of the nodes (gpu: { model: ..., count: 8 }), or take `nccl` out of the \
         gate",
    );
    checker.find("rollout.gate.nccl", "between which hosts", finding);
}
