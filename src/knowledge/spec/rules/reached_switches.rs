//! Switches that are reached: what can be planned for them.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::model::{Spec, SwitchGroup};
use railwright_base::nodeset::{expand_ports, fold_node_set};
use railwright_resource::switch::SwitchSystem;

/// Switches whose system nobody says.
const SYSTEM: &str = "RW0170";
/// Ports that are no node-set, or none.
const PORTS: &str = "RW0171";
/// Ports that the system names otherwise.
const NAMES: &str = "RW0172";

/// The groups that say how they are reached, and the ports of all.
pub fn check_reached_switches(checker: &mut SpecChecker<'_>, spec: &Spec) {
    for (index, switch) in spec.switches.iter().enumerate() {
        let at = format!("switches[{index}]");
        let path = format!("{at}.ports");
        match switch.ports.as_deref().map(expand_ports) {
            Some(Ok(ports)) => {
                if let Some(os) = switch.os {
                    check_port_names(checker, &path, &ports, os);
                }
            }
            Some(Err(problem)) => {
                let effect = "no port of these switches can be named, so none is looked at";
                let fix = problem.fix.unwrap_or_else(|| {
                    "ports look like `Ethernet[0,4,8]`, `swp[1-32]` or `Ethernet[1-32]/1`"
                        .to_owned()
                });
                let finding = new_spec_error(PORTS, "this is no node-set of ports", effect, fix);
                checker.find(&path, &problem.message, finding);
            }
            None => {}
        }
        let way = match &switch.ssh {
            Some(_) => Some("ssh"),
            None => switch.apis().next().map(|(kind, _)| kind.key()),
        };
        if let Some(way) = way {
            check_reach_requirements(checker, switch, way, &at, spec.cabling.is_some());
        }
    }
}

fn check_port_names(checker: &mut SpecChecker<'_>, path: &str, ports: &[String], os: SwitchSystem) {
    let wrong: Vec<&str> = ports
        .iter()
        .map(String::as_str)
        .filter(|port| !os.has_port_named(port))
        .collect();
    if wrong.is_empty() {
        return;
    }
    let what = format!(
        "{} has no port that is called {}: it calls them {}",
        os.name(),
        truncate_user_text(&fold_node_set(&wrong)),
        os.port_name_examples()
    );
    let effect = "nothing can be read or set on a port by a name that the switch does not have";
    let fix = format!(
        "name them as the switch does (`ports: \"{}\"`); `{}` on it lists them",
        os.port_set_example(),
        os.port_list_command()
    );
    checker.find(
        path,
        &format!("no name of {}", os.name()),
        new_spec_error(NAMES, what, effect, fix),
    );
}

fn check_reach_requirements(
    checker: &mut SpecChecker<'_>,
    switch: &SwitchGroup,
    way: &str,
    at: &str,
    is_cabled: bool,
) {
    let name = truncate_user_text(&switch.name);
    if switch.os.is_none() {
        let effect = "how a switch is read and changed is known by its system";
        let systems = SwitchSystem::ALL.map(|system| format!("`os: {}`", system.word()));
        let fix = format!("write one of {}, or take `{way}` out", systems.join(", "));
        let message = format!("{name} has `{way}`, and no `os`");
        let finding = new_spec_error(SYSTEM, message, effect, fix);
        checker.find(&format!("{at}.{way}"), "to be reached", finding);
    }
    if switch.ports.is_none() && !is_cabled {
        let effect = "nothing would be planned for the switch, although it is to be reached";
        let set = switch.os.unwrap_or_default().port_set_example();
        let fix = format!(
            "name the ports of the fabric (`ports: \"{set}\"`), or say what is plugged in where: \
             `cabling: cabling.csv`"
        );
        let message = format!("{name} has `{way}`, and no `ports`");
        let finding = new_spec_error(PORTS, message, effect, fix);
        checker.find(&format!("{at}.{way}"), "to be reached", finding);
    }
    if switch
        .ssh
        .as_ref()
        .is_some_and(|ssh| ssh.address.as_deref() == Some("local"))
    {
        let effect = "this machine is no switch";
        let fix = "write its address";
        let finding = new_spec_error("RW0119", "`local` is no switch", effect, fix);
        checker.find(&format!("{at}.ssh.address"), "this machine", finding);
    }
}
