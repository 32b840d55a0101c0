//! The programs that a lab needs on this computer, and the one line that installs those that are
//! missing.

use super::Result;
use super::recipe::Flavour;
use railwright_base::Diagnostic;
use railwright_system::{files, process};
use std::path::Path;

/// A program (or file, when it begins with `/`) and the Debian package that brings it.
const NEEDED: [(&str, &str); 17] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("qemu-img", "qemu-utils"),
    ("mmdebstrap", "mmdebstrap"),
    ("mke2fs", "e2fsprogs"),
    ("depmod", "kmod"),
    ("modprobe", "kmod"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("grub-mkimage", "grub-common"),
    ("/usr/lib/grub/i386-pc/lnxboot.img", "grub-pc-bin"),
    ("gpg", "gnupg"),
    ("gpgconf", "gnupg"),
    ("apt-ftparchive", "apt-utils"),
    ("apt-get", "apt"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("unshare", "util-linux"),
];

/// All programs are there, or the diagnostic that says how to get them.
pub fn check_programs(flavour: Flavour) -> Result<()> {
    let mut packages = list_missing_packages(&|name| {
        if name.starts_with('/') {
            files::is_present(Path::new(name))
        } else {
            process::find_program(name).is_some()
        }
    });
    if !packages.contains(&"busybox-static") && !busybox_is_static() {
        packages.push("busybox-static");
    }
    if !process::is_root() && process::find_program("newuidmap").is_none() {
        packages.push("uidmap");
    }
    if flavour.kubernetes && process::find_program("openssl").is_none() {
        packages.push("openssl");
    }
    if packages.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::error(
        "RW0901",
        format!(
            "the lab needs programs that are not here, from {}",
            packages.join(", ")
        ),
    )
    .state("nothing was built or started")
    .next(install_line(&packages))
    .into())
}

fn list_missing_packages(here: &dyn Fn(&str) -> bool) -> Vec<&'static str> {
    let mut packages: Vec<&str> = Vec::new();
    for (name, package) in NEEDED {
        if !here(name) && !packages.contains(&package) {
            packages.push(package);
        }
    }
    packages
}

fn install_line(packages: &[&str]) -> String {
    let sudo = if process::is_root() { "" } else { "sudo " };
    format!(
        "{sudo}apt-get install --no-install-recommends {}",
        packages.join(" ")
    )
}

/// In the initramfs there is no library for a dynamic one: its loader's path must not be in the
/// file.
fn busybox_is_static() -> bool {
    let Some(bytes) =
        process::find_program("busybox").and_then(|path| files::read_limited(&path, 16 << 20).ok())
    else {
        return false;
    };
    let loader = b"/lib64/ld-linux";
    !bytes.windows(loader.len()).any(|window| window == loader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_package_is_named_once() {
        assert_eq!(list_missing_packages(&|_| true), Vec::<&str>::new());
        assert_eq!(
            list_missing_packages(&|name| !["depmod", "modprobe", "gpg"].contains(&name)),
            ["kmod", "gnupg"]
        );
    }
}
