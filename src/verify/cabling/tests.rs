//! Fabrics in small words: who hears whom, and what is to be said of it.

use super::discover::discover_cables;
use super::{
    CablingComparison, CablingFinding, CablingFindingKind, CablingNames, CablingScope,
    DeviceLldpView, PortLldpState, Silent, UnknownCableReason, Views, compare_cabling,
};
use crate::CheckVerdict;
use proptest::prelude::*;
use railwright_knowledge::spec::cabling::{CableEnd, Cabling};
use railwright_knowledge::spec::{self, LoadedSpec, SourceFile};
use railwright_resource::lldp::LldpNeighbour;
use std::collections::BTreeSet;

const SPEC: &str = "cluster: c
fabric: { kind: rocev2 }
nodes: [{ name: 'gpu[01-04]', nics: { model: soft-roce, rails: 2, netdev: 'ens{rail}' } }]
switches: [{ name: 'leaf[1-2],leaf9.dc1.example,leaf9.dc2.example' }]
cabling: cabling.csv
";

/// Rail k on leaf k+1, hosts in their order; gpu04 has no cable of ens1 in the file.
const TABLE: &str = "host,nic,switch,port\ngpu[01-04],ens0,leaf1,Ethernet[0-12/4]\ngpu[01-03],ens1,leaf2,Ethernet[0-8/4]\n";

fn loaded() -> (LoadedSpec, Cabling) {
    let loaded = spec::load_spec(vec![SourceFile {
        name: "c.yaml".to_owned(),
        text: SPEC.to_owned(),
    }])
    .unwrap();
    let loaded = spec::cabling::load_cabling(
        loaded,
        SourceFile {
            name: "cabling.csv".to_owned(),
            text: TABLE.to_owned(),
        },
    )
    .unwrap();
    let cabling = loaded.cabling.clone().unwrap();
    (loaded, cabling)
}

fn neighbour(system: &str, port: &str) -> LldpNeighbour {
    LldpNeighbour {
        system: system.to_owned(),
        port: port.to_owned(),
        ..LldpNeighbour::default()
    }
}

/// `gpu01 ens0 leaf1 Ethernet0`, `gpu01 ens0 -` (hears nobody), `x` (no link), `down`; `gpu01 !`
/// reported nothing.
fn views(lines: &[&str]) -> Views {
    let mut views = Views::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        if let [device, "!"] = words.as_slice() {
            views.insert((*device).to_owned(), Err(Silent::NoLldp));
            continue;
        }
        let Ok(view) = views
            .entry(words[0].to_owned())
            .or_insert_with(|| Ok(DeviceLldpView::default()))
        else {
            continue;
        };
        let heard = match words[2..] {
            ["-"] => PortLldpState::Neighbours(Vec::new()),
            ["x"] => PortLldpState::NoLink,
            ["down"] => PortLldpState::Down,
            [system, port] => PortLldpState::Neighbours(vec![neighbour(system, port)]),
            _ => panic!("{line}"),
        };
        view.ports.insert(words[1].to_owned(), heard);
    }
    views
}

fn right() -> Vec<String> {
    (1..=4)
        .flat_map(|host| {
            (0..2).map(move |rail| {
                format!(
                    "gpu0{host} ens{rail} leaf{} Ethernet{}",
                    rail + 1,
                    (host - 1) * 4
                )
            })
        })
        .filter(|line| !line.starts_with("gpu04 ens1"))
        .collect()
}

/// All right, but for these.
fn but(lines: &[&str]) -> CablingComparison {
    let (loaded, cabling) = loaded();
    let port = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let told: Vec<String> = lines.iter().map(|line| port(line)).collect();
    let of_silent = |line: &String| {
        lines
            .iter()
            .any(|other| other.ends_with('!') && line.starts_with(&other[..5]))
    };
    let kept: Vec<String> = right()
        .into_iter()
        .filter(|line| !told.contains(&port(line)) && !of_silent(line))
        .collect();
    let all: Vec<&str> = kept
        .iter()
        .map(String::as_str)
        .chain(lines.iter().copied())
        .collect();
    let nics: Vec<CableEnd> = loaded
        .hosts
        .iter()
        .flat_map(|host| {
            host.netdevs
                .iter()
                .map(|rail| CableEnd::new(&host.name, &rail.port))
        })
        .collect();
    compare_cabling(
        CablingScope {
            cables: &cabling.cables,
            nics: &nics,
            names: &CablingNames::of(&loaded, &cabling.cables),
        },
        &views(&all),
    )
}

fn words(finding: &CablingFinding) -> String {
    let end = |end: &Option<CableEnd>| end.as_ref().map_or("-".to_owned(), CableEnd::to_string);
    let plugs: Vec<String> = finding
        .plugs
        .iter()
        .map(|plug| {
            format!(
                "{}: {} not {}",
                plug.end,
                end(&plug.actual),
                end(&plug.desired)
            )
        })
        .collect();
    format!("{:?} {}", finding.kind, plugs.join("; "))
}

fn told(lines: &[&str]) -> Vec<String> {
    but(lines).findings.iter().map(words).collect()
}

#[test]
fn what_is_as_it_should_be_is_not_told() {
    let all = but(&[]);
    assert_eq!(
        (
            all.verdict(),
            all.findings.len(),
            all.counts.right,
            all.counts.cables
        ),
        (CheckVerdict::Passed, 0, 7, 7)
    );
}

#[test]
fn swaps_rounds_and_chains_are_told_apart() {
    for (lines, desired) in [
        (
            &["gpu01 ens0 leaf2 Ethernet0", "gpu01 ens1 leaf1 Ethernet0"][..],
            &[
                "Swapped gpu01 ens0: leaf2 Ethernet0 not leaf1 Ethernet0; gpu01 ens1: leaf1 \
                 Ethernet0 not leaf2 Ethernet0",
            ][..],
        ),
        (
            &[
                "gpu01 ens0 leaf1 Ethernet4",
                "gpu02 ens0 leaf1 Ethernet8",
                "gpu03 ens0 leaf1 Ethernet0",
            ],
            &[
                "Swapped gpu01 ens0: leaf1 Ethernet4 not leaf1 Ethernet0; gpu02 ens0: leaf1 \
                 Ethernet8 not leaf1 Ethernet4; gpu03 ens0: leaf1 Ethernet0 not leaf1 Ethernet8",
            ],
        ),
        // the port that gpu01 is in belongs to gpu02, which is in one of nobody
        (
            &["gpu01 ens0 leaf1 Ethernet4", "gpu02 ens0 leaf1 Ethernet60"],
            &[
                "WrongPort gpu01 ens0: leaf1 Ethernet4 not leaf1 Ethernet0",
                "WrongPort gpu02 ens0: leaf1 Ethernet60 not leaf1 Ethernet4",
            ],
        ),
        // a cable between two hosts
        (
            &["gpu01 ens0 gpu02 ens0", "gpu02 ens0 gpu01 ens0"],
            &[
                "WrongPort gpu01 ens0: gpu02 ens0 not leaf1 Ethernet0",
                "WrongPort gpu02 ens0: gpu01 ens0 not leaf1 Ethernet4",
            ],
        ),
        (
            &["gpu01 ens0 tor9 Ethernet0"],
            &["UnknownDevice gpu01 ens0: tor9 Ethernet0 not leaf1 Ethernet0"],
        ),
        (
            &["gpu01 ens0 x"],
            &["NoLink gpu01 ens0: - not leaf1 Ethernet0"],
        ),
        (
            &["gpu04 ens1 leaf2 Ethernet0", "gpu01 ens1 x"],
            &[
                "NoLink gpu01 ens1: - not leaf2 Ethernet0",
                "NotInFile gpu04 ens1: leaf2 Ethernet0 not -",
            ],
        ),
    ] {
        let desired: Vec<String> = desired
            .iter()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(told(lines), desired, "{lines:?}");
        assert_eq!(but(lines).verdict(), CheckVerdict::Failed, "{lines:?}");
    }
}

#[test]
fn who_hears_nobody_is_unknown_and_never_miswired() {
    for (lines, why) in [
        (&["gpu01 ens0 -"][..], UnknownCableReason::HearsNobody),
        (&["gpu01 ens0 down"], UnknownCableReason::Down),
        // a name of another sort than those of the file may well be the right port
        (
            &["gpu01 ens0 leaf1 Eth1/1"],
            UnknownCableReason::Unclear {
                device: "leaf1".to_owned(),
                said: "Eth1/1".to_owned(),
            },
        ),
        (&["gpu01 !"], UnknownCableReason::Silent(Silent::NoLldp)),
    ] {
        let all = but(lines);
        assert_eq!(all.verdict(), CheckVerdict::Unknown, "{lines:?}");
        assert_eq!(all.findings[0].why, Some(why), "{lines:?}");
    }
    let silent = but(&["gpu01 !"]);
    assert_eq!(
        (
            silent.findings.len(),
            silent.counts.unknown,
            silent.counts.right
        ),
        (1, 2, 5)
    );
}

#[test]
fn names_are_taken_as_people_and_systems_write_them() {
    for said in [
        neighbour("leaf1", "Ethernet0"),
        neighbour("LEAF1.dc.example", "ethernet0"),
        LldpNeighbour {
            description: "Ethernet0".to_owned(),
            ..neighbour("leaf1", "Eth1/1")
        },
        LldpNeighbour {
            description: "Ethernet0".to_owned(),
            port_is_mac: true,
            ..neighbour("leaf1", "6a:1b:ee:54:7b:dc")
        },
    ] {
        let (loaded, cabling) = loaded();
        let mut all = views(&["gpu01 ens0 -"]);
        all.get_mut("gpu01")
            .unwrap()
            .as_mut()
            .unwrap()
            .ports
            .insert(
                "ens0".to_owned(),
                PortLldpState::Neighbours(vec![said.clone()]),
            );
        let found = compare_cabling(
            CablingScope {
                cables: &cabling.cables[..1],
                nics: &[],
                names: &CablingNames::of(&loaded, &cabling.cables),
            },
            &all,
        );
        assert_eq!(found.counts.right, 1, "{said:?}");
    }
    // two switches of one short name are not guessed
    assert_eq!(
        told(&["gpu01 ens0 leaf9 Ethernet0"]),
        ["UnknownDevice gpu01 ens0: leaf9 Ethernet0 not leaf1 Ethernet0"]
    );
}

/// The other end's word is as good: a switch that is asked as well needs no other code.
#[test]
fn either_end_proves_a_cable_and_tells_a_swap() {
    let (loaded, cabling) = loaded();
    let names = CablingNames::of(&loaded, &cabling.cables);
    let of = |lines: &[&str]| {
        compare_cabling(
            CablingScope {
                cables: &cabling.cables,
                nics: &[],
                names: &names,
            },
            &views(lines),
        )
    };
    let of_leaf = of(&[
        "leaf1 Ethernet0 gpu01 ens0",
        "leaf1 Ethernet4 gpu02 ens0",
        "leaf1 Ethernet8 -",
        "leaf1 Ethernet12 x",
    ]);
    assert_eq!(
        (
            of_leaf.counts.right,
            of_leaf.counts.unknown,
            of_leaf.counts.wrong,
            of_leaf.counts.not_asked
        ),
        (2, 1, 1, 3)
    );
    let swapped = of(&[
        "leaf1 Ethernet0 gpu02 ens0",
        "leaf1 Ethernet4 gpu01 ens0",
        "gpu01 ens0 -",
    ]);
    assert_eq!(
        swapped
            .findings
            .iter()
            .filter(|finding| finding.kind == CablingFindingKind::Swapped)
            .count(),
        1
    );
}

/// Of a switch that tells nothing the switch is named, and not the host at the other end.
#[test]
fn who_tells_nothing_is_named() {
    let (loaded, cabling) = loaded();
    let names = CablingNames::of(&loaded, &cabling.cables);
    let found = compare_cabling(
        CablingScope {
            cables: &cabling.cables,
            nics: &[],
            names: &names,
        },
        &views(&["leaf1 !"]),
    );
    let told: Vec<String> = found.findings[0]
        .plugs
        .iter()
        .map(|plug| plug.end.device.clone())
        .collect();
    assert_eq!(
        (found.findings.len(), told),
        (1, vec!["leaf1".to_owned(); 4])
    );
}

/// Where a cable is in, nobody tells; but the port that it belongs in has another one.
#[test]
fn a_place_that_is_taken_is_told_as_that() {
    let (loaded, cabling) = loaded();
    let names = CablingNames::of(&loaded, &cabling.cables);
    let found = compare_cabling(
        CablingScope {
            cables: &cabling.cables,
            nics: &[],
            names: &names,
        },
        &views(&["leaf1 Ethernet4 gpu01 ens0"]),
    );
    let taken = found
        .findings
        .iter()
        .find(|finding| finding.plugs[0].end == CableEnd::new("gpu02", "ens0"))
        .unwrap();
    assert_eq!(
        (taken.kind, &taken.why),
        (
            CablingFindingKind::Unknown,
            &Some(UnknownCableReason::Taken(CableEnd::new("gpu01", "ens0")))
        )
    );
}

#[test]
fn what_is_heard_becomes_a_table() {
    let (loaded, _) = loaded();
    let names = CablingNames::of(&loaded, &[]);
    let nics: Vec<CableEnd> = ["gpu01", "gpu02", "gpu03"]
        .iter()
        .flat_map(|host| [CableEnd::new(*host, "ens0"), CableEnd::new(*host, "ens1")])
        .collect();
    let mut all = views(&[
        "gpu01 ens0 LEAF1 Ethernet0",
        "gpu01 ens1 tor9 swp1",
        "gpu02 ens0 -",
        "gpu03 !",
    ]);
    let odd = PortLldpState::Neighbours(vec![neighbour("leaf2", "two words")]);
    all.get_mut("gpu02")
        .unwrap()
        .as_mut()
        .unwrap()
        .ports
        .insert("ens1".to_owned(), odd);
    let switches = BTreeSet::from(["leaf1", "leaf2"]);
    let found = discover_cables(&nics, &switches, &names, &all);
    let cables: Vec<String> = found
        .cables
        .iter()
        .map(|(nic, port)| format!("{nic} {port}"))
        .collect();
    assert_eq!(
        cables,
        ["gpu01 ens0 leaf1 Ethernet0", "gpu01 ens1 tor9 swp1"]
    );
    let unseen: Vec<String> = found
        .unseen
        .iter()
        .map(|(nic, why)| format!("{nic} {why}"))
        .collect();
    assert_eq!(
        unseen,
        [
            "gpu02 ens0 hears nobody",
            "gpu02 ens1 hears leaf2 `two words`, which is no name that a file could have"
        ]
    );
    assert_eq!(found.strangers.into_iter().collect::<Vec<_>>(), ["tor9"]);
    // what a host does not hear or tell the switch may; and cables between switches are heard at
    // both ends
    let of_switches = [
        "leaf1 Ethernet4 gpu02 ens0",
        "leaf1 Ethernet8 gpu03 ens0",
        "leaf1 Ethernet60 leaf2 Ethernet60",
        "leaf2 Ethernet60 leaf1 Ethernet60",
    ];
    all.extend(views(&of_switches));
    let found = discover_cables(&nics, &switches, &names, &all);
    let cables: Vec<String> = found
        .cables
        .iter()
        .map(|(nic, port)| format!("{nic} {port}"))
        .skip(2)
        .collect();
    assert_eq!(
        cables,
        [
            "gpu02 ens0 leaf1 Ethernet4",
            "gpu03 ens0 leaf1 Ethernet8",
            "leaf1 Ethernet60 leaf2 Ethernet60"
        ]
    );
    assert_eq!(found.unseen.len(), 1, "{:?}", found.unseen);
}

proptest! {
    /// However the plugs of the file are mixed: the report names each cable that is not where it
    /// belongs once, and no other; and each round comes back to its beginning.
    #[test]
    fn every_permutation_is_told_once(order in Just((0..7usize).collect::<Vec<_>>()).prop_shuffle()) {
        let (loaded, cabling) = loaded();
        let mut all = Views::new();
        for (cable, other) in cabling.cables.iter().zip(&order) {
            let there = &cabling.cables[*other].to;
            let view = all.entry(cable.from.device.clone()).or_insert_with(|| Ok(DeviceLldpView::default()));
            view.as_mut().unwrap().ports.insert(cable.from.port.clone(), PortLldpState::Neighbours(vec![neighbour(&there.device, &there.port)]));
        }
        let actual = compare_cabling(CablingScope { cables: &cabling.cables, nics: &[], names: &CablingNames::of(&loaded, &cabling.cables) }, &all);
        let moved = order.iter().enumerate().filter(|(place, other)| place != *other).count();
        let mut ends: Vec<&CableEnd> = actual.findings.iter().flat_map(|finding| &finding.plugs).map(|plug| &plug.end).collect();
        ends.sort();
        ends.dedup();
        prop_assert_eq!((actual.counts.wrong, ends.len(), actual.counts.right), (moved, moved, 7 - moved));
        for finding in &actual.findings {
            prop_assert_eq!(finding.kind, CablingFindingKind::Swapped);
            for (place, plug) in finding.plugs.iter().enumerate() {
                let next = &finding.plugs[(place + 1) % finding.plugs.len()];
                prop_assert_eq!(&plug.actual, &next.desired);
            }
        }
    }
}
