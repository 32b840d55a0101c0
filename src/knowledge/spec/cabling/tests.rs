//! The file from bytes to cables, and every mistake in it at its place.

use super::write;
use super::{BYTES_MAX, CableEnd, Cabling, load_cabling};
use crate::spec::{self, LoadedSpec, Problems, SourceFile};
use proptest::prelude::*;
use railwright_base::Severity;

/// Four hosts with two rails, each rail a network of its own; four leaves and a spine.
fn spec() -> LoadedSpec {
    let text = "cluster: c
fabric: { kind: rocev2 }
nodes:
  - { name: 'gpu[01-04]', nics: { model: soft-roce, rails: 2, netdev: 'ens{rail}f0np0', address: '10.10.{rail}.{index}/24' } }
  - { name: login1 }
switches:
  - { name: 'leaf[1-4],spine1' }
cabling: cabling.csv
";
    spec::load_spec(vec![SourceFile {
        name: "c.yaml".to_owned(),
        text: text.to_owned(),
    }])
    .unwrap()
}

fn with(lines: &str) -> Result<LoadedSpec, Problems> {
    let text = format!("host,nic,switch,port\n{lines}");
    load_cabling(
        spec(),
        SourceFile {
            name: "cabling.csv".to_owned(),
            text,
        },
    )
}

fn cables(cabling: &Cabling) -> Vec<String> {
    cabling
        .cables
        .iter()
        .map(|cable| format!("{} - {} @{}", cable.from, cable.to, cable.line))
        .collect()
}

#[test]
fn ports_that_something_is_plugged_into_are_those_of_the_fabric() {
    let loaded = with("gpu01,ens0f0np0,leaf1,Ethernet12\ngpu02,ens0f0np0,leaf1,Ethernet4\nleaf1,Ethernet100,spine1,Ethernet0\n").unwrap();
    let ports = |name: &str| {
        loaded
            .switches
            .iter()
            .find(|switch| switch.name == name)
            .unwrap()
            .ports
            .join(" ")
    };
    assert_eq!(
        (
            ports("leaf1").as_str(),
            ports("spine1").as_str(),
            ports("leaf2").as_str()
        ),
        ("Ethernet4 Ethernet12 Ethernet100", "Ethernet0", "")
    );
}

/// The code, the text under the first caret, and the message.
fn mistakes(text: &str) -> Vec<(String, String, String)> {
    let problems = load_cabling(
        spec(),
        SourceFile {
            name: "cabling.csv".to_owned(),
            text: text.to_owned(),
        },
    )
    .unwrap_err();
    let of = |diagnostic: &railwright_base::Diagnostic| {
        let label = diagnostic.labels.first().unwrap();
        let source = problems.sources.get(&label.file).unwrap();
        (
            diagnostic.code.to_string(),
            source.text()[label.span.clone()].to_owned(),
            diagnostic.message.clone(),
        )
    };
    problems
        .diagnostics
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .map(of)
        .collect()
}

const SOUND: &str =
    "gpu[01-04],ens0f0np0,leaf1,Ethernet[0-12/4]\ngpu[01-04],ens1f0np0,leaf2,Ethernet[0-12/4]\n";

#[test]
fn a_line_is_a_cable_or_as_many_as_its_node_sets() {
    let text = "# rack 1\n\
                \n\
                gpu01 , ens0f0np0,leaf1,Ethernet0\r\n  # again\n\
                \"gpu[02,04]\",ens0f0np0,leaf1,\"Ethernet[4,8]\"\n\
                leaf1,Ethernet[120-124/4],spine1,Eth1/[1-2]\n";
    let loaded = with(text).unwrap();
    assert_eq!(
        cables(&loaded.cabling.unwrap()),
        [
            "gpu01 ens0f0np0 - leaf1 Ethernet0 @4",
            "gpu02 ens0f0np0 - leaf1 Ethernet4 @6",
            "gpu04 ens0f0np0 - leaf1 Ethernet8 @6",
            "leaf1 Ethernet120 - spine1 Eth1/1 @7",
            "leaf1 Ethernet124 - spine1 Eth1/2 @7",
        ]
    );
    let marked = load_cabling(
        spec(),
        SourceFile {
            name: "c".into(),
            text: "\u{feff}host,nic,switch,port\n".into(),
        },
    )
    .unwrap();
    assert_eq!(
        marked.cabling.unwrap().cables.len(),
        0,
        "as a spreadsheet writes it"
    );
}

#[test]
fn every_mistake_is_pointed_at() {
    let line = |line: &str| format!("host,nic,switch,port\n{line}\n");
    for (text, code, at, message) in [
        (
            String::new(),
            "RW0149",
            "",
            "the table does not begin with `host,nic,switch,port`",
        ),
        (
            "host;nic;switch;port\n".into(),
            "RW0149",
            "host;nic;switch;port",
            "the table does not begin with `host,nic,switch,port`",
        ),
        (
            "gpu01,ens0f0np0,leaf1,E0\n".into(),
            "RW0149",
            "gpu01,ens0f0np0,leaf1,E0",
            "the table does not begin with `host,nic,switch,port`",
        ),
        (
            line("gpu01,ens0f0np0,leaf1"),
            "RW0149",
            "gpu01,ens0f0np0,leaf1",
            "the line has 3 fields and not 4",
        ),
        (
            line("gpu[01,03],a,leaf1,E0"),
            "RW0149",
            "gpu[01,03],a,leaf1,E0",
            "the line has 5 fields and not 4",
        ),
        (line("gpu01,,leaf1,E0"), "RW0149", "", "the nic is empty"),
        (
            line("gpu01,ens0f0np0,leaf1,\"E0"),
            "RW0149",
            "\"E0",
            "a quote is not closed",
        ),
        (
            line("gpu01,ens0f0np0,leaf1,E0\rgpu02"),
            "RW0149",
            "\r",
            "a line has a control character",
        ),
        (
            line("gpu[01-04,ens0f0np0,leaf1,E0"),
            "RW0150",
            "[01-04",
            "the host cannot be unfolded",
        ),
        (
            line("gpu01,ens 0,leaf1,E0"),
            "RW0150",
            " ",
            "the nic cannot be unfolded",
        ),
        (
            line("gpu01,ens0f0np0,leaf1,E[4-0]"),
            "RW0150",
            "4-0",
            "the port cannot be unfolded",
        ),
        (
            line("gpu[01-04],ens0f0np0,leaf1,E[0-2]"),
            "RW0151",
            "gpu[01-04]",
            "the fields of a line stand for different counts",
        ),
        (
            line("gpu05,ens0f0np0,leaf1,E0"),
            "RW0152",
            "gpu05",
            "there is no host `gpu05`; did you mean `gpu01`?",
        ),
        (
            line("gpu[03-09],ens0f0np0,leaf1,E[0-6]"),
            "RW0152",
            "gpu[03-09]",
            "there is no host `gpu[05-09]`; did you mean `gpu01`?",
        ),
        (
            line("gpu[01-02],ens0fonp0,leaf1,E[0-1]"),
            "RW0153",
            "ens0fonp0",
            "gpu[01-02] have no NIC `ens0fonp0`; did you mean `ens0f0np0`?",
        ),
        (
            line("login1,eno1,leaf1,E0"),
            "RW0153",
            "eno1",
            "login1 has no NIC `eno1`",
        ),
        (
            line("gpu01,ens0f0np0,laef1,E0"),
            "RW0154",
            "laef1",
            "there is no switch `laef1`; did you mean `leaf1`?",
        ),
        (
            line("leaf1,E0,gpu01,ens0f0np0"),
            "RW0154",
            "gpu01",
            "there is no switch `gpu01`",
        ),
        (
            line("gpu01,ens0f0np0,leaf1,E0\ngpu01,ens0f0np0,leaf2,E0"),
            "RW0155",
            "ens0f0np0",
            "the NIC gpu01 ens0f0np0 is plugged in twice",
        ),
        (
            line("gpu[01-02],ens0f0np0,leaf1,E0"),
            "RW0156",
            "E0",
            "the port leaf1 E0 is plugged in twice",
        ),
        (
            line("leaf1,E0,spine1,E1\ngpu01,ens0f0np0,leaf1,E0"),
            "RW0156",
            "E0",
            "the port leaf1 E0 is plugged in twice",
        ),
    ] {
        assert_eq!(
            mistakes(&text),
            [(code.to_owned(), at.to_owned(), message.to_owned())],
            "{text:?}"
        );
    }
}

#[test]
fn a_file_of_another_cluster_ends_after_a_hundred_errors() {
    let lines: String = (0..5000)
        .map(|n| format!("node{n},ens0f0np0,leaf1,Ethernet{n}\n"))
        .collect();
    let found = mistakes(&format!("host,nic,switch,port\n{lines}"));
    assert_eq!(
        (found.len(), found[100].2.as_str()),
        (101, "the file has more than 100 errors")
    );
    let found = mistakes(
        "host,nic,switch,port\nspine1,E[1-99999],leaf1,F[1-99999]\nleaf2,E[1-99999],leaf3,F[1-99999]\nleaf1,a[1-99999],leaf2,b[1-99999]\nleaf1,c[1-99999],leaf2,d[1-99999]\n",
    );
    assert_eq!(
        found.last().unwrap().2,
        "the file has more than 320000 cables"
    );
    assert!(BYTES_MAX < u64::from(u32::MAX), "line tables have 32 bits");
}

fn warned(lines: &str) -> Vec<String> {
    let loaded = with(lines)
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let of = |found: &railwright_base::Diagnostic| {
        let places: Vec<String> = found
            .labels
            .iter()
            .map(|label| {
                loaded
                    .sources
                    .get(&label.file)
                    .unwrap()
                    .line_column(label.span.start)
                    .0
                    .to_string()
            })
            .collect();
        format!("{} {} @{}", found.code, found.message, places.join(","))
    };
    loaded.warnings.iter().map(of).collect()
}

#[test]
fn what_looks_wrong_is_a_warning() {
    let none: [&str; 0] = [];
    assert_eq!(warned(SOUND), none);
    assert_eq!(
        warned("gpu[01-02],ens0f0np0,leaf1,E[1-2]\n"),
        [
            "RW0157 gpu[03-04] have no cable @1",
            "RW0157 gpu[01-02] have no cable of ens1f0np0 @1"
        ],
        "and no rails are checked of a group that is not whole"
    );
    // gpu03 is crossed
    let crossed = "gpu[01-02],ens0f0np0,leaf1,E[1-2]\ngpu[01-02],ens1f0np0,leaf2,E[1-2]\ngpu03,ens0f0np0,leaf2,E3\ngpu03,ens1f0np0,leaf1,E3\ngpu04,ens[0-1]f0np0,leaf[1-2],E4\n";
    assert_eq!(
        warned(crossed),
        ["RW0159 rails 0, 1 of gpu03 are on leaf2, leaf1, of gpu[01-02,04] on leaf1, leaf2 @4,5,2"]
    );
    let shared = "gpu[01-03],ens0f0np0,leaf1,E[1-3]\ngpu[01-03],ens1f0np0,leaf2,E[1-3]\ngpu04,ens[0-1]f0np0,leaf1,E[4-5]\n";
    assert_eq!(
        warned(shared),
        [
            "RW0158 rails 0, 1 of gpu04 are on leaf1 @4",
            "RW0159 rail 1 of gpu04 is on leaf1, of gpu[01-03] on leaf2 @4,3"
        ]
    );
}

#[test]
fn designs_are_no_mistakes() {
    let none: [&str; 0] = [];
    let one_leaf = "gpu[01-04],ens0f0np0,leaf1,E[0-3]\ngpu[01-04],ens1f0np0,leaf1,E[4-7]\n";
    assert_eq!(
        warned(one_leaf),
        none,
        "a single leaf has no rails to cross"
    );
    let units = "gpu[01-02],ens0f0np0,leaf1,E[1-2]\ngpu[01-02],ens1f0np0,leaf2,E[1-2]\ngpu[03-04],ens0f0np0,leaf3,E[1-2]\ngpu[03-04],ens1f0np0,leaf4,E[1-2]\n";
    assert_eq!(warned(units), none, "units with leaves of their own");
}

#[test]
fn cables_are_written_in_few_lines_and_read_the_same_again() {
    let loaded = with(&format!("{SOUND}leaf1,E1,spine1,Eth1/1\n")).unwrap();
    let pairs = |cabling: &Cabling| {
        cabling
            .cables
            .iter()
            .map(|cable| (cable.from.clone(), cable.to.clone()))
            .collect::<Vec<_>>()
    };
    let cabling = loaded.cabling.unwrap();
    let table = write::render_cabling_table(&pairs(&cabling));
    assert_eq!(
        table,
        "host,nic,switch,port\nleaf1,E1,spine1,Eth1/1\ngpu[01-04],ens0f0np0,leaf1,Ethernet[0-12/4]\ngpu[01-04],ens1f0np0,leaf2,Ethernet[0-12/4]\n"
    );
    let again = load_cabling(
        spec(),
        SourceFile {
            name: "c".into(),
            text: table,
        },
    )
    .unwrap()
    .cabling
    .unwrap();
    let sorted = |mut all: Vec<(CableEnd, CableEnd)>| {
        all.sort();
        all
    };
    assert_eq!(sorted(pairs(&again)), sorted(pairs(&cabling)));
}

proptest! {
    /// Any cables, in any order: what is written unfolds to the same.
    #[test]
    fn writing_loses_nothing(ports in proptest::collection::btree_map((1u32..5, 0u32..2), (1u32..5, 0u32..40), 0..8)) {
        let mut seen = std::collections::BTreeSet::new();
        let pairs: Vec<(CableEnd, CableEnd)> = ports
            .into_iter()
            .filter(|(_, to)| seen.insert(*to))
            .map(|((host, rail), (leaf, port))| (CableEnd::new(format!("gpu{host:02}"), format!("ens{rail}f0np0")), CableEnd::new(format!("leaf{leaf}"), format!("Ethernet{port}"))))
            .collect();
        let table = write::render_cabling_table(&pairs);
        let again = load_cabling(spec(), SourceFile { name: "c".into(), text: table }).map_err(|problems| TestCaseError::fail(format!("{:?}", problems.diagnostics)))?;
        let again: std::collections::BTreeSet<_> = again.cabling.unwrap().cables.into_iter().map(|cable| (cable.from, cable.to)).collect();
        prop_assert_eq!(again, pairs.into_iter().collect());
    }

    #[test]
    fn no_bytes_panic(text in "(host,nic,switch,port\n)?[a-g0-3\\[\\],\"#/ \r\n-]{0,60}|.{0,60}") {
        let file = SourceFile { name: "cabling.csv".to_owned(), text: text.clone() };
        let (found, sources) = match load_cabling(spec(), file) {
            Ok(loaded) => (loaded.warnings, loaded.sources),
            Err(problems) => (problems.diagnostics, problems.sources),
        };
        for label in found.iter().flat_map(|found| &found.labels) {
            prop_assert!(sources.get(&label.file).unwrap().text().get(label.span.clone()).is_some(), "{:?} in {:?}", label, text);
        }
    }
}

/// A switch that is reached is planned for by the names of its ports; one that nobody reaches may
/// be called by an alias.
#[test]
fn ports_are_called_as_their_switches_call_them() {
    let mistakes = |os: &str, lines: &str| {
        let spec = format!(
            "cluster: c\n\
             fabric: {{ kind: rocev2 }}\n\
             ssh: {{ user: root }}\n\
             nodes: [{{ name: 'gpu[01-04]', nics: {{ model: soft-roce, netdev: ens1 }} }}]\n\
             switches:\n  - {{ name: 'leaf[1-2]', {os} }}\n  - {{ name: other, os: sonic }}\n\
             cabling: cabling.csv\n"
        );
        let loaded = spec::load_spec(vec![SourceFile {
            name: "c.yaml".to_owned(),
            text: spec,
        }])
        .unwrap();
        let table = SourceFile {
            name: "cabling.csv".to_owned(),
            text: format!("host,nic,switch,port\n{lines}\n"),
        };
        let Err(problems) = load_cabling(loaded, table) else {
            return Vec::new();
        };
        let of = |diagnostic: &railwright_base::Diagnostic| {
            let label = diagnostic.labels.first().unwrap();
            let under =
                problems.sources.get(&label.file).unwrap().text()[label.span.clone()].to_owned();
            format!("{} {under}: {}", diagnostic.code, diagnostic.message)
        };
        problems
            .diagnostics
            .iter()
            .filter(|actual| actual.severity == Severity::Error)
            .map(of)
            .collect()
    };
    let none: [&str; 0] = [];
    let (sonic, cumulus, eos) = (
        "os: sonic, ssh: {}",
        "os: cumulus, ssh: {}",
        "os: eos, ssh: {}",
    );
    assert_eq!(
        mistakes(sonic, "gpu[01-04],ens1,leaf1,Ethernet[0-12/4]"),
        none
    );
    assert_eq!(mistakes(cumulus, "gpu[01-04],ens1,leaf1,swp1s[0-3]"), none);
    assert_eq!(
        mistakes(
            eos,
            "gpu[01-02],ens1,leaf1,Ethernet[1-2]/1\ngpu03,ens1,leaf1,Ethernet3/1/1\ngpu04,ens1,leaf1,Ethernet4"
        ),
        none
    );
    assert_eq!(
        mistakes("os: sonic", "gpu[01-04],ens1,leaf1,Eth1/[1-4]"),
        none,
        "nobody reaches it"
    );
    assert_eq!(
        mistakes(
            "ssh: { read_only: true }, os: sonic",
            "leaf1,Ethernet0,other,etp1"
        ),
        none,
        "nobody reaches the other one"
    );
    for (os, lines, desired) in [
        (
            sonic,
            "gpu[01-04],ens1,leaf1,swp[1-4]",
            "RW0172 swp[1-4]: leaf1 has no port that is called swp[1-4]: SONiC calls them \
             `Ethernet0`, `Ethernet4`",
        ),
        (
            sonic,
            "leaf1,Ethernet1/1,leaf2,Ethernet0",
            "RW0172 Ethernet1/1: leaf1 has no port that is called Ethernet1/1: SONiC calls them \
             `Ethernet0`, `Ethernet4`",
        ),
        (
            cumulus,
            "gpu01,ens1,leaf2,Ethernet0",
            "RW0172 Ethernet0: leaf2 has no port that is called Ethernet0: Cumulus Linux calls \
             them `swp1`, or `swp1s0` where it is divided",
        ),
        (
            cumulus,
            "gpu01,ens1,leaf2,swp",
            "RW0172 swp: leaf2 has no port that is called swp: Cumulus Linux calls them `swp1`, or \
             `swp1s0` where it is divided",
        ),
        (
            eos,
            "gpu01,ens1,leaf2,Et1/1",
            "RW0172 Et1/1: leaf2 has no port that is called Et1/1: EOS calls them `Ethernet1`, \
             `Ethernet1/1` or `Ethernet3/1/1`",
        ),
        (
            eos,
            "gpu01,ens1,leaf2,Ethernet1/1/1/1",
            "RW0172 Ethernet1/1/1/1: leaf2 has no port that is called Ethernet1/1/1/1: EOS calls \
             them `Ethernet1`, `Ethernet1/1` or `Ethernet3/1/1`",
        ),
        (
            sonic,
            "leaf1,Ethernet0,leaf1,Ethernet4",
            "RW0173 leaf1: leaf1 is plugged into itself",
        ),
        (
            "os: sonic",
            "leaf[1-2],Ethernet0,leaf[1-2],Ethernet4",
            "RW0173 leaf[1-2]: leaf[1-2] is plugged into itself",
        ),
    ] {
        assert_eq!(mistakes(os, lines), [desired], "{os} {lines}");
    }
}
