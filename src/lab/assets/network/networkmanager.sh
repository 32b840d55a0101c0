# NetworkManager owns both interfaces, by keyfiles.
mkdir -p /etc/NetworkManager/conf.d
cat >/etc/NetworkManager/conf.d/lab.conf <<EOF
[main]
no-auto-default=*
[keyfile]
unmanaged-devices=interface-name:wire0
EOF
connection() {
    cat >"/etc/NetworkManager/system-connections/$1.nmconnection" <<EOF
[connection]
id=$1
uuid=$2
type=ethernet
interface-name=$3

[ipv4]
method=manual
address1=$4

[ipv6]
method=link-local
EOF
    chmod 0600 "/etc/NetworkManager/system-connections/$1.nmconnection"
}
connection management 6b1f4a52-0000-4000-8000-000000000001 eth0 "$MANAGEMENT"
connection fabric 6b1f4a52-0000-4000-8000-000000000002 ens1f0np0 "$FABRIC"
