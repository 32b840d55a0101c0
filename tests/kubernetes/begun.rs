//! The program while something else happens, and what it says meanwhile.

use crate::cluster::{Cluster, flat};
use std::io::Read as _;
use std::process::{Child, Output, Stdio};

/// The program, while something else happens.
pub fn begun(cluster: &Cluster<'_>, words: &[&str]) -> Child {
    cluster
        .command(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Both channels of a program that ended with this exit code, as one line.
pub fn ended(child: Child, code: i32) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let said = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(code), "{said}");
    flat(&said)
}

/// Reads what a program says until it has said this.
pub fn until_said(child: &mut Child, desired: &str) -> String {
    let mut said = Vec::new();
    let stderr = child.stderr.as_mut().unwrap();
    let mut byte = [0];
    while !flat(&String::from_utf8_lossy(&said)).contains(desired) {
        assert_eq!(
            stderr.read(&mut byte).unwrap(),
            1,
            "it ended before it said {desired:?}: {}",
            String::from_utf8_lossy(&said)
        );
        said.push(byte[0]);
    }
    flat(&String::from_utf8_lossy(&said))
}
