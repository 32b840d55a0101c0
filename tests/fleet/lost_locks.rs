//! Controllers whose locks are taken over while they reach their hosts, and what they wait for
//! then: before its first step a command is one that may sleep, wait and lose as well.

use crate::room::{Room, codes};
use railwright_apply::lock_steal::{HostLock, list_host_locks, steal_locks};
use railwright_apply::{ApplyOutcome, Context, Decisions, RunExitClass, apply_plan, resume_run};
use railwright_state::journal_writer::JournalStore;
use railwright_state::{LocalLock, StateFolder};
use railwright_system::identity::ProcessIdentity;
use railwright_transport::{BoxFuture, Connector, HostLink, TargetAccess, TransportError};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A way to the fleet on which something happens first, once, when this host is connected to: its
/// controller waits for that, asleep or not.
struct Detour {
    way: Arc<dyn Connector>,
    host: &'static str,
    happens: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Detour {
    /// The controller, on this way.
    fn of(context: &Context, host: &'static str, happens: BoxFuture<'static, ()>) -> Context {
        let detour = Detour {
            way: context.connector.clone(),
            host,
            happens: Mutex::new(Some(happens)),
        };
        Context {
            connector: Arc::new(detour),
            ..context.clone()
        }
    }
}

impl Connector for Detour {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(async move {
            let mut happens = None;
            if access.name == self.host {
                happens = self.happens.lock().unwrap().take();
            }
            if let Some(happens) = happens {
                happens.await;
            }
            self.way.connect(access).await
        })
    }
}

/// What a folder holds, but for its locks.
fn files_of(folder: &StateFolder) -> BTreeMap<String, Vec<u8>> {
    fn add(path: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.display().to_string();
            if path.is_dir() {
                files.insert(name, Vec::new());
                add(&path, files);
            } else if !name.contains("/lock") {
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    add(folder.path(), &mut files);
    files
}

/// Two hosts, and a run of theirs that did not come beyond the first one's gate.
async fn room_with_a_stopped_run() -> Room {
    let room = Room::of(&["a", "b"]).resource(
        "file",
        json!({ "path": "/etc/x", "content": "one\n" }),
        &[],
    );
    room.gate.bad.lock().unwrap().insert("a".to_owned());
    let stopped = apply_plan(&room.plan().await, &room.context, room.sink()).await;
    assert_eq!(stopped.ending, RunExitClass::Stopped, "{stopped:?}");
    room.gate.bad.lock().unwrap().clear();
    room
}

/// Applies the plan that is made now, or goes on with the stopped run.
async fn go_on(resumes: bool, room: &Room, context: &Context) -> ApplyOutcome {
    match resumes {
        true => resume_run(context, Decisions::default(), room.sink()).await,
        false => apply_plan(&room.plan().await, context, room.sink()).await,
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_lock_is_taken_over_before_its_first_step_changes_nothing_in_the_folder() {
    for (resumes, other_resumes) in [(true, true), (true, false), (false, true), (false, false)] {
        let room = Arc::new(room_with_a_stopped_run().await);
        let left = Arc::new(Mutex::new(None));
        let (other, leaves) = (room.clone(), left.clone());
        let happens = Box::pin(async move {
            // The other host is locked by then.
            tokio::time::sleep(Duration::from_secs(10)).await;
            let hosts = ["a", "b"].map(str::to_owned);
            let stolen = steal_locks(&hosts, "it sleeps", true, &other.context).await;
            stolen.unwrap();
            let outcome = go_on(other_resumes, &other, &other.context).await;
            assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
            let told = other.host("b", |host| host.told.clone());
            *leaves.lock().unwrap() = Some((files_of(&other.context.folder), told));
        });
        let outcome = go_on(resumes, &room, &Detour::of(&room.context, "b", happens)).await;
        assert_eq!(
            (outcome.ending, codes(&outcome)),
            (RunExitClass::Refused, vec!["RW0709"]),
            "{resumes} {other_resumes}"
        );
        let (files, told) = left.lock().unwrap().take().unwrap();
        assert_eq!(room.host("b", |host| host.told.clone()), told);
        let now = files_of(&room.context.folder);
        assert_eq!(
            now.keys().collect::<Vec<_>>(),
            files.keys().collect::<Vec<_>>()
        );
        for (name, bytes) in files {
            let (before, now) = (
                String::from_utf8_lossy(&bytes),
                String::from_utf8_lossy(&now[&name]),
            );
            assert_eq!(now, before, "{resumes} {other_resumes}: {name}");
        }
    }
}

/// The controller, as it is seen from another machine.
fn from_elsewhere(context: &Context) -> Context {
    let elsewhere = ProcessIdentity {
        machine: "elsewhere".to_owned(),
        boot_id: "elsewhere".to_owned(),
        ..ProcessIdentity::own()
    };
    Context {
        folder: context.folder.clone().used_by(elsewhere),
        ..context.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_waits_for_a_host_before_its_first_step_gives_heartbeats() {
    for resumes in [true, false] {
        let room = Arc::new(room_with_a_stopped_run().await);
        let (context, word) = (from_elsewhere(&room.context), "run r000");
        let happens = Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(600)).await;
            let locks = list_host_locks(&["a".to_owned()], &context).await;
            let HostLock::Held(held) = &locks["a"] else {
                panic!("{locks:?}")
            };
            assert!(held.age_s <= 60 && held.note.starts_with(word), "{held:?}");
            let heartbeat = context.folder.path().join("beat");
            std::fs::remove_file(&heartbeat).unwrap();
            tokio::time::sleep(Duration::from_secs(70)).await;
            let here = LocalLock::read(&context.folder).unwrap().unwrap();
            assert!(here.note.starts_with(word), "{here:?}");
            assert!(heartbeat.exists());
        });
        let outcome = go_on(resumes, &room, &Detour::of(&room.context, "b", happens)).await;
        assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
        room.host("a", |host| assert_eq!(host.holder(), None));
    }
}

/// A disk on which there is room for so many records.
struct Full {
    journal: Box<dyn JournalStore>,
    left: usize,
}

impl JournalStore for Full {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => {
                    self.journal.append(&line[..line.len() / 2])?;
                    return Err(io::Error::from(io::ErrorKind::StorageFull));
                }
            }
            self.journal.append(line)?;
        }
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        self.journal.sync()
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_first_records_find_no_room_leaves_nothing_and_hides_no_run_before_it() {
    for left in 0..3 {
        let room = room_with_a_stopped_run().await;
        let folder = &room.context.folder;
        let runs = || {
            std::fs::read_dir(folder.path().join("runs"))
                .unwrap()
                .count()
        };
        let before = folder.newest_run().unwrap();
        let full = move |journal| Box::new(Full { journal, left }) as Box<dyn JournalStore>;
        let context = Context {
            folder: folder.clone().through(Arc::new(full)),
            ..room.context.clone()
        };
        let refused = go_on(false, &room, &context).await;
        assert_eq!(
            (refused.ending, codes(&refused)),
            (RunExitClass::Refused, vec!["RW0709"])
        );
        assert_eq!((folder.newest_run().unwrap(), runs()), (before.clone(), 1));
        room.host("a", |host| assert_eq!(host.holder(), None));
        let resumed = go_on(true, &room, &room.context).await;
        assert_eq!((resumed.ending, resumed.run), (RunExitClass::Done, before));
    }
}
