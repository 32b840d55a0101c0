//! What it comes to: one judgement for each thing that programs load, and for each that a pod has
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
    pub judgement: CheckOutcome,
}

/// Judges what was seen; `render` is the command that writes an image with all of it.
pub fn check_image_contents(
    seen: &ImageContents,
    wanted: &ImageRequirements,
    render: &str,
) -> Vec<ImageFinding> {
    let finding = |item, name: &str, judgement| ImageFinding {
        item,
        name: name.to_owned(),
        judgement,
    };
    let libraries = wanted.libraries.iter().map(|name| {
        finding(
            ImageCheckItem::Library,
            name,
            check_library(seen, name, render),
        )
    });
    let providers = wanted.providers.iter().flat_map(|name| {
        [
            finding(
                ImageCheckItem::Provider,
                name,
                check_provider(seen, name, render),
            ),
            finding(
                ImageCheckItem::Driver,
                name,
                check_driver_line(seen, name, render),
            ),
        ]
    });
    let of_pod = seen.pod.iter().flat_map(|pod| {
        [
            finding(
                ImageCheckItem::Devices,
                "/dev/infiniband",
                check_pod_devices(pod),
            ),
            finding(ImageCheckItem::MemoryLock, "ulimit -l", memory_lock(pod)),
        ]
    });
    libraries.chain(providers).chain(of_pod).collect()
}

/// Where nothing could be looked at: everything is unknown, for one reason.
pub fn list_unknown_findings(
    wanted: &ImageRequirements,
    reason: &str,
    next: &str,
) -> Vec<ImageFinding> {
    let library = |name: &String| (ImageCheckItem::Library, name.clone());
    let provider = |name: &String| {
        [
            (ImageCheckItem::Provider, name.clone()),
            (ImageCheckItem::Driver, name.clone()),
        ]
    };
    let all = wanted
        .libraries
        .iter()
        .map(library)
        .chain(wanted.providers.iter().flat_map(provider));
    let judgement = CheckOutcome::unknown("RW1282", reason)
        .effect("nothing is proven of the image")
        .next(next);
    all.map(|(item, name)| ImageFinding {
        item,
        name,
        judgement: judgement.clone(),
    })
    .collect()
}

/// The worst of all: `Failed`, then `Unknown`; warnings count as passed.
pub fn compute_image_verdict(findings: &[ImageFinding]) -> CheckVerdict {
    match findings
        .iter()
        .map(|finding| finding.judgement.verdict)
        .min()
    {
        Some(worst @ (CheckVerdict::Failed | CheckVerdict::Unknown)) => worst,
        // What was not looked at is not known to be there.
        Some(_)
            if findings
                .iter()
                .any(|finding| finding.judgement.verdict == CheckVerdict::NotRun) =>
        {
            CheckVerdict::Unknown
        }
        Some(_) => CheckVerdict::Passed,
        None => CheckVerdict::Unknown,
    }
}

fn check_library(seen: &ImageContents, name: &str, render: &str) -> CheckOutcome {
    let failed = |measured: String, next: &str| {
        CheckOutcome::failed("RW1276", measured)
            .expected(format!("{name}, where a loader finds it"))
            .effect(OVER_TCP)
            .next(next)
    };
    match seen.loads(name) {
        Loads::This(path) => of_known_machine(seen, "RW1276", path),
        Loads::OfAnother(path, machine) => failed(of_another(seen, &path, machine), render),
        Loads::NotCached(path) => failed(
            format!("{path} is there, and the loader's cache does not hold it"),
            "run ldconfig as the last step of what puts it there: RUN ldconfig",
        ),
        Loads::NoLibrary(path) => failed(format!("{path} is no library of 64 bits"), render),
        Loads::Nothing => failed("in no folder that a loader looks into".to_owned(), render),
    }
}

/// What is there counts where it is known to be for the image's machine.
fn of_known_machine(seen: &ImageContents, code: &'static str, path: String) -> CheckOutcome {
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

fn of_another(seen: &ImageContents, path: &str, machine: ElfMachine) -> String {
    let ours = seen
        .machine()
        .map_or_else(|| "another machine".to_owned(), ElfMachine::word);
    format!("{path} is for {}, and the image for {ours}", machine.word())
}

/// By the way of libibverbs itself: the file that it names, else one of that name where a loader
/// looks (linux-rdma/rdma-core: libibverbs/dynamic_driver.c, `load_driver`).
fn check_provider(seen: &ImageContents, name: &str, render: &str) -> CheckOutcome {
    let failed = |measured: String| {
        CheckOutcome::failed("RW1277", measured)
            .expected(format!("the provider {name} of the release of libibverbs"))
            .effect(OVER_TCP)
            .next(render)
    };
    let prefix = format!("/lib{name}-rdmav");
    let files = || seen.files.iter().filter(|(path, _)| path.contains(&prefix));
    let there: Vec<&str> = files()
        .filter(|(_, first)| seen.is_ours(first))
        .map(|(path, _)| path.as_str())
        .collect();
    let of_others = files().find_map(|(path, first)| {
        ElfMachine::of(first)
            .filter(|_| !seen.is_ours(first))
            .map(|machine| (path, machine))
    });
    let nothing = || match of_others {
        Some((path, machine)) => failed(of_another(seen, path, machine)),
        None => failed("in no folder of providers".to_owned()),
    };
    let verbs = match seen.loads(VERBS) {
        Loads::This(path) => path,
        _ if there.is_empty() => return nothing(),
        _ => {
            return CheckOutcome::not_run(
                "RW1277",
                format!(
                    "{} is there, and no libibverbs that would load it",
                    there[0]
                ),
            )
            .next(render);
        }
    };
    let Some(pattern) = seen.patterns.get(&verbs) else {
        // One that is built otherwise does not say how its providers are called.
        return there.first().map_or_else(nothing, |path| {
            of_known_machine(seen, "RW1277", (*path).to_owned())
        });
    };
    let wanted = pattern.replacen(NAME, name, 1);
    if there.contains(&wanted.as_str()) {
        return of_known_machine(seen, "RW1277", wanted);
    }
    let file = wanted.rsplit('/').next().unwrap_or_default();
    match (seen.loads(file), there.first()) {
        (Loads::This(path), _) => of_known_machine(seen, "RW1277", path),
        (Loads::OfAnother(path, machine), _) => failed(of_another(seen, &path, machine)),
        (_, Some(other)) => failed(format!("{other} is there, and {verbs} loads {file}")),
        (_, None) if of_others.is_some() => nothing(),
        (_, None) => failed(format!("{wanted} is not there")),
    }
}

/// In the folder that the libibverbs of the image says, else in the one that it has by itself.
fn check_driver_line(seen: &ImageContents, name: &str, render: &str) -> CheckOutcome {
    let folder = match seen.loads(VERBS) {
        Loads::This(path) => seen
            .driver_folders
            .get(&path)
            .map_or(DRIVERS, String::as_str),
        _ => DRIVERS,
    };
    let is_this = |driver: &String| driver == name || driver.ends_with(&format!("/lib{name}"));
    match seen.drivers.get(folder).into_iter().flatten().any(is_this) {
        true => CheckOutcome::passed(format!("`driver {name}`")),
        false => CheckOutcome::failed(
            "RW1278",
            format!("no file of {folder} says `driver {name}`"),
        )
        .expected(format!("a file of {folder} with the line `driver {name}`"))
        .effect(OVER_TCP)
        .next(render),
    }
}

fn check_pod_devices(pod: &PodSeen) -> CheckOutcome {
    let names: Vec<&str> = pod
        .devices
        .iter()
        .filter(|(_, is_device)| **is_device)
        .map(|(name, _)| name.as_str())
        .collect();
    let is_uverbs = |name: &&&str| {
        name.strip_prefix("uverbs")
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let wanted = "uverbsN, and rdma_cm";
    match (names.iter().filter(is_uverbs).count(), names.contains(&"rdma_cm")) {
        (0, _) => CheckOutcome::failed("RW1279", "no uverbs device".to_owned()).expected(wanted).effect(OVER_TCP).next(
            "ask for the RDMA resource of the cluster in the limits of the container: `railwright \
             job render` does; kubectl describe pod",
        ),
        (_, false) => CheckOutcome::warning("RW1279", names.join(", "))
            .expected(wanted)
            .effect("connections by librdmacm cannot be made; NCCL does without it")
            .next("look at the device plugin: it gives rdma_cm beside each uverbs device"),
        (_, true) => CheckOutcome::passed(names.join(", ")),
    }
}

fn memory_lock(pod: &PodSeen) -> CheckOutcome {
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
