//! The flags of `arena submit pytorch` (kubeflow/arena: pkg/argsbuilder/submit.go,
//! submit_pytorchjob.go, submit_tensorboard.go, submit_sync_code.go), and what each says of a
//! training.

use super::request::{CleanPods, Devices, Pytorch};
use railwright_base::Reason;

/// A flag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flag {
    /// Its name without dashes.
    pub name: &'static str,
    /// Its short name.
    pub short: Option<char>,
    /// Whether it takes a value; one that does not may have `=true` or `=false` behind it.
    pub takes: bool,
    /// The path of what it is about.
    pub path: &'static str,
    /// Why it is not translated, where it is not.
    pub refused: Option<&'static str>,
}

const fn new_value_flag(name: &'static str, path: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        takes: true,
        path,
        refused: None,
    }
}

const fn new_short_flag(name: &'static str, short: char, path: &'static str) -> Flag {
    Flag {
        name,
        short: Some(short),
        takes: true,
        path,
        refused: None,
    }
}

const fn new_switch_flag(name: &'static str, path: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        takes: false,
        path,
        refused: None,
    }
}

const fn new_refused_flag(name: &'static str, takes: bool, why: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        takes,
        path: "job.refused",
        refused: Some(why),
    }
}

const SYNC: &str = "code is not fetched when a pod starts: put it into the image, or on a volume \
                    (`--data CLAIM:PATH`)";
const FILES: &str =
    "files of this machine are not taken along: make a ConfigMap of them, or put them on a volume";

/// All of them, and those of the global options that matter.
pub(super) const FLAGS: [Flag; 52] = [
    new_value_flag("name", "job.name"),
    new_short_flag("namespace", 'n', "job.namespace"),
    new_value_flag("image", "job.image"),
    new_value_flag("image-pull-policy", "job.image_pull_policy"),
    new_value_flag("image-pull-secret", "job.image_pull_secret"),
    new_value_flag("gpus", "job.gpus"),
    new_value_flag("device", "job.rdma"),
    new_value_flag("workers", "job.workers"),
    new_value_flag("nproc-per-node", "job.nproc"),
    new_short_flag("env", 'e', "job.environment"),
    new_value_flag("clean-task-policy", "job.clean"),
    new_value_flag("working-dir", "job.working_dir"),
    new_value_flag("workingDir", "job.working_dir"),
    new_value_flag("shell", "job.shell"),
    new_value_flag("share-memory", "job.shared_memory"),
    new_value_flag("cpu", "job.cpu"),
    new_value_flag("memory", "job.memory"),
    new_switch_flag("tensorboard", "job.tensorboard"),
    new_value_flag("tensorboard-image", "job.tensorboard"),
    new_value_flag("tensorboardImage", "job.tensorboard"),
    new_value_flag("logdir", "job.logdir"),
    new_switch_flag("rdma", "job.rdma"),
    new_switch_flag("gang", "job.gang"),
    new_short_flag("data", 'd', "job.data"),
    new_value_flag("data-dir", "job.data_dir"),
    new_value_flag("dataDir", "job.data_dir"),
    new_short_flag("label", 'l', "job.label"),
    new_short_flag("annotation", 'a', "job.annotation"),
    new_value_flag("selector", "job.selector"),
    new_value_flag("toleration", "job.toleration"),
    new_short_flag("priority", 'p', "job.priority"),
    new_value_flag("scheduler", "job.scheduler"),
    new_value_flag("running-timeout", "job.running_timeout"),
    new_value_flag("ttl-after-finished", "job.ttl"),
    new_switch_flag("hostNetwork", "job.host_network"),
    new_switch_flag("hostIPC", "job.host_ipc"),
    new_switch_flag("hostPID", "job.host_pid"),
    new_value_flag("loglevel", "job.loglevel"),
    new_switch_flag("pprof", "job.pprof"),
    new_switch_flag("trace", "job.trace"),
    new_value_flag("config", "job.config"),
    new_value_flag("arena-namespace", "job.arena_namespace"),
    new_refused_flag(
        "retry",
        true,
        "a PyTorchJob is not retried by Arena either: a worker that fails starts anew, a master \
         that fails ends the job",
    ),
    new_refused_flag("queue", false, "the job is not suspended for a queue"),
    new_refused_flag("config-file", true, FILES),
    new_refused_flag("model-name", true, "models are not registered"),
    new_refused_flag("model-source", true, "models are not registered"),
    new_refused_flag("sync-mode", true, SYNC),
    new_refused_flag("sync-source", true, SYNC),
    new_refused_flag("sync-image", true, SYNC),
    new_refused_flag("syncMode", true, SYNC),
    new_refused_flag("syncSource", true, SYNC),
];

/// Takes what a flag says over into the training; what is wrong with the value where something is.
pub(super) fn apply_flag(flag: &Flag, value: &str, job: &mut Pytorch) -> Result<(), Reason> {
    let text = value.to_owned();
    match flag.name {
        "name" => job.pods.name = text,
        "namespace" => job.pods.namespace = text,
        "image" => job.pods.image = text,
        "image-pull-policy" => job.pods.image_pull_policy = Some(text),
        "image-pull-secret" => job.image_pull_secrets.push(text),
        "gpus" => job.pods.gpus = Some(parse_count(value)?),
        "device" => {
            let device = parse_pair(value, '=', "RESOURCE=COUNT")?;
            match &mut job.pods.devices {
                Devices::Said(devices) => devices.push(device),
                other => *other = Devices::Said(vec![device]),
            }
        }
        "workers" => job.workers = parse_count(value)?,
        "nproc-per-node" => job.nproc_per_node = Some(text),
        "env" => job
            .pods
            .environment
            .push(parse_pair(value, '=', "NAME=VALUE")?),
        "clean-task-policy" => job.clean = parse_clean_policy(value)?,
        "working-dir" | "workingDir" => job.working_dir = text,
        "shell" => job.shell = text,
        "share-memory" => job.shared_memory = (!value.is_empty()).then_some(text),
        "cpu" => job.pods.cpu = Some(text),
        "memory" => job.pods.memory = Some(text),
        "priority" => job.priority = Some(text),
        "scheduler" => job.scheduler = Some(text),
        "data" => job.data.push(parse_pair(value, ':', "CLAIM:PATH")?),
        "data-dir" | "dataDir" => job.data_dirs.push(text),
        "label" => job.labels.push(parse_pair(value, '=', "KEY=VALUE")?),
        "annotation" => job.annotations.push(parse_pair(value, '=', "KEY=VALUE")?),
        "selector" => job.selectors.push(parse_pair(value, '=', "KEY=VALUE")?),
        "toleration" => job.tolerations.push(text),
        "running-timeout" => job.running_timeout_s = Some(parse_go_duration(value)?),
        "ttl-after-finished" => job.ttl_after_finished_s = Some(parse_go_duration(value)?),
        // what Arena itself prints, and where its own parts are
        "loglevel" | "config" | "arena-namespace" => {}
        _ => return apply_switch_flag(flag, value, job),
    }
    Ok(())
}

fn apply_switch_flag(flag: &Flag, value: &str, job: &mut Pytorch) -> Result<(), Reason> {
    match flag.name {
        // The dashboard's own two are looked at once all is read.
        "tensorboard" if !parse_bool(value)? => job.tensorboard = None,
        "tensorboard" => drop(job.tensorboard.get_or_insert_default()),
        "tensorboard-image" | "tensorboardImage" => {
            job.tensorboard.get_or_insert_default().image = value.to_owned();
        }
        "logdir" => job.tensorboard.get_or_insert_default().logdir = value.to_owned(),
        "rdma" => job.rdma = parse_bool(value)?,
        "gang" => job.gang = parse_bool(value)?,
        "hostNetwork" => job.pods.host_network = parse_bool(value)?,
        "hostIPC" => job.host_ipc = parse_bool(value)?,
        "hostPID" => job.host_pid = parse_bool(value)?,
        _ => {}
    }
    Ok(())
}

/// `NAME=VALUE`, with these words for what it should have been.
pub(super) fn parse_pair(text: &str, by: char, form: &str) -> Result<(String, String), Reason> {
    let split = text.split_once(by).filter(|(name, _)| !name.is_empty());
    split
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("this is no {form}").into())
}

fn parse_count(text: &str) -> Result<u32, Reason> {
    text.parse().map_err(|_| "this is no number".into())
}

fn parse_bool(text: &str) -> Result<bool, Reason> {
    match text {
        "true" | "1" | "t" | "T" | "TRUE" | "True" => Ok(true),
        "false" | "0" | "f" | "F" | "FALSE" | "False" => Ok(false),
        _ => Err("this is neither true nor false".into()),
    }
}

fn parse_clean_policy(text: &str) -> Result<CleanPods, Reason> {
    match text {
        "None" => Ok(CleanPods::None),
        "Running" => Ok(CleanPods::Running),
        "All" => Ok(CleanPods::All),
        _ => Err("None, Running or All can stand here".into()),
    }
}

/// A duration as Go writes it: `5s`, `1m`, `2h22m`.
pub(super) fn parse_go_duration(text: &str) -> Result<u64, Reason> {
    sum_duration_parts(text).ok_or_else(|| "this is no duration such as 5s, 1m, 2h22m".into())
}

/// Seconds; nothing where it is no duration, or too long a one.
fn sum_duration_parts(text: &str) -> Option<u64> {
    match text {
        "" => return None,
        "0" => return Some(0),
        _ => {}
    }
    let (mut total, mut rest) = (0u64, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let (unit, length) = match rest[digits..].chars().next() {
            Some('h') => (3600, 1),
            Some('m') => (60, 1),
            Some('s') => (1, 1),
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[digits + length..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, value) in [("5s", 5), ("1m", 60), ("2h22m", 8520), ("0", 0)] {
            assert_eq!(parse_go_duration(text), Ok(value), "{text}");
        }
        for text in ["", "5", "m", "5x", "1ms", "99999999999999999999h", "-5s"] {
            assert!(parse_go_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_flag_stands_twice() {
        let names: std::collections::BTreeSet<&str> = FLAGS.iter().map(|flag| flag.name).collect();
        assert_eq!(names.len(), FLAGS.len());
    }
}
