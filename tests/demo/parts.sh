# Sourced by the demos, from the top of the tree, with `inventory` set: packages after a yes, the program, a folder for what is made,
# and the lab's end however the demo ends. Nothing outside the working tree is changed but Debian packages.
cargo=${CARGO:-cargo}
began=$SECONDS

missing=()
for package in $PACKAGES; do
  dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "These Debian packages are needed and missing: ${missing[*]}"
  answer=${RAILWRIGHT_DEMO_YES:-}
  # Without a terminal there is nobody to ask.
  [ -n "$answer" ] || { : </dev/tty; } 2>/dev/null || answer=yes
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

# Clears away what an aborted run may have left.
clear_away() {
  "$railwright" lab down >/dev/null 2>&1 || true
  rm -rf "$inventory/.railwright"
}
