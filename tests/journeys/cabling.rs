//! Cables between network namespaces: two hosts behind real OpenSSH servers and two switches,
//! joined by pairs of veth, with a real lldpd in each. Who is on which port is what lldpd hears,
//! and nothing else.

use crate::rig::held;
use crate::server::{Server, must, sshd};
use crate::support::Place;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// A network of its own with a name and an lldpd; all that runs in it ends with the value.
struct Device {
    holder: Child,
    pid: u32,
}

impl Device {
    fn start(name: &str) -> Device {
        let script = format!(
            "mount -t tmpfs run /run && mkdir -p /run/lldpd && mount -t proc proc /proc && mount \
             -t sysfs -o ro sysfs /sys && hostname {name} && ip link set lo up && echo ready && \
             exec sleep infinity"
        );
        let (holder, pid) = held(&script);
        Device { holder, pid }
    }

    fn enter(&self) -> String {
        format!("nsenter -t {} --mount --net --uts --pid", self.pid)
    }

    fn sh(&self, script: &str) -> String {
        must(
            "sh",
            &["-c", &format!("exec {} sh -c '{script}'", self.enter())],
        )
    }

    /// lldpd, which says a word every second, and has listened to all that it was told before it is
    /// gone on with: it begins paused.
    fn speak(&self) {
        self.sh(
            "lldpd && t=0; until lldpcli configure lldp tx-interval 1 >/dev/null 2>&1 && lldpcli \
             resume >/dev/null 2>&1; do t=$((t+1)); [ $t -lt 100 ] || exit 1; sleep 0.1; done",
        );
    }

    /// Its lldpd ends, and says so to its neighbours.
    fn falls_silent(&self) {
        self.sh(
            "kill $(cat /run/lldpd.pid) && t=0; while [ -e /run/lldpd.socket ] && [ $t -lt 50 ]; \
             do t=$((t+1)); sleep 0.1; done",
        );
    }

    /// The plugs of both rails are swapped: each netdev takes the other's name. lldpd is silent
    /// meanwhile, as it may miss the new name of an interface, and keeps what it heard on the old
    /// one for as long as the neighbour told (120 s).
    fn swaps_plugs(&self) {
        self.falls_silent();
        self.sh(
            "for n in ens0f0np0 ens1f0np0; do ip link set $n down; done; ip link set ens0f0np0 \
             name plug; ip link set ens1f0np0 name ens0f0np0; ip link set plug name ens1f0np0; for \
             n in ens0f0np0 ens1f0np0; do ip link set $n up; done",
        );
        self.speak();
    }

    fn hears(&self) -> String {
        self.sh("lldpctl -f json0")
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// What railwright reaches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// The hosts alone.
    Hosts,
    /// The first host and both switches, which are joined by a cable.
    Switches,
}

/// Hosts `gpu[01-02]` with two rails each, rail k on `leaf(k+1)`.
struct Fabric {
    hosts: Vec<Device>,
    leaves: Vec<Device>,
    place: Place,
    /// They end after the place is done with.
    _servers: Vec<Server>,
}

const TABLE: &str = "host,nic,switch,port
gpu[01-02],ens0f0np0,leaf1,swp[0-4/4]
gpu[01-02],ens1f0np0,leaf2,swp[0-4/4]
";

impl Fabric {
    fn start(reached: Reached) -> Option<Fabric> {
        sshd()?;
        if !Path::new("/usr/sbin/lldpd").exists() {
            assert!(
                std::env::var("RAILWRIGHT_REQUIRE_RIGS").as_deref() != Ok("1"),
                "the rig `lldpd` is required: no lldpd here"
            );
            println!("SKIPPED: the rig `lldpd` is missing: no lldpd here");
            return None;
        }
        let hosts: Vec<Device> = ["gpu01", "gpu02"].map(Device::start).into();
        let leaves: Vec<Device> = ["leaf1", "leaf2"].map(Device::start).into();
        for (rail, leaf) in leaves.iter().enumerate() {
            for (place, host) in hosts.iter().enumerate() {
                let (nic, port) = (format!("ens{rail}f0np0"), format!("swp{}", place * 4));
                let (of_host, of_leaf) = (host.pid.to_string(), leaf.pid.to_string());
                must(
                    "ip",
                    &[
                        "link", "add", &nic, "netns", &of_host, "type", "veth", "peer", "name",
                        &port, "netns", &of_leaf,
                    ],
                );
                host.sh(&format!("ip link set {nic} up"));
                leaf.sh(&format!("ip link set {port} up"));
            }
        }
        let with_switches = reached == Reached::Switches;
        if with_switches {
            let [one, other] = [leaves[0].pid.to_string(), leaves[1].pid.to_string()];
            must(
                "ip",
                &[
                    "link", "add", "swp60", "netns", &one, "type", "veth", "peer", "name", "swp60",
                    "netns", &other,
                ],
            );
            leaves
                .iter()
                .for_each(|leaf| drop(leaf.sh("ip link set swp60 up")));
        }
        hosts.iter().chain(&leaves).for_each(Device::speak);
        let place = Place::new();
        let mut known = String::new();
        let mut servers = Vec::new();
        let mut ssh = |name: &str, device: &Device| -> Option<String> {
            let server = Server::start(
                &["ed25519"],
                &[format!(
                    "ForceCommand exec {} /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"",
                    device.enter()
                )],
            )?;
            place.write(
                &format!("inv/{name}.key"),
                std::fs::read(server.path("id")).unwrap(),
            );
            known.push_str(&format!("{}\n", server.line("ed25519")));
            let port = server.port;
            servers.push(server);
            Some(format!(
                "{{ user: root, address: 127.0.0.1, port: {port}, identities: [{name}.key] }}"
            ))
        };
        let (mut nodes, mut switches) = (String::new(), String::new());
        for (number, host) in hosts.iter().enumerate() {
            let name = format!("gpu0{}", number + 1);
            let ssh = if with_switches && number > 0 {
                "none".to_owned()
            } else {
                ssh(&name, host)?
            };
            nodes.push_str(&format!(
                "  - {{ name: {name}, os: debian-12, nics: {{ model: soft-roce, rails: 2, netdev: \
                 'ens{{rail}}f0np0', address: '10.10.{{rail}}.{{index}}/24' }}, ssh: {ssh} }}\n"
            ));
        }
        for (number, leaf) in leaves.iter().enumerate() {
            let name = format!("leaf{}", number + 1);
            let reached = if with_switches {
                format!(", os: cumulus, ssh: {}", ssh(&name, leaf)?)
            } else {
                String::new()
            };
            switches.push_str(&format!("  - {{ name: {name}{reached} }}\n"));
        }
        let spec = format!(
            "cluster: cables\n\
             fabric: {{ kind: rocev2 }}\n\
             ssh: {{ user: root, host_keys: known_hosts }}\n\
             nodes:\n\
             {nodes}switches:\n\
             {switches}cabling: cabling.csv\n"
        );
        std::fs::set_permissions(
            place.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        place
            .write("inv/cluster.yaml", spec)
            .write("inv/known_hosts", known)
            .write("inv/cabling.csv", TABLE);
        if with_switches {
            place.write(
                "inv/cabling.csv",
                format!("{TABLE}leaf1,swp60,leaf2,swp60\n"),
            );
        }
        Some(Fabric {
            hosts,
            leaves,
            place,
            _servers: servers,
        })
    }

    /// Until a host hears this on all its rails.
    fn until(&self, host: usize, is_so: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !is_so(&self.hosts[host].hears()) {
            assert!(
                began.elapsed() < Duration::from_secs(90),
                "{}",
                self.hosts[host].hears()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn verify(&self) -> String {
        self.place.run(&["verify", "cabling", "inv"])
    }
}

/// The name of the switch that a netdev hears.
fn switch_on(said: &str, netdev: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(said).unwrap();
    let all = json["lldp"][0]["interface"].as_array()?;
    let one = all.iter().find(|interface| interface["name"] == netdev)?;
    Some(one["chassis"][0]["name"][0]["value"].as_str()?.to_owned())
}

fn is_right(said: &str) -> bool {
    switch_on(said, "ens0f0np0").as_deref() == Some("leaf1")
        && switch_on(said, "ens1f0np0").as_deref() == Some("leaf2")
}

#[test]
fn cables_are_heard_swapped_unplugged_and_written_down() {
    let Some(fabric) = Fabric::start(Reached::Hosts) else {
        return;
    };
    (0..2).for_each(|host| fabric.until(host, is_right));
    insta::assert_snapshot!(fabric.verify(), @r#"
    $ railwright verify cabling inv
    verify cabling inv   2 hosts: gpu[01-02]   file inv/cabling.csv

    The cables are as the file has them. 4 cables: 4 right.
    --- exit 0 ---
    "#);
    // what is heard is the file that somebody wrote
    insta::assert_snapshot!(fabric.place.run(&["discover", "cabling", "inv"]), @r#"
    $ railwright discover cabling inv
    host,nic,switch,port
    gpu[01-02],ens0f0np0,leaf1,"swp[0,4]"
    gpu[01-02],ens1f0np0,leaf2,"swp[0,4]"
    --- exit 0 ---
    "#);
    let refused = fabric
        .place
        .run(&["discover", "cabling", "inv", "-o", "inv/cabling.csv"]);
    assert!(
        refused.contains("error RW1044: inv/cabling.csv is there already")
            && refused.ends_with("--- exit 4 ---\n"),
        "{refused}"
    );
    let written = fabric.place.run(&[
        "discover",
        "cabling",
        "inv",
        "-o",
        "inv/cabling.csv",
        "--force",
    ]);
    assert!(
        written.contains("4 cables written to inv/cabling.csv")
            && written.ends_with("--- exit 0 ---\n"),
        "{written}"
    );
    assert!(fabric.verify().ends_with("--- exit 0 ---\n"));

    // the plugs of gpu01 are swapped
    fabric.hosts[0].swaps_plugs();
    let is_swapped = |said: &str| {
        switch_on(said, "ens0f0np0").as_deref() == Some("leaf2")
            && switch_on(said, "ens1f0np0").as_deref() == Some("leaf1")
    };
    fabric.until(0, is_swapped);
    insta::assert_snapshot!(fabric.verify(), @r#"
    $ railwright verify cabling inv
    verify cabling inv   2 hosts: gpu[01-02]   file inv/cabling.csv

    WRONG: not as the file has it -------------------------------------------------------------------
     ! gpu01 ens0f0np0 and ens1f0np0 are swapped   RW0830
           actual  ens0f0np0 in leaf2 swp0, ens1f0np0 in leaf1 swp0
           means   traffic of these rails takes a way over other switches than it was meant to, or finds
                   none: slow under load, and hard to see
           next    at the host: move the plug in ens0f0np0 to ens1f0np0, and the one in ens1f0np0 to
                   ens0f0np0

    The cables are not as the file has them. 4 cables: 2 right, 2 wrong.
    --- exit 1 ---
    "#);
    let only = fabric
        .place
        .run(&["verify", "cabling", "inv", "--host", "gpu02"]);
    assert!(
        only.contains("2 cables: 2 right.\n2 other cables were not looked at")
            && only.ends_with("--- exit 0 ---\n"),
        "{only}"
    );

    // gpu02: one plug is pulled, and then its lldpd ends
    fabric.leaves[0].sh("ip link set swp4 down");
    fabric.until(1, |said| switch_on(said, "ens0f0np0").is_none());
    let json = fabric
        .place
        .command(&["verify", "cabling", "inv", "--json"])
        .output()
        .unwrap();
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    crate::documents::holds("cabling", &json);
    let kinds: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["swapped", "no_link"]);
    fabric.hosts[1].falls_silent();
    insta::assert_snapshot!(fabric.place.run(&["verify", "cabling", "inv", "--host", "gpu02"]), @r#"
    $ railwright verify cabling inv --host gpu02
    verify cabling inv   1 host: gpu02   file inv/cabling.csv

    UNKNOWN: inconclusive ---------------------------------------------------------------------------
     ? gpu02   RW0836
           actual  lldpd does not answer: unable to connect to socket /run/lldpd.socket: No such file or
                   directory
           next    on the host: systemctl status lldpd
           next    railwright drift inv, where the spec has lldp: true

    Inconclusive: something could not be found out. 2 cables: 2 unknown.
    2 other cables were not looked at: of devices that were not asked.
    --- exit 3 ---
    "#);
    let written = fabric
        .place
        .run(&["discover", "cabling", "inv", "-o", "new.csv"]);
    assert!(
        written.contains("gpu02: lldpd does not answer") && written.ends_with("--- exit 3 ---\n"),
        "{written}"
    );
    let table = std::fs::read_to_string(fabric.place.path().join("new.csv")).unwrap();
    assert_eq!(
        table,
        "host,nic,switch,port\ngpu01,ens0f0np0,leaf2,swp0\ngpu01,ens1f0np0,leaf1,swp0\n"
    );
}

/// A host that nobody reaches, and the cable between the switches, are heard at the switches.
#[test]
fn switches_tell_of_their_side() {
    let Some(fabric) = Fabric::start(Reached::Switches) else {
        return;
    };
    (0..2).for_each(|host| fabric.until(host, is_right));
    let of_leaves = || fabric.leaves.iter().map(Device::hears).collect::<String>();
    let began = Instant::now();
    while of_leaves().matches("\"swp60\"").count() < 4 || of_leaves().matches("gpu02").count() < 2 {
        assert!(began.elapsed() < Duration::from_secs(90), "{}", of_leaves());
        std::thread::sleep(Duration::from_millis(200));
    }
    insta::assert_snapshot!(fabric.verify(), @r#"
    $ railwright verify cabling inv
    verify cabling inv   1 host: gpu01   2 switches: leaf[1-2]   file inv/cabling.csv

    The cables are as the file has them. 5 cables: 5 right.
    --- stderr ---
    left out, because they have no SSH: gpu02
    --- exit 0 ---
    "#);
    insta::assert_snapshot!(fabric.place.run(&["discover", "cabling", "inv"]), @r#"
    $ railwright discover cabling inv
    host,nic,switch,port
    gpu[01-02],ens0f0np0,leaf1,"swp[0,4]"
    gpu[01-02],ens1f0np0,leaf2,"swp[0,4]"
    leaf1,swp60,leaf2,swp60
    --- stderr ---
    left out, because they have no SSH: gpu02
    --- exit 0 ---
    "#);
    let only = fabric
        .place
        .run(&["verify", "cabling", "inv", "--host", "gpu01"]);
    assert!(
        only.contains("2 cables: 2 right.\n3 other cables were not looked at")
            && only.ends_with("--- exit 0 ---\n"),
        "{only}"
    );

    // the unreached host's plugs are swapped, and the first switch falls silent
    fabric.hosts[1].swaps_plugs();
    fabric.until(1, |said| {
        switch_on(said, "ens0f0np0").as_deref() == Some("leaf2")
            && switch_on(said, "ens1f0np0").as_deref() == Some("leaf1")
    });
    let began = Instant::now();
    while !fabric
        .verify()
        .contains("gpu02 ens0f0np0 and ens1f0np0 are swapped")
    {
        assert!(
            began.elapsed() < Duration::from_secs(90),
            "{}",
            fabric.verify()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    fabric.leaves[0].falls_silent();
    fabric.until(0, |said| switch_on(said, "ens0f0np0").is_none());
    insta::assert_snapshot!(fabric.verify(), @r#"
    $ railwright verify cabling inv
    verify cabling inv   1 host: gpu01   2 switches: leaf[1-2]   file inv/cabling.csv

    WRONG: not as the file has it -------------------------------------------------------------------
     ! gpu02 ens0f0np0 is in a wrong port   RW0831
           actual  leaf2 swp4, where gpu02 ens1f0np0 belongs
           desired leaf1 swp4 (inv/cabling.csv:2)
           means   traffic of these rails takes a way over other switches than it was meant to, or finds
                   none: slow under load, and hard to see
           next    move the plug in leaf2 swp4 to leaf1 swp4

    UNKNOWN: inconclusive ---------------------------------------------------------------------------
     ? gpu01 ens0f0np0   RW0835
           actual  it has a link, and hears nobody
           means   the cable may well be right: an LLDP agent in the firmware of a ConnectX takes the
                   frames, or the switch sends none
           next    look who is on leaf1 swp0 at the switch; railwright explain RW0835 tells the causes
     ? leaf1 swp60   RW0835
           actual  it has a link, and hears nobody
           means   the cable may well be right: an LLDP agent in the firmware of a ConnectX takes the
                   frames, or the switch sends none
           next    look who is on leaf2 swp60 at the switch; railwright explain RW0835 tells the causes
     ? gpu02 ens1f0np0   RW0835
           actual  not in leaf2 swp4, where gpu02 ens0f0np0 is; whatever it is in tells nothing
           next    fix the other cable, and follow this one by hand
     ? leaf1   RW0836
           actual  its LLDP does not answer: unable to connect to socket /run/lldpd.socket: No such file
                   or directory
           next    on the switch: systemctl status lldpd

    The cables are not as the file has them. 5 cables: 1 right, 1 wrong, 3 unknown.
    --- stderr ---
    left out, because they have no SSH: gpu02
    --- exit 1 ---
    "#);
}

/// Without a file there is nothing to compare with, and nothing is asked.
#[test]
fn without_a_file_nothing_is_asked() {
    let place = Place::new();
    place.write(
        "inv/cluster.yaml",
        "cluster: c\n\
         fabric: { kind: rocev2 }\n\
         nodes: [{ name: n1, nics: { model: soft-roce, netdev: rail0 } }]\n",
    );
    insta::assert_snapshot!(place.run(&["verify", "cabling", "inv"]), @r#"
    $ railwright verify cabling inv
    --- stderr ---
    error RW1043: the spec names no cabling file, so there is nothing to compare with
      effect: which NIC belongs in which port of a switch is written nowhere
      state:  no host was asked
      next:   railwright discover cabling inv -o inv/cabling.csv writes what the hosts hear; look at it
      next:   then write `cabling: cabling.csv` in the spec
    --- exit 1 ---
    "#);
    place.write(
        "inv/cluster.yaml",
        "cluster: c\nnodes: []\ncabling: cabling.csv\n",
    );
    insta::assert_snapshot!(place.run(&["validate", "inv"]), @r#"
    $ railwright validate inv
    error RW0148: the cabling file cabling.csv is not there
       ╭─[inv/cluster.yaml:3:10]
     2 │ nodes: []
     3 │ cabling: cabling.csv
       ·          ─────┬─────
       ·               ╰── named here
       ╰────
      effect: nobody can tell which NIC belongs in which port of a switch
      next:   correct the path, which is relative to the inventory; or railwright discover cabling inv
              -o inv/cabling.csv

    inv: not valid. 1 error. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
    place.write(
        "inv/cluster.yaml",
        "cluster: c\n\
         fabric: { kind: rocev2 }\n\
         nodes: [{ name: 'n[1-2]', nics: { model: soft-roce, netdev: rail0 } }]\n\
         switches: [{ name: leaf1 }]\n\
         cabling: cabling.csv\n",
    );
    place.write(
        "inv/cabling.csv",
        "# rack 1\nhost,nic,switch,port\nn[1-2],rail0,leaf1,swp[0-1]\nn1,rial0,laef1,swp0\n",
    );
    insta::assert_snapshot!(place.run(&["validate", "inv"]), @r#"
    $ railwright validate inv
    error RW0153: n1 has no NIC `rial0`; did you mean `rail0`?
       ╭─[inv/cabling.csv:4:4]
     3 │ n[1-2],rail0,leaf1,swp[0-1]
     4 │ n1,rial0,laef1,swp0
       ·    ──┬──
       ·      ╰── no rail of it
       ╰────
      effect: this line says of no NIC where it is plugged in
      next:   name the netdev of a rail: rail0

    error RW0154: there is no switch `laef1`; did you mean `leaf1`?
       ╭─[inv/cabling.csv:4:10]
     3 │ n[1-2],rail0,leaf1,swp[0-1]
     4 │ n1,rial0,laef1,swp0
       ·          ──┬──
       ·            ╰── not in the spec
       ╰────
      effect: this line says of no NIC where it is plugged in
      next:   name switches of `switches`

    inv: not valid. 2 errors. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
}
