# systemd-networkd owns both interfaces.
cat >/etc/systemd/network/10-management.network <<EOF
[Match]
Name=eth0

[Network]
Address=$MANAGEMENT
LinkLocalAddressing=no
IPv6AcceptRA=no
EOF
cat >/etc/systemd/network/20-fabric.network <<EOF
[Match]
Name=ens1f0np0

[Network]
Address=$FABRIC
IPv6AcceptRA=no
EOF
