//! What could not be found out, of `plan`, `drift` and `facts`: folded by node-set, with the code
//! and what to do.

use super::wrap;
use indexmap::{IndexMap, IndexSet};
use railwright_base::{nodeset, text};
use railwright_plan::UnknownFinding;

/// The indentation of what stands below an entry.
const BELOW: &str = "       ";

/// A resource, and the hosts that have the same trouble with it.
type Alike<'a> = (String, Vec<(String, &'a UnknownFinding)>);

/// One entry for all targets with the same trouble; single resources with the same reason are one
/// entry as well.
pub fn render_unknown_findings(findings: &[UnknownFinding]) -> String {
    let mut folded: IndexMap<(String, &str), Vec<(String, &UnknownFinding)>> = IndexMap::new();
    for finding in findings {
        let (who, what) = split_subject(&finding.subject);
        let identical = finding
            .trouble
            .as_ref()
            .map_or(finding.reason.as_str(), |trouble| {
                trouble.shared_message.as_str()
            });
        folded
            .entry((what, identical))
            .or_default()
            .push((who, finding));
    }
    // Resources of the same hosts with the same trouble, whose names count on (the rails' netdevs),
    // are one entry.
    let mut by_name: IndexMap<(String, &str, Vec<String>), Vec<Alike>> = IndexMap::new();
    for ((what, identical), members) in folded {
        let hosts = members.iter().map(|(who, _)| who.clone()).collect();
        let stem = if what.contains(['[', ',']) {
            what.clone()
        } else {
            nodeset::mask_digits(&what)
        };
        by_name
            .entry((stem, identical, hosts))
            .or_default()
            .push((what, members));
    }
    // Of a target that tells nothing every value has the same trouble: that is one entry, too.
    let mut by_hosts: IndexMap<(&str, Vec<String>), Vec<Alike>> = IndexMap::new();
    for ((_, identical, hosts), of_names) in by_name {
        let whats: Vec<&str> = of_names.iter().map(|(what, _)| what.as_str()).collect();
        let what = nodeset::fold_names_of_one_stem(&whats).replace("%2F", "/");
        if let Some((_, members)) = of_names.into_iter().next() {
            let entries = by_hosts.entry((identical, hosts)).or_default();
            entries.push((what, members));
        }
    }
    let mut out = String::new();
    for ((identical, _), entries) in by_hosts {
        if let [(_, members), _, _, _, _, ..] = &entries[..] {
            let what = describe_many_values(entries.iter().map(|(what, _)| what.as_str()));
            out.push_str(&render_unknown_entry(&what, identical, members));
            continue;
        }
        for (what, members) in &entries {
            out.push_str(&render_unknown_entry(what, identical, members));
        }
    }
    out
}

/// `24 values of switch_port/swp[2-3], switch_qos/swp[2-3]`.
fn describe_many_values<'a>(whats: impl Iterator<Item = &'a str> + Clone) -> String {
    let resources: IndexSet<&str> = whats
        .clone()
        .map(|what| what.split('#').next().unwrap_or_default())
        .collect();
    format!(
        "{} values of {}",
        whats.count(),
        resources.into_iter().collect::<Vec<_>>().join(", ")
    )
}

/// Hosts by their name alone: `host/n1/link/ens4` is `n1` and `link/ens4`; of a cluster `kube/prod`
/// and the rest, of a switch `switch/leaf1`.
fn split_subject(subject: &str) -> (String, String) {
    match subject.split_once('/') {
        Some(("host", rest)) => split_at_slash(rest),
        Some((kind @ ("kube" | "switch"), rest)) => {
            let (name, what) = split_at_slash(rest);
            (format!("{kind}/{name}"), what)
        }
        _ => (subject.to_owned(), String::new()),
    }
}

fn split_at_slash(text: &str) -> (String, String) {
    let (who, what) = text.split_once('/').unwrap_or((text, ""));
    (who.to_owned(), what.to_owned())
}

fn render_unknown_entry(
    what: &str,
    identical: &str,
    members: &[(String, &UnknownFinding)],
) -> String {
    let Some((first, finding)) = members.first() else {
        return String::new();
    };
    let names: Vec<&str> = members.iter().map(|(who, _)| who.as_str()).collect();
    let what = if what.is_empty() {
        "the whole target"
    } else {
        what
    };
    let (code, next) = match &finding.trouble {
        Some(trouble) => (format!("   {}", trouble.code), &trouble.next[..]),
        None => (String::new(), &[][..]),
    };
    let reason = if members.len() == 1 {
        &finding.reason
    } else {
        identical
    };
    let mut out = wrap::wrap_labelled_text(
        " ? ",
        &format!(
            "{} {}{code}",
            nodeset::fold_node_set(&names),
            text::clean_line(what)
        ),
        100,
    );
    out.push_str(&wrap::wrap_labelled_text(
        BELOW,
        &text::one_line(reason, 300),
        100,
    ));
    let same = members.iter().all(|(_, other)| {
        other
            .trouble
            .as_ref()
            .is_some_and(|trouble| trouble.next == next)
    });
    if !next.is_empty() && !same {
        out.push_str(&format!(
            "{BELOW}on {}, for example:\n",
            text::clean_line(first)
        ));
    }
    for next in next {
        // Not broken into lines: it is there to be copied.
        out.push_str(&format!("{BELOW}next: {}\n", text::one_line(next, 1500)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_base::Target;
    use railwright_transport::TransportError;

    fn silent(host: &str, error: &TransportError) -> UnknownFinding {
        UnknownFinding::target(&Target::host(host), &error.trouble())
    }

    #[test]
    fn rails_of_the_same_hosts_that_could_not_be_read_are_one_entry() {
        let of = |host: &str, rail: usize| {
            UnknownFinding::new(
                format!("host/{host}/link/ens{rail}f0np0#mtu"),
                "it was not read",
            )
        };
        let mut findings: Vec<UnknownFinding> = ["n1", "n2"]
            .iter()
            .flat_map(|host| (0..8).map(|rail| of(host, rail)))
            .collect();
        findings.push(of("n1", 8));
        findings.push(UnknownFinding::new(
            "host/n1/file/%2Fetc%2Fx#content",
            "it was not read",
        ));
        insta::assert_snapshot!(render_unknown_findings(&findings), @r#"
    ? n[1-2] link/ens[0-7]f0np0#mtu
          it was not read
    ? n1 link/ens8f0np0#mtu
          it was not read
    ? n1 file//etc/x#content
          it was not read
    "#);
    }

    #[test]
    fn a_thousand_hosts_with_one_trouble_are_one_entry() {
        let down = |host: &str, number: usize| {
            let address = format!("10.0.{}.{}:22", number / 250, number % 250);
            silent(
                host,
                &TransportError::Unreachable {
                    host: host.to_owned(),
                    address,
                    reason: "Connection refused (os error 111)".into(),
                },
            )
        };
        let names: Vec<String> = (1..=1000)
            .map(|number| format!("gpu-{number:04}"))
            .collect();
        let mut findings: Vec<UnknownFinding> = names
            .iter()
            .enumerate()
            .map(|(number, host)| down(host, number))
            .collect();
        findings.push(silent(
            "gpu-2000",
            &TransportError::HostKeyUnknown {
                host: "gpu-2000".into(),
                fingerprint: "SHA256:abc".into(),
                known_hosts: "inventories/a/known_hosts".into(),
                line: "10.1.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI".into(),
                malformed: Vec::new(),
            },
        ));
        findings.push(UnknownFinding::new(
            "host/gpu-2001/sysctl/net.core.rmem_max",
            "the read ran past its time limit",
        ));
        insta::assert_snapshot!(render_unknown_findings(&findings), @r"
         ? gpu-[0001-1000] the whole target   RW0401
               not reachable: Connection refused (os error 111)
               on gpu-0001, for example:
               next: check that it is up and that 10.0.0.0:22 is right in the inventory
               next: then run the same command again
               next: or leave it out of a plan: --exclude gpu-0001
         ? gpu-2000 the whole target   RW0402
               the host key of gpu-2000 is not known: SHA256:abc
               next: compare it on the host's console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
               next: if it is the same, add this line to inventories/a/known_hosts: 10.1.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI
               next: then run the same command again
         ? gpu-2001 sysctl/net.core.rmem_max
               the read ran past its time limit
        ");
    }
}
