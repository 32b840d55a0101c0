//! Patterns of words: `ip link set`, `dev {netdev}`, `apt-get|apt`, `mlnx-ofed*`. A pattern is a
//! list of groups. The first stands at the begin of a command; the others anywhere after it, in any
//! order, each word of a command in one group only. A group that begins with `?` may be missing.
//! `{name}` takes a text, `{name:number}` one of a sort.

use railwright_base::Reason;
use serde_json::Value;
use std::collections::BTreeMap;

/// A longer word is none of a command that we know.
const WORD_MAX: usize = 300;
/// Names, sorts and texts of what a pattern took.
pub type Captures = BTreeMap<String, CapturedValue>;

/// What a place in a pattern took.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedValue {
    /// As it is written.
    pub written: String,
    /// As the spec has it.
    pub value: Value,
}

/// What may stand in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceholderType {
    /// Any text.
    Text,
    /// A whole number; the spec has a number.
    Number,
    /// A whole number; the spec has text.
    Digits,
    /// A release such as `12-4` in the name of a package; the spec has `12.4`.
    Release,
    /// Eight switches of which one is on; the spec has its place, from 0.
    Mask,
    /// A traffic class without ECN; the spec has its DSCP.
    Class,
    /// A traffic class with ECT(0); the spec has its DSCP.
    EcnClass,
    /// An address or the name of a host.
    Server,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternWordPart {
    Text(String),
    Any,
    Place(String, PlaceholderType),
}

/// What one word must be: one of several.
#[derive(Debug, Clone)]
pub struct PatternWord(Vec<Vec<PatternWordPart>>);

#[derive(Debug, Clone)]
struct PatternGroup {
    optional: bool,
    words: Vec<PatternWord>,
}

/// A pattern of a whole command.
#[derive(Debug, Clone)]
pub struct CommandPattern(Vec<PatternGroup>);

impl PatternWord {
    /// Reads one.
    pub fn read(text: &str) -> Result<PatternWord, Reason> {
        text.split('|')
            .map(parse_word_parts)
            .collect::<Result<_, _>>()
            .map(PatternWord)
    }

    /// Whether a word is one of these; what it gives comes into `captures`.
    pub fn matches(&self, word: &str, captures: &mut Captures) -> bool {
        word.len() <= WORD_MAX
            && self
                .0
                .iter()
                .any(|parts| match_word_parts(parts, word, captures))
    }

    fn places(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().filter_map(|part| match part {
            PatternWordPart::Place(name, _) => Some(name.as_str()),
            PatternWordPart::Text(_) | PatternWordPart::Any => None,
        })
    }
}

impl CommandPattern {
    /// Reads one from its groups.
    pub fn read(groups: &[String]) -> Result<CommandPattern, Reason> {
        let groups: Vec<PatternGroup> = groups
            .iter()
            .map(|text| PatternGroup::read(text))
            .collect::<Result<_, _>>()?;
        match groups.first() {
            Some(first) if !first.optional => Ok(CommandPattern(groups)),
            _ => Err("a pattern begins with a group that must be there".into()),
        }
    }

    /// The names of what it takes in any case.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|group| !group.optional)
            .flat_map(|group| &group.words)
            .flat_map(PatternWord::places)
    }

    /// What a command gives, and which of its words were taken; nothing where it is another
    /// command.
    pub fn matches(&self, words: &[String]) -> Option<(Captures, Vec<bool>)> {
        let mut captures = Captures::new();
        let mut used = vec![false; words.len()];
        for (number, group) in self.0.iter().enumerate() {
            let starts = if number == 0 { 0..1 } else { 1..words.len() };
            let found = starts.into_iter().find_map(|at| group.at(words, &used, at));
            match found {
                Some((taken, length, at)) => {
                    captures.extend(taken);
                    used[at..at + length].fill(true);
                }
                None if group.optional => {}
                None => return None,
            }
        }
        Some((captures, used))
    }
}

impl PatternGroup {
    fn read(text: &str) -> Result<PatternGroup, Reason> {
        let bare = text.trim_start_matches('?');
        let texts = shlex::split(bare).unwrap_or_default();
        if texts.is_empty() {
            return Err("a group has no words".into());
        }
        let words = texts
            .iter()
            .map(|word| PatternWord::read(word))
            .collect::<Result<_, _>>()?;
        Ok(PatternGroup {
            optional: bare.len() < text.len(),
            words,
        })
    }

    /// What the group takes at this place, and how many words.
    fn at(&self, words: &[String], used: &[bool], at: usize) -> Option<(Captures, usize, usize)> {
        let mut captures = Captures::new();
        // An option and its value may be one word: `--pfc=0,0,0,1,0,0,0,0`.
        if let [option, value] = &self.words[..]
            && let Some((name, given)) = words
                .get(at)
                .filter(|word| word.starts_with("--") && !used[at])
                .and_then(|word| word.split_once('='))
            && option.matches(name, &mut captures)
            && value.matches(given, &mut captures)
        {
            return Some((captures, 1, at));
        }
        captures.clear();
        let end = at + self.words.len();
        let free = words.get(at..end)?;
        if used[at..end].contains(&true) {
            return None;
        }
        for (pattern, word) in self.words.iter().zip(free) {
            if !pattern.matches(word, &mut captures) {
                return None;
            }
        }
        Some((captures, self.words.len(), at))
    }
}

fn parse_word_parts(text: &str) -> Result<Vec<PatternWordPart>, Reason> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '*']) {
        if at > 0 {
            parts.push(PatternWordPart::Text(rest[..at].to_owned()));
        }
        if rest[at..].starts_with('*') {
            parts.push(PatternWordPart::Any);
            rest = &rest[at + 1..];
            continue;
        }
        let (place, after) = rest[at + 1..]
            .split_once('}')
            .ok_or_else(|| format!("`{text}` has a brace that is not closed"))?;
        let (name, form) = place.split_once(':').unwrap_or((place, "text"));
        parts.push(PatternWordPart::Place(
            name.to_owned(),
            PlaceholderType::read(form)?,
        ));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(PatternWordPart::Text(rest.to_owned()));
    }
    Ok(parts)
}

/// Whether the parts make up the whole text.
fn match_word_parts(parts: &[PatternWordPart], text: &str, captures: &mut Captures) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return text.is_empty();
    };
    match first {
        PatternWordPart::Text(literal) => text
            .strip_prefix(literal.as_str())
            .is_some_and(|after| match_word_parts(rest, after, captures)),
        PatternWordPart::Any => {
            list_cut_positions(text).any(|end| match_word_parts(rest, &text[end..], captures))
        }
        PatternWordPart::Place(name, form) => {
            for end in list_cut_positions(text).skip(1) {
                let Some(value) = form.value(&text[..end]) else {
                    continue;
                };
                if match_word_parts(rest, &text[end..], captures) {
                    let written = text[..end].to_owned();
                    captures.insert(name.clone(), CapturedValue { written, value });
                    return true;
                }
            }
            false
        }
    }
}

/// The places where a text can be cut, its end among them.
fn list_cut_positions(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()])
}

impl PlaceholderType {
    fn read(name: &str) -> Result<PlaceholderType, Reason> {
        Ok(match name {
            "text" => PlaceholderType::Text,
            "number" => PlaceholderType::Number,
            "digits" => PlaceholderType::Digits,
            "release" => PlaceholderType::Release,
            "mask" => PlaceholderType::Mask,
            "class" => PlaceholderType::Class,
            "ecn-class" => PlaceholderType::EcnClass,
            "server" => PlaceholderType::Server,
            other => return Err(format!("there is no sort `{other}` of places").into()),
        })
    }

    /// The value that the spec has for a text; nothing where the text is of another sort.
    fn value(self, text: &str) -> Option<Value> {
        match self {
            PlaceholderType::Text => Some(Value::from(text)),
            PlaceholderType::Number => parse_number(text).map(Value::from),
            PlaceholderType::Digits => has_only_digits(text).then(|| Value::from(text)),
            PlaceholderType::Release => {
                let numbers: Vec<&str> = text.split(['-', '.']).collect();
                let sound = numbers
                    .iter()
                    .all(|part| !part.is_empty() && has_only_digits(part));
                sound.then(|| Value::from(numbers.join(".")))
            }
            PlaceholderType::Mask => {
                let switches: Vec<&str> = text.split(',').collect();
                let on = switches.iter().position(|switch| *switch == "1")?;
                let mut others = switches[..on].iter().chain(&switches[on + 1..]);
                let sound = switches.len() == 8 && others.all(|switch| *switch == "0");
                sound.then(|| Value::from(on))
            }
            PlaceholderType::Class => parse_dscp(text, 0),
            PlaceholderType::EcnClass => parse_dscp(text, 2),
            PlaceholderType::Server => {
                let named = text.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && text.contains(|c: char| c.is_ascii_alphabetic() || ".:".contains(c));
                named.then(|| Value::from(text))
            }
        }
    }
}

fn has_only_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number without a sign.
fn parse_number(text: &str) -> Option<u32> {
    if !has_only_digits(text) {
        return None;
    }
    text.parse().ok()
}

/// The DSCP of a traffic class whose two ECN bits are these.
fn parse_dscp(text: &str, ecn: u32) -> Option<Value> {
    let class = parse_number(text)?;
    (class < 256 && class % 4 == ecn).then(|| Value::from(class / 4))
}
