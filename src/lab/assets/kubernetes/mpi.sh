# Sourced by node.sh: the image of the pods of an MPIJob. sshd and Open MPI are Debian's; ring_all_reduce is the lab's own (ring/), compiled
# in a copy of the image that gets the compiler and is thrown away.
step "image of MPI's jobs"
MPI=$IMAGES/mpi
mkdir -p "$IMAGES/mpi-debs" "$IMAGES/compiler-debs"
unpack() { for deb in "$1"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -C "$2" -x --keep-directory-symlink; done; }
fetch() { (cd "$1" && shift && apt-get -qq -o APT::Sandbox::User=root download "$@"); }

cp -a "$IMAGES/perftest" "$MPI"
fetch "$IMAGES/mpi-debs" openmpi-bin openmpi-common libopenmpi3 libevent-core-2.1-7 libevent-pthreads-2.1-7 libhwloc15 libpmix2 libmunge2 libgcc-s1 libstdc++6 \
    openssh-server openssh-client libaudit1 libcap-ng0 libcap2 libcom-err2 libcrypt1 libbsd0 libedit2 libgcrypt20 libgpg-error0 \
    libgssapi-krb5-2 libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 liblz4-1 liblzma5 libmd0 libnsl2 libpam0g libpcre2-8-0 libselinux1 libssl3 \
    libsystemd0 libtinfo6 libtirpc3 libwrap0 libzstd1
unpack "$IMAGES/mpi-debs" "$MPI"
rm -rf "$MPI"/usr/share/doc "$MPI"/usr/share/man "$MPI"/usr/share/locale "$MPI/usr/lib/x86_64-linux-gnu/fortran"
# What would take the RDMA devices for MPI's own messages: those go over TCP, and nothing but the ring uses verbs.
for what in ucx ofi openib psm psm2 usnic; do rm -f "$MPI"/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3/mca_*_"$what".so; done
# What the packages' own scripts would have made.
ln -sf orterun "$MPI/usr/bin/mpirun"
cp "$ASSETS"/kubernetes/mpi/passwd "$ASSETS"/kubernetes/mpi/group "$ASSETS"/kubernetes/mpi/nsswitch.conf "$MPI/etc/"
cp "$ASSETS"/kubernetes/mpi/ssh_config "$ASSETS"/kubernetes/mpi/sshd_config "$MPI/etc/ssh/"
mkdir -p "$MPI/root" "$MPI/tmp"
chmod 700 "$MPI/root"
chmod 1777 "$MPI/tmp"
# No key is in the image: a pod makes its own.
mv "$MPI/usr/sbin/sshd" "$MPI/usr/sbin/sshd.debian"
install -m 0755 "$ASSETS/kubernetes/mpi/sshd" "$MPI/usr/sbin/sshd"
for name in mkdir env; do ln -sf busybox "$MPI/bin/$name"; done

fetch "$IMAGES/compiler-debs" libc6-dev linux-libc-dev libcrypt-dev libgcc-12-dev libgmp10 libjansson4 libibverbs-dev libopenmpi-dev
cp -al "$MPI" "$IMAGES/compiler"
for deb in "$OUT"/packages/*.deb; do
    case ${deb##*/} in
    gcc* | cpp* | binutils* | lib*) dpkg-deb --fsys-tarfile "$deb" | tar -C "$IMAGES/compiler" -x --keep-directory-symlink ;;
    esac
done
unpack "$IMAGES/compiler-debs" "$IMAGES/compiler"
mkdir "$IMAGES/compiler/ring"
cp "$ASSETS"/kubernetes/ring/* "$IMAGES/compiler/ring/"
chroot "$IMAGES/compiler" /bin/sh -c 'cd /ring && exec gcc -O2 -I/usr/lib/x86_64-linux-gnu/openmpi/include -o ring_all_reduce \
    ring_all_reduce.c sockets.c verbs.c -l:libmpi.so.40 -l:libibverbs.so.1 -Wl,--allow-shlib-undefined'
install -m 0755 "$IMAGES/compiler/ring/ring_all_reduce" "$MPI/usr/bin/"
image mpi 1 "$MPI" /usr/sbin/sshd
