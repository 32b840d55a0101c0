#!/usr/bin/env bash
# One plan for hosts and cluster, on two virtual machines that are nodes of a real Kubernetes. `make demo-kubernetes` runs it.
set -euo pipefail
cd "$(dirname "$0")/../.."

cat <<'TEXT'
railwright demo: two nodes of a Kubernetes cluster get RDMA, and their pods with them.

  The control plane runs on this computer: etcd, API server, controllers and scheduler, built once from their sources (Go comes
  from this computer or from PyPI). Each machine has a real kubelet and containerd. Their fast NIC is a fake ConnectX-6:
  settings are read and written for real, only flow control is not.

  It usually takes 8 to 12 minutes on two cores without KVM, and 5 more where nothing was built yet.

TEXT

inventory=inventories/lab-kubernetes
. tests/demo/parts.sh

say "Clear away what an aborted run may have left, then start the machines and their cluster."
clear_away
tell 0 lab up --kubernetes
tell 0 lab kubectl get nodes -o wide

say "Packages, NIC and kernel command line of the hosts; device plugin, allocatable devices and pods of the cluster: one plan."
tell 0 validate "$inventory"
tell 0 plan "$inventory" -o "$work/lab.plan"
say "Each node is emptied, its host rebooted and proven, and given back; then comes what runs on the cluster."
tell 0 apply "$work/lab.plan" --yes
tell 0 plan "$inventory"
tell 0 lab kubectl get nodes -o 'custom-columns=NODE:.metadata.name,RDMA:.status.allocatable.rdma/rdma_shared_device_a'
tell 0 lab kubectl get pods -l app=rdma-pods -o wide

say "The proof: from pod to pod, with the devices that the plugin gave them. They are not privileged."
pod_on() { "$railwright" lab kubectl get pods -l app=rdma-pods --field-selector "spec.nodeName=$1" -o name; }
from=$(pod_on node2) to=$(pod_on node1)
device=$("$railwright" lab kubectl exec "$to" -- ls /sys/class/infiniband)
measure=(ib_write_bw -d "$device" -x 1 -m 4096 -D 3 -R --report_gbits)
"$railwright" lab kubectl exec "$to" -- "${measure[@]}" >"$work/server.log" 2>&1 &
server=$!
# The host of a pod of its network knows who waits for a peer.
until "$railwright" lab ssh node1 -- rdma resource show cm_id | grep -q 'state LISTEN'; do
  kill -0 "$server" 2>/dev/null || { cat "$work/server.log"; exit 1; }
  sleep 0.5
done
tell 0 lab kubectl exec "$from" -- "${measure[@]}" 192.168.77.1
wait "$server"

say "Somebody turns PFC off on a host, and edits the plugin's configuration."
"$railwright" lab ssh node1 -- 'dcb pfc set dev ens1f0np0 prio-pfc all:off'
"$railwright" lab kubectl -n kube-system patch configmap rdma-devices --type merge \
  -p '{"data":{"config.json":"{\"configList\":[{\"resourceName\":\"rdma_shared_device_a\",\"rdmaHcaMax\":1,\"selectors\":{\"ifNames\":[\"ens1f0np0\"]}}]}"}}'
tell 2 drift "$inventory"
tell 0 apply "$inventory" --yes
tell 0 plan "$inventory"

say "Done in $((SECONDS - began)) s. Machines and cluster are taken down; what was built stays cached in .lab."
