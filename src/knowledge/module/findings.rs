//! What is wrong with the modules on the hosts of a spec, each reported once.

use indexmap::IndexMap;
use railwright_base::{Diagnostic, nodeset};
use std::ops::Range;

/// The file and bytes of a diagnostic's first label.
type Caret = Option<(String, Range<usize>)>;

/// Errors with the hosts that have them: the same error of a thousand hosts is one.
#[derive(Default)]
pub(super) struct ModuleFindings(IndexMap<(String, Caret), (Diagnostic, Vec<String>)>);

impl ModuleFindings {
    /// Labels may tell what the value was on the first of the hosts, so only their places are
    /// compared.
    pub(super) fn add(&mut self, diagnostic: Diagnostic, host: &str) {
        let caret = diagnostic
            .labels
            .first()
            .map(|label| (label.file.clone(), label.span.clone()));
        let (_, hosts) = self
            .0
            .entry((diagnostic.message.clone(), caret))
            .or_insert((diagnostic, Vec::new()));
        hosts.push(host.to_owned());
    }

    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.0
            .into_values()
            .map(|(diagnostic, hosts)| diagnostic.on(nodeset::fold_node_set(&hosts)))
            .collect()
    }
}
