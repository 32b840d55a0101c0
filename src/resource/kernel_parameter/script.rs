//! What `kernel_parameter` reads and does, as POSIX sh.

use crate::complaint::{SAY, UNAVAILABLE};
use crate::rights::{OPEN, RootAccessNeed};
use railwright_base::quote::quote_for_shell;

/// Records `word <tab> text`: the running command line, the kind of boot loader, the assignments of
/// /etc/default/grub, the lines of grub.cfg that make its menu, grubenv, and on Red Hat's family
/// what grubby says of the default entry.
pub fn read_script() -> String {
    [
        OPEN,
        "printf 'running\\t%s\\n' \"$(cat \"$R/proc/cmdline\")\"\n\
         l=none\n\
         for b in \"$R/usr/sbin\" \"$R/usr/bin\" \"$R/sbin\"; do\n\
         if [ -x \"$b/grubby\" ]; then l=grubby; break; elif [ -x \"$b/update-grub\" ]; then \
         l=grub; fi\n\
         done\n\
         printf 'loader\\t%s\\n' \"$l\"\n\
         if [ \"$l\" = grubby ] && [ -z \"$R\" ]; then only grubby --info=DEFAULT | sed \
         's/^/grubby\\t/'; fi\n\
         for f in \"$R/etc/default/grub\" \"$R\"/etc/default/grub.d/*.cfg; do\n\
         ! has \"$f\" || { printf 'default\\t%s\\n' \"${f#\"$R\"}\"; get \"$f\" | sed -n \
         's/^[[:space:]]*\\(export \\)\\{0,1\\}\\(GRUB_CMDLINE_LINUX\\)/set\\t\\2/p'; }\n\
         done\n\
         for f in \"$R/boot/grub/grub.cfg\" \"$R/boot/grub2/grub.cfg\"; do\n\
         ! has \"$f\" || get \"$f\" | sed -n -e '/^[[:space:]]*set default=/s/^/menu\\t/p' -e \
         '/^[[:space:]]*menuentry /s/^/menu\\t/p' -e '/^[[:space:]]*submenu /s/^/menu\\t/p' -e \
         '/^[[:space:]]*function /s/^/menu\\t/p' -e '/^[[:space:]]*linux/s/^/menu\\t/p' -e \
         '/^[[:space:]]*}[[:space:]]*$/s/^/menu\\t/p'\n\
         done\n\
         for f in \"$R/boot/grub/grubenv\" \"$R/boot/grub2/grubenv\"; do ! has \"$f\" || get \
         \"$f\" | sed -n 's/^saved_entry=/saved\\t/p'; done\n\
         exit 0\n",
    ]
    .concat()
}

/// grub-mkconfig makes grub.cfg 0600 where it holds a password, Red Hat's /boot/grub2 is 0700, and
/// grubby reads the entries below /boot/loader, which is 0700 there too.
pub fn list_boot_access_needs() -> Vec<RootAccessNeed> {
    let files = [
        "/etc/default/grub",
        "/boot/grub/grub.cfg",
        "/boot/grub2/grub.cfg",
        "/boot/grub/grubenv",
        "/boot/grub2/grubenv",
    ];
    let grubby = RootAccessNeed::Program(&["/usr/sbin/grubby"], vec!["--info=DEFAULT".to_owned()]);
    let folder = RootAccessNeed::Folder("/etc/default/grub.d", ".cfg");
    files
        .iter()
        .map(|path| RootAccessNeed::Content((*path).to_owned()))
        .chain([grubby, folder])
        .collect()
}

/// Regenerates the boot loader's configuration.
pub fn update_script() -> String {
    format!(
        "{SAY}if command -v update-grub >/dev/null; then update-grub </dev/null\n\
         elif command -v grub2-mkconfig >/dev/null; then grub2-mkconfig -o /boot/grub2/grub.cfg \
         </dev/null\n\
         else say {UNAVAILABLE} 'neither update-grub nor grub2-mkconfig is on this host'; fi\n"
    )
}

/// Puts an argument into all boot entries, or takes it out, with grubby.
pub fn argument_script(argument: &str, present: bool) -> String {
    let option = if present { "--args" } else { "--remove-args" };
    format!(
        "{SAY}command -v grubby >/dev/null || say {UNAVAILABLE} 'grubby is not on this host'\n\
         grubby --update-kernel=ALL {option}={} </dev/null\n",
        quote_for_shell(argument)
    )
}
