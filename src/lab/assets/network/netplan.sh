# netplan owns both interfaces and renders for systemd-networkd.
mkdir -p /etc/netplan
cat >/etc/netplan/10-lab.yaml <<EOF
network:
  version: 2
  renderer: networkd
  ethernets:
    eth0:
      addresses: [$MANAGEMENT]
      link-local: []
    ens1f0np0:
      addresses: [$FABRIC]
EOF
chmod 0600 /etc/netplan/10-lab.yaml
# The generator ran before this file was there.
/lib/netplan/generate
