#!/usr/bin/env bash
# The long runs: every law and every property with many more cases, built for speed, and many kills on a machine of the lab.
# Ends with one line of counts.
set -uo pipefail
cargo=${CARGO:-cargo}
export RAILWRIGHT_SCHEDULES=${RAILWRIGHT_SCHEDULES:-10000} PROPTEST_CASES=${PROPTEST_CASES:-10000}
export RAILWRIGHT_KILLS=${RAILWRIGHT_KILLS:-20} RAILWRIGHT_TEST_LAB_CACHE=${RAILWRIGHT_TEST_LAB_CACHE:-$PWD/target/rigs/lab}
export INSTA_UPDATE=no CARGO_TERM_COLOR=never NO_COLOR=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
began=$SECONDS
"$cargo" test --release --no-fail-fast --lib --test fleet -- --nocapture >"$log" 2>&1
ended=$?
# A machine whose railwright is killed; the other stories on it come along.
"$cargo" test --release --test lab bad_days -- --nocapture >>"$log" 2>&1 || ended=1
grep -E 'schedules, |^ *kill [0-9]+ of|^skipped: |^test .*FAILED|panicked at|^again: |^test result:' "$log"
[ "$ended" -eq 0 ] || tail -n 200 "$log"
counts=$(awk '/^test result:/ { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$log")
kills=$(grep -cE '^ *kill [0-9]+ of' "$log")
read -r p f i <<<"$counts"
if [ "$ended" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
echo
echo "$p passed, $f failed, $i skipped; $RAILWRIGHT_SCHEDULES schedules a law, $PROPTEST_CASES cases a property, $kills kills on a machine, $((SECONDS - began)) s"
[ "$f" -eq 0 ] && [ "$p" -gt 0 ]
