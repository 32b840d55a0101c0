//! Kubeconfig files: which of them count, and what they hold together.

use super::credentials::read_credential_file;
use crate::ClusterAccess;
use kube::config::{Kubeconfig, KubeconfigError};
use railwright_system::environment;
use std::path::{Path, PathBuf};

/// The kubeconfig that is named, or the usual ones, with its name; nothing where there is none.
pub fn find_kubeconfig(cluster: &ClusterAccess) -> Option<(Result<Kubeconfig, String>, String)> {
    let read = |path: &Path| (read_file(path), path.display().to_string());
    if let Some(path) = &cluster.kubeconfig {
        return Some(read(Path::new(path)));
    }
    if let Some(paths) = environment::read_variable("KUBECONFIG") {
        return Some((read_list(&paths), paths));
    }
    let usual = environment::find_home_folder()?.join(".kube/config");
    usual.exists().then(|| read(&usual))
}

/// What the files of a list hold together. kubectl passes over those that are not there, and over
/// no others (kubernetes/client-go: clientcmd/loader.go, Load).
fn read_list(paths: &str) -> Result<Kubeconfig, String> {
    let named: Vec<PathBuf> = std::env::split_paths(paths)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    let is_missing = |path: &PathBuf| {
        std::fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let none = named.iter().all(is_missing);
    let mut there = named.iter().filter(|path| none || !is_missing(path));
    there.try_fold(Kubeconfig::default(), |merged, path| {
        merged
            .merge(read_file(path)?)
            .map_err(|error| describe_error(&error, paths))
    })
}

/// What one file holds. The library would read it without end, and again; paths in it are relative
/// to its folder.
fn read_file(path: &Path) -> Result<Kubeconfig, String> {
    let file = path.display().to_string();
    let text = decode_text(&read_credential_file(path)?)
        .ok_or_else(|| format!("{file} is no kubeconfig: it is no text"))?;
    let mut kubeconfig =
        Kubeconfig::from_yaml(&text).map_err(|error| describe_error(&error, &file))?;
    let absolute = |named: &mut Option<String>| {
        let below = path
            .parent()
            .zip(named.as_ref().filter(|named| !named.is_empty()))
            .map(|(folder, named)| folder.join(named));
        *named = below
            .map(|path| path.display().to_string())
            .or_else(|| named.take());
    };
    for cluster in kubeconfig
        .clusters
        .iter_mut()
        .filter_map(|named| named.cluster.as_mut())
    {
        absolute(&mut cluster.certificate_authority);
    }
    for user in kubeconfig
        .auth_infos
        .iter_mut()
        .filter_map(|named| named.auth_info.as_mut())
    {
        [
            &mut user.client_certificate,
            &mut user.client_key,
            &mut user.token_file,
        ]
        .into_iter()
        .for_each(absolute);
        // A plugin's name without a slash is looked for in PATH.
        if let Some(exec) = user.exec.as_mut().filter(|exec| {
            exec.command
                .as_ref()
                .is_some_and(|command| command.contains('/'))
        }) {
            absolute(&mut exec.command);
        }
    }
    Ok(kubeconfig)
}

/// In UTF-8, or in UTF-16 as a byte order mark says.
fn decode_text(bytes: &[u8]) -> Option<String> {
    let utf16 = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest
            .chunks_exact(2)
            .map(|pair| unit([pair[0], pair[1]]))
            .collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
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
}
