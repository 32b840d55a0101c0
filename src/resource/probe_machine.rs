//! The `machine` probe: kernel modules that run and that are installed, and default routes, without
//! a tool of any vendor. What the host is made of is `Read::Hardware`.

use railwright_base::quote::sh_words;

/// A module that is built into the kernel has no `initstate`. Many kernels (Debian's) keep no
/// srcversion: there the build id of what runs, a note of 20 bytes behind a header of 16, is looked
/// for in the installed file.
const MODULES: &str = r#"unpacked() {
case $1 in *.xz) t=xz ;; *.zst) t=zstd ;; *.gz) t=gzip ;; *) t= ;; esac
if [ -z "$t" ]; then cat "$1"; else command -v $t >/dev/null 2>&1 && $t -dc "$1"; fi
}
hex() { od -A n -v -t x1 | tr -d ' \n'; }
built() {
b=$(tail -c +17 "/sys/module/$1/notes/.note.gnu.build-id" 2>/dev/null | hex)
f=$(modinfo -n "$1" 2>/dev/null)
[ -n "$b" ] && [ -f "$f" ] || return 0
h=$(unpacked "$f" 2>/dev/null | head -c 4 | hex)
[ "$h" = 7f454c46 ] || return 0
echo "running build-id $b"
if unpacked "$f" 2>/dev/null | hex | grep -q "$b"; then echo "installed build-id $b"; else echo 'installed build-id another'; fi
}
"#;

const ROUTES: &str = r#"echo @routes
timeout 10 ip -j route show default 2>/dev/null
echo
exit 0
"#;

/// The script.
pub fn render_machine_probe_script(modules: &[String]) -> String {
    let modules = sh_words(modules.iter().map(String::as_str));
    format!(
        "{MODULES}for m in {modules}; do\n\
         [ -e \"/sys/module/$m/initstate\" ] || continue\n\
         echo \"@module $m\"\n\
         for k in srcversion version; do\n\
         v=; {{ read -r v <\"/sys/module/$m/$k\"; }} 2>/dev/null && echo \"running $k $v\"\n\
         v=$(modinfo -F $k \"$m\" 2>/dev/null) && [ -n \"$v\" ] && echo \"installed $k $v\"\n\
         done\n\
         [ -e \"/sys/module/$m/srcversion\" ] || built \"$m\"\n\
         done\n\
         {ROUTES}"
    )
}
