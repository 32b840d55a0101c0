//! What is done about a module, by how it stands.

use super::*;
use crate::test_support::{answered, wish};
use crate::{Action, Disruption, Plane, Reading};

fn assess(body: Value, out: &str) -> Assessment {
    let wish = wish(&KernelModule, body);
    let reads = KernelModule.reads(&wish);
    KernelModule.assess(
        &wish,
        &answered(&[
            (&reads[0], 1, "folder /etc/modules-load.d\n"),
            (&reads[1], 1, "folder /etc/modprobe.d\n"),
            (&reads[2], 0, out),
        ]),
    )
}

fn words(assessment: &Assessment) -> String {
    assessment
        .actions
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
        words(&assess(both.clone(), "kernel\t6.1\n")),
        "write_file load_module"
    );
    assert_eq!(
        words(&assess(both.clone(), "loaded\trdma_rxe 1 0 - Live 0x0\n")),
        "write_file"
    );
    assert!(assess(both.clone(), "builtin\n").is_met());
    assert!(
        assess(
            both,
            "loaded\trdma_rxe 1 0 - Live 0x0\nboot\t/etc/modules-load.d/rdma.conf\trdma-rxe\n"
        )
        .is_met()
    );
}

#[test]
fn what_somebody_loaded_or_unloaded_since_is_judged_by_what_was_there_before_us() {
    let undone = |loaded: bool, before: bool, out: &str| {
        let wish = wish(
            &KernelModule,
            json!({ "name": "ib_core", "loaded": loaded }),
        );
        let read = KernelModule.reads(&wish).pop().unwrap();
        let undone = KernelModule.undo(
            &wish,
            &json!({ "loaded": before }),
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
    let wish = wish(&KernelModule, json!({ "name": "ib_core", "loaded": true }));
    let reads = KernelModule.reads(&wish);
    let undo = KernelModule.undo(
        &wish,
        &json!({ "loaded": false }),
        &answered(&[
            (&reads[0], 1, "folder /etc/modules-load.d\n"),
            (&reads[1], 1, "folder /etc/modprobe.d\n"),
            (&reads[2], 2, ""),
        ]),
    );
    assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
}

#[test]
fn an_option_that_is_not_in_effect_is_an_owed_reload() {
    let body = json!({ "name": "ib_core", "options": { "netns_mode": 0 } });
    let idle = assess(body.clone(), IDLE);
    assert_eq!(
        (words(&idle).as_str(), idle.needs_reboot),
        ("write_file unload_module load_module", false)
    );
    let used = assess(body, &IDLE.replace("1 0 -", "1 2 rdma_rxe,ib_cm,"));
    assert!(
        used.needs_reboot && used.interrupts[0].contains("rdma_rxe, ib_cm uses it"),
        "{used:?}"
    );
}

#[test]
fn the_initial_ram_disk_is_made_anew_where_it_holds_what_the_next_boot_takes() {
    let of = |body: Value, out: String| words(&assess(body, &out));
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
    let used = assess(body.clone(), "loaded\tib_core 1 2 rdma_rxe, Live 0x0\n");
    assert!(used.refusal.unwrap().contains("rdma_rxe uses it"));
    assert!(
        assess(body, "builtin\n")
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
    let found = assess(json!({ "name": "mlx5_core", "options": { "x": 1 } }), lines);
    let persisted = &found.attributes["option x"].differences()[0];
    assert!(
        matches!(persisted, (Plane::Persisted, _, Reading::Unknown(why)) if why.as_words().starts_with("/etc/modprobe.d/a:b.conf ")),
        "{persisted:?}"
    );
}

#[test]
fn a_driver_names_the_links_that_it_takes_down() {
    let found = assess(
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
    let boot = assess(
        json!({ "name": "a", "at_boot": false }),
        "boot\t/etc/modules-load.d/x.conf\ta\n",
    );
    assert!(
        boot.refusal
            .unwrap()
            .starts_with("/etc/modules-load.d/x.conf loads a at boot")
    );
    let blacklist = "modprobe\t/etc/modprobe.d/rds.conf\tblacklist a\n";
    let boot = assess(json!({ "name": "a", "at_boot": true }), blacklist);
    assert!(
        boot.refusal
            .unwrap()
            .starts_with("/etc/modprobe.d/rds.conf blacklists a")
    );
    let option = assess(
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
