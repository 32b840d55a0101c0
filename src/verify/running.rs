//! Kernel modules of the RDMA and GPU drivers: is what runs what is installed? After an update
//! without a reload or a reboot it is not, and the next boot brings a driver that nothing here has
//! proven.

use super::hardware::{ModuleVersions, VerifyHardwareFacts};
use super::result::CheckOutcome;

/// The modules that are compared.
pub const MODULES: &[&str] = &["mlx5_core", "mlx5_ib", "ib_core", "erdma", "nvidia"];

/// What tells builds apart, the surest first: a driver can be built anew without a new version.
const MARKS: &[&str] = &["srcversion", "build-id", "version"];

/// Checks all modules that are loaded; nothing where none of them is.
pub fn check_running_modules(found: &VerifyHardwareFacts) -> Option<CheckOutcome> {
    if found.modules.is_empty() {
        return None;
    }
    let (mut compared, mut stale) = (Vec::new(), Vec::new());
    for (name, module) in &found.modules {
        let Some(difference) = compare_module_versions(module) else {
            continue;
        };
        compared.push(name.as_str());
        if let Some(difference) = difference {
            stale.push(difference.words(name));
        }
    }
    let expected = "the installed modules run";
    if !stale.is_empty() {
        let evaluated = CheckOutcome::warning("RW0816", stale.join("; ")).expected(expected);
        return Some(
            evaluated
                .effect(
                    "the next boot or reload brings another driver than the one that this run \
                     proves, and user space may already be the new one",
                )
                .next(
                    "reload the driver or reboot in a window, then railwright verify {inventory}",
                ),
        );
    }
    if compared.is_empty() {
        let reason = "the modules of this kernel carry neither srcversion nor build id nor version";
        return Some(CheckOutcome::not_applicable(reason).expected(expected));
    }
    Some(CheckOutcome::passed(compared.join(", ")).expected(expected))
}

struct ModuleVersionDifference<'a> {
    mark: &'static str,
    running: &'a str,
    installed: &'a str,
}

impl ModuleVersionDifference<'_> {
    fn words(&self, name: &str) -> String {
        if self.mark == "build-id" {
            return format!("{name} runs from another file than the installed one");
        }
        format!(
            "{name} runs {} {}, installed is {}",
            self.mark, self.running, self.installed
        )
    }
}

/// `None` where nothing can be compared; inside, the difference if there is one.
fn compare_module_versions(module: &ModuleVersions) -> Option<Option<ModuleVersionDifference<'_>>> {
    let mark = MARKS.iter().find(|mark| {
        module.running.contains_key(**mark) && module.installed.contains_key(**mark)
    })?;
    let (running, installed) = (module.running.get(*mark)?, module.installed.get(*mark)?);
    Some((running != installed).then_some(ModuleVersionDifference {
        mark,
        running,
        installed,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;
    use crate::samples;

    fn evaluated(text: &str) -> CheckOutcome {
        check_running_modules(&VerifyHardwareFacts::parse(text)).unwrap()
    }

    #[test]
    fn what_runs_is_installed_by_whatever_mark_there_is() {
        let evaluated = evaluated(samples::MACHINE);
        assert_eq!(
            (evaluated.verdict, evaluated.measured.as_str()),
            (CheckVerdict::Passed, "ib_core, mlx5_core, nvidia")
        );
    }

    #[test]
    fn an_update_without_a_reboot_is_told() {
        let text = samples::MACHINE.replace(
            "installed version 535.216.03",
            "installed version 535.230.02",
        );
        let evaluated =
            evaluated(&text.replace("installed build-id 0011", "installed build-id another"));
        assert_eq!(
            (evaluated.verdict, evaluated.code),
            (CheckVerdict::Warning, Some("RW0816"))
        );
        assert_eq!(
            evaluated.measured,
            "ib_core runs from another file than the installed one; nvidia runs version \
             535.216.03, installed is 535.230.02"
        );
    }

    #[test]
    fn where_nothing_can_be_compared_it_does_not_apply() {
        assert_eq!(
            evaluated("@module ib_core\nrunning version 1.0\n").verdict,
            CheckVerdict::NotApplicable
        );
        assert_eq!(check_running_modules(&VerifyHardwareFacts::default()), None);
    }
}
