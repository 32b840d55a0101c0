//! How to reach a host, made from the spec. What the inventory leaves open stays open here (empty text, port 0), so that
//! `~/.ssh/config` can fill it in where that is wished for; the inventory always wins.

use super::HostAccess;
use crate::spec::model::Ssh;
use std::path::Path;

/// Seconds until a connection attempt is given up.
const CONNECT_TIMEOUT_S: u32 = 15;

impl HostAccess {
    /// From the cluster's `ssh`, the node's own `ssh` on top, the inventory's folder (absolute) and the user's home.
    pub fn from_spec(name: &str, cluster: &Ssh, node: &Ssh, inventory: &Path, home: Option<&Path>) -> Self {
        let pick = |field: fn(&Ssh) -> Option<&String>| field(node).or_else(|| field(cluster)).cloned();
        let list = |field: fn(&Ssh) -> &Vec<String>| {
            if field(node).is_empty() { field(cluster).clone() } else { field(node).clone() }
        };
        let address = pick(|ssh| ssh.address.as_ref()).unwrap_or_else(|| name.to_owned());
        let local = address == "local";
        HostAccess {
            name: name.to_owned(),
            local,
            address,
            port: node.port.or(cluster.port).unwrap_or(0),
            user: pick(|ssh| ssh.user.as_ref()).unwrap_or_default(),
            identities: list(|ssh| &ssh.identities).iter().map(|path| absolute(path, inventory, home)).collect(),
            known_hosts: pick(|ssh| ssh.host_keys.as_ref()).map(|path| absolute(&path, inventory, home)).unwrap_or_default(),
            jump: list(|ssh| &ssh.jump),
            ssh_config: node.config.or(cluster.config).unwrap_or(false),
            connect_timeout_s: CONNECT_TIMEOUT_S,
        }
    }
}

/// `~/` is the home folder; all else is below the inventory, unless it is absolute.
fn absolute(path: &str, inventory: &Path, home: Option<&Path>) -> String {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => inventory.join(path).display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_wins_over_the_cluster_and_open_stays_open() {
        let cluster = Ssh {
            user: Some("root".to_owned()),
            identities: vec!["~/.ssh/id".to_owned(), "keys/id".to_owned(), "/abs/id".to_owned()],
            host_keys: Some("known_hosts".to_owned()),
            jump: vec!["bastion".to_owned()],
            ..Ssh::default()
        };
        let node = Ssh { address: Some("10.0.0.7".to_owned()), port: Some(2201), ..Ssh::default() };
        let access = HostAccess::from_spec("gpu-001", &cluster, &node, Path::new("/inv"), Some(Path::new("/home/a")));
        assert_eq!((access.address.as_str(), access.port, access.user.as_str()), ("10.0.0.7", 2201, "root"));
        assert_eq!(access.identities, ["/home/a/.ssh/id", "/inv/keys/id", "/abs/id"]);
        assert_eq!((access.known_hosts.as_str(), access.jump.len(), access.local), ("/inv/known_hosts", 1, false));
        let open = HostAccess::from_spec("n1", &Ssh::default(), &Ssh::default(), Path::new("/inv"), None);
        assert_eq!((open.address.as_str(), open.port, open.user.as_str(), open.known_hosts.as_str()), ("n1", 0, "", ""));
        let local = HostAccess::from_spec(
            "n1",
            &Ssh { address: Some("local".to_owned()), ..Ssh::default() },
            &Ssh::default(),
            Path::new("/inv"),
            None,
        );
        assert!(local.local);
    }
}
