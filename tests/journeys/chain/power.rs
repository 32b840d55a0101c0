//! A fixture host with power: a step that reboots it takes its namespaces away, and it comes up
//! with what the disk says.

use super::packages::{inbox, repositories};
use crate::fixture::models::Model;
use crate::fixture::{Fixture, repository};
use crate::machine::scrub;
use crate::server::Server;
use crate::support::Place;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The host, its server, and a folder for an inventory of it. All end with the value.
pub struct Powered {
    /// The folder, with `inv/id` and `inv/known_hosts`.
    pub place: Place,
    /// Where the server listens.
    pub port: u16,
    host: Arc<Mutex<(Fixture, Server)>>,
    boots: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    power: Option<JoinHandle<()>>,
}

/// What a host has beside the tools of every fixture host, so that modules are loaded and found.
const TOOLS: [(&str, &str); 8] = [
    ("insmod", "usr/sbin/insmod"),
    ("modprobe", "usr/sbin/modprobe"),
    ("modinfo", "usr/sbin/modinfo"),
    ("reboot", "usr/sbin/reboot"),
    ("gid-table", "usr/sbin/gid-table"),
    ("mkdir", "usr/sbin/mkdir"),
    ("update-initramfs", "usr/sbin/update-initramfs"),
    ("update-initramfs", "usr/bin/dracut"),
];

impl Powered {
    /// Switched on as it is delivered, after a script for what this story's host has besides; none
    /// when a rig is not there.
    pub fn start(story: &str, model: &Model, prepare: &str) -> Option<Powered> {
        let folder = tempfile::tempdir().unwrap();
        inbox(folder.path());
        let modules = format!("usr/lib/modules/{}/kernel", model.os.kernel);
        let tools = TOOLS
            .iter()
            .map(|(tool, at)| (repository("tests/fakes").join(tool), *at));
        let mut besides: Vec<(PathBuf, &str)> = tools.collect();
        besides.push((folder.path().join("kernel"), &modules));
        besides.push((repositories(model.is_debian()).folder.clone(), "srv"));
        let fixture = Fixture::start_with(story, model, &besides)?;
        fixture.0.must(&format!(
            "mkdir -p /usr/lib/fakes; ln -s /usr/bin/kmod /usr/lib/fakes/modinfo; depmod \
             -a {kernel}; rm -f {other}\n\
             setsid gid-table </dev/null >/dev/null 2>&1 &\n\
             {prepare}",
            kernel = model.os.kernel,
            other = if model.is_debian() {
                "/usr/bin/dracut"
            } else {
                "/usr/sbin/update-initramfs"
            },
        ));
        let server = fixture.serve(&[])?;
        let place = Place::new();
        for (name, key) in repositories(model.is_debian()).keys() {
            place.write(&format!("inv/keys/{name}.asc"), key);
        }
        place.write("inv/id", std::fs::read(server.path("id")).unwrap());
        place.write("inv/known_hosts", server.line("ed25519") + "\n");
        let port = server.port;
        let host = Arc::new(Mutex::new((fixture, server)));
        let (boots, over) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let power = std::thread::spawn({
            let (host, boots, over) = (host.clone(), boots.clone(), over.clone());
            move || supply(&host, &boots, &over)
        });
        Some(Powered {
            place,
            port,
            host,
            boots,
            over,
            power: Some(power),
        })
    }

    /// How often it came up anew.
    pub fn boots(&self) -> usize {
        self.boots.load(Ordering::SeqCst)
    }

    /// Waits until it came up so often.
    pub fn until_booted(&self, boots: usize) {
        let begun = Instant::now();
        while self.boots() < boots {
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "it does not come up"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A script on the host that must succeed.
    pub fn must(&self, script: &str) -> String {
        self.host.lock().unwrap().0.0.must(script)
    }

    /// What the program says, without what differs from run to run.
    pub fn run(&self, words: &[&str]) -> String {
        scrub(
            &self
                .place
                .run(words)
                .replace(&format!(":{}", self.port), ":PORT"),
        )
    }
}

/// Looks whether the host asked to go down, and has it come up again.
fn supply(host: &Mutex<(Fixture, Server)>, boots: &AtomicUsize, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(200));
        let mut both = host.lock().unwrap();
        let (fixture, server) = &mut *both;
        if fixture.0.sh("rm /fixture/reboot 2>/dev/null").0 == 0 {
            fixture.reboot(server);
            fixture
                .0
                .must("setsid gid-table </dev/null >/dev/null 2>&1 &");
            boots.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Powered {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.power.take().map(JoinHandle::join);
    }
}
