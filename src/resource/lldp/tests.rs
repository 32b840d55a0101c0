//! What lldpd 1.0.16 of Debian 12 printed between two network namespaces, and what it must not be
//! taken for.

use super::{Lldp, LldpNeighbour, Silence, decode_host_neighbours};
use crate::test_support::answered;
use crate::{AnswerStatus, Read, ReadResult, ReadResults};
use proptest::prelude::*;

/// Whole but for what nobody reads: a port that is shown by its MAC address, and one shown by
/// an alias.
const SAID: &str = r#"
== netdev ens0f0np0
|carrier=1

== netdev ens1f0np0
|carrier=1

== netdev ens2f0np0
|carrier=0

== netdev ens3f0np0

== lldpctl 0
|{
|  "lldp": [ { "interface": [
|    { "name": "ens0f0np0", "via": "LLDP", "rid": "2", "age": "0 day, 00:00:01",
|      "chassis": [ { "id": [ { "type": "mac", "value": "6a:1b:ee:54:7b:dc" } ], "name": [ { "value": "leaf1" } ],
|        "capability": [ { "type": "Bridge", "enabled": false } ] } ],
|      "port": [ { "id": [ { "type": "mac", "value": "6a:1b:ee:54:7b:dc" } ], "descr": [ { "value": "Ethernet0" } ], "ttl": [ { "value": "4" } ] } ] },
|    { "name": "ens1f0np0", "via": "LLDP", "rid": "2",
|      "chassis": [ { "id": [ { "type": "mac", "value": "6a:1b:ee:54:7b:dc" } ], "name": [ { "value": "leaf1" } ] } ],
|      "port": [ { "id": [ { "type": "local", "value": "Eth1/2" } ], "descr": [ { "value": "Ethernet4" } ] } ] }
|  ] } ]
|}

== end
"#;

fn said(text: &str) -> Result<Lldp, Silence> {
    decode_host_neighbours(&answered(&[(&Read::LldpNeighbours, 0, text)]))
}

#[test]
fn ports_are_told_by_name_alias_or_mac_address() {
    let lldp = said(SAID).unwrap();
    let links: Vec<_> = lldp.links.into_iter().collect();
    let of = |name: &str, link| (name.to_owned(), link);
    assert_eq!(
        links,
        [
            of("ens0f0np0", Some(true)),
            of("ens1f0np0", Some(true)),
            of("ens2f0np0", Some(false)),
            of("ens3f0np0", None)
        ]
    );
    let neighbour = |port: &str, port_is_mac, description: &str| LldpNeighbour {
        system: "leaf1".to_owned(),
        chassis: "6a:1b:ee:54:7b:dc".to_owned(),
        port: port.to_owned(),
        port_is_mac,
        description: description.to_owned(),
    };
    assert_eq!(
        lldp.neighbours["ens0f0np0"],
        [neighbour("6a:1b:ee:54:7b:dc", true, "Ethernet0")]
    );
    assert_eq!(
        lldp.neighbours["ens1f0np0"],
        [neighbour("Eth1/2", false, "Ethernet4")]
    );
}

#[test]
fn nobody_is_not_the_same_as_no_answer() {
    let empty =
        "\n== netdev e\n|carrier=1\n\n== lldpctl 0\n|{\n|  \"lldp\": [ { } ]\n|}\n\n== end\n";
    assert!(said(empty).unwrap().neighbours.is_empty());
    assert_eq!(said("\n== lldpctl 127\n\n== end\n"), Err(Silence::Absent));
    let down = "\n\
                == lldpctl 1\n\
                |unable to connect to socket /run/lldpd.socket: No such file or directory\n\
                \n\
                == end\n";
    assert!(
        matches!(said(down), Err(Silence::NoAnswer(words)) if words == "unable to connect to \
                                                                        socket /run/lldpd.socket: \
                                                                        No such file or directory".into())
    );
    assert!(matches!(said("\n== netdev e\n"), Err(Silence::Unread(_))));
    let mut denied = ReadResults::default();
    denied.insert(
        Read::LldpNeighbours.key(),
        ReadResult {
            status: AnswerStatus::Denied,
            out: "runs lldpctl -f json0\t/usr/sbin/lldpctl -f json0\n".to_owned(),
        },
    );
    assert!(
        matches!(decode_host_neighbours(&denied), Err(Silence::Unread(why)) if why.as_words().contains("line for sudoers: /usr/sbin/lldpctl -f json0"))
    );
}

/// A warning of lldpctl stands before its answer; a neighbour's names are as long and as strange as
/// it likes.
#[test]
fn names_are_kept_short_and_clean() {
    let name = format!("leaf1\\u001b[31m\\n{}", "x".repeat(9000));
    let text = format!(
        "\n\
         == lldpctl 0\n\
         |[WARN] something\n\
         |{{\"lldp\":[{{\"interface\":[{{\"name\":\"e\",\"chassis\":[{{\"name\":[{{\"value\":\"{name}\"}}]}}]}}]}}]}}\n\
         \n\
         == end\n"
    );
    let lldp = said(&text).unwrap();
    let system = &lldp.neighbours["e"][0].system;
    assert!(
        system.starts_with("leaf1\u{fffd}[31m xxx") && system.chars().count() == 255,
        "{system}"
    );
}

proptest! {
    #[test]
    fn no_answer_panics(junk in "[\\[\\]{}\":, a-d0-2|=\n]{0,60}", at in 0usize..900) {
        let at = (0..=at.min(SAID.len())).rev().find(|at| SAID.is_char_boundary(*at)).unwrap_or(0);
        drop(said(&format!("{}{junk}{}", &SAID[..at], &SAID[at..])));
        drop(said(&junk));
    }
}

/// The script ends, and says what is there, in a shell without lldpd and below a root of its own.
#[test]
fn the_script_looks_below_its_root() {
    let folder = tempfile::tempdir().unwrap();
    for (netdev, carrier) in [("ens0f0np0", Some("1\n")), ("ens1f0np0", None)] {
        let at = folder.path().join("sys/class/net").join(netdev);
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("operstate"), "up\n").unwrap();
        carrier
            .into_iter()
            .for_each(|carrier| std::fs::write(at.join("carrier"), carrier).unwrap());
    }
    let tools = tempfile::tempdir().unwrap();
    let tool = tools.path().join("lldpctl");
    std::fs::write(
        &tool,
        "#!/bin/sh\n\
         [ \"$*\" = '-f json0' ] && echo '2026-11-24T21:44:29 [WARN/control] something' >&2 && \
         echo '{ \"lldp\": [] }'\n",
    )
    .unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.path().display());
    let script = format!(
        "R={}\n{}",
        folder.path().display(),
        super::script::read_script()
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\n|something\n|{ \"lldp\": [] }\n"),
        "without the time, which is another one on each host: {text}"
    );
    let lldp = said(&text).unwrap();
    assert_eq!(
        lldp.links.into_iter().collect::<Vec<_>>(),
        [
            ("ens0f0np0".to_owned(), Some(true)),
            ("ens1f0np0".to_owned(), None)
        ]
    );
}
