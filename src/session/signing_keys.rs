//! The signing keys of package repositories that a spec names: read, checked to be public keys, and
//! replaced by a text where they are not there yet.

use super::SessionError;
use super::describe_file_error;
use super::inventory::{Inventory, KEY_BYTES_MAX};
use super::inventory_file::NotOpened;
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_knowledge::module::{Texts, context};
use railwright_system::files;
use railwright_transport::TargetContact;
use std::path::PathBuf;

/// The keys that templates may name, by path as the spec has it.
pub(crate) fn list_named_keys(inventory: &Inventory) -> impl Iterator<Item = String> {
    context::list_referenced_files(&inventory.loaded)
        .into_iter()
        .map(|(named, _)| named)
}

/// Texts of the files that templates may name; one that is absent, or may not be opened, is left
/// out, and whoever needs it says so. Nothing but a public key is taken for one.
pub(crate) fn read_referenced_files(
    inventory: &Inventory,
    contact: Option<TargetContact>,
) -> Result<Texts, SessionError> {
    let (mut texts, mut size) = (Texts::new(), context::KeysSize::default());
    for (index, named) in list_named_keys(inventory).enumerate() {
        if texts.contains_key(&named) {
            continue;
        }
        let is_closed = || {
            matches!(
                inventory.find(&named),
                Err(NotOpened::Outside | NotOpened::Hidden)
            )
        };
        let (text, is_key, place) = match inventory.keys.get(&named) {
            Some(text) => {
                let text = text.clone()?;
                let is_key = holds_public_key(&text);
                (text, is_key, "holds")
            }
            None if contact.is_some() && is_closed() => {
                let path = PathBuf::from(inventory.absolute(&named));
                let text = match files::read_ordinary(&path, KEY_BYTES_MAX) {
                    Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(describe_file_error(&path, &error).into()),
                };
                let is_key = is_public_key(&text);
                (
                    text,
                    is_key,
                    "lies outside of the inventory, or hidden in it, and is",
                )
            }
            None => continue,
        };
        if !is_key {
            return Err(SessionError::of_input(
                vec![no_public_key(inventory, index, &named, place)],
                &inventory.loaded.sources,
            ));
        }
        let is_within = size.add(&inventory.loaded, index, text.len());
        is_within
            .map_err(|problem| SessionError::of_input(vec![problem], &inventory.loaded.sources))?;
        texts.insert(named, text);
    }
    Ok(texts)
}

const KEY_BEGINS: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const KEY_ENDS: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// An armoured public key and nothing besides (RFC 9580, section 6.2): what else stands in a file
/// outside is sent to no host.
fn is_public_key(text: &str) -> bool {
    let mut rest = text.trim();
    while let Some((block, after)) = rest
        .strip_prefix(KEY_BEGINS)
        .and_then(|rest| rest.split_once(KEY_ENDS))
    {
        if block.contains("-----") {
            return false;
        }
        rest = after.trim_start();
    }
    rest.is_empty() && holds_public_key(text)
}

/// One with whatever its vendor wrote around it (RPM-GPG-KEY-redhat-release): a token of the
/// inventory is none.
fn holds_public_key(text: &str) -> bool {
    text.contains(KEY_BEGINS) && text.contains(KEY_ENDS) && !text.contains("PRIVATE KEY")
}

fn no_public_key(inventory: &Inventory, index: usize, named: &str, place: &str) -> Diagnostic {
    let problem = Diagnostic::error(
        "RW0175",
        format!("`{}` {place} no armoured public key", one_line(named, 120)),
    )
    .effect("another file of this machine would be sent to the hosts, and shown")
    .state("nothing was sent to any host")
    .next(
        "name the file that `gpg --armor --export KEY` wrote, best within the inventory's folder",
    );
    match inventory
        .loaded
        .label(&format!("repositories[{index}].key"), "named here")
    {
        Some(label) => problem.labelled(label),
        None => problem,
    }
}

/// With a text that says so for each signing key that is not there yet: enough to say what is
/// desired of a host, and never sent to one.
pub(crate) fn fill_absent_keys(inventory: &Inventory, texts: Texts) -> Texts {
    fill_with_words(inventory, texts, "is not there yet")
}

/// With a text of these words for each signing key that is not there yet.
pub(crate) fn fill_with_words(inventory: &Inventory, mut texts: Texts, words: &str) -> Texts {
    for named in list_named_keys(inventory) {
        let words = format!("({named} {words})");
        texts.entry(named).or_insert_with(|| {
            format!(
                "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\
                 \n\
                 {words}\n\
                 -----END PGP PUBLIC KEY BLOCK-----\n"
            )
        });
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_outside_is_public_keys_and_nothing_besides() {
        let key = format!("{KEY_BEGINS}\n\nmQ==\n=abcd\n{KEY_ENDS}\n");
        assert!(is_public_key(&key) && is_public_key(&format!("\n{key}\n \n{key}")));
        let private = key.replace("PUBLIC", "PRIVATE");
        for more in [
            "",
            "a token",
            &format!("{key}a token\n{key}"),
            &format!("{key}{private}{key}"),
            &private,
            KEY_BEGINS,
            KEY_ENDS,
        ] {
            assert!(!is_public_key(more), "{more}");
        }
        for more in ["a token", &private] {
            assert!(
                !is_public_key(&format!("{key}{more}\n"))
                    && !is_public_key(&format!("{KEY_BEGINS}\n{more}\n{key}")),
                "{more}"
            );
        }
        assert!(
            holds_public_key(&format!("of a vendor\n{key}"))
                && !holds_public_key(&format!("{key}{private}"))
        );
    }
}
