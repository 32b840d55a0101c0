//! A short step holds `/var/lib/railwright/step` on the host for as long as it runs, also when nobody is connected any
//! more: a shell that sshd started goes on when its connection ends, and whoever comes next must not do the step twice.
//!
//! A shell around the step has the file open and locked; the step itself runs in a subshell with the file closed, so that
//! a daemon which it starts does not keep the lock (flock(2): the lock lives as long as an open descriptor of it). With
//! the end of that shell, or of the host, the lock is gone: nothing is left to clear away. A host without `flock` goes
//! without.

use crate::base::quote::sh;
use crate::resource::complaint::LOCKED;

/// The script of a step, so that no other runs beside it. The exit status is the step's own. Where no run has taken the
/// host's lock, nobody has to be kept apart.
pub fn alone(script: &str, folder: &str) -> String {
    // A redirection of `exec` that fails would end the shell, so it is tried in a subshell first. `flock` leaves with 1
    // when another has the lock; any other trouble of it is none of the step's. A waiting step would begin when nobody
    // watches it any more, so it does not wait.
    format!(
        "if [ -e {lock} ] && command -v flock >/dev/null 2>&1 && (umask 077; : 9>>{file}) 2>/dev/null; then\n\
         exec 9>>{file}\n\
         flock -n 9 2>/dev/null\n\
         [ $? -ne 1 ] || {{ echo 'railwright: an earlier step is still running on the host' >&2; exit {LOCKED}; }}\n\
         fi\n\
         (\n\
         exec 9>&-\n\
         {script}\n\
         )\n\
         exit\n",
        lock = sh(&format!("{folder}/lock")),
        file = sh(&format!("{folder}/step")),
    )
}

/// Ends with 77 while a step runs. `b` is the folder.
pub const IDLE: &str = "[ -e \"$b/step\" ] && command -v flock >/dev/null 2>&1 && (: 9>>\"$b/step\") 2>/dev/null || exit 0\n\
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
        let mut child = Command::new("sh").arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("{{\n{script}\n}} </dev/null\n").as_bytes()).unwrap();
        child
    }

    fn run(script: &str) -> (i32, String, String) {
        let output = start(script).wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    fn idle(folder: &Path) -> i32 {
        run(&format!("b={}\n{IDLE}", folder.display())).0
    }

    #[test]
    fn a_step_that_runs_is_seen_and_no_other_begins_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let own = folder.path().display().to_string();
        std::fs::write(at("lock"), "").unwrap();
        assert_eq!((idle(folder.path()), at("step").exists()), (0, false), "asking makes nothing");
        let slow = format!(": >{0}/begun; while ! [ -e {0}/go ]; do sleep 0.05; done; exit 3", own);
        let mut first = start(&alone(&slow, &own));
        while !at("begun").exists() {
            std::thread::yield_now();
        }
        assert_eq!(idle(folder.path()), 77);
        let (code, out, err) = run(&alone("echo ran", &own));
        assert_eq!((code, out.as_str()), (LOCKED, ""));
        assert_eq!(crate::resource::complaint::complaint(&err).as_deref(), Some("an earlier step is still running on the host"));
        std::fs::write(at("go"), "").unwrap();
        assert_eq!(first.wait().unwrap().code(), Some(3), "the step's own exit status");
        assert_eq!(idle(folder.path()), 0);
        assert_eq!(run(&alone("echo ran; cat; false", &own)), (1, "ran\n".to_owned(), String::new()));
    }

    #[test]
    fn a_daemon_that_a_step_leaves_behind_keeps_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().display().to_string();
        std::fs::write(folder.path().join("lock"), "").unwrap();
        let (code, pid, _) = run(&alone("sleep 1000 >/dev/null 2>&1 & echo $!", &own));
        assert_eq!((code, idle(folder.path())), (0, 0));
        assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success(), "it was still there");
    }

    #[test]
    fn without_flock_a_run_or_a_place_for_the_lock_a_step_runs_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().display().to_string();
        assert_eq!(run(&alone("echo ran", &own)), (0, "ran\n".to_owned(), String::new()));
        assert!(!folder.path().join("step").exists());
        std::fs::write(folder.path().join("lock"), "").unwrap();
        assert_eq!(run(&format!("PATH={own}\n{}", alone("echo ran", &own))), (0, "ran\n".to_owned(), String::new()));
        std::fs::create_dir(folder.path().join("step")).unwrap();
        assert_eq!(run(&alone("echo ran", &own)), (0, "ran\n".to_owned(), String::new()));
        assert_eq!(idle(folder.path()), 0);
    }
}
