//! A configuration of EOS as one among those of other systems: which edits a desired setting
//! comes to, and what is put back.

use super::config::{CLASSES, EosConfig};
use super::edit::EosEdit;
use super::key::{
    ECN, EosSettingKey, GUARANTEED, MTU, NO_DROP, PFC, PRIORITY, TRUST, WATCHDOG, WATCHDOG_ACTION,
    WATCHDOG_TIMER,
};
use super::plan_edits;
use super::port_view::EosPortView;
use crate::Reading;
use crate::switch::SwitchError;
use crate::switch::body::Qos;
use crate::switch::configuration::{
    DesiredPortSetting, RestorableSetting, SHARED, SwitchConfiguration, SwitchPortSettings,
    list_shared_settings, unlike_as_a_whole,
};
use crate::switch::edit::SwitchEdit;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A setting of a port that is put back, as `before` names it: `mtu`, `queue 3|bandwidth
/// guaranteed`, `priority-flow-control priority 3`.
#[derive(Clone, Copy)]
pub(super) enum EosPortSetting {
    Own(EosSettingKey),
    Pause(u64),
    Queue(u64, EosSettingKey),
}

impl EosPortSetting {
    fn named(name: &str) -> Option<Self> {
        if let Some(priority) = name.strip_prefix(NO_DROP.words) {
            return Some(EosPortSetting::Pause(priority.trim().parse().ok()?));
        }
        let Some(of_queue) = name.strip_prefix("queue ") else {
            return Some(EosPortSetting::Own(EosSettingKey::find(name)?));
        };
        let (queue, words) = of_queue.split_once('|')?;
        let key = EosSettingKey::find(words)?;
        Some(EosPortSetting::Queue(queue.parse().ok()?, key))
    }

    fn name(self) -> String {
        match self {
            EosPortSetting::Own(key) => key.words.to_owned(),
            EosPortSetting::Pause(priority) => plan_edits::format_pfc_key(priority),
            EosPortSetting::Queue(queue, key) => format!("queue {queue}|{}", key.words),
        }
    }

    /// The command there, with the word of its queue's section.
    fn line<'a>(self, view: &EosPortView<'a>) -> Option<(Option<&'static str>, &'a str)> {
        match self {
            EosPortSetting::Own(key) => Some((None, view.own_line(key)?)),
            EosPortSetting::Pause(priority) => Some((None, view.own_priority_line(priority)?)),
            EosPortSetting::Queue(queue, key) => {
                let (word, line) = view.own_queue_line(queue, key)?;
                Some((Some(word), line))
            }
        }
    }

    fn key(self) -> String {
        match self {
            EosPortSetting::Own(key) | EosPortSetting::Queue(_, key) => key.words.to_owned(),
            EosPortSetting::Pause(_) => self.name(),
        }
    }

    /// As people call it.
    fn called(self) -> String {
        let name = self
            .name()
            .replace('|', " ")
            .replace("priority-flow-control pause ", "");
        name.replace("priority-flow-control", "pfc")
            .replace(ECN.words, "ecn")
    }

    /// What a command says there. What is off from the start may be shown as off, and says nothing.
    fn reading(self, line: Option<&str>) -> Reading {
        let Some(line) = line else {
            return Reading::Absent;
        };
        if [PFC.opposite, WATCHDOG.opposite, Some(PRIORITY.words)].contains(&Some(line)) {
            return Reading::Absent;
        }
        match line.strip_prefix(&self.key()).map(str::trim) {
            Some("") => Reading::is("there"),
            Some(value) => Reading::is(value),
            None => Reading::is(line),
        }
    }

    /// The command there as `before` keeps it, with the section of its queue: `tx-queue: no
    /// priority`.
    fn remembered(self, view: &EosPortView) -> Value {
        match self.line(view) {
            None => Value::Null,
            Some((None, line)) => Value::from(line),
            Some((Some(word), line)) => Value::from(format!("{word}: {line}")),
        }
    }

    fn without(self) -> String {
        match self {
            EosPortSetting::Own(key) | EosPortSetting::Queue(_, key) => key.without.to_owned(),
            EosPortSetting::Pause(priority) => plan_edits::format_pfc_removal(priority),
        }
    }
}

impl SwitchConfiguration for EosConfig {
    fn ports(&self) -> Vec<&str> {
        self.port_names()
    }

    fn port<'a>(&'a self, name: &'a str) -> Option<Box<dyn SwitchPortSettings + 'a>> {
        EosPortView::of(self, name).map(|view| Box::new(view) as Box<dyn SwitchPortSettings>)
    }

    fn edits(
        &self,
        port: &str,
        desired: &DesiredPortSetting,
    ) -> Result<Vec<SwitchEdit>, SwitchError> {
        let edits = match desired {
            DesiredPortSetting::Port { mtu, up } => {
                plan_edits::plan_eos_port_edits(self, port, *mtu, *up)?
            }
            DesiredPortSetting::Qos(desired) => {
                plan_edits::plan_eos_qos_edits(self, port, desired)?
            }
            DesiredPortSetting::Marking { queue, thresholds } => {
                plan_edits::plan_eos_marking_edits(self, port, *queue, *thresholds)?
            }
            DesiredPortSetting::Cable { .. } => {
                let why = "EOS has no setting for the length of a cable";
                return Err(SwitchError::Unsupported(why.to_owned()));
            }
        };
        Ok(edits.into_iter().map(SwitchEdit::Eos).collect())
    }

    fn before(&self, port: &str, desired: &DesiredPortSetting) -> Value {
        let Some(view) = EosPortView::of(self, port) else {
            return Value::Null;
        };
        let settings = match desired {
            // A port that we brought up is never taken down again: others may have come to use it.
            DesiredPortSetting::Port { mtu: Some(_), .. } => vec![EosPortSetting::Own(MTU)],
            DesiredPortSetting::Marking { queue, .. } => vec![EosPortSetting::Queue(*queue, ECN)],
            DesiredPortSetting::Qos(desired) => list_class_settings(&view, desired),
            DesiredPortSetting::Port { mtu: None, .. } | DesiredPortSetting::Cable { .. } => {
                Vec::new()
            }
        };
        let mut before = Map::new();
        for setting in settings {
            before.insert(setting.name(), setting.remembered(&view));
        }
        if let DesiredPortSetting::Qos(desired) = desired {
            let mut shared = Map::new();
            for (dscp, _) in desired.dscps() {
                let line = self.mapped(CLASSES, dscp).map(|(line, _)| line);
                shared.insert(dscp.to_string(), line.into());
            }
            before.insert(SHARED.to_owned(), shared.into());
        }
        Value::Object(before)
    }

    fn kept(&self, port: &str, before: &Value) -> Vec<RestorableSetting> {
        let Some(view) = EosPortView::of(self, port) else {
            return Vec::new();
        };
        let mut settings = Vec::new();
        for (setting, _, was) in list_before_settings(before).unwrap_or_default() {
            let line = setting.line(&view).map(|(_, line)| line);
            settings.push(RestorableSetting {
                called: setting.called(),
                was: setting.reading(was),
                is: setting.reading(line),
            });
        }
        settings
    }

    fn put_back(&self, port: &str, before: &Value) -> Vec<SwitchEdit> {
        let Some(view) = EosPortView::of(self, port) else {
            return Vec::new();
        };
        let mut edits = Vec::new();
        for (setting, word_before, was) in list_before_settings(before).unwrap_or_default() {
            let (word, line) = setting.line(&view).unzip();
            if setting.reading(was) == setting.reading(line) {
                continue;
            }
            let section = match setting {
                EosPortSetting::Queue(queue, _) => {
                    let word = word.flatten().or(word_before);
                    Some(plan_edits::format_queue_section(self, word, queue))
                }
                _ => None,
            };
            let line = was.map_or_else(|| setting.without(), str::to_owned);
            let edit = EosEdit::of_port(port, section, &setting.key(), &line);
            edits.push(SwitchEdit::Eos(edit));
        }
        edits
    }

    fn stays(&self, before: &Value) -> Vec<String> {
        let mut stays = Vec::new();
        for (dscp, was) in list_shared_settings(before) {
            let Ok(number) = dscp.parse() else { continue };
            if let Some((is, _)) = self.mapped(CLASSES, number)
                && was.as_str() != Some(is)
            {
                stays.push(format!(
                    "{is} stays: other ports may need it (`no qos map dscp {dscp}`)"
                ));
            }
        }
        stays
    }

    fn unlike(&self, other: &dyn SwitchConfiguration) -> Option<BTreeSet<String>> {
        unlike_as_a_whole(self, other)
    }
}

fn list_class_settings(view: &EosPortView, desired: &Qos) -> Vec<EosPortSetting> {
    let mut settings = vec![EosPortSetting::Own(TRUST), EosPortSetting::Own(PFC)];
    let pauses = view.own_priorities().into_iter().chain(desired.pfc());
    settings.extend(pauses.map(EosPortSetting::Pause));
    if desired.watchdog.is_some() {
        settings.extend([WATCHDOG, WATCHDOG_ACTION, WATCHDOG_TIMER].map(EosPortSetting::Own));
        for queue in desired.pfc() {
            settings.push(EosPortSetting::Queue(queue, GUARANTEED));
        }
    }
    for queue in desired.strict_queues() {
        settings.push(EosPortSetting::Queue(queue, PRIORITY));
    }
    settings
}

/// A setting of a port with the word of its queue's section and the command, as they stood there.
type SettingBefore<'a> = (EosPortSetting, Option<&'a str>, Option<&'a str>);

/// The settings that `before` has; none where this version does not know one of its names or
/// values.
pub(super) fn list_before_settings(before: &Value) -> Option<Vec<SettingBefore<'_>>> {
    let mut settings = Vec::new();
    for (name, was) in before.as_object()? {
        if name == SHARED {
            BTreeMap::<u64, Option<String>>::deserialize(was).ok()?;
            continue;
        }
        let setting = EosPortSetting::named(name)?;
        let was = Option::<&str>::deserialize(was).ok()?;
        match (setting, was.and_then(|was| was.split_once(": "))) {
            (EosPortSetting::Queue(..), Some((word, line))) => {
                settings.push((setting, Some(word), Some(line)));
            }
            _ => settings.push((setting, None, was)),
        }
    }
    Some(settings)
}
