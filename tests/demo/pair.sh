#!/usr/bin/env bash
# The main job, end to end, on two bare virtual machines of this computer. `make demo` runs it.
set -euo pipefail
cd "$(dirname "$0")/../.."
cat <<'TEXT'
railwright demo: two bare virtual machines become an RDMA pair.

  The machines know nothing of RDMA: no rdma-core, no perftest, no compiler. They have their own boot loader, kernel and
  systemd. Their fast NIC is a fake ConnectX-6 (a kernel module of the lab): settings are read and written
  for real, only flow control is not.

  It usually takes 15 to 25 minutes on two cores without KVM: most of it is installing and building on emulated CPUs.

TEXT

inventory=inventories/lab
. tests/demo/parts.sh

say "Clear away what an aborted run may have left, then start the machines."
clear_away
tell 0 lab up 2

tell 0 validate "$inventory"
tell 0 plan "$inventory" -o "$work/lab.plan"
say "A saved plan can be shown anywhere, without credentials."
tell 0 show "$work/lab.plan" host/node1/kernel_parameter/iommu
say "One host first; the gate of RDMA checks; then the other."
tell 0 apply "$work/lab.plan" --yes
tell 0 verify "$inventory"
tell 0 plan "$inventory"

say "Somebody changes things by hand: the MTU, a module, a file, PFC."
"$railwright" lab ssh node1 -- 'ip link set ens1f0np0 mtu 1500; dcb pfc set dev ens1f0np0 prio-pfc all:off'
"$railwright" lab ssh node2 -- 'echo "* hard memlock 64" >/etc/security/limits.d/90-rdma.conf; modprobe -r rdma_ucm 2>/dev/null || true'
tell 2 drift "$inventory"
tell 0 apply "$inventory" --yes
tell 0 plan "$inventory"

say "Done in $((SECONDS - began)) s. The machines are taken down; image and packages stay cached in .lab."
