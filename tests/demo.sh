#!/usr/bin/env bash
# The main job, end to end, on two bare virtual machines of this computer. `make demo` runs it; nothing outside the
# working tree is changed but Debian packages, and those only after a yes.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
began=$SECONDS

cat <<'TEXT'
railwright demo: two bare virtual machines become an RDMA pair.

  The machines know nothing of RDMA: no rdma-core, no perftest, no compiler. They have their own boot loader, kernel and
  systemd. Their fast NIC is a make-believe ConnectX-6 (a kernel module of the lab): settings are read and written
  for real, only flow control is not.

  It usually takes 15 to 25 minutes on two cores without KVM: most of it is installing and building on emulated CPUs.

TEXT

missing=()
for package in $PACKAGES; do
  dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "These Debian packages are needed and missing: ${missing[*]}"
  answer=${RAILWRIGHT_DEMO_YES:-}
  [ -n "$answer" ] || read -r -p "Install them with apt-get now? [y/N] " answer </dev/tty
  case $answer in
  y | Y | yes | 1) tests/packages.sh "${SUDO:-}" "${missing[@]}" ;;
  *)
    echo "Nothing was changed. Install them yourself: sudo apt-get install --no-install-recommends ${missing[*]}"
    exit 1
    ;;
  esac
fi

"$cargo" build --quiet
railwright=$PWD/target/debug/railwright
inventory=inventories/lab
work=$(mktemp -d)
finish() {
  local status=$?
  trap - EXIT INT TERM
  if [ "$status" -ne 0 ]; then echo "the demo stopped with exit status $status; the machines are taken down"; fi
  "$railwright" lab down >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Shows a command, runs it, and holds it to the exit code that the story expects.
tell() {
  local expected=$1 status=0
  shift
  printf '\n\033[1m$ railwright %s\033[0m\n' "$*"
  "$railwright" "$@" || status=$?
  if [ "$status" -ne "$expected" ]; then
    echo "expected exit code $expected, got $status"
    exit 1
  fi
}

say() { printf '\n# %s\n' "$*"; }

say "Clear away what an aborted run may have left, then start the machines."
"$railwright" lab down >/dev/null 2>&1 || true
rm -rf inventories/lab/.railwright
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
