//! `image render` and `image check`, as a user sees them, and on roots that are real ones of
//! Debian.

use crate::documents::holds;
use crate::rig::{Host, Root};
use crate::support::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;

const KEY: &str =
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----\n";

fn place() -> Place {
    let place = Place::new();
    place.write("keys/erdma.asc", KEY);
    place
}

fn rendered(place: &Place, options: &str) -> String {
    let words: Vec<&str> = ["image", "render"]
        .into_iter()
        .chain(options.split(' '))
        .collect();
    let output = place.command(&words).output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The commands of each layer, as an engine hands them to sh: lines that go on are one.
fn layers(file: &str) -> Vec<String> {
    let whole = file.replace("\\\n", "");
    whole
        .lines()
        .filter_map(|line| line.strip_prefix("RUN ").map(str::to_owned))
        .collect()
}

#[test]
fn an_image_is_rendered_the_same_every_time() {
    let place = place();
    let options = "--base pytorch/pytorch:2.5.1 --suite jammy --fabric erdma --key keys/erdma.asc \
                   --example mnist";
    let file = rendered(&place, options);
    assert_eq!(
        rendered(&place, &options.replace(" keys/", " ./keys/")),
        file
    );
    let stages: Vec<&str> = file
        .lines()
        .filter(|line| line.starts_with("FROM ") || line.starts_with("COPY "))
        .collect();
    assert_eq!(
        stages,
        [
            "FROM pytorch/pytorch:2.5.1 AS checked",
            "FROM checked AS example",
            "FROM checked",
            "COPY keys/erdma.asc /etc/apt/keyrings/railwright-erdma.asc",
            "COPY --from=example /workspace /workspace",
        ]
    );
    let inventory = format!("{}/inventories/ack-erdma-pods", env!("CARGO_MANIFEST_DIR"));
    let of_spec = rendered(
        &place,
        &options.replace("--fabric erdma", &format!("-i {inventory}")),
    );
    assert_eq!(of_spec, file, "the spec says the same");
}

#[test]
fn what_cannot_be_rendered_is_told_at_its_word() {
    let place = place();
    let render = |words: &[&str]| place.run(&[&["image", "render"], words].concat());
    let said = render(&[
        "--base",
        "debian:12\nRUN id",
        "--suite",
        "bookworm",
        "--fabric",
        "erdma",
        "--key",
        "keys/erdma.asc",
    ]);
    assert!(
        said.contains("RW1270: `debian:12 RUN id` cannot be an image") && said.contains("RW1272"),
        "{said}"
    );
    assert!(
        said.ends_with("--- exit 1 ---\n")
            && said.contains("--suite=bookworm")
            && said.contains("none for this release"),
        "{said}"
    );
    let none = render(&[
        "--base",
        "debian:12",
        "--suite",
        "jammy",
        "--fabric",
        "erdma",
    ]);
    assert!(
        none.contains("RW1273") && none.contains("https://mirrors.aliyun.com/erdma/GPGKEY once"),
        "{none}"
    );
    assert!(render(&["--base", "debian:12", "--suite", "jammy"]).contains("--- exit 64 ---"));
    place.write("acs/cluster.yaml", "cluster: acs\nfabric: { kind: acs }\n");
    assert!(render(&["--base", "debian:12", "--suite", "jammy", "-i", "acs"]).contains("RW1271"));
    let own = "user-space: [{ name: rocev2, packages: [\"a b\"], libraries: [a], providers: \
               [{ driver: d, name: n }], source: me }]\n";
    place
        .write(
            "own/cluster.yaml",
            "cluster: own\nfabric: { kind: rocev2 }\n",
        )
        .write("own/modules/catalog/own.yaml", own);
    let own = render(&["--base", "debian:12", "--suite", "jammy", "-i", "own"]);
    assert!(
        own.contains("RW0220") && own.contains("`a b` is nothing that can stand in a"),
        "{own}"
    );
}

#[test]
fn a_root_that_is_none_is_told_and_one_without_rdma_is_missing_all() {
    let place = place();
    let check = |words: &[&str]| place.run(&[&["image", "check"], words].concat());
    place.write("empty/x", "").write("root/etc/ld.so.conf", "");
    for folder in ["empty", "none", "empty/x"] {
        let said = check(&["--root", folder, "--fabric", "rocev2"]);
        assert!(
            said.contains("RW1275") && said.ends_with("--- exit 1 ---\n"),
            "{said}"
        );
    }
    insta::assert_snapshot!(check(&["--root", "root", "--fabric", "infiniband"]), @r"
    $ railwright image check --root root --fabric infiniband
    image check root   for a fabric of kind infiniband

    MISSING: jobs would go without RDMA -------------------------------------------------------------
     ! library      libibverbs.so.1  RW1276
           actual  in no folder that a loader looks into
           desired libibverbs.so.1, where a loader finds it
     ! library      librdmacm.so.1   RW1276
           actual  in no folder that a loader looks into
           desired librdmacm.so.1, where a loader finds it
     ! provider     mlx5             RW1277
           actual  in no folder of providers
           desired the provider mlx5 of the release of libibverbs
     ! driver       mlx5             RW1278
           actual  no file of /etc/libibverbs.d says `driver mlx5`
           desired a file of /etc/libibverbs.d with the line `driver mlx5`
           means   NCCL passes RDMA over without an error and goes over TCP: a tenth of the bandwidth
                   and many times the latency
           next    railwright image render --base IMAGE --suite SUITE --fabric infiniband >Containerfile
    --- exit 1 ---
    ");
    let output = place
        .command(&[
            "image", "check", "--root", "root", "--fabric", "rocev2", "--json",
        ])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    holds("image", &document);
    assert_eq!(
        (output.status.code(), &document["verdict"]),
        (Some(1), &Value::from("failed"))
    );
    assert!(
        check(&["--pod", "a", "--fabric", "rocev2"]).contains("--- exit 64 ---"),
        "a pod is of a cluster"
    );
    assert!(check(&["--fabric", "rocev2"]).contains("--- exit 64 ---"));
}

fn check(place: &Place, root: &Path, fabric: &str) -> String {
    place.run(&[
        "image",
        "check",
        "--root",
        root.to_str().unwrap(),
        "--fabric",
        fabric,
    ])
}

/// A root of Debian with its own packages has all of it, and one without them nothing.
#[test]
fn a_real_root_is_looked_into() {
    let story = "a real root is looked into";
    let (Some(with), Some(without)) = (
        Host::start_from(Root::Rdma, story, &[]),
        Host::start(story, &[]),
    ) else {
        return;
    };
    let place = place();
    for (fabric, provider) in [
        ("rocev2", "mlx5"),
        ("infiniband", "mlx5"),
        ("erdma", "erdma"),
    ] {
        let said = check(&place, with.base(), fabric);
        let file = format!("/libibverbs/lib{provider}-rdmav34.so");
        assert!(
            said.contains("COMPLETE") && said.contains(&file) && said.ends_with("--- exit 0 ---\n"),
            "{said}"
        );
        let said = check(&place, without.base(), fabric);
        assert!(
            said.matches("RW1276").count() == 2
                && said.contains("RW1277")
                && said.ends_with("--- exit 1 ---\n"),
            "{said}"
        );
    }
}

/// The steps of the file that need no network, in a root of Debian: the release, the key, the
/// source as apt reads it, and the proof at the end.
#[test]
fn the_steps_of_the_file_are_true_in_a_real_root() {
    let Some(host) = Host::start_from(
        Root::Rdma,
        "the steps of the file are true in a real root",
        &[],
    ) else {
        return;
    };
    let place = place();
    let own = layers(&rendered(
        &place,
        "--base debian:12 --suite bookworm --fabric rocev2",
    ));
    host.must(&own[0]);
    host.must(own.last().unwrap());
    let vendor = layers(&rendered(
        &place,
        "--base debian:12 --suite jammy --fabric erdma --key keys/erdma.asc",
    ));
    let (code, _, said) = host.sh(&vendor[0]);
    assert!(
        code == 1
            && said.contains("railwright: the base is of bookworm, and this file is for jammy"),
        "{code}: {said}"
    );

    let key = |text: &str| {
        host.must(&format!(
            "mkdir -p /etc/apt/keyrings; printf '%s' '{text}' \
             >/etc/apt/keyrings/railwright-erdma.asc"
        ))
    };
    key(&KEY.replace("mDME", "mDMF"));
    let (code, _, said) = host.sh(&vendor[2]);
    assert!(
        code != 0 && said.contains("did NOT match"),
        "another key ends the build: {code}: {said}"
    );
    assert!(
        host.sh("cat /etc/apt/sources.list.d/railwright-erdma.sources")
            .0
            != 0,
        "and no source names it"
    );
    key(KEY);
    host.must(&vendor[2]);
    let asks = host.must("apt-get --print-uris update");
    assert!(
        asks.contains("'https://mirrors.aliyun.com/erdma/apt/ubuntu/dists/jammy/erdma/InRelease'"),
        "{asks}"
    );

    for (breaks, what) in [
        (
            "rm /etc/libibverbs.d/mlx5.driver",
            "a line `driver mlx5` of /etc/libibverbs.d",
        ),
        ("rm /usr/lib/*/librdmacm.so.1*", "librdmacm.so.1"),
    ] {
        host.must(breaks);
        let (code, _, said) = host.sh(own.last().unwrap());
        assert!(
            code == 1 && said.contains(&format!("railwright: {what} is not in the image")),
            "{code}: {said}"
        );
    }
    assert!(fs::metadata(host.base().join("etc/libibverbs.d/mlx5.driver")).is_ok());
}
