//! The automatic rollback of a switch, where not all can be put back, on fakes of switches.

use super::SwitchSystem;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

const BEFORE: &str = "hostname a\nqos map dscp 48 to traffic-class 6\nend\n";
const REFUSES: &str = "echo '% Error: no space'";

/// A fake of a switch: the files `runs`, `startup` and `told`, and a command line that goes by
/// them.
struct FakeSwitch {
    system: SwitchSystem,
    folder: tempfile::TempDir,
}

impl FakeSwitch {
    /// An automatic rollback has kept what runs and is saved.
    fn new(system: SwitchSystem, cli: &str, runs: &str, saved: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let switch = FakeSwitch { system, folder };
        std::fs::create_dir(switch.at("kept")).unwrap();
        switch.write("told", "");
        switch.write("runs", runs);
        if let Some(saved) = saved {
            switch.write("startup", saved);
        }
        switch.write(system.asked(), &format!("#!/bin/sh\n{cli}\n"));
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(switch.at(system.asked()), may_run).unwrap();
        assert_eq!(switch.run(&system.keep_script("0")), Some(0));
        switch
    }

    /// EOS, whose `copy` does this, and which takes no session.
    fn eos(copy: &str, saved: Option<&str>) -> Self {
        let cli = format!(
            "ok() {{ echo 'Copy completed successfully.'; }}\n\
             case $4 in show\\ running*) cat runs ;; copy*) {copy} ;; *replace*) cp kept/0 runs ;; \
             *) echo \"$4\" >>told; echo '% Invalid input' ;; esac"
        );
        Self::new(SwitchSystem::Eos, &cli, BEFORE, saved)
    }

    /// Cumulus Linux, which takes no patch.
    fn cumulus(all: &str) -> Self {
        let cli = "case $* in *show*applied*) cat runs ;; *show*startup*) cat startup ;; \
                   *patch*) exit 1 ;; *apply\\ startup*) cp startup runs ;; *save*) cp runs \
                   startup ;; esac";
        Self::new(SwitchSystem::Cumulus, cli, all, Some(all))
    }

    /// SONiC, whose `config` does this.
    fn sonic(config: &str, runs: &str) -> Self {
        let switch = Self::new(SwitchSystem::Sonic, "cat runs", runs, Some(runs));
        switch.write("config", &format!("#!/bin/sh\n{config}\n"));
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(switch.at("config"), may_run).unwrap();
        switch
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.at(name)).ok()
    }

    fn run(&self, script: &str) -> Option<i32> {
        let path = std::env::var("PATH").unwrap();
        let mut sh = Command::new("sh");
        sh.arg("-c")
            .arg(
                script
                    .replace(self.system.saved(), "startup")
                    .replace("/etc/sonic/checkpoints", "checkpoints"),
            )
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", self.folder.path().display()))
            .env("k", "kept");
        sh.output().unwrap().status.code()
    }

    /// This runs and is saved now, and is rolled back: the script's status, what runs then and what
    /// is saved.
    fn put_back(&self, runs: &str, saved: &str) -> (Option<i32>, String, Option<String>) {
        self.write("runs", runs);
        self.write("startup", saved);
        let ports = ["Ethernet1/1", "swp1", "Ethernet0"]
            .map(str::to_owned)
            .into();
        let script = self.system.restore_script("0", &ports);
        let status = self.run(
            &script
                .replace("sleep 5", "sleep 0")
                .replace("sleep $t", "sleep 0"),
        );
        (status, self.read("runs").unwrap(), self.read("startup"))
    }

    /// The status, and what is saved, where what runs is as it was.
    fn saves_anew(&self, saved: &str) -> (Option<i32>, Option<String>) {
        let (status, runs, saved) = self.put_back(BEFORE, saved);
        assert_eq!(runs, BEFORE);
        (status, saved)
    }
}

#[test]
fn what_others_saved_where_nothing_was_saved_before_stays() {
    let put_back = |saved: &str, copy: &str| FakeSwitch::eos(copy, None).saves_anew(saved);
    let saved = |text: &str| Some(text.to_owned());
    assert_eq!(
        put_back("theirs\n", "echo anew >startup; ok"),
        (Some(0), saved("anew\n"))
    );
    assert_eq!(put_back("theirs\n", REFUSES), (Some(1), saved("theirs\n")));
    assert_eq!(
        put_back("theirs\n", &format!(": >startup; {REFUSES}")),
        (Some(1), saved("theirs\n"))
    );
    assert_eq!(
        put_back("", "echo anew >startup; ok"),
        (Some(0), None),
        "a save of ours that came to nothing"
    );
}

#[test]
fn what_others_saved_since_stays_where_what_runs_cannot_be_saved() {
    let put_back = |saved: &str, copy: &str| FakeSwitch::eos(copy, Some("old\n")).saves_anew(saved);
    let saved = |text: &str| Some(text.to_owned());
    assert_eq!(put_back("theirs\n", REFUSES), (Some(1), saved("theirs\n")));
    assert_eq!(
        put_back("theirs\n", &format!("echo half >startup; {REFUSES}")),
        (Some(1), saved("theirs\n"))
    );
    assert_eq!(
        put_back("", REFUSES),
        (Some(0), saved("old\n")),
        "a save of ours that came to nothing"
    );
}

#[test]
fn all_of_eos_is_replaced_only_where_nobody_else_changed_anything() {
    let of_port = |hostname: &str| {
        format!(
            "interface Ethernet1/1\n   mtu 9000\n\
             hostname {hostname}\n\
             qos map dscp 8-9 48 to traffic-class 6\n\
             end\n"
        )
    };
    let eos = FakeSwitch::eos("cp runs startup; ok", Some(BEFORE));
    let replaced = (Some(0), BEFORE.to_owned(), Some(BEFORE.to_owned()));
    assert_eq!(eos.put_back(&of_port("a"), "ours\n"), replaced);
    let kept = (Some(1), of_port("b"), Some("theirs\n".to_owned()));
    assert_eq!(eos.put_back(&of_port("b"), "theirs\n"), kept);
}

#[test]
fn what_came_into_the_map_of_eos_is_taken_out_after_the_ports_alone() {
    let eos = FakeSwitch::eos("ok", Some(BEFORE));
    let runs = "qos map dscp 8-9 48 to traffic-class 6\n\
                interface Ethernet1/1\n   mtu 9000\n\
                end\n";
    assert_eq!(eos.put_back(runs, BEFORE).0, Some(1));
    let told = eos.read("told").unwrap();
    let sessions: Vec<Vec<&str>> = told
        .split("configure session railwright-rollback-")
        .map(|session| session.lines().skip(1).collect())
        .filter(|lines: &Vec<&str>| !lines.is_empty())
        .collect();
    let tries = [
        vec!["interface Ethernet1/1", "no mtu", "exit"],
        vec!["no qos map dscp 8", "no qos map dscp 9"],
    ];
    assert_eq!(sessions, [tries.clone(), tries.clone(), tries].concat());
}

#[test]
fn all_of_cumulus_is_applied_only_where_nobody_else_changed_anything() {
    let all = |mtu: u32, others: &str| {
        let ours = format!("\"swp1\": {{ \"link\": {{ \"mtu\": {mtu} }} }}");
        format!("[{{ \"set\": {{ \"interface\": {{ {ours}{others} }} }} }}]\n")
    };
    let theirs = ", \"swp6\": { \"link\": { \"mtu\": 1300 } }";
    let (before, ours, both) = (all(1500, ""), all(9000, ""), all(9000, theirs));
    let cumulus = FakeSwitch::cumulus(&before);
    for (runs, saved) in [(&both, &both), (&both, &before), (&ours, &both)] {
        let as_it_is = (Some(1), runs.clone(), Some(saved.clone()));
        assert_eq!(cumulus.put_back(runs, saved), as_it_is);
    }
    let restored = (Some(0), before.clone(), Some(before.clone()));
    assert_eq!(cumulus.put_back(&ours, &ours), restored);
}

/// What else is set on a port, an address for one, is not read, and so not known.
#[test]
fn no_port_of_cumulus_is_unset_as_a_whole() {
    let all = |settings: &str| {
        format!("[{{ \"set\": {{ \"interface\": {{ \"swp1\": {{ {settings} }} }} }} }}]\n")
    };
    let address = "\"ip\": { \"address\": { \"192.0.2.1/31\": {} } }";
    let before = all(address);
    let cli = "case $* in *show*applied*) cat runs ;; *show*startup*) cat startup ;; \
               *patch*) cat \"$3\" >>told; cp startup runs ;; esac";
    let cumulus = FakeSwitch::new(SwitchSystem::Cumulus, cli, &before, Some(&before));
    let runs = all(&format!("{address}, \"link\": {{ \"mtu\": 9000 }}"));
    assert_eq!(cumulus.put_back(&runs, &before).0, Some(0));
    assert_eq!(
        cumulus.read("told").as_deref(),
        Some("[{\"unset\": {\"interface\": {\"swp1\": {\"link\": {\"mtu\": null}}}}}]")
    );
}

/// `config rollback` ends with 2 where anything else was written meanwhile.
#[test]
fn sonic_is_not_reloaded_where_ours_is_back_and_somebody_else_wrote_meanwhile() {
    let all = |ours: u32, theirs: u32| {
        format!(
            "{{\"PORT\": {{\"Ethernet0\": {{\"mtu\": \"{ours}\"}}, \
             \"Ethernet100\": {{\"mtu\": \"{theirs}\"}}}}}}"
        )
    };
    let config = "case $1 in rollback) cp theirs runs; exit 2 ;; reload) echo reload >>told; cp \"$4\" \
                  runs ;; save) cp runs startup ;; esac";
    let sonic = FakeSwitch::sonic(config, &all(9100, 9100));
    let (ours, both) = (all(9000, 9100), all(9100, 1500));
    sonic.write("theirs", &both);
    assert_eq!(
        sonic.put_back(&ours, &ours),
        (Some(0), both.clone(), Some(both))
    );
    assert_eq!(sonic.read("told").as_deref(), Some(""));
    // Where ours is not back, it is reloaded from what is there by then.
    sonic.write("theirs", &all(9000, 1500));
    let (status, runs, _) = sonic.put_back(&ours, &ours);
    assert_eq!(
        (status, serde_json::from_str(&runs).ok()),
        (
            Some(0),
            serde_json::from_str::<serde_json::Value>(&all(9100, 1500)).ok()
        )
    );
    assert_eq!(sonic.read("told").as_deref(), Some("reload\n"));
}
