//! How a script gets to a switch and its end back, where nothing but lines of its CLI can be sent.
//!
//! eAPI runs `bash timeout SECONDS COMMAND` and nothing that waits for input
//! (arista-eosplus/pyeapi#128), and what it does for long is cut off by the servers before it
//! (arista-eosplus/pyeapi#138: at about 60 s). So a script is laid in parts into a folder of its
//! own on the switch, started apart from the request, and looked at until it has ended. Each line
//! is `bash timeout N echo BASE64 | base64 -d | /bin/sh`: letters, digits and pipes, which is all
//! that a CLI has to leave as it is; `sudo -n` is in the script. Nothing of it is secret: commands
//! of a CLI may be logged (`aaa accounting commands`).
//!
//! An answer begins with a line with a fresh nonce, and all else of it is base64: whatever the
//! script prints cannot be taken for it.

use crate::shell::{ERROR_KEPT, OUTPUT_KEPT};
use railwright_base::quote::quote_for_shell;
use railwright_base::text::start_of;
use railwright_resource::file::base64;

/// Bytes of a script in one command. No source says how long a line may be; certificates of some
/// KiB are brought over so.
const PART: usize = 6000;
/// Bytes of output that one look brings.
const SLICE: usize = 1 << 20;
/// Tenths of a second that one look waits for the end.
const WAIT: u32 = 100;
/// Seconds after which the switch ends a command of ours: a look waits for 10 s.
const COMMAND_LIMIT_S: u32 = 30;
/// How the folders begin that hold a script while it runs. They are gone with its end, or with a
/// day.
const FOLDER: &str = "/tmp/railwright-eapi";

/// One script on its way.
pub struct Relay {
    nonce: String,
    /// Through `sudo -n`.
    elevated: bool,
}

/// What a look saw.
#[derive(Debug, PartialEq, Eq)]
pub struct RelayProgress {
    /// How it stands.
    pub state: RelayedScriptState,
    /// How many bytes of output and of complaints there are so far.
    pub sizes: [usize; 2],
    /// Those from where the look was asked to begin.
    pub slices: [Vec<u8>; 2],
}

/// How a script stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayedScriptState {
    /// It runs.
    Running,
    /// It ended with this status.
    Ended(i32),
    /// It is gone without one.
    Gone,
}

impl Relay {
    /// A relay with a nonce of its own: letters and digits.
    pub fn new(nonce: String, elevated: bool) -> Self {
        Relay { nonce, elevated }
    }

    fn command(&self, script: &str) -> String {
        let folder = quote_for_shell(&format!("{FOLDER}-{}", self.nonce));
        let script = format!("umask 077\nd={folder}\n{script}");
        // The user's own shell is the last of the pipe, so that what `sudo` complains of comes
        // back, and a refusal of it is no status of the command.
        let script = match self.elevated {
            true => format!(
                "exec 2>&1\nsudo -n /bin/sh -s <<'@{nonce}'\n{script}@{nonce}\nexit 0\n",
                nonce = self.nonce
            ),
            false => format!("exec 2>&1\n{script}exit 0\n"),
        };
        format!(
            "bash timeout {COMMAND_LIMIT_S} echo {} | base64 -d | /bin/sh",
            base64::encode_base64_text(script.as_bytes())
        )
    }

    /// Lays a script there, part by part; each says [`Relay::is_done`].
    pub fn put(&self, script: &str) -> Vec<String> {
        let told = format!("echo \"@{} done\"", self.nonce);
        let mut commands = Vec::new();
        for (n, part) in split_script_parts(script).into_iter().enumerate() {
            // `mkdir` is the claim: a folder that somebody else made is never written into.
            let claim = if n == 0 { "mkdir \"$d\" && " } else { "" };
            commands.push(self.command(&format!(
                "{claim}printf %s {} >>\"$d/script\" && {told}\n",
                quote_for_shell(part)
            )));
        }
        commands
    }

    /// Whether a part was laid there.
    pub fn is_done(&self, said: &str) -> bool {
        said.lines()
            .any(|line| line.trim_end() == format!("@{} done", self.nonce))
    }

    /// Starts it where all of it is there, and looks for the first time; else nothing is said.
    pub fn start(&self, script: &str) -> String {
        // What no word of a shell can hold was left out of it.
        let bytes = script.bytes().filter(|byte| *byte != 0).count();
        // The readers go on to the end of the output, and drop what is beyond the limit. A daemon
        // that holds the output open is not waited for: `status.part` tells that the script itself
        // has ended, and what it said is there by then, because `head` keeps none of it back.
        let run = format!(
            "d=$1; echo $$ >\"$d/pid\"; U=; command -v stdbuf >/dev/null 2>&1 && U='stdbuf -o0'\n\
             {{ {{ /bin/sh \"$d/script\" 2>&3 3>&-; echo $? >\"$d/status.new\"; mv \
             \"$d/status.new\" \"$d/status.part\"; }} |\n\
             {{ $U head -c {OUTPUT_KEPT} >\"$d/out\"; cat >/dev/null; }} 3>&-; }} 3>&1 | {{ $U \
             head -c {ERROR_KEPT} >\"$d/err\"; cat >/dev/null; }}\n\
             mv \"$d/status.part\" \"$d/status\"\n"
        );
        self.command(&format!(
            "[ \"$(wc -c <\"$d/script\")\" -eq {bytes} ] || exit 0\n\
             find /tmp -maxdepth 1 -name 'railwright-eapi-*' -user \"$(id -u)\" -mmin +1440 -exec \
             rm -rf {{}} +\n\
             : >\"$d/out\"; : >\"$d/err\"\n\
             G=; command -v setsid >/dev/null 2>&1 && G=setsid\n\
             $G /bin/sh -c {} relay \"$d\" </dev/null >/dev/null 2>&1 &\n\
             {}",
            quote_for_shell(&run),
            self.look_script([0, 0])
        ))
    }

    /// Looks again, from these bytes of output and of complaints on.
    pub fn look(&self, from: [usize; 2]) -> String {
        self.command(&self.look_script(from))
    }

    fn look_script(&self, [out, err]: [usize; 2]) -> String {
        format!(
            "i=0; l=0; s=running\n\
             while [ $i -lt {WAIT} ]; do\n\
             if [ -e \"$d/status\" ]; then s=$(cat \"$d/status\"); break; fi\n\
             if [ -e \"$d/status.part\" ]; then l=$((l+1)); [ $l -lt 20 ] || {{ s=$(cat \
             \"$d/status.part\"); break; }}; fi\n\
             p=$(cat \"$d/pid\" 2>/dev/null)\n\
             if [ ! -d \"$d\" ] || {{ [ -n \"$p\" ] && ! kill -0 \"$p\" 2>/dev/null && [ ! -e \
             \"$d/status\" ]; }}; then s=gone; break; fi\n\
             sleep 0.1; i=$((i+1))\n\
             done\n\
             o=$(wc -c <\"$d/out\"); e=$(wc -c <\"$d/err\")\n\
             echo \"@{nonce} $s $((o)) $((e))\"\n\
             {out_slice}{err_slice}if [ \"$s\" != running ] && [ $((o)) -le {out_end} ] && [ \
             $((e)) -le {err_end} ]; then rm -rf \"$d\"; fi\n",
            nonce = self.nonce,
            out_slice = render_slice_line("out", out),
            err_slice = render_slice_line("err", err),
            out_end = out + SLICE,
            err_end = err + SLICE,
        )
    }

    /// What a look answered; nothing where it is no answer of ours.
    pub fn seen(&self, said: &str) -> Option<RelayProgress> {
        let marker = format!("@{} ", self.nonce);
        let mut lines = said.lines().skip_while(|line| !line.starts_with(&marker));
        let head: Vec<&str> = lines.next()?.split_whitespace().collect();
        let [_, state, out, err] = head[..] else {
            return None;
        };
        let state = match state {
            "running" => RelayedScriptState::Running,
            "gone" => RelayedScriptState::Gone,
            status => RelayedScriptState::Ended(status.parse().ok()?),
        };
        let out_slice = base64::decode_base64_text(lines.next().unwrap_or_default())?;
        let err_slice = base64::decode_base64_text(lines.next().unwrap_or_default())?;
        Some(RelayProgress {
            state,
            sizes: [out.parse().ok()?, err.parse().ok()?],
            slices: [out_slice, err_slice],
        })
    }
}

/// The line of a script that prints a slice of a stream, from this byte on.
fn render_slice_line(name: &str, from: usize) -> String {
    format!(
        "tail -c +{} \"$d/{name}\" | head -c {SLICE} | base64 | tr -d '\\n'; echo\n",
        from + 1
    )
}

/// The text in parts that each fit into a command.
fn split_script_parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > PART {
        let (part, after) = rest.split_at(start_of(rest, PART).len());
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests;
