//! Which resources an inventory desires: of the modules, shipped ones and its own, and of the
//! workloads of its spec.

use super::SessionError;
use super::inventory::Inventory;
use super::signing_keys::{self, fill_absent_keys, list_named_keys, read_referenced_files};
use railwright_base::text::one_line;
use railwright_base::{Address, Diagnostic};
use railwright_knowledge::module::{self, DesiredState, ModuleFiles, Texts};
use railwright_knowledge::solve::SolverAnswers;
use railwright_knowledge::spec::LoadedSpec;
use railwright_resource::{DesiredResource, helm_release};
use railwright_system::files;
use railwright_workload::Workloads;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A spec with its workloads and the releases that were chosen for it.
pub(crate) struct ChosenSpec<'a> {
    /// The inventory that it is of.
    pub(crate) inventory: &'a Inventory,
    /// The spec, narrowed to the hosts whose resources are computed.
    pub(crate) asked: &'a LoadedSpec,
    /// Its workloads, rendered.
    pub(crate) workloads: &'a Workloads,
    /// The releases, by group of hosts.
    pub(crate) answers: &'a SolverAnswers,
}

/// Whether the modules of an inventory can be read, and desire what is right. A key file that is
/// not there yet is left to the inventory's warnings: a spec is valid before the lab has made its
/// keys. What looks wrong and is allowed comes back.
pub fn check_desired_resources(
    inventory: &Inventory,
    workloads: &Workloads,
    answers: &SolverAnswers,
) -> Result<Vec<Diagnostic>, SessionError> {
    let texts = fill_absent_keys(inventory, read_referenced_files(inventory, None)?);
    let DesiredState {
        resources,
        mut warnings,
        ..
    } = ChosenSpec {
        inventory,
        asked: &inventory.loaded,
        workloads,
        answers,
    }
    .compute_desired_resources(&texts)?;
    warnings.extend(
        resources
            .iter()
            .filter(|resource| resource.kind == "helm_release")
            .filter_map(|resource| no_chart(inventory, resource)),
    );
    Ok(warnings)
}

/// Whether a release is of a chart of this machine. What is in it comes into the plan, and is in no
/// commit that was looked up.
pub(crate) fn has_local_chart(resources: &[DesiredResource]) -> bool {
    resources.iter().any(|resource| {
        resource.kind == "helm_release" && !helm_release::parse_helm_release(resource).is_fetched()
    })
}

/// A chart of this machine that is not there.
fn no_chart(inventory: &Inventory, resource: &DesiredResource) -> Option<Diagnostic> {
    let release = helm_release::parse_helm_release(resource);
    let is_there = release.is_fetched()
        || files::is_present(&PathBuf::from(inventory.absolute(&release.chart)));
    let warning = || {
        Diagnostic::warning(
            "RW1005",
            format!("there is no chart {}", one_line(&release.chart, 120)),
        )
        .on(format!(
            "{}, {}",
            resource.address,
            one_line(&resource.whose_part(), 80)
        ))
        .effect("the spec is valid, but whatever needs this chart will stop")
        .next("create it, or correct the path; it is relative to the inventory")
    };
    (!is_there).then(warning)
}

impl ChosenSpec<'_> {
    /// Of the resources that were computed with fake keys, those that are other ones where
    /// something else stands for the keys: nobody can say yet what they come to.
    pub(crate) fn find_keyless_resources(
        &self,
        texts: &Texts,
        computed: &[DesiredResource],
    ) -> Result<BTreeSet<Address>, SessionError> {
        if list_named_keys(self.inventory).all(|named| texts.contains_key(&named)) {
            return Ok(BTreeSet::new());
        }
        let filled = signing_keys::fill_with_words(self.inventory, texts.clone(), "is to come");
        let others = self.compute_desired_resources(&filled)?.resources;
        let others: BTreeMap<&Address, &DesiredResource> = others
            .iter()
            .map(|resource| (&resource.address, resource))
            .collect();
        let keyless = computed
            .iter()
            .filter(|resource| others.get(&resource.address) != Some(resource));
        Ok(keyless.map(|resource| resource.address.clone()).collect())
    }

    /// What the modules desire of the hosts of the spec, and its workloads.
    pub(crate) fn compute_desired_resources(
        &self,
        texts: &Texts,
    ) -> Result<DesiredState, SessionError> {
        let inventory = self.inventory;
        let mut sources = inventory.loaded.sources.clone();
        let own = ModuleFiles::below(
            &format!("{}/modules", inventory.path.trim_end_matches('/')),
            inventory.modules.iter().cloned(),
        );
        let modules = module::load_modules(
            module::collect_shipped_modules()
                .into_iter()
                .chain(own)
                .collect(),
        )?;
        sources.join(&modules.sources);
        let desired = module::compute_desired_state(
            self.asked,
            &inventory.knowledge.catalog,
            self.answers,
            &modules,
            texts,
        );
        desired
            .and_then(|mut desired| {
                self.workloads
                    .resource(&inventory.loaded, &mut desired)
                    .map(|()| desired)
            })
            .map_err(|diagnostics| SessionError::of_input(diagnostics, &sources))
    }
}
