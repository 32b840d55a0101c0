//! A real OpenSSH server on loopback, with its own configuration, keys and port.

use railwright_transport::SshAccess;
use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The server's program, or None when this rig is not here. `RAILWRIGHT_REQUIRE_RIGS=1` makes that
/// a failure.
pub fn sshd() -> Option<PathBuf> {
    let found = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    let root = Path::new("/root/.").metadata().is_ok() && whoami() == "root";
    if found.is_none() || !root {
        let reason = if root {
            "no sshd here"
        } else {
            "it needs root"
        };
        assert!(
            std::env::var("RAILWRIGHT_REQUIRE_RIGS").as_deref() != Ok("1"),
            "the rig `openssh` is required: {reason}"
        );
        println!("SKIPPED: the rig `openssh` is missing: {reason}");
        return None;
    }
    fs::create_dir_all("/run/sshd").unwrap();
    found
}

fn whoami() -> String {
    String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned()
}

/// Runs a program that must succeed.
pub fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a key pair without a passphrase, or with one.
pub fn keygen(path: &Path, algorithm: &str, passphrase: &str) {
    must(
        "ssh-keygen",
        &[
            "-q",
            "-t",
            algorithm,
            "-N",
            passphrase,
            "-C",
            "test",
            "-f",
            path.to_str().unwrap(),
        ],
    );
}

/// The key of a `.pub` file, without its comment.
pub fn public(path: &Path) -> String {
    let text = fs::read_to_string(format!("{}.pub", path.display())).unwrap();
    text.split_whitespace()
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What a run of somebody else left on this machine is not the test's: to what is started by this
/// script, railwright's folder is empty.
pub const APART: &str = "if [ -d /var/lib/railwright ]; then mount -t tmpfs -o mode=700 none \
                         /var/lib/railwright; fi && exec \"$@\"";

fn listen(sshd: &Path, folder: &Path) -> Child {
    let config = folder.join("sshd_config");
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut apart = Command::new("unshare");
    apart.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        APART,
        "sh",
    ]);
    apart
        .arg(sshd)
        .args(["-D", "-e", "-f"])
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// A running server; it ends with the value.
pub struct Server {
    child: Child,
    pub port: u16,
    pub folder: tempfile::TempDir,
}

impl Server {
    /// With host keys of these algorithms and further lines of sshd_config. The key `folder/id` may
    /// log in as root.
    pub fn start(algorithms: &[&str], lines: &[String]) -> Option<Server> {
        let sshd = sshd()?;
        let folder = tempfile::tempdir().unwrap();
        // sshd reads the keys of another user as that user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        keygen(&at("id"), "ed25519", "");
        fs::write(at("authorized"), public(&at("id"))).unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        // What somebody's shell does at a login is not the test's: the folder is everybody's home.
        let mut config = format!(
            "Port {port}\n\
             SetEnv HOME={home}\n\
             ListenAddress 127.0.0.1\n\
             PidFile none\n\
             StrictModes no\n\
             UsePAM no\n\
             PermitRootLogin prohibit-password\n\
             AuthorizedKeysFile {}\n\
             PasswordAuthentication no\n\
             KbdInteractiveAuthentication no\n\
             MaxStartups 100\n",
            at("authorized").display(),
            home = folder.path().display(),
        );
        for algorithm in algorithms {
            keygen(&at(&format!("host_{algorithm}")), algorithm, "");
            config.push_str(&format!(
                "HostKey {}\n",
                at(&format!("host_{algorithm}")).display()
            ));
        }
        for line in lines {
            config.push_str(&format!(
                "{}\n",
                line.replace("{folder}", &folder.path().display().to_string())
            ));
        }
        fs::write(at("sshd_config"), config).unwrap();
        let child = listen(&sshd, folder.path());
        let server = Server {
            child,
            port,
            folder,
        };
        server.wait();
        Some(server)
    }

    /// A server in a mount namespace in which railwright's folder on the host is empty, with every
    /// program that is started there and its arguments written to `folder/execve`. None when
    /// `strace` is not here.
    pub fn start_watched() -> Option<Server> {
        let mut server = Server::start(&["ed25519"], &[])?;
        if !Path::new("/usr/bin/strace").exists() || !Path::new("/usr/bin/unshare").exists() {
            assert!(
                std::env::var("RAILWRIGHT_REQUIRE_RIGS").as_deref() != Ok("1"),
                "strace and unshare are required"
            );
            println!("SKIPPED: the rig `openssh` is missing strace or unshare");
            return None;
        }
        let _ = server.child.kill();
        let _ = server.child.wait();
        let folder = server.folder.path().display().to_string();
        let script = "mkdir -p /var/lib/railwright && mount -t tmpfs none /var/lib/railwright && \
                      chmod 700 /var/lib/railwright && exec strace -D -f --seccomp-bpf -q -e \
                      trace=execve -s 99999 -o \"$1/execve\" /usr/sbin/sshd -D -e -f \
                      \"$1/sshd_config\"";
        let log = fs::File::create(server.path("log")).unwrap();
        let mut apart = Command::new("unshare");
        apart.args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            script,
            "sh",
            &folder,
        ]);
        server.child = apart
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        server.wait();
        Some(server)
    }

    /// A path as the host sees it.
    pub fn on_host(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.child.id()))
    }

    /// Ends the listener and starts it again on the same port, so that it reads its files anew.
    pub fn restart(mut self) -> Server {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.listen_again();
        self
    }

    /// As when the machine goes down: nobody listens, and sessions end.
    #[allow(dead_code, reason = "the journeys use it")]
    pub fn go_down(&mut self) {
        let _ = self.child.kill();
        let sessions = self.sessions();
        let _ = self.child.wait();
        for session in sessions {
            let _ = Command::new("kill")
                .args(["-9", &session.to_string()])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Listens again on the same port.
    pub fn listen_again(&mut self) {
        self.child = listen(&sshd().unwrap(), self.folder.path());
        self.wait();
    }

    fn wait(&self) {
        for _ in 0..500 {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let mut banner = [0; 4];
                if stream.read_exact(&mut banner).is_ok() {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("sshd does not answer: {}", self.log());
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The processes of sessions on this server: those that sshd started, by the listener's id.
    pub fn sessions(&self) -> Vec<u32> {
        let text = Command::new("ps")
            .args(["-o", "pid=", "--ppid", &self.child.id().to_string()])
            .output()
            .unwrap()
            .stdout;
        String::from_utf8(text)
            .unwrap()
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    }

    /// A known_hosts line for the host key of this algorithm.
    pub fn line(&self, algorithm: &str) -> String {
        format!(
            "[127.0.0.1]:{} {}",
            self.port,
            public(&self.path(&format!("host_{algorithm}")))
        )
    }

    /// Access with the right key and these known_hosts lines.
    pub fn access(&self, known_hosts: &str) -> SshAccess {
        let file = self.path("known_hosts");
        fs::write(&file, format!("{known_hosts}\n")).unwrap();
        SshAccess {
            address: "127.0.0.1".to_owned(),
            port: self.port,
            user: "root".to_owned(),
            identities: vec![self.path("id").display().to_string()],
            known_hosts: file.display().to_string(),
            jump: Vec::new(),
            ssh_config: false,
            connect_timeout_s: 20,
            read_only: false,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for session in self.sessions() {
            let _ = Command::new("kill")
                .arg(session.to_string())
                .stderr(Stdio::null())
                .status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
