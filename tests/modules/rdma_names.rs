//! The probe of `nic-names` for names of RDMA devices, run against made-up folders in the place of
//! sysfs.

use super::{catalog, modules};
use railwright_knowledge::module;
use railwright_knowledge::solve::SolverAnswers;
use railwright_knowledge::spec::{self, SourceFile};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

fn probe(policy: &str) -> String {
    let text = format!(
        "cluster: case\n\
         fabric: {{ kind: rocev2 }}\n\
         nodes:\n  - {{ name: n1, nics: {{ model: ConnectX-6, netdev: e, naming: {{ rdma: {policy} }} }} \
         }}\n"
    );
    let loaded = spec::load_spec(vec![SourceFile {
        name: "spec.yaml".into(),
        text,
    }])
    .unwrap();
    let desired = module::compute_desired_state(
        &loaded,
        &catalog(),
        &SolverAnswers::new(&loaded, &catalog()),
        &modules(),
        &BTreeMap::new(),
    )
    .unwrap();
    let resource = desired
        .resources
        .iter()
        .find(|resource| resource.address.name() == "rdma-names")
        .unwrap();
    resource.body["read"]["probe"].as_str().unwrap().to_owned()
}

#[test]
fn names_of_rdma_devices_are_told_by_their_policy() {
    let cases: [(&str, &[&str], &[&str]); 4] = [
        (
            "kernel",
            &["mlx5_0", "mlx5_bond_0", "bnxt_re1", "hfi1_0"],
            &[
                "rocep193s0f0",
                "ibp1s0",
                "rocex0c42a103001a2b3c",
                "roceo3",
                "roces2f1v7",
            ],
        ),
        (
            "pci",
            &["rocep193s0f0", "roceP2p1s0", "ibs4f1v12", "hfi1_0"],
            &["mlx5_0", "roceo1", "rocex0c42a103001a2b3c", "xrocep1s0"],
        ),
        (
            "guid",
            &["ibx0c42a103001a2b3c"],
            &["mlx5_0", "rocep1s0", "rocex0c42"],
        ),
        (
            "fallback",
            &["roceo1", "rocep1s0f1"],
            &["mlx5_0", "rocex0c42a103001a2b3c"],
        ),
    ];
    for (policy, right, wrong) in cases {
        let probe = probe(policy);
        for (name, is_right) in right
            .iter()
            .map(|name| (name, true))
            .chain(wrong.iter().map(|name| (name, false)))
        {
            let folder = tempfile::tempdir().unwrap();
            let of = |path: &str| folder.path().join(path);
            for (device, bus) in [(*name, "pci"), ("rxe_of_software", "virtual")] {
                fs::create_dir_all(of(&format!("class/{device}/device"))).unwrap();
                symlink(of(bus), of(&format!("class/{device}/device/subsystem"))).unwrap();
            }
            let script = probe.replace("/sys/class/infiniband", &of("class").display().to_string());
            assert!(script != probe, "the probe looks elsewhere");
            let status = Command::new("sh").args(["-c", &script]).status().unwrap();
            assert_eq!(status.success(), is_right, "{policy}: {name}");
        }
    }
}
