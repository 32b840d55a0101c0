//! This machine itself, behind the same trait as SSH: `/bin/sh -s`, through `sudo -n` unless we are
//! root already.

use super::link::ShellLink;
use super::shell::{
    ERROR_KEPT, FramedScript, OUTPUT_KEPT, OUTPUT_TAKEN, Shell, ShellEnd, ShellOutput,
};
use super::{BoxFuture, HostLink, TransportError};
use railwright_system::{fed, process};
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::time::Duration;

/// A link to this machine, which the spec calls by this name.
pub fn open_local_link(host: &str, read_only: bool) -> Result<Arc<dyn HostLink>, TransportError> {
    Ok(Arc::new(ShellLink::new(LocalShell {
        host: host.to_owned(),
        user: query_own_identity("-un")?,
        root: query_own_identity("-u")? == "0",
        read_only,
    })))
}

/// What `id` answers with this option.
fn query_own_identity(option: &str) -> Result<String, TransportError> {
    match process::run_program("id", &[option]) {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) => Err(TransportError::Local {
            reason: format!("id: {error}").into(),
        }),
    }
}

struct LocalShell {
    host: String,
    user: String,
    root: bool,
    read_only: bool,
}

impl Shell for LocalShell {
    fn host(&self) -> &str {
        &self.host
    }
    fn user(&self) -> &str {
        &self.user
    }
    fn address(&self) -> &str {
        "this machine"
    }
    fn elevated(&self) -> bool {
        !self.root && !self.read_only
    }
    fn read_only(&self) -> bool {
        self.read_only
    }

    fn run<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        Box::pin(run_script(&script.input, limit, self.elevated()))
    }

    fn run_in_login<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        Box::pin(run_script(&script.input, limit, false))
    }
}

async fn run_script(
    input: &str,
    limit: Duration,
    elevated: bool,
) -> Result<ShellOutput, TransportError> {
    let bounds = fed::Bounds {
        output: OUTPUT_KEPT,
        error: ERROR_KEPT,
        total: OUTPUT_TAKEN,
        limit,
    };
    let (program, arguments): (_, &[&str]) = if elevated {
        ("sudo", &["-n", "/bin/sh", "-s"])
    } else {
        ("/bin/sh", &["-s"])
    };
    let (ending, stdout, stderr) =
        fed::run_fed_program(program, arguments, input.as_bytes(), bounds)
            .await
            .map_err(|error| TransportError::Local {
                reason: format!("{program} does not start: {error}").into(),
            })?;
    let end = match ending {
        fed::FedProgramEnding::Ended(status) => match (status.code(), status.signal()) {
            (Some(code), _) => ShellEnd::Exit(code),
            (None, Some(signal)) => ShellEnd::Killed(signal.to_string()),
            (None, None) => ShellEnd::NoStatus,
        },
        fed::FedProgramEnding::TimedOut => ShellEnd::TimedOut,
        fed::FedProgramEnding::TooMuch => ShellEnd::TooMuch,
    };
    Ok(ShellOutput {
        end,
        stdout,
        stderr,
    })
}
