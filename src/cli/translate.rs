//! `railwright translate`: commands of wiki pages as spec lines. Nothing is run.

use super::{CommandFailure, Exit};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::catalog;
use railwright_knowledge::spec::Sources;
use railwright_knowledge::translate;
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::{document, out, translation};
use railwright_system::files;
use std::path::{Path, PathBuf};

/// The longest script, in bytes.
const SCRIPT_MAX: u64 = 256 << 10;

/// Say commands of a wiki page as lines of the spec, and what railwright does instead; nothing is
/// run
///
/// Ends with 0 where every command was understood, and with 3 where some were not.
#[derive(Debug, clap::Args)]
pub struct Translate {
    /// The commands, as one argument; `-` reads them from the standard input
    #[arg(
        required_unless_present = "file",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    commands: Option<String>,
    /// A script; `-` is the standard input
    #[arg(long, value_name = "SCRIPT")]
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Translates.
pub fn run(arguments: &Translate) -> Result<Exit, CommandFailure> {
    let script = match (&arguments.file, arguments.commands.as_deref()) {
        (Some(path), _) => read_commands_file(path)?,
        (None, Some("-") | None) => read_commands_file(Path::new("-"))?,
        (None, Some(commands)) => commands.to_owned(),
    };
    let dictionary = translate::load_translations()
        .map_err(|(problems, sources)| CommandFailure::from(problems).with_sources(&sources))?;
    let translated = translate::translate_script(&script, &dictionary)?;
    if translated.answers.is_empty() {
        return Err(
            Diagnostic::error("RW1033", "there is no command to translate")
                .next(
                    "give a command as one argument, or a script: railwright translate --file \
                     script.sh",
                )
                .into(),
        );
    }
    if arguments.json {
        out::print_result(&document::render_json_document(
            &document::TranslationDocument::of(&translated),
        ));
    } else {
        out::print_result(&translation::render_translation_screen(&translated));
    }
    let catalog = catalog::load_catalog("", []).map_err(|problems| {
        CommandFailure::from(problems.diagnostics).with_sources(&problems.sources)
    })?;
    let warnings = translation::build_conflict_warnings(&translated.conflicts, &catalog);
    print_diagnostics(&warnings, &Sources::default());
    Ok(if translated.is_understood() {
        Exit::Done
    } else {
        Exit::Incomplete
    })
}

fn read_commands_file(path: &Path) -> Result<String, Diagnostic> {
    let standard = path == Path::new("-");
    let name = if standard {
        "the standard input".to_owned()
    } else {
        one_line(&path.display().to_string(), 80)
    };
    let from = if standard {
        Path::new("/dev/stdin")
    } else {
        path
    };
    let bytes = files::read_limited(from, SCRIPT_MAX).map_err(|error| {
        Diagnostic::error("RW1033", format!("{name} cannot be read: {error}"))
            .state("nothing was run")
            .next("name a script of at most 256 KiB")
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Diagnostic::error("RW1033", format!("{name} is not UTF-8 from byte {at} on"))
            .state("nothing was run")
            .next("save the file as UTF-8")
    })
}
