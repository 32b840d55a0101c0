//! Inspects an image that somebody unpacked into a folder of this machine.

use super::ImageRequirements;
use super::machine::{self, FIRST};
use super::seen::{DRIVERS, ImageContents, LIBC, NAME, PROGRAMS, VERBS, folder_of, join_path};
use railwright_system::rooted::RootedFolder;
use std::collections::BTreeSet;
use std::io;

/// What is read of a file of settings.
const SETTINGS: u64 = 64 << 10;
/// What is read of a libibverbs, which has some hundred KiB, and of a cache, which has some hundred
/// KiB with CUDA.
const LIBRARY: u64 = 16 << 20;
/// Names in a folder of settings.
const NAMES: usize = 1000;
/// Names in a folder of libraries, of which a large image has some thousands.
const LIBRARIES: usize = 100_000;
/// Folders that configurations name.
const FOLDERS: usize = 256;

/// What is there of it. A tree that leads farther than an image does is an error that says where it
/// ends, and nothing is checked of it.
pub fn inspect_root(root: &RootedFolder, desired: &ImageRequirements) -> io::Result<ImageContents> {
    let mut seen = ImageContents {
        of_configuration: read_configured_folders(root)?,
        distribution: read_distribution(root)?,
        ..ImageContents::default()
    };
    let folders: BTreeSet<String> = seen.every_folder().into_iter().collect();
    for path in PROGRAMS {
        record_file_head(root, &mut seen, path)?;
    }
    for folder in machine::list_all_standard_folders() {
        record_file_head(root, &mut seen, &join_path(&folder, LIBC))?;
    }
    for folder in &folders {
        for library in &desired.libraries {
            record_file_head(root, &mut seen, &join_path(folder, library))?;
        }
        let verbs = join_path(folder, VERBS);
        if seen.files.contains_key(&verbs) && desired.libraries.iter().any(|name| name == VERBS) {
            record_verbs_paths(root, &mut seen, desired, &verbs)?;
        }
        record_providers(root, &mut seen, desired, &join_path(folder, "libibverbs"))?;
        record_providers(root, &mut seen, desired, folder)?;
    }
    let mut settings = BTreeSet::from([DRIVERS.to_owned()]);
    settings.extend(seen.driver_folders.values().cloned());
    for folder in settings {
        record_driver_names(root, &mut seen, &folder)?;
    }
    seen.cache = read_loader_cache(root, desired)?;
    Ok(seen)
}

/// Records where a libibverbs looks for names of drivers and for files of providers, as its own
/// bytes say it, and the files of desired providers that are there.
fn record_verbs_paths(
    root: &RootedFolder,
    seen: &mut ImageContents,
    desired: &ImageRequirements,
    verbs: &str,
) -> io::Result<()> {
    let bytes = read_whole_file(root, verbs, LIBRARY)?.unwrap_or_default();
    if let Some(names) = find_path_in_bytes(&bytes, |text| text.ends_with("/libibverbs.d")) {
        seen.driver_folders
            .insert(verbs.to_owned(), names.to_owned());
    }
    let Some(pattern) = find_path_in_bytes(&bytes, is_pattern) else {
        return Ok(());
    };
    seen.patterns.insert(verbs.to_owned(), pattern.to_owned());
    for provider in &desired.providers {
        record_file_head(root, seen, &pattern.replacen(NAME, provider, 1))?;
    }
    Ok(())
}

/// Records the files of desired providers that a folder holds.
fn record_providers(
    root: &RootedFolder,
    seen: &mut ImageContents,
    desired: &ImageRequirements,
    folder: &str,
) -> io::Result<()> {
    for name in root.names(folder, LIBRARIES)? {
        let mut providers = desired.providers.iter();
        if providers.any(|provider| is_of_provider(&name, provider)) {
            record_file_head(root, seen, &join_path(folder, &name))?;
        }
    }
    Ok(())
}

/// Records the drivers that the files of a folder of settings name.
fn record_driver_names(
    root: &RootedFolder,
    seen: &mut ImageContents,
    folder: &str,
) -> io::Result<()> {
    for name in root.names(folder, NAMES)? {
        let text = root
            .beginning(&join_path(folder, &name), 4096)?
            .unwrap_or_default();
        // A carriage return is a part of the name to libibverbs.
        for line in String::from_utf8_lossy(&text).split('\n') {
            if let Some(driver) = parse_driver_line(line) {
                let drivers = seen.drivers.entry(folder.to_owned()).or_default();
                drivers.insert(driver.to_owned());
            }
        }
    }
    Ok(())
}

/// Paths of desired libraries in the loader's cache; nothing where there is no cache.
fn read_loader_cache(
    root: &RootedFolder,
    desired: &ImageRequirements,
) -> io::Result<Option<BTreeSet<String>>> {
    let Some(cache) = read_whole_file(root, "/etc/ld.so.cache", LIBRARY)? else {
        return Ok(None);
    };
    let endings: Vec<String> = desired
        .libraries
        .iter()
        .map(|name| format!("/{name}"))
        .collect();
    let mut paths = BTreeSet::new();
    for text in find_printable_runs(&cache) {
        if text.starts_with('/') && endings.iter().any(|ending| text.ends_with(ending)) {
            paths.insert(text.to_owned());
        }
    }
    Ok(Some(paths))
}

fn record_file_head(root: &RootedFolder, seen: &mut ImageContents, path: &str) -> io::Result<()> {
    if let Some(first) = root.beginning(path, FIRST)? {
        seen.files.insert(path.to_owned(), first);
    }
    Ok(())
}

/// A file that has to be read to its end to say anything.
fn read_whole_file(root: &RootedFolder, path: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let bytes = root.beginning(path, limit + 1)?;
    if let Some(bytes) = &bytes
        && bytes.len() as u64 > limit
    {
        return Err(io::Error::other(format!(
            "{path} has more than {} KiB",
            limit >> 10
        )));
    }
    Ok(bytes)
}

/// Words of ID and ID_LIKE (os-release(5): the first of two files that is there).
fn read_distribution(root: &RootedFolder) -> io::Result<Vec<String>> {
    let mut words = Vec::new();
    for path in ["/etc/os-release", "/usr/lib/os-release"] {
        let Some(text) = read_whole_file(root, path, SETTINGS)? else {
            continue;
        };
        for line in String::from_utf8_lossy(&text).lines() {
            words.extend(machine::parse_distribution_words(line));
        }
        break;
    }
    Ok(words)
}

/// The folders that /etc/ld.so.conf names, and the files that it includes on every distribution.
fn read_configured_folders(root: &RootedFolder) -> io::Result<Vec<String>> {
    let mut files = vec!["/etc/ld.so.conf".to_owned()];
    for name in root.names("/etc/ld.so.conf.d", NAMES)? {
        if name.ends_with(".conf") {
            files.push(join_path("/etc/ld.so.conf.d", &name));
        }
    }
    let mut folders = Vec::new();
    for file in files {
        let text = read_whole_file(root, &file, SETTINGS)?.unwrap_or_default();
        for folder in String::from_utf8_lossy(&text).lines().filter_map(folder_of) {
            let folder = folder.split_whitespace().next().unwrap_or_default();
            folders.push(folder.trim_end_matches('/').to_owned());
        }
    }
    if folders.len() > FOLDERS {
        return Err(io::Error::other(format!(
            "/etc/ld.so.conf and what it includes name more than {FOLDERS} folders"
        )));
    }
    Ok(folders)
}

/// Runs of bytes that can be seen, as `strings` shows them.
fn find_printable_runs(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let runs = bytes.split(|byte| !(0x21..=0x7e).contains(byte));
    runs.filter_map(parse_printable_run)
}

fn parse_printable_run(run: &[u8]) -> Option<&str> {
    if run.len() <= 4 || run.len() >= 4096 {
        return None;
    }
    std::str::from_utf8(run).ok()
}

/// The first path in a file's bytes that is as it has to be.
fn find_path_in_bytes(bytes: &[u8], is_so: fn(&str) -> bool) -> Option<&str> {
    for run in find_printable_runs(bytes) {
        let Some(start) = run.find('/') else {
            continue;
        };
        if is_so(&run[start..]) {
            return Some(&run[start..]);
        }
    }
    None
}

/// `/usr/lib/x86_64-linux-gnu/libibverbs/lib%s-rdmav34.so`.
fn is_pattern(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("/lib%s-rdmav") else {
        return false;
    };
    rest.strip_suffix(".so").is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `libmlx5-rdmav34.so` is a provider's.
fn is_of_provider(name: &str, provider: &str) -> bool {
    match name.strip_prefix(&format!("lib{provider}-rdmav")) {
        Some(rest) => rest.ends_with(".so"),
        None => false,
    }
}

/// `driver mlx5` (linux-rdma/rdma-core: libibverbs/dynamic_driver.c, `read_config_file`).
fn parse_driver_line(line: &str) -> Option<&str> {
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    if words.next() != Some("driver") {
        return None;
    }
    words.next()
}
