//! The flags of `arena submit pytorch` (kubeflow/arena: pkg/argsbuilder/submit.go, submit_pytorchjob.go, submit_tensorboard.go,
//! submit_sync_code.go), and what each says of a training.

use super::request::{CleanPods, Devices, Pytorch};

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

const fn value(name: &'static str, path: &'static str) -> Flag {
    Flag { name, short: None, takes: true, path, refused: None }
}

const fn short(name: &'static str, short: char, path: &'static str) -> Flag {
    Flag { name, short: Some(short), takes: true, path, refused: None }
}

const fn switch(name: &'static str, path: &'static str) -> Flag {
    Flag { name, short: None, takes: false, path, refused: None }
}

const fn refused(name: &'static str, takes: bool, why: &'static str) -> Flag {
    Flag { name, short: None, takes, path: "job.refused", refused: Some(why) }
}

const SYNC: &str = "code is not fetched when a pod starts: put it into the image, or on a volume (`--data CLAIM:PATH`)";
const FILES: &str = "files of this machine are not taken along: make a ConfigMap of them, or put them on a volume";

/// All of them, and those of the global options that matter.
pub(super) const FLAGS: [Flag; 52] = [
    value("name", "job.name"),
    short("namespace", 'n', "job.namespace"),
    value("image", "job.image"),
    value("image-pull-policy", "job.image_pull_policy"),
    value("image-pull-secret", "job.image_pull_secret"),
    value("gpus", "job.gpus"),
    value("device", "job.rdma"),
    value("workers", "job.workers"),
    value("nproc-per-node", "job.nproc"),
    short("env", 'e', "job.environment"),
    value("clean-task-policy", "job.clean"),
    value("working-dir", "job.working_dir"),
    value("workingDir", "job.working_dir"),
    value("shell", "job.shell"),
    value("share-memory", "job.shared_memory"),
    value("cpu", "job.cpu"),
    value("memory", "job.memory"),
    switch("tensorboard", "job.tensorboard"),
    value("tensorboard-image", "job.tensorboard"),
    value("tensorboardImage", "job.tensorboard"),
    value("logdir", "job.logdir"),
    switch("rdma", "job.rdma"),
    switch("gang", "job.gang"),
    short("data", 'd', "job.data"),
    value("data-dir", "job.data_dir"),
    value("dataDir", "job.data_dir"),
    short("label", 'l', "job.label"),
    short("annotation", 'a', "job.annotation"),
    value("selector", "job.selector"),
    value("toleration", "job.toleration"),
    short("priority", 'p', "job.priority"),
    value("scheduler", "job.scheduler"),
    value("running-timeout", "job.running_timeout"),
    value("ttl-after-finished", "job.ttl"),
    switch("hostNetwork", "job.host_network"),
    switch("hostIPC", "job.host_ipc"),
    switch("hostPID", "job.host_pid"),
    value("loglevel", "job.loglevel"),
    switch("pprof", "job.pprof"),
    switch("trace", "job.trace"),
    value("config", "job.config"),
    value("arena-namespace", "job.arena_namespace"),
    refused(
        "retry",
        true,
        "a PyTorchJob is not retried by Arena either: a worker that fails starts anew, a master that fails ends the job",
    ),
    refused("queue", false, "the job is not suspended for a queue"),
    refused("config-file", true, FILES),
    refused("model-name", true, "models are not registered"),
    refused("model-source", true, "models are not registered"),
    refused("sync-mode", true, SYNC),
    refused("sync-source", true, SYNC),
    refused("sync-image", true, SYNC),
    refused("syncMode", true, SYNC),
    refused("syncSource", true, SYNC),
];

/// Takes what a flag says over into the training; what is wrong with the value where something is.
pub(super) fn apply(flag: &Flag, value: &str, job: &mut Pytorch) -> Result<(), String> {
    let text = || value.to_owned();
    match flag.name {
        "name" => job.pods.name = text(),
        "namespace" => job.pods.namespace = text(),
        "image" => job.pods.image = text(),
        "image-pull-policy" => job.pods.image_pull_policy = Some(text()),
        "image-pull-secret" => job.image_pull_secrets.push(text()),
        "gpus" => job.pods.gpus = Some(count(value)?),
        "device" => {
            let device = pair(value, '=', "RESOURCE=COUNT")?;
            match &mut job.pods.devices {
                Devices::Said(devices) => devices.push(device),
                other => *other = Devices::Said(vec![device]),
            }
        }
        "workers" => job.workers = count(value)?,
        "nproc-per-node" => job.nproc_per_node = Some(text()),
        "env" => job.pods.environment.push(pair(value, '=', "NAME=VALUE")?),
        "clean-task-policy" => job.clean = clean(value)?,
        "working-dir" | "workingDir" => job.working_dir = text(),
        "shell" => job.shell = text(),
        "share-memory" => job.shared_memory = (!value.is_empty()).then(text),
        "cpu" => job.pods.cpu = Some(text()),
        "memory" => job.pods.memory = Some(text()),
        "priority" => job.priority = Some(text()),
        "scheduler" => job.scheduler = Some(text()),
        "data" => job.data.push(pair(value, ':', "CLAIM:PATH")?),
        "data-dir" | "dataDir" => job.data_dirs.push(text()),
        "label" => job.labels.push(pair(value, '=', "KEY=VALUE")?),
        "annotation" => job.annotations.push(pair(value, '=', "KEY=VALUE")?),
        "selector" => job.selectors.push(pair(value, '=', "KEY=VALUE")?),
        "toleration" => job.tolerations.push(text()),
        "running-timeout" => job.running_timeout_s = Some(seconds(value)?),
        "ttl-after-finished" => job.ttl_after_finished_s = Some(seconds(value)?),
        // what Arena itself prints, and where its own parts are
        "loglevel" | "config" | "arena-namespace" => {}
        _ => return switched(flag, value, job),
    }
    Ok(())
}

fn switched(flag: &Flag, value: &str, job: &mut Pytorch) -> Result<(), String> {
    let text = || value.to_owned();
    match flag.name {
        // The dashboard's own two are looked at once all is read.
        "tensorboard" if !truth(value)? => job.tensorboard = None,
        "tensorboard" => drop(job.tensorboard.get_or_insert_default()),
        "tensorboard-image" | "tensorboardImage" => job.tensorboard.get_or_insert_default().image = text(),
        "logdir" => job.tensorboard.get_or_insert_default().logdir = text(),
        "rdma" => job.rdma = truth(value)?,
        "gang" => job.gang = truth(value)?,
        "hostNetwork" => job.pods.host_network = truth(value)?,
        "hostIPC" => job.host_ipc = truth(value)?,
        "hostPID" => job.host_pid = truth(value)?,
        _ => {}
    }
    Ok(())
}

/// `NAME=VALUE`, with these words for what it should have been.
pub(super) fn pair(text: &str, by: char, form: &str) -> Result<(String, String), String> {
    let split = text.split_once(by).filter(|(name, _)| !name.is_empty());
    split.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| format!("this is no {form}"))
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "this is no number".to_owned())
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "t" | "T" | "TRUE" | "True" => Ok(true),
        "false" | "0" | "f" | "F" | "FALSE" | "False" => Ok(false),
        _ => Err("this is neither true nor false".to_owned()),
    }
}

fn clean(text: &str) -> Result<CleanPods, String> {
    match text {
        "None" => Ok(CleanPods::None),
        "Running" => Ok(CleanPods::Running),
        "All" => Ok(CleanPods::All),
        _ => Err("None, Running or All can stand here".to_owned()),
    }
}

/// A duration as Go writes it: `5s`, `1m`, `2h22m`.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || "this is no duration such as 5s, 1m, 2h22m".to_owned();
    let (mut total, mut rest) = (0u64, text);
    if text == "0" {
        return Ok(0);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let (unit, length) = match rest[digits..].chars().next() {
            Some('h') => (3600, 1),
            Some('m') => (60, 1),
            Some('s') => (1, 1),
            _ => return Err(wrong()),
        };
        total = number.checked_mul(unit).and_then(|more| total.checked_add(more)).ok_or_else(wrong)?;
        rest = &rest[digits + length..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, value) in [("5s", 5), ("1m", 60), ("2h22m", 8520), ("0", 0)] {
            assert_eq!(seconds(text), Ok(value), "{text}");
        }
        for text in ["", "5", "m", "5x", "1ms", "99999999999999999999h", "-5s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_flag_stands_twice() {
        let names: std::collections::BTreeSet<&str> = FLAGS.iter().map(|flag| flag.name).collect();
        assert_eq!(names.len(), FLAGS.len());
    }
}
