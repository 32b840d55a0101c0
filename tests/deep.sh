#!/usr/bin/env bash
# The long runs: every law and every property with many more cases, built for speed, many kills on a machine of the lab,
# machines as nodes of a real Kubernetes, the real operators, which take minutes to build once, and all stories that `make test` leaves out.
# The laws run beside the rest. Says what each part found when it is over, and ends with one line of counts.
set -uo pipefail
cargo=${CARGO:-cargo}
export RAILWRIGHT_SCHEDULES=${RAILWRIGHT_SCHEDULES:-10000} PROPTEST_CASES=${PROPTEST_CASES:-10000}
export RAILWRIGHT_KILLS=${RAILWRIGHT_KILLS:-20} RAILWRIGHT_TEST_LAB_CACHE=${RAILWRIGHT_TEST_LAB_CACHE:-$PWD/target/rigs/lab}
export RAILWRIGHT_REQUIRE_RIGS=1 INSTA_UPDATE=no CARGO_TERM_COLOR=never NO_COLOR=1
logs=$(mktemp -d) || exit 1
# Whoever ends this ends what it began.
trap 'rm -rf "$logs"' EXIT
trap 'for lane in $(jobs -p); do pkill -TERM -P "$lane"; kill "$lane"; done; exit 130' INT TERM
# part NAME TESTS WORDS-FOR-CARGO: TESTS is --include-ignored or --ignored. Says what it found as a whole, and counts it.
part() {
  local began=$SECONDS ended=0 p f i name=$1 which=$2 log
  log=$logs/${name// /-}
  shift 2
  "$cargo" test --profile deep --workspace "$@" -- --nocapture "$which" >"$log" 2>&1 || ended=$?
  read -r p f i <<<"$(awk '/^test result:/ { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$log")"
  # A part that did not end well without a counted failure did not build, or died; one without a test ran nothing.
  if [ "$f" -eq 0 ] && { [ "$ended" -ne 0 ] || [ "$p" -eq 0 ]; }; then f=1; fi
  {
    flock 9
    echo "== $name"
    grep -E 'schedules, |^ *kill [0-9]+ of|^skipped: |^test .*FAILED|panicked at|^again: |^test result:' "$log"
    if [ "$ended" -ne 0 ]; then tail -n 200 "$log"; fi
    echo "   $((SECONDS - began)) s"
    echo "$p $f $i $(grep -cE '^ *kill [0-9]+ of' "$log")" >>"$logs/counts"
  } 9>"$logs/lock"
}
laws() {
  # They only compute: what waits for machines and servers has limits, and goes first.
  renice -n 10 -p "$BASHPID" >/dev/null
  part "laws and properties" --include-ignored --no-fail-fast --lib --test fleet --test plan
}
machines() {
  # All stories of the pair: `make test` leaves three of them out.
  RAILWRIGHT_LAB=whole part "a pair of machines" --include-ignored --test lab a_pair_of_bare_machines
  # A machine whose railwright is killed; the other stories on it come along.
  part "bad days on a machine" --include-ignored --test lab bad_days
  part "kinds on a machine" --include-ignored --test lab kinds_that_need
  # Its control plane is the one that other tests have built.
  sh tests/kubernetes/controlplane.sh build target/rigs/controlplane >"$logs/plane" 2>&1 || cat "$logs/plane"
  local programs main name stories=()
  programs=$(sh tests/kubernetes/controlplane.sh find target/rigs/controlplane)
  KUBEBUILDER_ASSETS=$programs part "nodes of a real Kubernetes" --include-ignored --test lab nodes_of_a_real_kubernetes
  RAILWRIGHT_TEST_HELM=$(sh tests/kubernetes/controlplane.sh helm3 target/rigs/controlplane) \
    part "releases with Helm 3" --include-ignored --test kubernetes helm_releases
  part "real operators" --include-ignored --no-fail-fast --test operators
  for main in tests/*/main.rs; do
    name=$(basename "$(dirname "$main")")
    # These had their turn.
    case $name in fleet | lab | operators | plan) ;; *) stories+=(--test "$name") ;; esac
  done
  part "stories that make test leaves out" --ignored --no-fail-fast "${stories[@]}"
}
echo "== build"
"$cargo" test --profile deep --quiet --no-run --workspace --lib --bins --tests || exit 1
echo "   $SECONDS s"
laws &
machines &
wait
read -r parts passed failed skipped kills <<<"$(awk '{ p += $1; f += $2; i += $3; k += $4 } END { print NR, p + 0, f + 0, i + 0, k + 0 }' "$logs/counts")"
# A lane that ended early has lost parts.
[ "$parts" -eq 8 ] || failed=$((failed + 1))
if [ "$kills" -lt "$RAILWRIGHT_KILLS" ]; then failed=$((failed + 1)); fi
echo
echo "$passed passed, $failed failed, $skipped skipped; $RAILWRIGHT_SCHEDULES schedules a law, $PROPTEST_CASES cases a property, $kills kills on a machine, $SECONDS s"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
