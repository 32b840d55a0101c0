//! Host names, addresses and users, as a connection and the command line of `ssh -G` get them. What
//! is allowed is listed; everything else is refused, since the configuration of ssh may hand these
//! words to a shell (`Match exec`, `ProxyCommand`: ssh_config(5), TOKENS).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Labels and names of hosts are no longer than this (RFC 1035, section 2.3.4).
const LABEL_MAX: usize = 63;
const NAME_MAX: usize = 253;

/// True for a host name, an alias of the ssh configuration, an IPv4 address, or an IPv6 address
/// that may name its zone (`fe80::1%eth0`). Names have letters, digits, `-` and `_` (RFC 1123,
/// section 2.1; the underscore stands in aliases).
pub fn is_host(text: &str) -> bool {
    if text.contains(':') {
        let (address, zone) = text
            .split_once('%')
            .map_or((text, None), |(address, zone)| (address, Some(zone)));
        // An interface has at most 15 bytes (IFNAMSIZ of linux/if.h).
        return address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(|zone| is_word(zone, 15));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    text.parse::<Ipv4Addr>().is_ok() || (name.len() <= NAME_MAX && name.split('.').all(is_label))
}

/// True for a user of a machine: the portable characters of POSIX (XBD 3.426, User Name), which do
/// not begin with `-`. A user of a directory may name its domain, as `DOMAIN\\user` (winbindd(8))
/// or `user@domain` (sssd.conf(5), full_name_format).
pub fn is_user(text: &str) -> bool {
    let is_plain = |name: &str| is_word(name, 32);
    match (text.split_once('\\'), text.split_once('@')) {
        (Some((domain, user)), None) => is_plain(domain) && is_plain(user),
        (None, Some((user, domain))) => is_plain(user) && is_host(domain) && !domain.contains(':'),
        (None, None) => is_plain(text),
        _ => false,
    }
}

fn is_label(label: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !label.is_empty()
        && label.len() <= LABEL_MAX
        && !label.starts_with('-')
        && label.chars().all(is_inner)
}

fn is_word(text: &str, longest: usize) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty()
        && text.len() <= longest
        && !text.starts_with('-')
        && text.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_host_and_a_user_is_listed() {
        for host in [
            "gpu-001",
            "gpu_1",
            "a.example.org",
            "a.example.org.",
            "10.0.0.1",
            "fe80::1",
            "fe80::1%eth0.1",
            "2001:db8::1",
            "1",
        ] {
            assert!(is_host(host), "{host}");
        }
        for no in [
            "",
            "-o",
            "a..b",
            ".a",
            "$(id)",
            "a;b",
            "a b",
            "a\n",
            "a/b",
            "a@b",
            "`id`",
            "a:22",
            "fe80::1%",
            "fe80::1%$(id)",
            "a'b",
            "ü",
            "{name}",
            "%h",
        ] {
            assert!(!is_host(no), "{no}");
        }
        for user in [
            "root",
            "_rw",
            "a.b-c",
            "CORP\\alice",
            "alice@corp.example.org",
            "0x",
        ] {
            assert!(is_user(user), "{user}");
        }
        for no in [
            "", "-l", "$(id)", "a b", "a;b", "a'b", "\\a", "a\\", "a@", "@a", "a\\b@c", "a@b@c",
            "a:b", "a/b", "%r", "*",
        ] {
            assert!(!is_user(no), "{no}");
        }
    }
}
