//! A shell of EOS over eAPI: the same `/bin/sh` as over SSH, as root.

use super::relay::{Look, Relay, State};
use super::rpc::{self, Refused};
use crate::system::clock;
use crate::system::fed::Capture;
use crate::transport::api::https::{Failure, Reply, Server, Session};
use crate::transport::shell::{ERROR_KEPT, End, OUTPUT_KEPT, Ran, Shell};
use crate::transport::{BoxFuture, TransportError};
use http::Method;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// As messages call it.
pub(super) const API: &str = "eAPI";
/// Commands in one request: with a part of a script in each the request stays far below 1 MiB, beyond which nginx refuses one where nobody says
/// otherwise (nginx, `client_max_body_size`; that EOS serves eAPI by nginx: the EOS manual, `management http-server`).
const COMMANDS_AT_ONCE: usize = 32;
/// A request that has no answer by then is given up: the longest look takes 10 s.
const REQUEST_LIMIT: Duration = Duration::from_secs(45);
/// A connection that nobody used for longer may be one that the server is about to close.
const IDLE_LIMIT: Duration = Duration::from_secs(15);

/// A link to one switch. It holds the connection that it was opened with as long as the switch does.
pub(super) struct EapiShell {
    server: Server,
    read_only: bool,
    idle: Mutex<Option<(Session, Instant)>>,
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
        &self.server.switch
    }
    fn user(&self) -> &str {
        &self.server.user
    }
    fn address(&self) -> &str {
        &self.server.address
    }
    fn elevated(&self) -> bool {
        self.server.user != "root" && !self.read_only
    }
    fn read_only(&self) -> bool {
        self.read_only
    }

    fn run<'a>(&'a self, input: &'a str, limit: Duration) -> BoxFuture<'a, Result<Ran, TransportError>> {
        Box::pin(self.run_script(input, limit, self.elevated()))
    }

    fn run_in_login<'a>(&'a self, input: &'a str, limit: Duration) -> BoxFuture<'a, Result<Ran, TransportError>> {
        Box::pin(self.run_script(input, limit, false))
    }
}

impl EapiShell {
    /// Connects, and sees whether the API lets us in. A user without rights begins below `enable`, and bash is above it.
    pub async fn open(server: Server, read_only: bool) -> Result<Self, TransportError> {
        let session = server.connect(API).await?;
        let shell = EapiShell { server, read_only, idle: Mutex::new(Some((session, Instant::now()))) };
        match shell.commands(Vec::new()).await {
            Ok(_) => Ok(shell),
            Err(Trouble::NotRun(error)) => Err(error),
            Err(Trouble::Refused(refused)) => Err(shell.refused(refused)),
            Err(Trouble::Doubt(end)) => Err(shell.lost(&end)),
        }
    }

    fn refused(&self, refused: Refused) -> TransportError {
        let (switch, user) = (self.server.switch.clone(), self.server.user.clone());
        TransportError::ApiRefused { switch, api: API, user, reason: refused.reason }
    }

    fn lost(&self, end: &End) -> TransportError {
        let host = self.server.switch.clone();
        TransportError::Lost { host, reason: end.doubt(REQUEST_LIMIT).unwrap_or_default() }
    }

    /// The connection that nobody uses, where there is one that surely stands; else a new one.
    async fn session(&self) -> Result<Session, TransportError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        match idle {
            Some((session, since)) if session.is_open() && since.elapsed() < IDLE_LIMIT => Ok(session),
            _ => self.server.connect(API).await,
        }
    }

    /// Runs commands after `enable`, and gives back what each printed.
    async fn commands(&self, commands: Vec<String>) -> Result<Vec<String>, Trouble> {
        let commands: Vec<String> = std::iter::once("enable".to_owned()).chain(commands).collect();
        let mut session = self.session().await.map_err(Trouble::NotRun)?;
        let asked = self.server.ask(&mut session, Method::POST, rpc::PATH, rpc::request(&commands));
        let reply = match tokio::time::timeout(REQUEST_LIMIT, asked).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(Failure::NotSent(reason))) => return Err(Trouble::NotRun(self.server.unreachable(reason))),
            Ok(Err(Failure::Lost(reason))) => return Err(Trouble::Doubt(End::Lost(reason))),
            Ok(Err(Failure::TooMuch)) => return Err(Trouble::Doubt(End::TooMuch)),
            Err(_) => return Err(Trouble::Doubt(End::Lost(format!("no answer within {} s", REQUEST_LIMIT.as_secs())))),
        };
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some((session, Instant::now()));
        if reply.status != 200 {
            return Err(self.not_an_answer(&reply));
        }
        let mut outputs = rpc::answer(&reply.body, &commands).map_err(Trouble::Refused)?;
        outputs.remove(0);
        Ok(outputs)
    }

    /// What a status of HTTP says. 502 and 504 are of a server before eAPI, which gave up waiting for it.
    fn not_an_answer(&self, reply: &Reply) -> Trouble {
        let (switch, address) = (self.server.switch.clone(), self.server.address.clone());
        Trouble::NotRun(match reply.status {
            401 | 403 => TransportError::LoginRefused { switch, user: self.server.user.clone(), reason: reply.said() },
            404 | 405 => {
                TransportError::NoApi { switch, address, api: API, reason: format!("it answers {} for {}", reply.status, rpc::PATH) }
            }
            502 | 504 => return Trouble::Doubt(End::Lost(format!("the server before eAPI answers {}", reply.status))),
            status => self.server.unreachable(format!("it answers {status}: {}", reply.said())),
        })
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
        let (host, user) = (self.server.switch.clone(), self.server.user.clone());
        let said = crate::base::text::one_line(said, 160);
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
        State::Ended(_) if !is_all && !(out.is_empty() && err.is_empty()) => None,
        State::Ended(code) => Some(End::Exit(code)),
    }
}
