//! How to reach a target, made from the spec. What the inventory leaves open stays open here (empty
//! text, port 0), so that `~/.ssh/config` can fill it in where that is desired; the inventory
//! always wins.

use super::{ApiAccess, CertificatePin, Password};
use railwright_base::Target;
use railwright_knowledge::spec::model::{ApiKind, Kubernetes, Spec};
use railwright_knowledge::spec::{Host, HostSsh, SwitchNode, SwitchReach};
use railwright_resource::kubernetes_object::build_cluster_object_name;
use std::path::{Path, PathBuf};

/// Seconds until a connection attempt is given up: a lost first packet is sent again after 1, 3 and
/// 7 s, so three losses in a row still end well.
pub const CONNECT_TIMEOUT_S: u32 = 10;
/// The known_hosts file of an inventory that names none and leaves `~/.ssh/config` aside.
const HOST_KEYS_DEFAULT: &str = "known_hosts";
/// The address of this machine in a spec.
const THIS_MACHINE: &str = "local";

/// How to reach one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetAccess {
    /// The target's name in the spec.
    pub name: String,
    /// The way there.
    pub reach: TargetReach,
}

/// What kind of target is reached, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetReach {
    /// A host that is this machine itself: no SSH at all.
    ThisMachine {
        /// Whom the spec names.
        user: String,
        /// As in [`SshAccess`].
        read_only: bool,
    },
    /// A host.
    Host(SshAccess),
    /// A switch whose system is a Linux with a shell.
    SwitchShell(SshAccess),
    /// A switch by its own API.
    SwitchApi(ApiAccess),
    /// The API server of a Kubernetes cluster.
    Cluster(ClusterAccess),
}

/// How to log in over SSH. Empty text and port 0 are left open: they are filled in by `ssh -G` where
/// `ssh_config` is set, and then by the usual values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshAccess {
    /// What to connect to: a name or an address.
    pub address: String,
    /// The TCP port; 0 is open, 22 in the end.
    pub port: u16,
    /// The remote user, `root` when left open; anyone but root acts through `sudo -n`.
    pub user: String,
    /// Private key files, absolute; the agent is asked first. When open, the usual ones of the home
    /// folder.
    pub identities: Vec<String>,
    /// The known_hosts file with the pinned keys, absolute. When open, the user's and the system's.
    pub known_hosts: String,
    /// `[user@]host[:port]` of the jump hosts, first hop first; each checked like the target.
    pub jump: Vec<String>,
    /// Ask `ssh -G` for what the inventory leaves open.
    pub ssh_config: bool,
    /// Seconds until a connection attempt is given up.
    pub connect_timeout_s: u32,
    /// The user may only read: nothing is started through `sudo` but the exact commands of its
    /// lines in sudoers.
    pub read_only: bool,
}

/// How to reach the API server of a Kubernetes cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterAccess {
    /// The kubeconfig file, absolute; when open, `$KUBECONFIG`, `~/.kube/config`, or the cluster
    /// that we run in.
    pub kubeconfig: Option<String>,
    /// The context of it; when open, its current one.
    pub context: Option<String>,
    /// The name of the Lease and the Secret in which the cluster keeps our lock and record.
    pub keeps: String,
    /// The inventory's folder, absolute: where charts lie that the spec names by a path.
    pub folder: PathBuf,
}

impl TargetAccess {
    /// A host that is reached, from the inventory's folder (absolute) and the user's home.
    pub fn of_host(host: &Host, inventory: &Path, home: Option<&Path>) -> Option<Self> {
        let ssh = host.ssh.as_ref()?;
        let reach = if ssh.address == THIS_MACHINE {
            TargetReach::ThisMachine {
                user: ssh.user.clone().unwrap_or_default(),
                read_only: ssh.read_only,
            }
        } else {
            TargetReach::Host(SshAccess::from_spec(ssh, inventory, home))
        };
        Some(TargetAccess {
            name: host.name.clone(),
            reach,
        })
    }

    /// A Kubernetes cluster, from the spec, the inventory's folder (absolute) and the user's home.
    pub fn of_cluster(
        name: &str,
        spec: &Spec,
        kubernetes: &Kubernetes,
        inventory: &Path,
        home: Option<&Path>,
    ) -> Self {
        let kubeconfig = kubernetes.kubeconfig.as_deref();
        TargetAccess {
            name: name.to_owned(),
            reach: TargetReach::Cluster(ClusterAccess {
                kubeconfig: kubeconfig.map(|path| resolve_spec_path(path, inventory, home)),
                context: kubernetes.context.clone(),
                keeps: build_cluster_object_name(&spec.cluster),
                folder: inventory.to_owned(),
            }),
        }
    }

    /// A switch that is reached, from the inventory's folder (absolute) and the user's home.
    pub fn of_switch(switch: &SwitchNode, inventory: &Path, home: Option<&Path>) -> Option<Self> {
        let reach = match switch.reach.as_ref()? {
            SwitchReach::Ssh(ssh) => {
                TargetReach::SwitchShell(SshAccess::from_spec(ssh, inventory, home))
            }
            SwitchReach::Api(api) => TargetReach::SwitchApi(ApiAccess {
                kind: api.kind,
                address: api.address.clone(),
                port: api.port,
                user: api.user.clone(),
                pin: CertificatePin::of(&api.certificate, |path| {
                    resolve_spec_path(path, inventory, home)
                }),
                password: Password::named(&api.password),
                read_only: false,
            }),
        };
        Some(TargetAccess {
            name: switch.name.clone(),
            reach,
        })
    }

    /// What is reached by it.
    pub fn target(&self) -> Target {
        match self.reach {
            TargetReach::ThisMachine { .. } | TargetReach::Host(_) => Target::host(&self.name),
            TargetReach::SwitchShell(_) | TargetReach::SwitchApi(_) => Target::switch(&self.name),
            TargetReach::Cluster(_) => Target::kube(&self.name),
        }
    }

    /// How the API server is reached, where the target is a cluster.
    pub fn cluster(&self) -> Option<&ClusterAccess> {
        match &self.reach {
            TargetReach::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    /// Whether it is a host that is this machine itself.
    pub fn is_this_machine(&self) -> bool {
        matches!(self.reach, TargetReach::ThisMachine { .. })
    }

    /// What is connected to; `local` for this machine, and a cluster's name, whose address its
    /// kubeconfig has.
    pub fn address(&self) -> &str {
        match &self.reach {
            TargetReach::ThisMachine { .. } => THIS_MACHINE,
            TargetReach::Host(ssh) | TargetReach::SwitchShell(ssh) => &ssh.address,
            TargetReach::SwitchApi(api) => &api.address,
            TargetReach::Cluster(_) => &self.name,
        }
    }

    /// The user of a host or a switch who may only read there.
    pub fn reader(&self) -> Option<&str> {
        let (user, read_only) = match &self.reach {
            TargetReach::ThisMachine { user, read_only } => (user, *read_only),
            TargetReach::Host(ssh) | TargetReach::SwitchShell(ssh) => (&ssh.user, ssh.read_only),
            TargetReach::SwitchApi(api) => (&api.user, api.read_only),
            TargetReach::Cluster(_) => return None,
        };
        read_only.then_some(user)
    }

    /// The access of another user of a host or a switch, who may only read.
    pub fn read_as(mut self, reader: &str) -> Self {
        let (user, read_only) = match &mut self.reach {
            TargetReach::ThisMachine { user, read_only } => (user, read_only),
            TargetReach::Host(ssh) | TargetReach::SwitchShell(ssh) => {
                (&mut ssh.user, &mut ssh.read_only)
            }
            TargetReach::SwitchApi(api) => (&mut api.user, &mut api.read_only),
            TargetReach::Cluster(_) => return self,
        };
        reader.clone_into(user);
        *read_only = true;
        self
    }

    /// True where the target itself rolls back a change that nobody confirms, and saves only what
    /// was confirmed: NVUE's own rollback. Elsewhere our automatic rollback keeps what is saved,
    /// and it is saved under it.
    pub fn saves_what_is_confirmed(&self) -> bool {
        self.is_over_nvue()
    }

    /// False where the target has no place for a lock: over NVUE. Who else is at work there is seen
    /// in NVUE's revisions.
    pub fn keeps_locks(&self) -> bool {
        !self.is_over_nvue()
    }

    fn is_over_nvue(&self) -> bool {
        matches!(&self.reach, TargetReach::SwitchApi(api) if api.kind == ApiKind::Nvue)
    }
}

impl SshAccess {
    /// From the spec, the inventory's folder (absolute) and the user's home.
    fn from_spec(ssh: &HostSsh, inventory: &Path, home: Option<&Path>) -> Self {
        let host_keys = ssh
            .host_keys
            .as_deref()
            .or((!ssh.config).then_some(HOST_KEYS_DEFAULT));
        let identities = ssh.identities.iter();
        SshAccess {
            address: ssh.address.clone(),
            port: ssh.port.unwrap_or(0),
            user: ssh.user.clone().unwrap_or_default(),
            identities: identities
                .map(|path| resolve_spec_path(path, inventory, home))
                .collect(),
            known_hosts: host_keys
                .map(|path| resolve_spec_path(path, inventory, home))
                .unwrap_or_default(),
            jump: ssh.jump.to_vec(),
            ssh_config: ssh.config,
            connect_timeout_s: CONNECT_TIMEOUT_S,
            read_only: ssh.read_only,
        }
    }
}

/// Address and port as programs take them: an IPv6 address in brackets (RFC 3986, 3.2.2).
pub fn format_endpoint(address: &str, port: u16) -> String {
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

/// A path of the spec as an absolute one: `~/` is the home folder; all else is below the inventory,
/// unless it is absolute.
pub fn resolve_spec_path(path: &str, inventory: &Path, home: Option<&Path>) -> String {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => inventory.join(path).display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(ssh: HostSsh) -> SshAccess {
        match target_access(ssh).reach {
            TargetReach::Host(ssh) => ssh,
            other => panic!("{other:?}"),
        }
    }

    fn target_access(ssh: HostSsh) -> TargetAccess {
        let host = Host {
            name: "gpu-001".to_owned(),
            index: 1,
            group: 0,
            netdevs: Vec::new(),
            node: String::new(),
            ssh: Some(ssh),
        };
        TargetAccess::of_host(&host, Path::new("/inv"), Some(Path::new("/home/a"))).unwrap()
    }

    #[test]
    fn what_is_stated_counts_and_open_stays_open() {
        let stated = access(HostSsh {
            user: Some("root".to_owned()),
            port: Some(2201),
            address: "10.0.0.7".to_owned(),
            identities: ["~/.ssh/id", "keys/id", "/abs/id"]
                .map(str::to_owned)
                .into(),
            host_keys: Some("keys".to_owned()),
            config: true,
            ..HostSsh::default()
        });
        assert_eq!(
            (stated.address.as_str(), stated.port, stated.user.as_str()),
            ("10.0.0.7", 2201, "root")
        );
        assert_eq!(
            stated.identities,
            ["/home/a/.ssh/id", "/inv/keys/id", "/abs/id"]
        );
        assert_eq!(stated.known_hosts, "/inv/keys");
        let open = access(HostSsh {
            address: "gpu-001".to_owned(),
            config: true,
            ..HostSsh::default()
        });
        assert_eq!(
            (
                open.address.as_str(),
                open.port,
                open.user.as_str(),
                open.known_hosts.as_str()
            ),
            ("gpu-001", 0, "", "")
        );
        let here = HostSsh {
            address: "local".to_owned(),
            ..HostSsh::default()
        };
        assert!(target_access(here).is_this_machine());
    }

    #[test]
    fn without_the_ssh_configuration_the_pinned_keys_lie_beside_the_spec() {
        let pinned = access(HostSsh {
            address: "gpu-001".to_owned(),
            ..HostSsh::default()
        });
        assert_eq!(pinned.known_hosts, "/inv/known_hosts");
    }
}
