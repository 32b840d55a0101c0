//! The screen with one host, and with a thousand.

use super::document::CablingDocument;
use super::{CablingSubject, render_cabling_screen};
use railwright_knowledge::spec::cabling::CableEnd;
use railwright_resource::observation::TargetReadFailure;
use railwright_verify::cabling::{
    CablingComparison, CablingCounts, CablingFinding, CablingFindingKind, Plug, Silent,
    UnknownCableReason,
};

fn plug(
    host: &str,
    nic: &str,
    desired: Option<(&str, String)>,
    actual: Option<(&str, String)>,
) -> Plug {
    let end = |end: Option<(&str, String)>| end.map(|(device, port)| CableEnd::new(device, port));
    Plug {
        end: CableEnd::new(host, nic),
        desired: end(desired),
        actual: end(actual),
        owner: None,
        line: Some(7),
    }
}

fn finding(
    kind: CablingFindingKind,
    plugs: Vec<Plug>,
    why: Option<UnknownCableReason>,
) -> CablingFinding {
    CablingFinding { kind, plugs, why }
}

/// Rails 1 and 2 of a host are in each other's leaves.
fn crossed(host: &str, port: usize) -> CablingFinding {
    let port = format!("Ethernet{port}");
    let plugs = vec![
        plug(
            host,
            "ens1f0np0",
            Some(("leaf2", port.clone())),
            Some(("leaf3", port.clone())),
        ),
        plug(
            host,
            "ens2f0np0",
            Some(("leaf3", port.clone())),
            Some(("leaf2", port)),
        ),
    ];
    finding(CablingFindingKind::Swapped, plugs, None)
}

fn shown(hosts: &[String], findings: Vec<CablingFinding>, counts: CablingCounts) -> String {
    let mut findings = findings;
    findings.sort_by_key(|finding| finding.kind);
    let subject = CablingSubject {
        inventory: "inventories/a",
        file: "inventories/a/cabling.csv",
        hosts,
        switches: &[],
    };
    let text = render_cabling_screen(&subject, &CablingComparison { findings, counts });
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    text
}

#[test]
fn one_host_is_told_move_by_move() {
    let desired = |port: usize| Some(("leaf1", format!("Ethernet{port}")));
    let findings = vec![
        crossed("gpu01", 0),
        finding(
            CablingFindingKind::WrongPort,
            vec![Plug {
                owner: Some(CableEnd::new("gpu02", "ens0f0np0")),
                ..plug("gpu01", "ens0f0np0", desired(0), desired(4))
            }],
            None,
        ),
        finding(
            CablingFindingKind::UnknownDevice,
            vec![plug(
                "gpu01",
                "ens3f0np0",
                Some(("leaf4", "Ethernet0".into())),
                Some(("tor9", "swp1".into())),
            )],
            None,
        ),
        finding(
            CablingFindingKind::NoLink,
            vec![plug(
                "gpu01",
                "ens4f0np0",
                Some(("leaf5", "Ethernet0".into())),
                None,
            )],
            None,
        ),
        finding(
            CablingFindingKind::NotInFile,
            vec![Plug {
                line: None,
                ..plug(
                    "gpu01",
                    "ens7f0np0",
                    None,
                    Some(("leaf8", "Ethernet0".into())),
                )
            }],
            None,
        ),
        finding(
            CablingFindingKind::Unknown,
            vec![plug(
                "gpu01",
                "ens5f0np0",
                Some(("leaf6", "Ethernet0".into())),
                None,
            )],
            Some(UnknownCableReason::HearsNobody),
        ),
    ];
    let counts = CablingCounts {
        cables: 7,
        right: 1,
        wrong: 5,
        unknown: 1,
        not_asked: 2,
    };
    insta::assert_snapshot!(shown(&["gpu01".to_owned()], findings, counts), @r#"
    verify cabling inventories/a   1 host: gpu01   file inventories/a/cabling.csv

    WRONG: not as the file has it -------------------------------------------------------------------
     ! gpu01 ens1f0np0 and ens2f0np0 are swapped   RW0830
           actual  ens1f0np0 in leaf3 Ethernet0, ens2f0np0 in leaf2 Ethernet0
           means   traffic of these rails takes a way over other switches than it was meant to, or finds
                   none: slow under load, and hard to see
           next    at the host: move the plug in ens1f0np0 to ens2f0np0, and the one in ens2f0np0 to
                   ens1f0np0
     ! gpu01 ens0f0np0 is in a wrong port   RW0831
           actual  leaf1 Ethernet4, where gpu02 ens0f0np0 belongs
           desired leaf1 Ethernet0 (inventories/a/cabling.csv:7)
           means   the switch takes one port for the other: settings and counters of one are believed to
                   be of the other's NIC
           next    move the plug in leaf1 Ethernet4 to leaf1 Ethernet0
     ! gpu01 ens3f0np0 is in a device that the spec does not have   RW0832
           actual  tor9 swp1
           desired leaf4 Ethernet0 (inventories/a/cabling.csv:7)
           means   it is in another network than its rail, or the switch calls itself otherwise than the
                   spec does
           next    move the plug to leaf4 Ethernet0
           next    or, if tor9 is leaf4: give it that name, or write its own in `switches` and in
                   inventories/a/cabling.csv
           next    railwright discover cabling inventories/a tells by what names all switches are heard
     ! gpu01 ens4f0np0 has no link   RW0833
           actual  up, and no signal: the cable is not there, or its other end is in nothing or in a
                   port that is off
           desired leaf5 Ethernet0 (inventories/a/cabling.csv:7)
           means   this rail carries nothing
           next    look at both plugs, then at the port of the switch (is it up, same speed and FEC?)
     ! gpu01 ens7f0np0 is plugged in, and inventories/a/cabling.csv has no line of it   RW0834
           actual  leaf8 Ethernet0
           means   nobody compares where this NIC is plugged in
           next    write its line in inventories/a/cabling.csv if it belongs there:
                   gpu01,ens7f0np0,leaf8,Ethernet0

    UNKNOWN: inconclusive ---------------------------------------------------------------------------
     ? gpu01 ens5f0np0   RW0835
           actual  it has a link, and hears nobody
           means   the cable may well be right: an LLDP agent in the firmware of a ConnectX takes the
                   frames, or the switch sends none
           next    look who is on leaf6 Ethernet0 at the switch; railwright explain RW0835 tells the
                   causes

    The cables are not as the file has them. 7 cables: 1 right, 5 wrong, 1 unknown.
    2 other cables were not looked at: of devices that were not asked.
    "#);
}

#[test]
fn a_thousand_hosts_are_a_few_entries() {
    let hosts: Vec<String> = (1..=1000).map(|number| format!("gpu{number:04}")).collect();
    let mut findings: Vec<CablingFinding> = (0..64)
        .map(|place| crossed(&hosts[place], place * 4))
        .collect();
    let nics: Vec<String> = (0..8).map(|rail| format!("ens{rail}f0np0")).collect();
    for host in &hosts[100..900] {
        for nic in &nics {
            findings.push(finding(
                CablingFindingKind::Unknown,
                vec![plug(host, nic, Some(("leaf1", "Ethernet0".into())), None)],
                Some(UnknownCableReason::HearsNobody),
            ));
        }
    }
    for host in &hosts[900..950] {
        findings.push(finding(
            CablingFindingKind::Silent,
            vec![plug(host, "ens0f0np0", None, None)],
            Some(UnknownCableReason::Silent(Silent::NoLldp)),
        ));
    }
    for host in &hosts[950..] {
        let trouble = TargetReadFailure {
            code: "RW0401".to_owned(),
            message: format!("{host} is not reachable"),
            shared_message: "not reachable: Connection refused".to_owned(),
            next: vec!["check that it is up".to_owned()],
        };
        findings.push(finding(
            CablingFindingKind::Silent,
            vec![plug(host, "ens0f0np0", None, None)],
            Some(UnknownCableReason::Silent(Silent::Unreached(Box::new(
                trouble,
            )))),
        ));
    }
    // two neighbours in a rack have their first cables in each other's ports
    let pair = |one: &str, other: &str, port: usize| {
        let at = |port: usize| Some(("leaf1", format!("Ethernet{port}")));
        let plugs = vec![
            plug(one, "ens0f0np0", at(port), at(port + 4)),
            plug(other, "ens0f0np0", at(port + 4), at(port)),
        ];
        finding(CablingFindingKind::Swapped, plugs, None)
    };
    findings.push(pair("gpu0070", "gpu0071", 280));
    findings.push(pair("gpu0072", "gpu0073", 288));
    let counts = CablingCounts {
        cables: 8000,
        right: 1068,
        wrong: 132,
        unknown: 6800,
        not_asked: 0,
    };
    insta::assert_snapshot!(shown(&hosts, findings, counts), @r#"
    verify cabling inventories/a   1000 hosts: gpu[0001-1000]   file inventories/a/cabling.csv

    WRONG: not as the file has it -------------------------------------------------------------------
     ! gpu[0001-0064] ens1f0np0 and ens2f0np0 are swapped   RW0830
           actual  ens1f0np0 in leaf3 Ethernet[0-252/4], ens2f0np0 in leaf2 Ethernet[0-252/4]
           means   traffic of these rails takes a way over other switches than it was meant to, or finds
                   none: slow under load, and hard to see
           next    at the host: move the plug in ens1f0np0 to ens2f0np0, and the one in ens2f0np0 to
                   ens1f0np0
     ! gpu[0070,0072] ens0f0np0 and gpu[0071,0073] ens0f0np0 are swapped, pair by pair   RW0830
           actual  gpu[0070,0072] ens0f0np0 in leaf1 Ethernet[284,292], gpu[0071,0073] ens0f0np0 in
                   leaf1 Ethernet[280,288]
           means   the switch takes one port for the other: settings and counters of one are believed to
                   be of the other's NIC
           next    at the switch: move the plug in leaf1 Ethernet[284,292] to leaf1 Ethernet[280,288],
                   and the one in leaf1 Ethernet[280,288] to leaf1 Ethernet[284,292]

    UNKNOWN: inconclusive ---------------------------------------------------------------------------
     ? gpu[0101-0900] ens[0-7]f0np0   RW0835
           actual  they have a link, and hear nobody
           means   the cable may well be right: an LLDP agent in the firmware of a ConnectX takes the
                   frames, or the switch sends none
           next    look who is on its port at the switch; railwright explain RW0835 tells the causes
     ? gpu[0901-0950]   RW0836
           actual  lldpd is not installed
           next    write `tuning: { lldp: true }` in its node group, then railwright plan inventories/a:
                   module lldpd installs and starts it
           next    switches and hosts hear each other about 30 s after it starts
     ? gpu[0951-1000]   RW0401
           actual  not reachable: Connection refused
           next    check that it is up

    The cables are not as the file has them. 8000 cables: 1068 right, 132 wrong, 6800 unknown.
    "#);
}

#[test]
fn as_json_every_cable_stands_by_itself() {
    let comparison = CablingComparison {
        findings: vec![crossed("gpu01", 0), crossed("gpu02", 4)],
        counts: CablingCounts::default(),
    };
    let subject = CablingSubject {
        inventory: "a",
        file: "a/cabling.csv",
        hosts: &["gpu01".to_owned(), "gpu02".to_owned()],
        switches: &["leaf1".to_owned()],
    };
    let json = serde_json::to_value(CablingDocument::of(&subject, &comparison)).unwrap();
    assert_eq!(
        (&json["verdict"], &json["switches"]),
        (&"failed".into(), &serde_json::json!(["leaf1"]))
    );
    assert_eq!(json["findings"].as_array().unwrap().len(), 2);
    assert_eq!(
        json["findings"][1]["says"],
        "gpu02 ens1f0np0 and ens2f0np0 are swapped"
    );
    assert_eq!(
        json["findings"][1]["cables"][0]["actual"],
        serde_json::json!({ "device": "leaf3", "port": "Ethernet4" })
    );
}
