# Sourced by image.sh for a lab with Kubernetes: kubelet, and the images of containers that its nodes have from the start.
step "kubelet and images of containers"
install -m 0755 "$SIDE/programs/kubelet" "$ROOT/usr/local/bin/kubelet"
cp -r "$ASSETS/kubernetes/guest/." "$ROOT/"
chmod 0755 "$ROOT/usr/lib/railwright-lab/images" "$ROOT/usr/lib/railwright-lab/node-network"
units=$ROOT/etc/systemd/system
mkdir -p "$units/multi-user.target.wants" "$ROOT/usr/share/railwright-lab/images"
for unit in kubelet railwright-lab-images; do ln -sf "../$unit.service" "$units/multi-user.target.wants/"; done

# Writes an image of one layer, which containerd knows as lab.railwright.invalid/NAME:TAG (opencontainers/image-spec:
# image-layout.md, manifest.md, config.md; the annotation is containerd's).
#   image NAME TAG ROOT ENTRYPOINT
image() {
    image_root=$3
    layout=$SIDE/layout
    rm -rf "$layout"
    mkdir -p "$layout/blobs/sha256"
    tar -C "$image_root" -cf "$layout/layer" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner .
    printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":["%s"],"Env":["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$4" "$(digest "$layout/layer")" >"$layout/config"
    kind=application/vnd.oci.image
    printf '{"schemaVersion":2,"mediaType":"%s","config":%s,"layers":[%s]}' $kind.manifest.v1+json \
        "$(blob config $kind.config.v1+json)" "$(blob layer $kind.layer.v1.tar)" >"$layout/manifest"
    printf '{"schemaVersion":2,"manifests":[%s]}' \
        "$(blob manifest $kind.manifest.v1+json ",\"annotations\":{\"io.containerd.image.name\":\"lab.railwright.invalid/$1:$2\",\"org.opencontainers.image.ref.name\":\"$2\"}")" >"$layout/index.json"
    printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
    tar -C "$layout" -cf "$ROOT/usr/share/railwright-lab/images/$1.tar" --sort=name --mtime=@0 --owner=0 --group=0 .
}

digest() { sha256sum "$1" | cut -d ' ' -f 1; }

# Moves a file of the layout among its blobs, and prints its descriptor.
blob() {
    sum=$(digest "$layout/$1")
    size=$(stat -c %s "$layout/$1")
    mv "$layout/$1" "$layout/blobs/sha256/$sum"
    printf '{"mediaType":"%s","digest":"sha256:%s","size":%s%s}' "$2" "$sum" "$size" "${3:-}"
}

IMAGES=$SIDE/images
busybox=$(command -v busybox)

# What holds the namespaces of a pod only has to be there; containerd ends it by force.
mkdir -p "$IMAGES/pause/bin"
cp "$busybox" "$IMAGES/pause/bin/busybox"
printf '#!/bin/busybox sh\nexec /bin/busybox sleep 2147483647\n' >"$IMAGES/pause/pause"
chmod 0755 "$IMAGES/pause/pause"
image pause 1 "$IMAGES/pause" /pause

# It reads the names of PCI devices from this file, and does not start without.
mkdir -p "$IMAGES/plugin/usr/bin" "$IMAGES/plugin/usr/share/misc"
install -m 0755 "$SIDE/programs/k8s-rdma-shared-dp" "$IMAGES/plugin/usr/bin/"
cp "$ROOT/usr/share/misc/pci.ids" "$IMAGES/plugin/usr/share/misc/"
image k8s-rdma-shared-dev-plugin 1.5.3 "$IMAGES/plugin" /usr/bin/k8s-rdma-shared-dp

# The measuring programs of Debian, with the libraries that they load; verbs of Soft-RoCE alone.
mkdir -p "$IMAGES/debs" "$IMAGES/perftest/bin"
(cd "$IMAGES/debs" && apt-get -qq -o APT::Sandbox::User=root download perftest ibverbs-providers ibverbs-utils libibverbs1 librdmacm1 libibumad3 \
    libnl-3-200 libnl-route-3-200 libpci3 libudev1 zlib1g libc6)
for deb in "$IMAGES"/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -C "$IMAGES/perftest" -x --keep-directory-symlink; done
rm -rf "$IMAGES"/perftest/usr/share "$IMAGES"/perftest/usr/lib/x86_64-linux-gnu/gconv
find "$IMAGES/perftest/usr/lib/x86_64-linux-gnu/libibverbs" -type f ! -name 'librxe-*' -delete
find "$IMAGES/perftest/etc/libibverbs.d" -type f ! -name rxe.driver -delete
cp "$busybox" "$IMAGES/perftest/bin/busybox"
for name in sh sleep cat ls ip; do ln -s busybox "$IMAGES/perftest/bin/$name"; done
mkdir -p "$IMAGES/perftest/lib64"
image perftest 1 "$IMAGES/perftest" /bin/sleep
. "$ASSETS/kubernetes/mpi.sh"
