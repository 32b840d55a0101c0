//! What a guard keeps and how it puts that back, as POSIX sh. `$k` is the folder of what is kept; `$boot` is set when the
//! host has booted since: what only ran is gone with the boot then, and what a lease gave is not ours to bring back.

use super::{Guard, Keep};
use crate::file::script::folder_functions;
use crate::link::owner::reload_script;
use crate::sysctl::settings::key_path;
use railwright_base::quote::sh;

/// Keeps everything as it is now; ends with another status than 0 where something could not be kept.
pub fn keep_script(guard: &Guard) -> String {
    let mut out = String::from(KEEP_FILE);
    for (n, keep) in guard.keeps.iter().enumerate() {
        let line = match keep {
            Keep::File { path } => format!("keep_file {n} {}", sh(path)),
            Keep::Connection { uuid, settings } => {
                let one = |setting: &String| {
                    format!(
                        "v=$(nmcli -e no -g {s} connection show {u}) || exit 74; printf '%s' \"$v\" >\"$k/{n}.{s}\" || exit 74",
                        s = sh(setting),
                        u = sh(uuid)
                    )
                };
                settings.iter().map(one).collect::<Vec<_>>().join("\n")
            }
            Keep::Sysctl { key } => {
                let path = sh(&format!("/proc/sys/{}", key_path(key)));
                format!("[ ! -e {path} ] || cat {path} >\"$k/{n}\" || exit 74; n={n}; p={path}\n{KEEP_EACH}")
            }
            Keep::Link { netdev } => format!("i={}; n={n}\n{ROUTES}{KEEP_LINK}", sh(netdev)),
            Keep::Ipv6 => format!("n={n}\n{ROUTES}{KEEP_IPV6}"),
            Keep::Unit { name } => format!("systemctl show -p ActiveState,UnitFileState -- {} >\"$k/{n}\" || exit 74", sh(name)),
            Keep::Switch { system, .. } => system.keep_script(&n.to_string()),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Puts everything back. Each part has a time limit of its own, and one that fails stops no other: `$failed` names them.
pub fn restore_script(guard: &Guard) -> String {
    // A difference of many ports of a switch takes minutes, and so does a reload of it.
    let limit_s = if guard.is_of_switch() { 600 } else { 90 };
    let mut out = format!("failed= l={limit_s}\n{TRY}");
    let mut add = |what: &str, script: &str| out.push_str(&format!("try {} {}\n", sh(what), sh(script)));
    let files = |keep: &Keep| matches!(keep, Keep::File { .. } | Keep::Connection { .. });
    let kept = || guard.keeps.iter().enumerate();
    for (n, keep) in kept().filter(|(_, keep)| files(keep)) {
        add(&named(keep), &restore(n, keep));
    }
    if guard.systemd {
        add("systemd", "systemctl daemon-reload");
    }
    if guard.is_of_server() {
        add("SSH server", SERVER_READS);
    }
    for (netdev, manager) in &guard.reloads {
        add(&format!("configuration of {netdev}"), &reload_script(netdev, *manager));
    }
    for (n, keep) in kept().filter(|(_, keep)| !files(keep)) {
        add(&named(keep), &restore(n, keep));
    }
    out
}

/// Has the SSH server check its configuration and read it. It reads it at no other time, so a new connection proves nothing
/// before; and with one that it does not take, it would not start again (sshd(8): `-t`, SIGHUP).
pub const SERVER_READS: &str = "s=$(command -v sshd || echo /usr/sbin/sshd); [ -x \"$s\" ] || exit 0\n\
    e=$(\"$s\" -t 2>&1) || { printf '%s\\n' \"$e\" | head -n 1 | tr -d '\\r'; exit 65; }\n\
    for u in ssh sshd; do ! systemctl is-active --quiet \"$u.service\" || { systemctl reload \"$u.service\" 2>&1; exit; }; done\n";

fn named(keep: &Keep) -> String {
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

fn restore(n: usize, keep: &Keep) -> String {
    match keep {
        Keep::File { path } => format!("n={n}; f={}\n{}{RESTORE_FILE}", sh(path), folder_functions()),
        Keep::Connection { uuid, settings } => {
            let words = |s: &String| format!(" {s} \"$(cat \"$k/{n}.{s}\")\"", s = sh(s));
            format!("nmcli connection modify {}{}", sh(uuid), settings.iter().map(words).collect::<String>())
        }
        Keep::Sysctl { key } => format!("n={n}; p={}\n{RESTORE_SYSCTL}", sh(&format!("/proc/sys/{}", key_path(key)))),
        Keep::Link { netdev } => format!("n={n}; i={}\n{ROUTES}{ADDRESSES}{RESTORE_LINK}", sh(netdev)),
        Keep::Ipv6 => format!("n={n}\n{ROUTES}{ADDRESSES}{RESTORE_IPV6}"),
        Keep::Unit { name } => format!("n={n}; u={}\n{RESTORE_UNIT}", sh(name)),
        Keep::Switch { system, ports } => system.restore_script(&n.to_string(), ports),
    }
}

/// Of a file that is not there the deepest folder that is, so that none stays which came with the file.
const KEEP_FILE: &str = "keep_file() {\n\
    if [ -d \"$2\" ] && [ ! -L \"$2\" ]; then echo \"there is a folder at $2\" >&2; exit 74; fi\n\
    if [ -e \"$2\" ] || [ -L \"$2\" ]; then cp -a -- \"$2\" \"$k/$1\" || exit 74; return; fi\n\
    e=${2%/*}; while [ -n \"$e\" ] && [ ! -d \"$e\" ]; do e=${e%/*}; done\n\
    printf '%s\\n' \"$e\" >\"$k/$1.absent\" || exit 74\n\
    }\n";

const RESTORE_FILE: &str = r#"if [ -e "$k/$n.absent" ]; then
(set -e; into "${f%/*}" stays; rm -f "./${f##*/}") || exit
emptied "${f%/*}" "$(cat "$k/$n.absent")"
exit 0
fi
set -e; into "${f%/*}"; inside; cp -a -- "$k/$n" ./new; mv -fT ./new "../${f##*/}"
"#;

/// What is set for `all` netdevs the kernel writes to each of them, and with forwarding whether redirects are taken
/// (devinet.c, inet_forward_change).
const KEEP_EACH: &str = r#"e=; case $p in */conf/all/*) e="${p%/all/*}/*/${p##*/}" ;; esac
case $p in */ipv4/conf/all/forwarding | */ipv4/ip_forward) e="$e /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/accept_redirects" ;; esac
for v in $e; do echo "$v $(cat "$v")"; done >"$k/$n.each""#;

const RESTORE_SYSCTL: &str = r#"[ -e "$k/$n" ] || exit 0
cat "$k/$n" >"$p" || exit
while read -r v value; do [ "$v" = "$p" ] || [ ! -e "$v" ] || echo "$value" >"$v" || exit; done <"$k/$n.each"
"#;

/// Routes of a netdev are kept as the kernel has them, by who made them, those of the kernel first, which the others go by: it takes none of a list back after one that it refuses, as
/// those by the number of a next hop that FRR makes. Lists with these, the next hops themselves, and what goes over several netdevs are kept as text, without what `ip`
/// only tells of it. Those of the local table are not among them, the kernel makes them with each address. Without /sys nobody knows which netdevs there are.
const ROUTES: &str = r#"[ -d /sys/class/net ] || { echo 'there is no /sys here' >&2; exit 74; }
plain() { sed -E 's/\\//g; s/ (dead|linkdown|pervasive|offload|trap|notify|rt_offload|rt_trap|unresolved)//g; s/([0-9])sec/\1/g; s/( nhid [0-9]+) via [^ ]+/\1/; s/( nhid .*)nexthop.*/\1/'; }
paths() { ip -o "-$1" route show table all type unicast | grep nexthop | plain; }
keep_routes() {
ip "-$1" nexthop show dev "$2" 2>/dev/null | plain | sed 's/ scope [^ ]*//' >"$3hops"; c=10
for q in kernel boot $(ip -o "-$1" route show dev "$2" table all type unicast 2>/dev/null | sed -n 's/.* proto \([^ ]*\).*/\1/p' | grep -vx -e kernel -e boot | sort -u); do
c=$((c + 1)); t=$(ip -o "-$1" route show dev "$2" table all type unicast proto "$q" 2>/dev/null)
case $t in
*' nhid '*) printf '%s\n' "$t" | grep -v nexthop | plain | sed "s/\$/ proto $q/" >"$3$c.text" ;;
*) ip "-$1" route save dev "$2" table all type unicast proto "$q" >"$3$c.saved" 2>/dev/null || rm -f "$3$c.saved" ;;
esac
done
}
text_back() { while read -r r; do d=; case $r in *' nhid '* | *nexthop*) ;; *) d="dev $3" ;; esac; set -f; ip "-$1" route replace $r $d || s=1; set +f; done <"$2"; }
routes_back() {
for f in "$3"*.saved; do
[ -s "$f" ] || continue
t=0; until ip "-$1" route restore <"$f" || [ $t = 5 ]; do sleep 1; t=$((t + 1)); done
[ $t -lt 5 ] || s=1
done
[ ! -s "$3hops" ] || while read -r r; do set -f; ip "-$1" nexthop replace $r || s=1; set +f; done <"$3hops"
for f in "$3"*.text; do [ ! -e "$f" ] || text_back "$1" "$f" "$2"; done
}
"#;

const KEEP_LINK: &str = r#"if [ -e "/sys/class/net/$i" ]; then
cat "/sys/class/net/$i/mtu" >"$k/$n.mtu" && cat "/sys/class/net/$i/flags" >"$k/$n.flags" && ip -o addr show dev "$i" >"$k/$n.addresses" || exit 74
for v in 4 6; do keep_routes "$v" "$i" "$k/$n.route$v:"; paths "$v" | grep -F " dev $i " >"$k/$n.paths$v"; done
for v in addr_gen_mode disable_ipv6 accept_ra; do cat "/proc/sys/net/ipv6/conf/$i/$v" >"$k/$n.$v" 2>/dev/null || rm -f "$k/$n.$v"; done
fi"#;

/// Of what `ip -o addr show` tells: each address by itself, and the addresses of the kept file that are gone, added again. Of link-local addresses the kernel makes its
/// own, and one that a lease gave (`dynamic`) is left alone after a boot.
const ADDRESSES: &str = r#"names() { while read -r _ _ w a r; do case "$w $a $r" in *' dynamic '*) [ -z "$boot" ] || continue ;; esac; echo "$a"; done; }
bring_back() {
while read -r _ d w a r; do
case "$w $a $r" in 'inet6 fe80:'*) continue ;; *' dynamic '*) [ -z "$boot" ] || continue ;; esac
[ -e "/sys/class/net/$d" ] || continue
! ip -o addr show dev "$d" | names | grep -qxF -e "$a" || continue
set -f; set -- $r; o=
while [ $# -gt 0 ]; do case $1 in
peer|brd|scope|metric) o="$o $1 $2"; shift ;;
valid_lft|preferred_lft) o="$o $1 ${2%sec}"; shift ;;
noprefixroute|nodad) o="$o $1" ;;
esac; shift; done
set +f
ip addr add "$a" $o dev "$d" || s=1
done <"$k/$n.addresses"
}
"#;

/// Those of a netdev that is gone by then are left out.
const KEEP_IPV6: &str = r#"if [ -e /proc/sys/net/ipv6 ]; then
ip -6 -o addr show >"$k/$n.addresses" || exit 74
for i in /sys/class/net/*; do i=${i##*/}; keep_routes 6 "$i" "$k/$n:$i:"; done
paths 6 >"$k/$n.paths"; ip -6 neigh show nud permanent >"$k/$n.neighbours"
for v in blackhole unreachable prohibit throw; do ip -6 route save table all type "$v" >"$k/$n.$v" 2>/dev/null || rm -f "$k/$n.$v"; done
fi"#;

/// Nothing is taken away. A route that names an address as its source waits until the kernel has found that nobody else has this one.
const RESTORE_IPV6: &str = r#"[ -e "$k/$n.addresses" ] || exit 0
s=0; bring_back
[ -z "$boot" ] || exit $s
for i in /sys/class/net/*; do i=${i##*/}; routes_back 6 "$i" "$k/$n:$i:"; done
text_back 6 "$k/$n.paths" ""
for v in blackhole unreachable prohibit throw; do [ ! -s "$k/$n.$v" ] || ip -6 route restore <"$k/$n.$v" || s=1; done
while read -r a _ i _ l _; do [ ! -e "/sys/class/net/$i" ] || ip -6 neigh replace "$a" lladdr "$l" dev "$i" nud permanent || s=1; done <"$k/$n.neighbours"
exit $s
"#;

/// MTU first: below 1280 bytes the kernel takes IPv6 from a link, and gives it back with its defaults. What came on is taken
/// away after what was there is back, so that a secondary address is never left alone. Of routes that came on only those go
/// along with an address that name it as their source, so all go before the kept ones come.
const RESTORE_LINK: &str = r#"[ -e "$k/$n.mtu" ] || exit 0
s=0
ip link set dev "$i" mtu "$(cat "$k/$n.mtu")" || s=1
if [ $(($(cat "$k/$n.flags") & 1)) -eq 1 ]; then ip link set dev "$i" up || s=1; else ip link set dev "$i" down || s=1; fi
for v in addr_gen_mode disable_ipv6 accept_ra; do [ ! -e "$k/$n.$v" ] || cat "$k/$n.$v" >"/proc/sys/net/ipv6/conf/$i/$v"; done
now=$(ip -o addr show dev "$i" | names)
bring_back
was=$(names <"$k/$n.addresses")
p=/proc/sys/net/ipv4/conf/$i/promote_secondaries; q=$(cat "$p" 2>/dev/null); echo 1 2>/dev/null >"$p"
for a in $now; do case "
$was
" in *"
$a
"*) ;; *) ip addr del "$a" dev "$i" || s=1 ;; esac; done
[ -z "$q" ] || echo "$q" >"$p"
if [ -z "$boot" ]; then for v in 4 6; do
ip "-$v" route flush dev "$i" table all type unicast; routes_back "$v" "$i" "$k/$n.route$v:"
text_back "$v" "$k/$n.paths$v" ""
done; fi
exit $s
"#;

const RESTORE_UNIT: &str = r#"was() { sed -n "s/^$1=//p" "$k/$n"; }
is=$(systemctl show -p UnitFileState -- "$u" | sed -n 's/^UnitFileState=//p'); s=0
if [ "$is" != "$(was UnitFileState)" ]; then
case $is in masked*) systemctl unmask -- "$u" || s=1 ;; esac
case $(was UnitFileState) in
enabled*) systemctl enable -- "$u" || s=1 ;;
disabled) systemctl disable -- "$u" || s=1 ;;
masked*) systemctl mask -- "$u" || s=1 ;;
esac; fi
case $(was ActiveState) in
active|reloading|activating) systemctl restart -- "$u" || s=1 ;;
*) systemctl stop -- "$u" || s=1 ;;
esac
exit $s
"#;

/// `try NAME SCRIPT`. `timeout` of busybox knows no long options and is good enough here.
const TRY: &str = "try() {\n\
    T=; command -v timeout >/dev/null 2>&1 && T=\"timeout $l\"\n\
    k=$k boot=$boot $T sh -c \"$2\" </dev/null >>\"$k/../log\" 2>&1 || failed=\"$failed $1\"\n\
    }\n";
