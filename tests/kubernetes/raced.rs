//! Others write between our look and our write, and answers get lost after the server did what was
//! asked.

use crate::cluster::Cluster;
use crate::meanwhile::{Meanwhile, first_line};
use crate::rig::ControlPlane;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const INV: &str = "inv";
const OBJECT: &str = "/api/v1/namespaces/default/configmaps/conf";

const CONFIG_MAP: &str = "  - id: conf
    kubernetes_object:
      manifest: { apiVersion: v1, kind: ConfigMap, metadata: { name: conf, namespace: default }, data: { a: desired } }
";

/// The inventory's way to the cluster.
pub fn through(cluster: &Cluster<'_>, way: &Meanwhile) {
    cluster.file("inv/way.kubeconfig", &way.kubeconfig());
    cluster.file(
        "inv/cluster.yaml",
        "cluster: train\nkubernetes: { name: prod, kubeconfig: way.kubeconfig }\n",
    );
}

/// A request that changes the object.
fn is_write(line: &str) -> bool {
    ["PATCH ", "DELETE "]
        .iter()
        .any(|method| line.starts_with(&format!("{method}{OBJECT}")))
        && !line.contains("dryRun")
}

/// Runs kubectl with these words once, right before we write the object.
fn before_our_write(plane: &ControlPlane, all: &[&[&str]]) -> Meanwhile {
    before(plane, all, is_write)
}

/// Runs kubectl with these words once, right before such a request is passed on.
fn before(
    plane: &ControlPlane,
    all: &[&[&str]],
    is_meant: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> Meanwhile {
    let commands: Vec<_> = all
        .iter()
        .map(|words| plane.kubectl_command(words))
        .collect();
    let commands = Mutex::new(commands);
    Meanwhile::watch(plane, move |head| {
        if is_meant(&first_line(head)) {
            for mut command in commands.lock().unwrap().drain(..) {
                assert!(command.output().unwrap().status.success());
            }
        }
    })
}

fn found(plane: &ControlPlane) -> String {
    plane.kubectl(&[
        "get",
        "configmap",
        "conf",
        "--ignore-not-found",
        "-o",
        "jsonpath={.data}{.metadata.labels}",
    ])
}

const THEIRS: [&str; 5] = [
    "create",
    "configmap",
    "conf",
    "--from-literal=a=precious",
    "--from-literal=mine=yes",
];
const GONE: [&str; 4] = ["delete", "configmap", "conf", "--wait=true"];
const PRECIOUS: &str = r#"{"a":"precious","mine":"yes"}"#;

pub fn what_somebody_makes_meanwhile_is_left_alone(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let way = before_our_write(plane, &[&THEIRS]);
    through(&cluster, &way);
    cluster.resources(CONFIG_MAP);
    let said = cluster.flat(3, &["apply", INV, "--yes"]);
    assert!(
        said.contains("RW0610")
            && said.contains("kubectl-create made it by now, and it is left alone"),
        "{said}"
    );
    assert_eq!(found(plane), PRECIOUS);
    // A plan says what it would take to take it over, and what leaves the spec was never ours.
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(plan.contains("it was never ours"), "{plan}");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(found(plane), PRECIOUS);
    plane.kubectl(&GONE);
}

pub fn what_was_made_anew_meanwhile_is_left_alone(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    for next in [
        CONFIG_MAP.replace("desired", "another"),
        "  []\n".to_owned(),
    ] {
        cluster.spec("admin", "");
        cluster.resources(CONFIG_MAP);
        cluster.told(0, &["apply", INV, "--yes"]);
        let way = before_our_write(plane, &[&GONE, &THEIRS]);
        through(&cluster, &way);
        cluster.resources(&next);
        let said = cluster.flat(3, &["apply", INV, "--yes"]);
        assert!(
            said.contains("RW0610") && said.contains("is left alone"),
            "{said}"
        );
        assert_eq!(found(plane), PRECIOUS);
        plane.kubectl(&GONE);
    }
}

/// A spec that took it over is named.
pub fn two_specs_know_of_each_other(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let label = ["label", "configmap", "conf", "railwright.io/part-of=other"];
    let way = before_our_write(plane, &[&THEIRS, &label]);
    through(&cluster, &way);
    cluster.resources(CONFIG_MAP);
    let said = cluster.flat(3, &["apply", INV, "--yes"]);
    assert!(
        said.contains("it belongs to the spec `other` of railwright by now"),
        "{said}"
    );
    plane.kubectl(&GONE);
}

/// The answers to our writes get lost.
pub fn a_lost_answer_changes_nothing(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    for resource in [CONFIG_MAP, "  []\n"] {
        let way = Meanwhile::lose(plane, 500, 2, is_write);
        through(&cluster, &way);
        cluster.resources(resource);
        cluster.told(0, &["apply", INV, "--yes"]);
    }
    assert_eq!(found(plane), "");
}

const JOB: &str = "apiVersion: v1
kind: Service
metadata: { name: lost }
spec: { ports: [{ port: 80 }], selector: { app: lost } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: lost }
spec: { replicas: 1, selector: { matchLabels: { app: lost } }, template: { metadata: { labels: { app: lost } }, spec: { containers: [{ name: a, image: 'example.invalid/a:1' }] } } }
";

/// Between the list that is shown and our look at an object somebody makes another one of its name,
/// for a job of the same name.
pub fn what_was_made_anew_since_the_list_is_not_deleted(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.file("job.yaml", JOB);
    cluster.told(0, &["job", "submit", "job.yaml", "-i", INV]);
    let label: &[&str] = &["label", "service", "lost", "railwright.io/job=lost"];
    let remade = [REMADE.as_slice(), &[label]].concat();
    let way = before(plane, &remade, |line| {
        line.starts_with("GET /api/v1/namespaces/default/services/lost ")
    });
    through(&cluster, &way);
    let said = cluster.flat(3, &["job", "delete", "lost", "-i", INV, "--yes"]);
    let desired = "Service.core default/lost is no longer what was listed, and was left alone: \
                  kubectl-create made it";
    assert!(
        said.contains(desired) && said.contains("Deployment.apps default/lost is gone"),
        "{said}"
    );
    assert_eq!(
        plane.kubectl(&[
            "get",
            "service",
            "lost",
            "-o",
            "jsonpath={.spec.ports[0].port}"
        ]),
        "81"
    );
    plane.kubectl(&["delete", "service", "lost"]);
}

const REMADE: [&[&str]; 2] = [
    &["delete", "service", "lost"],
    &["create", "service", "clusterip", "lost", "--tcp=81:81"],
];

/// A job is refused half way, and somebody makes another object of the name of one that it has
/// made.
pub fn what_was_made_anew_meanwhile_is_not_taken_back(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.file("job.yaml", &JOB.replace("replicas: 1", "replicas: -1"));
    let way = before(plane, &REMADE, |line| {
        line.starts_with("GET /api/v1/namespaces/default/services/lost ")
    });
    through(&cluster, &way);
    let refused = cluster.flat(1, &["job", "submit", "job.yaml", "-i", INV]);
    assert!(
        refused.contains("RW1244") && refused.contains("nothing is there of this job"),
        "{refused}"
    );
    assert_eq!(
        plane.kubectl(&[
            "get",
            "service",
            "lost",
            "-o",
            "jsonpath={.spec.ports[0].port}"
        ]),
        "81"
    );
    plane.kubectl(&["delete", "service", "lost"]);
}

/// Where kinds cannot be read, nobody knows whether one of them has the job.
pub fn kinds_that_could_not_be_read_are_all_named(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let way = Meanwhile::lose(plane, 500, usize::MAX, |line| {
        [
            "apps/v1/namespaces/default/deployments?",
            "batch/v1/namespaces/default/jobs?",
        ]
        .iter()
        .any(|list| line.starts_with(&format!("GET /apis/{list}")))
    });
    through(&cluster, &way);
    for words in [
        &["job", "watch"][..],
        &["job", "prove"],
        &["job", "compare"],
        &["job", "delete"],
        &["doctor"],
    ] {
        let said = cluster.flat(3, &[words, &["nowhere", "-i", INV]].concat());
        assert!(
            said.contains("Deployment could not be read")
                && said.contains(" Job could not be read"),
            "{words:?}: {said}"
        );
        assert!(
            !said.contains("no job nowhere") && !said.contains("Nothing is left"),
            "{words:?}: {said}"
        );
    }
}

/// Where the list of a kind fails, nobody knows whether the job has objects of it.
pub fn what_could_not_be_looked_for_is_not_said_to_be_gone(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.file("job.yaml", JOB);
    cluster.told(0, &["job", "submit", "job.yaml", "-i", INV]);
    // It is there when it is looked up, and its kind cannot be listed any more when it is watched.
    let count = AtomicUsize::new(0);
    let way = Meanwhile::lose(plane, 500, usize::MAX, move |line| {
        line.starts_with("GET /apis/apps/v1/namespaces/default/deployments?")
            && count.fetch_add(1, Ordering::Relaxed) > 0
    });
    through(&cluster, &way);
    let watched = cluster.flat(3, &["job", "watch", "lost", "-i", INV, "--for", "15s"]);
    assert!(
        watched.contains("it could not be read: ") && !watched.contains("RW1246"),
        "{watched}"
    );
    let listed = cluster.flat(3, &["job", "list", "-i", INV]);
    assert!(listed.contains("Deployment could not be read"), "{listed}");
    drop(way);
    let way = Meanwhile::lose(plane, 500, usize::MAX, |line| {
        line.starts_with("GET /api/v1/namespaces/default/services?")
    });
    through(&cluster, &way);
    let told = "Service could not be read, so objects of the job may be left: lost";
    let said = cluster.flat(3, &["job", "delete", "lost", "-i", INV, "--yes"]);
    assert!(
        said.contains("Deployment.apps default/lost is gone") && said.contains(told),
        "{said}"
    );
    let again = cluster.flat(3, &["job", "delete", "lost", "-i", INV, "--yes"]);
    assert!(
        again.contains(told) && !again.contains("Nothing is left"),
        "{again}"
    );
    drop(way);
    cluster.spec("admin", "");
    let said = cluster.flat(0, &["job", "delete", "lost", "-i", INV, "--yes"]);
    assert!(said.contains("Service.core default/lost is gone"), "{said}");
}

/// An object that never changes is deleted to be recreated; somebody makes one in between.
pub fn what_is_half_made_anew_is_said(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let resource = CONFIG_MAP
        .replace(
            "    kubernetes_object:\n",
            "    kubernetes_object:\n      replace: true\n",
        )
        .replace(", data: {", ", immutable: true, data: {");
    cluster.resources(&resource);
    cluster.told(0, &["apply", INV, "--yes"]);
    let way = before(plane, &[&THEIRS], |line| {
        line.starts_with("PATCH ") && is_write(line)
    });
    through(&cluster, &way);
    cluster.resources(&resource.replace("desired", "another"));
    let said = cluster.flat(1, &["apply", INV, "--yes"]);
    let desired = [
        "kubectl-create made it by now, and it is left alone",
        "this step is half done: delete object ended well before it",
    ];
    assert!(
        desired.iter().all(|words| said.contains(words)) && !said.contains("RW0610"),
        "{said}"
    );
    assert_eq!(found(plane), PRECIOUS);
    plane.kubectl(&GONE);
}

/// What a lost answer left is ours: it is neither denied nor undone.
pub fn a_job_whose_answer_got_lost_is_submitted(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    for status in [500, 504] {
        let way = Meanwhile::lose(plane, status, 1, |line| {
            line.starts_with("POST /apis/apps/v1/namespaces/default/deployments?")
        });
        through(&cluster, &way);
        cluster.file("job.yaml", JOB);
        let said = cluster.flat(0, &["job", "submit", "job.yaml", "-i", INV]);
        assert!(
            said.contains("Deployment default/lost is submitted: 2 objects"),
            "{said}"
        );
        let there = plane.kubectl(&[
            "get",
            "deployment,service",
            "-l",
            "railwright.io/job=lost",
            "-o",
            "name",
        ]);
        assert_eq!(there, "deployment.apps/lost\nservice/lost\n");
        let again = cluster.flat(1, &["job", "submit", "job.yaml", "-i", INV]);
        assert!(
            again.contains("RW1243")
                && again.contains("Service.core default/lost is there already"),
            "{again}"
        );
        assert_eq!(
            plane.kubectl(&[
                "get",
                "deployment,service",
                "-l",
                "railwright.io/job=lost",
                "-o",
                "name"
            ]),
            there
        );
        plane.kubectl(&[
            "delete",
            "deployment,service",
            "-l",
            "railwright.io/job=lost",
        ]);
    }
}

/// A run that comes to its record only after another one, of a folder elsewhere, took the lock over
/// by force and wrote what it did.
pub fn a_run_that_slept_overwrites_no_record(plane: &ControlPlane) {
    let (slept, awake) = (Cluster::new(plane, "admin"), Cluster::new(plane, "admin"));
    slept.resources(CONFIG_MAP);
    slept.told(0, &["apply", INV, "--yes"]);
    awake.resources(
        &(CONFIG_MAP.replace("desired", "theirs") + &CONFIG_MAP.replace("conf", "other")),
    );
    let steals = awake.command(&["lock", "steal", INV, "--reason", "it hangs", "--force"]);
    let meanwhile = Mutex::new(vec![steals, awake.command(&["apply", INV, "--yes"])]);
    let way = Meanwhile::watch(plane, move |head| {
        let line = first_line(head);
        // The record itself, which is applied by force.
        if line.starts_with("PATCH /api/v1/namespaces/kube-system/secrets/railwright-train")
            && line.contains("force=true")
        {
            for mut command in meanwhile.lock().unwrap().drain(..) {
                let output = command.output().unwrap();
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    });
    through(&slept, &way);
    slept.resources(&CONFIG_MAP.replace("desired", "stale"));
    let said = slept.flat(3, &["apply", INV, "--yes"]);
    assert!(
        said.contains("RW0631: the cluster's lock is no longer this run's"),
        "{said}"
    );
    assert_eq!(
        plane.kubectl(&["get", "configmap", "conf", "-o", "jsonpath={.data.a}"]),
        "theirs"
    );
    assert!(awake.told(0, &["plan", INV]).contains("No changes."));
    // Whoever has no folder knows from the record what the other run made.
    let third = Cluster::new(plane, "admin");
    third.resources("  []\n");
    let plan = third.flat(0, &["plan", INV]);
    assert!(
        plan.contains("- kube/prod ConfigMap default/other")
            && plan.contains("- kube/prod ConfigMap default/conf"),
        "{plan}"
    );
    third.told(0, &["apply", INV, "--yes"]);
    assert_eq!(found(plane), "");
}
