//! Workloads in the spec, as a user writes them: what is wrong has its caret in the spec, and what
//! rules refuse of a job is refused here.

use crate::support::Place;
use serde_json::Value;

const ACS: &str = "cluster: acs
fabric: { kind: acs }
kubernetes: { platform: acs, kubeconfig: kubeconfig }
workloads:
";

const ROCE: &str = "cluster: train
fabric: { kind: rocev2, mtu: 9000, routed: true, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } } }
ssh: none
nodes:
  - name: gpu[1-2]
    os: ubuntu-22.04
    rdma_stack: { flavour: doca, version: 3.2.1 }
    gpu: { model: H800-SXM5, count: 8 }
    nics: { model: ConnectX-7, rails: 8, netdev: \"ens{rail}f0np0\", address: \"10.40.{rail}.{index}/24\" }
kubernetes: { kubeconfig: kubeconfig, rdma: { plugin: shared, resources: { rdma_a: rail 0-7 } } }
workloads:
";

fn place(spec: &str, workloads: &str) -> Place {
    let place = Place::new();
    place
        .write("inv/cluster.yaml", format!("{spec}{workloads}"))
        .write("inv/kubeconfig", "");
    place
}

/// The codes of what `validate` finds, with the words under each caret.
fn found(place: &Place) -> Vec<(String, String)> {
    let output = place
        .command(&["validate", "inv", "--json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let text = std::fs::read_to_string(place.path().join("inv/cluster.yaml")).unwrap();
    let under = |one: &Value| {
        let at = &one["labels"][0];
        let line = text
            .lines()
            .nth(at["line"].as_u64().unwrap() as usize - 1)
            .unwrap_or_default();
        let rest = &line[at["column"].as_u64().unwrap() as usize - 1..];
        rest.split([',', ' ', '}', ':'])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let findings = document["diagnostics"].as_array().unwrap().iter();
    findings
        .map(|one| (one["code"].as_str().unwrap().to_owned(), under(one)))
        .collect()
}

#[test]
fn what_is_wrong_with_a_workload_is_told_in_the_spec() {
    let place = place(
        ACS,
        "  - { name: Nginx, kind: acs, image: own/a:1, model: GU8TF, gpus: 8, memory: 512GB, command: [run] }
  - { name: two, kind: acs, image: own/a:1, model: GU8TF, gpus: 8, replica: 2, command: [run] }
",
    );
    insta::assert_snapshot!(place.run(&["validate", "inv"]));
    // What serde cannot say comes once the spec is one.
    let place = self::place(
        ACS,
        "  - { name: Nginx, kind: acs, image: own/a:1, model: GU8TF, gpus: 8, memory: 512GB, command: [run] }
  - { name: three, kind: acs, image: own/a:1, ray_version: 2.40.0, command: [run] }
  - { name: four, kind: ray, image: own/a:1 }
",
    );
    insta::assert_snapshot!(place.run(&["validate", "inv"]));
}

#[test]
fn what_rules_refuse_of_a_job_is_refused_of_a_workload() {
    let cases = [
        (
            ACS,
            "{ name: a, kind: acs, image: own/a:1, model: GU8TF, gpus: 4, command: [run] }",
            "RW2802",
            "4",
        ),
        (
            ACS,
            "{ name: a, kind: acs, image: own/a:1, model: GU9, gpus: 8, command: [run] }",
            "RW2801",
            "GU9",
        ),
        (
            ACS,
            "{ name: a, kind: acs, image: own/a:1, model: P16EN, gpus: 16, environment: \
             { NCCL_IB_HCA: mlx5 }, command: [run] }",
            "RW2804",
            "mlx5",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: rayproject/ray:2.40.0, ray_version: 2.9.0, host_network: true }",
            "RW3004",
            "2.9.0",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: rayproject/ray:2.40.0, host_network: true, devices: \
             { rdma/rdma_a: 2 } }",
            "RW3002",
            "devices",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: rayproject/ray:2.40.0, host_network: true, devices: \
             { rdma/hca: 1 } }",
            "RW3008",
            "devices",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: rayproject/ray:2.40.0 }",
            "RW3007",
            "ray",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: own/ray, host_network: true }",
            "RW1229",
            "ray",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: rayproject/ray:2.40.0, host_network: true, gpus: 16 }",
            "RW1221",
            "16",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: rayproject/ray:2.40.0, host_network: true, model: GU8TF }",
            "RW0181",
            "model",
        ),
        (
            ACS,
            "{ name: a, kind: acs, image: own/a:1, model: GU8TF, gpus: 8 }",
            "RW0181",
            "{",
        ),
        (
            ROCE,
            "{ name: a, kind: ray, image: rayproject/ray:2.40.0, host_network: true, hosts: \"gpu[1-9]\" }",
            "RW1221",
            "\"gpu[1-9]\"",
        ),
    ];
    for (spec, workload, code, caret) in cases {
        assert_eq!(
            found(&place(spec, &format!("  - {workload}\n"))),
            [(code.to_owned(), caret.to_owned())],
            "{workload}"
        );
    }
    assert_eq!(
        found(&place(
            ROCE,
            "  - { name: a, kind: ray, image: rayproject/ray:2.40.0, host_network: true }\n"
        )),
        []
    );
    // What a rule finds and what cannot be said are told together.
    let both = "  - { name: a, kind: ray, image: rayproject/ray:2.40.0, host_network: true, \
                without_rdma: true, devices: { rdma/rdma_a: 1 } }\n";
    let both = found(&place(ROCE, both));
    assert_eq!(
        both,
        ["RW3006", "RW0181"].map(|code| (code.to_owned(), "devices".to_owned()))
    );
    // A waiver holds for workloads, and one that covers nothing else is no finding.
    let waived = "rules: { waive: \
                  [{ code: RW3007, reason: the network plugin does it, owner: me, until: 2099-12-31 }] \
                  }\n";
    let place = place(
        ROCE,
        &format!("  - {{ name: a, kind: ray, image: rayproject/ray:2.40.0 }}\n{waived}"),
    );
    assert_eq!(found(&place), []);
    let said = place.run(&["validate", "inv"]);
    assert!(said.contains("RW3007") && said.contains("WAIVED"), "{said}");
}

/// Nothing waits for the correction of something else.
#[test]
fn all_that_is_wrong_with_workloads_is_told_at_once() {
    let told = |spec: &str, workloads: &str| {
        found(&place(spec, workloads))
            .into_iter()
            .map(|(code, _)| code)
            .collect::<Vec<_>>()
    };
    let acs = "  - \
               { name: a, kind: acs, image: own/a:1, model: GU8TF, gpus: 4, hosts: gpu9, network: n, command: [run] }\n";
    assert_eq!(told(ACS, acs), ["RW2802", "RW0181", "RW0181"]);
    assert_eq!(
        told(ACS, &acs.replace("gpus: 4", "gpus: 8, memory: 8GB")),
        ["RW0181", "RW0181", "RW1221"]
    );
    // One that cannot be rendered hides nothing of another one.
    let other = "  - \
                 { name: b, kind: acs, image: own/a:1, model: GU8TF, gpus: 8, cpu: x, command: [run] }\n";
    assert_eq!(
        told(ACS, &format!("{acs}{other}")),
        ["RW2802", "RW0181", "RW0181", "RW1221"]
    );
}

/// What nobody could ask may still need its waiver.
#[test]
fn a_waiver_of_a_workload_that_cannot_be_rendered_is_not_called_unused() {
    let ray = "  - { name: a, kind: ray, image: rayproject/ray:2.40.0, cpu: 8 }\n";
    let waived = |code: &str| {
        format!(
            "rules: {{ waive: [{{ code: {code}, reason: r, owner: me, until: 2099-12-31 }}] }}\n"
        )
    };
    let told = |workload: &str, code: &str| {
        found(&place(ROCE, &format!("{workload}{}", waived(code))))
            .into_iter()
            .map(|(code, _)| code)
            .collect::<Vec<_>>()
    };
    let broken = ray.replace("cpu: 8", "cpu: x");
    assert_eq!(told(ray, "RW3007"), Vec::<String>::new());
    assert_eq!(told(&broken, "RW3007"), ["RW1221"]);
    // A rule of hosts has nothing to do with it, and one of jobs is unused where all of them were
    // asked.
    assert_eq!(told(&broken, "RW2601"), ["RW0131", "RW1221"]);
    assert_eq!(told(ray, "RW3002"), ["RW3007", "RW0131"]);
}

/// A spec that rules refuse is not planned, whoever would answer.
#[test]
fn a_workload_that_is_refused_is_not_planned() {
    let place = place(
        ACS,
        "  - { name: a, kind: acs, image: own/a:1, model: GU8TF, gpus: 4, command: [run] }\n",
    );
    let said = place.run(&["plan", "inv"]);
    assert!(
        said.contains("RW2802")
            && said.contains("inv/cluster.yaml:5:")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}

/// What is set for all jobs is told once, however many workloads have it.
#[test]
fn what_is_said_of_all_jobs_is_found_once() {
    let one = |name: &str| {
        format!(
            "  - {{ name: {name}, kind: acs, image: own/a:1, model: P16EN, gpus: 16, command: \
             [run] }}\n"
        )
    };
    let all = "jobs: { acs: { model: P16EN, gpus: 16, rdma: true }, environment: \
               { NCCL_IB_HCA: mlx5, NCCL_IB_DISABLE: \"1\", NCCL_SOCKET_IFNAME: eth0 } }\n";
    let place = place(ACS, &format!("{}{}{all}", one("a"), one("b")));
    assert_eq!(found(&place), [("RW2804".to_owned(), "mlx5".to_owned())]);
}

#[test]
fn a_module_and_a_workload_do_not_share_an_object() {
    let place = place(
        ACS,
        "  - { name: a, kind: acs, image: own/a:1, model: GU8TF, gpus: 8, command: [run] }\n",
    );
    let module = "module: own
summary: makes it as well
when: \"true\"
resources:
  - id: pods
    kubernetes_object:
      manifest: { apiVersion: apps/v1, kind: Deployment, metadata: { name: a, namespace: default }, spec: {} }
";
    place.write("inv/modules/own/module.yaml", module);
    insta::assert_snapshot!(place.run(&["validate", "inv"]));
}

/// The inventory's own template is that of its workloads, too.
#[test]
fn a_template_of_ones_own_makes_the_workload() {
    let place = place(
        ACS,
        "  - { name: a, kind: acs, image: own/a:1, model: GU8TF, gpus: 8, command: [run] }\n",
    );
    let own = "apiVersion: apps/v1\n\
               kind: Deployment\n\
               metadata: { name: {{ pod.name | json }}, namespace: ml }\n\
               spec: { paused: true }\n\
               ---\n\
               apiVersion: v1\n\
               kind: Service\n\
               metadata: { name: {{ pod.name | json }}, namespace: ml }\n";
    place.write("inv/modules/jobs/acs.yaml.tera", own);
    let said = place.run(&["explain", "kube/acs", "inv"]);
    assert!(
        said.contains("Deployment.apps ml/a, Service ml/a")
            && said.contains("`workloads[0]` of the spec"),
        "{said}"
    );
    place.write("inv/modules/jobs/acs.yaml.tera", "kind: Deployment\n");
    assert_eq!(found_code(&place), "RW1228");
}

fn found_code(place: &Place) -> String {
    let output = place
        .command(&["validate", "inv", "--json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["diagnostics"][0]["code"]
        .as_str()
        .unwrap()
        .to_owned()
}
