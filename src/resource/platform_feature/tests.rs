//! `platform_feature` on trees in the form of sysfs and procfs, read by real shells; and on answers
//! that no host would give.

use super::*;
use crate::test_support::resource;
use crate::{AnswerStatus, ReadResult, program};
use proptest::prelude::*;
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const BARE: &str = "version 1\nvirtualization none\nuid 0\nend\n";

fn of(feature: &str) -> DesiredResource {
    let mut body = json!({ "feature": feature, "effect": "the NIC does nothing", "advice": [{ "says": "Look into the BIOS", "source": "a page" }] });
    if feature == "virtual_functions" {
        body["netdev"] = "ens1".into();
    }
    resource(&PlatformFeature, body)
}

/// A tree, read by this shell; who the host is, as it is given.
fn read(
    shell: &[&str],
    resource: &DesiredResource,
    files: &[(&str, &str)],
    host: &str,
) -> ReadResults {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let reads: Vec<Read> = PlatformFeature
        .reads(resource)
        .into_iter()
        .filter(|read| *read != Read::Host)
        .collect();
    let mut answers = run(shell, &reads, folder.path());
    answers.insert(
        Read::Host.key(),
        ReadResult {
            status: AnswerStatus::Exit(0),
            out: host.to_owned(),
        },
    );
    answers
}

fn run(shell: &[&str], reads: &[Read], root: &Path) -> ReadResults {
    let text = program::render_read_program(reads, &root.display().to_string(), "f00d");
    let mut child = Command::new(shell[0])
        .args(&shell[1..])
        .arg("-s")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    program::parse_program_answers(reads, "f00d", &child.wait_with_output().unwrap().stdout)
}

fn found(diff: &ResourceDiff) -> Reading {
    diff.attributes["offered"].actual.running.clone().unwrap()
}

const SERVER: [(&str, &str); 4] = [
    ("sys/class/dmi/id/sys_vendor", "Example\n"),
    ("sys/class/dmi/id/product_name", "Server\n"),
    ("sys/firmware/acpi/tables/FACP", ""),
    ("sys/kernel/iommu_groups/.keep", ""),
];

fn server<'a>(further: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&SERVER[..], further].concat()
}

#[test]
fn who_made_the_processor_decides_what_it_is_called() {
    for shell in [&["sh"][..], &["dash"], &["bash"], &["busybox", "sh"]] {
        if Command::new(shell[0])
            .arg("--help")
            .stdin(Stdio::null())
            .output()
            .is_err()
        {
            continue;
        }
        for (cpuinfo, called) in [
            (
                "processor\t: 0\nvendor_id\t: GenuineIntel\n\n",
                "Intel VT-d",
            ),
            (
                "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t: 1\n",
                "the AMD IOMMU (AMD-Vi)",
            ),
            ("processor\t: 0\nBogoMIPS\t: 50.00\n", "the IOMMU"),
        ] {
            let resource = of("iommu");
            let diff = PlatformFeature.diff(
                &resource,
                &read(
                    shell,
                    &resource,
                    &server(&[("proc/cpuinfo", cpuinfo)]),
                    BARE,
                ),
            );
            assert_eq!(found(&diff), Reading::Absent, "{shell:?}");
            assert_eq!(
                diff.refusal.unwrap(),
                format!(
                    "by hand: switch on {called} in the setup program (BIOS) of Example Server and \
                     boot it again; a plan after that proves it. Until then the NIC does nothing. \
                     Look into the BIOS (a page)"
                )
            );
            assert!(diff.actions.is_empty() && !diff.needs_reboot);
        }
    }
}

#[test]
fn what_the_kernel_was_given_is_seen_and_what_cannot_be_known_is_unknown() {
    let resource = of("iommu");
    let compared = |files: &[(&str, &str)], host: &str| {
        let diff = PlatformFeature.diff(&resource, &read(&["sh"], &resource, files, host));
        (found(&diff), diff.refusal.is_some())
    };
    let table = ("sys/firmware/acpi/tables/IVRS", "");
    assert_eq!(
        compared(&server(&[table]), BARE),
        (Reading::is(true), false),
        "offered, and not used"
    );
    assert_eq!(
        compared(
            &server(&[("sys/kernel/iommu_groups/0/type", "identity\n")]),
            BARE
        ),
        (Reading::is(true), false)
    );
    let guest = BARE.replace("none", "kvm");
    assert!(
        matches!(compared(&server(&[]), &guest), (Reading::NotApplicable(why), false) if why.as_words().contains("kvm"))
    );
    assert_eq!(
        compared(&server(&[table]), &guest),
        (Reading::is(true), false),
        "a guest may have one too"
    );
    assert!(
        matches!(compared(&[], BARE), (Reading::Unknown(_), false)),
        "neither ACPI nor groups"
    );
    assert!(
        matches!(
            compared(&server(&[]), "version 1\n"),
            (Reading::Unknown(_), false)
        ),
        "who the host is, is not known"
    );
}

/// A line of `resource`, and the first seven: BARs and ROM of the NIC itself.
const UNUSED: &str = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
const OWN: &str = "0x000000bffe000000 0x000000bfffffffff 0x000000000014220c\n";

fn nic(total: &str, bars: &[&str]) -> (Reading, bool) {
    let ranges = [
        OWN,
        &UNUSED.repeat(6),
        &bars.concat(),
        &UNUSED.repeat(6 - bars.len()),
    ]
    .concat();
    let resource = of("virtual_functions");
    let mut files = server(&[("sys/class/net/ens1/device/resource", ranges.as_str())]);
    if !total.is_empty() {
        files.push(("sys/class/net/ens1/device/sriov_totalvfs", total));
    }
    let diff = PlatformFeature.diff(&resource, &read(&["sh"], &resource, &files, BARE));
    (
        found(&diff),
        diff.refusal
            .is_some_and(|why| why.starts_with("by hand: switch on SR-IOV in the setup program")),
    )
}

#[test]
fn virtual_functions_need_a_place_for_each_of_their_bars() {
    let placed = "0x000000c000000000 0x000000c0007fffff 0x000000000014220c\n";
    let unplaced = "0x0000000000000000 0x00000000007fffff 0x000000002014220c\n";
    assert_eq!(nic("8\n", &[placed]), (Reading::is(true), false));
    assert_eq!(
        nic("8\n", &[]),
        (Reading::Absent, true),
        "the kernel gave up on it"
    );
    assert_eq!(nic("8\n", &[unplaced]), (Reading::Absent, true));
    assert_eq!(
        nic("8\n", &[placed, UNUSED, unplaced]),
        (Reading::Absent, true),
        "one of two is not enough"
    );
    for none in ["", "0\n"] {
        assert!(
            matches!(nic(none, &[placed]), (Reading::NotApplicable(why), false) if why.as_words().contains("firmware"))
        );
    }
    let resource = of("virtual_functions");
    let gone = PlatformFeature.diff(&resource, &read(&["sh"], &resource, &SERVER, BARE));
    assert_eq!(
        found(&gone),
        Reading::Unknown("there is no netdev ens1".into())
    );
}

#[test]
fn a_resource_says_what_it_is_for_and_who_advises_what() {
    let pointers = |body: Value| {
        PlatformFeature
            .check(&body)
            .into_iter()
            .map(|error| error.pointer)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let advice = json!([{ "says": "a", "source": "b" }]);
    assert_eq!(
        pointers(json!({ "feature": "smt", "effect": "a", "advice": advice })),
        "/feature"
    );
    assert_eq!(
        pointers(json!({ "feature": "iommu", "netdev": "ens1", "effect": "a", "advice": advice })),
        "/netdev"
    );
    assert_eq!(
        pointers(json!({ "feature": "virtual_functions", "effect": "a", "advice": advice })),
        ""
    );
    assert_eq!(
        pointers(json!({ "feature": "iommu", "effect": "", "advice": [] })),
        "/effect /advice"
    );
    assert_eq!(
        pointers(json!({ "feature": "iommu", "effect": "a", "advice": [{ "says": "no source" }] })),
        "/advice/0"
    );
}

#[test]
fn other_words_for_the_same_feature_are_the_same_resource() {
    let mut other = of("iommu");
    let mut body = other.body.clone();
    body["effect"] = "said better".into();
    other.declaration = crate::ResourceDeclaration {
        body,
        ..(*other.declaration).clone()
    }
    .into();
    assert!(PlatformFeature.is_same_resource(&of("iommu"), &other));
    assert!(!PlatformFeature.is_same_resource(&of("iommu"), &of("virtual_functions")));
}

proptest! {
    #[test]
    fn no_answer_panics_or_acts(lines in proptest::collection::vec("(== \
                                                                    (platform|functions|end)?|\\|(acpi=|iommu_known=|sys_vendor=|total=|bar=0x)?)[ \
                                                                    -~\u{e4}\u{1b}]{0,24}", 0..12), code in 0i32..3) {
        for name in ["iommu", "virtual_functions"] {
            let resource = of(name);
            let mut answers = ReadResults::default();
            for read in PlatformFeature.reads(&resource) {
                let out = if read == Read::Host { BARE.to_owned() } else { lines.join("\n") + "\n== end\n" };
                answers.insert(read.key(), ReadResult { status: AnswerStatus::Exit(code), out });
            }
            let diff = PlatformFeature.diff(&resource, &answers);
            prop_assert!(diff.actions.is_empty());
            let says_escape = diff.refusal.unwrap_or_default().contains('\u{1b}');
            prop_assert!(!says_escape);
        }
    }
}
