//! Questions to a person at a terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// Asks, and is true for the whole word `yes` alone. Where there is no terminal nobody is asked, and it is false.
pub fn confirm(question: &str) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    let mut stderr = io::stderr().lock();
    if stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}
