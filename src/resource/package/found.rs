//! The answer of `Read::Packages`, decoded: which manager keeps the packages, and how a package stands with it.

use crate::action::PackageManager;
use crate::{Answers, Read};
use serde::{Deserialize, Serialize};

/// How a package stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageState {
    /// Not there; with apt its configuration files may be left over (`rc`).
    NotInstalled { configuration_left: bool },
    /// Installed and configured.
    Installed { version: String },
    /// Unpacked or half-way: `dpkg --configure -a` mends it.
    Broken { version: String, how: String },
}

/// What the host says of one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundPackage {
    /// Who keeps the packages.
    pub manager: PackageManager,
    /// How it stands.
    pub state: PackageState,
    /// It is held at its version.
    pub held: bool,
    /// We asked for it, and left it to other packages as their dependency since; never part of what is remembered.
    #[serde(skip)]
    pub left: bool,
}

impl FoundPackage {
    /// The package by the answers; the error fits after "unknown:".
    pub fn of(name: &str, answers: &Answers) -> Result<Self, String> {
        let (_, out) = answers.output(&Read::Packages { names: vec![name.to_owned()] })?;
        let left = out.lines().any(|line| line.strip_prefix("left\t") == Some(name));
        match out.lines().find_map(|line| line.strip_prefix("manager\t")) {
            Some("apt") => Ok(FoundPackage { left, ..of_dpkg(name, out) }),
            Some("dnf") => Ok(FoundPackage { left, ..of_rpm(name, out) }),
            Some(_) => Err(NO_MANAGER.to_owned()),
            None => Err("the packages were not answered".to_owned()),
        }
    }

    /// The version, if it is installed.
    pub fn version(&self) -> Option<&str> {
        match &self.state {
            PackageState::Installed { version } => Some(version),
            _ => None,
        }
    }
}

/// Said of a host that has neither apt nor dnf.
pub const NO_MANAGER: &str = "neither apt nor dnf keeps the packages of this host";

/// Lines `dpkg <tab> abbreviation <tab> name <tab> version` of dpkg-query: the abbreviation's first letter is what is
/// wanted (`h` is held), the second how it stands, the third whether it must be installed anew.
fn of_dpkg(name: &str, out: &str) -> FoundPackage {
    let state = PackageState::NotInstalled { configuration_left: false };
    let mut best = FoundPackage { manager: PackageManager::Apt, state, held: false, left: false };
    for line in out.lines().filter_map(|line| line.strip_prefix("dpkg\t")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [status, package, version] = fields[..] else { continue };
        if package != name || matches!(best.state, PackageState::Installed { .. }) {
            continue;
        }
        let version = version.to_owned();
        let state = match status.as_bytes() {
            [_, b'i', rest @ ..] if !rest.contains(&b'R') => PackageState::Installed { version },
            [_, b'n', ..] => PackageState::NotInstalled { configuration_left: false },
            [_, b'c', ..] => PackageState::NotInstalled { configuration_left: true },
            [_, how, ..] => PackageState::Broken { version, how: dpkg_word(*how).to_owned() },
            _ => continue,
        };
        best = FoundPackage { state, held: status.starts_with('h'), ..best };
    }
    best
}

/// The words of dpkg-query(1) for the second letter.
fn dpkg_word(letter: u8) -> &'static str {
    match letter {
        b'H' => "half-installed",
        b'U' => "unpacked",
        b'F' => "half-configured",
        b'W' => "waiting for a trigger",
        b't' => "trigger pending",
        _ => "to be installed anew",
    }
}

/// Lines `rpm <tab> name <tab> epoch:version-release`, epoch `(none)` left out as dnf does, and `lock <tab> pattern`.
fn of_rpm(name: &str, out: &str) -> FoundPackage {
    let of = |word: &'static str| out.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix('\t'));
    let version = of("rpm").filter_map(|line| line.split_once('\t')).filter(|(package, _)| *package == name).map(|(_, v)| v).next_back();
    let state = match version {
        Some(version) => PackageState::Installed { version: version.trim_start_matches("(none):").to_owned() },
        None => PackageState::NotInstalled { configuration_left: false },
    };
    // the plugin writes `name-epoch:version-release.*`
    let held = of("lock").any(|pattern| {
        pattern
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    FoundPackage { manager: PackageManager::Dnf, state, held, left: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_of_dpkg() {
        let installed = |v: &str| PackageState::Installed { version: v.into() };
        let not = |configuration_left| PackageState::NotInstalled { configuration_left };
        let broken = |how: &str| PackageState::Broken { version: "1".into(), how: how.into() };
        // dpkg-query(1), `db:Status-Abbrev`
        for (out, state, held) in [
            ("dpkg\tii \tx\t1.2-3\n", installed("1.2-3"), false),
            ("dpkg\thi \tx\t1.2-3\n", installed("1.2-3"), true),
            ("dpkg\trc \tx\t1\n", not(true), false),
            ("dpkg\tun \tx\t\n", not(false), false),
            ("dpkg\tiF \tx\t1\n", broken("half-configured"), false),
            ("dpkg\tiU \tx\t1\n", broken("unpacked"), false),
            ("dpkg\tiHR\tx\t1\n", broken("half-installed"), false),
            ("dpkg\tiiR\tx\t1\n", broken("to be installed anew"), false),
            ("dpkg\tun \tx\t\ndpkg\tii \tx\t2\n", installed("2"), false),
            ("dpkg\tii \txy\t2\n", not(false), false),
            ("", not(false), false),
        ] {
            let found = of_dpkg("x", out);
            assert_eq!((found.state, found.held), (state, held), "{out:?}");
        }
    }

    #[test]
    fn the_words_of_rpm() {
        let found = of_rpm("perftest", "rpm\tperftest\t(none):4.5-12.el9\nrpm\tother\t(none):1-1\nlock\tperftest-0:4.5-12.el9.*\n");
        assert_eq!((found.version(), found.held), (Some("4.5-12.el9"), true));
        assert_eq!(of_rpm("rdma-core", "rpm\trdma-core\t1:51-2\n").version(), Some("1:51-2"));
        assert_eq!(of_rpm("x", "lock\tx-tools-0:1-1.*\n").version(), None);
        assert!(!of_rpm("x", "lock\tx-tools-0:1-1.*\n").held);
    }
}
