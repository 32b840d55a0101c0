//! How hosts are reached. These values end up in connections and, with `config: true`, on the
//! command line of `ssh -G`.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::hosts::{Host, list_placeholders};
use crate::spec::model::{Spec, Ssh};
use crate::spec::switches::{SwitchReach, switches_of};
use railwright_base::Diagnostic;
use railwright_base::login_name;
use railwright_base::nodeset::fold_node_set;
use std::collections::BTreeMap;

const EFFECT: &str = "the hosts cannot be reached, so nothing can be read or changed";

/// The `ssh` of the cluster and of every group.
pub fn check_access(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let of_groups =
        spec.nodes.iter().enumerate().filter_map(|(index, group)| {
            Some((format!("nodes[{index}].ssh"), group.ssh.as_ref()?))
        });
    for (at, reach) in std::iter::once(("ssh".to_owned(), &spec.ssh)).chain(of_groups) {
        if let Some(ssh) = reach.ssh() {
            check_ssh(checker, &at, ssh);
        }
    }
    for (index, switch) in spec.switches.iter().enumerate() {
        if let Some(ssh) = &switch.ssh {
            check_ssh(checker, &format!("switches[{index}].ssh"), ssh);
        }
    }
}

fn check_ssh(checker: &mut SpecChecker<'_>, at: &str, ssh: &Ssh) {
    if ssh.port == Some(0) {
        checker.find(
            &format!("{at}.port"),
            "1 to 65535 is possible",
            new_spec_error(
                "RW0119",
                "there is no port 0",
                EFFECT,
                "write the port of sshd, or remove the key for 22",
            ),
        );
    }
    if let Some(user) = ssh.user.as_deref().filter(|user| !is_user(user)) {
        checker.find(
            &format!("{at}.user"),
            "not a user",
            new_spec_error(
                "RW0119",
                format!("`{}` cannot be a user name", truncate_user_text(user)),
                EFFECT,
                "write a name such as `root`",
            ),
        );
    }
    if let Some(address) = &ssh.address {
        check_address(checker, &format!("{at}.address"), address);
    }
    check_jump_hosts(checker, at, ssh);
    if let Some(file) = &ssh.host_keys {
        check_file_name(checker, &format!("{at}.host_keys"), file);
    }
    for (index, file) in ssh.identities.iter().enumerate() {
        check_file_name(checker, &format!("{at}.identities[{index}]"), file);
    }
}

fn check_jump_hosts(checker: &mut SpecChecker<'_>, at: &str, ssh: &Ssh) {
    for (index, jump) in ssh.jump.iter().enumerate() {
        if is_jump(jump) {
            continue;
        }
        let finding = new_spec_error(
            "RW0119",
            format!("`{}` cannot be a jump host", truncate_user_text(jump)),
            EFFECT,
            "write `[user@]host[:port]`",
        );
        checker.find(
            &format!("{at}.jump[{index}]"),
            "not `[user@]host[:port]`",
            finding,
        );
    }
}

fn check_file_name(checker: &mut SpecChecker<'_>, path: &str, file: &str) {
    if file.is_empty() || file.chars().any(char::is_control) {
        let finding = new_spec_error(
            "RW0119",
            "this cannot be a file name",
            EFFECT,
            "write a path relative to the inventory, or from `~/`",
        );
        checker.find(path, "not a file name", finding);
    }
}

pub(super) fn check_address(checker: &mut SpecChecker<'_>, path: &str, address: &str) {
    if let Some(unknown) = list_placeholders(address)
        .into_iter()
        .find(|name| !matches!(*name, "name" | "index"))
    {
        let finding = new_spec_error(
            "RW0119",
            format!(
                "`{{{}}}` stands for nothing here",
                truncate_user_text(unknown)
            ),
            EFFECT,
            "`{name}` and `{index}` can be used",
        );
        checker.find(path, "unknown placeholder", finding);
    } else if !is_address(address) {
        let finding = new_spec_error(
            "RW0119",
            format!("`{}` cannot be an address", truncate_user_text(address)),
            EFFECT,
            "write a host name, an IP address or `local`; the user goes to `user`, the port to \
             `port`",
        );
        checker.find(path, "not an address", finding);
    }
}

/// With a host's own name and number in the place of what stands for them.
fn is_address(address: &str) -> bool {
    login_name::is_host(&address.replace("{name}", "n").replace("{index}", "1"))
}

/// What stands before an `@` goes to `user`, what stands behind it to `address`.
pub(super) fn is_user(user: &str) -> bool {
    login_name::is_user(user) && !user.contains('@')
}

fn is_jump(jump: &str) -> bool {
    let (user, rest) = match jump.split_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, jump),
    };
    let inside = rest.strip_prefix('[');
    let (host, port) = match inside.and_then(|inside| inside.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, after)) => (host, Some(after.strip_prefix(':').unwrap_or("?"))),
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    let good_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    user.is_none_or(is_user) && login_name::is_host(host) && good_port
}

/// Two hosts behind one address are one machine with two names.
pub fn check_shared_addresses(checker: &mut SpecChecker<'_>, hosts: &[Host]) {
    let mut by_address: BTreeMap<(&str, u16, &[String]), Vec<&Host>> = BTreeMap::new();
    for host in hosts {
        let Some(ssh) = &host.ssh else { continue };
        // What is left in braces, or can be no address, was reported already.
        if !ssh.address.contains('{') && is_address(&ssh.address) {
            let key = (&*ssh.address, ssh.port.unwrap_or(22), &*ssh.jump);
            by_address.entry(key).or_default().push(host);
        }
    }
    for ((address, port, _), hosts) in by_address {
        let [first, second, ..] = hosts.as_slice() else {
            continue;
        };
        let place = if address == "local" {
            "this machine".to_owned()
        } else {
            format!("`{}`, port {port}", truncate_user_text(address))
        };
        let names = hosts.iter().map(|host| host.name.as_str());
        let Some(finding) = describe_shared_place(names, &place, ["machine", "host"]) else {
            continue;
        };
        let mut path = format!("nodes[{}].ssh.address", second.group);
        if checker.tree.find(&path).is_none() {
            path = "ssh.address".to_owned();
        }
        if checker.tree.find(&path).is_none() {
            path = format!("nodes[{}].name", first.group);
        }
        checker.find(&path, "not one address for each", finding);
    }
}

/// What is reached at one place under several names; nothing where it has one. It is called what it
/// is, and what each name is of.
fn describe_shared_place<'a>(
    names: impl Iterator<Item = &'a str>,
    place: &str,
    [it, each]: [&str; 2],
) -> Option<Diagnostic> {
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    if names.len() < 2 {
        return None;
    }
    let names = truncate_user_text(&fold_node_set(&names));
    let message = format!("{names} are all reached at {place}");
    let effect = format!("one {it} would be changed under several names");
    let fix = format!("use `{{name}}` or `{{index}}` in the address, or give each {each} its own");
    Some(new_spec_error("RW0119", message, &effect, fix))
}

/// Two switches whose API is at one address are one switch with two names. Over SSH that is left
/// open: a server there may tell them apart.
pub fn check_shared_switches(checker: &mut SpecChecker<'_>, spec: &Spec) {
    let mut by_address: BTreeMap<(String, u16), Vec<(String, usize)>> = BTreeMap::new();
    for switch in switches_of(spec) {
        // What is no address of a switch was reported already.
        if let Some(SwitchReach::Api(api)) = switch.reach
            && api.address != "local"
            && !api.address.contains(['{', '@'])
        {
            by_address
                .entry((api.address, api.port))
                .or_default()
                .push((switch.name, switch.group));
        }
    }
    for ((address, port), switches) in by_address {
        let [_, (_, group), ..] = switches[..] else {
            continue;
        };
        let place = format!("`{}`, port {port}", truncate_user_text(&address));
        let names = switches.iter().map(|(name, _)| name.as_str());
        let Some(finding) = describe_shared_place(names, &place, ["switch", "switch"]) else {
            continue;
        };
        let ways = ["nvue", "eapi"].map(|way| format!("switches[{group}].{way}.address"));
        let path = ways
            .into_iter()
            .find(|path| checker.tree.find(path).is_some());
        checker.find(
            &path.unwrap_or_else(|| format!("switches[{group}].name")),
            "not one address for each",
            finding,
        );
    }
}
