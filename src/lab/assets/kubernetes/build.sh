#!/bin/sh
# Builds, from pinned Go modules, what a lab with Kubernetes runs: the control plane, its client, kubelet and the RDMA shared
# device plugin. What KUBEBUILDER_ASSETS has of the control plane is linked, not built.
#   build.sh FOLDER KEY    the programs are in FOLDER/programs afterwards, built once for this key, which names the modules;
#                          those that the machines get lie in FOLDER/programs/node
# Lines of standard output that begin with "step " are what `railwright lab up` shows.
set -eu
here=$(cd "${0%/*}" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
. "$here/go.sh"

exec 9>"$folder/lock"
flock 9
[ "$(cat "$folder/programs/key" 2>/dev/null)" != "$2" ] || exit 0
rm -rf "$folder/part" "$folder/programs"
part=$folder/part
mkdir -p "$part/node"
echo "step Go"
choose_go
echo "step etcd"
linked etcd "$part" || compile "$here/modules/etcd" "$part/etcd" go.etcd.io/etcd/server/v3
echo "step Kubernetes"
wanted=
for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
    linked $program "$part" || wanted="$wanted k8s.io/kubernetes/cmd/$program"
done
# shellcheck disable=SC2086 # a list of packages, or nothing where all are linked
[ -z "$wanted" ] || compile "$here/modules/kubernetes" "$part/" $wanted
compile "$here/modules/kubernetes" "$part/node/" k8s.io/kubernetes/cmd/kubelet
echo "step RDMA shared device plugin"
compile "$here/modules/device-plugin" "$part/node/" github.com/Mellanox/k8s-rdma-shared-dev-plugin/cmd/k8s-rdma-shared-dp
printf %s "$2" >"$part/key"
mv "$part" "$folder/programs"
