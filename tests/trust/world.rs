//! Inventories that somebody wrote to run something, or to have something read, on the machine of
//! whoever only looks at them.

use crate::trace::Trace;
use railwright_resource::Observation;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_railwright");

/// The ways in which an inventory is hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hostile {
    /// A valid spec that names programs and foreign files wherever it can, in a clone whose
    /// inventory folder holds the files of a bare repository with a filter.
    Repository,
    /// That inventory unpacked from a tarball, with a `.git` that is made to run things.
    Tarball,
    /// That inventory, with a `.git` that is a file that names a repository elsewhere.
    GitFile,
    /// Links that lead out of the folder in the places of modules, spec files and state.
    LinkedModules,
    LinkedState,
    LinkedRuns,
    LinkedSpec,
    /// A template is a link to another file of the inventory.
    LinkedTemplate,
    /// The cabling file is a file of the process.
    Cabling,
    /// A spec that is not valid.
    Wrong,
}

impl Hostile {
    pub const ALL: [Hostile; 10] = [
        Hostile::Repository,
        Hostile::Tarball,
        Hostile::GitFile,
        Hostile::LinkedModules,
        Hostile::LinkedState,
        Hostile::LinkedRuns,
        Hostile::LinkedSpec,
        Hostile::LinkedTemplate,
        Hostile::Cabling,
        Hostile::Wrong,
    ];

    /// Whether a command comes to read its spec.
    pub fn is_read(self) -> bool {
        !matches!(self, Hostile::LinkedState | Hostile::LinkedRuns)
    }
}

/// A folder with the inventory `inv`, files that are given to commands, and what lies outside.
pub struct World(tempfile::TempDir);

/// What files outside hold; a screen that has one of these words quotes a file that is none of its
/// business.
const FOREIGN: [&str; 7] = [
    "FOREIGN-ID",
    "FOREIGN-HOSTS",
    "FOREIGN-CERTIFICATE",
    "FOREIGN-KEY",
    "FOREIGN-SECRET",
    "FOREIGN-VARIABLE",
    "FOREIGN-TOKEN",
];

const SPEC: &str = r#"cluster: hostile
fabric:
  kind: rocev2
  mtu: 9000
  lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } }
ssh: { user: root, host_keys: ../outside/known_hosts, identities: [../outside/id, linked-id], config: true }
nodes:
  - name: node[1-2]
    ssh: { address: "127.0.0.{index}", port: 9 }
    os: debian-12
    iommu: pt
    nics: { model: soft-roce, netdev: ens1f0np0, address: "192.168.77.{index}/24" }
    gpu: { model: H100, count: 8 }
switches:
  - name: leaf1
    os: eos
    ports: Ethernet1
    eapi: { address: 127.0.0.1, port: 9, user: u, password: { command: [./password] }, certificate: ../outside/certificate.pem }
kubernetes:
  kubeconfig: kubeconfig
  rdma: { plugin: shared, resources: { rdma_shared_device_a: rail 0 }, max: 63 }
repositories:
  - { name: one, url: "http://10.0.2.2/", suite: ./, key: ../outside/key.asc }
  - { name: two, url: "http://10.0.2.3/", suite: ./, key: linked-key.asc }
secrets:
  program: { command: [./secret] }
  outside: { file: ../outside/secret }
  linked: { file: linked-secret }
modules: { agent: { enabled: true } }
cabling: cabling.csv
"#;

const MODULE: &str = r#"module: agent
summary: A module that asks for every secret, and a chart that is elsewhere
resources:
  - id: file
    file: { path: /etc/agent, mode: "0600", content: "{{ secrets.program }}{{ secrets.outside }}{{ secrets.linked }}\n" }
"#;

const KUBECONFIG: &str = r#"apiVersion: v1
kind: Config
current-context: a
contexts: [{ name: a, context: { cluster: a, user: a } }]
clusters: [{ name: a, cluster: { server: "https://127.0.0.1:9", insecure-skip-tls-verify: true } }]
users: [{ name: a, user: { exec: { apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never } } }]
"#;

impl World {
    pub fn new(hostile: Hostile) -> Self {
        let world = World(tempfile::tempdir().unwrap());
        world.outside();
        world.inventory_of(hostile);
        world.repository(hostile);
        world
    }

    /// The inventory's folder.
    pub fn inventory(&self) -> PathBuf {
        self.path("inv")
    }

    /// What a command may open: the inventory, what its command line names, and what the operator's
    /// own clone says of its commit.
    pub fn given(&self) -> [PathBuf; 3] {
        [self.inventory(), self.path("given"), self.path(".git")]
    }

    /// The top of the operator's clone, which may be opened, and nothing else in it.
    pub fn top(&self) -> PathBuf {
        self.path("")
    }

    /// What must stand on no screen.
    pub fn foreign_words(&self) -> impl Iterator<Item = &'static str> {
        FOREIGN.into_iter()
    }

    /// Runs the program as an operator would.
    pub fn run(&self, words: &[&str]) -> (Trace, i32, String) {
        Trace::of(PROGRAM, words, |command| {
            command.current_dir(self.path("")).env_clear();
            command
                .env("HOME", self.path("home"))
                .env("PATH", "/usr/bin:/bin")
                .env("AN_OPERATORS_TOKEN", "FOREIGN-VARIABLE");
        })
    }

    /// The commit of the clone.
    pub fn commit(&self) -> String {
        fs::read_to_string(self.path(".git/refs/heads/main"))
            .unwrap()
            .trim()
            .to_owned()
    }

    /// Whether this is the program of a row: one of the inventory, or one of the machine with its
    /// first argument.
    pub fn is_program(&self, words: &[String], program: &str) -> bool {
        match program.strip_prefix("./") {
            Some(_) => {
                words[0] == self.inventory().join(program).display().to_string()
                    || words[0] == self.inventory().join(&program[2..]).display().to_string()
            }
            None => {
                let (name, first) = program.split_once(' ').unwrap_or((program, ""));
                words[0].ends_with(&format!("/{name}"))
                    && (first.is_empty() || words.get(1).is_some_and(|word| word == first))
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A program that leaves word of itself.
    fn program(&self, name: &str) -> PathBuf {
        self.write(name, "#!/bin/sh\necho an-answer-of-somebody\n");
        let path = self.path(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn outside(&self) {
        let key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\
                   \n\
                   FOREIGN-KEY\n\
                   -----END PGP PUBLIC KEY BLOCK-----\n";
        self.write("outside/id", "FOREIGN-ID\n")
            .write("outside/known_hosts", "FOREIGN-HOSTS\n");
        self.write("outside/certificate.pem", "FOREIGN-CERTIFICATE\n")
            .write("outside/key.asc", key)
            .write("outside/secret", "FOREIGN-SECRET\n");
        self.write(
            "outside/modules/m/module.yaml",
            "module: m\nsummary: FOREIGN-KEY\n",
        )
        .write("outside/spec.yaml", "cluster: FOREIGN-KEY\n");
        self.write("outside/state/runs/r0001-abcdef/journal.jsonl", "{}")
            .write("outside/state/runs/r0001-abcdef/plan.json", "{}");
        self.write("outside/state/state.json", "{}")
            .write("home/.kube/config", "FOREIGN-ID\n")
            .write("home/.ssh/id_ed25519", "FOREIGN-ID\n");
        self.write("given/observations.json", &observations());
        self.write("given/log", "node1: NCCL INFO nothing\n")
            .write("given/script.sh", "ls\n")
            .write("given/root/etc/os-release", "ID=debian\n");
        self.write("given/plan.json", plan());
        let job = "apiVersion: kubeflow.org/v2beta1\n\
                   kind: MPIJob\n\
                   metadata: { name: j }\n\
                   spec: { mpiReplicaSpecs: {} }\n";
        self.write("given/job.yaml", job);
    }

    fn inventory_of(&self, hostile: Hostile) {
        for name in ["secret", "password", "plugin", "filter"] {
            self.program(&format!("inv/{name}"));
        }
        for (link, name) in [
            ("linked-id", "id"),
            ("linked-key.asc", "key.asc"),
            ("linked-secret", "secret"),
        ] {
            symlink(format!("../outside/{name}"), self.path("inv").join(link)).unwrap();
        }
        self.write("inv/modules/agent/module.yaml", MODULE)
            .write("inv/kubeconfig", KUBECONFIG);
        self.write(
            "inv/cabling.csv",
            "host,nic,switch,port\nnode1,ens1f0np0,leaf1,Ethernet1\n",
        );
        let spec = match hostile {
            Hostile::Wrong => SPEC.replace("mtu: 9000", "mtu: 1"),
            Hostile::Cabling => SPEC.replace("cabling: cabling.csv", "cabling: /proc/self/environ"),
            _ => SPEC.to_owned(),
        };
        self.write("inv/cluster.yaml", &spec);
        match hostile {
            Hostile::LinkedModules => {
                fs::remove_dir_all(self.path("inv/modules")).unwrap();
                symlink("../outside/modules", self.path("inv/modules")).unwrap();
            }
            Hostile::LinkedState => {
                symlink("../outside/state", self.path("inv/.railwright")).unwrap()
            }
            Hostile::LinkedRuns => {
                self.write("inv/.railwright/fence", "7");
                symlink(
                    "../../outside/state/runs",
                    self.path("inv/.railwright/runs"),
                )
                .unwrap();
            }
            Hostile::LinkedSpec => {
                symlink("../outside/spec.yaml", self.path("inv/more.yaml")).unwrap()
            }
            Hostile::LinkedTemplate => {
                let module = MODULE.replace(
                    r#"content: "{{ secrets"#,
                    "template: t }\n  - id: other\n    file: { path: /etc/b, mode: \"0600\", content: \"{{ secrets",
                );
                self.write("inv/token", "FOREIGN-TOKEN\n")
                    .write("inv/modules/agent/module.yaml", &module);
                fs::create_dir(self.path("inv/modules/agent/templates")).unwrap();
                symlink("../../../token", self.path("inv/modules/agent/templates/t")).unwrap();
            }
            _ => {}
        }
    }

    /// The inventory is a folder of a clone, of which git would take it for a repository of its
    /// own.
    fn clone_around(&self) {
        let top = self.path("");
        git(&top, &["init", "-q", "-b", "main"]);
        git(
            &top,
            &[
                "add",
                "inv/cluster.yaml",
                "inv/modules",
                "inv/config",
                "inv/HEAD",
                "inv/cabling.csv",
            ],
        );
        git(&top, &["commit", "-qm", "first"]);
    }

    /// What git would run, if somebody ran git.
    fn repository(&self, hostile: Hostile) {
        let inventory = self.inventory();
        let program = inventory.join("filter").display().to_string();
        let config = format!(
            "[core]\n\
             \trepositoryformatversion = 0\n\
             \tbare = false\n\
             \tworktree = .\n\
             \tfsmonitor = {program}\n\
             \tpager = {program}\n\
             \thooksPath = .\n\
             [filter \"x\"]\n\
             \tclean = {program}\n\
             \tprocess = {program}\n\
             \trequired\n\
             [diff \"x\"]\n\
             \ttextconv = {program}\n\
             [include]\n\
             \tpath = {}\n",
            self.path("outside/included").display(),
        );
        self.write(
            "inv/.gitattributes",
            "*.txt filter=x diff=x\n*.yaml filter=x diff=x\n",
        )
        .write("inv/data.txt", "one\n");
        git(&inventory, &["init", "-q", "-b", "main"]);
        git(&inventory, &["add", "data.txt", "cluster.yaml"]);
        git(&inventory, &["commit", "-qm", "first"]);
        self.write("inv/data.txt", "other\n");
        match hostile {
            Hostile::Tarball => {
                self.write("inv/.git/config", &config).write(
                    "inv/.git/objects/info/alternates",
                    &self.path("outside").display().to_string(),
                );
                self.write("inv/.git/info/attributes", "* filter=x\n");
            }
            Hostile::GitFile => {
                self.write("inv/.git/config", &config);
                fs::rename(inventory.join(".git"), self.path("outside/repository")).unwrap();
                self.write(
                    "inv/.git",
                    &format!("gitdir: {}\n", self.path("outside/repository").display()),
                );
            }
            _ => {
                for name in ["HEAD", "objects", "refs", "index"] {
                    fs::rename(inventory.join(".git").join(name), inventory.join(name)).unwrap();
                }
                fs::remove_dir_all(inventory.join(".git")).unwrap();
                self.write("inv/config", &config);
                self.clone_around();
            }
        }
    }
}

/// An observation of no target, with the keys that were read where targets were contacted.
fn observations() -> String {
    let key =
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nRECORDED\n-----END PGP PUBLIC KEY BLOCK-----\n";
    let mut observation = Observation::at("2026-01-01T00:00:00Z".to_owned());
    observation.texts.extend(
        ["../outside/key.asc", "linked-key.asc"].map(|name| (name.to_owned(), key.to_owned())),
    );
    serde_json::to_string(&observation).unwrap()
}

/// A plan file of a small inventory that lay at the same path.
fn plan() -> &'static str {
    static PLAN: OnceLock<String> = OnceLock::new();
    PLAN.get_or_init(|| {
        let world = World(tempfile::tempdir().unwrap());
        world
            .write("inv/cluster.yaml", "cluster: hostile\n")
            .write("observations.json", &observations());
        let words = [
            "plan",
            "inv",
            "--observations",
            "observations.json",
            "-o",
            "plan.json",
        ];
        let made = Command::new(PROGRAM)
            .args(words)
            .current_dir(world.path(""))
            .output()
            .unwrap();
        fs::read_to_string(world.path("plan.json")).unwrap_or_else(|_| panic!("{made:?}"))
    })
}

/// With no configuration but what is said here, so that nothing of the test's own files is run by
/// the test.
fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git")
        .current_dir(folder)
        .env_clear()
        .envs([
            ("PATH", "/usr/bin:/bin"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ])
        .envs([
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
        ])
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
}
