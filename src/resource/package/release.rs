//! Taking packages away, and none beside them. One that we brought and that others need stays, and
//! is handed back to the package manager as their dependency; one whose absence is wished is an
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

/// `look NAMES...` sets `$b` to what would go with these and is not in `$names`. Its caller brings
/// the shell functions `going NAMES...`, which names all that would go, or fails, and `verdict`. apt
/// leaves the architecture of the host, `native`, out of names.
const BESIDE: &str = r#"look() { b=$(beside "$@") || { rc=$?; verdict; }; }
beside() {
 g=$(going "$@") || return "$?"
 for t in $g; do case " $names " in *" $t "* | *" $t:${native:-} "* | *" ${t%%:*} "*) ;; *) printf ' %s' "$t" ;; esac; done
}
"#;

/// Ends with the names that can go as `$@`. Its caller brings two shell functions: `going NAMES...`
/// names what would go with these, and `mark NAME` makes one a dependency, or says why not.
///
/// What goes may need what stays and not the other way round, so each round looks again at those
/// that are left; together they may take away more than each of them alone.
pub fn sort_out_script(names: &[String]) -> String {
    format!(
        r#"{BESIDE}leave() {{
 mark "$1"
 mkdir -p -m 700 {OWN_FOLDER} && {{ grep -qxF -e "$1" {left} 2>/dev/null || printf '%s\n' "$1" >>{left}; }} || say 1 "{left} could not be written"
 printf '%s stays, because other packages need it; it goes with them\n' "$1"
}}
set -- {words}
while names=$*; [ "$#" -gt 0 ] && look "$@" && [ -n "$b" ]; do
 before=$#
 for p; do shift; look "$p"; if [ -n "$b" ]; then leave "$p"; else set -- "$@" "$p"; fi; done
 [ "$#" -lt "$before" ] || {{ for p; do leave "$p"; done; set --; }}
done
"#,
        left = left_path(),
        words = sh_words(names.iter().map(String::as_str)),
    )
}

/// Leaves before anything is done where a package would go that is not among these names: what
/// needs them, be it wished for, installed by hand or a dependency. Its caller brings `going
/// NAMES...`.
pub fn remove_alone(manager: &str, names: &[String]) -> String {
    format!(
        r#"{BESIDE}names={names}; look {words}
[ -z "$b" ] || say {OF_OTHERS} "{manager} would take away$b with it; nothing was changed (wish for the absence of$b as well, or leave the absent package out of the spec)"
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
 [ -z "$others" ] || say {OF_OTHERS} "{manager} would take away$others, which was not brought by us; nothing was changed (where it is not needed, wish for its absence)"
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
                       going() { return 100; }\nmark() { :; }\n";
        for script in [
            sort_out_script(&names),
            remove_alone("apt", &names),
            format!("{}spare || verdict\n", replace_only_ours("apt", "going a")),
        ] {
            let script = format!("{failing}{script}echo gone\n");
            assert_eq!(printed(folder.path(), &script), "refused\n", "{script}");
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
            let script = format!(
                "{}{}printf 'goes %s\\n' \"$*\"\n",
                fake_manager(dependencies, not_together),
                sort_out_script(&names)
            );
            // a step that was cut off is done once more
            for _ in 0..2 {
                let out = printed(folder.path(), &script);
                let last = out.lines().next_back().unwrap();
                assert_eq!(
                    last.strip_prefix("goes").unwrap().trim(),
                    goes,
                    "{dependencies:?} {out}"
                );
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
