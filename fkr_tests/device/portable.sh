#!/usr/bin/env bash
# A program of the static preset needs glibc only, at most 2.35. usage: portable.sh PROGRAM
set -euo pipefail
[ -x "$1" ] || { echo "no program $1"; exit 1; }
allowed='^(linux-vdso|libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so'
if ldd "$1" | awk '{print $1}' | sed 's|.*/||' | grep -vE "$allowed"; then echo "needs a library besides glibc"; exit 1; fi
newest=$(objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -1)
printf '%s\n2.35\n' "$newest" | sort -VC || { echo "needs glibc $newest: $(objdump -T "$1" | grep "GLIBC_$newest")"; exit 1; }
echo "needs glibc $newest"
