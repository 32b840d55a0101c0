//! What happens to a real machine in the middle of an apply, each time from the same state of it:
//! all is in sync.
//!
//! A step that is to be met in its middle is a command that goes on until a file lets it go, so
//! that no story hangs on a time; what is done to the machine is done through its door.

use crate::night::{GROUND, INV, Night, all_of};
use serde_json::Value;

/// A command that goes on until it is let go, and counts how often it began and ended.
const LONG: &str = "  - id: long
    command: { name: long, run: 'echo start >>/etc/long; until [ -e /run/go ]; do sleep 0.2; done; echo end >>/etc/long', limit_s: 900, read: { probe: '[ \"$(tail -n 1 /etc/long 2>/dev/null)\" = end ]' } }
";
const LET_GO: &str = ": >/run/go";
const TIMES: &str = "cat /etc/long";

/// The repository and the packet filter's program are there, and from here on everything begins.
pub fn the_ground_is_laid(night: &Night) {
    night.resource("");
    night.told(0, &["apply", INV, "--yes"]);
    night.said("mkdir -p /etc/story");
    night.keep(GROUND);
}

/// Begins to apply, and comes back in the middle of the command.
fn in_the_middle(night: &Night, words: &[&str]) -> crate::night::Run {
    let mut run = night.begin(&[&["apply"], words].concat());
    run.until("the command's turn", || {
        night.records("action_sent", "/command/long") > 0
    });
    run.until("the middle of the command", || {
        night.holds("[ \"$(cat /etc/long)\" = start ]")
    });
    run
}

/// How the steps ended whose records hold these words, in order: `unknown`.
fn outcomes(night: &Night, node: &str) -> Vec<String> {
    let journal = night.journal();
    let entries = journal.iter().map(|record| &record["entry"]);
    let of = |entry: &&Value| {
        entry["record"] == "node_finished"
            && entry["node"]
                .as_str()
                .is_some_and(|name| name.ends_with(node))
    };
    entries
        .filter(of)
        .map(|entry| entry["outcome"]["outcome"].as_str().unwrap().to_owned())
        .collect()
}

/// A packet filter drops what SSH sends, then refuses it, and is away when `resume` looks.
pub fn ssh_is_cut_by_a_packet_filter(night: &Night) {
    night.go_back(GROUND);
    night.resource(LONG);
    let mut run = in_the_middle(night, &[INV, "--yes"]);
    let filter = |verdict: &str| {
        let chain =
            format!("chain in {{\ntype filter hook input priority 0;\ntcp dport 22 {verdict}\n}}");
        night.machine().sh(&format!(
            "nft -f - <<'EOF'\nflush ruleset\ntable inet story {{\n{chain}\n}}\nEOF\n"
        ));
    };
    filter("drop");
    run.until("the loss to be seen", || {
        night.records("action_ended", "\"code\":null") == 1
    });
    // Whoever is refused needs not be waited for.
    filter("reject with tcp reset");
    all_of(
        &run.ends(3),
        &[
            "UNKNOWN",
            "RW0614",
            "goes on by itself on the host as railwright-",
            "railwright resume night",
        ],
    );
    assert_eq!(
        (outcomes(night, "/long"), night.said(TIMES).as_str()),
        (vec!["unknown".to_owned()], "start")
    );
    night.said("nft flush ruleset");
    night.ssh_answers();
    let mut resumed = night.begin(&["resume", INV]);
    resumed.until_said("an earlier step is still running on it; waiting");
    night.said(LET_GO);
    resumed.ends(0);
    assert_eq!(
        (outcomes(night, "/long"), night.said(TIMES).as_str()),
        (vec!["unknown".to_owned(), "done".to_owned()], "start\nend")
    );
    night.is_true();
}

/// Between unpacking and configuring, all of apt is killed. dpkg waits there, so that it can be
/// met.
pub fn apt_is_killed_half_way(night: &Night) {
    night.go_back(GROUND);
    night.resource("  - id: tool\n    package: { name: bzip2 }\n");
    night
        .machine()
        .sh("cat >/etc/dpkg/dpkg.cfg.d/story <<'EOF'\n\
             post-invoke=[ -e /run/go ] || \
             { : >/run/unpacked; until [ -e /run/go ]; do sleep 0.2; done; }\n\
             EOF\n");
    let mut run = night.begin(&["apply", INV, "--yes"]);
    run.until("apt's turn", || {
        night.records("action_sent", "install_packages") > 0
    });
    run.until("the middle of apt", || night.holds("[ -e /run/unpacked ]"));
    night
        .machine()
        .sh("kill -9 $(pidof apt-get dpkg); : >/run/go");
    all_of(
        &run.ends(1),
        &[
            "RW0612",
            "apt-get was killed by signal 9 before its end",
            "dpkg --configure -a",
            "railwright resume night",
        ],
    );
    let state = "dpkg-query -W -f '${db:Status-Abbrev}' bzip2";
    assert_eq!(night.said(state), "iU", "it is there half");
    assert!(night.told(3, &["plan", INV]).contains("unpacked"));
    night.told(0, &["resume", INV]);
    assert_eq!(
        (
            night.said(state),
            night.said("bzip2 --help 2>&1 | head -c 5")
        ),
        ("ii".to_owned(), "bzip2".to_owned())
    );
    night.is_true();
}

/// The power goes in the middle of a step. Nobody gives it back: the run ends and says so. Somebody
/// does: `resume` goes on.
pub fn the_power_goes_in_the_middle_of_a_step(night: &Night) {
    night.go_back(GROUND);
    night.resource(&format!(
        "{LONG}  - id: note\n    file: {{ path: /etc/story/late.conf, content: \"late\\n\" }}\n    after: [long]\n"
    ));
    let run = in_the_middle(night, &[INV, "--yes"]);
    // The kernel has the names of new files on its disk after some five seconds, and their content
    // after thirty.
    night.said("sleep 8");
    let power = night.off();
    all_of(
        &run.ends(3),
        &[
            "UNKNOWN",
            "RW0614",
            "1 unknown",
            "1 not begun",
            "railwright resume night",
        ],
    );
    assert_eq!(outcomes(night, "/long"), ["unknown"]);
    // Again, with the machine still dark.
    all_of(
        &night.told(3, &["resume", INV]),
        &["RW0401", "Connection refused", "railwright resume night"],
    );
    night.on(&power);
    night.ssh_answers();
    night.said(LET_GO);
    night.told(0, &["resume", INV]);
    // What ran is gone with the power, so it was done again.
    let times = night.said(TIMES);
    assert!(
        times.ends_with("start\nend") && times.matches("end").count() == 1,
        "{times}"
    );
    assert_eq!(night.said("cat /etc/story/late.conf"), "late");
    night.is_true();
}

/// Fills the root file system to its last block, reserved ones too; `ROOM` empties it.
const FILL: &str = "rm -f /filler*; n=0; for s in 262144 32768 4096 512 64 8 1; do\n\
                    while fallocate -l $((s * 4096)) /filler$n 2>/dev/null; do n=$((n+1)); done; \
                    rm -f /filler$n; done\n\
                    echo x 2>/dev/null >/etc/there-is-room; [ -s /etc/there-is-room ] && echo \
                    room; rm -f /etc/there-is-room";
const ROOM: &str = "rm -f /filler*; sync";
const A_LITTLE_ROOM: &str = "truncate -s -512K /filler0";

/// The disk is full before the run, and in the middle of it: with a file to write, and with a
/// package to install.
pub fn the_disk_is_full(night: &Night) {
    night.go_back(GROUND);
    let note = |text: &str| {
        format!(
            "  - id: note\n    file: {{ path: /etc/story/note.conf, content: \"{text}\\n\" }}\n    after: [long]\n"
        )
    };
    // A long step would free blocks at its end.
    let short = LONG.replace(", limit_s: 900", "");
    let long_line = "rails".repeat(4000);
    let fill = || assert_eq!(night.said(FILL), "", "it is not full");
    night.resource(&note("rails").replace("    after: [long]\n", ""));
    night.said("echo before >/etc/story/note.conf");
    fill();
    all_of(
        &night.told(3, &["apply", INV, "--yes"]),
        &[
            "RW0609",
            "No space left on device",
            "nothing was begun on it",
        ],
    );
    assert_eq!(
        night.said(
            "cat /etc/story/note.conf; ls -A /etc/story /var/lib/railwright | grep -e rw -e '^[.]'"
        ),
        "before"
    );
    night.said(ROOM);

    night.resource(&format!("{short}{}", note(&long_line)));
    let mut run = in_the_middle(night, &[INV, "--yes"]);
    fill();
    // The command writes its own end into a block that it has already; the record of it has none.
    night.said(LET_GO);
    run.until("the command's end", || night.holds("grep -q end /etc/long"));
    let said = run.ends(1);
    all_of(
        &said,
        &[
            "RW0622",
            "RW0612",
            "No space left on device",
            "railwright resume night",
        ],
    );
    let story = "head -c 6 /etc/story/note.conf; wc -c </etc/story/note.conf; ls -A /etc/story";
    assert_eq!(
        night.said(story),
        "before7\nnote.conf",
        "neither half a file nor a temporary one"
    );
    night.said(ROOM);
    night.told(0, &["resume", INV]);
    assert_eq!(night.said(story), "railsr20001\nnote.conf");
    night.is_true();
    assert!(
        night
            .said("cat /var/lib/railwright/record.json")
            .contains("command/long"),
        "what could not be recorded is"
    );

    night.said("rm -f /run/go /etc/long");
    night.resource(&format!(
        "{short}{}  - id: tool\n    package: {{ name: curl }}\n    after: [long]\n",
        note(&long_line)
    ));
    let run = in_the_middle(night, &[INV, "--yes"]);
    fill();
    night.said(&format!("{A_LITTLE_ROOM}; {LET_GO}"));
    all_of(
        &run.ends(1),
        &[
            "RW0612",
            "You don't have enough free space in /var/cache/apt/archives/",
            "railwright resume night",
        ],
    );
    night.said(ROOM);
    night.told(0, &["resume", INV]);
    night.is_true();
}

/// Between plan and apply somebody else changes the file: it is theirs, and the plan is of
/// yesterday.
pub fn somebody_else_was_there_first(night: &Night) {
    night.resource(
        "  - id: note\n    file: { path: /etc/story/note.conf, content: \"rails\\n\" }\n  - id: other\n    file: { path: /etc/story/other.conf, content: \"other\\n\" }\n",
    );
    night.said("echo before >/etc/story/note.conf");
    night.told(0, &["plan", INV, "-o", "a.plan"]);
    night.said("echo theirs >/etc/story/note.conf");
    all_of(
        &night.told(3, &["apply", "a.plan", "--yes"]),
        &["RW0610", "STALE", "actual theirs", "railwright plan night"],
    );
    assert_eq!(
        night.said("cat /etc/story/note.conf; ls /etc/story"),
        "theirs\nnote.conf",
        "nothing else was done to this host either"
    );
}
