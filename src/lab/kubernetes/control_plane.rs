//! The processes of the control plane on this computer, all on loopback.

use super::Programs;
use crate::Result;
use crate::event::LabStep;
use crate::folder::{LabFolder, new_folder_error};
use crate::machine::LabMachine;
use railwright_base::{Diagnostic, text};
use railwright_system::clock::{self, Stopwatch};
use railwright_system::process::{self, Program};
use railwright_system::{background, files};
use std::path::PathBuf;

/// The processes, in the order in which they start.
const PROCESSES: [&str; 4] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

const ETCD_ARGUMENTS: [&str; 5] = [
    "--data-dir",
    "store",
    "--unsafe-no-fsync",
    "--log-level",
    "warn",
];

const API_SERVER_ARGUMENTS: [&str; 31] = [
    // The address in the endpoints of the service `kubernetes`, which nothing here serves; without
    // it a default route is asked for.
    "--advertise-address",
    "192.0.2.1",
    "--cert-dir",
    ".",
    "--tls-cert-file",
    "server.crt",
    "--tls-private-key-file",
    "server.key",
    "--client-ca-file",
    "ca.crt",
    "--authorization-mode",
    "Node,RBAC",
    "--enable-admission-plugins",
    "NodeRestriction",
    "--allow-privileged=true",
    "--service-cluster-ip-range",
    "10.96.0.0/16",
    "--service-account-issuer",
    "https://kubernetes.default.svc",
    "--service-account-key-file",
    "accounts.key",
    "--service-account-signing-key-file",
    "accounts.key",
    "--kubelet-client-certificate",
    "admin.crt",
    "--kubelet-client-key",
    "admin.key",
    "--kubelet-certificate-authority",
    "ca.crt",
    "--kubelet-preferred-address-types",
    "Hostname",
];

const CONTROLLERS_ARGUMENTS: [&str; 9] = [
    "--kubeconfig",
    "controllers.kubeconfig",
    "--leader-elect=false",
    "--secure-port=0",
    "--use-service-account-credentials",
    "--service-account-private-key-file",
    "accounts.key",
    "--root-ca-file",
    "ca.crt",
];

const SCHEDULER_ARGUMENTS: [&str; 4] = [
    "--kubeconfig",
    "scheduler.kubeconfig",
    "--leader-elect=false",
    "--secure-port=0",
];

/// The records of the processes.
pub fn list_pid_files(folder: &LabFolder) -> Vec<PathBuf> {
    PROCESSES
        .iter()
        .map(|name| build_pid_file_path(folder, name))
        .collect()
}

/// Ends what runs, the store last.
pub fn stop_control_plane(folder: &LabFolder) -> Result<()> {
    list_pid_files(folder).iter().rev().try_for_each(|record| {
        background::end_background_process(record)
            .map(|_| ())
            .map_err(|error| new_folder_error(record, &error))
    })
}

/// Starts the processes and waits until the API server answers.
pub fn start_control_plane(
    folder: &LabFolder,
    programs: &Programs,
    machines: &[LabMachine<'_>],
) -> Result<()> {
    let [clients, peers] = folder
        .store_ports()
        .map(|port| format!("http://127.0.0.1:{port}"));
    start_process(folder, "etcd", etcd(programs, &clients, &peers))?;
    let api_server = api_server(folder, programs, &clients, machines)?;
    start_process(folder, "kube-apiserver", api_server)?;
    wait_until_it_answers(folder, programs)?;
    let controllers = programs
        .program("kube-controller-manager")
        .arguments(CONTROLLERS_ARGUMENTS);
    start_process(folder, "kube-controller-manager", controllers)?;
    let scheduler = programs
        .program("kube-scheduler")
        .arguments(SCHEDULER_ARGUMENTS);
    start_process(folder, "kube-scheduler", scheduler)
}

fn etcd(programs: &Programs, clients: &str, peers: &str) -> Program {
    let cluster = format!("default={peers}");
    programs
        .program("etcd")
        .arguments(ETCD_ARGUMENTS)
        .arguments([
            "--listen-client-urls",
            clients,
            "--advertise-client-urls",
            clients,
            "--listen-peer-urls",
            peers,
            "--initial-advertise-peer-urls",
            peers,
            "--initial-cluster",
            &cluster,
        ])
}

/// It reaches a kubelet by the name of its node, which in a file of its own is this computer: QEMU
/// forwards the kubelet's port.
fn api_server(
    folder: &LabFolder,
    programs: &Programs,
    store: &str,
    machines: &[LabMachine<'_>],
) -> Result<Program> {
    let names: String = machines
        .iter()
        .map(|machine| format!(" {}", machine.name()))
        .collect();
    let hosts = folder.path("kubernetes/hosts");
    files::write_atomic(
        &hosts,
        format!("127.0.0.1 localhost{names}\n").as_bytes(),
        0o644,
    )
    .map_err(|error| new_folder_error(&hosts, &error))?;
    let program = Program::new("unshare").argument(if process::is_root() { "-m" } else { "-rm" });
    let port = folder.api_port().to_string();
    Ok(program
        .arguments([
            "sh",
            "-c",
            "mount --bind hosts /etc/hosts && exec \"$0\" \"$@\"",
            &programs.path("kube-apiserver"),
        ])
        .arguments(["--etcd-servers", store])
        .arguments(["--bind-address", "127.0.0.1", "--secure-port", &port])
        .arguments(API_SERVER_ARGUMENTS))
}

fn start_process(folder: &LabFolder, name: &str, program: Program) -> Result<()> {
    let work = folder.path("kubernetes");
    let log = build_log_path(folder, name);
    background::start_background_process(
        &program.folder(&work),
        &log,
        &build_pid_file_path(folder, name),
    )
    .map_err(|error| new_folder_error(&log, &error))
}

fn wait_until_it_answers(folder: &LabFolder, programs: &Programs) -> Result<()> {
    let watch = Stopwatch::start();
    while watch.elapsed() < LabStep::Join.limit() {
        // The namespace comes a moment after the server says that it is ready.
        let asked = programs
            .kubectl(folder)
            .arguments(["get", "namespace", "default"])
            .output();
        if asked.is_ok_and(|output| output.status.success()) {
            return Ok(());
        }
        if let Some(gone) = PROCESSES[..2].iter().find(|name| {
            background::find_background_process(&build_pid_file_path(folder, name)).is_none()
        }) {
            return Err(new_control_plane_error(
                folder,
                &format!("{gone} ended"),
                gone,
            ));
        }
        clock::block_for(200);
    }
    Err(new_control_plane_error(
        folder,
        "it does not answer",
        PROCESSES[1],
    ))
}

fn build_pid_file_path(folder: &LabFolder, name: &str) -> PathBuf {
    folder.path("kubernetes").join(format!("{name}.pid"))
}

fn build_log_path(folder: &LabFolder, name: &str) -> PathBuf {
    folder.path("kubernetes").join(format!("{name}.log"))
}

fn new_control_plane_error(folder: &LabFolder, what: &str, process: &str) -> Box<Diagnostic> {
    let log = build_log_path(folder, process);
    let said = files::read_file_tail(&log, 600).unwrap_or_default();
    Diagnostic::error(
        "RW0905",
        format!(
            "the lab's control plane did not start: {what}: {}",
            text::one_line(&said, 300)
        ),
    )
    .state("the machines run, and are no nodes")
    .next(format!("see all of {}", log.display()))
    .next("railwright lab down")
    .next("railwright lab up --kubernetes")
    .into()
}
