//! The terminal: how wide it is, what was typed, and questions to the person at it.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// The columns of the terminal that stdout is; nothing where it is none.
pub fn columns_of_stdout() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// The columns of the terminal that stderr is; nothing where it is none.
pub fn columns_of_stderr() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0))
}

/// The words that were typed behind the program's name, as far as they are text.
pub fn collect_typed_words() -> Vec<String> {
    std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Somebody may type something.
pub fn is_stdin() -> bool {
    io::stdin().is_terminal()
}

/// Asks, and is true for the whole word `yes` alone. Where there is no terminal nobody is asked,
/// and it is false.
pub fn ask_confirmation(question: &str) -> bool {
    if !is_stdin() {
        return false;
    }
    let mut stderr = io::stderr().lock();
    if stderr
        .write_all(question.as_bytes())
        .and_then(|()| stderr.flush())
        .is_err()
    {
        return false;
    }
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}
