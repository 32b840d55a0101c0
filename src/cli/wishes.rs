//! What the modules of an inventory wish for, shipped ones and its own, and the workloads of its
//! spec.

use super::inventory::{Inventory, KEY_BYTES_MAX};
use super::outside::NotOpened;
use super::{CommandFailure, pipeline};
use railwright_base::text::one_line;
use railwright_base::{Address, Diagnostic};
use railwright_knowledge::module::{self, DesiredState, ModuleFiles, Texts};
use railwright_knowledge::solve::SolverAnswers;
use railwright_knowledge::spec::LoadedSpec;
use railwright_resource::{DesiredResource, helm_release};
use railwright_system::files;
use railwright_transport::TargetContact;
use railwright_workload::Workloads;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Whether the modules of an inventory can be read, and wish for what is right. A key file that is
/// not there yet is left to the inventory's warnings: a spec is valid before the lab has made its
/// keys. What looks wrong and is allowed comes back.
pub fn check_desired_resources(
    inventory: &Inventory,
    workloads: &Workloads,
    answers: &SolverAnswers,
) -> Result<Vec<Diagnostic>, CommandFailure> {
    let texts = with_stand_ins(inventory, read_referenced_files(inventory, None)?);
    let DesiredState {
        wishes,
        mut warnings,
        ..
    } = compute_desired_resources(inventory, &inventory.loaded, workloads, answers, &texts)?;
    warnings.extend(
        wishes
            .iter()
            .filter(|wish| wish.kind == "helm_release")
            .filter_map(|wish| no_chart(inventory, wish)),
    );
    Ok(warnings)
}

/// Whether a release is of a chart of this machine. What is in it comes into the plan, and is in no
/// commit that was looked up.
pub(super) fn has_local_chart(wishes: &[DesiredResource]) -> bool {
    wishes.iter().any(|wish| {
        wish.kind == "helm_release" && !helm_release::parse_helm_release(wish).is_fetched()
    })
}

/// A chart of this machine that is not there.
fn no_chart(inventory: &Inventory, wish: &DesiredResource) -> Option<Diagnostic> {
    let release = helm_release::parse_helm_release(wish);
    let is_there = release.is_fetched()
        || files::is_present(&PathBuf::from(inventory.absolute(&release.chart)));
    let warning = || {
        Diagnostic::warning(
            "RW1005",
            format!("there is no chart {}", one_line(&release.chart, 120)),
        )
        .on(format!(
            "{}, {}",
            wish.address,
            one_line(&wish.whose_part(), 80)
        ))
        .effect("the spec is valid, but whatever needs this chart will stop")
        .next("create it, or correct the path; it is relative to the inventory")
    };
    (!is_there).then(warning)
}

/// Texts of the files that templates may name; one that is absent, or may not be opened, is left
/// out, and whoever needs it says so. Nothing but a public key is taken for one.
pub(super) fn read_referenced_files(
    inventory: &Inventory,
    contact: Option<TargetContact>,
) -> Result<Texts, CommandFailure> {
    let (mut texts, mut size) = (Texts::new(), module::context::KeysSize::default());
    for (index, (named, _)) in module::context::list_referenced_files(&inventory.loaded)
        .into_iter()
        .enumerate()
    {
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
                    Err(error) => return Err(pipeline::file_problem(&path, &error).into()),
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
            return Err(CommandFailure::of_input(
                vec![no_public_key(inventory, index, &named, place)],
                &inventory.loaded.sources,
            ));
        }
        let is_within = size.add(&inventory.loaded, index, text.len());
        is_within.map_err(|problem| {
            CommandFailure::of_input(vec![problem], &inventory.loaded.sources)
        })?;
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

/// With a text that says so for each signing key that is not there yet: enough to say what a host
/// is wished to have, and never used for what a host is told.
pub(super) fn with_stand_ins(inventory: &Inventory, texts: Texts) -> Texts {
    with_words(inventory, texts, "is not there yet")
}

fn with_words(inventory: &Inventory, mut texts: Texts, words: &str) -> Texts {
    for (named, _) in module::context::list_referenced_files(&inventory.loaded) {
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

/// Of the wishes that were made with stand-ins, those that are other ones where something else
/// stands for the keys: nobody can say yet what they come to.
pub(super) fn of_absent_keys(
    inventory: &Inventory,
    asked: &LoadedSpec,
    workloads: &Workloads,
    answers: &SolverAnswers,
    texts: &Texts,
    made: &[DesiredResource],
) -> Result<BTreeSet<Address>, CommandFailure> {
    if module::context::list_referenced_files(&inventory.loaded)
        .iter()
        .all(|(named, _)| texts.contains_key(named))
    {
        return Ok(BTreeSet::new());
    }
    let others = compute_desired_resources(
        inventory,
        asked,
        workloads,
        answers,
        &with_words(inventory, texts.clone(), "is to come"),
    )?
    .wishes;
    let others: BTreeMap<&Address, &DesiredResource> =
        others.iter().map(|wish| (&wish.address, wish)).collect();
    let made = made
        .iter()
        .filter(|wish| others.get(&wish.address) != Some(wish));
    Ok(made.map(|wish| wish.address.clone()).collect())
}

/// What the modules wish for on the hosts of `asked`, and the workloads of the spec.
pub(super) fn compute_desired_resources(
    inventory: &Inventory,
    asked: &LoadedSpec,
    workloads: &Workloads,
    answers: &SolverAnswers,
    texts: &Texts,
) -> Result<DesiredState, CommandFailure> {
    let mut sources = inventory.loaded.sources.clone();
    let own = ModuleFiles::below(
        &format!("{}/modules", inventory.path.trim_end_matches('/')),
        inventory.modules.iter().cloned(),
    );
    let modules = module::load_modules(
        module::collect_shipped_modules()
            .into_iter()
            .chain(own)
            .collect(),
    )?;
    sources.join(&modules.sources);
    let desired = module::compute_desired_state(
        asked,
        &inventory.knowledge.catalog,
        answers,
        &modules,
        texts,
    );
    desired
        .and_then(|mut desired| {
            workloads
                .wish(&inventory.loaded, &mut desired)
                .map(|()| desired)
        })
        .map_err(|diagnostics| CommandFailure::of_input(diagnostics, &sources))
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
