//! What passed over the rails of the job's hosts while it ran: a log says what NCCL chose, counters
//! say what went over it.

use super::expected::ObservedRailTraffic;
use crate::flow::RailTrafficState;
use crate::result::CheckOutcome;
use railwright_base::text::{format_count, format_duration};

const WANTED: &str = "data in both directions on every rail of the hosts, while the job runs";

/// Checks it.
pub(super) fn check_rail_traffic(traffic: &ObservedRailTraffic) -> CheckOutcome {
    let (flow, seconds) = match traffic {
        ObservedRailTraffic::Unseen(why) => return report_unknown_traffic(why.clone()),
        ObservedRailTraffic::Seen { flow, seconds } => (flow, format_duration(*seconds)),
    };
    let moved = flow.count(RailTrafficState::BothWays) + flow.count(RailTrafficState::OneWay);
    let mut quiet = Vec::new();
    for (state, word) in [
        (RailTrafficState::OneWay, "one way only"),
        (RailTrafficState::Nothing, "nothing"),
    ] {
        if let Some(rails) = flow.told(state) {
            quiet.push(format!("{word}: {rails}"));
        }
    }
    if !quiet.is_empty() {
        let effect = match moved {
            0 => {
                "whatever the log says, this job sends nothing over these rails: it goes over TCP, \
                 or it did nothing in that time"
            }
            _ => "the job goes over fewer rails than there are, or a part of it goes over TCP",
        };
        return CheckOutcome::failed("RW1308", format!("in {seconds}: {}", quiet.join("; ")))
            .expected(WANTED)
            .effect(effect)
            .next(
                "look again while it exchanges data: railwright watch traffic INVENTORY; compare \
                 NCCL_IB_HCA with the names of the devices",
            );
    }
    if let Some(silent) = flow.told(RailTrafficState::Unknown) {
        return report_unknown_traffic(format!("not known: {silent}"));
    }
    if moved == 0 {
        let why = "the counters were not read twice: the job was over before";
        return report_unknown_traffic(why.to_owned());
    }
    CheckOutcome::passed(format!(
        "{} carried data in both directions, looked at for {seconds}",
        format_count(moved, "rail")
    ))
    .expected(WANTED)
}

fn report_unknown_traffic(why: String) -> CheckOutcome {
    CheckOutcome::unknown("RW1309", why)
        .expected(WANTED)
        .effect("nothing is proven of what passed over the rails")
        .next("railwright explain RW1309")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Flow, Look};
    use crate::result::CheckVerdict;
    use railwright_resource::Fact;
    use railwright_resource::traffic::{RailTrafficRates, Rate};

    fn of(looks: &[[Option<(f64, f64)>; 2]]) -> CheckOutcome {
        let mut flow = Flow::default();
        for rails in looks {
            let fact = |rates: &Option<(f64, f64)>| match rates {
                Some((received, sent)) => Fact::Is(RailTrafficRates {
                    received: Rate::GigabitsPerSecond(*received),
                    sent: Rate::GigabitsPerSecond(*sent),
                }),
                None => Fact::Unknown("no answer".into()),
            };
            let rail = |place: usize| [("gpu1".to_owned(), fact(&rails[place]))].into();
            flow.take(&Look::from([
                ("e0".to_owned(), rail(0)),
                ("e1".to_owned(), rail(1)),
            ]));
        }
        check_rail_traffic(&ObservedRailTraffic::Seen { flow, seconds: 10 })
    }

    #[test]
    fn both_directions_of_every_rail_have_to_carry() {
        let busy = Some((90.0, 80.0));
        let good = of(&[[Some((0.0, 0.0)), busy], [busy, Some((0.0, 0.0))]]);
        assert_eq!(
            (good.verdict, good.measured.as_str()),
            (
                CheckVerdict::Passed,
                "2 rails carried data in both directions, looked at for 10 s"
            )
        );
        let quiet = of(&[[busy, Some((0.0, 0.0))]]);
        assert_eq!(
            (quiet.code, quiet.measured.as_str()),
            (Some("RW1308"), "in 10 s: nothing: e1 of gpu1")
        );
        let one_way = of(&[[busy, Some((90.0, 0.0))]]);
        assert_eq!(
            (one_way.code, one_way.measured.as_str()),
            (Some("RW1308"), "in 10 s: one way only: e1 of gpu1")
        );
        let none = of(&[[Some((0.0, 0.0)), Some((0.0, 0.0))]]);
        assert_eq!(
            (none.verdict, none.effect.contains("TCP")),
            (CheckVerdict::Failed, true),
            "{none:?}"
        );
    }

    #[test]
    fn what_was_not_seen_proves_nothing() {
        assert_eq!(
            of(&[[Some((9.0, 9.0)), None]]).measured,
            "not known: e1 of gpu1"
        );
        for evaluated in [
            of(&[[None, None]]),
            of(&[]),
            check_rail_traffic(&ObservedRailTraffic::Unseen("it has ended".to_owned())),
        ] {
            assert_eq!(
                (evaluated.verdict, evaluated.code),
                (CheckVerdict::Unknown, Some("RW1309")),
                "{evaluated:?}"
            );
        }
        // A rail that is known to be quiet disproves, whatever is not known of others.
        assert_eq!(
            of(&[[Some((0.0, 0.0)), None]]).verdict,
            CheckVerdict::Failed
        );
    }
}
