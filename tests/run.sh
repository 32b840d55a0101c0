#!/usr/bin/env bash
# Runs everything that `make test` means and ends with one line of counts.
set -uo pipefail
cargo=${CARGO:-cargo}
export RAILWRIGHT_TEST_LAB_CACHE=${RAILWRIGHT_TEST_LAB_CACHE:-$PWD/target/rigs/lab}
# Most tests wait for servers and machines: two at a time for each core. The lab counts cores itself.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) * 2))}
export RAILWRIGHT_REQUIRE_RIGS=1 INSTA_UPDATE=no CARGO_TERM_COLOR=never NO_COLOR=1
log=$(mktemp)
export RAILWRIGHT_TEST_LAB_TIMES=$log.lab
trap 'rm -f "$log" "$log.lab" "$log.plane"' EXIT
passed=0
failed=0
step() {
  local name=$1
  shift
  local began=$SECONDS
  echo "== $name"
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    echo "   ok, $((SECONDS - began)) s"
  else
    failed=$((failed + 1))
    tail -n 200 "$log"
    echo "   FAILED: $name"
  fi
}
# The control plane takes minutes to build. It gets what the others leave: the stories of the lab wait for most of their time.
nice -n 19 sh tests/kubernetes/controlplane.sh build target/rigs/controlplane >"$log.plane" 2>&1 &
plane=$!
if [ "$(id -u)" = 0 ]; then
  step "root file system of the network managers" sh tests/links/managers.sh build target/rigs/managers/root
fi
step "format" "$cargo" fmt --check
step "lints" "$cargo" clippy --quiet --all-targets -- -D warnings
echo "== tests"
others=()
for main in tests/*/main.rs; do
  name=$(basename "$(dirname "$main")")
  # `kubernetes` has its turn below. The operators take six minutes more to build, and are tried by `make test-deep`.
  case $name in kubernetes | operators) ;; *) others+=(--test "$name") ;; esac
done
# Real nodes take the lab ten minutes more: `make test-deep` has them.
"$cargo" test --no-fail-fast --lib --bins "${others[@]}" -- --skip nodes_of_a_real_kubernetes >"$log" 2>&1
ended=$?
echo "== control plane"
began=$SECONDS
wait "$plane" && echo "   ok, $((SECONDS - began)) s longer" || cat "$log.plane"
"$cargo" test --no-fail-fast --test kubernetes >>"$log" 2>&1 || ended=1
"$cargo" test --no-fail-fast --doc >>"$log" 2>&1 || ended=1
grep -vE '^test .* \.\.\. ok$|^$|^running [0-9]+ tests?$|^ *(Compiling|Finished|Doc-tests)' "$log"
if [ -s "$log.lab" ]; then
  echo "== stories on the lab"
  cat "$log.lab"
fi
counts=$(awk '/^test result:/ { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$log")
read -r p f i <<<"$counts"
# A run that did not end well without a counted failure did not build, or died.
if [ "$ended" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
if [ "$p" -eq 0 ]; then f=$((f + 1)); fi
passed=$((passed + p))
failed=$((failed + f))
echo
echo "$passed passed, $failed failed, $i skipped"
[ "$failed" -eq 0 ]
