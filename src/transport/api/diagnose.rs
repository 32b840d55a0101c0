//! What went wrong with the API of a switch, for the person on call: what it means and what fixes
//! it.

use crate::TransportError;
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::spec::model::ApiKind;

/// What it means, and what fixes it; nothing where the error is none of an API.
pub fn diagnose_api_error(error: &TransportError) -> Option<Diagnostic> {
    Some(match error {
        TransportError::CertificateUnknown {
            address,
            fingerprint,
            file,
            ..
        } => unknown_certificate(error.new_diagnostic("RW0417"), address, fingerprint, file),
        TransportError::CertificateRefused { address, pin, .. } => {
            refused_certificate(error.new_diagnostic("RW0418"), address, pin)
        }
        TransportError::LoginRefused { user, reason, .. } => {
            refused_login(error.new_diagnostic("RW0419"), user, reason.as_words())
        }
        TransportError::NoApi { address, api, .. } => error
            .new_diagnostic("RW0420")
            .effect("the switch cannot be read, and its ports are unknown")
            .next(match *api == ApiKind::Nvue.name() {
                true => {
                    "on the switch: nv set system api state enabled; nv config apply (it is so \
                     from the start from 5.6 on)"
                }
                false => {
                    "on the switch: configure, management api http-commands, no shutdown (and \
                     `protocol https`, which is so from the start)"
                }
            })
            .next(format!(
                "check that {} is its address, and its port, in the inventory",
                one_line(address, 120)
            )),
        TransportError::ApiRefused { user, .. } => error
            .new_diagnostic("RW0421")
            .effect(
                "a switch is read and changed by scripts in its bash, so nothing of it is known",
            )
            .next(format!(
                "on the switch: username {} privilege 15 role network-admin",
                one_line(user, 40)
            ))
            .next("or reach it over SSH: `ssh` in the place of `eapi`"),
        _ => return None,
    })
}

fn unknown_certificate(
    diagnostic: Diagnostic,
    address: &str,
    fingerprint: &str,
    file: &str,
) -> Diagnostic {
    let (address, file) = (one_line(address, 120), one_line(file, 200));
    diagnostic
        .effect(
            "nobody has said yet that this certificate is the switch's, so whoever answers there \
             could be anyone; the password was not sent",
        )
        .next(on_the_console(&address))
        .next(format!(
            "if it is the same, write it into the spec: certificate: \"{}\"",
            one_line(fingerprint, 120)
        ))
        .next(format!(
            "or keep the certificate: openssl s_client -connect {address} </dev/null | openssl \
             x509 -out {file}"
        ))
        .next(format!(
            "which shows what was kept: openssl x509 -noout -fingerprint -sha256 -in {file}"
        ))
}

/// How to ask the switch itself on its console, where nobody can answer in its place.
fn on_the_console(address: &str) -> String {
    let port = address.rsplit(':').next().unwrap_or_default();
    format!(
        "compare it on the switch's console, on EOS after `bash`: openssl s_client -connect \
         localhost:{} </dev/null | openssl x509 -noout -fingerprint -sha256",
        one_line(port, 5)
    )
}

fn refused_certificate(diagnostic: Diagnostic, address: &str, pin: &str) -> Diagnostic {
    diagnostic
        .effect(
            "the switch was given a new certificate, or somebody else answers at its address; the \
             password was not sent",
        )
        .next(on_the_console(address))
        .next(format!(
            "if the switch has a new one, it takes the place of {}",
            one_line(pin, 200)
        ))
        .next(format!(
            "openssl s_client -connect {} </dev/null | openssl x509 prints it",
            one_line(address, 120)
        ))
}

fn refused_login(diagnostic: Diagnostic, user: &str, reason: &str) -> Diagnostic {
    let said = one_line(reason, 160);
    let diagnostic = diagnostic.effect("we may not log in, so the switch cannot be read");
    let diagnostic = if said.is_empty() {
        diagnostic
    } else {
        diagnostic.next(format!("it says: {said}"))
    };
    diagnostic
        .next(format!(
            "see that the password is that of {} on the switch, and where the spec finds it: \
             `password` beside `user`",
            one_line(user, 40)
        ))
        .next("several refusals may lock the user out for a while; wait before the next try")
}
