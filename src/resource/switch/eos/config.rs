//! The text of a configuration, as `eos.py` prints what of it is compared: commands, indented where
//! they stand in a section.

use super::key::EosSettingKey;
use super::port_view::QUEUE_WORDS;
use crate::Fact;
use crate::switch::SwitchError;
use crate::switch::parse_values::{PRIORITIES, build_unreadable_fact, parse_digits};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What stands in the first line of what was asked of the configuration that runs, which names
/// every port.
const RUNNING: &str = "! railwright running";

/// The first line of the answer about the saved configuration, which may leave out ports that have
/// nothing of their own.
const SAVED: &str = "! railwright saved";

/// The last line of every configuration of EOS (CLI of `show running-config`), which the beginning of
/// one lacks.
const END: &str = "end";

/// Why a configuration without it is refused.
const CUT_OFF: &str =
    "the configuration is cut off before its `end`, and its beginning alone is not compared";

/// The code of its page.
const CUT_OFF_CODE: &str = "RW0849";

/// Sections stand in sections of sections, and no deeper.
const DEEPEST: usize = 3;

/// A map of the whole switch, by the words of its commands.
#[derive(Clone, Copy)]
pub struct Map {
    from: &'static str,
    to: &'static str,
    /// The largest number that is mapped.
    last: u64,
}

/// The classes of DSCPs.
pub const CLASSES: Map = Map {
    from: "qos map dscp ",
    to: " to traffic-class ",
    last: 63,
};

/// The queues of classes.
pub const QUEUES: Map = Map {
    from: "qos map traffic-class ",
    to: " to tx-queue ",
    last: 7,
};

/// One configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EosConfig {
    names_ports: bool,
    /// The commands of a section, by the commands that lead there.
    sections: BTreeMap<Vec<String>, Vec<String>>,
}

impl EosConfig {
    /// The configuration in a text; the error fits after "unknown:".
    pub fn parse(text: &str) -> Result<Self, SwitchError> {
        let names_ports = match text.lines().next() {
            Some(RUNNING) => true,
            Some(SAVED) => false,
            _ => return Err(SwitchError::unreadable_configuration()),
        };
        let Some(text) = text
            .trim_end()
            .strip_suffix(END)
            .filter(|text| text.ends_with('\n'))
        else {
            let why = format!("{CUT_OFF} ({CUT_OFF_CODE})");
            return Err(SwitchError::Unreadable(why));
        };
        let mut config = EosConfig {
            names_ports,
            sections: BTreeMap::new(),
        };
        let mut open: Vec<(usize, String)> = Vec::new();
        for line in text.lines() {
            let command = line.trim();
            if command.is_empty() || command.starts_with('!') {
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            while open.last().is_some_and(|(outer, _)| *outer >= indent) {
                open.pop();
            }
            if open.len() < DEEPEST {
                let section = open.iter().map(|(_, command)| command.clone()).collect();
                config
                    .sections
                    .entry(section)
                    .or_default()
                    .push(command.to_owned());
            }
            open.push((indent, command.to_owned()));
        }
        Ok(config)
    }

    /// The commands of a section.
    pub fn lines<'a>(&'a self, section: &[&str]) -> impl Iterator<Item = &'a str> + use<'a> {
        let section: Vec<String> = section.iter().map(|word| (*word).to_owned()).collect();
        self.sections
            .get(&section)
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// The command of a setting in a section: the last one counts.
    pub fn last_line(&self, section: &[&str], key: EosSettingKey) -> Option<&str> {
        self.lines(section).filter(|line| key.says(line)).last()
    }

    /// The ports that it names.
    pub fn port_names(&self) -> Vec<&str> {
        self.lines(&[])
            .filter_map(|line| line.strip_prefix("interface "))
            .filter(|name| name.starts_with("Ethernet"))
            .collect()
    }

    /// True where PFC is off on all ports, whatever they say.
    pub fn has_all_pfc_off(&self) -> bool {
        self.lines(&[])
            .any(|line| line == "priority-flow-control all off")
    }

    /// True where the switch has the port, as far as it says.
    pub fn has_port(&self, port: &str) -> bool {
        !self.names_ports || self.port_names().contains(&port)
    }

    /// What a map of the whole switch says of a number, with the command that says it: `qos map
    /// dscp 26 27 to traffic-class 3`. AVD writes numbers one by one, and with ranges nothing is
    /// lost. What follows a target (`drop-precedence 1`) is no other class. A command that makes no
    /// sense may be about any number.
    pub fn mapped(&self, map: Map, number: u64) -> Option<(&str, Fact<u64>)> {
        self.lines(&[])
            .filter_map(|line| Some((line, map.parse_target(line, number)?)))
            .last()
    }

    /// The word by which this switch has queues of a port: `uc-tx-queue` where those of unicast are
    /// apart (the guide, section 2: by the chip). Nothing where no queue has a setting yet.
    pub fn queue_word(&self) -> Option<&'static str> {
        QUEUE_WORDS.into_iter().find(|word| self.has_queues(word))
    }

    /// True where a section of a port or of a profile has queues by this word.
    fn has_queues(&self, word: &str) -> bool {
        self.sections.iter().any(|(section, lines)| {
            section.len() == 1
                && lines
                    .iter()
                    .filter_map(|line| line.strip_prefix(word))
                    .any(|rest| rest.starts_with(' '))
        })
    }
}

impl Map {
    /// What a command of this map says of a number; nothing where it says nothing of it.
    fn parse_target(&self, line: &str, number: u64) -> Option<Fact<u64>> {
        let (numbers, target) = line.strip_prefix(self.from)?.split_once(self.to)?;
        let target = target.split(' ').next()?;
        let ranges = self.parse_ranges(numbers);
        let (Some(ranges), Some(target)) = (ranges, parse_digits(target, PRIORITIES)) else {
            return Some(build_unreadable_fact("a map of the switch", line));
        };
        let has_number = ranges.iter().any(|range| range.contains(&number));
        has_number.then_some(Fact::Is(target))
    }

    /// `8-10 26`; nothing where one of them makes no sense, or there is none.
    fn parse_ranges(&self, numbers: &str) -> Option<Vec<RangeInclusive<u64>>> {
        let mut ranges = Vec::new();
        for text in numbers.split([' ', ',']).filter(|text| !text.is_empty()) {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let range = parse_digits(first, 0..=self.last)?..=parse_digits(last, 0..=self.last)?;
            if range.is_empty() {
                return None;
            }
            ranges.push(range);
        }
        (!ranges.is_empty()).then_some(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_maps_and_ports() {
        let text = "! railwright running\n\
                    qos map dscp 8-10 26 to traffic-class 4 drop-precedence 1\n\
                    qos map traffic-class 3 to tx-queue 1\n\
                    !\n\
                    qos profile P\n   qos trust dscp\n   !\n   uc-tx-queue 3\n      priority strict\n   qos cos 2\n\
                    interface Ethernet1/1\n\
                    interface Ethernet1/2\n   mtu 9214\n\
                    interface Management1\n\
                    end\n";
        let config = EosConfig::parse(text).unwrap();
        assert_eq!(
            config.lines(&["qos profile P"]).collect::<Vec<_>>(),
            ["qos trust dscp", "uc-tx-queue 3", "qos cos 2"]
        );
        assert_eq!(
            config
                .lines(&["qos profile P", "uc-tx-queue 3"])
                .collect::<Vec<_>>(),
            ["priority strict"]
        );
        assert_eq!(
            (config.port_names(), config.queue_word()),
            (vec!["Ethernet1/1", "Ethernet1/2"], Some("uc-tx-queue"))
        );
        let class = |dscp| config.mapped(CLASSES, dscp).map(|(_, class)| class);
        assert_eq!(
            (class(9), class(26), class(11)),
            (Some(Fact::Is(4)), Some(Fact::Is(4)), None)
        );
        assert_eq!(
            config.mapped(QUEUES, 3).map(|(_, queue)| queue),
            Some(Fact::Is(1))
        );
        assert!(
            !config.has_port("Ethernet2")
                && EosConfig::parse("! railwright saved\nend")
                    .unwrap()
                    .has_port("Ethernet2")
        );
        assert!(EosConfig::parse("% Invalid input").is_err() && EosConfig::parse("").is_err());
    }

    #[test]
    fn the_beginning_of_a_configuration_is_none() {
        let whole =
            "! railwright running\ninterface Ethernet1/1\n   mtu 9214\n   qos trust dscp\nend\n";
        assert!(EosConfig::parse(whole).is_ok());
        for at in 0..whole.len() - "\n".len() {
            assert!(EosConfig::parse(&whole[..at]).is_err(), "{}", &whole[..at]);
        }
        // The word as a part of another command, or in a section, is not the end.
        for text in [
            "! railwright running\ninterface Ethernet1/1\n   end\n",
            "! railwright running\nlegend\n",
            "! railwright running end\n",
        ] {
            assert!(EosConfig::parse(text).is_err(), "{text}");
        }
    }
}
