//! Taking packages away, and none beside them. One that we brought and that others need stays, and
//! is handed back to the package manager as their dependency; one whose absence is declared is an
//! error then.
//!
//! The names of those that stayed are kept on the host, so that what is read next knows that we ask
//! for them no longer: dnf has no way to ask why a package is there that changes nothing of the
//! host.

use crate::complaint::OF_OTHERS;
use crate::file::OWN_FOLDER;
use railwright_base::quote::{quote_for_shell, sh_words};

/// The names of the packages that were handed back, one a line, on the host.
pub fn left_path() -> String {
    format!("{OWN_FOLDER}/left_packages")
}

/// `unlocked COMMAND` does this until it succeeds or fails for another reason than a lock that
/// another program holds, for about a minute. What the command looks at before it acts, it so looks
/// at again after each wait, in which others bring and take packages. Its caller brings `is_locked`,
/// and what fails sets `$rc`.
pub const UNLOCKED: &str = r#"unlocked() {
 tries=0
 until "$@"; do
  is_locked && [ "$tries" -lt 12 ] || return "$rc"
  tries=$((tries+1)); sleep 5
 done
}
"#;

/// `look NAMES...` sets `$b` to what would go with these and is not in `$names`. Its caller brings
/// the shell functions `going NAMES...`, which names all that would go, or fails, and `verdict`. apt
/// leaves the architecture of the host, `native`, out of names.
const BESIDE: &str = r#"look() { b=$(beside "$@") || { rc=$?; verdict; }; }
beside() {
 g=$(going "$@") || return "$?"
 for t in $g; do case " $names " in *" $t "* | *" $t:${native:-} "* | *" ${t%%:*} "*) ;; *) printf ' %s' "$t" ;; esac; done
}
"#;

/// Removes those of these packages that can go, by this command, and leaves the others. Its caller
/// brings two shell functions: `going NAMES...` names what would go with these, and `mark NAME`
/// makes one a dependency, or fails.
///
/// What goes may need what stays and not the other way round, so each round looks again at those
/// that are left; together they may take away more than each of them alone.
pub fn release_unneeded_script(names: &[String], remove: &str) -> String {
    format!(
        r#"{BESIDE}leave() {{
 mark "$1" || return "$rc"
 mkdir -p -m 700 {OWN_FOLDER} && {{ grep -qxF -e "$1" {left} 2>/dev/null || printf '%s\n' "$1" >>{left}; }} || say 1 "{left} could not be written"
 printf '%s stays, because other packages need it; it goes with them\n' "$1"
}}
go() {{
 while names=$*; [ "$#" -gt 0 ] && look "$@" && [ -n "$b" ]; do
  before=$#
  for p; do shift; look "$p"; if [ -n "$b" ]; then leave "$p" || return "$rc"; else set -- "$@" "$p"; fi; done
  [ "$#" -lt "$before" ] || {{ for p; do leave "$p" || return "$rc"; done; set --; }}
 done
 [ "$#" = 0 ] || {remove} "$@"
}}
unlocked go {words} || verdict
"#,
        left = left_path(),
        words = sh_words(names.iter().map(String::as_str)),
    )
}

/// Removes these packages by this command. It leaves before anything is done where a package would
/// go that is not among their names: what needs them, be it declared, installed by hand or a
/// dependency. Its caller brings `going NAMES...`.
pub fn remove_alone_script(manager: &str, names: &[String], remove: &str) -> String {
    format!(
        r#"{BESIDE}names={names}
go() {{
 look {words}
 [ -z "$b" ] || say {OF_OTHERS} "{manager} would take away$b with it; nothing was changed (declare the absence of$b as well, or leave the absent package out of the spec)"
 {remove} {words}
}}
unlocked go || verdict
"#,
        names = quote_for_shell(&names.join(" ")),
        words = sh_words(names.iter().map(String::as_str)),
    )
}

/// Leaves before anything is done where a package would go that we did not bring, or that was there
/// before us, by the record of the host. `taken` is a command of the shell that names what would
/// go; `spare` fails as it does.
pub fn replace_only_ours(manager: &str, taken: &str) -> String {
    format!(
        r#"brought() {{
 r=$(cat {OWN_FOLDER}/record.json 2>/dev/null); k="/package/$1\":"; f='"before":'; l='"adopted":'
 case $r in *"$k"*) r=${{r#*"$k"}}; r=${{r#*"$f"}}; r=${{r%%"$l"*}} ;; *) return 1 ;; esac
 case $r in *'"not_installed"'*) ;; *) return 1 ;; esac
}}
spare() {{
 others=
 t=$({taken}) || {{ rc=$?; return "$rc"; }}
 for p in $t; do brought "${{p%%:*}}" || others="$others $p"; done
 [ -z "$others" ] || say {OF_OTHERS} "{manager} would take away$others, which was not brought by us; nothing was changed (where it is not needed, declare its absence)"
}}
"#
    )
}

/// Packages that we bring are asked for again.
pub fn ask_again_script<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let patterns: String = names
        .into_iter()
        .map(|name| format!(" -e {}", quote_for_shell(name)))
        .collect();
    let left = left_path();
    format!(
        "[ ! -e {left} ] || {{ grep -vxF{patterns} {left} >{left}.new; mv {left}.new {left}; [ -s \
         {left} ] || rm -f {left}; }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// What a script prints whose files of the host lie in this folder, in every shell of this
    /// machine.
    fn printed(folder: &Path, script: &str) -> String {
        let script = script.replace(OWN_FOLDER, &folder.display().to_string());
        for shell in [["bash", "--posix"].as_slice(), &["busybox", "sh"]] {
            if let Ok(output) = Command::new(shell[0])
                .args(&shell[1..])
                .args(["-n", "-c", &script])
                .output()
            {
                assert!(
                    output.status.success(),
                    "{shell:?}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
        let output = Command::new("sh")
            .args(["-u", "-c", &script])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A fake manager that knows `DEPENDANT:NEEDED`, each of them alone, and which names cannot go
    /// together.
    fn fake_manager(dependencies: &str, not_together: &str) -> String {
        format!(
            r#"say() {{ exit 1; }}
verdict() {{ exit 1; }}
unlocked() {{ "$@"; }}
removes() {{ echo "goes $*"; }}
going() {{
 [ "$*" != '{not_together}' ] || echo of-both
 for f_p; do for f_d in {dependencies}; do case $f_d in *":$f_p") echo "${{f_d%:*}}" ;; esac; done; done
}}
mark() {{ :; }}
"#
        )
    }

    /// A trial that fails says nothing of what would go: apt's own caches are replaced beside it.
    #[test]
    fn nothing_goes_where_the_manager_does_not_say_what_would_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a".to_owned()];
        let failing = "say() { echo \"$2\"; exit 0; }\nverdict() { echo refused; exit 0; }\n\
                       going() { return 100; }\nmark() { :; }\nunlocked() { \"$@\"; }\n";
        for script in [
            release_unneeded_script(&names, "echo gone"),
            remove_alone_script("apt", &names, "echo gone"),
            format!("{}spare || verdict\n", replace_only_ours("apt", "going a")),
        ] {
            let script = format!("{failing}{script}echo gone\n");
            assert_eq!(printed(folder.path(), &script), "refused\n", "{script}");
        }
    }

    /// While it waits for the lock, somebody brings x, which needs a.
    #[test]
    fn who_waits_for_a_lock_looks_again_before_anything_goes() {
        let names = ["a", "b"].map(str::to_owned);
        let manager = format!(
            r#"{UNLOCKED}x= rc=0
say() {{ echo "$1$2"; exit 0; }}
verdict() {{ say "$rc" ' in the end'; }}
sleep() {{ x=x; }}
is_locked() {{ [ "$rc" = 200 ]; }}
going() {{ echo "$*"; case " $* " in *' a '*) echo $x ;; esac; }}
mark() {{ :; }}
removes() {{ [ -n "$x" ] && rc=0 || rc=200; echo "tried $*"; return "$rc"; }}
"#
        );
        let release = release_unneeded_script(&names, "removes");
        let remove = remove_alone_script("apt", &names, "removes");
        let tried = "tried a b\n".repeat(13);
        for (never_free, script, out) in [
            (
                "",
                &release,
                "tried a b\na stays, because other packages need it; it goes with them\ntried b\n"
                    .to_owned(),
            ),
            (
                "",
                &remove,
                format!(
                    "tried a b\n{OF_OTHERS}apt would take away x with it; nothing was changed (declare the absence of x as well, or leave the absent package out of the spec)\n"
                ),
            ),
            (
                "sleep() { :; }",
                &release,
                format!("{tried}200 in the end\n"),
            ),
            (
                "sleep() { :; }",
                &remove,
                format!("{tried}200 in the end\n"),
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let script = format!("{manager}{never_free}\n{script}");
            assert_eq!(printed(folder.path(), &script), out);
        }
    }

    #[test]
    fn what_others_need_stays_and_nothing_goes_that_was_not_named() {
        for (dependencies, not_together, goes, left) in [
            ("", "", "a b c", ""),
            ("x:y", "", "a b c", ""),
            ("x:a", "", "b c", "a\n"),
            // b needs a, and goes with it
            ("b:a", "", "a b c", ""),
            // b needs a, and x needs b
            ("b:a x:b", "", "c", "b\na\n"),
            ("x:a y:a x:b z:c", "", "", "a\nb\nc\n"),
            // x needs one of both
            ("", "a b c", "", "a\nb\nc\n"),
            ("x:c", "a b", "", "c\na\nb\n"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let names = ["a", "b", "c"].map(str::to_owned);
            let script = fake_manager(dependencies, not_together)
                + &release_unneeded_script(&names, "removes");
            // a step that was cut off is done once more
            for _ in 0..2 {
                let out = printed(folder.path(), &script);
                let removed = out.lines().find_map(|line| line.strip_prefix("goes "));
                assert_eq!(removed.unwrap_or_default(), goes, "{dependencies:?} {out}");
                let listed = std::fs::read_to_string(folder.path().join("left_packages"))
                    .unwrap_or_default();
                assert_eq!(listed, left, "{dependencies:?} {out}");
            }
        }
    }

    #[test]
    fn what_is_asked_for_again_is_no_longer_left() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("left_packages");
        printed(folder.path(), &ask_again_script(["a"]));
        assert!(!list.exists());
        std::fs::write(&list, "a\na.b\nab\n").unwrap();
        printed(folder.path(), &ask_again_script(["a", "c"]));
        assert_eq!(std::fs::read_to_string(&list).unwrap(), "a.b\nab\n");
        printed(folder.path(), &ask_again_script(["ab", "a.b"]));
        assert!(!list.exists());
    }
}
