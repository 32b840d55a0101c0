//! A job on a host, rendered to sh: a transient unit that has a folder below /run, in which its
//! output stands until it was taken. With the unit the folder goes, so that nothing stays, also
//! where nobody comes back for it.

use super::program::ENVIRONMENT;
use railwright_base::quote::quote_for_shell;

/// Bytes of output that are taken at a time.
pub const CHUNK_BYTES: u64 = 512 << 10;
/// Bytes of output that the host keeps; what is beyond is dropped.
const KEPT_BYTES: u64 = 256 << 20;
/// Seconds that output stands when the job has ended and nobody takes it.
const LINGERS_S: u32 = 120;

fn quote_job_folder(token: &str) -> String {
    quote_for_shell(&format!("/run/railwright-{token}"))
}

/// Starts it. The unit's own limit is the lease. `dd` writes each piece of output as it comes;
/// `head` would hold it back.
pub fn render_job_start_script(
    token: &str,
    files: &[(String, String)],
    script: &str,
    lease_s: u32,
) -> String {
    let unit = quote_for_shell(&format!("railwright-{token}"));
    let main = format!(
        "{ENVIRONMENT}HOME=${{HOME:-/root}}; export HOME\n\
         d={folder}; cd \"$d\" || exit 1\n\
         trap 'rm -rf \"$d\"' TERM\n\
         {{ /bin/sh \"$d/job\" </dev/null 2>&1; echo $? >\"$d/status.part\"; }} | {{ dd bs=64k \
         count={KEPT_BYTES} iflag=count_bytes of=\"$d/out\" 2>/dev/null; cat >/dev/null; }}\n\
         mv \"$d/status.part\" \"$d/status\"\n\
         n=0; while [ -d \"$d\" ] && [ $n -lt {LINGERS_S} ]; do sleep 1; n=$((n+1)); done\n\
         rm -rf \"$d\"\n",
        folder = quote_job_folder(token),
    );
    let all = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .chain([("job", script), ("main", main.as_str())]);
    let write: String = all
        .map(|(name, text)| {
            format!(
                "printf %s {} >\"$d\"/{} || fail\n",
                quote_for_shell(text),
                quote_for_shell(name)
            )
        })
        .collect();
    format!(
        "need systemd-run\n\
         umask 077\n\
         d={folder}\n\
         mkdir \"$d\" || exit 1\n\
         fail() {{ rm -rf \"$d\"; exit 1; }}\n\
         {write}: >\"$d/out\"\n\
         systemd-run --quiet --collect --unit={unit} -p RuntimeMaxSec={lease_s} -p \
         TimeoutStopSec=10 -p LimitMEMLOCK=infinity -p \"ExecStopPost=-/bin/rm -rf $d\" /bin/sh \
         \"$d/main\" || fail\n",
        folder = quote_job_folder(token),
    )
}

/// `@job running SIZE`, `@job ended SIZE STATUS` or `@job gone 0`, and below it the output from
/// this byte on, `CHUNK_BYTES` at most.
pub fn render_job_output_script(token: &str, from: u64) -> String {
    format!(
        "d={folder}; [ -d \"$d\" ] || {{ echo '@job gone 0'; exit 0; }}\n\
         s=running; c=; if [ -s \"$d/status\" ]; then s=ended; read -r c <\"$d/status\"; fi\n\
         n=$(wc -c <\"$d/out\") || n=0\n\
         echo \"@job $s $((n)) $c\"\n\
         n=$((n-{from})); [ $n -le {CHUNK_BYTES} ] || n={CHUNK_BYTES}\n\
         [ $n -le 0 ] || tail -c +{next} \"$d/out\" | head -c $n\n\
         exit 0\n",
        folder = quote_job_folder(token),
        next = from + 1,
    )
}

/// Ends it, and takes its folder away.
pub fn render_job_end_script(token: &str) -> String {
    let unit = quote_for_shell(&format!("railwright-{token}.service"));
    format!(
        "systemctl stop {unit} 2>/dev/null\nrm -rf {folder}\nexit 0\n",
        folder = quote_job_folder(token)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn run(script: &str) -> String {
        let need = "need() { command -v \"$1\" >/dev/null || exit 127; }\n";
        let output = Command::new("sh")
            .args(["-c", &format!("{need}{script}")])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// The folder of the host, and no unit: what the scripts do with files.
    #[test]
    fn output_is_taken_from_where_it_was_left_and_the_folder_goes() {
        let token = format!("test{}", std::process::id());
        let there = std::path::PathBuf::from(format!("/run/railwright-{token}"));
        if std::fs::create_dir(&there).is_err() {
            return; // not as root
        }
        std::fs::write(there.join("out"), "one\ntwo\n").unwrap();
        assert_eq!(
            run(&render_job_output_script(&token, 0)),
            "@job running 8 \none\ntwo\n"
        );
        assert_eq!(
            (
                run(&render_job_output_script(&token, 4)),
                run(&render_job_output_script(&token, 8))
            ),
            (
                "@job running 8 \ntwo\n".to_owned(),
                "@job running 8 \n".to_owned()
            )
        );
        std::fs::write(there.join("status"), "3\n").unwrap();
        assert_eq!(
            run(&render_job_output_script(&token, 8)),
            "@job ended 8 3\n"
        );
        run(&render_job_end_script(&token));
        assert_eq!(
            (there.exists(), run(&render_job_output_script(&token, 0))),
            (false, "@job gone 0\n".to_owned())
        );
    }
}
