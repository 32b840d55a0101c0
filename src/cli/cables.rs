//! What the commands about cabling share: which hosts are asked, and what they hear.

use super::inventory::Inventory;
use super::{Failure, pipeline};
use crate::base::suggest::nearest;
use crate::base::text::one_line;
use crate::base::{Diagnostic, nodeset};
use crate::observe::{self, HostRequest};
use crate::report;
use crate::resource::{Read, lldp};
use crate::spec::Host;
use crate::spec::cabling::End;
use crate::spec::model::FabricKind;
use crate::transport;
use crate::verify::cabling::{Silent, View, Views};

/// InfiniBand has no LLDP, so that nobody there hears anybody.
pub fn has_lldp(inventory: &Inventory) -> Result<(), Failure> {
    if inventory.loaded.spec.fabric.kind != FabricKind::Infiniband {
        return Ok(());
    }
    let problem = Diagnostic::error("RW1043", "the cables of an InfiniBand fabric cannot be heard: it has no LLDP")
        .effect("nothing can be said of where its NICs are plugged in")
        .state("no host was asked")
        .next("on a host of the fabric: ibnetdiscover, or iblinkinfo");
    Err(problem.into())
}

/// The hosts of this node-set that have rails and are reached, all of them where none is named; those without SSH are told apart.
pub fn asked<'i>(inventory: &'i Inventory, set: Option<&str>) -> Result<Vec<&'i Host>, Failure> {
    let loaded = &inventory.loaded;
    let with_rails = || loaded.reached().filter(|host| !host.netdevs.is_empty());
    let Some(set) = set else {
        let without: Vec<&str> = loaded.without_ssh();
        if !without.is_empty() {
            report::out::note(&format!("left out, because they have no SSH: {}", one_line(&nodeset::fold(&without), 200)));
        }
        let hosts: Vec<&Host> = with_rails().collect();
        return if hosts.is_empty() { Err(nobody(inventory).into()) } else { Ok(hosts) };
    };
    let wrong = |why: String| {
        Diagnostic::error("RW1011", format!("{} names no hosts: {why}", one_line(set, 80)))
            .state("no host was asked")
            .next("name hosts of the inventory: --host gpu001, --host gpu[001-004]")
    };
    let names = nodeset::expand(set).map_err(|error| wrong(error.to_string()))?;
    let mut hosts = Vec::new();
    for name in &names {
        let Some(host) = loaded.host(name) else {
            let near = nearest(name, loaded.hosts.iter().map(|host| host.name.as_str()));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(wrong(format!("{name} is not in the inventory{near}")).into());
        };
        if host.ssh.is_none() {
            return Err(pipeline::no_ssh(name, &inventory.path).into());
        }
        hosts.push(host);
    }
    hosts.retain(|host| !host.netdevs.is_empty());
    if hosts.is_empty() { Err(nobody(inventory).into()) } else { Ok(hosts) }
}

fn nobody(inventory: &Inventory) -> Diagnostic {
    Diagnostic::error("RW1043", "no host can be asked for its cables: none of them has rails and SSH")
        .effect("where NICs are plugged in is heard on hosts")
        .state("nothing was asked")
        .next(format!("say in {} which NICs hosts have (`nics`), and how they are reached (`ssh`)", inventory.path))
}

/// The NICs of these hosts.
pub fn nics(hosts: &[&Host]) -> Vec<End> {
    hosts.iter().flat_map(|host| host.netdevs.iter().map(|rail| End::new(&host.name, &rail.port))).collect()
}

/// What these hosts hear. Changes nothing on them.
pub async fn listen(inventory: &Inventory, hosts: &[&Host]) -> Views {
    let request = |host: &&Host| Some(HostRequest { access: inventory.access(host)?, reads: vec![Read::LldpNeighbours] });
    let requests: Vec<HostRequest> = hosts.iter().filter_map(request).collect();
    let progress = report::progress::Reading::new(requests.len());
    let connector = transport::connector();
    let observed = observe::observe(&*connector, requests, observe::DEFAULT_PARALLEL, &|event| progress.show(&event)).await;
    progress.end();
    let view = |found: crate::resource::TargetObservation| match found.problem {
        Some(trouble) => Err(Silent::Unreached(Box::new(trouble))),
        None => lldp::lldp(&found.answers).map(View::of_host).map_err(Silent::from),
    };
    observed.targets.into_iter().map(|(target, found)| (target.name.to_string(), view(found))).collect()
}
