//! Files that the spec names and that are not there. A warning only: a plan from a recorded
//! observation needs none of them, and the lab writes its keys when it comes up.

use super::inventory::resolve_inventory_path;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Fingerprint, nodeset};
use railwright_knowledge::spec::model::{Ssh, SwitchGroup};
use railwright_knowledge::spec::{LoadedSpec, SwitchNode, SwitchReach};
use railwright_system::folder;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

/// Where a file is named, and what it is called; a switch's certificate by each switch of a group.
type Named = (String, Vec<String>);

/// One warning for each place that names such files.
pub fn missing_files(folder: &Path, loaded: &LoadedSpec) -> Vec<Diagnostic> {
    let spec = &loaded.spec;
    let mut named: Vec<Named> = list_ssh_settings(loaded)
        .flat_map(|(at, ssh)| of_ssh(&at, ssh))
        .collect();
    let one = |at: String, file: &String| (at, vec![file.clone()]);
    named.extend(
        spec.repositories
            .iter()
            .enumerate()
            .map(|(index, repository)| one(format!("repositories[{index}].key"), &repository.key)),
    );
    named.extend(spec.kubernetes.iter().filter_map(|cluster| {
        Some(one(
            "kubernetes.kubeconfig".to_owned(),
            cluster.kubeconfig.as_ref()?,
        ))
    }));
    named.extend(spec.secrets.iter().filter_map(|(name, secret)| {
        Some(one(format!("secrets.{name}.file"), secret.file.as_ref()?))
    }));
    named.extend(of_apis(loaded));
    // Many hosts share a key; its absence is said once.
    let mut seen = HashSet::new();
    for (_, files) in &mut named {
        files.retain(|file| {
            seen.insert(file.clone())
                && !folder::is_file(Path::new(&resolve_inventory_path(folder, file)))
        });
    }
    named
        .iter()
        .filter(|(_, files)| !files.is_empty())
        .map(|(at, files)| report_missing_files(loaded, at, files))
        .collect()
}

/// The files of secrets, of passwords and of identities, as the spec has them.
pub fn private_files(loaded: &LoadedSpec) -> impl Iterator<Item = String> {
    let identities = list_ssh_settings(loaded).flat_map(|(_, ssh)| ssh.identities.iter().cloned());
    loaded
        .spec
        .secret_references()
        .filter_map(|(_, secret)| secret.file.clone())
        .chain(identities)
}

/// Each `ssh` of the spec, with where it stands.
fn list_ssh_settings(loaded: &LoadedSpec) -> impl Iterator<Item = (String, &Ssh)> {
    let spec = &loaded.spec;
    let of_nodes = spec.nodes.iter().enumerate().filter_map(|(index, group)| {
        Some((format!("nodes[{index}].ssh"), group.ssh.as_ref()?.ssh()?))
    });
    let of_switches = spec
        .switches
        .iter()
        .enumerate()
        .filter_map(|(index, group)| Some((format!("switches[{index}].ssh"), group.ssh.as_ref()?)));
    spec.ssh
        .ssh()
        .map(|ssh| ("ssh".to_owned(), ssh))
        .into_iter()
        .chain(of_nodes)
        .chain(of_switches)
}

fn of_ssh(at: &str, ssh: &Ssh) -> Vec<Named> {
    let keys = ssh
        .host_keys
        .iter()
        .map(|file| (format!("{at}.host_keys"), vec![file.clone()]));
    let identities = ssh
        .identities
        .iter()
        .enumerate()
        .map(|(index, file)| (format!("{at}.identities[{index}]"), vec![file.clone()]));
    keys.chain(identities).collect()
}

/// Passwords and certificates of the APIs of switches.
fn of_apis(loaded: &LoadedSpec) -> Vec<Named> {
    let certificate = |switch: &SwitchNode| match switch.reach.as_ref()? {
        SwitchReach::Api(api) if Fingerprint::digits_of(&api.certificate).is_none() => {
            Some(api.certificate.clone())
        }
        _ => None,
    };
    let mut named = Vec::new();
    for (index, group) in loaded.spec.switches.iter().enumerate() {
        for (kind, api) in group.apis() {
            let password = format!("{}.file", SwitchGroup::password_name(index, kind));
            named.extend(
                api.password
                    .file
                    .iter()
                    .map(|file| (password.clone(), vec![file.clone()])),
            );
            let switches = loaded
                .switches
                .iter()
                .filter(|switch| switch.group == index);
            let files: BTreeSet<String> = switches.filter_map(certificate).collect();
            named.push((
                format!("switches[{index}].{}.certificate", kind.key()),
                files.into_iter().collect(),
            ));
        }
    }
    named
}

fn report_missing_files(loaded: &LoadedSpec, at: &str, files: &[String]) -> Diagnostic {
    let what = match files {
        [file] => format!("there is no file {}", one_line(file, 120)),
        _ => format!(
            "there are no files {}",
            one_line(&nodeset::fold_node_set(files), 120)
        ),
    };
    let warning = Diagnostic::warning("RW1005", what)
        .effect("the spec is valid, but whatever needs this file will stop")
        .next("create the file, or correct the path; it is relative to the inventory");
    // A path that is the default stands nowhere, and is of what stands around it.
    match loaded
        .label(at, "named here")
        .or_else(|| loaded.label_around(at, "needs it"))
    {
        Some(label) => warning.labelled(label),
        None => warning,
    }
}

#[cfg(test)]
mod tests {
    /// What all switches of a group lack is said once, at what names it, or at what it is the
    /// default of.
    #[test]
    fn files_of_switches_are_told_by_group() {
        let folder = tempfile::tempdir().unwrap();
        let spec = "cluster: c\n\
                    fabric: { kind: none }\n\
                    switches:\n\
                    \x20 - { name: 'leaf[1-12]', os: eos, ports: Ethernet1, eapi: { user: u, \
                    password: { file: secret } } }\n\
                    \x20 - { name: spine1, os: eos, ports: Ethernet1, eapi: { user: u, password: \
                    { env: X }, certificate: '{name}.pem' } }\n\
                    \x20 - { name: spine2, os: eos, ports: Ethernet1, eapi: { user: u, password: \
                    { env: X }, certificate: 'sha256:DIGITS' } }\n\
                    \x20 - { name: spine3, os: sonic, ports: Ethernet0, ssh: \
                    { host_keys: own_hosts } }\n";
        std::fs::write(
            folder.path().join("c.yaml"),
            spec.replace("DIGITS", &"ab".repeat(32)),
        )
        .unwrap();
        std::fs::create_dir(folder.path().join("certificates")).unwrap();
        std::fs::write(folder.path().join("certificates/leaf7.pem"), "").unwrap();
        let read = super::super::inventory::read_inventory(folder.path())
            .map_err(|problems| format!("{:?}", problems.diagnostics))
            .unwrap();
        let told: Vec<(&str, &str)> = read
            .warnings
            .iter()
            .map(|warning| {
                (
                    warning.message.as_str(),
                    warning
                        .labels
                        .first()
                        .map_or("", |label| label.text.as_str()),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("there is no file own_hosts", "named here"),
                ("there is no file secret", "named here"),
                (
                    "there are no files certificates/leaf[1-6,8-12].pem",
                    "needs it"
                ),
                ("there is no file spine1.pem", "named here"),
            ]
        );
        assert!(read.warnings.iter().all(|warning| warning.code == "RW1005"));
    }
}
