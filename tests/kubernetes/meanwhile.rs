//! A way to the API server on which something happens right before a request is passed on: `kubectl
//! proxy`, and a relay before it.

use crate::control_plane::ControlPlane;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// The way, until it is dropped.
pub struct Meanwhile {
    proxy: Child,
    port: u16,
}

impl Meanwhile {
    /// `happens` is called before each request that begins with `request` is passed on.
    pub fn start(
        plane: &ControlPlane,
        request: &'static str,
        happens: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Meanwhile::watch(plane, move |head| {
            if head.starts_with(request.as_bytes()) {
                happens();
            }
        })
    }

    /// The first `count` answers to such requests, by their first lines, are lost: the server does
    /// what is asked, and this status comes back.
    pub fn lose(
        plane: &ControlPlane,
        status: u16,
        count: usize,
        is_lost: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let left = std::sync::atomic::AtomicUsize::new(count);
        let is_taken = move || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok()
        };
        let message =
            format!(r#"{{"kind":"Status","status":"Failure","message":"lost","code":{status}}}"#);
        Meanwhile::answer(plane, status, &message, move |line| {
            is_lost(line) && is_taken()
        })
    }

    /// This status and this document come back to such requests, by their first lines; the server
    /// does what is asked.
    pub fn answer(
        plane: &ControlPlane,
        status: u16,
        body: &str,
        is_met: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let head = "Content-Type: application/json\r\nConnection: close\r\nContent-Length";
        let answer = format!(
            "HTTP/1.1 {status} Instead\r\n{head}: {}\r\n\r\n{body}",
            body.len()
        );
        Meanwhile::between(plane, move |head| {
            is_met(&first_line(head)).then(|| answer.clone())
        })
    }

    /// The server says of such requests, by their first lines, that it does them, and keeps nothing
    /// (Kubernetes API: dryRun).
    pub fn pretend(
        plane: &ControlPlane,
        is_met: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Meanwhile::between(plane, move |head| {
            let line = first_line(head);
            if is_met(&line) {
                let of_nothing = line.replacen(
                    " HTTP/",
                    if line.contains('?') {
                        "&dryRun=All HTTP/"
                    } else {
                        "?dryRun=All HTTP/"
                    },
                    1,
                );
                head.splice(..line.len(), of_nothing.bytes());
            }
            None
        })
    }

    /// `sees` is given each piece of a request before it is passed on; a head begins one.
    pub fn watch(plane: &ControlPlane, sees: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Meanwhile::between(plane, move |piece| {
            sees(piece);
            None
        })
    }

    /// `sees` may also write into the pieces, with an answer in the place of the server's where
    /// one is given.
    fn between(
        plane: &ControlPlane,
        sees: impl Fn(&mut Vec<u8>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let mut proxy = plane
            .kubectl_command(&["proxy", "--port=0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(proxy.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let server = line.trim().rsplit(' ').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, sees) = (listener.local_addr().unwrap().port(), Arc::new(sees));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, sees) = (TcpStream::connect(&server).unwrap(), Arc::clone(&sees));
                let (from_server, to_client) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                let instead: Arc<Mutex<Option<String>>> = Arc::default();
                let given = instead.clone();
                std::thread::spawn(move || {
                    pass(from_server, to_client, |_| given.lock().unwrap().take())
                });
                std::thread::spawn(move || {
                    pass(client, server, |bytes| {
                        let answer = sees(bytes);
                        if answer.is_some() {
                            *instead.lock().unwrap() = answer;
                        }
                        None
                    });
                });
            }
        });
        Meanwhile { proxy, port }
    }

    /// A kubeconfig that leads this way.
    pub fn kubeconfig(&self) -> String {
        let cluster = format!(
            "{{name: c, cluster: {{server: \"http://127.0.0.1:{}\"}}}}",
            self.port
        );
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: c\n\
             clusters: [{cluster}]\n\
             users: [{{name: u, user: {{}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        )
    }
}

/// The first line of a request, where this piece begins one.
pub fn first_line(piece: &[u8]) -> String {
    String::from_utf8_lossy(piece)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Until one side is gone, or something else is given in the place of a piece. The head of a
/// request comes in one piece, as the client writes it.
fn pass(mut from: TcpStream, mut to: TcpStream, seen: impl Fn(&mut Vec<u8>) -> Option<String>) {
    let mut bytes = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mut piece = bytes[..count].to_vec();
        if let Some(instead) = seen(&mut piece) {
            let _ = to.write_all(instead.as_bytes());
            break;
        }
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}
