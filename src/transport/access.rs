//! How to reach a host, made from the spec. What the inventory leaves open stays open here (empty
//! text, port 0), so that `~/.ssh/config` can fill it in where that is wished for; the inventory
//! always wins.

use super::{ApiAccess, CertificatePin, ClusterAccess, HostAccess, Password};
use railwright_base::Target;
use railwright_knowledge::spec::model::{ApiKind, Kubernetes, Spec};
use railwright_knowledge::spec::{Host, HostSsh, SwitchNode, SwitchReach};
use railwright_resource::kubernetes_object::build_cluster_object_name;
use std::path::Path;

/// Seconds until a connection attempt is given up: a lost first packet is sent again after 1, 3 and
/// 7 s, so three losses in a row still end well.
const CONNECT_TIMEOUT_S: u32 = 10;
/// The known_hosts file of an inventory that names none and leaves `~/.ssh/config` aside.
const HOST_KEYS_DEFAULT: &str = "known_hosts";

impl HostAccess {
    /// From the host as the spec has it, the inventory's folder (absolute) and the user's home;
    /// nothing where it has no SSH.
    pub fn from_spec(host: &Host, inventory: &Path, home: Option<&Path>) -> Option<Self> {
        Some(HostAccess::over_ssh(
            &host.name,
            host.ssh.as_ref()?,
            inventory,
            home,
        ))
    }

    fn over_ssh(name: &str, ssh: &HostSsh, inventory: &Path, home: Option<&Path>) -> Self {
        let host_keys = ssh
            .host_keys
            .as_deref()
            .or((!ssh.config).then_some(HOST_KEYS_DEFAULT));
        HostAccess {
            name: name.to_owned(),
            local: ssh.address == "local",
            address: ssh.address.clone(),
            port: ssh.port.unwrap_or(0),
            user: ssh.user.clone().unwrap_or_default(),
            identities: ssh
                .identities
                .iter()
                .map(|path| resolve_spec_path(path, inventory, home))
                .collect(),
            known_hosts: host_keys
                .map(|path| resolve_spec_path(path, inventory, home))
                .unwrap_or_default(),
            jump: ssh.jump.to_vec(),
            ssh_config: ssh.config,
            connect_timeout_s: CONNECT_TIMEOUT_S,
            read_only: ssh.read_only,
            cluster: None,
            switch: false,
            api: None,
        }
    }
}

impl HostAccess {
    /// A Kubernetes cluster, from the spec, the inventory's folder (absolute) and the user's home.
    pub fn of_cluster(
        name: &str,
        spec: &Spec,
        kubernetes: &Kubernetes,
        inventory: &Path,
        home: Option<&Path>,
    ) -> Self {
        let kubeconfig = kubernetes
            .kubeconfig
            .as_deref()
            .map(|path| resolve_spec_path(path, inventory, home));
        let (context, keeps) = (
            kubernetes.context.clone(),
            build_cluster_object_name(&spec.cluster),
        );
        let cluster = Some(ClusterAccess {
            kubeconfig,
            context,
            keeps,
            folder: inventory.to_owned(),
        });
        HostAccess {
            cluster,
            ..HostAccess::over_ssh(name, &HostSsh::default(), inventory, home)
        }
    }

    /// A switch that is reached, from the inventory's folder (absolute) and the user's home.
    pub fn of_switch(switch: &SwitchNode, inventory: &Path, home: Option<&Path>) -> Option<Self> {
        let (ssh, api) = match switch.reach.as_ref()? {
            SwitchReach::Ssh(ssh) => (ssh.clone(), None),
            SwitchReach::Api(api) => {
                let ssh = HostSsh {
                    address: api.address.clone(),
                    port: Some(api.port),
                    user: Some(api.user.clone()),
                    ..HostSsh::default()
                };
                let pin = CertificatePin::of(&api.certificate, |path| {
                    resolve_spec_path(path, inventory, home)
                });
                (
                    ssh,
                    Some(ApiAccess {
                        kind: api.kind,
                        pin,
                        password: Password::named(&api.password),
                    }),
                )
            }
        };
        Some(HostAccess {
            switch: true,
            local: false,
            api,
            ..HostAccess::over_ssh(&switch.name, &ssh, inventory, home)
        })
    }

    /// What is reached by it.
    pub fn target(&self) -> Target {
        match (&self.cluster, self.switch) {
            (Some(_), _) => Target::kube(&self.name),
            (None, true) => Target::switch(&self.name),
            (None, false) => Target::host(&self.name),
        }
    }

    /// True where the target itself takes back a change that nobody confirms, and saves only what
    /// was confirmed: NVUE's own guard. Elsewhere what is saved is kept by our guard, and saved
    /// under it.
    pub fn saves_what_is_confirmed(&self) -> bool {
        self.is_over_nvue()
    }

    /// False where the target has no place for a lock: over NVUE. Who else is at work there is seen
    /// in NVUE's revisions.
    pub fn keeps_locks(&self) -> bool {
        !self.is_over_nvue()
    }

    fn is_over_nvue(&self) -> bool {
        self.api
            .as_ref()
            .is_some_and(|api| api.kind == ApiKind::Nvue)
    }

    /// The access of another user, who may only read.
    pub fn read_as(self, user: &str) -> Self {
        HostAccess {
            user: user.to_owned(),
            read_only: true,
            ..self
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

    fn access(ssh: HostSsh) -> HostAccess {
        let host = Host {
            name: "gpu-001".to_owned(),
            index: 1,
            group: 0,
            netdevs: Vec::new(),
            node: String::new(),
            ssh: Some(ssh),
        };
        HostAccess::from_spec(&host, Path::new("/inv"), Some(Path::new("/home/a"))).unwrap()
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
        assert_eq!(
            (stated.known_hosts.as_str(), stated.local),
            ("/inv/keys", false)
        );
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
        assert!(
            access(HostSsh {
                address: "local".to_owned(),
                ..HostSsh::default()
            })
            .local
        );
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
