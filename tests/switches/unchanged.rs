//! Law 4 on switches: what is asked of a switch for a plan and for drift changes nothing of it.
//! Before and after are compared: its whole disk, what it keeps in memory (SONiC's Redis, what
//! stands below /run), what its API was asked to change; and nothing but commands that read is
//! called.

use crate::eos::Way;
use crate::journeys::Fabric;
use crate::rig::Switch;
use crate::{cumulus, nvue};
use std::collections::BTreeSet;

/// The commands of the three systems, each with the first words of those that only read.
const READ: [(&str, &[&str]); 4] = [
    ("sonic-cfggen", &["-d --print-data"]),
    (
        "sonic-db-cli",
        &[
            "APPL_DB hget ",
            "STATE_DB hget ",
            "CONFIG_DB hget ",
            "COUNTERS_DB hget ",
        ],
    ),
    ("nv", &["show ", "config show "]),
    ("FastCli", &["-p 15 -c show "]),
];

/// Where the calls stand, which is no part of what is compared.
const CALLS: &str = "/run/calls";

/// From now on every call of a command stands in `CALLS`, by whomever.
fn keep_calls(switch: &Switch) {
    let tools = READ.map(|(tool, _)| tool).join(" ");
    switch.must(&format!(
        "mkdir -p /usr/local/called && for t in config {tools}; do\n\
         [ -e /usr/local/bin/$t ] || continue\n\
         mv /usr/local/bin/$t /usr/local/called/$t\n\
         printf '#!/bin/sh\\nprintf \"%%s\\\\n\" \"'$t' $(printf \"%%s \" \"$@\" | tr \"\\\\n\" \" \
         \")\" >>{CALLS}\\nexport PYTHONDONTWRITEBYTECODE=1\\nexec /usr/local/called/'$t' \
         \"$@\"\\n' >/usr/local/bin/$t\n\
         chmod 755 /usr/local/bin/$t; done"
    ));
}

/// All of a switch at one moment, as lines that begin with what they are about.
fn standing(fabric: &Fabric) -> BTreeSet<String> {
    let digest = "local t = {}; local all = redis.call('keys', '*'); table.sort(all)\n\
                  for _, k in ipairs(all) do t[#t + 1] = k .. ' ' .. \
                  redis.sha1hex(redis.call('dump', k)) end; return t";
    let in_memory = fabric.switch.must(&format!(
        "find /run -type f ! -path {CALLS} ! -path '/run/redis/*' -exec md5sum {{}} + | sed \
         's/^\\([^ ]*\\) *\\(.*\\)/\\2 \\1/'\n\
         [ ! -S /run/redis/redis.sock ] || for n in 0 1 2 3 4 5 6; do\n\
         redis-cli -s /run/redis/redis.sock -n $n --raw eval \"{digest}\" 0 | sed \"s/^/$n|/\"; \
         done"
    ));
    let changes = fabric
        .switch
        .api
        .iter()
        .map(|api| format!("changes {}", api.read("changes")));
    fabric
        .switch
        .host
        .written()
        .iter()
        .map(|line| without_times(line))
        .chain(in_memory.lines().map(str::to_owned))
        .chain(changes)
        .collect()
}

/// A fake writes its own memory anew at every call: what counts there is what is in it.
fn without_times(line: &str) -> String {
    let [path, mode, .., content] = line.split(' ').collect::<Vec<_>>()[..] else {
        return line.to_owned();
    };
    if path.contains("-fake/") || path.ends_with("-fake") {
        format!("{path} {mode} {content}")
    } else {
        line.to_owned()
    }
}

fn name(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}

/// The calls that are none of a command that reads.
fn writing(calls: &str) -> Vec<&str> {
    let reads = |call: &&str| {
        READ.iter().any(|(tool, words)| {
            words
                .iter()
                .any(|words| call.starts_with(&format!("{tool} {words}")))
        })
    };
    calls.lines().filter(|call| !reads(call)).collect()
}

/// Nothing is other than before after these, but for what changes while nobody does anything.
fn change_nothing(fabric: &Fabric) {
    let (first, before) = (standing(fabric), standing(fabric));
    let mut restless: BTreeSet<&str> = first
        .symmetric_difference(&before)
        .map(|line| name(line))
        .collect();
    // Over eAPI an answer lies in a folder below it until it is fetched; then it is gone.
    restless.extend(fabric.switch.api.iter().map(|_| "/tmp"));
    fabric.switch.must(&format!("rm -f {CALLS}"));
    for words in [&["plan", "inv"], &["drift", "inv"]] {
        let said = fabric.run(words);
        assert!(
            said.contains("--- exit 0 ---") || said.contains("--- exit 2 ---"),
            "{said}"
        );
        let after = standing(fabric);
        let changed: Vec<&String> = before
            .symmetric_difference(&after)
            .filter(|line| !restless.contains(name(line)))
            .collect();
        assert!(
            changed.is_empty(),
            "{words:?} changed the switch: {changed:#?}"
        );
    }
    let calls = fabric.switch.sh(&format!("cat {CALLS}")).out;
    assert!(
        !calls.is_empty() || fabric.switch.api.is_some(),
        "nobody asked it anything"
    );
    assert_eq!(writing(&calls), [""; 0], "of {calls}");
}

/// As it is delivered, and once more as it was applied to.
fn law_4(fabric: &Fabric) {
    keep_calls(&fabric.switch);
    change_nothing(fabric);
    let applied = fabric.run(&["apply", "inv", "--yes"]);
    assert!(applied.contains("--- exit 0 ---"), "{applied}");
    assert!(
        !writing(&fabric.switch.sh(&format!("cat {CALLS}")).out).is_empty()
            || fabric.switch.api.is_some(),
        "calls are not kept"
    );
    change_nothing(fabric);
}

#[test]
fn law_4_a_plan_and_a_drift_change_nothing_of_sonic() {
    let Some(fabric) = Fabric::start("unchanged", "60s") else {
        return;
    };
    law_4(&fabric);
}

#[test]
fn law_4_a_plan_and_a_drift_change_nothing_of_cumulus() {
    let Some(switch) = Switch::start_cumulus("unchanged-cumulus") else {
        return;
    };
    law_4(&Fabric::of(switch, cumulus::SPEC, "60s"));
    let Some(fabric) = nvue::start("unchanged") else {
        return;
    };
    law_4(&fabric);
}

#[test]
fn law_4_a_plan_and_a_drift_change_nothing_of_eos() {
    for way in [Way::Ssh, Way::Eapi] {
        let Some(fabric) = way.start("unchanged", "60s") else {
            return;
        };
        law_4(&fabric);
    }
}
