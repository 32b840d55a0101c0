//! A shell of EOS over eAPI: the same `/bin/sh` as over SSH, as root.

use super::relay::{Look, Relay, State};
use super::rpc::{self, Refused};
use crate::api::https::{Client, Failure, Reply, Server};
use crate::shell::{ERROR_KEPT, End, Framed, OUTPUT_KEPT, Ran, Shell};
use crate::{BoxFuture, TransportError};
use http::Method;
use railwright_knowledge::spec::model::ApiKind;
use railwright_system::clock;
use railwright_system::fed::Capture;
use std::time::{Duration, Instant};

/// As messages call it.
const API: &str = ApiKind::Eapi.name();
/// Commands in one request: with a part of a script in each the request stays far below 1 MiB, beyond which nginx refuses one where nobody says
/// otherwise (nginx, `client_max_body_size`; that EOS serves eAPI by nginx: the EOS manual, `management http-server`).
const COMMANDS_AT_ONCE: usize = 32;

/// A link to one switch.
pub(super) struct EapiShell {
    client: Client,
    read_only: bool,
}

/// How a request ended without an answer.
enum Trouble {
    /// Nothing of it was run.
    NotRun(TransportError),
    /// So many commands were run, and the next was refused.
    Refused(Refused),
    /// Nobody knows what was run.
    Doubt(End),
}

impl Shell for EapiShell {
    fn host(&self) -> &str {
        &self.client.server.switch
    }
    fn user(&self) -> &str {
        &self.client.server.user
    }
    fn address(&self) -> &str {
        &self.client.server.address
    }
    fn elevated(&self) -> bool {
        self.client.server.user != "root" && !self.read_only
    }
    fn read_only(&self) -> bool {
        self.read_only
    }

    fn run<'a>(&'a self, script: &'a Framed, limit: Duration) -> BoxFuture<'a, Result<Ran, TransportError>> {
        Box::pin(self.run_script(&script.input, limit, self.elevated()))
    }

    fn run_in_login<'a>(&'a self, script: &'a Framed, limit: Duration) -> BoxFuture<'a, Result<Ran, TransportError>> {
        Box::pin(self.run_script(&script.input, limit, false))
    }
}

impl EapiShell {
    /// Connects, and sees whether the API lets us in. A user without rights begins below `enable`, and bash is above it.
    pub async fn open(server: Server, read_only: bool) -> Result<Self, TransportError> {
        let shell = EapiShell { client: Client::open(server, API).await?, read_only };
        match shell.commands(Vec::new()).await {
            Ok(_) => Ok(shell),
            Err(Trouble::NotRun(error)) => Err(error),
            Err(Trouble::Refused(refused)) => Err(shell.refused(refused)),
            Err(Trouble::Doubt(end)) => Err(shell.lost(&end)),
        }
    }

    fn refused(&self, refused: Refused) -> TransportError {
        let (switch, user) = (self.client.server.switch.clone(), self.client.server.user.clone());
        TransportError::ApiRefused { switch, api: API, user, reason: refused.reason }
    }

    fn lost(&self, end: &End) -> TransportError {
        let host = self.client.server.switch.clone();
        TransportError::Lost { host, reason: end.doubt(Duration::ZERO).unwrap_or_default() }
    }

    /// Runs commands after `enable`, and gives back what each printed.
    async fn commands(&self, commands: Vec<String>) -> Result<Vec<String>, Trouble> {
        let commands: Vec<String> = std::iter::once("enable".to_owned()).chain(commands).collect();
        let reply = match self.client.ask(Method::POST, rpc::PATH, rpc::request(&commands)).await {
            Ok(reply) => reply,
            Err(Failure::NotTaken(error)) => return Err(Trouble::NotRun(error)),
            Err(Failure::Lost(reason)) => return Err(Trouble::Doubt(End::Lost(reason))),
            Err(Failure::TooMuch) => return Err(Trouble::Doubt(End::TooMuch)),
        };
        if reply.status != 200 {
            return Err(Trouble::NotRun(self.not_an_answer(&reply)));
        }
        let mut outputs = rpc::answer(&reply.body, &commands).map_err(Trouble::Refused)?;
        outputs.remove(0);
        Ok(outputs)
    }

    fn not_an_answer(&self, reply: &Reply) -> TransportError {
        match reply.status {
            404 | 405 => self.client.none_here(format!("it answers {} for {}", reply.status, rpc::PATH)),
            status => self.client.server.unreachable(format!("it answers {status}: {}", reply.said())),
        }
    }

    async fn run_script(&self, input: &str, limit: Duration, elevated: bool) -> Result<Ran, TransportError> {
        let nonce = clock::nonce().map_err(|error| TransportError::Local { reason: format!("no randomness: {error}") })?;
        let relay = Relay::new(nonce, elevated);
        let until = Instant::now() + limit;
        let mut ran = Ran { end: End::NoStatus, stdout: Capture::new(OUTPUT_KEPT), stderr: Capture::new(ERROR_KEPT) };
        let mut said = match self.start(&relay, input, elevated).await? {
            Ok(said) => said,
            Err(end) => return Ok(Ran { end, ..ran }),
        };
        loop {
            let Some(look) = relay.seen(&said) else {
                return Ok(Ran { end: End::Lost("eAPI answered something else than what was asked".to_owned()), ..ran });
            };
            if let Some(end) = took(&mut ran, look) {
                return Ok(Ran { end, ..ran });
            }
            if Instant::now() >= until {
                return Ok(Ran { end: End::TimedOut, ..ran });
            }
            said = match self.commands(vec![relay.look([ran.stdout.seen(), ran.stderr.seen()])]).await {
                Ok(said) => said.concat(),
                // From here on the script runs without us.
                Err(Trouble::NotRun(error)) => return Ok(Ran { end: End::Lost(error.one_line()), ..ran }),
                Err(Trouble::Refused(refused)) => return Ok(Ran { end: End::Lost(refused.reason), ..ran }),
                Err(Trouble::Doubt(end)) => return Ok(Ran { end, ..ran }),
            };
        }
    }

    /// Lays the script on the switch and starts it, and gives back what the first look said. The outer error: it has certainly not begun;
    /// the inner one: nobody knows.
    async fn start(&self, relay: &Relay, input: &str, elevated: bool) -> Result<Result<String, End>, TransportError> {
        let parts = relay.put(input);
        let all: Vec<String> = parts.iter().cloned().chain([relay.start(input)]).collect();
        let mut laid = 0;
        let mut last = String::new();
        for commands in all.chunks(COMMANDS_AT_ONCE) {
            let starts = laid + commands.len() == all.len();
            let said = match self.commands(commands.to_vec()).await {
                Ok(said) => said,
                Err(Trouble::NotRun(error)) => return Err(error),
                Err(Trouble::Doubt(end)) if starts => return Ok(Err(end)),
                Err(Trouble::Doubt(end)) => return Err(self.lost(&end)),
                // The first command of each request is `enable`.
                Err(Trouble::Refused(refused)) if starts && refused.before == commands.len() => return Ok(Err(End::Lost(refused.reason))),
                Err(Trouble::Refused(refused)) => return Err(self.refused(refused)),
            };
            for said in said {
                if laid < parts.len() && !relay.is_done(&said) {
                    return Err(self.not_laid(&said, elevated));
                }
                laid += 1;
                last = said;
            }
        }
        Ok(Ok(last))
    }

    fn not_laid(&self, said: &str, elevated: bool) -> TransportError {
        let (host, user) = (self.client.server.switch.clone(), self.client.server.user.clone());
        let said = railwright_base::text::one_line(said, 160);
        if elevated && (said.is_empty() || said.contains("sudo")) {
            return TransportError::SudoRefused { host, user };
        }
        let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
        TransportError::ApiRefused { switch: host, api: API, user, reason: format!("a script could not be laid on the switch: {said}") }
    }
}

/// Takes what a look brought; how it ended, where it did and all of its output is here.
fn took(ran: &mut Ran, look: Look) -> Option<End> {
    let [out, err] = &look.slices;
    ran.stdout.take(out);
    ran.stderr.take(err);
    let is_all = ran.stdout.seen() >= look.sizes[0] && ran.stderr.seen() >= look.sizes[1];
    match look.state {
        State::Running => None,
        State::Gone => Some(End::NoStatus),
        // A look that brings nothing more would be asked for ever.
        State::Ended(code) if is_all || (out.is_empty() && err.is_empty()) => Some(End::Exit(code)),
        State::Ended(_) => None,
    }
}
