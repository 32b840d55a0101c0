//! What commands of wiki pages say, in the words of the spec. Nothing is run: a script is text, and
//! stays text.
//!
//! `script` (a script as commands of words) -> `prose` (what is text around them) -> `load` (the
//! shipped translations, `modules/translations/*.yaml`, each with a `pattern` of words) -> `answer`
//! (what each command says) -> `merge` (all of it as one spec, where two commands differ).

mod answer;
mod load;
mod merge;
mod pattern;
mod prose;
mod script;
#[cfg(test)]
mod tests;

pub use answer::{
    ScriptCommandText, Translation, TranslationAnswer, TranslationCategory, translate_script,
};
pub use load::{Covers, Dictionary, TRANSLATIONS_FOLDER, TranslationEntry, load_translations};
pub use merge::TranslationConflict;
pub use script::ScriptCommand;
