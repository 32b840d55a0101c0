//! The catalogue, the rules and waivers, and why a host gets what it gets, as a user sees them.

use crate::support::Place;

const ERDMA: &str = "cluster: jobs
fabric: { kind: erdma, mtu: 9000 }
ssh: { user: root, host_keys: known_hosts }
nodes:
  - name: gpu[1-4]
    os: alinux-3
    nics: { model: eRDMA, netdev: eth1 }
    erdma: { mode: compat }
";
const NOBODY: &str = r#"{ "format_version": "3.0", "recorded_at": "2026-01-01T00:00:00Z", "texts": {}, "targets": {} }"#;

fn place(spec: &str) -> Place {
    let place = Place::new();
    place
        .write("inv/cluster.yaml", spec)
        .write("inv/known_hosts", "")
        .write("nobody.json", NOBODY);
    place
}

#[test]
fn a_row_of_the_catalogue_says_what_is_known_and_by_whom() {
    let place = Place::new();
    let all = place.run(&["catalog", "gpu"]);
    assert!(
        all.contains("A100-SXM4-80GB   ampere") && all.contains("railwright catalog gpu NAME"),
        "{all}"
    );
    assert!(all.lines().all(|line| line.chars().count() <= 100), "{all}");
    for sort in [
        "nic",
        "instance",
        "os",
        "acs",
        "bandwidth",
        "release",
        "combination",
        "switch",
        "switch-system",
        "variable",
        "argument",
        "image",
        "profiler",
        "user-space",
        "example",
    ] {
        let all = place.run(&["catalog", sort]);
        assert!(
            all.ends_with("--- exit 0 ---\n")
                && all.lines().all(|line| line.chars().count() <= 100),
            "{all}"
        );
    }
    insta::assert_snapshot!(place.run(&["catalog", "acs", "GU8TF"]), @r#"
    $ railwright catalog acs GU8TF
    acs GU8TF in class gpu   modules/catalog/acs.yaml:5
      compute class      gpu
      environment        NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5 NCCL_SOCKET_IFNAME=eth0
      nic type           1
      rdma gpus          8
      source             Alibaba Cloud Container Compute Service documentation, 24 July 2025: use the
                         high-performance RDMA network to run applications
    --- exit 0 ---
    "#);
    insta::assert_snapshot!(place.run(&["catalog", "gpu", "A100-SXM-80GB"]), @r#"
    $ railwright catalog gpu A100-SXM-80GB
    --- stderr ---
    error RW1031: the catalogue has no gpu `A100-SXM-80GB`
      next:   did you mean `A100-SXM4-80GB` or `A100` or `A10`?
    --- exit 1 ---
    "#);
}

#[test]
fn a_model_that_nobody_knows_is_an_error_until_it_is_added() {
    let place = place(
        &ERDMA
            .replace("mtu: 9000", "mtu: 8500")
            .replace("eRDMA", "eRDMA-9"),
    );
    insta::assert_snapshot!(place.run(&["validate", "inv"]), @r#"
    $ railwright validate inv
    error RW0127: the catalogue knows no NIC `eRDMA-9`
       ╭─[inv/cluster.yaml:7:20]
     6 │     os: alinux-3
     7 │     nics: { model: eRDMA-9, netdev: eth1 }
       ·                    ───┬───
       ·                       ╰── not in the catalogue
     8 │     erdma: { mode: compat }
       ╰────
      effect: no module would be chosen for it and no rule could check it
      next:   did you mean `eRDMA` or `erdma`?
      next:   see what is known: railwright catalog nic
      next:   or add it, in modules/catalog/nic.yaml of the inventory: nic: [{ name: eRDMA-9, vendor:
              ..., driver: ..., fabrics: [rocev2], source: ... }]

    inv: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
    place.write(
        "inv/modules/catalog/site.yaml",
        "nic: [{ name: eRDMA-9, vendor: alibaba, driver: erdma, fabrics: [erdma], source: us }]\n",
    );
    assert!(
        place
            .run(&["validate", "inv"])
            .ends_with("--- exit 0 ---\n"),
        "{}",
        place.run(&["validate", "inv"])
    );
    // a row that takes a shipped one's place is shown with both places
    place.write(
        "inv/modules/catalog/more.yaml",
        "nic: \
         [{ name: ConnectX-6, vendor: us, driver: mlx5_core, fabrics: [rocev2], source: us }]\n",
    );
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("RW0223")
            && said.contains("inv/modules/catalog/more.yaml:1")
            && said.contains("modules/catalog/nic.yaml:"),
        "{said}"
    );
    place.write("inv/modules/catalog/more.yaml", "nics: []\n");
    let said = place.run(&["plan", "inv", "--observations", "nobody.json"]);
    assert!(
        said.contains("RW0220")
            && said.contains("did you mean `nic`?")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}

/// A switch of the spec is looked up like a NIC, its own row stands over the shipped one, and rules
/// see both.
#[test]
fn a_switch_is_known_by_its_row_and_its_system() {
    let spec = |switch: &str| {
        let fabric = "{ kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: \
                      { priority: 6, dscp: 48 } } }";
        let ssh = "{ user: root, host_keys: known_hosts }";
        format!(
            "cluster: jobs\n\
             fabric: {fabric}\n\
             ssh: {ssh}\n\
             nodes: [{{ name: n1, os: ubuntu-22.04 }}]\n\
             switches:\n  - {{ name: leaf1, {switch} }}\n"
        )
    };
    let place = place(&spec(
        "os: sonic, model: SN5600, mtu: 9216, pfc: [3], dscp: { 26: 3 }, cable_length_m: 5, \
         port_speed_gbps: 400",
    ));
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.ends_with("--- exit 0 ---\n") && !said.contains("RW29"),
        "{said}"
    );
    place.write("inv/cluster.yaml", spec("os: sonic, model: SN5600X"));
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("RW0127: the catalogue knows no switch `SN5600X`")
            && said.contains("did you mean `SN5600`"),
        "{said}"
    );
    place.write(
        "inv/cluster.yaml",
        spec(
            "os: sonic, model: IXR7220-H5-64D, pfc: [3], dscp: { 26: 3 }, cable_length_m: 40, \
             port_speed_gbps: 400",
        ),
    );
    assert!(
        !place.run(&["validate", "inv"]).contains("RW2943"),
        "nothing is said of a table that nobody has"
    );
    let table = "headroom: [{ sku: ours, speed_gbps: 400, cable_m: 5, xoff_bytes: 400000 }]";
    let row = format!(
        "switch: [{{ name: IXR7220-H5-64D, vendor: nokia, asic: T, systems: [sonic], buffer_model: \
         traditional, {table}, source: us }}]\n"
    );
    place.write("inv/modules/catalog/ours.yaml", row);
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains(
            "RW2943: no table of IXR7220-H5-64D that the catalogue knows has a row for 400 Gb/s \
             and 40 m"
        ),
        "{said}"
    );
    let said = place.run(&["catalog", "switch", "MSN2700"]);
    assert!(
        said.starts_with("$ railwright catalog switch MSN2700\nswitch SN2700")
            && said.contains("Spectrum-1"),
        "{said}"
    );
    let said = place.run(&["catalog", "switch-system", "eos"]);
    assert!(
        said.contains("0-7: 1, 8-15: 0, 24-31: 3, 48-55: 6")
            && said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
}

#[test]
fn a_spec_that_breaks_a_rule_is_not_planned() {
    let place = place(ERDMA);
    insta::assert_snapshot!(place.run(&["plan", "inv", "--observations", "nobody.json"]), @r#"
    $ railwright plan inv --observations nobody.json
    --- stderr ---
    error RW2201: the MTU is 9000 bytes, eRDMA carries at most 8500
       ╭─[inv/cluster.yaml:2:29]
     1 │ cluster: jobs
     2 │ fabric: { kind: erdma, mtu: 9000 }
       ·                             ──┬─
       ·                               ╰── MTU above what eRDMA carries
     3 │ ssh: { user: root, host_keys: known_hosts }
       ╰────
      effect: packets above 8500 bytes are fragmented or dropped inside the cloud, so large messages
              stall while small ones and every ping get through
      next:   set `mtu: 8500`, or 1400 where jumbo frames are off for the instances
      source: https://www.alibabacloud.com/help/en/ecs/user-guide/mtus/

    No host was asked or changed. `railwright explain CODE` tells more, `railwright validate` checks the files alone.
    --- exit 1 ---
    "#);
    assert!(
        place
            .run(&["validate", "inv"])
            .ends_with("--- exit 1 ---\n")
    );
    let drift = place.run(&["drift", "inv", "--observations", "nobody.json"]);
    assert!(
        drift.contains("rules: 1 error (RW2201); railwright validate inv tells more."),
        "{drift}"
    );
}

#[test]
fn a_waiver_is_shown_until_it_ends() {
    let waived = |until: &str| {
        format!(
            "{ERDMA}rules: {{ waive: [{{ code: RW2201, reason: jumbo frames are on trial, owner: \
             ada, until: {until} }}] }}\n"
        )
    };
    let place = place(&waived("2026-03-31"));
    insta::assert_snapshot!(place.run(&["validate", "inv"]), @r#"
    $ railwright validate inv
    WAIVED: rules that the spec breaks and accepts until the day is over ----------------------------
     . RW2201 the MTU is 9000 bytes, eRDMA carries at most 8500
              accepted by ada until 2026-03-31: jumbo frames are on trial
    inv: valid. Cluster jobs, fabric erdma, 4 hosts (gpu[1-4]), 4 rails.
    --- exit 0 ---
    "#);
    for command in ["plan", "drift"] {
        let said = place.run(&[command, "inv", "--observations", "nobody.json"]);
        assert!(
            said.contains("WAIVED")
                && said.contains("accepted by ada until 2026-03-31: jumbo frames are on trial"),
            "{said}"
        );
        let json = place.run(&[command, "inv", "--observations", "nobody.json", "--json"]);
        assert!(
            json.contains("\"waived\": [\n") && json.contains("\"until\": \"2026-03-31\""),
            "{json}"
        );
    }
    place.write("inv/cluster.yaml", waived("2025-12-31"));
    let said = place.run(&["plan", "inv", "--observations", "nobody.json"]);
    assert!(
        said.contains("error RW2201") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("warning RW0131: the waiver of RW2201 ended on 2025-12-31"),
        "{said}"
    );
    place.write("inv/cluster.yaml", waived("soon"));
    assert!(
        place
            .run(&["validate", "inv"])
            .contains("RW0131: `soon` is no date")
    );
}

#[test]
fn rules_are_listed_and_each_is_explained() {
    let place = Place::new();
    let all = place.run(&["rules"]);
    assert!(
        all.contains("RW2201 error   MTU above what eRDMA carries")
            && all.contains("railwright explain CODE"),
        "{all}"
    );
    assert!(all.lines().all(|line| line.chars().count() <= 100), "{all}");
    insta::assert_snapshot!(place.run(&["explain", "rw2201"]), @r#"
    $ railwright explain rw2201
    RW2201: MTU above what eRDMA carries

      family       erdma
      counts as    error: nothing is planned while it stands, unless it is waived
      looks at     fabric.mtu
      breaks when  fabric.kind == "erdma" and fabric.mtu is defined and fabric.mtu > 8500
      effect       packets above 8500 bytes are fragmented or dropped inside the cloud, so large
                   messages stall while small ones and every ping get through
      fix          set `mtu: 8500`, or 1400 where jumbo frames are off for the instances
      source       https://www.alibabacloud.com/help/en/ecs/user-guide/mtus/

      A jumbo frame of Alibaba Cloud has 8500 bytes, not the 9000 that is common in data centres. The
      eRDMA controller for Kubernetes writes 8500 as well, and only where the instance has jumbo frames
      switched on.

      Accepted for a while, in the spec:
        rules: { waive: [{ code: RW2201, reason: ..., owner: ..., until: 2026-12-31 }] }
    --- exit 0 ---
    "#);
    let said = place.run(&["explain", "RW2299"]);
    assert!(
        said.contains("RW1008") && said.contains("did you mean"),
        "{said}"
    );
}

#[test]
fn a_rule_of_ones_own_counts_like_a_shipped_one() {
    let place = place(&ERDMA.replace("mtu: 9000", "mtu: 1400"));
    let rule = "family: site
summary: What we agreed on
rules:
  - code: OP0001
    title: fabric without jumbo frames
    severity: warning
    each: host
    when: fabric.mtu is defined and fabric.mtu < 8500
    at: fabric.mtu
    says: \"{{ host.nodes }} keep {{ fabric.mtu }} bytes\"
    means: half of the speed
    fix: set 8500
    source: our handbook
    passes: { fabric: { mtu: 8500 }, nodes: [{ name: n1 }] }
    fails: { fabric: { mtu: 1400 }, nodes: [{ name: n1 }] }
";
    place.write("inv/modules/rules/site.yaml", rule);
    insta::assert_snapshot!(place.run(&["validate", "inv"]), @r#"
    $ railwright validate inv
    inv: valid. Cluster jobs, fabric erdma, 4 hosts (gpu[1-4]), 4 rails. 1 warning.
    --- stderr ---
    warning OP0001: gpu[1-4] keep 1400 bytes
       ╭─[inv/cluster.yaml:2:29]
     1 │ cluster: jobs
     2 │ fabric: { kind: erdma, mtu: 1400 }
       ·                             ──┬─
       ·                               ╰── fabric without jumbo frames
     3 │ ssh: { user: root, host_keys: known_hosts }
       ╰────
      on:     gpu[1-4]
      effect: half of the speed
      next:   set 8500
      source: our handbook
    --- exit 0 ---
    "#);
    assert!(
        place
            .run(&["explain", "OP0001", "inv"])
            .contains("our handbook")
    );
    assert!(
        place
            .run(&["rules", "inv"])
            .contains("OP0001 warning fabric without jumbo frames (yours)")
    );
    place.write(
        "inv/modules/rules/site.yaml",
        rule.replace("fabric.mtu <", "fabric.mtuu <"),
    );
    insta::assert_snapshot!(place.run(&["validate", "inv"]), @r#"
    $ railwright validate inv
    error RW0203: `fabric` has no `mtuu`
       ╭─[inv/modules/rules/site.yaml:8:44]
     7 │     each: host
     8 │     when: fabric.mtu is defined and fabric.mtuu < 8500
       ·                                            ──┬─
       ·                                              ╰── did you mean `mtu`?
     9 │     at: fabric.mtu
       ╰────
      effect: Tera would take it for false or stop in the middle, and a resource would be missing
              without a word

    inv: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
}

#[test]
fn hostile_rows_and_rules_are_refused() {
    let place = place(&ERDMA.replace("mtu: 9000", "mtu: 8500"));
    let row = |name: &str, more: &str| {
        format!("gpu: [{{ name: \"{name}\", vendor: us, architecture: a, source: us{more} }}]\n")
    };
    let rule = |says: &str, fails: &str| {
        format!(
            "family: site\n\
             summary: s\n\
             rules: [{{ code: OP0001, title: t, severity: error, when: fabric.mtu == 1, at: \
             fabric.mtu, says: \"{says}\", means: m, fix: m, source: s, passes: {{}}, fails: \
             {fails} }}]\n"
        )
    };
    for (file, text, said) in [
        ("catalog/a.yaml", row(&"x".repeat(70_000), ""), "RW0220"),
        ("catalog/a.yaml", row("a\\u202Eb", ""), "RW0220"),
        ("catalog/a.yaml", row("X1", ", aliases: [A100]"), "RW0221"),
        (
            "catalog/a.yaml",
            "release: [{ name: driver-x, part: driver, release: x, source: us }]".to_owned(),
            "railwright catalog release driver-",
        ),
        (
            "rules/a.yaml",
            rule(
                "{% for i in range(end=1000) %}{% for k in range(end=1000) %}{% endfor %}{% endfor %}",
                "{}",
            ),
            "RW0224",
        ),
        (
            "rules/a.yaml",
            rule("x", "{ fabric: { mtu: 9000 } }"),
            "RW0226: the case `fails` of OP0001 does not hold: the rule finds nothing in it",
        ),
        (
            "rules/a.yaml",
            rule("x", "{ nope: 1 }"),
            "RW0226: the case `fails` of OP0001 does not hold: unknown key `nope`",
        ),
    ] {
        place.write(&format!("inv/modules/{file}"), &text);
        let told = place.run(&["validate", "inv"]);
        assert!(
            told.contains(said) && told.ends_with("--- exit 1 ---\n") && !told.contains('\u{202e}'),
            "{said}\n{told}"
        );
        std::fs::remove_file(place.path().join(format!("inv/modules/{file}"))).unwrap();
    }
    // a line end in what a rule says begins no line
    let text = rule("a\\nerror RW0000: fake", "{ fabric: { mtu: 1 } }")
        .replace("fabric.mtu == 1,", "'fabric.mtu == 8500',");
    place.write("inv/modules/rules/a.yaml", text);
    let told = place.run(&["plan", "inv", "--observations", "nobody.json"]);
    assert!(
        told.contains("error OP0001: a error RW0000: fake") && !told.contains("\nerror RW0000"),
        "{told}"
    );
}

#[test]
fn why_a_host_gets_what_it_gets() {
    let place = place(&ERDMA.replace("mtu: 9000", "mtu: 8500"));
    insta::assert_snapshot!(place.run(&["explain", "host/gpu2/link/eth1/mtu", "inv"]), @r#"
    $ railwright explain host/gpu2/link/eth1/mtu inv
    host gpu2   1 resource

    jumbo-mtu/link ----------------------------------------------------------------------------------
       Every rail up, with the fabric's MTU and the rail's address, now and after a reboot
       wants    link eth1
       as       mtu: 8500
       because  fabric.kind != "none" and host.rails; fabric.kind is erdma, host.rails is 1 of them
       from     inv/cluster.yaml:2 fabric.mtu, inv/cluster.yaml:7 nodes[0].nics.netdev
    --- exit 0 ---
    "#);
    let all = place.run(&["explain", "host/gpu2", "inv"]);
    assert!(
        all.contains("modules/catalog/nic.yaml:") && all.contains("kernel_module erdma"),
        "{all}"
    );
    // a source is one word, however long
    assert!(
        all.lines()
            .all(|line| line.chars().count() <= 100 || line.contains("http")),
        "{all}"
    );
    let same = place.run(&[
        "explain",
        "host/gpu2",
        "inv",
        "--attribute",
        "link/eth1/mtu",
    ]);
    assert!(same.contains("mtu: 8500"), "{same}");
    insta::assert_snapshot!(place.run(&["explain", "host/gpu9", "inv"]), @r#"
    $ railwright explain host/gpu9 inv
    --- stderr ---
    error RW1032: the inventory inv has no host `gpu9`
      next:   did you mean `host/gpu1`?
    --- exit 1 ---
    "#);
    assert!(
        place
            .run(&["explain", "host/gpu2/link/eth9", "inv"])
            .contains("did you mean `host/gpu2/link/eth1`?")
    );
}

const REQUIREMENTS: &str = r#"cluster: train
fabric: { kind: rocev2 }
ssh: { user: root, host_keys: known_hosts }
nodes:
  - name: gpu[1-4]
    os: ubuntu-22.04
    gpu: { model: A100, count: 8, driver: "510", modules: open, direct: { path: dmabuf } }
    nics: { model: ConnectX-6, netdev: ens1f0np0 }
"#;

/// Requirements that exclude each other stop a plan, an entry of one's own lets them through, and
/// what is left open is chosen.
#[test]
fn resources_that_exclude_each_other_are_named_and_the_rest_is_chosen() {
    let place = place(REQUIREMENTS);
    insta::assert_snapshot!(place.run(&["plan", "inv", "--observations", "nobody.json"]), @r#"
    $ railwright plan inv --observations nobody.json
    --- stderr ---
    error RW2405: driver 510 has no open kernel modules, which came with 515
       ╭─[inv/cluster.yaml:7:43]
     6 │     os: ubuntu-22.04
     7 │     gpu: { model: A100, count: 8, driver: "510", modules: open, direct: { path: dmabuf } }
       ·                                           ──┬──
       ·                                             ╰── open kernel modules from before there were any
     8 │     nics: { model: ConnectX-6, netdev: ens1f0np0 }
       ╰────
      on:     gpu[1-4]
      effect: there is no package of that name, so the installation of the driver stops half-way through
              the run
      next:   set `driver` to 515 or a newer branch, or `modules: proprietary`
      source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html

    error RW0132: `gpu.driver: 510` and `gpu.direct.path: dmabuf` exclude each other
       ╭─[inv/cluster.yaml:7:43]
     6 │     os: ubuntu-22.04
     7 │     gpu: { model: A100, count: 8, driver: "510", modules: open, direct: { path: dmabuf } }
       ·                                           ──┬──                                 ───┬──
       ·                                             │                                      ╰── gpu.direct.path: dmabuf
       ·                                             ╰── gpu.driver: 510
     8 │     nics: { model: ConnectX-6, netdev: ens1f0np0 }
       ╰────
      on:     gpu[1-4]
      effect: no choice of the other parts satisfies all of them: dmabuf needs the GPU driver 515 or
              newer: the open kernel modules and DMA-BUF came with it (modules/catalog/release.yaml:352)
      next:   change one of them: take the GPU driver 515 or newer
      source: NVIDIA/cloud-native-docs: gpu-operator/gpu-operator-rdma.rst; NVIDIA/nccl:
              docs/userguide/source/env.rst (NCCL_DMABUF_ENABLE);
              https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html

    No host was asked or changed. `railwright explain CODE` tells more, `railwright validate` checks the files alone.
    --- exit 1 ---
    "#);
    let said = place.run(&["explain", "host/gpu1", "inv"]);
    assert!(
        said.contains("RW0132")
            && said.contains(
                "not chosen: too little is known, or the requirements exclude each other"
            ),
        "{said}"
    );
    // a release that goes together with the rest
    place.write("inv/cluster.yaml", REQUIREMENTS.replace("510", "535"));
    assert!(
        place
            .run(&["validate", "inv"])
            .ends_with("--- exit 0 ---\n")
    );
    let said = place.run(&["explain", "host/gpu1", "inv"]);
    let releases: Vec<&str> = said
        .lines()
        .skip_while(|line| !line.starts_with("RELEASES"))
        .take_while(|line| !line.is_empty())
        .collect();
    let releases = releases.join("\n");
    assert!(
        releases.contains(" . driver    535: of the spec, inv/cluster.yaml:7 nodes[0].gpu.driver"),
        "{releases}"
    );
    assert!(
        releases.contains(" . cuda      12.9: chosen")
            && releases.contains("not a newer one: CUDA 13 needs the GPU driver 580"),
        "{releases}"
    );
    let json = place.run(&["explain", "host/gpu1", "inv", "--json"]);
    assert!(
        json.contains("\"part\": \"cuda\"")
            && json.contains("\"entry\": \"modules/catalog/release.yaml:"),
        "{json}"
    );
    // the toolkit is asked for without a release: the chosen one
    place.write(
        "inv/cluster.yaml",
        REQUIREMENTS.replace("510", "535") + "modules: { cuda-toolkit: { enabled: true } }\n",
    );
    assert!(
        place
            .run(&["explain", "host/gpu1", "inv"])
            .contains("package cuda-toolkit-12-9")
    );
}

/// A system that is like a known one is mistyped, another one may be right; nodes without a GPU get
/// no toolkit, and say so.
#[test]
fn systems_that_no_row_is_about_and_nodes_without_a_gpu() {
    let of = |os: &str| {
        REQUIREMENTS.replace("ubuntu-22.04", os).replace(
            "\"510\", modules: open, direct: { path: dmabuf }",
            "\"535\"",
        )
    };
    let place = place(&of("Ubuntu-20.04"));
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("error RW0120: `Ubuntu-20.04` is no operating system that railwright knows"),
        "{said}"
    );
    assert!(
        said.contains("next:   did you mean `ubuntu-20.04`?")
            && said.contains("── not in the catalogue")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    for (os, meant) in [
        ("openeuler-22.03", "openEuler-22.03"),
        ("debain-12", "debian-12"),
        ("rokcy-9.4", "rocky-9.4"),
        ("centso-7", "centos"),
    ] {
        place.write("inv/cluster.yaml", of(os));
        let said = place.run(&["validate", "inv"]);
        assert!(
            said.contains(&format!("did you mean `{meant}`?"))
                && said.ends_with("--- exit 1 ---\n"),
            "{said}"
        );
    }
    for os in ["debian-11", "sles-15.5", "gentoo-2.15"] {
        place.write("inv/cluster.yaml", of(os));
        let said = place.run(&["validate", "inv"]);
        assert!(
            said.contains(&format!(
                "warning RW0127: the catalogue knows no operating system `{os}`"
            )),
            "{said}"
        );
        assert!(
            said.contains("package_manager: ..., kernel: ..., source: ... }]")
                && said.ends_with("--- exit 0 ---\n"),
            "{said}"
        );
    }
    let login =
        "  - { name: login1, os: ubuntu-22.04 }\nmodules: { cuda-toolkit: { enabled: true } }\n";
    place.write("inv/cluster.yaml", of("ubuntu-22.04") + login);
    assert!(
        place
            .run(&["validate", "inv"])
            .ends_with("--- exit 0 ---\n")
    );
    assert!(
        place
            .run(&["explain", "host/gpu1", "inv"])
            .contains("package cuda-toolkit-12-9")
    );
    let said = place.run(&["explain", "host/login1", "inv"]);
    assert!(
        said.contains("NOT HERE: modules that the spec enables")
            && said.contains("\n - cuda-toolkit needs host.gpu is defined\n"),
        "{said}"
    );
    let json = place.run(&["explain", "host/login1", "inv", "--json"]);
    assert!(
        json.contains("\"needs\": \"host.gpu is defined\""),
        "{json}"
    );
}

/// What rests on rows is accepted like a rule: shown, until the day is over, on the hosts that are
/// named; the rest is chosen.
#[test]
fn resources_that_exclude_each_other_can_be_waived() {
    let resources = REQUIREMENTS.to_owned() + "modules: { cuda-toolkit: { enabled: true } }\n";
    let signed = "reason: on trial, owner: ada, until:";
    let waived = |nodes: &str, until: &str| {
        let rule = format!("{{ code: RW2405, {signed} 2026-12-31 }}");
        format!(
            "{resources}rules: {{ waive: [{rule}, {{ code: rw0132, {nodes}{signed} {until} }}] }}\n"
        )
    };
    let place = place(&resources);
    let said = place.run(&["plan", "inv", "--observations", "nobody.json"]);
    assert!(
        said.contains("error RW0132: `gpu.driver: 510` and `gpu.direct.path: dmabuf`")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    place.write("inv/cluster.yaml", waived("", "2026-03-31"));
    let shown = " . RW0132 gpu[1-4]: `gpu.driver: 510` and `gpu.direct.path: dmabuf` exclude each \
                 other\n          accepted by ada until 2026-03-31: on trial";
    for command in ["plan", "drift"] {
        let said = place.run(&[command, "inv", "--observations", "nobody.json"]);
        assert!(
            said.contains(shown) && said.ends_with("--- exit 3 ---\n"),
            "{said}"
        );
    }
    let said = place.run(&["explain", "host/gpu1", "inv"]);
    assert!(
        said.contains("RW0132")
            && said.contains("(waived)")
            && said.contains("package cuda-toolkit-11-8"),
        "{said}"
    );
    place.write(
        "inv/cluster.yaml",
        waived("nodes: \"gpu[2-3]\", ", "2026-03-31"),
    );
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("error RW0132")
            && said.contains("on:     gpu[1,4]")
            && !said.contains("RW0131"),
        "{said}"
    );
    place.write("inv/cluster.yaml", waived("", "2025-12-31"));
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("error RW0132")
            && said.contains("warning RW0131: the waiver of rw0132 ended on 2025-12-31"),
        "{said}"
    );
    place.write(
        "inv/cluster.yaml",
        waived("", "2026-03-31").replace("path: dmabuf", "path: peermem"),
    );
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("warning RW0131: the waiver of rw0132 waives nothing"),
        "{said}"
    );
}

/// A rule that found the same pair is told alone, and a waiver of it stands for both; combinations
/// of one's own are tried.
#[test]
fn nothing_is_told_twice_and_own_combinations_are_tried() {
    let resources = REQUIREMENTS.replace(
        "driver: \"510\", modules: open, direct: { path: dmabuf }",
        "driver: \"535\", cuda: \"13.0\"",
    );
    let place = place(&resources);
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("RW2414") && !said.contains("RW0132") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    let waived = "rules: { waive: \
                  [{ code: RW2414, reason: jobs bring cuda-compat, owner: ada, until: 2026-12-31 }] \
                  }\n";
    place.write("inv/cluster.yaml", resources + waived);
    let said = place.run(&["validate", "inv"]);
    assert!(
        !said.contains("RW0132") && said.ends_with("--- exit 0 ---\n"),
        "{said}"
    );
    place.write(
        "inv/modules/catalog/site.yaml",
        "combination: [{ name: ours, source: us, spec: { nodes: [{ name: n1, gpu: \
         { model: A100, count: 8, driver: '470', cuda: '12.4' } }] } }]\n",
    );
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains(
            "RW0226: the combination `ours` does not hold: gpu.cuda and gpu.driver exclude each \
             other"
        ),
        "{said}"
    );
    place.write(
        "inv/modules/catalog/site.yaml",
        "release: [{ name: cuda-12, part: cuda, release: '12', line: true, source: us }]\n",
    );
    assert!(place.run(&["validate", "inv"]).contains("RW0223"));
}

/// What is printed for programs and for people has no templates in it.
#[test]
fn rules_are_told_without_their_templates() {
    let place = Place::new();
    for words in [&["rules", "--json"][..], &["explain", "RW2904"]] {
        let said = place.run(words);
        assert!(said.contains("<host.") && !said.contains("{{"), "{said}");
    }
    let help = place.run(&["schema", "--help"]);
    assert!(
        help.contains("spec, plan, observation")
            && help.contains("explanation")
            && help.contains("translation"),
        "{help}"
    );
}
