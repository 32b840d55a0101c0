//! Settings by the words that name them whatever their value, and how each is taken away. `no` and
//! `default` are not the same everywhere: `no qos trust` is a trust of nothing (the EOS manual,
//! Quality of Service, `qos trust`).

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EosSettingKey {
    /// The words that begin its command.
    pub words: &'static str,
    /// The command that says the opposite, where the configuration shows that too.
    pub opposite: Option<&'static str>,
    /// What takes it away. Where it is one of many (`priority-flow-control priority 3`), the rest
    /// of the words follow.
    pub without: &'static str,
}

const fn new_setting_key(
    words: &'static str,
    opposite: Option<&'static str>,
    without: &'static str,
) -> EosSettingKey {
    EosSettingKey {
        words,
        opposite,
        without,
    }
}

/// Packets of a port (AVD: `mtu`; ansible-collections/arista.eos: `no mtu`).
pub const MTU: EosSettingKey = new_setting_key("mtu", None, "no mtu");
/// Whether a port is up.
pub const SHUTDOWN: EosSettingKey =
    new_setting_key("shutdown", Some("no shutdown"), "default shutdown");
/// The trust mode of a port, which decides the class of packets.
pub const TRUST: EosSettingKey =
    new_setting_key("qos trust", Some("no qos trust"), "default qos trust");
/// PFC as a whole (AVD: `priority-flow-control on`, `no priority-flow-control`).
pub const PFC: EosSettingKey = new_setting_key(
    "priority-flow-control on",
    Some("no priority-flow-control"),
    "no priority-flow-control",
);
/// PFC of one priority (AVD: `priority-flow-control priority 3 no-drop`).
pub const NO_DROP: EosSettingKey = new_setting_key(
    "priority-flow-control priority",
    None,
    "no priority-flow-control priority",
);
/// The watchdog of a port (AVD: `qos profile`, the three lines).
pub const WATCHDOG: EosSettingKey = new_setting_key(
    "priority-flow-control pause watchdog",
    Some("no priority-flow-control pause watchdog"),
    "no priority-flow-control pause watchdog",
);
/// What it does.
pub const WATCHDOG_ACTION: EosSettingKey = new_setting_key(
    "priority-flow-control pause watchdog port action",
    None,
    "no priority-flow-control pause watchdog port action",
);
/// After which times.
pub const WATCHDOG_TIMER: EosSettingKey = new_setting_key(
    "priority-flow-control pause watchdog port timer",
    None,
    "no priority-flow-control pause watchdog port timer",
);
/// Marking of a queue (AVD; the guide, section 2).
pub const ECN: EosSettingKey = new_setting_key(
    "random-detect ecn minimum-threshold",
    None,
    "no random-detect ecn",
);
/// What a queue gets in any case (the guide, section 8).
pub const GUARANTEED: EosSettingKey =
    new_setting_key("bandwidth guaranteed", None, "no bandwidth guaranteed");
/// Whether a queue goes before others (the guide, section 2: `no priority` takes it out of strict
/// priority).
pub const PRIORITY: EosSettingKey =
    new_setting_key("priority strict", Some("no priority"), "default priority");

/// All that are of a port, longer words before the ones that they begin with.
pub const OF_PORT: [EosSettingKey; 11] = [
    MTU,
    SHUTDOWN,
    TRUST,
    NO_DROP,
    WATCHDOG_ACTION,
    WATCHDOG_TIMER,
    WATCHDOG,
    PFC,
    ECN,
    GUARANTEED,
    PRIORITY,
];

impl EosSettingKey {
    /// The setting of a port that has these words.
    pub fn find(words: &str) -> Option<Self> {
        OF_PORT.into_iter().find(|key| key.words == words)
    }

    /// True for a command that says this setting.
    pub fn says(self, line: &str) -> bool {
        match self.opposite {
            Some(opposite) if self != TRUST => line == self.words || line == opposite,
            Some(opposite) if line == opposite => true,
            _ => strip_words(line, self.words).is_some(),
        }
    }
}

/// What follows these words in a command that begins with them.
pub fn strip_words<'l>(line: &'l str, words: &str) -> Option<&'l str> {
    let rest = line.strip_prefix(words)?;
    (rest.is_empty() || rest.starts_with(' ')).then_some(rest)
}
