//! `pci_setting` by tables: read results in, diff out.

use super::*;
use crate::test_support::{answered, resource};
use config::{PciConfigSpace, build_simulated_config_space};
use proptest::prelude::*;
use serde_json::json;

/// A function's answer, made by hand as the read's script prints it.
fn function(control: u16, head: &str) -> String {
    let dump: String = PciConfigSpace::dump(&build_simulated_config_space(control, None))
        .lines()
        .map(|line| format!("|{line}\n"))
        .collect();
    format!("{head}address 0000:3b:00.0\n\n== config 0000:3b:00.0\n{dump}")
}

const READY: &str = "setpci\nlockdown [none] integrity confidentiality\n";

/// One NIC and one GPU, each below a port of a switch; the same for another NIC, of nobody's
/// concern.
fn tree(words: [u16; 2], head: &str) -> String {
    let mut out = format!(
        "{head}device 0x060400 0x8086 pci0000:38/0000:38:00.0\n\
         device 0x060400 0x1000 pci0000:38/0000:38:00.0/0000:39:00.0\n\
         device 0x060400 0x1000 pci0000:38/0000:38:00.0/0000:39:01.0\n\
         device 0x060400 0x8086 pci0000:00/0000:00:01.0\n\
         device 0x020000 0x15b3 pci0000:38/0000:38:00.0/0000:39:00.0/0000:3a:00.0\n\
         device 0x030200 0x10de pci0000:38/0000:38:00.0/0000:39:01.0/0000:3b:00.0\n\
         device 0x020000 0x8086 pci0000:00/0000:00:01.0/0000:01:00.0\n\
         netdev ens1 0000:3a:00.0\n\
         netdev eno1 0000:01:00.0\n"
    );
    let bridges = [
        ("0000:38:00.0", None),
        ("0000:39:00.0", Some(words[0])),
        ("0000:39:01.0", Some(words[1])),
        ("0000:00:01.0", Some(0x1d)),
    ];
    for (address, acs) in bridges {
        let dump: String = PciConfigSpace::dump(&build_simulated_config_space(0, acs))
            .lines()
            .map(|line| format!("|{line}\n"))
            .collect();
        out.push_str(&format!("\n== config {address}\n{dump}"));
    }
    out
}

fn host(virtualization: &str) -> String {
    format!(
        "version 1\n\
         os ID=debian\n\
         kernel 6.1\n\
         boot_id b\n\
         cmdline quiet\n\
         architecture x86_64\n\
         uid 0\n\
         init systemd\n\
         virtualization {virtualization}\n\
         end\n"
    )
}

fn read_request() -> DesiredResource {
    resource(
        &PciSetting,
        json!({ "netdev": "ens1", "max_read_request": 4096 }),
    )
}

fn acs(mode: &str) -> DesiredResource {
    resource(&PciSetting, json!({ "netdevs": ["ens1"], "acs": mode }))
}

/// Answers where no file of ours is there.
fn fresh(resource: &DesiredResource, code: i32, out: &str, virtualization: &str) -> ReadResults {
    let mut all = ReadResults::default();
    let host = host(virtualization);
    for read in PciSetting.reads(resource) {
        let (code, out) = match read {
            Read::PciDevice { .. } | Read::PciBridges => (code, out),
            Read::Host => (0, host.as_str()),
            _ => (1, ""),
        };
        all.merge(answered(&[(&read, code, out)]));
    }
    all
}

fn writes(diff: &ResourceDiff) -> Vec<String> {
    let all = diff.actions.iter().filter_map(|action| match action {
        Action::SetPci { writes } => Some(writes),
        _ => None,
    });
    all.flatten()
        .map(|w| {
            format!(
                "{} {:?} {:04x}:{:04x}",
                w.address, w.register, w.value, w.mask
            )
        })
        .collect()
}

#[test]
fn a_read_request_is_written_and_only_its_bits() {
    let resource = read_request();
    let found = PciSetting.diff(
        &resource,
        &fresh(&resource, 0, &function(0x2910, READY), "none"),
    );
    assert_eq!(writes(&found), ["0000:3b:00.0 DeviceControl 5000:7000"]);
    assert_eq!(found.before, json!({ "running": 512 }));
    assert!(PciSetting.can_read_before(&found.before));
    let words: Vec<_> = found.actions.iter().map(Action::word).collect();
    assert_eq!(
        words,
        [
            "write_file",
            "write_file",
            "write_file",
            "reload_systemd",
            "set_pci"
        ]
    );
    let undo = PciSetting.undo(
        &resource,
        &found.before,
        &fresh(&resource, 0, &function(0x5910, READY), "none"),
    );
    assert_eq!(writes(&undo), ["0000:3b:00.0 DeviceControl 2000:7000"]);
    assert!(
        PciSetting
            .undo(
                &resource,
                &Value::Null,
                &fresh(&resource, 0, &function(0x5910, READY), "none")
            )
            .residue[0]
            .contains("next reboot")
    );
}

#[test]
fn absent_not_applicable_unknown_and_refused_are_four_things() {
    let resource = read_request();
    let look = |code, out: &str| PciSetting.diff(&resource, &fresh(&resource, code, out, "none"));
    let running = |found: &ResourceDiff| {
        found.attributes["max_read_request"]
            .actual
            .running
            .clone()
            .unwrap()
    };
    let missing = look(1, "");
    assert_eq!(
        (running(&missing), missing.refusal.as_deref()),
        (Reading::Absent, Some("there is no ens1"))
    );
    for (out, reason) in [
        (format!("{READY}none\n"), "no PCI bus"),
        (
            function(0x2910, &format!("{READY}virtual-function\n")),
            "virtual function",
        ),
        (
            format!(
                "{READY}address 0000:3b:00.0\n\n== config 0000:3b:00.0\n{}",
                behind_bars(include_str!("tests/virtio.txt"))
            ),
            "no PCI Express",
        ),
    ] {
        let found = look(0, &out);
        assert!(
            matches!(running(&found), Reading::NotApplicable(why) if why.as_words().contains(reason))
                && found.is_met(),
            "{reason}"
        );
    }
    let short = look(
        0,
        &format!(
            "{READY}address 0000:3b:00.0\n\n== config 0000:3b:00.0\n{}",
            behind_bars(&PciConfigSpace::dump(
                &build_simulated_config_space(0, None)[..64]
            ))
        ),
    );
    assert!(
        matches!(running(&short), Reading::Unknown(why) if why.as_words().contains("only root"))
            && short.actions.is_empty()
    );
    assert!(look(0, "address x;reboot\n").has_unknown());
    let poor = look(0, &function(0x2910, "lockdown [none] integrity\n"));
    assert!(
        poor.refusal
            .as_ref()
            .is_some_and(|why| why.contains("pciutils"))
            && poor.actions.is_empty()
    );
    let locked = look(
        0,
        &function(
            0x2910,
            "setpci\nlockdown none [integrity] confidentiality\n",
        ),
    );
    assert!(
        locked
            .refusal
            .as_ref()
            .is_some_and(|why| why.contains("locked down"))
            && locked.actions.is_empty()
    );
}

fn behind_bars(text: &str) -> String {
    text.lines().map(|line| format!("|{line}\n")).collect()
}

#[test]
fn a_missing_tool_is_waited_for_where_the_resource_says_who_brings_it() {
    let resource = resource(
        &PciSetting,
        json!({ "netdev": "ens1", "max_read_request": 4096, "known_after": "package/pciutils" }),
    );
    let found = PciSetting.diff(
        &resource,
        &fresh(&resource, 0, &function(0x2910, ""), "none"),
    );
    assert_eq!(
        (found.known_after.as_deref(), found.refusal),
        (Some("package/pciutils"), None)
    );
}

#[test]
fn a_package_that_is_there_without_its_program_is_told_and_not_waited_for() {
    let resource = resource(
        &PciSetting,
        json!({ "netdev": "ens1", "max_read_request": 4096, "known_after": "package/pciutils" }),
    );
    let mut answers = fresh(&resource, 0, &function(0x2910, ""), "none");
    let read = Read::Packages {
        names: vec!["pciutils".to_owned()],
    };
    answers.merge(answered(&[(
        &read,
        0,
        "manager\tapt\ndpkg\tii \tpciutils\t1:3.9.0-4\n",
    )]));
    let found = PciSetting.diff(&resource, &answers);
    assert_eq!((found.known_after, found.actions.is_empty()), (None, true));
    assert!(found.refusal.is_some_and(|why| {
        why.contains("pciutils is installed, and root finds no `setpci` in its PATH")
    }));
}

#[test]
fn acs_goes_off_on_the_way_to_gpus_and_rails_and_nowhere_else() {
    let resource = acs("off");
    let found = PciSetting.diff(
        &resource,
        &fresh(&resource, 0, &tree([0x1d, 0x01], READY), "none"),
    );
    assert_eq!(
        writes(&found),
        [
            "0000:39:00.0 AcsControl 0000:007f",
            "0000:39:01.0 AcsControl 0000:007f"
        ]
    );
    assert_eq!(
        found.before,
        json!({ "bridges": { "0000:39:00.0": 0x1d, "0000:39:01.0": 1 } })
    );
    assert!(PciSetting.can_read_before(&found.before));
    assert!(found.interrupts[0].contains("past the IOMMU"));
    let gentle = acs("redirect-off");
    let some = PciSetting.diff(
        &gentle,
        &fresh(&gentle, 0, &tree([0x1d, 0x01], READY), "none"),
    );
    assert_eq!(
        writes(&some),
        ["0000:39:00.0 AcsControl 0000:002c"],
        "source validation stays as it is"
    );
    let undo = PciSetting.undo(
        &resource,
        &found.before,
        &fresh(&resource, 0, &tree([0, 0], READY), "none"),
    );
    assert_eq!(
        writes(&undo),
        [
            "0000:39:00.0 AcsControl 001d:007f",
            "0000:39:01.0 AcsControl 0001:007f"
        ]
    );
    let named = super::super::test_support::resource(
        &PciSetting,
        json!({ "bridges": ["0000:00:01.0"], "acs": "off" }),
    );
    let one = PciSetting.diff(&named, &fresh(&named, 0, &tree([0x1d, 0x1d], READY), "kvm"));
    assert_eq!(
        writes(&one),
        ["0000:00:01.0 AcsControl 0000:007f"],
        "a bridge that is named is meant in a virtual machine, too"
    );
}

#[test]
fn registers_that_cannot_be_read_are_not_taken_back() {
    let (size, bridges) = (read_request(), acs("off"));
    let no_space = format!("{READY}address 0000:3b:00.0\n");
    for (resource, before, code, out) in [
        (&size, json!({ "running": 512 }), 0, no_space.as_str()),
        (&size, json!({ "running": 512 }), 0, ""),
        (
            &bridges,
            json!({ "bridges": { "0000:39:00.0": 29 } }),
            2,
            "",
        ),
    ] {
        let undo = PciSetting.undo(resource, &before, &fresh(resource, code, out, "none"));
        assert!(undo.only_unknown() && undo.actions.is_empty(), "{undo:?}");
    }
    let gone = PciSetting.undo(
        &size,
        &json!({ "running": 512 }),
        &fresh(&size, 1, "", "none"),
    );
    assert!(gone.is_met() && !gone.residue.is_empty(), "{gone:?}");
}

#[test]
fn acs_is_left_alone_where_machines_lean_on_it() {
    let resource = acs("off");
    let guest = PciSetting.diff(
        &resource,
        &fresh(&resource, 0, &tree([0x1d, 0x1d], READY), "kvm"),
    );
    assert!(
        guest.is_met() && guest.actions.is_empty(),
        "{:?}",
        guest.attributes
    );
    let lent = format!("{READY}passed pci0000:38/0000:38:00.0/0000:39:01.0/0000:3b:00.0\n");
    let found = PciSetting.diff(
        &resource,
        &fresh(&resource, 0, &tree([0x1d, 0x1d], &lent), "none"),
    );
    assert!(
        found
            .refusal
            .as_ref()
            .is_some_and(|why| why.starts_with("0000:3b:00.0 is lent"))
            && found.actions.is_empty()
    );
    let elsewhere = format!("{READY}passed pci0000:00/0000:00:01.0/0000:01:00.0\n");
    assert_eq!(
        PciSetting
            .diff(
                &resource,
                &fresh(&resource, 0, &tree([0x1d, 0x1d], &elsewhere), "none")
            )
            .refusal,
        None
    );
    let none = tree([0, 0], READY).replace("0d 00 01 00", "0b 00 01 00");
    let found = PciSetting.diff(&resource, &fresh(&resource, 0, &none, "none"));
    assert!(
        found.is_met() && found.actions.is_empty(),
        "without the capability there is nothing to set: {:?}",
        found.attributes
    );
}

#[test]
fn what_our_script_says_is_told_when_it_was_changed() {
    let resource = read_request();
    let keeper = build_pci_setting_unit(&read_body(&resource.body));
    let [Action::WriteFile { content, .. }, ..] =
        &keeper.write(&PersistenceUnitFiles::default())[..]
    else {
        panic!()
    };
    let kept = |text: String| {
        let mut kept = PersistenceUnitFiles::default();
        kept.script = Some(text);
        Ok(kept)
    };
    let desired = Reading::is(4096u64);
    assert_eq!(
        read_persisted_value(
            "max_read_request",
            &desired,
            &keeper,
            &kept(content.clone())
        ),
        desired
    );
    let other = kept(content.replace("=4096", "=512"));
    assert_eq!(
        read_persisted_value("max_read_request", &desired, &keeper, &other),
        Reading::is(512u64)
    );
    assert_eq!(
        read_persisted_value(
            "max_read_request",
            &desired,
            &keeper,
            &kept("exit 0\n".to_owned())
        ),
        Reading::is("changed")
    );
}

#[test]
fn bad_bodies_are_told_apart() {
    for (body, pointer) in [
        (json!({ "netdev": "ens1" }), ""),
        (
            json!({ "netdev": "ens1", "max_read_request": 4096, "acs": "off" }),
            "",
        ),
        (
            json!({ "netdev": "ens1", "max_read_request": 4095 }),
            "/max_read_request",
        ),
        (
            json!({ "netdev": "ens1", "address": "0000:3b:00.0", "max_read_request": 512 }),
            "",
        ),
        (
            json!({ "address": "3b:00.0", "max_read_request": 512 }),
            "/address",
        ),
        (json!({ "netdevs": ["ens1"], "acs": "on" }), "/acs"),
        (json!({ "netdevs": ["a b"], "acs": "off" }), "/netdevs"),
        (json!({ "bridges": [], "acs": "off" }), "/bridges"),
        (json!({ "acs": "off" }), ""),
        (
            json!({ "netdev": "ens1", "netdevs": [], "acs": "off" }),
            "/netdev",
        ),
    ] {
        assert_eq!(
            PciSetting.check(&body).first().map(|e| e.pointer.as_str()),
            Some(pointer),
            "{body}"
        );
    }
}

proptest! {
    #[test]
    fn no_answer_panics(
        out in "(setpci\n\
                |lockdown |\\[none\\]|address 0000:3b:00.0\n\
                |device 0x0[236]0[04]00 0x10de |/0000:3b:00.0|passed |netdev ens1 0000:3b:00.0|\n\
                == config 0000:3b:00.0\n\
                |\\|0000[01]0|( [0-9a-f]{2}){16}|\n\
                ){0,40}",
        code in 0i32..3,
    ) {
        for resource in [read_request(), acs("off")] {
            let found = PciSetting.diff(&resource, &fresh(&resource, code, &out, "none"));
            PciSetting.undo(&resource, &found.before, &fresh(&resource, code, &out, "none"));
        }
    }
}
