//! A switch with EOS over eAPI, without SSH: whose certificate is taken, who is let in, and
//! connections that break. Its whole life is in `eos.rs`.

use crate::eos::Way;
use crate::https::{Https, PASSWORD, USER};
use crate::journeys::Fabric;
use railwright_knowledge::spec::model::ApiKind;
use railwright_resource::file::base64;
use railwright_resource::probe::Probe;
use railwright_transport::{
    ApiAccess, CertificatePin, ExecutionOutcome, Fence, LockOutcome, Locker, Password,
    RecordOutcome, RecordReading, Secrets, TargetAccess, TargetReach, TransportError,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn start(story: &str, timer: &str) -> Option<Fabric> {
    Way::Eapi.start(story, timer)
}

impl Fabric {
    fn api(&self) -> &Https {
        self.switch.api()
    }

    fn fails(&self, words: &[&str], what: &[&str]) {
        let said = self.says(words);
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            what.iter().all(|what| flat.contains(what)),
            "{what:?}\n{said}"
        );
    }

    /// No command on the switch had the password in it, and nothing of a script is left there.
    pub fn sent_no_password(&self) {
        let commands = self.api().read("commands");
        assert!(
            commands.lines().count() > 20
                && commands
                    .lines()
                    .all(|line| line.starts_with("bash timeout 30 echo ")),
            "{commands}"
        );
        let scripts: String = commands.split(' ').filter_map(decoded).collect();
        assert!(
            scripts.contains("FastCli")
                && !scripts.contains(PASSWORD)
                && !commands.contains(PASSWORD)
        );
        assert_eq!(self.switch.must("ls /tmp"), "");
    }

    fn pins(&self, certificate: &str) {
        self.place.write("inv/leaf1.pem", certificate);
    }
}

fn decoded(word: &str) -> Option<String> {
    let bytes = base64::decode_base64_text(word).filter(|_| word.len() > 40)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Nobody said yet whose certificate it is; it is another; it is what an authority signed, or
/// signed for somebody else, or too long ago.
#[test]
fn whose_certificate_is_taken() {
    let Some(fabric) = start("certificate", "60s") else {
        return;
    };
    std::fs::remove_file(fabric.place.path().join("inv/leaf1.pem")).unwrap();
    fabric.fails(
        &["validate", "inv"],
        &[
            "warning RW1005: there is no file leaf1.pem",
            "valid. Cluster fab",
        ],
    );
    insta::assert_snapshot!("eapi_certificate_unknown", fabric.says(&["plan", "inv"]));
    let fingerprint = fabric.api().fingerprint();
    fabric.rewrite(|spec| spec.replace("\"{name}.pem\"", &format!("\"sha256:{fingerprint}\"")));
    assert!(fabric.says(&["plan", "inv"]).contains("--- exit 0 ---"));
    fabric.api().makes_a_certificate();
    fabric.api().cut();
    fabric.fails(
        &["plan", "inv"],
        &[
            "RW0418",
            "is not the pinned one: sha256:FINGERPRINT",
            &format!("sha256:{fingerprint} in the spec"),
        ],
    );
    fabric.rewrite(|spec| spec.replace(&format!("sha256:{fingerprint}"), "{name}.pem"));
    fabric.pins("-----BEGIN CERTIFICATE-----\nAAAA\n");
    fabric.fails(&["plan", "inv"], &["RW0410", "leaf1.pem is no PEM file"]);

    fabric
        .api()
        .makes_a_signed_certificate("IP:127.0.0.1", "30");
    fabric.api().cut();
    let shown = fabric.api().fingerprint();
    // It shows what the first authority signed until it starts again.
    fabric.pins(
        &fabric
            .api()
            .makes_a_signed_certificate("IP:127.0.0.1", "30"),
    );
    insta::assert_snapshot!(
        "eapi_certificate_refused",
        fabric.says(&["plan", "inv"]).replace(&shown, "FINGERPRINT")
    );
    fabric.api().cut();
    assert!(
        fabric.says(&["plan", "inv"]).contains("--- exit 0 ---"),
        "signed by the pinned authority for this address"
    );
    for (name, days, why) in [
        (
            "IP:127.0.0.2",
            "30",
            "which the pinned authority signed for another name",
        ),
        ("IP:127.0.0.1", "-1", "which has expired"),
    ] {
        fabric.pins(&fabric.api().makes_a_signed_certificate(name, days));
        fabric.api().cut();
        fabric.fails(&["plan", "inv"], &["RW0418", why]);
    }
}

#[test]
fn who_is_not_let_in_changes_nothing() {
    let Some(fabric) = start("password", "60s") else {
        return;
    };
    let before = fabric.runs();
    fabric
        .place
        .write("inv/password", "poison-but-another-one\n");
    insta::assert_snapshot!("eapi_password", fabric.says(&["apply", "inv", "--yes"]));
    fabric.rewrite(|spec| spec.replace("{ file: password }", "{ env: EAPI_PASSWORD }"));
    fabric.fails(
        &["plan", "inv"],
        &[
            "the environment variable EAPI_PASSWORD is not set",
            "--- exit 3 ---",
        ],
    );
    let unset = "warning RW1016: the secret `switches[0].eapi.password` cannot be had: the \
                 environment variable EAPI_PASSWORD is not set";
    fabric.fails(
        &["validate", "inv"],
        &[unset, "valid. Cluster fab", "--- exit 0 ---"],
    );
    let several = fabric
        .place
        .command(&["plan", "inv"])
        .env("EAPI_PASSWORD", format!("{PASSWORD}\npoison"))
        .output()
        .unwrap();
    let several = format!(
        "{}{}",
        String::from_utf8_lossy(&several.stdout),
        String::from_utf8_lossy(&several.stderr)
    );
    assert!(
        several
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("it has several lines, and a password has one"),
        "{several}"
    );
    assert!(!several.contains("poison"), "{several}");
    let output = fabric
        .place
        .command(&["plan", "inv"])
        .env("EAPI_PASSWORD", format!("{PASSWORD}\n"))
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fabric.rewrite(|spec| spec.replace("{ env: EAPI_PASSWORD }", "{ command: [cat, password] }"));
    fabric.place.write("inv/password", PASSWORD);
    // A role without bash, and a user without sudo.
    fabric.api().fault("denied", "");
    insta::assert_snapshot!("eapi_denied", fabric.says(&["plan", "inv"]));
    fabric.api().fix("denied");
    fabric.switch.fault("no-sudo", "");
    fabric.fails(
        &["apply", "inv", "--yes"],
        &[
            "RW0407",
            "does not let operator use sudo without a password",
        ],
    );
    fabric.switch.fix("no-sudo");
    assert!(fabric.says(&["plan", "inv"]).contains("--- exit 0 ---"));
    assert_eq!(fabric.runs(), before);
}

#[test]
fn a_switch_without_eapi_is_told_apart_from_one_that_is_away() {
    let Some(fabric) = start("off", "60s") else {
        return;
    };
    fabric.api().fault("elsewhere", "");
    fabric.fails(
        &["plan", "inv"],
        &[
            "RW0420",
            "leaf1 has no eAPI at 127.0.0.1:PORT: it answers 404 for /command-api",
        ],
    );
    fabric.api().fix("elsewhere");
    fabric.api().fault("status", "502");
    fabric.fails(
        &["plan", "inv"],
        &["RW0408", "the server before the eAPI answers 502"],
    );
    fabric.api().fault("status", "500");
    fabric.fails(&["plan", "inv"], &["RW0401", "it answers 500: Bad Gateway"]);
    fabric.api().fix("status");
    fabric.api().go_down();
    insta::assert_snapshot!("eapi_off", fabric.says(&["plan", "inv"]));
    // A server of something else, without TLS.
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = plain.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = plain.accept().unwrap();
        let _ = stream.read(&mut [0; 16]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    fabric.rewrite(|spec| {
        spec.replace(
            &format!("port: {}", fabric.api().port()),
            &format!("port: {port}"),
        )
    });
    fabric.fails(
        &["plan", "inv"],
        &["RW0420", "what answers there does not speak TLS"],
    );
}

/// railwright dies in the commit: what it began is found by the next one.
#[test]
fn a_run_that_dies_in_the_commit_is_resumed() {
    let Some(fabric) = start("dies", "60s") else {
        return;
    };
    let before = fabric.runs();
    fabric.switch.fault("hang-after", "1");
    fabric.dies_in_the_middle();
    assert!(fabric.runs() != before, "it was in the middle");
    fabric.switch.fix("hang-after");
    fabric.resumes();
}

/// A script's end is what it was on the switch. Where nobody was told, nobody knows: a line that
/// breaks is no failure, and neither is a limit.
#[tokio::test]
async fn what_a_script_comes_to_is_told_or_unknown() {
    let Some(fabric) = start("ends", "60s") else {
        return;
    };
    let access = |port: &str| TargetAccess {
        name: "leaf1".to_owned(),
        reach: TargetReach::SwitchApi(ApiAccess {
            kind: ApiKind::Eapi,
            address: "127.0.0.1".to_owned(),
            port: port.parse().unwrap(),
            user: USER.to_owned(),
            pin: CertificatePin::File(fabric.place.path().join("inv/leaf1.pem")),
            password: Password::named("password"),
            read_only: false,
        }),
    };
    let secrets = Secrets::new(
        None,
        BTreeMap::from([("password".to_owned(), Ok(PASSWORD.to_owned()))]),
        BTreeMap::new(),
    );
    let connector = Arc::new(secrets).carried_by(railwright_transport::new_connector(
        railwright_transport::TargetContact::begin(),
    ));
    let locker = Locker::new(
        connector
            .connect(&access(&fabric.api().port()))
            .await
            .unwrap(),
    );
    let fence = Fence::new("test", 1);
    assert!(matches!(
        locker.lock(&fence).await.unwrap(),
        LockOutcome::Taken(_)
    ));
    let writer = locker.writer(fence);
    let link = writer.prober();
    let check = |script: &str| Probe::ModuleCheck {
        script: script.to_owned(),
    };

    let ExecutionOutcome::Ended {
        code,
        stdout,
        stderr,
    } = link
        .probe(&check("printf 'a\\0\\303'; cat; echo \"it's\" >&2; exit 7"))
        .await
        .unwrap()
    else {
        panic!("it ended")
    };
    assert_eq!(
        (code, stdout.as_str(), stderr.as_str()),
        (7, "a\0\u{fffd}", "it's\n")
    );
    // In many requests, each of which is below what nginx takes, and as root.
    let record = json!({ "text": "it's \u{e9}".repeat(100_000) }).to_string();
    let wrote = writer
        .record(record.clone(), Vec::new(), Default::default())
        .await
        .unwrap();
    assert_eq!(wrote, RecordOutcome::Written);
    let RecordReading::Text(stdout) = locker.reader().record().await.unwrap() else {
        panic!("it was written")
    };
    assert!(
        stdout.trim_end() == record,
        "{} of {} bytes",
        stdout.len(),
        record.len()
    );

    // In the request that starts it, and in one that only looks.
    for late in [false, true] {
        let script =
            check(": >/tmp/begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo went >/tmp/went");
        let breaks = async {
            while fabric.switch.sh("test -e /tmp/begun").code != Some(0) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let commands = || fabric.api().read("commands").lines().count();
            let begun = commands();
            while late && commands() == begun {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            fabric.switch.cut();
            fabric.switch.must("touch /tmp/go");
        };
        let (ended, ()) = tokio::join!(link.probe(&script), breaks);
        let ExecutionOutcome::Unknown { reason } = ended.unwrap() else {
            panic!("nobody was told")
        };
        assert!(
            reason.as_words().contains("the connection ended"),
            "{reason}"
        );
        fabric
            .switch
            .must("until [ -e /tmp/went ]; do sleep 0.1; done; rm /tmp/begun /tmp/go /tmp/went");
    }
    // The link goes on over a new connection, and a script that never began is an error.
    assert!(matches!(
        link.probe(&check("true")).await.unwrap(),
        ExecutionOutcome::Ended { code: 0, .. }
    ));
    fabric.api().go_down();
    // That the connection has ended is known by then.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let error = link.probe(&check("true")).await.unwrap_err();
    assert!(matches!(error, TransportError::NoApi { .. }), "{error:?}");
}

/// What only looks goes the same way: links with both their ends, and cables.
#[test]
fn links_and_cables_are_looked_at_over_eapi() {
    let Some(fabric) = start("look", "60s") else {
        return;
    };
    // Whose other end nobody reaches.
    fabric.rewrite(|spec| {
        spec.replace(
            "switches:\n",
            "switches:\n  - { name: spine1, os: eos, role: spine }\n",
        ) + "cabling: cabling.csv\n"
    });
    fabric.place.write(
        "inv/cabling.csv",
        "host,nic,switch,port\nleaf1,Ethernet2/1,spine1,Ethernet3/1\n",
    );
    let said = fabric.says(&["verify", "fabric", "inv", "--for", "0"]);
    assert!(
        !said.contains("RW04") && said.contains("mtu 1500 | ?"),
        "{said}"
    );
    let said = fabric.says(&["verify", "cabling", "inv"]);
    assert!(!said.contains("RW04") && said.contains("leaf1"), "{said}");
    assert!(fabric.api().read("commands").lines().count() >= 4);
}

/// What the fake of eAPI refuses, each seen once, by its data.
#[test]
fn the_fake_refuses_what_its_data_says() {
    let Some(fabric) = start("data", "60s") else {
        return;
    };
    let ask = |body: &str, credentials: &str| -> Value {
        let script = "import sys, ssl, json, base64, urllib.request as r, urllib.error as e\n\
                      port, body, who = sys.argv[1:]\n\
                      context = ssl.create_default_context(); context.check_hostname = False; \
                      context.verify_mode = ssl.CERT_NONE\n\
                      headers = \
                      {'Authorization': 'Basic ' + base64.b64encode(who.encode()).decode()}\n\
                      try: said = r.urlopen(r.Request(f'https://127.0.0.1:{port}/command-api', \
                      body.encode() or None, headers), context=context)\n\
                      except e.HTTPError as error: print(json.dumps({'status': error.code})); \
                      sys.exit()\n\
                      print(said.read().decode())\n";
        let port = fabric.api().port();
        let output = std::process::Command::new("/usr/bin/python3")
            .args(["-c", script, &port, body, credentials])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let who = format!("{USER}:{PASSWORD}");
    let run = |commands: Value| {
        let parameters = json!({ "version": 1, "cmds": commands, "format": "text" });
        ask(
            &json!({ "jsonrpc": "2.0", "method": "runCmds", "params": parameters, "id": 1 })
                .to_string(),
            &who,
        )
    };
    assert_eq!(ask("{}", "operator:wrong"), json!({ "status": 401 }));
    assert_eq!(ask("", &who), json!({ "status": 405 }));
    assert_eq!(ask("{", &who)["error"]["code"], -32700);
    assert_eq!(ask("[]", &who)["error"]["code"], -32600);
    assert_eq!(
        ask(r#"{"jsonrpc":"2.0","id":1,"method":"stop"}"#, &who)["error"]["code"],
        -32601
    );
    let version = r#"{"jsonrpc":"2.0","id":1,"method":"runCmds","params":{"version":2,"cmds":[]}}"#;
    assert_eq!(ask(version, &who)["error"]["code"], -32602);
    assert_eq!(
        run(json!(["enable", "bash timeout 5 echo x"]))["result"],
        json!([{}, { "output": "x\n" }])
    );
    for (commands, code, said) in [
        (
            json!(["bash timeout 5 echo x"]),
            1002,
            "privileged mode required",
        ),
        (
            json!(["enable", "bash echo x"]),
            1004,
            "Command not permitted via API access",
        ),
        (
            json!(["enable", "reload"]),
            1002,
            "Invalid input (at token 0: 'reload')",
        ),
        (
            json!(["enable", "bash timeout 1 sleep 9"]),
            1000,
            "timed out",
        ),
        (
            json!(["enable", "bash timeout 1 false"]),
            1000,
            "exit status 1",
        ),
    ] {
        let answer = run(commands);
        let last = answer["error"]["data"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string();
        assert!(
            answer["error"]["code"] == code && last.contains(said),
            "{answer}"
        );
    }
}
