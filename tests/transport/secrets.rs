//! The story of a secret at the command line, over a real OpenSSH server: it reaches the host, and
//! is found nowhere else, neither in what railwright writes and says nor in the arguments of any
//! program that runs there or here.

use crate::server::{Server, public};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The words that are looked for; each stands in a secret of its own, the last two in what was on
/// the host before.
const POISONS: [&str; 6] = [
    "t0kenPoisonOne",
    "t0kenPoisonTwo",
    "p1nPoison",
    "k3yPoisonLine",
    "takenOverPoison",
    "byHandPoison",
];

struct Story {
    server: Server,
    place: tempfile::TempDir,
    token: Option<&'static str>,
    /// All that was said, on both streams.
    said: String,
}

impl Story {
    fn begin() -> Option<Self> {
        let server = Server::start_watched()?;
        let place = tempfile::tempdir().unwrap();
        let story = Story {
            server,
            place,
            token: Some("it's \"t0kenPoisonOne\" $(reboot)"),
            said: String::new(),
        };
        for folder in ["inventory/modules/agent", "host", "home", "private", "tmp"] {
            fs::create_dir_all(story.path(folder)).unwrap();
        }
        fs::write(
            story.path("inventory/known_hosts"),
            format!(
                "[127.0.0.1]:{} {}\n",
                story.server.port,
                host_key(&story.server)
            ),
        )
        .unwrap();
        fs::write(story.path("private/pin"), "p1nPoison-4711\n").unwrap();
        fs::write(
            story.path("private/key"),
            "#!/bin/sh\necho -----BEGIN KEY-----\necho k3yPoisonLine==\necho -----END KEY-----\n",
        )
        .unwrap();
        fs::set_permissions(story.path("private/key"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(
            story.path("inventory/modules/agent/module.yaml"),
            module(&story.path("host")),
        )
        .unwrap();
        story.spec("");
        Some(story)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn spec(&self, more: &str) {
        let spec = format!(
            "cluster: story\n\
             fabric: {{ kind: none }}\n\
             ssh: {{ user: root, address: 127.0.0.1, port: {}, host_keys: known_hosts, identities: \
             [\"{}\"] }}\n\
             nodes: [{{ name: a }}]\n\
             secrets:\n  token: {{ env: STORY_TOKEN }}\n  pin: {{ file: ../private/pin }}\n  key: {{ command: [../private/key] }}\n\
             {more}",
            self.server.port,
            self.server.path("id").display(),
        );
        fs::write(self.path("inventory/cluster.yaml"), spec).unwrap();
    }

    /// Runs the program, every program that it starts being written down; what it says and its exit
    /// code.
    fn run(&mut self, words: &[&str]) -> (String, i32) {
        let mut command = Command::new("strace");
        command
            .args([
                "-f",
                "--seccomp-bpf",
                "-q",
                "-e",
                "trace=execve",
                "-s",
                "99999",
                "-A",
                "-o",
            ])
            .arg(self.path("execve"));
        command
            .arg(env!("CARGO_BIN_EXE_railwright"))
            .args(words)
            .current_dir(self.place.path())
            .stdin(Stdio::null())
            .env_clear();
        command
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", "/usr/bin:/bin")
            // What a person sets who looks for a mistake.
            .envs([
                ("RUST_LOG", "trace"),
                ("RUST_BACKTRACE", "full"),
                ("DEBUG", "1"),
            ])
            .envs(self.token.map(|token| ("STORY_TOKEN", token)));
        let output = command.output().unwrap();
        let said =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        self.said.push_str(&format!("$ {words:?}\n{said}"));
        (said, output.status.code().unwrap())
    }

    /// The program must end with this code; what it said.
    fn must(&mut self, code: i32, words: &[&str]) -> String {
        let (said, found) = self.run(words);
        assert_eq!(found, code, "{words:?}\n{said}");
        said
    }

    fn host_file(&self, name: &str) -> String {
        fs::read_to_string(self.path("host").join(name)).unwrap_or_default()
    }

    /// Every place where some poison is: what was said, files of ours, files of the host, arguments
    /// of programs.
    fn found(&self, poisons: &[&str]) -> Vec<String> {
        let mut texts = vec![("what was said".to_owned(), self.said.clone())];
        for root in [
            self.path("inventory"),
            self.path("home"),
            self.path("tmp"),
            self.path("host"),
            self.server.on_host("/var/lib/railwright"),
        ] {
            collect(&root, &mut texts);
        }
        for file in ["plan", "plan2", "facts", "execve"] {
            texts.push((
                file.to_owned(),
                fs::read_to_string(self.path(file)).unwrap_or_default(),
            ));
        }
        for file in ["execve", "log"] {
            texts.push((
                format!("{file} of the host"),
                fs::read_to_string(self.server.path(file)).unwrap(),
            ));
        }
        let holds = |text: &str| {
            poisons
                .iter()
                .find(|poison| text.contains(**poison))
                .copied()
        };
        texts
            .iter()
            .filter_map(|(name, text)| Some(format!("{} in {name}", holds(text)?)))
            .collect()
    }
}

fn host_key(server: &Server) -> String {
    public(&server.path("host_ed25519"))
}

fn collect(folder: &Path, texts: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, texts);
        } else {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            texts.push((
                path.display().to_string(),
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            ));
            let private = path
                .components()
                .any(|part| part.as_os_str() == ".railwright" || part.as_os_str() == "railwright");
            assert!(
                !private || mode & 0o077 == 0,
                "{} is {mode:o}",
                path.display()
            );
        }
    }
}

/// An agent that reads its token from a file, and is told it as a command as well. What the command
/// sees is kept by its digest; a file `broken` makes it fail as careless programs do.
fn module(host: &Path) -> String {
    let host = host.display();
    format!(
        "module: agent\n\
         summary: A fake agent that needs a token\n\
         resources:\n\
         \x20 - {{ id: file, file: {{ path: {host}/agent/token.conf, content: \"token={{{{ \
         secrets.token }}}}\\n{{{{ secrets.key }}}}\\n\", mode: \"0600\" }} }}\n\
         \x20 - {{ id: taken, file: {{ path: {host}/taken.conf, content: \"{{{{ secrets.pin \
         }}}}\", mode: \"0640\" }} }}\n\
         \x20 - id: login\n    command:\n      name: login\n      environment: {{ AGENT_TOKEN: \"{{{{ secrets.token }}}}\" }}\n      input: \"{{{{ secrets.pin }}}}\"\n\
         \x20     read: {{ probe: \"cat {host}/login\", expect: yes }}\n      run: |\n\
         \x20       test ! -e {host}/broken || {{ echo \"no such token: $AGENT_TOKEN\" >&2; cat \
         >&2; exit 3; }}\n\
         \x20       printf %s \"$AGENT_TOKEN\" | sha256sum >{host}/token.sum\n        sha256sum >{host}/pin.sum\n        echo yes >{host}/login\n\
         \x20   after: [file]\n"
    )
}

fn sum(text: &str) -> String {
    use railwright_base::Digest;
    format!("{}  -\n", Digest::of_bytes(text.as_bytes()))
}

#[test]
fn law_8_a_secret_reaches_the_host_and_no_other_place() {
    let Some(mut story) = Story::begin() else {
        return;
    };
    fs::write(story.path("host/taken.conf"), "takenOverPoison\n").unwrap();
    let first = story.token.unwrap();

    story.must(0, &["validate", "inventory"]);
    let plan = story.must(0, &["plan", "inventory", "-o", "plan"]);
    assert!(
        plan.contains("secret, not shown") && plan.contains("differs (secret, not shown)"),
        "{plan}"
    );
    story.must(0, &["plan", "inventory", "--json"]);

    // A program that fails and says all that it knows; the steps before it are done.
    fs::write(story.path("host/broken"), "").unwrap();
    let failed = story.must(1, &["apply", "plan", "--yes"]);
    assert!(
        failed.contains("no such token: [secret token]") && failed.contains("[secret pin]"),
        "{failed}"
    );
    fs::remove_file(story.path("host/broken")).unwrap();
    story.must(0, &["resume", "inventory"]);
    let token = format!("token={first}\n-----BEGIN KEY-----\nk3yPoisonLine==\n-----END KEY-----\n");
    assert_eq!(story.host_file("agent/token.conf"), token, "it is there");
    assert_eq!(story.host_file("taken.conf"), "p1nPoison-4711");
    assert_eq!(
        (story.host_file("token.sum"), story.host_file("pin.sum")),
        (sum(first), sum("p1nPoison-4711")),
        "the command had both"
    );
    let mode = |name: &str| {
        fs::metadata(story.path("host").join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(
        (mode("agent/token.conf"), mode("taken.conf")),
        (0o600, 0o640)
    );

    // Nothing to do, nothing drifted.
    assert!(
        story
            .must(0, &["plan", "inventory", "--detailed-exitcode"])
            .to_lowercase()
            .contains("no changes")
    );
    story.must(0, &["drift", "inventory"]);
    story.must(0, &["facts", "inventory", "-o", "facts"]);
    // No host is contacted, so no program is run and no secret is read: what needs them is blocked.
    fs::rename(story.path("execve"), story.path("execve.before")).unwrap();
    let recorded = story.must(3, &["plan", "inventory", "--observations", "facts"]);
    assert!(
        recorded.contains("no target is contacted here, and a secret is read only where one is"),
        "{recorded}"
    );
    let run = fs::read_to_string(story.path("execve")).unwrap();
    assert_eq!(run.matches("execve(").count(), 1, "{run}");
    fs::rename(story.path("execve.before"), story.path("execve")).unwrap();
    story.must(
        0,
        &[
            "state",
            "show",
            "inventory",
            &format!(
                "host/a/file/{}",
                story
                    .path("host/taken.conf")
                    .display()
                    .to_string()
                    .replace('/', "%2F")
            ),
        ],
    );
    story.token = None;
    let without = story.must(3, &["plan", "inventory"]);
    assert!(
        without.contains("the environment variable STORY_TOKEN is not set")
            && without.contains("BLOCKED"),
        "{without}"
    );
    story.must(3, &["drift", "inventory"]);
    // `sudoers` needs no secret either, and names the files without a line for them.
    assert!(
        story
            .must(0, &["sudoers", "inventory"])
            .contains("because it holds a secret")
    );
    for words in [
        &["show", "plan"][..],
        &["show", "plan", "--json"],
        &["show", "plan", "host/a"],
        &["graph", "plan", "--format", "dot"],
        &["graph", "plan", "--format", "mermaid"],
        &["rollout", "status", "inventory"],
        &["rollout", "status", "inventory", "--json"],
        &["state", "list", "inventory"],
        &["state", "list", "inventory", "--json"],
    ] {
        story.must(0, words);
    }

    let asked = |story: &Story| {
        fs::read_to_string(story.path("execve"))
            .unwrap()
            .matches("private/key")
            .count()
    };
    let before = asked(&story);
    story.must(0, &["lock", "list", "inventory"]);
    assert_eq!(asked(&story), before, "a lock holds no secret");

    // Somebody changes the file by hand; another token is set; the old plan is refused.
    fs::write(story.path("host/agent/token.conf"), "byHandPoison\n").unwrap();
    story.token = Some("t0kenPoisonTwo");
    let drift = story.must(2, &["drift", "inventory"]);
    assert!(
        drift.contains("differs (secret, not shown; another was applied)"),
        "{drift}"
    );
    for format in ["json", "junit", "sarif", "prometheus", "markdown"] {
        let found = story.must(2, &["drift", "inventory", "--format", format]);
        assert!(
            found.contains("file") && found.len() > 100,
            "{format}: {found}"
        );
    }
    story.must(
        2,
        &[
            "drift",
            "inventory",
            "--format",
            "junit",
            "-o",
            "home/drift.xml",
        ],
    );
    let rotated = story.must(
        2,
        &["plan", "inventory", "-o", "plan2", "--detailed-exitcode"],
    );
    assert!(rotated.contains("differs (secret, not shown)"), "{rotated}");
    story.token = Some(first);
    assert!(
        story
            .must(4, &["apply", "plan2", "--yes"])
            .contains("RW0625")
    );
    story.token = None;
    let refused = story.must(4, &["apply", "plan2", "--yes"]);
    assert!(
        refused.contains("RW1016") && refused.contains("cluster.yaml"),
        "{refused}"
    );
    assert_eq!(story.host_file("agent/token.conf"), "byHandPoison\n");
    story.token = Some("t0kenPoisonTwo");
    story.must(0, &["apply", "plan2", "--yes"]);
    assert!(
        story
            .host_file("agent/token.conf")
            .starts_with("token=t0kenPoisonTwo\n")
    );
    story.must(0, &["plan", "inventory", "--detailed-exitcode"]);

    // Only the files that are to hold them do. Then a poison is planted, and found.
    let places = story.found(&POISONS);
    let expected = ["agent/token.conf", "taken.conf"];
    let only_there = places.iter().all(|place| {
        expected
            .iter()
            .any(|file| place.ends_with(&format!("/host/{file}")))
    });
    assert!(only_there && places.len() == expected.len(), "{places:#?}");
    let words = fs::read_to_string(story.server.path("execve")).unwrap();
    assert!(
        words.contains("[\"sha256sum\"]")
            && words.contains("mktemp")
            && words.contains("[\"/bin/sh\", \"-s\"]"),
        "every program was seen"
    );

    // Taken out of the spec: what we brought goes, what was there and was never kept is named.
    story.spec("modules: { agent: { enabled: false } }\n");
    let removal = story.must(0, &["plan", "inventory"]);
    assert!(removal.contains("was not kept"), "{removal}");
    story.must(0, &["apply", "inventory", "--yes"]);
    assert!(!story.path("host/agent").exists() && story.path("host/taken.conf").exists());
    assert_eq!(
        story.found(&POISONS).len(),
        1,
        "{:#?}",
        story.found(&POISONS)
    );
    let gone = story.must(0, &["plan", "inventory"]);
    story
        .said
        .push_str(&gone.replace("changes", "t0kenPoisonOne"));
    assert_eq!(
        story.found(&POISONS).len(),
        2,
        "the search finds what is planted"
    );
}
