//! What it comes to: one verdict for each thing that programs load, and for each that a pod has
//! to be given.

use super::ImageRequirements;
use super::machine::ElfMachine;
use super::seen::{DRIVERS, ImageContents, Loads, NAME, PodSeen, VERBS};
use crate::result::{CheckOutcome, CheckVerdict};
use serde::Serialize;

/// What it means for a job, whichever of them is missing.
const OVER_TCP: &str = "NCCL passes RDMA over without an error and goes over TCP: a tenth of the \
                        bandwidth and many times the latency";

/// The bit of CAP_IPC_LOCK (linux: include/uapi/linux/capability.h); who has it in effect locks as
/// much as it likes.
const IPC_LOCK: u64 = 1 << 14;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageCheckItem {
    /// A library that programs load.
    Library,
    /// What libibverbs loads for the NIC.
    Provider,
    /// The line by which libibverbs knows the provider.
    Driver,
    /// The RDMA devices of the pod.
    Devices,
    /// How much memory the pod may lock.
    MemoryLock,
}

impl ImageCheckItem {
    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            ImageCheckItem::Library => "library",
            ImageCheckItem::Provider => "provider",
            ImageCheckItem::Driver => "driver",
            ImageCheckItem::Devices => "devices",
            ImageCheckItem::MemoryLock => "memory lock",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFinding {
    /// What sort of thing.
    pub item: ImageCheckItem,
    /// Which: `libibverbs.so.1`, `mlx5`.
    pub name: String,
    /// What was found.
    pub evaluation: CheckOutcome,
}

/// Evaluates what was read; `render` is the command that writes an image with all of it.
pub fn check_image_contents(
    seen: &ImageContents,
    desired: &ImageRequirements,
    render: &str,
) -> Vec<ImageFinding> {
    let mut findings = Vec::new();
    for name in &desired.libraries {
        let outcome = check_library(seen, name, render);
        findings.push(new_image_finding(ImageCheckItem::Library, name, outcome));
    }
    for name in &desired.providers {
        let provider = check_provider(seen, name, render);
        findings.push(new_image_finding(ImageCheckItem::Provider, name, provider));
        let driver = check_driver_line(seen, name, render);
        findings.push(new_image_finding(ImageCheckItem::Driver, name, driver));
    }
    if let Some(pod) = &seen.pod {
        findings.push(new_image_finding(
            ImageCheckItem::Devices,
            "/dev/infiniband",
            check_pod_devices(pod),
        ));
        findings.push(new_image_finding(
            ImageCheckItem::MemoryLock,
            "ulimit -l",
            check_memory_lock(pod),
        ));
    }
    findings
}

fn new_image_finding(item: ImageCheckItem, name: &str, evaluation: CheckOutcome) -> ImageFinding {
    ImageFinding {
        item,
        name: name.to_owned(),
        evaluation,
    }
}

/// Where nothing could be looked at: everything is unknown, for one reason.
pub fn list_unknown_findings(
    desired: &ImageRequirements,
    reason: &str,
    next: &str,
) -> Vec<ImageFinding> {
    let outcome = CheckOutcome::unknown("RW1282", reason)
        .effect("nothing is proven of the image")
        .next(next);
    let mut findings = Vec::new();
    for name in &desired.libraries {
        let item = ImageCheckItem::Library;
        findings.push(new_image_finding(item, name, outcome.clone()));
    }
    for name in &desired.providers {
        for item in [ImageCheckItem::Provider, ImageCheckItem::Driver] {
            findings.push(new_image_finding(item, name, outcome.clone()));
        }
    }
    findings
}

/// The worst of all: `Failed`, then `Unknown`; warnings count as passed.
pub fn compute_image_verdict(findings: &[ImageFinding]) -> CheckVerdict {
    let verdicts: Vec<CheckVerdict> = findings
        .iter()
        .map(|finding| finding.evaluation.verdict)
        .collect();
    match verdicts.iter().copied().min() {
        Some(worst @ (CheckVerdict::Failed | CheckVerdict::Unknown)) => worst,
        // What was not looked at is not known to be there.
        Some(_) if verdicts.contains(&CheckVerdict::NotRun) => CheckVerdict::Unknown,
        Some(_) => CheckVerdict::Passed,
        None => CheckVerdict::Unknown,
    }
}

fn check_library(seen: &ImageContents, name: &str, render: &str) -> CheckOutcome {
    let (measured, next) = match seen.loads(name) {
        Loads::This(path) => return require_known_machine(seen, "RW1276", path),
        Loads::OfAnother(path, machine) => (describe_foreign_library(seen, &path, machine), render),
        Loads::NotCached(path) => (
            format!("{path} is there, and the loader's cache does not hold it"),
            "run ldconfig as the last step of what puts it there: RUN ldconfig",
        ),
        Loads::NoLibrary(path) => (format!("{path} is no library of 64 bits"), render),
        Loads::Nothing => ("in no folder that a loader looks into".to_owned(), render),
    };
    CheckOutcome::failed("RW1276", measured)
        .expected(format!("{name}, where a loader finds it"))
        .effect(OVER_TCP)
        .next(next)
}

/// What is there counts where it is known to be for the image's machine.
fn require_known_machine(seen: &ImageContents, code: &'static str, path: String) -> CheckOutcome {
    match seen.machine() {
        Some(_) => CheckOutcome::passed(path),
        None => CheckOutcome::not_run(
            code,
            format!(
                "{path} is there, and for which machine the image is cannot be told: no shell, no \
                 libc"
            ),
        )
        .next("look into the whole root of the image, not into a part of it"),
    }
}

fn describe_foreign_library(seen: &ImageContents, path: &str, machine: ElfMachine) -> String {
    let ours = match seen.machine() {
        Some(ours) => ours.word(),
        None => "another machine".to_owned(),
    };
    format!("{path} is for {}, and the image for {ours}", machine.word())
}

/// By the way of libibverbs itself: the file that it names, else one of that name where a loader
/// looks (linux-rdma/rdma-core: libibverbs/dynamic_driver.c, `load_driver`).
fn check_provider(seen: &ImageContents, name: &str, render: &str) -> CheckOutcome {
    let (usable, foreign) = find_provider_files(seen, name);
    let nothing = match foreign {
        Some((path, machine)) => describe_foreign_library(seen, path, machine),
        None => "in no folder of providers".to_owned(),
    };
    let Loads::This(verbs) = seen.loads(VERBS) else {
        let Some(path) = usable.first() else {
            return report_provider_failure(nothing, name, render);
        };
        let measured = format!("{path} is there, and no libibverbs that would load it");
        return CheckOutcome::not_run("RW1277", measured).next(render);
    };
    let Some(pattern) = seen.patterns.get(&verbs) else {
        // One that is built otherwise does not say how its providers are called.
        return match usable.first() {
            Some(path) => require_known_machine(seen, "RW1277", (*path).to_owned()),
            None => report_provider_failure(nothing, name, render),
        };
    };
    let desired = pattern.replacen(NAME, name, 1);
    if usable.contains(&desired.as_str()) {
        return require_known_machine(seen, "RW1277", desired);
    }
    let file = desired.rsplit('/').next().unwrap_or_default();
    let measured = match (seen.loads(file), usable.first()) {
        (Loads::This(path), _) => return require_known_machine(seen, "RW1277", path),
        (Loads::OfAnother(path, machine), _) => describe_foreign_library(seen, &path, machine),
        (_, Some(other)) => format!("{other} is there, and {verbs} loads {file}"),
        (_, None) if foreign.is_some() => nothing,
        (_, None) => format!("{desired} is not there"),
    };
    report_provider_failure(measured, name, render)
}

/// The files of a provider that are for the image's machine, and the first that is for another.
fn find_provider_files<'s>(
    seen: &'s ImageContents,
    name: &str,
) -> (Vec<&'s str>, Option<(&'s str, ElfMachine)>) {
    let prefix = format!("/lib{name}-rdmav");
    let (mut usable, mut foreign) = (Vec::new(), None);
    for (path, head) in &seen.files {
        if !path.contains(&prefix) {
            continue;
        }
        if seen.is_ours(head) {
            usable.push(path.as_str());
        } else if foreign.is_none()
            && let Some(machine) = ElfMachine::of(head)
        {
            foreign = Some((path.as_str(), machine));
        }
    }
    (usable, foreign)
}

fn report_provider_failure(measured: String, name: &str, render: &str) -> CheckOutcome {
    CheckOutcome::failed("RW1277", measured)
        .expected(format!("the provider {name} of the release of libibverbs"))
        .effect(OVER_TCP)
        .next(render)
}

/// In the folder that the libibverbs of the image says, else in the one that it has by itself.
fn check_driver_line(seen: &ImageContents, name: &str, render: &str) -> CheckOutcome {
    let mut folder = DRIVERS;
    if let Loads::This(path) = seen.loads(VERBS)
        && let Some(own) = seen.driver_folders.get(&path)
    {
        folder = own;
    }
    let ending = format!("/lib{name}");
    for driver in seen.drivers.get(folder).into_iter().flatten() {
        if driver == name || driver.ends_with(&ending) {
            return CheckOutcome::passed(format!("`driver {name}`"));
        }
    }
    CheckOutcome::failed(
        "RW1278",
        format!("no file of {folder} says `driver {name}`"),
    )
    .expected(format!("a file of {folder} with the line `driver {name}`"))
    .effect(OVER_TCP)
    .next(render)
}

fn check_pod_devices(pod: &PodSeen) -> CheckOutcome {
    let (mut names, mut has_uverbs) = (Vec::new(), false);
    for (name, is_device) in &pod.devices {
        if *is_device {
            names.push(name.as_str());
            has_uverbs |= is_uverbs(name);
        }
    }
    let desired = "uverbsN, and rdma_cm";
    match (has_uverbs, names.contains(&"rdma_cm")) {
        (false, _) => CheckOutcome::failed("RW1279", "no uverbs device".to_owned()).expected(desired).effect(OVER_TCP).next(
            "ask for the RDMA resource of the cluster in the limits of the container: `railwright \
             job render` does; kubectl describe pod",
        ),
        (true, false) => CheckOutcome::warning("RW1279", names.join(", "))
            .expected(desired)
            .effect("connections by librdmacm cannot be made; NCCL does without it")
            .next("look at the device plugin: it gives rdma_cm beside each uverbs device"),
        (true, true) => CheckOutcome::passed(names.join(", ")),
    }
}

/// `uverbs0`.
fn is_uverbs(name: &str) -> bool {
    match name.strip_prefix("uverbs") {
        Some(number) => number.bytes().all(|byte| byte.is_ascii_digit()),
        None => false,
    }
}

fn check_memory_lock(pod: &PodSeen) -> CheckOutcome {
    let limit = pod.memory_lock.trim();
    if limit == "unlimited" {
        return CheckOutcome::passed(limit);
    }
    let next = "LimitMEMLOCK=infinity for the container runtime on the node \
                (modules/containerd-memlock), or capability IPC_LOCK for a container that runs as \
                root";
    match limit.parse::<u64>() {
        Ok(kib) if pod.capabilities.is_some_and(|all| all & IPC_LOCK != 0) => {
            CheckOutcome::passed(format!("{kib} KiB, and IPC_LOCK lifts it"))
        }
        Ok(kib) => CheckOutcome::failed("RW1280", format!("{kib} KiB, without IPC_LOCK in effect"))
            .expected("unlimited")
            .effect(
                "memory cannot be registered with the NIC: ibv_reg_mr fails, or NCCL goes over TCP",
            )
            .next(next),
        Err(_) => CheckOutcome::unknown("RW1281", format!("`{limit}` is no limit"))
            .expected("unlimited")
            .next("kubectl exec POD -- sh -c 'ulimit -l'"),
    }
}
