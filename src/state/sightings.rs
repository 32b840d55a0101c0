//! `drift.json`: since when each finding of drift is there. It holds addresses and times, no
//! values, and is only a comfort: without it every comparison gives the same.

use super::folder::StateFolder;
use railwright_base::{Address, Diagnostic};
use railwright_resource::Plane;
use railwright_system::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// The format of the file; another major is refused.
const FORMAT_VERSION: &str = "1.0";
/// A finding is some 200 bytes; 10,000 hosts with 60 of them stay below it.
const LIMIT_BYTES: u64 = 1 << 30;
/// The file's name.
const FILE: &str = "drift.json";

/// When a finding was seen first and last, RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// First, without a look since that did not see it.
    pub first_seen: String,
    /// Last.
    pub last_seen: String,
}

/// All findings that are remembered, by attribute and plane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sightings {
    /// The address holds the attribute.
    pub by_attribute: BTreeMap<(Address, Plane), Sighting>,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct SightingLine {
    address: Address,
    plane: Plane,
    #[serde(flatten)]
    sighting: Sighting,
}

#[derive(Serialize, Deserialize)]
struct SightingsDocument {
    format_version: String,
    findings: Vec<SightingLine>,
}

impl Sightings {
    /// Reads them; none when there is no file yet.
    pub fn load(folder: &StateFolder) -> Result<Sightings, Diagnostic> {
        let bytes = match folder.read(FILE, LIMIT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Sightings::default());
            }
            Err(error) => return Err(warn_unusable_file(folder, &error.to_string())),
        };
        let document: SightingsDocument = serde_json::from_slice(&bytes)
            .map_err(|error| warn_unusable_file(folder, &error.to_string()))?;
        if document.format_version.split('.').next() != FORMAT_VERSION.split('.').next() {
            return Err(warn_unusable_file(
                folder,
                &format!(
                    "it has format {}, this railwright reads {FORMAT_VERSION}",
                    document.format_version
                ),
            ));
        }
        let by_attribute = document
            .findings
            .into_iter()
            .map(|line| ((line.address, line.plane), line.sighting))
            .collect();
        Ok(Sightings { by_attribute })
    }

    /// Writes them: the old file or the new one is there, never a part.
    pub fn store(&self, folder: &StateFolder) -> Result<(), Diagnostic> {
        folder
            .prepare()
            .map_err(|problem| warn_unusable_file(folder, &problem.message))?;
        self.write_file(folder)
            .map_err(|error| warn_unusable_file(folder, &error.to_string()))
    }

    fn write_file(&self, folder: &StateFolder) -> io::Result<()> {
        let mut findings = Vec::new();
        for ((address, plane), sighting) in &self.by_attribute {
            findings.push(SightingLine {
                address: address.clone(),
                plane: *plane,
                sighting: sighting.clone(),
            });
        }
        let document = SightingsDocument {
            format_version: FORMAT_VERSION.to_owned(),
            findings,
        };
        let text = serde_json::to_string_pretty(&document)?;
        files::write_atomic(&folder.path().join(FILE), text.as_bytes(), 0o600)
    }
}

fn warn_unusable_file(folder: &StateFolder, why: &str) -> Diagnostic {
    Diagnostic::warning(
        "RW0501",
        format!(
            "since when a finding is there is not known: {}",
            railwright_base::text::one_line(why, 160)
        ),
    )
    .on(folder.path().join(FILE).display().to_string())
    .effect("the findings are right; only their ages are left out")
    .state("nothing was changed")
    .next(
        "let the state folder be written to; a file that cannot be read may be removed: ages then \
         begin anew",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sightings() -> Sightings {
        let key = (
            "host/n1/file/%2Fetc%2Fx#content".parse().unwrap(),
            Plane::Persisted,
        );
        let sighting = Sighting {
            first_seen: "2026-01-01T00:00:00Z".into(),
            last_seen: "2026-01-01T03:00:00Z".into(),
        };
        Sightings {
            by_attribute: [(key, sighting)].into(),
        }
    }

    #[test]
    fn what_was_stored_is_read_and_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(root.path().join("state"));
        assert_eq!(Sightings::load(&folder).unwrap(), Sightings::default());
        assert!(!folder.path().exists(), "asking makes nothing");
        sightings().store(&folder).unwrap();
        assert_eq!(Sightings::load(&folder).unwrap(), sightings());
        assert_eq!(
            std::fs::metadata(folder.path().join(FILE))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_told() {
        let root = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(root.path());
        for text in [
            "",
            "{}",
            "{\"format_version\":\"2.0\",\"findings\":[]}",
            "\u{1b}[31m",
        ] {
            std::fs::write(root.path().join(FILE), text).unwrap();
            let problem = Sightings::load(&folder).unwrap_err();
            assert!(
                problem.code == "RW0501" && !problem.message.contains('\u{1b}'),
                "{}",
                problem.message
            );
        }
    }
}
