//! Long actions: started detached on the host under the name `railwright-<token>`, watched, and
//! found again by the token after a lost connection or a crash of ours. The same token never starts
//! the action twice.
//!
//! Below `/var/lib/railwright/run/<token>` stand the script, its bounded output and, last, its exit
//! status. `mkdir` of that folder is the claim: who makes it starts the unit, everybody else only
//! watches. An action that is gone without an exit status (the host rebooted, somebody stopped the
//! unit) is reported as unknown once; its folder is set aside, so that whoever decides to do it
//! again can.

use super::fenced_script::{FOLDER, render_lock_check};
use super::shell::{Shell, ShellEnd, run_framed_script};
use super::target_lock::{Fence, LOCK_LOST, lock_lost};
use super::{ExecutionOutcome, TransportError};
use railwright_base::Digest;
use railwright_base::quote::quote_for_shell;
use railwright_base::text::one_line;
use railwright_resource::program::ENVIRONMENT;
use railwright_system::clock;
use std::time::Duration;

/// One watch on the host ends after about this many seconds, and is asked again.
const WATCH_S: u64 = 20;
/// Bytes of standard output, and of standard error, that the host keeps.
const KEPT: usize = 2 << 20;

/// Starts the script under the token, or finds it, and waits for its end.
pub async fn perform_detached_action(
    shell: &dyn Shell,
    script: &str,
    limit_s: u32,
    token: &str,
    fence: &Fence,
) -> Result<ExecutionOutcome, TransportError> {
    let token = sanitize_token(token);
    let limit = Duration::from_secs(60);
    let nonce = clock::generate_nonce().map_err(|error| TransportError::Local {
        reason: format!("no randomness: {error}").into(),
    })?;
    let started = run_framed_script(
        shell,
        &start_script(script, limit_s, &token, FOLDER, fence, &nonce),
        limit,
    )
    .await?;
    if let Some(holder) = started.lock_lost(&nonce) {
        return Err(lock_lost(shell.host(), Some(&holder)));
    }
    match started.end {
        ShellEnd::Exit(0) => {}
        ShellEnd::Exit(_) => return Ok(started.performed(limit)),
        _ => {
            let doubt = started.end.doubt(limit).unwrap_or_default();
            return Ok(new_running_outcome(&doubt, &token));
        }
    }
    // The host's own limit comes first; ours only ends the watching.
    let patience = Duration::from_secs(u64::from(limit_s) + 120);
    match tokio::time::timeout(patience, watch_detached_action(shell, &token)).await {
        Ok(performed) => performed,
        Err(_) => {
            let doubt = format!("it did not end within {} s", patience.as_secs());
            Ok(new_running_outcome(&doubt, &token))
        }
    }
}

/// Asks until the action has ended. From here on every trouble means unknown: the action runs
/// without us.
async fn watch_detached_action(
    shell: &dyn Shell,
    token: &str,
) -> Result<ExecutionOutcome, TransportError> {
    let limit = Duration::from_secs(WATCH_S * 3);
    loop {
        let called = match run_framed_script(shell, &watch_script(token, FOLDER), limit).await {
            Ok(called) => called,
            Err(error) => return Ok(new_running_outcome(&error.to_string(), token)),
        };
        if let Some(doubt) = called.end.doubt(limit) {
            return Ok(new_running_outcome(&doubt, token));
        }
        let text = String::from_utf8_lossy(&called.stdout).into_owned();
        let (line, output) = text.split_once('\n').unwrap_or((&text, ""));
        match line.split_once(' ').unwrap_or((line, "")) {
            ("running", _) => {}
            ("ended", "lost") => return Err(lock_lost(shell.host(), output.lines().next())),
            ("ended", code) => return Ok(parse_exit_status(code, output, called.stderr)),
            ("gone", _) => {
                return Ok(ExecutionOutcome::Unknown {
                    reason: "it was ended without an exit status (a reboot of the host, or \
                             somebody stopped its unit)"
                        .into(),
                });
            }
            _ => {
                let doubt = format!("the host answered {:?}", one_line(line, 80));
                return Ok(new_running_outcome(&doubt, token));
            }
        }
    }
}

fn parse_exit_status(code: &str, stdout: &str, stderr: String) -> ExecutionOutcome {
    match code.trim().parse() {
        Ok(124) => ExecutionOutcome::Unknown {
            reason: AT_ITS_LIMIT.into(),
        },
        Ok(137) => ExecutionOutcome::Unknown {
            reason: format!(
                "{AT_ITS_LIMIT}, or it was killed there (by somebody, or for want of memory)"
            )
            .into(),
        },
        Ok(code) => ExecutionOutcome::Ended {
            code,
            stdout: stdout.to_owned(),
            stderr,
        },
        Err(_) => ExecutionOutcome::Unknown {
            reason: "its exit status cannot be read".into(),
        },
    }
}

/// How `timeout` ends an action: with 124, or with 137 when it had to kill it.
const AT_ITS_LIMIT: &str = "the host ended it at its time limit";

/// The outcome of an action that goes on by itself, for this reason unwatched.
fn new_running_outcome(reason: &str, token: &str) -> ExecutionOutcome {
    ExecutionOutcome::Unknown {
        reason: format!(
            "{reason}; it goes on by itself on the host as railwright-{token} and will be found \
             again"
        )
        .into(),
    }
}

/// A token that is fit for a unit's name and a folder.
pub(super) fn sanitize_token(token: &str) -> String {
    let mut characters = token.chars();
    let is_plain = characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !token.is_empty() && token.len() <= 64 && is_plain {
        return token.to_owned();
    }
    Digest::of_bytes(token.as_bytes()).as_str()[..32].to_owned()
}

/// Claims the token and starts the action, while the lock is its writer's; exit 0 also when it was
/// claimed before. Nothing that goes on keeps the mutex, without which the action does not begin: it
/// can be ended still where its number cannot be written, by which it would be known to run.
fn start_script(
    script: &str,
    limit_s: u32,
    token: &str,
    folder: &str,
    fence: &Fence,
    nonce: &str,
) -> String {
    let backstop = limit_s.saturating_add(60);
    format!(
        "{held}u=railwright-{token}; d=$b/run/{token}\n\
         mkdir -p \"$b/run\" && chmod 700 \"$b\" \"$b/run\" || exit 74\n\
         find \"$b/run\" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {{}} + \
         2>/dev/null\n\
         [ \"$(cat \"$d/status\" 2>/dev/null)\" != lost ] || rm -rf \"$d\"\n\
         m=$(mkdir \"$d\" 2>&1) || {{ [ -d \"$d\" ] && exit 0; printf '%s\\n' \"$m\" >&2; exit 74; \
         }}\n\
         fail() {{ rm -rf \"$d\"; exit 74; }}\n\
         cat /proc/sys/kernel/random/boot_id >\"$d/boot\" || fail\n\
         printf %s {main} | cat >\"$d/main\" || fail\n\
         printf %s {script} | cat >\"$d/script\" || fail\n\
         if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then\n\
         systemd-run --quiet --collect --unit=\"$u\" --description=\"railwright step {token}\" -p \
         RuntimeMaxSec={backstop} -p TimeoutStopSec=10 /bin/sh \"$d/main\" \"$d\" {limit_s} >&2 \
         8>&- || fail\n\
         else\n\
         G=; command -v setsid >/dev/null 2>&1 && G=setsid\n\
         $G /bin/sh \"$d/main\" \"$d\" {limit_s} </dev/null >/dev/null 2>&1 8>&- &\n\
         echo $! >\"$d/pid\" || {{ kill $!; fail; }}\n\
         fi\n",
        held = render_lock_check(fence, folder, nonce),
        main = quote_for_shell(&main_script(folder, fence)),
        // What the step writes is for everybody to read, as from any shell of root; what we keep
        // about it is not.
        script = quote_for_shell(&format!("umask 022\n{script}")),
    )
}

/// Runs on the host as `main FOLDER SECONDS`: a moment after it was started, so that the lock may
/// have gone to another one since. The exit status appears by a rename; the readers of the two
/// pipes go on to the end of the output, but what is beyond the limit is dropped.
fn main_script(folder: &str, fence: &Fence) -> String {
    format!(
        "{ENVIRONMENT}HOME=${{HOME:-/root}}; export HOME; umask 077; cd /\n\
         d=$1\n\
         (\n\
         {held}) >\"$d/out\" 2>\"$d/err\"\n\
         case $? in 0) ;; {LOCK_LOST}) sed -i 1,2d \"$d/out\"; echo lost >\"$d/status.part\"; mv \
         \"$d/status.part\" \"$d/status\"; exit ;;\n\
         *) echo 74 >\"$d/status.part\"; mv \"$d/status.part\" \"$d/status\"; exit ;; esac\n\
         T=; timeout --version >/dev/null 2>&1 && T=\"timeout -k 10 $2\"\n\
         {{ {{ $T /bin/sh \"$d/script\" </dev/null 2>&3 3>&-; echo $? >\"$d/status.part\"; mv \
         \"$d/status.part\" \"$d/status\"; }} |\n\
         {{ head -c {KEPT} >\"$d/out\"; cat >/dev/null; }} 3>&-; }} 3>&1 | {{ head -c {KEPT} \
         >\"$d/err\"; cat >/dev/null; }}\n\
         rm -f \"$d/script\"\n",
        held = render_lock_check(fence, folder, "main"),
    )
}

/// Whether the step of the claim `$d` with the unit `$u` runs: 0 it does, 1 it does not, 2 systemd
/// does not say so.
const ALIVE: &str = "alive() {\n\
                     if [ -f \"$d/pid\" ]; then [ \"$(cat \"$d/boot\")\" = \"$(cat \
                     /proc/sys/kernel/random/boot_id)\" ] && kill -0 \"$(cat \"$d/pid\")\" \
                     2>/dev/null; return; fi\n\
                     [ -d /run/systemd/system ] || return 1\n\
                     case $(systemctl show -p ActiveState \"$u\" 2>/dev/null) in \
                     *=active|*=activating|*=reloading|*=deactivating) return 0 ;; *=inactive|*=failed) \
                     return 1 ;; esac\n\
                     return 2\n\
                     }\n";

/// Ends with 77 while a step runs whose token begins with this one, and not with that of the run;
/// goes on otherwise. `b` is the folder. A claim may be older than its unit for a moment; those of
/// another boot are over.
pub(super) fn render_running_step_check(attempt: &str, besides: Option<&str>) -> String {
    let of_attempt = if attempt.is_empty() {
        String::new()
    } else {
        format!("{attempt}-")
    };
    let besides = besides
        .map(|run| format!("|*/run/{}-*", sanitize_token(run)))
        .unwrap_or_default();
    format!(
        "{ALIVE}i=0; boot=$(cat /proc/sys/kernel/random/boot_id)\n\
         for d in \"$b\"/run/{of_attempt}*; do [ -d \"$d\" ] || continue\n\
         case $d in *.gone.*{besides}) continue ;; esac\n\
         case $(cat \"$d/boot\" 2>/dev/null) in ''|\"$boot\") ;; *) continue ;; esac\n\
         u=railwright-${{d##*/}}\n\
         until [ -s \"$d/status\" ]; do\n\
         alive; s=$?; [ $s != 0 ] || exit 77\n\
         [ $i -lt 3 ] || {{ [ $s = 1 ] || exit 77; break; }}\n\
         sleep 1; i=$((i+1))\n\
         done\n\
         done\n"
    )
}

/// First line `running`, `gone` or `ended STATUS`; after the last one standard output and standard
/// error of the action. An empty status is what a power cut leaves of one: none.
fn watch_script(token: &str, folder: &str) -> String {
    format!(
        "u=railwright-{token}; r={folder}/run; d=$r/{token}\n\
         {ALIVE}i=0; absent=0\n\
         while [ $i -lt {WATCH_S} ] && ! [ -s \"$d/status\" ]; do\n\
         alive; if [ $? = 1 ]; then absent=$((absent+1)); [ $absent -ge 3 ] && break; else absent=0; \
         fi\n\
         sleep 1; i=$((i+1))\n\
         done\n\
         if [ -s \"$d/status\" ]; then\n\
         i=0; while [ $i -lt 3 ] && alive; do sleep 1; i=$((i+1)); done\n\
         echo \"ended $(cat \"$d/status\")\"; cat \"$d/out\"; cat \"$d/err\" >&2; exit 0\n\
         fi\n\
         if [ $absent -ge 3 ]; then mv \"$d\" \"$d.gone.$$\" 2>/dev/null; echo gone; exit 0; fi\n\
         echo running\n",
        folder = quote_for_shell(folder),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    struct Host(tempfile::TempDir);

    impl Host {
        fn folder(&self) -> String {
            self.0.path().display().to_string()
        }
        fn sh(&self, script: &str) -> (i32, String, String) {
            let output = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            (
                output.status.code().unwrap(),
                text(output.stdout),
                text(output.stderr),
            )
        }
        fn new() -> Self {
            let host = Host(tempfile::tempdir().unwrap());
            host.held_by("a", 1);
            host
        }
        fn held_by(&self, holder: &str, number: u64) {
            std::fs::write(
                self.0.path().join("lock"),
                format!("{holder}\n{number}\nboot\n5\n"),
            )
            .unwrap();
        }
        fn start_as(&self, script: &str, token: &str) -> i32 {
            self.sh(&start_script(
                script,
                60,
                token,
                &self.folder(),
                &Fence::new("a", 1),
                "n",
            ))
            .0
        }
        fn start(&self, script: &str, limit_s: u32) -> i32 {
            self.sh(&start_script(
                script,
                limit_s,
                "t1",
                &self.folder(),
                &Fence::new("a", 1),
                "n",
            ))
            .0
        }
        fn over(&self, attempt: &str, besides: Option<&str>) -> i32 {
            self.sh(&format!(
                "b={}\n{}",
                self.folder(),
                render_running_step_check(attempt, besides)
            ))
            .0
        }
        fn watch(&self) -> (String, String) {
            let (_, stdout, stderr) = self.sh(&watch_script("t1", &self.folder()));
            (stdout, stderr)
        }
    }

    #[test]
    fn runs_once_however_often_it_is_asked_for() {
        let host = Host::new();
        let counted = format!(
            "echo ran >>{}/count; echo out; echo err >&2; cat; exit 3",
            host.folder()
        );
        assert_eq!((host.start(&counted, 60), host.start(&counted, 60)), (0, 0));
        assert_eq!(
            host.watch(),
            ("ended 3\nout\n".to_owned(), "err\n".to_owned())
        );
        assert_eq!(host.start(&counted, 60), 0);
        assert_eq!(
            host.watch().0,
            "ended 3\nout\n",
            "the recorded result is read again"
        );
        assert_eq!(
            std::fs::read_to_string(host.0.path().join("count")).unwrap(),
            "ran\n"
        );
        assert!(
            !host.0.path().join("run/t1/script").exists(),
            "the script does not stay"
        );
        let open = format!("find {} -perm /077", host.0.path().join("run").display());
        assert_eq!(
            host.sh(&open).1,
            "",
            "nothing that we keep is readable by others"
        );
    }

    #[test]
    fn output_beyond_the_limit_is_dropped_and_harms_nobody() {
        let host = Host::new();
        assert_eq!(
            host.start("head -c 20000000 /dev/zero | tr '\\0' x; echo done >&2", 60),
            0
        );
        let (stdout, stderr) = host.watch();
        assert!(stdout.starts_with("ended 0\n"));
        assert_eq!(
            (stdout.len(), stderr.as_str()),
            (KEPT + "ended 0\n".len(), "done\n")
        );
    }

    #[test]
    fn a_killed_step_is_gone_once_and_can_then_be_done_again() {
        let host = Host::new();
        let begun = host.0.path().join("begun");
        assert_eq!(
            host.start(&format!(": >{}; sleep 300", begun.display()), 600),
            0
        );
        while !begun.exists() {
            std::thread::yield_now();
        }
        let session = std::fs::read_to_string(host.0.path().join("run/t1/pid")).unwrap();
        // The whole session of the step, as a reboot would end it.
        assert_eq!(
            host.sh(&format!("kill -KILL $(ps -o pid= -s {})", session.trim()))
                .0,
            0
        );
        assert_eq!(host.watch().0, "gone\n");
        assert_eq!(host.start("exit 4", 60), 0);
        assert_eq!(host.watch().0, "ended 4\n");
    }

    #[test]
    fn a_step_of_an_attempt_is_seen_until_it_has_ended() {
        let host = Host::new();
        let go = host.0.path().join("go");
        let script = format!("until [ -e {} ]; do sleep 0.1; done", go.display());
        assert_eq!(host.start_as(&script, "run-4-1-abc"), 0);
        assert_eq!(
            (
                host.over("run-4-1", None),
                host.over("run-4-2", None),
                host.over("run-4", None)
            ),
            (77, 0, 77)
        );
        assert_eq!(
            (host.over("", Some("run")), host.over("", Some("other"))),
            (0, 77),
            "whoever goes on with another run waits for it"
        );
        std::fs::write(&go, "").unwrap();
        let ends = || {
            let began = std::time::Instant::now();
            while host.over("run-4-1", None) != 0 {
                assert!(began.elapsed() < Duration::from_secs(30), "it ends");
            }
        };
        ends();
        // A claim without a unit, as a boot in the middle leaves it.
        std::fs::remove_file(host.0.path().join("run/run-4-1-abc/status")).unwrap();
        ends();
    }

    /// Three looks of a second each, during which systemd does not answer.
    #[test]
    fn a_step_of_which_systemd_says_nothing_is_not_gone() {
        let host = Host::new();
        let claim = host.0.path().join("run/t1");
        std::fs::create_dir_all(&claim).unwrap();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        std::fs::write(claim.join("boot"), boot).unwrap();
        for name in ["out", "err"] {
            std::fs::write(claim.join(name), "").unwrap();
        }
        let asks = |systemctl: &str, script: &str| {
            let systemctl = format!("systemctl() {{ {systemctl}; }}\n");
            host.sh(&(systemctl + &script.replace("/run/systemd/system", "/")))
        };
        let check = format!(
            "b={}\n{}",
            host.folder(),
            render_running_step_check("", None)
        );
        assert_eq!(asks("return 1", &check).0, 77);
        assert_eq!(asks("echo ActiveState=inactive", &check).0, 0);
        // It is answered again at last, and the step has ended well.
        let ends = format!(
            "echo >>{0}/looks; [ $(wc -l <{0}/looks) -lt 5 ] || echo 0 >{0}/status; return 1",
            claim.display()
        );
        let watch = watch_script("t1", &host.folder());
        assert_eq!(asks(&ends, &watch).1, "ended 0\n");
        std::fs::remove_file(claim.join("status")).unwrap();
        assert_eq!(asks("echo ActiveState=failed", &watch).1, "gone\n");
    }

    #[test]
    fn a_status_that_a_power_cut_has_emptied_is_none() {
        let host = Host::new();
        let claim = host.0.path().join("run/t1");
        std::fs::create_dir_all(&claim).unwrap();
        for name in ["boot", "pid", "main", "script", "status"] {
            std::fs::write(claim.join(name), "").unwrap();
        }
        assert_eq!(host.watch().0, "gone\n");
        assert_eq!(host.start("exit 4", 60), 0);
        assert_eq!(host.watch().0, "ended 4\n");
    }

    #[test]
    fn the_host_ends_a_step_at_its_limit() {
        let host = Host::new();
        assert_eq!(host.start("sleep 300", 1), 0);
        assert_eq!(host.watch().0, "ended 124\n");
        assert_eq!(
            parse_exit_status("124", "", String::new()),
            ExecutionOutcome::Unknown {
                reason: AT_ITS_LIMIT.into()
            }
        );
        let ExecutionOutcome::Unknown { reason } = parse_exit_status("137", "", String::new())
        else {
            panic!("nobody knows how it ended")
        };
        assert!(reason.as_words().contains("or it was killed"), "{reason}");
    }

    /// A run that slept, or was taken over by force, begins nothing; and nothing begins that it had
    /// asked for before.
    #[test]
    fn a_step_begins_only_with_the_lock() {
        let host = Host::new();
        host.held_by("b", 2);
        assert_eq!(
            (
                host.start("echo ran", 60),
                host.0.path().join("run").exists()
            ),
            (LOCK_LOST, false)
        );
        host.held_by("a", 1);
        // The lock goes to another one after the step was claimed, and before it runs.
        let claim = host.0.path().join("run/t1");
        std::fs::create_dir_all(&claim).unwrap();
        std::fs::write(claim.join("script"), "echo ran").unwrap();
        std::fs::write(
            claim.join("main"),
            main_script(&host.folder(), &Fence::new("a", 1)),
        )
        .unwrap();
        host.held_by("b", 2);
        host.sh(&format!("sh {0}/main {0} 60", claim.display()));
        assert_eq!(host.watch(), ("ended lost\nb\n".to_owned(), String::new()));
        // Whoever has it again may do it under the same token.
        host.held_by("a", 1);
        assert_eq!(host.start("exit 4", 60), 0);
        assert_eq!(host.watch().0, "ended 4\n");
    }

    #[test]
    fn a_token_is_always_a_plain_name() {
        assert_eq!(sanitize_token("ab-12_x"), "ab-12_x");
        for odd in ["", "a/b", "../x", "a b", "é", &"x".repeat(65)] {
            assert!(
                sanitize_token(odd).chars().all(|c| c.is_ascii_hexdigit()),
                "{odd}"
            );
        }
    }
}
