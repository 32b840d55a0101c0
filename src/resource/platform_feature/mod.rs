//! `platform_feature`: what only the setup program (BIOS) of a machine switches on: an IOMMU, or
//! room for the virtual functions of a NIC. It is read from what the last boot gave the kernel,
//! never written, and work for a person where it is missing: the plan holds it and says what to
//! switch on, and a plan after that proves it. Its name is `iommu` or `<netdev>.virtual_functions`.
//!
//! A virtual machine has what its host gives it, and no setup program that anybody could open.

mod found;
pub mod script;

use super::hardware::platform::{IommuState, PlatformFacts, read_platform_facts};
use super::{
    Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff, ResourceKind, host,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use found::{VirtualFunctions, virtual_functions};
use railwright_base::Reason;
use railwright_base::text::one_line;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The kind.
pub struct PlatformFeature;

/// The longest name of a machine that is repeated.
const MACHINE: usize = 80;

/// What is to be switched on.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlatformFeatureBody {
    feature: Feature,
    netdev: Option<String>,
    /// What does not work until then.
    effect: String,
    /// A list of { says: what somebody advises, source: who says it, and where }.
    advice: Vec<Advice>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Advice {
    says: String,
    source: String,
}

impl Body for PlatformFeatureBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        match (self.feature, &self.netdev) {
            (Feature::Iommu, Some(_)) => errors.add(
                "/netdev",
                "an IOMMU is the whole machine's",
                "leave `netdev` out",
            ),
            (Feature::VirtualFunctions, None) => errors.add("", "`netdev` is missing", ""),
            (Feature::VirtualFunctions, Some(netdev)) => errors.check_netdev("/netdev", netdev),
            (Feature::Iommu, None) => {}
        }
        errors.check_not_empty("effect", &self.effect);
        errors.require(
            !self.advice.is_empty(),
            "/advice",
            "`advice` must be a list of advice with its sources",
            "- { says: what somebody advises, source: who says it, and where }",
        );
    }
}

/// What a setup program may offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Feature {
    #[default]
    Iommu,
    VirtualFunctions,
}

impl Feature {
    /// What is to be switched on, in the words of the processor's maker.
    fn switch(self, platform: &PlatformFacts) -> &'static str {
        match (self, platform.processor_vendor.as_str()) {
            (Feature::Iommu, "GenuineIntel") => "Intel VT-d",
            (Feature::Iommu, "AuthenticAMD") => "the AMD IOMMU (AMD-Vi)",
            (Feature::Iommu, _) => "the IOMMU",
            (Feature::VirtualFunctions, _) => "SR-IOV",
        }
    }
}

impl ResourceKind for PlatformFeature {
    fn name(&self) -> &'static str {
        "platform_feature"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        match Feature::deserialize(body.get("feature")?).ok()? {
            Feature::Iommu => Some("iommu".to_owned()),
            Feature::VirtualFunctions => Some(format!(
                "{}.virtual_functions",
                body.get("netdev")?.as_str()?
            )),
        }
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<PlatformFeatureBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let netdev = read_body::<PlatformFeatureBody>(&resource.body).netdev;
        let functions = netdev.map(|netdev| Read::VirtualFunctions { netdev });
        [Read::Platform, Read::Host]
            .into_iter()
            .chain(functions)
            .collect()
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let mut diff = ResourceDiff::default();
        let body = read_body::<PlatformFeatureBody>(&resource.body);
        let found = match body.feature {
            Feature::Iommu => build_iommu_reading(answers),
            Feature::VirtualFunctions => {
                build_vf_space_reading(body.netdev.as_deref().unwrap_or_default(), answers)
            }
        };
        if found == Reading::Absent {
            diff.refusal = Some(by_hand(&body, answers));
        }
        diff.attributes.insert(
            "offered".to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(true), found),
        );
        diff
    }

    /// What somebody switched on by hand stays on.
    fn undo(
        &self,
        _last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> ResourceDiff {
        ResourceDiff::default()
    }

    /// One feature of one netdev: what else is declared of it does not change what was read.
    fn is_same_resource(&self, applied: &DesiredResource, resource: &DesiredResource) -> bool {
        let applied = read_body::<PlatformFeatureBody>(&applied.body);
        let resource = read_body::<PlatformFeatureBody>(&resource.body);
        (applied.feature, applied.netdev) == (resource.feature, resource.netdev)
    }
}

/// The word of systemd-detect-virt for a machine that somebody else's setup program decides about.
/// A container shows the machine below it.
fn find_virtualization_type(answers: &ReadResults) -> Result<Option<String>, Reason> {
    let facts = host::decode_host_facts(answers)?;
    Ok(Some(facts.virtualization).filter(|word| !["", "none"].contains(&word.as_str())))
}

fn build_iommu_reading(answers: &ReadResults) -> Reading {
    match read_platform_facts(answers).map(|platform| platform.iommu) {
        Err(reason) => Reading::Unknown(reason),
        Ok(IommuState::Used | IommuState::Unused) => Reading::is(true),
        Ok(iommu) => not_seen(answers, || match iommu {
            IommuState::NoTable => Reading::Absent,
            _ => Reading::Unknown(
                "the kernel shows neither ACPI tables nor groups of an IOMMU".into(),
            ),
        }),
    }
}

fn build_vf_space_reading(netdev: &str, answers: &ReadResults) -> Reading {
    match virtual_functions(netdev, answers) {
        Err(reason) => Reading::Unknown(reason),
        Ok(VirtualFunctions::NoNetdev) => {
            Reading::Unknown(format!("there is no netdev {netdev}").into())
        }
        Ok(VirtualFunctions::None) => Reading::NotApplicable(
            format!("{netdev} offers no virtual functions: the firmware of the NIC comes first")
                .into(),
        ),
        Ok(VirtualFunctions::Room) => Reading::is(true),
        Ok(VirtualFunctions::NoRoom) => not_seen(answers, || Reading::Absent),
    }
}

/// What was not seen is missing on a machine of one's own, and nobody's to switch on in a guest.
fn not_seen(answers: &ReadResults, on_bare_metal: impl FnOnce() -> Reading) -> Reading {
    match find_virtualization_type(answers) {
        Err(reason) => Reading::Unknown(reason),
        Ok(Some(word)) => Reading::NotApplicable(
            format!(
                "the host of this guest decides it (systemd-detect-virt says {})",
                one_line(&word, 40)
            )
            .into(),
        ),
        Ok(None) => on_bare_metal(),
    }
}

/// What is to be done, what it is for, and what others advise.
fn by_hand(body: &PlatformFeatureBody, answers: &ReadResults) -> String {
    let platform = read_platform_facts(answers).unwrap_or_default();
    let machine = if platform.machine.is_empty() {
        "this machine".to_owned()
    } else {
        one_line(&platform.machine, MACHINE)
    };
    let mut out = format!(
        "by hand: switch on {} in the setup program (BIOS) of {machine} and boot it again; a plan \
         after that proves it. Until then {}",
        body.feature.switch(&platform),
        body.effect,
    );
    for Advice { says, source } in &body.advice {
        out.push_str(&format!(". {says} ({source})"));
    }
    out
}

#[cfg(test)]
mod tests;
