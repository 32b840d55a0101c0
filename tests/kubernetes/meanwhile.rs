//! A way to the API server on which something happens right before a request is passed on: `kubectl proxy`, and a relay before it.

use crate::rig::ControlPlane;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;

/// The way, until it is dropped.
pub struct Meanwhile {
    proxy: Child,
    port: u16,
}

impl Meanwhile {
    /// `happens` is called before each request that begins with `request` is passed on.
    pub fn start(plane: &ControlPlane, request: &'static str, happens: impl Fn() + Send + Sync + 'static) -> Self {
        Meanwhile::watch(plane, move |head| {
            if head.starts_with(request.as_bytes()) {
                happens();
            }
        })
    }

    /// `sees` is given each piece of a request before it is passed on; a head begins one.
    pub fn watch(plane: &ControlPlane, sees: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        let mut proxy = plane.kubectl_command(&["proxy", "--port=0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let server = line.trim().rsplit(' ').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, sees) = (listener.local_addr().unwrap().port(), Arc::new(sees));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, sees) = (TcpStream::connect(&server).unwrap(), Arc::clone(&sees));
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || pass(from_server, to_client, |_| ()));
                std::thread::spawn(move || pass(client, server, |bytes| sees(bytes)));
            }
        });
        Meanwhile { proxy, port }
    }

    /// A kubeconfig that leads this way.
    pub fn kubeconfig(&self) -> String {
        let cluster = format!("{{name: c, cluster: {{server: \"http://127.0.0.1:{}\"}}}}", self.port);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{cluster}]\nusers: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        )
    }
}

/// Until one side is gone. The head of a request comes in one piece, as the client writes it.
fn pass(mut from: TcpStream, mut to: TcpStream, seen: impl Fn(&[u8])) {
    let mut bytes = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        seen(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
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
