//! The floor: russh as it comes, one connection a host, the same program of reads, and nothing done
//! with the answers.

use russh::ChannelMsg;
use russh::client::{self, Config, Handler};
use russh::keys::{PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use std::collections::BTreeSet;
use std::sync::Arc;

struct Pinned(Arc<BTreeSet<String>>);

impl Handler for Pinned {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, russh::Error> {
        Ok(self
            .0
            .contains(&shown.public_key().to_openssh().unwrap_or_default()))
    }
}

/// All hosts at the same time; prints how many bytes they answered.
pub fn run(addresses: &[String], port: u16, key: &str, known_hosts: &str, program: &str) -> usize {
    let read = |path: &str| std::fs::read_to_string(path).expect("a file of the comparison");
    let key: Arc<PrivateKey> =
        Arc::new(russh::keys::decode_secret_key(&read(key), None).expect("a key"));
    let keys = read(known_hosts)
        .lines()
        .filter_map(|line| line.split_once(' ').map(|(_, key)| key.to_owned()))
        .collect();
    let (keys, program) = (Arc::new(keys), Arc::new(read(program)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let one = |address: &String| {
            let (address, keys, key, program) = (
                address.clone(),
                Arc::clone(&keys),
                key.clone(),
                program.clone(),
            );
            tokio::spawn(async move {
                ask(&address, port, Pinned(keys), key, &program)
                    .await
                    .expect("the host answers")
            })
        };
        let running: Vec<_> = addresses.iter().map(one).collect();
        let mut bytes = 0;
        for task in running {
            bytes += task.await.expect("no panic");
        }
        bytes
    })
}

async fn ask(
    address: &str,
    port: u16,
    pinned: Pinned,
    key: Arc<PrivateKey>,
    program: &str,
) -> Result<usize, russh::Error> {
    // Without `nodelay` every small exchange waits for the other end's delayed acknowledgement: no
    // floor at all.
    let config = Arc::new(Config {
        nodelay: true,
        ..Config::default()
    });
    let mut handle = client::connect(config, (address, port), pinned).await?;
    let login = handle
        .authenticate_publickey("root", PrivateKeyWithHashAlg::new(key, None))
        .await?;
    assert!(login.success(), "{address} lets us in");
    let mut channel = handle.channel_open_session().await?;
    channel.exec(true, "/bin/sh -s").await?;
    channel.data_bytes(program.as_bytes().to_vec()).await?;
    channel.eof().await?;
    let (mut bytes, mut status) = (0, None);
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => bytes += data.len(),
            ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
            _ => {}
        }
    }
    assert_eq!(status, Some(0), "the program ran to its end on {address}");
    Ok(bytes)
}
