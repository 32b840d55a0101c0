//! The checks that modules bring, one script for each target and turn of a `for`.

use super::super::compile::{CheckTemplate, Module};
use super::super::secrets;
use super::{DesiredState, ModuleScope, TargetBuilder};
use crate::template::engine;
use serde::Serialize;
use serde_json::Value;

/// A check that a module brings, for one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostModuleCheck {
    /// The host.
    pub host: String,
    /// The module and the id of the check: `memlock/limit`.
    pub name: String,
    /// A POSIX sh script, to be run in a fresh login.
    pub run: String,
    /// What it must print, white space at the ends left out; without it, it must exit with 0.
    pub expect: Option<String>,
    /// Its time limit in seconds.
    pub limit_s: u32,
}

impl TargetBuilder<'_> {
    pub(super) fn check(
        &mut self,
        module: &Module,
        check: &CheckTemplate,
        scope: &ModuleScope,
        out: &mut DesiredState,
    ) {
        let Some(turns) = self.turns(module, check.each.as_ref(), scope) else {
            return;
        };
        for (_, context) in turns {
            if engine::is_allowance_used_up() {
                return;
            }
            if !self.is_met(module, check.when.as_ref(), &context) {
                continue;
            }
            let Some(run) = self.note(module.engine.text(&check.run, &context, module.document()))
            else {
                continue;
            };
            if let Some(error) =
                secrets::in_check(module, &check.entry.id.text, check.entry.run.node, &run)
            {
                self.found.add(error, self.on.name());
                continue;
            }
            let expect = match &check.expect {
                None => None,
                Some(expect) => {
                    match self.note(module.engine.value(expect, &context, module.document())) {
                        Some(Value::String(text)) => Some(text),
                        Some(other) => Some(other.to_string()),
                        None => continue,
                    }
                }
            };
            let bytes = run.len() + expect.as_deref().unwrap_or_default().len();
            if !self.keep(module, check.entry.id.node, bytes) {
                return;
            }
            let name = format!("{}/{}", module.name, check.entry.id.text);
            out.checks.push(HostModuleCheck {
                host: self.on.name().to_owned(),
                name,
                run,
                expect,
                limit_s: check.entry.limit_s,
            });
        }
    }
}
