//! The decoder: bytes in, as they come, and at the end what the log shows. Lines of NCCL and of a
//! ring are read as events; of all other lines only those are looked at that begin like a table of
//! nccl-tests or hold one of a few words.

use super::failure::{self, NcclFailureCause, NcclLogFailure};
use super::interface::Hpn0InterfaceReader;
use super::json;
use super::lines::{LogLine, LogLineSplitter};
use super::log::{NcclLog, Processes};
use super::message;
use super::nccl_tests_table::Runs;
use super::speaker::{NcclLogLevel, Speaker, Speakers, split_line_tags};
use super::steps;
use super::training;
use crate::perftest;
use aho_corasick::{AhoCorasick, MatchKind};

/// What a word in a line leads to.
#[derive(Debug, Clone)]
enum LogKeyword {
    Trouble(NcclFailureCause),
    Epoch,
    /// The time of a step follows, in this part of a second.
    Step(f64),
    Version,
    Hpn,
}

/// Reads a log.
#[derive(Debug)]
pub struct NcclLogDecoder {
    lines: LogLineSplitter,
    json: json::Taker,
    reading: LogDecoderState,
}

#[derive(Debug)]
struct LogDecoderState {
    speakers: Speakers,
    words: AhoCorasick,
    meanings: Vec<LogKeyword>,
    processes: Processes,
    runs: Runs,
    hpn: Hpn0InterfaceReader,
    perftest_header: Option<String>,
    log: NcclLog,
}

impl Default for NcclLogDecoder {
    fn default() -> Self {
        let mut words: Vec<(&str, LogKeyword)> = failure::WORDS
            .iter()
            .map(|(word, trouble)| (*word, LogKeyword::Trouble(trouble.clone())))
            .collect();
        words.extend([
            (training::WORDS, LogKeyword::Epoch),
            ("NCCL version ", LogKeyword::Version),
            ("hpn0", LogKeyword::Hpn),
        ]);
        words.extend(steps::SAID.map(|(word, in_a_second)| (word, LogKeyword::Step(in_a_second))));
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(words.iter().map(|(word, _)| word));
        NcclLogDecoder {
            lines: LogLineSplitter::default(),
            json: json::Taker::default(),
            reading: LogDecoderState {
                speakers: Speakers::default(),
                words: automaton.expect("a dozen short words make an automaton"),
                meanings: words.into_iter().map(|(_, word)| word).collect(),
                processes: Processes::default(),
                runs: Runs::default(),
                hpn: Hpn0InterfaceReader::default(),
                perftest_header: None,
                log: NcclLog::default(),
            },
        }
    }
}

impl NcclLogDecoder {
    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        let reading = &mut self.reading;
        self.json.feed(chunk);
        self.lines.feed(chunk, &mut |line| reading.line(line));
    }

    /// What the log shows.
    pub fn finish(mut self) -> NcclLog {
        let reading = &mut self.reading;
        let lines = self.lines.end(&mut |line| reading.line(line));
        let LogDecoderState {
            mut log, runs, hpn, ..
        } = self.reading;
        (log.lines, log.bytes, log.cut) = (lines, self.lines.bytes, self.lines.cut);
        (log.runs, log.hpn) = (runs.runs, hpn.seen);
        self.json.finish(&mut log);
        log
    }
}

impl LogDecoderState {
    fn line(&mut self, line: LogLine<'_>) {
        let LogDecoderState {
            speakers,
            processes,
            log,
            ..
        } = self;
        let is_known = speakers.each(line.text, |said| {
            *match said.speaker {
                Speaker::Nccl => &mut log.nccl_spoke,
                Speaker::Ring => &mut log.ring_spoke,
            } = true;
            match said.level {
                NcclLogLevel::Info => {
                    if let Some(event) = message::parse_event(said.text) {
                        processes.take(log, said.process, event, line.number);
                    }
                }
                NcclLogLevel::Warn => log.take_warning(
                    said.process.map(|process| process.host),
                    said.text,
                    line.number,
                ),
            }
        });
        if !is_known {
            self.take_foreign_line(line);
        }
    }

    /// A line of another program.
    fn take_foreign_line(&mut self, line: LogLine<'_>) {
        let (time, text) = split_line_tags(line.text);
        self.take_table_line(text.trim_start(), line.number);
        let Some(found) = self.words.find(text) else {
            self.hpn.below(text);
            return;
        };
        let rest = &text[found.end()..];
        match &self.meanings[found.pattern().as_usize()] {
            LogKeyword::Trouble(trouble) => {
                let failure = NcclLogFailure {
                    trouble: trouble.clone(),
                    line: line.number,
                    host: None,
                    text: super::truncate_log_text(text.trim_start()),
                };
                if let Some(version) = message::parse_nccl_version(text) {
                    self.log.take_version(version);
                }
                self.log.fail(failure);
            }
            LogKeyword::Epoch => {
                if self.log.training.take(rest) {
                    let training = &self.log.training;
                    self.log.steps.came(
                        time,
                        training.epochs.1,
                        training.samples.map(|(done, _)| done),
                    );
                }
            }
            LogKeyword::Step(in_a_second) => self.log.steps.said(rest, *in_a_second),
            LogKeyword::Version => {
                if let Some(version) = message::parse_nccl_version(text) {
                    self.log.take_version(version);
                }
            }
            LogKeyword::Hpn => self.hpn.named(text, line.number),
        }
    }

    /// Takes a line of nccl-tests or perftest; any other line is left alone.
    fn take_table_line(&mut self, text: &str, line: u64) {
        match text.as_bytes().first() {
            Some(b'#') => self.comment(text, line),
            // as old releases of nccl-tests write it (NVIDIA/nccl-tests#17)
            Some(b'O' | b'A')
                if text.starts_with("Out of bounds values")
                    || text.starts_with("Avg bus bandwidth") =>
            {
                self.comment(&format!("# {text}"), line);
            }
            Some(b'0'..=b'9') => {
                self.runs.row(text);
                self.perftest(text);
            }
            _ => {}
        }
    }

    fn comment(&mut self, text: &str, line: u64) {
        if text.starts_with("#bytes") {
            self.perftest_header = Some(text.to_owned());
        } else if let Some(error) = text.strip_prefix("# error: ") {
            // what NCCL warned of last, at the end of a run of nccl-tests (src/util.cu,
            // writeErrors)
            self.log.take_warning(None, error, line);
        } else {
            self.runs.comment(text, line);
        }
    }

    /// The line of numbers below the header of perftest.
    fn perftest(&mut self, row: &str) {
        let Some(header) = self.perftest_header.take() else {
            return;
        };
        if let Ok(gbps) = perftest::bandwidth_gbps(0, &format!("{header}\n{row}\n")) {
            let (runs, least, most) = self.log.perftest.unwrap_or((0, gbps, gbps));
            self.log.perftest = Some((runs + 1, least.min(gbps), most.max(gbps)));
        }
    }
}
