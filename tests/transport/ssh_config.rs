//! `ssh: { config: true }` at the seam where users meet it: an inventory, the user's ssh
//! configuration, one command.

use crate::server::Server;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// A folder with the real `ssh` behind a script that names the configuration file: OpenSSH finds
/// the usual one by the home folder of the password database, which a test cannot move.
fn ssh_with(config: &Path, folder: &Path) {
    let real = ["/usr/bin/ssh", "/usr/local/bin/ssh"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap();
    let script = format!("#!/bin/sh\nexec {real} -F '{}' \"$@\"\n", config.display());
    fs::write(folder.join("ssh"), script).unwrap();
    fs::set_permissions(folder.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn facts(server: &Server, ssh: &str) -> Output {
    let inventory = server.path("inventory");
    fs::create_dir_all(&inventory).unwrap();
    fs::write(
        inventory.join("cluster.yaml"),
        format!("cluster: lab\nssh: {ssh}\nnodes: [{{ name: gpu-001 }}]\n"),
    )
    .unwrap();
    let path = format!(
        "{}:{}",
        server.folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    let program = Path::new(env!("CARGO_BIN_EXE_railwright"));
    Command::new(program)
        .arg("facts")
        .arg(&inventory)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

#[test]
fn the_ssh_configuration_fills_in_what_the_inventory_leaves_open() {
    let Some(server) = Server::start(&["ed25519"], &[]) else {
        return;
    };
    fs::write(
        server.path("pinned"),
        format!("{}\n", server.line("ed25519")),
    )
    .unwrap();
    let config = server.path("ssh_config");
    let text = format!(
        "Host gpu-001\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {}\n  UserKnownHostsFile {}\n",
        server.port,
        server.path("id").display(),
        server.path("pinned").display()
    );
    fs::write(&config, text).unwrap();
    ssh_with(&config, server.folder.path());

    let reached = facts(&server, "{ config: true }");
    let error = String::from_utf8_lossy(&reached.stderr).into_owned();
    assert_eq!(reached.status.code(), Some(0), "{error}\n{}", server.log());
    assert!(
        String::from_utf8_lossy(&reached.stdout).contains("\"host/gpu-001\""),
        "the host answered"
    );

    // Port 1 of loopback: nobody listens there, so this is the inventory's word and not the
    // configuration's.
    let stated = facts(&server, "{ config: true, port: 1 }");
    let error = String::from_utf8_lossy(&stated.stderr).into_owned();
    assert_eq!(
        (stated.status.code(), error.contains("127.0.0.1:1")),
        (Some(3), true),
        "{error}"
    );

    let aside = facts(&server, "{ config: false }");
    assert_ne!(
        aside.status.code(),
        Some(0),
        "the configuration is read only where the inventory asks for it"
    );
}
