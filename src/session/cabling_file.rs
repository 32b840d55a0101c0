//! The cabling file that a spec names: found below the inventory's folder, read, and added to the
//! spec.

use super::inventory::resolve_inventory_path;
use super::inventory_file::{self, NotOpened};
use super::missing_files::private_files;
use railwright_base::text::clean_line;
use railwright_knowledge::spec::{LoadedSpec, Problems, SourceFile, cabling};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Where a cabling file lies.
struct CablingFile<'a> {
    /// The inventory's folder, as it was given.
    shown: &'a str,
    /// The inventory's folder, absolute and without links.
    folder: &'a Path,
    /// The absolute path of the file.
    path: String,
    /// The file as screens name it.
    name: String,
}

/// Why a cabling file is not read, as the rest of a sentence about it, and what to do.
struct UnreadableCabling {
    why: String,
    next: String,
}

impl UnreadableCabling {
    fn new(why: impl Into<String>, next: impl Into<String>) -> Self {
        UnreadableCabling {
            why: why.into(),
            next: next.into(),
        }
    }
}

/// Adds the cabling file that the spec names, if it names one.
pub(crate) fn add_cabling(
    shown: &str,
    folder: &Path,
    loaded: LoadedSpec,
) -> Result<LoadedSpec, Problems> {
    let Some(named) = loaded.spec.cabling.clone() else {
        return Ok(loaded);
    };
    let file = CablingFile {
        shown,
        folder,
        path: resolve_inventory_path(folder, &named),
        name: format_cabling_name(shown, &named),
    };
    let text = file.check_path(&loaded).and_then(|()| file.read_text());
    match text {
        Ok(text) => cabling::load_cabling(
            loaded,
            SourceFile {
                name: file.name,
                text,
            },
        ),
        Err(UnreadableCabling { why, next }) => {
            Err(cabling::report_unreadable_cabling(loaded, &why, &next))
        }
    }
}

fn format_cabling_name(shown: &str, named: &str) -> String {
    if named.starts_with(['/', '~']) {
        return clean_line(named);
    }
    clean_line(&format!("{}/{named}", shown.trim_end_matches('/')))
}

impl CablingFile<'_> {
    /// Its lines are quoted where they are wrong, so no other file of the inventory may stand for
    /// it.
    fn check_path(&self, loaded: &LoadedSpec) -> Result<(), UnreadableCabling> {
        let Ok(below) = inventory_file::find_inventory_file(self.folder, &self.path) else {
            return Ok(());
        };
        let is_csv = |ending: &OsStr| ending.eq_ignore_ascii_case("csv");
        if !below.extension().is_some_and(is_csv) {
            return Err(UnreadableCabling::new(
                "is no file *.csv, so it is not read",
                "name the file that holds the cables `NAME.csv`",
            ));
        }
        for private in private_files(loaded) {
            let path = resolve_inventory_path(self.folder, &private);
            if inventory_file::find_inventory_file(self.folder, &path)
                .is_ok_and(|file| file == below)
            {
                return Err(UnreadableCabling::new(
                    "is named as a secret, so it is not read",
                    "name the file that holds the cables",
                ));
            }
        }
        Ok(())
    }

    fn read_text(&self) -> Result<String, UnreadableCabling> {
        let bytes =
            inventory_file::read_inventory_file(self.folder, &self.path, cabling::BYTES_MAX)
                .map_err(|error| self.explain_not_opened(error))?;
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            UnreadableCabling::new(
                format!("is not UTF-8 from byte {valid} on"),
                "save the file as UTF-8",
            )
        })
    }

    fn explain_not_opened(&self, error: NotOpened) -> UnreadableCabling {
        let copy =
            "copy it into the inventory, where its changes are reviewed with the rest of the spec";
        let error = match error {
            NotOpened::Outside => {
                let why = "lies outside of the inventory, so it is not read";
                return UnreadableCabling::new(why, copy);
            }
            NotOpened::Hidden => {
                return UnreadableCabling::new("is hidden, so it is not read", copy);
            }
            NotOpened::Unreadable(error) => error,
        };
        match error.kind() {
            io::ErrorKind::NotFound => {
                UnreadableCabling::new("is not there", self.suggest_discovery())
            }
            io::ErrorKind::InvalidInput => {
                UnreadableCabling::new("is no ordinary file", self.suggest_discovery())
            }
            io::ErrorKind::FileTooLarge => UnreadableCabling::new(
                format!("has more than {} MiB", cabling::BYTES_MAX >> 20),
                "fold its lines with node-sets, or split the cluster into several inventories",
            ),
            _ => {
                UnreadableCabling::new(format!("cannot be read: {error}"), "check its permissions")
            }
        }
    }

    /// What to do where the path leads to no ordinary file.
    fn suggest_discovery(&self) -> String {
        format!(
            "correct the path, which is relative to the inventory; or railwright discover cabling \
             {} -o {}",
            self.shown, self.name
        )
    }
}
