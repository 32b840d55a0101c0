//! What is wanted alike on many hosts is kept once.

use railwright_base::Target;
use railwright_resource::{DesiredResource, Want};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is wanted alike on many hosts is held once, and so are the names. Of each resource a few
/// forms are remembered: one that is different on every host (its address) would make the search
/// long and save nothing.
pub(super) fn share_equal_values(wishes: &mut [DesiredResource]) {
    const FORMS: usize = 8;
    let mut known: BTreeMap<Arc<[String]>, Vec<Arc<Want>>> = BTreeMap::new();
    let mut target: Option<Target> = None;
    for wish in wishes {
        match &target {
            Some(target) if *target == wish.address.target => wish.address.target = target.clone(),
            _ => target = Some(wish.address.target.clone()),
        }
        if let Some((path, _)) = known.get_key_value(&wish.address.path) {
            wish.address.path = Arc::clone(path);
        }
        let forms = known.entry(Arc::clone(&wish.address.path)).or_default();
        match forms.iter().find(|form| **form == wish.want) {
            Some(form) => wish.want = Arc::clone(form),
            None if forms.len() < FORMS => forms.push(Arc::clone(&wish.want)),
            None => {}
        }
    }
}
