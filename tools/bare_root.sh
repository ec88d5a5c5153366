#!/usr/bin/env bash
# Builds and tests a clone of HEAD in a bare Debian root, as on a machine where nothing is installed.
#
#   tools/bare_root.sh SUITE [COMMAND]    SUITE: bookworm, trixie; COMMAND: './dev run && ./dev test' where none is given
#
# Needs mmdebstrap and a network; root or user namespaces. The root is deleted at the end. PTXKIT_MIRROR names a mirror.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=${1:?usage: tools/bare_root.sh SUITE [COMMAND]}
command=${2:-./dev run && ./dev test}
command -v mmdebstrap >/dev/null || { echo "bare_root.sh: mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 77; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone -q --depth 1 "file://$PWD" "$scratch/ptxkit"
printf '%s\n' '#!/bin/bash' 'cd /root/ptxkit' "$command" > "$scratch/ptxkit.sh"
chmod -R a+rX "$scratch"

mmdebstrap --variant=minbase --format=null \
  --customize-hook="copy-in '$scratch/ptxkit' '$scratch/ptxkit.sh' /root" \
  --customize-hook='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CI=true bash /root/ptxkit.sh' \
  "$suite" - ${PTXKIT_MIRROR:+"$PTXKIT_MIRROR"}
