//! RDMA traffic between two pods: `ib_write_bw` on both ends, the one that sends with the name of
//! the one that listens.

use super::names::PerftestNames;
use super::render::{JobRuleInputs, RenderedJob, Rendering, SettledEnvironment};
use super::request::Perftest;
use railwright_base::{Diagnostic, quote};
use railwright_knowledge::spec::model::{ErdmaDriver, ErdmaMode, Trust};
use railwright_knowledge::spec::{Host, LoadedSpec};

impl Rendering<'_> {
    pub(super) fn perftest(&self, job: &Perftest) -> Result<RenderedJob, Vec<Diagnostic>> {
        let devices = self.devices();
        if devices.is_empty() {
            let message =
                "the pods ask for no RDMA device, and the spec names none that the cluster gives"
                    .to_owned();
            return Err(self.wrong(
                "RW1229",
                message,
                "--device RESOURCE=1, or `kubernetes.rdma` or `kubernetes.erdma` in the spec",
            ));
        }
        if self.hosts.len() == 1 && !self.pods().hosts.is_empty() {
            let message =
                "its two pods never run on one host, and one host alone is named".to_owned();
            return Err(self.wrong("RW1229", message, "name two hosts at least: --on HOSTS"));
        }
        let settled = self.settled(&devices, &[]);
        let device = job
            .device
            .clone()
            .or_else(|| settled.devices.first().cloned());
        let program = traffic(
            self.inputs.loaded,
            &self.hosts,
            device.as_deref(),
            job.seconds,
        );
        let peer = format!("{}.{}", job.pods.name, job.pods.namespace);
        let gpus = job.pods.gpus.unwrap_or_default();
        let names = PerftestNames {
            pod: self.pod_names(self.resources(gpus, &devices), &[]),
            server: format!("{program}\nib_write_bw \"$@\""),
            client: format!(
                "{program}\n\
                 n=0\n\
                 until ib_write_bw \"$@\" {}; do n=$((n+1)); [ $n -lt 30 ] || exit 1; sleep 2; done",
                quote::quote_for_shell(&peer)
            ),
            port: PERFTEST_PORT,
        };
        self.finish(
            &names,
            SettledEnvironment {
                variables: Vec::new(),
                ..settled
            },
            JobRuleInputs {
                gpus,
                ..JobRuleInputs::default()
            },
        )
    }
}

/// The port of perftest.
const PERFTEST_PORT: u16 = 18515;

/// Sets the words of `ib_write_bw` in sh. A device that has no name here is the first that the
/// container was given: sysfs shows those of the host too.
fn traffic(loaded: &LoadedSpec, hosts: &[&Host], device: Option<&str>, seconds: u32) -> String {
    let find = match device {
        Some(device) => format!("d={}", quote::quote_for_shell(device)),
        None => "d=; for u in /dev/infiniband/uverbs*; do read -r d \
                 </sys/class/infiniband_verbs/${u##*/}/ibdev && break; done"
            .to_owned(),
    };
    let words = perftest_words(loaded, hosts, seconds, PERFTEST_PORT);
    format!(
        "{find}\nset -- -d \"$d\" {}",
        quote::sh_words(words.iter().map(String::as_str))
    )
}

/// Arguments of `ib_write_bw` between pods on these hosts, beside the device and the other end.
pub fn perftest_words(
    loaded: &LoadedSpec,
    hosts: &[&Host],
    seconds: u32,
    port: u16,
) -> Vec<String> {
    let spec = &loaded.spec;
    let mut words: Vec<String> = ["-F", "--report_gbits", "-D"].map(str::to_owned).into();
    words.extend([seconds.to_string(), "-p".to_owned(), port.to_string()]);
    let by_manager = spec
        .kubernetes
        .as_ref()
        .and_then(|kubernetes| kubernetes.erdma.as_ref()?.prefer_driver)
        == Some(ErdmaDriver::Default)
        || hosts.iter().any(|host| {
            loaded
                .group_of(host)
                .erdma
                .as_ref()
                .and_then(|erdma| erdma.mode)
                == Some(ErdmaMode::Default)
        });
    if by_manager {
        words.push("-R".to_owned());
    }
    let marked = spec
        .fabric
        .lossless
        .as_ref()
        .filter(|lossless| lossless.trust != Some(Trust::Pcp));
    if let Some(lossless) = marked.filter(|_| !by_manager) {
        words.push(format!("--tclass={}", u32::from(lossless.dscp) * 4));
    }
    words
}
