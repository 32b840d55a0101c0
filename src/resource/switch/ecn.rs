//! `switch_ecn`: from how many bytes in the queue of a priority on a port marks packets, so that senders slow down before anybody is
//! paused.

use super::Thresholds;
use super::before::remembered;
use super::body::{common, port, reads, thresholds};
use super::configuration::{Port, Wanted};
use super::judge::{Judge, Said, take_back};
use crate::{Answers, Assessment, BodyError, Kind, Read, Wish};
use railwright_base::TargetKind;
use serde_json::Value;

/// The kind.
pub struct SwitchEcn;

impl Kind for SwitchEcn {
    fn name(&self) -> &'static str {
        "switch_ecn"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("port")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = common(body, &["priority", "min_bytes", "max_bytes", "probability_percent"]);
        let required = ["priority", "min_bytes", "max_bytes", "probability_percent"];
        for field in required.iter().filter(|field| body.get(**field).is_none()) {
            fields.error("", format!("`{field}` is missing"), None);
        }
        fields.number("priority", 0..=7);
        fields.number("min_bytes", 1..=u64::from(u32::MAX));
        fields.number("max_bytes", 1..=u64::from(u32::MAX));
        fields.number("probability_percent", 1..=100);
        let wanted = thresholds(body);
        if wanted.min_bytes > wanted.max_bytes {
            let help = "packets are marked from the lower one on, and all of them above the higher one";
            fields.error("/min_bytes", "`min_bytes` is above `max_bytes`", Some(help.to_owned()));
        }
        fields.finish()
    }

    fn reads(&self, wish: &Wish) -> Vec<Read> {
        reads(wish)
    }

    fn part<'a>(&self, wish: &'a Wish) -> Option<&'a str> {
        Some(port(wish))
    }

    fn assess(&self, wish: &Wish, answers: &Answers) -> Assessment {
        let said = Said::of(wish, answers);
        let wanted = thresholds(&wish.body);
        let queue = priority(wish);
        let mut judge = Judge::new(wish, &said);
        let mut attribute = |name: &str, value: u64, of: fn(Thresholds) -> u64| {
            let found = |port: &dyn Port| port.marking(queue).map(of).into();
            judge.attribute(name, value, found);
        };
        attribute("min_bytes", wanted.min_bytes, |found| found.min_bytes);
        attribute("max_bytes", wanted.max_bytes, |found| found.max_bytes);
        attribute("probability_percent", wanted.probability_percent, |found| found.probability_percent);
        judge.finish(&Wanted::Marking { queue, thresholds: wanted })
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        remembered(first, now)
    }

    fn undo(&self, last_applied: &Wish, before: &Value, answers: &Answers) -> Assessment {
        take_back(last_applied, before, answers)
    }
}

fn priority(wish: &Wish) -> u64 {
    wish.body.get("priority").and_then(Value::as_u64).unwrap_or_default()
}
