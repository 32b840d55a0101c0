//! `platform_feature`: what only the setup program (BIOS) of a machine switches on: an IOMMU, or
//! room for the virtual functions of a NIC. It is read from what the last boot gave the kernel,
//! never written, and work for a person where it is missing: the plan holds it and says what to
//! switch on, and a plan after that proves it. Its name is `iommu` or `<netdev>.virtual_functions`.
//!
//! A virtual machine has what its host gives it, and no setup program that anybody could open.

mod found;
pub mod script;

use super::body::read_text_field;
use super::fields::Fields;
use super::hardware::platform::{IommuState, PlatformFacts, read_platform_facts};
use super::{
    Assessment, Attribute, BodyError, DesiredResource, Plane, Read, ReadResults, Reading,
    ResourceKind, host,
};
use found::{VirtualFunctions, virtual_functions};
use railwright_base::Reason;
use railwright_base::text::one_line;
use serde_json::Value;

/// The kind.
pub struct PlatformFeature;

/// The longest name of a machine that is repeated.
const MACHINE: usize = 80;

/// What a setup program may offer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Feature {
    Iommu,
    VirtualFunctions,
}

impl Feature {
    fn named(name: &str) -> Option<Feature> {
        match name {
            "iommu" => Some(Feature::Iommu),
            "virtual_functions" => Some(Feature::VirtualFunctions),
            _ => None,
        }
    }

    fn of(wish: &DesiredResource) -> Option<Feature> {
        Feature::named(wish.text("feature")?)
    }

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
        match Feature::named(body.get("feature")?.as_str()?)? {
            Feature::Iommu => Some("iommu".to_owned()),
            Feature::VirtualFunctions => Some(format!(
                "{}.virtual_functions",
                body.get("netdev")?.as_str()?
            )),
        }
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(body, &["feature", "netdev", "effect", "advice"]);
        match fields
            .text("feature", true)
            .map(|name| (name, Feature::named(name)))
        {
            Some((_, Some(Feature::VirtualFunctions))) => drop(fields.netdev(true)),
            Some((_, Some(Feature::Iommu))) if fields.get("netdev").is_some() => {
                fields.error(
                    "/netdev",
                    "an IOMMU is the whole machine's",
                    Some("leave `netdev` out".to_owned()),
                );
            }
            Some((name, None)) => {
                let message = format!("`{}` is not what this kind can read", one_line(name, 40));
                fields.error(
                    "/feature",
                    message,
                    Some("iommu or virtual_functions".to_owned()),
                );
            }
            _ => {}
        }
        fields.text("effect", true);
        let advice = fields.get("advice").and_then(Value::as_array);
        if !advice.is_some_and(|all| !all.is_empty() && all.iter().all(is_advice)) {
            let help = Some(
                "- { says: what somebody advises, source: who says it, and where }".to_owned(),
            );
            fields.error(
                "/advice",
                "`advice` must be a list of advice with its sources",
                help,
            );
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let netdev = wish.text("netdev").map(str::to_owned);
        let functions = netdev.map(|netdev| Read::VirtualFunctions { netdev });
        [Read::Platform, Read::Host]
            .into_iter()
            .chain(functions)
            .collect()
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        let Some(feature) = Feature::of(wish) else {
            return assessment;
        };
        let found = match feature {
            Feature::Iommu => build_iommu_reading(answers),
            Feature::VirtualFunctions => build_vf_space_reading(wish, answers),
        };
        if found == Reading::Absent {
            assessment.refusal = Some(by_hand(feature, wish, answers));
        }
        assessment.attributes.insert(
            "offered".to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(true), found),
        );
        assessment
    }

    /// What somebody switched on by hand stays on.
    fn undo(
        &self,
        _last_applied: &DesiredResource,
        _before: &Value,
        _answers: &ReadResults,
    ) -> Assessment {
        Assessment::default()
    }

    /// One feature of one netdev: what else is said of it does not change what was found.
    fn is_same_wish(&self, applied: &DesiredResource, wish: &DesiredResource) -> bool {
        ["feature", "netdev"]
            .iter()
            .all(|field| applied.text(field) == wish.text(field))
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

fn build_vf_space_reading(wish: &DesiredResource, answers: &ReadResults) -> Reading {
    let netdev = wish.text("netdev").unwrap_or_default();
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
fn by_hand(feature: Feature, wish: &DesiredResource, answers: &ReadResults) -> String {
    let platform = read_platform_facts(answers).unwrap_or_default();
    let machine = if platform.machine.is_empty() {
        "this machine".to_owned()
    } else {
        one_line(&platform.machine, MACHINE)
    };
    let mut out = format!(
        "by hand: switch on {} in the setup program (BIOS) of {machine} and boot it again; a plan \
         after that proves it. Until then {}",
        feature.switch(&platform),
        wish.text("effect").unwrap_or_default(),
    );
    for advice in wish
        .body
        .get("advice")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let says = read_text_field(advice, "says").unwrap_or_default();
        let source = read_text_field(advice, "source").unwrap_or_default();
        out.push_str(&format!(". {says} ({source})"));
    }
    out
}

fn is_advice(advice: &Value) -> bool {
    advice.get("says").is_some_and(Value::is_string)
        && advice.get("source").is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests;
