//! The proofs that modules declare: run this, it must print that.

use super::request::ModuleCheck;
use super::result::CheckOutcome;
use railwright_base::text::one_line;

/// Evaluates exit status and output of a declared check.
pub fn check_module_output(
    check: &ModuleCheck,
    code: i32,
    stdout: &str,
    stderr: &str,
) -> CheckOutcome {
    let actual = stdout.trim();
    let desired = check.expect.as_deref().map(str::trim);
    let expected = match desired {
        Some(desired) => one_line(desired, 80),
        None => "exit status 0".to_owned(),
    };
    if matches!(code, 124 | 137) {
        return CheckOutcome::unknown("RW0815", "ran past its time limit")
            .expected(expected)
            .next("railwright verify {inventory}");
    }
    if code == 0 && desired.is_none_or(|desired| actual == desired) {
        return CheckOutcome::passed(actual).expected(expected);
    }
    let measured = match (code, actual.is_empty()) {
        (0, false) => actual.to_owned(),
        (0, true) => "printed nothing".to_owned(),
        (code, false) => format!("exit status {code}: {actual}"),
        (code, true) => format!("exit status {code}: {stderr}"),
    };
    CheckOutcome::failed("RW0813", measured)
        .expected(expected)
        .effect(format!(
            "what module {} promises does not hold here",
            check.id.split('/').next().unwrap_or_default()
        ))
        .next("railwright plan {inventory}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    #[test]
    fn output_and_exit_status_must_both_be_right() {
        let check = ModuleCheck {
            id: "memlock/limit".into(),
            run: "ulimit -l".into(),
            expect: Some("unlimited".into()),
        };
        assert_eq!(
            check_module_output(&check, 0, "unlimited\n", "").verdict,
            CheckVerdict::Passed
        );
        assert_eq!(check_module_output(&check, 0, "64\n", "").measured, "64");
        assert_eq!(
            check_module_output(&check, 1, "unlimited\n", "").verdict,
            CheckVerdict::Failed
        );
        assert_eq!(
            check_module_output(&check, 127, "", "sh: dcb: not found\n").measured,
            "exit status 127: sh: dcb: not found"
        );
        assert_eq!(
            check_module_output(&check, 124, "", "").verdict,
            CheckVerdict::Unknown
        );
        let only_success = ModuleCheck {
            expect: None,
            ..check
        };
        assert_eq!(
            check_module_output(&only_success, 0, "anything\n", "").verdict,
            CheckVerdict::Passed
        );
        assert_eq!(
            check_module_output(&only_success, 1, "anything\n", "").verdict,
            CheckVerdict::Failed
        );
    }
}
