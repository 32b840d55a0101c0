//! `drift` for operators: documents for other programs, ages, accepted findings, outliers, watching.

use crate::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn repository(path: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The lab's inventory and the recording of its bare machines.
fn lab() -> Place {
    let place = Place::new();
    place.write("inventories/lab/cluster.yaml", repository("inventories/lab/cluster.yaml"));
    place.write("fresh.json", repository("plans/lab/fresh.json"));
    place
}

const RECORDED: [&str; 4] = ["drift", "inventories/lab", "--observations", "fresh.json"];

#[test]
fn each_document_is_printed_or_written_whole() {
    let place = lab();
    for (format, begins, mode) in [
        ("text", "drift inventories/lab", 0o600),
        ("json", "{", 0o600),
        ("junit", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>", 0o600),
        ("sarif", "{\n  \"$schema\": ", 0o600),
        ("prometheus", "# HELP railwright_drift_findings ", 0o644),
        ("markdown", "### Drift of ", 0o600),
    ] {
        let words = [&RECORDED[..], &["--format", format]].concat();
        let printed = place.command(&words).output().unwrap();
        assert_eq!(printed.status.code(), Some(2), "{format}: {}", String::from_utf8_lossy(&printed.stderr));
        let file = format!("out.{format}");
        let said = place.run(&[&words[..], &["-o", &file]].concat());
        assert!(said.ends_with(&format!("Written to {file}\n--- exit 2 ---\n")) && said.lines().count() == 4, "{said}");
        let written = fs::read_to_string(place.path().join(&file)).unwrap();
        let same = |text: &str| {
            text.lines().filter(|line| !line.starts_with("railwright_drift_check_duration")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(written.starts_with(begins) && same(&written) == same(&String::from_utf8_lossy(&printed.stdout)), "{written}");
        assert_eq!(fs::metadata(place.path().join(&file)).unwrap().permissions().mode() & 0o777, mode, "{format}");
    }
    let left: Vec<_> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn json_has_its_short_form_and_a_file_that_cannot_be_written_is_told() {
    let place = lab();
    let short = place.run(&[&RECORDED[..], &["--json"]].concat());
    assert_eq!(short.replace("--json", ""), place.run(&[&RECORDED[..], &["--format", "json"]].concat()).replace("--format json", ""));
    assert!(place.run(&[&RECORDED[..], &["--json", "--format", "junit"]].concat()).ends_with("--- exit 64 ---\n"));
    let said = place.run(&[&RECORDED[..], &["-o", "none/out.txt"]].concat());
    assert!(said.contains("RW1010") && said.ends_with("--- exit 1 ---\n"), "{said}");
}
