//! `switch_qos`: the classes of a port: which DSCP has which priority, by which queue it leaves,
//! which priorities are paused instead of dropped, what goes before all others, and what is done
//! against a pause without end.

use super::PfcWatchdogSettings;
use super::before::merge_before_values;
use super::body::{
    Qos, build_switch_reads, check_common_fields, extract_port_name, extract_switch_system,
};
use super::configuration::{DesiredPortSetting, SwitchPortSettings};
use super::judge::{SwitchConfigurations, SwitchDiffBuilder, take_back};
use crate::{Assessment, BodyError, DesiredResource, Fact, Read, ReadResults, ResourceKind};
use railwright_base::TargetKind;
use serde_json::Value;
use std::collections::BTreeSet;

/// The kind.
pub struct SwitchQos;

impl ResourceKind for SwitchQos {
    fn name(&self) -> &'static str {
        "switch_qos"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("port")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let watchdog = [
            "watchdog_detection_ms",
            "watchdog_restoration_ms",
            "watchdog_action",
        ];
        let mut fields = check_common_fields(
            body,
            &[
                &["priority", "dscp", "cnp_priority", "cnp_dscp"],
                &watchdog[..],
            ]
            .concat(),
        );
        for field in ["priority", "dscp"]
            .iter()
            .filter(|field| body.get(**field).is_none())
        {
            fields.error("", format!("`{field}` is missing"), None);
        }
        for field in ["priority", "cnp_priority"] {
            fields.number(field, 0..=7);
        }
        for field in ["dscp", "cnp_dscp"] {
            fields.number(field, 0..=63);
        }
        // sonic-net/sonic-buildimage: src/sonic-yang-models/yang-models/sonic-pfcwd.yang
        fields.number("watchdog_detection_ms", 100..=5000);
        fields.number("watchdog_restoration_ms", 100..=60_000);
        if !matches!(
            fields.get("watchdog_action").and_then(Value::as_str),
            None | Some("drop" | "forward" | "alert")
        ) {
            fields.error(
                "/watchdog_action",
                "`watchdog_action` is drop, forward or alert",
                None,
            );
        }
        for (own, cnp) in [("priority", "cnp_priority"), ("dscp", "cnp_dscp")] {
            if fields.get(cnp).is_some() && fields.get(own) == fields.get(cnp) {
                let help = "notifications in a lossless class are paused together with the data \
                            that they are about";
                fields.error(
                    &format!("/{cnp}"),
                    format!("`{cnp}` is that of the lossless class"),
                    Some(help.to_owned()),
                );
            }
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        build_switch_reads(wish)
    }

    fn part<'a>(&self, wish: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(wish))
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let said = SwitchConfigurations::of(wish, answers);
        let wanted = Qos::of(&wish.body, extract_switch_system(wish));
        let mut judge = SwitchDiffBuilder::new(wish, &said);
        add_class_attributes(&mut judge, &wanted);
        if let Some(watchdog) = &wanted.watchdog {
            let format_watchdog = |on: BTreeSet<u64>, watchdog: &PfcWatchdogSettings| {
                format!("{}: {watchdog}", format_number_list(on))
            };
            judge.attribute(
                "watchdog",
                format_watchdog(wanted.pfc(), watchdog),
                |port| {
                    port.watchdog()
                        .map(|(on, found)| format_watchdog(on, &found))
                        .into()
                },
            );
        }
        if extract_switch_system(wish).has_pools() {
            judge.attribute("lossless_pool", "there", |port| {
                port.has_lossless_pool()
                    .and_then(|is_there| is_there.then_some("there").into())
                    .into()
            });
        }
        judge.finish(&DesiredPortSetting::Qos(wanted))
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        merge_before_values(first, now)
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        take_back(last_applied, before, answers)
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &[
            "cnp_priority",
            "cnp_dscp",
            "watchdog_detection_ms",
            "watchdog_restoration_ms",
            "watchdog_action",
        ]
    }
}

fn add_class_attributes(judge: &mut SwitchDiffBuilder<'_>, wanted: &Qos) {
    let (mut dscps, mut queues, mut strict) = (Vec::new(), Vec::new(), Vec::new());
    for class in &wanted.classes {
        dscps.extend(class.dscp.iter().map(|dscp| (*dscp, Some(class.priority))));
        queues.push((class.priority, Some(class.priority)));
        strict.extend(class.strict.then_some(class.priority));
    }
    judge.attribute("dscp", format_number_pairs(dscps.iter().copied()), |port| {
        let found = dscps.iter().map(|(dscp, _)| (*dscp, port.priority(*dscp)));
        all_known(found).into()
    });
    judge.attribute("queue", format_number_pairs(queues.into_iter()), |port| {
        let found = wanted.classes.iter().map(|class| {
            let queue = find_agreed_queue(port, class.priority, class.pfc);
            (class.priority, queue)
        });
        all_known(found).into()
    });
    judge.attribute("pfc", format_number_list(wanted.pfc()), |port| {
        port.pfc().map(format_number_list).into()
    });
    if !strict.is_empty() {
        let wanted = format_number_list(strict.iter().copied());
        judge.attribute("strict", wanted, |port| {
            all_strict(port, strict.iter().copied())
                .map(format_number_list)
                .into()
        });
    }
}

/// The queue of a priority, where all ways to it agree: by DSCP, by a pause frame, and by the group
/// that it is held in. A pause that lands on another queue than the packets is the mismatch that no
/// check of the switch finds.
fn find_agreed_queue(port: &dyn SwitchPortSettings, priority: u64, pfc: bool) -> Fact<u64> {
    port.queue(priority).and_then(|queue| {
        let others = if pfc {
            vec![port.paused_queue(priority), port.group(priority)]
        } else {
            Vec::new()
        };
        let unknown = others.iter().find_map(Fact::why_unknown).map(str::to_owned);
        let agree = others.iter().all(|other| *other == Fact::Is(queue));
        unknown.map_or_else(|| agree.then_some(queue).into(), Fact::Unknown)
    })
}

/// The queues that go first, of these.
fn all_strict(port: &dyn SwitchPortSettings, queues: impl Iterator<Item = u64>) -> Fact<Vec<u64>> {
    queues.fold(Fact::Is(Vec::new()), |all, queue| {
        all.and_then(|mut all| {
            port.is_strict(queue).map(|is_strict| {
                all.extend(is_strict.then_some(queue));
                all
            })
        })
    })
}

/// `26: 3, 48: 6` where all of it is known; one that nobody knows leaves it unknown.
fn all_known(all: impl Iterator<Item = (u64, Fact<u64>)>) -> Fact<String> {
    let all: Vec<(u64, Fact<u64>)> = all.collect();
    match all.iter().find_map(|(_, to)| to.why_unknown()) {
        Some(why) => Fact::Unknown(why.to_owned()),
        None => Fact::Is(format_number_pairs(
            all.iter().map(|(from, to)| (*from, to.value().copied())),
        )),
    }
}

/// `26: 3, 48: 6`.
fn format_number_pairs(all: impl Iterator<Item = (u64, Option<u64>)>) -> String {
    let one = |(from, to): (u64, Option<u64>)| {
        format!(
            "{from}: {}",
            to.map_or_else(|| "none".to_owned(), |to| to.to_string())
        )
    };
    all.map(one).collect::<Vec<_>>().join(", ")
}

/// `3`, `3, 4`, `none`.
fn format_number_list(all: impl IntoIterator<Item = u64>) -> String {
    let all: Vec<String> = all.into_iter().map(|number| number.to_string()).collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}
