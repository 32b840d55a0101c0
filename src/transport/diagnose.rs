//! Every transport error for the person on call: what it means, what state things are in, and the
//! next command.

use super::{TransportError, api};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Reason};
use railwright_resource::TargetReadFailure;

impl TransportError {
    /// The target that it is about, as addresses name it; None for a trouble on this side.
    fn target(&self) -> Option<String> {
        match self {
            TransportError::Unreachable { host, .. }
            | TransportError::HostKeyUnknown { host, .. }
            | TransportError::HostKeyChanged { host, .. }
            | TransportError::HostKeyRevoked { host, .. }
            | TransportError::HostCertificateRefused { host, .. }
            | TransportError::AuthenticationFailed { host, .. }
            | TransportError::SudoRefused { host, .. }
            | TransportError::ReadOnly { host, .. }
            | TransportError::LockLost { host, .. }
            | TransportError::Lost { host, .. }
            | TransportError::TimedOut { host, .. }
            | TransportError::NoDescriptors { host, .. } => {
                Some(format!("host/{}", one_line(host, 80)))
            }
            TransportError::ServerUnreachable { cluster, .. }
            | TransportError::ServerNotTrusted { cluster, .. }
            | TransportError::NoIdentity { cluster, .. }
            | TransportError::IdentityRefused { cluster, .. }
            | TransportError::RecordUnread { cluster, .. } => {
                Some(format!("kube/{}", one_line(cluster, 80)))
            }
            TransportError::CertificateUnknown { switch, .. }
            | TransportError::CertificateRefused { switch, .. }
            | TransportError::LoginRefused { switch, .. }
            | TransportError::NoApi { switch, .. }
            | TransportError::ApiRefused { switch, .. } => {
                Some(format!("switch/{}", one_line(switch, 80)))
            }
            TransportError::Local { .. } => None,
        }
    }

    /// In one line, clean, for a table or an observation file.
    pub fn one_line(&self) -> String {
        one_line(&self.to_string(), 300)
    }

    /// For an observation: the words of the diagnostic, and what is the same on all hosts with this
    /// trouble.
    pub fn trouble(&self) -> TargetReadFailure {
        let diagnostic = self.diagnostic();
        TargetReadFailure {
            code: diagnostic.code.into_owned(),
            message: diagnostic.message,
            shared_message: self.describe_without_target(),
            next: diagnostic.next,
        }
    }

    /// The trouble in words that are identical on all targets that have it.
    fn describe_without_target(&self) -> String {
        match self {
            TransportError::Unreachable { reason, .. } => with_reason("not reachable: ", reason),
            TransportError::HostKeyUnknown { .. } => "the host key is not known".to_owned(),
            TransportError::HostKeyChanged { .. } => {
                "the host key is not the pinned one".to_owned()
            }
            TransportError::HostKeyRevoked { .. } => "the host key is revoked".to_owned(),
            TransportError::HostCertificateRefused { reason, .. } => {
                with_reason("the host certificate is refused: ", reason)
            }
            TransportError::AuthenticationFailed { user, .. }
            | TransportError::LoginRefused { user, .. } => {
                format!("the login as {} was refused", one_line(user, 40))
            }
            TransportError::SudoRefused { user, .. } => {
                let user = one_line(user, 40);
                format!("sudo does not let {user} act without a password")
            }
            TransportError::ReadOnly { user, .. } => {
                format!("{} may only read", one_line(user, 40))
            }
            TransportError::LockLost { .. } => "the lock was taken over".to_owned(),
            TransportError::Lost { reason, .. } => with_reason("the connection ended: ", reason),
            TransportError::TimedOut { limit_s, .. } => format!("no answer within {limit_s} s"),
            TransportError::ServerUnreachable { reason, .. } => {
                with_reason("the API server is not reachable: ", reason)
            }
            TransportError::ServerNotTrusted { reason, .. } => {
                with_reason("the API server is not trusted: ", reason)
            }
            TransportError::IdentityRefused { reason, .. } => {
                with_reason("the API server does not accept ", reason)
            }
            TransportError::RecordUnread { reason, .. } => {
                with_reason("the record of our changes cannot be read: ", reason)
            }
            TransportError::CertificateUnknown { .. } => "the certificate is not known".to_owned(),
            TransportError::CertificateRefused { .. } => {
                "the certificate is not the pinned one".to_owned()
            }
            TransportError::NoApi { api, reason, .. } => {
                with_reason(&format!("there is no {api}: "), reason)
            }
            TransportError::ApiRefused { api, reason, .. } => {
                with_reason(&format!("{api} refuses it: "), reason)
            }
            TransportError::NoDescriptors { .. } => {
                "there is no file descriptor left on this machine".to_owned()
            }
            TransportError::NoIdentity { .. } | TransportError::Local { .. } => self.one_line(),
        }
    }

    /// As a diagnostic of a command that only reads: nothing was changed, and the same command goes
    /// on. An action whose outcome is not known is no error of the transport but
    /// `Performed::Unknown`.
    pub fn diagnostic(&self) -> Diagnostic {
        let of_switch = self
            .target()
            .is_some_and(|target| target.starts_with("switch/"));
        self.told(
            if of_switch {
                "nothing was changed on the switch"
            } else {
                "nothing was changed on the host"
            },
            "then run the same command again",
        )
    }

    /// As a diagnostic that says what state things are in and, after what fixes the cause, what to
    /// run.
    pub fn told(&self, state: &str, then: &str) -> Diagnostic {
        let mut diagnostic = self.cause().state(state).next(then);
        if let TransportError::Unreachable { host, .. } = self {
            diagnostic = diagnostic.next(format!(
                "or leave it out of a plan: --exclude {}",
                one_line(host, 80)
            ));
        }
        match self.target() {
            Some(target) => diagnostic.on(target),
            None => diagnostic,
        }
    }

    /// What it is, what it means, and what fixes it.
    fn cause(&self) -> Diagnostic {
        let known = api::diagnose_api_error(self)
            .or_else(|| self.diagnose_connection())
            .or_else(|| self.diagnose_host_key())
            .or_else(|| self.diagnose_rights());
        match known.or_else(|| self.diagnose_cluster()) {
            Some(diagnostic) => diagnostic,
            None => self
                .new_diagnostic("RW0410")
                .next("fix this on the machine that runs railwright"),
        }
    }

    /// The beginning of each of its diagnostics.
    pub(super) fn new_diagnostic(&self, code: &'static str) -> Diagnostic {
        Diagnostic::error(code, self.one_line())
    }

    /// Nothing where it is no trouble of the connection to a host or of the lock there.
    fn diagnose_connection(&self) -> Option<Diagnostic> {
        Some(match self {
            TransportError::Unreachable { address, .. } => {
                describe_unreachable_host(self.new_diagnostic("RW0401"), address)
            }
            TransportError::LockLost { .. } => self
                .new_diagnostic("RW0631")
                .effect("somebody took this run for dead and may be changing it now")
                .next("find out who has it: railwright lock list INVENTORY"),
            TransportError::Lost { .. } => self
                .new_diagnostic("RW0408")
                .effect("what the host was asked last has no answer")
                .next("see that the host and the way to it are up"),
            TransportError::TimedOut { .. } => self
                .new_diagnostic("RW0409")
                .effect(
                    "something on the host hangs: a dead network file system, a driver that waits, \
                     no memory",
                )
                .next("look at the host (uptime, dmesg)"),
            TransportError::NoDescriptors { .. } => self
                .new_diagnostic("RW0423")
                .effect(
                    "the host was not asked, so nothing is known of it; nothing is wrong with it \
                     or its keys",
                )
                .next("allow more open files: ulimit -n 4096"),
            _ => return None,
        })
    }

    /// Nothing where it is no trouble of a host's key or certificate.
    fn diagnose_host_key(&self) -> Option<Diagnostic> {
        Some(match self {
            TransportError::HostKeyUnknown {
                known_hosts,
                line,
                malformed,
                ..
            } => unknown_key(self.new_diagnostic("RW0402"), known_hosts, line, malformed),
            TransportError::HostKeyChanged {
                host,
                known_hosts,
                line,
                ..
            } => changed_key(self.new_diagnostic("RW0403"), host, known_hosts, *line),
            TransportError::HostKeyRevoked {
                known_hosts, line, ..
            } => self
                .new_diagnostic("RW0404")
                .effect("whoever answers there holds a key that was declared stolen or retired")
                .next(format!(
                    "give the host new keys (ssh-keygen -A), then pin them beside line {line} of \
                     {known_hosts}"
                )),
            TransportError::HostCertificateRefused { .. } => self
                .new_diagnostic("RW0405")
                .effect(
                    "an authority that you trust for this host signed the certificate, but not for \
                     this host or this time",
                )
                .next(
                    "have the authority sign the host's key again: ssh-keygen -s CA -h -n HOST -I \
                     HOST /etc/ssh/ssh_host_ed25519_key.pub",
                ),
            _ => return None,
        })
    }

    /// Nothing where it is no trouble of what our identity may do on a host.
    fn diagnose_rights(&self) -> Option<Diagnostic> {
        Some(match self {
            TransportError::AuthenticationFailed { user, tried, .. } => {
                refused_keys(self.new_diagnostic("RW0406"), user, tried)
            }
            TransportError::SudoRefused { user, .. } => self
                .new_diagnostic("RW0407")
                .effect(format!(
                    "{user} may log in but cannot read or change the system"
                ))
                .next(format!(
                    "on the host, with visudo: {user} ALL=(root) NOPASSWD: /bin/sh"
                ))
                .next("or set `ssh: { user: root }` in the inventory")
                .next(
                    "or only look, without any shell as root: plan, drift and facts with --read-as \
                     USER, and what `railwright sudoers` prints",
                ),
            TransportError::ReadOnly { .. } => self
                .new_diagnostic("RW0411")
                .effect(
                    "this identity is for plan, drift and facts; it can neither lock nor change a \
                     host",
                )
                .next(
                    "name an identity with rights in the inventory: `ssh: { user: root }` without \
                     `read_only`",
                )
                .next(
                    "and keep the other one for looking: railwright drift INVENTORY --read-as USER",
                ),
            _ => return None,
        })
    }

    /// Nothing where it is no trouble of the API server of a cluster or of our access to it.
    fn diagnose_cluster(&self) -> Option<Diagnostic> {
        Some(match self {
            TransportError::ServerUnreachable { .. } => self
                .new_diagnostic("RW0413")
                .effect("the cluster's objects are unknown, and nothing can be changed there")
                .next(
                    "see what another client says: kubectl version (with the same kubeconfig and \
                     context)",
                )
                .next("check the address in the kubeconfig, a VPN, and HTTPS_PROXY and NO_PROXY"),
            TransportError::ServerNotTrusted { .. } => self
                .new_diagnostic("RW0414")
                .effect("whoever answers there could be anyone, so it was told nothing")
                .next(
                    "take a fresh kubeconfig from the cluster's administrator or console: its \
                     certificate-authority-data must be the cluster's own",
                ),
            TransportError::IdentityRefused { .. } => self
                .new_diagnostic("RW0415")
                .effect("the server lets us neither read nor change anything")
                .next(
                    "log in again, or take a fresh kubeconfig; then see who you are: kubectl auth \
                     whoami",
                ),
            TransportError::RecordUnread { secret, .. } => {
                unread_record(self.new_diagnostic("RW0416"), secret)
            }
            TransportError::NoIdentity { .. } => self
                .new_diagnostic("RW0410")
                .next(
                    "fix this on the machine that runs railwright, or name another: \
                     kubernetes.kubeconfig and kubernetes.context in the spec",
                )
                .next(
                    "without kubernetes.kubeconfig, KUBECONFIG and ~/.kube/config are looked at, \
                     as kubectl does",
                ),
            _ => return None,
        })
    }
}

fn with_reason(words: &str, reason: &Reason) -> String {
    format!("{words}{}", one_line(reason.as_words(), 120))
}

fn describe_unreachable_host(diagnostic: Diagnostic, address: &str) -> Diagnostic {
    diagnostic
        .effect("the host's links and settings are unknown; it counts as unavailable")
        .next(format!(
            "check that it is up and that {} is right in the inventory",
            one_line(address, 120)
        ))
}

fn unknown_key(
    mut diagnostic: Diagnostic,
    known_hosts: &str,
    line: &str,
    malformed: &[String],
) -> Diagnostic {
    for place in malformed {
        diagnostic = diagnostic.next(format!(
            "{} is no line of known_hosts: write `NAME ALGORITHM KEY` there, or remove it",
            one_line(place, 200)
        ));
    }
    let algorithm = line.split_whitespace().nth(1).unwrap_or_default();
    let file = match algorithm {
        "ssh-rsa" => "rsa",
        ecdsa if ecdsa.starts_with("ecdsa") => "ecdsa",
        _ => "ed25519",
    };
    diagnostic
        .effect(
            "nobody has said yet that this key is the host's, so whoever answers there could be \
             anyone",
        )
        .next(format!(
            "compare it on the host's console: ssh-keygen -lf /etc/ssh/ssh_host_{file}_key.pub"
        ))
        .next(format!(
            "if it is the same, add this line to {known_hosts}: {}",
            one_line(line, 1200)
        ))
}

fn changed_key(diagnostic: Diagnostic, host: &str, known_hosts: &str, line: u32) -> Diagnostic {
    diagnostic
        .effect("the host was reinstalled, or somebody else answers at its address")
        .next(format!(
            "compare it on the console of {}: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
            one_line(host, 80)
        ))
        .next(format!(
            "if the host has a new key, replace line {line} of {known_hosts}"
        ))
}

fn refused_keys(mut diagnostic: Diagnostic, user: &str, tried: &[String]) -> Diagnostic {
    diagnostic = diagnostic.effect("we may not log in, so the host cannot be read");
    for what in tried.iter().take(8) {
        diagnostic = diagnostic.next(format!("tried {}", one_line(what, 200)));
    }
    if tried.is_empty() {
        diagnostic = diagnostic.next(
            "there was nothing to offer: name a key file as `ssh: \
             { identities: [~/.ssh/id_ed25519] }`",
        );
    }
    if tried.iter().any(|what| what.contains("is encrypted")) {
        diagnostic = diagnostic
            .next("let the agent hold the encrypted key: eval \"$(ssh-agent)\"; ssh-add FILE");
    }
    diagnostic.next(format!(
        "put the public key into ~{}/.ssh/authorized_keys on the host",
        one_line(user, 40)
    ))
}

fn unread_record(diagnostic: Diagnostic, secret: &str) -> Diagnostic {
    let secret = one_line(secret, 80);
    diagnostic
        .effect(
            "what was made there and is no longer declared is known from it alone, so nothing is \
             compared and nothing written over it",
        )
        .next(format!(
            "look at it: kubectl -n kube-system get secret {secret} -o yaml"
        ))
        .next(format!(
            "only where it is damaged for good: kubectl -n kube-system delete secret {secret}; the \
             memory of the folder that applies then counts"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<TransportError> {
        let text = || "gpu-001".to_owned();
        vec![
            TransportError::Unreachable {
                host: text(),
                address: "10.0.0.1:22".to_owned(),
                reason: "Connection refused".into(),
            },
            TransportError::HostKeyUnknown {
                host: text(),
                fingerprint: "SHA256:abc".to_owned(),
                known_hosts: "known_hosts".to_owned(),
                line: "gpu-001 ecdsa-sha2-nistp256 AAAA".to_owned(),
                malformed: vec!["known_hosts:3".to_owned()],
            },
            TransportError::HostKeyChanged {
                host: text(),
                fingerprint: text(),
                known_hosts: text(),
                line: 3,
            },
            TransportError::HostKeyRevoked {
                host: text(),
                fingerprint: text(),
                known_hosts: text(),
                line: 3,
            },
            TransportError::HostCertificateRefused {
                host: text(),
                fingerprint: text(),
                known_hosts: text(),
                reason: text().into(),
            },
            TransportError::AuthenticationFailed {
                host: text(),
                user: text(),
                tried: vec!["/k: is encrypted".to_owned()],
            },
            TransportError::SudoRefused {
                host: text(),
                user: text(),
            },
            TransportError::ReadOnly {
                host: text(),
                user: text(),
            },
            TransportError::Lost {
                host: text(),
                reason: "\u{1b}[2Jgone".into(),
            },
            TransportError::TimedOut {
                host: text(),
                limit_s: 30,
            },
            TransportError::NoDescriptors {
                host: text(),
                limit: 256,
            },
            TransportError::ServerUnreachable {
                cluster: text(),
                address: text(),
                reason: text().into(),
            },
            TransportError::ServerNotTrusted {
                cluster: text(),
                address: text(),
                reason: text().into(),
            },
            TransportError::IdentityRefused {
                cluster: text(),
                address: text(),
                reason: text().into(),
            },
            TransportError::RecordUnread {
                cluster: text(),
                secret: text(),
                reason: text().into(),
            },
            TransportError::CertificateUnknown {
                switch: text(),
                address: text(),
                fingerprint: text(),
                file: text(),
            },
            TransportError::CertificateRefused {
                switch: text(),
                address: text(),
                fingerprint: text(),
                pin: text(),
                reason: text(),
            },
            TransportError::LoginRefused {
                switch: text(),
                user: text(),
                reason: text().into(),
            },
            TransportError::NoApi {
                switch: text(),
                address: text(),
                api: "eAPI",
                reason: text().into(),
            },
            TransportError::ApiRefused {
                switch: text(),
                api: "eAPI",
                user: text(),
                reason: text().into(),
            },
            TransportError::Local {
                reason: "no such file".into(),
            },
        ]
    }

    #[test]
    fn each_has_its_code_its_state_and_a_next_command() {
        let codes: std::collections::BTreeSet<_> =
            all().iter().map(|error| error.diagnostic().code).collect();
        assert_eq!(codes.len(), all().len());
        for error in all() {
            let diagnostic = error.diagnostic();
            assert!(
                diagnostic.state.is_some() && !diagnostic.next.is_empty(),
                "{error:?}"
            );
            assert!(!diagnostic.message.contains('\u{1b}'), "clean");
            let page = format!(
                "{}/../../docs/codes/{}.md",
                env!("CARGO_MANIFEST_DIR"),
                diagnostic.code
            );
            assert!(
                std::fs::read_to_string(&page).is_ok_and(|text| text.starts_with("# ")),
                "{page}"
            );
        }
    }

    #[test]
    fn an_unknown_key_is_pinned_without_trusting_the_network() {
        let next = all()[1].diagnostic().next;
        assert_eq!(
            next[1],
            "compare it on the host's console: ssh-keygen -lf /etc/ssh/ssh_host_ecdsa_key.pub"
        );
        assert_eq!(
            next[2],
            "if it is the same, add this line to known_hosts: gpu-001 ecdsa-sha2-nistp256 AAAA"
        );
    }
}
