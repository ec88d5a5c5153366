#!/usr/bin/env bash
# Every program opens a file on each standard descriptor that its parent closed, before it opens anything else.
# usage: closed_descriptors.sh PROGRAM...
# Exit: 0 passed, 1 failed, 77 skipped (no strace, or it may not trace here).
set -u
strace -qq -o /dev/null true 2>/dev/null || { echo "SKIPPED: strace (Debian package strace) is absent or may not trace here"; exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failures=0
for program in "$@"; do
  timeout 60 strace -f -qq -e trace=open,openat -o "$work/calls" bash -c 'exec "$0" --help <&- >&- 2>&-' "$program"
  [ $? -lt 124 ] || { echo "FAILED: $program does not end by itself"; failures=1; }
  for descriptor in 0 1 2; do
    grep -qE "\"/dev/null\".*= $descriptor\$" "$work/calls" || { echo "FAILED: $program leaves descriptor $descriptor closed"; failures=1; }
  done
done
[ $failures = 0 ] && echo "passed: $# programs"
exit $failures
