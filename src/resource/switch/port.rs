//! `switch_port`: how large the packets of a port may be, and whether it is up.

use super::before::remembered;
use super::body::{common, mtu, port, reads};
use super::configuration::Wanted;
use super::judge::{Judge, Said, take_back};
use crate::{Answers, Assessment, BodyError, Kind, Read, Wish};
use railwright_base::TargetKind;
use serde_json::Value;

/// The kind.
pub struct SwitchPort;

impl Kind for SwitchPort {
    fn name(&self) -> &'static str {
        "switch_port"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("port")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = common(body, &["mtu", "up"]);
        fields.number("mtu", mtu(body));
        fields.flag("up");
        if fields.get("mtu").is_none() && fields.get("up").is_none() {
            fields.error("", "nothing is wished of the port", Some("give `mtu` or `up`".to_owned()));
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
        let (mtu, up) = (wish.body.get("mtu").and_then(Value::as_u64), wish.body.get("up").and_then(Value::as_bool));
        let mut judge = Judge::new(wish, &said);
        if let Some(mtu) = mtu {
            judge.attribute("mtu", mtu, |port| port.mtu().into());
        }
        if let Some(up) = up {
            judge.attribute("up", up, |port| port.up().into());
        }
        judge.finish(&Wanted::Port { mtu, up })
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        remembered(first, now)
    }

    fn undo(&self, last_applied: &Wish, before: &Value, answers: &Answers) -> Assessment {
        take_back(last_applied, before, answers)
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["mtu", "up"]
    }
}
