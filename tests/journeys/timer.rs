//! The systemd units of docs/examples: what systemd says of them, and what their command line does.

use crate::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

const UNITS: [&str; 2] = ["railwright-drift.service", "railwright-drift.timer"];

fn unit(name: &str) -> String {
    fs::read_to_string(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("docs/examples")
            .join(name),
    )
    .unwrap()
}

/// The one value of a key of the service.
fn value(key: &str) -> String {
    let values: Vec<String> = unit(UNITS[0])
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{key}=")).map(str::to_owned))
        .collect();
    let [value] = values.as_slice() else {
        panic!("{key} stands {} times", values.len())
    };
    value.clone()
}

/// systemd is none of the packages that the tests install, so that without it there is nothing to
/// ask.
#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: no systemd-analyze here");
        return;
    }
    let place = Place::new();
    let verify = |service: &str| {
        // The program is not where the example has it: systemd would say so.
        let service = service.replace(
            "/usr/local/bin/railwright",
            env!("CARGO_BIN_EXE_railwright"),
        );
        place
            .write(UNITS[0], service)
            .write(UNITS[1], unit(UNITS[1]));
        let output = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .args(UNITS)
            .current_dir(place.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.lines()
            .filter(|line| line.contains("railwright-drift"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(verify(&unit(UNITS[0])), Vec::<String>::new());
    assert!(
        !verify(&unit(UNITS[0]).replace("SuccessExitStatus=", "SuccesExitStatus=")).is_empty(),
        "a wrong key passes"
    );
}

#[test]
fn the_command_line_of_the_service_leaves_metrics_that_everybody_may_read() {
    let place = Place::new();
    place.write(
        "cluster/cluster.yaml",
        "cluster: here\nssh: { address: local }\nnodes: [{ name: n1 }]\n",
    );
    let resources =
        "  - id: note\n    file: { path: /nonexistent/note.conf, content: \"rails\\n\" }\n";
    place.write(
        "cluster/modules/story/module.yaml",
        format!("module: story\nsummary: a note\nresources:\n{resources}"),
    );
    fs::create_dir(place.path().join("metrics")).unwrap();
    let line = value("ExecStart");
    let words: Vec<String> = line
        .split_whitespace()
        .skip(1)
        .map(|word| {
            word.replace("/etc/railwright/cluster", "cluster")
                .replace("/var/lib/prometheus/node-exporter", "metrics")
        })
        .collect();
    let output = place
        .command(&words.iter().map(String::as_str).collect::<Vec<_>>())
        .output()
        .unwrap();
    let code = output.status.code().unwrap();
    assert_eq!(code, 2, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        value("SuccessExitStatus")
            .split(' ')
            .any(|fine| fine == code.to_string()),
        "systemd would call drift a failure"
    );
    let file = place.path().join("metrics/railwright.prom");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o644
    );
    let metrics = fs::read_to_string(file).unwrap();
    assert!(
        metrics.contains(
            "railwright_drift_last_check_timestamp_seconds{cluster=\"here\"} 1767225600\n"
        ),
        "{metrics}"
    );
    assert!(metrics.contains("railwright_drift_findings{cluster=\"here\",host=\"n1\",kind=\"file\",plane=\"persisted\"} "), "{metrics}");
    // What is written may be written where the unit lets it.
    assert!(value("ReadWritePaths").split(' ').any(|path| line.contains(&format!("{}/railwright.prom", path.trim_start_matches('-')))));
}
