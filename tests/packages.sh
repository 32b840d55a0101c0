#!/usr/bin/env bash
# Installs Debian packages that are missing, and only those: packages.sh SUDO PACKAGE...
set -euo pipefail
sudo=$1
shift
missing=()
for package in "$@"; do
  dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null
# Daemons that the packages bring must not start on this machine: tests start their own.
policy=/usr/sbin/policy-rc.d
made=
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
  $sudo chmod 755 "$policy"
  made=1
fi
status=0
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}" >/dev/null || status=$?
[ -z "$made" ] || $sudo rm -f "$policy"
exit $status
