//! A cluster of Ray in pods, whose release has to be known: its operator starts it by that.

use super::names::RayNames;
use super::render::{JobRuleInputs, RenderedJob, Rendering};
use super::request::Ray;
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::catalog::job::image_of;

impl Rendering<'_> {
    pub(super) fn ray(&self, job: &Ray) -> Result<RenderedJob, Vec<Diagnostic>> {
        let gpus = self.gpus()?;
        let known = image_of(&self.inputs.catalog.image, &job.pods.image)
            .and_then(|entry| entry.ray_of(&job.pods.image));
        let Some(ray_version) = job.ray_version.clone().or(known) else {
            let message = format!(
                "which release of Ray is in `{}` is not known",
                one_line(&job.pods.image, 100)
            );
            let next = self.asked.words(
                "say it: --ray-version 2.40.0, as `ray --version` prints it in the image",
                "say it: `ray_version: 2.40.0`, as `ray --version` prints it in the image",
            );
            return Err(self.wrong("RW1229", message, next));
        };
        let devices = self.devices();
        let mut settled = self.settled(&devices, &[]);
        settled.warnings.extend(self.no_room(job.replicas, gpus)?);
        let names = RayNames {
            pod: self.pod_names(self.resources(gpus, &devices), &settled.variables),
            replicas: job.replicas,
            ray_version: ray_version.clone(),
        };
        self.finish(
            &names,
            settled,
            JobRuleInputs {
                gpus,
                ray_version: Some(ray_version),
                ..JobRuleInputs::default()
            },
        )
    }
}
