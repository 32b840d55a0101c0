#!/bin/sh
# Runs inside mmdebstrap, as its customize hook, with the fresh root as $1, in which these assets are lab-assets.
# Leaves in $1/lab-out: the disk, kernel, initramfs, GRUB, the kernel's version and the packages for the repository.
# Lines of standard output that begin with "step " are what `railwright lab up` shows.
set -eu
ROOT=$1
: "${NETWORK:?}" "${SERVED:?}" "${DISK_SIZE:?}"
SIDE=$ROOT.side # beside the root, so that nothing of it gets into the disk
OUT=$SIDE/out
trap 'rm -rf "$SIDE"' EXIT
mkdir -p "$OUT/packages"
mv "$ROOT/lab-assets" "$SIDE/assets"
[ ! -d "$ROOT/lab-programs" ] || mv "$ROOT/lab-programs" "$SIDE/programs"
ASSETS=$SIDE/assets
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"

step() { echo "step $*"; }

# ---- the kernel: unpacked, not installed, so that no initramfs-tools is needed; without the drivers of real hardware
KERNEL_PACKAGE=$(apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
KVER=${KERNEL_PACKAGE#linux-image-}
step "kernel $KVER"
(cd "$SIDE" && apt-get -qq -o APT::Sandbox::User=root download "$KERNEL_PACKAGE" && dpkg-deb -x "$KERNEL_PACKAGE"_*.deb kernel)
M=$SIDE/kernel/lib/modules/$KVER/kernel
for gone in $(cat "$ASSETS/recipe/pruned-modules.txt"); do rm -rf "${M:?}/$gone"; done
find "$M/drivers/net/ethernet" -mindepth 1 -maxdepth 1 -type d ! -name intel ! -name mellanox -exec rm -rf {} +
mkdir -p "$ROOT/lib/modules"
mv "$SIDE/kernel/lib/modules/$KVER" "$ROOT/lib/modules/"
cp "$SIDE/kernel/boot/vmlinuz-$KVER" "$SIDE/kernel/boot/config-$KVER" "$ROOT/boot/"
ln -sfn "/usr/src/linux-headers-$KVER" "$ROOT/lib/modules/$KVER/build"
cp "$SIDE/kernel/boot/vmlinuz-$KVER" "$OUT/vmlinuz"
echo "$KVER" >"$OUT/kernel-version"

# ---- the packages that the bare machine lacks
step "packages for the repository"
mkdir -p "$SIDE/archives/partial"
# shellcheck disable=SC2086 # SERVED is a list
apt-get -qq -y --no-install-recommends --download-only -o APT::Sandbox::User=root -o Dir::Cache::Archives="$SIDE/archives" \
    install $SERVED "linux-headers-$KVER" >/dev/null
mv "$SIDE"/archives/*.deb "$OUT/packages/"

# ---- the make-believe ConnectX, compiled in a copy of the root that gets the compiler and is thrown away
step "kernel module fakecx (make-believe ConnectX-6)"
BUILD=$SIDE/build
mkdir -p "$BUILD/dev" "$BUILD/mod" "$BUILD/tmp" "$BUILD/proc"
cp -al "$ROOT/usr" "$ROOT/etc" "$BUILD/"
for link in bin lib lib64 sbin; do cp -a "$ROOT/$link" "$BUILD/"; done
: >"$BUILD/dev/null"
for deb in "$OUT"/packages/*.deb; do
    case ${deb##*/} in
    gcc* | cpp* | binutils* | make_* | lib* | linux-*) dpkg-deb --fsys-tarfile "$deb" | tar -C "$BUILD" -x --keep-directory-symlink ;;
    esac
done
ln -sfn "/usr/src/linux-headers-$KVER" "$BUILD/lib/modules/$KVER/build" # the same link; a package may have replaced it
cp "$ASSETS"/fakecx/* "$BUILD/mod/"
unshare -m sh -c 'mount --bind /dev/null "$1/dev/null" && exec chroot "$1" make -C "/lib/modules/$2/build" M=/mod modules' sh "$BUILD" "$KVER"
install -D -m 0644 "$BUILD/mod/fakecx.ko" "$ROOT/lib/modules/$KVER/extra/fakecx.ko"
rm -rf "$BUILD"
depmod -b "$ROOT" "$KVER"

# ---- a lean initramfs: busybox and what virtio disks and ext4 need
step "initramfs and boot loader"
IR=$SIDE/initramfs
mkdir -p "$IR/bin" "$IR/proc" "$IR/sys" "$IR/dev" "$IR/new" "$IR/modules"
cp "$(command -v busybox)" "$IR/bin/busybox"
install -m 0755 "$ASSETS/initramfs/init" "$IR/init"
n=10
for module in $(modprobe -d "$ROOT" -S "$KVER" -a --show-depends virtio_pci virtio_blk ext4 crc32c_generic 2>/dev/null |
    awk '$1 == "insmod" && !seen[$2]++ { print $2 }'); do
    cp "$module" "$IR/modules/$n-${module##*/}"
    n=$((n + 1))
done
(cd "$IR" && find . | LC_ALL=C sort | cpio -o -H newc --quiet) >"$OUT/initrd"
cp "$OUT/initrd" "$ROOT/boot/initrd.img-$KVER"

# ---- GRUB: QEMU is given a core image that reads the machine's own grub.cfg
GRUB_FOLDER=/usr/lib/grub/i386-pc
grub-mkimage -O i386-pc -o "$SIDE/core.img" -p '(hd0)/boot/grub' \
    biosdisk ext2 part_msdos linux normal configfile search search_fs_uuid echo test ls boot minicmd gzio cat serial terminal loadenv
cat "$GRUB_FOLDER/lnxboot.img" "$SIDE/core.img" >"$OUT/grub.lkrn"
mkdir -p "$ROOT/boot/grub/i386-pc"
cp "$GRUB_FOLDER"/*.mod "$GRUB_FOLDER"/*.lst "$ROOT/boot/grub/i386-pc/"

# ---- configuration
step "configuration for $NETWORK"
cp -r "$ASSETS/guest/." "$ROOT/"
install -D -m 0755 "$ASSETS/network/$NETWORK.sh" "$ROOT/usr/lib/railwright-lab/network"
chmod 0755 "$ROOT/usr/lib/railwright-lab/identity"
[ ! -d "$SIDE/programs" ] || . "$ASSETS/kubernetes/node.sh"
. "$ASSETS/recipe/configure.sh"
# The machine's own update-grub writes the first grub.cfg; only the question for the disk is answered for it.
FILE_SYSTEM=$(cat /proc/sys/kernel/random/uuid)
sed "s/@UUID@/$FILE_SYSTEM/" "$ASSETS/recipe/grub-probe.sh" >"$SIDE/grub-probe"
chmod 0755 "$SIDE/grub-probe"
unshare -m sh -c 'mount --bind "$2" "$1/usr/sbin/grub-probe" && exec chroot "$1" update-grub' sh "$ROOT" "$SIDE/grub-probe"

# ---- an ext4 file system without mounting anything
step "disk"
truncate -s "$DISK_SIZE" "$OUT/disk.raw"
mkdir "$SIDE/bare" # the root without what mmdebstrap has mounted into it
unshare -m sh -c 'mount --bind "$1" "$2" && mke2fs -q -t ext4 -O ^metadata_csum -J size=16 \
    -E lazy_itable_init=1,lazy_journal_init=1 -m 0 -U "$4" -d "$2" "$3"' sh "$ROOT" "$SIDE/bare" "$OUT/disk.raw" "$FILE_SYSTEM"
qemu-img convert -q -f raw -O qcow2 "$OUT/disk.raw" "$OUT/disk.qcow2"
rm "$OUT/disk.raw"
mv "$OUT" "$ROOT/lab-out"
