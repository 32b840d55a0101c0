//! Names of netdevs: they come with the one reboot, and what is declared under a new name comes
//! after it.

use crate::room::Room;
use railwright_apply::{ApplyOutcome, RunExitClass, apply_plan};
use railwright_transport::sim::SimulatedHost;
use railwright_transport::sim::links::SimulatedNetdev;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const PCI: &str = "0000:19:00.0";

/// A host whose NIC is `ens1`, found by its file of systemd-networkd as this says, and in whose
/// initial RAM disk no name stands.
fn host(file: Option<&str>) -> SimulatedHost {
    let mut host = SimulatedHost::fresh();
    let path = "/etc/systemd/network/10-rail.network";
    if let Some(by) = file {
        host.disk.put(
            path,
            format!("[Match]\n{by}\n[Network]\nAddress=10.0.0.1/24\n")
                .as_str()
                .into(),
        );
    }
    host.links.0.insert(
        "ens1".to_owned(),
        SimulatedNetdev::of(9000, file.map(|_| path)),
    );
    host.names.put(PCI, "ens1");
    host.names.ram_disk = Some(BTreeMap::new());
    host.reboot(Duration::ZERO);
    host.links.0.values_mut().for_each(|link| link.up = true);
    (host.boot, host.booted, host.down_until) = (0, Duration::ZERO, Duration::ZERO);
    host
}

fn room(host: SimulatedHost) -> Room {
    Room::with([("a".to_owned(), host)].into())
        .resource(
            "netdev_name",
            json!({ "name": "rail0", "device": PCI }),
            &[],
        )
        .resource(
            "link",
            json!({ "netdev": "rail0", "mtu": 9000 }),
            &["netdev_name/rail0"],
        )
}

async fn run(room: &Room) -> ApplyOutcome {
    let plan = room.plan().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    apply_plan(&plan, &room.context, room.sink()).await
}

/// Boots, and each netdev with its MTU.
fn seen(room: &Room) -> (u32, Vec<(String, u32)>) {
    room.host("a", |host| {
        (
            host.boot,
            host.links
                .0
                .iter()
                .map(|(name, link)| (name.clone(), link.mtu))
                .collect(),
        )
    })
}

#[tokio::test(start_paused = true)]
async fn a_name_comes_with_the_reboot_and_goes_with_another() {
    let mut room = room(host(Some("MACAddress=b8:ce:f6:00:00:01")));
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, outcome.problems.len()),
        (RunExitClass::Done, 0),
        "{:?}",
        outcome.problems
    );
    assert_eq!(
        seen(&room),
        (1, vec![("rail0".to_owned(), 9000)]),
        "the MTU waited for the name"
    );
    assert_eq!(room.plan().await.nodes, []);
    room.resources.clear();
    let outcome = run(&room).await;
    assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
    assert_eq!(seen(&room), (2, vec![("ens1".to_owned(), 1500)]));
    room.host("a", |host| {
        assert!(
            host.names.ram_disk.as_ref().unwrap().is_empty(),
            "a copy would name it again"
        )
    });
}

#[tokio::test(start_paused = true)]
async fn our_own_connection_keeps_its_name_unless_its_configuration_follows() {
    for file in [Some("Name=ens1"), None] {
        let mut host = host(file);
        host.ssh_netdev = Some("ens1".to_owned());
        let room = room(host);
        let outcome = run(&room).await;
        match file {
            Some(_) => {
                let plan = room.plan().await;
                let blocked = plan
                    .nodes
                    .iter()
                    .find(|node| node.id == "host/a/netdev_name/rail0")
                    .and_then(|node| node.blocked.as_ref());
                assert!(
                    blocked
                        .is_some_and(|why| why.to_string().contains("finds it by the name ens1")),
                    "{plan:?}"
                );
            }
            // no rollback timer outlives a boot
            None => assert_eq!(
                outcome
                    .problems
                    .iter()
                    .map(|problem| &*problem.code)
                    .collect::<Vec<_>>(),
                ["RW0606"]
            ),
        }
        assert_eq!(seen(&room).0, 0);
        room.host("a", |host| {
            assert!(!host.disk.files.keys().any(|path| path.ends_with(".link")))
        });
    }
    let mut follows = host(Some("Name=ens1 rail0"));
    follows.ssh_netdev = Some("ens1".to_owned());
    let room = room(follows);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    room.host("a", |host| {
        assert_eq!(host.ssh_netdev.as_deref(), Some("rail0"))
    });
}
