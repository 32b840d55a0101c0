//! `railwright lab`: a small RDMA cluster of virtual machines, with no hardware.

use super::Exit;
use clap::{Args, Subcommand};
use railwright_base::Diagnostic;
use railwright_base::text::format_count;
use railwright_lab::{
    self as lab, Came, Flavour, LabEvent, LabFolder, LabRequest, LabStatus, Network,
};
use railwright_system::process::Program;
use std::io::Write as _;
use std::path::PathBuf;

/// A small RDMA cluster of virtual machines on this computer, with no hardware.
///
/// The machines are bare: no RDMA packages, no compiler; both come from a signed repository that
/// the lab serves to them. Their ConnectX-6 is fake: a kernel module above Soft-RoCE that
/// keeps all settings and enforces none. Its files lie in .lab (RAILWRIGHT_LAB_DIR); ports count
/// from 27200 (RAILWRIGHT_LAB_PORT).
#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    verb: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Start N machines in their bare state.
    Up {
        /// How many machines.
        #[arg(value_name = "N", default_value_t = 2)]
        machines: u8,
        /// Who owns the machines' interfaces.
        #[arg(long, value_enum, default_value_t)]
        network: Network,
        /// Memory of each machine, MiB; 512 by default, and 1024 for a node of Kubernetes.
        #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(256..=16384))]
        memory: Option<u32>,
        /// As nodes of a Kubernetes cluster, whose control plane runs on this computer.
        #[arg(long)]
        kubernetes: bool,
    },
    /// Show what runs.
    Status {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Log in to a machine, or run a command there.
    Ssh {
        /// The machine, such as node1.
        name: String,
        /// What to run there; a shell without it.
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Run kubectl against the lab's Kubernetes cluster.
    Kubectl {
        /// The arguments of kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Set all machines back to their bare state, in seconds.
    Reset,
    /// End the machines; what was changed in them is gone.
    Down,
    /// Serve the package repository (started by `up`).
    #[command(hide = true)]
    Serve {
        #[arg(long)]
        folder: PathBuf,
        #[arg(long)]
        port: u16,
    },
    /// Be the switch between more than two machines (started by `up`).
    #[command(hide = true)]
    Switch {
        #[arg(long)]
        ports: u8,
    },
}

/// Runs the command.
pub fn run(arguments: Lab) -> Exit {
    match run_lab_command(arguments.verb) {
        Ok(exit) => exit,
        Err(diagnostic) => {
            print_diagnostic(&diagnostic);
            // Another command holds the lab, or another lab is up: nothing was changed.
            if diagnostic.code == "RW0907" {
                Exit::Refused
            } else {
                Exit::Failed
            }
        }
    }
}

fn run_lab_command(verb: LabCommand) -> lab::Result<Exit> {
    let folder = LabFolder::from_environment()?;
    match verb {
        LabCommand::Up {
            machines,
            network,
            memory,
            kubernetes,
        } => {
            let memory_mib = memory.unwrap_or(if kubernetes { 1024 } else { 512 });
            let came = lab::bring_up_lab(
                &folder,
                LabRequest {
                    machines,
                    flavour: Flavour {
                        network,
                        kubernetes,
                    },
                    memory_mib,
                },
                &print_progress,
            )?;
            say_up(&folder, came)?;
        }
        LabCommand::Status { json } => show_status(&lab::read_lab_status(&folder)?, json),
        LabCommand::Ssh { name, command } => return log_in(&folder, &name, &command),
        LabCommand::Kubectl { arguments } => {
            return in_terminal(
                "kubectl",
                &lab::build_kubectl_program(&folder)?.arguments(arguments),
            );
        }
        LabCommand::Reset => {
            lab::reset_lab(&folder, &print_progress)?;
            print_result_line("all machines are in their bare state again");
        }
        LabCommand::Down => match lab::stop_lab(&folder)? {
            0 => print_result_line("no machine was running"),
            ended => print_result_line(&format!("{} ended", format_count(ended, "machine"))),
        },
        LabCommand::Serve { folder, port } => lab::serve_repository(&folder, port)?,
        LabCommand::Switch { ports } => lab::run_switch(&folder, ports)?,
    }
    Ok(Exit::Done)
}

fn log_in(folder: &LabFolder, name: &str, command: &[String]) -> lab::Result<Exit> {
    let number = lab::number_of(&lab::LabState::expect(folder)?, name)?;
    in_terminal("ssh", &lab::ssh_program(folder, number).arguments(command))
}

fn in_terminal(name: &str, program: &Program) -> lab::Result<Exit> {
    match program.with_terminal() {
        Ok(0) => Ok(Exit::Done),
        Ok(_) => Ok(Exit::Failed),
        Err(error) => {
            Err(Diagnostic::error("RW0905", format!("{name} cannot be run: {error}")).into())
        }
    }
}

fn say_up(folder: &LabFolder, came: Came) -> lab::Result<()> {
    let how = match came {
        Came::AlreadyUp => "the lab is up already",
        Came::FromSnapshot => "the lab is up, restored to its bare state",
        Came::FromBoot => "the lab is up",
    };
    print_result_line(how);
    let status = lab::read_lab_status(folder)?;
    show_status(&status, false);
    let inventory = if status.kubernetes.is_some() {
        "lab-kubernetes"
    } else {
        "lab"
    };
    for line in [
        "",
        &format!("host keys   {}", folder.known_hosts().display()),
        &format!("identity    {}", folder.identity().display()),
        &format!("signed by   {}", folder.repository_key().display()),
        "",
        &format!("next: railwright plan inventories/{inventory} -o lab.plan"),
    ] {
        print_result_line(line);
    }
    Ok(())
}

fn show_status(status: &LabStatus, json: bool) {
    if json {
        return print_result_line(&serde_json::to_string_pretty(status).unwrap_or_default());
    }
    let (Some(accelerator), Some(network)) = (status.accelerator, status.network) else {
        return print_result_line(&format!("no lab is up in {}", status.folder));
    };
    for machine in &status.machines {
        let state = match (machine.process, machine.resident_mib) {
            (Some(pid), Some(mib)) => format!("running, process {pid}, {mib} MiB"),
            (Some(pid), None) => format!("running, process {pid}"),
            (None, _) => "not running".to_owned(),
        };
        print_result_line(&format!(
            "{:<7} ssh 127.0.0.1:{}  fabric {}  {state}",
            machine.name, machine.ssh_port, machine.fabric
        ));
    }
    print_result_line(&format!(
        "machines    QEMU by {accelerator}, interfaces owned by {network}"
    ));
    print_result_line(
        "fabric NIC  ens1f0np0, a fake ConnectX-6 (kernel module fakecx): settings are \
         kept, not enforced",
    );
    let repository = status.repository.as_deref().unwrap_or("not served");
    print_result_line(&format!(
        "packages    {repository} (as the machines see it)"
    ));
    if let Some(cluster) = &status.kubernetes {
        print_result_line(&format!(
            "kubernetes  {}, {} MiB; kubeconfig {}",
            cluster.server, cluster.resident_mib, cluster.kubeconfig
        ));
    }
}

/// A line of the result; a closed pipe is no error.
fn print_result_line(line: &str) {
    let _ = writeln!(anstream::stdout(), "{line}");
}

/// What it waits for, and how long that usually takes.
fn print_progress(event: LabEvent) {
    let line = match event {
        LabEvent::Starts(step) => {
            let (least, most) = step.usual_s();
            format!(
                "{} ... usually {least}-{most} s, given up after {} s",
                step.text(),
                step.limit().as_secs()
            )
        }
        LabEvent::Ended(step, took) => {
            format!("{}: done in {:.1} s", step.text(), took.as_secs_f64())
        }
        LabEvent::Note(text) => format!("  {text}"),
    };
    let _ = writeln!(anstream::stderr(), "{line}");
}

fn print_diagnostic(diagnostic: &Diagnostic) {
    let mut text = format!("error[{}]: {}\n", diagnostic.code, diagnostic.message);
    let parts = [
        ("on", &diagnostic.subject),
        ("effect", &diagnostic.effect),
        ("state", &diagnostic.state),
    ];
    for (word, value) in parts {
        if let Some(value) = value {
            text.push_str(&format!("  {word}: {value}\n"));
        }
    }
    for next in &diagnostic.next {
        text.push_str(&format!("  next: {next}\n"));
    }
    let _ = write!(anstream::stderr(), "{text}");
}
