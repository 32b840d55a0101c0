//! The hosts of the comparison: each an OpenSSH server of its own, in a Debian root and namespaces
//! of its own, at an address of its own on loopback. All have one configuration, whoever comes.

use railwright_base::Digest;
use serde_json::json;
use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where the servers listen, at 127.77.0.1 and upwards.
pub const PORT: u16 = 22077;

/// What Ansible and pyinfra need on a host, and the declared packages.
const INCLUDE: &str = "--include=openssh-server,python3,python3-apt,procps,kmod,iproute2";

/// One configuration for everybody: nobody is turned away for coming with many at a time, nobody
/// waits for PAM or DNS.
const SSHD_CONFIG: &str = "HostKey /etc/ssh/bench_host_key
PidFile none
UsePAM no
UseDNS no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
AuthorizedKeysFile /etc/ssh/bench_authorized_keys
MaxStartups 200
MaxSessions 64
Subsystem sftp internal-sftp
";

/// A fake `systemctl`, the same for everybody: no systemd runs in these roots. It answers
/// `show` and `is-enabled`, which is what is asked.
const SYSTEMCTL: &str = r#"#!/bin/sh
verb= units=
while [ $# -gt 0 ]; do
case $1 in
-p|--property) shift ;;
-*) ;;
*) if [ -z "$verb" ]; then verb=$1; else units="$units $1"; fi ;;
esac
shift
done
for u in $units; do
case $u in
chrony*) active=inactive sub=dead file=disabled ;;
*) active=active sub=running file=enabled ;;
esac
case $verb in
show) printf 'Id=%s\nNames=%s\nType=notify\nRemainAfterExit=no\nResult=success\nLoadState=loaded\nActiveState=%s\nSubState=%s\nFragmentPath=/lib/systemd/system/%s\nUnitFileState=%s\nUnitFilePreset=enabled\nNeedDaemonReload=no\nActiveEnterTimestampMonotonic=9000000\nExecMainExitTimestampMonotonic=0\nCanStart=yes\nCanStop=yes\n\n' "$u" "$u" "$active" "$sub" "$u" "$file" ;;
is-enabled) echo "$file"; [ "$file" = enabled ] || exit 1 ;;
esac
done
exit 0
"#;

/// The resources from which every tool's own form is made. About half of them are in sync.
pub struct PeerResources {
    /// Kernel settings with the desired value.
    pub sysctls: Vec<(String, String)>,
    /// Kernel modules to be loaded at boot.
    pub modules: Vec<&'static str>,
    /// Files with their content.
    pub files: Vec<(String, String)>,
    /// Packages that are installed.
    pub packages: Vec<&'static str>,
    /// Units that are to run and to start at boot.
    pub units: Vec<&'static str>,
}

impl PeerResources {
    /// Every second kernel setting as it is on this machine, the others one higher: nothing is ever
    /// set.
    fn here() -> PeerResources {
        let keys = [
            "net.core.somaxconn",
            "vm.max_map_count",
            "vm.swappiness",
            "kernel.pid_max",
            "fs.file-max",
            "kernel.threads-max",
        ];
        let now = |key: &str| {
            fs::read_to_string(format!("/proc/sys/{}", key.replace('.', "/")))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let desired = |(n, key): (usize, &&str)| {
            let value = now(key);
            let other = value
                .parse::<u64>()
                .map(|value| (value / 2 + 1).to_string())
                .unwrap_or_else(|_| "1".into());
            (key.to_string(), if n % 2 == 0 { value } else { other })
        };
        let content =
            |n: usize| format!("# rail {n}\n{}", format!("option_{n} = value\n").repeat(20));
        PeerResources {
            sysctls: keys.iter().enumerate().map(desired).collect(),
            modules: vec!["rdma_cm", "ib_uverbs", "rdma_ucm", "ib_umad"],
            files: (0..4)
                .map(|n| (format!("/etc/bench-{n}.conf"), content(n)))
                .collect(),
            packages: vec!["iproute2", "procps", "kmod"],
            units: vec!["ssh.service", "cron.service", "chrony.service"],
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sysctls.len()
            + self.modules.len()
            + self.files.len()
            + self.packages.len()
            + self.units.len()
    }
}

/// Hosts that run; they end with the value.
pub struct Hosts {
    running: Vec<Child>,
    /// Keys, known_hosts and the forms of all tools lie here.
    pub folder: tempfile::TempDir,
    /// Name and address of each.
    pub names: Vec<(String, String)>,
    /// The desired resources of each.
    pub resources: PeerResources,
}

impl Hosts {
    /// Starts them, or says what is missing here.
    pub fn start(count: usize) -> Result<Hosts, String> {
        let root = root()?;
        let rigs = rigs();
        let folder = tempfile::Builder::new()
            .prefix("peers-")
            .tempdir_in(&rigs)
            .map_err(|e| e.to_string())?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
            .map_err(|e| e.to_string())?;
        keygen(&folder.path().join("id"))?;
        let names = (1..=count)
            .map(|n| (format!("h{n:02}"), format!("127.77.0.{n}")))
            .collect();
        let mut hosts = Hosts {
            running: Vec::new(),
            folder,
            names,
            resources: PeerResources::here(),
        };
        hosts.fill_layer();
        let mut known = String::new();
        for (name, address) in hosts.names.clone() {
            let (child, key) = hosts.begin(&root, &name, &address)?;
            hosts.running.push(child);
            known.push_str(&format!("[{address}]:{PORT} {key}\n"));
        }
        hosts.write("known_hosts", &known);
        for (_, address) in &hosts.names {
            answers(address)?;
        }
        Ok(hosts)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its content as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file of the folder.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of our own");
        fs::write(path, text).expect("a file of our own");
    }

    /// The port of all.
    pub fn port(&self) -> u16 {
        PORT
    }

    /// The layer that all hosts have above the Debian root: their configuration and the resources
    /// that are in sync.
    fn fill_layer(&self) {
        let public = fs::read_to_string(self.path("id.pub")).expect("a key of our own");
        let put = |path: &str, text: &str| self.write(&format!("layer/{path}"), text);
        put("etc/ssh/sshd_config", SSHD_CONFIG);
        put("etc/ssh/bench_authorized_keys", &public);
        put("usr/bin/systemctl", SYSTEMCTL);
        fs::set_permissions(
            self.path("layer/usr/bin/systemctl"),
            fs::Permissions::from_mode(0o755),
        )
        .expect("a file of our own");
        put("run/systemd/system/.keep", "");
        put("run/sshd/.keep", "");
        for unit in &self.resources.units {
            put(
                &format!("usr/lib/systemd/system/{unit}"),
                "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
            );
        }
        let settings = self
            .resources
            .sysctls
            .iter()
            .step_by(2)
            .map(|(key, value)| format!("{key} = {value}\n"));
        put("etc/sysctl.d/90-bench.conf", &settings.collect::<String>());
        let modules = self
            .resources
            .modules
            .iter()
            .step_by(2)
            .map(|name| format!("{name}\n"));
        put(
            "etc/modules-load.d/bench.conf",
            &modules.collect::<String>(),
        );
        self.resources
            .files
            .iter()
            .step_by(2)
            .for_each(|(path, content)| put(path.trim_start_matches('/'), content));
    }

    fn begin(&self, root: &Path, name: &str, address: &str) -> Result<(Child, String), String> {
        drop(
            TcpListener::bind((address, PORT))
                .map_err(|e| format!("something else listens at {address}:{PORT}: {e}"))?,
        );
        let at = |part: &str| self.text(&format!("{name}/{part}"));
        for part in ["upper/etc/ssh", "work", "root"] {
            fs::create_dir_all(at(part)).map_err(|e| e.to_string())?;
        }
        let key = PathBuf::from(at("upper/etc/ssh/bench_host_key"));
        keygen(&key)?;
        let public = fs::read_to_string(key.with_extension("pub")).map_err(|e| e.to_string())?;
        let script = "set -e\n\
                      mount -t overlay overlay -o \
                      lowerdir=\"$1:$2\",upperdir=\"$3/upper\",workdir=\"$3/work\" \"$3/root\"\n\
                      mount -t proc proc \"$3/root/proc\"\n\
                      mount --rbind /sys \"$3/root/sys\"\n\
                      mount --rbind /dev \"$3/root/dev\"\n\
                      hostname \"$4\"\n\
                      exec chroot \"$3/root\" /usr/sbin/sshd -D -e -o ListenAddress=\"$5\" -o \
                      Port=\"$6\"\n";
        let log = fs::File::create(at("log")).map_err(|e| e.to_string())?;
        // An interrupted comparison leaves no server behind.
        let mut apart = Command::new("setpriv");
        apart.args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--uts",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            script,
            "sh",
        ]);
        apart.args([
            &self.text("layer"),
            &root.display().to_string(),
            &self.text(name),
            name,
            address,
            &PORT.to_string(),
        ]);
        let child = apart
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| e.to_string())?;
        Ok((
            child,
            public
                .split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" "),
        ))
    }

    /// The inventory that railwright plans, for the first of the hosts.
    pub fn inventory(&self, count: usize) -> PathBuf {
        let node = |(name, address): &(String, String)| {
            format!(
                "  - {{ name: {name}, os: debian-12, ssh: {{ address: {address}, port: {PORT} }} \
                 }}\n"
            )
        };
        let place = format!("inventory-{count}");
        let nodes: String = self.names.iter().take(count).map(node).collect();
        let (keys, id) = (self.text("known_hosts"), self.text("id"));
        let spec = format!(
            "cluster: bench\n\
             ssh: {{ user: root, host_keys: {keys}, identities: [{id}] }}\n\
             nodes:\n\
             {nodes}"
        );
        self.write(&format!("{place}/cluster.yaml"), &spec);
        // JSON is YAML as well.
        let mut resources = Vec::new();
        let parts = &self.resources;
        resources.extend(
            parts
                .sysctls
                .iter()
                .map(|(key, value)| json!({ "sysctl": { "key": key, "value": value } })),
        );
        resources.extend(
            parts
                .modules
                .iter()
                .map(|name| json!({ "kernel_module": { "name": name, "at_boot": true } })),
        );
        resources.extend(
            parts
                .files
                .iter()
                .map(|(path, content)| json!({ "file": { "path": path, "content": content } })),
        );
        resources.extend(
            parts
                .packages
                .iter()
                .map(|name| json!({ "package": { "name": name } })),
        );
        let unit = |name: &&str| json!({ "systemd_unit": { "name": name, "enabled": true, "active": true } });
        resources.extend(parts.units.iter().map(unit));
        for (n, resource) in resources.iter_mut().enumerate() {
            resource["id"] = json!(format!("resource-{n}"));
        }
        let module =
            json!({ "module": "bench", "summary": "twenty parts", "resources": resources });
        self.write(
            &format!("{place}/modules/bench/module.yaml"),
            &module.to_string(),
        );
        self.path(&place)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn rigs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/rigs")
}

fn has(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

/// The Debian root below all hosts, built once.
fn root() -> Result<PathBuf, String> {
    let id = Command::new("id")
        .arg("-u")
        .output()
        .map_err(|e| e.to_string())?;
    if id.stdout.trim_ascii() != b"0" {
        return Err("the hosts need root, for their namespaces".into());
    }
    if let Some(missing) = ["mmdebstrap", "unshare", "ssh", "ssh-keygen"]
        .iter()
        .find(|program| !has(program))
    {
        return Err(format!(
            "{missing} is missing: apt-get install mmdebstrap openssh-client util-linux"
        ));
    }
    let place = rigs().join(format!(
        "peers-root-{}",
        Digest::of_bytes(INCLUDE.as_bytes()).short()
    ));
    if !place.exists() {
        fs::create_dir_all(rigs()).map_err(|e| e.to_string())?;
        let fresh = place.with_extension("fresh");
        let _ = fs::remove_dir_all(&fresh);
        let mut build = Command::new("mmdebstrap");
        build
            .args([
                "--quiet",
                "--variant=apt",
                "--mode=root",
                INCLUDE,
                "bookworm",
            ])
            .arg(&fresh);
        let ended = build
            .stdin(Stdio::null())
            .status()
            .map_err(|e| e.to_string())?;
        if !ended.success() {
            return Err("the Debian root could not be built".into());
        }
        fs::rename(&fresh, &place).map_err(|e| e.to_string())?;
    }
    Ok(place)
}

fn keygen(path: &Path) -> Result<(), String> {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f"])
        .arg(path);
    let ended = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|e| e.to_string())?;
    if ended.success() {
        Ok(())
    } else {
        Err(format!("no key at {}", path.display()))
    }
}

fn answers(address: &str) -> Result<(), String> {
    for _ in 0..500 {
        let mut banner = [0; 4];
        if TcpStream::connect((address, PORT))
            .is_ok_and(|mut stream| stream.read_exact(&mut banner).is_ok())
        {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the server at {address} does not answer"))
}
