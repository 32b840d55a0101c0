//! What we rely on russh for. Its version is a range, so that repairs arrive, and much of it is
//! russh's default: what a new release has to keep is tried here against a server in this process,
//! and against OpenSSH in `tests/transport`.

use super::*;
use crate::shell::{FramedScript, Shell as _, ShellEnd};
use crate::ssh::host_key_check::{KnownHostsMarker, PinnedLine};
use russh::ChannelId;
use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::server::{self, Auth, ChannelOpenHandle};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

fn host_key(seed: u8) -> PrivateKey {
    Ed25519Keypair::from_seed(&[seed; 32]).into()
}

fn pins(key: &PrivateKey) -> HostKeyPins {
    let line = PinnedLine {
        mark: KnownHostsMarker::Key,
        file: "known_hosts".to_owned(),
        number: 1,
        key: key.public_key().clone(),
    };
    HostKeyPins {
        names: KnownHostNames::new("gpu-001", "gpu-001", 22, None),
        file: "known_hosts".to_owned(),
        lines: vec![line],
        malformed: Vec::new(),
    }
}

/// Lets everybody in. Opens a session where it has outputs, ends every script at once and sends
/// them after it, as sshd does, while a daemon holds the channel open; else it never comes back
/// from opening one.
struct Server(Option<&'static [&'static str]>);

impl server::Handler for Server {
    type Error = russh::Error;

    async fn auth_none(&mut self, _: &str) -> Result<Auth, russh::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<server::Msg>,
        opened: ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), russh::Error> {
        match self.0 {
            Some(_) => opened.accept().await,
            None => std::future::pending().await,
        }
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _: &[u8],
        session: &mut server::Session,
    ) -> Result<(), russh::Error> {
        session.channel_success(channel)?;
        session.exit_status_request(channel, 3)?;
        let (server, output) = (session.handle(), self.0.unwrap_or_default());
        tokio::spawn(async move {
            for part in output {
                tokio::time::sleep(Duration::from_secs(20)).await;
                server.data(channel, *part).await.unwrap();
                server.extended_data(channel, 1, *part).await.unwrap();
            }
        });
        Ok(())
    }
}

/// A connection to this server with this key, and the server's end of it.
async fn connect(
    server: Server,
    shown: PrivateKey,
    pinned: &PrivateKey,
) -> (
    Result<client::Handle<HostKeyChecker>, SshConnectFailure>,
    Option<server::Handle>,
) {
    let (ours, theirs) = duplex(1 << 16);
    let serving = server::Config {
        keys: vec![shown],
        auth_rejection_time_initial: Some(Duration::ZERO),
        ..server::Config::default()
    };
    let checker = HostKeyChecker {
        host: "gpu-001".to_owned(),
        pins: pins(pinned),
    };
    let client =
        client::connect_stream(Arc::new(build_client_config(&pins(pinned))), ours, checker);
    let (client, server) = tokio::join!(
        client,
        server::run_stream(Arc::new(serving), theirs, server)
    );
    (client, server.ok().map(|running| running.handle()))
}

/// A connection to this server after login.
async fn log_in(server: Server) -> (client::Handle<HostKeyChecker>, server::Handle) {
    let (client, server) = connect(server, host_key(1), &host_key(1)).await;
    let mut client = client.unwrap();
    assert!(client.authenticate_none("root").await.unwrap().success());
    (client, server.unwrap())
}

/// The lists of algorithms in a client's first packet (RFC 4253, sections 6 and 7.1).
async fn offered(mut server: DuplexStream) -> Vec<Vec<String>> {
    server.write_all(b"SSH-2.0-test\r\n").await.unwrap();
    while server.read_u8().await.unwrap() != b'\n' {}
    let length = server.read_u32().await.unwrap();
    let padding = server.read_u8().await.unwrap();
    let mut packet = vec![0; length as usize - 1];
    server.read_exact(&mut packet).await.unwrap();
    packet.truncate(packet.len() - usize::from(padding));
    assert_eq!(packet[0], 20, "SSH_MSG_KEXINIT");
    let mut rest = &packet[17..];
    let mut list = || {
        let (length, after) = rest.split_first_chunk::<4>().unwrap();
        let (list, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        rest = after;
        String::from_utf8(list.to_vec())
            .unwrap()
            .split(',')
            .map(str::to_owned)
            .collect()
    };
    (0..8).map(|_| list()).collect()
}

#[tokio::test]
async fn only_strong_algorithms_are_offered() {
    let (ours, theirs) = duplex(1 << 16);
    let (pins, checker) = (
        pins(&host_key(1)),
        HostKeyChecker {
            host: "gpu-001".to_owned(),
            pins: pins(&host_key(1)),
        },
    );
    let client = tokio::spawn(client::connect_stream(
        Arc::new(build_client_config(&pins)),
        ours,
        checker,
    ));
    let lists = offered(theirs).await;
    client.abort();
    let [kex, keys, ciphers, _, macs, _, compression, _] = &lists[..] else {
        panic!("{lists:?}")
    };
    assert_eq!(
        kex[0], "mlkem768x25519-sha256",
        "what is recorded today cannot be read by a quantum computer: {kex:?}"
    );
    assert!(
        kex.contains(&"kex-strict-c-v00@openssh.com".to_owned()),
        "no message can be cut out of a handshake (CVE-2023-48795): {kex:?}"
    );
    let ecdsa = [
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
    ];
    assert_eq!(
        keys[..],
        [
            &["ssh-ed25519"],
            &ecdsa[..],
            &["rsa-sha2-512", "rsa-sha2-256"]
        ]
        .concat()
    );
    let aes = ["aes256-ctr", "aes192-ctr", "aes128-ctr"];
    assert_eq!(
        ciphers[..],
        [
            &["aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
            &aes[..]
        ]
        .concat()
    );
    assert_eq!(
        compression[..],
        ["none"],
        "a length says nothing of a secret"
    );
    assert_eq!(
        (&lists[2], &lists[4], &lists[6]),
        (&lists[3], &lists[5], &lists[7]),
        "both ways identical"
    );
    let weak = |name: &&String| {
        ["sha1", "md5", "group1-", "-96", "umac-64"]
            .iter()
            .any(|weak| name.contains(weak))
            || *name == "none"
    };
    assert_eq!(kex.iter().chain(macs).find(weak), None);
}

#[tokio::test]
async fn a_key_that_is_not_pinned_ends_the_connection() {
    let (client, _) = connect(Server(None), host_key(2), &host_key(1)).await;
    assert!(matches!(
        client,
        Err(SshConnectFailure::Refused(
            TransportError::HostKeyChanged { .. }
        ))
    ));
}

#[tokio::test]
async fn a_server_opens_no_channel_to_us() {
    let (_client, server) = log_in(Server(None)).await;
    let opened = [
        server.channel_open_agent().await,
        server.channel_open_direct_streamlocal("/run/x").await,
        server
            .channel_open_direct_tcpip("127.0.0.1", 22, "127.0.0.1", 1)
            .await,
        server.channel_open_forwarded_streamlocal("/run/x").await,
        server
            .channel_open_forwarded_tcpip("127.0.0.1", 22, "127.0.0.1", 1)
            .await,
        server.channel_open_session().await,
        server.channel_open_x11("127.0.0.1", 1).await,
    ];
    for (n, channel) in opened.into_iter().enumerate() {
        assert!(
            matches!(channel.map(drop), Err(russh::Error::ChannelOpenFailure(_))),
            "channel {n}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_answering_is_given_up() {
    let (client, _server) = log_in(Server(None)).await;
    let (opened, ()) = tokio::join!(client.channel_open_session(), async {
        while !client.is_closed() {
            tokio::time::sleep(KEEPALIVE).await;
        }
    });
    assert!(opened.is_err());
    match client.await {
        Err(SshConnectFailure::Ssh(error)) => {
            assert_eq!(describe_ssh_error(&error), "the server stopped answering")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn output_after_the_exit_status_is_waited_for_and_known_by_its_end() {
    let outputs: [(&[&str], ShellEnd, &str); 2] = [
        (
            &["@n started\n", "half", "whole\n@n en", "ded\nof a daemon"],
            ShellEnd::Exit(3),
            "@n started\nhalfwhole\n@n ended\nof a daemon",
        ),
        (
            &["@n started\n", "half"],
            ShellEnd::OutputCut,
            "@n started\nhalf",
        ),
    ];
    for (sent, end, stdout) in outputs {
        let (handle, _server) = log_in(Server(Some(sent))).await;
        let destination = Destination {
            name: "gpu-001".to_owned(),
            address: "gpu-001".to_owned(),
            port: 22,
            user: "root".to_owned(),
            identities: Vec::new(),
            identities_only: false,
            agent: None,
            known_hosts: Vec::new(),
            key_alias: None,
            timeout: Duration::from_secs(5),
            read_only: false,
        };
        let connection = SshConnection {
            handle,
            destination,
            sessions: Semaphore::new(1),
            _through: None,
        };
        let ran = connection
            .run(&FramedScript::new("", "n"), Duration::from_secs(600))
            .await
            .unwrap();
        assert_eq!(
            (ran.end, ran.stdout.text(), ran.stderr.text()),
            (end, stdout.to_owned(), stdout.to_owned())
        );
    }
}

/// RFC 4253, section 9: a new key after a gigabyte or an hour.
#[test]
fn keys_are_renewed_in_time() {
    let limits = build_client_config(&pins(&host_key(1))).limits;
    assert!(
        limits.rekey_read_limit.max(limits.rekey_write_limit) <= 1 << 30
            && limits.rekey_time_limit <= Duration::from_secs(3600)
    );
}
