//! The fields of a workload of the spec: what its kind does not have, and what it needs. They are
//! reported beside what is wrong with its values, so that nothing waits for another correction.

use railwright_base::{Diagnostic, Label};
use railwright_knowledge::spec::LoadedSpec;
use railwright_knowledge::spec::model::{Workload, WorkloadKind};

const OF_RAY: [&str; 5] = ["devices", "hosts", "host_network", "network", "ray_version"];
const OF_ACS: [&str; 5] = ["model", "compute_class", "command", "app", "container"];

/// What is wrong with the fields of a workload.
pub(super) fn check_workload_fields(
    loaded: &LoadedSpec,
    index: usize,
    workload: &Workload,
) -> Vec<Diagnostic> {
    let (others, other) = match workload.kind {
        WorkloadKind::Acs => (OF_RAY, WorkloadKind::Ray.word()),
        WorkloadKind::Ray => (OF_ACS, WorkloadKind::Acs.word()),
    };
    let kind = workload.kind.word();
    let path = format!("workloads[{index}]");
    let mut found: Vec<Diagnostic> = Vec::new();
    for field in others {
        let Some(label) = loaded.key_label(&format!("{path}.{field}"), "not of this kind") else {
            continue;
        };
        let error = new_field_error(
            format!("a workload of the kind `{kind}` has no `{field}`"),
            "it would be left out without a word",
            [Some(label)],
        );
        found.push(error.next(format!("take it out; it is of the kind `{other}`")));
    }
    if workload.kind == WorkloadKind::Acs && workload.command.is_empty() {
        let error = new_field_error(
            "a workload of the kind `acs` needs a `command`".to_owned(),
            "the container would run what its image runs by itself, which nobody here knows",
            [loaded.label_around(&format!("{path}.command"), "without `command`")],
        );
        found.push(error.next("say what the container runs: `command: [sleep, 1000h]`"));
    }
    if workload.without_rdma && !workload.devices.is_empty() {
        let labels = [
            loaded.label_around(&format!("{path}.devices"), "asked for"),
            loaded.label_around(&format!("{path}.without_rdma"), "and not wanted"),
        ];
        let error = new_field_error(
            "a workload without RDMA asks for RDMA devices".to_owned(),
            "one of both is not meant",
            labels,
        );
        found.push(error.next("leave out `without_rdma`, or `devices`"));
    }
    found
}

/// The workload as its kind has it, without what was reported as none of it.
pub(super) fn clear_foreign_fields(workload: &Workload) -> Workload {
    let mut own = workload.clone();
    match own.kind {
        WorkloadKind::Acs => {
            (own.devices, own.hosts, own.network, own.ray_version) = Default::default();
            own.host_network = false;
        }
        WorkloadKind::Ray => {
            (
                own.model,
                own.compute_class,
                own.command,
                own.app,
                own.container,
            ) = Default::default()
        }
    }
    own
}

fn new_field_error(
    message: String,
    effect: &str,
    labels: impl IntoIterator<Item = Option<Label>>,
) -> Diagnostic {
    labels.into_iter().flatten().fold(
        Diagnostic::error("RW0181", message).effect(effect),
        Diagnostic::labelled,
    )
}
