#!/usr/bin/env bash
# Runs everything that `make test` means and ends with one line of counts. A story that takes long, and that another one of its rig stands
# for, is ignored here ("long") and run by `make test-deep`.
set -uo pipefail
cargo=${CARGO:-cargo}
export RAILWRIGHT_TEST_LAB_CACHE=${RAILWRIGHT_TEST_LAB_CACHE:-$PWD/target/rigs/lab}
# Most tests wait for servers and machines: two at a time for each core. The lab counts cores itself.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) * 2))}
# A build that nobody goes on with keeps nothing for the next one.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
export RAILWRIGHT_REQUIRE_RIGS=1 INSTA_UPDATE=no CARGO_TERM_COLOR=never NO_COLOR=1
log=$(mktemp)
export RAILWRIGHT_TEST_LAB_TIMES=$log.lab
all=$log.all
trap 'rm -rf "$log" "$log".* "${logs:-}"' EXIT
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
# The control plane takes minutes to build. It gets what the others leave.
nice -n 19 sh tests/kubernetes/controlplane.sh build target/rigs/controlplane >"$log.plane" 2>&1 &
plane=$!
if [ "$(id -u)" = 0 ]; then
  step "root file system of the network managers" sh tests/links/managers.sh build target/rigs/managers/root
fi
step "format" "$cargo" fmt --all --check
build() {
  "$cargo" test --no-run --workspace --lib --bins --tests 2>"$log.built" || { cat "$log.built"; return 1; }
}
step "build of the tests" build
# The programs of the suites are called as they are: cargo would look through the workspace for each, and wait for the lints.
programs=$(sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$log.built" | sed "s|^[^/]|$PWD/&|")
[ -n "$programs" ] || exit 1
# They compile nothing that a suite runs, and get what the suites leave.
(
  began=$SECONDS
  nice -n 19 "$cargo" clippy --quiet --workspace --all-targets -- -D warnings >"$log.lints" 2>&1 || exit 1
  echo "$((SECONDS - began))" >"$log.lints.took"
) &
lints=$!
# The programs of a suite; `crates` are the unit tests of all crates and of the program.
programs_of() {
  local program
  for program in $programs; do
    case $1:${program##*/} in
      crates:railwright-* | crates:railwright_*) echo "$program" ;;
      "$1:$1-"*) echo "$program" ;;
    esac
  done
}
# Runs programs from the folders of their crates, one after the other, all within a limit in seconds; 1 where one did not end well.
run_programs() {
  local end=$((SECONDS + $1)) program name folder left=0 ended root=$PWD rest
  shift
  for program in "$@"; do
    name=${program##*/}
    name=${name%-*}
    folder=$PWD
    case $name in railwright_*) folder=$PWD/src/${name#railwright_} ;; esac
    rest=$((end - SECONDS))
    [ "$rest" -gt 0 ] || rest=1
    ended=0
    (cd "$folder" && CARGO_MANIFEST_DIR=$folder INSTA_WORKSPACE_ROOT=$root exec timeout --kill-after=30 "$rest" "$program") || ended=$?
    # One that hung says most.
    case $ended in 0) ;; 124 | 137) left=$ended ;; *) [ "$left" -ne 0 ] || left=1 ;; esac
  done
  return "$left"
}
# A suite says how it ended once it has: a run that is ended from outside has told what it found until then. One that hangs is ended, and
# names the tests that were waited for.
suite() {
  local name=$1 limit=$2 began=$SECONDS ended=0 own=$logs/$1
  # shellcheck disable=SC2046
  run_programs "$limit" $(programs_of "$name") >"$own" 2>&1 || ended=$?
  local p f
  read -r p f <<<"$(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$own")"
  if [ "$ended" -eq 0 ] && grep -q '^test result:' "$own"; then
    echo "== $name: ok, $p passed, $((SECONDS - began)) s"
    return 0
  fi
  # What several suites have to say does not come in between each other.
  {
    flock 9
    echo "== $name"
    grep -vE '^test .* \.\.\. ok$|^$|^running [0-9]+ tests?$' "$own"
    if [ "$ended" -eq 124 ] || [ "$ended" -eq 137 ]; then
      echo "   ended after $limit s; of the tests that ran for over a minute these had not ended:"
      sed -n 's/^test \(.*\) has been running for over .*/\1/p' "$own" | while read -r slow; do
        grep -qE "^test $slow \.\.\. " "$own" || echo "     $slow"
      done
    fi
    echo "   FAILED: $name, $((SECONDS - began)) s, $f of its tests"
  } 9>"$log.lock"
  return 1
}
# Suites one after the other; 1 where one did not end well.
lane() {
  local name lost=0
  for name in "$@"; do suite "$name" 1800 || lost=1; done
  return $lost
}
logs=$(mktemp -d) || exit 1
# Whoever ends this ends what it began.
trap 'for lane in $(jobs -p); do pkill -TERM -P "$lane"; kill "$lane"; done; exit 130' INT TERM
lost=0
# Suites mostly wait for servers, so two lanes side by side take little more than half the time of one. A suite that is in no other lane
# is in this one. An emulated machine keeps a core busy and its clock has to go with the world's: the lab comes alone.
apart="lab kubernetes switches links transport"
rest=()
for main in tests/*/main.rs; do
  name=$(basename "$(dirname "$main")")
  case " $apart " in *" $name "*) ;; *) rest+=("$name") ;; esac
done
{
  left=0
  suite crates 1200 || left=1
  lane "${rest[@]}" && [ "$left" -eq 0 ]
} &
second=$!
echo "== control plane"
began=$SECONDS
wait "$plane" && echo "   ok, $((SECONDS - began)) s longer" || cat "$log.plane"
lane kubernetes switches links transport &
first=$!
wait "$first" || lost=1
wait "$second" || lost=1
lane lab || lost=1
echo "== lints"
if wait "$lints"; then
  passed=$((passed + 1))
  echo "   ok, $(cat "$log.lints.took") s beside the suites"
else
  failed=$((failed + 1))
  tail -n 200 "$log.lints"
  echo "   FAILED: lints"
fi
cat "$logs"/* >"$all"
if [ -s "$log.lab" ]; then
  echo "== stories on the lab"
  cat "$log.lab"
fi
read -r p f i <<<"$(awk '/^test result:/ { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$all")"
passed=$((passed + p))
failed=$((failed + f))
# A suite that did not end well without a counted failure did not build, died, hung or ran nothing.
[ "$failed" -gt 0 ] || failed=$lost
echo
[ "$i" -eq 0 ] || echo "$i long stories are left to make test-deep"
echo "$passed passed, $failed failed, $i skipped"
[ "$failed" -eq 0 ]
