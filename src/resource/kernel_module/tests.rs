//! What is done about a module, by how it stands.

use super::*;
use crate::test_support::{answered, resource};
use crate::{Action, Disruption, Plane, Reading};
use serde_json::json;

fn diff(body: Value, out: &str) -> ResourceDiff {
    let resource = resource(&KernelModule, body);
    let reads = KernelModule.reads(&resource);
    KernelModule.diff(
        &resource,
        &answered(&[
            (&reads[0], 1, "folder /etc/modules-load.d\n"),
            (&reads[1], 1, "folder /etc/modprobe.d\n"),
            (&reads[2], 0, out),
        ]),
    )
}

fn words(diff: &ResourceDiff) -> String {
    diff.actions
        .iter()
        .map(Action::word)
        .collect::<Vec<_>>()
        .join(" ")
}

const IDLE: &str = "loaded\tib_core 1 0 - Live 0x0\n\
                    parameter\tnetns_mode\tY\n\
                    modprobe\t/etc/modprobe.d/zz-railwright-ib_core.conf\toptions ib_core \
                    netns_mode=0\n";

#[test]
fn loading_now_and_at_boot_are_two_things() {
    let both = json!({ "name": "rdma-rxe", "loaded": true, "at_boot": true });
    assert_eq!(
        words(&diff(both.clone(), "kernel\t6.1\n")),
        "write_file load_module"
    );
    assert_eq!(
        words(&diff(both.clone(), "loaded\trdma_rxe 1 0 - Live 0x0\n")),
        "write_file"
    );
    assert!(diff(both.clone(), "builtin\n").is_met());
    assert!(
        diff(
            both,
            "loaded\trdma_rxe 1 0 - Live 0x0\nboot\t/etc/modules-load.d/rdma.conf\trdma-rxe\n"
        )
        .is_met()
    );
}

#[test]
fn what_somebody_loaded_or_unloaded_since_goes_by_what_was_there_before_us() {
    let undone = |loaded: bool, before: bool, out: &str| {
        let resource = resource(
            &KernelModule,
            json!({ "name": "ib_core", "loaded": loaded }),
        );
        let read = KernelModule.reads(&resource).pop().unwrap();
        let undone = KernelModule.undo(
            &resource,
            &json!({ "loaded": before, "files": {} }),
            &answered(&[(&read, 0, out)]),
        );
        (words(&undone), undone.is_met())
    };
    let (there, gone) = ("loaded\tib_core 1 0 - Live 0x0\n", "kernel\t6.1\n");
    assert_eq!(
        undone(true, true, gone),
        (String::new(), true),
        "the kernel has it no more"
    );
    let gone = "kernel\t6.1\ndisk\n";
    assert_eq!(
        undone(true, true, gone),
        ("load_module".to_owned(), false),
        "somebody unloaded what was there before us"
    );
    assert_eq!(
        undone(false, false, there),
        (String::new(), true),
        "somebody loaded what we never unloaded"
    );
    assert_eq!(
        undone(true, false, there),
        ("unload_module".to_owned(), false)
    );
    assert_eq!(undone(false, true, gone), ("load_module".to_owned(), false));
}

#[test]
fn a_module_that_cannot_be_read_is_not_taken_back() {
    let resource = resource(&KernelModule, json!({ "name": "ib_core", "loaded": true }));
    let reads = KernelModule.reads(&resource);
    let answers = answered(&[
        (&reads[0], 1, "folder /etc/modules-load.d\n"),
        (&reads[1], 1, "folder /etc/modprobe.d\n"),
        (&reads[2], 2, ""),
    ]);
    let undo = KernelModule.undo(
        &resource,
        &json!({ "loaded": false, "files": {} }),
        &answers,
    );
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
    let files = KernelModule.diff(&resource, &answers).before;
    assert!(KernelModule.can_read_before(&files) && files.get("loaded").is_none());
}

#[test]
fn an_option_that_is_not_in_effect_is_a_pending_reload() {
    let body = json!({ "name": "ib_core", "options": { "netns_mode": 0 } });
    let idle = diff(body.clone(), IDLE);
    assert_eq!(
        (words(&idle).as_str(), idle.needs_reboot),
        ("write_file unload_module load_module", false)
    );
    assert!(KernelModule.can_read_before(&idle.before) && idle.before["loaded"] == true);
    let used = diff(body, &IDLE.replace("1 0 -", "1 2 rdma_rxe,ib_cm,"));
    assert!(
        used.needs_reboot && used.interrupts[0].contains("rdma_rxe, ib_cm uses it"),
        "{used:?}"
    );
}

#[test]
fn options_that_run_are_taken_back_as_they_were_applied() {
    let resource = resource(
        &KernelModule,
        json!({ "name": "ib_core", "options": { "netns_mode": 0 } }),
    );
    let reads = KernelModule.reads(&resource);
    let text = read_body::<KernelModuleBody>(&resource.body)
        .render_modprobe_file()
        .unwrap();
    let file = format!("644 root root 9 regular file\n{text}");
    let absent = json!({ "absent": { "folder": "/etc/modprobe.d" } });
    let boot = json!({ "absent": { "folder": "/etc/modules-load.d" } });
    let before = |parameters: Value| {
        json!({ "loaded": true, "parameters": parameters, "files": {
            boot_file("ib_core"): boot, modprobe_file("ib_core"): absent } })
    };
    let answers = |file: (i32, &str), out: &str| {
        answered(&[
            (&reads[0], 1, "folder /etc/modules-load.d\n"),
            (&reads[1], file.0, file.1),
            (&reads[2], 0, out),
        ])
    };
    let undone = |parameters: Value, out: &str| {
        KernelModule.undo(&resource, &before(parameters), &answers((0, &file), out))
    };
    let runs = IDLE.replace("netns_mode\tY", "netns_mode\tN");
    let idle = undone(json!({ "netns_mode": "Y" }), &runs);
    assert_eq!(words(&idle), "remove_file unload_module load_module");
    let used = format!("{}ram_disk\n", runs.replace("1 0 -", "1 2 rdma_rxe,"));
    let used = undone(json!({ "netns_mode": "Y" }), &used);
    assert_eq!(words(&used), "remove_file update_initial_ram_disks");
    assert!(
        used.needs_reboot && used.differs_in(Plane::Running),
        "{used:?}"
    );
    let unknown = undone(json!({}), &runs);
    assert!(
        unknown.residue == ["ib_core runs with netns_mode=0 until it is loaded again"],
        "{unknown:?}"
    );
    let elsewhere = "modprobe\t/etc/modprobe.d/a.conf\toptions ib_core netns_mode=0\n";
    let stays = undone(json!({ "netns_mode": "Y" }), &format!("{runs}{elsewhere}"));
    assert!(!stays.needs_reboot && stays.residue.len() == 1, "{stays:?}");
    // A step that did nothing: what is there is what was there before, by the same names.
    let untouched = answers(
        (1, "folder /etc/modprobe.d\n"),
        "loaded\tib_core 1 0 - Live 0x0\nparameter\tnetns_mode\tY\n",
    );
    let actual = &KernelModule.diff(&resource, &untouched).attributes["option netns_mode"];
    let undo = KernelModule.undo(&resource, &before(json!({ "netns_mode": "Y" })), &untouched);
    assert!(undo.is_met() && undo.actions.is_empty(), "{undo:?}");
    assert_eq!(
        undo.attributes["option netns_mode"].desired.running,
        actual.actual.running
    );
    let later = before(json!({ "netns_mode": "N", "recv_queue_size": "512" }));
    let all = KernelModule.remembered(&before(json!({ "netns_mode": "Y" })), &later);
    assert_eq!(
        all["parameters"],
        json!({ "netns_mode": "Y", "recv_queue_size": "512" })
    );
}

#[test]
fn the_initial_ram_disk_is_made_anew_where_it_holds_what_the_next_boot_takes() {
    let of = |body: Value, out: String| words(&diff(body, &out));
    let option = json!({ "name": "ib_core", "options": { "netns_mode": 0 } });
    let used = format!("{}ram_disk\n", IDLE.replace("1 0 -", "1 2 rdma_rxe,ib_cm,"));
    assert_eq!(
        of(option.clone(), used),
        "write_file update_initial_ram_disks"
    );
    assert_eq!(
        of(option, format!("{IDLE}ram_disk\n")),
        "write_file unload_module load_module update_initial_ram_disks",
        "the next boot takes the copy, also where none is waited for"
    );
    let blacklist = json!({ "name": "nouveau", "blacklist": true });
    assert_eq!(
        of(blacklist.clone(), "kernel\t6.1\nram_disk\n".to_owned()),
        "write_file update_initial_ram_disks"
    );
    assert_eq!(of(blacklist, "kernel\t6.1\n".to_owned()), "write_file");
    let loaded = json!({ "name": "nouveau", "loaded": true });
    assert_eq!(
        of(loaded, "kernel\t6.1\nram_disk\n".to_owned()),
        "load_module"
    );
}

#[test]
fn a_module_in_use_is_not_unloaded_and_its_users_are_named() {
    let body = json!({ "name": "ib_core", "loaded": false });
    let used = diff(body.clone(), "loaded\tib_core 1 2 rdma_rxe, Live 0x0\n");
    assert!(used.refusal.unwrap().contains("rdma_rxe uses it"));
    assert!(
        diff(body, "builtin\n")
            .refusal
            .unwrap()
            .contains("built into")
    );
}

#[test]
fn options_that_go_on_in_the_next_line_are_not_taken_for_absent() {
    let lines = "disk\n\
                 modprobe\t/etc/modprobe.d/a:b.conf\t\n\
                 line\t/etc/modprobe.d/a:b.conf:options mlx5_core x=1 \\\n";
    let found = diff(json!({ "name": "mlx5_core", "options": { "x": 1 } }), lines);
    let persisted = &found.attributes["option x"].differences()[0];
    assert!(
        matches!(persisted, (Plane::Persisted, _, Reading::Unknown(why)) if why.as_words().starts_with("/etc/modprobe.d/a:b.conf ")),
        "{persisted:?}"
    );
}

#[test]
fn a_driver_names_the_links_that_it_takes_down() {
    let found = diff(
        json!({ "name": "mlx5_core", "loaded": false }),
        "loaded\tmlx5_core 1 0 - Live 0x0\nnetdev\tens4\nnetdev\tens5\n",
    );
    assert_eq!(found.disruption, Disruption::LinkBlip);
    assert_eq!(
        found.interrupts_netdevs,
        ["ens4", "ens5"],
        "either may carry our own connection"
    );
    let of = |netdev: &str| {
        ["link", "link_qos", "interrupt_affinity"].map(|kind| format!("{kind}/{netdev}"))
    };
    assert_eq!(
        found.disturbs,
        [
            &of("ens4")[..],
            &of("ens5")[..],
            &["rdma_link/*".to_owned()]
        ]
        .concat()
    );
}

#[test]
fn a_file_of_somebody_else_that_contradicts_is_named() {
    let boot = diff(
        json!({ "name": "a", "at_boot": false }),
        "boot\t/etc/modules-load.d/x.conf\ta\n",
    );
    assert!(
        boot.refusal
            .unwrap()
            .starts_with("/etc/modules-load.d/x.conf loads a at boot")
    );
    let blacklist = "modprobe\t/etc/modprobe.d/rds.conf\tblacklist a\n";
    let boot = diff(json!({ "name": "a", "at_boot": true }), blacklist);
    assert!(
        boot.refusal
            .unwrap()
            .starts_with("/etc/modprobe.d/rds.conf blacklists a")
    );
    let option = diff(
        json!({ "name": "a", "options": { "k": 1 } }),
        "modprobe\t/etc/modprobe.d/zzz.conf\toptions a k=2\n",
    );
    assert!(
        option
            .refusal
            .unwrap()
            .starts_with("/etc/modprobe.d/zzz.conf gives a another option")
    );
}
