//! `railwright lab up`: from nothing to machines that answer, from the bare snapshot when there is
//! one.

use super::accelerator::{self, Accelerator};
use super::event::{LabEvent, LabStep, Listener, run_timed_step};
use super::folder::{LabFolder, new_folder_error};
use super::image::{self, Image};
use super::kubernetes::{self, Programs};
use super::machine::{BARE, LabMachine, Wire};
use super::recipe::Flavour;
use super::state::LabState;
use super::{Result, down, guest, keys, machine_range, monitor, programs, repository};
use railwright_base::Diagnostic;
use railwright_system::process::{self, Program};
use railwright_system::{background, clock, files};
use std::net::{TcpListener, TcpStream};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabRequest {
    /// How many machines.
    pub machines: u8,
    /// What they are.
    pub flavour: Flavour,
    /// Memory of each, MiB.
    pub memory_mib: u32,
}

/// How the lab came up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// It was up as desired; nothing was done.
    AlreadyUp,
    /// From the snapshot of the bare state.
    FromSnapshot,
    /// By a boot.
    FromBoot,
}

/// Brings the lab up. What an aborted run has left is ended first.
pub fn bring_up_lab(
    folder: &LabFolder,
    desired: LabRequest,
    listener: Listener<'_>,
) -> Result<Came> {
    machine_range(desired.machines).ok_or_else(|| too_many(desired.machines))?;
    programs::check_programs(desired.flavour)?;
    let _lock = folder.lock()?;
    if let Some(state) = LabState::read(folder)
        && is_lab_running(folder, &state)
    {
        return already_up(&state, desired);
    }
    if down::end_all(folder)? > 0 {
        listener(LabEvent::Note(
            "ended what was left of a lab here".to_owned(),
        ));
    }
    let cluster = Programs::ensure(folder, desired.flavour, listener)?;
    let image = image::ensure_image(
        folder,
        desired.flavour,
        cluster.as_ref().map(Programs::for_nodes).as_deref(),
        listener,
    )?;
    keys::prepare_keys(folder)?;
    run_timed_step(listener, LabStep::Repository, || {
        repository::publish_packages(folder, &image)
    })?;
    let accelerator = accelerator::choose_accelerator(folder, &image, listener)?;
    expect_free_ports(folder, desired)?;
    start_server(folder)?;
    let machines = list_lab_machines(folder, desired, accelerator);
    let came = start_machines(folder, &machines, &image, listener)?;
    let name = image
        .folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let state = LabState {
        machines: desired.machines,
        flavour: desired.flavour,
        memory_mib: desired.memory_mib,
        accelerator,
        image: name,
    };
    if let Some(programs) = cluster {
        kubernetes::start_cluster(folder, &programs, &machines, listener)?;
    }
    state.write(folder)?;
    Ok(came)
}

/// The machines of a lab.
pub fn list_lab_machines(
    lab: &LabFolder,
    desired: LabRequest,
    accelerator: Accelerator,
) -> Vec<LabMachine<'_>> {
    let wire = if desired.machines > 2 {
        Wire::Switch
    } else {
        Wire::Direct
    };
    (1..=desired.machines)
        .map(|number| LabMachine {
            lab,
            number,
            accelerator,
            memory_mib: desired.memory_mib,
            wire,
            kubernetes: desired.flavour.kubernetes,
        })
        .collect()
}

/// Whether all that a lab consists of runs.
fn is_lab_running(folder: &LabFolder, state: &LabState) -> bool {
    let records = (1..=state.machines).map(|number| folder.machine(number).join("qemu.pid"));
    let cluster = kubernetes::list_pid_files(folder)
        .into_iter()
        .filter(|_| state.flavour.kubernetes);
    records
        .chain([folder.path("server.pid")])
        .chain(cluster)
        .all(|record| background::find_background_process(&record).is_some())
}

fn already_up(state: &LabState, desired: LabRequest) -> Result<Came> {
    if state.machines == desired.machines
        && state.flavour == desired.flavour
        && state.memory_mib == desired.memory_mib
    {
        return Ok(Came::AlreadyUp);
    }
    Err(
        Diagnostic::error("RW0907", "another lab is up in this folder")
            .state(format!(
                "{} machines with {}, {} MiB each",
                state.machines,
                state.flavour.word(),
                state.memory_mib
            ))
            .next("railwright lab down")
            .next("then run the command again")
            .into(),
    )
}

fn too_many(machines: u8) -> Box<Diagnostic> {
    Diagnostic::error(
        "RW0910",
        format!(
            "a lab has 1 to {} machines, not {machines}",
            super::MOST_MACHINES
        ),
    )
    .into()
}

/// A port in use would make QEMU end with a less helpful word.
fn expect_free_ports(folder: &LabFolder, desired: LabRequest) -> Result<()> {
    let machines = 1..=desired.machines;
    let cluster = [folder.api_port()]
        .into_iter()
        .chain(folder.store_ports())
        .chain(machines.clone().map(|number| folder.kubelet_port(number)));
    let cluster = cluster.filter(|_| desired.flavour.kubernetes);
    let ports = machines
        .map(|number| folder.ssh_port(number))
        .chain([folder.repository_port()])
        .chain(cluster);
    for port in ports {
        if let Err(error) = TcpListener::bind(("127.0.0.1", port)) {
            return Err(Diagnostic::error(
                "RW0904",
                format!("port {port} on 127.0.0.1 cannot be had: {error}"),
            )
            .effect("inventories name the lab's ports, so no other one is taken in its place")
            .state("no machine was started")
            .next(
                "end what holds the port (ss -ltnp), perhaps a lab in another folder: railwright \
                 lab down",
            )
            .next(
                "or choose others, for the lab and in the inventory: RAILWRIGHT_LAB_PORT=28200 \
                 railwright lab up",
            )
            .into());
        }
    }
    Ok(())
}

fn start_server(folder: &LabFolder) -> Result<()> {
    let port = folder.repository_port();
    let program =
        this_program(folder)?.arguments(["lab", "serve", "--port", &port.to_string(), "--folder"]);
    let (log, record) = (folder.path("server.log"), folder.path("server.pid"));
    background::start_background_process(
        &program.argument(folder.served().to_string_lossy()),
        &log,
        &record,
    )
    .map_err(|error| new_folder_error(&log, &error))?;
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        if background::find_background_process(&record).is_none() {
            break;
        }
        clock::block_for(50);
    }
    let said = files::read_file_tail(&log, 400).unwrap_or_default();
    Err(Diagnostic::error(
        "RW0904",
        format!(
            "the package repository did not start on port {port}: {}",
            railwright_base::text::one_line(&said, 200)
        ),
    )
    .next(format!("see {}", log.display()))
    .into())
}

fn start_switch(folder: &LabFolder, machines: usize) -> Result<()> {
    let program = this_program(folder)?
        .folder(&folder.path("machines"))
        .arguments(["lab", "switch", "--ports", &machines.to_string()]);
    let log = folder.path("switch.log");
    background::start_background_process(&program, &log, &folder.path("switch.pid"))
        .map_err(|error| new_folder_error(&log, &error))?;
    for _ in 0..200 {
        if files::is_present(&folder.path(&format!("machines/port{machines}"))) {
            break;
        }
        clock::block_for(50);
    }
    Ok(())
}

/// This very program, told which lab it serves.
fn this_program(folder: &LabFolder) -> Result<Program> {
    let path = process::this_program()
        .map_err(|error| new_folder_error(std::path::Path::new("this program"), &error))?;
    let first_port = folder.ssh_port(0).to_string();
    let root = folder.root().to_string_lossy();
    Ok(Program::new(path.to_string_lossy())
        .environment("RAILWRIGHT_LAB_DIR", root)
        .environment("RAILWRIGHT_LAB_PORT", first_port))
}

fn start_machines(
    folder: &LabFolder,
    machines: &[LabMachine<'_>],
    image: &Image,
    listener: Listener<'_>,
) -> Result<Came> {
    let from_snapshot = machines.iter().all(|machine| machine.has_bare(image));
    if !from_snapshot {
        for machine in machines {
            machine.make_fresh(image)?;
        }
    }
    if machines.len() > 2 {
        start_switch(folder, machines.len())?;
    }
    let (step, snapshot) = if from_snapshot {
        (LabStep::Restore, Some(BARE))
    } else {
        (LabStep::Boot, None)
    };
    let booted = run_timed_step(listener, step, || {
        for machine in machines {
            machine.start(image, snapshot)?;
        }
        wait_for_all(machines, step, listener)
    });
    if let Err(diagnostic) = booted {
        // Next time from a boot, in case it is the snapshot that does not fit.
        let _ = machines
            .iter()
            .try_for_each(|machine| files::remove_path(&machine.folder().join("bare")));
        return Err(diagnostic);
    }
    if from_snapshot {
        return Ok(Came::FromSnapshot);
    }
    run_timed_step(listener, LabStep::Snapshot, || {
        machines
            .iter()
            .try_for_each(|machine| keep_bare(machine, image))
    })?;
    Ok(Came::FromBoot)
}

/// Waits until each machine answers and has come to rest; its clock is set, because a snapshot's
/// stands still.
pub fn wait_for_all(
    machines: &[LabMachine<'_>],
    step: LabStep,
    listener: Listener<'_>,
) -> Result<()> {
    let wait = |machine: &LabMachine<'_>| {
        let script = || {
            format!(
                "date -u -s @{} >/dev/null; timeout 120 systemctl is-system-running --wait",
                clock::unix_seconds()
            )
        };
        guest::run_when_it_answers(machine, &script, step)?;
        listener(LabEvent::Note(format!(
            "{} answers on 127.0.0.1:{}",
            machine.name(),
            machine.lab.ssh_port(machine.number)
        )));
        Ok(())
    };
    std::thread::scope(|scope| {
        let waits: Vec<_> = machines
            .iter()
            .map(|machine| scope.spawn(move || wait(machine)))
            .collect();
        waits
            .into_iter()
            .try_for_each(|wait| wait.join().unwrap_or_else(|_| Err(ended_badly())))
    })
}

fn ended_badly() -> Box<Diagnostic> {
    Diagnostic::error("RW0905", "a thread that waited for a machine ended badly")
        .next("railwright lab down")
        .into()
}

fn keep_bare(machine: &LabMachine<'_>, image: &Image) -> Result<()> {
    monitor::run_silent_monitor_line(
        &machine.folder(),
        &machine.name(),
        &format!("savevm {BARE}"),
    )?;
    machine.note_bare(image)
}
