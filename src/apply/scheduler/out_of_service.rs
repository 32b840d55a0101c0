//! Who is out of service: by what this run and earlier ones did, and by nobody's doing here. The
//! latter is asked again before one more host is disturbed, when something happened since it was
//! asked last.

use super::Scheduler;
use railwright_base::Target;
use railwright_plan::OutageCertainty;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of who is out of service by nobody's doing here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OutageCheckState {
    /// Nothing that can be relied on.
    #[default]
    Due,
    /// It is being looked at.
    Asked,
    /// It is being looked at, and something happened meanwhile.
    Overtaken,
    /// It was looked at, and nothing happened since.
    Fresh,
}

impl Scheduler {
    /// Hosts that count as out of service now, beside this one. Of a host that may carry jobs all
    /// the same, without others that do so for the same reason: they would keep each other waiting
    /// for ever.
    pub(super) fn count_out_of_service_beside(&self, host: &Target) -> usize {
        let own = self
            .why_it_may_serve(host)
            .or_else(|| self.doubt_of_runs(host));
        let others = self.out_of_service().into_iter();
        let others = others.filter(|other| *other != host);
        let is_like_it = |other: &&Target| own.is_some() && self.why_it_may_serve(other) == own;
        others.filter(|other| !is_like_it(other)).count()
    }

    /// Why a host that counts as out of service may carry jobs all the same, by all that is known
    /// of it; nothing where it may not, or nobody knows.
    fn why_it_may_serve(&self, host: &Target) -> Option<OutageCertainty> {
        match self.outside.get(host) {
            None => self.doubt_of_runs(host),
            Some(OutageCertainty::Unknown | OutageCertainty::Certain) => None,
            Some(_) if self.is_out_by_run(host) && self.doubt_of_runs(host).is_none() => None,
            Some(why) => Some(*why),
        }
    }

    /// Where runs left it in doubt with a step that disturbs nobody, that.
    fn doubt_of_runs(&self, host: &Target) -> Option<OutageCertainty> {
        let why = self.in_doubt.get(host).copied();
        why.filter(|why| *why == OutageCertainty::LeftInDoubt && self.is_out_by_run(host))
    }

    /// True while this host cannot be in service. Of one that a run left in doubt nobody is sure.
    pub(super) fn is_out_for_certain(&self, host: &Target) -> bool {
        match self.outside.get(host) {
            Some(OutageCertainty::Certain) => !self.is_left_in_doubt(host),
            _ => self.is_out_for_certain_by_run(host),
        }
    }

    /// True while this host counts by what runs did, and may be in service all the same.
    pub(super) fn is_left_in_doubt(&self, host: &Target) -> bool {
        self.in_doubt.contains_key(host) && self.is_out_by_run(host)
    }

    /// True where it has to be looked whether this host is in service: it does not count for certain,
    /// or somebody may have given it back since.
    pub fn has_to_be_looked_at(&self, host: &Target) -> bool {
        !self.is_out_for_certain_by_run(host) || self.out_before.contains(host)
    }

    /// True while this host counts by what runs did, and cannot be in service.
    pub fn is_out_for_certain_by_run(&self, host: &Target) -> bool {
        self.is_out_by_run(host) && !self.in_doubt.contains_key(host)
    }

    /// Hosts that count as out of service now.
    pub fn out_of_service(&self) -> BTreeSet<&Target> {
        self.lost
            .iter()
            .chain(self.disturbed.keys())
            .chain(self.outside.keys())
            .collect()
    }

    /// True while this host counts as out of service.
    pub fn is_out(&self, host: &Target) -> bool {
        self.is_out_by_run(host) || self.outside.contains_key(host)
    }

    /// True while this host counts as out of service by what runs did.
    pub fn is_out_by_run(&self, host: &Target) -> bool {
        self.lost.contains(host) || self.disturbed.contains_key(host)
    }

    pub(super) fn is_looking(&self) -> bool {
        matches!(
            self.look,
            OutageCheckState::Asked | OutageCheckState::Overtaken
        )
    }

    /// Something happened since the last look: who is out of service may be somebody else now.
    pub(super) fn look_again(&mut self) {
        self.look = match self.look {
            OutageCheckState::Fresh if self.limits.looks => OutageCheckState::Due,
            OutageCheckState::Asked => OutageCheckState::Overtaken,
            other => other,
        };
    }

    /// It was looked at who is out of service by nobody's doing here, and who may be back.
    pub(super) fn record_outages(
        &mut self,
        out: BTreeMap<Target, OutageCertainty>,
        may_serve: &BTreeSet<Target>,
    ) {
        let back: Vec<Target> = self.out_before.intersection(may_serve).cloned().collect();
        for host in back {
            self.in_doubt
                .entry(host)
                .or_insert(OutageCertainty::Unknown);
        }
        self.outside = out;
        self.look = if self.look == OutageCheckState::Overtaken {
            OutageCheckState::Due
        } else {
            OutageCheckState::Fresh
        };
    }
}
