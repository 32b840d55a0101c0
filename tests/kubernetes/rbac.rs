//! The roles that `rbac` prints, given to identities on a real API server: each does its work with
//! them and nothing more; and a right that is missing is found before the first change.

use crate::cluster::Cluster;
use crate::rig::{ControlPlane, ESTABLISHED};
use serde_json::{Value, json};
use std::time::Duration;

const INV: &str = "inv";
const ROLES: [&str; 3] = ["observe", "preview", "apply"];

/// Objects in two namespaces and of the whole cluster, a role and its binding, a kind of their own.
const WISHES: &str = r#"  - id: settings
    kubernetes_object:
      manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: settings, namespace: default }, data: { text: "one" } }
  - id: plugin
    kubernetes_object:
      manifest:
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: { name: plugin, namespace: kube-system }
        spec:
          selector: { matchLabels: { app: plugin } }
          template: { metadata: { labels: { app: plugin } }, spec: { containers: [{ name: plugin, image: "example.invalid/plugin:1" }] } }
  - id: class
    kubernetes_object:
      manifest: { apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: { name: rails }, value: 1000 }
  - id: role
    kubernetes_object:
      manifest: { apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: { name: rails }, rules: [{ apiGroups: [""], resources: [nodes], verbs: [get] }] }
  - id: binding
    after: [role]
    kubernetes_object:
      manifest:
        apiVersion: rbac.authorization.k8s.io/v1
        kind: RoleBinding
        metadata: { name: rails, namespace: default }
        roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rails }
        subjects: [{ kind: ServiceAccount, name: default, namespace: default }]
"#;

/// kubectl with these documents, as the admin.
fn kubectl(plane: &ControlPlane, words: &[&str], input: &str) -> String {
    let output = plane.kubectl_as("admin", words, input);
    assert!(
        output.status.success(),
        "kubectl {words:?}: {}\n{input}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A kubeconfig of this token, under this name.
pub fn identity(plane: &ControlPlane, name: &str, token: &str) {
    let own = std::fs::read_to_string(plane.kubeconfig("admin")).unwrap();
    let user = format!(
        "users: [{{name: admin, user: {{token: {}}}}}]\n",
        token.trim()
    );
    let line = |line: &str| {
        if line.starts_with("users:") {
            user.clone()
        } else {
            format!("{line}\n")
        }
    };
    std::fs::write(
        plane.kubeconfig(name),
        own.lines().map(line).collect::<String>(),
    )
    .unwrap();
}

/// What kubectl says to this identity; it must be refused.
fn refused(plane: &ControlPlane, identity: &str, words: &[&str], input: &str) -> String {
    let output = plane.kubectl_as(identity, words, input);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{identity} kubectl {words:?}");
    said
}

/// Gives the roles to service accounts of their own, and makes a kubeconfig of each.
fn give_roles(plane: &ControlPlane, cluster: &Cluster) {
    let documents = cluster.told(0, &["rbac", INV]);
    plane.apply(&documents);
    for role in ROLES {
        identity(
            plane,
            role,
            &plane.kubectl(&[
                "-n",
                "kube-system",
                "create",
                "token",
                &format!("railwright-train-{role}"),
            ]),
        );
    }
    // A policy holds about a second after it was made.
    let write = ["annotate", "configmap", "probe", "--overwrite", "a=b"];
    for _ in 0..50 {
        let output = plane.kubectl_as(
            "admin",
            &[
                &write[..],
                &["--as=system:serviceaccount:kube-system:railwright-train-preview"],
            ]
            .concat(),
            "",
        );
        if String::from_utf8_lossy(&output.stderr).contains("dry runs alone") {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("the policy does not hold");
}

/// A real API server lists every kind of the table as the table has it.
fn the_table_is_what_the_server_says(plane: &ControlPlane) {
    let listed = plane.kubectl(&["api-resources", "--no-headers=true"]);
    let lines: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for (group, kind, plural, namespaced) in
        railwright_resource::kubernetes_object::known_kinds::WELL_KNOWN
    {
        let is_it = |line: &&Vec<&str>| {
            let [.., version, is_namespaced, found] = line.as_slice() else {
                return false;
            };
            let of_group = version.split_once('/').map_or("", |(group, _)| group);
            *found == kind
                && of_group == group
                && line[0] == plural
                && *is_namespaced == namespaced.to_string()
        };
        assert!(
            lines.iter().any(|line| is_it(&line)),
            "{group} {kind} {plural} {namespaced}\n{listed}"
        );
    }
}

pub fn each_role_does_its_work_and_nothing_more(plane: &ControlPlane) {
    the_table_is_what_the_server_says(plane);
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(WISHES);
    // The probe of the policy: an object that the preview role may patch by a rule of its own, so
    // that only the policy is in the way.
    plane.kubectl(&["create", "configmap", "probe"]);
    plane.kubectl(&[
        "create",
        "role",
        "probe",
        "--verb=get,patch",
        "--resource=configmaps",
        "--resource-name=probe",
    ]);
    plane.kubectl(&[
        "create",
        "rolebinding",
        "probe",
        "--role=probe",
        "--serviceaccount=kube-system:railwright-train-preview",
    ]);
    give_roles(plane, &cluster);
    nobody_else_is_held_to_dry_runs(plane);

    for role in ["observe", "preview"] {
        cluster.spec(role, "");
        let plan = cluster.flat(0, &["plan", INV]);
        assert!(
            plan.contains("5 resources change") && plan.contains("ConfigMap default/settings"),
            "{plan}"
        );
    }
    cluster.spec("apply", "");
    let first = cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text_of(plane), "one", "{first}");
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );

    observes(plane, &cluster);
    previews(plane, &cluster);
    applies(plane, &cluster);
    a_policy_is_compared_field_by_field(plane);
    plane.kubectl(&[
        "delete",
        "configmap/probe",
        "role/probe",
        "rolebinding/probe",
    ]);
}

/// The policy is about one identity.
fn nobody_else_is_held_to_dry_runs(plane: &ControlPlane) {
    plane.kubectl(&["annotate", "configmap", "probe", "--overwrite", "a=c"]);
    let who = plane.kubectl_as("preview", &["auth", "whoami"], "");
    assert!(
        who.status.success(),
        "a review stores nothing: {}",
        String::from_utf8_lossy(&who.stderr)
    );
    let may = plane.kubectl_as(
        "preview",
        &["auth", "can-i", "get", "configmaps/settings"],
        "",
    );
    assert_eq!(String::from_utf8_lossy(&may.stdout), "yes\n");
}

/// Groups of Kubernetes itself are given nothing, and who is given the role leaves the policies of
/// others as they are.
pub fn a_policy_for_one_is_not_for_all(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    for group in [
        "system:authenticated",
        "system:masters",
        "system:serviceaccounts:kube-system",
    ] {
        let refused = cluster.flat(1, &["rbac", INV, "--role", "preview", "--group", group]);
        assert!(
            refused.contains("RW1247") && !refused.contains("kind:"),
            "{refused}"
        );
    }
    for subject in [
        ["--service-account", "kube-system/generic-garbage-collector"],
        ["--group", "kubeadm:cluster-admins"],
        ["--user", "kubernetes-admin"],
    ] {
        for role in ["preview", "apply", "jobs"] {
            let refused = cluster.flat(1, &["rbac", INV, "--role", role, subject[0], subject[1]]);
            assert!(
                refused.contains("RW1247") && !refused.contains("kind:"),
                "{refused}"
            );
        }
    }
    let refused = cluster.flat(1, &["rbac", INV, "--role", "jobs", "-n", "kube-system"]);
    assert!(
        refused.contains("RW1247") && !refused.contains("kind:"),
        "{refused}"
    );
    let own = cluster.told(0, &["rbac", INV, "--role", "preview"]);
    let of_group = cluster.told(0, &["rbac", INV, "--role", "preview", "--group", "oncall"]);
    assert!(
        of_group
            .contains("refuses every user of the group oncall every write of the whole cluster"),
        "{of_group}"
    );
    plane.apply(&own);
    plane.apply(&of_group);
    let names = plane.kubectl(&["get", "validatingadmissionpolicy", "-o", "name"]);
    assert_eq!(
        names
            .lines()
            .filter(|name| name.contains("/railwright-train-preview"))
            .count(),
        2,
        "{names}"
    );
    let condition = "jsonpath={.spec.matchConditions[0].name}";
    assert_eq!(
        plane.kubectl(&[
            "get",
            "validatingadmissionpolicy",
            "railwright-train-preview",
            "-o",
            condition
        ]),
        "account"
    );
    kubectl(plane, &["delete", "-f", "-"], &of_group);
    kubectl(plane, &["delete", "-f", "-"], &own);
}

/// What no policy is asked about is not previewed.
fn a_policy_is_compared_field_by_field(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let policy = "  - id: policy
    kubernetes_object:
      manifest:
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata: { name: rails }
        spec: { policyName: rails, validationActions: [Deny] }
";
    cluster.resources(policy);
    cluster.told(0, &["apply", INV, "--yes"]);
    let documents = cluster.told(0, &["rbac", INV, "--role", "preview", "--user", "nobody"]);
    assert!(
        documents.contains("no policy could hold its preview to a dry run"),
        "{documents}"
    );
    plane.apply(&documents);
    cluster.spec("nobody", "");
    cluster.resources(&policy.replace("[Deny]", "[Warn]"));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("not previewed") && plan.contains("Warn"),
        "{plan}"
    );
    // The reason, on this server: an identity with the right would not be blocked.
    plane.kubectl(&[
        "create",
        "clusterrole",
        "more",
        "--verb=get,patch,create",
        "--resource=validatingadmissionpolicybindings",
    ]);
    plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "more",
        "--clusterrole=more",
        "--user=nobody",
    ]);
    std::thread::sleep(Duration::from_secs(3));
    let label = plane.kubectl_as(
        "nobody",
        &["label", "validatingadmissionpolicybinding", "rails", "a=b"],
        "",
    );
    assert!(
        label.status.success(),
        "a policy is asked now: {}",
        String::from_utf8_lossy(&label.stderr)
    );
    plane.kubectl(&["delete", "clusterrole/more", "clusterrolebinding/more"]);
    kubectl(plane, &["delete", "-f", "-"], &documents);
    cluster.spec("admin", "");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

fn observes(plane: &ControlPlane, cluster: &Cluster) {
    cluster.spec("observe", "");
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.told(0, &["drift", INV]);
    cluster.resources(&WISHES.replace("\"one\"", "\"two\""));
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("one -> two") && plan.contains("not previewed") && !plan.contains("RW04"),
        "{plan}"
    );
    let said = refused(
        plane,
        "observe",
        &["label", "configmap", "settings", "a=b", "--dry-run=server"],
        "",
    );
    assert!(
        said.contains("cannot patch resource \"configmaps\""),
        "{said}"
    );
    let said = refused(
        plane,
        "observe",
        &["-n", "kube-system", "get", "secrets"],
        "",
    );
    assert!(said.contains("cannot list resource \"secrets\""), "{said}");
    let said = refused(
        plane,
        "observe",
        &["-n", "kube-system", "get", "secret", "of-others"],
        "",
    );
    assert!(
        said.contains("cannot get resource \"secrets\""),
        "the record is one Secret: {said}"
    );
    let said = refused(plane, "observe", &["get", "configmap", "probe"], "");
    assert!(said.contains("cannot get"), "{said}");
    // By name, a watch is allowed too.
    let watch = [
        "get",
        "configmap",
        "settings",
        "--watch",
        "--request-timeout=1s",
        "-o",
        "name",
    ];
    let seen =
        String::from_utf8_lossy(&plane.kubectl_as("observe", &watch, "").stdout).into_owned();
    assert!(seen.starts_with("configmap/settings"), "{seen}");
    let lacks = cluster.flat(4, &["apply", INV, "--yes"]);
    assert!(
        lacks.contains("RW0646")
            && lacks.contains("nothing was changed")
            && lacks.contains("verbs: [patch]"),
        "{lacks}"
    );
}

fn previews(plane: &ControlPlane, cluster: &Cluster) {
    cluster.spec("preview", "");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("one -> two") && !plan.contains("not previewed"),
        "{plan}"
    );
    cluster.told(2, &["drift", INV]);
    let dry = plane.kubectl_as(
        "preview",
        &["label", "configmap", "settings", "a=b", "--dry-run=server"],
        "",
    );
    assert!(
        dry.status.success(),
        "{}",
        String::from_utf8_lossy(&dry.stderr)
    );
    let said = refused(
        plane,
        "preview",
        &["label", "configmap", "settings", "a=b"],
        "",
    );
    assert!(said.contains("it may ask for dry runs alone"), "{said}");
    let new = "apiVersion: v1\n\
               kind: ConfigMap\n\
               metadata: { name: settings, namespace: default }\n\
               data: { text: three }\n";
    let said = refused(
        plane,
        "preview",
        &[
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=x",
            "-f",
            "-",
        ],
        new,
    );
    assert!(said.contains("it may ask for dry runs alone"), "{said}");
    let refused = cluster.flat(4, &["apply", INV, "--yes"]);
    assert!(
        refused.contains("nothing was changed") && refused.contains("leases"),
        "{refused}"
    );
    // With the rights to lock and record it is the policy that refuses: the first write is the
    // lock.
    plane.kubectl(&[
        "-n",
        "kube-system",
        "create",
        "rolebinding",
        "more",
        "--role=railwright-train-apply",
        "--serviceaccount=kube-system:railwright-train-preview",
    ]);
    let refused = cluster.flat(4, &["apply", INV, "--yes"]);
    assert!(
        refused.contains("ValidatingAdmissionPolicy 'railwright-train-preview'")
            && refused.contains("nothing was changed"),
        "{refused}"
    );
    assert!(
        refused.contains("give the role `apply` to an identity of its own: railwright rbac"),
        "{refused}"
    );
    plane.kubectl(&["-n", "kube-system", "delete", "rolebinding", "more"]);
    assert_eq!(text_of(plane), "one");
}

fn applies(plane: &ControlPlane, cluster: &Cluster) {
    cluster.spec("nobody", "");
    let blind = cluster.flat(3, &["apply", INV, "--yes"]);
    assert!(blind.contains("no role of ours allows it"), "{blind}");
    cluster.spec("apply", "");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text_of(plane), "two");
    for words in [
        &["get", "pods"][..],
        &["create", "configmap", "other"],
        &["delete", "configmap", "probe"],
        &["-n", "kube-system", "get", "secrets"],
    ] {
        let said = refused(plane, "apply", words, "");
        assert!(said.contains("is forbidden"), "{said}");
    }
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    let left = "configmap/settings,priorityclass/rails,clusterrole/rails,rolebinding/rails";
    for object in left.split(',') {
        assert_eq!(
            plane.kubectl(&["get", object, "--ignore-not-found", "-o", "name"]),
            "",
            "{object}"
        );
    }
}

/// A kind that nothing here tells of is asked for, by an identity that may only discover.
pub fn a_kind_of_others_is_asked_for(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "nobody");
    let strange = "  - id: strange\n    kubernetes_object:\n      manifest: { apiVersion: x.example.org/v1, kind: Strange, metadata: \
                   { name: a, namespace: default } }\n";
    cluster.resources(strange);
    let said = cluster.flat(3, &["rbac", INV]);
    assert!(
        said.contains("warning RW1038") && said.contains("once the kind is served"),
        "{said}"
    );
    assert!(
        said.contains("# left out: rules for Strange.x.example.org,")
            && said.contains("resources: [leases]"),
        "{said}"
    );
    let definition = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: stranger.x.example.org }
spec:
  group: x.example.org
  scope: Namespaced
  names: { plural: stranger, singular: strange, kind: Strange }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
";
    plane.apply(definition);
    plane.kubectl(&[
        "wait",
        "crd/stranger.x.example.org",
        ESTABLISHED,
        "--timeout=60s",
    ]);
    let said = (0..50)
        .map(|_| {
            cluster
                .command(&["rbac", INV, "--role", "observe", "--json"])
                .output()
                .unwrap()
        })
        .find(|output| {
            std::thread::sleep(Duration::from_millis(200));
            output.status.success()
        });
    let said: Value = serde_json::from_slice(&said.unwrap().stdout).unwrap();
    let rules = said["roles"][0]["rules"].as_array().unwrap();
    let rule = rules
        .iter()
        .find(|rule| rule["group"] == "x.example.org")
        .unwrap();
    assert_eq!(
        (&rule["resource"], &rule["namespace"]),
        (&json!("stranger"), &json!("default")),
        "{rule}"
    );
    cluster.file(
        "inv/cluster.yaml",
        "cluster: train\nkubernetes: { name: prod, kubeconfig: absent }\n",
    );
    let said = cluster.flat(3, &["rbac", INV]);
    assert!(
        said.contains("RW1038")
            && said.contains("give a kubeconfig")
            && said.contains("resources: [leases]"),
        "{said}"
    );
    let said = cluster.flat(3, &["plan", INV]);
    assert!(
        said.contains("RW0410") && said.contains("or name another: kubernetes.kubeconfig"),
        "{said}"
    );
    assert!(
        cluster
            .flat(0, &["validate", INV])
            .contains("warning RW1005: there is no file absent")
    );
    cluster.resources(
        "  - id: r\n    helm_release: { name: r, namespace: default, chart: charts/absent }\n",
    );
    assert!(
        cluster
            .flat(0, &["validate", INV])
            .contains("warning RW1005: there is no chart charts/absent")
    );
    cluster.resources(
        "  - id: nowhere\n    kubernetes_object: { manifest: { apiVersion: v1, kind: ConfigMap, metadata: \
         { name: a } } }\n",
    );
    let said = cluster.flat(1, &["validate", INV]);
    assert!(
        said.contains("objects of the kind ConfigMap are in a namespace, and none is named"),
        "{said}"
    );
    plane.kubectl(&["delete", "crd", "stranger.x.example.org"]);
}

/// An object by its address, and a field of it; nobody is asked.
pub fn an_object_is_explained(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "nobody");
    cluster.resources(WISHES);
    let all = cluster.flat(0, &["explain", "kube/prod", INV]);
    assert!(
        all.contains("Kubernetes cluster prod 5 resources") && all.contains("own/plugin"),
        "{all}"
    );
    let one = cluster.flat(
        0,
        &["explain", "kube/prod/ConfigMap.core/default/settings", INV],
    );
    assert!(
        one.contains("1 resource")
            && one.contains("what a story wants")
            && one.contains("inv/cluster.yaml:2"),
        "{one}"
    );
    for named in [
        "ConfigMap default/settings",
        "kube/prod/configmap/default/settings",
    ] {
        assert!(
            cluster
                .flat(0, &["explain", named, INV])
                .contains("inv/cluster.yaml:2"),
            "{named}"
        );
    }
    let field = cluster.flat(
        0,
        &[
            "explain",
            "kube/prod/ConfigMap.core/default/settings/data/text",
            INV,
        ],
    );
    assert!(field.contains("data.text: \"one\""), "{field}");
    let near = cluster.flat(
        1,
        &["explain", "kube/prod/ConfigMap.core/default/setings", INV],
    );
    assert!(
        near.contains("RW1032")
            && near.contains("did you mean `kube/prod/ConfigMap.core/default/settings`?"),
        "{near}"
    );
    let near = cluster.flat(1, &["explain", "kube/production", INV]);
    assert!(
        near.contains("no Kubernetes cluster `production`")
            && near.contains("did you mean `kube/prod`?"),
        "{near}"
    );
    let json: Value = serde_json::from_str(&cluster.told(
        0,
        &[
            "explain",
            "kube/prod/PriorityClass.scheduling.k8s.io/-/rails",
            INV,
            "--json",
        ],
    ))
    .unwrap();
    assert_eq!(
        (
            &json["cluster"],
            &json["host"],
            &json["resources"][0]["desired"]["value"]
        ),
        (&json!("prod"), &Value::Null, &json!(1000))
    );
    cluster.file("inv/cluster.yaml", "cluster: train\n");
    let said = cluster.flat(1, &["rbac", INV]);
    assert!(
        said.contains("RW1037") && said.contains("kubernetes:"),
        "{said}"
    );
}

/// One verb is missing, and everything else is allowed: the run does not begin.
pub fn a_missing_right_is_found_before_the_first_change(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let (settings, plugin) = of_two();
    cluster.resources(&format!("{settings}{plugin}"));
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["create", "serviceaccount", "runner"]);
    let documents = given_to_runner(plane, &cluster);
    identity(
        plane,
        "runner",
        &plane.kubectl(&["create", "token", "runner"]),
    );
    take(plane, "kube-system", "daemonsets", "delete");

    cluster.spec("runner", "");
    cluster.resources(&settings.replace("\"one\"", "\"two\""));
    cluster.told(0, &["plan", INV, "-o", "a.plan"]);
    let mut printed = String::new();
    for words in [&["apply", INV, "--yes"][..], &["apply", "a.plan", "--yes"]] {
        let said = cluster.flat(4, words);
        assert!(
            said.contains("RW0646")
                && said.contains("1 rule is missing")
                && said.contains("nothing was changed"),
            "{said}"
        );
        printed = said
            .split("a Role in namespace kube-system: ")
            .nth(1)
            .unwrap()
            .split(" next:")
            .next()
            .unwrap()
            .to_owned();
        assert_eq!(
            printed,
            "- \
             { apiGroups: [apps], resources: [daemonsets], resourceNames: [plugin], verbs: [delete] }"
        );
        assert_eq!(text_of(plane), "one");
        let lease = plane.kubectl(&[
            "-n",
            "kube-system",
            "get",
            "lease",
            "railwright-train",
            "-o",
            "jsonpath={.spec.holderIdentity}",
        ]);
        assert_eq!(lease, "", "nobody holds the lock");
    }
    let rule: Value = serde_yaml_archived::from_str(&printed).unwrap();
    let added = json!([{ "op": "add", "path": "/rules/-", "value": rule[0] }]).to_string();
    plane.kubectl(&[
        "-n",
        "kube-system",
        "patch",
        &role_of_runner(plane, "kube-system"),
        "--type=json",
        "-p",
        &added,
    ]);
    cluster.told(0, &["apply", "a.plan", "--yes"]);
    assert_eq!(text_of(plane), "two");
    assert_eq!(
        plane.kubectl(&[
            "-n",
            "kube-system",
            "get",
            "daemonset",
            "plugin",
            "--ignore-not-found",
            "-o",
            "name"
        ]),
        ""
    );
    kubectl(plane, &["delete", "-f", "-"], &documents);
}

/// A run that goes on asks only about what is left of it.
pub fn a_run_that_goes_on_asks_again(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let (settings, plugin) = of_two();
    cluster.resources(&format!(
        "{}{plugin}",
        settings.replace("\"one\"", "\"three\"")
    ));
    given_to_runner(plane, &cluster);
    cluster.spec("runner", "");
    plane.apply(NO_DAEMON_SETS);
    let probe = ["create", "-f", "-"];
    let daemon_set = r#"{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"probe"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}"#;
    while plane
        .kubectl_as("admin", &probe, daemon_set)
        .status
        .success()
    {
        plane.kubectl(&["delete", "daemonset", "probe"]);
        std::thread::sleep(Duration::from_millis(200));
    }
    let failed = cluster.flat(1, &["apply", INV, "--yes"]);
    assert!(failed.contains("not today"), "{failed}");
    assert_eq!(text_of(plane), "three");

    take(plane, "kube-system", "daemonsets", "patch");
    take(plane, "default", "configmaps", "patch");
    let refused = cluster.flat(4, &["resume", INV]);
    assert!(
        refused.contains("RW0646")
            && refused.contains("resources: [daemonsets]")
            && !refused.contains("configmaps"),
        "{refused}"
    );
    given_to_runner(plane, &cluster);
    plane.kubectl(&[
        "delete",
        "validatingadmissionpolicybinding/no-daemon-sets",
        "validatingadmissionpolicy/no-daemon-sets",
    ]);
    std::thread::sleep(Duration::from_secs(2));
    cluster.told(0, &["resume", INV]);
    assert_eq!(
        plane.kubectl(&[
            "-n",
            "kube-system",
            "get",
            "daemonset",
            "plugin",
            "-o",
            "name"
        ]),
        "daemonset.apps/plugin\n"
    );
}

/// Where nobody but administrators may ask what they may do, the run goes on, and says so.
pub fn whoever_may_not_ask_goes_on(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "runner");
    let (settings, plugin) = of_two();
    cluster.resources(&format!(
        "{}{plugin}",
        settings.replace("\"one\"", "\"four\"")
    ));
    plane.kubectl(&["delete", "clusterrolebinding", "system:basic-user"]);
    let may_ask = || {
        plane
            .kubectl_as(
                "runner",
                &["auth", "can-i", "get", "configmaps/settings"],
                "",
            )
            .status
            .success()
    };
    while may_ask() {
        std::thread::sleep(Duration::from_millis(200));
    }
    let said = cluster.flat(0, &["apply", INV, "--yes"]);
    assert!(
        said.contains("RW0647")
            && said.contains("cannot create resource \"selfsubjectaccessreviews\""),
        "{said}"
    );
    assert_eq!(text_of(plane), "four");
    plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "system:basic-user",
        "--clusterrole=system:basic-user",
        "--group=system:authenticated",
    ]);
}

const NO_DAEMON_SETS: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: no-daemon-sets }
spec:
  matchConstraints: { resourceRules: [{ apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [daemonsets] }] }
  validations: [{ expression: request.dryRun, message: not today }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: no-daemon-sets }
spec: { policyName: no-daemon-sets, validationActions: [Deny] }
";

/// The first two resources.
fn of_two() -> (&'static str, &'static str) {
    let (settings, rest) = WISHES.split_at(WISHES.find("  - id: plugin").unwrap());
    (settings, &rest[..rest.find("  - id: class").unwrap()])
}

/// The role `apply` for what the inventory declares, given to the service account `runner`.
fn given_to_runner(plane: &ControlPlane, cluster: &Cluster) -> String {
    let documents = cluster.told(
        0,
        &[
            "rbac",
            INV,
            "--role",
            "apply",
            "--service-account",
            "default/runner",
        ],
    );
    plane.apply(&documents);
    documents
}

/// It bears the name of its subject.
fn role_of_runner(plane: &ControlPlane, namespace: &str) -> String {
    let roles = plane.kubectl(&["-n", namespace, "get", "roles", "-o", "name"]);
    roles
        .lines()
        .find(|name| name.contains("/railwright-train-apply-runner-"))
        .unwrap()
        .to_owned()
}

/// Takes a verb out of the role of a namespace.
fn take(plane: &ControlPlane, namespace: &str, resource: &str, verb: &str) {
    let role = &role_of_runner(plane, namespace);
    let rules: Value =
        serde_json::from_str(&plane.kubectl(&["-n", namespace, "get", role, "-o", "json"]))
            .unwrap();
    let rules = rules["rules"].as_array().unwrap();
    let index = rules
        .iter()
        .position(|rule| rule["resources"][0] == resource)
        .unwrap();
    let at = rules[index]["verbs"]
        .as_array()
        .unwrap()
        .iter()
        .position(|one| one == verb)
        .unwrap();
    let taken = format!(r#"[{{"op":"remove","path":"/rules/{index}/verbs/{at}"}}]"#);
    plane.kubectl(&["-n", namespace, "patch", role, "--type=json", "-p", &taken]);
}

fn text_of(plane: &ControlPlane) -> String {
    plane.kubectl(&[
        "get",
        "configmap",
        "settings",
        "-o",
        "jsonpath={.data.text}",
    ])
}
