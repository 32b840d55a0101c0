//! Readings in small words, and every text there is.

use super::names::{self, CounterKey, Meter, VendorCounter, Width, find_counter_meaning};
use super::{
    CounterSampleOrdinal, Fact, Movement, PortCounterIncrease, compute_counter_increase,
    diff_counter_samples, merge_counter_increases, parse_counter_sample,
};
use crate::switch::SwitchSystem;
use crate::{AnswerStatus, Read, ReadResult, ReadResults};
use proptest::prelude::*;
use railwright_base::Reason;

fn read(sample: CounterSampleOrdinal) -> Read {
    Read::LinkCounters {
        netdevs: vec!["e0".to_owned()],
        sample,
    }
}

/// What moved between these two answers of a target.
pub(crate) fn diff_counter_texts(
    read: impl Fn(CounterSampleOrdinal) -> Read,
    [first, second]: [&str; 2],
    rows: &[VendorCounter],
) -> Result<Movement, Reason> {
    let mut answers = ReadResults::default();
    for (sample, out) in [
        (CounterSampleOrdinal::First, first),
        (CounterSampleOrdinal::Second, second),
    ] {
        answers.insert(
            read(sample).key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out: out.to_owned(),
            },
        );
    }
    diff_counter_samples(&answers, rows, read)
}

fn between(first: &str, second: &str, rows: &[VendorCounter]) -> Result<Movement, Reason> {
    diff_counter_texts(read, [first, second], rows)
}

fn moved(first: &str, second: &str) -> PortCounterIncrease {
    let of = |text: &str| format!("uptime 5.0\nport e0\n{text}");
    match between(&of(first), &of(second), &names::of_host())
        .unwrap()
        .ports
        .remove("e0")
        .unwrap()
    {
        Fact::Is(moved) => moved,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_rise_counts_and_what_is_not_counted_is_absent() {
    let moved = moved(
        "rx_prio3_pause 10\nrx_prio3_buf_discard 1\nrx_prio3_cong_discard 1\n",
        "rx_prio3_pause 14\nrx_prio3_buf_discard 3\nrx_prio3_cong_discard 2\n",
    );
    assert_eq!(
        moved.rose(CounterKey::of(Meter::PauseReceived, 3)),
        Fact::Is(4)
    );
    assert_eq!(moved.rose(CounterKey::of(Meter::Lost, 3)), Fact::Is(3));
    assert_eq!(
        moved.rose(CounterKey::of(Meter::PauseSent, 3)),
        Fact::Absent
    );
}

#[test]
fn a_counter_that_fell_went_round_or_was_set_back() {
    let narrow = |first, second| {
        compute_counter_increase(Some(Some(first)), Some(Some(second)), Width::Bits32)
    };
    assert_eq!(narrow(u64::from(u32::MAX), 4), Fact::Is(5));
    assert_eq!(
        narrow(9, 0),
        Fact::Unknown("a counter was set back between the readings".into())
    );
    assert_eq!(
        narrow(1 << 31, 0),
        Fact::Unknown("a counter was set back between the readings".into())
    );
    assert!(matches!(
        compute_counter_increase(Some(Some(u64::MAX)), Some(Some(0)), Width::Bits64),
        Fact::Unknown(_)
    ));
    assert_eq!(
        compute_counter_increase(None, None, Width::Bits64),
        Fact::Absent
    );
    assert!(matches!(
        compute_counter_increase(None, Some(Some(3)), Width::Bits64),
        Fact::Unknown(_)
    ));
    assert!(matches!(
        compute_counter_increase(Some(None), Some(Some(3)), Width::Bits64),
        Fact::Unknown(_)
    ));
}

#[test]
fn a_target_that_was_started_anew_tells_nothing() {
    let why = between(
        "uptime 90.5\nport e0\n",
        "uptime 3.1\nport e0\n",
        &names::of_host(),
    )
    .unwrap_err();
    assert_eq!(why, "it was started anew between the readings".into());
    let found = between(
        "uptime 90.5\nport e0\n",
        "uptime 95.5\nport e0\nabsent\n",
        &names::of_host(),
    )
    .unwrap();
    assert_eq!(found.seconds, Some(5.0));
    assert!(matches!(found.ports["e0"], Fact::Unknown(_)), "{found:?}");
}

#[test]
fn a_time_that_makes_no_sense_is_no_time() {
    for odd in ["NaN", "inf", "-inf", "-3", "1e999", "soon", "\u{1b}[2J"] {
        let why = between(
            &format!("uptime {odd}\nport e0\n"),
            "uptime 3.1\nport e0\n",
            &names::of_host(),
        )
        .unwrap_err();
        assert!(
            why.as_words().starts_with("its uptime makes no sense")
                && why.as_words().ends_with('`')
                && !why.as_words().contains('\u{1b}'),
            "{why}"
        );
    }
    assert_eq!(
        between("uptime \nport e0\n", "port e0\n", &names::of_host())
            .unwrap()
            .seconds,
        None,
        "nobody said it"
    );
}

#[test]
fn queues_that_a_watchdog_holds_down_are_told() {
    let text = "uptime 1\n\
                port Ethernet0\n\
                PFC_WD_STATUS/3 stormed\n\
                PFC_WD_STATUS/4 operational\n\
                PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED/3 7\n\
                SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS/3 N/A\n";
    let port = &parse_counter_sample(text).ports["Ethernet0"];
    assert_eq!(port.stormed.iter().copied().collect::<Vec<_>>(), [3]);
    let found = between(
        text,
        &text.replace(" 7", " 8"),
        SwitchSystem::Sonic.counter_names(),
    )
    .unwrap();
    let moved = found.ports["Ethernet0"].value().unwrap();
    assert_eq!(moved.rose(CounterKey::of(Meter::Storms, 3)), Fact::Is(1));
    assert!(matches!(
        moved.rose(CounterKey::of(Meter::Marked, 3)),
        Fact::Unknown(_)
    ));
}

#[test]
fn names_are_told_apart() {
    let host = names::of_host();
    assert_eq!(
        find_counter_meaning(&host, "tx_prio7_pause").map(|(key, _)| key),
        Some(CounterKey::of(Meter::PauseSent, 7))
    );
    for other in [
        "tx_prio8_pause",
        "tx_prio3_pause_duration",
        "tx_prio+3_pause",
        "tx_prio_pause",
        "",
    ] {
        assert!(find_counter_meaning(&host, other).is_none(), "{other}");
    }
    let nvue = SwitchSystem::Cumulus.counter_names();
    assert_eq!(
        find_counter_meaning(nvue, "rx-buffer-discards/3").map(|(key, _)| key),
        Some(CounterKey::of(Meter::Lost, 3))
    );
    assert_eq!(
        (
            super::parse_counter_number("0 Bytes"),
            super::parse_counter_number("18.98 KB"),
            super::parse_counter_number("-1")
        ),
        (Some(0), None, None)
    );
}

#[test]
fn every_script_is_sound_shell_and_python() {
    let ports = vec!["e'0; reboot".to_owned()];
    let of_switches = SwitchSystem::ALL.map(|system| system.counters_script(&ports));
    for script in of_switches.into_iter().chain([super::host_script(&ports)]) {
        let out = std::process::Command::new("sh")
            .args(["-n", "-c", &script])
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
}

/// Recorded trees are read by the same script.
#[test]
fn a_tree_of_files_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/uptime", "77.25 100.00\n");
    write("sys/class/net/e0/mtu", "9000\n");
    write("sys/class/infiniband/mlx5_0/device/net/e0/mtu", "9000\n");
    write(
        "sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent",
        "41\n",
    );
    let script = format!(
        "R={}\n{}",
        folder.path().display(),
        super::host_script(&["e0".to_owned(), "e1".to_owned()])
    );
    let out = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("PATH", "/nowhere:/bin")
        .output()
        .unwrap();
    let reading = parse_counter_sample(&String::from_utf8(out.stdout).unwrap());
    assert_eq!(
        (
            reading.uptime_s,
            reading.ports["e0"].counts.get("np_cnp_sent")
        ),
        (Some(77.25), Some(&Some(41)))
    );
    assert!(reading.ports["e1"].is_absent);
}

fn facts() -> impl Strategy<Value = Fact<u64>> {
    prop_oneof![
        (0..9u64).prop_map(Fact::Is),
        Just(Fact::Absent),
        Just(Fact::Unknown("why".into()))
    ]
}

proptest! {
    #[test]
    fn no_text_panics(first in "(uptime |port |absent|unread |untold/|rx_prio3_pause \
                                |PFC_WD_STATUS/|\n\
                                |[0-9./ e-]|\\PC){0,60}", second in "(uptime |port |absent|rx_prio3_pause |\n|[0-9./ ]){0,60}") {
        let rows = [names::of_host(), SwitchSystem::Sonic.counter_names().to_vec()].concat();
        if let Ok(found) = between(&first, &second, &rows) {
            prop_assert!(found.seconds.is_none_or(|seconds| seconds >= 0.0));
        }
    }

    /// Never below zero, whatever the counters do; and of what went round no more than its width.
    #[test]
    fn a_rise_is_never_negative(first: u64, second: u64, narrow: bool) {
        let width = if narrow { Width::Bits32 } else { Width::Bits64 };
        match compute_counter_increase(Some(Some(first)), Some(Some(second)), width) {
            Fact::Is(rise) if second >= first => prop_assert_eq!(rise, second - first),
            Fact::Is(rise) => prop_assert!(narrow && rise < 1 << 31),
            other => prop_assert!(second < first && matches!(other, Fact::Unknown(_))),
        }
    }

    #[test]
    fn the_order_of_counters_does_not_matter(one in facts(), other in facts(), third in facts()) {
        prop_assert_eq!(merge_counter_increases(one.clone(), other.clone()), merge_counter_increases(other.clone(), one.clone()));
        prop_assert_eq!(merge_counter_increases(merge_counter_increases(one.clone(), other.clone()), third.clone()), merge_counter_increases(one, merge_counter_increases(other, third)));
    }
}
