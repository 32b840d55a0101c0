//! What runs over a connection, and what is said when it breaks.

use crate::server::{Server, must};
use crate::user::User;
use crate::{a_read, answers, open, refused};
use railwright_resource::probe::Probe;
use railwright_resource::{Action, AnswerStatus, Read, ReadResults, host};
use railwright_transport::{
    ExecutionOutcome, Fence, FencedWrite, HostLink, SshAccess, TargetAccess, TargetContact,
    TargetReach, TransportError, Upkeep, new_connector,
};
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

fn server(lines: &[&str]) -> Option<(Server, SshAccess)> {
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let server = Server::start(&["ed25519"], &lines)?;
    let access = server.access(&server.line("ed25519"));
    Some((server, access))
}

fn run(script: &str, limit_s: u32) -> Action {
    Action::RunCommand {
        script: script.to_owned(),
        limit_s,
        environment: Default::default(),
        input: None,
    }
}

fn command(script: &str) -> Read {
    Read::Command {
        script: script.to_owned(),
    }
}

/// The fence of whoever changes the hosts of these tests.
fn fence() -> Fence {
    Fence::new("test", 1)
}

/// The servers are of one machine, and it has one lock: who writes there takes turns.
static HOST: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A link that holds the host's lock, without which nothing is done.
async fn locked(access: &SshAccess) -> Arc<dyn HostLink> {
    let link = open(access).await.unwrap();
    lock(&*link).await;
    link
}

/// Waits for the end of what an earlier test let go of, and takes the lock.
async fn lock(link: &dyn HostLink) {
    let idle = Upkeep::Idle {
        attempt: None,
        run: None,
    };
    while matches!(
        link.upkeep(&idle).await.unwrap(),
        ExecutionOutcome::Ended { code: 77, .. }
    ) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let lock = Upkeep::Lock {
        holder: fence().holder,
        fence: fence().number,
    };
    let locked = link.upkeep(&lock).await.unwrap();
    assert!(
        matches!(locked, ExecutionOutcome::Ended { code: 0, .. }),
        "{locked:?}"
    );
}

fn ended(code: i32, stdout: &str, stderr: &str) -> ExecutionOutcome {
    ExecutionOutcome::Ended {
        code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn status<'a>(answers: &'a ReadResults, read: &Read) -> &'a AnswerStatus {
    &answers.get(read).unwrap().status
}

#[tokio::test]
async fn a_hundred_reads_travel_as_one_command() {
    let Some((server, access)) = server(&["LogLevel VERBOSE"]) else {
        return;
    };
    let mut reads: Vec<Read> = (0..99)
        .map(|i| Read::File {
            path: format!("/etc/absent-{i}"),
        })
        .collect();
    reads.extend([a_read(), Read::Host]);
    let link = open(&access).await.unwrap();
    let answers = link.read(&reads).await.unwrap();
    assert!(reads.iter().all(|read| answers.output(read).is_ok()));
    assert_eq!(answers.output(&reads[0]).unwrap().0, 1);
    assert_eq!(
        server.log().matches("Starting session").count(),
        1,
        "{}",
        server.log()
    );
    let facts = host::decode_host_facts(&answers).unwrap();
    assert_eq!(
        (facts.uid, facts.ssh_netdev.as_deref()),
        (0, facts.tools.contains("ip").then_some("lo"))
    );
}

#[tokio::test]
async fn an_action_gives_status_and_both_outputs() {
    let Some((_server, access)) = server(&[]) else {
        return;
    };
    let _alone = HOST.lock().await;
    let link = locked(&access).await;
    assert_eq!(
        link.perform(
            &run("cat; echo out; echo err >&2; exit 7", 20),
            "t",
            Some(&fence())
        )
        .await
        .unwrap(),
        ended(7, "out\n", "err\n")
    );
    let path = std::env::temp_dir().join(format!("railwright-test-{}", std::process::id()));
    let content = "a 'quoted' $HOME `id` \\ line\n\u{e4}\n".repeat(20_000);
    let write = Action::WriteFile {
        path: path.display().to_string(),
        content: content.clone(),
        mode: "0640".to_owned(),
        owner: "root".to_owned(),
        group: "root".to_owned(),
    };
    assert_eq!(
        link.perform(&write, "t", Some(&fence())).await.unwrap(),
        ended(0, "", "")
    );
    let written = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(
        written == content,
        "a megabyte on standard input arrives as it is"
    );
    // A daemon that keeps our pipes open does not keep us.
    match link
        .perform(&run("sleep 100000 & echo $!", 30), "t", Some(&fence()))
        .await
        .unwrap()
    {
        ExecutionOutcome::Ended {
            code: 0, stdout, ..
        } => drop(must("kill", &[stdout.trim()])),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn keys_are_exchanged_anew_in_the_midst_of_output() {
    let Some((server, access)) = server(&["RekeyLimit 256K", "LogLevel DEBUG1"]) else {
        return;
    };
    let _alone = HOST.lock().await;
    let link = locked(&access).await;
    match link
        .perform(
            &run("yes railwright | head -c 4000000", 60),
            "t",
            Some(&fence()),
        )
        .await
        .unwrap()
    {
        ExecutionOutcome::Ended {
            code: 0, stdout, ..
        } => assert!(stdout == "railwright\n".repeat(400_000)[..4_000_000]),
        other => panic!("{other:?}"),
    }
    assert!(
        server.log().matches("SSH2_MSG_NEWKEYS received").count() > 5,
        "{}",
        server.log()
    );
}

#[tokio::test]
async fn many_at_once_keep_within_the_servers_sessions() {
    let Some((_server, access)) = server(&["MaxSessions 3"]) else {
        return;
    };
    let link = open(&access).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..24 {
        let link = link.clone();
        tasks.spawn(async move {
            let check = Probe::ModuleCheck {
                script: format!("sleep 0.2; echo {i}"),
            };
            assert_eq!(
                link.probe(&check).await.unwrap(),
                ended(0, &format!("{i}\n"), "")
            );
        });
    }
    tasks.join_all().await;
}

#[tokio::test]
async fn a_hanging_section_and_a_gigabyte_cost_only_themselves() {
    let Some((_server, access)) = server(&[]) else {
        return;
    };
    let reads = [
        command("head -c 1000000000 /dev/zero"),
        command("sleep 1000"),
        a_read(),
    ];
    let answers = open(&access).await.unwrap().read(&reads).await.unwrap();
    assert_eq!(*status(&answers, &reads[0]), AnswerStatus::TooLong);
    assert_eq!(*status(&answers, &reads[1]), AnswerStatus::TimedOut);
    assert_eq!(*status(&answers, &reads[2]), AnswerStatus::Exit(0));
}

#[tokio::test]
async fn endless_output_is_let_go() {
    let Some((_server, access)) = server(&[]) else {
        return;
    };
    let _alone = HOST.lock().await;
    match locked(&access)
        .await
        .perform(&run("cat /dev/zero", 60), "t", Some(&fence()))
        .await
        .unwrap()
    {
        ExecutionOutcome::Unknown { reason } => {
            assert!(reason.as_words().contains("MiB"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
}

/// Ends the server's side of the connection in the middle.
async fn cut(server: &Server) {
    for session in server.sessions() {
        must("kill", &["-KILL", &session.to_string()]);
    }
}

#[tokio::test]
async fn a_cut_connection_is_unknown_and_what_was_read_counts() {
    let Some((server, access)) = server(&[]) else {
        return;
    };
    let _alone = HOST.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("begun").display().to_string();
    let slow = format!("echo half; : >'{flag}'; sleep 3");
    let begun = async {
        while fs::remove_file(&flag).is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cut(&server).await;
    };
    let link = open(&access).await.unwrap();
    let reads = [a_read(), command(&slow), Read::Host];
    let (answers, ()) = tokio::join!(link.read(&reads), begun);
    let answers = answers.unwrap();
    assert!(answers.output(&reads[0]).is_ok());
    assert_eq!(
        (status(&answers, &reads[1]), status(&answers, &reads[2])),
        (&AnswerStatus::CutOff, &AnswerStatus::CutOff)
    );
    assert!(
        matches!(link.read(&reads).await, Err(TransportError::Lost { .. })),
        "the link stays dead"
    );

    let begun = async {
        while fs::remove_file(&flag).is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cut(&server).await;
    };
    let link = locked(&access).await;
    let action = run(&slow, 30);
    let shown = fence();
    let (performed, ()) = tokio::join!(link.perform(&action, "t", Some(&shown)), begun);
    assert!(
        matches!(performed.unwrap(), ExecutionOutcome::Unknown { .. }),
        "never failed, never done"
    );
}

#[tokio::test]
async fn a_long_step_outlives_its_connection_and_runs_once() {
    let Some((server, access)) = server(&[]) else {
        return;
    };
    let _alone = HOST.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let token = format!("test-{}", server.port);
    let action = run(
        &format!(
            "echo ran >>'{}'; while ! [ -e '{}' ]; do sleep 0.1; done; echo built; exit 5",
            at("count"),
            at("go")
        ),
        601,
    );
    assert!(action.is_long());
    let first = locked(&access).await;
    let cut_later = async {
        while !fs::exists(at("count")).unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cut(&server).await;
        fs::write(at("go"), "").unwrap();
    };
    let shown = fence();
    let (performed, ()) = tokio::join!(first.perform(&action, &token, Some(&shown)), cut_later);
    match performed.unwrap() {
        ExecutionOutcome::Unknown { reason } => {
            assert!(
                reason.as_words().contains(&format!("railwright-{token}")),
                "{reason}"
            )
        }
        other => panic!("{other:?}"),
    }
    let second = locked(&access).await;
    assert_eq!(
        second
            .perform(&action, &token, Some(&fence()))
            .await
            .unwrap(),
        ended(5, "built\n", "")
    );
    assert_eq!(
        second
            .perform(&action, &token, Some(&fence()))
            .await
            .unwrap(),
        ended(5, "built\n", ""),
        "and again from the record"
    );
    let count = fs::read_to_string(at("count")).unwrap();
    fs::remove_dir_all(server.on_host(&format!("/var/lib/railwright/run/{token}"))).unwrap();
    assert_eq!(count, "ran\n");
}

/// What `ulimit -l` says in a process of this machine: the test's server runs under the same
/// limits.
fn memlock() -> String {
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -l"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_probe_of_the_login_runs_in_the_login_itself() {
    let Some((_server, access)) = server(&[]) else {
        return;
    };
    let link = open(&access).await.unwrap();
    let probe = |script: &str| Probe::ModuleCheck {
        script: script.to_owned(),
    };
    assert_eq!(
        link.probe(&probe("cat; echo fine; exit 3")).await.unwrap(),
        ended(3, "fine\n", "")
    );
    assert_eq!(
        link.probe(&probe("ulimit -l")).await.unwrap(),
        ended(0, &memlock(), ""),
        "the login's own limit, not a unit's"
    );
}

#[tokio::test]
async fn a_login_that_is_no_shell_is_told_from_a_chatty_one() {
    let Some((_server, access)) = server(&["ForceCommand echo not available >&2; exit 1"]) else {
        return;
    };
    let _alone = HOST.lock().await;
    match open(&access).await.unwrap().read(&[a_read()]).await {
        Err(TransportError::Unreachable { reason, .. }) => {
            assert!(reason.as_words().contains("not available"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
    let Some((_server, access)) =
        server(&["ForceCommand echo Welcome; eval \"$SSH_ORIGINAL_COMMAND\""])
    else {
        return;
    };
    assert!(answers(&access).await);
    assert_eq!(
        locked(&access)
            .await
            .perform(&run("echo x", 20), "t", Some(&fence()))
            .await
            .unwrap(),
        ended(0, "x\n", "")
    );
}

#[tokio::test]
async fn a_shell_that_is_killed_gives_no_verdict() {
    let Some((_server, access)) = server(&[]) else {
        return;
    };
    let _alone = HOST.lock().await;
    match locked(&access)
        .await
        .perform(&run("kill -KILL $PPID", 20), "t", Some(&fence()))
        .await
        .unwrap()
    {
        ExecutionOutcome::Unknown { reason } => {
            assert!(reason.as_words().contains("KILL"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_does_not_speak_ssh_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for (count, stream) in listener.incoming().enumerate().take(3) {
            let mut stream = stream.unwrap();
            match count {
                0 => silent.push(stream),
                1 => {
                    drop(stream.write_all(b"SSH-2.0-x\r\n\xff\xff\xff\xff garbage garbage garbage"))
                }
                _ => while stream.write_all(&[b'x'; 4096]).is_ok() {},
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let known_hosts = folder.path().join("known_hosts");
    fs::write(&known_hosts, "").unwrap();
    let access = SshAccess {
        address: "127.0.0.1".to_owned(),
        port,
        user: "root".to_owned(),
        identities: Vec::new(),
        known_hosts: known_hosts.display().to_string(),
        jump: Vec::new(),
        ssh_config: false,
        connect_timeout_s: 2,
        read_only: false,
    };
    for case in ["silent", "garbage", "endless banner"] {
        assert!(
            matches!(refused(&access).await, TransportError::Unreachable { .. }),
            "{case}"
        );
    }
}

#[tokio::test]
async fn another_user_acts_through_sudo_or_is_told_so() {
    let Some((server, access)) = server(&[]) else {
        return;
    };
    let _alone = HOST.lock().await;
    let Some(user) = User::add(format!("rwtest{}", server.port)) else {
        return;
    };
    let access = SshAccess {
        user: user.0.clone(),
        ..access
    };
    let link = open(&access).await.unwrap();
    match link.read(&[a_read()]).await {
        Err(TransportError::SudoRefused { host, user }) => {
            assert_eq!((host, user), ("gpu-001".to_owned(), access.user.clone()))
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(
            link.perform(&run("id", 20), "t", Some(&fence())).await,
            Err(TransportError::SudoRefused { .. })
        ),
        "nothing was begun"
    );
    fs::write(
        user.sudoers(),
        format!("{} ALL=(root) NOPASSWD: /bin/sh\n", user.0),
    )
    .unwrap();
    let facts = host::decode_host_facts(&link.read(&[Read::Host]).await.unwrap()).unwrap();
    assert_eq!(
        (facts.uid, facts.ssh_netdev.as_deref()),
        (0, facts.tools.contains("ip").then_some("lo"))
    );
}

#[tokio::test]
async fn this_machine_is_a_host_like_any_other() {
    let _alone = HOST.lock().await;
    let access = TargetAccess {
        name: "here".to_owned(),
        reach: TargetReach::ThisMachine {
            user: String::new(),
            read_only: false,
        },
    };
    let connector = new_connector(TargetContact::begin());
    let link = connector.connect(&access).await.unwrap();
    match link.read(&[a_read(), Read::Host]).await {
        Ok(answers) => {
            let facts = host::decode_host_facts(&answers).unwrap();
            assert_eq!((facts.uid, facts.ssh_netdev), (0, None));
            lock(&*link).await;
            assert_eq!(
                link.perform(&run("cat; echo x; exit 2", 20), "t", Some(&fence()))
                    .await
                    .unwrap(),
                ended(2, "x\n", "")
            );
            assert!(matches!(
                link.perform(&run("sleep 60", 1), "t", Some(&fence()))
                    .await
                    .unwrap(),
                ExecutionOutcome::Unknown { .. }
            ));
            let unlock = Upkeep::Write {
                fence: fence(),
                write: FencedWrite::Unlock,
            };
            assert!(matches!(
                link.upkeep(&unlock).await.unwrap(),
                ExecutionOutcome::Ended { code: 0, .. }
            ));
        }
        // On a developer's machine `sudo -n` may say no, and then says so.
        Err(error) => assert!(
            matches!(error, TransportError::SudoRefused { .. }),
            "{error}"
        ),
    }
}

#[tokio::test]
async fn the_record_of_a_host_that_was_never_applied_to_is_absent() {
    let Some((_server, access)) = server(&[]) else {
        return;
    };
    let performed = open(&access)
        .await
        .unwrap()
        .upkeep(&Upkeep::ReadRecord)
        .await
        .unwrap();
    assert!(
        matches!(performed, ExecutionOutcome::Ended { code: 1, .. }),
        "{performed:?}"
    );
}
