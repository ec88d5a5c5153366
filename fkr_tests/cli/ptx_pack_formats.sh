#!/usr/bin/env bash
# Tests the formats that ptx-pack shares with other programs: flags, errors, damage, and agreement with these programs in
# both directions. usage: ptx_pack_formats.sh PROGRAM SECTION
# Exit: 0 passed, 1 failed, 77 skipped (something the section needs is absent).
set -u
pack=$1 section=$2
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
corpus=${PTXKIT_CORPUS:-$source_folder/../shared/corpus}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work"
. "$source_folder/fkr_tests/cli/pack_common.sh"

need() { command -v "$1" >/dev/null || { echo "SKIPPED: no $1 program (Debian package $2)"; exit 77; }; }
# Sizes around those at which blocks and ranges begin.
awkward_sizes="0 1 2 3 4 7 8 255 256 257 65535 65536 65791 65792 131071 131072 131073 524287 524288 524289 1048576 1500001"
# slice SIZE: as many bytes of ./input in ./raw.
slice() { head -c "$1" input >raw; }
# damage FILE OFFSET: changes the byte.
damage() {
  local byte; byte=$(od -An -tu1 -j "$2" -N1 "$1")
  printf "$(printf '\\x%02x' $((byte ^ 0x41)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# zstd_blocks FILE: how many blocks its frames have; encoders of libzstd cut differently.
zstd_blocks() {
  python3 - "$1" <<'PYTHON'
import sys
data = open(sys.argv[1], "rb").read()
at = blocks = 0
while at < len(data):
    magic = int.from_bytes(data[at:at + 4], "little")
    if magic >> 4 == 0x184D2A5:  # skippable
        at += 8 + int.from_bytes(data[at + 4:at + 8], "little")
        continue
    flags = data[at + 4]
    is_single, size_flag = flags >> 5 & 1, flags >> 6
    at += 5 + (not is_single) + (0, 1, 2, 4)[flags & 3] + ((is_single, 2, 4, 8)[size_flag])
    is_last = 0
    while not is_last:
        header = int.from_bytes(data[at:at + 3], "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == 1 else size)
        blocks += 1
    at += 4 * (flags >> 2 & 1)
print(blocks)
PYTHON
}

# Three million bytes: six ranges.
make_three_million() { make_input; seq 1 120000 | head -c $((3000000 - $(stat -c %s input))) >>input; }

section_zstd() {
  make_three_million
  expect 0 "$pack" --codec zstd input; silent; present input.zst
  mv input.zst a.zst
  expect 0 "$pack" -z --codec zstd -c input; same out a.zst
  expect 0 "$pack" -d a.zst; same a input
  expect 0 "$pack" -f a.zst; same a input  # .zst means decompress
  cp a.zst other; expect 0 "$pack" -dc other; same out input  # so does the magic number
  expect 0 "$pack" -dc <a.zst; same out input
  expect 0 "$pack" -t a.zst; silent
  expect 0 "$pack" -tvv a.zst; says "a.zst -> no errors"; says "libzstd"; says "1 frame, $(zstd_blocks a.zst) blocks"
  expect 0 "$pack" --list a.zst; lists a.zst 1 0 zstd "$(zstd_blocks a.zst)" content "$(stat -c %s a.zst)" 3000000
  expect 0 "$pack" --list -v a.zst
  for flags in -T1 -T2 -T7 "-T16 --memory 24M" "--prefetch 0" "--backend cpu" "--policy cpu" "--policy gpu"; do
    # shellcheck disable=SC2086
    expect 0 "$pack" --codec zstd $flags -c input; same out a.zst
    # shellcheck disable=SC2086
    expect 0 "$pack" -d $flags -c a.zst; same out input
  done
  expect 0 "$pack" --codec zstd -2 -c input; same out a.zst
  for level in 1 3; do expect 0 "$pack" --codec zstd -$level -c input; cmp -s out a.zst && fail "-$level changed nothing"; "$pack" -dc <out | cmp -s - input || fail "-$level"; done
  expect 0 "$pack" --codec zstd -c <input; same out a.zst  # its size is known
  cat input | "$pack" --codec zstd -c >piped; cat input | "$pack" -T5 --codec zstd -c | cmp -s - piped || fail "threads change the bytes"
  expect 0 "$pack" -dc piped; same out input; expect 0 "$pack" --list piped; lists piped 1 0 zstd "$(zstd_blocks piped)" content "$(stat -c %s piped)" - - piped
  expect 0 "$pack" --codec zstd --no-frame-crc -c input; [ "$(stat -c %s out)" = $(($(stat -c %s a.zst) - 4)) ] || fail "a checksum has 4 bytes"
  "$pack" -dc <out | cmp -s - input || fail "without a checksum"
  expect 0 "$pack" --codec zstd --no-content-size -c input; "$pack" -dc <out | cmp -s - input || fail "without a size"; same out piped
  expect 0 "$pack" --codec zstd --verify --rm input -o v.zst; absent input; expect 0 "$pack" -d --rm v.zst -o input; absent v.zst; same a input
  mkdir -p t/u; cp input t/x; cp input t/u/y; expect 0 "$pack" --codec zstd -r --rm t; present t/x.zst t/u/y.zst; absent t/x t/u/y
  expect 0 "$pack" -d -r --rm t; same t/x input; same t/u/y input; absent t/x.zst t/u/y.zst
  expect 0 "$pack" --codec zstd -m input t/x; present input.zst t/x.zst; cat input.zst t/x.zst input.zst >three.zst
  expect 0 "$pack" -dc three.zst; cat input input input | cmp -s - out || fail "three frames"
  : >empty; expect 0 "$pack" --codec zstd empty; expect 0 "$pack" -dc empty.zst; [ ! -s out ] || fail "an empty file"
  # The seekable format: a range reads its frames only.
  expect 0 "$pack" --codec zstd --seekable -c input; cp out s.zst; expect 0 "$pack" -T1 --memory 24M --codec zstd --seekable -c input; same out s.zst
  cat input | "$pack" --codec zstd --seekable -c | cmp -s - s.zst || fail "a pipe changes the bytes"
  expect 0 "$pack" -dc s.zst; same out input; expect 0 "$pack" --list s.zst; lists s.zst 6 1 zstd "$(zstd_blocks s.zst)" content
  for file in a.zst s.zst; do
    for range in 0:1 524287:524289 1234567: :10 2999999:3000000 0:3000000 :; do
      begin=${range%:*} end=${range#*:}
      expect 0 "$pack" --range "$range" $file
      tail -c +$((${begin:-0} + 1)) input | head -c $((${end:-3000000} - ${begin:-0})) | cmp -s - out || fail "range $range of $file"
    done
    expect 1 "$pack" --range 0:3000001 $file -o none; says "$file: the range begins or ends beyond the 3000000 bytes"; absent none
    expect 1 "$pack" --range 3000000: $file -o none; says "beyond the 3000000 bytes"; absent none
  done
  cp s.zst bad.zst; damage bad.zst 600  # in the first frame
  expect 0 "$pack" --range 2000000:2000100 bad.zst; tail -c +2000001 input | head -c 100 | cmp -s - out || fail "range behind the damage"
  expect 1 "$pack" --range 0:10 bad.zst -o none; says "bad.zst, frame 0"; absent none
  cp s.zst bad.zst; damage bad.zst $(($(stat -c %s bad.zst) - 13))  # the table's raw size of the last frame
  expect 1 "$pack" --range 2800000: bad.zst -o none; says "frame 5 has 378560 bytes, the seek table says"; says "decompress the whole file"; absent none
  expect 0 "$pack" -t bad.zst
  cp s.zst bad.zst; damage bad.zst $(($(stat -c %s bad.zst) - 53))  # of the first frame
  expect 1 "$pack" --range 2800000:2900000 bad.zst -o none; says "frame 0 has 524288 bytes, the seek table says"; absent none
  expect 0 "$pack" -t bad.zst
  cp s.zst bad.zst; damage bad.zst $(($(stat -c %s bad.zst) - 17))  # its stored size
  expect 1 "$pack" --range 5:6 bad.zst -o none; says "the seek table is damaged: its frames have"
  cp s.zst bad.zst; damage bad.zst $(($(stat -c %s bad.zst) - 7))
  expect 1 "$pack" --range 5:6 bad.zst -o none; says "the seek table is damaged: "; says "do not fit a file of"
  # Tables with a frame more than the file has: of its last frame's last 4 bytes, and of none.
  python3 - <<'EDIT'
import struct
whole = open("s.zst", "rb").read()
count = struct.unpack("<I", whole[-9:-5])[0]
entries = list(struct.iter_unpack("<II", whole[-9 - 8 * count:-9]))
for name, less in (("bad.zst", 4), ("zero.zst", 0)):
    table = entries[:-1] + [(entries[-1][0] - less, entries[-1][1]), (less, 1000)]
    table = b"".join(struct.pack("<II", *entry) for entry in table)
    with open(name, "wb") as file:
        file.write(whole[:-17 - 8 * count] + struct.pack("<II", 0x184D2A5E, len(table) + 9) + table +
                   struct.pack("<IB", count + 1, 0) + whole[-4:])
EDIT
  for range in 2800000:3000001 2800000:; do
    expect 1 "$pack" --range "$range" bad.zst -o none; says "bad.zst: frame 5 has "; says "stored bytes, the seek table says"; absent none
  done
  expect 1 "$pack" --range 5:6 zero.zst -o none; says "zero.zst: the seek table is damaged: frame 6 has 0 bytes"; absent none
  seek_tables
  # What is not there is refused.
  expect 2 "$pack" --codec zstd -B4 input; says "-B and --reproducible are for lz4, not for zstd"
  expect 2 "$pack" --codec zstd --reproducible input; says "not for zstd"
  expect 2 "$pack" --codec zstd -3 --backend emulator input; says "--backend emulator has no zstd -3"
  expect 2 "$pack" --codec zstd -b input; says "-b measures LZ4 and not zstd"
  expect 2 "$pack" --codec zstd -1 -3 input; says "-3 and -1 or -2 exclude each other"
  expect 2 "$pack" --seekable input; says "--seekable is for --codec zstd"
  expect 2 "$pack" --codec zstd --seekable -d a.zst; says "--seekable is for compression"
  expect 2 "$pack" --codec zstd --seekable --no-content-size input; says "exclude each other"
  expect 2 "$pack" --codec zst input; says "--codec: expected lz4, zstd, gzip, lzr, "; says "found 'zst'"
  expect 2 "$pack" --auto --seekable input; says "are for a codec that --codec names"
  expect 1 "$pack" --codec zstd -t input; says "input, frame 0, byte 0: not a Zstandard frame: expected the magic number 0xfd2fb528"
  expect 0 "$pack" --list-codecs; prints "zstd           .zst"
  expect 0 "$pack" --codec zstd -3 --policy gpu -c input; says "using the CPU: there are no kernels for zstd -3"
  expect 0 "$pack" --codec zstd -3 --policy gpu -qc input; silent
  # The kernels, on the emulator: files that zstd reads, and files that zstd has written.
  head -c 700000 input >part
  for level in 1 2; do
    expect 0 "$pack" --codec zstd -$level --backend emulator -f part -o part.zst
    expect 0 "$pack" -d part.zst -c; same out part
    command -v zstd >/dev/null && { zstd -dqc part.zst | cmp - part || fail "zstd reads what kernels wrote at -$level"; }
  done
  expect 0 "$pack" --codec zstd --seekable -f part -o part.zst
  expect 0 "$pack" --backend emulator -d part.zst -c; same out part
  expect 0 "$pack" -vv --backend emulator -t part.zst; says "PTX emulator"
}

# Files with tables that lie, and some that do not: --range gives the bytes of -d, or an error.
seek_tables() {
  local file range begin
  python3 - "$pack" <<'MAKE'
import random, struct, subprocess, sys
def pack(raw, *flags):
    return subprocess.run([sys.argv[1], "--codec", "zstd", "-c", *flags], input=raw, stdout=subprocess.PIPE, check=True).stdout
def piped(raw):  # of unknown size
    return subprocess.run(["sh", "-c", 'cat | "$0" --codec zstd -c', sys.argv[1]], input=raw, stdout=subprocess.PIPE, check=True).stdout
def sized(raw):
    with open("part", "wb") as file:
        file.write(raw)
    return pack(b"", "part")
def skippable(content, magic=0x184D2A53):
    return struct.pack("<II", magic, len(content)) + content
def write(name, frames, entries):
    table = b"".join(struct.pack("<II", *each) for each in entries)
    with open(name, "wb") as file:
        file.write(b"".join(frames) + skippable(table + struct.pack("<IBI", len(entries), 0, 0x8F92EAB1), 0x184D2A5E))
random.seed(1)
raws = [letter * 50 + bytes(range(at, at + 50)) for letter, at in ((b"A", 0), (b"B", 50), (b"C", 100))]
a, b, c = frames = [sized(raw) for raw in raws]
x, y, z = unsized = [piped(raw) for raw in raws]
assert all(frame[4] >> 6 or frame[4] & 32 for frame in frames) and not any(frame[4] >> 6 or frame[4] & 32 for frame in unsized)
n = len
write("true.zst", frames, [(n(each), 100) for each in frames])
write("true_unsized.zst", unsized, [(n(each), 100) for each in unsized])
write("true_skippable.zst", [skippable(b"front"), a, b, skippable(b""), c], [(13, 0), (n(a), 100), (n(b), 100), (8, 0), (n(c), 100)])
write("two_in_one.zst", frames, [(n(a) + n(b), 100), (n(c), 100)])
write("part_of_one.zst", frames, [(n(a) - 5, 100), (5 + n(b), 0), (n(c), 100)])
write("ends_inside.zst", frames, [(n(a) + 7, 100), (n(b) - 7, 100), (n(c), 100)])
write("wrong_unsized.zst", unsized, [(n(x), 40), (n(y), 100), (n(z), 100)])
write("zero_unsized.zst", [x, b, c], [(n(x), 0), (n(b), 100), (n(c), 100)])
write("raw_of_skippable.zst", [skippable(b"front"), a, b], [(13, 100), (n(a), 100), (n(b), 100)])
write("hidden_in_skippable.zst", [skippable(a), b, c], [(8, 0), (n(a), 100), (n(b), 100), (n(c), 100)])
write("skippable_and_frame.zst", [skippable(b"front"), a, b, c], [(13 + n(a), 0), (n(b), 100), (n(c), 100)])
MAKE
  for file in true true_unsized true_skippable; do
    for range in 0:100 100:200 150:250 200:300 250: 0:300; do expect 0 "$pack" --range $range $file.zst; done
  done
  for file in true*.zst two*.zst part_*.zst ends*.zst wrong*.zst zero_*.zst raw_*.zst hidden*.zst skippable*.zst; do
    "$pack" -dc "$file" >whole || fail "$file is not a file of frames"
    for range in 0:100 0:1 40:60 50:120 100:150 100:200 140:200 150:200 199:200 200:300 100: 150: 200:; do
      begin=${range%:*}
      "$pack" --range $range "$file" >out 2>err || { [ -s err ] || fail "--range $range of $file fails without a word"; continue; }
      tail -c +$((begin + 1)) whole | head -c $((${range#*:} - begin)) >expected
      [ -n "${range#*:}" ] || tail -c +$((begin + 1)) whole >expected
      cmp -s out expected || fail "--range $range of $file is not what -d gives"
    done
  done
  for file in two_in_one part_of_one ends_inside skippable_and_frame; do
    expect 1 "$pack" --range 100:150 $file.zst; says "$file.zst: frame 0 has "; says "stored bytes, the seek table says"
  done
}

section_zstd_corrupt() {
  make_three_million
  "$pack" -q --codec zstd input -o a.zst; size=$(stat -c %s a.zst)
  for length in 0 1 3 4 5 9 10 13 100 70000 $((size - 5)) $((size - 4)) $((size - 1)); do
    head -c "$length" a.zst >cut.zst
    expect 1 "$pack" -d cut.zst; says "cut.zst, frame 0"; says "truncated"; absent cut
  done
  for at in 0 4 7 9 10 11 13 5000 200000 $((size / 2)) $((size - 1)); do
    cp a.zst bad.zst; damage bad.zst "$at"
    expect 1 "$pack" -t bad.zst; says "bad.zst, frame 0"
    expect 1 "$pack" -d bad.zst; absent bad
  done
  says "checksum mismatch"
  cat a.zst a.zst >b.zst; damage b.zst $((size + 13))  # where the literals begin
  expect 1 "$pack" -t b.zst; says "b.zst, frame 1, block 0, byte $((size + 10)): corrupt block: "
  cat a.zst <(echo garbage) >tail.zst
  expect 1 "$pack" -t tail.zst; says "frame 1, byte $size: not a Zstandard frame"; says "remove what follows the last frame"
  # A range that is open at its end is not there if the end is not.
  head -c $((size - 100)) a.zst >cut.zst
  expect 1 "$pack" --range 5: cut.zst -o none; says "truncated"; absent none
  "$pack" -q input -o a.lz4; head -c 500000 a.lz4 >cut.lz4
  expect 1 "$pack" --range 5: cut.lz4 -o none; says "truncated"; absent none
  # A reserved bit, a window beyond the limit, a dictionary, a reserved block, a block that is too long.
  printf '\x28\xb5\x2f\xfd\x08\x58\x01\x00\x00' >h.zst; expect 1 "$pack" -t h.zst; says "h.zst, frame 0, byte 4: a reserved bit"
  printf '\x28\xb5\x2f\xfd\x00\x89\x01\x00\x00' >h.zst; expect 1 "$pack" -t h.zst; says "a window of 150994944 bytes, expected at most 134217728"
  printf '\x28\xb5\x2f\xfd\x02\x58\x34\x12\x01\x00\x00' >h.zst; expect 1 "$pack" -t h.zst; says "the frame needs the dictionary 0x1234"
  printf '\x28\xb5\x2f\xfd\x00\x58\x07\x00\x00' >h.zst; expect 1 "$pack" -t h.zst; says "frame 0, block 0, byte 6: a block of the reserved kind 3"
  printf '\x28\xb5\x2f\xfd\x00\x00\x05\x00\x00' >h.zst; expect 1 "$pack" -t h.zst; says "frame 0, block 0, byte 6: a compressed block of 0 bytes"
  printf '\x28\xb5\x2f\xfd\x00\x58\x03\x00\x20a' >h.zst; expect 1 "$pack" -t h.zst; says "a block of 262144 bytes, expected at most 131072"
  printf '\x28\xb5\x2f\xfd\x00\x58\x01\x00\x00' >h.zst; expect 0 "$pack" -dc h.zst; [ ! -s out ] || fail "an empty frame"
  printf '\x28\xb5\x2f\xfd\x60\x00\x02\x02\x00\x10a' >h.zst; expect 1 "$pack" -t h.zst; says "a block of 131072 bytes, expected at most 768"
  # A bomb: a frame of repeated bytes claims less than it holds.
  python3 -c 'import sys; sys.stdout.buffer.write(b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10a" * 100000 + b"\x01\x00\x00")' >bomb.zst
  expect 0 "$pack" -t --memory 24M bomb.zst; "$pack" -dc --memory 24M bomb.zst | wc -c | grep -qx 13107200000 || fail "the content of the bomb"
}

section_zstd_interop() {
  need zstd zstd
  make_input
  for size in $awkward_sizes; do
    slice "$size"
    for flags in -1 -2 -3 --no-frame-crc --seekable; do
      expect 0 "$pack" --codec zstd $flags -c raw; cp out ours.zst
      zstd -dqc ours.zst | cmp -s - raw || fail "zstd does not read $size bytes with $flags"
      "$pack" --codec zstd $flags -c <raw | zstd -dqc | cmp -s - raw || fail "zstd does not read a stream of $size bytes with $flags"
    done
    for flags in -1 -5 --no-check "--no-content-size" "--rsyncable -T2" "--zstd=wlog=10"; do
      # shellcheck disable=SC2086
      zstd -qcf $flags raw >theirs.zst
      expect 0 "$pack" -dc theirs.zst; same out raw
    done
    zstd -qc <raw >theirs.zst; expect 0 "$pack" -dc <theirs.zst; same out raw
  done
  # Windows beyond a batch, and beyond the budget; frames after one another; skippable frames.
  cat input input input input >big; for flags in -1 -3 -19 "-3 --long=27" "--ultra -22" "-9 -T2 --no-content-size"; do
    # shellcheck disable=SC2086
    zstd -qcf $flags big >theirs.zst
    for more in -T1 -T2 "-T8 --prefetch 0"; do expect 0 "$pack" $more -dc theirs.zst; same out big; done
    expect 0 "$pack" --list theirs.zst; prints "zstd"
  done
  zstd -qc --long=27 <big >long.zst; expect 0 "$pack" --memory 200M -dc long.zst; same out big
  expect 1 "$pack" --memory 64M -t long.zst; says "long.zst, frame 0, byte 0: a window of 134217728 bytes needs"; says "raise the budget"
  zstd -qc --long=28 <big >long.zst; expect 1 "$pack" -t long.zst; says "expected at most 134217728"
  head -c 1000 input >small; zstd -qcf small >s.zst
  { printf '\x50\x2a\x4d\x18\x04\x00\x00\x00abcd'; cat s.zst theirs.zst; printf '\x5f\x2a\x4d\x18\x05\x00\x00\x00abcde'; for _ in $(seq 1500); do cat s.zst; done; } >all
  { cat small big; for _ in $(seq 1500); do cat small; done; } >expected
  for flags in "" -T1 "--memory 32M"; do expect 0 "$pack" $flags -dc all; same out expected; expect 0 "$pack" $flags -dc <all; same out expected; done
  expect 0 "$pack" --list all; lists all 1502 2 zstd
  if command -v pzstd >/dev/null; then pzstd -q -p 2 -c big >p; expect 0 "$pack" -dc <p; same out big; fi
  zstd -q --train -B500 input -o dictionary 2>/dev/null && {
    zstd -qcf -D dictionary small >d.zst; expect 1 "$pack" -t d.zst; says "the frame needs the dictionary"; }
}

section_zstd_corpus() {
  need zstd zstd
  [ -d "$corpus" ] || { echo "SKIPPED: no corpus: set PTXKIT_CORPUS to a folder of files"; exit 77; }
  local file level
  for file in "$corpus"/*; do
    for level in 1 2 3; do
      "$pack" -q --codec zstd -$level -c "$file" | zstd -dqc | cmp -s - "$file" || fail "zstd does not read $file, -$level"
    done
    "$pack" -q --codec zstd --seekable -c "$file" | zstd -dqc | cmp -s - "$file" || fail "zstd does not read $file, seekable"
    for level in -1 -3 -9 --fast=5; do
      zstd -qc $level "$file" | "$pack" -dc | cmp -s - "$file" || fail "ptx-pack does not read $file, zstd $level"
    done
  done
}

section_gzip() {
  make_three_million
  expect 0 "$pack" --codec gzip input; silent; present input.gz
  mv input.gz a.gz
  expect 0 "$pack" -z --codec gzip -c input; same out a.gz
  expect 0 "$pack" -d a.gz; same a input
  expect 0 "$pack" -f a.gz; same a input  # .gz means decompress
  cp a.gz other; expect 0 "$pack" -dc other; same out input  # so do the first bytes
  expect 0 "$pack" -dc <a.gz; same out input
  expect 0 "$pack" -t a.gz; silent
  expect 0 "$pack" -tvv a.gz; says "a.gz -> no errors"; says "47 members"; says "libdeflate"
  expect 0 "$pack" --list a.gz; lists a.gz 47 0 gzip 47 content "$(stat -c %s a.gz)" 3000000
  for flags in -T1 -T2 -T7 "-T16 --memory 24M" "--prefetch 0" "--backend cpu" "--policy gpu"; do
    # shellcheck disable=SC2086
    expect 0 "$pack" --codec gzip $flags -c input; same out a.gz
    # shellcheck disable=SC2086
    expect 0 "$pack" -d $flags -c a.gz; same out input
  done
  expect 0 "$pack" --codec gzip -2 -c input; same out a.gz
  cat input | "$pack" --codec gzip -c | cmp -s - a.gz || fail "a pipe changes the bytes"
  for level in 1 3; do expect 0 "$pack" --codec gzip -$level -c input; cp out level$level; "$pack" -dc level$level | cmp -s - input || fail "-$level"; done
  cmp -s level1 a.gz && fail "-1 changed nothing"
  cmp -s level3 a.gz && fail "-3 changed nothing"
  expect 0 "$pack" --codec gzip --verify --rm input -o v.gz; absent input; expect 0 "$pack" -d --rm v.gz -o input; absent v.gz; same a input
  mkdir -p t/u; cp input t/x; cp input t/u/y; expect 0 "$pack" --codec gzip -r --rm t; present t/x.gz t/u/y.gz; absent t/x t/u/y
  expect 0 "$pack" -d -r --rm t; same t/x input; same t/u/y input; absent t/x.gz t/u/y.gz
  cat a.gz a.gz >two.gz; expect 0 "$pack" -dc two.gz; cat input input | cmp -s - out || fail "two files"
  : >empty; expect 0 "$pack" --codec gzip empty; [ "$(stat -c %s empty.gz)" = 28 ] || fail "an empty file is the last member of BGZF"
  expect 0 "$pack" -dc empty.gz; [ ! -s out ] || fail "an empty file"
  for range in 0:1 65279:65281 1234567: :10 2999999:3000000 0:3000000 :; do
    begin=${range%:*} end=${range#*:}
    expect 0 "$pack" --range "$range" a.gz
    tail -c +$((${begin:-0} + 1)) input | head -c $((${end:-3000000} - ${begin:-0})) | cmp -s - out || fail "range $range"
  done
  expect 1 "$pack" --range 0:3000001 a.gz -o none; says "beyond the 3000000 bytes"; absent none
  # Behind the last member: zeros are padding, other bytes give a warning, as with gzip.
  { cat a.gz; head -c 300000 /dev/zero; } >padded.gz; expect 0 "$pack" -dc padded.gz; silent; same out input
  # Zeros may be padding; a member behind them that is not read keeps the file.
  { cat a.gz; head -c 10 /dev/zero; cat a.gz; } >two.gz
  expect 0 "$pack" -q -d --rm -f two.gz; silent; present two.gz
  expect 0 "$pack" -d --rm -f two.gz; says "bytes behind the last member are ignored; the file is not removed"; present two.gz
  { cat a.gz; head -c 10 /dev/zero; } >padded.gz; expect 0 "$pack" -d --rm -f padded.gz; silent; absent padded.gz
  { cat a.gz; printf 'junk'; } >tail.gz; expect 0 "$pack" -dc tail.gz; same out input; says "tail.gz, byte $(stat -c %s a.gz): 4 bytes behind the last member are ignored"
  expect 0 "$pack" -q -t tail.gz; silent; expect 0 "$pack" --list tail.gz
  # Cut behind a member, as gzip files may end; within the next one.
  first=$(($(od -An -tu2 -j16 -N2 a.gz) + 1)); head -c $first a.gz >cut.gz
  expect 0 "$pack" -t cut.gz; says "cut.gz, byte $first: the empty member that ends BGZF is missing"
  expect 0 "$pack" -d --rm -f cut.gz; says "the file is not removed"; present cut.gz; head -c 65280 input | cmp -s - cut || fail "the first member"
  head -c $((first + 1)) a.gz >cut.gz; expect 1 "$pack" -t cut.gz; says "truncated: expected a member, found 1 byte of it"
  # What is not there is refused.
  expect 2 "$pack" --codec gzip -B4 input; says "-B and --reproducible are for lz4, not for gzip"
  expect 2 "$pack" --codec gzip --no-frame-crc input; says "are for lz4 and zstd, not for gzip"
  expect 2 "$pack" --codec gzip --seekable input; says "--seekable is for --codec zstd"
  expect 2 "$pack" --codec gzip -3 --backend emulator input; says "--backend emulator has no gzip -3"
  expect 0 "$pack" --codec gzip -3 --policy gpu -c input; says "using the CPU: there are no kernels for gzip -3"
  # The kernels, on the emulator: files that gzip reads, and files of libdeflate.
  head -c 300000 input >part
  for level in 1 2; do
    expect 0 "$pack" --codec gzip -$level --backend emulator -f part -o part.gz
    expect 0 "$pack" -d part.gz -c; same out part
    gzip -dc part.gz | cmp - part || fail "gzip reads what kernels wrote at -$level"
  done
  expect 0 "$pack" --codec gzip -3 -f part -o part.gz
  expect 0 "$pack" --backend emulator -d part.gz -c; same out part
  expect 0 "$pack" -vv --backend emulator -t part.gz; says "PTX emulator"
  expect 2 "$pack" --codec gzip -b input; says "-b measures LZ4 and not gzip"
  expect 1 "$pack" --codec gzip -t input; says "input, member 0, byte 0: not a gzip member: expected the bytes 1f 8b, found 31 0a"
  expect 0 "$pack" --list-codecs; prints "gzip           .gz"
}

section_gzip_corrupt() {
  need gzip gzip
  make_three_million
  "$pack" -q --codec gzip input -o ours.gz; gzip -c input >theirs.gz
  for kind in ours theirs; do
    size=$(stat -c %s $kind.gz)
    for length in 0 1 9 10 17 100 70000 $((size - 9)) $((size - 8)) $((size - 1)); do
      head -c "$length" $kind.gz >cut.gz
      [ "$kind $length" = "ours $((size - 28))" ] && continue
      expect 1 "$pack" -d cut.gz; says "cut.gz, member"; says "truncated"; absent cut
    done
    for at in 0 1 2 3 5000 200000 $((size / 2)) $((size - 31)) $((size - 5)) $((size - 1)); do
      cp $kind.gz bad.gz; damage bad.gz "$at"
      expect 1 "$pack" -t bad.gz; says "bad.gz, member"
      expect 1 "$pack" -d bad.gz; absent bad
    done
  done
  cp theirs.gz bad.gz; damage bad.gz $((size - 5)); expect 1 "$pack" -t bad.gz; says "bad.gz, member 0, byte 0: CRC-32 mismatch of the content"
  cp theirs.gz bad.gz; damage bad.gz $((size - 1)); expect 1 "$pack" -t bad.gz; says "the member has 3000000 bytes, its end says"
  cp theirs.gz bad.gz; damage bad.gz 2; expect 1 "$pack" -t bad.gz; says "method 73 is unknown, expected 8 (deflate)"
  cp theirs.gz bad.gz; damage bad.gz 3; damage bad.gz 3; printf '\x20' | dd of=bad.gz bs=1 seek=3 conv=notrunc status=none
  expect 1 "$pack" -t bad.gz; says "reserved flags of the header are set: 0x20"
  # A bomb of zeros; many empty members.
  head -c 1000000000 /dev/zero | gzip -1 >bomb.gz; "$pack" -dc --memory 24M bomb.gz | wc -c | grep -qx 1000000000 || fail "the bomb"
  : | gzip >e.gz; for _ in $(seq 2000); do cat e.gz; done >many.gz; for _ in $(seq 5); do cat many.gz; done >more.gz
  expect 0 "$pack" -dc more.gz; [ ! -s out ] || fail "empty members"
}

section_gzip_interop() {
  need gzip gzip; need bgzip tabix; need pigz pigz
  make_input
  local size flags level
  for size in $awkward_sizes 65279 65280 65281 130560 130561; do
    slice "$size"
    for level in 1 2 3; do
      expect 0 "$pack" --codec gzip -$level -c raw; cp out ours.gz
      for reader in "gzip -dc" "bgzip -dc" "pigz -dc"; do
        $reader <ours.gz 2>err | cmp -s - raw || fail "$reader does not read $size bytes, -$level"
      done
      python3 -c 'import gzip, sys; sys.exit(gzip.open("ours.gz").read() != open("raw", "rb").read())' || fail "Python does not read $size bytes"
    done
    bgzip -t ours.gz 2>err || fail "bgzip -t: $size bytes"
    for writer in "gzip -1" "gzip -9" "bgzip" "pigz -p2 -b 128" "pigz -11 -p1"; do
      [ "$writer" = "pigz -11 -p1" ] && [ "$size" -gt 70000 ] && continue
      $writer -c <raw >theirs.gz
      expect 0 "$pack" -dc theirs.gz; same out raw
      expect 0 "$pack" -T1 -dc <theirs.gz; same out raw
    done
  done
  # A name, a comment, an extra field, a header CRC; members of all kinds one after another.
  python3 - <<'PY'
import struct, zlib
raw = open("input", "rb").read()
def member(data, flags, fields):
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    header = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff" + fields
    if flags & 2:
        header += struct.pack("<H", zlib.crc32(header) & 0xffff)
    return header + deflate.compress(data) + deflate.flush() + struct.pack("<II", zlib.crc32(data), len(data))
extra = struct.pack("<H", 9) + b"XY\x05\x00abcde"
parts = [member(raw, 0, b""), member(raw[:10], 4, extra), member(raw, 8, b"name\0"), member(raw[:5], 16, b"a comment\0"),
         member(raw, 31, extra + b"n\0c\0"), member(b"", 8, b"x" * 70000 + b"\0")]
open("all.gz", "wb").write(b"".join(parts))
open("expected", "wb").write(raw + raw[:10] + raw + raw[:5] + raw)
open("long.gz", "wb").write(member(raw, 8, b"x" * 140000 + b"\0"))
PY
  gzip -dc all.gz 2>/dev/null | cmp -s - expected || fail "gzip reads the members itself"
  { cat all.gz; bgzip -c <input; pigz -c <input; cat all.gz; } >mixed.gz; cat expected input input expected >mixed
  for flags in -T1 -T4 "--memory 24M"; do
    # shellcheck disable=SC2086
    expect 0 "$pack" $flags -dc mixed.gz; same out mixed
  done
  expect 1 "$pack" -t long.gz; says "long.gz, member 0, byte 0: a header of more than 131072 bytes"
}

section_gzip_corpus() {
  need gzip gzip; need bgzip tabix; need pigz pigz
  [ -d "$corpus" ] || { echo "SKIPPED: no corpus: set PTXKIT_CORPUS to a folder of files"; exit 77; }
  local file level
  for file in "$corpus"/*; do
    for level in 1 2 3; do
      "$pack" -q --codec gzip -$level -c "$file" | tee out.gz | gzip -dc | cmp -s - "$file" || fail "gzip does not read $file, -$level"
      bgzip -t out.gz || fail "bgzip -t: $file, -$level"
    done
    pigz -dc out.gz | cmp -s - "$file" || fail "pigz does not read $file"
    for writer in "gzip -1" "gzip -6" bgzip pigz; do
      $writer -c <"$file" | "$pack" -dc | cmp -s - "$file" || fail "ptx-pack does not read $file of $writer"
    done
  done
}

"section_$section"
[ $failures = 0 ] && echo "passed: $section"
exit $((failures != 0))
