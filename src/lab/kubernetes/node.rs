//! A machine becomes a node: its certificate and settings come over SSH, and its kubelet starts.

use super::authority;
use crate::folder::fabric_ip;
use crate::machine::LabMachine;
use crate::{Result, assets, guest};
use railwright_base::{Diagnostic, text};

/// Writes what a kubelet needs into the machine and starts it. Keys travel on standard input, so
/// that no list of processes has them.
pub fn join_node(machine: &LabMachine<'_>, nodes: usize) -> Result<()> {
    let mut script = "set -eu; umask 077; mkdir -p /etc/kubernetes /etc/cni/net.d\n".to_owned();
    for (path, content) in read_node_files(machine, nodes)? {
        script.push_str(&format!(
            "cat >{path} <<'END-OF-FILE'\n{content}\nEND-OF-FILE\n"
        ));
    }
    script.push_str("systemctl start kubelet\n");
    let said = match guest::ssh_program(machine.lab, machine.number)
        .argument("sh -s")
        .output_of(script.as_bytes())
    {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let name = machine.name();
    Err(Diagnostic::error(
        "RW0905",
        format!("its kubelet did not start: {}", text::one_line(&said, 300)),
    )
    .on(format!("lab machine {name}"))
    .state("the machine and the control plane run")
    .next(format!(
        "railwright lab ssh {name} -- journalctl -u kubelet -u containerd"
    ))
    .next("railwright lab down")
    .next("railwright lab up --kubernetes")
    .into())
}

/// The files of a node by their paths in the machine, in the order in which they are written.
fn read_node_files(machine: &LabMachine<'_>, nodes: usize) -> Result<[(&'static str, String); 7]> {
    let (folder, number, name) = (machine.lab, machine.number, machine.name());
    let port = folder.kubelet_port(number).to_string();
    let read = |file: &str| authority::read_cluster_file(folder, file);
    let settings = |file: &str| {
        assets::read_asset_text(file)
            .replace("@PORT@", &port)
            .replace("@NUMBER@", &number.to_string())
    };
    let address = fabric_ip(number);
    let variables = format!("NAME={name}\nADDRESS={address}\nNODES={nodes}\n");
    Ok([
        ("/etc/kubernetes/ca.crt", read("ca.crt")?),
        ("/etc/kubernetes/node.crt", read(&format!("{name}.crt"))?),
        ("/etc/kubernetes/node.key", read(&format!("{name}.key"))?),
        (
            "/etc/kubernetes/kubelet.kubeconfig",
            authority::node_kubeconfig(folder, number),
        ),
        ("/etc/kubernetes/node.env", variables),
        (
            "/etc/cni/net.d/10-lab.conflist",
            settings("kubernetes/pods.conflist"),
        ),
        // The last: where it is, a boot starts the kubelet.
        (
            "/etc/kubernetes/kubelet.yaml",
            settings("kubernetes/kubelet.yaml"),
        ),
    ])
}
