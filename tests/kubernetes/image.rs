//! Images that are looked into through a pod. kwok has the kubelet's part and runs the program of
//! the pod here; the fake of the pod's `sh` is a real one that is told another root, which is
//! laid as Debian's packages lay it.

use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const INV: &str = "inv";
const LIB: &str = "usr/lib/x86_64-linux-gnu";
/// How a library of 64 bits for x86-64 begins (elf(5): class, order of bytes, type, machine).
const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0";

/// The root of a pod, and the programs that are run in it.
pub struct Image(tempfile::TempDir);

impl Image {
    /// With libibverbs1, librdmacm1 and ibverbs-providers.
    pub fn of_debian() -> Self {
        let image = Image(tempfile::tempdir().unwrap());
        let verbs = [
            ELF,
            b"\0/etc/libibverbs.d\0/usr/lib/x86_64-linux-gnu/libibverbs/lib%s-rdmav34.so\0",
        ]
        .concat();
        image.write("bin/sh", ELF);
        image.write(&format!("{LIB}/libibverbs.so.1"), &verbs);
        image.write(&format!("{LIB}/librdmacm.so.1"), ELF);
        image.write(&format!("{LIB}/libibverbs/libmlx5-rdmav34.so"), ELF);
        image.write("etc/libibverbs.d/mlx5.driver", b"driver mlx5\n");
        fs::create_dir(image.programs()).unwrap();
        let root = image.0.path().join("root");
        image.sh(&format!(
            "[ \"$1\" = -c ] || exit 64\n\
             export PATH=/usr/bin:/bin\n\
             exec /bin/sh -c \"R='{}'${{2#\"R=''\"}}\"",
            root.display()
        ));
        image
    }

    /// Where its programs are.
    pub fn programs(&self) -> &Path {
        Box::leak(self.0.path().join("programs").into_boxed_path())
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.0.path().join("root").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn sh(&self, text: &str) {
        let path = self.programs().join("sh");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn pod(plane: &ControlPlane, name: &str, containers: &[&str]) {
    let containers: Vec<_> = containers
        .iter()
        .map(|name| json!({ "name": name, "image": "example.invalid/train:1" }))
        .collect();
    let spec = json!({ "nodeName": "gpu1", "containers": containers });
    plane.apply(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "ml" }, "spec": spec }).to_string());
    plane.kubectl(&[
        "-n",
        "ml",
        "wait",
        "--for=condition=Ready",
        &format!("pod/{name}"),
        "--timeout=60s",
    ]);
}

fn check<'a>(pod: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &["image", "check", "--pod", pod, "-i", INV, "-n", "ml"],
        more,
    ]
    .concat()
}

pub fn a_pod_is_looked_into(plane: &ControlPlane, image: &Image) {
    plane.nodes(&["gpu1"], &[]);
    plane.kubectl(&["create", "namespace", "ml"]);
    pod(plane, "train", &["main"]);
    let cluster = Cluster::new(plane, "admin");
    cluster.spec("admin", "fabric: { kind: rocev2 }\n");
    // Libraries and provider are there; a pod that asked for no RDMA resource has no device.
    let said = cluster.told(1, &check("train", &[]));
    assert!(
        said.contains(
            "provider     mlx5             /usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so"
        ),
        "{said}"
    );
    assert!(
        said.contains("devices      /dev/infiniband  RW1279") && said.contains("memory lock"),
        "{said}"
    );
    let said = cluster.flat(1, &check("train", &["--fabric", "erdma"]));
    assert!(
        said.contains("/libibverbs/liberdma-rdmav34.so is not there") && said.contains("RW1278"),
        "{said}"
    );
    assert!(
        said.contains(
            "railwright image render --base IMAGE --suite SUITE -i inv --fabric erdma --key \
             keys/erdma.asc"
        ),
        "{said}"
    );
    image.write(&format!("{LIB}/libibverbs.so.1"), b"");
    let document: serde_json::Value =
        serde_json::from_str(&cluster.told(1, &check("train", &["--json"]))).unwrap();
    let first = &document["findings"][0];
    assert_eq!(
        (first["code"].as_str(), &document["looked_into"]),
        (Some("RW1276"), &json!("ml/train")),
        "{document}"
    );
}

pub fn what_cannot_be_looked_into_is_not_missing(plane: &ControlPlane, image: &Image) {
    let cluster = Cluster::new(plane, "admin");
    cluster.spec("admin", "fabric: { kind: rocev2 }\n");
    let unknown = |pod: &str, more: &[&str], why: &str| {
        let said = cluster.flat(3, &check(pod, more));
        assert!(
            said.contains("INCONCLUSIVE")
                && said.contains("RW1282")
                && said.contains(why)
                && !said.contains('\u{1b}'),
            "{said}"
        );
    };
    unknown("gone", &[], "no pod gone is in namespace ml");
    pod(plane, "two", &["main", "proxy"]);
    unknown(
        "two",
        &[],
        "the pod has several containers (main, proxy): name one, --container",
    );
    cluster.told(1, &check("two", &["-c", "proxy"]));
    image.sh("printf 'begin 1\\nlimit \\033[2J\\n'");
    unknown("train", &[], "its output has no end");
    image.sh("while :; do echo 'begin 1'; done");
    unknown("train", &[], "longer than the program's can be");
    cluster.spec("nobody", "fabric: { kind: rocev2 }\n");
    unknown("train", &[], "verb get, resource pods");
}
