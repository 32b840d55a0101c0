//! The whole chain on a host as it is delivered: repositories, packages, the kernel's arguments,
//! firmware settings, the reboot that they need, drivers, addresses, lossless classes, ECN. apt,
//! dpkg, netplan, systemd-networkd and kmod are real; the packages of vendors, the NICs and what
//! boots are fakes.

mod packages;
mod power;

use crate::fixture::models::{MODELS, Model, Nic};
use power::Powered;

const SPEC: &str = "cluster: chain
fabric:
  kind: rocev2
  mtu: 9000
  lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } }
ssh: { user: root, host_keys: known_hosts, identities: [id] }
nodes:
  - name: gpu1
    os: ubuntu-22.04
    ssh: { address: 127.0.0.1, port: PORT }
    iommu: pt
    rdma_stack: { flavour: doca, version: 2.9.1 }
    gpu: { model: A100-SXM4-80GB, count: 8, driver: \"535\", cuda: \"12.2\", direct: { path: peermem } }
    nics: { model: ConnectX-6, rails: 1, netdev: \"ens{rail}f0np0\", address: \"10.10.{rail}.{index}/24\", firmware: { settings: { SRIOV_EN: true, NUM_OF_VFS: 8 } } }
repositories:
  - { name: doca, url: \"file:/srv/doca/\", suite: ./, key: keys/doca.asc }
  - { name: cuda, url: \"file:/srv/cuda/\", suite: /, key: keys/cuda.asc, priority: 600 }
rollout: { canary: 1, max_unavailable: 1, max_disruption: reboot }
";

/// The cards' settings as they are delivered; the boot loader of Debian's family, with a fake
/// for grub-probe, because an overlay has no disk below it; and the system's own archive.
const DELIVERED: &str = "mkdir -p /var/opt/nvconfig\n\
                         printf 'SRIOV_EN False(0) False(0) False(0)\\nNUM_OF_VFS 0 0 0\\n' \
                         >/var/opt/nvconfig/0000:80:00.0\n\
                         printf '%s\\n' '#!/bin/sh' 'case \"$*\" in *device*) echo /dev/sda2;; \
                         *fs_uuid*) echo 11111111-2222-3333-4444-555555555555;; *compat*|*hints*) \
                         ;; *) echo ext2;; esac' >/usr/sbin/grub-probe\n\
                         chmod +x /usr/sbin/grub-probe; : >/boot/vmlinuz-$(uname -r); update-grub \
                         </dev/null 2>/dev/null || exit\n\
                         rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; cp \
                         /srv/archive/key.asc /usr/share/keyrings/archive.asc\n\
                         echo 'deb [signed-by=/usr/share/keyrings/archive.asc] file:/srv/archive \
                         ./' >/etc/apt/sources.list; apt-get -q update";

/// Dnf's plugins are all of one package here; a host of RHEL has versionlock alone. The system's
/// own repository has its key on the disk.
const RED_HAT: &str = "cd /usr/lib/python3/dist-packages/dnf-plugins && mv versionlock.py /root/ \
                       && rm -rf * && mv /root/versionlock.py . || exit\n\
                       mkdir -p /etc/yum.repos.d /etc/pki/rpm-gpg; printf '[main]\\ngpgcheck=1\\n' \
                       >/etc/dnf/dnf.conf\n\
                       printf \
                       '[base]\\nname=base\\nbaseurl=file:///srv/base/\\ngpgcheck=1\\ngpgkey=file:///srv/base/key.asc\\n' \
                       >/etc/yum.repos.d/base.repo";

const OF_RED_HAT: &str = "cluster: chain
fabric:
  kind: rocev2
  mtu: 9000
  lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } }
ssh: { user: root, host_keys: known_hosts, identities: [id] }
nodes:
  - name: gpu1
    os: rhel-8.6
    ssh: { address: 127.0.0.1, port: PORT }
    iommu: pt
    rdma_stack: { flavour: mlnx-ofed, version: \"24.10\" }
    nics: { model: ConnectX-5, rails: 1, netdev: \"ens{rail}f0np0\", address: \"10.10.{rail}.{index}/24\" }
repositories:
  - { name: mlnx-ofed, url: \"file:///srv/mlnx-ofed/\", key: keys/mlnx-ofed.asc }
  - { name: epel, url: \"file:///srv/epel/\", key: keys/epel.asc }
rollout: { canary: 1, max_unavailable: 1, max_disruption: reboot }
";

/// The host of an inventory with one rail, and with an IOMMU that its BIOS has switched on.
fn model(inventory: &str) -> Model {
    let model = MODELS
        .iter()
        .find(|model| model.inventory.0 == inventory)
        .unwrap();
    Model {
        nic: Nic {
            rails: 1,
            ..model.nic
        },
        offers_iommu: true,
        ..*model
    }
}

fn start(story: &str, model: &Model, prepare: &str, spec: &str) -> Option<Powered> {
    let host = Powered::start(story, model, prepare)?;
    // The server has no PAM, and this machine may let nobody lock more memory than it lets us.
    let limit = host.must("ulimit -l");
    let memlock = format!(
        "modules: {{ memlock: {{ parameters: {{ limit: \"{}\" }} }} }}\n",
        limit.trim_end()
    );
    host.place.write(
        "inv/cluster.yaml",
        spec.replace("PORT", &host.port.to_string()) + &memlock,
    );
    Some(host)
}

#[test]
#[ignore = "long: make test-deep"]
fn a_delivered_host_of_red_hats_family_becomes_one_of_the_fabric() {
    let Some(host) = start("chain with dnf", &model("roce-rhel86"), RED_HAT, OF_RED_HAT) else {
        return;
    };
    let applied = host.run(&["apply", "inv", "--yes"]);
    assert!(
        applied.ends_with("--- exit 0 ---\n") && host.boots() == 1,
        "{applied}"
    );
    assert_eq!(
        host.must("cat /sys/module/mlx5_core/version"),
        format!("{}\n", packages::OFED)
    );
    assert!(host.must("cat /proc/cmdline").contains(" iommu=pt"));
    settled(&host);
}

#[test]
fn a_delivered_host_becomes_one_of_the_fabric_and_stays_so() {
    let Some(host) = start("chain", &model("roce-a100"), DELIVERED, SPEC) else {
        return;
    };
    let applied = host.run(&["apply", "inv", "--yes"]);
    assert!(
        applied.ends_with("--- exit 0 ---\n") && host.boots() == 1,
        "{applied}"
    );
    assert_eq!(
        host.must("tail -n 1 /proc/modules | cut -d' ' -f1; cat /sys/module/mlx5_core/version"),
        format!("nvidia_peermem\n{}\n", packages::OFED)
    );
    assert!(host.must("cat /proc/cmdline").contains(" iommu=pt"));
    assert!(
        host.must("mlxconfig -d 0000:80:00.0 -e q")
            .contains("True(1)             True(1)"),
        "the boot brought the setting"
    );

    // what a reboot takes that nobody asked for comes back by itself
    host.must("reboot >/dev/null 2>&1 &");
    host.until_booted(2);
    settled(&host);
}

/// Nothing to do, nothing done, nothing lost.
fn settled(host: &Powered) {
    let plan = host.run(&["plan", "inv"]);
    assert!(
        plan.contains("\nNo changes. ") && plan.ends_with("--- exit 0 ---\n"),
        "{plan}"
    );
    let boots = host.boots();
    let again = host.run(&["apply", "inv", "--yes"]);
    assert!(
        again.ends_with("--- exit 0 ---\n") && host.boots() == boots,
        "{again}"
    );
    let drift = host.run(&["drift", "inv"]);
    assert!(drift.ends_with("--- exit 0 ---\n"), "{drift}");
}
