//! Hosts of one class that differ from the rest of it in what nobody manages: another kernel,
//! another package version, a word of the kernel command line, another firmware, a slower link,
//! another cable. No drift, as the spec says nothing of it; but one host of sixteen that differs is
//! where the next problem is looked for. A value that is each host's own (a root file system's
//! UUID) has no majority and is never reported.

use super::parts;
use railwright_base::nodeset::fold_node_set;
use railwright_resource::host::{self, HostFacts};
use railwright_resource::kernel_parameter::command_line::split_command_line;
use railwright_resource::package::found::FoundPackage;
use railwright_resource::{DesiredResource, ReadResults, Reading, ResourceDiff};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer hosts than this have no majority.
const LEAST: usize = 3;
/// Words of the command line that name the kernel's files: they differ with the kernel, which is
/// reported itself.
const OF_THE_KERNEL: [&str; 2] = ["BOOT_IMAGE", "initrd"];
/// What the names of command line words begin with.
const WORD: &str = "cmdline ";

/// What one host shows that is not managed, by a name for it.
pub type Shown = BTreeMap<String, Reading>;

/// A few hosts of a class that differ.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Outlier {
    /// The node group, as the spec names it.
    pub class: String,
    /// What differs: `kernel`, `os`, `architecture`, `cmdline NAME`, `package/NAME#version`, or a
    /// part of the hardware (`NIC firmware`, `BIOS`).
    pub what: String,
    /// What most hosts have.
    pub usual: OutlierValue,
    /// What the others have, the rarest last.
    pub others: Vec<OutlierValue>,
}

/// A value and who has it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OutlierValue {
    /// The value.
    pub value: Reading,
    /// The hosts, as a node-set.
    pub hosts: String,
    /// How many they are.
    pub count: usize,
}

/// What a host shows: who it is, its command line, and what its resources hold beside what is
/// desired of them.
pub fn collect_unmanaged_values<'a>(
    answers: &ReadResults,
    compared: impl Iterator<Item = (&'a DesiredResource, ResourceDiff)>,
) -> Shown {
    let mut out = Shown::new();
    let mut managed = BTreeSet::new();
    for (resource, diff) in compared {
        let place = resource.address.within_target();
        if resource.kind == "kernel_parameter" {
            managed.insert(
                resource
                    .address
                    .name()
                    .split('=')
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        if resource.kind == "package"
            && resource.text("version").is_none()
            && let Ok(actual) =
                FoundPackage::of(resource.address.name(), resource.text("version"), answers)
            && let Some(version) = actual.version()
        {
            out.insert(format!("{place}#version"), Reading::is(version));
        }
        for (name, attribute) in &diff.attributes {
            let unmanaged = attribute
                .actual
                .iter()
                .filter(|(plane, _)| attribute.desired.get(*plane).is_none());
            for (plane, actual) in
                unmanaged.filter(|(_, actual)| matches!(actual, Reading::Is(_) | Reading::Absent))
            {
                out.insert(format!("{place}#{name}, {}", plane.word()), actual.clone());
            }
        }
    }
    if let Ok(facts) = host::decode_host_facts(answers) {
        out.extend(of_facts(&facts, &managed));
    }
    out.extend(
        parts::describe_host_parts(answers)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Reading::is(value))),
    );
    out
}

fn of_facts(facts: &HostFacts, managed: &BTreeSet<String>) -> Shown {
    let os = format!("{} {}", facts.os_id, facts.os_version);
    let mut out: Shown = [
        ("kernel", facts.kernel.as_str()),
        ("os", os.trim()),
        ("architecture", &facts.architecture),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), Reading::is(value)))
    .collect();
    // Some words may stand there several times, and their order counts.
    let mut words: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for token in split_command_line(&facts.cmdline) {
        let (name, value) = token.split_once('=').unwrap_or((&token, "given"));
        if !OF_THE_KERNEL.contains(&name) && !managed.contains(name) {
            words
                .entry(name.to_owned())
                .or_default()
                .push(value.to_owned());
        }
    }
    out.extend(
        words
            .into_iter()
            .map(|(name, values)| (format!("{WORD}{name}"), Reading::is(values.join(" ")))),
    );
    out
}

/// The outliers of a class; `hosts` are those that answered.
pub fn find_outliers(class: &str, hosts: &BTreeMap<&str, Shown>) -> Vec<Outlier> {
    let names: BTreeSet<&String> = hosts.values().flat_map(BTreeMap::keys).collect();
    names
        .into_iter()
        .filter_map(|what| find_value_outlier(class, what, hosts))
        .collect()
}

fn find_value_outlier(class: &str, what: &str, hosts: &BTreeMap<&str, Shown>) -> Option<Outlier> {
    // A word that a command line does not have is absent there; of all else nothing is known where
    // it was not read.
    let absent = what.starts_with(WORD).then_some(Reading::Absent);
    let mut by_value: BTreeMap<String, (Reading, Vec<&str>)> = BTreeMap::new();
    for (host, shown) in hosts {
        let Some(value) = shown.get(what).or(absent.as_ref()) else {
            continue;
        };
        let key = serde_json::to_string(value).unwrap_or_default();
        by_value
            .entry(key)
            .or_insert_with(|| (value.clone(), Vec::new()))
            .1
            .push(host);
    }
    let all: usize = by_value.values().map(|(_, hosts)| hosts.len()).sum();
    let mut held: Vec<(Reading, Vec<&str>)> = by_value.into_values().collect();
    // Equal counts stay in the order of their values.
    held.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    let mut held = held.into_iter().map(|(value, hosts)| OutlierValue {
        value,
        hosts: fold_node_set(&hosts),
        count: hosts.len(),
    });
    let usual = held.next()?;
    let others: Vec<OutlierValue> = held.collect();
    let differing = all - usual.count;
    // One host, or a quarter of them: more than that is a class in two halves, and neither is the
    // odd one.
    let few = differing > 0 && all >= LEAST && (differing == 1 || differing * 4 <= all);
    few.then(|| Outlier {
        class: class.to_owned(),
        what: what.to_owned(),
        usual,
        others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(kernel: &str, cmdline: &str) -> Shown {
        let facts = HostFacts {
            os_id: "debian".into(),
            kernel: kernel.into(),
            cmdline: cmdline.into(),
            ..HostFacts::default()
        };
        of_facts(&facts, &["iommu".to_owned()].into())
    }

    fn told(hosts: &[(String, Shown)]) -> Vec<String> {
        let hosts: BTreeMap<&str, Shown> = hosts
            .iter()
            .map(|(name, shown)| (name.as_str(), shown.clone()))
            .collect();
        let held = |held: &OutlierValue| {
            format!(
                "{} on {}",
                held.value
                    .value()
                    .map_or("absent".to_owned(), ToString::to_string),
                held.hosts
            )
        };
        let line = |outlier: &Outlier| {
            let values: Vec<String> = std::iter::once(&outlier.usual)
                .chain(&outlier.others)
                .map(held)
                .collect();
            format!("{}: {}", outlier.what, values.join(", "))
        };
        find_outliers("gpu[01-16]", &hosts)
            .iter()
            .map(line)
            .collect()
    }

    fn sixteen(of: impl Fn(usize) -> Shown) -> Vec<(String, Shown)> {
        (1..=16).map(|i| (format!("gpu{i:02}"), of(i))).collect()
    }

    #[test]
    fn one_host_of_sixteen_is_named_with_what_the_others_have() {
        let hosts = sixteen(|i| {
            let kernel = if i == 16 { "6.1.0-17" } else { "6.1.0-18" };
            let word = if i == 3 { "" } else { " hugepages=64" };
            let iommu = if i == 5 { "off" } else { "pt" };
            facts(
                kernel,
                &format!("BOOT_IMAGE=/vmlinuz-{kernel} root=UUID=aa-{i} ro iommu={iommu}{word}"),
            )
        });
        assert_eq!(
            told(&hosts),
            [
                "cmdline hugepages: \"64\" on gpu[01-02,04-16], absent on gpu03",
                "kernel: \"6.1.0-18\" on gpu[01-15], \"6.1.0-17\" on gpu16"
            ]
        );
    }

    #[test]
    fn a_class_in_two_halves_has_no_outlier() {
        for (differing, told_of) in [(0, 0), (1, 1), (4, 1), (5, 0), (8, 0)] {
            let hosts = sixteen(|i| facts(if i <= differing { "b" } else { "a" }, ""));
            assert_eq!(told(&hosts).len(), told_of, "{differing} of 16");
        }
        let of = |kernels: &[&str]| {
            kernels
                .iter()
                .enumerate()
                .map(|(i, kernel)| (format!("n{i}"), facts(kernel, "")))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (
                told(&of(&["a", "b"])).len(),
                told(&of(&["a", "a", "b"])).len()
            ),
            (0, 1)
        );
    }

    #[test]
    fn a_thousand_hosts_are_one_line() {
        let hosts: Vec<(String, Shown)> = (1..=1000)
            .map(|i| {
                (
                    format!("gpu-{i:04}"),
                    facts(if i % 500 == 7 { "6.1.0-17" } else { "6.1.0-18" }, "quiet"),
                )
            })
            .collect();
        assert_eq!(
            told(&hosts),
            [
                "kernel: \"6.1.0-18\" on gpu-[0001-0006,0008-0506,0508-1000], \"6.1.0-17\" on \
                 gpu-[0007,0507]"
            ]
        );
    }
}
