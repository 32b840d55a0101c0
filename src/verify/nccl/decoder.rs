//! The decoder: bytes in, as they come, and at the end what the log told. Lines of NCCL and of a ring are read as events; of all other lines only
//! those are looked at that begin like a table of nccl-tests or hold one of a few words.

use super::collective::Runs;
use super::failure::{self, Failure, Trouble};
use super::interface::Reader;
use super::json;
use super::lines::{Line, Lines};
use super::log::{Log, Processes};
use super::message;
use super::speaker::{Level, Speaker, Speakers, tagged};
use super::steps;
use super::training;
use crate::perftest;
use aho_corasick::{AhoCorasick, MatchKind};

/// What a word in a line leads to.
#[derive(Debug, Clone)]
enum Word {
    Trouble(Trouble),
    Epoch,
    /// The time of a step follows, in this part of a second.
    Step(f64),
    Version,
    Hpn,
}

/// Reads a log.
#[derive(Debug)]
pub struct Decoder {
    lines: Lines,
    json: json::Taker,
    reading: Reading,
}

#[derive(Debug)]
struct Reading {
    speakers: Speakers,
    words: AhoCorasick,
    meanings: Vec<Word>,
    processes: Processes,
    runs: Runs,
    hpn: Reader,
    perftest_header: Option<String>,
    log: Log,
}

impl Default for Decoder {
    fn default() -> Self {
        let mut words: Vec<(&str, Word)> = failure::WORDS.iter().map(|(word, trouble)| (*word, Word::Trouble(trouble.clone()))).collect();
        words.extend([(training::WORDS, Word::Epoch), ("NCCL version ", Word::Version), ("hpn0", Word::Hpn)]);
        words.extend(steps::SAID.map(|(word, in_a_second)| (word, Word::Step(in_a_second))));
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(words.iter().map(|(word, _)| word));
        Decoder {
            lines: Lines::default(),
            json: json::Taker::default(),
            reading: Reading {
                speakers: Speakers::default(),
                words: automaton.expect("a dozen short words make an automaton"),
                meanings: words.into_iter().map(|(_, word)| word).collect(),
                processes: Processes::default(),
                runs: Runs::default(),
                hpn: Reader::default(),
                perftest_header: None,
                log: Log::default(),
            },
        }
    }
}

impl Decoder {
    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        let reading = &mut self.reading;
        self.json.feed(chunk);
        self.lines.feed(chunk, &mut |line| reading.line(line));
    }

    /// What the log told.
    pub fn finish(mut self) -> Log {
        let reading = &mut self.reading;
        let lines = self.lines.end(&mut |line| reading.line(line));
        let Reading { mut log, runs, hpn, .. } = self.reading;
        (log.lines, log.bytes, log.cut) = (lines, self.lines.bytes, self.lines.cut);
        (log.runs, log.hpn) = (runs.runs, hpn.seen);
        self.json.finish(&mut log);
        log
    }
}

impl Reading {
    fn line(&mut self, line: Line<'_>) {
        let Reading { speakers, processes, log, .. } = self;
        let is_known = speakers.each(line.text, |said| {
            *match said.speaker {
                Speaker::Nccl => &mut log.nccl_spoke,
                Speaker::Ring => &mut log.ring_spoke,
            } = true;
            match said.level {
                Level::Info => {
                    if let Some(event) = message::event(said.text) {
                        processes.take(log, said.process, event, line.number);
                    }
                }
                Level::Warn => log.take_warning(said.process.map(|process| process.host), said.text, line.number),
            }
        });
        if !is_known {
            self.other(line);
        }
    }

    /// A line of another program.
    fn other(&mut self, line: Line<'_>) {
        let (time, text) = tagged(line.text);
        let trimmed = text.trim_start();
        match trimmed.as_bytes().first() {
            Some(b'#') => self.comment(trimmed, line.number),
            // as old releases of nccl-tests write it (NVIDIA/nccl-tests#17)
            Some(b'O' | b'A') if trimmed.starts_with("Out of bounds values") || trimmed.starts_with("Avg bus bandwidth") => {
                self.comment(&format!("# {trimmed}"), line.number);
            }
            Some(b'0'..=b'9') => {
                self.runs.row(trimmed);
                self.perftest(trimmed);
            }
            _ => {}
        }
        let Some(found) = self.words.find(text) else {
            self.hpn.below(text);
            return;
        };
        let rest = &text[found.end()..];
        match &self.meanings[found.pattern().as_usize()] {
            Word::Trouble(trouble) => {
                let failure = Failure { trouble: trouble.clone(), line: line.number, host: None, text: super::kept(trimmed) };
                if let Some(version) = message::version(text) {
                    self.log.take_version(version);
                }
                self.log.fail(failure);
            }
            Word::Epoch => {
                if self.log.training.take(rest) {
                    let training = &self.log.training;
                    self.log.steps.came(time, training.epochs.1, training.samples.map(|(done, _)| done));
                }
            }
            Word::Step(in_a_second) => self.log.steps.said(rest, *in_a_second),
            Word::Version => {
                if let Some(version) = message::version(text) {
                    self.log.take_version(version);
                }
            }
            Word::Hpn => self.hpn.named(text, line.number),
        }
    }

    fn comment(&mut self, text: &str, line: u64) {
        if text.starts_with("#bytes") {
            self.perftest_header = Some(text.to_owned());
        } else if let Some(error) = text.strip_prefix("# error: ") {
            // what NCCL warned of last, at the end of a run of nccl-tests (src/util.cu, writeErrors)
            self.log.take_warning(None, error, line);
        } else {
            self.runs.comment(text, line);
        }
    }

    /// The line of numbers below the header of perftest.
    fn perftest(&mut self, row: &str) {
        let Some(header) = self.perftest_header.take() else { return };
        if let Ok(gbps) = perftest::bandwidth_gbps(0, &format!("{header}\n{row}\n")) {
            let (runs, least, most) = self.log.perftest.unwrap_or((0, gbps, gbps));
            self.log.perftest = Some((runs + 1, least.min(gbps), most.max(gbps)));
        }
    }
}
