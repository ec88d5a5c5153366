# Functions shared by the scripts that test ptx-pack: expectations on a command, its outputs and the working directory.
# Source it from a script that has changed into an empty directory.
# shellcheck shell=bash
failures=0
export LC_ALL=C.UTF-8  # $'\u2028' in a script is a character only there

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# expect CODE COMMAND...: runs the command, keeps its outputs in ./out and ./err, and compares the exit status.
expect() {
  local code=$1 found; shift
  "$@" >out 2>err; found=$?
  [ "$found" = "$code" ] || { fail "expected exit $code, found $found: $*"; head -c 500 err; }
}
says() { grep -qF -- "$1" err || { fail "expected on standard error: $1"; head -c 500 err; }; }
prints() { grep -qF -- "$1" out || { fail "expected on standard output: $1"; head -c 500 out; }; }
silent() { [ ! -s err ] || { fail "expected nothing on standard error"; head -c 500 err; }; }
# lists NAME WORD...: the line of NAME in ./out contains these words in this order.
lists() {
  local name=$1 line; shift
  line=$(grep -F -- "  $name" out | tr -s ' ')
  [[ "$line " == " $* "* ]] || fail "expected of $name: $*; found:$line"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
absent() { for f in "$@"; do [ ! -e "$f" ] || fail "$f should not exist"; done; }
present() { for f in "$@"; do [ -e "$f" ] || fail "$f should exist"; done; }
only() { [ "$(ls -A | tr '\n' ' ')" = "$* " ] || fail "expected files: $*; found: $(ls -A | tr '\n' ' ')"; }
need_lz4() { command -v lz4 >/dev/null || { echo "SKIPPED: no lz4 program (Debian package lz4)"; exit 77; }; }

# 3 MB: text-like bytes, zeros, noise, and a distant repetition.
make_input() {
  seq 1 120000 >input
  head -c 700000 /dev/zero >>input
  head -c 500000 /dev/urandom >noise
  cat noise noise >>input && rm noise
}

# For sections that need another user.
need_root() { [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo "SKIPPED: needs root and setpriv (Debian package util-linux)"; exit 77; }; }
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
