//! Talking to a machine over SSH, with its pinned host key and nothing of the user's own
//! configuration.

use super::event::LabStep;
use super::folder::{LabFolder, machine_name};
use super::machine::LabMachine;
use super::{Result, state::LabState};
use railwright_base::{Diagnostic, quote, text};
use railwright_system::clock::{self, Stopwatch};
use railwright_system::process::Program;

/// `ssh` to machine `number` as root, up to and without the remote command.
pub fn ssh_program(folder: &LabFolder, number: u8) -> Program {
    let known_hosts = format!("UserKnownHostsFile=\"{}\"", folder.known_hosts().display());
    Program::new("ssh")
        .arguments(["-F", "/dev/null", "-i"])
        .argument(folder.identity().to_string_lossy())
        .arguments(["-p", &folder.ssh_port(number).to_string()])
        .arguments([
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "StrictHostKeyChecking=yes",
            "-o",
            "GlobalKnownHostsFile=/dev/null",
        ])
        .arguments([
            "-o",
            &known_hosts,
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=10",
            "-o",
            "LogLevel=ERROR",
        ])
        .arguments([
            "-o",
            "ServerAliveInterval=15",
            "-o",
            "ServerAliveCountMax=8",
        ])
        .argument("root@127.0.0.1")
}

/// The number of a machine by name.
pub fn number_of(state: &LabState, name: &str) -> Result<u8> {
    (1..=state.machines)
        .find(|number| machine_name(*number) == name)
        .ok_or_else(|| {
            let names: Vec<String> = (1..=state.machines).map(machine_name).collect();
            Diagnostic::error(
                "RW0910",
                format!("the lab has no machine `{}`", text::one_line(name, 60)),
            )
            .state(format!("it has {}", names.join(", ")))
            .into()
        })
}

/// Runs a script in a machine, built again for each attempt, until it succeeds or the step's limit
/// is over.
pub fn run_when_it_answers(
    machine: &LabMachine<'_>,
    script: &dyn Fn() -> String,
    step: LabStep,
) -> Result<()> {
    let watch = Stopwatch::start();
    let mut said = String::new();
    while watch.elapsed() < step.limit() {
        machine.expect_running()?;
        let program = ssh_program(machine.lab, machine.number)
            .argument(format!("sh -c {}", quote::quote_for_shell(&script())));
        match program.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                said =
                    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
            }
            Err(error) => said = error.to_string(),
        }
        clock::block_for(300);
    }
    Err(new_silent_machine_error(machine, step, &said))
}

fn new_silent_machine_error(
    machine: &LabMachine<'_>,
    step: LabStep,
    said: &str,
) -> Box<Diagnostic> {
    Diagnostic::error(
        "RW0905",
        format!(
            "not up and at rest within {} s, ten times what is usual",
            step.limit().as_secs()
        ),
    )
    .on(format!("lab machine {}", machine.name()))
    .effect(format!("it said last: {}", text::one_line(said, 200)))
    .state(format!(
        "QEMU runs; the end of the machine's serial line:\n{}",
        machine.last_words(10)
    ))
    .next(format!("see all of {}", machine.serial().display()))
    .next("railwright lab down")
    .next("railwright lab up")
    .into()
}
