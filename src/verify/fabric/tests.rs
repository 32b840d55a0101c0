//! Small fabrics in which one thing is bent, and ends in every combination.

use super::facts::{EndCounterChanges, Marking, Rise};
use super::sample_for_tests::{Fabric, Size};
use super::{
    CheckedLinkEnd, DesiredFabricSettings, EndFacts, FabricDevice, LinkProblemKind, Tier,
    find_link_problems,
};
use crate::CheckVerdict;
use proptest::prelude::*;
use railwright_base::Reason;
use railwright_knowledge::spec::{self, SourceFile};
use railwright_resource::Fact;
use railwright_resource::counters::names::Meter;
use std::collections::{BTreeMap, BTreeSet};

const SMALL: Size = Size {
    pods: 1,
    hosts: 2,
    rails: 2,
    spines: 1,
};

/// What `dcb` says of a NIC with PFC, and of one whose driver has none.
const PFC_OF_3: &str = "== pfc 0\n|{\"prio_pfc\":[false,false,false,true,false,false,false,false]}";
const NO_DCB: &str = "== pfc 1\n|Attribute read: Operation not supported";
const VIRTUAL: &str = "== virtual-function\n\n== pfc 0";

/// What is reported once these read results are bent: `(device, key, from, to)`.
fn bent(bends: &[(&str, &str, &str, &str)]) -> Vec<String> {
    let mut fabric = Fabric::of(SMALL);
    bends
        .iter()
        .for_each(|(device, key, from, to)| fabric.bend(device, key, from, to));
    let (_, report) = fabric.evaluated();
    let words = |finding: &super::FabricFinding| {
        let count = finding
            .count
            .map_or_else(String::new, |count| format!(" +{count}"));
        format!(
            "{:?} {}{count} on {}",
            finding.kind,
            finding.said,
            finding.links.len()
        )
    };
    report.findings.iter().map(words).collect()
}

#[test]
fn what_agrees_is_not_told() {
    let (_, report) = Fabric::of(SMALL).evaluated();
    assert_eq!(
        (
            report.verdict(),
            report.findings,
            report.links.len(),
            report.seconds
        ),
        (CheckVerdict::Passed, Vec::new(), 6, Some(5.0))
    );
}

/// A broken case of every kind.
#[test]
fn each_thing_that_is_bent_is_told() {
    const RUNNING: &str = "switch:running";
    for (bend, desired) in [
        (
            ("gpu01", "link:ens0f0np0", "mtu=9000", "mtu=9500"),
            "Mtu MTU: host 9500, leaf 9216 on 1",
        ),
        (
            ("leaf1", RUNNING, "\"mtu\":\"9216\"", "\"mtu\":\"1500\""),
            "Mtu MTU: host 9000, leaf 1500 on 2",
        ),
        (
            ("gpu01", "link:ens0f0np0", "mtu=9000", "mtu=1500"),
            "MtuOfSpec MTU: host 1500 instead of 9000 on 1",
        ),
        (
            ("gpu01", "link:ens0f0np0", "carrier=1", "carrier=0"),
            "Down host: down, or without a link on 1",
        ),
        (
            ("leaf2", RUNNING, "\"up\"", "\"down\""),
            "Down leaf: administratively down on 3",
        ),
        (
            ("gpu02", "link_qos:ens1f0np0", "[26,3]", "[26,4]"),
            "Dscp DSCP 26 has priority: host 4, leaf 3, the fabric 3 on 1",
        ),
        (
            ("leaf1", RUNNING, "\"48\":\"6\"", "\"48\":\"0\""),
            "Dscp DSCP 48 has priority: host 6, leaf 0, the fabric 6 on 2",
        ),
        (
            ("gpu01", "link_qos:ens0f0np0", "false,true", "true,false"),
            "Pfc PFC: host 2, leaf 3, the fabric 3 on 1",
        ),
        (
            ("gpu01", "link_qos:ens0f0np0", PFC_OF_3, NO_DCB),
            "Pfc PFC: host none, leaf 3, the fabric 3 on 1",
        ),
        (
            ("gpu01", "link_qos:ens0f0np0", "== pfc 0", "== mlnx_qos 1"),
            "Unknown host: mlnx_qos has no answer for ens0f0np0: it knows NVIDIA NICs only on 1",
        ),
        (
            ("gpu01", "link_qos:ens0f0np0", "== pfc 0", VIRTUAL),
            "Unknown host: ens0f0np0 is a virtual function; only the physical function of a port \
             has PFC on 1",
        ),
        (
            (
                "spine1",
                RUNNING,
                "\"pfc_enable\":\"3\"",
                "\"pfc_enable\":\"\"",
            ),
            "Pfc PFC: leaf 3, spine none, the fabric 3 on 2",
        ),
        (
            ("leaf1", RUNNING, "ecn_all", "ecn_none"),
            "Ecn leaf: the queue of the lossless class is not marked on 3",
        ),
        (
            (
                "leaf1",
                "switch_counters:second",
                "DROPPED_PACKETS/3 0",
                "DROPPED_PACKETS/3 9",
            ),
            "Lost leaf: dropped of priority 3 for want of a buffer +54 on 3",
        ),
        (
            (
                "gpu01",
                "link_counters:second",
                "out_of_buffer 5",
                "out_of_buffer 6",
            ),
            "Lost host: dropped of the port for want of a buffer +2 on 2",
        ),
        (
            (
                "gpu01",
                "link_counters:second",
                "rx_prio5_pause 0",
                "rx_prio5_pause 8",
            ),
            "PausedElsewhere host: was told to pause priority 5, which has no PFC here +16 on 2",
        ),
        (
            (
                "leaf1",
                "switch_counters:second",
                "DEADLOCK_DETECTED/3 1",
                "DEADLOCK_DETECTED/3 2",
            ),
            "Watchdog leaf: the watchdog cut off a pause without end of priority 3 +3 on 3",
        ),
        (
            ("leaf1", "switch_counters:second", "operational", "stormed"),
            "Watchdog leaf: the watchdog holds priority 3 down now on 3",
        ),
        (
            (
                "leaf1",
                "switch_counters:second",
                "PFC_3_RX_PKTS 2",
                "PFC_3_RX_PKTS 1",
            ),
            "Unknown leaf: a counter was set back between the readings on 3",
        ),
        (
            ("leaf1", RUNNING, "\"mtu\":\"9216\"", "\"mtu\":\"-1\""),
            "Unknown leaf: mtu makes no sense: `-1` on 3",
        ),
        (
            (
                "leaf1",
                RUNNING,
                "\"pfc_enable\":\"3\"",
                "\"pfc_enable\":\"3,x\"",
            ),
            "Unknown leaf: pfc_enable makes no sense: `3,x` on 3",
        ),
        (
            (
                "leaf1",
                "switch_counters:second",
                "uptime 5005",
                "uptime NaN",
            ),
            "Unknown leaf: its uptime makes no sense, and it may have been started anew between \
             the readings: `NaN.00` on 3",
        ),
        (
            ("gpu01", "link_counters:second", "uptime 1005", "uptime 12"),
            "Unknown host: it was started anew between the readings on 2",
        ),
    ] {
        let told = bent(&[bend]);
        let is_that = told.iter().any(|told| told == desired);
        assert!(is_that, "{bend:?}\n{told:#?}");
    }
}

/// Where a switch stands is what the spec says; without a word of it a switch with hosts is a leaf.
/// A spine is above, whoever the file names first.
#[test]
fn switches_stand_where_the_spec_says() {
    let tiers = |roles: [&str; 3], lines: &str| {
        let [one, other, third] = roles;
        let spec = format!(
            "cluster: c\n\
             fabric: {{ kind: rocev2 }}\n\
             nodes: [{{ name: n1, nics: {{ model: soft-roce, netdev: ens1 }} }}]\n\
             switches: [{{ name: a{one} }}, {{ name: b{other} }}, {{ name: c{third} }}]\n\
             cabling: cabling.csv\n"
        );
        let loaded = spec::load_spec(vec![SourceFile {
            name: "c.yaml".to_owned(),
            text: spec,
        }])
        .unwrap();
        let table = SourceFile {
            name: "cabling.csv".to_owned(),
            text: format!("host,nic,switch,port\n{lines}"),
        };
        let loaded = spec::cabling::load_cabling(loaded, table).unwrap();
        let word = |end: &super::EndPoint| format!("{} {}", end.tier.word(), end.device);
        super::list_fabric_links(&loaded, None)
            .iter()
            .map(|link| format!("{} - {}", word(&link.from), word(&link.to)))
            .collect::<Vec<_>>()
    };
    let lines = "n1,ens1,a,E0\nc,E0,a,E1\nb,E0,c,E1\na,E2,b,E2\n";
    assert_eq!(
        tiers([", role: leaf", ", role: leaf", ", role: spine"], lines),
        [
            "host n1 - leaf a",
            "leaf a - spine c",
            "leaf b - spine c",
            "leaf a - leaf b"
        ]
    );
    assert_eq!(
        tiers(["", "", ""], lines),
        [
            "host n1 - leaf a",
            "leaf a - spine c",
            "spine b - spine c",
            "leaf a - spine b"
        ]
    );
    assert_eq!(
        tiers([", role: spine", "", ""], "n1,ens1,a,E0\n"),
        ["host n1 - spine a"]
    );
}

/// Both ends with one wrong value agree with each other, and not with the spec; of those that do
/// not agree only that is reported.
#[test]
fn an_end_that_has_not_the_mtu_of_the_spec_is_told() {
    let facts = |mtu: u64| EndFacts {
        mtu: Fact::Is(mtu),
        ..EndFacts::silent("why")
    };
    let told = |[(one, desired), (other, of_other)]: [(u64, Option<u64>); 2]| {
        let (one, other) = (facts(one), facts(other));
        let seen = |tier, facts, mtu| CheckedLinkEnd {
            tier,
            facts,
            is_to_mark: false,
            mtu,
        };
        let all = find_link_problems(
            [
                &seen(Tier::Leaf, &one, desired),
                &seen(Tier::Spine, &other, of_other),
            ],
            &DesiredFabricSettings::default(),
        );
        let all = all
            .into_iter()
            .filter(|trouble| trouble.kind != LinkProblemKind::Unknown);
        all.map(|trouble| format!("{} {}", trouble.kind.code(), trouble.said))
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert_eq!(
        told([(1500, Some(9216)), (1500, Some(9214))]),
        "RW0850 MTU: leaf 1500 instead of 9216, spine 1500 instead of 9214"
    );
    assert_eq!(
        told([(9216, Some(9216)), (9216, Some(9214))]),
        "RW0850 MTU: spine 9216 instead of 9214"
    );
    assert_eq!(told([(9216, None), (9216, None)]), "");
    assert_eq!(
        told([(9216, Some(9216)), (1500, Some(9216))]),
        "RW0840 MTU: leaf 9216, spine 1500"
    );
}

#[test]
fn lossy_classes_may_lose_and_lossless_ones_may_be_paused() {
    assert_eq!(
        bent(&[(
            "leaf1",
            "switch_counters:second",
            "DROPPED_PACKETS/0 8",
            "DROPPED_PACKETS/0 88"
        )]),
        [""; 0]
    );
    assert_eq!(
        bent(&[(
            "gpu01",
            "link_counters:second",
            "rx_prio3_pause 42",
            "rx_prio3_pause 4200"
        )]),
        [""; 0]
    );
}

#[test]
fn a_device_that_says_nothing_is_unknown_once() {
    let mut fabric = Fabric::of(SMALL);
    fabric.devices.insert(
        "leaf1".to_owned(),
        FabricDevice::Silent("not reachable (RW0401)".to_owned()),
    );
    let (_, report) = fabric.evaluated();
    assert_eq!(report.verdict(), CheckVerdict::Unknown);
    let told: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.said.as_str(), finding.links.len()))
        .collect();
    assert_eq!(told, [("leaf: not reachable (RW0401)", 3)]);
    // Where counters are not looked at, none are missed.
    let desired = DesiredFabricSettings {
        counts: false,
        ..DesiredFabricSettings::of(&fabric.loaded, false)
    };
    fabric.devices.remove("leaf1");
    let report = super::check_fabric_links(
        &super::list_fabric_links(&fabric.loaded, None),
        &fabric.devices,
        &desired,
    );
    assert_eq!(
        report.findings[0].said,
        "leaf: the spec does not say how it is reached (`ssh`)"
    );
}

/// A spec without a lossless class: what the other end pauses says whether the link has one.
#[test]
fn a_nic_without_pfc_is_right_where_no_class_is_lossless() {
    for (from, to, beside_pfc) in [
        (PFC_OF_3, NO_DCB, LinkProblemKind::Pfc),
        ("== pfc 0", "== mlnx_qos 1", LinkProblemKind::Unknown),
        ("== pfc 0", VIRTUAL, LinkProblemKind::Unknown),
    ] {
        let mut fabric = Fabric::of(Size {
            pods: 1,
            hosts: 1,
            rails: 1,
            spines: 0,
        });
        fabric.bend("gpu01", "link_qos:ens0f0np0", from, to);
        let actual = |fabric: &Fabric| -> Vec<LinkProblemKind> {
            let links = super::list_fabric_links(&fabric.loaded, None);
            let desired = DesiredFabricSettings::default();
            let report = super::check_fabric_links(&links, &fabric.devices, &desired);
            report.findings.iter().map(|actual| actual.kind).collect()
        };
        assert_eq!(actual(&fabric), [beside_pfc], "{to}");
        let (on, off) = ("\"pfc_enable\":\"3\"", "\"pfc_enable\":\"\"");
        fabric.bend("leaf1", "switch:running", on, off);
        assert_eq!(actual(&fabric), [], "{to}");
    }
}

fn fact<T: Clone + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Fact<T>> {
    prop_oneof![
        4 => value.prop_map(Fact::Is),
        1 => Just(Fact::Absent),
        1 => Just(Fact::NotApplicable("no".into())),
        1 => Just(Fact::Unknown("why".into())),
    ]
    .boxed()
}

fn rise() -> impl Strategy<Value = Rise> {
    let meters = [
        Meter::PauseReceived,
        Meter::PauseSent,
        Meter::Lost,
        Meter::Marked,
        Meter::Storms,
        Meter::Discarded,
    ];
    (
        proptest::sample::select(meters.to_vec()),
        proptest::option::of(0..8u8),
        fact(0..3u64),
    )
        .prop_map(|(meter, priority, rose)| Rise {
            meter,
            priority,
            rose,
        })
}

fn end() -> impl Strategy<Value = (Tier, EndFacts, bool)> {
    let dscp =
        proptest::collection::btree_map(prop_oneof![Just(26u8), Just(48), Just(10)], 0..8u8, 0..3);
    let pfc = proptest::collection::btree_set(3..5u8, 0..3);
    let marking = Just(Marking {
        min_bytes: 1,
        max_bytes: 2,
        probability_percent: 3,
    });
    let counted = (
        proptest::collection::vec(rise(), 0..4),
        proptest::collection::btree_set(0..8u8, 0..2),
    )
        .prop_map(|(rises, stormed)| EndCounterChanges { rises, stormed });
    let tier = proptest::sample::select(vec![Tier::Host, Tier::Leaf, Tier::Spine]);
    let silent = prop_oneof![9 => Just(None), 1 => Just(Some(Reason::from("why")))];
    let facts = (
        silent,
        fact(any::<bool>()),
        fact(1500..1503u64),
        fact(dscp),
        fact(pfc),
        fact(marking),
        fact(counted),
    );
    let facts = facts.prop_map(|(silent, up, mtu, dscp, pfc, marking, counted)| EndFacts {
        silent,
        up,
        mtu,
        dscp,
        pfc,
        marking,
        counted,
    });
    (tier, facts, any::<bool>())
}

fn desired() -> impl Strategy<Value = DesiredFabricSettings> {
    (proptest::option::of(Just(3u8)), any::<bool>()).prop_map(|(lossless, counts)| {
        DesiredFabricSettings {
            lossless,
            dscp: lossless.map_or_else(BTreeMap::new, |priority| {
                BTreeMap::from([(26, priority), (48, 6)])
            }),
            marking: BTreeSet::new(),
            mtu: BTreeMap::new(),
            counts,
        }
    })
}

proptest! {
    /// Which end the cabling file names first says nothing; and each trouble is reported once.
    #[test]
    fn comparing_is_symmetric(one in end(), other in end(), desired in desired()) {
        let [a, b] = [&one, &other].map(|(tier, facts, is_to_mark)| CheckedLinkEnd { tier: *tier, facts, is_to_mark: *is_to_mark, mtu: Some(1501) });
        let told = find_link_problems([&a, &b], &desired);
        prop_assert_eq!(&told, &find_link_problems([&b, &a], &desired));
        let mut once = told.clone();
        once.dedup();
        prop_assert_eq!(&told, &once);
        // What is not known is never taken for agreement.
        let is_unknown = [&one.1, &other.1].iter().any(|facts| facts.silent.is_some() || (facts.mtu != Fact::Absent && facts.mtu.why_unknown().is_some()));
        prop_assert!(!is_unknown || told.iter().any(|trouble| trouble.kind == LinkProblemKind::Unknown));
    }
}
