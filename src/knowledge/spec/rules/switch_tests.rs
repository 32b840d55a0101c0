//! Every rule of switches with a spec that breaks it.

use super::tests::check;

#[test]
fn ports_of_switches() {
    let ports = |os: &str, ports: &str| {
        format!("switches: [{{ name: leaf1, os: {os}, ports: '{ports}' }}]")
    };
    for (os, set) in [
        ("sonic", "Ethernet[0-60/4]"),
        ("cumulus", "swp[1-4],swp5s[0-3]"),
        ("eos", "Ethernet[1-32]/1,Ethernet33,Ethernet3/[1-2]/1"),
    ] {
        check(&ports(os, set), &[]);
    }
    for (os, set) in [
        ("sonic", "Eth1/[1-2]"),
        ("sonic", "Ethernet[1-2]/1"),
        ("sonic", "PortChannel1"),
        ("cumulus", "Ethernet[0-60/4]"),
        ("cumulus", "swp1s0s1"),
        ("eos", "swp1"),
        ("eos", "Ethernet1/1/1/1"),
        ("eos", "Management1"),
    ] {
        check(&ports(os, set), &[("RW0172", &format!("'{set}'"))]);
    }
    check(&ports("eos", "Ethernet[1-"), &[("RW0171", "'Ethernet[1-'")]);
    check("switches: [{ name: leaf1, ports: 'Eth1/[1-2]' }]", &[]);
}

#[test]
fn apis_of_switches() {
    let api = |keys: &str| format!("user: u, password: {{ env: P }}, {keys}");
    let port = |keys: &str| {
        [("eos", "Ethernet1"), ("sonic", "Ethernet0")]
            .into_iter()
            .find(|(os, _)| keys.contains(&format!("os: {os}")))
    };
    let switch = |keys: &str| {
        format!(
            "switches: [{{ name: 'leaf[1-2]', ports: {}, {keys} }}]",
            port(keys).map_or("swp1", |(_, port)| port)
        )
    };
    let eapi = |keys: &str| switch(&format!("os: eos, eapi: {{ {keys} }}"));
    let digits = "a1:".repeat(31) + "A1";
    check(
        &eapi(&api(
            "address: '10.0.0.{index}', port: 8443, certificate: 'pins/{name}.pem'",
        )),
        &[],
    );
    check(&eapi(&api(&format!("certificate: 'SHA256:{digits}'"))), &[]);
    check(
        &eapi(&api("certificate: 'sha256:a1:b2'")),
        &[("RW0174", "'sha256:a1:b2'")],
    );
    check(
        &eapi(&api("certificate: 'pins/{nam}.pem'")),
        &[("RW0174", "'pins/{nam}.pem'")],
    );
    check(&eapi(&api("certificate: ''")), &[("RW0174", "''")]);
    check(
        &eapi(&api("certificate: none, verify: false")),
        &[("RW0105", "verify")],
    );
    check(&eapi(&api("port: 0")), &[("RW0174", "0")]);
    check(&eapi(&api("address: local")), &[("RW0174", "local")]);
    check(
        &eapi(&api("address: 'u@leaf1'")),
        &[("RW0119", "'u@leaf1'")],
    );
    check(
        &eapi(&api("address: '10.0.0.1:443'")),
        &[("RW0119", "'10.0.0.1:443'"), ("RW0119", "'10.0.0.1:443'")],
    );
    check(
        &eapi(&api("address: 'http://{name}/'")),
        &[("RW0119", "'http://{name}/'")],
    );
    check(&eapi(&api("address: 'fe80::{index}%eth0'")), &[]);
    // One switch under two names.
    check(&eapi(&api("address: 10.0.0.1")), &[("RW0119", "10.0.0.1")]);
    check(&switch("os: sonic, ssh: { address: 'fd00::1' }"), &[]);
    check(
        &eapi("user: 'a:b', password: { env: P }"),
        &[("RW0174", "'a:b'")],
    );
    check(
        &eapi("user: u, password: { env: P, file: p }"),
        &[("RW0117", "password")],
    );
    check(&eapi("user: u, password: poison"), &[("RW0106", "poison")]);
    check(&eapi("user: u"), &[("RW0107", "{")]);
    check(
        &switch("os: sonic, eapi: { user: u, password: { env: P } }"),
        &[("RW0174", "eapi")],
    );
    check(
        &switch("os: eos, ssh: {}, eapi: { user: u, password: { env: P } }"),
        &[("RW0174", "eapi")],
    );
    check(
        &switch("os: cumulus, nvue: { user: u, password: { env: P } }"),
        &[],
    );
    check(
        &switch("os: eos, nvue: { user: u, password: { env: P } }"),
        &[("RW0174", "nvue")],
    );
    check(
        &switch("os: cumulus, nvue: { user: u, password: { env: P } }, ssh: {}"),
        &[("RW0174", "nvue")],
    );
    check(
        &switch("eapi: { user: u, password: { env: P } }"),
        &[("RW0170", "eapi")],
    );
}
