//! The scripts in a folder of their own, with the shell of this machine; and beside the pure rules
//! that they follow.

use super::*;
use crate::ExecutionOutcome;
use crate::target_lock::{
    LockOutcome, LockReading, NO_RECORD, RecordReading, StealOutcome, TargetLock, Uptime,
};
use railwright_base::Digest;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Host(tempfile::tempdir().unwrap())
    }

    fn state(&self) -> std::path::PathBuf {
        self.0.path().join("state")
    }

    fn sh(&self, script: &str) -> (i32, String) {
        let output = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(said).unwrap(),
        )
    }

    fn run(&self, upkeep: &Upkeep) -> (i32, String) {
        self.sh(&script_in(upkeep, &self.state().display().to_string(), "n"))
    }

    fn lock(&self, holder: &str, fence: u64) -> (i32, String) {
        self.run(&Upkeep::Lock {
            holder: holder.to_owned(),
            fence,
        })
    }

    fn steal(&self, holder: &str, fence: u64, grounds: Grounds) -> (i32, String) {
        self.run(&Upkeep::Steal {
            holder: holder.to_owned(),
            fence,
            grounds,
        })
    }

    fn write(&self, fence: &Fence, write: FencedWrite) -> (i32, String) {
        self.run(&Upkeep::Write {
            fence: fence.clone(),
            write,
        })
    }

    fn reading(&self) -> Vec<String> {
        self.run(&Upkeep::ReadLock)
            .1
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.state())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn record(json: &str, replaces: &[&str]) -> FencedWrite {
    FencedWrite::Record {
        json: json.to_owned(),
        members: Vec::new(),
        replaces: replaces.iter().map(|digest| (*digest).to_owned()).collect(),
        set_aside: None,
    }
}

fn beat(note: &str) -> FencedWrite {
    FencedWrite::Beat {
        note: note.to_owned(),
    }
}

fn uptime_s() -> i64 {
    railwright_system::clock::uptime_s()
        .unwrap()
        .try_into()
        .unwrap()
}

#[test]
fn the_record_is_written_and_read_again() {
    let host = Host::new();
    assert_eq!(host.run(&Upkeep::ReadRecord), (1, String::new()));
    assert!(!host.state().exists(), "a read leaves nothing behind");
    let json = "{\"a\":\"it's $HOME `id` \\\\n %s\"}".to_owned();
    let fence = Fence::new("a", 1);
    assert_eq!(host.lock("a", 1), (0, format!("{NO_RECORD}\n")));
    assert_eq!(host.write(&fence, record(&json, &[NO_RECORD])).0, 0);
    assert_eq!(host.run(&Upkeep::ReadRecord), (0, format!("{json}\n")));
    let mode = |name: &str| {
        std::fs::metadata(host.state().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode(""), mode("record.json"), mode("lock"), mode("mutex")),
        (0o700, 0o600, 0o600, 0o600)
    );
    assert_eq!(host.names(), ["fence", "lock", "mutex", "record.json"]);
}

#[test]
fn nobody_overwrites_what_another_recorded() {
    let host = Host::new();
    let fence = Fence::new("a", 1);
    host.lock("a", 1);
    assert_eq!(host.write(&fence, record("{1}", &[NO_RECORD])).0, 0);
    let first = Digest::of_bytes(b"{1}\n").as_str().to_owned();
    assert_eq!(
        host.write(&fence, record("{2}", &[NO_RECORD])).0,
        RECORD_MOVED
    );
    assert_eq!(
        host.write(&fence, record("{2}", &[&"0".repeat(64), &first]))
            .0,
        0
    );
    assert_eq!(host.write(&fence, record("{3}", &[&first])).0, RECORD_MOVED);
    assert_eq!(host.run(&Upkeep::ReadRecord).1, "{2}\n");
    host.write(&fence, FencedWrite::Unlock);
    let second = Digest::of_bytes(b"{2}\n").as_str().to_owned();
    assert_eq!(
        host.lock("b", 2),
        (0, format!("{second}\n")),
        "whoever takes the lock is told what it finds"
    );
}

#[test]
fn only_where_nothing_is_in_its_place_is_there_no_record() {
    let host = Host::new();
    let reading = || {
        RecordReading::parse(ExecutionOutcome::Ended {
            code: host.run(&Upkeep::ReadRecord).0,
            stdout: String::new(),
            stderr: String::new(),
        })
    };
    host.lock("a", 1);
    assert_eq!(reading(), RecordReading::Absent);
    let path = host.state().join("record.json");
    for makes in [
        "mkdir -p $r/x",
        "ln -s /nowhere $r",
        "mkfifo $r",
        "truncate -s 9000000 $r",
    ] {
        host.sh(&format!("r='{}'; rm -rf \"$r\"; {makes}", path.display()));
        assert!(matches!(reading(), RecordReading::Unreadable(_)), "{makes}");
        let (code, digest) = host.lock("a", 1);
        assert_eq!(code, 0, "{makes}: the lock is had all the same");
        // Whoever takes the target over keeps what is there.
        let aside = |replaces: BTreeSet<String>| FencedWrite::Record {
            json: "{}".to_owned(),
            members: Vec::new(),
            replaces,
            set_aside: Some("aside".to_owned()),
        };
        let fence = Fence::new("a", 1);
        assert_eq!(
            host.write(&fence, record("{}", &[NO_RECORD])).0,
            RECORD_MOVED,
            "{makes}"
        );
        assert_eq!(
            host.write(&fence, aside([digest.trim().to_owned()].into()))
                .0,
            0,
            "{makes}"
        );
        assert_eq!(reading(), RecordReading::Text(String::new()), "{makes}");
        assert_eq!(
            host.write(&fence, aside(BTreeSet::new())).0,
            74,
            "{makes}: nothing is overwritten"
        );
        host.sh(&format!("cd '{}' && rm -r aside", host.state().display()));
    }
    let unknown = RecordReading::parse(ExecutionOutcome::Unknown {
        reason: "gone".into(),
    });
    assert_eq!(
        unknown,
        RecordReading::Unknown("gone".to_owned()),
        "a lost connection is no absent record"
    );
}

#[test]
fn a_lock_with_odd_letters_is_taken_away_as_it_is() {
    let host = Host::new();
    host.lock("a", 1);
    let path = host.state().join("lock");
    let odd = "a\tb\u{1b}[2J \r";
    std::fs::write(
        &path,
        std::fs::read_to_string(&path)
            .unwrap()
            .replacen('a', odd, 1),
    )
    .unwrap();
    let read = LockReading::parse(&host.run(&Upkeep::ReadLock).1);
    assert_eq!(read.holder, odd);
    assert_eq!(host.steal(&read.holder, 2, Grounds::Forced).0, 0);
}

/// What is written in the name of a holder that has the lock no more, whoever has it.
#[test]
fn nothing_is_written_without_the_lock() {
    let host = Host::new();
    let token = || "t-1-1".to_owned();
    let writes = || {
        let scope = railwright_resource::rollback_scope::RollbackScope::default();
        [
            record("{}", &[]),
            FencedWrite::Unlock,
            beat("x"),
            FencedWrite::Arm {
                token: token(),
                scope,
                seconds: 9,
            },
            FencedWrite::Disarm { token: token() },
            FencedWrite::Fire { token: token() },
            FencedWrite::ServerReads,
        ]
    };
    let refused = |fence: &Fence, holder: &str| {
        for write in writes() {
            assert_eq!(
                host.write(fence, write.clone()),
                (LOCK_LOST, format!("\n@n lost\n{holder}\n")),
                "{write:?}"
            );
        }
    };
    refused(&Fence::new("a", 1), "");
    assert!(
        !host.state().exists(),
        "where there is no lock, nothing is left behind"
    );
    host.lock("b", 2);
    let before = host.names();
    refused(&Fence::new("a", 2), "b");
    refused(&Fence::new("b", 1), "b");
    refused(&Fence::new("b", 3), "b");
    let step = |fence: &Fence| {
        host.sh(&step::render_exclusive_step(
            "echo ran",
            &host.state().display().to_string(),
            fence,
            "n",
        ))
    };
    assert_eq!(
        step(&Fence::new("a", 1)),
        (LOCK_LOST, "\n@n lost\nb\n".to_owned())
    );
    assert_eq!(
        (host.names(), host.reading()[0].as_str()),
        ([before, vec!["step".to_owned()]].concat(), "b")
    );
    assert_eq!(step(&Fence::new("b", 2)), (0, "ran\n".to_owned()));
}

#[test]
fn silence_is_told_by_a_clock_that_nobody_sets() {
    let host = Host::new();
    assert_eq!(
        (
            host.run(&Upkeep::ReadLock),
            host.steal("a", 9, Grounds::Forced).0
        ),
        ((1, String::new()), 1),
        "nobody has it"
    );
    host.lock("a", 7);
    assert_eq!([0, 1, 3].map(|n| host.reading()[n].clone()), ["a", "", "7"]);
    let boot = railwright_system::identity::boot_id();
    let seen = |name: &str, first: &str, boot: &str, seconds: i64| {
        std::fs::write(
            host.state().join(name),
            format!("{first}\n{boot}\n{seconds}\n"),
        )
        .unwrap();
    };
    let silence = || host.reading()[2].parse::<i64>().unwrap();
    let is_about = |expected: i64| (silence() - expected).abs() <= 60;
    // The time of day of a file says nothing.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(500_000);
    std::fs::File::open(host.state().join("lock"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert!(is_about(0), "{}", silence());
    let ago = uptime_s() / 2;
    seen("lock", "a\n7", &boot, uptime_s() - ago);
    assert!(is_about(ago), "{} and not {ago}", silence());
    assert_eq!(
        host.steal("a", 8, Grounds::Silent(u64::MAX / 4)).0,
        77,
        "not silent for that long"
    );
    // In another boot it was seen later than this one is old: what is known is that this one has
    // heard nothing.
    seen("lock", "a\n7", "another-boot", uptime_s() + 10_000);
    assert!(is_about(uptime_s()), "{}", silence());
    seen("lock", "a\n7", "another-boot", uptime_s() - 1);
    assert!(
        is_about(uptime_s()),
        "seconds of another boot are none of this one: {}",
        silence()
    );
    // A container that was restarted counts from there, in the same boot of the kernel.
    seen("lock", "a\n7", &boot, uptime_s() + 10_000);
    assert!(is_about(uptime_s()), "{}", silence());
    assert_eq!(host.write(&Fence::new("a", 7), beat("run 'r1'\nx")).0, 0);
    assert_eq!(
        (is_about(0), host.reading()[1].as_str()),
        (true, "run 'r1' x"),
        "the latest heartbeat counts"
    );
    assert_eq!(host.steal("a", 8, Grounds::Silent(100_000_000)).0, 77);
    assert_eq!(host.steal("a", 8, Grounds::Silent(0)), (0, String::new()));
    assert_eq!(host.names(), ["fence", "mutex"]);
}

#[test]
fn of_many_at_once_one_gets_it() {
    let host = Host::new();
    let of_eight = |run: &(dyn Fn(usize) -> i32 + Sync)| -> Vec<i32> {
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..8).map(|i| scope.spawn(move || run(i))).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        })
    };
    let taken = of_eight(&|i| host.lock(&format!("h{i}"), 1).0);
    assert_eq!(
        taken.iter().filter(|code| **code == 0).count(),
        1,
        "{taken:?}"
    );
    let holder = host.reading()[0].clone();
    // Each takes it away and takes it: of whoever was looked at, one takes it away, and no later
    // holder loses the lock.
    let taken = of_eight(&|i| match host.steal(&holder, 2, Grounds::Forced).0 {
        0 => host.lock(&format!("n{i}"), 2).0,
        other => other,
    });
    assert_eq!(
        taken.iter().filter(|code| **code == 0).count(),
        1,
        "{taken:?}"
    );
    assert!(host.reading()[0].starts_with('n'));
}

#[test]
fn a_host_without_flock_is_refused() {
    let host = Host::new();
    let bin = host.0.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["mkdir", "chmod", "cat", "rm", "mv", "sync", "sha256sum"] {
        let found = host.sh(&format!("command -v {name}")).1;
        std::os::unix::fs::symlink(Path::new(found.trim()), bin.join(name)).unwrap();
    }
    let lock = script_in(
        &Upkeep::Lock {
            holder: "a".to_owned(),
            fence: 1,
        },
        &host.state().display().to_string(),
        "n",
    );
    let (code, said) = host.sh(&format!("PATH={}\n{lock}", bin.display()));
    assert_eq!(
        (
            code,
            said.contains("flock (util-linux) is not on this host")
        ),
        (74, true),
        "{said}"
    );
    assert!(!host.state().join("lock").exists());
}

/// A generator of its own, so that a failure is the same one every time (Marsaglia, Xorshift RNGs).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The scripts and the rules of the simulated fleet give the same answers, whatever is asked in
/// whichever order.
#[test]
fn the_scripts_follow_the_rules() {
    let (host, mut rules, mut kept) = (Host::new(), TargetLock::default(), NO_RECORD.to_owned());
    let mut seed = 2027;
    let now = || Uptime {
        boot: "b".to_owned(),
        seconds: 0,
    };
    let lost = |holder: Option<String>| {
        (
            LOCK_LOST,
            format!("\n@n lost\n{}\n", holder.unwrap_or_default()),
        )
    };
    let line = |(code, text): (i32, String)| {
        (
            code,
            if text.is_empty() {
                text
            } else {
                format!("{text}\n")
            },
        )
    };
    for n in 0..250 {
        let fence = Fence::new(
            &format!("h{}", random(&mut seed) % 3),
            random(&mut seed) % 5,
        );
        let (asked, told) = match random(&mut seed) % 7 {
            0 | 1 => (
                host.lock(&fence.holder, fence.number),
                line(rules.take(&fence, now(), &kept).exit()),
            ),
            2 => {
                let grounds = if random(&mut seed).is_multiple_of(2) {
                    Grounds::Forced
                } else {
                    Grounds::Silent(u64::from(u32::MAX))
                };
                let (code, text) = host.steal(&fence.holder, fence.number, grounds);
                let outcome = rules.steal(&fence.holder, fence.number, grounds, &now());
                // Seconds that pass meanwhile are none of the rules.
                let text = if matches!(outcome, StealOutcome::Alive(_)) {
                    "0\n".to_owned()
                } else {
                    text
                };
                ((code, text), line(outcome.exit()))
            }
            3 => (
                host.write(&fence, FencedWrite::Unlock),
                rules
                    .release(&fence)
                    .map_or_else(lost, |()| (0, String::new())),
            ),
            4 => (
                host.write(&fence, beat("b")),
                rules
                    .beat(&fence, "b", now())
                    .map_or_else(lost, |()| (0, String::new())),
            ),
            5 => {
                let json = format!("{{{n}}}");
                let told = rules
                    .check(&fence)
                    .map_or_else(lost, |()| (0, String::new()));
                let asked = host.write(&fence, record(&json, &[&kept]));
                if told.0 == 0 {
                    kept = Digest::of_bytes(format!("{json}\n").as_bytes())
                        .as_str()
                        .to_owned();
                }
                (asked, told)
            }
            _ => {
                let read = host.run(&Upkeep::ReadLock);
                let told = rules
                    .read(&now())
                    .map_or((1, String::new()), |reading| (0, reading.print()));
                let without_seconds = |(code, text): (i32, String)| {
                    let lines: Vec<&str> = text
                        .lines()
                        .enumerate()
                        .filter(|(n, _)| *n != 2)
                        .map(|(_, line)| line)
                        .collect();
                    (code, lines.join("\n"))
                };
                (without_seconds(read), without_seconds(told))
            }
        };
        assert_eq!(asked, told, "question {n} with {fence:?}");
        let held: BTreeSet<String> = rules
            .held
            .iter()
            .map(|held| held.fence.holder.clone())
            .collect();
        assert_eq!(
            held.contains(host.reading().first().map_or("", String::as_str)),
            !held.is_empty()
        );
    }
    assert!(matches!(LockOutcome::Taken(Some(kept)).exit(), (0, _)));
}
