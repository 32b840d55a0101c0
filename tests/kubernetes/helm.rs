//! Releases of a small chart, owned through the real Helm on a real API server.

use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const INV: &str = "inv";
/// The secret of the stories.
const POISON: &str = "s3cr3t-of-the-rails";

/// The program that `RAILWRIGHT_TEST_HELM` names, else as the rig has it.
pub fn program(plane: &ControlPlane) -> PathBuf {
    match std::env::var_os("RAILWRIGHT_TEST_HELM") {
        Some(path) => PathBuf::from(path),
        None => plane.program("helm"),
    }
}

/// Helm by hand, as somebody else would use it.
fn helm(plane: &ControlPlane, words: &[&str]) -> Output {
    let mut command = Command::new(program(plane));
    command
        .args(words)
        .arg("--kubeconfig")
        .arg(plane.kubeconfig("admin"))
        .env("HOME", plane.work());
    command.output().unwrap()
}

pub fn helm_well(plane: &ControlPlane, words: &[&str]) -> String {
    let output = helm(plane, words);
    assert!(
        output.status.success(),
        "helm {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A cluster whose inventory has a copy of the chart, and the program that is told which Helm to
/// use.
pub struct Story<'a> {
    pub cluster: Cluster<'a>,
    helm: String,
    /// The authority that Helm trusts, in the place of those of this machine.
    authority: Option<PathBuf>,
}

impl<'a> Story<'a> {
    pub fn new(plane: &'a ControlPlane) -> Self {
        let cluster = Cluster::new(plane, "admin");
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubernetes/chart");
        for file in [
            "Chart.yaml",
            "values.yaml",
            "templates/agent.yaml",
            "templates/definition.yaml",
        ] {
            cluster.file(
                &format!("inv/charts/rails/{file}"),
                &std::fs::read_to_string(chart.join(file)).unwrap(),
            );
        }
        cluster.spec("admin", "secrets: { token: { env: RAILS_TOKEN } }\n");
        Story {
            helm: program(plane).display().to_string(),
            authority: None,
            cluster,
        }
    }

    /// Runs this script in the place of Helm.
    pub fn uses_helm(&mut self, script: &str) {
        let path = self.cluster.folder().join("helm");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.helm = path.display().to_string();
    }

    /// Runs Helm itself again.
    pub fn uses_no_other_helm(&mut self, plane: &ControlPlane) {
        self.helm = program(plane).display().to_string();
    }

    /// The release with these values, and more of its fields.
    pub fn resource(&self, values: &str, more: &str) {
        self.cluster.resources(&format!(
            "  - id: rails\n    helm_release:\n      name: rails\n      namespace: default\n      chart: charts/rails\n      values: {{ {values} }}\n      disruptions: {{ agent.driver: drain }}\n      keeps: [drivers on the hosts stay loaded]\n\
             {more}"
        ));
    }

    pub fn nothing(&self) {
        self.cluster.resources("  []\n");
    }

    fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.cluster.folder().join("inv/charts/rails").join(path)).unwrap()
    }

    pub fn told(&self, code: i32, words: &[&str]) -> String {
        let mut command = self.cluster.command(words);
        command
            .env("RAILWRIGHT_HELM", &self.helm)
            .env("RAILS_TOKEN", POISON);
        command.envs(
            self.authority
                .iter()
                .map(|authority| ("SSL_CERT_FILE", authority)),
        );
        let output = command.output().unwrap();
        let said =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}:\n{said}");
        assert!(!said.contains(POISON), "{words:?}:\n{said}");
        crate::cluster::flat(&said)
    }

    pub fn plan(&self, code: i32) -> String {
        self.told(code, &["plan", INV])
    }

    pub fn apply(&self) {
        self.told(0, &["apply", INV, "--yes"]);
        assert!(
            self.told(0, &["plan", INV, "--detailed-exitcode"])
                .contains("No changes.")
        );
    }
}

pub fn a_release_is_installed_changed_and_stays(plane: &ControlPlane) {
    let story = Story::new(plane);
    story.resource("agent: { driver: compat }", "");
    let plan = story.plan(0);
    assert!(
        plan.contains("helm_release default/rails")
            && plan.contains("values.agent.driver compat")
            && plan.contains("version 0.1.0"),
        "{plan}"
    );
    assert_eq!(
        helm_well(plane, &["list", "--short"]),
        "",
        "a plan changes nothing"
    );
    story.apply();
    let driver = || {
        plane.kubectl(&[
            "get",
            "configmap",
            "rails",
            "-o",
            "jsonpath={.data.config\\.json}",
        ])
    };
    assert_eq!(driver(), r#"{"driver":"compat"}"#);

    story.resource("agent: { driver: ofed }", "");
    let plan = story.plan(0);
    for said in [
        "values.agent.driver (persisted) compat -> ofed",
        "(drain): empty the nodes first",
        r#"data."config.json": driver (persisted) compat -> ofed"#,
        "args[1] (persisted) compat -> ofed",
        "pods of DaemonSet.apps default/rails-agent start anew",
    ] {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    assert_eq!(driver(), r#"{"driver":"compat"}"#);
    let drift = story.told(2, &["drift", INV]);
    assert!(
        drift.contains("a value of the release is another one since")
            && !drift.contains("the chart charts/rails"),
        "{drift}"
    );
    story.apply();
    assert_eq!(driver(), r#"{"driver":"ofed"}"#);

    let chart = story.file("Chart.yaml");
    story.cluster.file(
        "inv/charts/rails/Chart.yaml",
        &chart.replace("0.1.0", "0.2.0"),
    );
    let plan = story.plan(0);
    assert!(
        plan.contains("version (persisted) 0.1.0 -> 0.2.0"),
        "{plan}"
    );
    assert!(
        plan.contains(
            "input changed: the chart charts/rails, since we applied it; nobody changed the target"
        ),
        "{plan}"
    );
    let drift = story.told(2, &["drift", INV]);
    assert!(
        drift.contains("SPEC NEWER THAN APPLIED") && !drift.contains("CHANGED OUTSIDE"),
        "{drift}"
    );
    assert!(
        drift.contains("the chart charts/rails is another one since"),
        "{drift}"
    );
    story.apply();
    story.nothing();
    plane.apply("apiVersion: example.org/v1\nkind: RailDevice\nmetadata: {name: gpu01}\n");
    let plan = story.plan(0);
    for said in [
        "every RailDevice.example.org of the cluster is deleted",
        "drivers on the hosts stay loaded",
        "pods of DaemonSet.apps default/rails-agent end",
    ] {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    story.apply();
    assert_eq!(helm_well(plane, &["list", "--short"]), "");
    assert_eq!(
        plane.kubectl(&[
            "get",
            "daemonset,configmap",
            "-l",
            "app.kubernetes.io/managed-by=Helm",
            "-o",
            "name"
        ]),
        ""
    );
}

pub fn what_others_change_is_drift(plane: &ControlPlane) {
    let story = Story::new(plane);
    story.resource("agent: { driver: compat }", "");
    story.apply();
    let edit = r#"{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"example.invalid/agent:2"}]}}}}"#;
    plane.kubectl(&[
        "patch",
        "daemonset",
        "rails-agent",
        "--field-manager=kubectl-edit",
        "-p",
        edit,
    ]);
    let drift = story.told(2, &["drift", INV]);
    assert!(
        drift.contains("spec.template.spec.containers[agent].image")
            && drift.contains("kubectl-edit"),
        "{drift}"
    );
    story.apply();
    let image = "jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(
        plane.kubectl(&["get", "daemonset", "rails-agent", "-o", image]),
        "example.invalid/agent:1"
    );

    story.cluster.resources(
        "  - id: one\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: ConfigMap, metadata: \
         { name: rails, namespace: default }, data: { config.json: x } }\n",
    );
    let plan = story.plan(3);
    assert!(
        plan.contains("it belongs to the release rails of Helm"),
        "{plan}"
    );
    story.resource("agent: { driver: compat }", "");

    plane.kubectl(&["delete", "configmap", "rails"]);
    let plan = story.plan(0);
    assert!(
        plan.contains("ConfigMap.core default/rails") && plan.contains("somebody deleted it"),
        "{plan}"
    );
    story.apply();

    let chart = story.cluster.folder().join("inv/charts/rails");
    helm_well(
        plane,
        &[
            "upgrade",
            "rails",
            chart.to_str().unwrap(),
            "--set",
            "agent.driver=ofed,db.password=hunter22",
        ],
    );
    let drift = story.told(2, &["drift", INV]);
    assert!(
        drift.contains("values.agent.driver")
            && drift.contains("is not ours")
            && !drift.contains("hunter22"),
        "{drift}"
    );
    story.apply();

    let definition = r#"{"spec":{"names":{"shortNames":["rd"]}}}"#;
    plane.kubectl(&[
        "patch",
        "crd",
        "raildevices.example.org",
        "--type=merge",
        "-p",
        definition,
    ]);
    assert!(
        story
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes."),
        "what the chart does not name is not Helm's"
    );
    story.nothing();
    story.apply();
}

pub fn a_secret_is_brought_and_never_shown(plane: &ControlPlane) {
    let story = Story::new(plane);
    story.resource("token: \"{{ secrets.token }}\"", "");
    let plan = story.plan(0);
    assert!(plan.contains("[secret token]"), "{plan}");
    story.apply();
    let stored = plane.kubectl(&[
        "get",
        "secret",
        "rails",
        "-o",
        "go-template={{index .data \"credential.json\" | base64decode}}",
    ]);
    assert_eq!(stored, format!(r#"{{"token":"{POISON}"}}"#));
    let values = helm_well(plane, &["get", "values", "rails", "-o", "json"]);
    assert!(values.contains(POISON), "a positive control: {values}");
    let chart = story.cluster.folder().join("inv/charts/rails");
    helm_well(
        plane,
        &[
            "upgrade",
            "rails",
            chart.to_str().unwrap(),
            "--set",
            "token=another-s3cr3t",
        ],
    );
    let plan = story.plan(0);
    assert!(
        plan.contains("values.token")
            && plan.contains("not shown")
            && !plan.contains("another-s3cr3t"),
        "{plan}"
    );
    story.apply();
    story.nothing();
    story.apply();
}

/// No name says that it is a secret, no secret fills it any more, and somebody else made a revision
/// in between.
pub fn what_once_was_a_secret_is_not_shown(plane: &ControlPlane) {
    let story = Story::new(plane);
    let template = "apiVersion: v1\n\
                    kind: ConfigMap\n\
                    metadata: { name: bent }\n\
                    data:\n  plain: {{ .Values.link | default \"none\" }}\n";
    story
        .cluster
        .file("inv/charts/rails/templates/bent.yaml", template);
    story.resource("link: \"pg://u:{{ secrets.token }}@h\"", "");
    story.told(0, &["apply", INV, "--yes"]);
    let chart = story.cluster.folder().join("inv/charts/rails");
    helm_well(
        plane,
        &[
            "upgrade",
            "rails",
            chart.to_str().unwrap(),
            "--set",
            "link=pg://u:another@h",
        ],
    );
    story.resource("agent: { driver: compat }", "");
    for words in [
        &["plan", INV][..],
        &["plan", INV, "--json"],
        &["drift", INV],
    ] {
        let said = story.told(if words[0] == "drift" { 2 } else { 0 }, words);
        assert!(
            said.contains("values.link")
                && said.contains("data.plain")
                && !said.contains("another@h"),
            "{said}"
        );
    }
    story.told(0, &["apply", INV, "--yes"]);
    story.nothing();
    story.told(0, &["apply", INV, "--yes"]);
}

pub fn what_cannot_be_done_is_said_before(plane: &ControlPlane) {
    let mut story = Story::new(plane);
    let own = std::mem::replace(&mut story.helm, "/nowhere/helm".to_owned());
    story.resource("agent: { driver: compat }", "");
    let plan = story.plan(3);
    assert!(
        plan.contains("/nowhere/helm does not start") && !plan.contains("No changes"),
        "{plan}"
    );
    story.helm = own;

    let agent = story.file("templates/agent.yaml");
    story.cluster.file(
        "inv/charts/rails/templates/agent.yaml",
        &format!("{agent}\nx: {{{{ .Values.none.such }}}}\n"),
    );
    let plan = story.plan(3);
    assert!(plan.contains("rails/templates/agent.yaml:36:13"), "{plan}");
    story.told(3, &["apply", INV, "--yes"]);
    story
        .cluster
        .file("inv/charts/rails/templates/agent.yaml", &agent);

    let folder = story.cluster.folder().join("inv/charts");
    helm_well(
        plane,
        &[
            "package",
            folder.join("rails").to_str().unwrap(),
            "-d",
            folder.to_str().unwrap(),
        ],
    );
    let archive = std::fs::read(folder.join("rails-0.1.0.tgz")).unwrap();
    let digest = railwright_base::Digest::of_bytes(&archive).to_string();
    let of_archive = |digest: &str| {
        story.resource("agent: { driver: compat }", "");
        let module =
            std::fs::read_to_string(story.cluster.folder().join("inv/modules/own/module.yaml"))
                .unwrap();
        let named = format!("chart: charts/rails-0.1.0.tgz\n      digest: \"{digest}\"");
        story.cluster.file(
            "inv/modules/own/module.yaml",
            &module.replace("chart: charts/rails", &named),
        );
    };
    of_archive(&"0".repeat(64));
    let plan = story.plan(3);
    assert!(
        plan.contains(&digest) && plan.contains("nothing of it is used"),
        "{plan}"
    );
    story.told(3, &["apply", INV, "--yes"]);
    assert_eq!(helm_well(plane, &["list", "--short"]), "");
    of_archive(&digest);
    story.told(0, &["plan", INV, "-o", "a.plan"]);
    std::fs::write(
        folder.join("rails-0.1.0.tgz"),
        [&archive[..], b"x"].concat(),
    )
    .unwrap();
    let stale = story.told(3, &["apply", "a.plan", "--yes"]);
    assert!(stale.contains("RW0610"), "{stale}");
    assert_eq!(
        helm_well(plane, &["list", "--short"]),
        "",
        "an archive that was exchanged since is not used"
    );
    std::fs::write(folder.join("rails-0.1.0.tgz"), archive).unwrap();
    story.apply();

    pending(&story);
    let plan = story.plan(3);
    assert!(
        plan.contains("is pending-upgrade") && plan.contains("helm -n default rollback rails"),
        "{plan}"
    );
    story.told(3, &["apply", INV, "--yes"]);
    helm_well(plane, &["rollback", "rails"]);
    story.apply();
    story.nothing();
    story.apply();
    plane.kubectl(&["delete", "job", "never", "--ignore-not-found"]);
}

/// A revision whose maker dies half way: it waits for a hook that never ends, and is killed.
fn pending(story: &Story<'_>) {
    let hook = "apiVersion: batch/v1\n\
                kind: Job\n\
                metadata:\n  name: never\n  annotations: \
                { helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: before-hook-creation }\n\
                spec: { template: { spec: { restartPolicy: Never, containers: \
                [{ name: never, image: example.invalid/never:1 }] } } }\n";
    story
        .cluster
        .file("inv/charts/rails/templates/hook.yaml", hook);
    let plane = story.cluster.plane;
    let chart = story.cluster.folder().join("inv/charts/rails");
    let mut command = Command::new(program(plane));
    command
        .args(["upgrade", "rails"])
        .arg(chart)
        .arg("--kubeconfig")
        .arg(plane.kubeconfig("admin"))
        .env("HOME", plane.work());
    let mut helm = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_pending = || helm_well(plane, &["status", "rails"]).contains("pending-upgrade");
    assert!((0..100).any(|_| is_pending() || {
        std::thread::sleep(Duration::from_millis(100));
        false
    }));
    helm.kill().unwrap();
    helm.wait().unwrap();
    std::fs::remove_file(
        story
            .cluster
            .folder()
            .join("inv/charts/rails/templates/hook.yaml"),
    )
    .unwrap();
}

/// Whoever may only read is told before the first change what Helm would be refused.
pub fn what_helm_may_not_do_is_found_first(plane: &ControlPlane) {
    let story = Story::new(plane);
    story
        .cluster
        .spec("reader", "secrets: { token: { env: RAILS_TOKEN } }\n");
    story.resource("agent: { driver: compat }", "");
    let refused = story.told(4, &["apply", INV, "--yes"]);
    for said in [
        "RW0646",
        "- { apiGroups: [apps], resources: [daemonsets], verbs: [create] }",
        "a Role in namespace default: - \
         { apiGroups: [\"\"], resources: [secrets], verbs: [create, update, delete] }",
        "- \
         { apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [create] }",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    assert_eq!(helm_well(plane, &["list", "--short"]), "");
    let roles = story.told(0, &["rbac", INV, "--role", "apply"]);
    assert!(
        roles.contains("the revisions that Helm keeps of the release default/rails")
            && roles.contains("resources: [secrets]"),
        "{roles}"
    );
    with_the_printed_role_all_missing_rules_are_named_at_once(plane, &story);
}

/// Helm itself stumbles over the first object that it may not look at, and says no word of the
/// others.
fn with_the_printed_role_all_missing_rules_are_named_at_once(plane: &ControlPlane, story: &Story) {
    let roles = story
        .cluster
        .command(&["rbac", INV, "--role", "apply"])
        .output()
        .unwrap();
    plane.apply(&String::from_utf8(roles.stdout).unwrap());
    crate::rbac::identity(
        plane,
        "helm",
        &plane.kubectl(&[
            "-n",
            "kube-system",
            "create",
            "token",
            "railwright-train-apply",
        ]),
    );
    story
        .cluster
        .spec("helm", "secrets: { token: { env: RAILS_TOKEN } }\n");
    let plan = story.plan(0);
    for said in [
        "ConfigMap.core default/rails made",
        "not previewed: its identity may not look: ",
    ] {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    let refused = story.told(4, &["apply", INV, "--yes"]);
    for said in [
        "RW0646",
        "- { apiGroups: [apps], resources: [daemonsets], verbs: [create] }",
        "- \
         { apiGroups: [apps], resources: [daemonsets], resourceNames: [rails-agent], verbs: [get, patch] }",
        "- \
         { apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [create] }",
        "- { apiGroups: [\"\"], resources: [configmaps], verbs: [create] }",
        "resources: [secrets], resourceNames: [rails], verbs: [patch] }",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    assert_eq!(helm_well(plane, &["list", "--short"]), "");
    let rules = [
        "--verb=get,create,patch",
        "--resource=daemonsets.apps,configmaps,secrets,customresourcedefinitions.apiextensions.k8s.io",
    ];
    plane.kubectl(&[&["create", "clusterrole", "of-the-chart"], &rules[..]].concat());
    let account = "--serviceaccount=kube-system:railwright-train-apply";
    plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "of-the-chart",
        "--clusterrole=of-the-chart",
        account,
    ]);
    assert!(!story.plan(0).contains("not previewed"));
    story.apply();
    helm_well(plane, &["uninstall", "rails"]);
}

pub fn what_others_installed_is_left_to_them(plane: &ControlPlane) {
    let story = Story::new(plane);
    let chart = story.cluster.folder().join("inv/charts/rails");
    helm_well(plane, &["install", "rails", chart.to_str().unwrap()]);
    story.resource("agent: { driver: compat }", "");
    let plan = story.plan(3);
    assert!(
        plan.contains("somebody else installed this release") && plan.contains("adopt: true"),
        "{plan}"
    );
    story.resource("agent: { driver: compat }", "      adopt: true\n");
    story.apply();
    story.nothing();
    let plan = story.plan(0);
    assert!(plan.contains("stays: it was there before us"), "{plan}");
    story.apply();
    assert_eq!(helm_well(plane, &["list", "--short"]), "rails\n");
    helm_well(plane, &["uninstall", "rails"]);
}

/// The add-on of a managed cluster: nobody but a person installs it.
pub fn a_step_in_a_console_is_held_and_proven(plane: &ControlPlane) {
    let story = Story::new(plane);
    let spec = std::fs::read_to_string(story.cluster.folder().join("inv/cluster.yaml")).unwrap();
    let with = spec.replace(
        ".kubeconfig }\n",
        ".kubeconfig, platform: ack-managed, erdma: { prefer_driver: ofed } }\n",
    );
    story.cluster.file("inv/cluster.yaml", &with);
    let plan = story.plan(3);
    assert!(
        plan.contains("ACK eRDMA Controller")
            && plan.contains("preferDriver = ofed")
            && plan.contains("BLOCKED"),
        "{plan}"
    );
    story.told(3, &["apply", INV, "--yes"]);
    plane.kubectl(&["create", "namespace", "ack-erdma-controller"]);
    assert!(
        story
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    plane.kubectl(&[
        "delete",
        "namespace",
        "ack-erdma-controller",
        "--wait=false",
    ]);
}

/// What an operator reads goes before the operator: nobody else would clean up after it.
pub fn an_object_of_an_operator_comes_after_it_and_goes_before_it(plane: &ControlPlane) {
    let story = Story::new(plane);
    let object = "  - id: device\n    after: [rails]\n    kubernetes_object:\n      manifest: { apiVersion: example.org/v1, kind: RailDevice, metadata: \
                  { name: gpu01 } }\n";
    story.resource("agent: { driver: compat }", object);
    story.apply();
    assert_eq!(
        plane.kubectl(&["get", "raildevices.example.org", "-o", "name"]),
        "raildevice.example.org/gpu01\n"
    );
    story.nothing();
    let plan = story.told(0, &["plan", INV, "-o", "gone.plan"]);
    let shown = story.told(
        0,
        &["show", "gone.plan", "kube/prod/helm_release/default/rails"],
    );
    assert!(
        shown.contains("after kube/prod/RailDevice.example.org/-/gpu01"),
        "{plan}\n{shown}"
    );
    story.apply();
}

/// A repository behind TLS, until it is dropped.
struct Repository(Child, String);

impl Repository {
    /// Serves a folder with the certificate of the control plane.
    fn of(plane: &ControlPlane, folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut server = Command::new("openssl");
        server
            .args([
                "s_server",
                "-quiet",
                "-WWW",
                "-accept",
                &format!("127.0.0.1:{port}"),
            ])
            .current_dir(folder);
        server
            .arg("-cert")
            .arg(plane.work().join("server.crt"))
            .arg("-key")
            .arg(plane.work().join("server.key"));
        let server = server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let answers = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!((0..100).any(|_| answers() || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }));
        Repository(server, format!("https://127.0.0.1:{port}"))
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn a_chart_is_fetched_from_its_repository(plane: &ControlPlane) {
    let story = Story::new(plane);
    let charts = story.cluster.folder().join("charts");
    std::fs::create_dir(&charts).unwrap();
    let (chart, folder) = (
        story.cluster.folder().join("inv/charts/rails"),
        charts.to_str().unwrap(),
    );
    helm_well(plane, &["package", chart.to_str().unwrap(), "-d", folder]);
    let digest =
        railwright_base::Digest::of_bytes(&std::fs::read(charts.join("rails-0.1.0.tgz")).unwrap())
            .to_string();
    let repository = Repository::of(plane, &charts);
    helm_well(plane, &["repo", "index", folder, "--url", &repository.1]);
    story.resource("agent: { driver: compat }", "");
    let module =
        std::fs::read_to_string(story.cluster.folder().join("inv/modules/own/module.yaml"))
            .unwrap();
    let named = format!(
        "chart: rails\n      repository: \"{}\"\n      version: 0.1.0\n      digest: \"{digest}\"",
        repository.1
    );
    story.cluster.file(
        "inv/modules/own/module.yaml",
        &module.replace("chart: charts/rails", &named),
    );
    let plan = story.plan(3);
    assert!(
        plan.contains("could not be fetched") && !plan.contains("No changes"),
        "an authority that nobody trusts: {plan}"
    );
    let story = Story {
        authority: Some(plane.work().join("ca.crt")),
        ..story
    };
    story.apply();
    assert_eq!(helm_well(plane, &["list", "--short"]), "rails\n");
    story.nothing();
    story.apply();
}

/// A chart may bend a secret into any form, and may say something else with every rendering: the
/// one is never shown, nobody declares the other.
pub fn what_a_chart_makes_of_a_secret_or_of_chance(plane: &ControlPlane) {
    let story = Story::new(plane);
    let template = "apiVersion: v1\n\
                    kind: ConfigMap\n\
                    metadata:\n  name: bent\n  annotations: { rollme: {{ randAlphaNum 5 | quote }} }\n\
                    data:\n  b64: {{ .Values.token | b64enc }}\n  up: {{ .Values.token | upper | quote }}\n";
    story
        .cluster
        .file("inv/charts/rails/templates/bent.yaml", template);
    story.resource("token: \"{{ secrets.token }}\"", "");
    story.told(0, &["apply", INV, "--yes"]);
    assert!(
        story
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes."),
        "chance is no change"
    );
    plane.kubectl(&[
        "patch",
        "configmap",
        "bent",
        "-p",
        r#"{"data":{"b64":"x","up":"y"}}"#,
    ]);
    for words in [
        &["plan", INV][..],
        &["plan", INV, "--json"],
        &["drift", INV],
    ] {
        let code = if words[0] == "drift" { 2 } else { 0 };
        let said = story.told(code, words);
        assert!(
            said.contains("bent") && said.contains("not shown"),
            "{said}"
        );
        assert!(
            !said.contains("czNjcjN0") && !said.contains("S3CR3T"),
            "{said}"
        );
    }
    story.told(0, &["apply", INV, "--yes"]);
    let stored = plane.kubectl(&["get", "configmap", "bent", "-o", "jsonpath={.data.up}"]);
    assert_eq!(stored, POISON.to_ascii_uppercase());
    story.nothing();
    story.told(0, &["apply", INV, "--yes"]);
}
