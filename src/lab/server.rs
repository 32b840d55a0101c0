//! The repository's web server: files of one folder, to loopback only, GET and HEAD, connections
//! kept open for apt.

use super::Result;
use railwright_base::Diagnostic;
use railwright_system::files;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The most bytes of one request's head.
const HEAD_LIMIT: u64 = 16 << 10;
/// How long a silent connection is kept.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves a folder on 127.0.0.1 until the process is ended.
pub fn serve_repository(folder: &Path, port: u16) -> Result<()> {
    let failed = |error: std::io::Error| {
        Box::new(
            Diagnostic::error(
                "RW0904",
                format!("the package repository cannot be served on 127.0.0.1:{port}: {error}"),
            )
            .next("end what holds the port, or choose others with RAILWRIGHT_LAB_PORT"),
        )
    };
    let root = files::resolve_path(folder).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(failed)?;
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(handle_connection(stream, root.clone()));
            } else {
                // Out of file descriptors, as a rule: let some connections end.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    })
}

/// One connection: request after request, until the other side is done or says nothing sensible.
async fn handle_connection(stream: TcpStream, root: PathBuf) {
    let (reading, mut writing) = stream.into_split();
    let mut reader = BufReader::new(reading);
    while let Ok(Ok(Some(request))) =
        tokio::time::timeout(PATIENCE, read_request(&mut reader)).await
    {
        let answered = write_response(&request, &root, &mut writing).await;
        if answered.is_err() || request.last {
            return;
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct HttpRequest {
    method: String,
    target: String,
    /// The connection ends after it.
    last: bool,
}

async fn read_request(
    reader: &mut (impl tokio::io::AsyncBufRead + Unpin),
) -> std::io::Result<Option<HttpRequest>> {
    let mut head = Vec::new();
    let mut limited = reader.take(HEAD_LIMIT);
    loop {
        let line_start = head.len();
        if limited.read_until(b'\n', &mut head).await? == 0 {
            return Ok(None);
        }
        if matches!(&head[line_start..], b"\r\n" | b"\n") {
            return Ok(parse_request_head(&String::from_utf8_lossy(&head)));
        }
    }
}

fn parse_request_head(head: &str) -> Option<HttpRequest> {
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let closes = |line: &str| {
        line.split_once(':').is_some_and(|(n, v)| {
            n.eq_ignore_ascii_case("connection") && v.trim().eq_ignore_ascii_case("close")
        })
    };
    let last = version != "HTTP/1.1" || lines.any(closes);
    Some(HttpRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        last,
    })
}

async fn write_response(
    request: &HttpRequest,
    root: &Path,
    out: &mut (impl tokio::io::AsyncWrite + Unpin),
) -> std::io::Result<()> {
    if request.method != "GET" && request.method != "HEAD" {
        return out
            .write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            .await;
    }
    let Some((mut file, length)) = open_target_file(&request.target, root).await else {
        return out
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            .await;
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\n\
         Content-Type: application/octet-stream\r\n\
         Content-Length: {length}\r\n\
         \r\n"
    );
    out.write_all(head.as_bytes()).await?;
    if request.method == "GET" {
        // Not more than was promised, should the file grow meanwhile.
        tokio::io::copy(&mut (&mut file).take(length), out).await?;
    }
    out.flush().await
}

/// The file that a target names, if it is a plain file that really lies below the root.
async fn open_target_file(target: &str, root: &Path) -> Option<(tokio::fs::File, u64)> {
    let path = tokio::fs::canonicalize(root.join(resolve_target_path(target)?))
        .await
        .ok()?;
    if !path.starts_with(root) {
        return None;
    }
    let file = tokio::fs::File::open(path).await.ok()?;
    let metadata = file.metadata().await.ok()?;
    metadata.is_file().then_some((file, metadata.len()))
}

/// The relative path of a target such as `/./Packages`; `None` when it would leave the folder.
fn resolve_target_path(target: &str) -> Option<PathBuf> {
    let path = decode_percent_escapes(target.split(['?', '#']).next()?)?;
    let mut relative = PathBuf::new();
    for component in Path::new(&path).components() {
        match component {
            Component::Normal(name) => relative.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(relative)
}

/// Percent decoding, once: package names with an epoch hold a real `%3a`.
fn decode_percent_escapes(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(request: &str, root: &Path) -> String {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (reading, mut writing) = tokio::io::split(server);
        let (mut from, mut to) = tokio::io::split(client);
        to.write_all(request.as_bytes()).await.unwrap();
        to.shutdown().await.unwrap();
        let mut reader = BufReader::new(reading);
        while let Ok(Some(request)) = read_request(&mut reader).await {
            write_response(&request, root, &mut writing).await.unwrap();
        }
        drop((reader, writing));
        let mut text = String::new();
        from.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn files_are_served_and_nothing_outside_of_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap().join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(outer.path().join("secret"), "secret").unwrap();
        std::fs::write(root.join("a_1%3a2+b.deb"), "package").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let ok = ask(
            "GET /./a_1%253a2%2bb.deb HTTP/1.1\r\n\
             Host: x\r\n\
             \r\n\
             HEAD /a_1%253a2+b.deb HTTP/1.1\r\n\
             \r\n",
            &root,
        )
        .await;
        assert_eq!(ok.matches("200 OK").count(), 2, "{ok}");
        assert_eq!(ok.matches("\r\n\r\npackage").count(), 1, "{ok}");
        for bad in [
            "/../secret",
            "/src/../../secret",
            "/%2e%2e/secret",
            "/link",
            "/src",
            "/",
            "/a%00b",
            "/%zz",
            "/nothing",
            "/%2e%2e%2fsecret",
        ] {
            let text = ask(&format!("GET {bad} HTTP/1.1\r\n\r\n"), &root).await;
            assert!(
                text.starts_with("HTTP/1.1 404") && !text.contains("secret"),
                "{bad}: {text}"
            );
        }
        assert!(
            ask("POST / HTTP/1.1\r\n\r\n", &root)
                .await
                .starts_with("HTTP/1.1 405")
        );
    }

    #[tokio::test]
    async fn a_head_without_end_is_given_up() {
        let flood = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(1 << 15));
        let mut reader = BufReader::new(flood.as_bytes());
        assert_eq!(read_request(&mut reader).await.unwrap(), None);
        assert_eq!(parse_request_head("GET /\r\n\r\n"), None);
        assert!(parse_request_head("GET / HTTP/1.0\r\n\r\n").is_some_and(|request| request.last));
    }
}
