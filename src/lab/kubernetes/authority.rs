//! The cluster's own certificate authority and what it signs: everybody in the cluster is known by
//! a certificate, and trusts no other authority. Recreated for each cluster.

use crate::folder::{LabFolder, fabric_ip, machine_name, new_folder_error};
use crate::keys::expect_success;
use crate::machine::LabMachine;
use crate::{HOST_AS_SEEN_FROM_MACHINES, Result};
use railwright_base::quote;
use railwright_system::files;
use railwright_system::process::Program;

/// How long a cluster's certificates hold, days.
const DAYS: &str = "30";

/// Makes keys, certificates and kubeconfigs in the cluster's folder. Names and groups are those
/// that the API server and its authorizers expect (kubernetes.io, "PKI certificates and
/// requirements").
pub fn create_cluster_credentials(folder: &LabFolder, machines: &[LabMachine<'_>]) -> Result<()> {
    run_openssl(
        folder,
        &format!(
            "req -x509 {KEY} -days {DAYS} -subj /CN=railwright-lab -keyout ca.key -out ca.crt"
        ),
    )?;
    run_openssl(
        folder,
        "ecparam -name prime256v1 -genkey -noout -out accounts.key",
    )?;
    let server = format!(
        "IP:127.0.0.1,IP:{HOST_AS_SEEN_FROM_MACHINES},DNS:localhost,DNS:kubernetes.default.svc"
    );
    sign_certificate(folder, "server", "/CN=kube-apiserver", &server)?;
    sign_certificate(
        folder,
        "admin",
        "/O=system:masters/CN=railwright-lab",
        "DNS:admin",
    )?;
    sign_certificate(
        folder,
        "controllers",
        "/CN=system:kube-controller-manager",
        "DNS:controllers",
    )?;
    sign_certificate(
        folder,
        "scheduler",
        "/CN=system:kube-scheduler",
        "DNS:scheduler",
    )?;
    let here = format!("https://127.0.0.1:{}", folder.api_port());
    for (name, file) in [
        ("admin", "kubeconfig"),
        ("controllers", "controllers.kubeconfig"),
        ("scheduler", "scheduler.kubeconfig"),
    ] {
        write_cluster_file(folder, file, &render_kubeconfig(name, name, &here))?;
    }
    for machine in machines {
        let node = machine.name();
        let names = format!("DNS:{node},IP:{}", fabric_ip(machine.number));
        sign_certificate(
            folder,
            &node,
            &format!("/O=system:nodes/CN=system:node:{node}"),
            &names,
        )?;
    }
    Ok(())
}

/// The kubeconfig of a node, whose way to the API server is another; it names `node.crt` and
/// `node.key`.
pub fn node_kubeconfig(folder: &LabFolder, number: u8) -> String {
    render_kubeconfig(
        &machine_name(number),
        "node",
        &format!("https://{HOST_AS_SEEN_FROM_MACHINES}:{}", folder.api_port()),
    )
}

/// A file of the cluster's folder.
pub fn read_cluster_file(folder: &LabFolder, name: &str) -> Result<String> {
    let path = folder.path("kubernetes").join(name);
    let bytes =
        files::read_limited(&path, 1 << 16).map_err(|error| new_folder_error(&path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

fn sign_certificate(
    folder: &LabFolder,
    name: &str,
    subject: &str,
    alternative_names: &str,
) -> Result<()> {
    run_openssl(
        folder,
        &format!(
            "req {KEY} -subj {} -keyout {name}.key -out {name}.csr",
            quote::quote_for_shell(subject)
        ),
    )?;
    write_cluster_file(
        folder,
        &format!("{name}.ext"),
        &format!("subjectAltName={alternative_names}\nextendedKeyUsage=serverAuth,clientAuth\n"),
    )?;
    run_openssl(
        folder,
        &format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days {DAYS} \
             -extfile {name}.ext -out {name}.crt"
        ),
    )
}

fn run_openssl(folder: &LabFolder, words: &str) -> Result<()> {
    let program = Program::new("sh")
        .folder(&folder.path("kubernetes"))
        .arguments(["-c", &format!("umask 077; exec openssl {words}")]);
    expect_success("openssl", &program, b"").map(|_| ())
}

fn write_cluster_file(folder: &LabFolder, name: &str, text: &str) -> Result<()> {
    let path = folder.path("kubernetes").join(name);
    files::write_atomic(&path, text.as_bytes(), 0o600)
        .map_err(|error| new_folder_error(&path, &error))
}

/// Names its certificates as files beside it.
fn render_kubeconfig(name: &str, key_pair: &str, server: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters: [{{name: lab, cluster: {{server: \"{server}\", certificate-authority: \
         ca.crt}}}}]\n\
         users: [{{name: {name}, user: {{client-certificate: {key_pair}.crt, client-key: \
         {key_pair}.key}}}}]\n\
         contexts: [{{name: lab, context: {{cluster: lab, user: {name}}}}}]\n\
         current-context: lab\n"
    )
}
