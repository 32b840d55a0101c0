//! The screen of `translate`: what each command says as spec lines, what railwright does instead,
//! and all of it together.

use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::{format_count, one_line, sanitize_text};
use railwright_base::{Diagnostic, text};
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::translate::{
    Covers, ScriptCommandText, Translation, TranslationAnswer, TranslationCategory,
    TranslationConflict,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Characters of a command on the screen.
const COMMAND_MAX: usize = 90;

/// The whole screen.
pub fn render_translation_screen(translation: &Translation) -> String {
    let mut out = translation
        .answers
        .iter()
        .map(render_translation_entry)
        .collect::<Vec<_>>()
        .join("\n");
    let with_lines = translation
        .answers
        .iter()
        .filter(|answer| answer.lines().is_some())
        .count();
    if with_lines > 1 {
        out.push_str(&render_heading("ALL TOGETHER, for the spec"));
        out.push_str(&render_spec_yaml(&translation.spec, "  "));
    }
    if with_lines > 0 {
        let hint = "These are parts of a spec: `fabric` has a `kind` too, each entry of `nodes` a \
                    `name`, `gpu` and `nics` a `model`; `railwright validate` says what is \
                    missing.";
        out.push('\n');
        out.push_str(&wrap_labelled_text("", hint, COLUMNS));
    }
    format!(
        "{}\n{}",
        sanitize_text(&out),
        render_translation_summary(translation)
    )
}

/// How many commands were understood.
fn render_translation_summary(translation: &Translation) -> String {
    let total = count_commands(translation.answers.iter());
    let not_understood = translation
        .answers
        .iter()
        .filter(|answer| !answer.is_understood());
    let missed = count_commands(not_understood);
    let understood = if missed == 0 {
        "all understood".to_owned()
    } else {
        format!("{missed} of them not understood, or not wholly")
    };
    let mut prose = String::new();
    if !translation.prose.is_empty() {
        let lines: Vec<String> = translation.prose.iter().map(usize::to_string).collect();
        let verb = if lines.len() == 1 { "is" } else { "are" };
        let text = format!(
            "{} {verb} text and no command: {}",
            format_count(lines.len(), "line"),
            format_number_ranges(&translation.prose)
        );
        prose = wrap_labelled_text("", &text, COLUMNS);
    }
    format!(
        "{prose}{}, {understood}. Nothing was run.\n",
        format_count(total, "command")
    )
}

fn count_commands<'a>(answers: impl Iterator<Item = &'a TranslationAnswer>) -> usize {
    let mut commands = BTreeSet::new();
    for answer in answers {
        for command in &answer.commands {
            commands.insert((command.line, command.text.as_str()));
        }
    }
    commands.len()
}

/// Numbers in their order, neighbours as a range: `1-3, 7`.
fn format_number_ranges(numbers: &[usize]) -> String {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match out.last_mut() {
            Some((_, last)) if *last + 1 >= *number => *last = *number,
            _ => out.push((*number, *number)),
        }
    }
    out.into_iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn render_translation_entry(answer: &TranslationAnswer) -> String {
    let mut out = render_command_lines(&answer.commands);
    match answer.sort {
        TranslationCategory::Unknown => {
            let what = if answer.left.is_empty() {
                "no translation of this command"
            } else {
                "no translation of this part of it"
            };
            out.push_str(&render_translation_field("not known", what));
        }
        TranslationCategory::Aside => out.push_str(&render_translation_field(
            "does",
            &format!("{}: {}", answer.does, answer.why),
        )),
        TranslationCategory::Set | TranslationCategory::Look | TranslationCategory::Open => {
            if let Some(spec) = &answer.spec {
                out.push_str(if answer.better.is_some() {
                    "  the same\n"
                } else {
                    "  spec\n"
                });
                out.push_str(&render_spec_yaml(spec, "    "));
            }
            if let Some(better) = &answer.better {
                out.push_str("  better\n");
                out.push_str(&render_spec_yaml(better, "    "));
            }
            for (label, text) in [
                ("does", answer.does.as_str()),
                ("why", &answer.why),
                ("by", &describe_coverage(&answer.covers)),
                ("source", &answer.source),
            ] {
                if !text.is_empty() {
                    out.push_str(&render_translation_field(label, text));
                }
            }
        }
    }
    if !answer.left.is_empty() {
        let left: Vec<String> = answer
            .left
            .iter()
            .map(|word| format!("`{}`", one_line(word, 60)))
            .collect();
        out.push_str(&render_translation_field("left over", &left.join(", ")));
    }
    out
}

fn render_translation_field(label: &str, text: &str) -> String {
    wrap_labelled_text(&format!("  {label:<10} "), text, COLUMNS)
}

/// The commands, one that stands there several times once.
fn render_command_lines(commands: &[ScriptCommandText]) -> String {
    let mut texts: Vec<(&str, Vec<usize>)> = Vec::new();
    for command in commands {
        match texts.iter_mut().find(|(text, _)| *text == command.text) {
            Some((_, lines)) => lines.push(command.line),
            None => texts.push((&command.text, vec![command.line])),
        }
    }
    let mut out = String::new();
    for (text, lines) in &texts {
        let numbers: Vec<String> = lines.iter().map(usize::to_string).collect();
        out.push_str(&format!(
            "{}: {}\n",
            numbers.join(", "),
            one_line(text, COMMAND_MAX)
        ));
    }
    out
}

/// What does it, in words.
fn describe_coverage(covers: &Covers) -> String {
    let mut parts = Vec::new();
    for (singular, plural, names) in [
        ("module", "modules", &covers.modules),
        ("rule", "rules", &covers.rules),
        ("verify:", "verify:", &covers.verify),
        ("drift:", "drift:", &covers.drift),
    ] {
        let word = if names.len() == 1 { singular } else { plural };
        if !names.is_empty() {
            parts.push(format!("{word} {}", names.join(", ")));
        }
    }
    parts.join("; ")
}

/// Spec lines as YAML, each line after `indent`.
pub fn render_spec_yaml(spec: &Value, indent: &str) -> String {
    let mut out = String::new();
    write_yaml_block(spec, indent, &mut out);
    out
}

fn write_yaml_block(value: &Value, indent: &str, out: &mut String) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                out.push_str(&format!(
                    "{indent}{}:",
                    format_yaml_scalar(&Value::from(key.as_str()))
                ));
                write_nested_yaml(value, indent, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut text = String::new();
                write_nested_yaml(item, indent, &mut text);
                // the first line of what an entry holds stands behind its dash
                let text = text.trim_start_matches('\n').trim_start();
                out.push_str(&format!("{indent}- {text}"));
            }
        }
        other => out.push_str(&format!("{indent}{}\n", format_yaml_scalar(other))),
    }
}

/// What stands behind a key or a dash.
fn write_nested_yaml(value: &Value, indent: &str, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write_yaml_block(value, &format!("{indent}  "), out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_yaml_block(value, &format!("{indent}  "), out);
        }
        Value::Object(_) => out.push_str(" {}\n"),
        Value::Array(_) => out.push_str(" []\n"),
        other => out.push_str(&format!(" {}\n", format_yaml_scalar(other))),
    }
}

/// A text without quotes where YAML takes it for the same text, with the quotes of JSON elsewhere.
fn format_yaml_scalar(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.clone()
    } else {
        Value::from(text::clean_line(text)).to_string()
    }
}

/// The kind of NIC, and its models, that the catalogue has this value in the environment for.
fn describe_environment(
    conflict: &TranslationConflict,
    value: &Value,
    catalog: &Catalog,
) -> Option<String> {
    let name = conflict.path.strip_prefix("jobs.environment.")?;
    let mut rows = Vec::new();
    for entry in catalog.acs.entries() {
        if let Some(known) = entry.content.environment.get(name)
            && Some(known.as_str()) == value.as_str()
        {
            rows.push(&entry.content);
        }
    }
    let first = rows.first()?;
    if rows.iter().any(|row| row.nic_type != first.nic_type) {
        return None;
    }
    let models: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    Some(format!(
        "NICs of type {} ({})",
        first.nic_type,
        models.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

/// Where commands say different things, as warnings. Environments of jobs that are for different
/// NICs of the same cloud exclude each other: which one it is follows from the model.
pub fn build_conflict_warnings(
    conflicts: &[TranslationConflict],
    catalog: &Catalog,
) -> Vec<Diagnostic> {
    conflicts
        .iter()
        .take(20)
        .map(|conflict| report_conflict(catalog, conflict))
        .collect()
}

fn report_conflict(catalog: &Catalog, conflict: &TranslationConflict) -> Diagnostic {
    let (earlier, later) = (
        one_line(&conflict.earlier.to_string(), 60),
        one_line(&conflict.later.to_string(), 60),
    );
    Diagnostic::warning(
        "RW1036",
        format!(
            "the commands say {earlier} and {later} for `{}`",
            one_line(&conflict.path, 80)
        ),
    )
    .effect(format!(
        "the spec lines for all of them together say {later}"
    ))
    .next(
        match (
            describe_environment(conflict, &conflict.earlier, catalog),
            describe_environment(conflict, &conflict.later, catalog),
        ) {
            (Some(earlier), Some(later)) if earlier != later => {
                format!(
                    "they exclude each other: the first is for {earlier}, the second for \
                         {later}; keep the lines of one and write `jobs.acs`"
                )
            }
            _ if conflict.path.starts_with("jobs.environment.") => {
                "they exclude each other: an environment is one or the other; translate each \
                     by itself, and keep one"
                    .to_owned()
            }
            _ => "decide which of the two is right; hosts that differ are groups of their own \
                      in `nodes`"
                .to_owned(),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use railwright_knowledge::shipped::yaml_files;
    use railwright_knowledge::spec::decode::decode_or_report;
    use railwright_knowledge::spec::yaml::{AliasBudget, YamlDocument};
    use railwright_knowledge::spec::{SourceFile, SourceText};
    use railwright_knowledge::translate::{
        Dictionary, TRANSLATIONS_FOLDER, load_translations, translate_script,
    };
    use std::sync::{Arc, OnceLock};

    fn dictionary() -> &'static Dictionary {
        static DICTIONARY: OnceLock<Dictionary> = OnceLock::new();
        DICTIONARY.get_or_init(|| {
            load_translations().unwrap_or_else(|(problems, _)| panic!("{problems:#?}"))
        })
    }

    /// The case of each shipped translation.
    fn scripts() -> Vec<String> {
        let entries = |(_, text): (String, String)| {
            let file: Value = serde_yaml::from_str(&text).unwrap();
            file["translations"].as_array().unwrap().clone()
        };
        let entries = yaml_files(TRANSLATIONS_FOLDER)
            .into_iter()
            .flat_map(entries);
        entries
            .map(|entry| entry["case"]["input"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What the spec's own reader finds in a text.
    fn read_again(text: &str) -> Option<Value> {
        let source = SourceText::new(SourceFile {
            name: "spec.yaml".to_owned(),
            text: text.to_owned(),
        });
        let mut problems = Vec::new();
        let document =
            YamlDocument::parse(Arc::new(source), &mut AliasBudget::default(), &mut problems)?;
        let value = decode_or_report(&document, document.root()?, &mut problems);
        value.filter(|_| problems.is_empty())
    }

    /// Somebody copies them into a spec. That they are lines of one is tried where they are made.
    #[test]
    fn the_lines_on_the_screen_are_those_of_the_translation() {
        let scripts = scripts();
        assert!(scripts.len() > 60);
        for script in scripts {
            let translation = translate_script(&script, dictionary()).unwrap();
            for lines in translation
                .answers
                .iter()
                .flat_map(|answer| [&answer.spec, &answer.better])
                .flatten()
            {
                let text = render_spec_yaml(lines, "");
                assert_eq!(read_again(&text).as_ref(), Some(lines), "{text}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_script_acts_on_the_terminal(script in "(?s).{0,80}", known in prop::sample::select(scripts())) {
            for script in [script.clone(), format!("{known} {script}")] {
                if let Ok(translation) = translate_script(&script, dictionary()) {
                    let screen = render_translation_screen(&translation);
                    prop_assert!(!screen.contains('\u{1b}'), "{screen:?}");
                }
            }
        }
    }
}
