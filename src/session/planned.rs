//! From what was read from targets to a plan.

use super::SessionError;
use super::observed::ObservedTargets;
use super::session::Session;
use railwright_plan::{self as plan, ClusterNodes, Header, Plan, PlanInputs, PlanSelection};
use railwright_resource::kind_named;
use railwright_state::{ClusterLock, run_status};

/// A run that is over and left steps of which nobody knows how they ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRun {
    /// Its name, such as `r0034`.
    pub run: String,
    /// How many steps are open.
    pub open: usize,
}

impl Session {
    /// The plan between what was read from targets and what is desired.
    pub fn plan(
        &self,
        observed: &ObservedTargets,
        selection: PlanSelection,
    ) -> Result<Plan, SessionError> {
        self.check_selection_keys(&selection)?;
        let loaded = &self.inventory.loaded;
        let ObservedTargets {
            observation,
            state,
            resources,
            recognition,
            ..
        } = observed;
        let plan = plan::make_plan(&PlanInputs {
            header: Header {
                made_by: env!("CARGO_PKG_VERSION").to_owned(),
                cluster: loaded.spec.cluster.clone(),
                inventory: self.inventory.origin.clone(),
                spec_digest: loaded.digest.clone(),
                modules: self.desired.digests.clone(),
                proof: self.proof(),
                waived: self.evaluation.waived.clone(),
                no_ssh: self.no_ssh(),
            },
            resources,
            last: &state.last_applied,
            outages: &state.outages,
            observation,
            identity: &recognition.findings(state.cluster.as_ref(), &self.inventory.word),
            kinds: &kind_named,
            targets: &self.targets,
            nodes: ClusterNodes::of(loaded),
            rollout: self.rollout(),
            selection,
        })
        .map_err(|diagnostics| SessionError::from(diagnostics).with_sources(&loaded.sources))?;
        self.check_plan_keys(&plan)?;
        Ok(plan)
    }

    /// Refuses a selection of everything where a signing key is not there; it is known before any
    /// target is contacted.
    pub fn check_selection_keys(&self, selection: &PlanSelection) -> Result<(), SessionError> {
        if selection.is_everything() {
            self.check_signing_keys()?;
        }
        Ok(())
    }

    /// The newest run, where it is over and has open steps.
    pub fn find_open_run(&self) -> Result<Option<OpenRun>, SessionError> {
        let Some(run) = self.folder.newest_run()? else {
            return Ok(None);
        };
        let open =
            run_status::fold_journal_records(&self.folder.read_journal(&run)?.records).open();
        if open == 0 || ClusterLock::is_held(&self.folder)? {
            return Ok(None);
        }
        Ok(Some(OpenRun { run, open }))
    }
}
