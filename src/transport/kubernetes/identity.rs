//! How we prove who we are to an API server: with the tokens, certificates and plugins that a
//! kubeconfig names, or as the pod that we run in.

use super::cluster_config::SelectedConfig;
use super::credentials::{self, CredentialSource, Credentials, read_credential_file};
use super::fault;
use super::kubeconfig;
use super::pinned_server::ServerPins;
use super::server::KubernetesServer;
use crate::access::CONNECT_TIMEOUT_S;
use crate::{ClusterAccess, TransportError};
use kube::config::{AuthInfo, ExecInteractiveMode};
use railwright_base::Reason;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_resource::file::base64;
use railwright_system::{clock, terminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A plugin may wait for somebody who logs in with a browser.
const PLUGIN_LIMIT: Duration = Duration::from_secs(180);

/// How messages speak of the identity, without its secrets.
pub struct IdentityDescription {
    /// `the token of ~/.kube/config (context prod)`.
    pub identity: String,
    /// The plugin's program.
    pub plugin: String,
    /// What the kubeconfig hands to the plugin, and what we show to the server.
    pub credentials: Arc<Credentials>,
}

/// A client; nothing was asked yet but a plugin.
pub(super) async fn open_kubernetes_server(
    name: &str,
    access: &ClusterAccess,
    pins: &'static ServerPins,
) -> Result<KubernetesServer, TransportError> {
    let (server_name, cluster) = (name.to_owned(), access.clone());
    // Files are read and plugins waited for in a thread of its own, which does not hold up the end
    // of the program either.
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    let waits_for = Arc::new(Mutex::new("what the kubeconfig names".to_owned()));
    let stage = waits_for.clone();
    std::thread::spawn(move || {
        let _inside = runtime.enter();
        let _ = sender.send(prepare_server(server_name, &cluster, pins, &stage));
    });
    let reason = match clock::await_with_timeout(PLUGIN_LIMIT, receiver).await {
        Some(Ok(Ok(server))) => return Ok(server),
        Some(Ok(Err(reason))) => reason,
        Some(Err(_)) => "the kubeconfig could not be read".into(),
        None => format!(
            "{} was waited for in vain for {} s",
            lock_ignoring_poison(&waits_for),
            PLUGIN_LIMIT.as_secs()
        )
        .into(),
    };
    Err(TransportError::NoIdentity {
        cluster: name.to_owned(),
        reason,
    })
}

fn prepare_server(
    name: String,
    cluster: &ClusterAccess,
    pins: &ServerPins,
    waits_for: &Mutex<String>,
) -> Result<KubernetesServer, Reason> {
    let selected = pins.select_config(cluster)?;
    let address = selected.address();
    let SelectedConfig {
        mut config, place, ..
    } = selected;
    config.connect_timeout = Some(Duration::from_secs(CONNECT_TIMEOUT_S.into()));
    // Tries are counted where it is known what is asked.
    config.default_retry = false;
    if let Some(exec) = &mut config.auth_info.exec
        && exec.interactive_mode != Some(ExecInteractiveMode::Always)
        && !terminal::is_stdin()
    {
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    let words = describe_identity(&config.auth_info, &place);
    if config.auth_info.exec.is_some() {
        let what = format!(
            "the end of the exec plugin {} of {place} (run it by hand: it may ask for a login, or \
             hang)",
            words.plugin
        );
        *lock_ignoring_poison(waits_for) = what;
    }
    let source = take_in(&mut config.auth_info, &place)?;
    let client = credentials::build_kube_client(config, source, words.credentials.clone())?
        .map_err(|error| describe_client_error(&error, &words, &place))?;
    Ok(KubernetesServer::new(name, address, words, client))
}

/// Puts the certificate and the key of files in their place, so that nobody reads those again, and
/// tells where the token comes from.
fn take_in(auth: &mut AuthInfo, place: &str) -> Result<CredentialSource, Reason> {
    if let Some(path) = auth.client_certificate.take()
        && auth.client_certificate_data.is_none()
    {
        auth.client_certificate_data = Some(read_client_pem("certificate", &path, place)?);
    }
    if let Some(path) = auth.client_key.take()
        && auth.client_key_data.is_none()
    {
        auth.client_key_data = Some(read_client_pem("key", &path, place)?.into());
    }
    // In the library's order.
    let has_other = auth.auth_provider.is_some()
        || auth.token.is_some()
        || (auth.username.is_some() && auth.password.is_some());
    match auth.token_file.take().filter(|_| !has_other) {
        Some(path) => {
            auth.exec = None;
            Ok(CredentialSource::File(path.into()))
        }
        None => Ok(CredentialSource::Library),
    }
}

/// The certificate or the key that a kubeconfig names by its file, in base64.
fn read_client_pem(what: &str, path: &str, place: &str) -> Result<String, Reason> {
    match read_credential_file(Path::new(path)) {
        Ok(pem) => Ok(base64::encode_base64_text(&pem)),
        Err(why) => Err(format!("the client {what} that {place} names: {why}").into()),
    }
}

fn describe_client_error(error: &kube::Error, words: &IdentityDescription, place: &str) -> String {
    match error {
        kube::Error::Auth(error) => fault::describe_auth_error(error, words),
        kube::Error::InferKubeconfig(error) => kubeconfig::describe_error(error, place),
        kube::Error::ProxyProtocolUnsupported { .. }
        | kube::Error::ProxyProtocolDisabled { .. } => {
            "the proxy speaks a protocol that is not known: write http://, https:// or socks5://"
                .to_owned()
        }
        kube::Error::RustlsTls(_) => format!("certificate or key of {place} cannot be used"),
        _ => format!("{place} cannot be used"),
    }
}

fn describe_identity(auth: &AuthInfo, place: &str) -> IdentityDescription {
    let plugin = auth.exec.as_ref().and_then(|exec| exec.command.as_deref());
    let what = match auth {
        _ if plugin.is_some() => "what its exec plugin gave",
        AuthInfo { token: Some(_), .. } => "the token",
        AuthInfo {
            token_file: Some(_),
            ..
        } => "the token of its file",
        AuthInfo {
            client_certificate: Some(_),
            ..
        }
        | AuthInfo {
            client_certificate_data: Some(_),
            ..
        } => "the client certificate",
        AuthInfo {
            username: Some(_), ..
        } => "the password",
        AuthInfo {
            auth_provider: Some(_),
            ..
        } => "what its provider gave",
        _ => "no token and no certificate",
    };
    let handed = auth.exec.iter().flat_map(|exec| exec.env.iter().flatten());
    let handed = handed
        .filter_map(|pair| Some((pair.get("name")?.clone(), pair.get("value")?.clone())))
        .collect();
    let plugin = plugin.map_or_else(
        || "(none)".to_owned(),
        |path| one_line(&file_name(path), 60),
    );
    IdentityDescription {
        identity: format!("{what} of {place}"),
        plugin,
        credentials: Arc::new(Credentials::new(handed)),
    }
}

fn file_name(path: &str) -> String {
    PathBuf::from(path).file_name().map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::kubernetes::server::KubernetesRequest;
    use serde_json::json;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    async fn said(kubeconfig: &Path) -> String {
        let cluster = ClusterAccess {
            kubeconfig: Some(kubeconfig.display().to_string()),
            ..ClusterAccess::default()
        };
        open_kubernetes_server("prod", &cluster, ServerPins::begin())
            .await
            .err()
            .map(|error| error.one_line())
            .unwrap_or_default()
    }

    fn kubeconfig(server: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: c\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
             users: [{{name: u, user: {user}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        )
    }

    /// A server that answers everything with this status, and quotes what it was shown.
    pub(in crate::kubernetes) fn quoting(status: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(client.try_clone().unwrap())
                    .lines()
                    .map_while(Result::ok);
                let shown: Vec<String> =
                    lines.by_ref().take_while(|line| !line.is_empty()).collect();
                let shown = shown
                    .iter()
                    .find(|line| line.to_ascii_lowercase().starts_with("authorization:"))
                    .cloned()
                    .unwrap_or_default();
                let body =
                    json!({ "kind": "Status", "message": format!("who is this? {shown}"), "details": { "name": shown } }).to_string();
                let head = format!(
                    "HTTP/1.1 {status}\r\n\
                     Warning: 299 - \"{shown}\"\r\n\
                     Connection: close\r\n\
                     Content-Length: {}",
                    body.len()
                );
                let _ = client.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
            }
        });
        place
    }

    /// As the server of this kubeconfig is asked, and all that it says.
    async fn asked(config: &Path) -> Result<(KubernetesServer, String), Reason> {
        let cluster = ClusterAccess {
            kubeconfig: Some(config.display().to_string()),
            ..ClusterAccess::default()
        };
        let server = open_kubernetes_server("prod", &cluster, ServerPins::begin())
            .await
            .map_err(|error| error.one_line())?;
        let said = quoted(&server).await?;
        Ok((server, said))
    }

    async fn quoted(server: &KubernetesServer) -> Result<String, Reason> {
        let reply = server
            .ask(&KubernetesRequest::get("/api/v1/nodes".to_owned()))
            .await
            .map_err(|trouble| trouble.reason())?;
        Ok(format!(
            "{} {} {:?}",
            reply.message(),
            reply.json().unwrap(),
            reply.warnings
        ))
    }

    #[tokio::test]
    async fn what_we_are_known_by_is_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let (config, in_file) = (folder.path().join("config"), folder.path().join("token"));
        std::fs::write(&in_file, "SECRET-of-a-file\n").unwrap();
        let plugin = |script: &str| {
            let head = r#""kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1""#;
            let script = format!(r#"printf '{{{head},"status":{{%s}}}}' {script}"#);
            let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "/bin/sh", "args": ["-c", script] });
            json!({ "exec": exec }).to_string()
        };
        let provider = |name: &str, config: serde_json::Value| {
            json!({ "auth-provider": { "name": name, "config": config } }).to_string()
        };
        for (user, secret, word) in [
            (
                "{token: SECRET-token-value}".to_owned(),
                "SECRET",
                "[secret bearer token]",
            ),
            (
                format!("{{tokenFile: {}}}", in_file.display()),
                "SECRET",
                "[secret bearer token]",
            ),
            (
                "{username: ann, password: SECRET-password}".to_owned(),
                "YW5uOlNFQ1JFVC1wYXNzd29yZA==",
                "[secret name and password]",
            ),
            (
                plugin(r#"'"token":"SECRET-of-a-plugin"'"#),
                "SECRET",
                "[secret bearer token]",
            ),
            // One that is asked again for each request.
            (
                plugin(
                    r#""\"token\":\"SECRET-of-$$\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"""#,
                ),
                "SECRET",
                "[secret bearer token]",
            ),
            (
                provider("oidc", json!({ "id-token": "SECRET-of-oidc" })),
                "SECRET",
                "[secret bearer token]",
            ),
            (
                provider(
                    "gcp",
                    json!({ "access-token": "SECRET-of-gcp", "expiry": "2999-01-01T00:00:00Z" }),
                ),
                "SECRET",
                "[secret bearer token]",
            ),
        ] {
            std::fs::write(&config, kubeconfig(&quoting("403 Forbidden"), &user)).unwrap();
            let (server, all) = asked(&config).await.unwrap();
            assert!(!all.contains(secret) && all.contains(word), "{user}: {all}");
            let all = quoted(&server).await.unwrap();
            assert!(
                !all.contains(secret) && all.contains(word),
                "again {user}: {all}"
            );
        }
    }

    #[tokio::test]
    async fn what_we_are_known_by_is_not_said_with_a_good_status_either() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        for status in ["200 OK", "202 Accepted", "299 Well"] {
            std::fs::write(
                &config,
                kubeconfig(&quoting(status), "{token: SECRET-token-value}"),
            )
            .unwrap();
            let (server, _) = asked(&config).await.unwrap();
            let reply = server
                .ask(&KubernetesRequest::get("/api/v1/nodes".to_owned()))
                .await
                .unwrap();
            let said = reply.message();
            assert!(
                !said.contains("SECRET") && said.contains("[secret bearer token]"),
                "{status}: {said}"
            );
        }
    }

    #[tokio::test]
    async fn a_token_that_changes_in_its_file_is_sent_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let (config, in_file) = (folder.path().join("config"), folder.path().join("token"));
        let of_user = format!("{{tokenFile: {}}}", in_file.file_name().unwrap().display());
        std::fs::write(&in_file, "FIRST-of-a-file").unwrap();
        std::fs::write(&config, kubeconfig(&quoting("403 Forbidden"), &of_user)).unwrap();
        let (server, all) = asked(&config).await.unwrap();
        assert!(
            all.contains("[secret bearer token]") && !all.contains("FIRST"),
            "{all}"
        );
        let a_minute_later = async || {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(60)).await;
            tokio::time::resume();
            let all = quoted(&server).await.unwrap();
            assert!(
                ["FIRST", "SECOND"]
                    .iter()
                    .all(|secret| !all.contains(secret))
                    && all.contains("[secret bearer token]"),
                "{all}"
            );
            server.words.credentials.redaction()
        };
        std::fs::write(&in_file, "SECOND-of-a-file").unwrap();
        assert!(a_minute_later().await.finds_in("SECOND-of-a-file"));
        // What has no end in its place is not read, and the last token goes on.
        std::fs::remove_file(&in_file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &in_file).unwrap();
        let redaction = a_minute_later().await;
        assert!(redaction.finds_in("FIRST-of-a-file") && redaction.finds_in("SECOND-of-a-file"));
    }

    /// It could not be told from other text.
    #[tokio::test]
    async fn what_is_too_short_to_be_kept_off_screens_is_not_sent() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        for (user, what) in [
            ("{token: S3cr}", "bearer token"),
            ("{username: ann, password: S3cr}", "basic password"),
        ] {
            std::fs::write(&config, kubeconfig(&quoting("403 Forbidden"), user)).unwrap();
            let said = asked(&config).await.err().unwrap();
            assert!(
                said.as_words()
                    .contains(&format!("the {what} is shorter than 6 characters"))
                    && !said.as_words().contains("S3cr"),
                "{said}"
            );
        }
    }

    #[tokio::test]
    async fn what_never_ends_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let of_user = folder.path().join("of-user");
        let files = [
            "tokenFile: PATH",
            "client-certificate: PATH, client-key: PATH",
            "client-key: PATH",
        ];
        // The second is a file of 0 bytes that goes on for ever, and that does not give the single
        // byte beyond the limit.
        for (path, desired) in [
            ("/dev/zero", "/dev/zero is no file"),
            ("/proc/self/pagemap", "/proc/self/pagemap: Invalid argument"),
        ] {
            for user in files.map(|files| format!("{{{}}}", files.replace("PATH", path))) {
                std::fs::write(&of_user, kubeconfig("http://127.0.0.1:1", &user)).unwrap();
                let said = said(&of_user).await;
                assert!(said.contains(desired), "{said}");
            }
            let server = format!("https://127.0.0.1:1\", certificate-authority: \"{path}");
            std::fs::write(&of_user, kubeconfig(&server, "{}")).unwrap();
            let said = said(&of_user).await;
            assert!(
                said.contains(desired) && said.contains("the certificate authority that"),
                "{said}"
            );
        }
        let (pipe, huge) = (folder.path().join("pipe"), folder.path().join("huge"));
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        std::fs::File::create(&huge)
            .unwrap()
            .set_len(64 << 20)
            .unwrap();
        for (path, desired) in [
            (pipe.as_path(), "is no file"),
            (Path::new("/dev/zero"), "/dev/zero is no file"),
            (
                Path::new("/proc/self/pagemap"),
                "/proc/self/pagemap: Invalid argument",
            ),
            (folder.path(), "is no file"),
            (
                &huge,
                "huge has more than 16 MiB, which no kubeconfig, certificate or token has",
            ),
        ] {
            let said = said(path).await;
            assert!(said.contains(desired), "{said}");
        }
    }

    /// The clock of this test jumps to the limit as soon as nothing else happens.
    #[tokio::test]
    async fn a_plugin_that_hangs_is_named_with_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (config, begun) = (folder.path().join("config"), folder.path().join("begun"));
        let exec = format!(
            "{{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: \
             /bin/sh, args: [-c, \"touch {}; sleep 5\"]}}",
            begun.display()
        );
        std::fs::write(
            &config,
            kubeconfig("http://127.0.0.1:1", &format!("{{exec: {exec}}}")),
        )
        .unwrap();
        let jumps = async {
            while !begun.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::pause();
            std::future::pending::<String>().await
        };
        let said = tokio::select! { said = said(&config) => said, said = jumps => said };
        for words in [
            "the exec plugin sh of ",
            "config (context c)",
            "run it by hand",
            "for 180 s",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
