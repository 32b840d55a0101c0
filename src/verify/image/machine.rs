//! Which machine a file was built for, and what that means for where its loader looks.
//!
//! Sources: elf(5) (class, order of bytes and `e_machine`, the first 20 bytes of a file); Debian,
//! multiarch tuples; ld.so(8), and `ld.so --help` of Debian 12, Rocky Linux 9, openSUSE 15 and
//! Alpine 3.20 for folders that are looked into without being told.

/// First bytes of a file that say what it is.
pub const FIRST: u64 = 20;

/// A sort of machine, by its number in ELF and whether its bytes stand from small to great.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElfMachine {
    number: u16,
    is_little: bool,
}

/// Machines with GPUs and NICs, by number and order: what they are called, and Debian's folder for
/// them.
const KNOWN: [(u16, bool, &str, &str); 5] = [
    (62, true, "x86-64", "x86_64-linux-gnu"),
    (183, true, "AArch64", "aarch64-linux-gnu"),
    (21, true, "POWER (little-endian)", "powerpc64le-linux-gnu"),
    (22, false, "s390x", "s390x-linux-gnu"),
    (243, true, "RISC-V", "riscv64-linux-gnu"),
];

impl ElfMachine {
    /// Of a program or library of 64 bits.
    pub fn of(first: &[u8]) -> Option<ElfMachine> {
        let bytes: [u8; 2] = first.get(18..20)?.try_into().ok()?;
        let is_little = *first.get(5)? != 2;
        let number = if is_little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        };
        first
            .starts_with(b"\x7fELF\x02")
            .then_some(ElfMachine { number, is_little })
    }

    fn known(self) -> Option<&'static (u16, bool, &'static str, &'static str)> {
        KNOWN
            .iter()
            .find(|(number, is_little, ..)| (*number, *is_little) == (self.number, self.is_little))
    }

    /// For people.
    pub fn word(self) -> String {
        match self.known() {
            Some((_, _, word, _)) => (*word).to_owned(),
            None => format!("machine {} of ELF", self.number),
        }
    }

    fn folder(self) -> Option<&'static str> {
        self.known().map(|(_, _, _, folder)| *folder)
    }
}

/// Folders of libraries by who lays them: Debian's family by machine, others in `lib64`, and some
/// in `lib` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LibraryLayout {
    Debian,
    Lib64,
    Musl,
    Unknown,
}

/// Words of ID and ID_LIKE in os-release(5).
const DEBIAN: [&str; 2] = ["debian", "ubuntu"];
const LIB64: [&str; 16] = [
    "rhel",
    "fedora",
    "centos",
    "suse",
    "opensuse",
    "sles",
    "anolis",
    "alinux",
    "openeuler",
    "kylin",
    "tencentos",
    "opencloudos",
    "amzn",
    "azurelinux",
    "mariner",
    "ol",
];

fn detect_library_layout(distribution: &[String]) -> LibraryLayout {
    if names_any(distribution, &DEBIAN) {
        LibraryLayout::Debian
    } else if names_any(distribution, &LIB64) {
        LibraryLayout::Lib64
    } else if names_any(distribution, &["alpine", "postmarketos"]) {
        LibraryLayout::Musl
    } else {
        LibraryLayout::Unknown
    }
}

/// Whether a distribution calls itself by one of these words.
fn names_any(distribution: &[String], words: &[&str]) -> bool {
    distribution
        .iter()
        .any(|word| words.contains(&word.to_lowercase().as_str()))
}

/// Folders that the loader of a distribution looks into without being told, on this machine. Where
/// one of both is not known, those of all.
pub fn list_standard_folders(distribution: &[String], machine: Option<ElfMachine>) -> Vec<String> {
    let wide = ["/lib64", "/usr/lib64"].map(str::to_owned);
    let plain = ["/lib", "/usr/lib"].map(str::to_owned);
    match detect_library_layout(distribution) {
        LibraryLayout::Debian => [list_multiarch_folders(machine).as_slice(), &plain].concat(),
        LibraryLayout::Lib64 => wide.to_vec(),
        LibraryLayout::Musl => ["/lib", "/usr/local/lib", "/usr/lib"]
            .map(str::to_owned)
            .to_vec(),
        LibraryLayout::Unknown => {
            [list_multiarch_folders(machine).as_slice(), &wide, &plain].concat()
        }
    }
}

/// Debian's folders for a machine, or for all where it is not known.
fn list_multiarch_folders(machine: Option<ElfMachine>) -> Vec<String> {
    let tuples: Vec<&str> = match machine {
        Some(machine) => machine.folder().into_iter().collect(),
        None => KNOWN.iter().map(|(.., tuple)| *tuple).collect(),
    };
    let mut folders = Vec::new();
    for tuple in tuples {
        folders.push(format!("/lib/{tuple}"));
        folders.push(format!("/usr/lib/{tuple}"));
    }
    folders
}

/// Every folder that some loader looks into without being told.
pub fn list_all_standard_folders() -> Vec<String> {
    let mut folders = list_standard_folders(&[], None);
    folders.push("/usr/local/lib".to_owned());
    folders
}

/// Words of a line `ID=` or `ID_LIKE=` of os-release(5); nothing of other lines.
pub fn parse_distribution_words(line: &str) -> Vec<String> {
    let value = line
        .strip_prefix("ID=")
        .or_else(|| line.strip_prefix("ID_LIKE="))
        .unwrap_or_default();
    let value = value.trim().trim_matches(['"', '\'']);
    value
        .split_whitespace()
        .take(16)
        .map(|word| railwright_base::text::one_line(word, 40))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(class: u8, order: u8, machine: [u8; 2]) -> Vec<u8> {
        [
            b"\x7fELF".as_slice(),
            &[class, order, 1],
            &[0; 11],
            &machine,
        ]
        .concat()
    }

    #[test]
    fn a_machine_is_read_from_the_first_bytes() {
        let word = |bytes: &[u8]| ElfMachine::of(bytes).map(ElfMachine::word);
        assert_eq!(word(&first(2, 1, [62, 0])).as_deref(), Some("x86-64"));
        assert_eq!(word(&first(2, 1, [183, 0])).as_deref(), Some("AArch64"));
        assert_eq!(word(&first(2, 2, [0, 22])).as_deref(), Some("s390x"));
        assert_eq!(
            word(&first(2, 1, [9, 1])).as_deref(),
            Some("machine 265 of ELF")
        );
        assert_eq!(word(&first(1, 1, [3, 0])), None, "of 32 bits");
        assert_eq!(word(&first(2, 1, [62, 0])[..19]), None, "cut");
    }

    #[test]
    fn a_distribution_and_a_machine_have_their_own_folders() {
        let of = |ids: &str, machine: u8| {
            list_standard_folders(
                &parse_distribution_words(ids),
                ElfMachine::of(&first(2, 1, [machine, 0])),
            )
        };
        assert_eq!(
            of("ID=debian", 62),
            [
                "/lib/x86_64-linux-gnu",
                "/usr/lib/x86_64-linux-gnu",
                "/lib",
                "/usr/lib"
            ]
        );
        assert_eq!(
            of("ID_LIKE=\"ubuntu debian\"", 183)[0],
            "/lib/aarch64-linux-gnu"
        );
        for ids in [
            "ID=\"rocky\" \nID_LIKE='rhel centos fedora'",
            "ID_LIKE=\"rhel centos\"",
            "ID=openEuler",
            "ID=alinux",
        ] {
            let words: Vec<String> = ids.lines().flat_map(parse_distribution_words).collect();
            assert_eq!(
                list_standard_folders(&words, None),
                ["/lib64", "/usr/lib64"],
                "{ids}"
            );
        }
        assert_eq!(of("ID=alpine", 62), ["/lib", "/usr/local/lib", "/usr/lib"]);
        let every = list_all_standard_folders();
        assert!(
            of("NAME=odd", 62)
                .iter()
                .chain(&of("ID=alpine", 62))
                .all(|folder| every.contains(folder)),
            "{every:?}"
        );
    }
}
