//! What was asked for of a training with PyTorch, checked against what Kubernetes takes: processes,
//! labels, tolerations, volumes.

use super::check::Checking;
use super::request::Pytorch;
use super::toleration::Toleration;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_object::labels;
use railwright_resource::kubernetes_object::manifest::is_subdomain;
use std::collections::BTreeSet;

impl Checking<'_> {
    pub(super) fn pytorch(&mut self, job: &Pytorch) {
        if job.workers == 0 {
            self.wrong(
                "job.workers",
                "a training has at least one pod, the master".to_owned(),
                "0 pods",
                "--workers=2 is a master and a worker",
            );
        }
        if job.command.trim().is_empty() {
            self.wrong(
                "job.command",
                "there is no command to run".to_owned(),
                "",
                "give it as the last argument: \"torchrun main.py\"",
            );
        }
        self.check_process_count(job);
        self.labels(job);
        for text in &job.tolerations {
            if let Err(why) = Toleration::parse(text) {
                let message = format!("`{}` cannot be tolerated: {why}", one_line(text, 80));
                self.wrong(
                    "job.toleration",
                    message,
                    "the API server refuses it",
                    "all, KEY, KEY=VALUE:NoSchedule, or KEY:NoExecute,Exists",
                );
            }
        }
        if let Some(text) = &job.shared_memory {
            self.amount("job.shared_memory", text);
        }
        self.mounts(job);
        self.check_host_folders(job);
    }

    fn check_process_count(&mut self, job: &Pytorch) {
        let Some(text) = job.nproc_per_node.as_deref() else {
            return;
        };
        let is_count = text.parse::<u32>().is_ok_and(|count| count > 0);
        if is_count || ["auto", "cpu", "gpu"].contains(&text) {
            return;
        }
        let message = format!("`{}` is no number of processes", one_line(text, 40));
        self.wrong(
            "job.nproc",
            message,
            "a whole number, auto, cpu or gpu",
            "set it to the GPUs of a pod",
        );
    }

    fn check_host_folders(&mut self, job: &Pytorch) {
        for folder in &job.data_dirs {
            if !folder.split(':').all(|part| part.starts_with('/'))
                || folder.matches(':').count() > 1
            {
                let message = format!("`{}` names no folder of the host", one_line(folder, 80));
                self.wrong(
                    "job.data_dir",
                    message,
                    "absolute paths",
                    "--data-dir /HOST or /HOST:/CONTAINER",
                );
            }
        }
    }

    /// One path has one volume, and a claim is mounted once.
    fn mounts(&mut self, job: &Pytorch) {
        let (mut paths, mut claims) = (BTreeSet::new(), BTreeSet::new());
        for (claim, path) in &job.data {
            let twice = match (
                claims.insert(claim),
                paths.insert(path.trim_end_matches('/')),
            ) {
                (true, true) => continue,
                (false, _) => format!("the claim {} is mounted twice", one_line(claim, 60)),
                (_, false) => format!("two claims are mounted at {}", one_line(path, 60)),
            };
            self.wrong(
                "job.data",
                twice,
                "the API server refuses it",
                "--data CLAIM:/PATH, each claim and each path once",
            );
        }
        for folder in &job.data_dirs {
            let path = folder
                .rsplit(':')
                .next()
                .unwrap_or_default()
                .trim_end_matches('/');
            if path.is_empty() || !paths.insert(path) {
                let what = if path.is_empty() {
                    "hides the whole root of the container"
                } else {
                    "is mounted where another volume is"
                };
                self.wrong(
                    "job.data_dir",
                    format!("`{}` {what}", one_line(folder, 80)),
                    "no place for a volume",
                    "--data-dir /HOST:/CONTAINER",
                );
            }
        }
    }

    /// What the API server takes as labels, and as names of other objects.
    fn labels(&mut self, job: &Pytorch) {
        for (path, pairs) in [
            ("job.label", &job.labels),
            ("job.selector", &job.selectors),
            ("job.annotation", &job.annotations),
        ] {
            for (key, value) in pairs {
                let is_value = path == "job.annotation" || labels::is_value(value);
                if is_value && labels::is_key(key) {
                    continue;
                }
                let message = format!(
                    "`{}` cannot be a label",
                    one_line(&format!("{key}={value}"), 80)
                );
                let next = "at most 63 letters, digits and `-_.`, with a prefix such as \
                            example.com/ before the key";
                self.wrong(path, message, "the API server refuses it", next);
            }
        }
        for (claim, _) in &job.data {
            self.check_object_name("job.data", claim);
        }
        for secret in &job.image_pull_secrets {
            self.check_object_name("job.image_pull_secret", secret);
        }
        if let Some(name) = &job.priority {
            self.check_object_name("job.priority", name);
        }
        if let Some(name) = &job.scheduler {
            self.check_object_name("job.scheduler", name);
        }
    }

    fn check_object_name(&mut self, path: &str, name: &str) {
        if !is_subdomain(name) {
            let message = format!("`{}` cannot be the name of an object", one_line(name, 80));
            self.wrong(
                path,
                message,
                "the API server refuses it",
                "small letters, digits, `-` and `.`",
            );
        }
    }
}
