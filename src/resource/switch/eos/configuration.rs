//! A configuration of EOS as one among those of other systems: which edits a wish comes to, and
//! what is put back.

use super::config::{CLASSES, EosConfig};
use super::edit::EosEdit;
use super::key::{
    ECN, EosSettingKey, GUARANTEED, MTU, NO_DROP, OF_PORT, PFC, PRIORITY, TRUST, WATCHDOG,
    WATCHDOG_ACTION, WATCHDOG_TIMER,
};
use super::plan_edits;
use super::port_view::EosPortView;
use crate::Reading;
use crate::switch::body::Qos;
use crate::switch::configuration::{
    DesiredPortSetting, RestorableSetting, SwitchConfiguration, SwitchPortSettings,
    unlike_as_a_whole,
};
use crate::switch::edit::SwitchEdit;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Below it `before` has what all ports of the switch share, which is not put back.
const SHARED: &str = "shared";

/// A setting of a port that is put back, as `before` names it: `mtu`, `queue 3|bandwidth
/// guaranteed`, `priority-flow-control priority 3`.
#[derive(Clone, Copy)]
enum EosPortSetting {
    Own(EosSettingKey),
    Pause(u64),
    Queue(u64, EosSettingKey),
}

impl EosPortSetting {
    fn named(name: &str) -> Option<Self> {
        let key = |words: &str| OF_PORT.into_iter().find(|key| key.words == words);
        if let Some(priority) = name.strip_prefix(NO_DROP.words) {
            return priority.trim().parse().ok().map(EosPortSetting::Pause);
        }
        match name
            .strip_prefix("queue ")
            .and_then(|rest| rest.split_once('|'))
        {
            Some((queue, words)) => Some(EosPortSetting::Queue(queue.parse().ok()?, key(words)?)),
            None => key(name).map(EosPortSetting::Own),
        }
    }

    fn name(self) -> String {
        match self {
            EosPortSetting::Own(key) => key.words.to_owned(),
            EosPortSetting::Pause(priority) => format!("{} {priority}", NO_DROP.words),
            EosPortSetting::Queue(queue, key) => format!("queue {queue}|{}", key.words),
        }
    }

    /// The command there, with the word of its queue's section.
    fn line<'a>(self, view: &EosPortView<'a>) -> Option<(Option<&'static str>, &'a str)> {
        match self {
            EosPortSetting::Own(key) => view.own_line(key).map(|line| (None, line)),
            EosPortSetting::Pause(priority) => {
                view.own_priority_line(priority).map(|line| (None, line))
            }
            EosPortSetting::Queue(queue, key) => view
                .own_queue_line(queue, key)
                .map(|(word, line)| (Some(word), line)),
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
        let is_off = |line: &&str| {
            [PFC, WATCHDOG]
                .iter()
                .any(|key| key.opposite == Some(*line))
                || *line == PRIORITY.words
        };
        let value = |line: &str| match line.strip_prefix(self.key().as_str()).map(str::trim) {
            Some("") => Reading::is("there"),
            Some(value) => Reading::is(value),
            None => Reading::is(line),
        };
        line.filter(|line| !is_off(line))
            .map_or(Reading::Absent, value)
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
            EosPortSetting::Pause(priority) => plan_edits::without_pfc(priority),
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

    fn edits(&self, port: &str, wanted: &DesiredPortSetting) -> Result<Vec<SwitchEdit>, String> {
        let edits = match wanted {
            DesiredPortSetting::Port { mtu, up } => {
                plan_edits::plan_eos_port_edits(self, port, *mtu, *up)?
            }
            DesiredPortSetting::Qos(wanted) => plan_edits::plan_eos_qos_edits(self, port, wanted)?,
            DesiredPortSetting::Marking { queue, thresholds } => {
                plan_edits::plan_eos_marking_edits(self, port, *queue, *thresholds)?
            }
            DesiredPortSetting::Cable { .. } => {
                return Err("EOS has no setting for the length of a cable".to_owned());
            }
        };
        Ok(wrap_eos_edits(edits))
    }

    fn before(&self, port: &str, wanted: &DesiredPortSetting) -> Value {
        let Some(view) = EosPortView::of(self, port) else {
            return Value::Null;
        };
        let places: Vec<EosPortSetting> = match wanted {
            // A port that we brought up is never taken down again: others may have come to use it.
            DesiredPortSetting::Port { mtu, .. } => {
                mtu.iter().map(|_| EosPortSetting::Own(MTU)).collect()
            }
            DesiredPortSetting::Marking { queue, .. } => vec![EosPortSetting::Queue(*queue, ECN)],
            DesiredPortSetting::Qos(wanted) => of_classes(&view, wanted),
            DesiredPortSetting::Cable { .. } => Vec::new(),
        };
        let at = |place: EosPortSetting| (place.name(), place.remembered(&view));
        let mut before: Map<String, Value> = places.into_iter().map(at).collect();
        if let DesiredPortSetting::Qos(wanted) = wanted {
            let dscps = wanted.classes.iter().flat_map(|class| &class.dscp);
            let said = |dscp: u64| {
                self.mapped(CLASSES, dscp)
                    .map_or(Value::Null, |(line, _)| Value::from(line))
            };
            before.insert(
                SHARED.to_owned(),
                dscps
                    .map(|dscp| (dscp.to_string(), said(*dscp)))
                    .collect::<Map<_, _>>()
                    .into(),
            );
        }
        Value::Object(before)
    }

    fn kept(&self, port: &str, before: &Value) -> Vec<RestorableSetting> {
        let Some(view) = EosPortView::of(self, port) else {
            return Vec::new();
        };
        let kept = |(place, _, was): Was| RestorableSetting {
            called: place.called(),
            was: place.reading(was),
            is: place.reading(place.line(&view).map(|(_, line)| line)),
        };
        list_before_settings(before).map(kept).collect()
    }

    fn put_back(&self, port: &str, before: &Value) -> Vec<SwitchEdit> {
        let Some(view) = EosPortView::of(self, port) else {
            return Vec::new();
        };
        let edit = |(place, word, was): Was| {
            let is = place.line(&view);
            if place.reading(was) == place.reading(is.map(|(_, line)| line)) {
                return None;
            }
            let queue = match place {
                EosPortSetting::Queue(queue, _) => Some(plan_edits::queue_section(
                    self,
                    is.and_then(|(word, _)| word).or(word),
                    queue,
                )),
                _ => None,
            };
            let section = std::iter::once(format!("interface {port}"))
                .chain(queue)
                .collect();
            Some(EosEdit {
                section,
                line: was.map_or_else(|| place.without(), str::to_owned),
                key: place.key(),
            })
        };
        wrap_eos_edits(list_before_settings(before).filter_map(edit).collect())
    }

    fn stays(&self, before: &Value) -> Vec<String> {
        let shared = before
            .get(SHARED)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let stays = shared.filter_map(|(dscp, was)| {
            let (is, _) = self.mapped(CLASSES, dscp.parse().ok()?)?;
            (was.as_str() != Some(is))
                .then(|| format!("{is} stays: other ports may need it (`no qos map dscp {dscp}`)"))
        });
        stays.collect()
    }

    fn unlike(&self, other: &dyn SwitchConfiguration) -> Option<BTreeSet<String>> {
        unlike_as_a_whole(self, other)
    }
}

fn of_classes(view: &EosPortView, wanted: &Qos) -> Vec<EosPortSetting> {
    let mut places = vec![EosPortSetting::Own(TRUST), EosPortSetting::Own(PFC)];
    let pauses = view
        .own_priorities()
        .map(|(priority, _)| priority)
        .chain(wanted.pfc());
    places.extend(pauses.map(EosPortSetting::Pause));
    if wanted.watchdog.is_some() {
        places.extend([WATCHDOG, WATCHDOG_ACTION, WATCHDOG_TIMER].map(EosPortSetting::Own));
        places.extend(
            wanted
                .pfc()
                .into_iter()
                .map(|queue| EosPortSetting::Queue(queue, GUARANTEED)),
        );
    }
    places.extend(
        wanted
            .classes
            .iter()
            .filter(|class| class.strict)
            .map(|class| EosPortSetting::Queue(class.priority, PRIORITY)),
    );
    places
}

/// A place of a port, and the command that stood there, with the section of its queue.
type Was<'a> = (EosPortSetting, Option<&'a str>, Option<&'a str>);

fn list_before_settings(before: &Value) -> impl Iterator<Item = Was<'_>> {
    before
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, was)| {
            let place = EosPortSetting::named(name)?;
            Some(
                match (place, was.as_str().and_then(|was| was.split_once(": "))) {
                    (EosPortSetting::Queue(..), Some((word, line))) => {
                        (place, Some(word), Some(line))
                    }
                    _ => (place, None, was.as_str()),
                },
            )
        })
}

fn wrap_eos_edits(edits: Vec<EosEdit>) -> Vec<SwitchEdit> {
    edits.into_iter().map(SwitchEdit::Eos).collect()
}
