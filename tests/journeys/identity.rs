//! Whose a host is, and which machine: another cluster's inventory, one machine under two names, a
//! host that was re-installed; each over a real OpenSSH server.

use crate::machine::Machine;

const NOTE: &str = "  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }\n  - id: token\n    file: { path: /etc/token, content: \"{{ secrets.t }}\", mode: \"0600\" }\n";

/// What the program says in one line, after it ended with this code.
fn told(machine: &Machine, code: i32, words: &[&str]) -> String {
    let said = machine.run(words);
    assert!(said.ends_with(&format!("--- exit {code} ---\n")), "{said}");
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The inventory `inv` of a machine with a file that names a secret.
fn start(story: &str) -> Option<Machine> {
    let machine = Machine::start(story, NOTE, &[])?;
    let spec = std::fs::read_to_string(machine.place.path().join("inv/cluster.yaml")).unwrap();
    machine.place.write(
        "inv/cluster.yaml",
        format!("{spec}secrets: {{ t: {{ file: token }} }}\n"),
    );
    machine.place.write("inv/token", "s3cret-token-value\n");
    Some(machine)
}

/// The spec of the inventory under another name, in a folder of its own.
fn copy(machine: &Machine, to: &str, change: impl Fn(&str) -> String) {
    let at = machine.place.path();
    for file in ["id", "known_hosts", "token", "modules/story/module.yaml"] {
        machine.place.write(
            &format!("{to}/{file}"),
            std::fs::read(at.join("inv").join(file)).unwrap(),
        );
    }
    let spec = std::fs::read_to_string(at.join("inv/cluster.yaml")).unwrap();
    machine
        .place
        .write(&format!("{to}/cluster.yaml"), change(&spec));
    machine.place.write(
        &format!("{to}/modules/story/module.yaml"),
        "module: story\nsummary: nothing\nresources: []\n",
    );
}

fn cluster_id(machine: &Machine) -> String {
    let state = std::fs::read(machine.place.path().join("inv/.railwright/state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    state["state"]["cluster"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn another_clusters_inventory_is_refused_until_it_takes_the_host_over() {
    let Some(machine) = start("another inventory") else {
        return;
    };
    told(&machine, 0, &["apply", "inv", "--yes"]);
    let id = cluster_id(&machine);
    copy(&machine, "zzz", |spec| {
        spec.replace("cluster: night", "cluster: zzz")
    });
    let plan = told(&machine, 4, &["plan", "zzz"]);
    let named = format!(
        "belongs to the cluster `night` (id {id}), which applied to it last; `zzz` of this \
         inventory has no id yet"
    );
    assert!(
        plan.contains("REFUSED: nothing is planned for these targets")
            && plan.contains("n1 the whole target RW0720"),
        "{plan}"
    );
    assert!(
        plan.contains(&named)
            && plan.contains("railwright state take-over zzz 'host/n1' --reason TEXT"),
        "{plan}"
    );
    assert!(
        !plan.contains("/etc/token") && !plan.contains("removed"),
        "{plan}"
    );
    told(&machine, 4, &["apply", "zzz", "--yes"]);
    assert!(told(&machine, 3, &["drift", "zzz"]).contains("RW0720"));
    told(&machine, 0, &["facts", "zzz", "-o", "zzz.json"]);
    assert!(told(&machine, 4, &["plan", "zzz", "--observations", "zzz.json"]).contains(&id));
    assert!(machine.file("/etc/token").is_some() && machine.file("/etc/note.conf").is_some());

    assert!(
        told(
            &machine,
            4,
            &["state", "take-over", "inv", "host/n1", "--reason", "x"]
        )
        .contains("RW0728"),
        "it is its own"
    );
    let taken = told(
        &machine,
        0,
        &[
            "state",
            "take-over",
            "zzz",
            "host/n1",
            "--reason",
            "n1 moved to zzz",
        ],
    );
    assert!(
        taken.contains("host/n1 taken over from the cluster `night`")
            && taken.contains("host/n1/file//etc/token"),
        "{taken}"
    );
    assert!(
        told(&machine, 0, &["plan", "zzz"]).contains("No changes."),
        "nothing of the other cluster is removed"
    );
    assert!(
        told(&machine, 0, &["state", "list", "zzz"])
            .contains("n1 moved to zzz 2 resources of it not managed here")
    );
    assert!(machine.file("/etc/token").is_some() && machine.file("/etc/note.conf").is_some());
    assert!(
        told(&machine, 4, &["plan", "inv"]).contains("belongs to the cluster `zzz`"),
        "the first one is refused from then on"
    );
    let back = told(
        &machine,
        0,
        &["state", "take-over", "inv", "n1", "--reason", "back"],
    );
    assert!(back.contains("taken over from the cluster `zzz`"), "{back}");
    assert!(
        told(&machine, 0, &["plan", "inv"]).contains("No changes. 2 resources"),
        "it remembers what it brought"
    );
}

#[test]
fn what_is_no_record_is_left_until_the_host_is_taken_over() {
    let Some(machine) = start("no record") else {
        return;
    };
    machine
        .host
        .must("echo 11111111111111111111111111111111 >/etc/machine-id");
    told(&machine, 0, &["apply", "inv", "--yes"]);
    // Another inventory, which knows the host by another name.
    copy(&machine, "z;touch PWNED;#", |spec| {
        spec.replace("cluster: night", "cluster: zzz")
            .replace("name: n1", "name: node1")
    });
    let z = "z;touch PWNED;#";
    let refused = |inventory: &str, code: &str| {
        let planned = told(&machine, 4, &["plan", inventory]);
        let before = machine
            .host
            .must("ls -lR --time-style=full-iso /var/lib/railwright /etc/token /etc/note.conf");
        assert!(planned.contains(code), "{planned}");
        told(&machine, 4, &["apply", inventory, "--yes"]);
        assert_eq!(
            machine
                .host
                .must("ls -lR --time-style=full-iso /var/lib/railwright /etc/token /etc/note.conf"),
            before
        );
        planned
    };
    let foreign = refused(z, "RW0720");
    assert!(
        foreign.contains("railwright state take-over 'z;touch PWNED;#' 'host/node1' --reason TEXT"),
        "{foreign}"
    );
    machine.host.must(
        "cp -p /var/lib/railwright/record.json /root/record.json; cp -p /etc/note.conf /root; echo \
         more >>/etc/note.conf",
    );
    // A plan of before its record could not be read any more.
    told(&machine, 0, &["plan", "inv", "-o", "planned"]);
    machine.host.must("cp -p /root/note.conf /etc/note.conf");
    for (breaks, of_another, own) in [
        (
            "sed -i 's/\"format_version\":\"/&9/' $r",
            "RW0720",
            "RW0736",
        ),
        (
            "sed -i 's/\"serial\":/&9999999999999999/' $r",
            "RW0720",
            "RW0736",
        ),
        ("truncate -s -40 $r", "RW0736", "RW0736"),
        ("truncate -s 9000000 $r", "RW0736", "RW0736"),
        ("rm $r; ln -s /nowhere $r", "RW0736", "RW0736"),
        ("rm $r; mkfifo $r", "RW0736", "RW0736"),
        ("rm $r; mkdir $r; touch $r/x", "RW0736", "RW0736"),
    ] {
        machine.host.must(&format!(
            "r=/var/lib/railwright/record.json; rm -rf $r; cp -p /root/record.json $r; {breaks}"
        ));
        refused(z, of_another);
        refused("inv", own);
        assert!(
            told(&machine, 4, &["apply", "planned", "--yes"]).contains(own),
            "{breaks}"
        );
    }
    let taken = told(
        &machine,
        0,
        &[
            "state",
            "take-over",
            "inv",
            "n1",
            "--reason",
            "somebody made a folder of it",
        ],
    );
    assert!(
        taken.contains(
            "what could not be read is kept there beside /var/lib/railwright/record.json as record-"
        ),
        "{taken}"
    );
    assert!(
        machine
            .host
            .must("ls /var/lib/railwright/record-*.json")
            .contains('x'),
        "it is still there"
    );
    assert!(
        told(&machine, 0, &["plan", "inv"]).contains("No changes. 2 resources"),
        "what this side remembers stands"
    );

    // The host gets another name: its machine-id tells that it is the same one.
    let spec = std::fs::read_to_string(machine.place.path().join("inv/cluster.yaml")).unwrap();
    machine
        .place
        .write("inv/cluster.yaml", spec.replace("name: n1", "name: node1"));
    let renamed = told(&machine, 0, &["plan", "inv"]);
    assert!(
        renamed.contains("RW0737")
            && renamed.contains("host/node1 was called `n1` when it was applied to last"),
        "{renamed}"
    );
    assert!(
        renamed.contains("2 resources on 1 host are in sync")
            && !renamed.contains("not managed yet"),
        "{renamed}"
    );
    // A record that holds what stood in many files before is read as a whole.
    machine.host.must(
        "cd /var/lib/railwright && sed 's/\"tool\":\"/&\\n/' record.json >/tmp/r && \
         { head -n 1 /tmp/r | tr -d '\\n'; head -c 400000 /dev/zero | tr '\\0' x; tail -n +2 /tmp/r; } \
         >record.json",
    );
    assert!(told(&machine, 0, &["plan", "inv"]).contains("No changes."));
}

#[test]
fn a_cluster_is_known_by_its_id_when_it_is_renamed_and_when_its_state_is_lost() {
    let Some(machine) = start("renamed and lost") else {
        return;
    };
    told(&machine, 0, &["apply", "inv", "--yes"]);
    let (id, state) = (
        cluster_id(&machine),
        machine.place.path().join("inv/.railwright"),
    );
    let spec = std::fs::read_to_string(machine.place.path().join("inv/cluster.yaml")).unwrap();
    machine.place.write(
        "inv/cluster.yaml",
        spec.replace("cluster: night", "cluster: day"),
    );
    let renamed = told(&machine, 0, &["plan", "inv"]);
    assert!(
        renamed.contains("RW0725")
            && renamed.contains("was called `night` before")
            && renamed.contains("No changes."),
        "{renamed}"
    );
    // Whoever has no state goes by the name alone.
    std::fs::rename(&state, machine.place.path().join("aside")).unwrap();
    assert!(told(&machine, 4, &["plan", "inv"]).contains("RW0720"));
    machine.place.write("inv/cluster.yaml", spec);
    assert!(told(&machine, 0, &["plan", "inv"]).contains("No changes."));
    machine.resource("  - id: more\n    file: { path: /etc/more.conf, content: \"more\\n\" }\n");
    told(&machine, 0, &["apply", "inv", "--yes"]);
    assert_eq!(
        (cluster_id(&machine), machine.file("/etc/token")),
        (id, None),
        "the record told what was to be taken back"
    );
}

#[test]
fn one_machine_under_two_names_is_found_before_it_is_changed() {
    let Some(machine) = start("one machine twice") else {
        return;
    };
    copy(&machine, "two", |spec| {
        let named = |name: &str| {
            format!(
                "  - {{ name: {name}, os: debian-12, ssh: {{ address: {name}, port: {} }} }}\n",
                machine.server.port
            )
        };
        let (head, _) = spec.split_once("nodes:").unwrap();
        format!("{head}nodes:\n{}{}", named("127.0.0.1"), named("localhost"))
    });
    let key = machine.server.line("ed25519");
    machine.place.write(
        "two/known_hosts",
        format!("{key}\n{}\n", key.replace("127.0.0.1", "localhost")),
    );
    machine.place.write(
        "two/modules/story/module.yaml",
        format!(
            "module: story\nsummary: s\nresources:\n{}",
            NOTE.split("  - id: token").next().unwrap()
        ),
    );
    let plan = told(&machine, 4, &["plan", "two"]);
    assert!(
        plan.contains("RW0721")
            && plan.contains("is one machine under the names host/127.0.0.1,localhost"),
        "{plan}"
    );
    told(&machine, 4, &["apply", "two", "--yes"]);
    assert_eq!(machine.file("/etc/note.conf"), None);
}

#[test]
fn a_host_that_was_reinstalled_gets_nothing_of_the_old_image() {
    let Some(machine) = start("re-imaged host") else {
        return;
    };
    machine.host.must(
        "echo OLD-IMAGE >/etc/note.conf; echo 11111111111111111111111111111111 >/etc/machine-id",
    );
    told(&machine, 0, &["apply", "inv", "--yes"]);
    // Somebody deletes the record: the machine is the same, and what is remembered stays.
    machine.host.must("rm /var/lib/railwright/record.json");
    let same = told(&machine, 0, &["plan", "inv"]);
    assert!(
        same.contains("No changes.") && !same.contains("RE-INSTALLED"),
        "{same}"
    );
    machine.host.must(
        "echo NEW-IMAGE >/etc/note.conf; rm -f /etc/token; echo 22222222222222222222222222222222 \
         >/etc/machine-id",
    );
    let drift = told(&machine, 2, &["drift", "inv"]);
    assert!(
        drift.contains("RW0723")
            && drift.contains("2 resources that were applied to the machine before are set aside"),
        "{drift}"
    );
    machine.place.write(
        "inv/modules/story/module.yaml",
        "module: story\nsummary: nothing\nresources: []\n",
    );
    let plan = told(&machine, 0, &["plan", "inv"]);
    assert!(
        plan.contains("RE-INSTALLED: planned like new hosts")
            && plan.contains("(2 resources) is set aside"),
        "{plan}"
    );
    told(&machine, 0, &["apply", "inv", "--yes"]);
    assert_eq!(
        machine.file("/etc/note.conf").as_deref(),
        Some("NEW-IMAGE\n")
    );
    let next = told(&machine, 0, &["plan", "inv"]);
    assert!(!next.contains("RE-INSTALLED"), "it is written down: {next}");
}
