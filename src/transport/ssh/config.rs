//! What `~/.ssh/config` says about a host, asked of `ssh -G` once for each name: that is exact for
//! Match, Include and tokens, which no parser of ours would be.

use crate::TransportError;
use railwright_base::login_name;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_system::{environment, fed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The part of `ssh -G` that matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SshConfig {
    pub host_name: Option<String>,
    pub port: Option<u16>,
    pub user: Option<String>,
    pub identities: Vec<PathBuf>,
    pub identities_only: bool,
    pub agent: ConfiguredAgent,
    pub known_hosts: Vec<PathBuf>,
    /// Files for host keys that cannot be told apart: one may have a blank in its name.
    pub unclear_known_hosts: Option<String>,
    pub known_hosts_command: Option<String>,
    pub key_alias: Option<String>,
    pub proxy_jump: Vec<String>,
    pub proxy_command: Option<String>,
    pub revoked_keys: Option<String>,
}

/// The agent to log in with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ConfiguredAgent {
    /// That of the environment.
    #[default]
    OfEnvironment,
    /// None, whatever the environment has.
    None,
    /// That of this socket.
    At(PathBuf),
}

/// A host, and the user that the inventory names (empty when open).
type Question = (String, String);

/// The answers so far.
#[derive(Default)]
pub(super) struct Aliases {
    /// The configuration file to read instead of the usual ones.
    file: Option<PathBuf>,
    known: Mutex<BTreeMap<Question, Arc<OnceCell<SshConfig>>>>,
}

impl Aliases {
    /// Reads this file instead of the usual ones.
    pub fn of_file(file: PathBuf) -> Self {
        Aliases {
            file: Some(file),
            ..Aliases::default()
        }
    }

    /// Asks `ssh -G`, once for each host and user; a failure is not kept.
    pub async fn of(&self, host: &str, user: &str) -> Result<SshConfig, TransportError> {
        let key = (host.to_owned(), user.to_owned());
        let cell = lock_ignoring_poison(&self.known)
            .entry(key)
            .or_default()
            .clone();
        cell.get_or_try_init(|| query_ssh_config(host, user, self.file.as_deref()))
            .await
            .cloned()
    }
}

async fn query_ssh_config(
    host: &str,
    user: &str,
    file: Option<&Path>,
) -> Result<SshConfig, TransportError> {
    // Whoever named them: the configuration may hand both to a shell.
    if !login_name::is_host(host) || !(user.is_empty() || login_name::is_user(user)) {
        return Err(TransportError::Local {
            reason: format!(
                "{:?} with the user {:?} is no host that ssh may be asked about",
                one_line(host, 80),
                one_line(user, 40)
            )
            .into(),
        });
    }
    let file = file.map(|file| file.display().to_string());
    let mut arguments = vec!["-G"];
    if let Some(file) = &file {
        arguments.extend(["-F", file]);
    }
    if !user.is_empty() {
        arguments.extend(["-l", user]);
    }
    arguments.extend(["--", host]);
    // `Match exec` runs commands of the user's choice, so it can hang.
    let bounds = fed::Bounds {
        output: 1 << 20,
        error: 1 << 16,
        total: 1 << 21,
        limit: Duration::from_secs(20),
    };
    let reason = match fed::run_fed_program("ssh", &arguments, b"", bounds).await {
        Ok((fed::FedProgramEnding::Ended(status), output, _)) if status.success() => {
            let home = environment::find_home_folder();
            return Ok(parse_ssh_config(&output.text(), home.as_deref()));
        }
        Ok((fed::FedProgramEnding::Ended(_), _, error)) => one_line(&error.text(), 200),
        Ok((fed::FedProgramEnding::TimedOut, ..)) => "it did not end within 20 s".to_owned(),
        Ok((fed::FedProgramEnding::TooMuch, ..)) => "too much output".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(TransportError::Local {
        reason: format!("ssh -G {host} failed: {reason}").into(),
    })
}

fn expand_home(text: &str, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

/// Lines `key value`, keys in lower case. `none` means that there is none.
fn parse_ssh_config(text: &str, home: Option<&Path>) -> SshConfig {
    let mut config = SshConfig::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else {
            continue;
        };
        if value == "none" {
            if key == "identityagent" {
                config.agent = ConfiguredAgent::None;
            }
            continue;
        }
        match key {
            "hostname" => config.host_name = Some(value.to_owned()),
            "port" => config.port = value.parse().ok(),
            "user" => config.user = Some(value.to_owned()),
            "identityfile" => config.identities.push(expand_home(value, home)),
            "identitiesonly" => config.identities_only = value == "yes",
            "identityagent" if value != "SSH_AUTH_SOCK" => {
                config.agent = ConfiguredAgent::At(expand_home(value, home))
            }
            "userknownhostsfile" | "globalknownhostsfile" => {
                let files = || value.split(' ');
                if files().any(|file| !file.starts_with('/') && !file.starts_with("~/")) {
                    config.unclear_known_hosts = Some(value.to_owned());
                }
                let files = files().map(|file| expand_home(file, home));
                config.known_hosts.extend(files);
            }
            "knownhostscommand" => config.known_hosts_command = Some(value.to_owned()),
            "hostkeyalias" => config.key_alias = Some(value.to_owned()),
            "proxyjump" => {
                config.proxy_jump = value
                    .split(',')
                    .map(|hop| hop.trim_start_matches("ssh://").to_owned())
                    .collect()
            }
            "revokedhostkeys" => config.revoked_keys = Some(value.to_owned()),
            "proxycommand" => config.proxy_command = Some(value.to_owned()),
            _ => {}
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spec is checked by this rule too, and a jump host is what `ssh -G` itself said: `Match
    /// exec` hands both to a shell.
    #[tokio::test]
    async fn ssh_is_asked_about_no_host_that_a_shell_would_read() {
        let aliases = Aliases::of_file("/dev/null".into());
        for (host, user) in [
            ("$(id)", ""),
            ("-oProxyCommand=id", ""),
            ("h1", "$(id)"),
            ("h1", "-x"),
        ] {
            let refused = aliases.of(host, user).await.unwrap_err().one_line();
            assert!(
                refused.contains("is no host that ssh may be asked about"),
                "{host} {user}: {refused}"
            );
        }
    }

    #[test]
    fn reads_what_ssh_prints() {
        let text = "host gpu1\n\
                    user ops\n\
                    hostname 10.0.0.1\n\
                    port 2222\n\
                    identitiesonly yes\n\
                    proxycommand none\n\
                    identityfile ~/.ssh/id_a\n\
                    identityfile /k b\n\
                    identityagent SSH_AUTH_SOCK\n\
                    proxyjump ops@b1:22,b2\n\
                    userknownhostsfile ~/.ssh/known_hosts /x/known\n\
                    globalknownhostsfile /etc/ssh/ssh_known_hosts\n\
                    revokedhostkeys /etc/ssh/revoked\n\
                    hostkeyalias gpu-one\n";
        let config = parse_ssh_config(text, Some(std::path::Path::new("/home/a")));
        assert_eq!(
            (
                config.host_name.as_deref(),
                config.port,
                config.user.as_deref()
            ),
            (Some("10.0.0.1"), Some(2222), Some("ops"))
        );
        assert_eq!(
            config.identities,
            [PathBuf::from("/home/a/.ssh/id_a"), "/k b".into()]
        );
        assert_eq!(
            (config.proxy_jump, config.proxy_command),
            (vec!["ops@b1:22".to_owned(), "b2".to_owned()], None)
        );
        assert_eq!(config.revoked_keys.as_deref(), Some("/etc/ssh/revoked"));
        assert_eq!(
            (config.known_hosts.len(), config.unclear_known_hosts),
            (3, None)
        );
        assert_eq!(
            (config.key_alias.as_deref(), config.identities_only),
            (Some("gpu-one"), true)
        );
    }

    #[test]
    fn an_agent_that_is_switched_off_is_not_that_of_the_environment() {
        for (value, agent) in [
            ("none", ConfiguredAgent::None),
            ("SSH_AUTH_SOCK", ConfiguredAgent::OfEnvironment),
            ("/run/agent", ConfiguredAgent::At("/run/agent".into())),
        ] {
            let config = parse_ssh_config(&format!("identityagent {value}\n"), None);
            assert_eq!(config.agent, agent, "{value}");
        }
    }

    /// `ssh -G` prints the files of a list with blanks between them, and quotes none.
    #[test]
    fn known_hosts_files_that_cannot_be_told_apart_are_unclear() {
        for (files, is_unclear) in [
            ("/a/known ~/.ssh/known", false),
            ("/a/with blank/known", true),
            ("known", true),
            ("%d/known", true),
        ] {
            let config = parse_ssh_config(&format!("userknownhostsfile {files}\n"), None);
            assert_eq!(config.unclear_known_hosts.is_some(), is_unclear, "{files}");
        }
    }
}
