//! What each command of a script says: by the first translation that holds, word for word; what no
//! translation takes is told as not understood.

use super::load::{
    Covers, Dictionary, TranslationEntry, TranslationFamily, TranslationKind, fill_template_value,
    text_of,
};
use super::merge::{self, TranslationConflict};
use super::pattern::Captures;
use super::prose;
use super::script::{self, ScriptCommand};
use railwright_base::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;

/// How far apart commands may stand that mean one thing together.
const STEPS_APART_MAX: usize = 12;

/// A command of the script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScriptCommandText {
    /// Its line, from 1.
    pub line: usize,
    /// As it is written, in one line.
    pub text: String,
}

/// What commands are to the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TranslationCategory {
    /// They set something.
    Set,
    /// They only look.
    Look,
    /// They change nothing that a spec is about.
    Aside,
    /// They are known, and say too little.
    Open,
    /// They are not known.
    Unknown,
}

/// What one or several commands say.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TranslationAnswer {
    /// The commands: those that say the same, or mean one thing together.
    pub commands: Vec<ScriptCommandText>,
    /// What they are to the spec.
    pub sort: TranslationCategory,
    /// The name of the translation.
    pub translation: Option<String>,
    /// Spec lines that say the same.
    pub spec: Option<Value>,
    /// Spec lines that are better, where what the commands say is out of date.
    pub better: Option<Value>,
    /// What railwright does instead.
    pub does: String,
    /// Why.
    pub why: String,
    /// Where that is said.
    pub source: String,
    /// What does it.
    pub covers: Covers,
    /// Words that were not understood.
    pub left: Vec<String>,
}

/// What a script says.
#[derive(Debug, Clone, PartialEq)]
pub struct Translation {
    /// Lines that are text around the commands, and none.
    pub prose: Vec<usize>,
    /// In the order of the script.
    pub answers: Vec<TranslationAnswer>,
    /// The spec lines of all of them together, the better ones where there are any.
    pub spec: Value,
    /// Where commands say different things.
    pub conflicts: Vec<TranslationConflict>,
}

impl TranslationAnswer {
    /// Nothing is left open.
    pub fn is_understood(&self) -> bool {
        self.left.is_empty()
            && !matches!(
                self.sort,
                TranslationCategory::Open | TranslationCategory::Unknown
            )
    }

    /// The spec lines to write: the better ones where there are any.
    pub fn lines(&self) -> Option<&Value> {
        self.better.as_ref().or(self.spec.as_ref())
    }

    /// Whether another command says the same. Its commands are not looked at: they may be all of
    /// the script.
    fn same_as(&self, other: &TranslationAnswer) -> bool {
        let TranslationAnswer {
            commands: _,
            sort,
            translation,
            spec,
            better,
            does,
            why,
            source,
            covers,
            left,
        } = self;
        *sort != TranslationCategory::Unknown
            && (sort, translation, spec, better)
                == (&other.sort, &other.translation, &other.spec, &other.better)
            && (does, why, source, covers, left)
                == (
                    &other.does,
                    &other.why,
                    &other.source,
                    &other.covers,
                    &other.left,
                )
    }
}

impl Translation {
    /// Every command was understood.
    pub fn is_understood(&self) -> bool {
        self.answers.iter().all(TranslationAnswer::is_understood)
    }
}

/// What a script says, by these translations; an error where its words cannot be told apart.
pub fn translate_script(script: &str, dictionary: &Dictionary) -> Result<Translation, Diagnostic> {
    let (commands, prose): (Vec<ScriptCommand>, Vec<ScriptCommand>) =
        script::parse_script_commands(script)?
            .into_iter()
            .partition(|one| !prose::is_prose(one, dictionary));
    let mut found: Vec<(usize, TranslationAnswer)> = Vec::new();
    let mut done = vec![false; commands.len()];
    for entry in dictionary.entries().filter(|entry| !entry.steps.is_empty()) {
        for start in 0..commands.len() {
            if let Some(answer) = match_command_steps(entry, &commands, start, &mut done) {
                found.push((start, answer));
            }
        }
    }
    for (at, command) in commands.iter().enumerate().filter(|(at, _)| !done[*at]) {
        found.extend(
            translate_command(command, dictionary)
                .into_iter()
                .map(|answer| (at, answer)),
        );
    }
    found.sort_by_key(|(at, _)| *at);
    let mut prose: Vec<usize> = prose.into_iter().map(|command| command.line).collect();
    prose.dedup();
    Ok(Translation {
        prose,
        ..merge_equal_answers(found.into_iter().map(|(_, answer)| answer))
    })
}

/// Commands that say the same are told once, and all spec lines are put together.
fn merge_equal_answers(answers: impl Iterator<Item = TranslationAnswer>) -> Translation {
    let mut translation = Translation {
        prose: Vec::new(),
        answers: Vec::new(),
        spec: Value::Object(serde_json::Map::new()),
        conflicts: Vec::new(),
    };
    let mut seen: std::collections::HashMap<String, Vec<usize>> = std::collections::HashMap::new();
    for answer in answers {
        let known = seen
            .entry(answer.translation.clone().unwrap_or_default())
            .or_default();
        match known
            .iter()
            .take(50)
            .find(|at| translation.answers[**at].same_as(&answer))
        {
            Some(at) => {
                let commands = &mut translation.answers[*at].commands;
                commands.extend(
                    answer
                        .commands
                        .into_iter()
                        .filter(|said| commands.last() != Some(said))
                        .collect::<Vec<_>>(),
                );
            }
            None => {
                known.push(translation.answers.len());
                if let Some(lines) = answer.lines() {
                    merge::merge_spec_value(
                        &mut translation.spec,
                        lines,
                        "",
                        &mut translation.conflicts,
                    );
                }
                translation.answers.push(answer);
            }
        }
    }
    translation
}

fn describe_command(command: &ScriptCommand) -> ScriptCommandText {
    ScriptCommandText {
        line: command.line,
        text: command.text.clone(),
    }
}

/// Commands that mean one thing together: the first one, and whichever of the others follow it.
fn match_command_steps(
    entry: &TranslationEntry,
    commands: &[ScriptCommand],
    start: usize,
    done: &mut [bool],
) -> Option<TranslationAnswer> {
    let (first, others) = entry.steps.split_first()?;
    let (mut captures, used) = first
        .matches(&commands[start].words)
        .filter(|_| !done[start])?;
    let mut left = list_untranslated_words(entry, &commands[start].words, &used);
    let mut taken = vec![start];
    for step in others {
        let after = *taken.last()? + 1;
        let near = after..commands.len().min(after + STEPS_APART_MAX);
        let next = near
            .filter(|at| !done[*at])
            .find_map(|at| Some((at, step.matches(&commands[at].words)?)));
        if let Some((at, (more, used))) = next {
            captures.extend(more);
            left.extend(list_untranslated_words(entry, &commands[at].words, &used));
            taken.push(at);
        }
    }
    let places = entry
        .steps
        .iter()
        .flat_map(super::pattern::CommandPattern::places);
    if taken.len() < 2
        || places
            .into_iter()
            .any(|place| !captures.contains_key(place))
    {
        return None;
    }
    taken.iter().for_each(|at| done[*at] = true);
    let commands = taken
        .iter()
        .map(|at| describe_command(&commands[*at]))
        .collect();
    Some(build_translation_answer(entry, commands, &captures, left))
}

/// What one command says by itself. What sets something is asked first, then what looks, then the
/// rest.
pub(super) fn translate_command(
    command: &ScriptCommand,
    dictionary: &Dictionary,
) -> Vec<TranslationAnswer> {
    let mut answers = Vec::new();
    let mut taken = vec![false; command.words.len()];
    for family in &dictionary.families {
        if let Some(found) = each_word(family, command) {
            answers.extend(found);
            taken.fill(true);
        }
    }
    for kind in [
        TranslationKind::Set,
        TranslationKind::Look,
        TranslationKind::Open,
        TranslationKind::Aside,
    ] {
        for entry in dictionary.entries().filter(|entry| entry.kind == kind) {
            answers.extend(translate_words(entry, command, &mut taken));
        }
    }
    let mut left = Vec::new();
    for (word, taken) in command.words.iter().zip(&taken) {
        if !taken {
            left.push(word.clone());
        }
    }
    match answers.last_mut() {
        Some(last) => last.left.extend(left),
        None => answers.push(new_unknown_answer(command, Vec::new())),
    }
    answers
}

/// What an entry says of a command, where it takes a word that is not yet taken; its words are
/// marked as taken then.
fn translate_words(
    entry: &TranslationEntry,
    command: &ScriptCommand,
    taken: &mut [bool],
) -> Option<TranslationAnswer> {
    let (captures, used) = entry
        .words
        .iter()
        .find_map(|pattern| pattern.matches(&command.words))?;
    if used
        .iter()
        .zip(&*taken)
        .all(|(used, taken)| !used || *taken)
    {
        return None;
    }
    let left = list_untranslated_words(entry, &command.words, &used);
    let left: HashSet<&String> = left.iter().collect();
    for ((taken, word), used) in taken.iter_mut().zip(&command.words).zip(&used) {
        *taken |= *used || !left.contains(word);
    }
    let commands = vec![describe_command(command)];
    Some(build_translation_answer(
        entry,
        commands,
        &captures,
        Vec::new(),
    ))
}

/// A command that says the same of each of its words: what it says of them; nothing where it is
/// another command.
fn each_word(
    family: &TranslationFamily,
    command: &ScriptCommand,
) -> Option<Vec<TranslationAnswer>> {
    let mut plain: Vec<&String> = Vec::new();
    let mut words = command.words.iter();
    while let Some(word) = words.next() {
        if family.valued.contains(word) {
            words.next();
        } else if !word.starts_with('-') {
            plain.push(word);
        }
    }
    let mut nothing = Captures::new();
    let head = plain
        .get(..family.head.len())
        .filter(|head| !head.is_empty())?;
    if !family
        .head
        .iter()
        .zip(head)
        .all(|(pattern, word)| pattern.matches(word, &mut nothing))
    {
        return None;
    }
    let mut answers: Vec<TranslationAnswer> = Vec::new();
    let mut left = Vec::new();
    for word in &plain[family.head.len()..] {
        let found = family.entries.iter().find_map(|entry| {
            let mut captures = Captures::new();
            entry
                .items
                .iter()
                .any(|item| item.matches(word, &mut captures))
                .then_some((entry, captures))
        });
        match found {
            Some((entry, captures)) => answers.push(build_translation_answer(
                entry,
                vec![describe_command(command)],
                &captures,
                Vec::new(),
            )),
            None => left.push((*word).clone()),
        }
    }
    if !left.is_empty() {
        answers.push(new_unknown_answer(command, left));
    }
    (!answers.is_empty()).then_some(answers)
}

/// Words of a command that a translation neither takes nor passes over. What a command writes into
/// a file is never passed over.
fn list_untranslated_words(
    entry: &TranslationEntry,
    words: &[String],
    used: &[bool],
) -> Vec<String> {
    let redirects = |word: &String| word.starts_with(['>', '<']);
    let to_file = |at: usize| {
        words.get(at).is_some_and(redirects)
            || at
                .checked_sub(1)
                .and_then(|at| words.get(at))
                .is_some_and(redirects)
    };
    let passed = |word: &String| {
        entry
            .aside
            .iter()
            .any(|aside| aside.matches(word, &mut Captures::new()))
    };
    let left = words
        .iter()
        .enumerate()
        .filter(|(at, word)| !used[*at] && (to_file(*at) || !passed(word)));
    left.map(|(_, word)| word.clone()).collect()
}

fn new_unknown_answer(command: &ScriptCommand, left: Vec<String>) -> TranslationAnswer {
    TranslationAnswer {
        commands: vec![describe_command(command)],
        sort: TranslationCategory::Unknown,
        translation: None,
        spec: None,
        better: None,
        does: String::new(),
        why: String::new(),
        source: String::new(),
        covers: Covers::default(),
        left,
    }
}

fn build_translation_answer(
    entry: &TranslationEntry,
    commands: Vec<ScriptCommandText>,
    captures: &Captures,
    mut left: Vec<String>,
) -> TranslationAnswer {
    let text = |template: &str| text_of(template, captures).unwrap_or_else(|| template.to_owned());
    // What stands in a variable of the shell is not known here.
    let in_variable = |(name, captured): &(&String, &super::pattern::CapturedValue)| {
        captured.said.contains(['$', '`'])
            && has_placeholder(&entry.spec, name) | has_placeholder(&entry.better, name)
    };
    let variables: Vec<String> = captures
        .iter()
        .filter(in_variable)
        .map(|(_, captured)| captured.said.clone())
        .collect();
    let lines = |template: &Value| {
        fill_template_value(template, captures)
            .filter(|_| !template.is_null() && variables.is_empty())
    };
    let (spec, better) = (lines(&entry.spec), lines(&entry.better));
    left.extend(variables);
    TranslationAnswer {
        commands,
        sort: match entry.kind {
            TranslationKind::Set => TranslationCategory::Set,
            TranslationKind::Look => TranslationCategory::Look,
            TranslationKind::Aside => TranslationCategory::Aside,
            TranslationKind::Open => TranslationCategory::Open,
        },
        translation: Some(entry.id.clone()),
        spec,
        better,
        does: text(&entry.does),
        why: text(&entry.why),
        source: entry.source.clone(),
        covers: entry.covers.clone(),
        left,
    }
}

/// Whether a template has a place of this name.
fn has_placeholder(template: &Value, name: &str) -> bool {
    let has = |text: &str| {
        text.contains(&format!("{{{name}}}")) || text.contains(&format!("{{{name}.said}}"))
    };
    match template {
        Value::String(text) => has(text),
        Value::Array(items) => items.iter().any(|item| has_placeholder(item, name)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| has(key) || has_placeholder(value, name)),
        _ => false,
    }
}
