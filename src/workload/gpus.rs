//! How many GPUs a pod has.

use super::render::Rendering;
use railwright_base::Diagnostic;
use railwright_base::text::format_count;
use railwright_knowledge::spec::Host;
use std::collections::BTreeSet;

impl Rendering<'_> {
    /// GPUs of a host; nothing where the spec does not tell them.
    pub(super) fn gpus_of(&self, host: &Host) -> Option<u32> {
        self.inputs
            .loaded
            .group_of(host)
            .gpu
            .as_ref()
            .map(|gpu| gpu.count)
    }

    /// GPUs of a pod: as said, or all that every host of the job has.
    pub(super) fn gpus(&self) -> Result<u32, Vec<Diagnostic>> {
        if let Some(gpus) = self.pods().gpus {
            return self.can_have(gpus);
        }
        let counts: BTreeSet<u32> = self
            .hosts
            .iter()
            .map(|host| self.gpus_of(host).unwrap_or_default())
            .collect();
        match counts.iter().next() {
            Some(count) if counts.len() == 1 && *count > 0 => Ok(*count),
            _ => {
                let message = "how many GPUs a pod has does not follow from the spec".to_owned();
                let next = self.asked.words(
                    "say it with --gpus N, or name identical hosts with --on HOSTS",
                    "say it with `gpus: N`, or name identical hosts with `hosts: HOSTS`",
                );
                Err(self.wrong("RW1229", message, next))
            }
        }
    }

    /// Pods that its hosts have no room for at once: an error where they may run on these alone,
    /// else a warning, as a cluster may have other nodes. Nothing where the spec does not tell the
    /// GPUs of each host.
    pub(super) fn no_room(
        &self,
        pods: u32,
        gpus: u32,
    ) -> Result<Option<Diagnostic>, Vec<Diagnostic>> {
        let asks_whole =
            gpus > 0 && !self.hosts.is_empty() && self.pods().gpu_resource == "nvidia.com/gpu";
        if !asks_whole {
            return Ok(None);
        }
        let mut room = 0;
        for host in &self.hosts {
            let Some(count) = self.gpus_of(host) else {
                return Ok(None);
            };
            room += u64::from(count / gpus);
        }
        if u64::from(pods) <= room {
            return Ok(None);
        }
        let (each, hosts) = (
            format_count(gpus as usize, "GPU"),
            format_count(self.hosts.len(), "host"),
        );
        let message = format!(
            "{pods} pods of {each} each are asked for, and the {hosts} of the job have room for \
             {room}"
        );
        let is_anywhere = self.pods().hosts.is_empty();
        let diagnostic = match is_anywhere {
            true => Diagnostic::warning("RW1232", message),
            false => self.asked.refused(Diagnostic::error("RW1232", message)),
        };
        let diagnostic = diagnostic
            .effect("the others wait, and what was placed waits for them")
            .next("ask for fewer pods, or name more hosts");
        let label = "more than there is room for";
        let diagnostic = self.asked.at(diagnostic, "job.workers", label);
        match is_anywhere {
            true => Ok(Some(diagnostic)),
            false => Err(vec![diagnostic]),
        }
    }

    /// As many as some host of the job has: with more, no node takes the pod, and it waits without
    /// an end. Parts of GPUs have names of their own.
    fn can_have(&self, gpus: u32) -> Result<u32, Vec<Diagnostic>> {
        let most = self
            .hosts
            .iter()
            .filter_map(|host| self.gpus_of(host))
            .max()
            .filter(|_| self.pods().gpu_resource == "nvidia.com/gpu");
        match most {
            Some(most) if gpus > most => {
                let message = format!(
                    "a pod asks for {gpus} GPUs, and no host that it may run on has more than \
                     {most}"
                );
                let error = self
                    .asked
                    .refused(Diagnostic::error("RW1221", message))
                    .effect("its pods wait, and no node ever takes them");
                Err(vec![
                    self.asked
                        .at(error, "job.gpus", "more than a host has")
                        .next("ask for fewer, and for more pods"),
                ])
            }
            _ => Ok(gpus),
        }
    }
}
