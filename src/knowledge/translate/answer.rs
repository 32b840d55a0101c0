//! What each command of a script says: by the first translation that holds, word for word; what no
//! translation takes is reported as not understood.

use super::load::{
    Covers, Dictionary, TranslationEntry, TranslationFamily, TranslationKind, fill_template_value,
    fill_text,
};
use super::merge::{self, TranslationConflict};
use super::pattern::{Captures, CommandPattern};
use super::prose;
use super::script::{self, ScriptCommand};
use railwright_base::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

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
            .partition(|command| !prose::is_prose(command, dictionary));
    let mut found: Vec<(usize, TranslationAnswer)> = Vec::new();
    let mut done = vec![false; commands.len()];
    for entry in dictionary.entries().filter(|entry| !entry.steps.is_empty()) {
        for start in 0..commands.len() {
            if let Some(answer) = match_command_steps(entry, &commands, start, &mut done) {
                found.push((start, answer));
            }
        }
    }
    for (at, command) in commands.iter().enumerate() {
        if done[at] {
            continue;
        }
        for answer in translate_command(command, dictionary) {
            found.push((at, answer));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut prose: Vec<usize> = prose.into_iter().map(|command| command.line).collect();
    prose.dedup();
    Ok(Translation {
        prose,
        ..merge_equal_answers(found.into_iter().map(|(_, answer)| answer))
    })
}

/// Commands that say the same are listed once, and all spec lines are put together.
fn merge_equal_answers(answers: impl Iterator<Item = TranslationAnswer>) -> Translation {
    let mut translation = Translation {
        prose: Vec::new(),
        answers: Vec::new(),
        spec: Value::Object(serde_json::Map::new()),
        conflicts: Vec::new(),
    };
    let mut seen: HashMap<String, Vec<usize>> = HashMap::new();
    for answer in answers {
        let name = answer.translation.clone().unwrap_or_default();
        let known = seen.entry(name).or_default();
        let mut first = known.iter().take(50);
        if let Some(at) = first.find(|at| translation.answers[**at].same_as(&answer)) {
            append_commands(&mut translation.answers[*at].commands, answer.commands);
            continue;
        }
        known.push(translation.answers.len());
        if let Some(lines) = answer.lines() {
            let conflicts = &mut translation.conflicts;
            merge::merge_spec_value(&mut translation.spec, lines, "", conflicts);
        }
        translation.answers.push(answer);
    }
    translation
}

/// Adds the commands of an equal answer, without those that are the last command over again.
fn append_commands(commands: &mut Vec<ScriptCommandText>, more: Vec<ScriptCommandText>) {
    let last = commands.last().cloned();
    for command in more {
        if last.as_ref() != Some(&command) {
            commands.push(command);
        }
    }
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
    if done[start] {
        return None;
    }
    let (first, others) = entry.steps.split_first()?;
    let (mut captures, used) = first.matches(&commands[start].words)?;
    let mut left = list_untranslated_words(entry, &commands[start].words, &used);
    let mut taken = vec![start];
    for step in others {
        let after = *taken.last()? + 1;
        for at in after..commands.len().min(after + STEPS_APART_MAX) {
            if done[at] {
                continue;
            }
            if let Some((more, used)) = step.matches(&commands[at].words) {
                captures.extend(more);
                left.extend(list_untranslated_words(entry, &commands[at].words, &used));
                taken.push(at);
                break;
            }
        }
    }
    let mut places = entry.steps.iter().flat_map(CommandPattern::places);
    if taken.len() < 2 || !places.all(|place| captures.contains_key(place)) {
        return None;
    }
    for at in &taken {
        done[*at] = true;
    }
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
        if let Some(found) = translate_each_word(family, command) {
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
    let mut words = used.iter().zip(&*taken);
    if words.all(|(used, taken)| !used || *taken) {
        return None;
    }
    let left = list_untranslated_words(entry, &command.words, &used);
    let left: HashSet<&String> = left.iter().collect();
    for (at, word) in command.words.iter().enumerate() {
        taken[at] |= used[at] || !left.contains(word);
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
fn translate_each_word(
    family: &TranslationFamily,
    command: &ScriptCommand,
) -> Option<Vec<TranslationAnswer>> {
    let plain = list_plain_words(family, command);
    if family.head.is_empty() || plain.len() <= family.head.len() {
        return None;
    }
    let (head, words) = plain.split_at(family.head.len());
    let mut nothing = Captures::new();
    for (pattern, word) in family.head.iter().zip(head) {
        if !pattern.matches(word, &mut nothing) {
            return None;
        }
    }
    let mut answers: Vec<TranslationAnswer> = Vec::new();
    let mut left = Vec::new();
    for word in words {
        let Some((entry, captures)) = find_word_entry(family, word) else {
            left.push((*word).clone());
            continue;
        };
        let commands = vec![describe_command(command)];
        answers.push(build_translation_answer(
            entry,
            commands,
            &captures,
            Vec::new(),
        ));
    }
    if !left.is_empty() {
        answers.push(new_unknown_answer(command, left));
    }
    Some(answers)
}

/// The words of a command without options and their values.
fn list_plain_words<'a>(family: &TranslationFamily, command: &'a ScriptCommand) -> Vec<&'a String> {
    let mut plain = Vec::new();
    let mut words = command.words.iter();
    while let Some(word) = words.next() {
        if family.valued.contains(word) {
            words.next();
        } else if !word.starts_with('-') {
            plain.push(word);
        }
    }
    plain
}

fn find_word_entry<'a>(
    family: &'a TranslationFamily,
    word: &str,
) -> Option<(&'a TranslationEntry, Captures)> {
    for entry in &family.entries {
        let mut captures = Captures::new();
        for item in &entry.items {
            if item.matches(word, &mut captures) {
                return Some((entry, captures));
            }
        }
    }
    None
}

/// Words of a command that a translation neither takes nor passes over. What a command writes into
/// a file is never passed over.
fn list_untranslated_words(
    entry: &TranslationEntry,
    words: &[String],
    used: &[bool],
) -> Vec<String> {
    let mut left = Vec::new();
    let mut follows_redirect = false;
    for (word, used) in words.iter().zip(used) {
        let redirects = word.starts_with(['>', '<']);
        let is_of_file = redirects || follows_redirect;
        if !used && (is_of_file || !is_passed_over(entry, word)) {
            left.push(word.clone());
        }
        follows_redirect = redirects;
    }
    left
}

fn is_passed_over(entry: &TranslationEntry, word: &str) -> bool {
    let mut aside = entry.aside.iter();
    aside.any(|pattern| pattern.matches(word, &mut Captures::new()))
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
    let variables = list_shell_variables(entry, captures);
    let (spec, better) = if variables.is_empty() {
        (
            fill_spec_lines(&entry.spec, captures),
            fill_spec_lines(&entry.better, captures),
        )
    } else {
        (None, None)
    };
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
        does: fill_sentence(&entry.does, captures),
        why: fill_sentence(&entry.why, captures),
        source: entry.source.clone(),
        covers: entry.covers.clone(),
        left,
    }
}

/// Words that the spec lines need and that hold a variable of the shell: its value is not known
/// here.
fn list_shell_variables(entry: &TranslationEntry, captures: &Captures) -> Vec<String> {
    let mut variables = Vec::new();
    for (name, captured) in captures {
        let is_needed = has_placeholder(&entry.spec, name) || has_placeholder(&entry.better, name);
        if is_needed && captured.written.contains(['$', '`']) {
            variables.push(captured.written.clone());
        }
    }
    variables
}

fn fill_spec_lines(template: &Value, captures: &Captures) -> Option<Value> {
    if template.is_null() {
        return None;
    }
    fill_template_value(template, captures)
}

fn fill_sentence(template: &str, captures: &Captures) -> String {
    fill_text(template, captures).unwrap_or_else(|| template.to_owned())
}

/// Whether a template has a place of this name.
fn has_placeholder(template: &Value, name: &str) -> bool {
    match template {
        Value::String(text) => text_has_placeholder(text, name),
        Value::Array(items) => items.iter().any(|item| has_placeholder(item, name)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| text_has_placeholder(key, name) || has_placeholder(value, name)),
        _ => false,
    }
}

fn text_has_placeholder(text: &str, name: &str) -> bool {
    text.contains(&format!("{{{name}}}")) || text.contains(&format!("{{{name}.said}}"))
}
