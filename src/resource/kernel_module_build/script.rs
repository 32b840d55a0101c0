//! What `kernel_module_build` reads and does, as POSIX sh. Sources come by git or as an archive
//! whose checksum is checked before a byte of it is unpacked; nothing that was fetched is ever
//! handed to a shell by us.

use super::source::{ModuleBuildTool, ModuleSource};
use crate::complaint::{MISSING, NOT_TRUSTED, SAY, UNAVAILABLE};
use crate::rights::{OPEN, RootAccessNeed};
use railwright_base::quote::quote_for_shell;

/// Where a source lies.
pub fn source_folder(name: &str, version: &str) -> String {
    format!("/usr/src/{name}-{version}")
}

/// Our own record beside it: the digest of the desired source, the commit that a git revision stood
/// for, and the name, which the path alone does not tell from the version.
pub fn record_path(name: &str, version: &str) -> String {
    format!("{}.railwright", source_folder(name, version))
}

/// Where a module that was built without DKMS goes, below /lib/modules of its kernel.
fn plain_place(module: &str) -> String {
    format!("updates/railwright/{module}.ko")
}

/// Sources, modules and what DKMS keeps are the world's to read, unless somebody closed them.
pub fn list_build_access_needs(name: &str, version: &str) -> Vec<RootAccessNeed> {
    [
        source_folder(name, version),
        format!("/var/lib/dkms/{name}/{version}/x"),
    ]
    .map(RootAccessNeed::Sight)
    .to_vec()
}

/// Records `word <tab> text`: the running kernel, whether the source lies there, a plainly built
/// module, our own records of all versions with the name that stands in each, and DKMS's own words
/// of all versions, or that it is gone and what it built is not.
pub fn read_script(name: &str, version: &str, module: &str) -> String {
    format!(
        "{OPEN}k=$(uname -r); printf 'kernel\\t%s\\n' \"$k\"\n\
         [ ! -d \"$R\"{folder} ] || echo tree\n\
         [ ! -f \"$R/lib/modules/$k/\"{plain} ] || echo plain\n\
         for f in \"$R/usr/src/\"{name}-*.railwright; do [ ! -f \"$f\" ] || {{ n=; while read -r a b; \
         do [ \"$a\" != name ] || n=$b; done <\"$f\"; printf 'record\\t%s\\t%s\\n' \"${{f##*/}}\" \"$n\"; \
         }}; done\n\
         if [ -z \"$R\" ] && command -v dkms >/dev/null; then as dkms status -m {name} | sed \
         's/^/dkms\\t/'\n\
         elif [ -d \"$R/var/lib/dkms/\"{name}/{version} ]; then echo no_dkms; fi\n\
         exit 0\n",
        folder = quote_for_shell(&source_folder(name, version)),
        plain = quote_for_shell(&plain_place(module)),
        name = quote_for_shell(name),
        version = quote_for_shell(version),
    )
}

/// Fetches a source, proves it, puts it into its place and records what it is.
pub fn fetch_script(
    name: &str,
    version: &str,
    source: &ModuleSource,
    dkms_conf: Option<&str>,
    digest: &str,
) -> String {
    let get = match source {
        ModuleSource::Git { url, revision } => git_script(url, revision),
        ModuleSource::Archive { location, sha256 } => archive_script(location, sha256),
    };
    let configuration = dkms_conf
        .map(|text| format!("printf %s {} >\"$s/dkms.conf\"\n", quote_for_shell(text)))
        .unwrap_or_default();
    format!(
        "{SAY}set -u\n\
         mkdir -p /usr/src\n\
         t=$(mktemp -d /usr/src/.railwright.XXXXXX) || exit 1\n\
         trap 'rm -rf \"$t\"' EXIT\n\
         s=$t/source; mkdir \"$s\"; commit=-\n\
         {get}{configuration}chmod -R go-w \"$s\"\n\
         rm -rf {folder} {record}\n\
         mv \"$s\" {folder} || exit 1\n\
         printf 'source %s\\ncommit %s\\nname %s\\n' {digest} \"$commit\" {name} >\"$t/record\" && mv \
         \"$t/record\" {record}\n",
        name = quote_for_shell(name),
        folder = quote_for_shell(&source_folder(name, version)),
        record = quote_for_shell(&record_path(name, version)),
        digest = quote_for_shell(digest),
    )
}

fn git_script(url: &str, revision: &str) -> String {
    format!(
        "command -v git >/dev/null || say {UNAVAILABLE} 'git is not on this host; add the package \
         git to the spec'\n\
         GIT_TERMINAL_PROMPT=0; export GIT_TERMINAL_PROMPT\n\
         g() {{ git -C \"$s\" \"$@\" </dev/null; }}\n\
         g init -q && g remote add origin {url} || exit 1\n\
         if g fetch -q --depth 1 origin {revision} 2>/dev/null; then commit=$(g rev-parse -q \
         --verify 'FETCH_HEAD^{{commit}}')\n\
         elif g fetch -q origin '+refs/heads/*:refs/remotes/origin/*' '+refs/tags/*:refs/tags/*'; \
         then commit=$(g rev-parse -q --verify {revision}'^{{commit}}')\n\
         else say {MISSING} \"the repository \"{url}\" could not be fetched\"; fi\n\
         [ -n \"$commit\" ] || say {MISSING} \"the repository has no revision \"{revision}\n\
         case {revision} in *[!0-9a-f]*) ;; ????????????????????????????????????????) [ \
         \"$commit\" = {revision} ] || say {NOT_TRUSTED} \"the repository gave commit $commit for \
         \"{revision} ;; esac\n\
         g -c advice.detachedHead=false checkout -q \"$commit\" || exit 1\n\
         rm -rf \"$s/.git\"\n",
        url = quote_for_shell(url),
        revision = quote_for_shell(revision),
    )
}

fn archive_script(location: &str, sha256: &str) -> String {
    let fetch = if location.starts_with('/') {
        format!(
            "[ -f {0} ] || say {MISSING} \"there is no archive at \"{0}; cp {0} \"$t/archive\" || \
             exit 1\n",
            quote_for_shell(location)
        )
    } else {
        format!(
            "if command -v curl >/dev/null; then curl -fsSL --retry 2 -o \"$t/archive\" -- {0} \
             </dev/null\n\
             elif command -v wget >/dev/null; then wget -q -O \"$t/archive\" -- {0} </dev/null\n\
             else say {UNAVAILABLE} 'neither curl nor wget is on this host'; fi || say {MISSING} \
             \"the archive could not be fetched from \"{0}\n",
            quote_for_shell(location)
        )
    };
    format!(
        "{fetch}found=$(sha256sum <\"$t/archive\" | cut -d' ' -f1)\n\
         [ \"$found\" = {sha256} ] || say {NOT_TRUSTED} \"the archive has SHA-256 $found, not \
         \"{sha256}\"; nothing of it was unpacked\"\n\
         tar -C \"$s\" --no-same-owner -xf \"$t/archive\" </dev/null || say 1 'the archive could \
         not be unpacked'\n\
         set -- \"$s\"/*; if [ \"$#\" = 1 ] && [ -d \"$1\" ]; then mv \"$1\" \"$t/inner\" && rm \
         -rf \"$s\" && mv \"$t/inner\" \"$s\"; fi\n",
        sha256 = quote_for_shell(sha256),
    )
}

/// The line of a build's log that says why it failed: the compiler's own error, or else the last
/// one before make gave up (`cp: cannot stat ...`, a script that misses a driver).
const CAUSE: &str =
    "awk '/error:/ { print; exit } /[*][*][*].*Error / { print before; exit } { before = $0 }'";

/// Builds and installs for the running kernel.
pub fn build_script(name: &str, version: &str, module: &str, builder: ModuleBuildTool) -> String {
    let build = match builder {
        ModuleBuildTool::Dkms => dkms_script(name, version),
        ModuleBuildTool::Make => make_script(name, version, module),
    };
    format!(
        "{SAY}k=$(uname -r)\n\
         for c in make gcc; do command -v $c >/dev/null || say {UNAVAILABLE} \"$c is not on this \
         host; add the packages make and gcc to the spec\"; done\n\
         [ -e \"/lib/modules/$k/build/Makefile\" ] || say {MISSING} \"the headers of the running \
         kernel $k are not on this host; add the package linux-headers-$k (Debian) or \
         kernel-devel-$k (Red Hat) to the spec\"\n\
         {build}"
    )
}

fn dkms_script(name: &str, version: &str) -> String {
    format!(
        "command -v dkms >/dev/null || say {UNAVAILABLE} 'dkms is not on this host; add the \
         package dkms to the spec'\n\
         n={name}; v={version}\n\
         [ -f \"/usr/src/$n-$v/dkms.conf\" ] || say {MISSING} \"the source has no dkms.conf; give \
         it in dkms_conf\"\n\
         d() {{ dkms \"$@\" -m \"$n\" -v \"$v\" </dev/null; }}\n\
         [ -n \"$(d status)\" ] || d add || say 1 \"dkms did not take the source of $n $v\"\n\
         if ! d build --force -k \"$k\"; then\n\
         l=\"/var/lib/dkms/$n/$v/build/make.log\"; tail -n 40 \"$l\" >&2\n\
         say 1 \"$n $v does not build for $k: $({CAUSE} \"$l\" 2>/dev/null)\"\n\
         fi\n\
         d install --force -k \"$k\" || say 1 \"$n $v was built but not installed for $k\"\n",
        name = quote_for_shell(name),
        version = quote_for_shell(version),
    )
}

fn make_script(name: &str, version: &str, module: &str) -> String {
    format!(
        "s={folder}\n\
         make -C \"/lib/modules/$k/build\" M=\"$s\" modules </dev/null >\"$s/railwright.log\" 2>&1 \
         || {{\n\
         tail -n 40 \"$s/railwright.log\" >&2\n\
         say 1 \"the module does not build for $k: $({CAUSE} \"$s/railwright.log\")\"\n\
         }}\n\
         f=$(find \"$s\" -name {file} | head -n 1); [ -n \"$f\" ] || say 1 \"the build made no \
         \"{file}\n\
         p=\"/lib/modules/$k/\"{place}; mkdir -p \"${{p%/*}}\" && cp \"$f\" \"$p\" && depmod -a \
         \"$k\"\n",
        folder = quote_for_shell(&source_folder(name, version)),
        file = quote_for_shell(&format!("{module}.ko")),
        place = quote_for_shell(&plain_place(module)),
    )
}

/// Takes the module out of DKMS or of /lib/modules, for every kernel, and removes its source.
pub fn remove_script(name: &str, version: &str, module: &str) -> String {
    format!(
        "{SAY}n={name}; v={version}\n\
         if command -v dkms >/dev/null && [ -n \"$(dkms status -m \"$n\" -v \"$v\" </dev/null)\" \
         ]; then\n\
         dkms remove -m \"$n\" -v \"$v\" --all </dev/null || say 1 \"dkms did not give up $n $v\"\n\
         fi\n\
         for f in /lib/modules/*/{place}; do [ ! -f \"$f\" ] || {{ k=${{f#/lib/modules/}}; \
         d=${{f%/*}}; rm -f \"$f\"; rmdir \"$d\" \"${{d%/*}}\" 2>/dev/null; depmod -a \
         \"${{k%%/*}}\"; }}; done\n\
         rm -rf {folder} {record}\n",
        name = quote_for_shell(name),
        version = quote_for_shell(version),
        place = quote_for_shell(&plain_place(module)),
        folder = quote_for_shell(&source_folder(name, version)),
        record = quote_for_shell(&record_path(name, version)),
    )
}
