//! The secrets of a run, and the connections that carry them. Everything above this room works with
//! marks and seals; here a mark is filled in on an action's way out, an answer about a sealed file
//! is sealed on its way in, and what programs print is redacted. The other answers are compared as
//! they are: they know the secrets, and `resource::redacted_diff` takes those out after.

use super::{
    BoxFuture, Connector, ExecutionOutcome, Fence, HostLink, TargetAccess, TargetReach,
    TransportError, Upkeep,
};
use railwright_base::secret::{self, UnknownSecret};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Reason, Redaction, SealKey};
use railwright_resource::file::sealed::{in_plain, seal_answer};
use railwright_resource::probe::Probe;
use railwright_resource::{Action, Read, ReadResults};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known of the secrets that the resources name. It has no `Debug`.
pub struct Secrets {
    key: Option<SealKey>,
    values: BTreeMap<String, String>,
    missing: BTreeMap<String, Diagnostic>,
    /// By host, the names that its resources hold: no host is ever sent another.
    of_host: BTreeMap<String, BTreeSet<String>>,
    redaction: Arc<Redaction>,
}

impl Secrets {
    /// These secrets by name, each with its value or why it cannot be had; the key may be missing
    /// where nothing is sealed. `of_host` says which of them the resources of each host hold.
    pub fn new(
        key: Option<SealKey>,
        found: BTreeMap<String, Result<String, Diagnostic>>,
        of_host: BTreeMap<String, BTreeSet<String>>,
    ) -> Self {
        let (mut values, mut missing) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in found {
            match value {
                Ok(value) => drop(values.insert(name, value)),
                Err(why) => drop(missing.insert(name, why)),
            }
        }
        Secrets {
            key,
            redaction: Arc::new(Redaction::of(&values)),
            values,
            missing,
            of_host,
        }
    }

    /// Exempts words that the spec says in the clear: they are no secret anywhere.
    pub fn beside_clear_text<'a>(mut self, clear: impl IntoIterator<Item = &'a str>) -> Self {
        self.redaction = Arc::new(self.redaction.except(clear).into_owned());
        self
    }

    /// What takes them out of texts, where there are any.
    pub fn redaction(&self) -> Option<&Redaction> {
        Some(&*self.redaction).filter(|redaction| !redaction.is_empty())
    }

    /// The key of the state folder, if it has one.
    pub fn key(&self) -> Option<&SealKey> {
        self.key.as_ref()
    }

    /// Why this secret cannot be had; nothing when it can.
    pub fn missing(&self, name: &str) -> Option<Diagnostic> {
        if self.values.contains_key(name) {
            return None;
        }
        Some(match self.missing.get(name) {
            Some(missing) => missing.clone(),
            None => Diagnostic::error("RW1016", format!("the secret `{name}` is not in the spec")),
        })
    }

    /// Whether the resources of this host hold the secret.
    fn is_of_host(&self, host: &str, name: &str) -> bool {
        let names = self.of_host.get(host);
        names.is_some_and(|names| names.contains(name))
    }

    /// The secret, as far as the resources of this host hold it.
    fn find_for_host(&self, host: &str, name: &str) -> Option<String> {
        match self.is_of_host(host, name) {
            true => self.values.get(name).cloned(),
            false => None,
        }
    }

    /// A text with its secrets; why it cannot be made as the error. The result is compared or sent,
    /// and never kept.
    pub fn fill(&self, text: &str) -> Result<String, Reason> {
        secret::fill_secrets(text, |name| self.values.get(name).cloned())
            .map_err(|unknown| self.why(&unknown).into())
    }

    /// An action may hold a mark that came from the host itself (its record, a file that was taken
    /// over): it gets what the spec declares there, and nothing of another host.
    fn fill_action(&self, host: &str, action: &Action) -> Result<Action, Reason> {
        let filled = action.filled(|name| self.find_for_host(host, name));
        filled.map_err(|unknown| match self.is_of_host(host, &unknown.0) {
            true => self.why(&unknown).into(),
            false => format!(
                "no resource of {host} holds the secret `{}`",
                one_line(&unknown.0, 60)
            )
            .into(),
        })
    }

    /// What a chart renders to is only told with the secrets of its values: they are filled in for
    /// a process of this machine, which gives back what differs without them. Where one is not to
    /// be had, the release is asked about without its values.
    fn fill_read(&self, host: &str, read: &Read) -> Read {
        let Read::HelmRelease(release) = read else {
            return read.clone();
        };
        let filled = release.filled(|name| self.find_for_host(host, name));
        Read::HelmRelease(Box::new(
            filled.unwrap_or_else(|_| release.without_values()),
        ))
    }

    /// The password with which the API of a switch is reached is filled in here alone.
    fn fill_access(&self, access: &TargetAccess) -> Result<TargetAccess, TransportError> {
        let mut filled = access.clone();
        if let TargetReach::SwitchApi(api) = &mut filled.reach {
            let password = api.password.filled(|name| self.values.get(name).cloned());
            api.password = password.map_err(|unknown| TransportError::Local {
                reason: format!("{}: {}", access.name, self.why(&unknown)).into(),
            })?;
        }
        Ok(filled)
    }

    fn why(&self, UnknownSecret(name): &UnknownSecret) -> String {
        self.missing(name)
            .map(|missing| missing.message)
            .unwrap_or_default()
    }

    /// Connections that carry these secrets.
    pub fn carried_by(self: &Arc<Self>, connector: Arc<dyn Connector>) -> Arc<dyn Connector> {
        Arc::new(CarryingConnector {
            connector,
            secrets: self.clone(),
        })
    }

    fn keep_out(&self, performed: ExecutionOutcome) -> ExecutionOutcome {
        match performed {
            ExecutionOutcome::Ended {
                code,
                stdout,
                stderr,
            } => ExecutionOutcome::Ended {
                code,
                stdout: self.redaction.apply(&stdout),
                stderr: self.redaction.apply(&stderr),
            },
            ExecutionOutcome::Unknown { reason } => ExecutionOutcome::Unknown {
                reason: self.redaction.apply(reason.as_words()).into(),
            },
        }
    }

    /// What a host says may be part of an error as well: a login shell that echoes what it is fed.
    fn keep_out_of(&self, mut error: TransportError) -> TransportError {
        match &mut error {
            TransportError::Unreachable { reason, .. }
            | TransportError::Lost { reason, .. }
            | TransportError::ServerUnreachable { reason, .. }
            | TransportError::LoginRefused { reason, .. }
            | TransportError::NoApi { reason, .. }
            | TransportError::ApiRefused { reason, .. }
            | TransportError::NoIdentity { reason, .. }
            | TransportError::Local { reason } => {
                *reason = self.redaction.apply(reason.as_words()).into()
            }
            TransportError::LockLost {
                holder: Some(line), ..
            } => *line = self.redaction.apply(line),
            _ => {}
        }
        error
    }
}

struct CarryingConnector {
    connector: Arc<dyn Connector>,
    secrets: Arc<Secrets>,
}

impl Connector for CarryingConnector {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(async move {
            let filled = self.secrets.fill_access(access)?;
            let link = self
                .connector
                .connect(&filled)
                .await
                .map_err(|error| self.secrets.keep_out_of(error))?;
            Ok(Arc::new(CarryingLink {
                link,
                host: access.name.clone(),
                secrets: self.secrets.clone(),
            }) as Arc<dyn HostLink>)
        })
    }
}

struct CarryingLink {
    link: Arc<dyn HostLink>,
    host: String,
    secrets: Arc<Secrets>,
}

impl CarryingLink {
    fn checked(
        &self,
        result: Result<ExecutionOutcome, TransportError>,
    ) -> Result<ExecutionOutcome, TransportError> {
        result
            .map(|performed| self.secrets.keep_out(performed))
            .map_err(|error| self.secrets.keep_out_of(error))
    }

    /// Records and locks are our own words, read back and compared, whoever holds them; of what an
    /// automatic rollback reports, its first word is.
    fn keep_out_of_upkeep(&self, upkeep: &Upkeep, upheld: ExecutionOutcome) -> ExecutionOutcome {
        let ExecutionOutcome::Ended {
            code,
            stdout,
            stderr,
        } = upheld
        else {
            return self.secrets.keep_out(upheld);
        };
        let redaction = &self.secrets.redaction;
        let stdout = match upkeep {
            Upkeep::Lock { .. } | Upkeep::Steal { .. } | Upkeep::ReadLock => stdout,
            Upkeep::RollbackStatus { .. } => match stdout.split_once(' ') {
                Some((word, said)) => format!("{word} {}", redaction.apply(said)),
                None => stdout,
            },
            _ if code == 0 => stdout,
            _ => redaction.apply(&stdout),
        };
        ExecutionOutcome::Ended {
            code,
            stdout,
            stderr: redaction.apply(&stderr),
        }
    }
}

impl HostLink for CarryingLink {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(async move {
            let asked: Vec<Read> = reads
                .iter()
                .map(|read| self.secrets.fill_read(&self.host, read))
                .collect();
            let mut answers = self
                .link
                .read(&asked)
                .await
                .map_err(|error| self.secrets.keep_out_of(error))?;
            for (read, asked) in reads.iter().zip(&asked) {
                let Some(answer) = answers.remove(asked) else {
                    continue;
                };
                let answer = match read {
                    Read::SealedFile { path } => seal_answer(path, answer, self.secrets.key()),
                    // In base64 nothing could be found in it.
                    Read::File { .. } => in_plain(answer),
                    _ => answer,
                };
                answers.insert(read.key(), answer);
            }
            answers.may_hold(self.secrets.redaction.clone());
            Ok(answers)
        })
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        token: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move {
            let filled = self
                .secrets
                .fill_action(&self.host, action)
                .map_err(|reason| TransportError::Local { reason })?;
            self.checked(self.link.perform(&filled, token, fence).await)
        })
    }

    fn probe<'a>(
        &'a self,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move { self.checked(self.link.probe(probe).await) })
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move {
            let upheld = self
                .link
                .upkeep(upkeep)
                .await
                .map_err(|error| self.secrets.keep_out_of(error))?;
            Ok(self.keep_out_of_upkeep(upkeep, upheld))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grounds;

    /// A host that ends everything so.
    struct Ends(i32, &'static str);

    impl HostLink for Ends {
        fn read<'a>(&'a self, _: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
            Box::pin(async { Ok(ReadResults::default()) })
        }

        fn perform<'a>(
            &'a self,
            _: &'a Action,
            _: &'a str,
            _: Option<&'a Fence>,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            self.upkeep(&Upkeep::ReadLock)
        }

        fn probe<'a>(
            &'a self,
            _: &'a Probe,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            self.upkeep(&Upkeep::ReadLock)
        }

        fn upkeep<'a>(
            &'a self,
            _: &'a Upkeep,
        ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
            let (code, stdout) = (self.0, self.1.to_owned());
            Box::pin(async move {
                Ok(ExecutionOutcome::Ended {
                    code,
                    stdout,
                    stderr: "deploy1".to_owned(),
                })
            })
        }
    }

    async fn told(upkeep: Upkeep, code: i32, stdout: &'static str) -> (String, String) {
        let values = BTreeMap::from([("user".to_owned(), Ok("deploy1".to_owned()))]);
        let link = CarryingLink {
            link: Arc::new(Ends(code, stdout)),
            host: "gpu1".to_owned(),
            secrets: Arc::new(Secrets::new(None, values, BTreeMap::new())),
        };
        match link.upkeep(&upkeep).await.unwrap() {
            ExecutionOutcome::Ended { stdout, stderr, .. } => (stdout, stderr),
            ExecutionOutcome::Unknown { reason } => (reason.to_string(), reason.to_string()),
        }
    }

    /// The name of a user may be a secret of the spec: a lock is taken from its holder by the very
    /// line that was read.
    #[tokio::test]
    async fn the_line_of_a_lock_is_the_same_whoever_tells_it() {
        let line = r#"{"who":"deploy1"}"#;
        let lock = Upkeep::Lock {
            holder: "b".to_owned(),
            fence: 5,
        };
        let steal = Upkeep::Steal {
            holder: line.to_owned(),
            fence: 5,
            grounds: Grounds::Dead,
        };
        for (upkeep, code) in [(lock, 75), (steal, 75), (Upkeep::ReadLock, 0)] {
            let (stdout, stderr) = told(upkeep, code, line).await;
            assert_eq!(stdout, line);
            assert!(!stderr.contains("deploy1"), "{stderr}");
        }
    }

    #[tokio::test]
    async fn what_a_rollback_timer_could_not_put_back_is_told_without_secrets() {
        let status = || Upkeep::RollbackStatus {
            token: "t".to_owned(),
        };
        let (said, _) = told(status(), 0, "reverted /etc/deploy1 and deploy1").await;
        assert!(
            said.starts_with("reverted ") && !said.contains("deploy1"),
            "{said}"
        );
        assert_eq!(told(status(), 0, "armed 1000000").await.0, "armed 1000000");
    }
}
