//! Desired states that are identical on many hosts are kept once.

use railwright_base::Target;
use railwright_resource::{DesiredResource, ResourceDeclaration};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A desired state that is identical on many hosts is kept once, and so are the names. Of each
/// resource a few forms are remembered: one that is different on every host (its address) would
/// make the search long and save nothing.
pub(super) fn share_equal_values(resources: &mut [DesiredResource]) {
    const FORMS: usize = 8;
    let mut known: BTreeMap<Arc<[String]>, Vec<Arc<ResourceDeclaration>>> = BTreeMap::new();
    let mut target: Option<Target> = None;
    for resource in resources {
        match &target {
            Some(target) if *target == resource.address.target => {
                resource.address.target = target.clone()
            }
            _ => target = Some(resource.address.target.clone()),
        }
        if let Some((path, _)) = known.get_key_value(&resource.address.path) {
            resource.address.path = Arc::clone(path);
        }
        let forms = known.entry(Arc::clone(&resource.address.path)).or_default();
        match forms.iter().find(|form| **form == resource.declaration) {
            Some(form) => resource.declaration = Arc::clone(form),
            None if forms.len() < FORMS => forms.push(Arc::clone(&resource.declaration)),
            None => {}
        }
    }
}
