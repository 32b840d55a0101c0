//! `Read::Platform`: which machine a host is, and what its setup program offers the kernel.

use super::{find_section_text, parse_complete_sections};
use crate::sections::Section;
use crate::{Read, ReadResults};
use railwright_base::Reason;

/// A machine as it reports itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlatformFacts {
    /// Vendor and product of the machine, as its DMI tables say them.
    pub machine: String,
    /// Vendor, version and date of the BIOS.
    pub bios: String,
    /// Who made the processors: `GenuineIntel`, `AuthenticAMD`; empty where the kernel does not say
    /// it.
    pub processor_vendor: String,
    /// What is known of the unit that translates the addresses of devices.
    pub iommu: IommuState,
}

/// Whether the machine's BIOS offers an IOMMU, and whether the kernel uses it. The BIOS tells the
/// kernel of one in an ACPI table: DMAR (Intel), IVRS (AMD) or IORT (Arm) (Source: Linux,
/// Documentation/arch/x86/iommu.rst and drivers/acpi/arm64/iort.c).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IommuState {
    /// Nothing reports it.
    #[default]
    Unknown,
    /// No ACPI table for one: the setup program has it switched off, or the machine has none.
    NoTable,
    /// The table is there, and the kernel does not use it.
    Unused,
    /// The kernel keeps groups of devices by it.
    Used,
}

/// Decodes the answer to `Read::Platform`; the error is a reason that fits after "unknown:".
pub fn read_platform_facts(answers: &ReadResults) -> Result<PlatformFacts, Reason> {
    let sections = parse_complete_sections(answers, &Read::Platform)?;
    Ok(sections
        .iter()
        .find(|section| section.word == "platform")
        .map(PlatformFacts::of)
        .unwrap_or_default())
}

impl PlatformFacts {
    /// Of the section `platform`, of either read.
    pub(super) fn of(section: &Section<'_>) -> PlatformFacts {
        let iommu = if section.value("iommu_groups").is_some() {
            IommuState::Used
        } else if section.value("iommu_table").is_some() {
            IommuState::Unused
        } else if section.value("acpi").is_some() && section.value("iommu_known").is_some() {
            IommuState::NoTable
        } else {
            IommuState::Unknown
        };
        PlatformFacts {
            machine: join_section_texts(section, &["sys_vendor", "product_name"]),
            bios: join_section_texts(section, &["bios_vendor", "bios_version", "bios_date"]),
            processor_vendor: join_section_texts(section, &["processor_vendor"]),
            iommu,
        }
    }
}

fn join_section_texts(section: &Section<'_>, keys: &[&str]) -> String {
    let mut texts: Vec<String> = keys
        .iter()
        .map(|key| find_section_text(section, key))
        .collect();
    texts.retain(|text| !text.is_empty());
    texts.join(" ")
}
