//! What is wrong with the modules on the hosts of a spec, each told once.

use crate::base::{Diagnostic, nodeset};

/// Errors with the hosts that have them: the same error of a thousand hosts is one.
#[derive(Default)]
pub(super) struct Findings(Vec<(Diagnostic, Vec<String>)>);

impl Findings {
    /// Labels may tell what the value was on the first of the hosts, so only their places are compared.
    pub(super) fn add(&mut self, diagnostic: Diagnostic, host: &str) {
        let place = |diagnostic: &Diagnostic| diagnostic.labels.first().map(|label| (label.file.clone(), label.span.clone()));
        let same = |known: &Diagnostic| known.message == diagnostic.message && place(known) == place(&diagnostic);
        match self.0.iter_mut().find(|(known, _)| same(known)) {
            Some((_, hosts)) => hosts.push(host.to_owned()),
            None => self.0.push((diagnostic, vec![host.to_owned()])),
        }
    }

    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.0.into_iter().map(|(diagnostic, hosts)| diagnostic.on(nodeset::fold(&hosts))).collect()
    }
}
