# What every script here shares; to be sourced. Afterwards the working directory is the root of the tree.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Debian keeps mosquitto in /usr/sbin, which is not on an ordinary user's PATH.
export PATH="$PATH:/usr/sbin:/sbin"

# The tests of a module run together, each with its servers: more descriptors than the usual 1024. Not as many as may be
# had, which is a thousand million in some containers: there are programs that go through all of them.
ulimit -Sn 16384 2>/dev/null || ulimit -Sn "$(ulimit -Hn)"

# Where things live that are too dear to build twice. Outside the tree, so that a clean clone is quick too.
# shellcheck disable=SC2034 # used by the scripts that source this file
CACHE=${MICROBIT_GATEWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/microbit-gateway}

# say LINE…
say() { printf '%s\n' "$@"; }
fail() {
  say "$@" >&2
  exit 1
}

# The version of the programs, which stands in one place.
version() { sed -n 's/.*static let current = "\(.*\)"/\1/p' Sources/EventLoop/Version.swift; }

# The time of the last commit, in seconds: it stands in whatever is published, so that two builds of a commit are alike.
commit_time() { git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md; }

# bin_path OPTION…: the folder of the programs that `swift build OPTION…` makes. Versions of Swift differ in it.
bin_path() { swift build "$@" --show-bin-path; }

# How the release programs are built, with Swift's own libraries inside so that they run where no Swift is installed.
# shellcheck disable=SC2034 # used by the scripts that source this file
release_options=(
  # The static libstdc++ and libgcc as well: two libraries less to load and to relocate at every start, 1.3 MB of memory.
  --static-swift-stdlib -Xlinker "-L$PWD/.build/static" -Xswiftc -Xclang-linker -Xswiftc -static-libgcc
  # A section for each function, so that the linker leaves out those that nobody calls.
  -Xswiftc -Xfrontend -Xswiftc -function-sections
  # Two builds in two folders are alike: the compiler's hash of a module and the linker's of the program have the folder in
  # them.
  -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen -Xlinker --build-id=none
  # Nothing looks up a symbol of the programs by its name; of symbols that are exported, the linker keeps also what nobody
  # calls.
  -Xlinker --no-export-dynamic
)

# And with LLVM's linker, for C libraries that know short relocations (glibc 2.36 and later).
# shellcheck disable=SC2034 # used by the scripts that source this file
lld_options=(
  -Xswiftc -use-ld=lld
  # Short relocations: 0.6 MB that every start would read.
  -Xlinker -z -Xlinker pack-relative-relocs
  # The functions that a gateway runs are side by side: 2.5 MB less memory (scripts/function-order).
  -Xlinker "--symbol-ordering-file=$PWD/deploy/function-order" -Xlinker --no-warn-symbol-ordering
)

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# venv NAME REQUIREMENTS [OPTION…]: a virtual environment, made with these options, with what the file requires from PyPI;
# prints the path of its python. Cached outside the tree, made anew when the file changes.
venv() (
  venv=$CACHE/$1 wanted=$2
  shift 2
  mkdir -p "$CACHE"
  # Two tests may want it at once.
  exec 9>"$venv.lock"
  flock 9
  # The copy is made last: what is half made does not count.
  cmp -s "$wanted" "$venv/requirements.txt" || make_venv "$@" >&2
  say "$venv/bin/python"
)

make_venv() {
  rm -rf "$venv"
  "${PYTHON:-python3}" -m venv "$@" "$venv" ||
    fail "No virtual environment could be made in $venv: is python3-venv installed?"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$wanted" ||
    fail "What $wanted names could not be installed from PyPI into $venv: pip's own message is above."
  cp "$wanted" "$venv/requirements.txt"
}

# logged WHAT LOG COMMAND…: runs the command with its output in the log file. On a terminal one line shows how far it is.
# A failure shows the errors and the end of the log, says where all of it is, and returns the command's status.
logged() {
  local what=$1 log=$2 begin=$SECONDS status=0 ticker=
  shift 2
  mkdir -p "${log%/*}"
  : >"$log"
  printf '%s … ' "$what"
  if [ -t 1 ]; then
    show_progress "$what" "$log" &
    ticker=$!
  fi
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ -n "$ticker" ]; then
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    printf '\r\e[K%s … ' "$what"
  fi
  if [ $status = 0 ]; then
    say "done in $((SECONDS - begin)) s"
  else
    say "FAILED after $((SECONDS - begin)) s"
    {
      say "--- from $log, which has it all:"
      grep -E '^([^|]*: )?error: |expanded code originates|recorded an issue|Fatal error' -A 1 "$log" |
        awk '!seen[$0]++ && shown++ < 40' || true
      say "--- its end:"
      tail -n 15 "$log"
      say "---"
    } >&2
  fi
  return $status
}

# Runs beside the command; ends by itself should this script be killed.
show_progress() {
  local what=$1 log=$2 begin=$SECONDS width=${COLUMNS:-80} last
  while sleep 1 && kill -0 $$ 2>/dev/null; do
    # Not the log messages of programs under test, which mostly are of faults that are tested.
    last=$(tail -c 4000 "$log" | tr '\r' '\n' | sed -n '/^[0-9][0-9]:[0-9][0-9]:/! {/./h}; $ {x;p}')
    last="$what … $((SECONDS - begin)) s  $last"
    printf '\r\e[K%s' "${last:0:width-1}"
  done
}

# run_tests COMMAND…: `swift test` and its options, module by module, as all tests at once would exceed their time limits on
# a slow machine; three at a time (`lanes`), as some mostly wait, the longest first. Fails also if no test of a module has run.
run_tests() {
  local folder modules=(EndToEndTests) logs=.build/logs/modules status=0
  rm -rf $logs
  mkdir -p $logs
  for folder in Tests/*Tests; do
    [ "$folder" = Tests/EndToEndTests ] || modules+=("${folder#Tests/}")
  done
  export -f run_module tests_in say
  printf '%s\0' "${modules[@]}" |
    xargs -0 -P "${lanes:-3}" -I {} bash -c 'run_module "$@"' bash $logs/{} "$@" --filter '^{}\.' || status=1
  return $status
}

# run_module LOG COMMAND…: prints what it prints when it has ended.
run_module() {
  local log=$1 status=0
  shift
  "$@" --skip-build --ignore-lock --disable-xctest >"$log" 2>&1 </dev/null || status=1
  if [ "$(tests_in "$log")" = 0 ]; then
    say "error: No test of ${log##*/} has run: is it a target in Package.swift?" >>"$log"
    status=1
  fi
  cat "$log"
  return $status
}

# tests_in LOG: how many tests ran.
tests_in() { sed -n 's/.*Test run with \([0-9]*\) test.*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }'; }
