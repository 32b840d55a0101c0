//! The firmware of a simulated host's NICs: settings with what the factory set, what runs and what
//! the next boot will bring. It answers as `mlxconfig` does, and refuses what that refuses.

use super::host::{Answered, Done};
use std::collections::BTreeMap;

/// A setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// What the factory set.
    pub default: String,
    /// What runs.
    pub current: String,
    /// What the next boot will bring.
    pub next_boot: String,
    /// A reboot is not enough for it.
    pub needs_power_cycle: bool,
}

/// A card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// Its PCI address.
    pub device: String,
    /// Its settings, by name.
    pub settings: BTreeMap<String, Setting>,
}

/// The cards of a host, by netdev.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedFirmware(pub BTreeMap<String, Card>);

impl SimulatedFirmware {
    /// Puts a setting on the card of a netdev, as the factory would.
    pub fn put(&mut self, netdev: &str, name: &str, value: &str, needs_power_cycle: bool) {
        let number = self.0.len();
        let card = self.0.entry(netdev.to_owned()).or_insert_with(|| Card {
            device: format!("0000:c{number:x}:00.0"),
            ..Card::default()
        });
        let value = value.to_owned();
        let setting = Setting {
            default: value.clone(),
            current: value.clone(),
            next_boot: value,
            needs_power_cycle,
        };
        card.settings.insert(name.to_owned(), setting);
    }

    /// The answer to `Read::FirmwareSettings`.
    pub fn read(&self, netdev: &str, is_there: bool) -> Answered {
        let Some(card) = self.0.get(netdev) else {
            return (i32::from(!is_there), String::new());
        };
        let mut out = format!(
            "== device {}\n== query 0 mlxconfig\n|Configurations:  Default  Current  Next Boot\n",
            card.device
        );
        for (name, setting) in &card.settings {
            out.push_str(&format!(
                "|  {name}  {}  {}  {}\n",
                setting.default, setting.current, setting.next_boot
            ));
        }
        (0, out)
    }

    /// `mlxconfig set`.
    pub fn set(&mut self, device: &str, settings: &BTreeMap<String, String>) -> Done {
        let card = self.0.values_mut().find(|card| card.device == device);
        let card = card.ok_or_else(|| (1, format!("-E- Failed to open the device: {device}")))?;
        if let Some(name) = settings
            .keys()
            .find(|name| !card.settings.contains_key(*name))
        {
            return Err((
                1,
                format!("-E- The Device doesn't support {name} parameter"),
            ));
        }
        for (name, value) in settings {
            if let Some(setting) = card.settings.get_mut(name) {
                setting.next_boot = value.clone();
            }
        }
        Ok(())
    }

    /// A boot of the host; one after its power was off brings everything.
    pub fn boot(&mut self, power_was_off: bool) {
        let settings = self
            .0
            .values_mut()
            .flat_map(|card| card.settings.values_mut());
        for setting in settings.filter(|setting| power_was_off || !setting.needs_power_cycle) {
            setting.current = setting.next_boot.clone();
        }
    }
}
