//! Where a connection goes, in full: the inventory's word, then what `ssh -G` says, then the usual
//! values.

use super::config::{Aliases, ConfiguredAgent, SshConfig};
use crate::{SshAccess, TransportError};
use railwright_base::login_name;
use railwright_system::environment;
use std::path::PathBuf;
use std::time::Duration;

/// One SSH server and how to log in there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Destination {
    /// The host's name in the spec; for a jump host what the inventory calls it.
    pub name: String,
    /// What to connect to.
    pub address: String,
    /// The TCP port.
    pub port: u16,
    /// The remote user.
    pub user: String,
    /// Private key files; when empty, the usual ones of the home folder.
    pub identities: Vec<PathBuf>,
    /// Offer the agent only keys that are among `identities`.
    pub identities_only: bool,
    /// The agent's socket.
    pub agent: Option<PathBuf>,
    /// known_hosts files; `true` for one that the user named and that must be there.
    pub known_hosts: Vec<(PathBuf, bool)>,
    /// The name to look up in known_hosts instead of the address.
    pub key_alias: Option<String>,
    /// For a connection attempt: socket and key exchange, then again the login.
    pub timeout: Duration,
    /// Nothing is elevated.
    pub read_only: bool,
}

/// The jump hosts in order, and the target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub hops: Vec<Destination>,
    pub target: Destination,
}

/// The ssh configuration may lead from one jump host to another without end.
const MOST_JUMP_HOSTS: usize = 16;

/// Fills in what the inventory leaves open.
pub(super) async fn resolve_ssh_route(
    name: &str,
    access: &SshAccess,
    aliases: &Aliases,
) -> Result<Route, TransportError> {
    let config = find_ssh_config(access.ssh_config, &access.address, &access.user, aliases).await?;
    check_ssh_config(name, access, &config, access.jump.is_empty())?;
    let mut jump = if access.jump.is_empty() {
        config.proxy_jump.clone()
    } else {
        access.jump.clone()
    };
    let mut hops = Vec::new();
    // From the target on. As with `ssh -J`, the first jump host of a list is reached as the
    // configuration says of it, and the others through the one before them.
    while let Some(text) = jump.pop() {
        let (user, host, port) = jump_parts(&text).ok_or_else(|| TransportError::Local {
            reason: format!("{name}: {text:?} is no jump host; write [user@]host[:port]").into(),
        })?;
        let hop = SshAccess {
            address: host.clone(),
            user,
            port,
            jump: Vec::new(),
            ..access.clone()
        };
        let config = find_ssh_config(access.ssh_config, &hop.address, &hop.user, aliases).await?;
        check_ssh_config(name, &hop, &config, jump.is_empty())?;
        if jump.is_empty() {
            jump = config.proxy_jump.clone();
        }
        hops.push(merge_ssh_config(&host, &hop, &config));
        if hops.len() > MOST_JUMP_HOSTS {
            let reason = format!(
                "{name}: more than {MOST_JUMP_HOSTS} jump hosts, the first of them {host}; does \
                 one lead back to itself in the ssh configuration?"
            );
            return Err(TransportError::Local {
                reason: reason.into(),
            });
        }
    }
    hops.reverse();
    Ok(Route {
        hops,
        target: merge_ssh_config(name, access, &config),
    })
}

/// Refuses what `ssh` would do by its configuration to reach this host, the target or a jump host
/// before it, and railwright does not do. A ProxyCommand counts only where no jump host is named.
fn check_ssh_config(
    name: &str,
    access: &SshAccess,
    config: &SshConfig,
    is_first: bool,
) -> Result<(), TransportError> {
    let host = &access.address;
    // The files of an inventory that names its own are the only ones.
    let is_open = access.known_hosts.is_empty();
    let reason = if let Some(command) = config.proxy_command.as_ref().filter(|_| is_first) {
        format!(
            "{name}: the ssh configuration reaches {host} through the ProxyCommand {command:?}, \
             which railwright does not run; write the jump host as `ssh: {{ jump: [HOST] }}`"
        )
    } else if let Some(file) = &config.revoked_keys {
        format!(
            "{name}: the ssh configuration names revoked keys for {host} in {file:?}, which \
             railwright does not read; write them into the known_hosts file, as `@revoked * KEY`"
        )
    } else if let Some(command) = config.known_hosts_command.as_ref().filter(|_| is_open) {
        format!(
            "{name}: the ssh configuration asks the KnownHostsCommand {command:?} for the keys of \
             {host}, which railwright does not run; write them into a known_hosts file"
        )
    } else if let Some(files) = config.unclear_known_hosts.as_ref().filter(|_| is_open) {
        format!(
            "{name}: the ssh configuration names the known_hosts files {files:?} for {host}, and \
             where one ends cannot be told; write absolute paths without blanks"
        )
    } else {
        return Ok(());
    };
    Err(TransportError::Local {
        reason: reason.into(),
    })
}

async fn find_ssh_config(
    uses_file: bool,
    host: &str,
    user: &str,
    aliases: &Aliases,
) -> Result<SshConfig, TransportError> {
    if uses_file {
        aliases.of(host, user).await
    } else {
        Ok(SshConfig::default())
    }
}

fn merge_ssh_config(name: &str, access: &SshAccess, config: &SshConfig) -> Destination {
    let mut known_hosts = Vec::new();
    if !access.known_hosts.is_empty() {
        known_hosts.push((PathBuf::from(&access.known_hosts), true));
    } else if !config.known_hosts.is_empty() {
        known_hosts.extend(config.known_hosts.iter().map(|path| (path.clone(), false)));
    } else {
        if let Some(home) = environment::find_home_folder() {
            known_hosts.push((home.join(".ssh/known_hosts"), false));
        }
        known_hosts.push(("/etc/ssh/ssh_known_hosts".into(), false));
    }
    let user = match (access.user.as_str(), &config.user) {
        ("", Some(user)) => user.as_str(),
        ("", None) => "root",
        (user, _) => user,
    };
    Destination {
        name: name.to_owned(),
        address: config
            .host_name
            .clone()
            .unwrap_or_else(|| access.address.clone()),
        port: if access.port != 0 {
            access.port
        } else {
            config.port.unwrap_or(22)
        },
        user: user.to_owned(),
        identities: if access.identities.is_empty() {
            config.identities.clone()
        } else {
            access.identities.iter().map(PathBuf::from).collect()
        },
        identities_only: config.identities_only,
        agent: match &config.agent {
            ConfiguredAgent::OfEnvironment => {
                environment::read_variable("SSH_AUTH_SOCK").map(PathBuf::from)
            }
            ConfiguredAgent::None => None,
            ConfiguredAgent::At(socket) => Some(socket.clone()),
        },
        known_hosts,
        key_alias: config.key_alias.clone(),
        timeout: Duration::from_secs(u64::from(access.connect_timeout_s.max(1))),
        read_only: access.read_only,
    }
}

/// `[user@]host[:port]`, with an IPv6 address in brackets when a port follows.
fn jump_parts(text: &str) -> Option<(String, String, u16)> {
    let text = text.trim();
    let (user, rest) = text.rsplit_once('@').unwrap_or(("", text));
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, 0),
        Some((host, port)) => (host, port.strip_prefix(':')?.parse().ok()?),
        None if rest.matches(':').count() == 1 => {
            let (host, port) = rest.split_once(':')?;
            (host, port.parse().ok()?)
        }
        None => (rest, 0),
    };
    let fine = login_name::is_host(host) && (user.is_empty() || login_name::is_user(user));
    fine.then(|| (user.to_owned(), host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_jump_hosts() {
        for (text, user, host, port) in [
            ("bastion", "", "bastion", 0),
            ("ops@bastion:2222", "ops", "bastion", 2222),
            ("a@b@bastion", "a@b", "bastion", 0),
            ("CORP\\a@bastion", "CORP\\a", "bastion", 0),
            ("[fe80::1]:22", "", "fe80::1", 22),
            ("root@[2001:db8::1]", "root", "2001:db8::1", 0),
            ("2001:db8::1", "", "2001:db8::1", 0),
        ] {
            assert_eq!(
                jump_parts(text),
                Some((user.to_owned(), host.to_owned(), port)),
                "{text}"
            );
        }
        for text in [
            "",
            "a@",
            "host:x",
            "host:99999",
            "-oProxyCommand=x",
            "[::1]x",
            "a b",
            "$(id)",
            "$(id)@bastion",
        ] {
            assert_eq!(jump_parts(text), None, "{text}");
        }
    }

    #[test]
    fn the_inventory_wins_over_the_ssh_configuration() {
        let access = SshAccess {
            address: "n1".to_owned(),
            port: 0,
            user: String::new(),
            identities: Vec::new(),
            known_hosts: String::new(),
            jump: Vec::new(),
            ssh_config: true,
            read_only: false,
            connect_timeout_s: 5,
        };
        let config = SshConfig {
            host_name: Some("10.0.0.1".to_owned()),
            port: Some(2200),
            user: Some("ops".to_owned()),
            identities: vec!["/k".into()],
            known_hosts: vec!["/kh".into()],
            ..SshConfig::default()
        };
        let open = merge_ssh_config("n1", &access, &config);
        assert_eq!(
            (open.address.as_str(), open.port, open.user.as_str()),
            ("10.0.0.1", 2200, "ops")
        );
        assert_eq!(
            (open.identities, open.known_hosts),
            (
                vec![PathBuf::from("/k")],
                vec![(PathBuf::from("/kh"), false)]
            )
        );
        let stated = SshAccess {
            port: 22,
            user: "root".to_owned(),
            identities: vec!["/i".to_owned()],
            known_hosts: "/p".to_owned(),
            ..access
        };
        let stated = merge_ssh_config("n1", &stated, &config);
        assert_eq!((stated.port, stated.user.as_str()), (22, "root"));
        assert_eq!(
            (stated.identities, stated.known_hosts),
            (vec![PathBuf::from("/i")], vec![(PathBuf::from("/p"), true)])
        );
    }
}
