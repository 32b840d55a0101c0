//! What the modules for operators rest on, with the operators themselves: real programs of pinned
//! releases (rig `operators`), beside a real control plane. Only kubelets are played, by kwok, so a
//! container's image is never run: an operator runs here as a process of this machine, in the place
//! of the pod that its own manifest asks for.
//!
//! They take minutes to build and are run by `make test-deep`. Without them the tests say that they
//! are skipped, and fail when RAILWRIGHT_REQUIRE_RIGS=1.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test says what it skips, and ends where something is not as it must be

mod apart;
#[path = "../kubernetes/begun.rs"]
mod begun;
#[path = "../kubernetes/cluster.rs"]
#[allow(dead_code)] // what stories without operators use
mod cluster;
mod device_plugin;
mod kuberay;
mod mpi;
mod network;
mod rendered;
#[path = "../kubernetes/rig.rs"]
#[allow(dead_code)] // what stories without operators use
mod rig;
mod software;
mod training;
mod waited;

use apart::apart;
use cluster::Cluster;
use rig::ControlPlane;
use software::Software;

/// Their names are folders of `modules/`.
#[test]
#[ignore = "long: make test-deep"]
fn the_device_plugin_takes_our_pools() {
    apart("device-plugin", |software| {
        device_plugin::every_case_is_taken(software);
        device_plugin::what_is_broken_is_refused(software);
        device_plugin::names_are_refused_before_it_would_refuse_them(software);
    });
}

#[test]
#[ignore = "long: make test-deep"]
fn an_mpi_job_comes_to_run() {
    apart("mpi", |software| {
        let Some(plane) = ControlPlane::start() else {
            return;
        };
        mpi::the_operator_is_waited_for(software, &plane);
        let _operator = mpi::operator(software, &plane);
        mpi::a_job_is_made_and_taken_back(&plane);
        mpi::a_job_that_it_refuses_is_told(&plane);
        rendered::nccl_tests_come_to_run(&plane);
        mpi::an_operator_that_is_gone_is_drift(&plane);
    });
}

#[test]
#[ignore = "long: make test-deep"]
fn a_pytorch_job_comes_to_run() {
    apart("training", |software| {
        let Some(plane) = ControlPlane::start() else {
            return;
        };
        training::the_operator_is_waited_for(software, &plane);
        let operator = training::operator(software, &plane);
        training::a_job_is_made_and_taken_back(&plane);
        training::a_job_that_its_webhook_refuses_is_not_planned(&plane);
        rendered::a_line_of_arena_comes_to_run(&plane);
        drop(operator);
        training::a_webhook_that_is_away_is_told(&plane);
    });
}

#[test]
#[ignore = "long: make test-deep"]
fn a_ray_cluster_comes_to_run() {
    apart("kuberay", |software| {
        let (Some(plane), Some(plugin)) = (ControlPlane::start(), Software::find("device-plugin"))
        else {
            return;
        };
        let _operator = kuberay::operator(software, &plane);
        let cluster = kuberay::inventory(&plane);
        kuberay::the_inventory_comes_to_run(&cluster);
        kuberay::its_pools_are_what_the_plugin_takes(&cluster, &plugin);
        kuberay::a_worker_that_is_missing_is_waited_for(&cluster);
        kuberay::a_template_that_changes_is_a_replacement(&cluster);
        kuberay::workers_that_are_fewer_end_and_the_rest_stays(&cluster);
        kuberay::a_workload_that_is_taken_out_is_taken_back(&cluster);
        rendered::a_ray_cluster_comes_to_run(&cluster);
    });
}

#[test]
#[ignore = "long: make test-deep"]
fn the_policy_of_the_network_operator_comes_to_be_ready() {
    apart("network-operator", |software| {
        let (Some(plane), Some(plugin)) = (ControlPlane::start(), Software::find("device-plugin"))
        else {
            return;
        };
        let _operator = network::operator(software, &plane);
        let cluster = Cluster::new(&plane, "admin");
        network::its_policy_is_waited_for_until_it_is_ready(&cluster);
        network::it_hands_out_our_pools(&cluster, &plugin);
        network::what_its_definition_does_not_know_is_not_planned(&cluster);
        network::it_is_taken_back(&cluster);
    });
}
