//! The answer of `Read::Packages`, decoded: which manager keeps the packages, and how a package
//! stands with it.

use crate::action::PackageManager;
use crate::{Read, ReadResults};
use railwright_base::Reason;
use serde::{Deserialize, Serialize};

/// How a package stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PackageState {
    /// Not there; with apt its configuration files may be left over (`rc`).
    NotInstalled { configuration_left: bool },
    /// Installed and configured.
    Installed { version: String },
    /// Unpacked or half-way: `dpkg --configure -a` fixes it.
    Broken { version: String, how: String },
}

/// What the host reports of one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundPackage {
    /// Who keeps the packages.
    pub manager: PackageManager,
    /// How it stands.
    pub state: PackageState,
    /// It is held at its version.
    pub held: bool,
    /// We asked for it, and left it to other packages as their dependency since; never part of what
    /// is remembered.
    #[serde(skip)]
    pub left: bool,
    /// Versions that are installed beside this one, as dnf keeps those of a kernel; never part of
    /// what is remembered either.
    #[serde(skip)]
    pub beside: Vec<String>,
}

impl FoundPackage {
    fn absent(manager: PackageManager) -> Self {
        FoundPackage {
            manager,
            state: PackageState::NotInstalled {
                configuration_left: false,
            },
            held: false,
            left: false,
            beside: Vec::new(),
        }
    }

    /// The package by the answers, in this version where several are installed; the error fits
    /// after "unknown:".
    pub fn of(
        name: &str,
        version: Option<&str>,
        answers: &ReadResults,
    ) -> Result<Self, UnknownPackage> {
        let (_, out) = answers.output(&Read::Packages {
            names: vec![name.to_owned()],
        })?;
        let left = out
            .lines()
            .any(|line| line.strip_prefix("left\t") == Some(name));
        if let Some(why) = out.lines().find_map(|line| line.strip_prefix("unread\t")) {
            let reason = format!("its packages could not be read: {why}");
            return Err(UnknownPackage::Unread(reason.into()));
        }
        match out.lines().find_map(|line| line.strip_prefix("manager\t")) {
            Some("apt") => Ok(FoundPackage {
                left,
                ..of_dpkg(name, out)
            }),
            Some("dnf") => match named_otherwise(name, out) {
                Some(other) => Err(Reason::from(format!(
                    "{name} is not the name of a package, but of one called {other}: declare that"
                )))?,
                None => Ok(FoundPackage {
                    left,
                    ..of_rpm(name, version, out)
                }),
            },
            Some(_) => Err(UnknownPackage::NoManager),
            None => Err(Reason::from("the packages were not answered"))?,
        }
    }

    /// True where this version is the one that is installed. dnf takes one without its epoch or its
    /// release as well.
    pub fn is(&self, desired: &str) -> bool {
        self.version().is_some_and(|there| {
            there == desired || self.manager == PackageManager::Dnf && is_rpm(desired, there)
        })
    }

    /// The version, if it is installed.
    pub fn version(&self) -> Option<&str> {
        match &self.state {
            PackageState::Installed { version } => Some(version),
            _ => None,
        }
    }
}

/// Why it is not known how a package stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownPackage {
    /// The host has neither apt nor dnf.
    NoManager,
    /// In words that fit after "unknown:".
    Unread(Reason),
}

impl From<Reason> for UnknownPackage {
    fn from(reason: Reason) -> Self {
        UnknownPackage::Unread(reason)
    }
}

/// Lines `dpkg <tab> abbreviation <tab> name <tab> version` of dpkg-query: the abbreviation's first
/// letter is what is desired (`h` is held), the second how it stands, the third whether it must be
/// installed anew.
fn of_dpkg(name: &str, out: &str) -> FoundPackage {
    let mut best = FoundPackage::absent(PackageManager::Apt);
    for line in out.lines().filter_map(|line| line.strip_prefix("dpkg\t")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [status, package, version] = fields[..] else {
            continue;
        };
        if package != name || matches!(best.state, PackageState::Installed { .. }) {
            continue;
        }
        let version = version.to_owned();
        let state = match status.as_bytes() {
            [_, b'i', rest @ ..] if !rest.contains(&b'R') => PackageState::Installed { version },
            [_, how @ (b'n' | b'c'), ..] => PackageState::NotInstalled {
                configuration_left: *how == b'c',
            },
            [_, how, ..] => PackageState::Broken {
                version,
                how: dpkg_word(*how).to_owned(),
            },
            _ => continue,
        };
        best = FoundPackage {
            state,
            held: status.starts_with('h'),
            ..best
        };
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

/// Lines `rpm <tab> name <tab> epoch:version-release`, epoch `(none)` left out as dnf does, and
/// `lock <tab> pattern`. Of several versions the desired one, or the one that came last.
fn of_rpm(name: &str, desired: Option<&str>, out: &str) -> FoundPackage {
    let mut actual = FoundPackage::absent(PackageManager::Dnf);
    let mut versions = Vec::new();
    for line in out.lines() {
        match line.split_once('\t') {
            Some(("rpm", package)) => {
                if let Some((package, version)) = package.split_once('\t')
                    && package == name
                {
                    versions.push(version.trim_start_matches("(none):"));
                }
            }
            Some(("lock", pattern)) => actual.held |= is_versionlock_of(pattern, name),
            _ => {}
        }
    }
    let at = versions
        .iter()
        .position(|there| desired.is_some_and(|desired| is_rpm(desired, there)));
    if let Some(last) = versions.len().checked_sub(1) {
        actual.state = PackageState::Installed {
            version: versions.remove(at.unwrap_or(last)).to_owned(),
        };
    }
    actual.beside = versions.into_iter().map(str::to_owned).collect();
    actual
}

/// rpm finds a package by its name with the version or the architecture too: `glibc.i686`.
fn named_otherwise<'o>(name: &str, out: &'o str) -> Option<&'o str> {
    let mut names = out
        .lines()
        .filter_map(|line| line.strip_prefix("rpm\t")?.split('\t').next())
        .peekable();
    let first = *names.peek()?;
    names.all(|other| other != name).then_some(first)
}

/// True where this is the desired version, which may leave out its epoch and its release.
fn is_rpm(desired: &str, there: &str) -> bool {
    let without_epoch = there.split_once(':').map_or(there, |(_, rest)| rest);
    [there, without_epoch].iter().any(|there| {
        *there == desired
            || there
                .rsplit_once('-')
                .is_some_and(|(version, _)| version == desired)
    })
}

/// True where a pattern of the plugin is of this package: it writes `name-epoch:version-release.*`,
/// and people leave the epoch out.
fn is_versionlock_of(pattern: &str, name: &str) -> bool {
    let Some(rest) = pattern
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('-'))
    else {
        return false;
    };
    let (epoch, version) = rest.split_once(':').unwrap_or(("0", rest));
    epoch.bytes().all(|byte| byte.is_ascii_digit())
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.matches('-').count() < 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_database_does_not_say_is_unknown() {
        let read = Read::Packages {
            names: vec!["x".to_owned()],
        };
        let out = "manager\tapt\nunread\tdpkg-query ended with status 2\n";
        let answers = crate::test_support::answered(&[(&read, 0, out)]);
        assert!(matches!(
            FoundPackage::of("x", None, &answers),
            Err(UnknownPackage::Unread(_))
        ));
    }

    #[test]
    fn the_states_of_dpkg() {
        let installed = |v: &str| PackageState::Installed { version: v.into() };
        let not = |configuration_left| PackageState::NotInstalled { configuration_left };
        let broken = |how: &str| PackageState::Broken {
            version: "1".into(),
            how: how.into(),
        };
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
        let found = of_rpm(
            "perftest",
            None,
            "rpm\tperftest\t(none):4.5-12.el9\nrpm\tother\t(none):1-1\nlock\tperftest-0:4.5-12.el9.*\n",
        );
        assert_eq!((found.version(), found.held), (Some("4.5-12.el9"), true));
        assert_eq!(
            of_rpm("rdma-core", None, "rpm\trdma-core\t1:51-2\n").version(),
            Some("1:51-2")
        );
        for (pattern, held) in [
            ("x-0:1-1.*", true),
            ("x-1.0-1.*", true),
            ("x-1.0*", true),
            ("x-tools-0:1-1.*", false),
            ("x-1b-0:1.0-1.*", false),
            ("x-1b-1.0-1.*", false),
            ("x11-0:1-1.*", false),
        ] {
            let found = of_rpm("x", None, &format!("lock\t{pattern}\n"));
            assert_eq!((found.version(), found.held), (None, held), "{pattern}");
        }
    }

    #[test]
    fn rpm_finds_more_by_a_name_than_its_package() {
        assert_eq!(
            named_otherwise("glibc.i686", "manager\tdnf\nrpm\tglibc\t(none):2-1\n"),
            Some("glibc")
        );
        for out in [
            "manager\tdnf\n",
            "rpm\tglibc\t(none):2-1\n",
            "rpm\tother\t(none):1-1\nrpm\tglibc\t(none):2-1\n",
        ] {
            assert_eq!(named_otherwise("glibc", out), None, "{out}");
        }
    }

    #[test]
    fn of_several_versions_the_desired_one_is_found() {
        let kernels =
            "rpm\tkernel\t(none):1.0-1\nrpm\tkernel\t3:2.0-1\nrpm\tkernel\t(none):3.0-1\n";
        for (desired, version) in [
            (None, "3.0-1"),
            (Some("2.0-1"), "3:2.0-1"),
            (Some("1.0"), "1.0-1"),
            (Some("4.0"), "3.0-1"),
        ] {
            let actual = of_rpm("kernel", desired, kernels);
            assert_eq!(
                (actual.version(), actual.beside.len()),
                (Some(version), 2),
                "{desired:?}"
            );
            assert_eq!(
                desired.is_some_and(|desired| actual.is(desired)),
                !matches!(desired, None | Some("4.0")),
                "{desired:?}"
            );
        }
        for (desired, is) in [
            ("3:2.0-1", true),
            ("3:2.0", true),
            ("2.0-1", true),
            ("2.0", true),
            ("2", false),
            ("2.0-2", false),
            ("1:2.0-1", false),
        ] {
            assert_eq!(is_rpm(desired, "3:2.0-1"), is, "{desired}");
        }
    }
}
