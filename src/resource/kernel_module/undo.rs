//! Takes a kernel module back to how it stood before us: its files, whether it is loaded, and with
//! which options.

use super::diff::{
    KernelModuleDiffBuilder, persisted_option, reading_from_presence, running_option,
};
use super::found::{FoundModule, same_value};
use super::{PriorKernelModule, modprobe_file};
use crate::file::found::FileState;
use crate::{Action, Attribute, DesiredResource, Plane, ReadResults, Reading, ResourceDiff};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is to be done for that, and what cannot be.
pub(super) fn plan_kernel_module_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let builder = KernelModuleDiffBuilder::new(last_applied, answers);
    let module = match &builder.module {
        Err(reason) => return ResourceDiff::unknown_undo(Plane::Running, before, reason.clone()),
        Ok(module) => module,
    };
    let prior = PriorKernelModule::deserialize(before).unwrap_or_default();
    let mut diff = ResourceDiff::default();
    for (path, _, now) in builder.own_files(answers) {
        let earlier = prior.files.get(&path).cloned().unwrap_or_default();
        let (actions, residue) = earlier.restore(&path, &now);
        diff.actions.extend(actions);
        diff.residue.extend(residue);
        let attribute = Attribute::in_plane(
            Plane::Persisted,
            earlier.restored_reading(&now),
            now.content_reading(),
        );
        diff.attributes.insert(path, attribute);
    }
    undo_loaded(&builder, module, prior.loaded, &mut diff);
    undo_options(&builder, module, &prior, &mut diff);
    builder.copy_to_ram_disk(module, &mut diff);
    diff
}

fn undo_loaded(
    builder: &KernelModuleDiffBuilder,
    module: &FoundModule,
    earlier: Option<bool>,
    diff: &mut ResourceDiff,
) {
    let (Some(loaded), Some(earlier)) = (builder.body.loaded, earlier) else {
        return;
    };
    let now = module.is_there();
    let mut desired = now;
    if loaded && now && !earlier {
        if builder.unload(module, diff) {
            desired = false;
            diff.residue.push(format!(
                "modules that {} pulled in stay loaded until the next boot",
                builder.name
            ));
        } else {
            diff.residue.push(format!(
                "{} stays loaded until the next boot: {}",
                builder.name,
                builder.users(module)
            ));
        }
    } else if earlier && !now && !module.on_disk {
        diff.residue.push(format!(
            "{} was loaded, and is not loaded again: kernel {} has it no more",
            builder.name, module.kernel
        ));
    } else if earlier && !now {
        // By us, or by somebody since.
        desired = true;
        diff.actions.push(builder.load(&BTreeMap::new()));
    }
    diff.attributes.insert(
        "loaded".to_owned(),
        Attribute::in_plane(
            Plane::Running,
            reading_from_presence(desired),
            reading_from_presence(now),
        ),
    );
}

/// What the files say once ours are gone comes into effect when the module is loaded again, or with
/// the next boot.
fn undo_options(
    builder: &KernelModuleDiffBuilder,
    module: &FoundModule,
    prior: &PriorKernelModule,
    diff: &mut ResourceDiff,
) {
    let own = modprobe_file(&builder.name);
    let text = match prior.files.get(&own) {
        Some(FileState::Absent { .. }) => Some(""),
        file => file.and_then(FileState::text),
    };
    let restored = match text {
        Some(text) => module.with_modprobe_file(&own, text),
        None => module.clone(),
    };
    let is_unloaded = |action: &Action| matches!(action, Action::UnloadModule { .. });
    let stays_loaded = module.loaded && !diff.actions.iter().any(is_unloaded);
    let mut needs_reload = false;
    for (key, value) in &builder.body.options {
        let [desired, actual] =
            [&restored, module].map(|module| persisted_option(module, &builder.name, key));
        let mut attribute = Attribute::in_plane(Plane::Persisted, desired, actual);
        let earlier = prior.parameters.as_ref().and_then(|all| all.get(key));
        let comes_back = |earlier: &&String| {
            let option = restored.option(&builder.name, key);
            option.is_none_or(|(option, _)| same_value(&option, earlier))
        };
        if let Some(earlier) = earlier.filter(comes_back).filter(|_| stays_loaded) {
            let (desired, actual) = (
                Reading::is(earlier.as_str()),
                running_option(module, key, earlier),
            );
            needs_reload |= actual.value().is_some() && desired != actual;
            attribute = attribute.and(Plane::Running, desired, actual);
        } else if stays_loaded && running_option(module, key, value) == Reading::is(value.as_str())
        {
            diff.residue.push(format!(
                "{} runs with {key}={value} until it is loaded again",
                builder.name
            ));
        }
        let name = format!("option {key}");
        diff.attributes.insert(name, attribute);
    }
    if needs_reload {
        builder.reload(module, &BTreeMap::new(), diff);
    }
}
