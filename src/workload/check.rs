//! What was asked for, checked against what Kubernetes takes: names, variables, resources, amounts.
//! Each error has a caret at its words.

use super::amount::Amount;
use super::asked::RequestPlaces;
use super::request::{Devices, JobRequest, NcclTest, Perftest, Pods, Ray};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::spec::nccl::{self, NcclProgramOptions};
use railwright_resource::kubernetes_object::manifest::{is_label, is_subdomain};
use railwright_resource::names::is_netdev;

/// The longest name of a pod (RFC 1123: a label of DNS).
const NAME_MAX: usize = 63;

/// The longest name of an image that registries and engines take, and then some.
const IMAGE_MAX: usize = 400;

/// Finds all that Kubernetes, or an operator, would refuse of a request.
pub(super) fn check_job_request(request: &JobRequest, asked: &RequestPlaces) -> Vec<Diagnostic> {
    let mut checking = Checking {
        asked,
        problems: Vec::new(),
    };
    checking.pods(request.pods(), find_longest_pod_suffix(request));
    match request {
        JobRequest::Pytorch(job) => checking.pytorch(job),
        JobRequest::NcclTest(job) => {
            checking.amount("job.shared_memory", &job.shared_memory);
            checking.test(job);
        }
        JobRequest::Acs(job) => {
            if let Some(app) = &job.app {
                checking.label("job.app", app);
            }
            checking.label("job.container", &job.container);
        }
        JobRequest::Ray(job) => checking.ray_version(job),
        JobRequest::Perftest(job) => checking.device(job),
    }
    checking.problems
}

/// What an operator puts behind the name of a job to name its pods, at its longest.
fn find_longest_pod_suffix(request: &JobRequest) -> &'static str {
    match request {
        JobRequest::NcclTest(_) => "-launcher-00000",
        JobRequest::Pytorch(_) => "-worker-1000",
        JobRequest::Ray(_) => "-workergroup-worker-00000",
        JobRequest::Acs(_) => "-0000000000-00000",
        JobRequest::Perftest(_) => "-server-00000",
    }
}

pub(super) struct Checking<'a> {
    asked: &'a RequestPlaces,
    problems: Vec<Diagnostic>,
}

impl Checking<'_> {
    pub(super) fn wrong(&mut self, path: &str, message: String, label: &str, next: &str) {
        let error = self
            .asked
            .refused(Diagnostic::error("RW1221", message))
            .next(next);
        self.problems.push(self.asked.at(error, path, label));
    }

    fn pods(&mut self, pods: &Pods, ending: &str) {
        let longest = NAME_MAX - ending.len();
        if !is_label(&pods.name)
            || pods.name.len() > longest
            || pods.name.starts_with(|c: char| c.is_ascii_digit())
        {
            let shown = one_line(&pods.name, 80);
            let message = format!("`{shown}` cannot be the name of this job");
            self.wrong(
                "job.name",
                message,
                "small letters, digits and `-`, a letter first",
                &format!("take a name of at most {longest} characters"),
            );
        }
        if !is_label(&pods.namespace) {
            let message = format!("`{}` cannot be a namespace", one_line(&pods.namespace, 80));
            self.wrong(
                "job.namespace",
                message,
                "small letters, digits and `-`",
                "kubectl get namespaces",
            );
        }
        if !is_image(&pods.image) {
            let message = format!("`{}` cannot be an image", one_line(&pods.image, 80));
            self.wrong(
                "job.image",
                message,
                "letters, digits and `.-_/:@`, a letter or digit first",
                self.asked
                    .words("--image=REGISTRY/NAME:TAG", "image: REGISTRY/NAME:TAG"),
            );
        }
        self.check_variable_names(pods);
        for (path, text) in [("job.cpu", &pods.cpu), ("job.memory", &pods.memory)] {
            if let Some(text) = text {
                self.amount(path, text);
            }
        }
        self.resource("job.gpu_resource", &pods.gpu_resource);
        if let Devices::Said(devices) = &pods.devices {
            for (resource, amount) in devices {
                self.resource("job.rdma", resource);
                self.check_device_count(resource, amount);
            }
        }
        self.network(pods);
        self.pull_policy(pods);
    }

    fn check_variable_names(&mut self, pods: &Pods) {
        for (name, _) in &pods.environment {
            if !is_variable(name) {
                let message = format!("`{}` cannot be the name of a variable", one_line(name, 80));
                self.wrong(
                    &format!("jobs.environment.{name}"),
                    message,
                    "letters, digits and `_`",
                    self.asked
                        .words("--env NAME=VALUE", "environment: { NAME: VALUE }"),
                );
            }
        }
    }

    fn check_device_count(&mut self, resource: &str, amount: &str) {
        let count = Amount::parse(amount).and_then(|amount| amount.count());
        if count.is_some_and(|count| count > 0) {
            return;
        }
        let message = format!(
            "`{}` is no number of {}",
            one_line(amount, 40),
            one_line(resource, 60)
        );
        self.wrong(
            "job.rdma",
            message,
            "a whole number from 1 on",
            self.asked
                .words("--device=aliyun/erdma=1", "devices: { aliyun/erdma: 1 }"),
        );
    }

    /// A network by its name, with its namespace before it and an interface behind it, or several
    /// of them (k8snetworkplumbingwg, multi-network specification, 4.1.2.1).
    fn network(&mut self, pods: &Pods) {
        if let Some(text) = pods.network.as_deref()
            && !text.split(',').all(is_network)
        {
            let message = format!("`{}` cannot be a network", one_line(text, 80));
            self.wrong(
                "job.network",
                message,
                "the name of a NetworkAttachmentDefinition",
                "kubectl get network-attachment-definitions -A",
            );
        }
    }

    /// A name of libibverbs.
    fn device(&mut self, job: &Perftest) {
        if let Some(text) = &job.device
            && !is_plain_word(text, "_-.")
        {
            let message = format!("`{}` cannot be an RDMA device", one_line(text, 60));
            self.wrong(
                "job.rdma_device",
                message,
                "such as mlx5_0",
                "railwright verify INVENTORY, or ibv_devices on a node, names them",
            );
        }
    }

    /// The words that NCCL's tests take.
    fn test(&mut self, job: &NcclTest) {
        let words = NcclProgramOptions {
            program: &job.program,
            from: &job.from,
            to: &job.to,
            turns: job.turns,
        };
        // A program is looked for in the image, where a path may begin at its working folder.
        for fault in nccl::find_nccl_test_faults(words) {
            if fault.key == "program" {
                continue;
            }
            let error = self
                .asked
                .refused(Diagnostic::error("RW1300", fault.message))
                .next(fault.fix);
            self.problems.push(
                self.asked
                    .at(error, &format!("job.{}", fault.key), fault.label),
            );
        }
    }

    fn ray_version(&mut self, job: &Ray) {
        let Some(text) = &job.ray_version else {
            return;
        };
        if !text.starts_with(|c: char| c.is_ascii_digit()) || !is_plain_word(text, ".+-") {
            let message = format!("`{}` is no release of Ray", one_line(text, 40));
            self.wrong(
                "job.ray_version",
                message,
                "such as 2.46.0",
                "the release that is in the image: ray --version",
            );
        }
    }

    fn pull_policy(&mut self, pods: &Pods) {
        if let Some(policy) = pods.image_pull_policy.as_deref()
            && !["Always", "IfNotPresent", "Never"].contains(&policy)
        {
            let message = format!("`{}` is no policy for pulling images", one_line(policy, 40));
            self.wrong(
                "job.image_pull_policy",
                message,
                "Always, IfNotPresent or Never",
                self.asked.words(
                    "--image-pull-policy=IfNotPresent",
                    "image_pull_policy: IfNotPresent",
                ),
            );
        }
    }

    pub(super) fn label(&mut self, path: &str, name: &str) {
        if !is_label(name) {
            let message = format!("`{}` cannot be a name", one_line(name, 80));
            self.wrong(
                path,
                message,
                "small letters, digits and `-`",
                "take a name of at most 63 characters",
            );
        }
    }

    pub(super) fn amount(&mut self, path: &str, text: &str) {
        if Amount::parse(text).is_none() {
            let message = format!("`{}` is no amount", one_line(text, 40));
            self.wrong(
                path,
                message,
                "a number with a unit of Kubernetes, such as 128, 500m, 512Gi",
                "write 512Gi, not 512GB",
            );
        }
    }

    fn resource(&mut self, path: &str, name: &str) {
        let (prefix, last) = name.rsplit_once('/').unwrap_or(("", name));
        if !is_plain_word(last, "-_.") || !(prefix.is_empty() || is_subdomain(prefix)) {
            let message = format!("`{}` cannot be a resource", one_line(name, 80));
            self.wrong(
                path,
                message,
                "such as aliyun/erdma or nvidia.com/gpu",
                "kubectl get node NODE -o jsonpath='{.status.allocatable}' lists them",
            );
        }
    }
}

/// What a reference of an image is made of (distribution/reference: reference.go), and nothing that
/// a Containerfile fills in.
pub(super) fn is_image(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && text.len() <= IMAGE_MAX
        && is_plain_word(text, ".-_/:@+[]")
}

/// Letters, digits and these marks, and at least one of them.
pub(super) fn is_plain_word(text: &str, marks: &str) -> bool {
    let mut characters = text.chars();
    !text.is_empty() && characters.all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
}

/// `NAMESPACE/NAME@INTERFACE`, where the first and the last may be left out.
fn is_network(text: &str) -> bool {
    let (text, is_on_netdev) = match text.split_once('@') {
        Some((text, interface)) => (text, is_netdev(interface)),
        None => (text, true),
    };
    let (is_in_namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (is_label(namespace), name),
        None => (true, text),
    };
    is_in_namespace && is_subdomain(name) && is_on_netdev
}

pub(super) fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
