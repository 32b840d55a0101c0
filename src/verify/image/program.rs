//! The same questions as one program of sh, for a pod: everything that is needed is in any image
//! with a shell, and nothing is written.
//!
//! It says what it finds in lines, `WORD REST`, from `begin` to `end`. What comes is anybody's: a
//! line that nobody knows, a number that is none or an end that is missing makes it no answer at
//! all.

use super::ImageRequirements;
use super::machine::{self, FIRST};
use super::seen::{DRIVERS, ImageContents, LIBC, NAME, PROGRAMS, PodSeen, VERBS, folder_of};
use railwright_base::quote::{quote_for_shell, sh_words};
use std::collections::BTreeSet;

/// Lines of an answer; folders and files together are some dozens.
const LINES_MAX: usize = 4000;

/// Its first line, in which a root other than `/` would stand.
pub const ROOT: &str = "R=''\n";

/// The program.
pub fn build_inspection_script(wanted: &ImageRequirements) -> String {
    let words = |all: &[String]| sh_words(all.iter().map(String::as_str));
    let (libraries, providers, standard) = (
        words(&wanted.libraries),
        words(&wanted.providers),
        words(&machine::list_all_standard_folders()),
    );
    let (programs, libc) = (sh_words(PROGRAMS), quote_for_shell(LIBC));
    let cached: Vec<String> = wanted
        .libraries
        .iter()
        .map(|name| {
            format!(
                "-e {}",
                quote_for_shell(&format!("/[!-~]*/{}", name.replace('.', "\\.")))
            )
        })
        .collect();
    let (cached, verbs, drivers) = (
        cached.join(" "),
        quote_for_shell(VERBS),
        quote_for_shell(DRIVERS),
    );
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
say begin 1
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
for f in "$R"/dev/infiniband/*; do
    [ -c "$f" ] && say device "c ${{f##*/}}" || {{ [ -e "$f" ] && say device "- ${{f##*/}}"; }}
done
say limit "$(ulimit -l)"
while read -r k v; do [ "$k" = CapEff: ] && say capabilities "$v"; done </proc/self/status
say end 1
exit 0
"#
    )
}

/// What it said, or why that is no answer.
pub fn parse_inspection_output(out: &str) -> Result<ImageContents, String> {
    let mut seen = ImageContents::default();
    let (mut pod, mut begun, mut ended) = (PodSeen::default(), false, false);
    for (n, line) in out.lines().enumerate() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if ended || n >= LINES_MAX || (n == 0) != (word == "begin") {
            return Err(format!(
                "line {} of its output is none of the program's",
                n + 1
            ));
        }
        let nonsense = || format!("line {} of its output makes no sense", n + 1);
        match word {
            "begin" => begun = rest == "1",
            "end" => ended = rest == "1",
            "environment" => seen.of_environment.push(rest.to_owned()),
            "configuration" => seen
                .of_configuration
                .extend(folder_of(rest).map(str::to_owned)),
            "file" => {
                let (first, path) = rest.split_once(' ').ok_or_else(nonsense)?;
                seen.files.insert(
                    path.to_owned(),
                    parse_hex_bytes(first).ok_or_else(nonsense)?,
                );
            }
            "pattern" => {
                let (pattern, path) = rest
                    .split_once(' ')
                    .filter(|(pattern, _)| pattern.contains(NAME))
                    .ok_or_else(nonsense)?;
                seen.patterns.insert(path.to_owned(), pattern.to_owned());
            }
            "names" => {
                let (folder, path) = rest.split_once(' ').ok_or_else(nonsense)?;
                seen.driver_folders
                    .insert(path.to_owned(), folder.to_owned());
            }
            "driver" => {
                let (driver, folder) = rest.split_once(' ').ok_or_else(nonsense)?;
                // A line without a name names none.
                if driver.is_empty() {
                    continue;
                }
                seen.drivers
                    .entry(folder.to_owned())
                    .or_default()
                    .insert(driver.to_owned());
            }
            "distribution" => seen
                .distribution
                .extend(machine::parse_distribution_words(rest)),
            "cache" => drop(seen.cache.get_or_insert_with(BTreeSet::new)),
            "cached" => drop(
                seen.cache
                    .get_or_insert_with(BTreeSet::new)
                    .insert(rest.to_owned()),
            ),
            "device" => {
                let (sort, name) = rest.split_once(' ').ok_or_else(nonsense)?;
                pod.devices.insert(name.to_owned(), sort == "c");
            }
            "limit" => rest.clone_into(&mut pod.memory_lock),
            "capabilities" => {
                pod.capabilities =
                    Some(u64::from_str_radix(rest.trim(), 16).map_err(|_| nonsense())?)
            }
            _ => return Err(nonsense()),
        }
    }
    match begun && ended {
        true => Ok(ImageContents {
            pod: Some(pod),
            ..seen
        }),
        false => Err("its output has no end".to_owned()),
    }
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
