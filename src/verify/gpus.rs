//! The GPUs of a host: as many as the spec has, with NVIDIA's driver of the right branch, on
//! identical links.

use super::hardware::{PciFunction, VerifyHardwareFacts};
use super::request::ExpectedGpus;
use super::result::CheckOutcome;

const DRIVER: &str = "nvidia";

/// Checks them. The links are compared with each other, not with what the GPU can: an idle GPU
/// may lower both speed and width (nvidia-smi, `pcie.link.gen.current` and
/// `pcie.link.width.current`), and all of them are idle.
pub fn check_host_gpus(desired: &ExpectedGpus, actual: &VerifyHardwareFacts) -> CheckOutcome {
    let expected = match &desired.driver {
        Some(driver) => format!("{} with driver {driver}", desired.count),
        None => format!("{} with their driver", desired.count),
    };
    if let Some((words, effect)) = find_gpu_problem(desired, actual) {
        return CheckOutcome::failed("RW0818", words)
            .expected(expected)
            .effect(effect)
            .next("railwright plan {inventory}");
    }
    if let Some(words) = find_narrow_link(actual) {
        return CheckOutcome::warning("RW0817", words)
            .expected("equal PCIe links")
            .effect(
                "copies from and to this GPU are slower than those of its neighbours, and each \
                 step of a job waits for it",
            )
            .next("look at slot and riser of this GPU, then railwright verify {inventory}");
    }
    let version = format_driver_version(actual);
    CheckOutcome::passed(format!("{}, driver {version}", actual.gpus.len())).expected(expected)
}

fn format_driver_version(found: &VerifyHardwareFacts) -> &str {
    found.nvidia.as_deref().unwrap_or("of an unknown version")
}

/// What is wrong with the number of GPUs or with their driver, and what that means.
fn find_gpu_problem(
    desired: &ExpectedGpus,
    actual: &VerifyHardwareFacts,
) -> Option<(String, &'static str)> {
    if actual.gpus.len() != desired.count {
        return Some((
            format!("{} GPUs of NVIDIA on the PCI bus", actual.gpus.len()),
            "a job that asks for all GPUs of this host does not start; one that was there may have \
             fallen off the bus",
        ));
    }
    if let Some(words) = describe_gpu_without_driver(&actual.gpus) {
        return Some((
            words,
            "CUDA does not see this GPU, and no traffic from or to its memory is possible",
        ));
    }
    let version = actual.nvidia.as_deref()?;
    let driver = desired.driver.as_deref()?;
    if is_of_branch(version, driver) {
        return None;
    }
    Some((
        format!("driver {version} runs, the spec has {driver}"),
        "what was chosen for that driver (CUDA, Fabric Manager, GPUDirect) may not run with this \
         one",
    ))
}

/// How many GPUs have NVIDIA's driver, and the first that has not; nothing where all have it.
fn describe_gpu_without_driver(gpus: &[PciFunction]) -> Option<String> {
    let mut others = Vec::new();
    for gpu in gpus {
        if gpu.driver.as_deref() != Some(DRIVER) {
            others.push(gpu);
        }
    }
    let first = others.first()?;
    let driver = match &first.driver {
        Some(driver) => format!("driver {driver}"),
        None => "no driver".to_owned(),
    };
    Some(format!(
        "{} of {} have NVIDIA's driver; {} has {driver}",
        gpus.len() - others.len(),
        gpus.len(),
        first.address
    ))
}

/// The first GPU whose PCIe link has fewer lanes than that of another, in words.
fn find_narrow_link(found: &VerifyHardwareFacts) -> Option<String> {
    let widths = found.gpus.iter().filter_map(|gpu| gpu.current.width);
    let widest = widths.max()?;
    for gpu in &found.gpus {
        if let Some(width) = gpu.current.width
            && width < widest
        {
            let address = &gpu.address;
            return Some(format!("{address} has x{width}, others x{widest}"));
        }
    }
    None
}

/// `535` is any version of the branch, `535.216` any of its releases.
fn is_of_branch(version: &str, desired: &str) -> bool {
    version
        .strip_prefix(desired)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;
    use crate::samples;

    fn evaluated(count: usize, driver: &str, text: &str) -> CheckOutcome {
        let desired = ExpectedGpus {
            model: "A100-SXM4-80GB".into(),
            count,
            driver: Some(driver.into()),
            dmabuf: None,
        };
        check_host_gpus(
            &desired,
            &VerifyHardwareFacts::default().with_parts(&samples::parse_hardware_sample(text)),
        )
    }

    #[test]
    fn as_many_as_the_spec_has_with_a_driver_of_the_branch() {
        let sound = evaluated(3, "535", samples::HARDWARE);
        assert_eq!(
            (sound.verdict, sound.measured.as_str()),
            (CheckVerdict::Passed, "3, driver 535.216.03")
        );
        assert_eq!(
            evaluated(3, "535.216.03", samples::HARDWARE).verdict,
            CheckVerdict::Passed
        );
        assert_eq!(evaluated(3, "53", samples::HARDWARE).code, Some("RW0818"));
        assert_eq!(
            evaluated(3, "550", samples::HARDWARE).measured,
            "driver 535.216.03 runs, the spec has 550"
        );
        assert_eq!(
            evaluated(4, "535", samples::HARDWARE).measured,
            "3 GPUs of NVIDIA on the PCI bus"
        );
    }

    #[test]
    fn a_gpu_without_the_driver_and_one_on_fewer_lanes_are_named() {
        let lent = samples::HARDWARE.replacen("driver=nvidia", "driver=vfio-pci", 1);
        assert_eq!(
            evaluated(3, "535", &lent).measured,
            "2 of 3 have NVIDIA's driver; 0000:1b:00.0 has driver vfio-pci"
        );
        let (head, tail) = samples::HARDWARE.split_once("== pci 0000:d8").unwrap();
        let narrow = format!(
            "{head}== pci 0000:d8{}",
            tail.replace("current_link_width=16", "current_link_width=8")
        );
        let evaluated = evaluated(3, "535", &narrow);
        assert_eq!(
            (evaluated.verdict, evaluated.measured.as_str()),
            (CheckVerdict::Warning, "0000:d8:00.0 has x8, others x16")
        );
    }
}
