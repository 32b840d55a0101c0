//! Each translation checked by its own example, and by modules, rules, checks and kinds that there
//! are; hostile scripts.

use super::answer::{Translation, translate_script};
use super::load::{self, Dictionary, TranslationEntry};
use super::merge;
use crate::spec::source::SourceFile;
use proptest::prelude::*;
use serde_json::{Value, json};

fn dictionary() -> Dictionary {
    load::load_translations().unwrap_or_else(|(problems, _)| panic!("{problems:#?}"))
}

fn of(script: &str) -> Translation {
    translate_script(script, &dictionary()).unwrap()
}

/// The spec lines of one answer, as a part of a whole spec.
fn decodes(lines: &Value) -> Result<(), String> {
    let kind = lines
        .pointer("/fabric/kind")
        .cloned()
        .unwrap_or(json!("rocev2"));
    let mut whole = json!({
        "cluster": "a",
        "fabric": { "kind": kind },
        "nodes": [{ "name": "n1", "gpu": { "model": "A100-SXM4-80GB", "count": 8 }, "nics": { "model": "ConnectX-6", "netdev": "ens1f0np0" } }],
    });
    if lines.pointer("/fabric/lossless").is_some() {
        whole["fabric"]["lossless"] = json!({ "priority": 3, "dscp": 26 });
    }
    merge::merge_spec_value(&mut whole, lines, "", &mut Vec::new());
    let text = serde_json::to_string_pretty(&whole).unwrap();
    crate::spec::load_spec(vec![SourceFile {
        name: "spec.yaml".to_owned(),
        text: text.clone(),
    }])
    .map(drop)
    .map_err(|problems| {
        format!(
            "{text}\n{:?}",
            problems
                .diagnostics
                .iter()
                .map(|problem| problem.message.clone())
                .collect::<Vec<_>>()
        )
    })
}

/// What is wrong with an entry.
fn faults(entry: &TranslationEntry, dictionary: &Dictionary) -> Vec<String> {
    let mut faults = Vec::new();
    let translation = translate_script(&entry.case.input, dictionary).unwrap();
    let mine = translation
        .answers
        .iter()
        .find(|answer| answer.translation.as_deref() == Some(&entry.id));
    let Some(answer) = mine else {
        return vec![format!(
            "{}: the case is not its own: {:#?}",
            entry.id, translation.answers
        )];
    };
    if !answer.left.is_empty()
        || translation
            .answers
            .iter()
            .any(|other| !other.left.is_empty())
    {
        faults.push(format!(
            "{}: left over: {:?}",
            entry.id, translation.answers
        ));
    }
    let spec = answer.spec.clone().unwrap_or_default();
    if spec != entry.case.spec {
        faults.push(format!("{}: the case makes {spec}", entry.id));
    }
    for text in [&answer.does, &answer.why] {
        if text.contains('{') {
            faults.push(format!("{}: a place was not filled: {text}", entry.id));
        }
    }
    for lines in [&answer.spec, &answer.better].into_iter().flatten() {
        faults.extend(
            decodes(lines)
                .err()
                .map(|fault| format!("{}: {fault}", entry.id)),
        );
    }
    faults
}

#[test]
fn each_entry_translates_its_own_case() {
    let dictionary = dictionary();
    let faults: Vec<String> = dictionary
        .entries()
        .flat_map(|entry| faults(entry, &dictionary))
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(dictionary.entries().count() > 60);
}

#[test]
fn what_an_entry_names_is_there() {
    let modules: Vec<String> = crate::module::collect_shipped_modules()
        .iter()
        .filter_map(|module| module.folder.strip_prefix("modules/").map(str::to_owned))
        .collect();
    let rules = crate::rules::load_rules("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let checks = [
        "connection",
        "netdev",
        "rdma link",
        "gid",
        "path mtu",
        "dscp",
        "memlock",
        "loopback",
        "bandwidth",
        "latency",
        "counters",
        "erdma traffic",
    ];
    let mut missing = Vec::new();
    for entry in dictionary().entries() {
        let covers = &entry.covers;
        missing.extend(
            covers
                .modules
                .iter()
                .filter(|name| !modules.contains(name))
                .map(|name| format!("{}: module {name}", entry.id)),
        );
        missing.extend(
            covers
                .rules
                .iter()
                .filter(|code| !rules.rules.contains_key(*code))
                .map(|code| format!("{}: rule {code}", entry.id)),
        );
        missing.extend(
            covers
                .verify
                .iter()
                .filter(|name| !checks.contains(&name.as_str()))
                .map(|name| format!("{}: check {name}", entry.id)),
        );
        let unknown = |name: &&String| railwright_resource::kind_named(name).is_none();
        missing.extend(
            covers
                .drift
                .iter()
                .filter(unknown)
                .map(|name| format!("{}: kind {name}", entry.id)),
        );
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn what_the_shell_adds_around_commands_is_not_theirs() {
    let plain = of("ip link set dev ens1 mtu 9000").spec;
    for script in [
        "$ sudo -n ip link set dev ens1 mtu 9000 >/dev/null 2>&1",
        "# a comment; reboot\nip link set dev \\\n  'ens1' mtu \"9000\" # more\r\n",
        "if true; then ip link set dev ens1 mtu 9000; fi 2>log",
        "ip link set ens1 mtu 9000 &&ifconfig ens1 mtu 9000 up|| echo failed",
    ] {
        assert_eq!(of(script).spec, plain, "{script}");
    }
    let limits = json!({ "modules": { "memlock": { "parameters": { "limit": "unlimited" } } } });
    let written = "cat >> /etc/security/limits.conf <<'EOF'\n\
                   # all\n\
                   * soft memlock unlimited\n\
                   * hard memlock unlimited\n\
                   EOF\n\
                   reboot\n";
    let translation = of(written);
    assert_eq!(
        (translation.spec.clone(), translation.is_understood()),
        (limits, true),
        "{translation:#?}"
    );
    assert_eq!(
        translation.answers[0]
            .commands
            .iter()
            .map(|said| said.line)
            .collect::<Vec<_>>(),
        [3, 4]
    );
    let class = "for d in /sys/class/infiniband/*; do\n  echo 106 > $d/tc/1/traffic_class\ndone";
    assert!(
        of(class).is_understood() && of(class).spec["jobs"]["environment"]["NCCL_IB_TC"] == "106",
        "{:#?}",
        of(class)
    );
    let options =
        of("echo 'options erdma compat_mode=Y' | sudo tee -a /etc/modprobe.d/erdma.conf").spec;
    assert_eq!(
        options,
        json!({ "fabric": { "kind": "erdma" }, "nodes": [{ "erdma": { "mode": "compat" } }] })
    );
}

#[test]
fn what_is_not_understood_is_told() {
    for (script, left) in [
        ("frobnicate --all", vec![]),
        ("apt-get install -y mofed emacs", vec!["emacs"]),
        (
            "mlnx_qos -i ens1 --pfc 0,0,0,1,0,0,0,0 --cable_len 7",
            vec!["--cable_len", "7"],
        ),
        (
            "mlnx_qos -i ens1 --pfc 0,0,1,1,0,0,0,0",
            vec!["--pfc", "0,0,1,1,0,0,0,0"],
        ),
        ("ip link set dev $IF mtu 9000", vec!["$IF"]),
        (
            "echo 1 > /sys/class/net/ens1/x",
            vec![">", "/sys/class/net/ens1/x"],
        ),
        ("export NCCL_IB_TC=106 PATH=/x", vec!["PATH=/x"]),
    ] {
        let translation = of(script);
        assert!(!translation.is_understood(), "{script}");
        let told: Vec<&str> = translation
            .answers
            .iter()
            .flat_map(|answer| &answer.left)
            .map(String::as_str)
            .collect();
        assert_eq!(told, left, "{script}");
    }
    assert_eq!(
        of("ip link set dev $IF mtu 9000").spec,
        json!({}),
        "a variable is no name of a netdev"
    );
    assert_eq!(
        translate_script("echo 'a", &dictionary()).unwrap_err().code,
        "RW1034"
    );
}

#[test]
fn commands_that_differ_are_no_silent_choice() {
    let translation = of("ip link set ens1 mtu 9000\nip link set ens1 mtu 4200\n");
    assert_eq!(translation.spec["fabric"]["mtu"], 4200);
    assert_eq!(
        translation
            .conflicts
            .iter()
            .map(|conflict| conflict.path.as_str())
            .collect::<Vec<_>>(),
        ["fabric.mtu"]
    );
    assert_eq!(
        of("mlnx_qos -i a --trust dscp --pfc 0,0,0,1,0,0,0,0")
            .answers
            .len(),
        2
    );
}

#[test]
fn a_file_that_is_not_sound_is_refused_with_its_place() {
    let entry = |more: &str| {
        format!(
            "family: f\n\
             summary: s\n\
             translations:\n  - {{ id: a, does: d, why: w, source: s, case: {{ input: x }}, {more} }}\n"
        )
    };
    for (text, code) in [
        (entry("words: [['a']], mine: 1"), "RW0105"),
        (entry("words: [['?a']]"), "RW1035"),
        (entry("words: [['a {b:colour}']]"), "RW1035"),
        (entry("words: [['a {b']]"), "RW1035"),
    ] {
        let (problems, _) =
            load::parse_translation_files(vec![("f.yaml".to_owned(), text.clone())]).unwrap_err();
        assert_eq!(problems[0].code, code, "{text}");
        assert!(!problems[0].labels.is_empty(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_script_panics(script in "(?s).{0,80}") {
        check(&script);
    }

    #[test]
    fn no_mix_of_what_we_know_panics(words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..20), gap in "[ \n;|&<>'\"`$(){}\\\\é]{0,2}") {
        check(&words.join(&format!(" {gap}")));
    }
}

const WORDS: &[&str] = &[
    "apt-get",
    "install",
    "mofed",
    "ip",
    "link",
    "set",
    "dev",
    "mtu",
    "9000",
    "mlnx_qos",
    "-i",
    "--pfc",
    "0,0,0,1,0,0,0,0",
    "echo",
    "106",
    ">",
    "<<EOF",
    "EOF",
    "tee",
    "|",
    "sudo",
    "git",
    "clone",
    "make",
    "export",
    "NCCL_X=",
    "{netdev}",
    "$(x",
    "`",
    "#",
    "sysctl",
    "a=b",
    "/etc/security/limits.conf",
    "2>",
    "&>",
    "-o",
    "=",
    "nvidia-driver-",
    "nv_peer_memory.git",
    "https://x/nv_peer_memory.git",
    "checkout",
];

fn check(script: &str) {
    static DICTIONARY: std::sync::OnceLock<Dictionary> = std::sync::OnceLock::new();
    let dictionary = DICTIONARY.get_or_init(dictionary);
    if let Ok(translation) = translate_script(script, dictionary) {
        assert_eq!(translate_script(script, dictionary).unwrap(), translation);
    }
}

/// What is reported of each setting must not hold the whole command anew, or the script is squared.
#[test]
fn a_command_of_many_settings_is_told_in_short() {
    let settings: String = (0..400).map(|n| format!(" net.core.a{n}={n}")).collect();
    let file = "x".repeat(3000);
    for script in [
        format!("sysctl -w{settings}"),
        format!("cat > /etc/sysctl.d/{file} <<EOF\na = 1\nEOF"),
    ] {
        let texts = of(&script)
            .answers
            .into_iter()
            .flat_map(|answer| answer.commands)
            .map(|said| said.text);
        let longest = texts.map(|text| text.chars().count()).max();
        assert_eq!(longest, Some(super::script::TEXT_MAX), "{}", &script[..40]);
    }
}
