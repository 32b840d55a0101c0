//! Where the managers keep what they fetched from a repository, as POSIX sh.

use crate::base::quote::sh;
use crate::resource::action::PackageManager;
use crate::resource::rights::Need;

/// The beginning of the names below /var/lib/apt/lists: the URL without its scheme, as apt's URItoFileName makes it
/// (apt-pkg/contrib/strutl.cc): some characters as `%xx`, every slash an underscore.
fn apt_list_prefix(url: &str, suite: &str) -> String {
    let rest = url.split_once("://").map_or_else(|| url.split_once(':').map_or(url, |(_, rest)| rest), |(_, rest)| rest);
    let rest = rest.trim_end_matches('/');
    let place = match suite.trim_end_matches('/') {
        flat if suite.ends_with('/') && (flat == "." || flat.is_empty()) => format!("{rest}/./"),
        flat if suite.ends_with('/') => format!("{rest}/{flat}/"),
        suite => format!("{rest}/dists/{suite}/"),
    };
    let mut out = String::new();
    for c in place.chars() {
        match c {
            '/' => out.push('_'),
            '\\' | '|' | '{' | '}' | '[' | ']' | '<' | '>' | '"' | '^' | '~' | '_' | '=' | '!' | '@' | '#' | '$' | '%' | '&' | '*' => {
                out.push_str(&format!("%{:02x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// The lists are the world's to read, unless somebody closed their folder.
pub fn needs(manager: PackageManager) -> Vec<Need> {
    match manager {
        PackageManager::Apt => vec![Need::Sight("/var/lib/apt/lists/x".to_owned())],
        PackageManager::Dnf => ["/var/cache/dnf", "/var/cache/libdnf5"].map(|folder| Need::Folder(folder, "/repodata/repomd.xml")).to_vec(),
    }
}

/// `fetched`, `absent` or `no manager`.
pub fn read_script(manager: PackageManager, name: &str, url: &str, suite: &str) -> String {
    match manager {
        PackageManager::Apt => format!(
            "[ -d \"$R/var/lib/apt/lists\" ] || {{ echo 'no manager'; exit 0; }}\n\
             p=\"$R/var/lib/apt/lists/\"{}\n\
             if [ -f \"${{p}}InRelease\" ] || {{ [ -f \"${{p}}Release\" ] && [ -f \"${{p}}Release.gpg\" ]; }}; then echo fetched; else echo absent; fi\n",
            sh(&apt_list_prefix(url, suite))
        ),
        PackageManager::Dnf => format!(
            "[ -d \"$R/etc/yum.repos.d\" ] || [ -d \"$R/etc/dnf\" ] || {{ echo 'no manager'; exit 0; }}\n\
             for f in \"$R\"/var/cache/dnf/{id}-*/repodata/repomd.xml \"$R\"/var/cache/libdnf5/{id}-*/repodata/repomd.xml; do [ ! -f \"$f\" ] || {{ echo fetched; exit 0; }}; done\n\
             echo absent\n",
            id = sh(&format!("railwright-{name}"))
        ),
    }
}

/// Removes what was fetched, so that nothing of the repository stays behind.
pub fn forget_script(manager: PackageManager, name: &str, url: &str, suite: &str) -> String {
    match manager {
        PackageManager::Apt => format!("rm -f /var/lib/apt/lists/{}*\n", sh(&apt_list_prefix(url, suite))),
        PackageManager::Dnf => {
            let id = sh(&format!("railwright-{name}"));
            format!("rm -rf /var/cache/dnf/{id}-* /var/cache/dnf/{id}.solv /var/cache/dnf/{id}-*.solvx /var/cache/libdnf5/{id}-*\n")
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
            ("http://deb.debian.org/debian", "bookworm", "deb.debian.org_debian_dists_bookworm_"),
            ("https://deb.nodesource.com/node_20.x/", "nodistro", "deb.nodesource.com_node%5f20.x_dists_nodistro_"),
            ("http://10.0.2.2:8000/deb", "./", "10.0.2.2:8000_deb_._"),
            ("file:/srv/deb", "stable", "_srv_deb_dists_stable_"),
        ] {
            assert_eq!(apt_list_prefix(url, suite), prefix);
        }
    }
}
