//! Tiny signed repositories for apt and dnf, made on this machine with the real tools.

use crate::rig::must;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The repositories and the public key that signs them.
pub struct Repositories {
    /// A repository of apt: `rw-alpha` 1.0 and 2.0, `rw-beta`, which needs it, `rw-gamma`, beside
    /// which it cannot be, and `rw-broken`, whose configuration can fail.
    pub deb: PathBuf,
    /// A repository of dnf: `rw-alpha` 1.0 and 2.0, `rw-beta`, which needs it, and `rw-gamma`,
    /// which takes the place of an `rw-alpha` before 2.0. Each waits while there is a `/root/hold`.
    pub rpm: PathBuf,
    /// The armoured public key.
    pub key: String,
    /// Another armoured public key, which signs nothing.
    pub other_key: String,
}

/// Made once for all stories.
pub fn repositories() -> &'static Repositories {
    static MADE: OnceLock<Repositories> = OnceLock::new();
    MADE.get_or_init(make)
}

fn make() -> Repositories {
    // What lives as long as the process is dropped by nobody: a run takes the place of the one
    // before it.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("repositories-of-kinds");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let keyring = tempfile::tempdir().unwrap();
    let home = keyring.path();
    must(Command::new("chmod").arg("700").arg(home));
    let key = new_key(home, "lab@example.org");
    let other_key = new_key(home, "other@example.org");
    let deb = make_deb(&folder, home);
    let rpm = make_rpm(&folder, home);
    must(
        Command::new("gpgconf")
            .env("GNUPGHOME", home)
            .args(["--kill", "all"]),
    );
    Repositories {
        deb,
        rpm,
        key,
        other_key,
    }
}

/// `gpg` with a home of its own.
pub fn gpg(home: &Path) -> Command {
    let mut command = Command::new("gpg");
    command
        .env("GNUPGHOME", home)
        .args(["--batch", "--quiet", "--yes"]);
    command
}

/// A new key without a passphrase; its public half.
pub fn new_key(home: &Path, who: &str) -> String {
    must(gpg(home).args([
        "--passphrase",
        "",
        "--quick-gen-key",
        who,
        "rsa2048",
        "sign",
        "never",
    ]));
    must(gpg(home).args(["--armor", "--export", who]))
}

fn make_deb(folder: &Path, home: &Path) -> PathBuf {
    let deb = folder.join("deb");
    let pool = deb.join("pool");
    fs::create_dir_all(&pool).unwrap();
    package(folder, &pool, "rw-alpha", "1.0", "", &[]);
    package(folder, &pool, "rw-alpha", "2.0", "", &[]);
    package(folder, &pool, "rw-beta", "1.0", "Depends: rw-alpha\n", &[]);
    package(
        folder,
        &pool,
        "rw-gamma",
        "1.0",
        "Conflicts: rw-alpha\nProvides: rw-virtual\n",
        &[],
    );
    package(
        folder,
        &pool,
        "rw-broken",
        "1.0",
        "",
        &[("postinst", "[ ! -e /root/fail ]")],
    );
    let scripts = [
        ("postinst", "mkdir -p /var/lib/rw-data"),
        ("postrm", "[ \"$1\" = remove ] || rm -rf /var/lib/rw-data"),
    ];
    package(folder, &pool, "rw-data", "1.0", "", &scripts);
    let binary = deb.join("dists/stable/main/binary-amd64");
    fs::create_dir_all(&binary).unwrap();
    let packages = must(
        Command::new("apt-ftparchive")
            .current_dir(&deb)
            .args(["packages", "pool"]),
    );
    fs::write(binary.join("Packages"), packages).unwrap();
    let options = [
        "Suite=stable",
        "Codename=stable",
        "Components=main",
        "Architectures=amd64",
    ];
    let options = options.iter().flat_map(|option| {
        [
            "-o".to_owned(),
            format!("APT::FTPArchive::Release::{option}"),
        ]
    });
    let release = must(
        Command::new("apt-ftparchive")
            .current_dir(&deb)
            .args(options)
            .args(["release", "dists/stable"]),
    );
    fs::write(deb.join("dists/stable/Release"), release).unwrap();
    must(gpg(home).current_dir(deb.join("dists/stable")).args([
        "-u",
        "lab@example.org",
        "--clearsign",
        "-o",
        "InRelease",
        "Release",
    ]));
    deb
}

fn package(
    folder: &Path,
    pool: &Path,
    name: &str,
    version: &str,
    fields: &str,
    scripts: &[(&str, &str)],
) {
    let root = folder.join(format!("{name}_{version}"));
    fs::create_dir_all(root.join("DEBIAN")).unwrap();
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::create_dir_all(root.join("usr/share").join(name)).unwrap();
    let control = format!(
        "Package: {name}\n\
         Version: {version}\n\
         Architecture: amd64\n\
         Maintainer: nobody <nobody@example.org>\n\
         {fields}Description: a package of the rig\n"
    );
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    fs::write(root.join("DEBIAN/conffiles"), format!("/etc/{name}.conf\n")).unwrap();
    fs::write(
        root.join(format!("etc/{name}.conf")),
        format!("from = {version}\n"),
    )
    .unwrap();
    fs::write(root.join("usr/share").join(name).join("version"), version).unwrap();
    for (name, script) in scripts {
        let path = root.join("DEBIAN").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        must(Command::new("chmod").arg("755").arg(path));
    }
    must(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-b"])
            .arg(&root)
            .arg(pool),
    );
}

fn make_rpm(folder: &Path, home: &Path) -> PathBuf {
    let rpm = folder.join("rpm");
    fs::create_dir(&rpm).unwrap();
    for (name, version, fields) in [
        ("rw-alpha", "1.0", ""),
        ("rw-alpha", "2.0", ""),
        ("rw-beta", "1.0", "Requires: rw-alpha\n"),
        (
            "rw-gamma",
            "1.0",
            "Obsoletes: rw-alpha < 2.0\nProvides: rw-virtual = 1\nObsoletes: rw-older\n",
        ),
        ("rw-older", "1.0", ""),
    ] {
        let spec = folder.join(format!("{name}.spec"));
        let text = format!(
            "Name: {name}\n\
             Version: {version}\n\
             Release: 1\n\
             Summary: a package of the rig\n\
             License: none\n\
             BuildArch: noarch\n\
             {fields}%description\n\
             x\n\
             %pre -p <lua>\n\
             while posix.access('/root/hold') do io.open('/root/held', 'w'):close() \
             posix.sleep(1) end\n\
             %install\n\
             mkdir -p %{{buildroot}}/usr/share/{name}\n\
             echo {version} >%{{buildroot}}/usr/share/{name}/version\n\
             %files\n\
             /usr/share/{name}\n"
        );
        fs::write(&spec, text).unwrap();
        let top = format!("_topdir {}", folder.join("rpmbuild").display());
        must(
            Command::new("rpmbuild")
                .env("HOME", folder)
                .args(["-bb", "--quiet", "--define", &top])
                .arg(&spec),
        );
        let built = folder.join(format!(
            "rpmbuild/RPMS/noarch/{name}-{version}-1.noarch.rpm"
        ));
        must(
            Command::new("rpmsign")
                .env("HOME", folder)
                .env("GNUPGHOME", home)
                .args([
                    "--define",
                    "_gpg_name lab@example.org",
                    "--define",
                    "__gpg /usr/bin/gpg",
                    "--addsign",
                ])
                .arg(&built),
        );
        must(Command::new("cp").arg(&built).arg(&rpm));
    }
    must(Command::new("createrepo_c").arg("--quiet").arg(&rpm));
    rpm
}
