# ifupdown owns both interfaces.
cat >/etc/network/interfaces <<EOF
source /etc/network/interfaces.d/*

auto lo
iface lo inet loopback

auto eth0
iface eth0 inet static
    address $MANAGEMENT

auto ens1f0np0
iface ens1f0np0 inet static
    address $FABRIC
EOF
