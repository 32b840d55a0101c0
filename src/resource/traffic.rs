//! What passed over the RDMA devices of a host's rails, read again and again: how much counters
//! rose in between are the live rates. Text: `uptime SECONDS`, then for each netdev `port NAME` and
//! lines `counter value` of its RDMA device. The world may read all of it.

use super::Fact;
use super::counters::PRINT_UPTIME;
use railwright_base::Reason;
use railwright_base::quote::sh_words;
use railwright_base::text::one_line;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a counter counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrafficCounterUnit {
    /// Four bytes.
    Word,
    Byte,
    Packet,
}

/// A counter of what came and one of what was sent.
struct TrafficCounterPair {
    folder: &'static str,
    received: &'static str,
    sent: &'static str,
    unit: TrafficCounterUnit,
}

const fn new_counter_pair(
    folder: &'static str,
    received: &'static str,
    sent: &'static str,
    unit: TrafficCounterUnit,
) -> TrafficCounterPair {
    TrafficCounterPair {
        folder,
        received,
        sent,
        unit,
    }
}

/// The first pair that a device has counts. The data counters of a port are in words of four bytes
/// (torvalds/linux: Documentation/ABI/stable/sysfs-class-infiniband); those of eRDMA are by
/// Alibaba's driver and by the kernel's (AliyunContainerService's and torvalds/linux:
/// drivers/infiniband/hw/erdma/erdma_verbs.c), of Broadcom bnxt_re
/// (drivers/infiniband/hw/bnxt_re/hw_counters.c), of Soft-RoCE
/// (drivers/infiniband/sw/rxe/rxe_hw_counters.c), which counts packets alone.
const ROWS: [TrafficCounterPair; 5] = [
    new_counter_pair(
        "counters",
        "port_rcv_data",
        "port_xmit_data",
        TrafficCounterUnit::Word,
    ),
    new_counter_pair(
        "hw_counters",
        "hw_rx_bytes_cnt",
        "hw_tx_bytes_cnt",
        TrafficCounterUnit::Byte,
    ),
    new_counter_pair(
        "hw_counters",
        "rx_bytes_cnt",
        "tx_bytes_cnt",
        TrafficCounterUnit::Byte,
    ),
    new_counter_pair(
        "hw_counters",
        "rx_bytes",
        "tx_bytes",
        TrafficCounterUnit::Byte,
    ),
    new_counter_pair(
        "hw_counters",
        "rcvd_pkts",
        "sent_pkts",
        TrafficCounterUnit::Packet,
    ),
];

/// The section that asks a host. A device is found by its netdev, or by the one below it (a
/// VLAN's); a soft one says it in `parent`.
pub fn render_rail_traffic_script(netdevs: &[String]) -> String {
    let files: Vec<String> = ROWS
        .iter()
        .flat_map(|row| [row.received, row.sent].map(|name| format!("{}/{name}", row.folder)))
        .collect();
    format!(
        r#"{PRINT_UPTIME}
for n in {netdevs}; do printf 'port %s\n' "$n"
[ -d "$R/sys/class/net/$n" ] || {{ echo absent; continue; }}
w=$n; for l in "$R/sys/class/net/$n"/lower_*; do [ ! -e "$l" ] || w="$w ${{l##*/lower_}}"; done
for d in "$R"/sys/class/infiniband/*; do p=; {{ read -r p <"$d/parent"; }} 2>/dev/null
o=; for m in $w; do [ ! -e "$d/device/net/$m" ] && [ "$p" != "$m" ] || o=1; done; [ -n "$o" ] || continue
for c in "$d"/ports/*; do for f in {files}; do v=; {{ read -r v <"$c/$f"; }} 2>/dev/null; [ -z "$v" ] || printf '%s %s\n' "${{f#*/}}" "$v"; done; done
done; done
exit 0
"#,
        netdevs = sh_words(netdevs.iter().map(String::as_str)),
        files = files.join(" ")
    )
}

/// Rails beyond so many of a host are not taken in.
const RAILS_MAX: usize = 1024;

/// One reading of a host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RailTrafficSample {
    /// Seconds since it was started.
    uptime_s: Option<f64>,
    rails: BTreeMap<String, RailTrafficCounters>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct RailTrafficCounters {
    is_absent: bool,
    /// Nothing inside is what is no number.
    counts: BTreeMap<String, Option<u64>>,
}

/// How fast data passes in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "unit", content = "rate", rename_all = "snake_case")]
pub enum Rate {
    /// Gb/s, of data.
    GigabitsPerSecond(f64),
    /// Packets a second, where a device counts nothing else.
    PacketsPerSecond(f64),
}

impl Rate {
    /// The number.
    pub fn number(self) -> f64 {
        match self {
            Rate::GigabitsPerSecond(number) | Rate::PacketsPerSecond(number) => number,
        }
    }
}

/// What passes over a rail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RailTrafficRates {
    /// What comes.
    pub received: Rate,
    /// What goes.
    pub sent: Rate,
}

impl RailTrafficSample {
    /// Reads what the section printed; what makes no sense is left out.
    pub fn parse(text: &str) -> RailTrafficSample {
        let mut sample = RailTrafficSample::default();
        let mut name: Option<String> = None;
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match (
                word,
                name.as_ref().and_then(|name| sample.rails.get_mut(name)),
            ) {
                ("uptime", None) => {
                    sample.uptime_s = match rest.trim().parse::<f64>() {
                        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Some(seconds),
                        _ => None,
                    };
                }
                ("port", _) => {
                    name = (sample.rails.len() < RAILS_MAX).then(|| one_line(rest, 64));
                    if let Some(name) = &name {
                        let counters = RailTrafficCounters::default();
                        sample.rails.insert(name.clone(), counters);
                    }
                }
                ("absent", Some(rail)) => rail.is_absent = true,
                (counter, Some(rail))
                    if ROWS
                        .iter()
                        .any(|row| [row.received, row.sent].contains(&counter)) =>
                {
                    let value = rest.trim().parse::<u64>().ok();
                    // Ports of one device, and devices of one netdev, are one rail.
                    let sum = match (rail.counts.get(counter), value) {
                        (None, value) => value,
                        (Some(Some(known)), Some(value)) => Some(known.wrapping_add(value)),
                        (Some(_), _) => None,
                    };
                    rail.counts.insert(counter.to_owned(), sum);
                }
                _ => {}
            }
        }
        sample
    }

    /// What passed over each rail since an earlier sample. Nothing where the two cannot be
    /// compared: why fits after "unknown:".
    pub fn since(
        &self,
        earlier: &RailTrafficSample,
    ) -> Result<BTreeMap<String, Fact<RailTrafficRates>>, Reason> {
        let seconds = earlier
            .uptime_s
            .zip(self.uptime_s)
            .map(|(earlier, now)| now - earlier);
        match seconds {
            None => Err("its uptime makes no sense".into()),
            Some(seconds) if seconds < 0.0 => Err("it was started anew".into()),
            Some(seconds) if seconds < 0.01 => Err("no time passed between the looks".into()),
            Some(seconds) => {
                let mut rates = BTreeMap::new();
                for (name, rail) in &self.rails {
                    let rate = rail.since(earlier.rails.get(name), seconds);
                    rates.insert(name.clone(), rate);
                }
                Ok(rates)
            }
        }
    }
}

impl RailTrafficCounters {
    fn since(&self, earlier: Option<&RailTrafficCounters>, seconds: f64) -> Fact<RailTrafficRates> {
        let Some(earlier) = earlier else {
            return Fact::Unknown("it came between the looks".into());
        };
        if self.is_absent || earlier.is_absent {
            return if self.is_absent {
                Fact::Absent
            } else {
                Fact::Unknown("it came between the looks".into())
            };
        }
        let Some(row) = ROWS.iter().find(|row| {
            [row.received, row.sent]
                .iter()
                .all(|name| self.counts.contains_key(*name))
        }) else {
            return Fact::Unknown("no RDMA device on it counts what passes".into());
        };
        let received = self.count_rise(earlier, row.received);
        let sent = self.count_rise(earlier, row.sent);
        match (received, sent) {
            (Ok(received), Ok(sent)) => Fact::Is(RailTrafficRates {
                received: compute_rate(row.unit, received, seconds),
                sent: compute_rate(row.unit, sent, seconds),
            }),
            (Err(why), _) | (_, Err(why)) => Fact::Unknown(why.to_owned().into()),
        }
    }

    fn count_rise(&self, earlier: &RailTrafficCounters, name: &str) -> Result<u64, &'static str> {
        match (earlier.counts.get(name), self.counts.get(name)) {
            (Some(Some(earlier)), Some(Some(now))) => now
                .checked_sub(*earlier)
                .ok_or("a counter was set back between the looks"),
            (None, _) => Err("a counter came between the looks"),
            _ => Err("a counter is no number"),
        }
    }
}

fn compute_rate(unit: TrafficCounterUnit, rise: u64, seconds: f64) -> Rate {
    match unit {
        TrafficCounterUnit::Word => Rate::GigabitsPerSecond(rise as f64 * 32.0 / seconds / 1e9),
        TrafficCounterUnit::Byte => Rate::GigabitsPerSecond(rise as f64 * 8.0 / seconds / 1e9),
        TrafficCounterUnit::Packet => Rate::PacketsPerSecond(rise as f64 / seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates(
        first: &str,
        second: &str,
    ) -> Result<BTreeMap<String, Fact<RailTrafficRates>>, Reason> {
        RailTrafficSample::parse(&format!("uptime 100.50\nport e0\n{second}")).since(
            &RailTrafficSample::parse(&format!("uptime 98.50\nport e0\n{first}")),
        )
    }

    #[test]
    fn a_rise_is_a_rate_in_what_the_device_counts() {
        let of = |first: &str, second: &str| rates(first, second).unwrap()["e0"].clone();
        let both = |received, sent| Fact::Is(RailTrafficRates { received, sent });
        let words = of(
            "port_rcv_data 100\nport_xmit_data 0\n",
            "port_rcv_data 6250000100\nport_xmit_data 62500000\n",
        );
        assert_eq!(
            words,
            both(Rate::GigabitsPerSecond(100.0), Rate::GigabitsPerSecond(1.0))
        );
        let erdma = of(
            "hw_rx_bytes_cnt 0\nhw_tx_bytes_cnt 5\n",
            "hw_rx_bytes_cnt 250000000\nhw_tx_bytes_cnt 5\n",
        );
        assert_eq!(
            erdma,
            both(Rate::GigabitsPerSecond(1.0), Rate::GigabitsPerSecond(0.0))
        );
        let soft = of("rcvd_pkts 0\nsent_pkts 0\n", "rcvd_pkts 10\nsent_pkts 4\n");
        assert_eq!(
            soft,
            both(Rate::PacketsPerSecond(5.0), Rate::PacketsPerSecond(2.0))
        );
        // Two ports are one rail.
        let two = of(
            "rcvd_pkts 1\nsent_pkts 1\nrcvd_pkts 1\nsent_pkts 1\n",
            "rcvd_pkts 2\nsent_pkts 2\nrcvd_pkts 2\nsent_pkts 2\n",
        );
        assert_eq!(
            two,
            both(Rate::PacketsPerSecond(1.0), Rate::PacketsPerSecond(1.0))
        );
    }

    #[test]
    fn what_cannot_be_compared_is_unknown_with_its_reason() {
        let why = |first: &str, second: &str| match rates(first, second).unwrap()["e0"].clone() {
            Fact::Unknown(why) => why,
            other => panic!("{other:?}"),
        };
        let zero = "rcvd_pkts 9\nsent_pkts 9\n";
        assert!(why("", "").as_words().contains("no RDMA device"));
        assert!(
            why(zero, "rcvd_pkts 1\nsent_pkts 10\n")
                .as_words()
                .contains("set back")
        );
        assert!(
            why(zero, "rcvd_pkts x\nsent_pkts 10\n")
                .as_words()
                .contains("no number")
        );
        assert!(why("", zero).as_words().contains("came between"));
        assert!(why("absent\n", zero).as_words().contains("came between"));
        assert_eq!(rates(zero, "absent\n").unwrap()["e0"], Fact::Absent);
        let at =
            |uptime: &str| RailTrafficSample::parse(&format!("uptime {uptime}\nport e0\n{zero}"));
        assert!(
            at("5")
                .since(&at("9"))
                .unwrap_err()
                .as_words()
                .contains("started anew")
        );
        assert!(
            at("5")
                .since(&at("5"))
                .unwrap_err()
                .as_words()
                .contains("no time")
        );
        assert!(
            at("nan")
                .since(&at("5"))
                .unwrap_err()
                .as_words()
                .contains("no sense")
        );
    }

    proptest! {
        #[test]
        fn no_output_panics(first in "(uptime |port |absent|rcvd_pkts |sent_pkts |[0-9.]{1,21}|[ \
                                      -~\n\
                                      ]|é){0,60}", second in "(uptime 9\n\
                                                                  |port e\n\
                                                                  |rcvd_pkts [0-9]{1,21}\n\
                                                                  |sent_pkts 3\n\
                                                                  ){0,9}") {
            let _ = RailTrafficSample::parse(&second).since(&RailTrafficSample::parse(&first));
        }
    }
}
