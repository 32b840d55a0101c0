//! A machine behind a real OpenSSH server: a Debian root with namespaces, apt and files of its own,
//! so that what a story changes is neither this machine's nor another story's.

use crate::rig::Host;
use crate::server::Server;
use crate::support::Place;
use std::path::Path;

/// The machine, its server, and a folder with an inventory of it. All end with the value.
pub struct Machine {
    pub place: Place,
    pub server: Server,
    pub host: Host,
}

/// An inventory of one machine without a fabric, so that the module `story` alone has resources.
const SPEC: &str = "cluster: night
ssh: { user: root, host_keys: known_hosts, identities: [id] }
nodes:
  - { name: n1, os: debian-12, ssh: { address: 127.0.0.1, port: PORT } }
";

impl Machine {
    /// With these resources of the module `story`; none when a rig is missing here.
    pub fn start(story: &str, resources: &str, copies: &[(&Path, &str)]) -> Option<Machine> {
        let host = Host::start(story, copies)?;
        // Every session of the server is a shell in the machine.
        let server = Server::start(
            &["ed25519"],
            &[format!(
                "ForceCommand exec {} /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"",
                host.entry()
            )],
        )?;
        let place = Place::new();
        place.write(
            "inv/cluster.yaml",
            SPEC.replace("PORT", &server.port.to_string()),
        );
        place.write("inv/id", std::fs::read(server.path("id")).unwrap());
        let machine = Machine {
            place,
            server,
            host,
        };
        machine.pin(&machine.server.line("ed25519"));
        machine.resource(resources);
        Some(machine)
    }

    /// The known_hosts of the inventory.
    pub fn pin(&self, lines: &str) {
        self.place.write("inv/known_hosts", format!("{lines}\n"));
    }

    /// The resources of the module `story`, indented as in a list.
    pub fn resource(&self, resources: &str) {
        let text = format!("module: story\nsummary: what the story needs\nresources:\n{resources}");
        self.place.write("inv/modules/story/module.yaml", text);
    }

    /// What the program says, without what differs from run to run.
    pub fn run(&self, words: &[&str]) -> String {
        scrub(
            &self
                .place
                .run(words)
                .replace(&format!(":{}", self.server.port), ":PORT"),
        )
    }

    /// A file of the machine; nothing where there is none.
    pub fn file(&self, path: &str) -> Option<String> {
        let (code, out, _) = self.host.sh(&format!("cat '{path}'"));
        (code == 0).then_some(out)
    }
}

/// Replaces digests, runs, processes and the time that went by.
pub fn scrub(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut previous = "";
        for word in line.split_inclusive(' ') {
            let bare = word.trim_end();
            let hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
            let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            let token = bare.trim_end_matches([':', ')', ',', ';']);
            let name = match token.split_once('-') {
                _ if token.len() == 12 && hex(token) => Some("DIGEST"),
                Some((run, digest))
                    if run.starts_with('r')
                        && digits(&run[1..])
                        && digest.len() == 6
                        && hex(digest) =>
                {
                    Some("RUN")
                }
                _ if token.len() == 8 && token.starts_with("00:") => Some("CLOCK"),
                _ if token.starts_with("SHA256:") => Some("SHA256:FINGERPRINT"),
                _ if matches!(previous, "(process" | "pid") && digits(token) => Some("PROCESS"),
                _ => None,
            };
            out.push_str(&name.map_or(word.to_owned(), |name| word.replacen(token, name, 1)));
            previous = bare;
        }
    }
    out
}
