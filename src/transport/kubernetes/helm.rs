//! The user's own `helm`, as a process of this machine: which one it is, what it is told, and what
//! may come back. Values travel through its standard input. Cache, plugins and configuration are a
//! folder of our own for as long as the connection lasts; only a pull sees the user's
//! configuration, where logins of registries are.

use super::chart::digest_of;
use super::credentials::Credentials;
use super::pinned_server::PINS;
use crate::{ClusterAccess, resolve_spec_path};
use railwright_base::text::one_line;
use railwright_base::{Digest, Reason, Redaction};
use railwright_resource::helm_release::request::Release;
use railwright_system::fed::{self, Bounds};
use railwright_system::process::{self, Program};
use railwright_system::{environment, files};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Names the program where it is not in PATH.
const VARIABLE: &str = "RAILWRIGHT_HELM";
/// The oldest that is known to have what is asked of it: a dry run that asks the server (helm/helm:
/// v3.13), labels, JSON of metadata, and no path as the name of a chart (CVE-2024-25620).
const OLDEST: (u32, u32, u32) = (3, 14, 1);
/// A question to the cluster, or a chart to be fetched.
pub const QUESTION: Duration = Duration::from_secs(120);
/// What is kept of one answer: a dry run brings the whole chart along.
const OUTPUT_LIMIT_BYTES: usize = 48 << 20;
const ERROR_LIMIT_BYTES: usize = 16 << 10;
/// Has an uninstall say which object was not deleted, and why: Helm tells that in its log alone
/// (helm/helm: pkg/action/uninstall.go).
pub const WITH_REASONS: &str = "--debug";
/// What such a line says, and what every line of the log has, of Helm 3 and of Helm 4.
const REASONS: &str = "failed to delete release";
const LOGGED: [&str; 2] = [" [debug] ", "level=DEBUG "];
/// Variables of Helm that would lead to another cluster, or to somebody else there, than the
/// kubeconfig.
const ELSEWHERE: [&str; 9] = [
    "HELM_KUBEAPISERVER",
    "HELM_KUBEASGROUPS",
    "HELM_KUBEASUSER",
    "HELM_KUBECAFILE",
    "HELM_KUBECONTEXT",
    "HELM_KUBEINSECURE_SKIP_TLS_VERIFY",
    "HELM_KUBETLS_SERVER_NAME",
    "HELM_KUBETOKEN",
    "HELM_DEBUG",
];

/// The program, and the cluster that it is told to use.
pub struct Helm {
    access: ClusterAccess,
    /// Of what the kubeconfig holds: helm passes the server's complaints on.
    credentials: Arc<Credentials>,
    /// Its folders, once there are any.
    home: OnceLock<PathBuf>,
}

/// The program and its release.
pub struct HelmProgram {
    path: PathBuf,
    major: u32,
}

impl HelmProgram {
    /// From Helm 4 on, where nothing else is said.
    pub fn may_apply_on_server(&self) -> bool {
        self.major >= 4
    }
}

/// How a call ended.
pub struct HelmOutput {
    /// Exit code 0.
    pub well: bool,
    pub out: String,
    /// What it complained of, in one line.
    pub complaint: String,
}

/// Why there is no end of a call.
#[derive(Debug)]
pub enum HelmCallError {
    /// There is no program that can be used.
    NoHelm(Reason),
    /// Something on this machine.
    Local(Reason),
    /// It may still be running.
    TimedOut(Duration),
}

impl HelmCallError {
    /// In words.
    pub fn reason(&self) -> Reason {
        match self {
            HelmCallError::NoHelm(reason) | HelmCallError::Local(reason) => reason.clone(),
            HelmCallError::TimedOut(limit) => {
                format!("helm did not end within {} s", limit.as_secs()).into()
            }
        }
    }
}

/// A chart that lies on this machine.
pub enum Chart {
    Here {
        path: PathBuf,
        digest: Digest,
    },
    /// It is not what the resource says.
    Another(String),
    /// It could not be had.
    Unknown(String),
}

impl Helm {
    /// For this cluster; nothing is started yet.
    pub fn new(access: ClusterAccess, credentials: Arc<Credentials>) -> Self {
        Helm {
            access,
            credentials,
            home: OnceLock::new(),
        }
    }

    /// The program; why there is none that can be used as the error.
    pub async fn program(&self) -> Result<HelmProgram, HelmCallError> {
        // Where its records are is where they are looked for (helm/helm: pkg/action/action.go,
        // `Configuration.Init`).
        if let Some(driver) = environment::read_variable("HELM_DRIVER")
            .filter(|driver| !["", "secret", "secrets"].contains(&driver.as_str()))
        {
            let driver = one_line(&driver, 40);
            return Err(HelmCallError::NoHelm(
                format!(
                    "HELM_DRIVER is {driver}, and releases are known by their Secrets alone: unset \
                 HELM_DRIVER"
                )
                .into(),
            ));
        }
        let named = environment::read_variable(VARIABLE).map(PathBuf::from);
        let Some(path) = named.or_else(|| process::find_program("helm")) else {
            let install = "install v3.14.1 or newer (helm.sh/docs/intro/install), or name it: \
                           export RAILWRIGHT_HELM=/path/to/helm";
            return Err(HelmCallError::NoHelm(
                format!("there is no helm on this machine; {install}").into(),
            ));
        };
        let program = Program::new(path.display().to_string()).arguments([
            "version",
            "--template",
            "{{.Version}}",
        ]);
        let said = run_helm_program(&program, b"", QUESTION, &Redaction::default())
            .await
            .map_err(|failed| match failed {
                HelmCallError::Local(reason) => HelmCallError::NoHelm(
                    format!("{} does not start: {reason}", path.display()).into(),
                ),
                other => other,
            })?;
        let version = one_line(said.out.trim(), 40);
        match parse_helm_version(&version) {
            Some(found) if found >= OLDEST => Ok(HelmProgram {
                path,
                major: found.0,
            }),
            _ => Err(HelmCallError::NoHelm(
                format!(
                    "{} is {version}; v{}.{}.{} or newer is needed",
                    path.display(),
                    OLDEST.0,
                    OLDEST.1,
                    OLDEST.2
                )
                .into(),
            )),
        }
    }

    /// A call about the cluster, which helm finds in the kubeconfig by itself: by the context that
    /// this command began with, where that leads to the same server still.
    pub async fn call(
        &self,
        program: &HelmProgram,
        words: &[String],
        input: &[u8],
        limit: Duration,
    ) -> Result<HelmOutput, HelmCallError> {
        let selected = PINS
            .select_config(&self.access)
            .map_err(HelmCallError::Local)?;
        let mut call = self.quiet(program)?.arguments(words.iter().cloned());
        for (variable, name) in [
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_REPOSITORY_CONFIG", "config/repositories.yaml"),
        ] {
            let path = self.home()?.join(name);
            call = call.environment(variable, path.display().to_string());
        }
        if let Some(kubeconfig) = &self.access.kubeconfig {
            call = call.argument(format!("--kubeconfig={kubeconfig}"));
        }
        if let Some(context) = &selected.context {
            call = call.argument(format!("--kube-context={context}"));
        }
        run_helm_program(&call, input, limit, &self.credentials.redaction()).await
    }

    fn quiet(&self, program: &HelmProgram) -> Result<Program, HelmCallError> {
        let mut call = Program::new(program.path.display().to_string());
        for (variable, name) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_DATA_HOME", "data"),
            ("HELM_PLUGINS", "data/plugins"),
            ("HELM_REPOSITORY_CACHE", "cache/repository"),
            ("KUBECACHEDIR", "kube"),
        ] {
            let path = self.home()?.join(name);
            call = call.environment(variable, path.display().to_string());
        }
        for variable in ELSEWHERE {
            call = call.environment(variable, "");
        }
        Ok(call)
    }

    /// The folder of our own, made when it is first needed.
    pub fn home(&self) -> Result<&Path, HelmCallError> {
        if self.home.get().is_none() {
            let made = files::temporary_folder("railwright-helm").map_err(|error| {
                HelmCallError::Local(format!("a folder for helm: {error}").into())
            })?;
            if let Err(second) = self.home.set(made) {
                let _ = files::remove_path(&second);
            }
        }
        self.home
            .get()
            .map(PathBuf::as_path)
            .ok_or_else(|| HelmCallError::Local("no folder for helm".into()))
    }

    /// The chart of a release on this machine, fetched where it has to be. The bytes that were
    /// looked at are those that are used.
    pub async fn chart(
        &self,
        program: &HelmProgram,
        release: &Release,
    ) -> Result<Chart, HelmCallError> {
        let path = match release.is_fetched() {
            true => match self.pulled(program, release).await? {
                Ok(path) => path,
                Err(reason) => return Ok(Chart::Unknown(reason.to_string())),
            },
            false => PathBuf::from(resolve_spec_path(
                &release.chart,
                &self.access.folder,
                environment::find_home_folder().as_deref(),
            )),
        };
        if !files::is_present(&path) {
            return Ok(Chart::Another(format!(
                "the chart {} is not there",
                path.display()
            )));
        }
        if !path.is_dir() && !path.is_file() {
            return Ok(Chart::Another(format!(
                "the chart {} is neither a folder nor an ordinary file",
                path.display()
            )));
        }
        let digest = match digest_of(&path) {
            Ok(digest) => digest,
            Err(error) => {
                return Ok(Chart::Unknown(format!(
                    "the chart {}: {error}",
                    path.display()
                )));
            }
        };
        match &release.digest {
            Some(_) if path.is_dir() => Ok(Chart::Another(format!(
                "{} is a folder, which has no digest: name the archive that `helm package` makes \
                 of it",
                path.display()
            ))),
            Some(desired) if desired != digest.as_str() => Ok(Chart::Another(format!(
                "the chart {} has the digest {digest} and not {desired}: it is another one than was \
                 looked at, and nothing of it is used",
                one_line(&release.chart, 200)
            ))),
            _ => Ok(Chart::Here { path, digest }),
        }
    }

    async fn pulled(
        &self,
        program: &HelmProgram,
        release: &Release,
    ) -> Result<Result<PathBuf, Reason>, HelmCallError> {
        let into = self
            .home()?
            .join(format!("chart-{}", Digest::of(release).short()));
        files::remove_path(&into)
            .and_then(|()| files::make_private_folder(&into))
            .map_err(|error| HelmCallError::Local(error.to_string().into()))?;
        let mut call = self
            .quiet(program)?
            .arguments(["pull", &release.chart])
            .argument(format!("--destination={}", into.display()));
        if let Some(version) = &release.version {
            call = call.argument(format!("--version={version}"));
        }
        if let Some(repository) = &release.repository {
            call = call.argument(format!("--repo={repository}"));
        }
        let said = run_helm_program(&call, b"", QUESTION, &Redaction::default()).await?;
        if !said.well {
            return Ok(Err(format!(
                "the chart {} could not be fetched: {}",
                one_line(&release.chart, 200),
                said.complaint
            )
            .into()));
        }
        let names = files::names_in(&into).unwrap_or_default();
        match names.iter().find(|name| name.ends_with(".tgz")) {
            Some(name) => Ok(Ok(into.join(name))),
            None => Ok(Err(format!(
                "`helm pull {}` brought no archive",
                one_line(&release.chart, 200)
            )
            .into())),
        }
    }
}

impl Drop for Helm {
    fn drop(&mut self) {
        if let Some(home) = self.home.get() {
            let _ = files::remove_path(home);
        }
    }
}

/// What it complains of is told without these secrets.
async fn run_helm_program(
    program: &Program,
    input: &[u8],
    limit: Duration,
    redaction: &Redaction,
) -> Result<HelmOutput, HelmCallError> {
    let bounds = Bounds {
        output: OUTPUT_LIMIT_BYTES,
        error: ERROR_LIMIT_BYTES,
        total: OUTPUT_LIMIT_BYTES + (1 << 20),
        limit,
    };
    match fed::run_program(program, input, bounds).await {
        Err(error) => Err(HelmCallError::Local(error.to_string().into())),
        Ok((fed::FedProgramEnding::TimedOut, ..)) => Err(HelmCallError::TimedOut(limit)),
        Ok((fed::FedProgramEnding::TooMuch, ..)) => Err(HelmCallError::Local(
            "helm said more than is taken of it".into(),
        )),
        Ok((fed::FedProgramEnding::Ended(status), out, error)) => {
            // Before any of it is cut off.
            let said = redaction.apply(&error.text());
            Ok(HelmOutput {
                well: status.success(),
                out: out.text(),
                complaint: extract_helm_error(&said),
            })
        }
    }
}

/// What ended a call: warnings come first, and after it only what is logged. The log is left out,
/// but for why a release was not deleted.
fn extract_helm_error(said: &str) -> String {
    let ended = said.rsplit_once("Error: ").map_or(said, |(_, last)| last);
    let ended: Vec<&str> = ended.lines().take_while(|line| !is_logged(line)).collect();
    let ended = one_line(&ended.join("\n"), 600);
    for line in said.lines().filter(|line| is_logged(line)) {
        let Some(why) = find_logged_reason(line) else {
            continue;
        };
        if !why.is_empty() && !ended.contains(&why) {
            return format!("{ended}: {}", one_line(&why, 1200));
        }
    }
    ended
}

fn is_logged(line: &str) -> bool {
    LOGGED.iter().any(|mark| line.contains(mark))
}

/// What a line of the log gives as the reason. Helm 4 writes it in quotes, as `error="..."`.
fn find_logged_reason(line: &str) -> Option<String> {
    let at = line.to_ascii_lowercase().find(REASONS)? + REASONS.len();
    let why = line.get(at..)?;
    let quoted = why.split_once("error=").map(|(_, quoted)| quoted);
    let unquoted = quoted.and_then(|quoted| {
        let mut texts = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
        texts.next()?.ok()
    });
    let why = unquoted.as_deref().or(quoted).unwrap_or(why);
    let is_around = |c: char| !c.is_alphanumeric() && c != '"';
    Some(why.trim_matches(is_around).to_owned())
}

/// `v3.14.2` as `(3, 14, 2)`.
fn parse_helm_version(version: &str) -> Option<(u32, u32, u32)> {
    let parts = version.strip_prefix('v')?.split(['.', '-', '+']);
    let mut numbers = parts.map(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next()??, numbers.next()??);
    Some((major, minor, numbers.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::{Credentials, Helm, HelmCallError, HelmProgram, QUESTION, parse_helm_version};
    use crate::ClusterAccess;
    use std::sync::Arc;

    /// Also where the spec names none; `echo` says what it is told.
    #[tokio::test]
    async fn helm_is_told_the_context_that_the_command_began_with() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let write = |current: &str, server: &str| {
            let text = format!(
                "current-context: {current}\n\
                 clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
                 contexts: [{{name: one, context: {{cluster: c}}}}, {{name: two}}]\n"
            );
            std::fs::write(&file, text).unwrap();
        };
        let access = ClusterAccess {
            kubeconfig: Some(file.display().to_string()),
            ..ClusterAccess::default()
        };
        let helm = Helm::new(access, Arc::new(Credentials::new(Default::default())));
        let echo = HelmProgram {
            path: "/bin/echo".into(),
            major: 4,
        };
        let words = ["uninstall".to_owned()];
        let call = async || helm.call(&echo, &words, b"", QUESTION).await;
        let told = format!(
            "uninstall --kubeconfig={} --kube-context=one\n",
            file.display()
        );
        for current in ["one", "two"] {
            write(current, "https://a");
            assert_eq!(call().await.unwrap().out, told, "{current}");
        }
        write("one", "https://b");
        let refused = call().await.err();
        assert!(
            matches!(&refused, Some(HelmCallError::Local(reason)) if reason.as_words().contains("leads to b:443")),
            "{refused:?}"
        );
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(
            ["v3.14.2", "v4.0.0-rc.1", "v3.20"].map(parse_helm_version),
            [Some((3, 14, 2)), Some((4, 0, 0)), Some((3, 20, 0))]
        );
        assert_eq!(
            ["3.14.2", "v3", "", "vx.y"].map(parse_helm_version),
            [None; 4]
        );
    }

    /// Of Helm 3, and of Helm 4.
    #[test]
    fn what_keeps_a_release_is_told_from_the_log() {
        for line in [
            r#"uninstall.go:119: 2026-01-02 03:04:05 [debug] uninstall: Failed to delete release: [failed calling webhook "keeps": refused]"#,
            r#"level=DEBUG msg="uninstall: Failed to delete release" error="[failed calling webhook \"keeps\": refused]""#,
        ] {
            let said = format!("{line}\nError: failed to delete release: rails\n");
            assert_eq!(
                super::extract_helm_error(&said),
                r#"failed to delete release: rails: failed calling webhook "keeps": refused"#
            );
        }
    }
}
