//! What the NICs of one node carry together, by an inventory: the speed of the switch's port where
//! that is stated, else the greatest of the NIC's model.

use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::spec::Host;
use railwright_session::Inventory;
use railwright_verify::nccl::NcclExpectations;
use std::collections::BTreeSet;

/// Has the largest messages compared with what the NICs of these hosts carry.
pub fn set_expected_bandwidth(
    expected: &mut NcclExpectations,
    inventory: &Inventory,
    named: &BTreeSet<&str>,
) -> Result<(), Diagnostic> {
    expected.node_gbps = Some(node_gbps(inventory, named)?);
    expected.source = format!("the NICs of {}", one_line(&inventory.path, 80));
    Ok(())
}

/// In Gb/s, of the weakest host. Hosts that the log names count alone, where the inventory has any
/// of them.
fn node_gbps(inventory: &Inventory, named: &BTreeSet<&str>) -> Result<f64, Diagnostic> {
    let hosts = &inventory.loaded.hosts;
    let in_log: Vec<&Host> = hosts
        .iter()
        .filter(|host| named.contains(host.name.as_str()) || named.contains(host.node.as_str()))
        .collect();
    let asked = if in_log.is_empty() {
        hosts.iter().collect()
    } else {
        in_log
    };
    let mut weakest: Option<f64> = None;
    for host in asked.into_iter().filter(|host| !host.netdevs.is_empty()) {
        let gbps = sum_host_bandwidth(inventory, host)?;
        weakest = Some(weakest.map_or(gbps, |known| known.min(gbps)));
    }
    weakest.ok_or_else(|| report_unknown_bandwidth(inventory, "no host of it has a NIC for RDMA"))
}

fn sum_host_bandwidth(inventory: &Inventory, host: &Host) -> Result<f64, Diagnostic> {
    let mut sum = 0.0;
    for rail in &host.netdevs {
        let entry = inventory.knowledge.catalog.nic.get(&rail.model);
        let of_model = entry.and_then(|entry| entry.speeds_gbps.iter().max().copied());
        let speed = of_model.into_iter().chain(leaf_gbps(inventory)).min();
        let Some(speed) = speed else {
            let (model, host) = (one_line(&rail.model, 40), &host.name);
            let why = format!("the catalogue has no speed of {model} ({host})");
            return Err(report_unknown_bandwidth(inventory, &why));
        };
        sum += f64::from(speed);
    }
    Ok(sum)
}

/// The speed of ports to hosts, where all leaves have one.
fn leaf_gbps(inventory: &Inventory) -> Option<u32> {
    let speeds: BTreeSet<u32> = inventory
        .loaded
        .spec
        .switches
        .iter()
        .filter(|switch| switch.role != Some(railwright_knowledge::spec::model::SwitchRole::Spine))
        .filter_map(|switch| switch.port_speed_gbps)
        .collect();
    speeds.first().copied().filter(|_| speeds.len() == 1)
}

fn report_unknown_bandwidth(inventory: &Inventory, why: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW1216",
        format!(
            "{} does not say what the NICs of a node carry: {why}",
            one_line(&inventory.path, 80)
        ),
    )
    .effect("the bandwidth of the job is shown and not checked")
    .next("say it: --expect-gbps N, in Gb/s for all NICs of one node together")
}
