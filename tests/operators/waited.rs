//! An operator that its module waits for while it is installed as its project says.

use crate::begun::{begun, ended, until_said};
use crate::cluster::Cluster;
use crate::rig::ControlPlane;

/// `module` is also what its Deployment is called; `install` the words of kubectl after `apply
/// --server-side`. No node can run the operator at first.
pub fn comes_while_it_is_waited_for(plane: &ControlPlane, module: &str, install: [&str; 2]) {
    let cluster = Cluster::new(plane, "admin");
    cluster.spec(
        "admin",
        &format!("modules: {{ {module}: {{ enabled: true }} }}\n"),
    );
    let mut run = begun(&cluster, &["apply", "inv", "--yes"]);
    until_said(&mut run, "waits: 0 of 1 there");
    plane.kubectl(&[&["apply", "--server-side"][..], &install].concat());
    until_said(
        &mut run,
        &format!("waits: 0 of 1; {module}: 0 of 1 pods are ready"),
    );
    plane.nodes(
        &["gpu1", "gpu2"],
        &[("nvidia.com/gpu", "8"), ("rdma/rdma_shared_device_a", "63")],
    );
    ended(run, 0);
    assert!(
        cluster
            .told(0, &["plan", "inv", "--detailed-exitcode"])
            .contains("No changes.")
    );
}
