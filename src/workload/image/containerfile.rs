//! The file itself, with the reason of everything in it. The same request gives the same bytes.

use super::{RepositorySigningKey, Sound};
use railwright_base::quote::{quote_for_shell, sh_words};
use railwright_base::text::format_hex;
use railwright_knowledge::catalog::user_space::{AptRepository, ExampleEntry, UserSpaceEntry};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// Installs packages. Lists stay for what follows; `forget` ends them.
const INSTALL: &str = "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends";
const FORGET: &str = "rm -rf /var/lib/apt/lists/*";

/// The name of the stage whose release was looked at, where there is more than one stage.
const CHECKED: &str = "checked";
const EXAMPLE: &str = "example";

/// Writes it.
pub(super) fn write_containerfile(sound: &Sound<'_>) -> String {
    let mut file = ContainerfileText::default();
    write_header(&mut file, sound);
    match sound.example {
        None => file.line(&format!("FROM {}", sound.request.base)),
        Some(_) => file.line(&format!("FROM {} AS {CHECKED}", sound.request.base)),
    }
    write_release_check(&mut file, sound);
    if let Some(example) = sound.example {
        write_example_stage(&mut file, example);
        file.blank();
        file.line(&format!("FROM {CHECKED}"));
    }
    if let Some((repository, suite, key, path)) = sound.repository {
        write_apt_source(&mut file, repository, suite, key, path);
    }
    write_package_install(&mut file, sound);
    write_library_check(&mut file, sound.entry, &select_providers(sound));
    if let Some(example) = sound.example {
        write_example_copy(&mut file, example);
    }
    file.text
}

#[derive(Default)]
struct ContainerfileText {
    text: String,
}

impl ContainerfileText {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn why(&mut self, lines: &[&str]) {
        self.blank();
        lines
            .iter()
            .for_each(|line| self.line(&format!("# {line}")));
    }

    /// Commands of one layer; the first that fails ends the build.
    fn run<S: AsRef<str>>(&mut self, commands: &[S]) {
        let commands: Vec<&str> = std::iter::once("set -eu")
            .chain(commands.iter().map(AsRef::as_ref))
            .collect();
        self.line(&format!("RUN {}", commands.join("; \\\n    ")));
    }
}

fn select_providers<'a>(sound: &Sound<'a>) -> Vec<&'a str> {
    let drivers: Vec<&str> = sound.request.drivers.iter().map(String::as_str).collect();
    sound.entry.providers_of(&drivers)
}

fn write_header(file: &mut ContainerfileText, sound: &Sound<'_>) {
    file.line(
        "# Written by `railwright image render`: a base with the RDMA user space, without which \
         NCCL goes over TCP and says nothing.",
    );
    let context = sound
        .repository
        .map_or("any folder".to_owned(), |(.., path)| {
            format!("the folder that holds {path}")
        });
    file.line(&format!(
        "# Build it in {context}: docker build -f Containerfile -t NAME . (podman and buildah take \
         it, too)"
    ));
    if !sound.request.base.contains('@') {
        file.line(
            "# The base has no digest: NAME@sha256:... in its place builds the same image again, \
             whoever moves the tag.",
        );
    }
}

/// What ends a build with a message.
fn render_failure(what: &str) -> String {
    format!(
        "{{ echo {} >&2; exit 1; }}",
        quote_for_shell(&format!("railwright: {what}"))
    )
}

fn write_release_check(file: &mut ContainerfileText, sound: &Sound<'_>) {
    let suite = &sound.request.suite;
    file.why(&[
        "Packages are built for one release: on another their libraries are missing. So a base of \
         another one ends here.",
    ]);
    // The one message in which the shell fills something in; the suite is a word of small letters
    // and digits.
    let other = format!(
        "{{ echo \"railwright: the base is of ${{VERSION_CODENAME:-no named release}}, and this \
         file is for {suite}: render it with the base's --suite\" >&2; exit 1; }}"
    );
    let user =
        render_failure("the base runs as another user than root, who cannot install packages");
    let mut commands = vec![
        ". /etc/os-release".to_owned(),
        format!(
            "[ \"${{VERSION_CODENAME:-}}\" = {} ] || {other}",
            quote_for_shell(suite)
        ),
        format!("[ \"$(id -u)\" = 0 ] || {user}"),
    ];
    if sound.example.is_some() {
        commands.push(format!(
            "command -v pip >/dev/null || {}",
            render_failure("the base has no pip, which the example is installed with")
        ));
    }
    file.run(&commands);
}

/// The example in a stage of its own, so that the tools which fetch it stay out of the image.
fn write_example_stage(file: &mut ContainerfileText, example: &ExampleEntry) {
    file.blank();
    file.line(&format!(
        "# The example {}, in a stage of its own: what fetches it stays out of the image.",
        example.name
    ));
    file.line(&format!("FROM {CHECKED} AS {EXAMPLE}"));
    file.run(&[
        "apt-get update",
        &format!("{INSTALL} ca-certificates git wget"),
        FORGET,
    ]);
    file.line(&format!("WORKDIR {}", example.folder));
    file.why(&[
        "Data by checksum: a mirror that gives something else ends the build. Sums are of the \
         packed files.",
    ]);
    let folders: BTreeSet<&str> = example
        .files
        .iter()
        .filter_map(|data| Some(data.path.rsplit_once('/')?.0))
        .collect();
    let mut commands: Vec<String> = folders
        .into_iter()
        .map(|folder| format!("mkdir -p {}", quote_for_shell(folder)))
        .collect();
    for data in &example.files {
        let packed = format!("{}.gz", data.path);
        commands.push(format!(
            "wget -q -O {} {}",
            quote_for_shell(&packed),
            quote_for_shell(&data.url)
        ));
        commands.push(format_checksum_command(&data.sha256, &packed));
        commands.push(format!("gzip -d {}", quote_for_shell(&packed)));
    }
    file.run(&commands);
    let code = &example.code;
    file.why(&[
        "Code at its tag. A tag can be moved by its owner, unlike a commit: this is as much as its \
         maker fixes.",
    ]);
    let parent = code.at.rsplit_once('/').map_or(".", |(parent, _)| parent);
    file.run(&[
        format!(
            "git clone -q --depth 1 --branch {} {} /tmp/code",
            quote_for_shell(&code.tag),
            quote_for_shell(&code.url)
        ),
        format!("mkdir -p {}", quote_for_shell(parent)),
        format!(
            "mv {} {}",
            quote_for_shell(&format!("/tmp/code/{}", code.folder)),
            quote_for_shell(&code.at)
        ),
        "rm -rf /tmp/code".to_owned(),
    ]);
}

fn format_checksum_command(sha256: &str, path: &str) -> String {
    format!(
        "printf '%s  %s\\n' {} {} | sha256sum -c -",
        quote_for_shell(sha256),
        quote_for_shell(path)
    )
}

/// A repository that is not the distribution's: its key from the build's folder, trusted for this
/// repository alone.
fn write_apt_source(
    file: &mut ContainerfileText,
    repository: &AptRepository,
    suite: &str,
    key: &RepositorySigningKey,
    path: &str,
) {
    let name = &repository.name;
    let ring = format!("/etc/apt/keyrings/railwright-{name}.asc");
    file.why(&["The certificates by which apt knows the repository below; a bare base has none."]);
    file.run(&[
        "apt-get update",
        &format!("{INSTALL} ca-certificates"),
        FORGET,
    ]);
    file.why(&[
        &format!(
            "The key as it was when this was rendered, and no other. It is trusted for {} alone \
             (Signed-By);",
            repository.url
        ),
        "in trusted.gpg.d it could sign packages of every repository. Nothing is fetched and \
         handed to a shell or to gpg.",
    ]);
    file.line(&format!("COPY {path} {ring}"));
    let lines = [
        "Types: deb".to_owned(),
        format!("URIs: {}", repository.url),
        format!("Suites: {suite}"),
        format!("Components: {}", repository.components.join(" ")),
        format!("Signed-By: {ring}"),
    ];
    file.run(&[
        format_checksum_command(&format_hex(&Sha256::digest(key.text.as_bytes())), &ring),
        format!("chmod 0644 {}", quote_for_shell(&ring)),
        format!(
            "printf '%s\\n' {} >{}",
            sh_words(lines.iter().map(String::as_str)),
            quote_for_shell(&format!(
                "/etc/apt/sources.list.d/railwright-{name}.sources"
            ))
        ),
    ]);
}

fn write_package_install(file: &mut ContainerfileText, sound: &Sound<'_>) {
    let mut commands = Vec::new();
    match sound.repository {
        None => file.why(&[
            "libibverbs, its providers, librdmacm and `ibv_devinfo`, of the distribution itself: \
             programs load them at run time, so nothing",
            "is missed while an image is built, and none of them comes with CUDA or PyTorch.",
        ]),
        Some((repository, ..)) => {
            file.why(&[
                "libibverbs, its providers, librdmacm and `ibv_devinfo`, of that repository where \
                 the distribution has them as well: its own do not",
                "know the NIC, or know it by another driver. Programs load them at run time, so \
                 nothing is missed while an image is built.",
            ]);
            commands.push(format_apt_pin(repository, &sound.entry.packages));
        }
    }
    commands.push("apt-get update".to_owned());
    commands.push(format!(
        "{INSTALL} {}",
        sh_words(sound.entry.packages.iter().map(String::as_str))
    ));
    commands.push(FORGET.to_owned());
    file.run(&commands);
}

/// Prefers these packages of a repository by its host, as apt_preferences(5) has it: 990 goes
/// before the distribution's, and never down.
fn format_apt_pin(repository: &AptRepository, packages: &[String]) -> String {
    let host = repository
        .url
        .trim_start_matches("https://")
        .split('/')
        .next()
        .unwrap_or_default();
    let lines = [
        format!("Package: {}", packages.join(" ")),
        format!("Pin: origin \"{host}\""),
        "Pin-Priority: 990".to_owned(),
    ];
    let path = format!("/etc/apt/preferences.d/railwright-{}.pref", repository.name);
    format!(
        "printf '%s\\n' {} >{}",
        sh_words(lines.iter().map(String::as_str)),
        quote_for_shell(&path)
    )
}

/// What programs will load is looked for before the image is done: by what ldconfig found, and by
/// how libibverbs finds a provider (linux-rdma/rdma-core: libibverbs/dynamic_driver.c).
fn write_library_check(file: &mut ContainerfileText, entry: &UserSpaceEntry, providers: &[&str]) {
    file.why(&["What programs load is there: the same that `railwright image check` looks for."]);
    let mut commands = vec!["ldconfig".to_owned()];
    for library in &entry.libraries {
        commands.push(format!(
            "ldconfig -p | grep -F {} >/dev/null || {}",
            quote_for_shell(&format!("{library} (")),
            render_failure(&format!("{library} is not in the image"))
        ));
    }
    for provider in providers {
        let line = format!("driver {provider}");
        commands.push(format!(
            "cat /etc/libibverbs.d/* | grep -x {} >/dev/null || {}",
            quote_for_shell(&line),
            render_failure(&format!(
                "a line `{line}` of /etc/libibverbs.d is not in the image"
            ))
        ));
        let path = format!("/usr/lib/*/libibverbs/lib{provider}-rdmav*.so");
        commands.push(format!(
            "ls {path} >/dev/null || {}",
            render_failure(&format!("lib{provider}-rdmav*.so is not in the image"))
        ));
    }
    file.run(&commands);
}

fn write_example_copy(file: &mut ContainerfileText, example: &ExampleEntry) {
    let (folder, code) = (&example.folder, &example.code);
    file.why(&[
        "Data and code of the example; what its Python needs comes from PyPI, which decides what \
         comes with it.",
    ]);
    file.line(&format!("COPY --from={EXAMPLE} {folder} {folder}"));
    file.line(&format!("WORKDIR {folder}"));
    file.run(&[format!(
        "pip install --no-cache-dir -r {}",
        quote_for_shell(&format!("{folder}/{}/{}", code.at, code.requirements))
    )]);
}
