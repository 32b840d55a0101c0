//! Next hops, routes and neighbours that an automatic rollback keeps and puts back, as POSIX sh.

/// They are kept as `ip` prints them, and what is missing of them is given back, each by itself,
/// again and again until no more comes back: one goes by another, whoever made them. What is there
/// now with fewer words of the same is what the kernel left of it (a group or a route without some
/// next hops, a route without its source), and gets all again. What somebody else put in the place
/// of one meanwhile stays: of a routing daemon as its own decision; a route over other netdevs is
/// named, since `route add` does not replace it. What has an end gets that of a router's
/// advertisement (RFC 4861, 6.2.1). Groups are of no family: `-o` stands for none. A route goes
/// with the address that is its source, over whatever netdev it leads. `ip` prints `rto_min lock`,
/// and reads it without `lock`. Without /sys nobody knows which netdevs there are.
pub(super) const ROUTES: &str = r#"[ -d /sys/class/net ] && command -v awk >/dev/null || { echo 'there is no /sys or no awk here' >&2; exit 74; }
paths() {
for v in -4 -6; do echo "family $v"; ip $v nexthop show 2>/dev/null; done
echo 'family -o'; ip nexthop show groups 2>/dev/null
for v in -4 -6; do
[ $v = -4 ] || [ -e /proc/sys/net/ipv6 ] || continue
echo "family $v"; ip -d -o $v route show table all && ip $v neigh show nud permanent || return
ip $v neigh show proxy 2>/dev/null
done
:
}
missing() { awk '
function word(w, i) { for (i = 1; i < NF; i++) if ($i == w) return $(i + 1); return "" }
$1 == "family" { v = $2; next }
/^\t/ || /^(local|broadcast|anycast|multicast) .* proto kernel / { next }
{
gsub(/[\\ \t]+/, " "); sub(/ $/, ""); sub(/^unicast /, ""); sub(/ error -?[0-9]+/, ""); sub(/ expires [0-9]+sec/, " expires 1800"); sub(/ nh_info .*/, ""); sub(/ rto_min lock /, " rto_min ")
gsub(/ (dead|linkdown|pervasive|offload|trap|notify|rt_offload|rt_trap|rt_offload_failed|unresolved)/, "")
ours = word("nhid") in mine; others = 1; verb = "route replace"
for (i = 1; i < NF; i++) if ($i == "dev" && index(ENVIRON["links"], " " $(i + 1) " ") || $i == "src" && index(ENVIRON["sources"], " " $(i + 1) " ")) ours = 1
if ($1 == "id") {
verb = "nexthop replace"; sub(/ scope [^ ]+/, ""); sub(/ unbalanced_time [^ ]+/, "")
key = $1 $2; n = split(word("group"), part, "/")
for (i = 1; i <= n; i++) { sub(/,.*/, "", part[i]); if (part[i] in mine) ours = 1 }
if (ours && was) mine[$2]
} else if (sub(/ PERMANENT/, " nud permanent") || / proxy$/) {
verb = "neigh replace"; if (sub(/ proxy$/, "")) $0 = "proxy " $0
key = v " " verb " " $1 " " $2 " " word("dev"); ours = ours && index(ENVIRON["families"], v)
} else {
if (match($0, / nhid [0-9]+/)) { l = substr($0, 1, RSTART + RLENGTH - 1); r = substr($0, RSTART + RLENGTH); sub(/ nexthop .*/, "", r); sub(/^.* dev [^ ]+/, "", r); $0 = l r }
if (match($0, / segs [0-9]+ \[ [^]]* \]/)) { l = substr($0, 1, RSTART); r = substr($0, RSTART + RLENGTH); m = substr($0, RSTART + 1, RLENGTH - 3); sub(/.*\[ /, "", m); gsub(/ /, ",", m); $0 = l "segs " m r }
key = v " " ($1 ~ /^[a-z]+$/ && $1 != "default" ? $2 : $1) " " word("table") " " word("metric") " " word("tos") " " word("from")
others = word("proto") !~ /^(kernel|boot|static|dhcp|ra)$/
ours = ours && index(ENVIRON["families"], v)
}
n = split($0, part, "[ /]")
for (i = 1; i <= n; i++) if (was) member[key, part[i]]; else if (!((key, part[i]) in member)) n = size[key]
}
was { kept[v, $0]; twins[key]++; if (n > size[key]) size[key] = n; if (ours) { line[++lines] = $0; to[lines] = key; of[lines] = v; by[lines] = verb } next }
{ is[v, $0]; if (!((v, $0) in kept) && n >= size[key]) { if (others) theirs[key]; else if (!ours) beside[key] } }
END { for (i = 1; i <= lines; i++) { $0 = line[i]; key = to[i]; verb = by[i]
if (verb ~ /route/ && key in beside) verb = "route add"; else if (verb ~ /route/ && twins[key] > 1) verb = "route append"
if (!((of[i], $0) in is) && !(key in theirs) && !("id" word("nhid") in theirs)) print of[i], verb, $0 } }
' was=1 "$1" was= -; }
routes_back() {
export links=" $1 " families="$2" sources=" $(names <"$k/$n.addresses" | sed 's,/.*,,' | tr '\n' ' ')"; t=0; e=; o=
while m=$(paths | missing "$k/$n.routes") || { s=1; return; }; [ -n "$m" ] && [ $t -lt 30 ]; do
t=$((t + 1)); [ "$m" != "$o" ] || { t=$((t + 5)); sleep 1; }
o=$m; e=$(set -f; printf '%s\n' "$m" | while read -r v r; do ip $v $r 2>&1 </dev/null; done)
done
[ -z "$m" ] || { s=1; printf '%s\n' "$e" "$m"; }
}
"#;
