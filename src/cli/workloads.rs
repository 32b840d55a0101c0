//! Workloads of an inventory's spec, rendered with its own templates where it has some.

use super::Failure;
use super::inventory::Inventory;
use crate::spec::Sources;
use crate::workload::{Inputs, JOBS_FOLDER, Templates, Workloads};

impl Inventory {
    /// The templates of jobs, with the inventory's own over the shipped ones.
    pub(super) fn job_templates(&self) -> Result<Templates, Failure> {
        let prefix = format!("{JOBS_FOLDER}/");
        let own = self.modules.iter().filter_map(|(path, text)| Some((path.strip_prefix(&prefix)?.to_owned(), text.clone())));
        let folder = format!("{}/modules/{JOBS_FOLDER}", self.path.trim_end_matches('/'));
        Templates::load(&folder, own).map_err(|(problems, sources)| Failure::of_input(problems, &sources))
    }

    /// The workloads of the spec; `today` is the day by which waivers are judged.
    pub(super) fn workloads(&self, today: &str) -> Result<Workloads, Failure> {
        if self.loaded.spec.workloads.is_empty() {
            return Ok(Workloads::default());
        }
        let templates = self.job_templates()?;
        let (catalog, rules) = (&self.knowledge.catalog, &self.knowledge.rules);
        let inputs = Inputs { loaded: &self.loaded, catalog, rules, templates: &templates, today, derives: true };
        let mut sources: Sources = self.loaded.sources.clone();
        sources.join(&templates.sources);
        Workloads::of(inputs).map_err(|problems| Failure::of_input(problems, &sources))
    }
}
