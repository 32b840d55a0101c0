//! Host keys: known, unknown, changed, revoked, hashed, rotated, certified.

use crate::server::{Server, keygen, must, public};
use crate::{answers, refused};
use railwright_transport::TransportError;
use std::fs;

#[tokio::test]
async fn a_pinned_key_is_trusted_in_every_notation() {
    let Some(server) = Server::start(&["ed25519", "ecdsa", "rsa"], &[]) else {
        return;
    };
    let line = server.line("ed25519");
    assert!(answers(&server.access(&line)).await);
    assert!(
        answers(&server.access(&line.replace(' ', "\t"))).await,
        "tabs"
    );
    assert!(
        answers(&server.access(&format!(
            "# a comment\n\n* {}",
            public(&server.path("host_ed25519"))
        )))
        .await,
        "a pattern"
    );
    assert!(
        answers(&server.access(&format!("gpu-001 {}", public(&server.path("host_ed25519"))))).await,
        "the name in the spec"
    );
    // Pinned by its ECDSA or RSA key alone, although the server has an Ed25519 key, too.
    assert!(answers(&server.access(&server.line("ecdsa"))).await);
    assert!(answers(&server.access(&server.line("rsa"))).await);
    // A rotated key: the old one is still on file.
    keygen(&server.path("old"), "ed25519", "");
    let old = format!(
        "[127.0.0.1]:{} {}",
        server.port,
        public(&server.path("old"))
    );
    assert!(answers(&server.access(&format!("{old}\n{line}"))).await);
    // Hashed by ssh-keygen itself.
    let access = server.access(&line);
    must("ssh-keygen", &["-q", "-H", "-f", &access.known_hosts]);
    assert!(
        fs::read_to_string(&access.known_hosts)
            .unwrap()
            .starts_with("|1|")
    );
    assert!(answers(&access).await, "hashed");
}

#[tokio::test]
async fn an_unknown_key_names_the_line_that_would_pin_it() {
    let Some(server) = Server::start(&["ed25519"], &[]) else {
        return;
    };
    let fingerprint = must(
        "ssh-keygen",
        &[
            "-l",
            "-f",
            server.path("host_ed25519.pub").to_str().unwrap(),
        ],
    );
    let fingerprint = fingerprint.split_whitespace().nth(1).unwrap();
    // The line of another host was cut off while it was copied.
    match refused(&server.access("# a comment\nother ssh-ed25519 AAAA")).await {
        TransportError::HostKeyUnknown {
            fingerprint: shown,
            line,
            known_hosts,
            malformed,
            ..
        } => {
            assert_eq!(malformed, [format!("{known_hosts}:2")]);
            assert!(shown.ends_with(fingerprint), "{shown} {fingerprint}");
            assert_eq!(line, server.line("ed25519"));
            assert!(
                !server.log().contains("Accepted"),
                "no login before the key is known"
            );
            assert!(answers(&server.access(&line)).await, "the line works");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_changed_or_revoked_key_is_refused() {
    let Some(server) = Server::start(&["ed25519"], &[]) else {
        return;
    };
    keygen(&server.path("other"), "ed25519", "");
    let other = format!(
        "# first\n[127.0.0.1]:{} {}",
        server.port,
        public(&server.path("other"))
    );
    match refused(&server.access(&other)).await {
        TransportError::HostKeyChanged { line: 2, .. } => {}
        other => panic!("{other:?}"),
    }
    let key = public(&server.path("host_ed25519"));
    for revocation in [
        format!("@revoked * {key}"),
        format!("@revoked 127.0.0.1 {key}"),
        format!("@revoked\tgpu-001\t{key}"),
    ] {
        match refused(&server.access(&format!("{}\n{revocation}", server.line("ed25519")))).await {
            TransportError::HostKeyRevoked { line: 2, .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_known_hosts_file_that_is_not_there_is_an_error_of_ours() {
    let Some(server) = Server::start(&["ed25519"], &[]) else {
        return;
    };
    let mut access = server.access("");
    access.known_hosts = server.path("absent").display().to_string();
    assert!(
        matches!(refused(&access).await, TransportError::Local { reason } if reason.as_words().contains("absent"))
    );
}

/// A server whose host key is certified for these names.
fn certified(principals: &str, more: &[&str]) -> Option<(Server, String)> {
    let server = Server::start(
        &["ed25519"],
        &["HostCertificate {folder}/host_ed25519-cert.pub".to_owned()],
    )?;
    keygen(&server.path("ca"), "ed25519", "");
    let (ca, key) = (server.path("ca"), server.path("host_ed25519.pub"));
    let mut arguments = vec![
        "-q",
        "-s",
        ca.to_str().unwrap(),
        "-I",
        "test",
        "-h",
        "-n",
        principals,
    ];
    arguments.extend(more);
    arguments.push(key.to_str().unwrap());
    must("ssh-keygen", &arguments);
    let ca = public(&server.path("ca"));
    // The certificate is there only now: a server of the same folder and port reads it.
    let server = server.restart();
    Some((server, ca))
}

#[tokio::test]
async fn host_certificates_of_a_pinned_authority_hold() {
    let Some((server, ca)) = certified("127.0.0.1", &[]) else {
        return;
    };
    assert!(answers(&server.access(&format!("@cert-authority * {ca}"))).await);
    assert!(
        answers(&server.access(&server.line("ed25519"))).await,
        "the plain key is pinned, too"
    );
    let revoked =
        refused(&server.access(&format!("@cert-authority * {ca}\n@revoked * {ca}"))).await;
    assert!(
        matches!(revoked, TransportError::HostKeyRevoked { line: 2, .. }),
        "{revoked:?}"
    );
    let revoked = refused(&server.access(&format!(
        "@cert-authority * {ca}\n@revoked * {}",
        public(&server.path("host_ed25519"))
    )))
    .await;
    assert!(
        matches!(revoked, TransportError::HostKeyRevoked { line: 2, .. }),
        "{revoked:?}"
    );
    keygen(&server.path("stranger"), "ed25519", "");
    let stranger = refused(&server.access(&format!(
        "@cert-authority * {}",
        public(&server.path("stranger"))
    )))
    .await;
    assert!(
        matches!(stranger, TransportError::HostKeyUnknown { .. }),
        "{stranger:?}"
    );
}

#[tokio::test]
async fn host_certificates_for_another_name_or_time_do_not() {
    for (principals, more) in [
        ("gpu-999", &[][..]),
        ("127.0.0.1", &["-V", "20200101:20200102"]),
    ] {
        let Some((server, ca)) = certified(principals, more) else {
            return;
        };
        let error = refused(&server.access(&format!("@cert-authority * {ca}"))).await;
        assert!(
            matches!(error, TransportError::HostCertificateRefused { .. }),
            "{error:?}"
        );
    }
}
