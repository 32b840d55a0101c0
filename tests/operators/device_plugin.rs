//! Pools as the RDMA shared device plugin reads them. The real program reads and checks its
//! configuration before it looks for a kubelet or a NIC (cmd/k8s-rdma-shared-dp/main.go:
//! ReadConfig, ValidateConfigs, then ValidateRdmaSystemMode), and says which way it went; what
//! comes after that is the machine's.

use crate::software::{Process, Software};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the program says against this configuration, if anything.
pub fn refusal(software: &Software, configuration: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    fs::write(&file, configuration).unwrap();
    let mut command = software.command();
    command
        .arg("--config-file")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut process = Process(command.spawn().unwrap());
    let mut last = String::new();
    for line in BufReader::new(process.0.stderr.take().unwrap()).lines() {
        last = line.unwrap();
        // It is ended before it does anything: without a subsystem of RDMA it ends by itself, with
        // one it looks for NICs next.
        if last.contains("can not change : ") || last.contains("Discovering host devices") {
            return None;
        }
    }
    Some(last)
}

/// Every `configList` in the expected resources of the modules' cases, with where it stands.
fn cases() -> Vec<(String, String)> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("modules");
    let mut found = Vec::new();
    for module in ["rdma-shared-device-plugin", "nvidia-network-operator"] {
        for case in fs::read_dir(modules.join(module).join("tests")).unwrap() {
            let path = case.unwrap().path().join("desired.txt");
            let Ok(resources) = fs::read_to_string(&path) else {
                continue;
            };
            let resources = resources
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line.trim_start()).ok());
            found.extend(resources.filter_map(|resource| {
                Some((path.display().to_string(), configuration(&resource)?))
            }));
        }
    }
    found
}

/// In the ConfigMap of the plugin's own module, or in the policy of NVIDIA's operator, which makes
/// a ConfigMap of it.
fn configuration(resource: &Value) -> Option<String> {
    if let Some(text) = resource["manifest"]["spec"]["rdmaSharedDevicePlugin"]["config"].as_str() {
        return Some(text.to_owned());
    }
    let line = resource["content"]
        .as_str()?
        .lines()
        .find(|line| line.contains("\"configList\""))?;
    Some(line.trim().to_owned())
}

pub fn every_case_is_taken(software: &Software) {
    let cases = cases();
    assert!(cases.len() >= 7, "{cases:?}");
    for (path, configuration) in cases {
        assert_eq!(
            refusal(software, &configuration),
            None,
            "{path}: {configuration}"
        );
    }
}

/// So that the check can fail.
pub fn what_is_broken_is_refused(software: &Software) {
    for (configuration, why) in [
        (r#"{"configList":[]}"#, "no resources configuration found"),
        (
            r#"{"configList":[{"resourceName":"a","rdmaHcaMax":1,"selectors":{"ifNames":[]}}]}"#,
            "neither \"selectors\" nor \"devices\"",
        ),
        (
            r#"{"configList":[{"resourceName":"a","rdmaHcaMax":"1","selectors":{"ifNames":["ens1"]}}]}"#,
            "cannot unmarshal string",
        ),
        (
            r#"{"configList":[{"resourceName":"a","rdmaHcaMax":-1,"selectors":{"ifNames":["ens1"]}}]}"#,
            "rdmaHcaMax < 0",
        ),
        ("{\"configList\":[", "unexpected end of JSON input"),
    ] {
        let said =
            refusal(software, configuration).unwrap_or_else(|| panic!("taken: {configuration}"));
        assert!(said.contains(why), "{said}");
    }
}

/// A name that the plugin or the API server would refuse on the night of the rollout is refused by
/// `validate`.
pub fn names_are_refused_before_it_would_refuse_them(software: &Software) {
    for name in [
        "rdma_a", "A1", "rdma-a", "rdma.a", "rdma/a", "rdma a", "rdmä",
    ] {
        let configuration = format!(
            r#"{{"configList":[{{"resourceName":"{name}","rdmaHcaMax":1,"selectors":{{"ifNames":["ens1"]}}}}]}}"#
        );
        let said = refusal(software, &configuration);
        assert!(
            said.as_deref()
                .is_none_or(|said| said.contains("contains invalid characters")),
            "{said:?}"
        );
        assert_eq!(said.is_some(), is_refused_by_us(name), "{name}: {said:?}");
    }
}

fn is_refused_by_us(pool: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let spec = format!(
        "cluster: train\n\
         fabric: {{ kind: rocev2 }}\n\
         kubernetes: {{ rdma: {{ resources: {{ \"{pool}\": rail 0 }} }} }}\n\
         nodes: [{{ name: gpu1, nics: {{ model: ConnectX-6, rails: 1, netdev: ens1 }} }}]\n"
    );
    fs::write(folder.path().join("cluster.yaml"), spec).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_railwright"))
        .arg("validate")
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.is_empty() || said.contains("RW0139"), "{said}");
    !output.status.success()
}
