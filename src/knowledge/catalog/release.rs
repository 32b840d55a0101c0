//! Releases of the parts of a host (GPU drivers, CUDA toolkits, RDMA stacks, paths of GPUDirect),
//! what each needs of the other parts, and combinations that are known to fit or not. The data is
//! in `modules/catalog/release.yaml` and `combination.yaml`.

use super::table::CategoryEntry;
use railwright_base::version::parse_release_numbers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A part of a host that comes in releases or sorts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HostComponent {
    /// The operating system.
    Os,
    /// The RDMA NIC's model.
    Nic,
    /// The GPU's model.
    Gpu,
    /// The GPU's architecture.
    Architecture,
    /// The kernel.
    Kernel,
    /// The sort of RDMA stack.
    Stack,
    /// The path of GPUDirect.
    Direct,
    /// The GPU driver.
    Driver,
    /// The sort of its kernel modules.
    Modules,
    /// The CUDA toolkit.
    Cuda,
    /// NCCL.
    Nccl,
    /// DOCA for hosts.
    Doca,
    /// MLNX_OFED.
    MlnxOfed,
    /// containerd.
    Containerd,
}

impl HostComponent {
    /// The word of the files.
    pub fn key(self) -> &'static str {
        match self {
            HostComponent::Os => "os",
            HostComponent::Nic => "nic",
            HostComponent::Gpu => "gpu",
            HostComponent::Architecture => "architecture",
            HostComponent::Kernel => "kernel",
            HostComponent::Stack => "stack",
            HostComponent::Direct => "direct",
            HostComponent::Driver => "driver",
            HostComponent::Modules => "modules",
            HostComponent::Cuda => "cuda",
            HostComponent::Nccl => "nccl",
            HostComponent::Doca => "doca",
            HostComponent::MlnxOfed => "mlnx-ofed",
            HostComponent::Containerd => "containerd",
        }
    }

    /// True where a release is a number such as `12.4`; others are names.
    pub fn is_numbered(self) -> bool {
        matches!(
            self,
            HostComponent::Kernel
                | HostComponent::Driver
                | HostComponent::Cuda
                | HostComponent::Nccl
                | HostComponent::Doca
                | HostComponent::MlnxOfed
                | HostComponent::Containerd
        )
    }

    /// In words, with one of its releases: `the GPU driver 535`.
    pub fn with(self, release: &str) -> String {
        match self {
            HostComponent::Os | HostComponent::Nic | HostComponent::Gpu | HostComponent::Direct => {
                release.to_owned()
            }
            HostComponent::Architecture => format!("the {release} architecture"),
            HostComponent::Kernel => format!("the kernel {release}"),
            HostComponent::Stack => format!("the RDMA stack {release}"),
            HostComponent::Driver => format!("the GPU driver {release}"),
            HostComponent::Modules => format!("the {release} kernel modules"),
            HostComponent::Cuda => format!("CUDA {release}"),
            HostComponent::Nccl => format!("NCCL {release}"),
            HostComponent::Doca => format!("DOCA {release}"),
            HostComponent::MlnxOfed => format!("MLNX_OFED {release}"),
            HostComponent::Containerd => format!("containerd {release}"),
        }
    }
}

/// What a release needs of another part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequirement {
    /// The other part.
    pub part: HostComponent,
    /// The first release of it that will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The last one, with all that begin so: 2.9 is also 2.9.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The sorts of it that will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// The sorts of it that will not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<String>,
    /// False where it may work all the same: what breaks it is a warning.
    #[serde(default = "default_true", skip_serializing_if = "is_yes")]
    pub certain: bool,
    /// Systems of this package manager carry later code under older numbers: nothing is said of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except_packages: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The rule that finds this too: what it found, or what is waived of it, is not reported again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

fn default_true() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's form
fn is_yes(certain: &bool) -> bool {
    *certain
}

impl ReleaseRequirement {
    /// What it wants, in words: `the GPU driver 525.60.13 or newer`.
    pub fn desired(&self) -> String {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => format!("{} to {to}", self.part.with(from)),
            (Some(from), None) => format!("{} or newer", self.part.with(from)),
            (None, Some(to)) => format!("{} or older", self.part.with(to)),
            (None, None) if self.only.is_empty() => {
                let part = if self.part == HostComponent::Architecture {
                    "another architecture"
                } else {
                    "something other"
                };
                format!("{part} than {}", self.not.join(", "))
            }
            (None, None) => self.part.with(&self.only.join(" or ")),
        }
    }

    /// What it needs, with how certain that is and the rule that says it too.
    fn in_words(&self) -> String {
        let mut words = self.desired();
        if !self.certain {
            words.push_str(", as far as is known");
        }
        if let Some(rule) = &self.rule {
            words.push_str(&format!(" ({rule})"));
        }
        words
    }

    /// What a need of a part that is named instead of numbered, or the reverse, has wrong.
    fn find_fault(&self) -> Option<String> {
        let (numbered, named) = (
            self.from.is_some() || self.to.is_some(),
            !self.only.is_empty() || !self.not.is_empty(),
        );
        let part = self.part.key();
        match (self.part.is_numbered(), numbered, named) {
            (_, false, false) => Some(format!("what it needs of `{part}` is not said")),
            (true, _, true) => Some(format!("`{part}` comes in numbers: write `from` and `to`")),
            (false, true, _) => Some(format!("`{part}` comes in names: write `only` or `not`")),
            _ => {
                let mut bounds = self.from.iter().chain(&self.to);
                let wrong = bounds.find(|text| parse_release_numbers(text).is_none())?;
                Some(format!(
                    "`{}` is no release",
                    railwright_base::text::one_line(wrong, 40)
                ))
            }
        }
    }
}

/// A release of a part, or what all with one beginning have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseEntry {
    /// The part and the release: `cuda-12.4`.
    pub name: String,
    /// The part.
    pub part: HostComponent,
    /// The release; for parts without numbers the name of the sort.
    pub release: String,
    /// True where it stands for all releases that begin so, and is never chosen itself.
    #[serde(default)]
    pub line: bool,
    /// True for a line that has no releases but those that the catalogue names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
    /// What it needs of other parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<ReleaseRequirement>,
    /// Releases of other parts that come with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brings: BTreeMap<HostComponent, String>,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

impl CategoryEntry for ReleaseEntry {
    const KEY: &'static str = "release";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn in_words(&self, field: &str) -> Option<String> {
        if field != "needs" {
            return None;
        }
        let needs: Vec<String> = self
            .needs
            .iter()
            .map(ReleaseRequirement::in_words)
            .collect();
        Some(needs.join("; "))
    }
    fn find_fault(&self) -> Option<String> {
        let name = format!("{}-{}", self.part.key(), self.release);
        if self.name != name {
            return Some(format!(
                "its name is `{}`",
                railwright_base::text::one_line(&name, 80)
            ));
        }
        if matches!(
            self.part,
            HostComponent::Os | HostComponent::Nic | HostComponent::Gpu
        ) {
            return Some(format!(
                "entries of `{}` have a category of their own",
                self.part.key()
            ));
        }
        let numbered = self.part.is_numbered();
        if numbered && parse_release_numbers(&self.release).is_none() {
            return Some(format!(
                "`{}` is no release",
                railwright_base::text::one_line(&self.release, 40)
            ));
        }
        if self.line && !numbered {
            return Some("only numbers have a `line`".to_owned());
        }
        if self.complete && !self.line {
            return Some("only a `line` can be `complete`".to_owned());
        }
        if let Some(own) = self.needs.iter().find(|need| need.part == self.part) {
            return Some(format!("it needs `{}` of itself", own.part.key()));
        }
        self.needs.iter().find_map(ReleaseRequirement::find_fault)
    }
}

/// A small spec with what is known of it: that its requirements fit together, or which of them
/// exclude each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CombinationEntry {
    /// A name.
    pub name: String,
    /// A spec without `cluster`, with one entry of `nodes`.
    pub spec: Value,
    /// The requirements that exclude each other, by their paths in the spec; none where all fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// True where what excludes them is not certain.
    #[serde(default)]
    pub unsure: bool,
    /// What is chosen of what the spec leaves open, as far as the combination says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chosen: BTreeMap<HostComponent, String>,
    /// Where this is said.
    pub source: String,
}

impl CategoryEntry for CombinationEntry {
    const KEY: &'static str = "combination";
    fn in_words(&self, field: &str) -> Option<String> {
        (field == "spec").then(|| self.spec.to_string())
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
}
