//! The ground of a write is gone, or was never there: another run has the lock, somebody else has
//! the object by now, or what answered is no API server.

use crate::cluster::Cluster;
use crate::meanwhile::{Meanwhile, first_line};
use crate::rig::ControlPlane;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const INV: &str = "inv";

fn config_map(name: &str, after: &str, text: &str) -> String {
    format!(
        "  - id: {name}\n    after: [{after}]\n    kubernetes_object:\n      manifest: {{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name}, namespace: \
         default }}, data: {{ a: {text} }} }}\n"
    )
    .replace("    after: []\n", "")
}

fn through(cluster: &Cluster<'_>, way: &Meanwhile) {
    cluster.file("inv/way.kubeconfig", &way.kubeconfig());
    cluster.file(
        "inv/cluster.yaml",
        "cluster: train\nkubernetes: { name: prod, kubeconfig: way.kubeconfig }\n",
    );
}

/// Runs these once, as soon as a request comes whose first line is met.
fn once(
    plane: &ControlPlane,
    commands: Vec<Command>,
    is_met: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> Meanwhile {
    let commands = Mutex::new(commands);
    Meanwhile::watch(plane, move |head| {
        if is_met(&first_line(head)) {
            for mut command in commands.lock().unwrap().drain(..) {
                let output = command.output().unwrap();
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    })
}

fn text_of(plane: &ControlPlane, name: &str) -> String {
    plane.kubectl(&[
        "get",
        "configmap",
        name,
        "--ignore-not-found",
        "-o",
        "jsonpath={.data.a}",
    ])
}

/// Its own heartbeat was a moment ago, and nobody has told it: the cluster's lock itself does,
/// right before the next write.
pub fn a_run_whose_lock_was_taken_over_writes_nothing_more(plane: &ControlPlane) {
    let (stale, awake) = (Cluster::new(plane, "admin"), Cluster::new(plane, "admin"));
    let both = |text: &str| config_map("first", "", text) + &config_map("second", "first", text);
    awake.resources(&both("theirs"));
    let commands = vec![
        awake.command(&["lock", "steal", INV, "--reason", "it hangs", "--force"]),
        awake.command(&["apply", INV, "--yes"]),
    ];
    let has_written = AtomicBool::new(false);
    let way = once(plane, commands, move |line| {
        let is_write = line.starts_with("PATCH /api/v1/namespaces/default/configmaps/first?")
            && !line.contains("dryRun");
        has_written.fetch_or(is_write, Ordering::Relaxed);
        has_written.load(Ordering::Relaxed)
            && line.starts_with("GET /api/v1/namespaces/default/configmaps/second ")
    });
    through(&stale, &way);
    stale.resources(&both("stale"));
    let said = stale.flat(3, &["apply", INV, "--yes"]);
    assert!(
        said.contains("RW0631: the cluster's lock is no longer this run's"),
        "{said}"
    );
    assert_eq!(
        (
            text_of(plane, "first").as_str(),
            text_of(plane, "second").as_str()
        ),
        ("theirs", "theirs")
    );
    awake.resources("  []\n");
    awake.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text_of(plane, "second"), "");
}

/// Somebody's server, or a store that lost its disk: the lock of a dead run is taken away again and
/// again, and stays.
pub fn a_lock_that_is_only_said_to_be_let_go_is_told(plane: &ControlPlane) {
    let (killed, next) = (Cluster::new(plane, "admin"), Cluster::new(plane, "admin"));
    let process = Arc::new(AtomicU32::new(0));
    let of_child = process.clone();
    let way = Meanwhile::watch(plane, move |head| {
        let line = first_line(head);
        if line.starts_with("PATCH /api/v1/namespaces/default/configmaps/conf?")
            && !line.contains("dryRun")
        {
            let killed = Command::new("kill")
                .args(["-KILL", &of_child.load(Ordering::Relaxed).to_string()])
                .status();
            assert!(killed.is_ok_and(|status| status.success()));
        }
    });
    through(&killed, &way);
    killed.resources(&config_map("conf", "", "desired"));
    let mut child = killed.command(&["apply", INV, "--yes"]).spawn().unwrap();
    process.store(child.id(), Ordering::Relaxed);
    assert!(!child.wait().unwrap().success());
    let way = Meanwhile::pretend(plane, |line| {
        line.starts_with("PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/")
    });
    through(&next, &way);
    next.resources(&config_map("conf", "", "other"));
    let said = next.flat(4, &["apply", INV, "--yes"]);
    assert!(said.contains("is that holder's as before"), "{said}");
    next.spec("admin", "");
    next.resources("  []\n");
    next.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["delete", "configmap", "conf", "--ignore-not-found"]);
}

/// Taken over by somebody, with our mark on it or not, in the last moment before it is deleted.
pub fn what_changes_hands_in_the_last_moment_is_not_deleted(plane: &ControlPlane) {
    let theirs = plane.work().join("theirs.yaml");
    std::fs::write(
        &theirs,
        "apiVersion: v1\n\
         kind: ConfigMap\n\
         metadata: { name: conf, namespace: default, labels: { railwright.io/part-of: train } }\n\
         data: { a: precious }\n",
    )
    .unwrap();
    let applied = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=argocd",
        "-f",
        theirs.to_str().unwrap(),
    ];
    for words in [
        [
            "annotate",
            "configmap",
            "conf",
            "railwright.io/adopted=true",
        ]
        .as_slice(),
        &applied,
    ] {
        let cluster = Cluster::new(plane, "admin");
        cluster.resources(&config_map("conf", "", "desired"));
        cluster.told(0, &["apply", INV, "--yes"]);
        let way = once(plane, vec![plane.kubectl_command(words)], |line| {
            line.starts_with("DELETE /api/v1/namespaces/default/configmaps/conf")
        });
        through(&cluster, &way);
        cluster.resources("  []\n");
        let said = cluster.flat(3, &["apply", INV, "--yes"]);
        assert!(
            said.contains("RW0610") && said.contains("is left alone"),
            "{said}"
        );
        assert!(!text_of(plane, "conf").is_empty(), "{words:?}");
        plane.kubectl(&["delete", "configmap", "conf"]);
    }
}

/// A gateway answers for the server: neither the record nor an object is absent by its word.
pub fn a_404_of_something_between_is_no_absence(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&config_map("conf", "", "desired"));
    cluster.told(0, &["apply", INV, "--yes"]);
    cluster.resources("  []\n");
    let secret = |line: &str| {
        line.starts_with("GET /api/v1/namespaces/kube-system/secrets/railwright-train")
    };
    let way = Meanwhile::answer(plane, 404, r#"{"error":"no route"}"#, secret);
    through(&cluster, &way);
    assert!(cluster.flat(3, &["plan", INV]).contains("RW0416"));
    cluster.flat(3, &["apply", INV, "--yes"]);
    let objects = |line: &str| {
        line.starts_with("GET /api/v1/namespaces/default/") || line.starts_with("GET /api/v1 ")
    };
    for body in [
        r#"{"kind":"Status","message":"default backend - 404"}"#,
        "404 page not found",
    ] {
        let way = Meanwhile::answer(plane, 404, body, objects);
        through(&cluster, &way);
        let said = cluster.command(&["apply", INV, "--yes"]).output().unwrap();
        assert_ne!(
            said.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&said.stdout)
        );
        assert_eq!(text_of(plane, "conf"), "desired");
    }
    // It was neither forgotten nor taken for done.
    cluster.spec("admin", "");
    assert!(
        cluster
            .flat(0, &["plan", INV])
            .contains("- kube/prod ConfigMap default/conf")
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(text_of(plane, "conf"), "");
}
