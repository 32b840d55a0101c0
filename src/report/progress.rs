//! Progress of reading and proving: on a terminal one line in place; elsewhere nothing while it is
//! quick, and a line now and then when it is not.

use super::out;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::nodeset;
use railwright_base::text::{format_count, one_line};
use railwright_observe as observe;
use railwright_verify::VerifyEvent;
use std::io::IsTerminal as _;
use std::sync::Mutex;

/// Draws a line over itself on a terminal.
#[derive(Debug)]
struct ProgressLine {
    terminal: bool,
}

impl ProgressLine {
    fn new() -> Self {
        ProgressLine {
            terminal: std::io::stderr().is_terminal(),
        }
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
pub struct HostReadProgress {
    line: ProgressLine,
    hosts: usize,
    through: Mutex<(usize, usize)>,
}

impl HostReadProgress {
    /// For so many hosts.
    pub fn new(hosts: usize) -> Self {
        HostReadProgress {
            line: ProgressLine::new(),
            hosts,
            through: Mutex::default(),
        }
    }

    /// Takes an event in.
    pub fn show(&self, event: &observe::ObservationEvent) {
        let mut through = lock_ignoring_poison(&self.through);
        match event {
            observe::ObservationEvent::Answered { .. } => through.0 += 1,
            observe::ObservationEvent::Failed { .. } => through.1 += 1,
            _ => {}
        }
        let failed = if through.1 > 0 {
            format!(", {} not reached", through.1)
        } else {
            String::new()
        };
        self.line.draw(&format!(
            "reading hosts: {} of {}{failed}",
            through.0, self.hosts
        ));
    }

    /// The line goes away.
    pub fn end(&self) {
        self.line.end();
    }
}

/// A fabric that is being verified.
#[derive(Debug)]
pub struct Proving {
    line: ProgressLine,
}

impl Default for Proving {
    fn default() -> Self {
        Proving {
            line: ProgressLine::new(),
        }
    }
}

impl Proving {
    /// Takes an event in.
    pub fn show(&self, event: &VerifyEvent) {
        match event {
            VerifyEvent::Evaluated(result) => self.line.draw(&format!(
                "{}: {}",
                nodeset::fold_node_set(&result.hosts),
                result.check.word()
            )),
            VerifyEvent::Round {
                rail,
                number,
                of,
                pairs,
            } => {
                self.line.draw(&format!(
                    "rail {rail}: round {number} of {of}, {} at once",
                    format_count(pairs.len(), "pair")
                ));
            }
            VerifyEvent::Nccl(hosts) => self.line.draw(&format!(
                "NCCL's tests between {}",
                nodeset::fold_node_set(hosts)
            )),
        }
    }

    /// The line goes away.
    pub fn end(&self) {
        self.line.end();
    }
}
