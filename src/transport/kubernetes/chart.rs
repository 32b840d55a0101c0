//! The digest of a chart as it lies on this machine: of an archive that of its bytes, of a folder
//! that of every file in it with its place. Helm follows links in a folder, and so does this.

use railwright_base::Digest;
use railwright_system::{files, folder};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const LIMIT_BYTES: u64 = 64 << 20;
const FILES_MAX: usize = 10_000;

/// The digest of the archive or folder.
pub fn digest_of(chart: &Path) -> io::Result<Digest> {
    if !folder::is_folder(chart) {
        return Ok(Digest::of_bytes(&files::read_ordinary(chart, LIMIT_BYTES)?));
    }
    let (mut folders, mut found, mut left) = (vec![chart.to_owned()], BTreeMap::new(), LIMIT_BYTES);
    while let Some(folder) = folders.pop() {
        for (path, _) in folder::own_entries(&folder)? {
            if folder::is_folder(&path) {
                folders.push(path);
            } else {
                // Helm refuses what is no ordinary file, where it does not ignore it.
                let bytes = if folder::is_file(&path) {
                    files::read_ordinary(&path, left)?
                } else {
                    Vec::new()
                };
                left -= bytes.len() as u64;
                let place = path
                    .strip_prefix(chart)
                    .unwrap_or(&path)
                    .as_os_str()
                    .as_encoded_bytes()
                    .to_vec();
                found.insert(place, Digest::of_bytes(&bytes));
            }
            if found.len() + folders.len() > FILES_MAX {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("it has more than {FILES_MAX} files"),
                ));
            }
        }
    }
    Ok(Digest::of(&found.into_iter().collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_file_of_a_chart_counts_and_its_place() {
        let room = tempfile::tempdir().unwrap();
        let at = |path: &str| room.path().join(path);
        fs::create_dir_all(at("c/templates")).unwrap();
        fs::write(at("c/Chart.yaml"), "a").unwrap();
        fs::write(at("hook.yaml"), "one").unwrap();
        std::os::unix::fs::symlink(at("hook.yaml"), at("c/templates/hook.yaml")).unwrap();
        std::os::unix::fs::symlink(at("c"), at("c/again")).unwrap();
        let mut seen = vec![digest_of(&at("c")).unwrap()];
        assert_eq!(digest_of(&at("c")).unwrap(), seen[0]);
        fs::write(at("hook.yaml"), "EVIL").unwrap();
        seen.push(digest_of(&at("c")).unwrap());
        fs::create_dir(at("c/crds")).unwrap();
        fs::write(at("c/crds/a.yaml"), "").unwrap();
        seen.push(digest_of(&at("c")).unwrap());
        fs::rename(at("c/crds"), at("c/templates/crds")).unwrap();
        seen.push(digest_of(&at("c")).unwrap());
        assert!(
            (1..seen.len()).all(|n| !seen[..n].contains(&seen[n])),
            "{seen:?}"
        );
        assert_eq!(
            digest_of(&at("hook.yaml")).unwrap(),
            Digest::of_bytes(b"EVIL")
        );
    }
}
