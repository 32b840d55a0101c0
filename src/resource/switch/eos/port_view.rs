//! One port of EOS in the fabric's words: what its commands and those of its QoS profile come to.

use super::config::{CLASSES, EosConfig, QUEUES};
use super::key::{
    ECN, EosSettingKey, GUARANTEED, MTU, NO_DROP, PFC, PRIORITY, SHUTDOWN, TRUST, WATCHDOG,
    WATCHDOG_ACTION, WATCHDOG_TIMER, strip_words,
};
use crate::switch::configuration::SwitchPortSettings;
use crate::switch::parse_values::{
    ANY, MTUS, PERCENT, PRIORITIES, build_unreadable_fact, parse_bounded_number, parse_digits,
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
        let lines = self.config.lines(&[&self.section]);
        let rest = lines.filter_map(|line| strip_words(line, words)).last()?;
        Some(rest.trim())
    }

    /// The section of its QoS profile.
    pub fn profile(&self) -> Option<String> {
        Some(format!("qos profile {}", self.own("service-profile")?))
    }

    /// The command of a setting in its own section.
    pub fn own_line(&self, key: EosSettingKey) -> Option<&'a str> {
        self.config.last_line(&[&self.section], key)
    }

    /// The command of a setting in its profile.
    pub fn profile_line(&self, key: EosSettingKey) -> Option<&'a str> {
        self.config.last_line(&[&self.profile()?], key)
    }

    /// The port's own goes before the profile's: so Arista says of policy maps
    /// (https://eos.arista.com/author/7448-sahil/, Policy maps under QoS Profiles), and where both
    /// say something the port gets no edit.
    pub fn line(&self, key: EosSettingKey) -> Option<&'a str> {
        self.own_line(key).or_else(|| self.profile_line(key))
    }

    /// The command of a queue, with the word of the section that it stands in, in the port's
    /// section or in that of its profile.
    fn queue_line(
        &self,
        section: &str,
        queue: u64,
        key: EosSettingKey,
    ) -> Option<(&'static str, &'a str)> {
        for word in QUEUE_WORDS {
            let of_queue = format!("{word} {queue}");
            if let Some(line) = self.config.last_line(&[section, &of_queue], key) {
                return Some((word, line));
            }
        }
        None
    }

    /// A command of a queue of the port's own.
    pub fn own_queue_line(
        &self,
        queue: u64,
        key: EosSettingKey,
    ) -> Option<(&'static str, &'a str)> {
        self.queue_line(&self.section, queue, key)
    }

    /// A command of a queue in its profile.
    pub fn profile_queue_line(&self, queue: u64, key: EosSettingKey) -> Option<&'a str> {
        let (_, line) = self.queue_line(&self.profile()?, queue, key)?;
        Some(line)
    }

    /// A command of a queue, the port's own before the profile's.
    pub fn any_queue_line(&self, queue: u64, key: EosSettingKey) -> Option<&'a str> {
        match self.own_queue_line(queue, key) {
            Some((_, line)) => Some(line),
            None => self.profile_queue_line(queue, key),
        }
    }

    /// Numbers of `priority-flow-control priority N no-drop` in its own section.
    pub fn own_priorities(&self) -> Vec<u64> {
        let lines = self.config.lines(&[&self.section]);
        lines.filter_map(parse_no_drop_priority).collect()
    }

    /// Those in its profile, with their commands.
    pub fn profile_priorities(&self) -> Vec<(u64, &'a str)> {
        let mut priorities = Vec::new();
        if let Some(profile) = self.profile() {
            for line in self.config.lines(&[&profile]) {
                priorities.extend(parse_no_drop_priority(line).map(|priority| (priority, line)));
            }
        }
        priorities
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
        for words in ["service-policy", "qos map"] {
            if let Some(rest) = self.own(words) {
                return Some(format!("{words} {rest}"));
            }
        }
        let mut of_profile = self.config.lines(&[&self.profile()?]);
        let line = of_profile
            .find(|line| line.starts_with("service-policy ") || line.starts_with("qos map "))?;
        Some(line.to_owned())
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
        let mut lines = Vec::from_iter(self.config.lines(&[&self.section]));
        if let Some(profile) = self.profile() {
            lines.extend(self.config.lines(&[&profile]));
        }
        lines.into_iter().rfind(|line| !is_known_pfc_command(line))
    }

    /// A command of this queue, or of one above it, that says no sensible thing of what goes first.
    fn odd_priority(&self, queue: u64) -> Option<&'a str> {
        let mut lines = Vec::new();
        for section in [Some(self.section.clone()), self.profile()]
            .iter()
            .flatten()
        {
            for queue in queue..8 {
                for word in QUEUE_WORDS {
                    lines.extend(self.config.lines(&[section, &format!("{word} {queue}")]));
                }
            }
        }
        lines
            .into_iter()
            .rfind(|line| line.starts_with("priority ") && *line != PRIORITY.words)
    }

    /// The queues at or above this one that were taken out of strict priority. A queue that is
    /// served in turn takes those below it along (the EOS manual, Quality of Service, `priority`).
    pub fn in_turn(&self, queue: u64) -> Option<u64> {
        (queue..8)
            .rev()
            .find(|queue| self.any_queue_line(*queue, PRIORITY) == Some("no priority"))
    }

    fn global(&self, words: &str) -> Option<&'a str> {
        self.config
            .lines(&[])
            .filter_map(|line| line.strip_prefix(words)?.strip_prefix(' '))
            .last()
    }

    /// What all ports have of the watchdog where they say nothing of their own.
    fn watchdog_default(&self, word: &str) -> Option<&'a str> {
        self.global(&format!("{} default {word}", WATCHDOG.words))
    }

    /// A time of the watchdog in milliseconds, by its timer's command.
    fn watchdog_time(&self, timer: &str, word: &str) -> Fact<u64> {
        let Some(text) = find_word_after(timer, word).or(self.watchdog_default(word)) else {
            return Fact::Absent;
        };
        match parse_seconds_as_milliseconds(text) {
            Some(milliseconds) => Fact::Is(milliseconds),
            None => build_unreadable_fact(format_args!("{word} of the watchdog"), text),
        }
    }
}

/// The class of a DSCP where DSCP is trusted. The map from the start is in the guide, section 1: 0
/// to 7 and 8 to 15 have each other's class.
pub fn find_dscp_class(config: &EosConfig, dscp: u64) -> Fact<u64> {
    let from_the_start = match dscp / 8 {
        0 => 1,
        1 => 0,
        class => class,
    };
    match config.mapped(CLASSES, dscp) {
        Some((_, class)) => class,
        None => Fact::Is(from_the_start),
    }
}

/// The priority of `priority-flow-control priority 3 no-drop`.
fn parse_no_drop_priority(line: &str) -> Option<u64> {
    let priority = line
        .strip_prefix(NO_DROP.words)?
        .strip_suffix("no-drop")?
        .trim();
    parse_digits(priority, PRIORITIES)
}

/// True for a command of PFC of a port whose words are known. What others do
/// (`priority-flow-control mode on`) is not.
fn is_known_pfc_command(line: &str) -> bool {
    let Some(rest) = strip_words(line, "priority-flow-control") else {
        return true;
    };
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["on"] | ["pause", ..] => true,
        ["priority", priority, _, ..] => parse_digits(priority, PRIORITIES).is_some(),
        _ => false,
    }
}

/// Milliseconds of a number of seconds with a point: `0.2`, `10.001`.
fn parse_seconds_as_milliseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part: u64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1000)?.checked_add(part)
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
        let own = self.own(MTU.words).or(defaults);
        let mut mtu = parse_bounded_number("mtu", own, MTUS).or(MTU_BYTES);
        for words in ["l2 mtu", "l2 mru"] {
            let frame = self.frame(words);
            mtu = mtu.and_then(|mtu| frame.map(|frame| frame.min(mtu)).or(mtu));
        }
        mtu
    }

    /// A port is up where nobody shut it.
    fn up(&self) -> Fact<bool> {
        if let Some(odd) = self.own(SHUTDOWN.words).filter(|rest| !rest.is_empty()) {
            return build_unreadable_fact(SHUTDOWN.words, odd);
        }
        let by_default = self
            .config
            .last_line(&["interface defaults", "ethernet"], SHUTDOWN);
        Fact::Is(self.own_line(SHUTDOWN).or(by_default) != Some(SHUTDOWN.words))
    }

    fn priority(&self, dscp: u64) -> Fact<u64> {
        if let Some(by) = self.classified_by() {
            return Fact::Unknown(
                format!(
                    "`{}` decides the class of packets, and is not looked into",
                    one_line(&by, 60)
                )
                .into(),
            );
        }
        match self.trusts_dscp() {
            Fact::Is(true) => find_dscp_class(self.config, dscp),
            Fact::Unknown(why) => Fact::Unknown(why),
            _ => Fact::Absent,
        }
    }

    /// One map for all ports of the switch, which gives each class the queue of its number from the
    /// start.
    fn queue(&self, priority: u64) -> Fact<u64> {
        match self.config.mapped(QUEUES, priority) {
            Some((_, queue)) => queue,
            None => Fact::Is(priority),
        }
    }

    fn pfc(&self) -> Fact<BTreeSet<u64>> {
        if let Some(odd) = self.odd_pfc() {
            return build_unreadable_fact("a command of PFC", odd);
        }
        if self.line(PFC) != Some(PFC.words) || self.config.has_all_pfc_off() {
            return Fact::Is(BTreeSet::new());
        }
        let mut priorities = BTreeSet::from_iter(self.own_priorities());
        for (priority, _) in self.profile_priorities() {
            priorities.insert(priority);
        }
        Fact::Is(priorities)
    }

    /// It looks at queues with PFC and guaranteed bandwidth. Times are in seconds (the guide,
    /// section 8); where no action is set, it takes the port down (AVD, documentation of
    /// `priority_flow_control`). A recovery that is forced lets go whatever the peer does.
    fn watchdog(&self) -> Fact<(BTreeSet<u64>, PfcWatchdogSettings)> {
        let is_on = match self.line(WATCHDOG) {
            Some(line) => line == WATCHDOG.words,
            None => self.watchdog_default("timeout").is_some(),
        };
        if !is_on {
            return Fact::Absent;
        }
        let timer = self.line(WATCHDOG_TIMER).unwrap_or_default();
        let of_port = self
            .line(WATCHDOG_ACTION)
            .and_then(|line| line.strip_prefix(WATCHDOG_ACTION.words));
        let of_switch = self.global(&format!("{} action", WATCHDOG.words));
        let action = of_port.or(of_switch).map_or("errdisable", str::trim);
        if !["drop", "no-drop", "errdisable"].contains(&action) {
            return build_unreadable_fact("action of the watchdog", action);
        }
        let forced = if timer.ends_with(" forced") {
            ", forced"
        } else {
            ""
        };
        let settings = PfcWatchdogSettings::from_facts(
            self.watchdog_time(timer, "timeout"),
            self.watchdog_time(timer, "recovery-time"),
            &format!("{action}{forced}"),
        );
        settings.and_then(|settings| {
            self.pfc().map(|mut queues| {
                queues.retain(|queue| self.any_queue_line(*queue, GUARANTEED).is_some());
                (queues, settings)
            })
        })
    }

    /// In bytes alone: how many a kilobyte has is not written anywhere, and segments are of the
    /// chip (AVD: the units).
    fn marking(&self, queue: u64) -> Fact<EcnMarkingThresholds> {
        let Some(line) = self.any_queue_line(queue, ECN) else {
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
            return Fact::Unknown(
                format!("marking is not set in bytes: `{}`", one_line(line, 120)).into(),
            );
        }
        EcnMarkingThresholds::from_facts(
            parse_bounded_number("marking", Some(*min), ANY),
            parse_bounded_number("marking", Some(*max), ANY),
            parse_bounded_number("marking", Some(*percent), PERCENT),
        )
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

    fn made_buffer(&self, _priority: u64, _cable_m: u64) -> (Reading, Option<String>) {
        (
            Reading::NotApplicable("EOS has no setting for the cable".into()),
            None,
        )
    }
}
