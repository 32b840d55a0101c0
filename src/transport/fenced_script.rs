//! What railwright keeps on a host below `/var/lib/railwright` (0700, files 0600): `record.json`
//! (what was applied), `lock` (who works here now), `beat` (its latest heartbeat), `fence` (the
//! highest fencing token seen), `mutex` (locked while any of them is changed) and `step` (locked
//! while a step runs).
//!
//! `lock` has four lines: the holder, its fencing token, the boot and the second of that boot in
//! which it was taken; `beat` has a note and the same two. No time of day is kept: a clock that is
//! set moves nothing. All that reads and writes is one script under the mutex (flock(1) of
//! util-linux or busybox), so there is nothing between a check and its write. A write shows the
//! holder and the fencing token, and is refused with `LOCK_LOST` where the lock has others: see
//! `target_lock`.

use super::detached::sanitize_token;
use super::target_lock::{Fence, Grounds, LOCK_LOST, RECORD_MOVED};
use super::{FencedWrite, Upkeep, detached, rollback_timer, step};
use railwright_base::quote::quote_for_shell;
use railwright_resource::rollback_scope::script::SERVER_READS;

/// The folder on every host.
pub const FOLDER: &str = "/var/lib/railwright";

/// A larger record is not read, and so none is written.
pub const RECORD_LIMIT_BYTES: usize = 8 << 20;

/// The script for one piece of upkeep. One that is refused prints a line with the nonce first.
pub fn render_upkeep_script(upkeep: &Upkeep, nonce: &str) -> String {
    script_in(upkeep, FOLDER, nonce)
}

fn script_in(upkeep: &Upkeep, folder: &str, nonce: &str) -> String {
    let body = match upkeep {
        Upkeep::ReadRecord => format!("most={RECORD_LIMIT_BYTES}\n{READ_RECORD}"),
        Upkeep::Lock { holder, fence } => {
            format!(
                "{PREPARE}{FUNCTIONS}{}{FLOCK}{MUTEX}{LOCK}",
                render_fence_variables(&Fence::new(holder, *fence), nonce)
            )
        }
        Upkeep::Steal {
            holder,
            fence,
            grounds,
        } => {
            let silence = if let Grounds::Silent(seconds) = grounds {
                seconds.to_string()
            } else {
                String::new()
            };
            // As it was read there: what is cleaned is another line, and is never found.
            let shown = render_fence_variables(
                &Fence {
                    holder: holder.clone(),
                    number: *fence,
                },
                nonce,
            );
            format!(
                "[ -e \"$b/lock\" ] || exit 1\n\
                 {PREPARE}{FUNCTIONS}{shown}w={silence}\n\
                 {FLOCK}{MUTEX}{STEAL}"
            )
        }
        Upkeep::ReadLock => format!("{FUNCTIONS}{READ_LOCK}"),
        Upkeep::Idle { attempt, run } => {
            let others = detached::render_running_step_check("", run.as_deref());
            let attempt = attempt
                .as_ref()
                .map(|attempt| detached::render_running_step_check(&sanitize_token(attempt), None))
                .unwrap_or_default();
            format!(
                "(\n{}) || exit 77\n{others}{attempt}{}",
                step::IDLE,
                rollback_timer::render_pending_rollback_check()
            )
        }
        Upkeep::RollbackStatus { token } => {
            rollback_timer::render_rollback_status_script(&sanitize_token(token))
        }
        Upkeep::Write { fence, write } => return write_script(write, fence, folder, nonce),
    };
    format!("b={}\n{body}", quote_for_shell(folder))
}

fn write_script(write: &FencedWrite, fence: &Fence, folder: &str, nonce: &str) -> String {
    let body = match write {
        FencedWrite::Record {
            json,
            replaces,
            set_aside,
            ..
        } => {
            let replaces = if replaces.is_empty() {
                "any".to_owned()
            } else {
                replaces.iter().cloned().collect::<Vec<_>>().join(" ")
            };
            let (aside, or_back) = match set_aside {
                Some(name) => {
                    let name = quote_for_shell(name);
                    (format!("aside={name}\n{SET_ASIDE}"), PUT_BACK)
                }
                None => (String::new(), ""),
            };
            // Nobody overwrites a record that another one has written.
            format!(
                "d=$(digest) || exit 74\n\
                 case {} in ' any '|*\" $d \"*) ;; *) exit {RECORD_MOVED} ;; esac\n\
                 {aside}put {} record.json || {{ {or_back}exit 74; }}\n",
                quote_for_shell(&format!(" {replaces} ")),
                quote_for_shell(json)
            )
        }
        FencedWrite::Unlock => "rm -f \"$b/lock\" \"$b/beat\" || exit 74\n".to_owned(),
        FencedWrite::Beat { note } => {
            format!("k={}\n{BEAT}", quote_for_shell(&Fence::new(note, 0).holder))
        }
        FencedWrite::Disarm { token } => {
            rollback_timer::render_disarm_script(&sanitize_token(token))
        }
        FencedWrite::Fire { token } => {
            rollback_timer::render_rollback_now_script(&sanitize_token(token))
        }
        // What takes a while holds `step` instead: whoever takes the lock over waits for it as for
        // any step.
        FencedWrite::Arm {
            token,
            scope,
            seconds,
        } => {
            let body = format!(
                "b={}\n{}",
                quote_for_shell(folder),
                rollback_timer::render_arm_script(&sanitize_token(token), scope, *seconds)
            );
            return step::render_exclusive_step(&body, folder, fence, nonce);
        }
        FencedWrite::ServerReads => {
            return step::render_exclusive_step(SERVER_READS, folder, fence, nonce);
        }
    };
    format!("{}{body}", render_lock_check(fence, folder, nonce))
}

/// What a writer shows, as `$h` and `$f`; and `lost LINE`, which ends the script because another
/// one has the lock.
pub(super) fn render_fence_variables(fence: &Fence, nonce: &str) -> String {
    format!(
        "h={}\nf={}\nlost() {{ printf '\\n@{nonce} lost\\n%s\\n' \"$1\"; exit {LOCK_LOST}; }}\n",
        quote_for_shell(&fence.holder),
        fence.number
    )
}

/// Takes the mutex, and goes on only while the lock is this writer's. `$b` is the folder from here
/// on.
pub(super) fn render_lock_check(fence: &Fence, folder: &str, nonce: &str) -> String {
    format!(
        "b={}\n{}[ -e \"$b/lock\" ] || lost ''\n{PREPARE}{FUNCTIONS}{FLOCK}{MUTEX}{LOCK_CHECK}",
        quote_for_shell(folder),
        render_fence_variables(fence, nonce)
    )
}

/// The folder.
const PREPARE: &str = "umask 077\nmkdir -p \"$b\" && chmod 700 \"$b\" || exit 74\n";

/// `put CONTENT NAME` writes a temporary file, syncs and renames it; under the mutex nobody else
/// has a file of that name, and `cat` writes, because dash's own `printf` calls a full disk an `I/O
/// error`. `now` sets `$boot` and `$u`, the seconds of that boot (proc_uptime(5): suspended time
/// counts). `seen` reads the lock: `$l` its holder, `$n` its fencing token, `$note` and `$s`, the
/// seconds since the latest heartbeat. What was seen in another boot was silent since this one
/// began.
const FUNCTIONS: &str = "put() {\n\
                         t=\"$b/.$2.new\"\n\
                         printf '%s\\n' \"$1\" | cat >\"$t\" && \
                         { sync \"$t\" 2>/dev/null || sync; } && mv -f \"$t\" \"$b/$2\" && return \
                         0\n\
                         rm -f \"$t\"; return 1\n\
                         }\n\
                         digest() {\n\
                         r=\"$b/record.json\"\n\
                         [ -e \"$r\" ] || [ -L \"$r\" ] || { echo none; return; }\n\
                         [ -f \"$r\" ] && [ ! -L \"$r\" ] || { echo other; return; }\n\
                         x=$(sha256sum <\"$r\") && echo \"${x%% *}\"\n\
                         }\n\
                         highest() \
                         { high=$(cat \"$b/fence\" 2>/dev/null); case $high in ''|*[!0-9]*) high=0 ;; esac; }\n\
                         now() { read -r u i </proc/uptime && boot=$(cat \
                         /proc/sys/kernel/random/boot_id) || exit 74; u=${u%%.*}; }\n\
                         seen() {\n\
                         l= n= k= m= note=\n\
                         { IFS= read -r l; IFS= read -r n; IFS= read -r k; IFS= read -r m; } \
                         <\"$b/lock\"\n\
                         [ ! -e \"$b/beat\" ] || \
                         { IFS= read -r note; IFS= read -r k; IFS= read -r m; } <\"$b/beat\"\n\
                         now; s=$u\n\
                         case $m in ''|*[!0-9]*) ;; *) [ \"$k\" != \"$boot\" ] || [ \"$u\" -lt \
                         \"$m\" ] || s=$((u - m)) ;; esac\n\
                         }\n";

/// A pipe in its place would never end, and a link may lead anywhere. Exit 1 only where nothing is
/// there.
const READ_RECORD: &str = "r=\"$b/record.json\"\n\
                           [ -e \"$r\" ] || [ -L \"$r\" ] || exit 1\n\
                           [ -f \"$r\" ] && [ ! -L \"$r\" ] || \
                           { echo \"railwright: $r is no regular file\" >&2; exit 74; }\n\
                           s=$(wc -c <\"$r\") || exit 74\n\
                           [ \"$s\" -le \"$most\" ] || \
                           { echo \"railwright: $r is larger than $most bytes\" >&2; exit 74; }\n\
                           cat \"$r\" || exit 74\n";

/// What is in the place of the record goes out of the way, whatever it is; nothing that is there is
/// overwritten.
const SET_ASIDE: &str = "[ ! -e \"$b/$aside\" ] && [ ! -L \"$b/$aside\" ] && mv -f \
                         \"$b/record.json\" \"$b/$aside\" || exit 74\n";
const PUT_BACK: &str = "mv -f \"$b/$aside\" \"$b/record.json\"; ";

/// A host without it is not written to.
pub(super) const FLOCK: &str = "command -v flock >/dev/null 2>&1 || \
                                { echo 'railwright: flock (util-linux) is not on this host: without it nothing keeps two runs apart' >&2; exit 74; }\n";

/// A redirection of `exec` that fails would end the shell without a word, so it is tried in a
/// subshell first. It is not waited for without end: a script would go on when nobody watches it
/// any more.
const MUTEX: &str = "(: 8>>\"$b/mutex\") 2>/dev/null || \
                     { echo \"railwright: $b/mutex cannot be written\" >&2; exit 74; }\n\
                     exec 8>>\"$b/mutex\"\n\
                     i=0\n\
                     until flock -n 8 2>/dev/null; do\n\
                     i=$((i+1)); [ $i -lt 200 ] || \
                     { echo \"railwright: $b/mutex is locked by another program\" >&2; exit 74; }\n\
                     sleep 0.1 2>/dev/null || sleep 1\n\
                     done\n";

/// Under the mutex: the lock is this writer's.
const LOCK_CHECK: &str = "l= n=\n\
                    [ ! -e \"$b/lock\" ] || { IFS= read -r l; IFS= read -r n; } <\"$b/lock\"\n\
                    [ \"$l\" = \"$h\" ] && [ \"$n\" = \"$f\" ] || lost \"$l\"\n";

/// The digest of the record comes before the lock is had: from then on nobody else changes it.
const LOCK: &str = "if [ -e \"$b/lock\" ]; then seen; [ \"$l\" = \"$h\" ] || \
                    { printf '%s\\n' \"$l\"; exit 75; }; fi\n\
                    highest; [ \"$f\" -ge \"$high\" ] || { printf '%s\\n' \"$high\"; exit 76; }\n\
                    d=$(digest) || exit 74\n\
                    now\n\
                    [ \"$f\" -eq \"$high\" ] || put \"$f\" fence || exit 74\n\
                    rm -f \"$b/beat\"\n\
                    put \"$h\n\
                    $f\n\
                    $boot\n\
                    $u\" lock || exit 74\n\
                    printf '%s\\n' \"$d\"\n";

/// Not synced: a heartbeat that a power cut takes with it is none.
const BEAT: &str = "now\n\
                    t=\"$b/.beat.new\"\n\
                    printf '%s\\n%s\\n%s\\n' \"$k\" \"$boot\" \"$u\" >\"$t\" && mv -f \"$t\" \
                    \"$b/beat\" || { rm -f \"$t\"; exit 74; }\n";

const STEAL: &str = "[ -e \"$b/lock\" ] || exit 1\n\
                     seen; [ \"$l\" = \"$h\" ] || { printf '%s\\n' \"$l\"; exit 75; }\n\
                     [ -z \"$w\" ] || [ \"$s\" -ge \"$w\" ] || \
                     { printf '%s\\n' \"$s\"; exit 77; }\n\
                     if highest; [ \"$f\" -gt \"$high\" ]; then put \"$f\" fence || exit 74; fi\n\
                     rm -f \"$b/lock\" \"$b/beat\" || exit 74\n";

const READ_LOCK: &str = "[ -e \"$b/lock\" ] || exit 1\n\
                         seen; highest; printf '%s\\n%s\\n%s\\n%s\\n' \"$l\" \"$note\" \"$s\" \
                         \"$high\"\n";

#[cfg(test)]
mod tests;
