//! Progress of reading and proving: on a terminal one line in place; elsewhere nothing while it is quick, and a line now
//! and then when it is not.

use super::out;
use railwright_base::nodeset;
use railwright_base::text::{counted, one_line};
use railwright_observe as observe;
use railwright_verify::VerifyEvent;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

/// Draws a line over itself on a terminal.
#[derive(Debug)]
struct Line {
    terminal: bool,
}

impl Line {
    fn new() -> Self {
        Line { terminal: std::io::stderr().is_terminal() }
    }

    fn draw(&self, text: &str) {
        if self.terminal {
            out::note_raw(&format!("\r\x1b[K{}", one_line(text, 98)));
        }
    }

    fn end(&self) {
        if self.terminal {
            out::note_raw("\r\x1b[K");
        }
    }
}

/// Hosts that are being read.
#[derive(Debug)]
pub struct Reading {
    line: Line,
    hosts: usize,
    through: Mutex<(usize, usize)>,
}

impl Reading {
    /// For so many hosts.
    pub fn new(hosts: usize) -> Self {
        Reading { line: Line::new(), hosts, through: Mutex::default() }
    }

    /// Takes an event in.
    pub fn show(&self, event: &observe::Event) {
        let mut through = self.through.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            observe::Event::Answered { .. } => through.0 += 1,
            observe::Event::Failed { .. } => through.1 += 1,
            _ => {}
        }
        let failed = if through.1 > 0 { format!(", {} not reached", through.1) } else { String::new() };
        self.line.draw(&format!("reading hosts: {} of {}{failed}", through.0, self.hosts));
    }

    /// The line goes away.
    pub fn end(&self) {
        self.line.end();
    }
}

/// A fabric that is being proven.
#[derive(Debug)]
pub struct Proving {
    line: Line,
}

impl Default for Proving {
    fn default() -> Self {
        Proving { line: Line::new() }
    }
}

impl Proving {
    /// Takes an event in.
    pub fn show(&self, event: &VerifyEvent) {
        match event {
            VerifyEvent::Judged(result) => self.line.draw(&format!("{}: {}", nodeset::fold(&result.hosts), result.check.word())),
            VerifyEvent::Round { rail, number, of, pairs } => {
                self.line.draw(&format!("rail {rail}: round {number} of {of}, {} at once", counted(pairs.len(), "pair")));
            }
            VerifyEvent::Nccl(hosts) => self.line.draw(&format!("NCCL's tests between {}", nodeset::fold(hosts))),
        }
    }

    /// The line goes away.
    pub fn end(&self) {
        self.line.end();
    }
}
