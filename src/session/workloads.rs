//! Workloads of an inventory's spec, rendered with its own templates where it has some.

use super::SessionError;
use super::inventory::Inventory;
use railwright_knowledge::spec::Sources;
use railwright_workload::{JOBS_FOLDER, JobRenderInputs, Templates, Workloads};

impl Inventory {
    /// The templates of jobs, with the inventory's own over the shipped ones.
    pub fn job_templates(&self) -> Result<Templates, SessionError> {
        let prefix = format!("{JOBS_FOLDER}/");
        let own = self.modules.iter().filter_map(|(path, text)| {
            Some((path.strip_prefix(&prefix)?.to_owned(), text.clone()))
        });
        let folder = format!("{}/modules/{JOBS_FOLDER}", self.path.trim_end_matches('/'));
        Templates::load(&folder, own)
            .map_err(|(problems, sources)| SessionError::of_input(problems, &sources))
    }

    /// The workloads of the spec, as far as they can be rendered, and what is wrong with the
    /// others; `today` is the day by which waivers are checked.
    pub fn workloads(&self, today: &str) -> (Workloads, Option<SessionError>) {
        if self.loaded.spec.workloads.is_empty() {
            return (Workloads::default(), None);
        }
        let templates = match self.job_templates() {
            Ok(templates) => templates,
            Err(failure) => return (Workloads::unrendered(), Some(failure)),
        };
        let (catalog, rules) = (&self.knowledge.catalog, &self.knowledge.rules);
        let inputs = JobRenderInputs {
            loaded: &self.loaded,
            catalog,
            rules,
            templates: &templates,
            today,
            derives: true,
        };
        let mut sources: Sources = self.loaded.sources.clone();
        sources.join(&templates.sources);
        let (workloads, problems) = Workloads::of(inputs);
        let failure = (!problems.is_empty()).then(|| SessionError::of_input(problems, &sources));
        (workloads, failure)
    }
}
