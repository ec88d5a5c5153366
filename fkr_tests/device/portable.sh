#!/usr/bin/env bash
# A program of the static preset needs only glibc, at most 2.35. usage: portable.sh PROGRAM
set -eu
allowed='^(linux-vdso|libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so'
ldd "$1" | awk '{print $1}' | sed 's|.*/||' | grep -vE "$allowed" && { echo "needs a library besides glibc"; exit 1; }
newest=$(objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -1)
printf '%s\n2.35\n' "$newest" | sort -VC || { echo "needs glibc $newest: $(objdump -T "$1" | grep "GLIBC_$newest")"; exit 1; }
echo "needs glibc $newest"
