# Debian systems in folders; to be sourced after common.sh.
# shellcheck shell=bash

need_root() {
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    fail "This needs root's rights (debootstrap, chroot), and there is no sudo: run it as root."
  fi
}

# make_root FOLDER SUITE WHAT PACKAGE…: built aside and renamed when complete. debootstrap mounts in private too, so that an
# interrupted one leaves nothing mounted.
make_root() {
  local root=$1 suite=$2 what=$3 mirror script=() list
  shift 3
  scripts/bootstrap debootstrap
  # shellcheck disable=SC2016 # apt's own $(…)
  mirror=${MIRROR:-$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' |
    sed -n 's/^Debian //p' | sed -n 1p)}
  [ -n "$mirror" ] || fail "apt's sources name no Debian mirror here. Set MIRROR to one, and run this again."
  # An older debootstrap does not know the suite yet; the script for sid serves it.
  [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=(/usr/share/debootstrap/scripts/sid)
  list=$(IFS=,; echo "$*")
  as_root rm -rf "$root.new"
  logged "Making $what" "${root%/*}/debootstrap.log" \
    as_root unshare --mount --pid --fork --kill-child \
    debootstrap --variant=minbase ${ARCHITECTURE:+--arch="$ARCHITECTURE"} ${list:+--include="$list"} "$suite" "$root.new" "$mirror" ${script[@]+"${script[@]}"}
  as_root mv "$root.new" "$root"
}

# in_root FOLDER [--tree] COMMAND…: runs a command in it; with --tree in /src, which is this tree, read-only, with the
# root's own /build as .build. Mounts and processes are private to this one command: whatever way it ends, the kernel takes
# them away. The kernel's settings are read-only: packages such as procps would change those of the host. sudo may have set
# the number of descriptors back.
in_root() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  as_root prlimit --nofile="$(ulimit -Sn)" unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 tree=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --bind "$root/proc/sys" "$root/proc/sys"
    mount -o remount,bind,ro "$root/proc/sys"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    directory=/
    if [ "$1" = --tree ]; then
      shift
      directory=/src
      mount --bind "$tree" "$root/src"
      mount -o remount,bind,ro "$root/src"
      mount --bind "$root/build" "$root/src/.build"
    fi
    exec env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
      chroot "$root" sh -c "cd $directory && exec \"\$@\"" - "$@"
  ' - "$1" "$PWD" "${@:2}"
}
