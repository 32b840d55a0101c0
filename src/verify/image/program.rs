//! Inspects an image from within its pod by one program of sh: everything that it needs is in any
//! image with a shell, and nothing is written.
//!
//! It says what it finds in lines, `WORD REST`, from `begin` to `end`. What comes is anybody's: a
//! line that nobody knows, a number that is none or an end that is missing makes it no answer at
//! all.

use super::ImageRequirements;
use super::machine::{self, FIRST};
use super::seen::{DRIVERS, ImageContents, LIBC, NAME, PROGRAMS, PodSeen, VERBS, folder_of};
use railwright_base::Reason;
use railwright_base::quote::{quote_for_shell, sh_words};
use std::collections::BTreeSet;

/// Lines of an answer; folders and files together are some dozens.
const LINES_MAX: usize = 4000;

/// Its first line, in which a root other than `/` would stand.
pub const ROOT: &str = "R=''\n";

/// Its end: what only a pod has, which needs nothing of what is looked for.
const POD_FACTS: &str = r#"for f in "$R"/dev/infiniband/*; do
    [ -c "$f" ] && say device "c ${f##*/}" || { [ -e "$f" ] && say device "- ${f##*/}"; }
done
say limit "$(ulimit -l)"
while read -r k v; do [ "$k" = CapEff: ] && say capabilities "$v"; done </proc/self/status
say end 1
exit 0
"#;

/// The program.
pub fn build_inspection_script(desired: &ImageRequirements) -> String {
    [
        build_script_functions(desired),
        build_script_searches(desired),
        POD_FACTS.to_owned(),
    ]
    .concat()
}

/// The functions of sh that print what a folder holds of libraries, providers and names of drivers.
fn build_script_functions(desired: &ImageRequirements) -> String {
    let libraries = sh_words(desired.libraries.iter().map(String::as_str));
    let providers = sh_words(desired.providers.iter().map(String::as_str));
    let verbs = quote_for_shell(VERBS);
    format!(
        r#"{ROOT}LC_ALL=C; export LC_ALL
texts() {{ head -c 16777216 "$1" | tr '\000' '\n'; }}
say() {{ printf '%s %s\n' "$1" "$2"; }}
file() {{ [ -f "$R$1" ] && [ -r "$R$1" ] && say file "$(head -c {FIRST} "$R$1" | od -An -v -tx1 | tr -d ' \n') $1"; }}
look() {{
    for l in {libraries}; do
        file "$1/$l" || continue
        [ "$l" = {verbs} ] || continue
        p=$(texts "$R$1/$l" | grep -ao '/[!-~]*/lib%s-rdmav[0-9]*\.so' | head -n 1)
        [ -n "$p" ] && say pattern "$p $1/$l" && for d in {providers}; do file "${{p%%%s*}}$d${{p#*%s}}"; done
        texts "$R$1/$l" | grep -ao '/[!-~]*/libibverbs\.d' | head -n 1 | while read -r c; do say names "$c $1/$l"; names "$c"; done
    done
    for d in {providers}; do
        for f in "$R$1/libibverbs/lib$d"-rdmav*.so "$R$1/lib$d"-rdmav*.so; do file "${{f#"$R"}}"; done
    done
}}
names() {{
    for f in "$R$1"/*; do
        [ -f "$f" ] && [ -r "$f" ] && head -c 4096 "$f" | while read -r w n o || [ -n "$w" ]; do [ "$w" = driver ] && say driver "$n $1"; done
    done
}}
"#
    )
}

/// The searches in their order: distribution, programs, folders of the loader, and its cache.
fn build_script_searches(desired: &ImageRequirements) -> String {
    let folders = machine::list_all_standard_folders();
    let standard = sh_words(folders.iter().map(String::as_str));
    let (programs, libc) = (sh_words(PROGRAMS), quote_for_shell(LIBC));
    let (drivers, cached) = (quote_for_shell(DRIVERS), build_cache_patterns(desired));
    format!(
        r#"say begin 1
for f in /etc/os-release /usr/lib/os-release; do
    [ -f "$R$f" ] && [ -r "$R$f" ] || continue
    head -c 65536 "$R$f" | while IFS= read -r l || [ -n "$l" ]; do case $l in ID=*|ID_LIKE=*) say distribution "$l";; esac; done
    break
done
for f in {programs}; do file "$f"; done
e=$LD_LIBRARY_PATH:
while [ -n "$e" ]; do
    d=${{e%%:*}}; e=${{e#*:}}
    case $d in /*) d=${{d%/}}; say environment "$d"; look "$d";; esac
done
for f in "$R"/etc/ld.so.conf "$R"/etc/ld.so.conf.d/*.conf; do
    [ -f "$f" ] && [ -r "$f" ] && head -c 65536 "$f" | while read -r d o || [ -n "$d" ]; do
        case $d in /*) d=${{d%%#*}}; d=${{d%/}}; say configuration "$d"; look "$d";; esac
    done
done
for d in {standard}; do look "$d"; file "$d"/{libc}; done
names {drivers}
[ -f "$R/etc/ld.so.cache" ] && say cache '' && texts "$R/etc/ld.so.cache" | grep -ao {cached} | while read -r p; do say cached "$p"; done
"#
    )
}

/// Options of grep that find the desired libraries by their paths in the loader's cache.
fn build_cache_patterns(desired: &ImageRequirements) -> String {
    let mut options = Vec::new();
    for name in &desired.libraries {
        let pattern = format!("/[!-~]*/{}", name.replace('.', "\\."));
        options.push(format!("-e {}", quote_for_shell(&pattern)));
    }
    options.join(" ")
}

/// What it said, or why that is no answer.
pub fn parse_inspection_output(out: &str) -> Result<ImageContents, Reason> {
    let mut seen = ImageContents::default();
    let (mut pod, mut begun, mut ended) = (PodSeen::default(), false, false);
    for (n, line) in out.lines().enumerate() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if ended || n >= LINES_MAX || (n == 0) != (word == "begin") {
            return Err(format!("line {} of its output is none of the program's", n + 1).into());
        }
        let recorded = match word {
            "begin" => {
                begun = rest == "1";
                Some(())
            }
            "end" => {
                ended = rest == "1";
                Some(())
            }
            "device" | "limit" | "capabilities" => record_pod_line(&mut pod, word, rest),
            _ => record_image_line(&mut seen, word, rest),
        };
        if recorded.is_none() {
            return Err(format!("line {} of its output makes no sense", n + 1).into());
        }
    }
    match begun && ended {
        true => Ok(ImageContents {
            pod: Some(pod),
            ..seen
        }),
        false => Err("its output has no end".into()),
    }
}

/// Records a line about the image; nothing where the line makes no sense.
fn record_image_line(seen: &mut ImageContents, word: &str, rest: &str) -> Option<()> {
    match word {
        "environment" => seen.of_environment.push(rest.to_owned()),
        "configuration" => seen
            .of_configuration
            .extend(folder_of(rest).map(str::to_owned)),
        "file" => {
            let (first, path) = rest.split_once(' ')?;
            seen.files.insert(path.to_owned(), parse_hex_bytes(first)?);
        }
        "pattern" => {
            let (pattern, path) = rest.split_once(' ')?;
            if !pattern.contains(NAME) {
                return None;
            }
            seen.patterns.insert(path.to_owned(), pattern.to_owned());
        }
        "names" => {
            let (folder, path) = rest.split_once(' ')?;
            seen.driver_folders
                .insert(path.to_owned(), folder.to_owned());
        }
        "driver" => {
            let (driver, folder) = rest.split_once(' ')?;
            // A line without a name names none.
            if !driver.is_empty() {
                let drivers = seen.drivers.entry(folder.to_owned()).or_default();
                drivers.insert(driver.to_owned());
            }
        }
        "distribution" => seen
            .distribution
            .extend(machine::parse_distribution_words(rest)),
        "cache" => {
            seen.cache.get_or_insert_with(BTreeSet::new);
        }
        "cached" => {
            let cache = seen.cache.get_or_insert_with(BTreeSet::new);
            cache.insert(rest.to_owned());
        }
        _ => return None,
    }
    Some(())
}

/// Records a line about what only a pod has; nothing where the line makes no sense.
fn record_pod_line(pod: &mut PodSeen, word: &str, rest: &str) -> Option<()> {
    match word {
        "device" => {
            let (sort, name) = rest.split_once(' ')?;
            pod.devices.insert(name.to_owned(), sort == "c");
        }
        "limit" => rest.clone_into(&mut pod.memory_lock),
        "capabilities" => {
            pod.capabilities = Some(u64::from_str_radix(rest.trim(), 16).ok()?);
        }
        _ => return None,
    }
    Some(())
}

/// Bytes that `od` wrote; none of an empty file.
fn parse_hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2)
        || digits.len() > 64
        || !digits.iter().all(u8::is_ascii_hexdigit)
    {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
