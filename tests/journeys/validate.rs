//! `validate`, `schema` and `explain`, as a user sees them.

use crate::support::Place;
use railwright_resource::Observation;
use std::io::Read as _;
use std::process::Stdio;

const GOOD: &str = "# yaml-language-server: $schema=../../docs/schema/spec.schema.json
cluster: lab
fabric: { kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } } }
ssh: { user: root, host_keys: known_hosts }
nodes:
  - name: node[1-2]
    nics: { model: soft-roce, netdev: rail0, address: '10.10.0.{index}/24' }
    os: debian-12
";

#[test]
fn a_good_inventory_is_one_line() {
    let place = Place::new();
    place
        .write("lab/cluster.yaml", GOOD)
        .write("lab/known_hosts", "");
    insta::assert_snapshot!(place.run(&["validate", "lab"]), @r#"
    $ railwright validate lab
    lab: valid. Cluster lab, fabric rocev2, 2 hosts (node[1-2]), 2 rails.
    --- exit 0 ---
    "#);
}

#[test]
fn a_missing_file_is_only_a_warning() {
    let place = Place::new();
    place.write("lab/cluster.yaml", GOOD);
    insta::assert_snapshot!(place.run(&["validate", "lab"]), @r#"
    $ railwright validate lab
    lab: valid. Cluster lab, fabric rocev2, 2 hosts (node[1-2]), 2 rails. 1 warning.
    --- stderr ---
    warning RW1005: there is no file known_hosts
       ╭─[lab/cluster.yaml:4:31]
     3 │ fabric: { kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp…
     4 │ ssh: { user: root, host_keys: known_hosts }
       ·                               ─────┬─────
       ·                                    ╰── named here
     5 │ nodes:
       ╰────
      effect: the spec is valid, but whatever needs this file will stop
      next:   create the file, or correct the path; it is relative to the inventory
    --- exit 0 ---
    "#);
}

#[test]
fn every_error_of_every_file_has_its_caret() {
    let place = Place::new();
    place.write(
        "lab/a.yaml",
        GOOD.replace("mtu: 9000", "mtu: 90000")
            .replace("nics:", "nisc:"),
    );
    place.write(
        "lab/b.yml",
        "nodes:\n  - name: node[2-3],old[9-7]\n    os: debian\n\
         rollout: { max_unavailable: half, canry: 1 }\n",
    );
    insta::assert_snapshot!(place.run(&["validate", "lab"]), @r#"
    $ railwright validate lab
    error RW0112: an MTU of 90000 bytes is out of range
       ╭─[lab/a.yaml:3:30]
     2 │ cluster: lab
     3 │ fabric: { kind: rocev2, mtu: 90000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dsc…
       ·                              ──┬──
       ·                                ╰── 68 to 9978 is possible
     4 │ ssh: { user: root, host_keys: known_hosts }
       ╰────
      effect: NICs refuse it, or accept it and drop what the switch sends
      next:   write a number from 68 to 9978; 9000 is common

    error RW0105: unknown key `nisc`
       ╭─[lab/a.yaml:7:5]
     6 │   - name: node[1-2]
     7 │     nisc: { model: soft-roce, netdev: rail0, address: '10.10.0.{index}/24' }
       ·     ──┬─
       ·       ╰── did you mean `nics`?
     8 │     os: debian-12
       ╰────
      next:   keys that can stand here: name, gpu, nics, management, os, instance, kernel, containerd,
              secure_boot, rdma_stack, erdma, tuning, iommu, ssh, kubernetes_node, kubernetes_labels,
              kubernetes_taints, labels

    error RW0110: this is no node-set
       ╭─[lab/b.yml:2:25]
     1 │ nodes:
     2 │   - name: node[2-3],old[9-7]
       ·                         ─┬─
       ·                          ╰── the range runs backwards
     3 │     os: debian
       ╰────
      effect: no host of this group can be named, so none is planned
      next:   write `7-9`

    error RW0120: `debian` is no operating system
       ╭─[lab/b.yml:3:9]
     2 │   - name: node[2-3],old[9-7]
     3 │     os: debian
       ·         ───┬──
       ·            ╰── not NAME-VERSION
     4 │ rollout: { max_unavailable: half, canry: 1 }
       ╰────
      effect: packages are chosen by system and version
      next:   write ID and VERSION_ID of /etc/os-release, such as `debian-12` or `ubuntu-22.04`

    error RW0116: `max_unavailable` is a number of hosts or a percentage
       ╭─[lab/b.yml:4:29]
     3 │     os: debian
     4 │ rollout: { max_unavailable: half, canry: 1 }
       ·                             ──┬─
       ·                               ╰── neither of the two
       ╰────
      effect: the budget cannot be kept
      next:   write a number such as `2`, or text such as `10%`

    error RW0105: unknown key `canry`
       ╭─[lab/b.yml:4:35]
     3 │     os: debian
     4 │ rollout: { max_unavailable: half, canry: 1 }
       ·                                   ──┬──
       ·                                     ╰── did you mean `canary`?
       ╰────
      next:   keys that can stand here: canary, max_unavailable, batches, failure_domain,
              failure_budget, max_disruption, windows, windows_for, deadline, rollback_timer,
              switch_rollback_timer, drain, gate

    lab: not valid. 6 errors. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
}

#[test]
fn what_is_no_yaml_is_told_in_words_with_its_caret() {
    let place = Place::new();
    place.write(
        "lab/cluster.yaml",
        "cluster: lab\nnodes:\n  - name: gpu01-16\n     os: debian-12\n",
    );
    insta::assert_snapshot!(place.run(&["validate", "lab"]), @r#"
    $ railwright validate lab
    error RW0101: this is not valid YAML
       ╭─[lab/cluster.yaml:4:6]
     3 │   - name: gpu01-16
     4 │      os: debian-12
       ·      ─┬
       ·       ╰── 5 spaces before this; the lines above that it could belong to have 0 or 2 or 4
       ╰────
      next:   bring it in line with its neighbours; what follows could not be read

    lab: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
    place.write(
        "lab/cluster.yaml",
        "cluster: lab\nnodes:\n  - name: gpu01-16\n",
    );
    insta::assert_snapshot!(place.run(&["validate", "lab"]), @r#"
    $ railwright validate lab
    lab: valid. Cluster lab, fabric none, 1 host (gpu01-16), 0 rails. 1 warning.
    --- stderr ---
    warning RW0135: `gpu01-16` is one host of that name
       ╭─[lab/cluster.yaml:3:11]
     2 │ nodes:
     3 │   - name: gpu01-16
       ·           ────┬───
       ·               ╰── a range has brackets
       ╰────
      effect: if a range was meant, its hosts are not in the cluster: nothing is planned for them and
              nothing proven
      next:   write `gpu[01-16]` for a range; a host that is really called so can stay
    --- exit 0 ---
    "#);
}

#[test]
fn our_own_record_on_a_host_is_no_modules_to_declare() {
    let place = Place::new();
    place
        .write("lab/cluster.yaml", GOOD)
        .write("lab/known_hosts", "");
    let module = "module: bad\n\
                  summary: s\n\
                  resources:\n  - id: record\n    file: { path: /var/lib/railwright/record.json, content: x }\n";
    place.write("lab/modules/bad/module.yaml", module);
    let said = place.run(&["validate", "lab"]);
    assert!(
        said.contains("RW0208")
            && said.contains("bad/module.yaml:5:19")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}

#[test]
fn the_same_as_json() {
    let place = Place::new();
    place.write("lab/cluster.yaml", "cluster: lab\nfabric:\n  mtu: 1\n");
    insta::assert_snapshot!(place.run(&["validate", "lab", "--json"]), @r#"
    $ railwright validate lab --json
    {
      "format_version": "1.0",
      "inventory": "lab",
      "valid": false,
      "spec": null,
      "diagnostics": [
        {
          "code": "RW0112",
          "severity": "error",
          "message": "an MTU of 1 bytes is out of range",
          "file": "lab/cluster.yaml",
          "line": 3,
          "column": 8,
          "labels": [
            {
              "file": "lab/cluster.yaml",
              "line": 3,
              "column": 8,
              "end_line": 3,
              "end_column": 9,
              "text": "68 to 9978 is possible"
            }
          ],
          "subject": null,
          "effect": "NICs refuse it, or accept it and drop what the switch sends",
          "state": null,
          "next": [
            "write a number from 68 to 9978; 9000 is common"
          ],
          "source": null
        }
      ],
      "waived": []
    }
    --- exit 1 ---
    "#);
    place.write(
        "lab/cluster.yaml",
        "cluster: lab\nnodes: [{ name: 'n[1-2]' }]\n",
    );
    insta::assert_snapshot!(place.run(&["validate", "lab", "--json"]), @r#"
    $ railwright validate lab --json
    {
      "format_version": "1.0",
      "inventory": "lab",
      "valid": true,
      "spec": {
        "cluster": "lab",
        "hosts": [
          "n1",
          "n2"
        ],
        "digest": "64ce603f48ce02ab6634eaac08c99f994c939d6757633bcdd04771241d4aee11",
        "origin": {
          "path": "lab",
          "commit": null,
          "dirty": false
        }
      },
      "diagnostics": [],
      "waived": []
    }
    --- exit 0 ---
    "#);
}

#[test]
fn an_inventory_that_is_none() {
    let place = Place::new();
    place
        .write("file.yaml", "cluster: a")
        .write("empty/notes.txt", "")
        .write("bad/a.yaml", b"cluster: \xff\n");
    place
        .write("outside.yaml", "cluster: a")
        .write("linked/b.yaml", "nodes: []");
    std::os::unix::fs::symlink("../outside.yaml", place.path().join("linked/a.yaml")).unwrap();
    let screens: Vec<String> = ["nowhere", "file.yaml", "empty", "bad", "linked"]
        .iter()
        .map(|path| place.run(&["validate", path]))
        .collect();
    insta::assert_snapshot!(screens.join("\n"), @r#"
    $ railwright validate nowhere
    error RW1001: the inventory nowhere cannot be opened: No such file or directory (os error 2)
      next:   name the folder that holds the spec, such as `inventories/lab`

    nowhere: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---

    $ railwright validate file.yaml
    error RW1002: the inventory file.yaml is a file, not a folder
      next:   name the folder that holds the spec, such as `inventories/lab`

    file.yaml: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---

    $ railwright validate empty
    error RW1003: the inventory empty holds no *.yaml file
      state:  nothing was read
      next:   write a spec there; a small one is inventories/lab in railwright's repository

    empty: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---

    $ railwright validate bad
    error RW1004: bad/a.yaml is not UTF-8 from byte 9 on
      next:   save the file as UTF-8

    bad: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---

    $ railwright validate linked
    error RW1007: linked/a.yaml is a link that leads to no file that is read there
      next:   copy the file into the inventory

    linked: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
}

#[test]
fn a_pipe_instead_of_a_file_does_not_hang() {
    let place = Place::new();
    place.write("lab/cluster.yaml", GOOD);
    let made = std::process::Command::new("mkfifo")
        .arg(place.path().join("lab/pipe.yaml"))
        .status()
        .unwrap();
    assert!(made.success());
    let screen = place.run(&["validate", "lab"]);
    assert!(
        screen.contains("error RW1007: lab/pipe.yaml is no ordinary file")
            && screen.ends_with("--- exit 1 ---\n"),
        "{screen}"
    );
}

fn git(place: &Place, words: &[&str]) {
    let identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    ];
    let mut git = std::process::Command::new("git");
    let done = git
        .current_dir(place.path())
        .env("HOME", place.path())
        .args(identity)
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn git_says_where_the_spec_came_from() {
    let place = Place::new();
    place.write("lab/cluster.yaml", "cluster: lab\n");
    let git = |words: &[&str]| git(&place, words);
    let origin = || {
        let json = place
            .command(&["validate", "lab", "--json"])
            .output()
            .unwrap()
            .stdout;
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let commit = json["spec"]["origin"]["commit"].as_str().map(str::len);
        (commit, json["spec"]["origin"]["dirty"].as_bool().unwrap())
    };
    assert_eq!(origin(), (None, false));
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    assert_eq!(origin(), (Some(40), false));
    place.write("lab/.railwright/state.json", "{}");
    assert_eq!(
        origin(),
        (Some(40), false),
        "what railwright keeps there is no change of the spec"
    );
    place.write("lab/more.yaml", "nodes: []");
    assert_eq!(origin(), (Some(40), true));
    // What a key of the inventory says comes to the hosts like the spec itself.
    let key = include_str!("../../modules/package-repositories/tests/apt-and-dnf/key.asc");
    let repository =
        "repositories: [{ name: x, url: 'https://x.example/', suite: ./, key: keys/k.asc }]";
    place
        .write("lab/more.yaml", repository)
        .write("lab/keys/k.asc", key)
        .write("lab/keys/other", "");
    git(&["add", "."]);
    git(&["commit", "-qm", "second"]);
    assert_eq!(origin(), (Some(40), false));
    std::fs::remove_file(place.path().join("lab/keys/other")).unwrap();
    assert_eq!(origin(), (Some(40), false), "nobody reads it");
    place.write("lab/keys/k.asc", format!("{key}\n"));
    assert_eq!(origin(), (Some(40), true));
    std::fs::remove_file(place.path().join("lab/keys/k.asc")).unwrap();
    assert_eq!(origin(), (Some(40), true));
    std::fs::remove_dir_all(place.path().join("lab/keys")).unwrap();
    assert_eq!(origin(), (Some(40), true));
}

/// What a chart of this machine holds comes into the plan, and nobody looked it up in the commit.
#[test]
fn a_plan_with_a_chart_of_this_machine_is_not_said_to_be_of_a_commit() {
    let place = Place::new();
    place.write(
        "lab/cluster.yaml",
        "cluster: lab\nkubernetes: { kubeconfig: kubeconfig }\nmodules: { m: { enabled: true } }\n",
    );
    let release = "module: m\n\
                   summary: a chart\n\
                   resources:\n  - { id: x, helm_release: { name: x, namespace: default, chart: charts/x } }\n";
    place
        .write("lab/modules/m/module.yaml", release)
        .write("lab/charts/x/Chart.yaml", "name: x\nversion: 0.1.0\n");
    place.write(
        "observations.json",
        serde_json::to_string(&Observation::at("2026-01-01T00:00:00Z".to_owned())).unwrap(),
    );
    git(&place, &["init", "-q"]);
    git(&place, &["add", "."]);
    git(&place, &["commit", "-qm", "first"]);
    let json = place
        .command(&[
            "plan",
            "lab",
            "--observations",
            "observations.json",
            "--json",
        ])
        .output()
        .unwrap();
    let plan: serde_json::Value =
        serde_json::from_slice(&json.stdout).unwrap_or_else(|_| panic!("{json:?}"));
    assert!(
        plan["inventory"]["commit"].is_string() && plan["inventory"]["dirty"].is_null(),
        "{}",
        plan["inventory"]
    );
}

#[test]
fn an_editor_says_the_unknown_word_first() {
    let place = Place::new();
    let printed = place.command(&["schema"]).output().unwrap().stdout;
    let schema: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    // A word that the schema does not know is one that the loader refuses.
    assert_eq!(schema["$defs"]["NodeGroup"]["additionalProperties"], false);
    assert!(
        schema["$defs"]["Disruption"]
            .to_string()
            .contains("link_blip")
    );
}

#[test]
fn a_module_is_checked_with_its_inventory() {
    let place = Place::new();
    place.write("lab/cluster.yaml", "cluster: lab\nnodes: [{ name: n1 }]\n");
    place.write(
        "lab/modules/motd/module.yaml",
        "module: motd\n\
         summary: A greeting\n\
         resources:\n  - id: text\n    file: { path: /etc/motd, content: \"{{ cluser }}\" }\n",
    );
    insta::assert_snapshot!(place.run(&["validate", "lab"]), @r#"
    $ railwright validate lab
    error RW0203: there is no `cluser` here
       ╭─[lab/modules/motd/module.yaml:5:43]
     4 │   - id: text
     5 │     file: { path: /etc/motd, content: "{{ cluser }}" }
       ·                                           ───┬──
       ·                                              ╰── did you mean `cluster`?
       ╰────
      effect: Tera would take it for false or stop in the middle, and a resource would be missing
              without a word

    lab: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
}

#[test]
fn a_code_is_explained() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["explain", "rw0115"]), @r#"
    $ railwright explain rw0115
    RW0115: Two links with one address

    Two hosts get the same address on the same rail, or two rails of one host get the same address.

    Why it matters: the neighbour that answers last gets the traffic of both; jobs hang on some pairs of
    hosts and not on others.

    What to do: use `{index}` and `{rail}` in the address, or give each group its own network.
    --- exit 0 ---
    "#);
    insta::assert_snapshot!(place.run(&["explain", "RW0199"]), @r#"
    $ railwright explain RW0199
    --- stderr ---
    error RW1008: there is no code `RW0199`
      next:   did you mean `railwright explain RW0109`?
    --- exit 1 ---
    "#);
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
    let place = Place::new();
    let mut child = place
        .command(&["schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), stderr.as_str()),
        (Some(0), "")
    );
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = place
        .command(&["schema"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("the output could not be written: ")
    );
}

const GPUS: &str = "cluster: lab
fabric: { kind: rocev2, mtu: 9000 }
ssh: { user: root, host_keys: known_hosts }
nodes:
  - name: node[1-2]
    os: ubuntu-22.04
    gpu: { model: H100-SXM5-80GB, count: 8, driver: '535', cuda: '12.4' }
    nics: { model: ConnectX-6, netdev: ens1f0np0 }
    rdma_stack: { flavour: doca, version: 3.2.1 }
";

/// Releases that cannot be are errors, others that nobody knows are warnings, and a row of one's
/// own makes them known.
#[test]
fn a_release_that_does_not_exist_is_named_with_its_neighbours() {
    let place = Place::new();
    place.write("lab/known_hosts", "");
    let said = |from: &str, to: &str| {
        place.write("lab/cluster.yaml", GPUS.replace(from, to));
        place.run(&["validate", "lab"])
    };
    let known = said("535", "535");
    assert!(
        !known.contains("RW0128") && known.ends_with("--- exit 0 ---\n"),
        "{known}"
    );
    insta::assert_snapshot!(said("'535'", "'5350'"), @r#"
    $ railwright validate lab
    error RW0128: there is no such release: the GPU driver 5350
       ╭─[lab/cluster.yaml:7:53]
     6 │     os: ubuntu-22.04
     7 │     gpu: { model: H100-SXM5-80GB, count: 8, driver: '5350', cuda: '12.4' }
       ·                                                     ───┬──
       ·                                                        ╰── no such release is known
     8 │     nics: { model: ConnectX-6, netdev: ens1f0np0 }
       ╰────
      effect: the newest one that the catalogue knows begins with 610, and none to come is that far off:
              its packages would not be found
      next:   nearest: 535, 610; `railwright catalog release` lists what is known
      next:   or, where there is such a release, add an entry in modules/catalog/release.yaml of the
              inventory: release: [{ name: driver-5350, part: driver, release: "5350", source: ... }]

    lab: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
    for (from, to, line) in [
        (
            "'12.4'",
            "'99.1'",
            "error RW0128: there is no such release: CUDA 99.1",
        ),
        (
            "'12.4'",
            "'12.7'",
            "error RW0128: there is no such release: CUDA 12.7",
        ),
        (
            "3.2.1",
            "9.9.9",
            "error RW0128: there is no such release: DOCA 9.9.9",
        ),
        (
            "'535', cuda: '12.4'",
            "'580', cuda: '13.9'",
            "warning RW0128: no such release is known to the catalogue: CUDA 13.9",
        ),
        (
            "'535'",
            "'536'",
            "warning RW0128: no such release is known to the catalogue: the GPU driver 536",
        ),
        (
            "ubuntu-22.04",
            "ubuntu-22.4",
            "error RW0120: `ubuntu-22.4` is no operating system that railwright knows",
        ),
        (
            "ubuntu-22.04",
            "ubuntu-2204",
            "error RW0120: `ubuntu-2204` is no operating system that railwright knows",
        ),
    ] {
        let text = said(from, to);
        let code = if line.starts_with("error") {
            "--- exit 1 ---\n"
        } else {
            "--- exit 0 ---\n"
        };
        assert!(text.contains(line) && text.ends_with(code), "{text}");
    }
    let mistyped = said("ubuntu-22.04", "ubuntu-22.4");
    assert!(
        mistyped.contains("did you mean `ubuntu-22.04`?"),
        "{mistyped}"
    );
    place.write(
        "lab/modules/catalog/own.yaml",
        "release: [{ name: driver-536, part: driver, release: '536', source: me }]\n",
    );
    let own = said("'535'", "'536'");
    assert!(!own.contains("RW0128"), "{own}");
    place.write(
        "lab/modules/catalog/own.yaml",
        "os: [{ name: ubuntu-22.4, package_manager: apt, kernel: '5.15', source: me }]\n",
    );
    let own = said("ubuntu-22.04", "ubuntu-22.4");
    assert!(!own.contains("RW0120"), "{own}");
}

/// Numbers that no fabric can keep, and repositories of another system.
#[test]
fn what_contradicts_itself_is_told_before_anything_is_done() {
    let place = Place::new();
    place.write("lab/known_hosts", "").write(
        "lab/key.asc",
        include_str!("../../modules/package-repositories/tests/apt-and-dnf/key.asc"),
    );
    let said = |more: &str| {
        place.write("lab/cluster.yaml", format!("{GPUS}{more}\n"));
        place.run(&["validate", "lab"])
    };
    for (more, line) in [
        (
            "verify: { write_bandwidth_gbps: 390 }",
            "error RW2905: a pair is to deliver more than the 200 Gb/s that a port of ConnectX-6 \
             has",
        ),
        (
            "rollout: { canary: 2 }",
            "warning RW0129: 2 canary hosts, and 1 host may be out of service at the same time, as \
             nothing else",
        ),
        (
            "rollout: { max_unavailable: 1, batches: [2] }",
            "warning RW0129: a wave of 2 hosts, and 1 may be out of service",
        ),
        (
            "repositories: \
             [{ name: cuda, url: 'https://x.example/cuda/ubuntu2404/x86_64/', suite: /, key: key.asc }]",
            "warning RW0136: the repository `cuda` is for another system (`ubuntu2404`) than nodes \
             that get it (ubuntu-22.04)",
        ),
        (
            "repositories: \
             [{ name: os, url: 'https://x.example/ubuntu/', suite: noble-updates, components: [main], key: key.asc }]",
            "warning RW0136: the repository `os` is for another system (`noble-updates`)",
        ),
    ] {
        let words = said(more).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(line), "{}", said(more));
    }
    for more in [
        "verify: { write_bandwidth_gbps: 180 }",
        "rollout: { max_unavailable: 2, canary: 2, batches: [1, 2] }",
        "repositories: \
         [{ name: cuda, url: 'https://x.example/cuda/ubuntu2204/x86_64/', suite: /, key: key.asc }]",
    ] {
        assert!(
            said(more).ends_with(" 2 rails.\n--- exit 0 ---\n"),
            "{}",
            said(more)
        );
    }
}

/// What a kind refuses is mostly what the spec says: the caret is there, and not in a module that
/// nobody of us wrote.
#[test]
fn a_value_of_the_spec_that_a_kind_refuses_has_its_caret_in_the_spec() {
    let place = Place::new();
    place.write("lab/known_hosts", "");
    place.write(
        "lab/modules/note/module.yaml",
        "module: note\n\
         summary: a note\n\
         parameters: { where: { type: string, doc: a path } }\n\
         resources:\n  - id: file\n    file: { path: '{{ where }}', content: x, mode: '0644' }\n",
    );
    place.write(
        "lab/cluster.yaml",
        format!("{GOOD}modules: {{ note: {{ parameters: {{ where: not/absolute }} }} }}\n"),
    );
    let said = place.run(&["validate", "lab"]);
    assert!(
        said.contains("error RW0208: note/file: the path must be absolute")
            && said.contains("lab/cluster.yaml:9:41"),
        "{said}"
    );
}

/// Lines of a spec end where the screen ends, and the caret is on it.
#[test]
fn no_line_of_a_drawing_is_wider_than_the_screen() {
    let place = Place::new();
    let far = format!(
        "labels: {{ {} }}, nisc: x",
        (0..20)
            .map(|n| format!("l{n}: v"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    for group in [
        format!("{{ name: n1, nisc: x, {} }}", far.replace("nisc", "os")),
        format!("{{ name: n1, {far} }}"),
    ] {
        place.write(
            "lab/cluster.yaml",
            format!("cluster: lab\nfabric: {{ kind: none }}\nnodes:\n  - {group}\n"),
        );
        let said = place.run(&["validate", "lab"]);
        assert!(
            said.contains("unknown key `nisc`") && said.contains("╰── did you mean `nics`?"),
            "{said}"
        );
        assert!(
            said.lines().all(|line| line.chars().count() <= 100),
            "{said}"
        );
    }
}
