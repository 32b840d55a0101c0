#!/bin/sh
# The network managers of Debian 12 as their real programs, in a throwaway overlay of one small root file system, each box
# with its own network, mount and process namespace. Needs root and mmdebstrap.
#   managers.sh build ROOT       the root file system, once
#   managers.sh box ROOT KIND    a box: prints "ready" and stays until its standard input ends
#   managers.sh boot KIND        inside a box: the netdev appears and the manager starts, as at a boot
set -e
PATH=$PATH:/usr/sbin:/sbin

build() {
    [ -e "$1/ready" ] && exit 0
    sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) main' 'Created-By: Packages' | sort -u)
    # What a build that was ended left behind; --one-file-system, should something still be mounted in it.
    rm -rf --one-file-system "$1"
    mkdir -p "${1%/*}"
    printf '%s\n' "$sources" | mmdebstrap --variant=minbase --mode=root --aptopt='Apt::Install-Recommends "false"' \
        --include=systemd,systemd-sysv,udev,dbus,network-manager,netplan.io,ifupdown,iproute2,ethtool,busybox bookworm "$1" -
    : >"$1/ready"
}

box() {
    root=$1 kind=$2 self=$(cd "${0%/*}" && pwd)/${0##*/}
    export root kind self
    exec unshare -n -m -p -u --fork --kill-child sh -ec '
        mount --make-rprivate /
        w=${root%/*}/box; mkdir -p "$w"; mount -t tmpfs box "$w"; mkdir "$w/u" "$w/w" "$w/m"
        mount -t overlay -o "lowerdir=$root,upperdir=$w/u,workdir=$w/w" box "$w/m"
        cd "$w/m"; mount -t proc proc proc; mount -t sysfs -o ro sysfs sys; mount --bind /dev dev; mount -t tmpfs run run
        mkdir -p run/dbus run/network run/udev run/systemd/netif; cp "$self" tmp/managers.sh
        chroot . chown systemd-network: /run/systemd/netif
        chroot . sh /tmp/managers.sh configure "$kind" >&2
        chroot . sh /tmp/managers.sh boot "$kind" >&2
        exec chroot . sh -c "echo ready; exec cat >/dev/null"'
}

# what an administrator had there before us
configure() {
    rm -f /usr/lib/udev/rules.d/85-nm-unmanaged.rules
    echo 0123456789abcdef0123456789abcdef >/etc/machine-id
    dbus-daemon --system --fork
    case $1 in
    networkd) mkdir -p /etc/systemd/network
        printf '[Match]\nName=ens1\n[Network]\nAddress=10.0.0.1/24\nIPv6AcceptRA=no\n' >/etc/systemd/network/10-ens1.network;;
    nobody) ;;
    networkmanager-idle) mkdir -p /etc/NetworkManager/conf.d
        printf '[main]\nplugins=keyfile\nno-auto-default=*\n[keyfile]\nunmanaged-devices=interface-name:peer1\n' >/etc/NetworkManager/conf.d/box.conf;;
    networkmanager) mkdir -p /etc/NetworkManager/conf.d
        printf '[main]\nplugins=keyfile\nno-auto-default=*\n[keyfile]\nunmanaged-devices=interface-name:peer1\n' >/etc/NetworkManager/conf.d/box.conf
        umask 077
        printf '[connection]\nid=rail: 0\nuuid=a9a181c3-23e5-4b71-9fd8-148de69d2d06\ntype=ethernet\ninterface-name=ens1\n[ipv4]\nmethod=manual\naddress1=10.0.0.1/24\n[ipv6]\nmethod=link-local\n' \
            >'/etc/NetworkManager/system-connections/rail: 0.nmconnection';;
    networkd-bond) mkdir -p /etc/systemd/network; cd /etc/systemd/network
        printf '[NetDev]\nName=bond0\nKind=bond\n[Bond]\nMode=802.3ad\nMIIMonitorSec=100ms\nLACPTransmitRate=fast\n' >10-bond0.netdev
        printf '[Match]\nName=ens1 ens2\n[Network]\nBond=bond0\n' >10-ports.network
        printf '[Match]\nName=bond0\n[Network]\nAddress=10.0.0.1/24\n' >10-bond0.network;;
    networkmanager-bond) mkdir -p /etc/NetworkManager/conf.d
        printf '[main]\nplugins=keyfile\nno-auto-default=*\n[keyfile]\nunmanaged-devices=interface-name:peer*\n' >/etc/NetworkManager/conf.d/box.conf
        umask 077; cd /etc/NetworkManager/system-connections
        printf '[connection]\nid=bond0\nuuid=a9a181c3-23e5-4b71-9fd8-148de69d2d06\ntype=bond\ninterface-name=bond0\n[bond]\nmode=802.3ad\nmiimon=100\nlacp_rate=fast\n[ipv4]\nmethod=manual\naddress1=10.0.0.1/24\n[ipv6]\nmethod=link-local\n' >bond0.nmconnection
        for n in 1 2; do printf '[connection]\nid=ens%s\nuuid=a9a181c3-23e5-4b71-9fd8-148de69d2d0%s\ntype=ethernet\ninterface-name=ens%s\nmaster=bond0\nslave-type=bond\n' $n $n $n >ens$n.nmconnection; done;;
    netplan-bond) umask 077
        printf 'network:\n  version: 2\n  renderer: networkd\n  ethernets:\n    port1: {match: {name: ens1}}\n    ens2: {}\n  bonds:\n    bond0:\n      interfaces: [port1, ens2]\n      parameters: {mode: 802.3ad, mii-monitor-interval: 100, lacp-rate: fast}\n      addresses: [10.0.0.1/24]\n' >/etc/netplan/01-box.yaml;;
    netplan) umask 077
        printf 'network:\n  version: 2\n  renderer: networkd\n  ethernets:\n    rail0:\n      match: {name: ens1}\n      mtu: 1500\n      accept-ra: false\n      addresses: [10.0.0.1/24]\n' >/etc/netplan/01-box.yaml;;
    ifupdown) printf '\nauto ens1\niface ens1 inet static\n    address 10.0.0.1/24\n    mtu 1500\n' >>/etc/network/interfaces;;
    ifupdown-plain) printf '\nauto ens1\niface ens1 inet static\n    address 10.0.0.1/24\n' >>/etc/network/interfaces;;
    esac
}

stop() {
    [ -f "/tmp/$1.pid" ] || return 0
    kill "$(cat "/tmp/$1.pid")" 2>/dev/null || :
    for t in 1 2 3 4 5 6 7 8 9 10; do [ -d "/proc/$(cat "/tmp/$1.pid")" ] || break; sleep 0.5; done
    rm -f "/tmp/$1.pid"
}

boot() {
    stop networkd; stop networkmanager
    for n in ens1 ens2 bond0; do ip link del $n 2>/dev/null || :; done
    rm -rf /run/network/* /run/systemd/netif/links/* /run/NetworkManager/devices/* /run/systemd/network
    ip link set lo up; ip link add ens1 type veth peer name peer1; ip link set peer1 up
    case $1 in *-bond) ip link add ens2 type veth peer name peer2; ip link set peer2 up;; esac
    case $1 in
    networkd* | nobody | netplan*) case $1 in netplan*) netplan generate;; esac
        /lib/systemd/systemd-networkd >/tmp/networkd.log 2>&1 & echo $! >/tmp/networkd.pid
        wait_for 'grep -qsE "^ADMIN_STATE=(configured|unmanaged)" "/run/systemd/netif/links/$(cat /sys/class/net/ens1/ifindex)"';;
    networkmanager-idle) NetworkManager -n >/tmp/networkmanager.log 2>&1 & echo $! >/tmp/networkmanager.pid
        state=disconnected; ! ls /etc/NetworkManager/system-connections/* >/dev/null 2>&1 || state=connected
        wait_for 'nmcli -t -f DEVICE,STATE device 2>/dev/null | grep -qx "ens1:$state"';;
    networkmanager | networkmanager-bond) NetworkManager -n >/tmp/networkmanager.log 2>&1 & echo $! >/tmp/networkmanager.pid
        wait_for 'nmcli -t -f DEVICE,STATE device 2>/dev/null | grep -qx "ens1:connected"';;
    ifupdown*) ifup ens1;;
    esac
}

wait_for() {
    t=0; until eval "$1"; do t=$((t + 1)); [ "$t" -le 60 ] || { echo "gave up waiting for: $1"; cat /tmp/*.log; exit 1; }; sleep 0.5; done
}

case $1 in build | box | configure | boot) verb=$1; shift; "$verb" "$@";; *) sed -n 4,6p "$0"; exit 64;; esac
