//! Jump hosts, and `ssh -G`.

use crate::server::Server;
use crate::{a_read, refused};
use railwright_transport::{SshAccess, SshConnector, TransportError};
use std::fs;

/// A bastion and a target behind it, each with its own host key; one key may log in to both.
fn pair() -> Option<(Server, Server, SshAccess)> {
    let bastion = Server::start(&["ed25519"], &[])?;
    let target = Server::start(&["ed25519"], &[])?;
    fs::copy(target.path("authorized"), bastion.path("authorized")).unwrap();
    let mut access = target.access(&format!(
        "{}\n{}",
        target.line("ed25519"),
        bastion.line("ed25519")
    ));
    access.jump = vec![format!("root@127.0.0.1:{}", bastion.port)];
    Some((bastion, target, access))
}

#[tokio::test]
async fn many_targets_share_one_jump_connection() {
    let Some((bastion, target, access)) = pair() else {
        return;
    };
    let connector = std::sync::Arc::new(SshConnector::new());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (connector, access) = (connector.clone(), access.clone());
        tasks.spawn(async move {
            let link = connector.connect("gpu-001", &access).await.unwrap();
            assert_eq!(
                link.read(&[a_read()])
                    .await
                    .unwrap()
                    .output(&a_read())
                    .unwrap()
                    .0,
                0
            );
            link
        });
    }
    let links = tasks.join_all().await;
    assert_eq!(
        bastion.log().matches("Accepted publickey").count(),
        1,
        "{}",
        bastion.log()
    );
    assert_eq!(target.log().matches("Accepted publickey").count(), 12);
    drop(links);
    // Nothing holds the jump connection any more: the next target opens it anew.
    for _ in 0..500 {
        if bastion.sessions().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(
        bastion.sessions().is_empty(),
        "a dropped link closes its connections"
    );
    assert!(connector.connect("gpu-001", &access).await.is_ok());
    assert_eq!(bastion.log().matches("Accepted publickey").count(), 2);
}

#[tokio::test]
async fn every_hop_is_checked() {
    let Some((bastion, target, access)) = pair() else {
        return;
    };
    fs::write(&access.known_hosts, format!("{}\n", target.line("ed25519"))).unwrap();
    match refused(&access).await {
        TransportError::HostKeyUnknown { host, line, .. } => {
            assert_eq!(
                (host.as_str(), line),
                ("127.0.0.1", bastion.line("ed25519"))
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(
        !bastion.log().contains("Accepted"),
        "no login at a jump host that is not known"
    );
    fs::write(
        &access.known_hosts,
        format!("{}\n", bastion.line("ed25519")),
    )
    .unwrap();
    assert!(
        matches!(refused(&access).await, TransportError::HostKeyUnknown { host, .. } if host == "gpu-001")
    );
}

#[tokio::test]
async fn who_pins_other_keys_for_a_jump_host_shares_no_connection_to_it() {
    let Some((_bastion, target, access)) = pair() else {
        return;
    };
    let connector = SshConnector::new();
    let open = connector.connect("gpu-001", &access).await.unwrap();
    let pins = target.path("other_known_hosts");
    fs::write(&pins, format!("{}\n", target.line("ed25519"))).unwrap();
    let other = SshAccess {
        known_hosts: pins.display().to_string(),
        ..access
    };
    let refused = connector.connect("gpu-002", &other).await.err();
    assert!(
        matches!(&refused, Some(TransportError::HostKeyUnknown { host, .. }) if host == "127.0.0.1"),
        "{refused:?}"
    );
    assert!(open.read(&[a_read()]).await.is_ok());
}

#[tokio::test]
async fn a_jump_host_that_cannot_reach_the_target_says_so() {
    let Some((_bastion, _target, access)) = pair() else {
        return;
    };
    let closed = SshAccess { port: 1, ..access };
    match refused(&closed).await {
        TransportError::Unreachable { address, .. } => {
            assert!(address.contains("through the jump host"), "{address}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_ssh_configuration_fills_in_what_the_inventory_leaves_open() {
    let Some((bastion, target, access)) = pair() else {
        return;
    };
    let config = target.path("ssh_config");
    let text = format!(
        "Host node\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {}\n  UserKnownHostsFile {}\n  ProxyJump jumper\n\
         Host jumper\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {}\n  UserKnownHostsFile {}\n\
         Host proxied\n  ProxyCommand nc %h %p\n",
        target.port,
        access.identities[0],
        access.known_hosts,
        bastion.port,
        access.identities[0],
        access.known_hosts,
    );
    fs::write(&config, text).unwrap();
    let connector = SshConnector::with_ssh_config(config);
    let open = SshAccess {
        address: "node".to_owned(),
        port: 0,
        user: String::new(),
        identities: Vec::new(),
        known_hosts: String::new(),
        jump: Vec::new(),
        ssh_config: true,
        ..access
    };
    assert!(
        connector.connect("gpu-001", &open).await.is_ok(),
        "{}",
        target.log()
    );
    assert_eq!(bastion.log().matches("Accepted").count(), 1);
    let stated = SshAccess {
        port: 1,
        ..open.clone()
    };
    assert!(
        connector.connect("gpu-001", &stated).await.is_err(),
        "the inventory's port wins"
    );
    let proxied = SshAccess {
        address: "proxied".to_owned(),
        ..open
    };
    match connector.connect("gpu-001", &proxied).await {
        Err(TransportError::Local { reason }) => {
            assert!(reason.as_words().contains("ProxyCommand"), "{reason}")
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("connected"),
    }
}

/// Where the keys of a host are that the inventory does not pin: what is not read may revoke them.
#[tokio::test]
async fn host_keys_in_places_that_are_not_read_are_refused() {
    let Some((_bastion, target, access)) = pair() else {
        return;
    };
    let (config, revoked) = (target.path("ssh_config"), target.path("with blank"));
    fs::write(&revoked, format!("@revoked {}\n", target.line("ed25519"))).unwrap();
    let open = SshAccess {
        known_hosts: String::new(),
        jump: Vec::new(),
        ssh_config: true,
        ..access.clone()
    };
    let pinned = &access.known_hosts;
    for (more, words) in [
        (
            format!("UserKnownHostsFile {pinned} \"{}\"", revoked.display()),
            "where one ends",
        ),
        (
            format!("UserKnownHostsFile {pinned}\n  KnownHostsCommand /bin/true"),
            "KnownHostsCommand",
        ),
    ] {
        fs::write(&config, format!("Host *\n  {more}\n")).unwrap();
        let connector = SshConnector::with_ssh_config(config.clone());
        let refused = connector.connect("gpu-001", &open).await.err();
        let reason = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(reason.contains(words), "{reason}");
        let stated = SshAccess {
            known_hosts: pinned.clone(),
            ..open.clone()
        };
        assert!(
            connector.connect("gpu-001", &stated).await.is_ok(),
            "{more}"
        );
    }
}

/// Connects through these jump hosts. `jumper` and `outer` are the bastion's names in the ssh
/// configuration, which says this of them besides.
async fn connect_through(
    (bastion, target, access): &(Server, Server, SshAccess),
    jump: &[&str],
    of_jumper: &str,
    of_outer: &str,
) -> Result<(), String> {
    let config = target.path("ssh_config");
    let text: String = [("jumper", of_jumper), ("outer", of_outer)]
        .map(|(name, more)| {
            format!(
                "Host {name}\n  HostName 127.0.0.1\n  Port {}\n  User root\n  {more}\n",
                bastion.port
            )
        })
        .concat();
    fs::write(&config, text).unwrap();
    let access = SshAccess {
        jump: jump.iter().map(|&hop| hop.to_owned()).collect(),
        ssh_config: true,
        ..access.clone()
    };
    let connector = SshConnector::with_ssh_config(config);
    let connected = connector.connect("gpu-001", &access).await;
    connected.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn what_the_ssh_configuration_says_of_a_jump_host_counts_as_for_a_target() {
    let Some(pair) = pair() else {
        return;
    };
    let through_outer = "ProxyJump outer";
    for (of_jumper, of_outer, words) in [
        (
            "RevokedHostKeys /etc/ssh/revoked",
            "",
            "revoked keys for jumper",
        ),
        (
            "ProxyCommand nc %h %p",
            "",
            "reaches jumper through the ProxyCommand",
        ),
        (
            through_outer,
            "RevokedHostKeys /etc/ssh/revoked",
            "revoked keys for outer",
        ),
        (through_outer, "ProxyJump jumper", "more than 16 jump hosts"),
    ] {
        let refused = connect_through(&pair, &["jumper"], of_jumper, of_outer).await;
        let reason = refused.expect_err(words);
        assert!(reason.contains(words), "{reason}");
    }
    let logins = || pair.0.log().matches("Accepted").count();
    assert_eq!(logins(), 0, "{}", pair.0.log());
    let reached = connect_through(&pair, &["jumper"], through_outer, "").await;
    assert_eq!((reached, logins()), (Ok(()), 2));
    // As with `ssh -J outer,jumper`.
    let command = "ProxyCommand nc %h %p";
    let reached = connect_through(&pair, &["outer", "jumper"], command, "").await;
    assert_eq!((reached, logins()), (Ok(()), 4));
}
