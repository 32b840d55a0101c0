//! Takes a kernel module back to how it stood before us: its files, whether it is loaded, and with
//! which options.

use super::diff::{
    KernelModuleDiffBuilder, persisted_option, reading_from_presence, running_option,
};
use super::found::{FoundModule, same_value};
use super::{PriorKernelModule, modprobe_file};
use crate::file::found::FileState;
use crate::{Action, Assessment, Attribute, DesiredResource, Plane, ReadResults, Reading};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is to be done for that, and what cannot be.
pub(super) fn plan_kernel_module_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> Assessment {
    let judge = KernelModuleDiffBuilder::new(last_applied, answers);
    let module = match &judge.module {
        Err(reason) => return Assessment::unknown_undo(Plane::Running, before, reason.clone()),
        Ok(module) => module,
    };
    let prior = PriorKernelModule::deserialize(before).unwrap_or_default();
    let mut assessment = Assessment::default();
    for (path, _, now) in judge.own_files(answers) {
        let earlier = prior.files.get(&path).cloned().unwrap_or_default();
        let (actions, residue) = earlier.restore(&path, &now);
        assessment.actions.extend(actions);
        assessment.residue.extend(residue);
        let attribute = Attribute::in_plane(
            Plane::Persisted,
            earlier.restored_reading(&now),
            now.content_reading(),
        );
        assessment.attributes.insert(path, attribute);
    }
    undo_loaded(&judge, module, prior.loaded, &mut assessment);
    undo_options(&judge, module, &prior, &mut assessment);
    judge.copy_to_ram_disk(module, &mut assessment);
    assessment
}

fn undo_loaded(
    judge: &KernelModuleDiffBuilder,
    module: &FoundModule,
    earlier: Option<bool>,
    assessment: &mut Assessment,
) {
    let (Some(loaded), Some(earlier)) = (judge.body.loaded, earlier) else {
        return;
    };
    let now = module.is_there();
    let mut wanted = now;
    if loaded && now && !earlier {
        if judge.unload(module, assessment) {
            wanted = false;
            assessment.residue.push(format!(
                "modules that {} pulled in stay loaded until the next boot",
                judge.name
            ));
        } else {
            assessment.residue.push(format!(
                "{} stays loaded until the next boot: {}",
                judge.name,
                judge.users(module)
            ));
        }
    } else if earlier && !now && !module.on_disk {
        assessment.residue.push(format!(
            "{} was loaded, and is not loaded again: kernel {} has it no more",
            judge.name, module.kernel
        ));
    } else if earlier && !now {
        // By us, or by somebody since.
        wanted = true;
        assessment.actions.push(judge.load(&BTreeMap::new()));
    }
    assessment.attributes.insert(
        "loaded".to_owned(),
        Attribute::in_plane(
            Plane::Running,
            reading_from_presence(wanted),
            reading_from_presence(now),
        ),
    );
}

/// What the files say once ours are gone comes into effect when the module is loaded again, or with
/// the next boot.
fn undo_options(
    judge: &KernelModuleDiffBuilder,
    module: &FoundModule,
    prior: &PriorKernelModule,
    assessment: &mut Assessment,
) {
    let own = modprobe_file(&judge.name);
    let text = match prior.files.get(&own) {
        Some(FileState::Absent { .. }) => Some(""),
        file => file.and_then(FileState::text),
    };
    let restored = match text {
        Some(text) => module.with_modprobe_file(&own, text),
        None => module.clone(),
    };
    let is_unloaded = |action: &Action| matches!(action, Action::UnloadModule { .. });
    let stays_loaded = module.loaded && !assessment.actions.iter().any(is_unloaded);
    let mut needs_reload = false;
    for (key, value) in &judge.body.options {
        let [wanted, found] =
            [&restored, module].map(|module| persisted_option(module, &judge.name, key));
        let mut attribute = Attribute::in_plane(Plane::Persisted, wanted, found);
        let earlier = prior.parameters.as_ref().and_then(|all| all.get(key));
        let comes_back = |earlier: &&String| {
            let option = restored.option(&judge.name, key);
            option.is_none_or(|(option, _)| same_value(&option, earlier))
        };
        if let Some(earlier) = earlier.filter(comes_back).filter(|_| stays_loaded) {
            let (wanted, found) = (
                Reading::is(earlier.as_str()),
                running_option(module, key, earlier),
            );
            needs_reload |= found.value().is_some() && wanted != found;
            attribute = attribute.and(Plane::Running, wanted, found);
        } else if stays_loaded && running_option(module, key, value) == Reading::is(value.as_str())
        {
            assessment.residue.push(format!(
                "{} runs with {key}={value} until it is loaded again",
                judge.name
            ));
        }
        let name = format!("option {key}");
        assessment.attributes.insert(name, attribute);
    }
    if needs_reload {
        judge.reload(module, &BTreeMap::new(), assessment);
    }
}
