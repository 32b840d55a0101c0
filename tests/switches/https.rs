//! The HTTPS server of a switch's API, which is a fake beside the switch, with certificates
//! that OpenSSL makes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// The user, and the password that must be seen nowhere.
pub const USER: &str = "operator";
pub const PASSWORD: &str = "poison-Zx81-password";

/// A running server; it ends with the value.
pub struct Https {
    folder: tempfile::TempDir,
    script: PathBuf,
    entry: Mutex<String>,
    child: Mutex<Option<Child>>,
}

/// Runs `openssl`, which must succeed.
fn openssl(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("openssl")
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

const KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
];

impl Https {
    /// Serves with a script of the fakes, which enters the switch by this command line, and
    /// with a certificate that the switch made itself.
    pub fn start(script: &str, entry: String) -> Https {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("faults")).unwrap();
        std::fs::write(
            folder.path().join("users.json"),
            format!("{{\"{USER}\": \"{PASSWORD}\"}}"),
        )
        .unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fakes")
            .join(script);
        let https = Https {
            folder,
            script,
            entry: Mutex::new(entry),
            child: Mutex::new(None),
        };
        https.makes_a_certificate();
        https.come_up();
        https
    }

    /// The TCP port, the same for good.
    pub fn port(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("port")).unwrap()
    }

    fn come_up(&self) {
        let entry = self.entry.lock().unwrap().clone();
        let mut command = Command::new("/usr/bin/python3");
        command
            .arg(&self.script)
            .arg(self.folder.path())
            .args(entry.split(' '))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n", "the server of the API did not come up");
        *self.child.lock().unwrap() = Some(child);
    }

    /// Nobody listens any more, and all connections break.
    pub fn go_down(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// All connections break; it listens again at once.
    pub fn cut(&self) {
        self.go_down();
        self.come_up();
    }

    /// The switch has booted, and is entered by another command line.
    pub fn moved(&self, entry: String) {
        *self.entry.lock().unwrap() = entry;
        self.cut();
    }

    /// Lays a fault.
    pub fn fault(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("faults").join(name), text).unwrap();
    }

    /// Takes a fault away.
    pub fn fix(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join("faults").join(name)).unwrap();
    }

    /// What another client gets from the API of NVUE: one that looks at no certificate.
    pub fn asks(&self, method: &str, path: &str, body: &str) -> String {
        let program = "import base64, ssl, sys, urllib.request as r\n\
                       url, method, body, login = sys.argv[1:]\n\
                       login = 'Basic ' + base64.b64encode(login.encode()).decode()\n\
                       asked = r.Request(url, body.encode(), \
                       {'Authorization': login, 'Content-Type': 'application/json'}, \
                       method=method)\n\
                       print(r.urlopen(asked, \
                       context=ssl._create_unverified_context()).read().decode())";
        let url = format!("https://127.0.0.1:{}/nvue_v1{path}", self.port());
        let output = Command::new("/usr/bin/python3")
            .args([
                "-c",
                program,
                &url,
                method,
                body,
                &format!("{USER}:{PASSWORD}"),
            ])
            .output();
        let output = output.unwrap();
        assert!(
            output.status.success(),
            "{method} {path}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A file of its folder.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// The certificate that it shows.
    pub fn certificate(&self) -> String {
        self.read("cert.pem")
    }

    /// Its fingerprint, as OpenSSL prints it.
    pub fn fingerprint(&self) -> String {
        let said = openssl(
            self.folder.path(),
            &[
                "x509",
                "-noout",
                "-fingerprint",
                "-sha256",
                "-in",
                "cert.pem",
            ],
        );
        said.trim().split_once('=').unwrap().1.to_owned()
    }

    /// Shows a new certificate from its next start on, which it signs itself, for nobody in
    /// particular.
    pub fn makes_a_certificate(&self) {
        let words = [
            &["req", "-x509"],
            &KEY[..],
            &[
                "-days",
                "30",
                "-subj",
                "/CN=switch",
                "-keyout",
                "key.pem",
                "-out",
                "cert.pem",
            ],
        ]
        .concat();
        openssl(self.folder.path(), &words);
    }

    /// A certificate that an authority signs for this name (`IP:127.0.0.1`); returns the
    /// authority's own.
    pub fn makes_a_signed_certificate(&self, name: &str, days: &str) -> String {
        let folder = self.folder.path();
        let authority = [
            &["req", "-x509"],
            &KEY[..],
            &[
                "-days",
                "30",
                "-subj",
                "/CN=authority",
                "-keyout",
                "ca-key.pem",
                "-out",
                "ca.pem",
            ],
        ]
        .concat();
        openssl(folder, &authority);
        openssl(
            folder,
            &[
                &["req"],
                &KEY[..],
                &[
                    "-subj",
                    "/CN=switch",
                    "-keyout",
                    "key.pem",
                    "-out",
                    "request.pem",
                ],
            ]
            .concat(),
        );
        std::fs::write(folder.join("names"), format!("subjectAltName={name}\n")).unwrap();
        let sign = [
            "x509",
            "-req",
            "-in",
            "request.pem",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca-key.pem",
            "-CAcreateserial",
            "-extfile",
            "names",
        ];
        openssl(
            folder,
            &[&sign[..], &["-days", days, "-out", "cert.pem"]].concat(),
        );
        self.read("ca.pem")
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        self.go_down();
    }
}
