#!/usr/bin/env bash
# Builds a clone of HEAD for 64-bit Arm in a bare Debian 12 root, and runs its tests under qemu-user.
#
#   tools/cross_root.sh [CTEST_ARGUMENTS...]
#
# The kernels' images come from ./dev build of this folder, since they do not depend on the machine. Needs mmdebstrap and
# a network; root. The root is deleted at the end. PTXKIT_MIRROR names a mirror.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v mmdebstrap >/dev/null || { echo "cross_root.sh: mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 77; }
images=build/generated/kernels/images_data.cpp
[ -f $images ] || { echo "cross_root.sh: $images is missing: run ./dev build" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone -q --depth 1 "file://$PWD" "$scratch/ptxkit"
mkdir -p "$scratch/ptxkit/native/generated/kernels"
cp $images "$scratch/ptxkit/native/generated/kernels/"
cat >"$scratch/ptxkit.sh" <<SCRIPT
set -e
cd /root/ptxkit
cmake --preset aarch64 -DPTXKIT_KERNELS_OF=/root/ptxkit/native
cmake --build build-aarch64 -j $(nproc)
ctest --test-dir build-aarch64 -j $(nproc) --output-on-failure $*
SCRIPT
chmod -R a+rX "$scratch"
packages=(build-essential crossbuild-essential-arm64 cmake ninja-build ccache python3 qemu-user-static libexpected-dev libcli11-dev
  nlohmann-json3-dev libfmt-dev:arm64 liblz4-dev:arm64 libxxhash-dev:arm64 libzstd-dev:arm64 libdeflate-dev:arm64 zlib1g-dev:arm64
  libgtest-dev:arm64 libgmock-dev:arm64 librapidcheck-dev:arm64)
mmdebstrap --variant=minbase --format=null --architectures=amd64,arm64 --include="$(IFS=,; echo "${packages[*]}")" \
  --customize-hook="copy-in '$scratch/ptxkit' '$scratch/ptxkit.sh' /root" \
  --customize-hook='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CI=true bash /root/ptxkit.sh' \
  bookworm - ${PTXKIT_MIRROR:+"$PTXKIT_MIRROR"}
