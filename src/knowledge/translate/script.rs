//! A script as commands of words: split where the shell splits, without what only says how to run
//! them (`sudo`, a prompt, output that is thrown away). What is written into a few files by `echo`
//! or a here-document is read line by line.

mod splitter;

use self::splitter::ScriptSplitter;
use railwright_base::Diagnostic;
use std::collections::VecDeque;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCommand {
    /// Its line in the script, from 1.
    pub line: usize,
    /// As it is written, in one line.
    pub text: String,
    /// Its words without quotes.
    pub words: Vec<String>,
}

/// The most characters of a command's text: it is shown with all that the command says, be that a
/// thousand settings.
pub(super) const TEXT_MAX: usize = 1000;

/// A text that is no longer than that.
fn truncate_command_text(text: String) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        None => text,
        Some(_) => text
            .chars()
            .take(TEXT_MAX - 3)
            .chain("...".chars())
            .collect(),
    }
}

/// What stands between two separators of the shell.
struct ScriptPiece {
    line: usize,
    text: String,
    /// It reads what the one before it writes.
    piped: bool,
    /// The lines of its here-document, each with its number.
    body: Vec<(usize, String)>,
}

/// The commands of a script; what is wrong where a quote stays open.
pub fn parse_script_commands(script: &str) -> Result<Vec<ScriptCommand>, Diagnostic> {
    let mut found: Vec<ScriptCommand> = Vec::new();
    for piece in ScriptSplitter::new(script).pieces() {
        let Some(words) = shlex::split(&piece.text) else {
            return Err(new_unclosed_quote_error(&piece));
        };
        let words = without_frame(words);
        if words.is_empty() {
            continue;
        }
        let text =
            truncate_command_text(piece.text.split_whitespace().collect::<Vec<_>>().join(" "));
        let command = ScriptCommand {
            line: piece.line,
            text,
            words,
        };
        if piece.piped
            && let Some(before) = found
                .last_mut()
                .filter(|before| is_echo_command(before) && command.words[0] == "tee")
        {
            redirect_into_file(before, &command);
            continue;
        }
        let lines = if piece.body.is_empty() {
            Vec::new()
        } else {
            list_document_lines(&command, &piece.body)
        };
        if lines.is_empty() {
            found.push(command)
        } else {
            found.extend(lines)
        }
    }
    Ok(found.into_iter().flat_map(expand_command).collect())
}

fn new_unclosed_quote_error(piece: &ScriptPiece) -> Diagnostic {
    Diagnostic::error(
        "RW1034",
        format!(
            "a quote of the command in line {} is not closed",
            piece.line
        ),
    )
    .state("nothing was run")
    .next("close it; what follows it cannot be told apart")
}

/// Without what stands before a command and says only how it is run.
fn without_frame(words: Vec<String>) -> Vec<String> {
    let mut words: VecDeque<String> = drop_output_redirects(words).into();
    loop {
        match words.front().map(String::as_str) {
            Some("sudo" | "env") => {
                words.pop_front();
                while words.front().is_some_and(|word| word.starts_with('-')) {
                    let option = words.pop_front().unwrap_or_default();
                    if ["-u", "-g", "-C", "-h", "-p"].contains(&option.as_str()) {
                        words.pop_front();
                    }
                }
            }
            Some(
                "$" | "do" | "then" | "else" | "!" | "time" | "nohup" | "exec" | "command" | "{",
            ) => {
                words.pop_front();
            }
            Some("done" | "fi" | "esac" | "}") if words.len() == 1 => {
                words.pop_front();
            }
            _ => return words.into(),
        }
    }
}

/// Without output that is thrown away, or goes where other output goes.
fn drop_output_redirects(words: Vec<String>) -> Vec<String> {
    let mut out = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let redirects = [">", ">>", "1>", "2>", "2>>", "&>"].contains(&word.as_str());
        if redirects
            && (word.starts_with('2') || words.peek().is_some_and(|target| target == "/dev/null"))
        {
            words.next();
        } else if word != "2>&1" && word != "1>&2" {
            out.push(word);
        }
    }
    out
}

fn is_echo_command(command: &ScriptCommand) -> bool {
    ["echo", "printf"].contains(&command.words[0].as_str())
}

/// `echo TEXT | tee FILE` as `echo TEXT > FILE`.
fn redirect_into_file(echo: &mut ScriptCommand, tee: &ScriptCommand) {
    let appends = tee
        .words
        .iter()
        .any(|word| word == "-a" || word == "--append");
    let file = tee.words.iter().skip(1).find(|word| !word.starts_with('-'));
    if let Some(file) = file {
        echo.words
            .extend([if appends { ">>" } else { ">" }.to_owned(), file.clone()]);
    }
    echo.text = truncate_command_text(format!("{} | {}", echo.text, tee.text));
}

/// The lines of a here-document, where they go into a file whose lines we know.
fn list_document_lines(command: &ScriptCommand, body: &[(usize, String)]) -> Vec<ScriptCommand> {
    let mut words = command.words.iter().rev();
    let Some(file) = words.find(|word| word.starts_with('/')) else {
        return Vec::new();
    };
    let mut commands = Vec::new();
    for (line, text) in body {
        let Some(words) = parse_file_line(file, text) else {
            continue;
        };
        commands.push(ScriptCommand {
            line: *line,
            text: truncate_command_text(format!("{}   (into {file})", text.trim())),
            words,
        });
    }
    commands
}

/// Assignments before a command as commands of their own, and the lines that `echo` writes into a
/// file that we know.
fn expand_command(command: ScriptCommand) -> Vec<ScriptCommand> {
    let assigned = command
        .words
        .iter()
        .take_while(|word| is_assignment(word))
        .count();
    if assigned > 0 {
        return split_assignments(command, assigned);
    }
    let lines = list_echoed_lines(&command);
    if lines.is_empty() {
        vec![command]
    } else {
        lines
    }
}

/// The first words as a command that exports them, and the rest as another one.
fn split_assignments(command: ScriptCommand, assigned: usize) -> Vec<ScriptCommand> {
    let (assignments, rest) = command.words.split_at(assigned);
    let mut words = vec!["export".to_owned()];
    words.extend_from_slice(assignments);
    let rest = rest.to_vec();
    let mut commands = vec![ScriptCommand {
        words,
        ..command.clone()
    }];
    if !rest.is_empty() {
        commands.push(ScriptCommand {
            words: rest,
            ..command
        });
    }
    commands
}

/// The lines that `echo` writes into a file that we know.
fn list_echoed_lines(command: &ScriptCommand) -> Vec<ScriptCommand> {
    let [arguments @ .., redirect, file] = &command.words[..] else {
        return Vec::new();
    };
    if !is_echo_command(command) || !redirect.starts_with('>') {
        return Vec::new();
    }
    let mut text = Vec::new();
    for word in arguments.iter().skip(1) {
        if word != "-e" && word != "-n" {
            text.push(word.as_str());
        }
    }
    let mut commands = Vec::new();
    for line in text.join(" ").replace("\\n", "\n").lines() {
        if let Some(words) = parse_file_line(file, line) {
            commands.push(ScriptCommand {
                words,
                ..command.clone()
            });
        }
    }
    commands
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A line of a configuration file as the command that says the same; nothing for files that we do
/// not know.
fn parse_file_line(file: &str, line: &str) -> Option<Vec<String>> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let words = line.split_whitespace().map(str::to_owned);
    if line.is_empty() {
        None
    } else if file.starts_with("/etc/security/limits") || file.starts_with("/etc/modprobe.d/") {
        Some(words.collect())
    } else if file.starts_with("/etc/sysctl") {
        let (key, value) = line.split_once('=')?;
        Some(vec![
            "sysctl".to_owned(),
            format!("{}={}", key.trim(), value.trim()),
        ])
    } else if file == "/etc/modules" || file.starts_with("/etc/modules-load.d/") {
        let mut command = vec!["modprobe".to_owned()];
        command.extend(words);
        Some(command)
    } else {
        None
    }
}
