//! The lab and the whole story on it, on the real thing: QEMU machines are started bare, become an
//! RDMA pair that passes, drift, are fixed, broken and ended. Rig `lab`: QEMU and the programs
//! that build a machine. Without them the tests say that they are skipped, and fail when
//! RAILWRIGHT_REQUIRE_RIGS=1. RAILWRIGHT_TEST_LAB_CACHE names a folder that keeps built disks
//! between runs.
//!
//! Four tests that start their machines once each, and whose stories follow one another. They begin
//! in the order of their names, the longest first, each as soon as there is a core for each of its
//! machines. What a story took is printed (`cargo test --test lab -- --nocapture`).

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod automatic_rollback;
mod baddays;
mod bare;
mod broken;
mod connectx;
mod journey;
mod kills;
#[path = "../links/machine.rs"]
mod machine;
mod mpi;
mod night;
mod nodes;
mod pci;
mod rig;
mod simulated;
mod units;

use machine::Machine;
use night::Night;
use rig::Rig;
use std::io::Write as _;
use std::time::Instant;

/// A story, its name and how long it took.
macro_rules! story {
    ($story:path, $($argument:expr),*) => {{
        let began = Instant::now();
        $story($($argument),*);
        took(began, stringify!($story));
    }};
}

/// Says so, and adds a line to the file that RAILWRIGHT_TEST_LAB_TIMES names: cargo hides what a
/// passed test prints.
fn took(began: Instant, story: &str) {
    let line = format!("{:>5} s  {story}", began.elapsed().as_secs());
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("RAILWRIGHT_TEST_LAB_TIMES") {
        writeln!(
            std::fs::File::options()
                .create(true)
                .append(true)
                .open(path)
                .unwrap(),
            "{line}"
        )
        .unwrap();
    }
}

fn skipped() -> bool {
    let missing = rig::missing();
    if let Some(program) = missing {
        eprintln!(
            "skipped: rig `lab` needs {program}; RAILWRIGHT_REQUIRE_RIGS=1 makes this a failure"
        );
    }
    missing.is_some()
}

#[test]
fn a_pair_of_bare_machines_is_made_and_stays_true() {
    if skipped() {
        return;
    }
    let rig = Rig::new(30_000..45_000, 2);
    story!(two_machines_come_up, &rig);
    story!(bare::they_are_bare, &rig);
    story!(bare::they_have_their_own_identity, &rig);
    story!(bare::they_reach_nothing_but_their_repository, &rig);
    story!(bare::packages_come_signed, &rig);
    story!(bare::pam_gives_limits_to_fresh_logins, &rig);
    story!(a_reset_makes_them_bare_again, &rig);

    let bare = journey::settings(&rig);
    story!(journey::a_plan_changes_nothing, &rig);
    story!(journey::one_host_then_the_gate_then_the_other, &rig);
    story!(journey::the_pair_is_proven, &rig);
    // Three stories take emulation minutes more: `make test-deep` has them.
    let is_whole = std::env::var("RAILWRIGHT_LAB").is_ok_and(|value| value == "whole");
    if is_whole {
        story!(journey::traffic_is_watched, &rig);
    }
    story!(journey::nothing_is_left_to_do, &rig);
    rig.keep();
    story!(journey::what_was_changed_by_hand_is_found_and_mended, &rig);
    story!(journey::what_leaves_the_spec_is_taken_back, &rig, &bare);
    if is_whole {
        story!(broken::verify_finds_what_is_broken, &rig);
        story!(broken::a_broken_canary_stops_the_rollout, &rig);
    }

    story!(after_an_end_they_are_bare, &rig);
}

#[test]
#[ignore = "long: make test-deep"]
fn kinds_that_need_a_kernel_and_an_init_of_their_own() {
    if skipped() {
        return;
    }
    let rig = Rig::new(45_000..60_000, 1);
    rig.done(&["up", "1"]);
    let machine = Machine::new(rig.shell(1), ());
    story!(connectx::a_lossless_class_is_set_and_kept, &machine);
    story!(
        connectx::a_nic_without_dcb_is_refused_unless_that_is_accepted,
        &machine
    );
    story!(
        connectx::soft_roce_comes_and_goes_and_its_defaults_with_it,
        &machine
    );
    story!(connectx::a_reboot_brings_everything_back, &machine);
    story!(units::a_unit_of_ours_comes_and_goes, &machine);
    story!(units::a_restart_is_pending_until_it_is_done, &machine);
    story!(
        units::a_unit_of_the_distribution_is_stopped_and_masked,
        &machine
    );
    story!(units::a_module_is_loaded_with_options_and_at_boot, &machine);
    story!(units::a_module_that_udev_looks_at_is_unloaded, &machine);
    story!(
        units::options_of_a_module_in_use_wait_for_a_reboot,
        &machine
    );
    story!(units::a_blacklisted_module_stays_away, &machine);
    story!(pci::interrupts_are_bound_and_their_unit_is_kept, &machine);
    story!(pci::what_a_guest_cannot_have_does_not_apply, &machine);
    story!(
        simulated::a_simulated_host_does_what_the_machine_does,
        &rig,
        &machine
    );
    story!(
        simulated::a_simulated_host_refuses_what_the_machine_refuses,
        &machine
    );
    story!(
        automatic_rollback::a_server_that_would_not_let_us_in_is_put_back,
        &rig,
        &machine
    );
    story!(
        automatic_rollback::a_wrong_address_is_put_back,
        &rig,
        &machine
    );
    story!(
        automatic_rollback::a_wrong_mtu_is_put_back_for_a_dead_run,
        &rig,
        &machine
    );
    story!(
        automatic_rollback::a_packet_filter_is_put_back_by_a_boot,
        &rig,
        &machine
    );
}

#[test]
#[ignore = "long: make test-deep"]
fn bad_days_of_a_machine() {
    if skipped() {
        return;
    }
    let rig = Rig::new(15_000..27_000, 1);
    let night = Night::new(&rig);
    story!(baddays::the_ground_is_laid, &night);
    story!(baddays::somebody_else_was_there_first, &night);
    story!(baddays::the_disk_is_full, &night);
    story!(baddays::apt_is_killed_half_way, &night);
    story!(baddays::ssh_is_cut_by_a_packet_filter, &night);
    story!(baddays::the_power_goes_in_the_middle_of_a_step, &night);
    let undisturbed = kills::nobody_disturbs_it(&night);
    story!(
        kills::killed_at_any_moment_it_is_resumed,
        &night,
        &undisturbed
    );
}

#[test]
#[ignore = "long: make test-deep"]
fn nodes_of_a_real_kubernetes() {
    if skipped() {
        return;
    }
    let rig = Rig::new(27_000..29_900, 2);
    story!(nodes::they_come_up_as_nodes, &rig);
    story!(nodes::one_plan_makes_hosts_and_cluster, &rig);
    story!(nodes::rdma_goes_from_pod_to_pod, &rig);
    let operator = mpi::the_operator_is_there(&rig);
    if operator.is_some() {
        story!(mpi::workers_have_names, &rig);
        story!(mpi::ranks_of_mpi_move_data_by_verbs, &rig);
        story!(mpi::the_same_goes_over_tcp_without_the_device, &rig);
        story!(mpi::both_are_compared_and_taken_away, &rig);
        story!(mpi::its_rails_carry_data_while_it_runs, &rig);
    }
    drop(operator);
    story!(nodes::nodes_without_ssh_are_asked_in_their_pods, &rig);
    story!(nodes::what_was_changed_by_hand_is_found_on_both_sides, &rig);
    story!(nodes::a_reset_gives_a_new_cluster, &rig);
    story!(nodes::an_end_leaves_nothing_running, &rig);
}

fn two_machines_come_up(rig: &Rig) {
    let up = rig.done(&["up"]);
    assert!(
        up.contains("the lab is up") && up.contains("fake ConnectX-6"),
        "{up}"
    );
    assert!(rig.done(&["up"]).contains("the lab is up already"));
    assert_eq!(
        rig.lab(&["up", "3"]).status.code(),
        Some(4),
        "another lab is refused while this one is up"
    );
    let no_cluster = rig.lab(&["kubectl", "get", "nodes"]);
    assert!(
        no_cluster.status.code() == Some(1)
            && String::from_utf8_lossy(&no_cluster.stderr)
                .contains("railwright lab up --kubernetes")
    );
}

fn a_reset_makes_them_bare_again(rig: &Rig) {
    rig.done(&["reset"]);
    assert_eq!(
        rig.said(
            "node1",
            "command -v rping; ls /etc/apt/sources.list.d /etc/security/limits.d"
        ),
        "/etc/apt/sources.list.d:\n\n/etc/security/limits.d:"
    );
}

fn after_an_end_they_are_bare(rig: &Rig) {
    assert!(rig.done(&["down"]).contains("2 machines ended"));
    assert_eq!(
        rig.lab(&["ssh", "node1", "--", "true"]).status.code(),
        Some(1)
    );
    assert!(rig.done(&["up"]).contains("restored to its bare state"));
    assert!(!rig.said("node1", "cat /proc/cmdline").contains("iommu=pt"));
}
