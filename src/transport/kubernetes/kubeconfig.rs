//! Kubeconfig files: which of them count, and what they hold together.

use super::credentials::read_credential_file;
use crate::ClusterAccess;
use kube::config::{Kubeconfig, KubeconfigError};
use railwright_base::Reason;
use railwright_resource::helm_release::ambiguous_yaml::has_ambiguous_line_break;
use railwright_system::environment;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The kubeconfig that is named, or the usual ones, with its name; nothing where there is none.
pub fn find_kubeconfig(cluster: &ClusterAccess) -> Option<(Result<Kubeconfig, Reason>, String)> {
    if let Some(path) = &cluster.kubeconfig {
        return Some((read_file(Path::new(path)), path.clone()));
    }
    if let Some(paths) = environment::read_variable("KUBECONFIG") {
        return Some((read_list(&paths), paths));
    }
    let usual = environment::find_home_folder()?.join(".kube/config");
    usual
        .exists()
        .then(|| (read_file(&usual), usual.display().to_string()))
}

/// What the files of a list hold together. kubectl passes over those that are not there, and over
/// no others (kubernetes/client-go: clientcmd/loader.go, Load).
fn read_list(paths: &str) -> Result<Kubeconfig, Reason> {
    let named: Vec<PathBuf> = std::env::split_paths(paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    let none = named.iter().all(|path| is_missing(path));
    let mut merged = Kubeconfig::default();
    for path in &named {
        if none || !is_missing(path) {
            merged = merged
                .merge(read_file(path)?)
                .map_err(|error| describe_error(&error, paths))?;
        }
    }
    Ok(merged)
}

fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// What one file holds. The library would read it without end, and again; paths in it are relative
/// to its folder.
fn read_file(path: &Path) -> Result<Kubeconfig, Reason> {
    let file = path.display().to_string();
    let text = decode_text(&read_credential_file(path)?)
        .ok_or_else(|| format!("{file} is no kubeconfig: it is no text"))?;
    let mut kubeconfig =
        Kubeconfig::from_yaml(&text).map_err(|error| describe_error(&error, &file))?;
    refuse_two_readings(&text, &file)?;
    for named in &mut kubeconfig.clusters {
        if let Some(cluster) = &mut named.cluster {
            make_absolute(&mut cluster.certificate_authority, path);
        }
    }
    for named in &mut kubeconfig.auth_infos {
        let Some(user) = &mut named.auth_info else {
            continue;
        };
        make_absolute(&mut user.client_certificate, path);
        make_absolute(&mut user.client_key, path);
        make_absolute(&mut user.token_file, path);
        // A plugin's name without a slash is looked for in PATH.
        if let Some(exec) = &mut user.exec
            && exec
                .command
                .as_ref()
                .is_some_and(|command| command.contains('/'))
        {
            make_absolute(&mut exec.command, path);
        }
    }
    Ok(kubeconfig)
}

/// `helm` reads the file by itself, and could find another cluster in it: Go applies a merge key
/// where it stands, over the keys before it (sigs.k8s.io/yaml: goyaml.v2/decode.go, `mapping`),
/// takes the first document alone, and ends lines where YAML 1.2 does not.
fn refuse_two_readings(text: &str, file: &str) -> Result<(), Reason> {
    if has_ambiguous_line_break(text) {
        return Err(format!(
            "{file} holds a line break that is none to every reader of YAML (a carriage return \
             alone, U+0085, U+2028 or U+2029): end lines with a line feed"
        )
        .into());
    }
    let options = serde_yaml::options! { merge_keys: serde_yaml::MergeKeyPolicy::Error };
    match serde_yaml::from_multiple_with_options::<Value>(text, options) {
        Ok(documents) if documents.len() < 2 => Ok(()),
        Ok(_) => Err(format!(
            "{file} holds several documents, of which kubectl and helm read the first alone: \
             write one"
        )
        .into()),
        Err(error) => {
            let line = error.location().map(|at| format!(": line {}", at.line()));
            Err(format!(
                "{file} is not read identically by all readers of YAML{}; write it without `<<`",
                line.unwrap_or_default()
            )
            .into())
        }
    }
}

/// Makes absolute what a kubeconfig names relative to its own folder.
fn make_absolute(named: &mut Option<String>, kubeconfig: &Path) {
    if let (Some(folder), Some(path)) = (kubeconfig.parent(), named)
        && !path.is_empty()
    {
        *path = folder.join(path.as_str()).display().to_string();
    }
}

/// In UTF-8, or in UTF-16 as a byte order mark says.
fn decode_text(bytes: &[u8]) -> Option<String> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let pairs = bytes.chunks_exact(2);
    let units: Vec<u16> = pairs.map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16(&units).ok()
}

/// Never with the library's own words where those may quote the file.
pub fn describe_error(error: &KubeconfigError, file: &str) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) => format!("{}: {error}", path.display()),
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!(
                "{file} is no kubeconfig: line {} is not as it must be",
                at.line()
            ),
            None => format!("{file} is no kubeconfig"),
        },
        KubeconfigError::LoadClientCertificate(_) => {
            format!("the client certificate that {file} names cannot be read")
        }
        KubeconfigError::LoadClientKey(_) => {
            format!("the client key that {file} names cannot be read")
        }
        _ => format!("{file} cannot be used: its parts do not go together"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_list_only_files_that_are_not_there_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(
            at("lab"),
            "clusters: [{name: lab, cluster: {server: https://lab}}]",
        )
        .unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        let server = |first: &str| {
            read_list(&format!("{}:{}", at(first), at("lab"))).map(|all| all.clusters.len())
        };
        assert_eq!(server("missing"), Ok(1));
        for other in ["lab/below", "loop"] {
            assert!(server(other).is_err(), "{other}");
        }
        assert!(read_list(&format!("{}:{}", at("a"), at("b"))).is_err());
    }

    /// As in helm, down to each field: nothing of the second entry is added to the first.
    #[test]
    fn of_a_list_the_first_file_that_names_a_cluster_or_a_context_counts() {
        let folder = tempfile::tempdir().unwrap();
        let of = |n: u32, more: &str| {
            let path = folder.path().join(n.to_string()).display().to_string();
            let text = format!(
                "current-context: of-{n}\n\
                 clusters: [{{name: c, cluster: {{server: \"https://{n}\"{more}}}}}]\n\
                 contexts: [{{name: x, context: {{cluster: c, user: u-{n}}}}}]\n"
            );
            std::fs::write(&path, text).unwrap();
            path
        };
        let list = [of(1, ""), of(2, ", proxy-url: \"http://2\"")].join(":");
        let merged = read_list(&list).unwrap();
        let cluster = merged.clusters[0].cluster.clone().unwrap();
        let context = merged.contexts[0].context.clone().unwrap();
        assert_eq!(merged.current_context.as_deref(), Some("of-1"));
        assert_eq!(
            (cluster.server.as_deref(), cluster.proxy_url),
            (Some("https://1"), None)
        );
        assert_eq!(context.user.as_deref(), Some("u-1"));
    }

    #[test]
    fn what_helm_would_read_as_another_cluster_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_file(&path).map(|all| all.clusters.len())
        };
        let lab = "clusters:\n- name: lab\n  cluster:\n    server: https://lab\n";
        assert_eq!(read(lab), Ok(1));
        assert_eq!(read(&format!("---\n{lab}---\n")), Ok(1));
        assert_eq!(read(""), Ok(0));
        let merged = read(&format!("{lab}    <<: {{ server: https://other }}\n"));
        assert!(
            merged.is_err_and(
                |why| why.as_words().contains("line 5") && why.as_words().contains("`<<`")
            )
        );
        assert_eq!(read(&lab.replace('\n', "\r\n")), Ok(1));
        for end in ["\r", "\u{85}", "\u{2028}", "\u{2029}"] {
            let broken = read(&format!("{lab}    # x{end}    # server: https://other\n"));
            assert!(
                broken.is_err_and(|why| why.as_words().contains("line break")),
                "{end:?}"
            );
        }
        let second = read(&format!("kind: Config\n---\n{lab}"));
        assert!(second.is_err_and(|why| why.as_words().contains("several documents")));
    }
}
