//! Which proxy is used: the kubeconfig's own, else the environment's as other programs read it. The
//! client library compares NO_PROXY with the proxy instead of the server, so this is decided here.

use std::net::IpAddr;

/// The environment's word on proxies.
#[derive(Debug, Clone, Default)]
pub struct ProxyEnvironment {
    /// `HTTPS_PROXY` or `https_proxy`.
    pub proxy: Option<String>,
    /// `NO_PROXY` or `no_proxy`.
    pub without: Option<String>,
}

/// The proxy for this server.
pub fn select_proxy(
    own: Option<&str>,
    environment: &ProxyEnvironment,
    host: &str,
    port: u16,
) -> Option<String> {
    if let Some(own) = own
        && !own.trim().is_empty()
    {
        return Some(own.to_owned());
    }
    let proxy = environment.proxy.as_deref()?;
    let mut without = environment
        .without
        .as_deref()
        .unwrap_or_default()
        .split(',');
    if proxy.trim().is_empty()
        || is_here(host)
        || without.any(|entry| matches_no_proxy_entry(entry, host, port))
    {
        return None;
    }
    // As curl and Go's net/http take it: without a scheme it speaks HTTP.
    Some(if proxy.contains("://") {
        proxy.to_owned()
    } else {
        format!("http://{proxy}")
    })
}

/// Nobody means a proxy for this machine itself.
fn is_here(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || strip_brackets(host)
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn strip_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// One entry of NO_PROXY: `*`, an address, a network, or a name that stands for all below it, each
/// with a port or without.
fn matches_no_proxy_entry(entry: &str, host: &str, port: u16) -> bool {
    let entry = entry.trim();
    if entry == "*" {
        return true;
    }
    let address: Option<IpAddr> = strip_brackets(host).parse().ok();
    if let (Some(address), Ok(network)) = (address, entry.parse::<ipnet::IpNet>()) {
        return network.contains(&address);
    }
    let (name, of_port) = match entry.rsplit_once(':') {
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => {
            (name, digits.parse::<u16>().ok())
        }
        _ => (entry, None),
    };
    if of_port.is_some_and(|of_port| of_port != port) || name.is_empty() {
        return false;
    }
    if let Ok(own) = strip_brackets(name).parse::<IpAddr>() {
        return address == Some(own);
    }
    let (name, host) = (
        name.trim_start_matches('*')
            .trim_start_matches('.')
            .to_ascii_lowercase(),
        host.to_ascii_lowercase(),
    );
    host == name
        || host
            .strip_suffix(&name)
            .is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_what_is_listed_go_without_a_proxy() {
        let proxied = |without: &str, host: &str| {
            let environment = ProxyEnvironment {
                proxy: Some("proxy:3128".to_owned()),
                without: Some(without.to_owned()),
            };
            select_proxy(None, &environment, host, 6443)
        };
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert_eq!(proxied("", host), None, "{host}");
        }
        for (without, host) in [
            ("*", "api.example"),
            ("10.0.0.0/8", "10.1.2.3"),
            ("a, 10.1.2.3", "10.1.2.3"),
            ("example,", "api.example"),
            (".example", "api.example"),
            ("*.example", "api.example"),
            ("API.example:6443", "api.example"),
            ("[fd00::1]:6443", "[fd00::1]"),
        ] {
            assert_eq!(proxied(without, host), None, "{without}");
        }
        for (without, host) in [
            ("", "api.example"),
            ("xample", "api.example"),
            ("api.example:443", "api.example"),
            (",", "10.1.2.3"),
        ] {
            assert_eq!(
                proxied(without, host).as_deref(),
                Some("http://proxy:3128"),
                "{without}"
            );
        }
    }

    #[test]
    fn the_kubeconfig_has_the_first_word() {
        let environment = ProxyEnvironment {
            proxy: Some("http://other".to_owned()),
            without: Some("*".to_owned()),
        };
        assert_eq!(
            select_proxy(Some("socks5://own:1080"), &environment, "127.0.0.1", 1).as_deref(),
            Some("socks5://own:1080")
        );
        assert_eq!(
            select_proxy(Some(""), &ProxyEnvironment::default(), "api.example", 443),
            None
        );
    }
}
