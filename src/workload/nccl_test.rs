//! NCCL's tests in pods: workers that run sshd, and a launcher whose mpirun starts the test in all
//! of them.

use super::mpirun;
use super::names::NcclTestNames;
use super::render::{JobRuleInputs, RenderedJob, Rendering};
use super::request::NcclTest;
use railwright_base::Diagnostic;
use serde_json::{Value, json};

impl Rendering<'_> {
    pub(super) fn nccl_test(&self, job: &NcclTest) -> Result<RenderedJob, Vec<Diagnostic>> {
        let gpus = self.gpus()?;
        let workers = job.workers.unwrap_or(self.hosts.len() as u32);
        if workers == 0 || gpus == 0 && mpirun::is_of_nccl(&job.program) {
            let next = "say --workers N and --gpus N, both from 1 on; --gpus 0 is for a --program \
                        that needs none";
            return Err(self.wrong(
                "RW1229",
                "a test of NCCL needs a worker with a GPU".to_owned(),
                next,
            ));
        }
        // A program that needs no GPU has one process in each worker.
        let slots = gpus.max(1);
        let short = self.no_room(workers, gpus)?;
        let devices = self.devices();
        let mut settled = self.settled(&devices, &[]);
        settled.warnings.extend(short);
        let processes = workers.saturating_mul(slots);
        let of_spec = mpirun::of_spec(self.inputs.loaded)?;
        let arguments = mpirun::build_mpirun_arguments(
            job,
            processes,
            &settled.meeting,
            &settled.variables,
            &of_spec,
            self.inputs.catalog,
        );
        let mut worker = vec!["/usr/sbin/sshd".to_owned(), "-De".to_owned()];
        if job.pods.host_network {
            worker.extend(["-p".to_owned(), mpirun::SSH_PORT.to_string()]);
        }
        let mut pod = self.pod_names(self.resources(gpus, &devices), &settled.variables);
        pod.affinity.extend(
            self.apart(workers, gpus)
                .map(|apart| ("podAntiAffinity".to_owned(), apart)),
        );
        let names = NcclTestNames {
            pod,
            workers,
            slots,
            launcher: mpirun::build_mpirun_line(&arguments, &job.program),
            worker,
            shared_memory: job.shared_memory.clone(),
        };
        self.finish(
            &names,
            settled,
            JobRuleInputs {
                gpus,
                arguments,
                ..JobRuleInputs::default()
            },
        )
    }

    /// Workers with fewer GPUs than a host has may come onto one host, where nothing crosses the
    /// network; with the network of the host they would take each other's port as well. Labels of
    /// mpi-operator's workers: kubeflow/common, pkg/apis/common/v1/constants.go.
    fn apart(&self, workers: u32, gpus: u32) -> Option<Value> {
        let fit_together = self
            .hosts
            .iter()
            .any(|host| self.gpus_of(host).unwrap_or_default() >= gpus.saturating_mul(2));
        if workers < 2 || workers as usize > self.hosts.len() || !fit_together {
            return None;
        }
        let labels = json!({
            "training.kubeflow.org/job-name": self.pods().name,
            "training.kubeflow.org/job-role": "worker"
        });
        let term = json!({
            "labelSelector": { "matchLabels": labels },
            "topologyKey": "kubernetes.io/hostname"
        });
        Some(json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] }))
    }
}
