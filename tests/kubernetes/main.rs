//! Kubernetes as it is: a real control plane (rig `control plane`), on which only the kubelets are
//! played, by kwok. Without it the tests say that they are skipped, and fail when
//! RAILWRIGHT_REQUIRE_RIGS=1.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test says what it skips, and ends where something is not as it must be

mod applyset;
mod begun;
mod cluster;
mod figures;
mod helm;
mod helm_charts;
mod helm_hooks;
mod helm_moved;
mod helm_removal;
mod image;
mod jobs;
mod json;
mod large;
mod meanwhile;
mod nic;
mod node_fields;
mod objects;
mod probes;
mod raced;
mod ray;
mod rbac;
mod ready;
mod refused;
mod remembered;
mod rig;
mod stale;
mod transport;
mod workloads;

use rig as control_plane;
use rig::ControlPlane;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

const GIVES: [(&str, &str); 2] = [("nvidia.com/gpu", "8"), ("rdma/rdma_shared_device_a", "63")];

#[test]
fn the_control_plane_is_true() {
    let Some(mut plane) = ControlPlane::start() else {
        return;
    };
    nodes_give_what_they_were_told(&plane);
    a_daemon_set_runs_on_every_node(&plane);
    identities_may_what_they_may(&plane);
    clients_trust_its_own_authority_alone(&plane);
    the_server_restarts_and_knows_everything(&mut plane);
    nothing_is_left_of_it(plane);
}

/// Nor one in which something has died by itself.
#[test]
fn a_test_that_fails_leaves_nothing_behind() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    let (processes, work) = (plane.processes(), plane.work().to_owned());
    assert_eq!(running(&processes), 5);
    let store = std::fs::read_to_string(work.join("etcd.pid")).unwrap();
    assert!(
        Command::new("kill")
            .args(["-9", store.trim()])
            .status()
            .unwrap()
            .success()
    );
    let failed = catch_unwind(AssertUnwindSafe(move || {
        let _held = plane;
        std::panic::resume_unwind(Box::new("the test failed"));
    }));
    assert!(failed.is_err());
    assert_eq!((running(&processes), work.exists()), (0, false));
}

fn nodes_give_what_they_were_told(plane: &ControlPlane) {
    plane.nodes(&["gpu01", "gpu02", "gpu03"], &GIVES);
    let nodes: serde_json::Value =
        serde_json::from_str(&plane.kubectl(&["get", "nodes", "-o", "json"])).unwrap();
    let nodes = nodes["items"].as_array().unwrap();
    assert_eq!(nodes.len(), 3);
    for node in nodes {
        let gives = &node["status"]["allocatable"];
        assert_eq!(
            (
                &gives["nvidia.com/gpu"],
                &gives["rdma/rdma_shared_device_a"]
            ),
            (&json!("8"), &json!("63")),
            "{gives}"
        );
        let ready = node["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["type"] == "Ready");
        assert_eq!(ready.unwrap()["status"], "True");
    }
}

/// Privileged, as every device plugin is.
fn a_daemon_set_runs_on_every_node(plane: &ControlPlane) {
    let container = json!({ "name": "plugin", "image": "example.invalid/plugin:1", "securityContext": { "privileged": true },
                            "resources": { "limits": { "nvidia.com/gpu": "1", "rdma/rdma_shared_device_a": "1" } } });
    let template = json!({ "metadata": { "labels": { "app": "plugin" } }, "spec": { "containers": [container] } });
    let daemon_set = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "plugin", "namespace": "default" },
                             "spec": { "selector": { "matchLabels": { "app": "plugin" } }, "template": template } });
    plane.apply(&daemon_set.to_string());
    plane.kubectl(&["rollout", "status", "daemonset/plugin", "--timeout=120s"]);
    assert_eq!(running_pods(plane), "3/3");
}

fn running_pods(plane: &ControlPlane) -> String {
    plane.kubectl(&[
        "get",
        "daemonset",
        "plugin",
        "-o",
        "jsonpath={.status.numberReady}/{.status.desiredNumberScheduled}",
    ])
}

fn identities_may_what_they_may(plane: &ControlPlane) {
    let create = ["create", "configmap", "mine", "--from-literal=a=b"];
    for (identity, words, desired) in [
        (
            "reader",
            &["get", "nodes", "-o", "name"][..],
            Ok("node/gpu01\nnode/gpu02\nnode/gpu03\n"),
        ),
        (
            "reader",
            &create,
            Err("cannot create resource \"configmaps\""),
        ),
        (
            "nobody",
            &["get", "nodes"],
            Err("User \"nobody\" cannot list resource \"nodes\""),
        ),
    ] {
        let output = plane.kubectl_as(identity, words, "");
        let (out, said) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        match desired {
            Ok(desired) => assert_eq!(
                (out.as_str(), said.as_str()),
                (desired, ""),
                "{identity} {words:?}"
            ),
            Err(desired) => assert!(
                !output.status.success() && said.contains(desired),
                "{identity} {words:?}: {said}"
            ),
        }
        let mode = std::fs::metadata(plane.kubeconfig(identity))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "the kubeconfig of {identity}");
    }
}

/// A kubeconfig with the authority taken out is refused by the client, not by the server.
fn clients_trust_its_own_authority_alone(plane: &ControlPlane) {
    let own = std::fs::read_to_string(plane.kubeconfig("admin")).unwrap();
    let (start, end) = (
        own.find(", certificate-authority-data").unwrap(),
        own.find("}}]\nusers").unwrap(),
    );
    std::fs::write(
        plane.kubeconfig("stranger"),
        [&own[..start], &own[end..]].concat(),
    )
    .unwrap();
    let output = plane.kubectl_as("stranger", &["get", "nodes"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("certificate signed by unknown authority"),
        "{said}"
    );
}

fn the_server_restarts_and_knows_everything(plane: &mut ControlPlane) {
    let before = plane.kubectl(&[
        "get",
        "daemonset",
        "plugin",
        "-o",
        "jsonpath={.metadata.uid}",
    ]);
    plane.stop_api_server();
    let output = plane.kubectl_as("admin", &["get", "nodes"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("refused"),
        "{said}"
    );
    plane.start_api_server();
    assert_eq!(
        plane.kubectl(&[
            "get",
            "daemonset",
            "plugin",
            "-o",
            "jsonpath={.metadata.uid}"
        ]),
        before
    );
    assert_eq!(running_pods(plane), "3/3");
    plane.nodes(&["gpu04"], &GIVES);
    plane.kubectl(&[
        "wait",
        "daemonset/plugin",
        "--for=jsonpath={.status.numberReady}=4",
        "--timeout=120s",
    ]);
}

fn nothing_is_left_of_it(plane: ControlPlane) {
    let (processes, work) = (plane.processes(), plane.work().to_owned());
    assert_eq!(running(&processes), 5);
    drop(plane);
    assert_eq!((running(&processes), work.exists()), (0, false));
}

/// How many of these processes there are.
fn running(processes: &[u32]) -> usize {
    processes
        .iter()
        .filter(|pid| Path::new(&format!("/proc/{pid}")).exists())
        .count()
}

#[test]
fn objects_are_planned_and_applied() {
    let Some(mut plane) = ControlPlane::start() else {
        return;
    };
    objects::an_object_is_planned_applied_and_stays(&plane);
    objects::what_others_made_is_taken_over_only_when_asked(&plane);
    objects::who_sets_it_back_is_named_and_not_fought_for_ever(&plane);
    objects::a_kind_of_its_own_comes_first(&plane);
    objects::the_shared_device_plugin_is_rolled_out(&plane);
    objects::inventories_leave_each_other_alone(&plane);
    objects::a_namespace_comes_before_what_is_in_it(&plane);
    objects::what_holds_data_stays(&plane);
    objects::what_never_changes_is_made_anew_when_allowed(&plane);
    applyset::what_is_ours_is_a_set_that_kubectl_knows(&plane);
    objects::a_reader_sees_and_changes_nothing(&plane);
    objects::a_server_that_is_away_is_said_so(&mut plane);
}

#[test]
fn what_others_do_meanwhile_is_not_undone() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    raced::what_somebody_makes_meanwhile_is_left_alone(&plane);
    raced::what_was_made_anew_meanwhile_is_left_alone(&plane);
    raced::two_specs_know_of_each_other(&plane);
    raced::a_lost_answer_changes_nothing(&plane);
    raced::a_job_whose_answer_got_lost_is_submitted(&plane);
    raced::a_run_that_slept_overwrites_no_record(&plane);
    raced::what_was_made_anew_since_the_list_is_not_deleted(&plane);
    raced::what_was_made_anew_meanwhile_is_not_taken_back(&plane);
    raced::what_could_not_be_looked_for_is_not_said_to_be_gone(&plane);
    raced::kinds_that_could_not_be_read_are_all_named(&plane);
    raced::what_is_half_made_anew_is_said(&plane);
    rbac::a_policy_for_one_is_not_for_all(&plane);
}

#[test]
fn what_is_stale_is_not_written() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    stale::a_run_whose_lock_was_taken_over_writes_nothing_more(&plane);
    stale::a_lock_that_is_only_said_to_be_let_go_is_told(&plane);
    stale::what_changes_hands_in_the_last_moment_is_not_deleted(&plane);
    stale::a_404_of_something_between_is_no_absence(&plane);
}

#[test]
#[ignore = "long: make test-deep"]
fn what_the_server_would_not_take_is_said_before() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    refused::a_new_object_that_is_refused_is_held(&plane);
    refused::what_nothing_brings_is_held(&plane);
    refused::what_may_not_be_previewed_says_so(&plane);
    refused::what_holds_a_removal_is_named(&plane);
    remembered::what_did_not_come_through_is_taken_back(&plane);
    remembered::a_mark_that_was_taken_away_is_drift(&plane);
    remembered::names_that_are_nearly_the_same_own_nothing_of_each_other(&plane);
    remembered::a_record_that_cannot_be_read_is_not_taken_for_none(&plane);
    remembered::a_cluster_that_was_made_anew_gets_nothing_of_the_one_before(&plane);
    remembered::a_removal_that_nobody_can_compare_stops_nothing(&plane);
    remembered::another_clusters_record_is_left_alone_until_it_is_taken_over(&plane);
}

#[test]
#[ignore = "long: make test-deep"]
fn jobs_are_submitted_watched_and_deleted() {
    let fakes = jobs::fakes();
    let Some(plane) = ControlPlane::with_fakes(fakes.path()) else {
        return;
    };
    jobs::a_cluster_without_operators_says_so(&plane);
    jobs::somebody_may_submit_jobs(&plane);
    jobs::what_may_have_adopted_is_made_last_and_stays(&plane);
    jobs::a_job_is_submitted_whole_or_not_at_all(&plane);
    jobs::a_job_is_watched_to_its_end(&plane, fakes.path());
    jobs::a_watch_that_is_ended_leaves_the_job(&plane);
    jobs::a_job_is_proven_by_the_logs_of_its_pods(&plane, fakes.path());
    jobs::a_job_is_deleted_with_all_that_it_had(&plane);
    jobs::a_pair_is_compared_by_the_logs_of_its_pods(&plane, fakes.path());
    jobs::pods_that_stay_are_watched_until_they_run(&plane);
    jobs::trials_name_the_first_that_fails(&plane, fakes.path());
}

#[test]
#[ignore = "long: make test-deep"]
fn clusters_of_ray_are_proven_as_they_run() {
    let folder = ray::fakes();
    let Some(plane) = ControlPlane::with_fakes(folder.path()) else {
        return;
    };
    ray::every_pod_holds_every_pool_and_traffic_crosses(&plane, folder.path());
    ray::what_a_cluster_of_ray_lacks_is_said(&plane, folder.path());
}

#[test]
#[ignore = "long: make test-deep"]
fn images_are_looked_into_through_their_pods() {
    let image = image::Image::of_debian();
    let Some(plane) = ControlPlane::with_fakes(image.programs()) else {
        return;
    };
    image::a_pod_is_looked_into(&plane, &image);
    image::what_cannot_be_looked_into_is_not_missing(&plane, &image);
}

#[test]
fn a_large_cluster_is_asked_little_and_compared_as_kubectl_does() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    figures::a_plan_asks_once_for_each_object(&plane);
    figures::an_apply_asks_once_what_holds_for_all(&plane);
    figures::kubectl_finds_the_same_objects(&plane);
}

#[test]
#[ignore = "long: make test-deep"]
fn what_comes_about_by_itself_is_waited_for() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    ready::pods_and_resources_are_waited_for(&plane);
    ready::a_wait_that_was_left_is_gone_on_with(&plane);
    ready::what_does_not_heal_ends_the_wait(&plane);
    ready::what_others_make_is_expected_by_name(&plane);
    ready::a_kind_is_waited_for_in_its_version(&plane);
    ready::what_an_operator_warns_of_is_told(&plane);
    ready::what_is_of_before_a_change_says_nothing(&plane);
    ready::what_is_gone_is_not_waited_for(&plane);
}

/// Kubernetes has them from 1.30 on; an older one is only run where KUBEBUILDER_ASSETS names it.
fn has_admission_policies(plane: &ControlPlane) -> bool {
    let kinds = plane.kubectl(&[
        "api-resources",
        "--api-group=admissionregistration.k8s.io",
        "-o",
        "name",
    ]);
    let has = kinds.contains("validatingadmissionpolicies");
    assert!(
        has || std::env::var_os("KUBEBUILDER_ASSETS").is_some(),
        "{kinds}"
    );
    if !has {
        eprintln!("left out: this Kubernetes has no ValidatingAdmissionPolicy");
    }
    has
}

#[test]
#[ignore = "long: make test-deep"]
fn workloads_of_the_spec_are_kept() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    // A rollout makes a new pod before an old one ends, which takes room for it.
    plane.nodes(&["gpu1", "gpu2", "gpu3"], &GIVES);
    workloads::a_workload_is_planned_applied_mended_and_taken_back(&plane);
    workloads::it_comes_after_what_modules_declare(&plane);
    workloads::what_was_there_is_taken_over_only_when_asked(&plane);
}

#[test]
#[ignore = "long: make test-deep"]
fn rbac_roles_are_the_smallest_that_do() {
    let Some(plane) = ControlPlane::start().filter(has_admission_policies) else {
        return;
    };
    plane.nodes(&["gpu1"], &[]);
    rbac::each_role_does_its_work_and_nothing_more(&plane);
    rbac::a_kind_of_others_is_asked_for(&plane);
    rbac::an_object_is_explained(&plane);
}

#[test]
fn rbac_that_is_missing_is_found_first() {
    let Some(plane) = ControlPlane::start().filter(has_admission_policies) else {
        return;
    };
    plane.nodes(&["gpu1"], &[]);
    rbac::a_missing_right_is_found_before_the_first_change(&plane);
    rbac::a_run_that_goes_on_asks_again(&plane);
    rbac::whoever_may_not_ask_goes_on(&plane);
}

#[test]
#[ignore = "long: make test-deep"]
fn json_of_others_is_edited() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    json::a_part_is_edited_and_its_readers_restart(&plane);
    json::drift_is_named_and_mended(&plane);
    json::edits_of_others_are_not_lost(&plane);
    json::edits_of_others_between_read_and_write_are_kept(&plane);
    json::what_was_made_anew_meanwhile_is_left_alone(&plane);
    json::what_comes_with_another_step_is_edited_after_it(&plane);
    json::what_cannot_be_edited_is_left_alone(&plane);
    json::terway_is_kept_away_from_erdma(&plane);
}

/// The first without a kubelet anywhere, as on nodes that the API server has no way to.
#[test]
#[ignore = "long: make test-deep"]
fn nodes_without_ssh_are_asked_through_their_agents() {
    let folder = probes::fakes();
    let Some(plane) = ControlPlane::with_fakes(folder.path()) else {
        return;
    };
    probes::a_managed_cluster_is_brought_up_and_proven(&plane, folder.path());
    probes::the_right_to_run_programs_is_asked_for_and_told(&plane);
    drop(plane);
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    probes::who_has_no_kubelet_is_unknown(&plane);
}

#[test]
#[ignore = "long: make test-deep"]
fn labels_and_taints_of_nodes_are_set() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    node_fields::a_label_is_set_drifts_is_mended_and_goes(&plane);
    node_fields::a_label_of_others_is_a_conflict_until_it_is_adopted(&plane);
    node_fields::a_taint_stands_beside_those_of_others(&plane);
    node_fields::a_taint_that_others_set_meanwhile_is_kept(&plane);
    node_fields::what_cannot_be_set_is_said_before(&plane);
    node_fields::a_module_of_ones_own_asks_for_them_too(&plane);
}

#[test]
#[ignore = "long: make test-deep"]
fn groups_of_nodes_have_nic_settings_of_their_own() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    nic::a_template_waits_for_both_operators_and_counts_as_a_reboot(&plane);
    nic::policies_of_groups_are_waited_for_each(&plane);
}

#[test]
fn helm_releases_are_planned_and_applied() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    helm::a_release_is_installed_changed_and_stays(&plane);
    helm::what_others_change_is_drift(&plane);
    helm::a_secret_is_brought_and_never_shown(&plane);
    helm::what_a_chart_makes_of_a_secret_or_of_chance(&plane);
    helm::what_once_was_a_secret_is_not_shown(&plane);
    helm::what_cannot_be_done_is_said_before(&plane);
    helm::what_helm_may_not_do_is_found_first(&plane);
    helm_removal::what_helm_may_not_delete_is_found_first(&plane);
    helm_removal::a_removal_that_was_stopped_half_way_is_gone_on_with(&plane);
}

#[test]
fn helm_releases_of_others_and_their_charts_are_respected() {
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    helm_charts::what_others_set_meanwhile_is_seen(&plane);
    helm_charts::hooks_and_definitions_fake_the_plan(&plane);
    helm_charts::what_varies_is_installed_once_and_told(&plane);
    helm_charts::what_comes_of_the_kinds_of_a_chart_is_blocked(&plane);
    helm_charts::what_is_there_already_is_told(&plane);
    helm_hooks::what_has_the_name_of_a_hook_is_told(&plane);
    helm_hooks::what_is_somebody_elses_is_neither_a_hook_nor_a_definition(&plane);
    helm_hooks::a_hook_of_an_unknown_name_says_what_it_deletes(&plane);
    helm_hooks::definitions_are_those_that_helm_makes(&plane);
    helm_hooks::usual_charts_with_definitions_are_installed(&plane);
    helm_charts::what_a_revision_deletes_is_what_helm_deletes(&plane);
    helm::what_others_installed_is_left_to_them(&plane);
    helm_moved::a_revision_of_somebody_else_is_left_alone(&plane);
    helm_moved::a_release_of_somebody_else_with_the_same_number_is_left_alone(&plane);
    helm_moved::a_revision_in_the_very_last_moment_is_told(&plane);
    helm::an_object_of_an_operator_comes_after_it_and_goes_before_it(&plane);
    helm::a_chart_is_fetched_from_its_repository(&plane);
    helm::a_step_in_a_console_is_held_and_proven(&plane);
}
