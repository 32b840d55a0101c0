//! The rig: a host of its own for each story.

use railwright_base::{Address, Digest};
use railwright_resource::{
    Action, DesiredResource, Read, ReadResults, ResourceDeclaration, ResourceDiff, ResourceKind,
    kind_named, program,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// What the root of a host holds beside Debian's essential packages and apt.
#[derive(Clone, Copy)]
pub enum Root {
    /// Package managers and GRUB's tools.
    Plain,
    /// What building a kernel module needs.
    Builder,
    /// Network tools and managers, for hosts whose hardware is made up.
    #[allow(dead_code, reason = "the journeys use it")]
    Fixture,
    /// Redis and what the fake of a SONiC switch is written with.
    #[allow(dead_code, reason = "the switches use it")]
    Switch,
    /// The RDMA user space, as an image has it.
    #[allow(dead_code, reason = "the journeys use it")]
    Rdma,
}

impl Root {
    fn include(self) -> &'static str {
        match self {
            Root::Plain => "--include=dnf,dnf-plugins-core,rpm,grub2-common,pciutils",
            Root::Fixture => {
                "--include=busybox,dbus,dnf,dnf-plugins-core,grub2-common,iproute2,kmod,netplan.io,network-manager,pciutils,rpm,systemd"
            }
            Root::Switch => "--include=iproute2,python3-jsonpatch,python3-redis,redis-server",
            Root::Rdma => "--include=ibverbs-providers,libibverbs1,librdmacm1",
            Root::Builder => "--include=dkms,gcc,git,linux-headers-amd64,make,wget,xz-utils",
        }
    }
}

fn rigs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/rigs")
}

fn has(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':')
        .any(|folder| Path::new(folder).join(program).exists())
}

/// Runs a program of this machine to its end; it must succeed.
pub fn must(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The shared root, built once; none when the rig is not there, after saying so.
fn base(root: Root) -> Option<&'static Path> {
    static BASES: [OnceLock<Option<PathBuf>>; 5] = [const { OnceLock::new() }; 5];
    BASES[root as usize]
        .get_or_init(|| {
            let is_root = fs::metadata("/proc/self").is_ok_and(|of| of.uid() == 0);
            let missing: Vec<_> = [
                "mmdebstrap",
                "unshare",
                "nsenter",
                "gpg",
                "apt-ftparchive",
                "rpmbuild",
                "rpmsign",
                "createrepo_c",
            ]
            .into_iter()
            .filter(|program| !has(program))
            .collect();
            if !is_root || !missing.is_empty() {
                assert!(
                    std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_err(),
                    "the chroot rig needs root and {missing:?}"
                );
                return None;
            }
            Some(build(root.include()))
        })
        .as_deref()
}

fn build(include: &str) -> PathBuf {
    let place = rigs().join(format!(
        "chroot-{}",
        Digest::of_bytes(include.as_bytes()).short()
    ));
    if !place.join("etc/os-release").exists() {
        let fresh = rigs().join(format!(
            "fresh-{}-{}",
            std::process::id(),
            Digest::of_bytes(include.as_bytes()).short()
        ));
        fs::create_dir_all(rigs()).unwrap();
        must(
            Command::new("mmdebstrap")
                .args([
                    "--quiet",
                    "--variant=apt",
                    "--mode=root",
                    include,
                    "bookworm",
                ])
                .arg(&fresh),
        );
        if fs::rename(&fresh, &place).is_err() {
            fs::remove_dir_all(&fresh).unwrap();
        }
    }
    place
}

/// A host: a shell in mount, network, process and name namespaces of its own. It ends with the
/// value.
pub struct Host {
    holder: Child,
    pid: u32,
    folder: tempfile::TempDir,
    root: PathBuf,
    base: &'static Path,
}

/// The namespaces of a host, and the first process in them, with whose end all of them end.
fn hold(base: &Path, folder: &Path) -> (Child, u32) {
    let at = |name: &str| folder.join(name);
    let script = format!(
        "mount -t overlay overlay -o lowerdir={},upperdir={},workdir={} {root} && mount -t proc \
         proc {root}/proc && echo ready && exec sleep infinity",
        base.display(),
        at("upper").display(),
        at("work").display(),
        root = at("root").display()
    );
    held(&script)
}

/// Namespaces in which a script came up that says `ready`, and the first process in them, with
/// whose end all of them end.
pub fn held(script: &str) -> (Child, u32) {
    let mut holder = Command::new("unshare")
        .args([
            "--mount",
            "--net",
            "--pid",
            "--uts",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            script,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", holder.id())).unwrap();
    let pid = children.split_whitespace().next().unwrap().parse().unwrap();
    (holder, pid)
}

impl Host {
    /// A host with these folders of this machine copied to these places first; none when the rig is
    /// not there.
    pub fn start(story: &str, copies: &[(&Path, &str)]) -> Option<Self> {
        Self::start_from(Root::Plain, story, copies)
    }

    /// Starts a host from another root.
    pub fn start_from(root: Root, story: &str, copies: &[(&Path, &str)]) -> Option<Self> {
        let Some(base) = base(root) else {
            // past the harness, which swallows what a passing story prints
            let why = "rig `chroot` needs root and mmdebstrap, gpg, apt-ftparchive, rpmbuild, \
                       createrepo_c";
            let _ = writeln!(std::io::stderr(), "SKIPPED {story}: {why}");
            return None;
        };
        let folder = tempfile::Builder::new()
            .prefix("host-")
            .tempdir_in(rigs())
            .unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["upper", "work", "root"] {
            fs::create_dir(at(name)).unwrap();
        }
        for (from, to) in copies {
            let to = at("upper").join(to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            must(Command::new("cp").arg("-a").arg(from).arg(&to));
        }
        // As every machine that was booted has one of its own.
        fs::create_dir_all(at("upper/etc")).unwrap();
        let id = fs::read_to_string("/proc/sys/kernel/random/uuid")
            .unwrap()
            .replace('-', "");
        fs::write(at("upper/etc/machine-id"), id).unwrap();
        let (holder, pid) = hold(base, folder.path());
        Some(Host {
            holder,
            pid,
            root: at("root"),
            base,
            folder,
        })
    }

    /// Takes the namespaces away with all that runs in them, and makes new ones on the same disk,
    /// on which these folders take the place of what is there.
    #[allow(dead_code, reason = "the journeys use it")]
    pub fn restart(&mut self, replaced: &[(&Path, &str)]) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        for (from, to) in replaced {
            let to = self.folder.path().join("upper").join(to);
            let _ = fs::remove_dir_all(&to);
            must(Command::new("cp").arg("-a").arg(from).arg(&to));
        }
        (self.holder, self.pid) = hold(self.base, self.folder.path());
    }

    /// All that was ever written on its disk, as it is now: path, type, mode, owner, size, time and
    /// content. The rest is as in the root that it shares with others, which nothing changes; so
    /// this is the whole tree, with what was made and removed again.
    pub fn written(&self) -> BTreeSet<String> {
        let upper = self.folder.path().join("upper");
        let (mut all, mut open) = (BTreeSet::new(), vec![upper.clone()]);
        while let Some(path) = open.pop() {
            let of = fs::symlink_metadata(&path).unwrap();
            let content = match of.file_type() {
                kind if kind.is_dir() => {
                    open.extend(
                        fs::read_dir(&path)
                            .unwrap()
                            .map(|entry| entry.unwrap().path()),
                    );
                    String::new()
                }
                kind if kind.is_file() => Digest::of_bytes(&fs::read(&path).unwrap()).to_string(),
                _ => fs::read_link(&path)
                    .map(|to| to.display().to_string())
                    .unwrap_or_default(),
            };
            let at = path.strip_prefix(&upper).unwrap().display();
            let (owner, time) = (
                format!("{}:{}", of.uid(), of.gid()),
                format!("{}.{:09}", of.mtime(), of.mtime_nsec()),
            );
            all.insert(format!(
                "/{at} {:o} {owner} {} {time} {content}",
                of.mode(),
                of.size()
            ));
        }
        all
    }

    /// Its disk as it was at first, which nothing changes.
    #[allow(dead_code, reason = "the journeys use it")]
    pub fn base(&self) -> &Path {
        self.base
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args([
                "--target",
                &self.pid.to_string(),
                "--mount",
                "--net",
                "--pid",
                "--uts",
                "--",
                "chroot",
            ])
            .arg(&self.root);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root");
        command
    }

    /// Mounts in the host with this machine's `mount`, at a place of the host.
    pub fn mount(&self, words: &[&str], at: &str) {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.pid.to_string(), "--mount", "--", "mount"])
            .args(words);
        must(command.arg(self.root.join(at.trim_start_matches('/'))));
    }

    /// The command line that enters the host, for a program that is to run in it.
    #[allow(dead_code, reason = "the journeys use it")]
    pub fn entry(&self) -> String {
        format!(
            "nsenter --target {} --mount --net --pid --uts -- chroot {}",
            self.pid,
            self.root.display()
        )
    }

    /// A script on the standard input of a shell, as the transport does it: status, stdout, stderr.
    pub fn sh(&self, script: &str) -> (i32, String, String) {
        self.sh_by(&["sh"], script)
    }

    /// Runs a script by the shell that this command line starts.
    pub fn sh_by(&self, shell: &[&str], script: &str) -> (i32, String, String) {
        let mut child = self
            .enter()
            .args(shell)
            .arg("-s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = script.to_owned();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(text.as_bytes());
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code().unwrap_or(-1),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// A script that must succeed.
    pub fn must(&self, script: &str) -> String {
        let (code, out, err) = self.sh(script);
        assert_eq!(code, 0, "{script}\n{out}\n{err}");
        out
    }

    /// Something that goes on until it is dropped by the caller's `kill`.
    pub fn start_shell(&self, script: &str) -> Child {
        self.enter()
            .args(["sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// All reads in one program.
    pub fn read(&self, reads: &[Read]) -> ReadResults {
        let (_, out, _) = self.sh(&program::render_read_program(reads, "", "feedc0ffee"));
        program::parse_program_answers(reads, "feedc0ffee", out.as_bytes())
    }

    /// What the kind makes of a resource now.
    pub fn diff(&self, resource: &DesiredResource) -> ResourceDiff {
        let kind = kind(resource);
        kind.diff(resource, &self.read(&kind.reads(resource)))
    }

    /// What undo of the resource would need now.
    pub fn undo(&self, resource: &DesiredResource, before: &Value) -> ResourceDiff {
        let kind = kind(resource);
        kind.undo(resource, before, &self.read(&kind.reads(resource)))
    }

    /// The actions, each of which must end with 0.
    pub fn perform(&self, actions: &[Action]) {
        for action in actions {
            let (code, out, err) = self.sh(&action.script());
            assert_eq!(code, 0, "{action:?}\n{out}\n{err}");
        }
    }

    /// Every file that a person would miss: kind, mode, owner, size or target, and for /etc the
    /// content.
    pub fn tree(&self) -> Vec<String> {
        let listed = self.must(
            "cd / && find etc usr opt srv boot root var/lib -xdev \\( -path var/lib/dpkg -o -path \
             'usr/src/linux-*' -o -path var/lib/apt/lists/auxfiles -o -path \
             var/lib/apt/lists/partial -o -path var/lib/apt/extended_states -o -path \
             '*/__pycache__' -o -path var/lib/dnf -o -path var/lib/rpm -o -path root/.rpmdb -o \
             -name '*.dpkg-*' -o -path etc/ld.so.cache \\) -prune -o -type d -printf '%p d %m \
             %u:%g\\n' -o -printf '%p %y %m %u:%g %s %l\\n' | sort\n\
             find etc -xdev -type f ! -name ld.so.cache -exec sha256sum {} + | sort\n",
        );
        listed.lines().map(str::to_owned).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // the holder's end takes its only child, and that one the namespaces with their mounts
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn kind(resource: &DesiredResource) -> &'static dyn ResourceKind {
    kind_named(&resource.kind).expect("the story names a kind")
}

/// A resource whose body is valid.
pub fn resource(kind: &str, body: Value) -> DesiredResource {
    let found = kind_named(kind).expect("the story names a kind");
    assert_eq!(found.check(&body), [], "{body}");
    let name = found.address_name(&body).expect("the body has a name");
    DesiredResource {
        address: Address::host("n1", kind, &name),
        after: vec![],
        declaration: ResourceDeclaration {
            kind: kind.to_owned(),
            body,
            module: "story/one".into(),
            places: Vec::new(),
        }
        .into(),
    }
}

/// What differs between two trees.
pub fn changes(before: &[String], after: &[String]) -> Vec<String> {
    let gone = before
        .iter()
        .filter(|line| !after.contains(line))
        .map(|line| format!("- {line}"));
    let new = after
        .iter()
        .filter(|line| !before.contains(line))
        .map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// The whole life of a resource: it differs, is applied, is in sync and plans nothing more; reading
/// changes nothing; undone, everything is as it was, and undoing it again plans nothing.
pub fn live(host: &Host, resource: &DesiredResource) -> ResourceDiff {
    let before = host.tree();
    let fresh = host.diff(resource);
    assert_eq!(
        changes(&before, &host.tree()),
        [] as [&str; 0],
        "reading changed the host"
    );
    assert!(
        !fresh.is_met()
            && !fresh.actions.is_empty()
            && fresh.refusal.is_none()
            && !fresh.has_unknown(),
        "{fresh:#?}"
    );
    host.perform(&fresh.actions);
    let applied = host.diff(resource);
    assert!(
        applied.is_met() && applied.actions.is_empty(),
        "after {:#?}\n{applied:#?}",
        fresh.actions
    );
    let undo = host.undo(resource, &fresh.before);
    assert!(!undo.is_met() && !undo.actions.is_empty(), "{undo:#?}");
    host.perform(&undo.actions);
    let undone = host.undo(resource, &fresh.before);
    assert!(undone.is_met() && undone.actions.is_empty(), "{undone:#?}");
    assert_eq!(
        changes(&before, &host.tree()),
        [] as [&str; 0],
        "undoing left something: {:#?}",
        undo.actions
    );
    fresh
}
