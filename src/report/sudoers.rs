//! Lines of sudoers for a user who may only read.

use railwright_base::text::one_line;
use railwright_resource::rights::RootAccessNeed;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A file for /etc/sudoers.d: one alias of exact commands, given to the user without a password.
pub fn render_sudoers_fragment(
    user: &str,
    inventory: &str,
    needs: &BTreeSet<RootAccessNeed>,
) -> String {
    let commands: BTreeSet<String> = needs
        .iter()
        .flat_map(RootAccessNeed::commands)
        .map(|words| escape_sudoers_command(&words))
        .collect();
    let mut out = format!(
        "# What railwright reads as root on the hosts of {inventory}: exact commands that only \
         read, no shell.\n\
         # On each host: visudo -c -f FILE && install -m 0440 FILE /etc/sudoers.d/{file}\n\
         # Then: railwright drift {inventory} --read-as {user}\n",
        inventory = one_line(inventory, 200),
        file = user.replace('.', "_"),
    );
    for need in needs.iter().filter(|need| need.commands().is_empty()) {
        if let Some(why) = left_out(need) {
            let _ = writeln!(out, "# left out: {}", one_line(&why, 300));
        }
    }
    if commands.is_empty() {
        out.push_str("# Nothing that these hosts are asked needs root.\n");
        return out;
    }
    let list = commands.into_iter().collect::<Vec<_>>().join(", \\\n    ");
    let _ = write!(
        out,
        "Cmnd_Alias RAILWRIGHT_READ = \\\n    {list}\n\
         {user} ALL=(root) NOPASSWD:NOSETENV: RAILWRIGHT_READ\n"
    );
    out
}

/// A colon in a word has a meaning of its own in sudoers; no other character that is left in one
/// has (`rights::RootAccessNeed`).
fn escape_sudoers_command(words: &[String]) -> String {
    words
        .iter()
        .map(|word| word.replace(':', "\\:"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// What has no line, where somebody may wonder.
fn left_out(need: &RootAccessNeed) -> Option<String> {
    match need {
        RootAccessNeed::Secret(path) => Some(format!(
            "{path}, because it holds a secret; its findings are unknown where it is root's alone"
        )),
        RootAccessNeed::File(path) | RootAccessNeed::Content(path) => Some(format!(
            "{path}, because no exact command can name it or others than root may make names in \
             its folder"
        )),
        RootAccessNeed::Root(what) => Some(format!(
            "{what}, because it may do anything; its findings are unknown"
        )),
        RootAccessNeed::Folder(..) | RootAccessNeed::Sight(_) | RootAccessNeed::Program(..) => None,
    }
}
