#!/bin/sh
# Real operators, each built once from a pinned Go module of its own (modules/), so that what they depend on does not mix. A folder
# has the program as `operator`, and the manifests of the same release as its project ships them.
#   build.sh build FOLDER NAME   builds the operator of this name into FOLDER, once
#   build.sh find FOLDER NAME    prints where it is, and fails where it is not built
set -eu
here=$(cd "${0%/*}" && pwd)
lab=$here/../../src/lab/assets/kubernetes
. "$lab/go.sh"

# The device plugin is the one that the lab runs.
module_folder() {
    [ -d "$here/modules/$name" ] && echo "$here/modules/$name" || echo "$lab/modules/$name"
}

key() {
    of=$(module_folder)
    cat "$of/go.mod" "$of/go.sum" | sha256sum | cut -c1-16
}

found() {
    [ -d "$folder/$name-$(key)" ] && cd "$folder/$name-$(key)" && pwd
}

build() {
    ! found >/dev/null || exit 0
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    exec 9>"$folder/lock"
    flock 9
    ! found >/dev/null || exit 0
    choose_go
    # what another pin made, and what a build that was ended left behind
    part=$folder/part
    rm -rf "$folder/$name"-???????????????? "$part"
    mkdir "$part"
    cd "$(module_folder)"
    package=$(sed -n 's/^tool //p' go.mod)
    compile "$PWD" "$part/operator" "$package"
    source=$("$go" list -f '{{.Module.Dir}}' "$package")
    for manifests in deploy manifests config; do
        [ -d "$source/$manifests" ] || continue
        mkdir -p "$part/$manifests"
        # folders of modules are read-only, and these are to be deleted one day
        cp -r --no-preserve=mode "$source/$manifests/." "$part/$manifests"
    done
    mv "$part" "$folder/$name-$(key)"
}

command=${1:-} folder=${2:-} name=${3:-}
case $command in
build) build ;;
find) found ;;
*) sed -n 4,5p "$0"; exit 64 ;;
esac
