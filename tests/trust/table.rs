//! Every command of the program: what it runs, opens and contacts.

/// What a command touches besides the inventory and what its command line names.
#[derive(Debug, Clone, Copy)]
pub enum Touches {
    /// It runs no program, opens no file outside the inventory and connects to nothing.
    Nothing,
    /// It contacts targets: it may open what the spec names for that, and run these programs and no
    /// others. `./NAME` is one of the inventory.
    Targets {
        why: &'static str,
        runs: &'static [&'static str],
    },
    /// It reads no inventory at all; why.
    NoInventory(&'static str),
}

/// A command, and one way to call it.
pub struct Row {
    pub command: &'static str,
    /// In a folder with the inventory `inv` and the folder `given`.
    pub words: &'static [&'static str],
    pub touches: Touches,
    /// How it may end where the spec is valid and no target answers.
    pub exits: &'static [i32],
}

impl Row {
    /// It needs the state folder alone, so that a broken spec does not stand in its way.
    pub fn is_about_state_alone(&self) -> bool {
        self.command.starts_with("rollout ")
    }
}

/// `ssh -G`: what the operator's own configuration says of a host.
const SSH: &str = "ssh -G";
/// The exec plugin of the kubeconfig.
const PLUGIN: &str = "./plugin";
/// The program that prints the password of a switch's API, without which nobody can log in there.
const PASSWORD: &str = "./password";
/// The program of a secret that files on targets hold.
const SECRET: &str = "./secret";
/// The program that ends another.
const KILL: &str = "sh -c";

const fn nothing(
    command: &'static str,
    words: &'static [&'static str],
    exits: &'static [i32],
) -> Row {
    Row {
        command,
        words,
        touches: Touches::Nothing,
        exits,
    }
}

const fn targets(
    command: &'static str,
    words: &'static [&'static str],
    exits: &'static [i32],
    why: &'static str,
    runs: &'static [&'static str],
) -> Row {
    Row {
        command,
        words,
        touches: Touches::Targets { why, runs },
        exits,
    }
}

const fn none(command: &'static str, why: &'static str) -> Row {
    Row {
        command,
        words: &[],
        touches: Touches::NoInventory(why),
        exits: &[],
    }
}

const ALL: &[&str] = &[SSH, PLUGIN, PASSWORD, SECRET, KILL];
const LOOKS: &[&str] = &[SSH, PLUGIN, PASSWORD, KILL];
const CLUSTER: &[&str] = &[PLUGIN];

pub const ROWS: &[Row] = &[
    nothing("validate", &["validate", "inv"], &[0]),
    nothing("validate", &["validate", "inv", "--json"], &[0]),
    nothing(
        "plan",
        &["plan", "inv", "--observations", "given/observations.json"],
        &[3],
    ),
    targets(
        "plan",
        &["plan", "inv"],
        &[3],
        "reads the targets, and compares files that hold secrets",
        ALL,
    ),
    nothing("show", &["show", "given/plan.json"], &[0]),
    targets(
        "apply",
        &["apply", "inv", "--yes"],
        &[3],
        "changes the targets",
        ALL,
    ),
    targets(
        "apply",
        &["apply", "given/plan.json", "--yes"],
        &[0, 3, 4],
        "changes the targets",
        ALL,
    ),
    targets(
        "resume",
        &["resume", "inv"],
        &[4],
        "changes the targets",
        ALL,
    ),
    nothing("rollout status", &["rollout", "status", "inv"], &[1]),
    nothing("rollout pause", &["rollout", "pause", "inv"], &[4]),
    nothing("rollout continue", &["rollout", "continue", "inv"], &[4]),
    nothing("rollout abort", &["rollout", "abort", "inv"], &[4]),
    targets(
        "lock list",
        &["lock", "list", "inv"],
        &[3],
        "reads the locks on the targets; no lock holds a secret",
        LOOKS,
    ),
    targets(
        "lock steal",
        &["lock", "steal", "inv", "--reason", "r"],
        &[3],
        "writes the locks on the targets; no lock holds a secret",
        LOOKS,
    ),
    targets(
        "verify",
        &["verify", "inv"],
        &[3, 1],
        "sends traffic between the hosts",
        ALL,
    ),
    targets(
        "verify cabling",
        &["verify", "cabling", "inv"],
        &[3],
        "reads LLDP of hosts and switches",
        LOOKS,
    ),
    targets(
        "verify fabric",
        &["verify", "fabric", "inv", "--for", "0s"],
        &[3],
        "reads hosts and switches",
        LOOKS,
    ),
    nothing(
        "verify fabric",
        &[
            "verify",
            "fabric",
            "inv",
            "--observations",
            "given/observations.json",
        ],
        &[3],
    ),
    targets(
        "watch traffic",
        &["watch", "traffic", "inv", "--for", "1s"],
        &[3],
        "reads counters of the hosts",
        LOOKS,
    ),
    nothing(
        "doctor",
        &["doctor", "--log", "given/log", "-i", "inv"],
        &[3],
    ),
    targets(
        "doctor",
        &["doctor", "j", "-i", "inv"],
        &[1, 3],
        "reads the job's pods in the cluster",
        CLUSTER,
    ),
    targets(
        "discover cabling",
        &["discover", "cabling", "inv"],
        &[3],
        "reads LLDP of hosts and switches",
        LOOKS,
    ),
    nothing(
        "drift",
        &["drift", "inv", "--observations", "given/observations.json"],
        &[3],
    ),
    targets(
        "drift",
        &["drift", "inv"],
        &[3],
        "reads the targets, and compares files that hold secrets",
        ALL,
    ),
    targets(
        "facts",
        &["facts", "inv", "-o", "given/facts.json"],
        &[3],
        "reads the targets, and seals files that hold secrets",
        ALL,
    ),
    nothing("state list", &["state", "list", "inv"], &[0]),
    nothing(
        "state show",
        &["state", "show", "inv", "host/node1/file/x"],
        &[1],
    ),
    nothing(
        "state forget",
        &["state", "forget", "inv", "host/node1/file/x"],
        &[1],
    ),
    nothing(
        "state return-to-service",
        &[
            "state",
            "return-to-service",
            "inv",
            "node1",
            "--reason",
            "r",
        ],
        &[1, 4],
    ),
    targets(
        "state take-over",
        &["state", "take-over", "inv", "host/node1", "--reason", "r"],
        &[1, 4],
        "reads and writes records on the targets, and compares files that hold secrets",
        ALL,
    ),
    nothing("sudoers", &["sudoers", "inv"], &[0]),
    nothing("rbac", &["rbac", "inv", "--role", "jobs"], &[0]),
    targets(
        "rbac",
        &["rbac", "inv"],
        &[0],
        "asks the API server about kinds that neither Kubernetes nor the inventory defines",
        CLUSTER,
    ),
    nothing("graph", &["graph", "given/plan.json"], &[0]),
    nothing("explain", &["explain", "host/node1", "inv"], &[0]),
    nothing("explain", &["explain", "switch/leaf1", "inv"], &[0]),
    nothing("explain", &["explain", "kube/hostile", "inv"], &[0]),
    nothing("explain", &["explain", "RW9999", "inv"], &[1]),
    nothing("catalog", &["catalog", "gpu", "--inventory", "inv"], &[0]),
    nothing("rules", &["rules", "inv"], &[0]),
    nothing(
        "translate",
        &["translate", "--file", "given/script.sh"],
        &[3],
    ),
    nothing(
        "job render nccl-test",
        &["job", "render", "nccl-test", "-i", "inv", "--image", "x:1"],
        &[0],
    ),
    nothing(
        "job render pytorch",
        &[
            "job", "render", "pytorch", "-i", "inv", "--image", "x:1", "--name", "j", "python",
            "t.py",
        ],
        &[0],
    ),
    nothing(
        "job render ray",
        &["job", "render", "ray", "-i", "inv", "--image", "x:1"],
        &[1],
    ),
    nothing(
        "job render acs",
        &[
            "job", "render", "acs", "-i", "inv", "--image", "x:1", "--name", "j", "--", "python",
            "t.py",
        ],
        &[1],
    ),
    nothing(
        "job render perftest-pods",
        &[
            "job",
            "render",
            "perftest-pods",
            "-i",
            "inv",
            "--image",
            "x:1",
        ],
        &[0],
    ),
    nothing(
        "job render compare nccl-test",
        &[
            "job",
            "render",
            "compare",
            "nccl-test",
            "-i",
            "inv",
            "--image",
            "x:1",
        ],
        &[0],
    ),
    nothing(
        "job render compare pytorch",
        &[
            "job", "render", "compare", "pytorch", "-i", "inv", "--image", "x:1", "--name", "j",
            "python", "t.py",
        ],
        &[0],
    ),
    nothing(
        "job from-arena",
        &[
            "job",
            "from-arena",
            "arena submit pytorch --name=j --image=x:1 --gpus=1 'python t.py'",
            "-i",
            "inv",
        ],
        &[0],
    ),
    targets(
        "job submit",
        &["job", "submit", "given/job.yaml", "-i", "inv"],
        &[1, 3],
        "makes objects in the cluster",
        CLUSTER,
    ),
    targets(
        "job run nccl-test",
        &["job", "run", "nccl-test", "-i", "inv", "--on", "node[1-2]"],
        &[1, 3, 4],
        "runs a job on the hosts",
        &[SSH],
    ),
    targets(
        "job run pytorch",
        &["job", "run", "pytorch", "-i", "inv", "--on", "node[1-2]"],
        &[1, 3, 4],
        "runs a job on the hosts",
        &[SSH],
    ),
    targets(
        "job list",
        &["job", "list", "-i", "inv"],
        &[1, 3],
        "reads the cluster",
        CLUSTER,
    ),
    targets(
        "job watch",
        &["job", "watch", "j", "-i", "inv"],
        &[1, 3],
        "reads the cluster",
        CLUSTER,
    ),
    nothing(
        "job prove",
        &["job", "prove", "--log", "given/log", "-i", "inv"],
        &[3],
    ),
    targets(
        "job prove",
        &["job", "prove", "j", "-i", "inv"],
        &[1, 3],
        "reads the job's pods in the cluster",
        LOOKS,
    ),
    nothing(
        "job compare",
        &[
            "job",
            "compare",
            "--log",
            "given/log",
            "--log",
            "given/log",
            "-i",
            "inv",
        ],
        &[3],
    ),
    targets(
        "job compare",
        &["job", "compare", "j", "-i", "inv"],
        &[1, 3],
        "reads the jobs' pods in the cluster",
        CLUSTER,
    ),
    targets(
        "job delete",
        &["job", "delete", "j", "-i", "inv"],
        &[1, 3, 4],
        "deletes objects of the cluster",
        CLUSTER,
    ),
    nothing(
        "image render",
        &[
            "image", "render", "-i", "inv", "--base", "x:1", "--suite", "jammy",
        ],
        &[0],
    ),
    nothing(
        "image check",
        &["image", "check", "--root", "given/root", "-i", "inv"],
        &[1],
    ),
    targets(
        "image check",
        &["image", "check", "--pod", "p", "-i", "inv"],
        &[1, 3],
        "runs programs in a pod of the cluster",
        CLUSTER,
    ),
    nothing("schema", &["schema"], &[0]),
    nothing("version", &["version"], &[0]),
    none("lab up", "starts machines of its own"),
    none("lab status", "looks at machines of its own"),
    none("lab ssh", "logs in to machines of its own"),
    none("lab kubectl", "asks the control plane of its own machines"),
    none(
        "lab reset",
        "takes machines of its own back to their beginning",
    ),
    none("lab down", "ends machines of its own"),
    none(
        "lab serve",
        "serves the packages of the lab to its machines",
    ),
    none("lab switch", "is a switch between machines of the lab"),
];
