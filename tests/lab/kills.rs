//! kill -9 of the program at a random moment of an apply with a reboot. RAILWRIGHT_KILLS says how
//! often, RAILWRIGHT_KILL_SEED which moments: a kill that ended badly prints the line that does it
//! again.

use crate::night::{GROUND, INV, Night};
use std::time::{Duration, Instant};

/// A package, the boot loader, a reboot and what comes after it; the command counts how often it
/// ran.
const RESOURCES: &str = r#"  - id: tool
    package: { name: bzip2 }
  - id: parameter
    kernel_parameter: { parameter: iommu, value: pt }
  - id: note
    file: { path: /etc/story/note.conf, content: "rails\n" }
  - id: module
    kernel_module: { name: null_blk, loaded: true, at_boot: true }
  - id: once
    command: { name: once, run: "echo start >>/etc/once; sleep 3; echo end >>/etc/once", limit_s: 900, read: { probe: "tail -n 1 /etc/once 2>/dev/null | grep -q end" } }
"#;

/// What has to be the same whether there was a crash or not. Times and the boot's own identity are
/// left out.
const SHOT: &str = r#"find /etc /boot /usr/local -xdev ! -path '/etc/ssl/*' -printf '%p %y %m %U:%G %l\n' | sort
find /etc /boot -xdev -type f -print0 | sort -z | xargs -0 sha256sum
sha256sum </var/lib/dpkg/status; ls /var/lib/apt/lists
cut -d' ' -f1 /proc/modules | sort; cat /proc/cmdline
systemctl list-unit-files --plain --no-legend; systemctl --failed --plain --no-legend
find /var/lib/railwright -path '*/run/*' -prune -o -printf '%p %y %m %U:%G\n' | sort
ls -A /tmp | grep -v ^systemd-private; ls /etc/apt/sources.list.d
"#;

/// What of ours may run on the machine when nothing of ours runs here: nothing.
const OURS: &str = "systemctl list-units --all --plain --no-legend 'railwright-*' | grep -v \
                    railwright-lab; ls -A /run/systemd/transient | grep railwright; ps -e -o args= \
                    | grep '[/]var/lib/railwright'";

/// The machine after an apply that nobody disturbed, and how long that took.
pub struct Undisturbed {
    shot: String,
    records: u64,
    /// How many steps ended done.
    done: usize,
    took: Duration,
}

/// This apply without a crash.
pub fn nobody_disturbs_it(night: &Night) -> Undisturbed {
    night.go_back(GROUND);
    night.resource(RESOURCES);
    let began = Instant::now();
    night.told(0, &["apply", INV, "--yes"]);
    let took = began.elapsed();
    night.is_true();
    let shot = night.said(SHOT);
    assert!(
        shot.contains("null_blk") && shot.contains("iommu=pt") && shot.contains("/etc/once"),
        "{shot}"
    );
    Undisturbed {
        shot,
        records: u64::try_from(night.journal().len()).unwrap(),
        done: steps_done(night),
        took,
    }
}

fn steps_done(night: &Night) -> usize {
    night.records("node_finished", r#""outcome":"done""#)
}

/// Numbers that look like chance and are the same for the same seed (SplitMix64).
fn chance(seed: u64, nth: u64) -> u64 {
    let mut z = seed.wrapping_add(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The moment of a kill.
#[derive(Debug)]
enum Moment {
    /// So long after this record of the journal was written.
    Record(usize, Duration),
    /// So long after the start.
    Delay(Duration),
}

fn moment(seed: u64, undisturbed: &Undisturbed) -> Moment {
    let of = |nth: u64, most: u64| chance(seed, nth) % most.max(1);
    match of(0, 3) {
        0 => Moment::Delay(Duration::from_millis(of(
            1,
            u64::try_from(undisturbed.took.as_millis()).unwrap(),
        ))),
        _ => Moment::Record(
            usize::try_from(1 + of(1, undisturbed.records - 1)).unwrap(),
            Duration::from_millis(of(2, 1500)),
        ),
    }
}

/// Kills at as many moments as are asked for; after each, `resume` brings the machine to where an
/// undisturbed apply does.
pub fn killed_at_any_moment_it_is_resumed(night: &Night, undisturbed: &Undisturbed) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let count = number("RAILWRIGHT_KILLS").unwrap_or(3);
    let now = || {
        u64::from(
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .subsec_nanos(),
        )
    };
    let first = number("RAILWRIGHT_KILL_SEED").unwrap_or_else(now);
    for n in 1..=count {
        let seed = first.wrapping_add(n - 1);
        let moment = moment(seed, undisturbed);
        eprintln!(
            "       kill {n} of {count}, {moment:?}; again: RAILWRIGHT_KILL_SEED={seed} \
             RAILWRIGHT_KILLS=1 cargo test --test lab bad_days"
        );
        one(night, undisturbed, &moment);
    }
}

fn one(night: &Night, undisturbed: &Undisturbed, moment: &Moment) {
    night.go_back(GROUND);
    let earlier = night.journal().len();
    let before = night.newest_run();
    let mut run = night.begin(&["apply", INV, "--yes"]);
    match moment {
        Moment::Delay(delay) => std::thread::sleep(*delay),
        Moment::Record(record, delay) => {
            run.until("that record", || {
                night.newest_run() != before && night.journal().len() >= *record
            });
            std::thread::sleep(*delay);
        }
    }
    let over = run.is_over();
    eprintln!(
        "        {}",
        run.said().lines().last().unwrap_or("it had said nothing")
    );
    run.kill();
    if night.newest_run() == before {
        // It had not begun to change anything, so there is nothing to resume.
        assert_eq!(night.journal().len(), earlier);
        night.told(0, &["apply", INV, "--yes"]);
    } else if over || steps_done(night) == undisturbed.done {
        // Also where it died before it wrote down its own end.
        assert!(night.told(4, &["resume", INV]).contains("RW0623"));
    } else {
        night.told(0, &["resume", INV]);
    }
    night.is_true();
    let shot = night.said(SHOT);
    let difference = similar::TextDiff::from_lines(&undisturbed.shot, &shot)
        .unified_diff()
        .context_radius(0)
        .to_string();
    assert_eq!(difference, "", "not as without a crash, after {moment:?}");
    assert_eq!(night.said(OURS), "", "left running after {moment:?}");
    let locks = night.told(0, &["lock", "list", INV]);
    assert_eq!(
        locks.split_whitespace().collect::<Vec<_>>(),
        ["here", "free", "node1", "free"]
    );
}
