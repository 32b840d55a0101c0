//! NCCL's tests between hosts of an inventory, as the gate of a rollout and `verify --nccl` run
//! them.

use super::CommandFailure;
use super::job::deliver::{JobRenderContext, print_warnings_or_fail};
use super::job::nics;
use railwright_base::text::{format_count, one_line};
use railwright_base::{Diagnostic, nodeset};
use railwright_knowledge::spec::model::NcclTests;
use railwright_knowledge::spec::{Sources, nccl};
use railwright_session::Inventory;
use railwright_transport::TargetAccess;
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
        let Some(gate) = &inventory.loaded.spec.rollout.gate else {
            return Ok(None);
        };
        match gate.nccl.clone() {
            Some(tests) => Ok(Some(Nccl::of(inventory, tests)?)),
            None => Ok(None),
        }
    }

    /// Tests of this inventory, where it has two hosts that can run them. Nobody is asked.
    pub fn of(inventory: &Inventory, tests: NcclTests) -> Result<Nccl, CommandFailure> {
        let loaded = &inventory.loaded;
        let groups = nccl::group_hosts_by_gpu(&loaded.spec, &loaded.hosts, |gpu| {
            // What else a spec has for GPUs, NCCL does not know.
            let entry = inventory.knowledge.catalog.gpu.get(&gpu.model);
            entry.is_some_and(|entry| entry.vendor == "nvidia")
        });
        let mut sorts: Vec<Vec<String>> = Vec::new();
        for hosts in groups.into_values() {
            sorts.push(hosts.iter().map(|host| host.name.clone()).collect());
        }
        let runnable = Nccl {
            ground: JobRenderContext::of(inventory.clone()),
            tests,
            sorts,
        };
        if runnable.sorts.iter().all(|hosts| hosts.len() < 2) {
            return Err(report_no_nccl_hosts(&runnable.sorts, &inventory.word).into());
        }
        // What cannot be rendered for any of them is reported before anything is begun.
        for hosts in &runnable.sorts {
            if hosts.len() > 1 {
                let accesses = runnable.list_accesses(inventory, hosts);
                let (parts, sources) = runnable.render_job(&accesses)?;
                print_warnings_or_fail(parts.warnings, &sources)?;
            }
        }
        Ok(runnable)
    }

    /// What is to be done for a wave, with those that are through; for all hosts where nobody is.
    pub fn works(&self, wave: &[String], done: &[String]) -> Result<Vec<NcclWork>, CommandFailure> {
        let Some(inventory) = self.ground.inventory() else {
            return Ok(Vec::new());
        };
        let mut works = Vec::new();
        for hosts in group_wave_hosts(&self.sorts, wave, done) {
            works.push(match hosts.as_slice() {
                [alone] => NcclWork::Alone {
                    host: alone.clone(),
                    why: self.explain_alone(alone),
                },
                hosts => NcclWork::Run(Box::new(self.build_run(inventory, hosts)?)),
            });
        }
        Ok(works)
    }

    /// The hosts that can have a part in them.
    pub fn hosts(&self) -> Vec<String> {
        self.sorts.concat()
    }

    fn explain_alone(&self, host: &str) -> String {
        let mut sorts = self.sorts.iter();
        let sort = sorts.find(|sort| sort.iter().any(|name| name == host));
        match sort.map_or(0, |sort| sort.len().saturating_sub(1)) {
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
    fn list_accesses(&self, inventory: &Inventory, hosts: &[String]) -> Vec<TargetAccess> {
        let mut accesses: Vec<TargetAccess> = hosts
            .iter()
            .filter_map(|name| inventory.access(inventory.loaded.host(name)?))
            .collect();
        accesses.sort_by_key(|access| !access.is_this_machine());
        accesses
    }

    fn render_job(
        &self,
        accesses: &[TargetAccess],
    ) -> Result<(HostJobParts, Sources), CommandFailure> {
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
                .map(|access| access.address().to_owned())
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
            .render(&asked, |inputs| on_hosts(inputs, &job, &asked))
    }

    fn build_run(
        &self,
        inventory: &Inventory,
        hosts: &[String],
    ) -> Result<NcclRun, CommandFailure> {
        let accesses = self.list_accesses(inventory, hosts);
        let (rendered, _) = self.render_job(&accesses)?;
        let (shown, path) = (nodeset::fold_node_set(hosts), one_line(&inventory.word, 80));
        let words = format!(
            "--log FILE, with -o FILE of railwright job run nccl-test -i {path} --on {shown}"
        );
        let mut expected = NcclExpectations {
            least_percent: self.tests.least_percent(),
            ..NcclExpectations::of(shown, words)
        };
        let named: BTreeSet<&str> = hosts.iter().map(String::as_str).collect();
        // What they carry may be unknown: then the bandwidth is shown and not checked.
        nics::set_expected_bandwidth(&mut expected, inventory, &named).ok();
        let ranks = rendered.gpus.saturating_mul(hosts.len() as u32);
        let limit_s = self.tests.limit_s().unwrap_or(nccl::LIMIT_S);
        Ok(NcclRun {
            parts: accesses.into_iter().zip(rendered.parts).collect(),
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
        .effect("NCCL cannot be tested between two hosts")
        .state("no host was asked")
        .next("write the GPUs of the nodes in the spec: gpu: { model: H100-SXM5-80GB, count: 8 }")
        .next(format!(
            "railwright verify {} proves the fabric without them",
            one_line(inventory, 80)
        ))
}
