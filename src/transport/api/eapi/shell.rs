//! A shell of EOS over eAPI: the same `/bin/sh` as over SSH, as root.

use super::relay::{Relay, RelayProgress, RelayedScriptState};
use super::rpc::{self, EapiRefusal};
use crate::api::https::{SwitchApiClient, SwitchApiFailure, SwitchApiReply, SwitchApiServer};
use crate::shell::{ERROR_KEPT, FramedScript, OUTPUT_KEPT, Shell, ShellEnd, ShellOutput};
use crate::{BoxFuture, TransportError};
use http::Method;
use railwright_knowledge::spec::model::ApiKind;
use railwright_system::clock;
use railwright_system::fed::Capture;
use std::time::{Duration, Instant};

/// As messages call it.
const API: &str = ApiKind::Eapi.name();
/// Commands in one request: with a part of a script in each the request stays far below 1 MiB,
/// beyond which nginx refuses one where nobody says otherwise (nginx, `client_max_body_size`; that
/// EOS serves eAPI by nginx: the EOS manual, `management http-server`).
const COMMANDS_AT_ONCE: usize = 32;

/// A link to one switch.
pub(super) struct EapiShell {
    client: SwitchApiClient,
    read_only: bool,
}

/// How a request ended without an answer.
enum EapiRequestFailure {
    /// Nothing of it was run.
    NotRun(TransportError),
    /// So many commands were run, and the next was refused.
    Refused(EapiRefusal),
    /// Nobody knows what was run.
    Doubt(ShellEnd),
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

    fn run<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        Box::pin(self.run_script(&script.input, limit, self.elevated()))
    }

    fn run_in_login<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        Box::pin(self.run_script(&script.input, limit, false))
    }
}

impl EapiShell {
    /// Connects, and sees whether the API lets us in. A user without rights begins below `enable`,
    /// and bash is above it.
    pub async fn open(server: SwitchApiServer, read_only: bool) -> Result<Self, TransportError> {
        let shell = EapiShell {
            client: SwitchApiClient::open(server, API).await?,
            read_only,
        };
        match shell.commands(Vec::new()).await {
            Ok(_) => Ok(shell),
            Err(EapiRequestFailure::NotRun(error)) => Err(error),
            Err(EapiRequestFailure::Refused(refused)) => Err(shell.refused(refused)),
            Err(EapiRequestFailure::Doubt(end)) => Err(shell.lost(&end)),
        }
    }

    fn refused(&self, refused: EapiRefusal) -> TransportError {
        let (switch, user) = (
            self.client.server.switch.clone(),
            self.client.server.user.clone(),
        );
        TransportError::ApiRefused {
            switch,
            api: API,
            user,
            reason: refused.reason.into(),
        }
    }

    fn lost(&self, end: &ShellEnd) -> TransportError {
        let host = self.client.server.switch.clone();
        TransportError::Lost {
            host,
            reason: end.doubt(Duration::ZERO).unwrap_or_default().into(),
        }
    }

    /// Runs commands after `enable`, and gives back what each printed.
    async fn commands(&self, commands: Vec<String>) -> Result<Vec<String>, EapiRequestFailure> {
        let commands: Vec<String> = std::iter::once("enable".to_owned())
            .chain(commands)
            .collect();
        let reply = match self
            .client
            .ask(
                Method::POST,
                rpc::PATH,
                rpc::build_run_commands_request(&commands),
            )
            .await
        {
            Ok(reply) => reply,
            Err(SwitchApiFailure::NotTaken(error)) => {
                return Err(EapiRequestFailure::NotRun(error));
            }
            Err(SwitchApiFailure::Lost(reason)) => {
                return Err(EapiRequestFailure::Doubt(ShellEnd::Lost(reason)));
            }
            Err(SwitchApiFailure::TooMuch) => {
                return Err(EapiRequestFailure::Doubt(ShellEnd::TooMuch));
            }
        };
        if reply.status != 200 {
            return Err(EapiRequestFailure::NotRun(self.not_an_answer(&reply)));
        }
        let mut outputs = rpc::parse_command_outputs(&reply.body, &commands)
            .map_err(EapiRequestFailure::Refused)?;
        outputs.remove(0);
        Ok(outputs)
    }

    fn not_an_answer(&self, reply: &SwitchApiReply) -> TransportError {
        match reply.status {
            404 | 405 => self
                .client
                .none_here(format!("it answers {} for {}", reply.status, rpc::PATH).into()),
            status => self
                .client
                .server
                .unreachable(format!("it answers {status}: {}", reply.said()).into()),
        }
    }

    async fn run_script(
        &self,
        input: &str,
        limit: Duration,
        elevated: bool,
    ) -> Result<ShellOutput, TransportError> {
        let nonce = clock::generate_nonce().map_err(|error| TransportError::Local {
            reason: format!("no randomness: {error}").into(),
        })?;
        let relay = Relay::new(nonce, elevated);
        let until = Instant::now() + limit;
        let mut ran = ShellOutput {
            end: ShellEnd::NoStatus,
            stdout: Capture::new(OUTPUT_KEPT),
            stderr: Capture::new(ERROR_KEPT),
        };
        let mut said = match self.start(&relay, input, elevated).await? {
            Ok(said) => said,
            Err(end) => return Ok(ShellOutput { end, ..ran }),
        };
        loop {
            let Some(look) = relay.seen(&said) else {
                return Ok(ShellOutput {
                    end: ShellEnd::Lost(
                        "eAPI answered something else than what was asked".to_owned(),
                    ),
                    ..ran
                });
            };
            if let Some(end) = take_relay_output(&mut ran, look) {
                return Ok(ShellOutput { end, ..ran });
            }
            if Instant::now() >= until {
                return Ok(ShellOutput {
                    end: ShellEnd::TimedOut,
                    ..ran
                });
            }
            said = match self
                .commands(vec![relay.look([ran.stdout.seen(), ran.stderr.seen()])])
                .await
            {
                Ok(said) => said.concat(),
                // From here on the script runs without us.
                Err(EapiRequestFailure::NotRun(error)) => {
                    return Ok(ShellOutput {
                        end: ShellEnd::Lost(error.one_line()),
                        ..ran
                    });
                }
                Err(EapiRequestFailure::Refused(refused)) => {
                    return Ok(ShellOutput {
                        end: ShellEnd::Lost(refused.reason),
                        ..ran
                    });
                }
                Err(EapiRequestFailure::Doubt(end)) => return Ok(ShellOutput { end, ..ran }),
            };
        }
    }

    /// Lays the script on the switch and starts it, and gives back what the first look said. The
    /// outer error: it has certainly not begun; the inner one: nobody knows.
    async fn start(
        &self,
        relay: &Relay,
        input: &str,
        elevated: bool,
    ) -> Result<Result<String, ShellEnd>, TransportError> {
        let parts = relay.put(input);
        let all: Vec<String> = parts.iter().cloned().chain([relay.start(input)]).collect();
        let mut laid = 0;
        let mut last = String::new();
        for commands in all.chunks(COMMANDS_AT_ONCE) {
            let starts = laid + commands.len() == all.len();
            let said = match self.commands(commands.to_vec()).await {
                Ok(said) => said,
                Err(EapiRequestFailure::NotRun(error)) => return Err(error),
                Err(EapiRequestFailure::Doubt(end)) if starts => return Ok(Err(end)),
                Err(EapiRequestFailure::Doubt(end)) => return Err(self.lost(&end)),
                // The first command of each request is `enable`.
                Err(EapiRequestFailure::Refused(refused))
                    if starts && refused.before == commands.len() =>
                {
                    return Ok(Err(ShellEnd::Lost(refused.reason)));
                }
                Err(EapiRequestFailure::Refused(refused)) => return Err(self.refused(refused)),
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
        let (host, user) = (
            self.client.server.switch.clone(),
            self.client.server.user.clone(),
        );
        let said = railwright_base::text::one_line(said, 160);
        if elevated && (said.is_empty() || said.contains("sudo")) {
            return TransportError::SudoRefused { host, user };
        }
        let said = if said.is_empty() {
            "it said nothing".to_owned()
        } else {
            said
        };
        TransportError::ApiRefused {
            switch: host,
            api: API,
            user,
            reason: format!("a script could not be laid on the switch: {said}").into(),
        }
    }
}

/// Takes what a look brought; how it ended, where it did and all of its output is here.
fn take_relay_output(ran: &mut ShellOutput, look: RelayProgress) -> Option<ShellEnd> {
    let [out, err] = &look.slices;
    ran.stdout.take(out);
    ran.stderr.take(err);
    let is_all = ran.stdout.seen() >= look.sizes[0] && ran.stderr.seen() >= look.sizes[1];
    match look.state {
        RelayedScriptState::Running => None,
        RelayedScriptState::Gone => Some(ShellEnd::NoStatus),
        // A look that brings nothing more would be asked for ever.
        RelayedScriptState::Ended(code) if is_all || (out.is_empty() && err.is_empty()) => {
            Some(ShellEnd::Exit(code))
        }
        RelayedScriptState::Ended(_) => None,
    }
}
