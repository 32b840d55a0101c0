//! What `ib_write_bw` and `ib_read_lat` print, read by their header: columns come and go between
//! versions, and the unit in the header tells old from new.
//!
//! Sources: output of perftest 6.06 (Debian 12) on Soft-RoCE; `perftest_parameters.h` of
//! linux-rdma/perftest for the older `MB/sec` (which counts 2^20 bytes like its successor
//! `MiB/sec`: 65536 bytes at 0.000640 Mpps are printed as 40.00).

use railwright_base::text::one_line;
use std::collections::BTreeMap;

/// A latency run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// `t_typical` in microseconds; the average where a version prints no other.
    pub typical_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: Option<f64>,
}

/// Why a run gave no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrafficFault {
    /// The program is not installed.
    Missing(String),
    /// It ran past its time and was ended by the host.
    Hung,
    /// Nobody listened at the other end.
    NobodyListens,
    /// It ran to its end and moved nothing: perftest then prints 0.00 and ends with success (seen
    /// with UDP port 4791 closed, perftest 6.06).
    NothingMoved,
    /// This build of perftest knows no CUDA, so it cannot send GPU memory.
    WithoutCuda,
    /// It ran and failed, with what that means.
    Broken(String),
    /// The output makes no sense, or its number cannot be trusted.
    NotUnderstood(String),
}

/// Average bandwidth in Gb/s.
pub fn bandwidth_gbps(code: i32, output: &str) -> Result<f64, TrafficFault> {
    let table = table(code, output)?;
    let (name, value) = table
        .iter()
        .find(|(name, _)| name.starts_with("BW average["))
        .ok_or_else(|| TrafficFault::NotUnderstood("no column BW average".to_owned()))?;
    let unit = name.trim_start_matches("BW average[").trim_end_matches(']');
    let gbps = match unit {
        "Gb/sec" | "Gb/s" => *value,
        "MB/sec" | "MiB/sec" => value * 8.0 * 1_048_576.0 / 1e9,
        other => {
            return Err(TrafficFault::NotUnderstood(format!(
                "unknown unit {}",
                one_line(other, 20)
            )));
        }
    };
    match gbps {
        gbps if gbps > 0.0 => Ok(gbps),
        // perftest mistrusts its own clock then, and its zero says nothing about the path.
        _ if output.contains("Conflicting CPU frequency") => Err(TrafficFault::NotUnderstood(
            "the CPU's clock is not steady".to_owned(),
        )),
        _ => Err(TrafficFault::NothingMoved),
    }
}

/// Latency in microseconds.
pub fn latency(code: i32, output: &str) -> Result<Latency, TrafficFault> {
    let table = table(code, output)?;
    let typical = table
        .get("t_typical[usec]")
        .or_else(|| table.get("t_avg[usec]"))
        .copied();
    let typical_us = typical
        .filter(|t| *t > 0.0)
        .ok_or_else(|| TrafficFault::NotUnderstood("no column t_typical".to_owned()))?;
    Ok(Latency {
        typical_us,
        p99_us: table.get("99% percentile[usec]").copied(),
    })
}

/// The first line of numbers below the header, by column name.
fn table(code: i32, output: &str) -> Result<BTreeMap<String, f64>, TrafficFault> {
    if code != 0 {
        return Err(fault(code, output));
    }
    let mut lines = output
        .lines()
        .skip_while(|l| !l.trim_start().starts_with("#bytes"));
    let header = lines.next().ok_or_else(|| fault(code, output))?;
    let names = columns(header);
    let below: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('-'))
        .collect();
    // A cell that is no finite number (`-nan` where nothing varied) costs that cell only.
    let cells = |line: &str| {
        line.split_whitespace()
            .map(|word| word.parse::<f64>().ok())
            .collect::<Vec<_>>()
    };
    let row = below
        .iter()
        .map(|line| cells(line))
        .find(|row| row.len() == names.len() && row.first().is_some_and(Option::is_some));
    let row = row.ok_or_else(|| {
        let instead = below
            .first()
            .map_or("nothing".to_owned(), |line| one_line(line, 80));
        TrafficFault::NotUnderstood(format!(
            "no line of numbers below the header, but {instead}"
        ))
    })?;
    Ok(names
        .into_iter()
        .zip(row)
        .filter_map(|(name, cell)| Some((name, cell.filter(|value| value.is_finite())?)))
        .collect())
}

/// Column names. Some have a space in them: a word without a unit belongs to the next one (`BW
/// average[Gb/sec]`, `99% percentile[usec]`, `tps average`).
fn columns(header: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut open = String::new();
    for word in header.split_whitespace() {
        let name = if open.is_empty() {
            word.to_owned()
        } else {
            format!("{open} {word}")
        };
        let whole = word.contains('[') || word.starts_with('#') || !open.is_empty();
        if whole {
            names.push(name);
            open.clear();
        } else {
            open = name;
        }
    }
    names.extend(Some(open).filter(|o| !o.is_empty()));
    names
}

/// Completion statuses (`enum ibv_wc_status` of rdma-core) that a broken path shows.
const STATUSES: &[(&str, &str)] = &[
    (
        "Failed status 12:",
        "packets were sent again and again without an answer (transport retry counter exceeded): \
         the path loses them",
    ),
    (
        "Failed status 13:",
        "the receiver was never ready (RNR retry counter exceeded)",
    ),
    (
        "Failed status 10:",
        "the receiver refused the access (remote access error)",
    ),
    (
        "Failed status 9:",
        "the other end runs another test (remote invalid request)",
    ),
    ("Failed status 5:", "the connection was torn down under way"),
];

/// Memory that the NIC may not use, whosever it is.
pub const NOT_REGISTERED: &str = "memory could not be registered";

/// How builds without CUDA refuse: older ones do not know the option (6.06 of Debian 12), newer
/// ones know the type of memory and do not support it (`perftest_parameters.c`).
const WITHOUT_CUDA: &[&str] = &["unrecognized option '--use_cuda", "Unsupported memory type"];

/// Texts of perftest, rdma_cm and CUDA, the more exact one first, with what they mean.
const FAILURE_TEXTS: &[(&str, &str)] = &[
    (
        "Failed to modify QP",
        "the connection could not be set up: the GID is not usable, or the peer's address \
         cannot be resolved over this rail",
    ),
    (
        "Unable to find the Infiniband/RoCE device",
        "the RDMA device is not there",
    ),
    // `cuda_memory.c`; 802 is CUDA_ERROR_SYSTEM_NOT_READY of cuda.h.
    (
        "cuInit(0) returned 802",
        "CUDA is not ready: where GPUs are joined by NVSwitch, Fabric Manager has to run first",
    ),
    (
        "cuInit(0) returned",
        "CUDA does not start: the driver does not run, or is of another release than its \
         libraries",
    ),
    (
        "DMA-BUF is not supported on this GPU",
        "driver or GPU do not offer DMA-BUF: it takes the open kernel modules",
    ),
    ("cuDeviceGetByPCIBusId failed", "CUDA does not see the GPU"),
    ("Couldn't init GPU context", "CUDA cannot use the GPU"),
    ("Couldn't allocate MR", NOT_REGISTERED),
    ("failed to create mr", NOT_REGISTERED),
    (
        "Unexpected CM event",
        "rdma_cm could not reach the peer over this rail",
    ),
    (
        "Couldn't bind",
        "the test port was taken by another program",
    ),
];

/// What a failed run means, from what it printed.
pub fn fault(code: i32, output: &str) -> TrafficFault {
    if WITHOUT_CUDA.iter().any(|text| output.contains(text)) {
        return TrafficFault::WithoutCuda;
    }
    if let Some(line) = output.lines().find_map(|l| l.strip_prefix("@missing ")) {
        return TrafficFault::Missing(one_line(line, 40));
    }
    if output.contains("@unreachable") {
        return TrafficFault::NobodyListens;
    }
    if matches!(code, 124 | 137 | 143) {
        return TrafficFault::Hung;
    }
    // rdma_cm event 8 is RDMA_CM_EVENT_REJECTED: no listener on that port.
    if output.contains("Couldn't connect to") || output.contains("Unexpected CM event bl blka 8") {
        return TrafficFault::NobodyListens;
    }
    let mut meanings = STATUSES.iter().chain(FAILURE_TEXTS);
    if let Some((_, meaning)) = meanings.find(|(text, _)| output.contains(text)) {
        return TrafficFault::Broken((*meaning).to_owned());
    }
    let last = output
        .lines()
        .map(str::trim)
        .rfind(|l| !l.is_empty() && !l.starts_with('-'))
        .unwrap_or("nothing");
    TrafficFault::NotUnderstood(format!(
        "exit status {code}, last words: {}",
        one_line(last, 80)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use proptest::prelude::*;

    #[test]
    fn gigabits_of_perftest_6_06() {
        assert_eq!(bandwidth_gbps(0, samples::WRITE_BW_GBITS), Ok(0.30));
    }

    #[test]
    fn mebibytes_are_turned_into_gigabits_whatever_they_are_called() {
        let old = bandwidth_gbps(0, samples::WRITE_BW_MB).unwrap();
        assert!((old - 0.3355).abs() < 0.001, "{old}");
        assert_eq!(
            bandwidth_gbps(0, &samples::WRITE_BW_MB.replace("MB/sec", "MiB/sec")),
            Ok(old)
        );
        let strange = samples::WRITE_BW_MB.replace("MB/sec", "furlongs");
        assert_eq!(
            bandwidth_gbps(0, &strange),
            Err(TrafficFault::NotUnderstood("unknown unit furlongs".into()))
        );
    }

    #[test]
    fn typical_latency_and_its_percentile() {
        assert_eq!(
            latency(0, samples::READ_LAT),
            Ok(Latency {
                typical_us: 371.75,
                p99_us: Some(1251.59)
            })
        );
        let one_turn = samples::READ_LAT.replace("230.90", "-nan");
        assert_eq!(latency(0, &one_turn).unwrap().typical_us, 371.75);
        let by_duration =
            "#bytes        #iterations       t_avg[usec]    tps average\n2  100 12.5 80000.0\n";
        assert_eq!(
            latency(0, by_duration),
            Ok(Latency {
                typical_us: 12.5,
                p99_us: None
            })
        );
    }

    #[test]
    fn a_new_column_does_not_move_the_value() {
        let newer = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   \
                     MsgRate[Mpps]  CPU_Util[%]\n 65536 5000 97.1 96.9 0.18 3.2\n";
        assert_eq!(bandwidth_gbps(0, newer), Ok(96.9));
    }

    #[test]
    fn each_way_to_fail_has_its_words() {
        assert_eq!(
            bandwidth_gbps(1, samples::NOBODY_LISTENS),
            Err(TrafficFault::NobodyListens)
        );
        assert_eq!(
            bandwidth_gbps(1, samples::NOBODY_LISTENS_CM),
            Err(TrafficFault::NobodyListens)
        );
        assert_eq!(
            bandwidth_gbps(143, "@unreachable\n"),
            Err(TrafficFault::NobodyListens)
        );
        assert_eq!(
            bandwidth_gbps(127, "@missing ib_write_bw\n"),
            Err(TrafficFault::Missing("ib_write_bw".into()))
        );
        assert_eq!(
            bandwidth_gbps(124, "* Waiting for client to connect... *\n"),
            Err(TrafficFault::Hung)
        );
        let Err(TrafficFault::Broken(other)) = latency(17, samples::WRONG_TEST) else {
            panic!()
        };
        assert!(other.contains("another test"));
        let Err(TrafficFault::Broken(gid)) = bandwidth_gbps(1, samples::WRONG_GID) else {
            panic!()
        };
        assert!(gid.contains("GID is not usable"));
        assert_eq!(
            bandwidth_gbps(1, samples::WITHOUT_CUDA),
            Err(TrafficFault::WithoutCuda)
        );
        assert_eq!(
            bandwidth_gbps(1, " Unsupported memory type\n"),
            Err(TrafficFault::WithoutCuda)
        );
        let Err(TrafficFault::Broken(manager)) =
            bandwidth_gbps(1, "initializing CUDA\ncuInit(0) returned 802\n")
        else {
            panic!()
        };
        assert!(manager.contains("Fabric Manager"));
        let zero = samples::WRITE_BW_GBITS.replace("0.30", "0.00");
        assert_eq!(bandwidth_gbps(0, &zero), Err(TrafficFault::NothingMoved));
        let clock = format!("Conflicting CPU frequency values detected: 2095.1 != 3200.0\n{zero}");
        assert!(matches!(
            bandwidth_gbps(0, &clock),
            Err(TrafficFault::NotUnderstood(_))
        ));
        let cut = &samples::WRITE_BW_GBITS[..samples::WRITE_BW_GBITS.find(" 65536").unwrap()];
        assert!(matches!(
            bandwidth_gbps(0, cut),
            Err(TrafficFault::NotUnderstood(_))
        ));
    }

    proptest! {
        #[test]
        fn no_output_panics(code in -1i32..200, text in "(#bytes|BW \
                                                         average\\[Gb/sec\\]|t_typical\\[usec\\]|[0-9.]{1,5}|[ \
                                                         -~\n\
                                                         ]|é){0,60}") {
            let _ = bandwidth_gbps(code, &text);
            let _ = latency(code, &text);
        }
    }
}
