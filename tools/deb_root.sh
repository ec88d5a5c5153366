#!/usr/bin/env bash
# Installs the built Debian packages in a bare root and runs the programs there on real input (tools/deb_check.sh).
#
#   tools/deb_root.sh SUITE [FOLDER]    SUITE: bookworm; FOLDER: where the packages are; build-package where none is given
#
# Needs mmdebstrap and a network; root or user namespaces. The root is deleted at the end. PTXKIT_MIRROR names a mirror.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=${1:?usage: tools/deb_root.sh SUITE [FOLDER]}
folder=${2:-build-package}
command -v mmdebstrap >/dev/null || { echo "deb_root.sh: mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 77; }
ls "$folder"/*.deb >/dev/null || { echo "deb_root.sh: no package in $folder: cmake --preset package && cmake --build build-package --target packages" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/input"
cp "$folder"/*.deb tools/deb_check.sh fkr_tests/golden/lz4_decompress.sm_75.ptx docs/examples/misaligned_cursor.ptx LICENSE "$scratch/input"
chmod -R a+rX "$scratch"

mmdebstrap --variant=apt --format=null \
  --customize-hook="copy-in '$scratch/input' /root" \
  --customize-hook='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash /root/input/deb_check.sh /root/input' \
  "$suite" - ${PTXKIT_MIRROR:+"$PTXKIT_MIRROR"}
