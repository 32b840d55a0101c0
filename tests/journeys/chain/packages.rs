//! Packages by the names of DOCA, MLNX_OFED, NVIDIA's driver and CUDA, called fakes: they hold
//! real module files (of nothing but what modinfo says of them) and do on the host what the real
//! ones do there. The repositories are signed, and apt and dnf are real.

use crate::fixture::repository;
use crate::repositories::{gpg, new_key};
use crate::rig::must;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The release of the drivers of DOCA 2.9.1.
pub const OFED: &str = "24.10-2.1.8";
/// A driver of branch 535.
pub const DRIVER: &str = "535.183.06";

/// A package of a host: it needs others, has files, and a script that runs once they are there.
struct Package {
    name: &'static str,
    version: &'static str,
    needs: &'static [&'static str],
    files: Vec<(String, Vec<u8>)>,
    script: String,
}

/// What DKMS does once the sources are there; without the headers of the kernel that runs it builds
/// nothing, and the installation goes on.
fn dkms(name: &str, build: &str) -> String {
    format!(
        "k=$(uname -r)\n\
         if [ -d \"/lib/modules/$k/build/\" ]; then mkdir -p \"/lib/modules/$k/updates/dkms\"\n\
         {build}depmod -a \"$k\"\n\
         else echo \"Error! Your kernel headers for kernel $k cannot be found; {name} is not \
         built\" >&2; fi\n"
    )
}

/// A module file with what modinfo is to say of it.
pub fn module(name: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let all = [("name", name)].into_iter().chain(fields.iter().copied());
    let text: String = all
        .map(|(key, value)| format!("{key}={value}\\0"))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("module.ko");
    let mut cc = Command::new("cc")
        .args(["-c", "-x", "c", "-", "-o"])
        .arg(&out)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(
        cc.stdin.take().unwrap(),
        "__attribute__((section(\".modinfo\"), used)) static const char m[] = \"{text}\";"
    )
    .unwrap();
    assert!(cc.wait().unwrap().success());
    fs::read(out).unwrap()
}

/// The modules of the system's own kernel.
pub fn inbox(folder: &Path) {
    for (path, below) in [
        ("drivers/infiniband/core/ib_core", ""),
        ("drivers/infiniband/core/ib_uverbs", "ib_core"),
        ("drivers/infiniband/core/ib_umad", "ib_core"),
        ("drivers/infiniband/core/rdma_cm", "ib_core"),
        ("drivers/net/ethernet/mellanox/mlx5/core/mlx5_core", "mlxfw"),
        ("drivers/net/ethernet/mellanox/mlxfw/mlxfw", ""),
        (
            "drivers/infiniband/hw/mlx5/mlx5_ib",
            "mlx5_core,ib_core,ib_uverbs",
        ),
        ("drivers/gpu/drm/nouveau/nouveau", ""),
    ] {
        let file = folder.join(format!("kernel/{path}.ko"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let name = path.rsplit('/').next().unwrap();
        fs::write(
            file,
            module(
                name,
                &[("license", "GPL"), ("depends", below), ("intree", "Y")],
            ),
        )
        .unwrap();
    }
}

fn fake(name: &str) -> Vec<u8> {
    fs::read(repository("tests/fakes").join(name)).unwrap()
}

fn program(text: &str) -> Vec<u8> {
    format!("#!/bin/sh\n{text}").into_bytes()
}

fn package(name: &'static str, version: &'static str, needs: &'static [&'static str]) -> Package {
    Package {
        name,
        version,
        needs,
        files: Vec::new(),
        script: String::new(),
    }
}

/// The drivers, what loads them, and the tools beside them.
fn ofed() -> Vec<Package> {
    let source = "usr/src/ofa_kernel";
    let built = [
        ("mlx_compat", ""),
        ("ib_core", "mlx_compat"),
        ("ib_uverbs", "ib_core,mlx_compat"),
        ("ib_umad", "ib_core,mlx_compat"),
        ("rdma_cm", "ib_core,mlx_compat"),
        ("mlxfw", "mlx_compat"),
        ("mlx5_core", "mlxfw,mlx_compat"),
        ("mlx5_ib", "mlx5_core,ib_core,ib_uverbs,mlx_compat"),
    ];
    let files = built.map(|(name, below)| {
        let fields = [
            ("license", "Dual BSD/GPL"),
            ("version", OFED),
            ("srcversion", "0FEDC0DE0FEDC0DE0FEDC0D"),
            ("depends", below),
        ];
        (format!("{source}/{name}.ko"), module(name, &fields))
    });
    let kernel = Package {
        files: files.to_vec(),
        script: dkms(
            "mlnx-ofed-kernel",
            &format!("cp /{source}/*.ko \"/lib/modules/$k/updates/dkms/\"\n"),
        ),
        ..package("mlnx-ofed-kernel-dkms", OFED, &["dkms"])
    };
    let unit = "[Unit]\n\
                Description=openibd - configure Mellanox devices\n\
                [Service]\n\
                Type=oneshot\n\
                RemainAfterExit=yes\n\
                ExecStart=/etc/init.d/openibd start\n\
                ExecStop=/etc/init.d/openibd stop\n\
                [Install]\n\
                WantedBy=sysinit.target\n";
    // Only its part that matters here: what it loads, and the hooks that it runs.
    let openibd = "case $1 in\n\
                   start) for m in mlx5_core mlx5_ib ib_umad rdma_cm; do modprobe $m || exit; \
                   done\n\
                   [ ! -x /etc/infiniband/post-start-hook.sh ] || \
                   /etc/infiniband/post-start-hook.sh ;;\n\
                   stop) [ ! -x /etc/infiniband/pre-stop-hook.sh ] || \
                   /etc/infiniband/pre-stop-hook.sh ;;\n\
                   esac\n";
    let scripts = Package {
        files: vec![
            ("usr/lib/systemd/system/openibd.service".into(), unit.into()),
            ("etc/init.d/openibd".into(), program(openibd)),
        ],
        ..package("ofed-scripts", OFED, &[])
    };
    let mft = Package {
        files: vec![("usr/bin/mlxconfig".into(), fake("mlxconfig"))],
        ..package("mft", "4.30.1", &[])
    };
    let verbs = Package {
        files: vec![("usr/bin/ibv_devinfo".into(), fake("ibv_devinfo"))],
        ..package("ibverbs-utils", "2410mlnx54", &[])
    };
    let perftest = Package {
        files: vec![("usr/bin/ib_write_bw".into(), fake("ib_write_bw"))],
        ..package("perftest", OFED, &[])
    };
    vec![kernel, scripts, mft, verbs, perftest]
}

fn doca() -> Vec<Package> {
    let mut all = ofed();
    all.push(package(
        "doca-ofed",
        "2.9.1",
        &[
            "mlnx-ofed-kernel-dkms",
            "ofed-scripts",
            "mft",
            "ibverbs-utils",
        ],
    ));
    all
}

/// The driver is built for the RDMA stack that is there then: without one its module for peer
/// memory is an empty shell.
fn cuda() -> Vec<Package> {
    let source = "usr/src/nvidia";
    let fields = [
        ("license", "NVIDIA"),
        ("version", DRIVER),
        ("srcversion", "C0FFEEC0FFEEC0FFEEC0FFE"),
    ];
    let peer = |symbols| {
        [
            fields.as_slice(),
            &[("depends", "nvidia"), ("symbols", symbols)],
        ]
        .concat()
    };
    let build = format!(
        "cp /{source}/nvidia.ko \"/lib/modules/$k/updates/dkms/\"\n\
         v=empty; [ ! -e \"/lib/modules/$k/updates/dkms/ib_core.ko\" ] || v=peer\n\
         cp \"/{source}/nvidia-$v.ko\" \"/lib/modules/$k/updates/dkms/nvidia-peermem.ko\"\n"
    );
    let modules = Package {
        files: vec![
            (format!("{source}/nvidia.ko"), module("nvidia", &fields)),
            (
                format!("{source}/nvidia-peer.ko"),
                module("nvidia_peermem", &peer(OFED)),
            ),
            (
                format!("{source}/nvidia-empty.ko"),
                module("nvidia_peermem", &peer("")),
            ),
        ],
        script: dkms("nvidia", &build),
        ..package("nvidia-dkms-535", DRIVER, &["dkms"])
    };
    let driver = Package {
        files: vec![("usr/bin/nvidia-persistenced".into(), program("exit 0\n"))],
        ..package("nvidia-driver-535", DRIVER, &["nvidia-dkms-535"])
    };
    let unit = "[Service]\n\
                Type=forking\n\
                ExecStart=/usr/bin/nv-fabricmanager -c \
                /usr/share/nvidia/nvswitch/fabricmanager.cfg\n\
                [Install]\n\
                WantedBy=multi-user.target\n";
    let version = program(&format!("echo 'Fabric Manager version is : {DRIVER}'\n"));
    let manager = Package {
        files: vec![
            ("usr/bin/nv-fabricmanager".into(), version),
            (
                "usr/lib/systemd/system/nvidia-fabricmanager.service".into(),
                unit.into(),
            ),
        ],
        ..package("nvidia-fabricmanager-535", DRIVER, &[])
    };
    let compiler = program("echo 'Cuda compilation tools, release 12.2, V12.2.140'\n");
    let toolkit = Package {
        files: vec![("usr/local/cuda-12.2/bin/nvcc".into(), compiler)],
        ..package("cuda-toolkit-12-2", "12.2.2", &[])
    };
    vec![modules, driver, manager, toolkit]
}

/// What the distribution has.
fn archive() -> Vec<Package> {
    let headers = Package {
        script: "mkdir -p \"/lib/modules/$(uname -r)/build\"\n".into(),
        ..package("linux-headers-generic", "5.15.0.119", &[])
    };
    vec![
        headers,
        package("dkms", "2.8.7", &[]),
        package("ethtool", "5.16-1", &[]),
        package("gcc", "11.2.0", &[]),
        package("make", "4.3", &[]),
    ]
}

/// What Red Hat has. Scripts of packages need `/bin/sh`, and the rpm of the fixture knows of no
/// package that has it.
fn base_os() -> Vec<Package> {
    let headers = Package {
        script: "mkdir -p \"/lib/modules/$(uname -r)/build\"\n".into(),
        ..package("kernel-devel", "4.18.0-372.9.1.el8", &[])
    };
    let shell = package("bash", "4.4.20-4", &[]);
    let rest = [
        ("ethtool", "5.13-2"),
        ("gcc", "8.5.0-10"),
        ("make", "4.2.1-11"),
        ("elfutils-libelf-devel", "0.186-1"),
    ];
    [headers, shell]
        .into_iter()
        .chain(rest.map(|(name, version)| package(name, version, &[])))
        .collect()
}

fn mlnx_ofed() -> Vec<Package> {
    let mut all = ofed();
    all.push(package(
        "mlnx-ofed-all",
        OFED,
        &[
            "mlnx-ofed-kernel-dkms",
            "ofed-scripts",
            "mft",
            "ibverbs-utils",
        ],
    ));
    all
}

/// Repositories in folders of this machine.
pub struct Repositories {
    /// A folder for each.
    pub folder: PathBuf,
    keys: Vec<(&'static str, String)>,
}

impl Repositories {
    /// The public keys, by repository.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.keys.iter().map(|(name, key)| (*name, key.as_str()))
    }
}

/// Signs a repository whose packages lie in the folder already.
type Finish = fn(folder: &Path, home: &Path, who: &str);

/// Made once, each with a key of its own: for apt laid out flat as NVIDIA's are, for dnf with every
/// package signed.
pub fn repositories(is_debian: bool) -> &'static Repositories {
    static APT: OnceLock<Repositories> = OnceLock::new();
    static DNF: OnceLock<Repositories> = OnceLock::new();
    match is_debian {
        true => APT.get_or_init(|| {
            make(
                "apt",
                &[("archive", archive()), ("doca", doca()), ("cuda", cuda())],
                deb,
                sign_index,
            )
        }),
        false => DNF.get_or_init(|| {
            let epel = vec![package("dkms", "3.0.12-1", &[])];
            make(
                "dnf",
                &[
                    ("base", base_os()),
                    ("mlnx-ofed", mlnx_ofed()),
                    ("epel", epel),
                ],
                rpm,
                sign_packages,
            )
        }),
    }
}

fn make(
    sort: &str,
    all: &[(&'static str, Vec<Package>)],
    build: fn(&Package, &Path),
    finish: Finish,
) -> Repositories {
    // What lives as long as the process is dropped by nobody: a run takes the place of the one
    // before it.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("repositories-of-{sort}"));
    let _ = fs::remove_dir_all(&folder);
    let keyring = tempfile::tempdir().unwrap();
    let home = keyring.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    let mut keys = Vec::new();
    for (name, packages) in all {
        let who = format!("{name}@example.org");
        keys.push((*name, new_key(home, &who)));
        let at = folder.join(name);
        fs::create_dir_all(&at).unwrap();
        packages.iter().for_each(|package| build(package, &at));
        finish(&at, home, &who);
        fs::write(at.join("key.asc"), &keys[keys.len() - 1].1).unwrap();
    }
    must(
        Command::new("gpgconf")
            .env("GNUPGHOME", home)
            .args(["--kill", "all"]),
    );
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    Repositories { folder, keys }
}

fn sign_index(at: &Path, home: &Path, who: &str) {
    for (file, word) in [("Packages", "packages"), ("Release", "release")] {
        fs::write(
            at.join(file),
            must(
                Command::new("apt-ftparchive")
                    .current_dir(at)
                    .args([word, "."]),
            ),
        )
        .unwrap();
    }
    must(
        gpg(home)
            .current_dir(at)
            .args(["-u", who, "--clearsign", "-o", "InRelease", "Release"]),
    );
}

fn sign_packages(at: &Path, home: &Path, who: &str) {
    let all = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    let mut sign = Command::new("rpmsign");
    sign.env("HOME", home).env("GNUPGHOME", home).args([
        "--define",
        &format!("_gpg_name {who}"),
        "--define",
        "__gpg /usr/bin/gpg",
    ]);
    must(sign.arg("--addsign").args(all));
    must(Command::new("createrepo_c").arg("--quiet").arg(at));
}

fn lay_out(package: &Package, root: &Path) {
    for (path, content) in &package.files {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        let mode = if content.starts_with(b"#!") {
            0o755
        } else {
            0o644
        };
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn deb(package: &Package, into: &Path) {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    lay_out(package, root.path());
    let needs = if package.needs.is_empty() {
        String::new()
    } else {
        format!("Depends: {}\n", package.needs.join(", "))
    };
    let control = format!(
        "Package: {}\n\
         Version: {}\n\
         Architecture: amd64\n\
         Maintainer: nobody <nobody@example.org>\n\
         {needs}Description: a fake of the fixture\n",
        package.name, package.version
    );
    fs::create_dir_all(root.path().join("DEBIAN")).unwrap();
    fs::write(root.path().join("DEBIAN/control"), control).unwrap();
    if !package.script.is_empty() {
        let script = root.path().join("DEBIAN/postinst");
        fs::write(&script, program(&format!("set -e\n{}", package.script))).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    must(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Znone", "-b"])
            .arg(root.path())
            .arg(into),
    );
}

fn rpm(package: &Package, into: &Path) {
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("root");
    fs::create_dir(&root).unwrap();
    lay_out(package, &root);
    let (version, release) = package
        .version
        .split_once('-')
        .unwrap_or((package.version, "1"));
    let needs: String = package
        .needs
        .iter()
        .map(|name| format!("Requires: {name}\n"))
        .collect();
    let provides = if package.name == "bash" {
        "Provides: /bin/sh\n"
    } else {
        ""
    };
    let script = if package.script.is_empty() {
        String::new()
    } else {
        format!("%post\n{}", package.script)
    };
    let files: String = package
        .files
        .iter()
        .map(|(path, _)| format!("/{path}\n"))
        .collect();
    let text = format!(
        "Name: {}\n\
         Version: {version}\n\
         Release: {release}\n\
         Summary: a fake of the fixture\n\
         License: none\n\
         BuildArch: noarch\n\
         AutoReqProv: no\n\
         {needs}{provides}%global __os_install_post %{{nil}}\n\
         %description\n\
         x\n\
         %install\n\
         cp -a {}/. %{{buildroot}}/\n\
         {script}%files\n\
         {files}",
        package.name,
        root.display()
    );
    fs::write(work.path().join("package.spec"), text).unwrap();
    let top = format!("_topdir {}", work.path().join("rpmbuild").display());
    must(
        Command::new("rpmbuild")
            .env("HOME", work.path())
            .args(["-bb", "--quiet", "--define", &top])
            .arg(work.path().join("package.spec")),
    );
    for entry in fs::read_dir(work.path().join("rpmbuild/RPMS/noarch")).unwrap() {
        must(Command::new("cp").arg(entry.unwrap().path()).arg(into));
    }
}
