//! What an automatic rollback keeps and how it puts that back, as POSIX sh. `$k` is the folder of
//! what is kept; `$boot` is set when the host has booted since: what only ran is gone with the boot
//! then, and what a lease gave is not ours to bring back.

use super::routes::ROUTES;
use super::{Keep, RollbackScope};
use crate::file::script::folder_functions;
use crate::link::owner::reload_script;
use crate::sysctl::settings::key_path;
use railwright_base::quote::quote_for_shell;

/// Keeps everything as it is now; ends with another status than 0 where something could not be
/// kept.
pub fn keep_script(scope: &RollbackScope) -> String {
    let mut out = format!("{KEEP_SAID}{KEEP_FILE}");
    for (n, keep) in scope.keeps.iter().enumerate() {
        let line = match keep {
            Keep::File { path } => format!("keep_file {n} {}", quote_for_shell(path)),
            Keep::Connection { uuid, settings } => {
                let mut lines = Vec::new();
                for setting in settings {
                    lines.push(format!(
                        "v=$(nmcli -e no -g {s} connection show {u}) || exit 74; printf '%s' \
                         \"$v\" >\"$k/{n}.{s}\" || exit 74",
                        s = quote_for_shell(setting),
                        u = quote_for_shell(uuid)
                    ));
                }
                lines.join("\n")
            }
            Keep::Sysctl { key } => {
                let path = quote_for_shell(&format!("/proc/sys/{}", key_path(key)));
                format!(
                    "[ ! -e {path} ] || cat {path} >\"$k/{n}\" || exit 74; n={n}; p={path}\n\
                     {KEEP_EACH}"
                )
            }
            Keep::Link { netdev } => {
                format!("i={}; n={n}\n{ROUTES}{KEEP_LINK}", quote_for_shell(netdev))
            }
            Keep::Ipv6 => format!("n={n}\n{ROUTES}{KEEP_IPV6}"),
            Keep::Unit { name } => {
                format!(
                    "keep_said {n} systemctl show -p \
                     ActiveState,UnitFileState,WantedBy,RequiredBy -- {}",
                    quote_for_shell(name)
                )
            }
            Keep::Switch { system, .. } => system.keep_script(&n.to_string()),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Puts everything back. Each part has a time limit of its own, and one that fails stops no other:
/// `$failed` names them.
pub fn restore_script(scope: &RollbackScope) -> String {
    // A difference of many ports of a switch takes minutes, and so does a reload of it.
    let limit_s = if scope.is_of_switch() { 600 } else { 90 };
    let mut out = format!("failed= l={limit_s}\n{TRY}");
    for (n, keep) in scope.keeps.iter().enumerate() {
        if let Keep::Unit { name } = keep {
            let commands = render_unit_commands(n, name, DISABLE_UNIT);
            push_try(&mut out, name, &commands);
        }
    }
    push_kept_items(&mut out, scope, true);
    if scope.systemd {
        push_try(&mut out, "systemd", "systemctl daemon-reload");
    }
    if scope.is_of_server() {
        push_try(&mut out, "SSH server", SERVER_READS);
    }
    for (netdev, manager) in &scope.reloads {
        let what = format!("configuration of {netdev}");
        push_try(&mut out, &what, &reload_script(netdev, *manager));
    }
    push_kept_items(&mut out, scope, false);
    out
}

/// Puts back the files (and connections, which are files) or all other items.
fn push_kept_items(script: &mut String, scope: &RollbackScope, files: bool) {
    for (n, keep) in scope.keeps.iter().enumerate() {
        if matches!(keep, Keep::File { .. } | Keep::Connection { .. }) == files {
            let commands = render_restore_commands(n, keep, scope);
            push_try(script, &describe_kept_item(keep), &commands);
        }
    }
}

fn push_try(script: &mut String, what: &str, commands: &str) {
    script.push_str(&format!(
        "try {} {}\n",
        quote_for_shell(what),
        quote_for_shell(commands)
    ));
}

/// Has the SSH server check its configuration and read it. It reads it at no other time, so a new
/// connection proves nothing before; and with one that it does not take, it would not start again
/// (sshd(8): `-t`, SIGHUP).
pub const SERVER_READS: &str = "s=$(command -v sshd || echo /usr/sbin/sshd); [ -x \"$s\" ] || exit \
                                0\n\
                                e=$(\"$s\" -t 2>&1) || \
                                { printf '%s\\n' \"$e\" | head -n 1 | tr -d '\\r'; exit 65; }\n\
                                for u in ssh sshd; do ! systemctl is-active --quiet \"$u.service\" \
                                || { systemctl reload \"$u.service\" 2>&1; exit; }; done\n";

pub(super) fn describe_kept_item(keep: &Keep) -> String {
    match keep {
        Keep::File { path } => path.clone(),
        Keep::Connection { uuid, .. } => format!("connection {uuid}"),
        Keep::Sysctl { key } => key.clone(),
        Keep::Link { netdev } => netdev.clone(),
        Keep::Ipv6 => "IPv6".to_owned(),
        Keep::Unit { name } => name.clone(),
        Keep::Switch { system, .. } => format!("configuration of {}", system.name()),
    }
}

fn render_restore_commands(n: usize, keep: &Keep, scope: &RollbackScope) -> String {
    match keep {
        Keep::File { path } => {
            let mut leave = render_own_values(scope, keep, " ");
            if !leave.is_empty() {
                leave.push_str(LEAVE_FILE);
            }
            format!(
                "n={n}; f={}\n{leave}{}{RESTORE_FILE}",
                quote_for_shell(path),
                folder_functions()
            )
        }
        Keep::Connection { uuid, settings } => {
            let mut command = format!("nmcli connection modify {}", quote_for_shell(uuid));
            for setting in settings {
                let s = quote_for_shell(setting);
                command.push_str(&format!(" {s} \"$(cat \"$k/{n}.{s}\")\""));
            }
            command
        }
        Keep::Sysctl { key } => {
            let path = quote_for_shell(&format!("/proc/sys/{}", key_path(key)));
            format!(
                "n={n}; p={path}\n{}{RESTORE_SYSCTL}",
                render_own_values(scope, keep, "\n")
            )
        }
        Keep::Link { netdev } => {
            format!(
                "n={n}; i={}\n{}{ROUTES}{ADDRESSES}{RESTORE_LINK}",
                quote_for_shell(netdev),
                render_own_values(scope, keep, " ")
            )
        }
        Keep::Ipv6 => format!("n={n}\n{ROUTES}{ADDRESSES}{RESTORE_IPV6}"),
        Keep::Unit { name } => render_unit_commands(n, name, RESTORE_UNIT),
        Keep::Switch { system, ports } => system.restore_script(&n.to_string(), ports),
    }
}

/// Commands about a unit, which know how it stood (`was`) and whether it starts at boot now (`$is`).
fn render_unit_commands(n: usize, name: &str, commands: &str) -> String {
    format!("n={n}; u={}\n{UNIT_STATE}{commands}", quote_for_shell(name))
}

/// `ours='...'`: what the change puts there; nothing where it puts nothing there.
fn render_own_values(scope: &RollbackScope, keep: &Keep, separator: &str) -> String {
    let Some(ours) = scope.ours.get(&describe_kept_item(keep)) else {
        return String::new();
    };
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    format!("ours={}\n", quote_for_shell(&ours.join(separator)))
}

/// `keep_said NAME COMMAND...` keeps what a command prints. The shell writes it: `ip` and
/// `systemctl` end with 0 where the disk is full.
const KEEP_SAID: &str = r#"keep_said() { f=$k/$1; shift; o=$("$@") || exit 74; printf '%s' "${o:+$o
}" >>"$f" || exit 74; }
"#;

/// Of a file that is not there the deepest folder that is, so that none stays which came with the
/// file.
const KEEP_FILE: &str = "keep_file() {\n\
                         if [ -d \"$2\" ] && [ ! -L \"$2\" ]; then echo \"there is a folder at \
                         $2\" >&2; exit 74; fi\n\
                         if [ -e \"$2\" ] || [ -L \"$2\" ]; then cp -a -- \"$2\" \"$k/$1\" || exit \
                         74; return; fi\n\
                         e=${2%/*}; while [ -n \"$e\" ] && [ ! -d \"$e\" ]; do e=${e%/*}; done\n\
                         printf '%s\\n' \"$e\" >\"$k/$1.absent\" || exit 74\n\
                         }\n";

/// Where something stands there that is neither what was there before nor what the change put there
/// (`$ours`), it is somebody else's.
const LEAVE_FILE: &str = r#"same() { if [ -L "$f" ] || [ -L "$k/$n" ]; then [ "$(readlink "$f")" = "$(readlink "$k/$n")" ]; else cmp -s "$f" "$k/$n"; fi; }
if [ -e "$f" ] || [ -L "$f" ]; then
d=$(sha256sum <"$f" 2>&1)
same || case " $ours " in *" ${d%% *} "*) ;; *) echo "$f: somebody else has written it since, and it stays as it is"; exit 1 ;; esac
fi
"#;

const RESTORE_FILE: &str = r#"if [ -e "$k/$n.absent" ]; then
(set -e; into "${f%/*}" stays; rm -f "./${f##*/}") || exit
emptied "${f%/*}" "$(cat "$k/$n.absent")"
exit 0
fi
set -e; into "${f%/*}"; inside; cp -a -- "$k/$n" ./new; mv -fT ./new "../${f##*/}"
"#;

/// What is set for `all` netdevs the kernel writes to each of them, and with forwarding whether
/// redirects are taken (devinet.c, inet_forward_change).
const KEEP_EACH: &str = r#"e=; case $p in */conf/all/*) e="${p%/all/*}/*/${p##*/}" ;; esac
case $p in */ipv4/conf/all/forwarding | */ipv4/ip_forward) e="$e /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/accept_redirects" ;; esac
for v in $e; do echo "$v $(cat "$v")" || exit 74; done >"$k/$n.each" || exit 74"#;

/// What holds neither its earlier value nor one of the change (`$ours`) is somebody else's, or after
/// a boot what the host boots with. All is read before anything is written, since the kernel writes
/// to others with it; and it is kept in the arguments, since the disk may be full.
const RESTORE_SYSCTL: &str = r#"[ -e "$k/$n" ] || exit 0
s=0
plain() { set -f; set -- $1; set +f; echo "$*"; }
back_to() {
is=$(plain "$(cat "$1")"); to=$(plain "$2")
[ "$is" != "$to" ] && [ "${1##*/}" = "${p##*/}" ] || return 0
printf '%s\n' "$ours" | grep -qxF -e "$is" || { to=$is; [ -n "$boot" ] || { echo "$1: somebody else has set it to $is since, and it stays so"; s=1; }; }
}
back_to "$p" "$(cat "$k/$n")"; set -- "$p" "$to"
while read -r v value; do
[ "$v" != "$p" ] && [ -e "$v" ] || continue
back_to "$v" "$value"; set -- "$@" "$v" "$to"
done <"$k/$n.each" || s=1
while [ $# -gt 0 ]; do [ "$(plain "$(cat "$1")")" = "$2" ] || echo "$2" >"$1" || s=1; shift 2; done
exit $s
"#;

/// With what lies above it: the kernel takes their MTU down with it, never up again, and their
/// addresses and routes with theirs.
const KEEP_LINK: &str = r#"above() { echo "$1"; for u in "/sys/class/net/$1"/upper_*; do [ ! -e "$u" ] || above "${u##*/upper_}"; done; }
if [ -e "/sys/class/net/$i" ]; then
keep_said "$n.links" above "$i"
for i in $(cat "$k/$n.links"); do
cat "/sys/class/net/$i/mtu" >"$k/$n.$i.mtu" && cat "/sys/class/net/$i/flags" >"$k/$n.$i.flags" || exit 74
keep_said "$n.addresses" ip -o addr show dev "$i"
for v in addr_gen_mode disable_ipv6 accept_ra; do p=/proc/sys/net/ipv6/conf/$i/$v; [ ! -e "$p" ] || cat "$p" >"$k/$n.$i.$v" || exit 74; done
done
keep_said "$n.routes" paths
fi"#;

/// Of what `ip -o addr show` prints: each address by itself, and the addresses of the kept file
/// that are gone, added again. One that a lease gave (`dynamic`) is left alone after a boot. `drop
/// NETDEV ADDRESSES` takes away those that were not there before.
const ADDRESSES: &str = r#"names() { while read -r _ _ w a r; do case "$w $a $r" in *' dynamic '*) [ -z "$boot" ] || continue ;; esac; echo "$a"; done; }
has() { names | grep -qxF -e "$a"; }
drop() { for a in $2; do ! ip -o addr show dev "$1" | has || grep -F ": $1 " "$k/$n.addresses" | has || ip addr del "$a" dev "$1" || s=1; done; }
bring_back() {
while read -r _ d w a r; do
case "$w $a $r" in *' dynamic '*) [ -z "$boot" ] || continue ;; esac
[ -e "/sys/class/net/$d" ] || continue
! ip -o addr show dev "$d" | has || continue
set -f; set -- $r; o=
while [ $# -gt 0 ]; do case $1 in
peer|brd|scope|metric) o="$o $1 $2"; shift ;;
valid_lft|preferred_lft) o="$o $1 ${2%sec}"; shift ;;
noprefixroute|nodad|mngtmpaddr|home|autojoin) o="$o $1" ;;
"$d":*) o="$o label ${1%\\}" ;;
esac; shift; done
set +f
ip addr add "$a" $o dev "$d" || s=1
done <"$k/$n.addresses"
}
"#;

const KEEP_IPV6: &str = r#"if [ -e /proc/sys/net/ipv6 ]; then
keep_said "$n.addresses" ip -6 -o addr show; keep_said "$n.routes" paths
fi"#;

/// Nothing is taken away, and what is of a netdev that is gone by then is left out. A route that
/// names an address as its source waits until the kernel has found that nobody else has this one.
const RESTORE_IPV6: &str = r#"[ -e "$k/$n.addresses" ] || exit 0
s=0; bring_back
[ -z "$boot" ] || exit $s
routes_back "$(ls /sys/class/net | tr '\n' ' ')" -6
exit $s
"#;

/// MTU first: below 1280 bytes the kernel takes IPv6 from a link, and gives it back with its
/// defaults. Of what came on, only the addresses of the change (`$ours`) are taken away, after what
/// was there is back, so that a secondary address is never left alone; and link-local ones that the
/// kernel makes by those defaults.
const RESTORE_LINK: &str = r#"[ -e "$k/$n.links" ] || exit 0
[ -e "/sys/class/net/$i" ] || { echo "$i is gone"; exit 1; }
s=0; links=
for l in $(cat "$k/$n.links"); do
f=$k/$n.$l; c=/sys/class/net/$l; [ -e "$c" ] || continue
links="$links $l"
[ "$(cat "$c/mtu")" = "$(cat "$f.mtu")" ] || ip link set dev "$l" mtu "$(cat "$f.mtu")" || s=1
w=$(($(cat "$f.flags") & 1)); [ $(($(cat "$c/flags") & 1)) -eq $w ] || { [ $w = 0 ] && w=down || w=up; ip link set dev "$l" $w; } || s=1
for v in addr_gen_mode disable_ipv6 accept_ra; do [ ! -e "$f.$v" ] || cat "$f.$v" >"/proc/sys/net/ipv6/conf/$l/$v"; done
[ "$(cat "$f.addr_gen_mode" 2>/dev/null)" != 1 ] || drop "$l" "$(ip -6 -o addr show dev "$l" scope link | names)"
done
bring_back
p=/proc/sys/net/ipv4/conf/$i/promote_secondaries; q=$(cat "$p" 2>/dev/null); echo 1 2>/dev/null >"$p"
drop "$i" "$ours"
[ -z "$q" ] || echo "$q" >"$p"
[ -n "$boot" ] || routes_back "$links" "-4 -6"
exit $s
"#;

const UNIT_STATE: &str = r#"was() { sed -n "s/^$1=//p" "$k/$n"; }
is=$(systemctl show -p UnitFileState -- "$u" | sed -n 's/^UnitFileState=//p'); s=0
"#;

/// Before its file goes: what `enable` made goes by [Install] of that file. Where there was no file
/// or a mask, what wanted the unit all the same (links that lead nowhere) is somebody else's.
const DISABLE_UNIT: &str = r#"case $(was UnitFileState) in
static | generated) ;;
'' | masked*) [ -z "$(was WantedBy)$(was RequiredBy)" ] || exit 0 ;;
*) exit 0 ;;
esac
case $is in enabled*) systemctl disable -- "$u" ;; esac
"#;

/// What holds until the next boot (`-runtime`) comes back so: `disable` takes away the links below
/// /etc alone (systemctl(1)).
const RESTORE_UNIT: &str = r#"if [ "$is" != "$(was UnitFileState)" ]; then
case $is in masked*) systemctl unmask -- "$u" || s=1 ;; esac
case $(was UnitFileState) in
enabled-runtime) systemctl disable -- "$u" && systemctl enable --runtime -- "$u" || s=1 ;;
enabled*) systemctl enable -- "$u" || s=1 ;;
disabled) systemctl disable -- "$u" || s=1 ;;
masked-runtime) systemctl mask --runtime -- "$u" || s=1 ;;
masked*) systemctl mask -- "$u" || s=1 ;;
esac; fi
case $(was ActiveState) in
active|reloading|activating) systemctl restart -- "$u" || s=1 ;;
*) systemctl stop -- "$u" || s=1 ;;
esac
exit $s
"#;

/// `try NAME SCRIPT`. `timeout` of busybox knows no long options and is good enough here. Without a
/// log it goes on: a redirection that fails would keep the script from running.
const TRY: &str = "log=$k/../log; (: >>\"$log\") 2>/dev/null || log=/dev/null\n\
                   try() {\n\
                   T=; command -v timeout >/dev/null 2>&1 && T=\"timeout $l\"\n\
                   k=$k boot=$boot $T sh -c \"$2\" </dev/null >>\"$log\" 2>&1 || \
                   failed=\"$failed $1\"\n\
                   }\n";
