//! What a finding is in words: what is how, what it means, and what to move.

use super::fold::{CablingEntry, PlugDescription};
use railwright_base::text::one_line;
use railwright_knowledge::spec::cabling::CableEnd;
use railwright_verify::cabling::{CablingFindingKind, Silent, UnknownCableReason};

/// The parts of an entry on the screen; empty ones are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CablingEntryText {
    /// What is how.
    pub says: String,
    /// Where it is.
    pub actual: String,
    /// Where it belongs.
    pub desired: String,
    /// What it means for the fabric.
    pub means: String,
    /// What to do.
    pub next: Vec<String>,
}

/// An entry in words; `inventory` and `file` as the user calls them.
pub fn describe_cabling_entry(
    entry: &CablingEntry,
    inventory: &str,
    file: &str,
) -> CablingEntryText {
    match entry.finding.kind {
        CablingFindingKind::Swapped => describe_swapped_cables(&entry.words),
        CablingFindingKind::WrongPort => {
            describe_first_plug(entry, |words| describe_wrong_port(words, file))
        }
        CablingFindingKind::UnknownDevice => describe_first_plug(entry, |words| {
            describe_unknown_device(words, inventory, file)
        }),
        CablingFindingKind::NoLink => describe_first_plug(entry, |words| {
            describe_missing_link(words, entry.count, file)
        }),
        CablingFindingKind::NotInFile => {
            describe_first_plug(entry, |words| describe_unlisted_cable(words, file))
        }
        CablingFindingKind::Unknown => describe_first_plug(entry, |words| {
            describe_unknown_cable(words, entry, inventory, file)
        }),
        CablingFindingKind::Silent => {
            describe_first_plug(entry, |words| describe_silent_host(words, entry, inventory))
        }
    }
}

fn describe_first_plug(
    entry: &CablingEntry,
    describe: impl Fn(&PlugDescription) -> CablingEntryText,
) -> CablingEntryText {
    entry.words.first().map(describe).unwrap_or_default()
}

fn format_nic_name(words: &PlugDescription) -> String {
    format!("{} {}", words.host, words.nic)
}

fn format_port(end: &Option<CableEnd>) -> String {
    match end {
        Some(end) => one_line(&end.to_string(), 300),
        None => "nothing".to_owned(),
    }
}

/// `file:line`, or the file where it is about several lines.
fn format_file_line(words: &PlugDescription, file: &str) -> String {
    match words.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}

/// Where a plug belongs, with the place in the file that says it.
fn format_desired_port(words: &PlugDescription, file: &str) -> String {
    format!(
        "{} ({})",
        format_port(&words.desired),
        format_file_line(words, file)
    )
}

/// Where a plug is, and whose port that is.
fn format_actual_port(words: &PlugDescription) -> String {
    let port = format_port(&words.actual);
    match &words.owner {
        Some(owner) => format!("{port}, where {owner} belongs"),
        None => port,
    }
}

/// What a cable in a wrong port means: another leaf, or another port of the same.
fn describe_wrong_port_effect(words: &[PlugDescription]) -> String {
    let is_other_switch = words.iter().any(|words| {
        let [desired, actual] = [&words.desired, &words.actual].map(Option::as_ref);
        desired.map(|end| &end.device) != actual.map(|end| &end.device)
    });
    match is_other_switch {
        true => {
            "traffic of these rails takes a way over other switches than it was meant to, or finds \
             none: slow under load, and hard to see"
        }
        false => {
            "the switch takes one port for the other: settings and counters of one are believed to \
             be of the other's NIC"
        }
    }
    .to_owned()
}

fn describe_swapped_cables(words: &[PlugDescription]) -> CablingEntryText {
    let [one, other] = words else {
        return describe_cable_round(words);
    };
    let same = one.host == other.host;
    let (first, second) = if same {
        (one.nic.clone(), other.nic.clone())
    } else {
        (format_nic_name(one), format_nic_name(other))
    };
    let next = match same {
        true => format!(
            "at the host: move the plug in {} to {}, and the one in {} to {}",
            one.nic, other.nic, other.nic, one.nic
        ),
        false => {
            let (here, there) = (format_port(&one.actual), format_port(&other.actual));
            format!(
                "at the switch: move the plug in {here} to {there}, and the one in {there} to \
                 {here}"
            )
        }
    };
    CablingEntryText {
        says: format!(
            "{} and {second} are swapped{}",
            format_nic_name(one),
            if !same && one.host.contains(['[', ',']) {
                ", pair by pair"
            } else {
                ""
            }
        ),
        actual: format!(
            "{first} in {}, {second} in {}",
            format_port(&one.actual),
            format_port(&other.actual)
        ),
        desired: String::new(),
        means: describe_wrong_port_effect(words),
        next: vec![next],
    }
}

/// Three or more, each in the port of the next.
fn describe_cable_round(words: &[PlugDescription]) -> CablingEntryText {
    let names: Vec<String> = words.iter().map(format_nic_name).collect();
    let actual: Vec<String> = words
        .iter()
        .map(|words| {
            format!(
                "{} in {}",
                format_nic_name(words),
                format_port(&words.actual)
            )
        })
        .collect();
    let moves: Vec<String> = words
        .iter()
        .map(|words| {
            format!(
                "{} to {}",
                format_port(&words.actual),
                format_port(&words.desired)
            )
        })
        .collect();
    CablingEntryText {
        says: format!("{} are in each other's ports", names.join(", ")),
        actual: actual.join(", "),
        desired: String::new(),
        means: describe_wrong_port_effect(words),
        next: vec![format!(
            "unplug all of them at the switch, then move the plug in {}",
            moves.join(", the one in ")
        )],
    }
}

fn describe_wrong_port(words: &PlugDescription, file: &str) -> CablingEntryText {
    CablingEntryText {
        says: format!("{} is in a wrong port", format_nic_name(words)),
        actual: format_actual_port(words),
        desired: format_desired_port(words, file),
        means: describe_wrong_port_effect(std::slice::from_ref(words)),
        next: vec![format!(
            "move the plug in {} to {}",
            format_port(&words.actual),
            format_port(&words.desired)
        )],
    }
}

fn describe_unknown_device(
    words: &PlugDescription,
    inventory: &str,
    file: &str,
) -> CablingEntryText {
    let device = match &words.actual {
        Some(end) => one_line(&end.device, 120),
        None => String::new(),
    };
    let desired = match &words.desired {
        Some(end) => end.device.as_str(),
        None => "",
    };
    CablingEntryText {
        says: format!(
            "{} is in a device that the spec does not have",
            format_nic_name(words)
        ),
        actual: format_port(&words.actual),
        desired: format_desired_port(words, file),
        means: "it is in another network than its rail, or the switch calls itself otherwise than \
                the spec does"
            .to_owned(),
        next: vec![
            format!("move the plug to {}", format_port(&words.desired)),
            format!(
                "or, if {device} is {desired}: give it that name, or write its own in `switches` \
                 and in {file}"
            ),
            format!(
                "railwright discover cabling {inventory} tells by what names all switches are \
                 heard"
            ),
        ],
    }
}

fn describe_missing_link(words: &PlugDescription, count: usize, file: &str) -> CablingEntryText {
    let desired = match &words.desired {
        Some(_) => format_desired_port(words, file),
        None => String::new(),
    };
    CablingEntryText {
        says: format!(
            "{} {} no link",
            format_nic_name(words),
            if count == 1 { "has" } else { "have" }
        ),
        actual:
            "up, and no signal: the cable is not there, or its other end is in nothing or in a \
                port that is off"
                .to_owned(),
        desired,
        means: "this rail carries nothing".to_owned(),
        next: vec![
            "look at both plugs, then at the port of the switch (is it up, same speed and FEC?)"
                .to_owned(),
        ],
    }
}

fn describe_unlisted_cable(words: &PlugDescription, file: &str) -> CablingEntryText {
    let (device, port) = match &words.actual {
        Some(end) => (end.device.as_str(), end.port.as_str()),
        None => ("", ""),
    };
    let line = format!("{},{},{device},{port}", words.host, words.nic);
    let next = match &words.owner {
        Some(owner) => format!("move the plug in {} to {owner}", format_nic_name(words)),
        None => format!("write its line in {file} if it belongs there: {line}"),
    };
    CablingEntryText {
        says: format!(
            "{} is plugged in, and {file} has no line of it",
            format_nic_name(words)
        ),
        actual: format_actual_port(words),
        desired: String::new(),
        means: "nobody compares where this NIC is plugged in".to_owned(),
        next: vec![next],
    }
}

fn describe_unknown_cable(
    words: &PlugDescription,
    entry: &CablingEntry,
    inventory: &str,
    file: &str,
) -> CablingEntryText {
    let (actual, means, next) = match &entry.finding.why {
        Some(UnknownCableReason::Absent) => (
            "there is no such port".to_owned(),
            "",
            format!("railwright verify {inventory} tells what is there"),
        ),
        Some(UnknownCableReason::Down) => (
            "down, so that nobody can be heard".to_owned(),
            "",
            format!("railwright drift {inventory}; or ip link set up, on the host"),
        ),
        Some(UnknownCableReason::Unclear { device, said }) => (
            describe_unclear_port(device, said, file),
            "",
            format!(
                "railwright discover cabling {inventory} tells the names as they are heard; write \
                 those in {file}"
            ),
        ),
        Some(UnknownCableReason::Taken(other)) => {
            let place = format_expected_port(words, "the port that it belongs in");
            let actual =
                format!("not in {place}, where {other} is; whatever it is in tells nothing");
            let next = "fix the other cable, and follow this one by hand";
            (one_line(&actual, 300), "", next.to_owned())
        }
        Some(UnknownCableReason::Nameless(chassis)) => (
            format!("hears somebody who says no name, chassis {chassis}"),
            "",
            "have the switch send its name (LLDP: system name)".to_owned(),
        ),
        _ => {
            let actual = match entry.count {
                2.. => "they have a link, and hear nobody",
                _ => "it has a link, and hears nobody",
            };
            let port = format_expected_port(words, "its port");
            let next = format!(
                "look who is on {port} at the switch; railwright explain RW0835 tells the causes"
            );
            (actual.to_owned(), SILENT_LINK, next)
        }
    };
    CablingEntryText {
        says: format_nic_name(words),
        actual,
        means: means.to_owned(),
        next: vec![next],
        ..CablingEntryText::default()
    }
}

fn format_expected_port(words: &PlugDescription, otherwise: &str) -> String {
    let desired = words.desired.as_ref();
    desired.map_or(otherwise.to_owned(), CableEnd::to_string)
}

/// What a link over which nobody is heard means.
const SILENT_LINK: &str = "the cable may well be right: an LLDP agent in the firmware of a \
                           ConnectX takes the frames, or the switch sends none";

fn describe_unclear_port(device: &str, said: &str, file: &str) -> String {
    if said.is_empty() {
        return format!("hears {device}, which does not say which port it is");
    }
    format!(
        "hears {device}, which calls the port `{said}`: another kind of name than those of {file}"
    )
}

fn describe_silent_host(
    words: &PlugDescription,
    entry: &CablingEntry,
    inventory: &str,
) -> CablingEntryText {
    let Some(UnknownCableReason::Silent(silent)) = &entry.finding.why else {
        return CablingEntryText::default();
    };
    let next = match silent {
        Silent::Unreached(trouble) => trouble.next.clone(),
        Silent::NoLldp => vec![
            format!(
                "write `tuning: {{ lldp: true }}` in its node group, then railwright plan \
                 {inventory}: module lldpd installs and starts it"
            ),
            "switches and hosts hear each other about 30 s after it starts".to_owned(),
        ],
        Silent::NoAnswer(_) => {
            vec![
                "on the host: systemctl status lldpd".to_owned(),
                format!("railwright drift {inventory}, where the spec has lldp: true"),
            ]
        }
        Silent::OfSwitch { next, .. } => vec![next.clone()],
        Silent::Unread(_) => {
            vec![format!(
                "railwright sudoers {inventory} prints what a user without rights needs; else run \
                 the same command again"
            )]
        }
    };
    let actual = match silent {
        Silent::Unreached(trouble) if entry.count <= 1 => trouble.message.clone(),
        other => other.shared_message(),
    };
    CablingEntryText {
        says: words.host.clone(),
        actual,
        next,
        ..CablingEntryText::default()
    }
}
