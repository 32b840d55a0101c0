//! Where the references to secrets of a spec lead: a variable of our environment, a file, a
//! program. Each is asked once a command, only when some resource names it, and only by a command
//! that contacts targets: others have no use for it, and what they print of it would tell something
//! to whoever wrote the inventory. That one cannot be had is not an error yet: whoever needs it
//! says so.

use super::inventory::Inventory;
use railwright_base::{Diagnostic, Reason, Severity, redaction, secret};
use railwright_knowledge::spec::model::SecretReference;
use railwright_system::process::Program;
use railwright_system::{environment, files};
use railwright_transport::{self as transport, Connector, Secrets, TargetContact};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longer secrets are refused: a file of ours holds them, and what a key, a token or a certificate
/// needs is far below.
const LONGEST_BYTES: usize = 64 << 10;

/// How long a program may take to print one; a person may have to unlock a key first.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);

/// These secrets of the inventory, each with its value or why it cannot be had.
pub fn resolve_secrets(
    inventory: &Inventory,
    names: &BTreeSet<String>,
    contact: Option<TargetContact>,
) -> BTreeMap<String, Result<String, Diagnostic>> {
    let asked = inventory
        .loaded
        .spec
        .secret_references()
        .filter(|(name, _)| names.contains(name));
    let one = |name: &str, reference| match contact {
        Some(contact) => read_secret(inventory, name, reference, contact),
        None => Err(report_missing_secret(
            inventory,
            name,
            source_of(reference),
            &"no target is contacted here, and a secret is read only where one is".into(),
        )),
    };
    asked
        .map(|(name, reference)| (name.clone(), one(&name, reference)))
        .collect()
}

/// Opens connections that carry nothing but the passwords of switches, for a command that only
/// looks.
pub fn connector_to_look(inventory: &Inventory, contact: TargetContact) -> Arc<dyn Connector> {
    read_switch_passwords(inventory, contact).carried_by(transport::new_connector(contact))
}

/// The passwords of switches, and no secret.
pub fn read_switch_passwords(inventory: &Inventory, contact: TargetContact) -> Arc<Secrets> {
    let names = inventory.loaded.passwords().collect();
    Arc::new(Secrets::new(
        None,
        resolve_secrets(inventory, &names, Some(contact)),
        BTreeMap::new(),
    ))
}

fn read_secret(
    inventory: &Inventory,
    name: &str,
    reference: &SecretReference,
    contact: TargetContact,
) -> Result<String, Diagnostic> {
    let is_password = is_password(inventory, name);
    let read = match reference {
        SecretReference {
            env: Some(variable),
            ..
        } if is_password => of_environment(variable).map(without_line_end),
        SecretReference {
            env: Some(variable),
            ..
        } => of_environment(variable),
        SecretReference {
            file: Some(file), ..
        } => of_file(inventory, file, contact),
        SecretReference {
            command: Some(words),
            ..
        } => of_program(inventory, words, contact),
        SecretReference { .. } => Err("it has no source".into()),
    };
    let read = if is_password {
        read.and_then(of_one_line)
    } else {
        read
    };
    read.and_then(validate_secret_text)
        .map_err(|why| report_missing_secret(inventory, name, source_of(reference), &why))
}

/// The field of the spec that names the source of a secret.
fn source_of(reference: &SecretReference) -> &'static str {
    match reference {
        SecretReference { env: Some(_), .. } => "env",
        SecretReference { file: Some(_), .. } => "file",
        SecretReference { .. } => "command",
    }
}

/// A password of a switch is called by its place in the spec, and no secret is.
fn is_password(inventory: &Inventory, name: &str) -> bool {
    !inventory.loaded.spec.secrets.contains_key(name)
}

/// Passwords of switches are sent as a user and a password of HTTP, in which no control character
/// can be (RFC 7617, section 2).
fn of_one_line(bytes: Vec<u8>) -> Result<Vec<u8>, Reason> {
    match bytes.iter().find(|byte| byte.is_ascii_control()) {
        Some(b'\n' | b'\r') => Err("it has several lines, and a password has one".into()),
        Some(_) => Err("it holds a control character, which no password can".into()),
        None => Ok(bytes),
    }
}

/// A warning for each variable of the environment that a secret is to come from and that is not set
/// here.
pub fn report_unset_variables(inventory: &Inventory) -> Vec<Diagnostic> {
    let unset = |(name, reference): (String, &SecretReference)| {
        let why = of_environment(reference.env.as_deref()?).err()?;
        let missing = report_missing_secret(inventory, &name, "env", &why);
        Some(
            Diagnostic {
                severity: Severity::Warning,
                ..missing
            }
            .effect("the spec is valid, but whatever needs this secret will stop"),
        )
    };
    inventory
        .loaded
        .spec
        .secret_references()
        .filter_map(unset)
        .collect()
}

fn of_environment(variable: &str) -> Result<Vec<u8>, Reason> {
    let value = environment::read_variable(variable)
        .ok_or_else(|| format!("the environment variable {variable} is not set, or empty"))?;
    Ok(value.into_bytes())
}

fn of_file(inventory: &Inventory, file: &str, _: TargetContact) -> Result<Vec<u8>, Reason> {
    let path = inventory.absolute(file);
    let read = files::read_ordinary(Path::new(&path), LONGEST_BYTES as u64 + 1);
    read.map(without_line_end)
        .map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => too_long(),
            _ => format!("{path} cannot be read: {error}").into(),
        })
}

fn of_program(
    inventory: &Inventory,
    words: &[String],
    contact: TargetContact,
) -> Result<Vec<u8>, Reason> {
    contact.lift_ceiling();
    let (program, arguments) = words.split_first().ok_or("its command is empty")?;
    let path = if program.contains('/') {
        inventory.absolute(program)
    } else {
        program.clone()
    };
    let answer = Program::new(path)
        .arguments(arguments)
        .folder(&inventory.folder)
        .answer(LONGEST_BYTES + 1, PROGRAM_LIMIT);
    answer
        .map(without_line_end)
        .map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => too_long(),
            _ => format!(
                "its program `{}` gave none: {error}",
                railwright_base::text::one_line(program, 60)
            )
            .into(),
        })
}

/// Editors and programs end what they write with a line end that is no part of the secret.
fn without_line_end(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    bytes
}

fn too_long() -> Reason {
    format!("it is longer than {} KiB", LONGEST_BYTES >> 10).into()
}

/// What can be written to a file and kept out of everything else.
fn validate_secret_text(bytes: Vec<u8>) -> Result<String, Reason> {
    let text = String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())?;
    match text {
        text if text.is_empty() => Err("it is empty".into()),
        text if text.len() > LONGEST_BYTES => Err(too_long()),
        text if text.contains('\0') || secret::find_mark_character(&text).is_some() => {
            Err("it holds a character that no text can hold".into())
        }
        text if text.trim().len() < redaction::SHORTEST_BYTES => Err(format!(
            "it is shorter than {} characters, so it could not be told from other text and kept \
             out of logs",
            redaction::SHORTEST_BYTES
        )
        .into()),
        text => Ok(text),
    }
}

fn report_missing_secret(
    inventory: &Inventory,
    name: &str,
    field: &str,
    why: &Reason,
) -> Diagnostic {
    let next = match field {
        "env" => "set it where railwright runs: export NAME=...",
        "file" => {
            "write the file, readable by you alone, or correct the path; it is relative to the \
             inventory"
        }
        _ => {
            "run the program by hand in the inventory's folder: it has to print the secret and end \
             with 0"
        }
    };
    let (place, effect) = match is_password(inventory, name) {
        true => (
            name.to_owned(),
            "the switches whose password it is are not reached",
        ),
        false => (
            format!("secrets.{name}"),
            "what needs it can neither be compared with the hosts nor brought to them",
        ),
    };
    let missing = Diagnostic::error(
        "RW1016",
        format!("the secret `{name}` cannot be had: {why}"),
    )
    .effect(effect)
    .next(next);
    match inventory
        .loaded
        .label(&format!("{place}.{field}"), "named here")
    {
        Some(label) => missing.labelled(label),
        None => missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(secrets: &str) -> (tempfile::TempDir, Inventory) {
        of_spec(&format!("nodes: [{{ name: a }}]\nsecrets:\n{secrets}"))
    }

    fn of_spec(rest: &str) -> (tempfile::TempDir, Inventory) {
        let folder = tempfile::tempdir().unwrap();
        let spec = format!(
            "cluster: c\n\
             fabric: {{ kind: none }}\n\
             ssh: {{ user: root, host_keys: known_hosts }}\n\
             {rest}"
        );
        std::fs::write(folder.path().join("cluster.yaml"), spec).unwrap();
        let inventory = super::super::inventory::read_inventory(folder.path())
            .map_err(|problems| format!("{:?}", problems.diagnostics))
            .unwrap();
        (folder, inventory)
    }

    #[test]
    fn each_source_gives_its_secret_or_says_why_not() {
        let (folder, inventory) = inventory(
            "  file: { file: token }\n  none: { file: gone }\n  program: { command: [./say, 'two words'] }\n  fails: { command: [./fails] }\n  absent: { command: [no-such-program-anywhere] }\n  silent: { command: ['true'] }\n  pipe: { file: pipe }\n  device: { file: /dev/zero }\n  unset: { env: RAILWRIGHT_NO_SUCH_VARIABLE }\n  short: { command: [echo, pin] }\n  long: { command: [yes, poison] }\n  binary: { file: binary }\n  zero: { file: zero }\n",
        );
        let write =
            |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("token", b" two words\r\n");
        write("binary", b"\xff\xfe\xfd\xfc\xfb\xfa\xf9");
        write("zero", b"a\0bcdefgh");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(folder.path().join("pipe"))
                .status()
                .unwrap()
                .success()
        );
        write(
            "say",
            b"#!/bin/sh\nprintf '%s|%s\\n\\n' \"$1\" \"$(pwd)\"\n",
        );
        write(
            "fails",
            b"#!/bin/sh\necho poison; echo poison >&2; exit 7\n",
        );
        for program in ["say", "fails"] {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(
                folder.path().join(program),
                std::fs::Permissions::from_mode(0o755),
            )
            .unwrap();
        }
        let names = inventory.loaded.spec.secrets.keys().cloned().collect();
        let found = resolve_secrets(&inventory, &names, Some(TargetContact::begin()));
        assert_eq!(found["file"].as_deref(), Ok(" two words"));
        assert_eq!(
            found["program"].as_deref(),
            Ok(format!("two words|{}\n", inventory.folder.display()).as_str())
        );
        for (name, why) in [
            ("none", "No such file"),
            ("pipe", "it is no ordinary file"),
            ("device", "it is no ordinary file"),
            ("fails", "`./fails` gave none: it failed (exit status: 7)"),
            ("absent", "No such file"),
            ("silent", "it is empty"),
            ("unset", "RAILWRIGHT_NO_SUCH_VARIABLE is not set"),
            ("short", "shorter than 6"),
            ("long", "longer than 64 KiB"),
            ("binary", "no UTF-8"),
            ("zero", "a character that no text can hold"),
        ] {
            let missing = found[name].as_ref().unwrap_err();
            assert!(
                missing.code == "RW1016"
                    && missing.message.contains(why)
                    && !missing.labels.is_empty(),
                "{name}: {missing:?}"
            );
            assert!(
                !format!("{missing:?}").contains("poison") || name == "long",
                "{missing:?}"
            );
        }
        assert_eq!(
            super::resolve_secrets(&inventory, &BTreeSet::new(), None).len(),
            0,
            "what nobody needs is not asked for"
        );
    }

    /// Not even from a file of the inventory or from the environment.
    #[test]
    fn without_contact_no_secret_is_read() {
        let (folder, inventory) = inventory(
            "  near: { file: token }\n  variable: { env: PATH }\n  program: { command: [./say] }\n",
        );
        std::fs::write(folder.path().join("token"), "in-the-folder").unwrap();
        let names = inventory.loaded.spec.secrets.keys().cloned().collect();
        for (name, found) in super::resolve_secrets(&inventory, &names, None) {
            let missing = found.unwrap_err();
            assert!(
                missing.message.contains("no target is contacted here")
                    && !missing.labels.is_empty(),
                "{name}: {missing:?}"
            );
        }
    }

    /// What a file or a program ends with is no part of a password; a second line is no line end.
    #[test]
    fn a_password_is_one_line() {
        let group = |n: usize, password: &str| {
            format!(
                "  - {{ name: s{n}, os: eos, ports: Ethernet1, eapi: {{ user: u, password: \
                 {password} }} }}\n"
            )
        };
        let groups = [
            "{ file: one }",
            "{ file: two }",
            "{ command: [printf, 'first\\nsecond\\n'] }",
            "{ file: tab }",
            "{ file: blank }",
        ];
        let groups: String = groups
            .iter()
            .enumerate()
            .map(|(n, password)| group(n, password))
            .collect();
        let (folder, inventory) = of_spec(&format!("switches:\n{groups}"));
        for (name, bytes) in [
            ("one", "poison-1\r\n"),
            ("two", "poison-1\npoison-2\n"),
            ("tab", "poison\t1"),
            ("blank", "poison-1\n\n"),
        ] {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let names = inventory.loaded.passwords().collect();
        let found = resolve_secrets(&inventory, &names, Some(TargetContact::begin()));
        let of = |n: usize| &found[&format!("switches[{n}].eapi.password")];
        assert_eq!(of(0).as_deref(), Ok("poison-1"));
        for (n, why) in [
            (1, "several lines"),
            (2, "several lines"),
            (3, "a control character"),
            (4, "several lines"),
        ] {
            let missing = of(n).as_ref().unwrap_err();
            assert!(
                missing.code == "RW1016"
                    && missing.message.contains(why)
                    && !missing.labels.is_empty(),
                "{n}: {missing:?}"
            );
            assert!(!format!("{missing:?}").contains("poison"), "{missing:?}");
        }
    }
}
