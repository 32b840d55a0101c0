//! Where the machines' packages come from: this computer's own apt sources of Debian 12, and
//! nothing else.

use super::Result;
use railwright_base::{Diagnostic, text};
use railwright_system::process::Program;

/// The release that the machines run; its kernel has Soft-RoCE (the cloud kernel has not).
pub const SUITE: &str = "bookworm";

/// One line of sources.list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AptSource {
    /// Where.
    pub uri: String,
    /// `bookworm`, `bookworm-updates` or `bookworm-security`.
    pub suite: String,
}

impl AptSource {
    /// As sources.list has it.
    pub fn line(&self) -> String {
        format!("deb {} {} main", self.uri, self.suite)
    }
}

/// The sources that apt here has, when they cover the release and its security updates.
pub fn of_this_computer() -> Result<Vec<AptSource>> {
    let format = "$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)";
    let output = Program::new("apt-get")
        .arguments(["indextargets", "--format", format, "Created-By: Packages"])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            parse_apt_sources(&String::from_utf8_lossy(&output.stdout))
        }
        Ok(output) => Err(new_missing_packages_error(&text::one_line(
            &String::from_utf8_lossy(&output.stderr),
            200,
        ))),
        Err(error) => Err(new_missing_packages_error(&error.to_string())),
    }
}

fn parse_apt_sources(listing: &str) -> Result<Vec<AptSource>> {
    let mut sources: Vec<AptSource> = listing.lines().filter_map(parse_line).collect();
    sources.sort();
    sources.dedup();
    for suite in [SUITE.to_owned(), format!("{SUITE}-security")] {
        if !sources.iter().any(|source| source.suite == suite) {
            return Err(new_missing_packages_error(&format!(
                "apt here has no index of Debian's suite {suite}"
            )));
        }
    }
    Ok(sources)
}

fn parse_line(line: &str) -> Option<AptSource> {
    let mut words = line.split_whitespace();
    let (origin, component, codename, uri) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let ours = codename == SUITE
        || codename
            .strip_prefix(SUITE)
            .is_some_and(|rest| ["-updates", "-security"].contains(&rest));
    (origin == "Debian" && component == "main" && ours).then(|| AptSource {
        uri: uri.to_owned(),
        suite: codename.to_owned(),
    })
}

fn new_missing_packages_error(why: &str) -> Box<Diagnostic> {
    Diagnostic::error(
        "RW0902",
        format!("the packages of Debian 12 cannot be had: {why}"),
    )
    .effect(
        "the machines are built from this computer's own apt sources; kernel and headers live in \
         the security suite",
    )
    .state("nothing was built")
    .next(
        "add Debian's bookworm, bookworm-updates and bookworm-security to the apt sources, then: \
         sudo apt-get update",
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "Debian main bookworm http://deb.debian.org/debian/\n\
                           Debian main bookworm-updates http://deb.debian.org/debian/\n\
                           Debian main bookworm-security http://deb.debian.org/debian-security/\n\
                           Debian contrib bookworm http://deb.debian.org/debian/\n\
                           Somebody main bookworm http://example.invalid/\n\
                           Debian main bookworm http://deb.debian.org/debian/\n";

    #[test]
    fn only_debians_main_of_the_release_is_taken_once() {
        let lines: Vec<String> = parse_apt_sources(LISTING)
            .unwrap()
            .iter()
            .map(AptSource::line)
            .collect();
        assert_eq!(
            lines,
            [
                "deb http://deb.debian.org/debian-security/ bookworm-security main",
                "deb http://deb.debian.org/debian/ bookworm main",
                "deb http://deb.debian.org/debian/ bookworm-updates main",
            ]
        );
    }

    #[test]
    fn without_the_security_suite_there_is_no_lab() {
        let listing: String = LISTING
            .lines()
            .filter(|line| !line.contains("security"))
            .collect::<Vec<_>>()
            .join("\n");
        let error = parse_apt_sources(&listing).unwrap_err();
        assert_eq!(error.code, "RW0902");
        assert!(
            error.message.contains("bookworm-security"),
            "{}",
            error.message
        );
    }
}
