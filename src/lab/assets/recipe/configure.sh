# Sourced by image.sh: what is set on the fresh root beyond the files of guest/.
# No key is in the image: host key, authorized key and name come to each machine at its first boot (identity).
rm -f "$ROOT"/etc/ssh/ssh_host_* "$ROOT/etc/resolv.conf" "$ROOT/etc/hostname" "$ROOT/etc/machine-id"
rm -f "$ROOT/var/lib/dbus/machine-id" # D-Bus's copy would be taken for the identity of every machine
: >"$ROOT/etc/resolv.conf" # nothing but the lab can be reached
: >"$ROOT/etc/machine-id"
rm -f "$ROOT"/etc/apt/sources.list "$ROOT"/etc/apt/sources.list.d/*
: >"$ROOT/etc/apt/sources.list"
rm -rf "$ROOT"/var/cache/apt/* "$ROOT"/var/lib/apt/lists/*
rm -f "$ROOT/etc/apt/apt.conf.d/99mmdebstrap"

units=$ROOT/etc/systemd/system
mkdir -p "$units/sysinit.target.wants" "$units/multi-user.target.wants"
ln -sf /lib/systemd/system/multi-user.target "$units/default.target"
ln -sf ../railwright-lab-identity.service "$units/sysinit.target.wants/"
# What only costs time at boot here. logind stays: reboot and PAM ask for it.
for unit in apt-daily-upgrade.timer apt-daily.timer dev-mqueue.mount dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer getty@tty1.service modprobe@drm.service modprobe@efi_pstore.service modprobe@fuse.service \
    proc-sys-fs-binfmt_misc.automount serial-getty@ttyS0.service sys-fs-fuse-connections.mount sys-kernel-tracing.mount \
    systemd-binfmt.service systemd-hwdb-update.service systemd-journal-flush.service systemd-networkd-wait-online.service \
    systemd-pstore.service systemd-random-seed.service systemd-timesyncd.service systemd-update-utmp-runlevel.service \
    systemd-update-utmp.service; do
    ln -sf /dev/null "$units/$unit"
done
# Linux before 0d0eff39ceb3 (2026-08) spins for ever when a packet is on its way while device_shutdown breaks virtio-net's
# queues: one reboot in some hundreds never ends (https://github.com/ejc3/fcvm/issues/990). Links that are down poll nothing.
mkdir -p "$ROOT/usr/lib/systemd/system-shutdown"
printf '#!/bin/sh\nfor link in /sys/class/net/*; do ip link set "${link##*/}" down; done\n' >"$ROOT/usr/lib/systemd/system-shutdown/lab-links"
chmod 755 "$ROOT/usr/lib/systemd/system-shutdown/lab-links"
case $NETWORK in
networkd | netplan)
    ln -sf /lib/systemd/system/systemd-networkd.service "$units/multi-user.target.wants/"
    ;;
esac
