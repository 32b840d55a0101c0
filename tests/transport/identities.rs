//! Who we are: key files, certificates, the agent.

use crate::server::{Server, keygen, must, public};
use crate::{answers, refused};
use railwright_transport::{SshAccess, SshConnector, TransportError};
use std::fs;
use std::process::{Child, Command, Stdio};

fn identity(server: &Server, access: &SshAccess, name: &str) -> SshAccess {
    SshAccess {
        identities: vec![server.path(name).display().to_string()],
        ..access.clone()
    }
}

#[tokio::test]
async fn every_usual_algorithm_logs_in() {
    let Some(server) = Server::start(&["ed25519"], &[]) else {
        return;
    };
    let access = server.access(&server.line("ed25519"));
    for algorithm in ["ecdsa", "rsa"] {
        keygen(&server.path(algorithm), algorithm, "");
        fs::write(server.path("authorized"), public(&server.path(algorithm))).unwrap();
        assert!(
            answers(&identity(&server, &access, algorithm)).await,
            "{algorithm}"
        );
    }
}

#[tokio::test]
async fn a_wrong_or_encrypted_or_absent_key_is_named() {
    let Some(server) = Server::start(&["ed25519"], &[]) else {
        return;
    };
    let access = server.access(&server.line("ed25519"));
    keygen(&server.path("wrong"), "ed25519", "");
    keygen(&server.path("locked"), "ed25519", "a passphrase");
    fs::write(server.path("junk"), "no key").unwrap();
    for (name, words) in [
        ("wrong", "not accepted"),
        ("locked", "is encrypted"),
        ("absent", "no such file"),
        ("junk", "junk: "),
    ] {
        match refused(&identity(&server, &access, name)).await {
            TransportError::AuthenticationFailed { user, tried, .. } => {
                assert_eq!(user, "root");
                assert!(
                    tried.iter().any(|line| line.contains(words)),
                    "{name}: {tried:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let first_wrong = SshAccess {
        identities: ["wrong", "junk", "id"]
            .map(|name| server.path(name).display().to_string())
            .to_vec(),
        ..access
    };
    assert!(
        answers(&first_wrong).await,
        "a wrong key before the right one"
    );
}

#[tokio::test]
async fn a_user_certificate_beside_the_key_logs_in() {
    let Some(server) = Server::start(
        &["ed25519"],
        &["TrustedUserCAKeys {folder}/ca.pub".to_owned()],
    ) else {
        return;
    };
    let access = server.access(&server.line("ed25519"));
    keygen(&server.path("ca"), "ed25519", "");
    for algorithm in ["ed25519", "rsa"] {
        let key = server.path(&format!("user_{algorithm}"));
        keygen(&key, algorithm, "");
        let certify = |principal: &str| {
            let public = format!("{}.pub", key.display());
            must(
                "ssh-keygen",
                &[
                    "-q",
                    "-s",
                    server.path("ca").to_str().unwrap(),
                    "-I",
                    "t",
                    "-n",
                    principal,
                    &public,
                ],
            );
        };
        certify("somebody-else");
        let access = identity(&server, &access, &format!("user_{algorithm}"));
        assert!(matches!(
            refused(&access).await,
            TransportError::AuthenticationFailed { .. }
        ));
        certify("root");
        assert!(answers(&access).await, "{algorithm}");
    }
}

/// An agent of this test; it ends with the value.
struct Agent {
    child: Child,
    socket: String,
}

impl Agent {
    fn start(server: &Server) -> Agent {
        let socket = server.path("agent").display().to_string();
        let child = Command::new("ssh-agent")
            .args(["-D", "-a", &socket])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !std::path::Path::new(&socket).exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Agent { child, socket }
    }

    fn add(&self, server: &Server, name: &str) {
        let status = Command::new("ssh-add")
            .arg("-q")
            .arg(server.path(name))
            .env("SSH_AUTH_SOCK", &self.socket)
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The agent's socket comes through an ssh configuration here, because the environment belongs to
/// all tests.
#[tokio::test]
async fn the_agent_signs_for_what_lies_encrypted_on_disk() {
    let Some(server) = Server::start(&["ed25519"], &[]) else {
        return;
    };
    let agent = Agent::start(&server);
    for name in ["one", "two", "three"] {
        keygen(&server.path(name), "ed25519", "");
        agent.add(&server, name);
    }
    keygen(&server.path("rsa"), "rsa", "");
    agent.add(&server, "rsa");
    fs::write(server.path("authorized"), public(&server.path("rsa"))).unwrap();
    must(
        "ssh-keygen",
        &[
            "-q",
            "-p",
            "-P",
            "",
            "-N",
            "secret",
            "-f",
            server.path("rsa").to_str().unwrap(),
        ],
    );
    let access = identity(&server, &server.access(&server.line("ed25519")), "rsa");
    assert!(
        matches!(
            refused(&access).await,
            TransportError::AuthenticationFailed { .. }
        ),
        "without the agent"
    );
    let config = server.path("ssh_config");
    fs::write(
        &config,
        format!("Host *\n  IdentityAgent {}\n", agent.socket),
    )
    .unwrap();
    let connector = SshConnector::with_ssh_config(config);
    let access = SshAccess {
        ssh_config: true,
        ..access
    };
    assert!(
        connector.connect("gpu-001", &access).await.is_ok(),
        "{}",
        server.log()
    );
    // Named nowhere: the agent's keys are tried all the same.
    let access = SshAccess {
        identities: vec![server.path("absent").display().to_string()],
        ..access
    };
    assert!(
        connector.connect("gpu-001", &access).await.is_ok(),
        "{}",
        server.log()
    );
}
