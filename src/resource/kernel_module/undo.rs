//! Takes a kernel module back to how it stood before us: its files, and whether it is loaded.

use super::diff::{KernelModuleDiffBuilder, reading_from_presence};
use super::found::FoundModule;
use crate::file::found::FileState;
use crate::json_fields::read_flag_field;
use crate::{Action, Assessment, Attribute, DesiredResource, Plane, ReadResults};
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
    let mut assessment = Assessment::default();
    for (path, _, now) in judge.own_files(answers) {
        let earlier = FileState::remembered(before["files"].get(&path));
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
    judge.copy_to_ram_disk(module, &mut assessment);
    undo_running(&judge, module, before, &mut assessment);
    assessment
}

fn undo_running(
    judge: &KernelModuleDiffBuilder,
    module: &FoundModule,
    before: &Value,
    assessment: &mut Assessment,
) {
    let (Some(loaded), Some(earlier)) = (judge.body.loaded, read_flag_field(before, "loaded"))
    else {
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
        assessment.actions.push(Action::LoadModule {
            name: judge.name.clone(),
            parameters: BTreeMap::new(),
        });
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
