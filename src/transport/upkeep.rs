//! What railwright keeps on a host: `record.json` (what was applied), `lock` (who works here now), `fence` (the highest
//! fencing number seen) and `step` (locked while a short step runs), below `/var/lib/railwright`, 0700 and 0600.
//!
//! The lock is made with `ln`: it appears with its content or not at all, also on a host without `flock`. The fencing
//! number is compared while the lock is held, so two holders cannot both pass. `beat` beside it is touched while its
//! holder lives; its age is told by the host's own clock, so that two clocks need not agree. Whoever takes a lock away
//! moves it aside first: of two at once one has it.

use super::detached::plain;
use super::{Upkeep, detached, guard, step};
use crate::base::quote::sh;
use crate::resource::guard::script::SERVER_READS;

/// The folder on every host.
pub const FOLDER: &str = "/var/lib/railwright";

/// The script for one piece of upkeep.
pub fn script(upkeep: &Upkeep) -> String {
    script_in(upkeep, FOLDER)
}

fn script_in(upkeep: &Upkeep, folder: &str) -> String {
    let body = match upkeep {
        Upkeep::ReadRecord => "[ -e \"$b/record.json\" ] || exit 1\ncat \"$b/record.json\" || exit 74\n".to_owned(),
        Upkeep::WriteRecord { json, .. } => format!("{PREPARE}put {} record.json || exit 74\n", sh(json)),
        Upkeep::Lock { holder, fence } => {
            format!("{PREPARE}h={holder}\nf={fence}\n{LOCK}", holder = sh(&one_line(holder)))
        }
        Upkeep::Unlock { holder } => format!("h={}\n{UNLOCK}", sh(&one_line(holder))),
        Upkeep::Beat { holder, note } => format!("h={}\nn={}\n{BEAT}", sh(&one_line(holder)), sh(&one_line(note))),
        Upkeep::Steal { holder, fence } => format!("{PREPARE}h={}\nf={fence}\n{STEAL}", sh(&one_line(holder))),
        Upkeep::ReadLock => READ_LOCK.to_owned(),
        Upkeep::Idle { attempt } => {
            let long = attempt.as_ref().map(|attempt| detached::over(&plain(attempt))).unwrap_or_default();
            format!("(\n{}) || exit 77\n{long}{}", step::IDLE, guard::watch())
        }
        Upkeep::Arm { token, guard, seconds } => guard::arm(&plain(token), guard, *seconds),
        Upkeep::Disarm { token } => guard::disarm(&plain(token)),
        Upkeep::Fire { token } => guard::fire(&plain(token)),
        Upkeep::Guard { token } => guard::standing(&plain(token)),
        Upkeep::ServerReads => SERVER_READS.to_owned(),
    };
    format!("b={}\n{body}", sh(folder))
}

/// A holder is one line; what is not, is made one.
fn one_line(holder: &str) -> String {
    holder.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The folder, and `put CONTENT NAME`: temporary file beside it, synced, renamed. `cat` writes, because dash's own `printf`
/// calls a full disk an `I/O error`.
const PREPARE: &str = "umask 077\n\
    mkdir -p \"$b\" && chmod 700 \"$b\" || exit 74\n\
    put() {\n\
    t=\"$b/.$2.$$\"\n\
    printf '%s\\n' \"$1\" | cat >\"$t\" && { sync \"$t\" 2>/dev/null || sync; } && mv -f \"$t\" \"$b/$2\" && return 0\n\
    rm -f \"$t\"; return 1\n\
    }\n";

/// Synced before it has its name: after a power cut an empty lock would be nobody's, and in everybody's way.
const LOCK: &str = "t=\"$b/.lock.$$\"\n\
    printf '%s\\n' \"$h\" | cat >\"$t\" && { sync \"$t\" 2>/dev/null || sync; } || { rm -f \"$t\"; exit 74; }\n\
    new=\n\
    if ln \"$t\" \"$b/lock\" 2>/dev/null; then new=1; fi\n\
    rm -f \"$t\"\n\
    [ -e \"$b/lock\" ] || exit 74\n\
    if [ -z \"$new\" ]; then l=$(cat \"$b/lock\"); [ \"$l\" = \"$h\" ] || { printf '%s\\n' \"$l\"; exit 75; }; fi\n\
    high=$(cat \"$b/fence\" 2>/dev/null); case $high in ''|*[!0-9]*) high=0 ;; esac\n\
    if [ \"$f\" -lt \"$high\" ]; then [ -n \"$new\" ] && rm -f \"$b/lock\"; printf '%s\\n' \"$high\"; exit 76; fi\n\
    [ \"$f\" -eq \"$high\" ] || put \"$f\" fence || { [ -n \"$new\" ] && rm -f \"$b/lock\"; exit 74; }\n";

const UNLOCK: &str = "[ -e \"$b/lock\" ] || exit 0\n\
    l=$(cat \"$b/lock\")\n\
    [ \"$l\" = \"$h\" ] || { printf '%s\\n' \"$l\"; exit 75; }\n\
    rm -f \"$b/lock\" \"$b/beat\"\n";

/// Not synced: a sign of life that a power cut takes with it is none.
const BEAT: &str = "[ -e \"$b/lock\" ] || exit 1\n\
    l=$(cat \"$b/lock\")\n\
    [ \"$l\" = \"$h\" ] || { printf '%s\\n' \"$l\"; exit 75; }\n\
    umask 077\n\
    t=\"$b/.beat.$$\"\n\
    printf '%s\\n' \"$n\" >\"$t\" && mv -f \"$t\" \"$b/beat\" || { rm -f \"$t\"; exit 74; }\n";

const STEAL: &str = "[ -e \"$b/lock\" ] || exit 1\n\
    a=\"$b/.stolen.$$\"\n\
    mv \"$b/lock\" \"$a\" 2>/dev/null || exit 1\n\
    l=$(cat \"$a\")\n\
    if [ \"$l\" != \"$h\" ]; then ln \"$a\" \"$b/lock\" 2>/dev/null; rm -f \"$a\"; printf '%s\\n' \"$l\"; exit 75; fi\n\
    high=$(cat \"$b/fence\" 2>/dev/null); case $high in ''|*[!0-9]*) high=0 ;; esac\n\
    [ \"$f\" -le \"$high\" ] || put \"$f\" fence || { ln \"$a\" \"$b/lock\" 2>/dev/null; rm -f \"$a\"; exit 74; }\n\
    rm -f \"$a\" \"$b/beat\"\n";

const READ_LOCK: &str = "[ -e \"$b/lock\" ] || exit 1\n\
    s=$b/lock note=\n\
    if [ \"$b/beat\" -nt \"$b/lock\" ]; then s=$b/beat; note=$(head -n 1 \"$s\"); fi\n\
    m=$(stat -c %Y \"$s\") && n=$(date +%s) || exit 74\n\
    high=$(cat \"$b/fence\" 2>/dev/null)\n\
    printf '%s\\n%s\\n%s\\n%s\\n' \"$(head -n 1 \"$b/lock\")\" \"$note\" $((n - m)) \"$high\"\n";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};

    fn run(folder: &std::path::Path, upkeep: &Upkeep) -> (i32, String) {
        let script = script_in(upkeep, &folder.join("state").display().to_string());
        let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }

    fn lock(holder: &str, fence: u64) -> Upkeep {
        Upkeep::Lock { holder: holder.to_owned(), fence }
    }

    #[test]
    fn the_record_is_written_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(folder.path(), &Upkeep::ReadRecord), (1, String::new()));
        assert!(!folder.path().join("state").exists(), "a read leaves nothing behind");
        let json = "{\"a\":\"it's $HOME `id` \\\\n %s\"}".to_owned();
        assert_eq!(run(folder.path(), &Upkeep::WriteRecord { json: json.clone(), members: Vec::new() }).0, 0);
        assert_eq!(run(folder.path(), &Upkeep::ReadRecord), (0, format!("{json}\n")));
        let mode = |name: &str| std::fs::metadata(folder.path().join("state").join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("record.json")), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(folder.path().join("state")).unwrap().count(), 1);
    }

    #[test]
    fn one_holder_at_a_time_and_no_step_back_of_the_fence() {
        let folder = tempfile::tempdir().unwrap();
        let unlock = |holder: &str| Upkeep::Unlock { holder: holder.to_owned() };
        assert_eq!(run(folder.path(), &lock("{\"run\":\"a\"}", 5)).0, 0);
        assert_eq!(run(folder.path(), &lock("{\"run\":\"a\"}", 5)).0, 0, "the same holder may ask again");
        assert_eq!(run(folder.path(), &lock("{\"run\":\"b\"}", 6)), (75, "{\"run\":\"a\"}\n".to_owned()));
        assert_eq!(run(folder.path(), &unlock("{\"run\":\"b\"}")), (75, "{\"run\":\"a\"}\n".to_owned()));
        assert_eq!(run(folder.path(), &unlock("{\"run\":\"a\"}")).0, 0);
        assert_eq!(run(folder.path(), &unlock("{\"run\":\"a\"}")).0, 0, "nobody has it: fine");
        assert_eq!(run(folder.path(), &lock("b", 4)), (76, "5\n".to_owned()));
        assert_eq!(run(folder.path(), &lock("c", 6)).0, 0, "a refused fence leaves no lock behind");
    }

    #[test]
    fn a_lock_tells_who_has_it_and_when_that_one_was_last_seen_alive() {
        let folder = tempfile::tempdir().unwrap();
        let beat = |holder: &str| run(folder.path(), &Upkeep::Beat { holder: holder.to_owned(), note: "run 'r1'\nx".to_owned() });
        assert_eq!((run(folder.path(), &Upkeep::ReadLock), beat("a").0), ((1, String::new()), 1), "nobody has it");
        assert!(!folder.path().join("state").exists(), "a read and a beat without a lock leave nothing behind");
        assert_eq!(run(folder.path(), &lock("a", 7)).0, 0);
        let lines = run(folder.path(), &Upkeep::ReadLock).1;
        assert_eq!([0, 1, 3].map(|n| lines.lines().nth(n).unwrap()), ["a", "", "7"]);
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(500);
        let state = folder.path().join("state");
        std::fs::File::open(state.join("lock")).unwrap().set_modified(old).unwrap();
        let lines = run(folder.path(), &Upkeep::ReadLock).1;
        let age = |lines: &str| lines.lines().nth(2).unwrap().parse::<u64>().unwrap();
        assert!(age(&lines) >= 500, "{lines}");
        assert_eq!((beat("b"), beat("a").0), ((75, "a\n".to_owned()), 0), "only the holder lives");
        assert_eq!(run(folder.path(), &Upkeep::ReadLock).1.lines().nth(1), Some("run 'r1' x"));
        assert!(age(&run(folder.path(), &Upkeep::ReadLock).1) < 500, "the latest sign of life counts");
        assert_eq!(run(folder.path(), &Upkeep::Unlock { holder: "a".to_owned() }).0, 0);
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1, "the fence stays");
    }

    #[test]
    fn whoever_was_robbed_of_the_lock_does_not_get_it_back_with_its_old_number() {
        let folder = tempfile::tempdir().unwrap();
        let steal = |holder: &str, fence| run(folder.path(), &Upkeep::Steal { holder: holder.to_owned(), fence });
        assert_eq!(steal("a", 8).0, 1, "there is nothing to take");
        assert_eq!(run(folder.path(), &lock("a", 7)).0, 0);
        assert_eq!(steal("b", 8), (75, "a\n".to_owned()), "another one than was looked at");
        assert_eq!(run(folder.path(), &lock("a", 7)).0, 0, "which keeps it");
        assert_eq!(steal("a", 8), (0, String::new()));
        let beat = Upkeep::Beat { holder: "a".to_owned(), note: String::new() };
        assert_eq!((run(folder.path(), &beat).0, run(folder.path(), &lock("a", 7))), (1, (76, "8\n".to_owned())));
        assert_eq!(run(folder.path(), &lock("b", 8)).0, 0);
        assert_eq!(run(folder.path(), &beat), (75, "b\n".to_owned()));
        assert_eq!(std::fs::read_dir(folder.path().join("state")).unwrap().count(), 2, "the lock and the fence, and no remains");
    }

    #[test]
    fn of_many_at_once_one_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let taken = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..8)
                .map(|i| {
                    scope.spawn({
                        let path = folder.path();
                        move || run(path, &lock(&format!("h{i}"), 1)).0
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).filter(|code| *code == 0).count()
        });
        assert_eq!(taken, 1);
    }
}
