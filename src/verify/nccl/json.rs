//! What the programs of nccl-tests write with `-J FILE`: the table of a run as one JSON object, on
//! one line.
//!
//! Sources: NVIDIA/nccl-tests, `src/util.cu` (`jsonOutputInit`, `writeDeviceReport`,
//! `writeBenchmarkLineBody`, `writeResultFooter`), versions 1 to 3 of the file, which have in
//! common what is read here. Truth is a text there (`"okay":"true"`), and what is no number is
//! `"nan"`.

use super::log::NcclLog;
use super::nccl_tests_table::{
    CollectiveRates, CollectiveRun, CollectiveSizeResult, MeasuredOperation,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How such an object begins: its version comes first.
const BEGINS: &[u8] = b"\n{\"version\":";
/// More of it is not kept. An object of a run of thirty sizes on a thousand ranks has half a MiB.
const HELD_MAX: usize = 16 << 20;
/// Variables whose names begin so are kept of its environment, and nothing else, as there are
/// secrets in it.
const KEPT: &str = "NCCL_";

/// Takes such an object out of a stream, wherever a line of it begins so.
#[derive(Debug)]
pub(super) struct Taker {
    /// The last bytes, in which its beginning may have begun.
    carry: Vec<u8>,
    held: Option<Vec<u8>>,
}

impl Default for Taker {
    fn default() -> Self {
        Taker {
            carry: vec![b'\n'],
            held: None,
        }
    }
}

impl Taker {
    /// Takes the next bytes.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        if let Some(held) = &mut self.held {
            let room = HELD_MAX.saturating_sub(held.len());
            held.extend_from_slice(&chunk[..chunk.len().min(room)]);
            return;
        }
        // Its beginning may be cut in two: what is carried is less than it, so that it is found
        // once.
        self.carry
            .extend_from_slice(&chunk[..chunk.len().min(BEGINS.len())]);
        let begins = match (
            memchr::memmem::find(&self.carry, BEGINS),
            memchr::memmem::find(chunk, BEGINS),
        ) {
            (Some(at), _) => Some((
                std::mem::take(&mut self.carry)[at + 1..].to_vec(),
                &chunk[chunk.len().min(BEGINS.len())..],
            )),
            (None, Some(at)) => Some((Vec::new(), &chunk[at + 1..])),
            (None, None) => None,
        };
        if let Some((mut held, rest)) = begins {
            held.extend_from_slice(&rest[..rest.len().min(HELD_MAX)]);
            self.held = Some(held);
            return;
        }
        let from = chunk.len().saturating_sub(BEGINS.len() - 1);
        if chunk.len() >= BEGINS.len() {
            self.carry.clear();
            self.carry.extend_from_slice(&chunk[from..]);
        } else {
            let over = self.carry.len().saturating_sub(BEGINS.len() - 1);
            self.carry.drain(..over);
        }
    }

    /// Adds what it says to a log. A table that the log has itself says the same of the run.
    pub(super) fn finish(self, log: &mut NcclLog) {
        let Some(held) = self.held else { return };
        let mut values = serde_json::Deserializer::from_slice(&held).into_iter::<Value>();
        let Some(Ok(Value::Object(object))) = values.next() else {
            return;
        };
        if !object.contains_key("config") && !object.contains_key("results") {
            return;
        }
        let object = Value::Object(object);
        if log.runs.is_empty() {
            let run = parse_run(&object);
            if run.ranks > 0 {
                log.world = log.world.max(Some(run.ranks));
            }
            log.runs.push(run);
        }
        if log.versions.is_empty()
            && let Some(version) = object["nccl_version"].as_u64()
        {
            log.versions.insert(format_nccl_version(version));
        }
        if log.environment.is_empty() {
            log.environment = parse_environment(&object["env"]);
        }
        // A table says it as well, in a line of its own.
        if log.warnings.0 + log.failed > 0 {
            return;
        }
        for error in list_texts(&object["errors"]) {
            if !error.is_empty() {
                log.take_warning(None, error, 1);
            }
        }
    }
}

fn list_texts(list: &Value) -> impl Iterator<Item = &str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str)
}

/// `22304` is 2.23.4, and before 2.9 `2804` 2.8.4 (NVIDIA/nccl: src/nccl.h.in, `NCCL_VERSION`).
fn format_nccl_version(code: u64) -> String {
    let (major, minor, patch) = if code < 10_000 {
        (code / 1000, code % 1000 / 100, code % 100)
    } else {
        (code / 10_000, code % 10_000 / 100, code % 100)
    };
    format!("{major}.{minor}.{patch}")
}

fn parse_environment(list: &Value) -> BTreeMap<String, BTreeSet<String>> {
    const MOST: usize = 256;
    let kept = list_texts(list).filter(|text| text.starts_with(KEPT));
    let pairs = kept.filter_map(|text| text.split_once('='));
    let mut environment = BTreeMap::new();
    for (name, value) in pairs.take(MOST) {
        environment.insert(
            super::truncate_log_text(name),
            BTreeSet::from([super::truncate_log_text(value)]),
        );
    }
    environment
}

fn parse_run(object: &Value) -> CollectiveRun {
    let mut run = CollectiveRun::default();
    for row in object["results"].as_array().into_iter().flatten() {
        record_size(&mut run, row);
    }
    run.program = parse_program(object);
    run.bytes_max = object["config"]["maximum_bytes"].as_u64();
    for device in object["config"]["devices"].as_array().into_iter().flatten() {
        run.rank(device["hostname"].as_str().unwrap_or_default());
    }
    run.is_right = match &object["out_of_bounds"]["okay"] {
        Value::String(text) => Some(text == "true"),
        Value::Bool(is_right) => Some(*is_right),
        _ => None,
    };
    run.average = parse_finite_number(&object["average_bus_bandwidth"]["bandwidth"]);
    run
}

/// Adds a row of `results` to a run; one without a size is left out.
fn record_size(run: &mut CollectiveRun, row: &Value) {
    let Some(bytes) = row["size"].as_u64() else {
        return;
    };
    let size = CollectiveSizeResult {
        bytes,
        out_of_place: parse_rates(&row["out_of_place"]),
        in_place: parse_rates(&row["in_place"]),
    };
    let mut checked = Vec::new();
    for placement in ["out_of_place", "in_place"] {
        let wrong = &row[placement]["nwrong"];
        if !wrong.is_null() {
            checked.push(parse_finite_number(wrong));
        }
    }
    // Some versions of the file have it as a text.
    let root = match &row["root"] {
        Value::String(text) => text.trim().parse().ok(),
        number => number.as_i64(),
    };
    let operation = MeasuredOperation {
        operation: parse_word(&row["redop"]),
        data_type: parse_word(&row["type"]),
        root,
    };
    run.measured(size, &checked, operation);
}

fn parse_word(value: &Value) -> Option<String> {
    let word = value.as_str()?.trim();
    (!word.is_empty()).then(|| super::truncate_log_text(word))
}

/// The name of the program, without its folder.
fn parse_program(object: &Value) -> Option<String> {
    let name = object["args"][0].as_str()?.rsplit('/').next()?;
    (!name.is_empty()).then(|| super::truncate_log_text(name))
}

fn parse_rates(placement: &Value) -> Option<CollectiveRates> {
    Some(CollectiveRates {
        time_us: parse_finite_number(&placement["time"]),
        algbw: parse_finite_number(&placement["alg_bw"])?,
        busbw: parse_finite_number(&placement["bus_bw"])?,
    })
}

fn parse_finite_number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nccl::{JobVerdict, NcclExpectations, NcclLogDecoder, check_nccl_log, samples};
    use crate::result::CheckVerdict;
    use proptest::prelude::*;

    fn of(chunks: &[&[u8]]) -> NcclLog {
        let mut decoder = NcclLogDecoder::default();
        chunks.iter().for_each(|chunk| decoder.feed(chunk));
        decoder.finish()
    }

    #[test]
    fn what_nccl_warned_of_last_is_in_the_object_and_below_the_table() {
        let lost = "NET/IB: Got completion from peer 10.0.0.2<1> with status=12 opcode=0 len=0 \
                    vendor err 129";
        let with = |errors: &str| {
            of(&[samples::JSON
                .replacen("\"errors\":[]", &format!("\"errors\":[{errors}]"), 1)
                .as_bytes()])
        };
        let log = with(&format!("\"{lost}\""));
        assert_eq!((log.failed, log.failures[0].text.as_str()), (1, lost));
        assert_eq!(
            check_nccl_log(&log, &NcclExpectations::of("x", "--log x")).verdict,
            JobVerdict::Failed
        );
        assert_eq!(
            (
                with("\"\"").warnings.0,
                with("\"NET/IB : no one listens\"").warnings.0
            ),
            (0, 1)
        );
        assert_eq!(of(&[format!("# error: {lost}\n").as_bytes()]).failed, 1);
    }

    #[test]
    fn the_object_says_what_the_table_says() {
        let log = of(&[samples::JSON.as_bytes()]);
        let run = &log.runs[0];
        assert_eq!(
            (
                log.runs.len(),
                run.sizes,
                run.wrong,
                run.unchecked,
                run.is_right
            ),
            (1, 2, 0, 0, Some(true))
        );
        assert_eq!(
            (
                run.program.as_deref(),
                run.operation.as_deref(),
                run.average
            ),
            (Some("all_reduce_perf"), Some("sum"), Some(24.675))
        );
        assert_eq!(
            (
                run.ranks,
                run.hosts.iter().map(String::as_str).collect::<Vec<_>>()
            ),
            (4, vec!["gpu-01", "gpu-02"])
        );
        let largest = run.largest.unwrap();
        assert_eq!(
            (
                largest.bytes,
                largest.busbw(),
                largest.seconds(),
                run.bytes_max
            ),
            (8 << 30, Some(26.56), Some(0.48512), Some(8 << 30))
        );
        assert_eq!(
            (log.versions.iter().next().map(String::as_str), log.world),
            (Some("2.21.5"), Some(4))
        );
        assert_eq!(
            log.environment.keys().collect::<Vec<_>>(),
            ["NCCL_DEBUG", "NCCL_IB_HCA"],
            "nothing else of its environment is kept"
        );
        // It is silent of the network, so it proves nothing by itself; what NCCL says beside it
        // does.
        let expected = NcclExpectations {
            node_gbps: Some(240.0),
            ..NcclExpectations::of("x", "--log x")
        };
        let verdict = |log: &NcclLog| {
            let proof = check_nccl_log(log, &expected);
            let bandwidth = proof
                .aspects
                .iter()
                .find(|(aspect, _)| aspect.word() == "bandwidth")
                .map(|(_, evaluated)| evaluated.verdict);
            (proof.verdict, bandwidth)
        };
        assert_eq!(
            verdict(&log),
            (JobVerdict::Inconclusive, Some(CheckVerdict::Passed))
        );
        let said = samples::render_rank_log("gpu-01", 1201, 0)
            + &samples::render_rank_log("gpu-02", 1301, 2);
        assert_eq!(
            verdict(&of(&[said.as_bytes(), samples::JSON.as_bytes()])),
            (JobVerdict::Passed, Some(CheckVerdict::Passed))
        );
        let both = of(&[
            samples::render_job_log().as_bytes(),
            samples::JSON.as_bytes(),
        ]);
        assert_eq!(both.runs.len(), 1, "the same run is one run");
    }

    #[test]
    fn what_is_wrong_or_was_not_looked_at_is_told() {
        let with = |from: &str, to: &str| {
            of(&[samples::JSON.replace(from, to).as_bytes()])
                .runs
                .remove(0)
        };
        assert_eq!(
            with("\"nwrong\":0.000000}", "\"nwrong\":7.000000}").wrong,
            28
        );
        let unchecked = with("\"nwrong\":0.000000}", "\"nwrong\":null}");
        assert_eq!((unchecked.wrong, unchecked.unchecked), (0, 2));
        assert_eq!(
            with("\"okay\":\"true\"", "\"okay\":\"false\"").is_right,
            Some(false)
        );
        assert_eq!(with("24.675000", "\"nan\"").average, None);
        let cut = of(&[&samples::JSON.as_bytes()[..samples::JSON.len() - 40]]);
        assert!(cut.runs.is_empty(), "a file that was cut off says nothing");
    }

    proptest! {
        #[test]
        fn it_is_found_however_the_stream_is_split(places in prop::collection::vec(0usize..3000, 0..5), before in "[a-z{\n]{0,40}") {
            let text = format!("{before}\n{}", samples::JSON);
            let mut places: Vec<usize> = places.into_iter().map(|place| place.min(text.len())).collect();
            places.sort_unstable();
            let (mut chunks, mut from) = (Vec::new(), 0);
            for place in places {
                chunks.push(&text.as_bytes()[from..place]);
                from = place;
            }
            chunks.push(&text.as_bytes()[from..]);
            prop_assert_eq!(of(&chunks).runs.len(), 1);
        }

        #[test]
        fn no_object_panics(text in "(\\{\"version\":2|,\"results\":\\[|\\{|\\}|\\]|\"size\":9|\"config\":\\{\\}|\"in_place\":|null|,|\n){0,30}") {
            let _ = of(&[text.as_bytes()]);
        }
    }
}
