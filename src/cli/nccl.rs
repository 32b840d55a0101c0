//! NCCL's tests between hosts of an inventory, as the gate of a rollout and `verify --nccl` run
//! them.

use super::CommandFailure;
use super::job::deliver::{JobRenderContext, print_warnings_or_fail};
use super::job::nics;
use railwright_base::text::{format_count, one_line};
use railwright_base::{Diagnostic, nodeset};
use railwright_knowledge::spec::model::{GpuSpec, NcclTests};
use railwright_knowledge::spec::{Sources, nccl};
use railwright_session::Inventory;
use railwright_transport::HostAccess;
use railwright_verify::nccl::NcclExpectations;
use railwright_verify::nccl_run::{NcclRun, NcclWork, group_wave_hosts};
use railwright_workload::{HostJob, HostJobParts, HostKind, NcclTest, RequestPlaces, on_hosts};
use std::collections::BTreeSet;

/// A second Ctrl-C waits for nobody.
pub const LEFT_AT_ONCE: &str = "left at once: what was started on hosts ends there by its lease, a \
                                minute after its time at the latest, and its folder goes with it";

/// Tests that can be run between some hosts of the inventory.
pub struct Nccl {
    ground: JobRenderContext,
    tests: NcclTests,
    /// Hosts with the same GPUs.
    sorts: Vec<Vec<String>>,
}

impl Nccl {
    /// Those that the gate of the spec asks for; nothing where it asks for none.
    pub fn of_gate(inventory: &Inventory) -> Result<Option<Nccl>, CommandFailure> {
        let gate = inventory
            .loaded
            .spec
            .rollout
            .gate
            .as_ref()
            .and_then(|gate| gate.nccl.clone());
        gate.map(|tests| Nccl::of(inventory, tests)).transpose()
    }

    /// Tests of this inventory, where it has two hosts that can run them. Nobody is asked.
    pub fn of(inventory: &Inventory, tests: NcclTests) -> Result<Nccl, CommandFailure> {
        let catalog = inventory.knowledge.catalog.clone();
        // What else a spec has for GPUs, NCCL does not know.
        let is_fit = |gpu: &GpuSpec| {
            catalog
                .gpu
                .get(&gpu.model)
                .is_some_and(|row| row.vendor == "nvidia")
        };
        let loaded = &inventory.loaded;
        let sorts = nccl::group_hosts_by_gpu(&loaded.spec, &loaded.hosts, is_fit);
        let sorts: Vec<Vec<String>> = sorts
            .into_values()
            .map(|hosts| hosts.iter().map(|host| host.name.clone()).collect())
            .collect();
        let made = Nccl {
            ground: JobRenderContext::of(inventory.clone()),
            tests,
            sorts,
        };
        let mut pairs = made.sorts.iter().filter(|hosts| hosts.len() > 1).peekable();
        if pairs.peek().is_none() {
            return Err(report_no_nccl_hosts(&made.sorts, &inventory.word).into());
        }
        // What cannot be made of any of them is said before anything is begun.
        for hosts in pairs {
            let (parts, sources) = made.made(&made.accesses(inventory, hosts))?;
            print_warnings_or_fail(parts.warnings, &sources)?;
        }
        Ok(made)
    }

    /// What is to be done for a wave, with those that are through; for all hosts where nobody is.
    pub fn works(&self, wave: &[String], done: &[String]) -> Result<Vec<NcclWork>, CommandFailure> {
        let Some(inventory) = self.ground.inventory() else {
            return Ok(Vec::new());
        };
        let work = |hosts: Vec<String>| match hosts.as_slice() {
            [alone] => Ok(NcclWork::Alone {
                host: alone.clone(),
                why: self.why_alone(alone),
            }),
            hosts => Ok(NcclWork::Run(Box::new(self.run(inventory, hosts)?))),
        };
        group_wave_hosts(&self.sorts, wave, done)
            .into_iter()
            .map(work)
            .collect()
    }

    /// The hosts that can have a part in them.
    pub fn hosts(&self) -> Vec<String> {
        self.sorts.concat()
    }

    fn why_alone(&self, host: &str) -> String {
        let others = self
            .sorts
            .iter()
            .find(|sort| sort.iter().any(|name| name == host))
            .map_or(0, |sort| sort.len().saturating_sub(1));
        match others {
            0 => "no other host of the spec has GPUs of the same model and number".to_owned(),
            others => {
                let others = format_count(others, "other host");
                format!(
                    "when its gate came, nobody of the {others} with the same GPUs was through: \
                     the next wave of them takes it along"
                )
            }
        }
    }

    /// The hosts, this machine first where it is one of them: mpirun starts there without a login,
    /// and no other host can log in to it.
    fn accesses(&self, inventory: &Inventory, hosts: &[String]) -> Vec<HostAccess> {
        let access = |name: &String| {
            inventory
                .loaded
                .host(name)
                .and_then(|host| inventory.access(host))
        };
        let mut accesses: Vec<HostAccess> = hosts.iter().filter_map(access).collect();
        accesses.sort_by_key(|access| !access.local);
        accesses
    }

    fn made(&self, accesses: &[HostAccess]) -> Result<(HostJobParts, Sources), CommandFailure> {
        let words = self.tests.words();
        let test = NcclTest {
            program: words.program.to_owned(),
            from: words.from.to_owned(),
            to: words.to.to_owned(),
            turns: words.turns,
            ..NcclTest::default()
        };
        let job = HostJob {
            kind: HostKind::NcclTest(Box::new(test)),
            hosts: accesses
                .iter()
                .map(|access| access.name.to_string())
                .collect(),
            addresses: accesses
                .iter()
                .map(|access| access.address.clone())
                .collect(),
            environment: Vec::new(),
            gpus: None,
            over_tcp: false,
        };
        let asked = RequestPlaces::of_options(
            "verify --nccl",
            [("job.program", format!("--program={}", words.program))],
        );
        self.ground
            .made(&asked, |inputs| on_hosts(inputs, &job, &asked))
    }

    fn run(&self, inventory: &Inventory, hosts: &[String]) -> Result<NcclRun, CommandFailure> {
        let accesses = self.accesses(inventory, hosts);
        let (made, _) = self.made(&accesses)?;
        let (shown, path) = (nodeset::fold_node_set(hosts), one_line(&inventory.word, 80));
        let words = format!(
            "--log FILE, with -o FILE of railwright job run nccl-test -i {path} --on {shown}"
        );
        let mut expected = NcclExpectations {
            least_percent: self.tests.least_percent(),
            ..NcclExpectations::of(shown, words)
        };
        let named: BTreeSet<&str> = hosts.iter().map(String::as_str).collect();
        // What they carry may be unknown: then the bandwidth is shown and not judged.
        nics::set_expected_bandwidth(&mut expected, inventory, &named).ok();
        let ranks = made.gpus.saturating_mul(hosts.len() as u32);
        let limit_s = self.tests.limit_s().unwrap_or(nccl::LIMIT_S);
        Ok(NcclRun {
            parts: accesses.into_iter().zip(made.parts).collect(),
            ranks,
            limit_s,
            expected,
        })
    }
}

/// No two hosts can run them together.
fn report_no_nccl_hosts(sorts: &[Vec<String>], inventory: &str) -> Diagnostic {
    let has = match sorts.concat().as_slice() {
        [] => "no host that is reached over SSH has GPUs of NVIDIA by the spec".to_owned(),
        [one] => format!(
            "{} alone has GPUs of NVIDIA and is reached over SSH",
            one_line(one, 60)
        ),
        some => format!(
            "no two of {} have GPUs of the same model and number",
            one_line(&nodeset::fold_node_set(some), 80)
        ),
    };
    Diagnostic::error("RW1305", format!("NCCL's tests have nowhere to run: {has}"))
        .effect("nothing of NCCL can be proven between two hosts")
        .state("no host was asked")
        .next("write the GPUs of the nodes in the spec: gpu: { model: H100-SXM5-80GB, count: 8 }")
        .next(format!(
            "railwright verify {} proves the fabric without them",
            one_line(inventory, 80)
        ))
}
