//! How a VLAN is made and undone, by the manager that owns its parent.

use super::{ANNOUNCED, PriorVlanState, VlanBody};
use crate::action::NetworkManagerKind;
use crate::link::layers::{OnDisk, RunningLinkLayers};
use crate::link::owner::{HEAD, Handle, own_file};
use crate::link::{Owner, link_state};
use crate::{
    Action, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading, ResourceDiff,
};
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use serde_json::Value;

/// What there is not yet comes with the resource that declares it, or never.
pub(super) fn wait_for_parent(
    body: &VlanBody,
    resource: &DesiredResource,
    diff: &mut ResourceDiff,
    reason: impl FnOnce() -> String,
) {
    let first = resource
        .after
        .iter()
        .find(|after| matches!(after.kind(), "bond" | "vlan") && after.name() == body.parent);
    match first {
        Some(first) if resource.text("known_after").is_none() => {
            diff.known_after = Some(first.within_target());
            diff.announced = ANNOUNCED.map(str::to_owned).to_vec();
        }
        _ => diff.wait_or_refuse(resource, &ANNOUNCED, reason),
    }
}

/// A file of ours: its path, its mode and its text.
type BootFile = (String, &'static str, String);

/// The files of ours that make it at boot, with their modes: systemd.netdev(5) and
/// systemd.network(5), netplan(5), interfaces(5). A reason where the manager takes none.
fn render_vlan_boot_files(body: &VlanBody, on_disk: &OnDisk) -> Result<Vec<BootFile>, Reason> {
    match on_disk.manager {
        Some(NetworkManagerKind::Networkd) => render_networkd_files(body, on_disk),
        Some(NetworkManagerKind::Netplan) => {
            let VlanBody { netdev, id, .. } = body;
            let Some(link) = &on_disk.netplan_id else {
                return Err(by_hand(body).into());
            };
            let (name, link) = (Value::from(netdev.as_str()), Value::from(link.as_str()));
            let text = format!(
                "{HEAD}network:\n  version: 2\n  vlans:\n    {name}:\n      id: {id}\n      link: {link}\n"
            );
            Ok(vec![(netplan_file(netdev), "0600", text)])
        }
        Some(NetworkManagerKind::Ifupdown) => render_interfaces_file(body, on_disk),
        Some(NetworkManagerKind::NetworkManager) | None => Err(by_hand(body).into()),
    }
}

fn render_networkd_files(body: &VlanBody, on_disk: &OnDisk) -> Result<Vec<BootFile>, Reason> {
    let VlanBody {
        netdev, parent, id, ..
    } = body;
    if let Owner::Managed(view) = &on_disk.below
        && let Handle::Networkd {
            shared: Some(reason),
            ..
        } = &view.handle
    {
        return Err(reason.clone().into());
    }
    let Some(file) = &on_disk.network_file else {
        return Err(format!(
            "systemd-networkd applies no file to {parent} that the VLAN could be added to"
        )
        .into());
    };
    let made = format!("{HEAD}[NetDev]\nName={netdev}\nKind=vlan\n[VLAN]\nId={id}\n");
    let added = format!("{HEAD}[Network]\nVLAN={netdev}\n");
    Ok(vec![
        (netdev_file(netdev), "0644", made),
        (drop_in(netdev, file), "0644", added),
    ])
}

fn render_interfaces_file(body: &VlanBody, on_disk: &OnDisk) -> Result<Vec<BootFile>, Reason> {
    let VlanBody {
        netdev, parent, id, ..
    } = body;
    let Owner::Managed(view) = &on_disk.below else {
        return Err(by_hand(body).into());
    };
    let Handle::Ifupdown(stanzas) = &view.handle else {
        return Err(by_hand(body).into());
    };
    if !stanzas.reads_folder {
        let missing = "/etc/network/interfaces does not read /etc/network/interfaces.d; add the \
                       line `source /etc/network/interfaces.d/*`";
        return Err(missing.to_owned().into());
    }
    let (n, p) = (quote_for_shell(netdev), quote_for_shell(parent));
    let text = format!(
        "{HEAD}auto {netdev}\n\
         iface {netdev} inet manual\n    vlan-raw-device {parent}\n    vlan-id {id}\n    pre-up [ -e /sys/class/net/{n} ] || ip link add link {p} name {n} type vlan id {id}\n    post-down ip link del dev {n}\n"
    );
    Ok(vec![(interfaces_file(netdev), "0644", text)])
}

fn netdev_file(netdev: &str) -> String {
    format!("/etc/systemd/network/90-railwright-{netdev}.netdev")
}

fn drop_in(netdev: &str, file: &str) -> String {
    format!("/etc/systemd/network/{file}.d/91-railwright-{netdev}.conf")
}

/// Before the file that a `link` of the same name writes: netplan wants to know what it is first.
fn netplan_file(netdev: &str) -> String {
    format!("/etc/netplan/89-railwright-{netdev}.yaml")
}

/// Without a dot in its name, which `source-directory` of interfaces(5) would leave out.
fn interfaces_file(netdev: &str) -> String {
    format!(
        "/etc/network/interfaces.d/89-railwright-{}",
        netdev.replace(['.', '@'], "_")
    )
}

fn by_hand(body: &VlanBody) -> String {
    let VlanBody {
        netdev, parent, id, ..
    } = body;
    format!(
        "nobody whose files railwright writes for a VLAN manages {parent} (systemd-networkd, \
         netplan, ifupdown); with NetworkManager make it by hand: nmcli connection add type vlan \
         con-name {netdev} ifname {netdev} dev {parent} id {id} ipv4.method disabled ipv6.method \
         link-local"
    )
}

type Made = (Vec<Action>, Option<NetworkManagerKind>);

/// What makes it: files and a reload where the manager makes netdevs by itself, else `ip` for now
/// and files for the boot.
pub(super) fn plan_vlan_creation(
    body: &VlanBody,
    disk: bool,
    now: bool,
    on_disk: &OnDisk,
) -> Result<Made, Reason> {
    let mut actions = Vec::new();
    let mut reload = None;
    if disk {
        let written = render_vlan_boot_files(body, on_disk)?;
        actions.extend(
            written
                .into_iter()
                .map(|(path, mode, text)| own_file(&path, mode, text)),
        );
        reload = on_disk
            .manager
            .filter(|manager| *manager != NetworkManagerKind::Ifupdown);
    }
    if let Some(manager) = reload {
        actions.push(Action::ReloadLink {
            netdev: body.parent.clone(),
            manager,
        });
    } else if now {
        actions.push(Action::AddVlan {
            netdev: body.netdev.clone(),
            parent: body.parent.clone(),
            id: body.id,
        });
    }
    Ok((actions, reload))
}

/// systemd-networkd sets up the parent anew once a VLAN joins or leaves its file.
pub(super) fn record_vlan_disruption(
    body: &VlanBody,
    reload: Option<NetworkManagerKind>,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) {
    if reload.is_none() {
        return;
    }
    let state = link_state(answers, &body.parent)
        .ok()
        .flatten()
        .unwrap_or_default();
    let has_addresses = state
        .addresses
        .iter()
        .flatten()
        .any(|address| address.scope != "link");
    diff.disruption = if has_addresses {
        Disruption::LinkBlip
    } else {
        Disruption::Reload
    };
    diff.interrupts_netdevs = vec![body.parent.clone()];
    if has_addresses {
        diff.interrupts.push(format!(
            "systemd-networkd sets the addresses of {} anew, and its RDMA GIDs with them",
            body.parent
        ));
    }
}

/// What we brought goes; what was there before our first change stays.
pub(super) fn take_back(
    body: &VlanBody,
    before: PriorVlanState,
    running: Option<&RunningLinkLayers>,
    on_disk: &OnDisk,
    answers: &ReadResults,
) -> ResourceDiff {
    let mut diff = ResourceDiff {
        before: serde_json::to_value(before).unwrap_or_default(),
        ..ResourceDiff::default()
    };
    let is_written = !on_disk.settings.is_empty();
    let is_running = running.is_some_and(|running| {
        running.kind.as_deref() == Some("vlan") && running.settings == body.desired()
    });
    let mut gone = Attribute::default();
    if !before.persisted {
        let actual = reading_from_presence(is_written);
        gone = gone.and(Plane::Persisted, Reading::Absent, actual);
    }
    if !before.running {
        let actual = reading_from_presence(is_running);
        gone = gone.and(Plane::Running, Reading::Absent, actual);
    }
    if !before.persisted && is_written {
        plan_boot_file_removal(body, on_disk, answers, &mut diff);
    }
    if !before.running && is_running {
        diff.actions.push(Action::RemoveVlan {
            netdev: body.netdev.clone(),
        });
        diff.disruption = diff.disruption.max(Disruption::LinkBlip);
        diff.interrupts
            .push(format!("all traffic on {} ends", body.netdev));
        diff.interrupts_netdevs.push(body.netdev.clone());
    }
    diff.attributes.insert("vlan".to_owned(), gone);
    diff
}

fn reading_from_presence(is_there: bool) -> Reading {
    match is_there {
        true => Reading::is("in place"),
        false => Reading::Absent,
    }
}

/// Our files go, and the manager reads its configuration anew. Where it is no longer one that our
/// files can be of, what is written stays.
fn plan_boot_file_removal(
    body: &VlanBody,
    on_disk: &OnDisk,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) {
    let Ok(files) = render_vlan_boot_files(body, on_disk) else {
        diff.residue.push(format!(
            "{} in the configuration of its manager, which has changed since",
            body.netdev
        ));
        return;
    };
    for (path, ..) in files {
        diff.actions.push(Action::RemoveFile { path, below: None });
    }
    let reload = on_disk
        .manager
        .filter(|manager| *manager != NetworkManagerKind::Ifupdown);
    if let Some(manager) = reload {
        diff.actions.push(Action::ReloadLink {
            netdev: body.parent.clone(),
            manager,
        });
    }
    record_vlan_disruption(body, reload, answers, diff);
}

/// Adds it, unless it is there already; whether that one is right is read afterwards.
pub fn add_script(netdev: &str, parent: &str, id: u16) -> String {
    format!(
        "[ -e /sys/class/net/{n} ] || ip link add link {} name {n} type vlan id {id}\n",
        quote_for_shell(parent),
        n = quote_for_shell(netdev)
    )
}

/// Removes it; one that is not there is no error.
pub fn remove_script(netdev: &str) -> String {
    format!(
        "[ ! -e /proc/net/vlan/{n} ] || ip link del dev {n}\n",
        n = quote_for_shell(netdev)
    )
}
