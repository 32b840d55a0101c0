//! The table that `mlxconfig -e query` prints: a row a setting, with what it is by default, what
//! runs and what the next boot will bring. Columns are identified by the header, since firmware
//! that does not know the first two leaves them out.
//!
//! Sources: output quoted in k8snetworkplumbingwg/sriov-network-operator#358, and in the tests of
//! Mellanox/nic-configuration-operator; `mlxcfg_ui.cpp` of Mellanox/mstflint for the marks before a
//! row (`*` differs, `RO` cannot be written).

use super::super::sections::{Section, find_section, parse_sections};
use railwright_base::Reason;
use railwright_base::text::one_line;
use std::collections::BTreeMap;

/// One setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirmwareSettingRow {
    /// What the factory set, where the firmware shows it.
    pub default: Option<Cell>,
    /// What runs, where the firmware shows it.
    pub current: Option<Cell>,
    /// What the next boot of the card will bring.
    pub next_boot: Option<Cell>,
    /// It cannot be written.
    pub is_read_only: bool,
}

/// A value as the program prints it: `8`, `True(1)`, `_256KB(1)`, `Array[0..7]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell(pub String);

impl Cell {
    /// True where this is the desired value, given by its word, its number or both.
    pub fn is(&self, desired: &str) -> bool {
        is_same_setting(&self.0, desired)
            || self.parts().is_some_and(|(word, number)| {
                is_same_setting(word, desired) || is_same_setting(number, desired)
            })
    }

    /// What the program takes for it: the number of a word.
    pub fn to_set(&self) -> String {
        self.parts()
            .map_or(self.0.as_str(), |(_, number)| number)
            .to_owned()
    }

    /// Many values, which are set one by one.
    pub fn is_array(&self) -> bool {
        self.0.starts_with("Array[")
    }

    fn parts(&self) -> Option<(&str, &str)> {
        let (word, number) = self.0.strip_suffix(')')?.rsplit_once('(')?;
        (!word.is_empty() && !number.is_empty()).then_some((word, number))
    }
}

/// Firmware counts in decimals; specs may write `0x8` or `08`.
fn parse_firmware_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// What a host reports of the settings of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirmwareQueryResult {
    /// There is no such netdev.
    NoNetdev,
    /// The netdev is no card, or a virtual function, whose firmware belongs to the physical one; in
    /// words.
    NotACard(&'static str),
    /// Neither program is installed.
    NoProgram,
    /// The settings that were asked for and exist, and the card's PCI address.
    Settings {
        device: String,
        rows: BTreeMap<String, FirmwareSettingRow>,
    },
}

/// Reads the answer; what could not be found out in words that fit after "unknown:".
pub fn parse_firmware_answer(code: i32, text: &str) -> Result<FirmwareQueryResult, Reason> {
    if code != 0 {
        return Ok(FirmwareQueryResult::NoNetdev);
    }
    let sections = parse_sections(text);
    let Some(device) = find_section(&sections, "device")
        .map(|section| section.rest.trim())
        .filter(|device| is_pci_address(device))
    else {
        return Ok(FirmwareQueryResult::NotACard("it is no PCI device"));
    };
    if find_section(&sections, "virtual-function").is_some() {
        return Ok(FirmwareQueryResult::NotACard(
            "it is a virtual function: the firmware belongs to the physical one",
        ));
    }
    let Some(query) = find_section(&sections, "query") else {
        return Ok(FirmwareQueryResult::NoProgram);
    };
    if query.rest.split_whitespace().next() != Some("0") {
        let said = query.lines.iter().find(|line| line.starts_with("-E-"));
        return Err(said
            .map_or_else(
                || "mlxconfig could not ask the card".to_owned(),
                |line| one_line(line, 120),
            )
            .into());
    }
    Ok(FirmwareQueryResult::Settings {
        device: device.to_owned(),
        rows: parse_setting_rows(query)?,
    })
}

/// `0000:c1:00.0`.
fn is_pci_address(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 16
        && text
            .chars()
            .all(|c| c.is_ascii_hexdigit() || ":.".contains(c))
        && text.contains(':')
}

fn is_same_setting(text: &str, desired: &str) -> bool {
    let number = parse_firmware_number(text);
    text.eq_ignore_ascii_case(desired)
        || (number.is_some() && number == parse_firmware_number(desired))
}

fn parse_setting_rows(query: &Section<'_>) -> Result<BTreeMap<String, FirmwareSettingRow>, Reason> {
    let header = query
        .lines
        .iter()
        .find(|line| line.starts_with("Configurations:"))
        .ok_or("mlxconfig printed no table")?;
    let columns: Vec<&str> = ["Default", "Current", "Next Boot"]
        .into_iter()
        .filter(|column| header.contains(column))
        .collect();
    let mut rows = BTreeMap::new();
    for line in query
        .lines
        .iter()
        .filter(|line| line.starts_with([' ', '\t', '*', 'R']))
    {
        let mut words = line
            .trim_start_matches(['*', ' ', '\t'])
            .split_whitespace()
            .peekable();
        let is_read_only = words.next_if_eq(&"RO").is_some();
        let Some(name) = words.next() else { continue };
        let cells: Vec<Cell> = words.map(|word| Cell(word.to_owned())).collect();
        if cells.len() != columns.len() {
            return Err(format!(
                "mlxconfig printed {} in a form that is not known",
                one_line(name, 60)
            )
            .into());
        }
        let mut row = FirmwareSettingRow {
            default: None,
            current: None,
            next_boot: None,
            is_read_only,
        };
        for (column, cell) in columns.iter().zip(cells) {
            match *column {
                "Default" => row.default = Some(cell),
                "Current" => row.current = Some(cell),
                _ => row.next_boot = Some(cell),
            }
        }
        rows.insert(name.to_owned(), row);
    }
    Ok(rows)
}
