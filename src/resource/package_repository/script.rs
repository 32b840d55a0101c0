//! Where the managers keep what they fetched from a repository, as POSIX sh.

use super::apt_sources_path;
use crate::action::PackageManager;
use crate::rights::RootAccessNeed;
use railwright_base::quote::quote_for_shell;

/// The beginning of the names below /var/lib/apt/lists: the URL without its scheme, as apt's
/// URItoFileName makes it (apt-pkg/contrib/strutl.cc): some characters as `%xx`, every slash an
/// underscore. A suite that is a slash alone, as for NVIDIA's CUDA repositories, adds nothing to
/// the URL (apt-pkg/deb/debmetaindex.cc, constructMetaIndexURI).
fn apt_list_prefix(url: &str, suite: &str) -> String {
    let rest = url.split_once("://").map_or_else(
        || url.split_once(':').map_or(url, |(_, rest)| rest),
        |(_, rest)| rest,
    );
    let rest = rest.trim_end_matches('/');
    let place = match suite.trim_end_matches('/') {
        "" => format!("{rest}/"),
        flat if suite.ends_with('/') => format!("{rest}/{flat}/"),
        suite => format!("{rest}/dists/{suite}/"),
    };
    let mut out = String::new();
    for c in place.chars() {
        match c {
            '/' => out.push('_'),
            '\\' | '|' | '{' | '}' | '[' | ']' | '<' | '>' | '"' | '^' | '~' | '_' | '=' | '!'
            | '@' | '#' | '$' | '%' | '&' | '*' => {
                out.push_str(&format!("%{:02x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// The lists are the world's to read, unless somebody closed their folder.
pub fn list_repository_access_needs(manager: PackageManager) -> Vec<RootAccessNeed> {
    match manager {
        PackageManager::Apt => vec![RootAccessNeed::Sight("/var/lib/apt/lists/x".to_owned())],
        PackageManager::Dnf => ["/var/cache/dnf", "/var/cache/libdnf5"]
            .map(|folder| RootAccessNeed::Folder(folder, "/repodata/repomd.xml"))
            .to_vec(),
    }
}

/// `fetched`, `absent` or `no manager`.
pub fn read_script(manager: PackageManager, name: &str, url: &str, suite: &str) -> String {
    match manager {
        PackageManager::Apt => format!(
            "[ -d \"$R/var/lib/apt/lists\" ] || {{ echo 'no manager'; exit 0; }}\n\
             p=\"$R/var/lib/apt/lists/\"{}\n\
             if [ -f \"${{p}}InRelease\" ] || {{ [ -f \"${{p}}Release\" ] && [ -f \
             \"${{p}}Release.gpg\" ]; }}; then echo fetched; else echo absent; fi\n",
            quote_for_shell(&apt_list_prefix(url, suite))
        ),
        PackageManager::Dnf => format!(
            "[ -d \"$R/etc/yum.repos.d\" ] || [ -d \"$R/etc/dnf\" ] || {{ echo 'no manager'; exit \
             0; }}\n\
             for f in \"$R\"/var/cache/dnf/{id}-*/repodata/repomd.xml \
             \"$R\"/var/cache/libdnf5/{id}-*/repodata/repomd.xml; do [ ! -f \"$f\" ] || {{ echo \
             fetched; exit 0; }}; done\n\
             echo absent\n",
            id = quote_for_shell(&format!("railwright-{name}"))
        ),
    }
}

/// Removes what was fetched and the source that was kept with it, so that nothing of the repository
/// stays behind.
pub fn forget_script(manager: PackageManager, name: &str, url: &str, suite: &str) -> String {
    match manager {
        PackageManager::Apt => {
            let prefix = quote_for_shell(&apt_list_prefix(url, suite));
            // a repository that is all of its URL may have others in folders below
            let files: &[&str] = if suite == "/" {
                &[
                    "InRelease",
                    "Release",
                    "Release.gpg",
                    "Packages*",
                    "Sources*",
                    "Translation*",
                ]
            } else {
                &["*"]
            };
            let words: String = files
                .iter()
                .map(|file| format!(" /var/lib/apt/lists/{prefix}{file}"))
                .collect();
            let source = quote_for_shell(&apt_sources_path(name));
            format!("rm -f {source}.save{words}\n")
        }
        PackageManager::Dnf => {
            let id = quote_for_shell(&format!("railwright-{name}"));
            format!(
                "rm -rf /var/cache/dnf/{id}-* /var/cache/dnf/{id}.solv /var/cache/dnf/{id}-*.solvx \
                 /var/cache/libdnf5/{id}-*\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_apt_makes_them() {
        // seen below /var/lib/apt/lists
        for (url, suite, prefix) in [
            (
                "http://deb.debian.org/debian",
                "bookworm",
                "deb.debian.org_debian_dists_bookworm_",
            ),
            (
                "https://deb.nodesource.com/node_20.x/",
                "nodistro",
                "deb.nodesource.com_node%5f20.x_dists_nodistro_",
            ),
            ("http://10.0.2.2:8000/deb", "./", "10.0.2.2:8000_deb_._"),
            ("file:/srv/deb", "stable", "_srv_deb_dists_stable_"),
            (
                "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/",
                "/",
                "developer.download.nvidia.com_compute_cuda_repos_ubuntu2204_x86%5f64_",
            ),
        ] {
            assert_eq!(apt_list_prefix(url, suite), prefix);
        }
    }
}
