//! What was asked for, checked against the fabric of the spec: on Alibaba Container Compute Service
//! there are no hosts and no device plugin, and RDMA comes by labels of the pods.

use super::asked::RequestPlaces;
use super::request::{Devices, JobRequest, Pods};
use railwright_base::Diagnostic;
use railwright_knowledge::spec::model::FabricKind;

/// All that does not go together.
pub(super) fn check_request_fabric(
    request: &JobRequest,
    fabric: FabricKind,
    asked: &RequestPlaces,
) -> Vec<Diagnostic> {
    let pods = request.pods();
    match request {
        JobRequest::Acs(_) => without_hosts(pods, asked),
        _ if fabric == FabricKind::Acs && pods.devices != Devices::None => {
            let message = format!(
                "pods of `{}` get no RDMA on Container Compute Service",
                request.kind().word()
            );
            let error = Diagnostic::error("RW1229", message)
                .effect(
                    "RDMA comes by labels of the pods there, which only `acs` gives; this job \
                     would go over TCP",
                )
                .next(asked.words(
                    "railwright job render acs; or --without-rdma, where that is meant",
                    "`kind: acs`; or `without_rdma: true`, where that is meant",
                ));
            vec![asked.at(asked.refused(error), "job.kind", "asked for here")]
        }
        _ => Vec::new(),
    }
}

/// What pods without a host that anybody knows cannot have.
fn without_hosts(pods: &Pods, asked: &RequestPlaces) -> Vec<Diagnostic> {
    let of_hosts = [
        ("job.host_network", "--host-network", pods.host_network),
        ("job.network", "--network", pods.network.is_some()),
        ("job.hosts", "--on", !pods.hosts.is_empty()),
        (
            "job.rdma",
            "--device",
            matches!(pods.devices, Devices::Said(_)),
        ),
    ];
    let mut errors = Vec::new();
    for (path, option, is_asked) in of_hosts {
        if !is_asked {
            continue;
        }
        let error = Diagnostic::error(
            "RW1221",
            format!("pods of Container Compute Service cannot have `{option}`"),
        )
        .effect("they have no host of yours, and RDMA comes by their labels")
        .next("leave it out");
        errors.push(asked.at(asked.refused(error), path, "has no meaning here"));
    }
    errors
}
