//! Which patterns of symptoms a log has, in one pass: the first part of each is looked for by one
//! automaton, the rest in the line where it was found.

use super::load::Symptom;
use aho_corasick::AhoCorasick;
use railwright_verify::nccl::lines::{LogLine, LogLineSplitter};
use std::collections::BTreeMap;

/// Characters of a line that are kept.
const TEXT_MAX: usize = 200;

/// Where a pattern was seen first, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternOccurrence {
    /// The line, from 1.
    pub line: u64,
    /// Its text, as far as it is kept.
    pub text: String,
    /// Lines with it.
    pub lines: u64,
}

/// Looks for patterns.
#[derive(Debug)]
pub struct PatternScanner {
    lines: LogLineSplitter,
    looking: Looking,
}

#[derive(Debug)]
struct Looking {
    automaton: AhoCorasick,
    patterns: Vec<(String, Vec<String>)>,
    seen: Vec<Option<PatternOccurrence>>,
}

impl PatternScanner {
    /// For the patterns of these symptoms.
    pub fn of(symptoms: &[Symptom]) -> Self {
        let mut patterns: Vec<&String> = symptoms
            .iter()
            .flat_map(|symptom| symptom.seen.iter().flatten().chain(&symptom.unless))
            .collect();
        patterns.sort();
        patterns.dedup();
        let patterns: Vec<(String, Vec<String>)> = patterns
            .into_iter()
            .map(|pattern| (pattern.clone(), split_pattern(pattern)))
            .collect();
        let heads = patterns.iter().filter_map(|(_, parts)| parts.first());
        let automaton =
            AhoCorasick::new(heads).expect("some hundred short words make an automaton");
        let seen = vec![None; patterns.len()];
        PatternScanner {
            lines: LogLineSplitter::default(),
            looking: Looking {
                automaton,
                patterns,
                seen,
            },
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8]) {
        let looking = &mut self.looking;
        self.lines.feed(chunk, &mut |line| looking.line(line));
    }

    /// What was seen, by pattern.
    pub fn finish(mut self) -> BTreeMap<String, PatternOccurrence> {
        let looking = &mut self.looking;
        self.lines.end(&mut |line| looking.line(line));
        let Looking { patterns, seen, .. } = self.looking;
        let mut occurrences = BTreeMap::new();
        for ((pattern, _), seen) in patterns.into_iter().zip(seen) {
            if let Some(seen) = seen {
                occurrences.insert(pattern, seen);
            }
        }
        occurrences
    }
}

/// The parts of a pattern between its `*`.
fn split_pattern(pattern: &str) -> Vec<String> {
    pattern.split('*').map(str::to_owned).collect()
}

impl Looking {
    fn line(&mut self, line: LogLine<'_>) {
        for found in self.automaton.find_overlapping_iter(line.text) {
            let place = found.pattern().as_usize();
            let (_, parts) = &self.patterns[place];
            if !has_parts_in_order(&line.text[found.end()..], &parts[1..]) {
                continue;
            }
            match &mut self.seen[place] {
                // the same line may hold the word twice
                Some(seen) => seen.lines += u64::from(seen.line != line.number),
                none => {
                    *none = Some(PatternOccurrence {
                        line: line.number,
                        text: railwright_base::text::one_line(line.text, TEXT_MAX),
                        lines: 1,
                    })
                }
            }
        }
    }
}

/// Whether all parts are there, each behind the one before.
fn has_parts_in_order(mut text: &str, parts: &[String]) -> bool {
    for part in parts {
        let Some((_, rest)) = text.split_once(part.as_str()) else {
            return false;
        };
        text = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_in_one_line() {
        let parts = |pattern: &str| pattern.split('*').map(str::to_owned).collect::<Vec<_>>();
        assert!(has_parts_in_order(" x is in use by y", &parts("x* in use")));
        assert!(!has_parts_in_order(" in use x", &parts("x* in use")));
        assert!(has_parts_in_order("", &[]));
    }
}
