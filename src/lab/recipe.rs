//! What the machines are made of, and the digest that names it: same recipe, same disk, built once.

use super::{assets, sources::AptSource};
use railwright_base::Digest;
use serde::{Deserialize, Serialize};

/// The size of a machine's disk; sparse, about 400 MB are written.
pub const DISK_SIZE: &str = "3G";

/// The program that owns the interfaces of the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Network {
    /// systemd-networkd.
    #[default]
    Networkd,
    /// NetworkManager.
    NetworkManager,
    /// netplan, which renders for systemd-networkd.
    Netplan,
    /// ifupdown.
    Ifupdown,
}

impl Network {
    /// Its word in the recipe and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Network::Networkd => "networkd",
            Network::NetworkManager => "networkmanager",
            Network::Netplan => "netplan",
            Network::Ifupdown => "ifupdown",
        }
    }
}

/// What the machines of a lab are: who owns their interfaces, and whether they can be nodes of
/// Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flavour {
    /// Who owns their interfaces.
    pub network: Network,
    /// With kubelet, containerd and the images of containers.
    #[serde(default)]
    pub kubernetes: bool,
}

impl Flavour {
    /// Its word in the names of disks.
    pub fn word(self) -> String {
        if self.kubernetes {
            format!("{}-kubernetes", self.network.word())
        } else {
            self.network.word().to_owned()
        }
    }
}

/// The packages of a kind in `recipe/packages.txt`: lines of `KIND PACKAGE`.
fn list_recipe_packages(kind: &str) -> Vec<&'static str> {
    let lines = assets::read_asset_text("recipe/packages.txt").lines();
    lines
        .filter_map(|line| line.split_once(' '))
        .filter(|(of, _)| *of == kind)
        .map(|(_, name)| name)
        .collect()
}

/// What a machine has from the start.
pub fn list_installed_packages(flavour: Flavour) -> Vec<&'static str> {
    let node = if flavour.kubernetes {
        list_recipe_packages("kubernetes")
    } else {
        Vec::new()
    };
    [
        list_recipe_packages("bare"),
        list_recipe_packages(flavour.network.word()),
        node,
    ]
    .concat()
}

/// What the repository offers to it, without the dependencies.
pub fn list_served_packages() -> Vec<&'static str> {
    list_recipe_packages("served")
}

/// Names the disk and packages that this recipe gives.
pub fn compute_recipe_digest(flavour: Flavour, sources: &[AptSource]) -> Digest {
    let mut text = format!("{}\n{DISK_SIZE}\n", flavour.word());
    for source in sources {
        text.push_str(&source.line());
        text.push('\n');
    }
    for (path, bytes) in assets::files_below("") {
        // The fake source is served beside the packages and is no part of the disk.
        let in_the_disk = !path.starts_with("nv_peer_mem/")
            && (flavour.kubernetes || !path.starts_with("kubernetes/"));
        if in_the_disk {
            text.push_str(&format!("{path} {}\n", Digest::of_bytes(bytes)));
        }
    }
    Digest::of_bytes(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_machine_has_nothing_of_rdma_and_no_compiler() {
        for network in [
            Network::Networkd,
            Network::NetworkManager,
            Network::Netplan,
            Network::Ifupdown,
        ] {
            let bare = list_installed_packages(Flavour {
                network,
                kubernetes: true,
            });
            assert!(
                bare.contains(&"openssh-server") && bare.contains(&"grub2-common"),
                "{bare:?}"
            );
            for absent in ["rdma-core", "perftest", "gcc", "dkms", "make"] {
                assert!(!bare.contains(&absent), "{absent} in {bare:?}");
                assert!(
                    list_served_packages().contains(&absent),
                    "{absent} must come from the repository"
                );
            }
        }
    }

    #[test]
    fn the_digest_moves_with_flavour_and_sources() {
        let source = |suite: &str| AptSource {
            uri: "http://example.invalid/debian".into(),
            suite: suite.into(),
        };
        let plain = |network| Flavour {
            network,
            kubernetes: false,
        };
        let one = compute_recipe_digest(plain(Network::Networkd), &[source("bookworm")]);
        assert_eq!(
            one,
            compute_recipe_digest(plain(Network::Networkd), &[source("bookworm")])
        );
        assert_ne!(
            one,
            compute_recipe_digest(plain(Network::Netplan), &[source("bookworm")])
        );
        assert_ne!(
            one,
            compute_recipe_digest(
                Flavour {
                    network: Network::Networkd,
                    kubernetes: true
                },
                &[source("bookworm")]
            )
        );
        assert_ne!(
            one,
            compute_recipe_digest(plain(Network::Networkd), &[source("bookworm-updates")])
        );
    }
}
