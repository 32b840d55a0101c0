//! An identity that may only read, on this machine behind a real OpenSSH server: what it finds,
//! what it is told that it lacks, and that it changes nothing.

use crate::server::Server;
use crate::support::Place;
use crate::user::User;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

struct Story {
    place: Place,
    server: Server,
    user: User,
    folder: String,
}

impl Story {
    fn start() -> Option<Story> {
        let server = Server::start(&["ed25519"], &[])?;
        let user = User::add(format!("rwstory{}", server.port))?;
        let place = Place::new();
        let folder = format!("/etc/railwright-story-{}", server.port);
        let story = Story {
            place,
            server,
            user,
            folder,
        };
        fs::create_dir_all(format!("{}/shut", story.folder)).unwrap();
        for (name, mode) in [
            ("open", 0o644),
            ("closed", 0o600),
            ("shut/deep", 0o644),
            ("token", 0o600),
            ("right", 0o600),
        ] {
            let file = format!("{}/{name}", story.folder);
            fs::write(
                &file,
                if name == "right" {
                    "in sync\n"
                } else {
                    "old\n"
                },
            )
            .unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(
            format!("{}/shut", story.folder),
            fs::Permissions::from_mode(0o700),
        )
        .unwrap();
        story.spec("user: root");
        let file = |id: &str, mode: &str, content: &str| {
            let path = format!("{}/{id}", story.folder);
            format!(
                "  - id: {}\n    file: {{ path: {path}, content: {content}, mode: \"{mode}\" }}\n",
                id.replace('/', "-")
            )
        };
        let resources = [
            file("open", "0644", "\"in sync\\n\""),
            file("closed", "0600", "\"in sync\\n\""),
            file("right", "0600", "\"in sync\\n\""),
            file("shut/deep", "0644", "\"in sync\\n\""),
            file("shut/gone", "0644", "\"in sync\\n\""),
            file("token", "0600", "\"{{ secrets.token }}\""),
            "  - id: harden\n    sysctl: { key: net.core.bpf_jit_harden, value: 2 }\n".to_owned(),
            "  - id: type\n    sysctl: { key: kernel.ostype, value: Linux }\n".to_owned(),
            "  - id: tool\n    command: { name: tool, run: \"true\", read: { probe: \"id -u\", expect: \"0\" } \
             }\n"
                .to_owned(),
        ];
        let text = format!(
            "module: story\nsummary: what the story needs\nresources:\n{}",
            resources.concat()
        );
        story.place.write("inv/modules/story/module.yaml", text);
        story
            .place
            .write("inv/id", fs::read(story.server.path("id")).unwrap());
        story.place.write(
            "inv/known_hosts",
            format!("{}\n", story.server.line("ed25519")),
        );
        Some(story)
    }

    fn spec(&self, ssh: &str) {
        let text = format!(
            "cluster: look\n\
             ssh: {{ {ssh}, host_keys: known_hosts, identities: [id] }}\n\
             secrets: {{ token: {{ env: TOKEN }} }}\n\
             nodes:\n  - {{ name: n1, os: debian-12, ssh: {{ address: 127.0.0.1, port: {} }} }}\n",
            self.server.port
        );
        self.place.write("inv/cluster.yaml", text);
    }

    fn output(&self, words: &[&str]) -> (i32, String, String) {
        let output = self
            .place
            .command(words)
            .env("TOKEN", "a-poison-value")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// By subject, what drift finds: the words of unknown things, or plane, desired and actual.
    fn findings(&self, words: &[&str]) -> BTreeMap<String, String> {
        let (_, json, errors) = self.output(&[&["drift", "inv", "--json"], words].concat());
        let report: Value =
            serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json}{errors}"));
        let mut out = BTreeMap::new();
        for finding in report["findings"].as_array().unwrap() {
            let subject = format!(
                "{} {} {}",
                finding["address"].as_str().unwrap(),
                finding["attribute"],
                finding["plane"]
            );
            let found = &finding["actual"];
            out.insert(
                subject,
                found["unknown"].as_str().map_or_else(
                    || format!("{} -> {found}", finding["desired"]),
                    str::to_owned,
                ),
            );
        }
        for unread in report["not_compared"].as_array().unwrap() {
            out.insert(
                unread["subject"].as_str().unwrap().to_owned(),
                unread["reason"].as_str().unwrap().to_owned(),
            );
        }
        out
    }

    /// Everything below the folder, with modes and contents.
    fn disk(&self) -> String {
        let script = format!(
            "cd {} && find . -printf '%p %m %u %T@\\n' | sort && grep -r . .; ls \
             /var/lib/railwright 2>&1",
            self.folder
        );
        String::from_utf8(
            Command::new("sh")
                .args(["-c", &script])
                .output()
                .unwrap()
                .stdout,
        )
        .unwrap()
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn below<'a>(findings: &'a BTreeMap<String, String>, story: &Story) -> BTreeSet<(String, &'a str)> {
    let folder = story.folder.replace('/', "%2F");
    findings
        .iter()
        .map(|(subject, found)| {
            (
                subject.replace(&folder, "F").replace("host/n1/", ""),
                found.as_str(),
            )
        })
        .collect()
}

#[test]
fn drift_finds_the_same_save_what_only_root_reads_and_names_that() {
    let Some(story) = Story::start() else { return };
    let disk = story.disk();
    let root = story.findings(&[]);
    let user = story.findings(&["--read-as", &story.user.0]);
    let only_root: Vec<_> = user
        .iter()
        .filter(|(_, found)| found.starts_with("only root "))
        .collect();
    for (subject, found) in &user {
        if !found.starts_with("only root ") {
            assert_eq!(root.get(subject), Some(found), "{subject}");
        }
    }
    // What root finds is found, or lies in something that is unknown as a whole.
    for subject in root.keys().filter(|subject| !user.contains_key(*subject)) {
        let resource = subject.split('#').next().unwrap();
        assert!(
            only_root
                .iter()
                .any(|(unknown, _)| unknown.starts_with(resource)),
            "{subject} is neither found nor unknown"
        );
    }
    let named: BTreeSet<_> = only_root
        .iter()
        .map(|(subject, found)| {
            (
                subject.split('#').next().unwrap().to_owned(),
                (*found).clone(),
            )
        })
        .collect();
    let file = |name: &str, line: bool| {
        let path = format!("{}/{name}", story.folder);
        let words = if line {
            format!(" (line for sudoers: /usr/bin/cat {path})")
        } else {
            String::new()
        };
        (
            format!("host/n1/file/{}", path.replace('/', "%2F")),
            format!("only root reads {path}{words}"),
        )
    };
    let setting = "/proc/sys/net/core/bpf_jit_harden";
    let expected = BTreeSet::from([
        (
            "host/n1/command/tool".to_owned(),
            "only root runs the probe of a command".to_owned(),
        ),
        file("closed", true),
        file("right", true),
        file("shut/deep", true),
        file("shut/gone", true),
        file("token", false),
        (
            "host/n1/sysctl/net.core.bpf_jit_harden".to_owned(),
            format!("only root reads {setting} (line for sudoers: /usr/bin/cat {setting})"),
        ),
    ]);
    assert_eq!(named, expected);
    assert!(
        root.keys().any(|subject| subject.contains("open#"))
            && user.keys().any(|subject| subject.contains("open#")),
        "{root:#?}"
    );
    assert_eq!(story.disk(), disk, "nothing was changed");
}

#[test]
fn with_the_printed_lines_drift_finds_what_root_finds() {
    let Some(story) = Story::start() else { return };
    let (code, lines, errors) = story.output(&["sudoers", "inv", "--user", &story.user.0]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(
        !lines
            .lines()
            .any(|line| line.contains("/token") && !line.starts_with("# left out: "))
            && !lines.contains("/bin/sh"),
        "{lines}"
    );
    fs::write(story.user.sudoers(), &lines).unwrap();
    fs::set_permissions(story.user.sudoers(), fs::Permissions::from_mode(0o440)).unwrap();
    let checked = Command::new("/usr/sbin/visudo")
        .args(["-c", "-s", "-f", &story.user.sudoers()])
        .output()
        .unwrap();
    assert!(
        checked.status.success(),
        "{lines}\n{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    let (root, user) = (
        story.findings(&[]),
        story.findings(&["--read-as", &story.user.0]),
    );
    let (root, user) = (below(&root, &story), below(&user, &story));
    let differs: BTreeSet<_> = user
        .difference(&root)
        .map(|(subject, _)| subject.split('#').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        differs,
        BTreeSet::from(["command/tool".to_owned(), "file/F%2Ftoken".to_owned()]),
        "a probe and a secret alone"
    );
    assert!(
        root.iter()
            .any(|(subject, _)| subject.starts_with("file/F%2Fclosed#")),
        "positive control: {root:?}"
    );
    assert!(
        user.iter()
            .any(|(subject, _)| subject.starts_with("file/F%2Fclosed#"))
    );
}

#[test]
fn the_lines_as_printed() {
    let place = Place::new();
    place.write(
        "inv/cluster.yaml",
        "cluster: look\nnodes: [{ name: \"n[1-3]\", os: debian-12 }]\n",
    );
    let resources = "  - id: a\n    file: { path: /etc/a.conf, content: x }\n  - id: b\n    file: { path: \"/etc/b b.conf\", content: x }\n  - id: c\n    file: { path: /tmp/c, content: x }\n  - id: d\n    file: { path: \"/etc/d:1,2*\", content: x }\n";
    place.write(
        "inv/modules/story/module.yaml",
        format!("module: story\nsummary: s\nresources:\n{resources}"),
    );
    insta::assert_snapshot!(place.run(&["sudoers", "inv", "--user", "drift"]), @r##"
    $ railwright sudoers inv --user drift
    # What railwright reads as root on the hosts of inv: exact commands that only read, no shell.
    # On each host: visudo -c -f FILE && install -m 0440 FILE /etc/sudoers.d/drift
    # Then: railwright drift inv --read-as drift
    # left out: /etc/b b.conf, because no exact command can name it or others than root may make names in its folder
    # left out: /etc/d:1,2*, because no exact command can name it or others than root may make names in its folder
    # left out: /tmp/c, because no exact command can name it or others than root may make names in its folder
    Cmnd_Alias RAILWRIGHT_READ = \
        /usr/bin/cat /etc/a.conf, \
        /usr/bin/stat -c %a/%U/%G/%u/%g/%s/%F /etc/a.conf
    drift ALL=(root) NOPASSWD:NOSETENV: RAILWRIGHT_READ
    --- exit 0 ---
    "##);
    insta::assert_snapshot!(place.run(&["sudoers", "inv", "--user", "ALL"]), @r##"
    $ railwright sudoers inv --user ALL
    --- stderr ---
    error: invalid value 'ALL' for '--user <NAME>': a user other than root, in lower case letters, digits, `_`, `-` and `.`

    For more information, try '--help'.
    --- exit 64 ---
    "##);
}

#[test]
fn it_changes_nothing_and_says_with_what_to_go_on() {
    let Some(story) = Story::start() else { return };
    let (code, _, errors) = story.output(&["plan", "inv", "-o", "plan.json"]);
    assert_eq!(code, 0, "{errors}");
    let disk = story.disk();
    story.spec(&format!("user: {}, read_only: true", story.user.0));
    let refusals: Vec<_> = [
        &["apply", "inv", "--yes"][..],
        &["apply", "plan.json", "--yes"],
        &["resume", "inv"],
        &["verify", "inv"],
        &["lock", "steal", "inv", "--reason", "x"],
    ]
    .iter()
    .map(|words| (words.join(" "), story.output(words)))
    .collect();
    for (words, (code, out, errors)) in &refusals {
        assert_eq!((*code, out.as_str()), (4, ""), "{words}: {errors}");
        assert!(
            errors.contains("error RW0411: ")
                && errors.contains("next:   name an identity with rights"),
            "{words}: {errors}"
        );
    }
    assert_eq!(story.disk(), disk);
    let sessions = story.server.log().matches("Accepted publickey").count();
    story.output(&["apply", "inv", "--yes"]);
    assert_eq!(
        story.server.log().matches("Accepted publickey").count(),
        sessions,
        "no host was asked anything"
    );
    let (_, _, errors) = story.output(&["apply", "inv", "--yes"]);
    insta::assert_snapshot!(errors.replace(&story.user.0, "USER"), @r##"
    error RW0411: USER may only read n1
      on:     host/n1
      effect: this identity is for plan, drift and facts; it can neither lock nor change a host
      state:  nothing was changed on the host
      next:   name an identity with rights in the inventory: `ssh: { user: root }` without `read_only`
      next:   and keep the other one for looking: railwright drift INVENTORY --read-as USER
      next:   then run the same command again
    "##);
    // The spec's own word counts like the option's: nothing is elevated.
    assert!(
        story
            .findings(&[])
            .values()
            .any(|found| found.starts_with("only root reads "))
    );
}
