//! What EOS counts, by `show` commands as JSON. What stands where in an answer: of pauses and the
//! watchdog facebook/DNE-TaaC (taac/health_checks: dsf_health_checks/dsf_pfc_health_check.py, which
//! asks with `interface PORT`, device_health_checks/pfc_wd_health_check.py; without a port the
//! command is in MicrosoftDocs/windowsserverdocs, cnic-app-switch-config.md), of all else
//! aristanetworks/anta (anta/tests/interfaces.py and its tests: `VerifyInterfacesECNCounters`,
//! `VerifyInterfacesEgressQueueDrops`, `VerifyInterfacesVoqAndEgressQueueDrops`,
//! `VerifyInterfaceDiscards`). A switch without such counters refuses the command, and each chip
//! knows one of the two that show what queues dropped.

use crate::counters::PRINT_UPTIME;
use crate::counters::names::{Meter, VendorCounter, new_64_bit_counter};
use railwright_base::quote::{quote_for_shell, sh_words};

/// Lines of `eos_counters.py`, by the members of what EOS prints (`eos`): `dropped` is what the
/// queues of a class dropped, together. A class has the queue of its number unless the switch maps
/// it elsewhere.
pub const COUNTERS: &[VendorCounter] = &[
    new_64_bit_counter("rxFrames/{p}", Meter::PauseReceived),
    new_64_bit_counter("txFrames/{p}", Meter::PauseSent),
    new_64_bit_counter("dropped/{p}", Meter::Lost),
    new_64_bit_counter("inDiscards", Meter::Discarded),
    new_64_bit_counter("marked/{p}", Meter::Marked),
    new_64_bit_counter("stuckCount/{p}", Meter::Storms),
];

/// Asks once for all ports, and picks these.
const PROGRAM: &str = include_str!("eos_counters.py");

/// The section. Exit 69 where the host is no switch with EOS.
pub fn render_eos_counters_script(ports: &[String]) -> String {
    format!(
        "command -v FastCli >/dev/null || exit 69\n\
         {PRINT_UPTIME}\n\
         $(command -v python3 || echo python) -c {} {}\n",
        quote_for_shell(PROGRAM),
        sh_words(ports.iter().map(String::as_str))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::names::{CounterKey, Meter};
    use crate::counters::tests::diff_counter_texts;
    use crate::counters::{Movement, TargetCounterSample, parse_counter_sample};
    use crate::switch::SwitchSystem;
    use crate::{Fact, Read};
    use std::process::Command;

    const PFC: &str = "show priority-flow-control counters detail";
    const WATCHDOG: &str = "show priority-flow-control counters watchdog";
    const MARKS: &str = "show qos interfaces ecn counters queue";
    const QUEUES: &str = "show interfaces counters queue detail";
    const VOQS: &str = "show interfaces counters queue drops";
    const DISCARDS: &str = "show interfaces counters discards";
    const ALL: [&str; 6] = [PFC, WATCHDOG, MARKS, QUEUES, VOQS, DISCARDS];

    /// What the section prints of two ports, where these commands answer so and all others are
    /// refused.
    fn printed(answers: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "FastCli",
            "#!/bin/sh\ncat \"${0%/*}/$4\" 2>/dev/null || echo '% Invalid input'\n",
        );
        std::fs::set_permissions(
            folder.path().join("FastCli"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        answers
            .iter()
            .for_each(|(command, text)| write(&format!("{command} | json"), text));
        let script =
            render_eos_counters_script(&["Ethernet1/1".to_owned(), "Ethernet2/1".to_owned()]);
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let out = Command::new("sh")
            .args(["-c", &script])
            .env("PATH", path)
            .env("R", "/nowhere")
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout).unwrap()
    }

    fn read(answers: &[(&str, &str)]) -> TargetCounterSample {
        parse_counter_sample(&printed(answers))
    }

    fn between(first: &[(&str, &str)], second: &[(&str, &str)]) -> Movement {
        let read = |sample| Read::SwitchCounters {
            system: SwitchSystem::Eos,
            ports: Vec::new(),
            sample,
        };
        let printed = [printed(first), printed(second)];
        let texts = [printed[0].as_str(), printed[1].as_str()];
        diff_counter_texts(read, texts, SwitchSystem::Eos.counter_names()).unwrap()
    }

    /// All commands in the forms of the sources, with these numbers.
    fn whole(n: u64) -> Vec<(&'static str, String)> {
        vec![
            (
                PFC,
                format!(
                    r#"{{"interfaces":{{"Ethernet1/1":{{"priorities":{{"3":{{"rxFrames":{n},"txFrames":1}},"4":{{"rxFrames":0,"txFrames":0}}}}}}}}}}"#
                ),
            ),
            (
                WATCHDOG,
                if n == 0 {
                    r#"{"interfaces":{}}"#.to_owned()
                } else {
                    format!(
                        r#"{{"interfaces":{{"Ethernet1/1":{{"txQueues":{{"3":{{"stuckCount":{n},"recoveryCount":0}}}}}}}}}}"#
                    )
                },
            ),
            (
                MARKS,
                format!(
                    r#"{{"intfQueueCounters":{{"Ethernet1/1":{{"queueCounters":{{"0":"-","3":"{n}"}}}}}}}}"#
                ),
            ),
            (
                QUEUES,
                format!(
                    r#"{{"egressQueueCounters":{{"interfaces":{{"Ethernet1/1":{{"ucastQueues":{{"trafficClasses":{{"TC3":{{"dropPrecedences":{{"DP0":{{"droppedPackets":{n}}},"DP1":{{"droppedPackets":2}}}}}}}}}},"mcastQueues":{{"trafficClasses":{{"TC0-3":{{"dropPrecedences":{{"DP0-2":{{"droppedPackets":{n}}}}}}}}}}}}}}}}}}}"#
                ),
            ),
            (
                DISCARDS,
                format!(
                    r#"{{"inDiscardsTotal":0,"interfaces":{{"Ethernet1/1":{{"inDiscards":{n},"outDiscards":7}}}}}}"#
                ),
            ),
        ]
    }

    fn lent<'a>(all: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
        all.iter()
            .map(|(command, text)| (*command, text.as_str()))
            .collect()
    }

    #[test]
    fn what_each_command_tells_is_counted_by_priority() {
        let (first, second) = (whole(0), whole(5));
        let found = between(&lent(&first), &lent(&second));
        let moved = found.ports["Ethernet1/1"].value().unwrap();
        let rose = |meter, priority| moved.rose(CounterKey::of(meter, priority));
        assert_eq!(
            (
                rose(Meter::PauseReceived, 3),
                rose(Meter::PauseSent, 3),
                rose(Meter::PauseReceived, 4)
            ),
            (Fact::Is(5), Fact::Is(0), Fact::Is(0))
        );
        // The first event of a port is one, though it was not there before; queues of several
        // precedences and of many receivers are one.
        assert_eq!(
            (rose(Meter::Storms, 3), rose(Meter::Storms, 2)),
            (Fact::Is(5), Fact::Is(0))
        );
        assert_eq!(
            (
                rose(Meter::Lost, 3),
                rose(Meter::Lost, 1),
                rose(Meter::Lost, 5)
            ),
            (Fact::Is(10), Fact::Is(5), Fact::Absent)
        );
        assert_eq!(
            (rose(Meter::Marked, 3), rose(Meter::Marked, 0)),
            (Fact::Is(5), Fact::Absent),
            "a dash is no zero"
        );
        assert_eq!(moved.rose(CounterKey::whole(Meter::Discarded)), Fact::Is(5));
        // The other port is in none of the answers but in that of the watchdog, where it is not
        // before its first event.
        let other = found.ports["Ethernet2/1"].value().unwrap();
        assert_eq!(other.rose(CounterKey::of(Meter::Storms, 3)), Fact::Is(0));
        for (meter, command) in [
            (Meter::PauseReceived, PFC),
            (Meter::Lost, QUEUES),
            (Meter::Discarded, DISCARDS),
        ] {
            assert_eq!(
                other.rose(CounterKey::whole(meter)),
                Fact::Unknown(format!("`{command}` tells nothing of the port").into())
            );
        }
    }

    /// A chip with virtual output queues shows what they dropped by another command.
    #[test]
    fn chips_with_virtual_output_queues_have_a_command_of_their_own() {
        let text = r#"{"interfaces":{"Ethernet1/1":{"trafficClasses":{"TC3":{"ingressVoqCounters":{"countersSum":{"droppedPackets":4}},"egressQueueCounters":{"countersSum":{"droppedPackets":1}}}}}}}"#;
        let port = &read(&[(VOQS, text), (QUEUES, "{}")]).ports["Ethernet1/1"];
        assert_eq!(port.counts.get("dropped/3"), Some(&Some(5)));
    }

    /// Nothing that makes no sense is a number, whichever command prints it; the rest stays.
    #[test]
    fn what_makes_no_sense_is_never_zero() {
        let deep = "[".repeat(200_000);
        let garbage = [
            "",
            "\n",
            "% Unavailable command (not supported on this hardware platform)\n",
            "null",
            "7",
            "[]",
            "{",
            "{}",
            "\"interfaces\"",
            "NaN",
            deep.as_str(),
            r#"{"errors":["Invalid input"]}"#,
            r#"{"interfaces":[]}"#,
            r#"{"interfaces":null,"intfQueueCounters":3,"egressQueueCounters":{"interfaces":""}}"#,
            r#"{"interfaces":{"Ethernet1/1":7},"egressQueueCounters":{"interfaces":{"Ethernet1/1":[]}}}"#,
            r#"{"interfaces":{"Ethernet1/1":{"priorities":{"3":7,"x":{}},"txQueues":[],"inDiscards":null,"trafficClasses":{"TC3":null,"TC9":{},"3":{},"TC":{},"TC-":{}}}}}"#,
            r#"{"interfaces":{"Ethernet1/1":{"priorities":{"3":{"rxFrames":-1,"txFrames":true}},"txQueues":{"3":{"stuckCount":"many"}},"inDiscards":1.5,"trafficClasses":{"TC3":{"ingressVoqCounters":{"countersSum":{"droppedPackets":1e9}}}}}}}"#,
            r#"{"interfaces":{"Ethernet1/1":{"priorities":{"3":{"rxFrames":[1],"txFrames":"1\nabsent"}},"txQueues":{"3":{}},"inDiscards":"","trafficClasses":{"TC3-²":{}}}}}"#,
            r#"{"egressQueueCounters":{"interfaces":{"Ethernet1/1":{"ucastQueues":{"trafficClasses":{"TC3":{"dropPrecedences":{}},"TC4":{"dropPrecedences":{"DP0":{"droppedPackets":"٣"}}}}}}}}}"#,
            r#"{"intfQueueCounters":{"Ethernet1/1":{"queueCounters":{"3":"","4":"-1","5":"1 2","9":"9"}}}}"#,
        ];
        for said in garbage {
            let reading = read(&ALL.map(|command| (command, said)));
            assert_eq!(
                reading.ports.keys().collect::<Vec<_>>(),
                ["Ethernet1/1", "Ethernet2/1"],
                "{said:.200}"
            );
            let port = &reading.ports["Ethernet1/1"];
            // Of the watchdog an answer without the queue says that nothing happened.
            let is_quiet = |name: &str| name.starts_with("stuckCount/") && name != "stuckCount/3";
            assert!(
                port.counts
                    .iter()
                    .all(|(name, count)| count.is_none() || is_quiet(name))
                    && !port.is_absent,
                "{said:.200}\n{port:?}"
            );
            assert!(
                port.counts.values().any(Option::is_none)
                    || port.unread.is_some()
                    || !port.untold.is_empty(),
                "{said:.200}\n{port:?}"
            );
        }
    }
}
