//! A short step holds `/var/lib/railwright/step` on the host for as long as it runs, also when
//! nobody is connected any more: a shell that sshd started goes on when its connection ends, and
//! whoever comes next must not do the step twice.
//!
//! It begins only while the host's lock is its writer's: holder and fencing token are compared
//! under the mutex once `step` is locked. Whoever takes the lock over after that, by force too,
//! finds `step` locked, and waits for its end (`IDLE`); whoever took it over before finds that the
//! step does not begin.
//!
//! A shell around the step has the file open and locked; the step itself runs in a subshell with
//! the file closed, so that a daemon which it starts does not keep the lock (flock(2): the lock
//! lives as long as an open descriptor of it). With the end of that shell, or of the host, the lock
//! is gone: nothing is left to clear away.

use super::fenced_script::{FLOCK, render_fence_variables, render_lock_check};
use super::target_lock::Fence;
use railwright_base::quote::quote_for_shell;
use railwright_resource::complaint::LOCKED;

/// The script of a step, so that no other runs beside it and none without the lock. The exit status
/// is the step's own, or `LOCK_LOST` behind a line with the nonce.
pub fn render_exclusive_step(script: &str, folder: &str, fence: &Fence, nonce: &str) -> String {
    // A redirection of `exec` that fails would end the shell, so it is tried in a subshell first.
    // `flock` leaves with 1 when another has the lock. A waiting step would begin when nobody
    // watches it any more, so it does not wait.
    format!(
        "(\n\
         umask 077\n\
         {shown}[ -e {lock} ] || lost ''\n\
         {FLOCK}(: 9>>{file}) 2>/dev/null || {{ echo 'railwright: the file step in the folder of \
         railwright cannot be written' >&2; exit 74; }}\n\
         ) || exit\n\
         exec 9>>{file}\n\
         flock -n 9 2>/dev/null || {{ echo 'railwright: an earlier step is still running on the \
         host' >&2; exit {LOCKED}; }}\n\
         (\n\
         {held}) || exit\n\
         (\n\
         exec 9>&-\n\
         {script}\n\
         )\n\
         exit\n",
        shown = render_fence_variables(fence, nonce),
        lock = quote_for_shell(&format!("{folder}/lock")),
        held = render_lock_check(fence, folder, nonce),
        file = quote_for_shell(&format!("{folder}/step")),
    )
}

/// Ends with 77 while a step runs. `b` is the folder.
pub const IDLE: &str = "[ -e \"$b/step\" ] || exit 0\n\
                        command -v flock >/dev/null 2>&1 && (: 9>>\"$b/step\") 2>/dev/null || \
                        { echo 'railwright: whether a step runs cannot be told' >&2; exit 74; }\n\
                        exec 9>>\"$b/step\"\n\
                        flock -n 9 2>/dev/null\n\
                        [ $? -ne 1 ] || exit 77\n";

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    /// As the transport does it: on standard input.
    fn start(script: &str) -> Child {
        let mut child = Command::new("sh")
            .arg("-s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(format!("{{\n{script}\n}} </dev/null\n").as_bytes())
            .unwrap();
        child
    }

    fn run(script: &str) -> (i32, String, String) {
        let output = start(script).wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    fn idle(folder: &Path) -> i32 {
        run(&format!("b={}\n{IDLE}", folder.display())).0
    }

    fn fence() -> Fence {
        Fence::new("a", 1)
    }

    /// A folder whose lock this fence has.
    fn locked(folder: &Path) -> String {
        std::fs::write(folder.join("lock"), "a\n1\nboot\n5\n").unwrap();
        folder.display().to_string()
    }

    #[test]
    fn a_step_that_runs_is_seen_and_no_other_begins_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let own = locked(folder.path());
        assert_eq!(
            (idle(folder.path()), at("step").exists()),
            (0, false),
            "asking makes nothing"
        );
        let slow = format!(
            ": >{0}/begun; while ! [ -e {0}/go ]; do sleep 0.05; done; exit 3",
            own
        );
        let mut first = start(&render_exclusive_step(&slow, &own, &fence(), "n"));
        while !at("begun").exists() {
            std::thread::yield_now();
        }
        assert_eq!(idle(folder.path()), 77);
        let (code, out, err) = run(&render_exclusive_step("echo ran", &own, &fence(), "n"));
        assert_eq!((code, out.as_str()), (LOCKED, ""));
        assert_eq!(
            railwright_resource::complaint::find_failure_message(&err).as_deref(),
            Some("an earlier step is still running on the host")
        );
        // Taken over by force while it runs: whoever has the lock now sees the step, and begins
        // none beside it.
        std::fs::write(at("lock"), "b\n2\nboot\n5\n").unwrap();
        let (code, out, _) = run(&render_exclusive_step(
            "echo ran",
            &own,
            &Fence::new("b", 2),
            "n",
        ));
        assert_eq!((code, out.as_str(), idle(folder.path())), (LOCKED, "", 77));
        std::fs::write(at("go"), "").unwrap();
        assert_eq!(
            first.wait().unwrap().code(),
            Some(3),
            "the step's own exit status"
        );
        assert_eq!(idle(folder.path()), 0);
        let late = run(&render_exclusive_step("echo ran", &own, &fence(), "n"));
        assert_eq!(
            (late.0, late.1.as_str()),
            (crate::target_lock::LOCK_LOST, "\n@n lost\nb\n")
        );
        assert_eq!(
            run(&render_exclusive_step(
                "echo ran; cat; false",
                &own,
                &Fence::new("b", 2),
                "n"
            )),
            (1, "ran\n".to_owned(), String::new())
        );
    }

    #[test]
    fn a_daemon_that_a_step_leaves_behind_keeps_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let own = locked(folder.path());
        let (code, pid, _) = run(&render_exclusive_step(
            "sleep 1000 >/dev/null 2>&1 & echo $!",
            &own,
            &fence(),
            "n",
        ));
        assert_eq!((code, idle(folder.path())), (0, 0));
        assert_eq!(
            run(&render_exclusive_step("umask", &own, &fence(), "n")).0,
            0,
            "the mutex is free as well"
        );
        assert!(
            Command::new("kill")
                .arg(pid.trim())
                .status()
                .unwrap()
                .success(),
            "it was still there"
        );
    }

    #[test]
    fn without_a_place_for_its_locks_no_step_runs() {
        let folder = tempfile::tempdir().unwrap();
        let own = locked(folder.path());
        assert_eq!(
            run(&format!(
                "PATH={own}\n{}",
                render_exclusive_step("echo ran", &own, &fence(), "n")
            ))
            .0,
            74
        );
        std::fs::create_dir(folder.path().join("step")).unwrap();
        let (code, out, err) = run(&render_exclusive_step("echo ran", &own, &fence(), "n"));
        assert_eq!((code, out.as_str()), (74, ""), "{err}");
    }
}
