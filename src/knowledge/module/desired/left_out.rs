//! Modules that a host goes without: it lacks what they need, or there is no SSH to it.

use crate::spec::LoadedSpec;
use railwright_base::{Diagnostic, nodeset};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A module that a host lacks something for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The host.
    #[serde(skip)]
    pub host: String,
    /// The module.
    pub module: String,
    /// What it needs of a host, as the module writes it; or SSH.
    pub needs: String,
}

/// What every module for hosts needs of one.
pub(super) const NEEDS_SSH: &str = "SSH, and the spec says `ssh: none` of this host";

impl LeftOut {
    /// True where the host has no SSH.
    pub fn is_for_want_of_ssh(&self) -> bool {
        self.needs == NEEDS_SSH
    }
}

/// Modules that the spec enables by name, which some hosts cannot have for want of SSH. Those that
/// come by themselves are only counted.
pub(super) fn enabled_in_vain(loaded: &LoadedSpec, left_out: &[LeftOut]) -> Vec<Diagnostic> {
    let mut hosts_by_module: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for lack in left_out {
        let Some(overridden) = loaded.spec.modules.get(&lack.module) else {
            continue;
        };
        if overridden.enabled == Some(true) && lack.is_for_want_of_ssh() {
            let hosts = hosts_by_module.entry(&lack.module).or_default();
            hosts.push(&lack.host);
        }
    }
    let mut warnings = Vec::new();
    for (module, hosts) in hosts_by_module {
        warnings.push(new_without_ssh_warning(loaded, module, &hosts));
    }
    warnings
}

fn new_without_ssh_warning(loaded: &LoadedSpec, module: &str, hosts: &[&str]) -> Diagnostic {
    let hosts = nodeset::fold_node_set(hosts);
    let warning = Diagnostic::warning(
        "RW0231",
        format!(
            "the module {module} is enabled, and {hosts} cannot have it: there is no SSH to it"
        ),
    )
    .effect("what the module would set and check there is neither set nor checked")
    .state("nothing was changed")
    .next(
        "let whoever makes these nodes do it (the settings of their node pool), or say how they \
         are reached: `ssh: { user: root }`",
    );
    let path = format!("modules[\"{module}\"].enabled");
    match loaded.label(&path, "for hosts, over SSH") {
        Some(label) => warning.labelled(label),
        None => warning,
    }
}
