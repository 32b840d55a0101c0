//! How the APIs of switches are reached.

use super::access::{check_address, is_user};
use super::supply::check_secret;
use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::hosts::list_placeholders;
use crate::spec::model::{Api, ApiKind, Spec, SwitchGroup};
use railwright_base::Fingerprint;
use railwright_resource::switch::SwitchSystem;

/// An API that cannot be reached so, or that the switch does not have.
const API: &str = "RW0174";

const EFFECT: &str = "the switch cannot be reached, so nothing of it can be read or changed";

/// The APIs of every group of switches.
pub fn check_switch_apis(checker: &mut SpecChecker<'_>, spec: &Spec) {
    for (index, switch) in spec.switches.iter().enumerate() {
        for (kind, api) in switch.apis() {
            let at = format!("switches[{index}].{}", kind.key());
            check_system(checker, &at, switch, kind);
            check_api(checker, &at, &SwitchGroup::password_name(index, kind), api);
        }
        let ways: Vec<&str> = switch
            .ssh
            .iter()
            .map(|_| "ssh")
            .chain(switch.apis().map(|(kind, _)| kind.key()))
            .collect();
        if let [first, .., last] = ways[..] {
            let message = format!(
                "{} has `{first}` and `{last}`",
                truncate_user_text(&switch.name)
            );
            let effect = "one way has to be the one that is used";
            checker.find(
                &format!("switches[{index}].{last}"),
                "not the only way",
                new_spec_error(API, message, effect, "keep one of them"),
            );
        }
    }
}

fn check_system(checker: &mut SpecChecker<'_>, at: &str, switch: &SwitchGroup, kind: ApiKind) {
    let (of, whose) = match kind {
        ApiKind::Eapi => (SwitchSystem::Eos, "Arista EOS"),
        ApiKind::Nvue => (SwitchSystem::Cumulus, "Cumulus Linux"),
    };
    if let Some(os) = switch.os.filter(|os| *os != of) {
        let message = format!(
            "{} has `{}`, which is the API of {whose}, and `os: {}`",
            truncate_user_text(&switch.name),
            kind.key(),
            os.word()
        );
        checker.find(
            at,
            "not of this system",
            new_spec_error(
                API,
                message,
                EFFECT,
                "write `ssh` in its place, or correct `os`",
            ),
        );
    }
}

fn check_api(checker: &mut SpecChecker<'_>, at: &str, password: &str, api: &Api) {
    if api.port == Some(0) {
        let fix = "write the port of the API, or remove the key for the usual one";
        let finding = new_spec_error(API, "there is no port 0", EFFECT, fix);
        checker.find(&format!("{at}.port"), "1 to 65535 is possible", finding);
    }
    if !is_user(&api.user) {
        let message = format!("`{}` cannot be a user name", truncate_user_text(&api.user));
        let fix = "write the name of a user of the switch";
        let finding = new_spec_error(API, message, EFFECT, fix);
        checker.find(&format!("{at}.user"), "not a user", finding);
    }
    match &api.address {
        Some(address) if address == "local" => {
            let effect = "this machine is no switch";
            let finding = new_spec_error(API, "`local` is no switch", effect, "write its address");
            checker.find(&format!("{at}.address"), "this machine", finding);
        }
        Some(address) => check_address(checker, &format!("{at}.address"), address),
        None => {}
    }
    check_secret(checker, password, "the password", &api.password);
    let certificate = api.certificate.as_deref();
    if let Some((label, message, fix)) = certificate.and_then(find_certificate_fault) {
        let effect = "the certificate is always checked, and this pins none";
        let finding = new_spec_error(API, message, effect, fix);
        checker.find(&format!("{at}.certificate"), label, finding);
    }
}

fn find_certificate_fault(text: &str) -> Option<(&'static str, String, &'static str)> {
    if let Some(digits) = Fingerprint::digits_of(text) {
        let fix = "write `sha256:` and the 64 hexadecimal digits that `openssl x509 -noout \
                   -fingerprint -sha256` prints";
        return Fingerprint::parse(digits).is_none().then(|| {
            (
                "not a fingerprint",
                format!(
                    "`{}` is no fingerprint of a certificate",
                    truncate_user_text(text)
                ),
                fix,
            )
        });
    }
    if text.is_empty() || text.chars().any(char::is_control) {
        return Some((
            "not a file name",
            "this cannot be a file name".to_owned(),
            "write the path of a PEM file, relative to the inventory",
        ));
    }
    let unknown = list_placeholders(text)
        .into_iter()
        .find(|name| !matches!(*name, "name" | "index"))?;
    Some((
        "unknown placeholder",
        format!(
            "`{{{}}}` stands for nothing here",
            truncate_user_text(unknown)
        ),
        "`{name}` and `{index}` can be used",
    ))
}
