//! One port of EOS in the fabric's words: what its commands and those of its QoS profile come to.

use super::config::{CLASSES, EosConfig, QUEUES};
use super::key::{
    ECN, EosSettingKey, GUARANTEED, MTU, NO_DROP, PFC, PRIORITY, SHUTDOWN, TRUST, WATCHDOG,
    WATCHDOG_ACTION, WATCHDOG_TIMER,
};
use crate::switch::configuration::SwitchPortSettings;
use crate::switch::unreadable::{
    ANY, MTUS, PERCENT, PRIORITIES, build_unreadable_fact, parse_bounded_number,
};
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings};
use crate::{Fact, Reading};
use railwright_base::text::one_line;
use std::collections::BTreeSet;

/// A port of a configuration.
pub struct EosPortView<'a> {
    config: &'a EosConfig,
    /// `interface Ethernet1/1`.
    section: String,
}

/// The MTU of a port that says none
/// (https://aristaeos.blogspot.com/2020/03/arista-eos-mtu-behavior-3-l3-routed.html).
const MTU_BYTES: u64 = 1500;

/// The sections of queues, on switches whose unicast queues are apart and on others.
pub const QUEUE_WORDS: [&str; 2] = ["uc-tx-queue", "tx-queue"];

impl<'a> EosPortView<'a> {
    /// The port of this name, if the switch has it.
    pub fn of(config: &'a EosConfig, port: &str) -> Option<Self> {
        config.has_port(port).then(|| EosPortView {
            config,
            section: format!("interface {port}"),
        })
    }

    /// The rest of a command of the port's own section that is no setting of [`EosSettingKey`].
    pub fn own(&self, words: &str) -> Option<&'a str> {
        let rest = |line: &'a str| {
            line.strip_prefix(words)
                .filter(|rest| rest.is_empty() || rest.starts_with(' '))
                .map(str::trim)
        };
        self.config.lines(&[&self.section]).filter_map(rest).last()
    }

    /// The section of its QoS profile.
    pub fn profile(&self) -> Option<String> {
        self.own("service-profile")
            .map(|name| format!("qos profile {name}"))
    }

    /// The command of a setting in its own section.
    pub fn own_line(&self, key: EosSettingKey) -> Option<&'a str> {
        self.config
            .lines(&[&self.section])
            .filter(|line| key.says(line))
            .last()
    }

    /// The command of a setting in its profile.
    pub fn profile_line(&self, key: EosSettingKey) -> Option<&'a str> {
        self.config
            .lines(&[&self.profile()?])
            .filter(|line| key.says(line))
            .last()
    }

    /// The port's own goes before the profile's: so Arista says of policy maps
    /// (https://eos.arista.com/author/7448-sahil/, Policy maps under QoS Profiles), and where both
    /// say something nothing is told to the port.
    fn line(&self, key: EosSettingKey) -> Option<&'a str> {
        self.own_line(key).or_else(|| self.profile_line(key))
    }

    /// The command of a queue, with the word of the section that it stands in, in the port's
    /// section or in that of its profile.
    pub fn queue_line(
        &self,
        section: &str,
        queue: u64,
        key: EosSettingKey,
    ) -> Option<(&'static str, &'a str)> {
        QUEUE_WORDS.into_iter().find_map(|word| {
            let line = self
                .config
                .lines(&[section, &format!("{word} {queue}")])
                .filter(|line| key.says(line))
                .last();
            line.map(|line| (word, line))
        })
    }

    /// A command of a queue of the port's own.
    pub fn own_queue_line(
        &self,
        queue: u64,
        key: EosSettingKey,
    ) -> Option<(&'static str, &'a str)> {
        self.queue_line(&self.section, queue, key)
    }

    fn of_queue(&self, queue: u64, key: EosSettingKey) -> Option<&'a str> {
        let own = self.own_queue_line(queue, key);
        own.or_else(|| self.queue_line(&self.profile()?, queue, key))
            .map(|(_, line)| line)
    }

    /// Numbers of `priority-flow-control priority N no-drop` in its own section, with their
    /// commands.
    pub fn own_priorities(&self) -> impl Iterator<Item = (u64, &'a str)> {
        self.config
            .lines(&[&self.section])
            .filter_map(|line| Some((parse_no_drop_priority(line)?, line)))
    }

    /// What its own section says of PFC of one priority, on or off (`drop`).
    pub fn own_priority_line(&self, priority: u64) -> Option<&'a str> {
        let begin = format!("{} {priority} ", NO_DROP.words);
        self.config
            .lines(&[&self.section])
            .filter(|line| line.starts_with(&begin))
            .last()
    }

    /// What decides the class of packets besides trust and map, and is not looked into.
    pub fn classified_by(&self) -> Option<String> {
        let own = ["service-policy", "qos map"]
            .into_iter()
            .find_map(|word| Some(format!("{word} {}", self.own(word)?)));
        let begins =
            |line: &&str| line.starts_with("service-policy ") || line.starts_with("qos map ");
        own.or_else(|| {
            self.config
                .lines(&[&self.profile()?])
                .find(begins)
                .map(str::to_owned)
        })
    }

    /// How large frames may be by one of the commands that say it; `l2 mtu`, `l2 mru`.
    pub fn frame(&self, words: &str) -> Fact<u64> {
        parse_bounded_number(words, self.own(words), MTUS)
    }

    /// A switched port trusts the tag, a routed one the DSCP (the guide, section 2).
    pub fn trusts_dscp(&self) -> Fact<bool> {
        match self.line(TRUST) {
            Some("qos trust dscp") => Fact::Is(true),
            Some("qos trust cos" | "no qos trust") => Fact::Is(false),
            Some(other) => build_unreadable_fact("what the port trusts", other),
            None => Fact::Is(self.own("no switchport").is_some()),
        }
    }

    /// A command of PFC, its own or its profile's, that makes no sense.
    pub fn odd_pfc(&self) -> Option<&'a str> {
        let profile = self.profile();
        let all = self.config.lines(&[&self.section]).chain(
            profile
                .iter()
                .flat_map(|profile| self.config.lines(&[profile])),
        );
        all.filter(|line| !is_known(line)).last()
    }

    /// A command of this queue, or of one above it, that says no sensible thing of what goes first.
    fn odd_priority(&self, queue: u64) -> Option<&'a str> {
        let sections = [Some(self.section.clone()), self.profile()];
        let of_queue = |section: &String, queue: u64| {
            QUEUE_WORDS.map(|word| self.config.lines(&[section, &format!("{word} {queue}")]))
        };
        let all = sections
            .iter()
            .flatten()
            .flat_map(|section| (queue..8).flat_map(move |queue| of_queue(section, queue)));
        all.flatten()
            .filter(|line| line.starts_with("priority ") && *line != PRIORITY.words)
            .last()
    }

    /// The queues at or above this one that were taken out of strict priority. A queue that is
    /// served in turn takes those below it along (the EOS manual, Quality of Service, `priority`).
    pub fn in_turn(&self, queue: u64) -> Option<u64> {
        (queue..8)
            .rev()
            .find(|queue| self.of_queue(*queue, PRIORITY) == Some("no priority"))
    }

    fn global(&self, words: &str) -> Option<&'a str> {
        self.config
            .lines(&[])
            .filter_map(|line| line.strip_prefix(words)?.strip_prefix(' '))
            .last()
    }
}

/// The class of a DSCP where DSCP is trusted. The map from the start is in the guide, section 1: 0
/// to 7 and 8 to 15 have each other's class.
pub fn class_of(config: &EosConfig, dscp: u64) -> Fact<u64> {
    let from_the_start = match dscp / 8 {
        0 => 1,
        1 => 0,
        class => class,
    };
    config
        .mapped(CLASSES, dscp)
        .map_or(Fact::Is(from_the_start), |(_, class)| class)
}

/// The priority of `priority-flow-control priority 3 no-drop`.
pub fn parse_no_drop_priority(line: &str) -> Option<u64> {
    let priority = line
        .strip_prefix(NO_DROP.words)?
        .strip_suffix("no-drop")?
        .trim();
    parse_bounded_number("", Some(priority), PRIORITIES)
        .value()
        .copied()
}

/// True for a command of PFC of a port whose words are known. What others do
/// (`priority-flow-control mode on`) is not.
fn is_known(line: &str) -> bool {
    let Some(rest) = line
        .strip_prefix("priority-flow-control")
        .filter(|rest| rest.is_empty() || rest.starts_with(' '))
    else {
        return true;
    };
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["on"] | ["pause", ..] => true,
        ["priority", priority, _, ..] => parse_bounded_number("", Some(priority), PRIORITIES)
            .value()
            .is_some(),
        _ => false,
    }
}

/// Milliseconds of a number of seconds with a point: `0.2`, `10.001`.
fn parse_seconds_as_milliseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty();
    let part: u64 = if digits {
        format!("{part:0<3}").get(..3)?.parse().ok()?
    } else {
        return None;
    };
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(part)
}

/// What stands behind a word of a command.
fn find_word_after<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let mut words = line.split_ascii_whitespace();
    words.find(|one| *one == word)?;
    words.next()
}

impl SwitchPortSettings for EosPortView<'_> {
    /// `l2 mtu` and `l2 mru` are of frames: what they do not let through is not carried, whatever
    /// the port says of IP packets.
    fn mtu(&self) -> Fact<u64> {
        let defaults = self
            .config
            .lines(&["interface defaults"])
            .filter_map(|line| line.strip_prefix("mtu "))
            .last();
        let said =
            parse_bounded_number("mtu", self.own(MTU.words).or(defaults), MTUS).or(MTU_BYTES);
        let smaller =
            |said: u64, word: &str| self.frame(word).map(|frame| frame.min(said)).or(said);
        ["l2 mtu", "l2 mru"]
            .into_iter()
            .fold(said, |said, word| said.and_then(|said| smaller(said, word)))
    }

    /// A port is up where nobody shut it.
    fn up(&self) -> Fact<bool> {
        if let Some(odd) = self.own(SHUTDOWN.words).filter(|rest| !rest.is_empty()) {
            return build_unreadable_fact(SHUTDOWN.words, odd);
        }
        let by_default = self
            .config
            .lines(&["interface defaults", "ethernet"])
            .filter(|line| SHUTDOWN.says(line))
            .last();
        Fact::Is(self.own_line(SHUTDOWN).or(by_default) != Some(SHUTDOWN.words))
    }

    fn priority(&self, dscp: u64) -> Fact<u64> {
        if let Some(by) = self.classified_by() {
            return Fact::Unknown(format!(
                "`{}` decides the class of packets, and is not looked into",
                one_line(&by, 60)
            ));
        }
        self.trusts_dscp().and_then(|trusts| {
            if trusts {
                class_of(self.config, dscp)
            } else {
                Fact::Absent
            }
        })
    }

    /// One map for all ports of the switch, which gives each class the queue of its number from the
    /// start.
    fn queue(&self, priority: u64) -> Fact<u64> {
        self.config
            .mapped(QUEUES, priority)
            .map_or(Fact::Is(priority), |(_, queue)| queue)
    }

    /// A pause frame names a priority, which has one queue.
    fn paused_queue(&self, priority: u64) -> Fact<u64> {
        self.queue(priority)
    }

    fn group(&self, priority: u64) -> Fact<u64> {
        self.queue(priority)
    }

    fn pfc(&self) -> Fact<BTreeSet<u64>> {
        if let Some(odd) = self.odd_pfc() {
            return build_unreadable_fact("a command of PFC", odd);
        }
        let all_off = self
            .config
            .lines(&[])
            .any(|line| line == "priority-flow-control all off");
        let is_on = self.line(PFC) == Some(PFC.words) && !all_off;
        let profile = self.profile();
        let of_profile = profile.iter().flat_map(|profile| {
            self.config
                .lines(&[profile])
                .filter_map(parse_no_drop_priority)
        });
        Fact::Is(
            self.own_priorities()
                .map(|(priority, _)| priority)
                .chain(of_profile)
                .filter(|_| is_on)
                .collect(),
        )
    }

    /// It looks at queues with PFC and guaranteed bandwidth. Times are in seconds (the guide,
    /// section 8); where no action is said, it takes the port down (AVD, documentation of
    /// `priority_flow_control`). A recovery that is forced lets go whatever the peer does.
    fn watchdog(&self) -> Fact<(BTreeSet<u64>, PfcWatchdogSettings)> {
        let of_all = |word: &str| self.global(&format!("{} default {word}", WATCHDOG.words));
        let is_on = match self.line(WATCHDOG) {
            Some(line) => line == WATCHDOG.words,
            None => of_all("timeout").is_some(),
        };
        if !is_on {
            return Fact::Absent;
        }
        let timer = self.line(WATCHDOG_TIMER).unwrap_or_default();
        let time = |word: &str| match find_word_after(timer, word).or(of_all(word)) {
            None => Fact::Absent,
            Some(said) => parse_seconds_as_milliseconds(said).map_or_else(
                || build_unreadable_fact(format_args!("{word} of the watchdog"), said),
                Fact::Is,
            ),
        };
        let action = self
            .line(WATCHDOG_ACTION)
            .and_then(|line| line.strip_prefix(WATCHDOG_ACTION.words));
        let action = action
            .or_else(|| self.global(&format!("{} action", WATCHDOG.words)))
            .map_or("errdisable", str::trim);
        if !["drop", "no-drop", "errdisable"].contains(&action) {
            return build_unreadable_fact("action of the watchdog", action);
        }
        let action = format!(
            "{action}{}",
            if timer.ends_with(" forced") {
                ", forced"
            } else {
                ""
            }
        );
        let looks_at = |queue: &u64| self.of_queue(*queue, GUARANTEED).is_some();
        time("timeout").and_then(|detection_ms| {
            time("recovery-time").and_then(|restoration_ms| {
                let of = |pfc: BTreeSet<u64>| {
                    (
                        pfc.into_iter().filter(looks_at).collect(),
                        PfcWatchdogSettings {
                            detection_ms,
                            restoration_ms,
                            action,
                        },
                    )
                };
                self.pfc().map(of)
            })
        })
    }

    /// In bytes alone: how many a kilobyte has is not written anywhere, and segments are of the
    /// chip (AVD: the units).
    fn marking(&self, queue: u64) -> Fact<EcnMarkingThresholds> {
        let Some(line) = self.of_queue(queue, ECN) else {
            return Fact::Absent;
        };
        let words: Vec<&str> = line.split_ascii_whitespace().skip(2).collect();
        let [
            "minimum-threshold",
            min,
            unit,
            "maximum-threshold",
            max,
            other,
            "max-mark-probability",
            percent,
            ..,
        ] = words.as_slice()
        else {
            return build_unreadable_fact("marking", line);
        };
        if [*unit, *other] != ["bytes", "bytes"] {
            return Fact::Unknown(format!(
                "marking is not told in bytes: `{}`",
                one_line(line, 120)
            ));
        }
        let of = |text: &str, bounds| parse_bounded_number("marking", Some(text), bounds);
        of(min, ANY).and_then(|min_bytes| {
            of(max, ANY).and_then(|max_bytes| {
                of(percent, PERCENT).map(|probability_percent| EcnMarkingThresholds {
                    min_bytes,
                    max_bytes,
                    probability_percent,
                })
            })
        })
    }

    /// From the start every queue goes before those of lower numbers (the guide, section 2).
    fn is_strict(&self, queue: u64) -> Fact<bool> {
        match self.odd_priority(queue) {
            Some(odd) => {
                build_unreadable_fact(format_args!("what of queue {queue} goes first"), odd)
            }
            None => Fact::Is(self.in_turn(queue).is_none()),
        }
    }

    /// There is no such setting.
    fn cable_m(&self) -> Fact<u64> {
        Fact::Absent
    }

    fn has_lossless_pool(&self) -> Fact<bool> {
        Fact::Is(true)
    }

    fn made_buffer(&self, _priority: u64, _cable_m: u64) -> (Reading, Option<String>) {
        (
            Reading::NotApplicable("EOS has no setting for the cable".to_owned()),
            None,
        )
    }
}
