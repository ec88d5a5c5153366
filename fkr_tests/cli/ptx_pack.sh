#!/usr/bin/env bash
# Tests ptx-pack from outside: every flag, every error, agreement with lz4. usage: ptx_pack.sh PROGRAM SECTION
# [FAKE_CUDA]
# Exit: 0 passed, 1 failed, 77 skipped (something the section needs is absent).
set -u
pack=$1 section=$2 fake_cuda=${3:-}
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT && cd "$work"
. "$source_folder/fkr_tests/cli/pack_common.sh"

# The codecs of .ptz: round trips, names, errors, damage.
section_ptz() {
  make_input
  expect 0 "$pack" --list-codecs
  local ptz_codecs lz_codecs codec
  ptz_codecs=$(awk '$2 == ".ptz" { print $1 }' out); lz_codecs=$(awk '$3 == "LZ77," { print $1 }' out)
  [ "$(head -n1 out)" = "lz4            .lz4  LZ4 frames" ] || fail "--list-codecs should begin with lz4"
  [ "$(wc -w <<<"$ptz_codecs")" -ge 4 ] && [ "$(wc -w <<<"$lz_codecs")" -ge 3 ] || fail "--list-codecs lacks codecs"
  expect 0 "$pack" input
  for codec in $ptz_codecs; do
    expect 0 "$pack" --codec $codec -f input; silent; present input.ptz
    [ "$(stat -c %s input.ptz)" -lt "$(stat -c %s input.lz4)" ] || fail "$codec should be smaller than lz4"
    expect 0 "$pack" --codec $codec -T1 -c input; same out input.ptz
    expect 0 "$pack" -t input.ptz; silent
    expect 0 "$pack" -dc input.ptz; same out input
    expect 0 "$pack" -dc --codec $codec <input.ptz; same out input
    expect 0 "$pack" -d < <(cat input.ptz); same out input  # the magic number tells the format of a pipe
    expect 0 "$pack" -d input.ptz -o back; same back input; rm back
  done
  head -c 3000 input >part
  for codec in $ptz_codecs; do
    expect 0 "$pack" --codec $codec --backend emulator -f part; silent
    expect 0 "$pack" --codec $codec -c part; same out part.ptz
    expect 0 "$pack" -dc --backend emulator part.ptz; same out part
  done
  # -1 selects another match search, the same on every backend, and the same format.
  for codec in $lz_codecs; do
    expect 0 "$pack" --codec $codec -c input; mv out usual
    expect 0 "$pack" --codec $codec -2 -c input; same out usual
    expect 0 "$pack" --codec $codec -1 -c input; mv out fast
    [ "$(stat -c %s fast)" -gt "$(stat -c %s usual)" ] || fail "$codec -1 should be larger than $codec"
    [ "$(stat -c %s fast)" -lt "$(stat -c %s input.lz4)" ] || fail "$codec -1 should be smaller than lz4"
    expect 0 "$pack" -dc <fast; same out input
    expect 0 "$pack" --codec $codec -1 -c part; mv out fast
    expect 0 "$pack" --codec $codec -1 --backend emulator -c part; same out fast
  done
  # rANS in chunks: by every backend, and by the range; files without options are read as before.
  for codec in lzr:lanes=4,chunk=1K lzr:chunk=8k,lanes=32 lzr:lanes=8; do
    expect 0 "$pack" --codec $codec -f input; silent; expect 0 "$pack" -dc input.ptz; same out input
    expect 0 "$pack" --codec $codec -c part; mv out usual
    expect 0 "$pack" --codec $codec --backend emulator -c part; same out usual
    expect 0 "$pack" -dc --backend emulator usual; same out part
    expect 0 "$pack" --codec $codec --policy mixed -c input; same out input.ptz
  done
  expect 0 "$pack" --list input.ptz; grep -q " lzr:lanes=8,chunk=16K " out || fail "--list lacks the options"
  expect 0 "$pack" --range 1000:2000 input.ptz; head -c 2000 input | tail -c 1000 >slice; same out slice
  expect 2 "$pack" --codec lzr:lanes=5 input; says "--codec: lzr: expected lanes=4, lanes=8 or lanes=32, found 'lanes=5'"
  expect 2 "$pack" --codec lzr:chunk=2K input; says "expected chunk=1K, chunk=4K, chunk=8K or chunk=16K, found 'chunk=2K'"
  expect 2 "$pack" --codec lzr:rows=2 input; says "expected the options lanes= and chunk=, found 'rows=2'"
  expect 2 "$pack" --codec bbw:lanes=8 input; says "bbw has no options"
  # Arrays of numbers: by every backend, in parts, and as what they are.
  for codec in rans:dtype=bfloat16 rans:dtype=float16 rans:dtype=float32 rans:stride=2 rans:stride=4 rans:stride=8; do
    expect 0 "$pack" --codec $codec -f input; silent; expect 0 "$pack" -dc input.ptz; same out input
    expect 0 "$pack" --list input.ptz; grep -q " $codec " out || fail "--list lacks the dtype"
    expect 0 "$pack" --codec $codec -c part; mv out usual
    expect 0 "$pack" --codec $codec --backend emulator -c part; same out usual
    expect 0 "$pack" -dc --backend emulator usual; same out part
    expect 0 "$pack" --codec $codec --policy mixed -c input; same out input.ptz
  done
  expect 0 "$pack" --range 1048570:1048580 input.ptz; head -c 1048580 input | tail -c 10 >slice; same out slice
  expect 2 "$pack" --codec rans:dtype=bf16 input; says "--codec: rans: expected dtype= one of bytes, bfloat16,"; says "found 'dtype=bf16'"
  expect 2 "$pack" --codec rans:stride=3 input; says "--codec: rans: expected stride=1, 2, 4 or 8, found 'stride=3'"
  expect 2 "$pack" --codec rans:dtype=int8,stride=2 input; says "dtype= and stride= exclude each other"
  expect 2 "$pack" --codec rans -1 input; says "-1 is not for rans, which has one speed"
  expect 2 "$pack" --codec lzf:dtype=int8 input; says "lzf has no options"
  expect 2 "$pack" --codec bbw -1 -c input; says "-1 is not for bbw, which has one speed"
  # --list describes .ptz files by name, from a pipe and beside LZ4, and reports damage.
  for codec in $ptz_codecs; do
    expect 0 "$pack" --codec $codec -f input; expect 0 "$pack" --list input.ptz; silent
    bits=$(sed -nE "s/^PTZ_CODEC\(.*\"$codec\", \w+, \w+, ([0-9]+), .*/\1/p" "$source_folder/runtime/codec/format/codecs.def")
    lists input.ptz 1 0 $codec $((($(stat -c %s input) + (1 << bits) - 1) >> bits)) block "$(stat -c %s input.ptz)" "$(stat -c %s input)"
  done
  expect 0 "$pack" --codec bbw -f input
  expect 0 "$pack" --list < <(cat input.ptz); lists "standard input" 1 0 bbw 3
  expect 0 "$pack" -m --list input.lz4 input.ptz; [ "$(wc -l <out)" = 3 ] || fail "one heading, two lines"
  lists input.lz4 1 0 B4I; lists input.ptz 1 0 bbw
  cp input.ptz cut.ptz; truncate -s 3000 cut.ptz
  expect 1 "$pack" --list cut.ptz; says "cut.ptz, byte 32: truncated: expected"
  : >cut.ptz; expect 1 "$pack" --list cut.ptz; says "cut.ptz, byte 0: truncated: expected 16 bytes of the header, found 0"
  expect 0 "$pack" --verify --codec lzr -f input; present input.ptz; expect 0 "$pack" -t input.ptz
  : >empty
  expect 0 "$pack" --codec lzr empty; expect 0 "$pack" -dc empty.ptz; same out empty
  expect 2 "$pack" --codec lzr -B7 -f input; says "are for lz4, not for lzr"
  expect 2 "$pack" --codec lzr -b input; says "-b measures LZ4 and not lzr: leave --codec away"
  expect 2 "$pack" --codec zip input; says "--codec"
  printf 'X' | dd of=input.ptz bs=1 seek=400 conv=notrunc status=none
  expect 1 "$pack" -t input.ptz; says "input.ptz: block 0: "
  # With a range of a pipe, blocks after the range are not decoded.
  seq 1 600000 >long; "$pack" -qc --codec lzf long >long.ptz
  printf X | dd of=long.ptz bs=1 seek=$(($(stat -c %s long.ptz) - 600)) conv=notrunc status=none
  expect 0 "$pack" -T1 --range 100:200 < <(cat long.ptz); head -c 200 long | tail -c 100 | cmp -s - out || fail "range of a .ptz pipe"
  expect 1 "$pack" -T1 -d < <(cat long.ptz); says "standard input"
  mv long.ptz long.lz4; expect 0 "$pack" -T1 --range 100:200 long.lz4  # the name does not matter either
  mv input.lz4 wrong.ptz
  expect 1 "$pack" -t wrong.ptz; says "wrong.ptz, byte 0: not a .ptz file: expected its magic number 0x1a5a5450, found 0x184d2204"
  expect 1 "$pack" -d < <(printf 'abc'); says "standard input, frame 0, byte 0: truncated"
  expect 1 "$pack" -d </dev/null; says "standard input, frame 0, byte 0"
}

section_flags() {
  make_input
  expect 0 "$pack" -k input; silent; present input input.lz4
  mv input.lz4 a.lz4
  expect 0 "$pack" -z -c input; same out a.lz4
  expect 0 "$pack" <input; same_content() { "$pack" -dc "$1" | cmp -s - input || fail "$1 does not decode to input"; }
  cp out piped.lz4; same_content piped.lz4
  expect 0 "$pack" -o b.lz4 input; same a.lz4 b.lz4
  expect 0 "$pack" input c.lz4; same a.lz4 c.lz4
  expect 0 "$pack" - <input; same_content out
  expect 0 "$pack" -d a.lz4; same a input
  expect 0 "$pack" a.lz4 -f; same a input  # .lz4 means decompress
  expect 0 "$pack" -z a.lz4; present a.lz4.lz4  # unless -z is given
  expect 0 "$pack" -dcf a.lz4; same out input  # options combine
  expect 0 "$pack" -t a.lz4; silent
  expect 0 "$pack" -tv a.lz4; says "a.lz4 -> no errors"
  expect 0 "$pack" -d -o d a.lz4; same d input
  expect 0 "$pack" -d -o - a.lz4; same out input
  for size in 4 5 6 7; do
    expect 0 "$pack" -f -B$size -1 input -o b$size.lz4; same_content b$size.lz4
    expect 0 "$pack" --list b$size.lz4; prints "B${size}I"
  done
  expect 0 "$pack" -f -BD -B4 input -o l.lz4; same_content l.lz4
  expect 0 "$pack" --list l.lz4; prints "B4D"
  [ "$(stat -c %s l.lz4)" -lt "$(stat -c %s b4.lz4)" ] || fail "linked blocks should compress better"
  expect 0 "$pack" -f -BX -BI input -o x.lz4; same_content x.lz4
  expect 0 "$pack" --list x.lz4; prints "block+content"
  expect 0 "$pack" -f --no-frame-crc --no-content-size input -o n.lz4; same_content n.lz4
  expect 0 "$pack" --list n.lz4 a.lz4; [ "$(wc -l <out)" = 3 ] || fail "one heading, two lines"
  [ $(($(stat -c %s a.lz4) - $(stat -c %s n.lz4))) = 12 ] || fail "content size and checksum take 12 bytes"
  expect 0 "$pack" -f --frame-crc --content-size input -o m.lz4; same m.lz4 a.lz4
  for threads in 0 1 3; do expect 0 "$pack" -f -T$threads input -o t.lz4; same t.lz4 a.lz4; done
  expect 0 "$pack" -f --reproducible input -o r.lz4; same_content r.lz4
  expect 0 "$pack" -f --reproducible -T1 input -o r1.lz4; same r.lz4 r1.lz4
  cmp -s r.lz4 a.lz4 && fail "--reproducible changed nothing"
  expect 0 "$pack" -fvv input -o v.lz4; says "fast encoder"; says "blocks"; same v.lz4 a.lz4
  expect 0 "$pack" -fvv --reproducible --backend cpu input -o v.lz4; says "reproducible encoder"
  expect 0 "$pack" -b input; prints "MB/s"; prints "fast encoder"
  expect 0 "$pack" -b1 --reproducible -B7 input; prints "reproducible encoder"
  expect 0 "$pack" -fvv -3 --backend cpu input -o h.lz4; says "high-ratio encoder"; same_content h.lz4
  [ "$(stat -c %s h.lz4)" -lt "$(stat -c %s r.lz4)" ] || fail "-3 is no smaller than --reproducible"
  rm h.lz4
  expect 0 "$pack" --version; prints "ptx-pack"
  expect 0 "$pack" --help; prints "--backend"; prints "Exit status"
}

section_files() {
  make_input
  chmod 640 input; touch -d '2001-02-03 04:05:06' input
  expect 0 "$pack" --rm input; only err input.lz4 out
  [ "$(stat -c '%a %Y' input.lz4)" = "640 $(date -d '2001-02-03 04:05:06' +%s)" ] || fail "mode or time not kept: $(stat -c '%a %Y' input.lz4)"
  expect 0 "$pack" --rm -d input.lz4; only err input out
  [ "$(stat -c '%a %Y' input)" = "640 $(date -d '2001-02-03 04:05:06' +%s)" ] || fail "mode or time not kept back"
  cp input one; cp input two; echo hello >three
  expect 0 "$pack" -m one two three; present one.lz4 two.lz4 three.lz4
  rm one two three
  expect 0 "$pack" -dm one.lz4 two.lz4 three.lz4; same one input; same two input
  expect 1 "$pack" -m one missing three -f; says "missing: cannot open: No such file or directory"; present three.lz4
  expect 0 "$pack" -mc one three; cp out both; "$pack" -dc both | cmp -s - <(cat one three) || fail "concatenated frames"
  mkdir -p tree/sub; cp three tree/a; cp three tree/sub/b
  expect 0 "$pack" -r tree; present tree/a.lz4 tree/sub/b.lz4
  rm tree/a tree/sub/b
  expect 0 "$pack" -dr tree; same tree/a three; same tree/sub/b three
  expect 0 "$pack" -tr tree
  : >empty; expect 0 "$pack" empty; expect 0 "$pack" -dc empty.lz4; same out empty
  expect 0 "$pack" -f three -o /dev/null; [ -c /dev/null ] || fail "/dev/null was replaced"
}

section_range() {
  make_input
  size=$(stat -c %s input)
  for flags in -B4 -B6 "-B4 -BD"; do
    # shellcheck disable=SC2086
    "$pack" -qf $flags input -o a.lz4
    for range in 0:1 5:70000 65535:65537 131072:196608 1234567: :10 "$((size - 1)):$size" "0:$size" :; do
      begin=${range%:*} end=${range#*:}
      expect 0 "$pack" --range "$range" a.lz4
      tail -c +$((${begin:-0} + 1)) input | head -c $((${end:-$size} - ${begin:-0})) | cmp -s - out || fail "range $range of $flags"
    done
  done
  expect 0 "$pack" -d --range 10:20 a.lz4 -o part; [ "$(stat -c %s part)" = 10 ] || fail "part should have 10 bytes"
  expect 1 "$pack" --range "0:$((size + 1))" a.lz4 -o none; says "a.lz4: the range begins or ends beyond the $size bytes that there are"; absent none
  expect 1 "$pack" --range "$size:" a.lz4 -o none; says "beyond the $size bytes"; absent none
  # After the range the reader soon stops: damage further on does not matter, damage before the range does.
  seq 1 9000000 >large; "$pack" -qf -BX large; cp large.lz4 bad.lz4
  printf XX | dd of=bad.lz4 bs=1 seek=$(($(stat -c %s bad.lz4) - 5000)) conv=notrunc status=none
  expect 0 "$pack" -T1 --range 100:200 bad.lz4; head -c 200 large | tail -c 100 | cmp -s - out || fail "range before the damage"
  expect 1 "$pack" -T1 --range 68000000:70880000 bad.lz4; says "block checksum mismatch"
  # A checksum of the whole frame or member comes behind the range, and is checked.
  "$pack" -qf -B4 large -o whole.lz4; gzip -nc large >whole.gz
  for file in whole.lz4 whole.gz; do
    expect 0 "$pack" -d --range 100:200 $file; head -c 200 large | tail -c 100 | cmp -s - out || fail "range of $file"
    for at in 60 4000 200000; do
      cp $file bad_$file; byte=$(dd if=bad_$file bs=1 skip=$at count=1 status=none | od -An -tu1)
      printf "\\$(printf %o $((byte ^ 1)))" | dd of=bad_$file bs=1 seek=$at conv=notrunc status=none
      for range in 0:100 100:200 ":$(stat -c %s large)"; do
        expect 1 "$pack" -d --range "$range" bad_$file; expect 1 "$pack" -d --range "$range" < <(cat bad_$file)
      done
    done
  done
  # A .ptz file has a table: damage before the range does not matter either, if it is in another block.
  expect 0 "$pack" -f --codec lzr input -o a.ptz
  for range in 0:1 262143:262145 1234567: :10 "$((size - 1)):$size" "0:$size" :; do
    begin=${range%:*} end=${range#*:}
    expect 0 "$pack" --range "$range" a.ptz
    tail -c +$((${begin:-0} + 1)) input | head -c $((${end:-$size} - ${begin:-0})) | cmp -s - out || fail "range $range of .ptz"
  done
  for flags in -T1 -T3 "-T16 --memory 24M"; do
    # shellcheck disable=SC2086
    expect 0 "$pack" $flags --range "10:$((size - 10))" a.ptz
    tail -c +11 input | head -c $((size - 20)) | cmp -s - out || fail "range of .ptz with $flags"
  done
  "$pack" -q --codec bbw input -o b.ptz
  expect 0 "$pack" --memory 64M --range "1048570:1048580" b.ptz; tail -c +1048571 input | head -c 10 | cmp -s - out || fail "range of bbw"
  expect 1 "$pack" --memory 24M --range 5:6 b.ptz -o none; says "of memory"; absent none
  printf X | dd of=a.ptz bs=1 seek=400 conv=notrunc status=none
  expect 0 "$pack" --range 1000000:1000100 a.ptz; tail -c +1000001 input | head -c 100 | cmp -s - out || fail "range behind the damage"
  expect 1 "$pack" --range 0:10 a.ptz -o none; says "a.ptz: block 0: "; absent none
  expect 1 "$pack" --range "$size:" a.ptz -o none; says "beyond the $size bytes"; absent none
  expect 2 "$pack" --range 5 a.lz4; says "expected --range BEGIN:END with BEGIN below END, found 5"
  expect 2 "$pack" --range 9:9 a.lz4; says "BEGIN below END"
  expect 2 "$pack" --range 1x:9 a.lz4; says "BEGIN below END"
  expect 2 "$pack" -z --range 1:9 a.lz4; says "--range is for decompression"
  expect 2 "$pack" --range 1:9 -m a.lz4 bad.lz4; says "--range takes one input, found 2"
  expect 2 "$pack" --range 1:9 --rm a.lz4 -o x; says "--range and --rm exclude each other"
}

section_verify() {
  make_input
  expect 0 "$pack" --verify input; present input.lz4; "$pack" -dc input.lz4 | cmp -s - input || fail "verified output"
  expect 0 "$pack" --verify --reproducible -f -B7 input; present input.lz4
  # A GPU that writes damaged data is detected before the output is put in place.
  PTXKIT_LIBCUDA=$fake_cuda PTXKIT_FAKE_CUDA_DAMAGE=1 expect 0 "$pack" --backend cuda input -o damaged.lz4
  expect 1 "$pack" -t damaged.lz4
  PTXKIT_LIBCUDA=$fake_cuda PTXKIT_FAKE_CUDA_DAMAGE=1 expect 1 "$pack" --verify --backend cuda input -o none.lz4
  says "none.lz4, frame 0"; absent none.lz4
  expect 2 "$pack" --verify -c input; says "--verify is for compression to a file"
  expect 2 "$pack" --verify -d input.lz4; says "--verify is for compression to a file"
  expect 2 "$pack" --verify --no-frame-crc input; says "--verify and --no-frame-crc exclude each other"
  expect 1 "$pack" --verify input -o /dev/null; says "/dev/null: cannot be read back"
}

section_progress() {
  command -v script >/dev/null || { echo "SKIPPED: no script program (Debian package bsdutils)"; exit 77; }
  make_input; expect 0 "$pack" input; expect 0 "$pack" --codec lzr input
  # The first line appears after a tenth of a second: a pipe that pauses for longer causes one, however fast the program
  # is.
  # A file, because not every sh passes on exported functions.
  echo 'head -c 1000 "$1"; sleep 0.3; tail -c +1001 "$1"' >slowly
  for words in "input -c" "input --codec lzr -c" "input.lz4 -t" "input.ptz --codec lzr -t"; do
    file=${words%% *}
    script -qec "sh slowly $file | '$pack' -T1 ${words#* } >out" /dev/null >terminal </dev/null
    tr '\r' '\n' <terminal | grep -qE '^standard input: [0-9.]+ MB, [0-9]+ MB/s, ratio [0-9]+\.[0-9]{2}' ||
      { fail "no progress line: $words"; head -c 600 terminal; }
  done
  rm -f input.lz4; expect 0 "$pack" input; silent  # without a terminal there is no line
}

# --share-by-rank splits the files between the processes of an MPI job.
# Inputs with one output are one process's, whatever their names, the order of the ranks and what is there already: the
# second of them is refused as in a run without ranks, and its input stays.
ranks_with_one_output() {
  local kind rank order n errors left wanted
  seq 1 1000 >one; seq 5 2000 >two; "$pack" -q one -o one.lz4; "$pack" -q --codec zstd two -o two.zst; "$pack" -q --codec gzip two -o two.gz
  for kind in suffix link dangling folder spelling; do
    for n in 1 2 3 4; do
      for order in "0 1 2" "2 1 0"; do
        rm -rf j k; mkdir j k; errors=0
        cp one.lz4 j/x$n.lz4
        case $kind in
          suffix) cp two.zst j/x$n.zst; cp two.gz j/x$n.gz ;;
          link) : >j/x$n; cp two.zst j/y$n.zst; ln -s x$n j/y$n ;;
          dangling) cp two.zst k/y$n.zst; ln -s ../j/x$n k/y$n ;;
          folder) rmdir k; ln -s j k; cp two.zst j/x$n.zst ;;
          spelling) cp two.zst j/x$n.zst ;;
        esac
        for rank in $order; do
          set -- -r j k
          [ $kind = folder ] && set -- -m j/x$n.lz4 k/x$n.zst
          [ $kind = spelling ] && set -- -m "$PWD/j/../j/x$n.lz4" ./j/x$n.zst
          OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=3 "$pack" --share-by-rank "$@" -d -f --rm >>out 2>err
          errors=$((errors + $(grep -c "this run has written the output already" err)))
        done
        left=$(find j k -name '*.lz4' -o -name '*.zst' -o -name '*.gz' | wc -l); wanted=1; [ $kind = suffix ] && wanted=2
        [ $errors = $wanted ] || fail "$kind $n, ranks $order: $errors outputs were refused"
        [ "$left" = $wanted ] || fail "$kind $n, ranks $order: $left inputs are left: $(ls j k | tr '\n' ' ')"
      done
    done
  done
  rm -rf j k; mkdir j; cp one j/a; ln -s u j/a.lz4; ln -s v j/a.ptz
  expect 1 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "$pack" --share-by-rank --auto -f j/a
  says ": the output is a link, which with --auto and --trial ranks cannot share; name a codec with --codec"; absent j/u j/v
  expect 0 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "$pack" --share-by-rank -f j/a; present j/u
  rm -rf j one two one.* two.*
}

section_ranks() {
  mkdir d; for n in $(seq 1 40); do seq 1 1000 >d/$n; done
  cp d/1 d/.ptx-pack.0123456789abcdef  # unfinished output of another process
  expect 0 env OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 "$pack" --share-by-rank -rv d; says "rank 1 of 3: "; says " of 40 inputs"
  [ "$(ls d/*.lz4 | wc -l)" -lt 30 ] || fail "one of three processes took nearly everything"
  # Processing a file twice would fail.
  for rank in 0 2; do expect 0 env PMI_RANK=$rank PMI_SIZE=3 "$pack" --share-by-rank -r d; silent; done
  for n in $(seq 1 40); do present d/$n.lz4; done
  absent d/.ptx-pack.0123456789abcdef.lz4
  for rank in 0 1; do expect 0 env OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 "$pack" --share-by-rank d/1 -o one; done
  present one
  expect 0 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$pack" -dr d -f; for n in $(seq 1 40); do present d/$n; done
  ranks_with_one_output
  # Inputs that cannot be shared, and a process outside any job.
  local words
  for words in "-mc d/1 d/2" "-c d/1" "-" "" "d/1 -o -" "-d -m - d/1.lz4"; do
    # shellcheck disable=SC2086
    expect 2 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$pack" --share-by-rank $words </dev/null
    says "--share-by-rank is for files: processes cannot share standard input or standard output"
  done
  for words in "-t d/1.lz4" "--list d/1.lz4" "-b d/1"; do
    # shellcheck disable=SC2086
    expect 2 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$pack" --share-by-rank $words
    says "--share-by-rank is for compression and decompression"
  done
  expect 2 env -u OMPI_COMM_WORLD_RANK -u PMI_RANK "$pack" --share-by-rank -r d; says "neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set; start it with mpirun"
  for words in "9 9" "0 x" "-1 4" "0 0"; do
    expect 2 env OMPI_COMM_WORLD_RANK=${words% *} OMPI_COMM_WORLD_SIZE=${words#* } "$pack" --share-by-rank -f d/1 -o one
    says "to be a rank and a number of ranks, found '${words% *}' and '${words#* }'"
  done
  expect 2 env PMI_RANK=0 "$pack" --share-by-rank -f d/1 -o one; says "found '0' and ''"
}

section_errors() {
  make_input
  cp input kept; "$pack" -q input
  expect 1 "$pack" input; says "input.lz4: the output exists already; add -f to overwrite it"
  expect 0 "$pack" -f input
  expect 1 "$pack" -d kept; says "kept: expected a name that ends in .lz4, .ptz, .zst or .gz; name the output with -o, or use -c"
  expect 1 "$pack" -dc kept; says "kept, frame 0, byte 0: not an LZ4 file"
  expect 1 "$pack" nothing; says "nothing: cannot open: No such file or directory"
  expect 1 "$pack" -q nothing; says "cannot open"
  expect 1 "$pack" -qq nothing; silent
  mkdir folder; expect 1 "$pack" folder; says "folder: expected a file, found a directory; add -r"
  expect 1 "$pack" input -o folder; says "folder: expected a file to write, found a directory"
  expect 1 "$pack" -f input -o input; says "input: the output is the input"; same input kept
  ln input link; expect 1 "$pack" -f input -o link; says "the output is the input"
  expect 1 "$pack" input -o nowhere/x; says "nowhere/x: cannot create a file beside it: No such file or directory"
  # File names may be hostile, and a terminal obeys escape sequences.
  local odd=$'od\e[31md\nname' escape=$'\e'
  cp kept "$odd"
  expect 0 "$pack" -v "$odd"; says "od?[31md?name -> od?[31md?name.lz4: "; ! grep -q "$escape" err || fail "an escape sequence"
  expect 1 "$pack" "$odd"; says "od?[31md?name.lz4: the output exists already"; ! grep -q "$escape" err || fail "an escape sequence"
  expect 0 "$pack" --list "$odd.lz4"; prints "  od?[31md?name.lz4"; ! grep -q "$escape" out || fail "an escape sequence"
  expect 2 "$pack" "--mem$odd"; says "--memod?[31md?name"; ! grep -q "$escape" err || fail "an escape sequence"
  expect 2 "$pack" a b c; says "expected one input, found 3: add -m"
  expect 2 "$pack" -m a b -o c; says "-o takes one input"
  expect 2 "$pack" -c -o x input; says "-c and -o exclude each other"
  expect 2 "$pack" -d -t x.lz4; says "exclude each other"
  expect 2 "$pack" -t -o x x.lz4; says "write no output"
  expect 2 "$pack" -k --rm input; says "-k and --rm exclude each other"
  expect 2 "$pack" --rm -c input; says "--rm needs an output file"
  expect 2 "$pack" -B3 input; says "expected -B4, -B5, -B6, -B7, -BD, -BI or -BX, found -B3"
  local level
  for level in -0 -4 -9 -12; do expect 2 "$pack" $level input; says "$level is refused: the levels are -1, -2 and -3"; done
  expect 2 "$pack" --memory=-1 input; says "--memory: expected a size such as 64M, found '-1'"
  expect 2 "$pack" --memory much input; says "--memory: expected a size such as 64M, found 'much'"
  expect 2 "$pack" --memroy 64M input; says "unknown option '--memroy'; did you mean '--memory'?"
  expect 2 "$pack" -o "" input; says "-o: expected a file, found ''"
  local printing
  for printing in --help --version --man --list-codecs; do
    [ -w /dev/full ] || break
    "$pack" $printing >/dev/full 2>err && fail "$printing wrote nothing and says it did"; says "cannot write"
  done
  local option
  for option in $("$pack" --help | grep -oE '^  (-[A-Za-z0-9],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    "$pack" --man | sed 's/\\-/-/g' | grep -qF "\fB$option\fR" || fail "the manual page lacks $option"
  done
  expect 2 "$pack" --best input; says "--best is refused: -3 is the highest level"
  expect 2 "$pack" -3 -BD input; says "-3 and -BD exclude each other: the high-ratio encoder has no linked blocks"
  for level in -1 -2; do expect 2 "$pack" -3 $level input; says "-3 and -1 or -2 exclude each other"; done
  expect 2 "$pack" -1 -2 input; says "-1 and -2 exclude each other"
  expect 2 "$pack" -3 --codec lzr input; says "-3"
  expect 2 "$pack" -l input; says "legacy frames are read but not written"
  expect 2 "$pack" --content-size --no-content-size input; says "exclude each other"
  expect 2 "$pack" --frame-crc --no-frame-crc input; says "exclude each other"
  expect 2 "$pack" --reproducible -BD input; says "--reproducible and -BD exclude each other: the reproducible encoder has no linked blocks"
  expect 2 "$pack" --backend tpu input; says "tpu"
  expect 2 "$pack" --nonsense; says "--nonsense"
  expect 2 "$pack" -T x input
  expect 1 env PTXKIT_LIBCUDA=/nowhere/libcuda.so "$pack" --backend cuda -c input; says "no NVIDIA driver: /nowhere/libcuda.so"
  expect 0 env PTXKIT_LIBCUDA=/nowhere/libcuda.so "$pack" -vc input; says "input -> "; [ "$(wc -l <err)" = 1 ] || fail "small inputs need no driver"
  expect 0 env PTXKIT_LIBCUDA=/nowhere/libcuda.so "$pack" --policy gpu -c input; silent
  expect 0 env PTXKIT_LIBCUDA=/nowhere/libcuda.so "$pack" --policy gpu -vc input; says "using the CPU: no NVIDIA driver"
  expect 2 "$pack" --policy sometimes input; says "sometimes not in {auto,cpu,gpu,mixed}"
  expect 2 "$pack" --policy gpu --backend cuda input; says "--policy is for --backend auto"
  # Compressed data is not written to a terminal without -f. script(1) provides a terminal.
  if command -v script >/dev/null; then
    script -qec "'$pack' -c input" /dev/null >terminal </dev/null
    grep -q "expected a file or a pipe to write compressed data to, found a terminal" terminal || fail "compressed data went to a terminal"
    echo hi >small
    script -qec "'$pack' -cf small" /dev/null </dev/null >terminal
    grep -q "expected a file or a pipe" terminal && fail "-f should write to a terminal"
  fi
  absent x
}

section_interop() {
  need_lz4
  make_input
  for flags in "" -B4 "-B5 -BX" -B6 -B7 "-BD -B4" "-BD -B6 -BX" --reproducible "--reproducible -B7" "--no-frame-crc --no-content-size"; do
    # shellcheck disable=SC2086
    expect 0 "$pack" -f $flags input -o ours.lz4
    expect 0 lz4 -dcq ours.lz4; same out input
    "$pack" $flags <input | lz4 -dcq | cmp -s - input || fail "lz4 does not read our stream: $flags"
  done
  for flags in -B4 -B5 -B6 -B7 "-B4 -BD" "-B5 -BD -BX" "-B6 -BX" "-B7 -BD" -9 "-9 -BD" --content-size --no-frame-crc "-BX --no-frame-crc" -B100 -l; do
    # shellcheck disable=SC2086
    lz4 -fq $flags input theirs.lz4
    expect 0 "$pack" -dc theirs.lz4; same out input
    expect 0 "$pack" -t -T1 theirs.lz4
    expect 0 "$pack" --list theirs.lz4
  done
  # Concatenated frames with skippable frames in between and a legacy frame in the middle.
  seq 1 1000 >small; lz4 -fq small s.lz4; lz4 -fql small l.lz4
  { cat s.lz4; printf '\x5f\x2a\x4d\x18\x05\x00\x00\x00abcde'; cat l.lz4 theirs.lz4; printf '\x50\x2a\x4d\x18\x00\x00\x00\x00'; cat s.lz4; } >all.lz4
  cat small small input small >expected
  expect 0 "$pack" -dc all.lz4; same out expected
  { cat s.lz4; printf '\x5f\x2a\x4d\x18\x05\x00\x00\x00abcde'; cat ours.lz4 s.lz4; } >all.lz4  # lz4 1.10 reads no legacy frame before another
  cat small input small >expected
  expect 0 lz4 -dcq all.lz4; same out expected
  : | lz4 -cq >e.lz4; expect 0 "$pack" -dc e.lz4; [ ! -s out ] || fail "empty frame"
  lz4 -fq -D small input dictionary.lz4 2>/dev/null
  expect 1 "$pack" -dc dictionary.lz4
}

section_corrupt() {
  seq 1 3000 >input
  "$pack" -BX -q input
  size=$(stat -c %s input.lz4)
  for at in 0 3 4 5 6 10 14 15 18 20 100 $((size / 2)) $((size - 9)) $((size - 8)) $((size - 5)) $((size - 1)); do
    cp input.lz4 bad.lz4
    byte=$(od -An -tu1 -j "$at" -N1 bad.lz4)
    printf "$(printf '\\x%02x' $((byte ^ 1)))" | dd of=bad.lz4 bs=1 seek="$at" conv=notrunc status=none
    expect 1 "$pack" -t bad.lz4; says "bad.lz4, frame 0"
    expect 1 "$pack" -d bad.lz4; absent bad
  done
  for length in 0 1 6 7 14 18 30 $((size - 1)); do
    head -c "$length" input.lz4 >cut.lz4
    expect 1 "$pack" -d cut.lz4; says "truncated"; absent cut
  done
  cp input.lz4 bad.lz4; printf X | dd of=bad.lz4 bs=1 seek=500 conv=notrunc status=none
  expect 1 "$pack" -t bad.lz4; says "frame 0, block 0"; says "block checksum mismatch: expected 0x"
  cat input.lz4 <(echo garbage) >tail.lz4
  expect 1 "$pack" -t tail.lz4; says "frame 1, byte $size: bytes after the last frame"
  expect 1 "$pack" -tm tail.lz4 input.lz4 missing.lz4; says "tail.lz4"; says "missing.lz4"
  [ "$(ls -A | grep -c '^\.ptx-pack\.')" = 0 ] || fail "temporary files are left"
}

section_full_disk() {
  make_input
  expect 1 sh -c "'$pack' -c input >/dev/full"; says "standard output: cannot write: No space left on device"
  expect 1 "$pack" input -o /dev/full; says "/dev/full: cannot write: No space left on device"
  "$pack" -q input
  expect 1 sh -c "'$pack' -dc input.lz4 >/dev/full"; says "standard output: cannot write: No space left on device"
  # A file-size limit acts as a full disk for one process. The signal that comes with it is ignored, so that write()
  # reports the error.
  cp input.lz4 big.lz4
  expect 1 bash -c "trap '' XFSZ; ulimit -f 1000; exec '$pack' -d big.lz4"; says "big: cannot write: File too large"
  absent big
  expect 1 "$pack" -c /proc/self/mem; says "/proc/self/mem: cannot read: Input/output error"
  # A real small file system, if mounting is permitted.
  mkdir small
  if mount -t tmpfs -o size=1m none small 2>/dev/null; then
    expect 1 "$pack" input -o small/x.lz4; says "small/x.lz4: cannot write: No space left on device"
    [ -z "$(ls -A small)" ] || fail "a half-written file is left on the full disk"
    umount small
  fi
}

# The peak resident set of a command, in KiB.
peak_of() { python3 -c 'import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open("peak", "w"))
sys.exit(code)' "$@"; }

section_memory() {
  # Three gigabytes through a pipe; 16 threads would prefer 144 MiB of buffers.
  head -c 3221225472 /dev/zero | peak_of "$pack" --backend cpu --no-frame-crc -c -T16 --memory 64M >zeros.lz4
  [ "$(cat peak)" -lt $((64 * 1024)) ] || fail "64 MiB allowed, $(cat peak) KiB resident while compressing"
  expect 0 "$pack" --list zeros.lz4; prints "49152"
  # Noise touches every byte of every buffer.
  make_input; head -c 100000000 /dev/urandom >noise
  for size in 4 7; do
    peak_of "$pack" --backend cpu -f -B$size -T16 --memory 64M noise || fail "compression of noise"
    [ "$(cat peak)" -lt $((64 * 1024)) ] || fail "64 MiB allowed, $(cat peak) KiB resident while compressing noise, -B$size"
    peak_of "$pack" -t -T16 --memory 64M --backend cpu noise.lz4 || fail "the stream should be good"
    [ "$(cat peak)" -lt $((64 * 1024)) ] || fail "64 MiB allowed, $(cat peak) KiB resident while testing, -B$size"
  done
  peak_of "$pack" --backend cpu -f -T16 noise || fail "without a budget"
  [ "$(cat peak)" -gt $((64 * 1024)) ] || fail "the budget changes nothing: $(cat peak) KiB resident without it"
  # Coding a .ptz block takes 22 times its size; 16 threads would prefer 120 MiB, or 400 for bbw.
  "$pack" -q --codec lzr input -o expected.ptz; "$pack" -q --codec bbw input -o bbw.ptz
  head -c 30000000 noise | cat - input >more; "$pack" -q --codec lzr more -o more.ptz
  for size in 24 64; do
    cat more | peak_of "$pack" -c --codec lzr -T16 --memory ${size}M >out || fail "compression to .ptz"
    [ "$(cat peak)" -lt $((size * 1024)) ] || fail "$size MiB allowed, $(cat peak) KiB resident while compressing to .ptz"
    same out more.ptz
    cat more.ptz | peak_of "$pack" -d -T16 --memory ${size}M >out || fail "decompression of .ptz"
    [ "$(cat peak)" -lt $((size * 1024)) ] || fail "$size MiB allowed, $(cat peak) KiB resident while decompressing .ptz"
    same out more
  done
  # Of zstd 16 threads would prefer 200 MiB; half of the frames are long ones of another encoder.
  "$pack" -q --codec zstd more -o more.zst; "$pack" -q --codec zstd --seekable more -o frames.zst; cat more more more >long
  for size in 24 64; do
    peak_of "$pack" -c --codec zstd -T16 --memory ${size}M more >out || fail "compression with zstd"
    [ "$(cat peak)" -lt $((size * 1024)) ] || fail "$size MiB allowed, $(cat peak) KiB resident while compressing with zstd"
    same out more.zst
    cat frames.zst more.zst frames.zst | peak_of "$pack" -d -T16 --memory ${size}M >out || fail "decompression of zstd"
    [ "$(cat peak)" -lt $((size * 1024)) ] || fail "$size MiB allowed, $(cat peak) KiB resident while decompressing zstd"
    same out long
  done
  peak_of "$pack" -f -T16 --codec zstd more -o out || fail "zstd without a budget"
  [ "$(cat peak)" -gt $((64 * 1024)) ] || fail "the budget changes nothing of zstd: $(cat peak) KiB resident without it"
  # The same with gzip; half of the members are of another encoder.
  "$pack" -q --codec gzip more -o more.gz; gzip -1 <more >theirs.gz; cat more more >long
  for size in 24 64; do
    peak_of "$pack" -c --codec gzip -T16 --memory ${size}M more >out || fail "compression with gzip"
    [ "$(cat peak)" -lt $((size * 1024)) ] || fail "$size MiB allowed, $(cat peak) KiB resident while compressing with gzip"
    same out more.gz
    cat theirs.gz more.gz | peak_of "$pack" -d -T16 --memory ${size}M >out || fail "decompression of gzip"
    [ "$(cat peak)" -lt $((size * 1024)) ] || fail "$size MiB allowed, $(cat peak) KiB resident while decompressing gzip"
    same out long
  done
  peak_of "$pack" -f -T16 --memory 64M --codec bbw input -o out || fail "bbw in 64 MiB"; same out bbw.ptz
  [ "$(cat peak)" -lt $((64 * 1024)) ] || fail "64 MiB allowed, $(cat peak) KiB resident while compressing with bbw"
  expect 1 "$pack" --codec bbw --memory 24M input -o c.ptz; absent c.ptz
  says "a block of 1048576 bytes needs"; says "raise the budget, or take a codec with smaller blocks"
  expect 0 "$pack" -vv -f --memory 24M --codec lzr input -o out; says "bytes of data in memory"; same out expected.ptz
  expect 0 "$pack" -vv --memory 24M --prefetch 1 input -o a.lz4; says "bytes of data in memory"
  expect 0 "$pack" input -o b.lz4; same a.lz4 b.lz4
  expect 1 "$pack" -B7 --memory 24M input -o c.lz4; says "a block of 4194304 bytes needs"; says "raise the budget, or use smaller blocks"; absent c.lz4
  expect 2 "$pack" --memory 23M input; says "--memory takes at least 24M"
  expect 2 "$pack" --memory lots input
  expect 2 "$pack" --prefetch -1 input
}

section_fake_cuda() {
  export PTXKIT_LIBCUDA=$fake_cuda
  make_input
  expect 0 "$pack" --reproducible --backend cpu input -o cpu.lz4
  expect 0 "$pack" --backend cuda -vv input -o cuda.lz4; same cpu.lz4 cuda.lz4; says "Fake GPU"; says "reproducible encoder"
  expect 0 "$pack" -f -3 --backend cpu input -o cpu3.lz4
  expect 0 "$pack" -f -3 --backend cuda -vv input -o cuda3.lz4; same cpu3.lz4 cuda3.lz4; says "Fake GPU"; says "high-ratio encoder"
  rm cpu3.lz4 cuda3.lz4
  expect 0 "$pack" --backend cuda -dc cuda.lz4; same out input
  expect 0 "$pack" --policy gpu -vv -f input -o auto.lz4; same cpu.lz4 auto.lz4; says "Fake GPU"
  expect 0 "$pack" --policy mixed -vv -f input -o mixed.lz4; same cpu.lz4 mixed.lz4; says "Fake GPU"; says "; with cpu"
  expect 0 "$pack" --policy mixed -dc mixed.lz4; same out input
  expect 0 "$pack" --memory 24M --backend cuda -f input -o mixed.lz4; same cpu.lz4 mixed.lz4
  "$pack" -q --backend cpu input -o fast.lz4
  expect 0 "$pack" -vv -f input -o auto.lz4; same fast.lz4 auto.lz4; says "cpu, "  # too small to start a GPU
  expect 0 "$pack" --policy cpu -vv -f input -o auto.lz4; same fast.lz4 auto.lz4; says "cpu, "
  # With one thread, 300 MB are enough for a GPU to be worth measuring. It proves slow, and that is remembered.
  truncate -s 300000000 large
  export PTXKIT_CALIBRATION=$work/rates
  expect 0 "$pack" -v -T1 --memory 24M large -o large.lz4; says "using the CPU: the GPU's rates are unknown; 'ptx-pack --measure-rates' measures them"
  absent rates
  expect 0 "$pack" --measure-rates -T1; present rates
  expect 0 "$pack" -v -T1 --memory 24M -f large -o large.lz4; grep -q "rates are unknown" err && fail "rates are kept and not read"
  rm rates
  expect 0 env PTXKIT_FAKE_CUDA_VERSION=10020 "$pack" -v -T1 --memory 24M -f large -o large.lz4
  expect 1 env PTXKIT_FAKE_CUDA_VERSION=10020 "$pack" --measure-rates; says "the driver is too old"; absent rates
  expect 2 "$pack" --measure-rates input; says "--measure-rates takes no input"
  PTXKIT_CALIBRATION= expect 0 "$pack" -v -T1 --memory 24M -f large -o large.lz4; absent rates
  unset PTXKIT_CALIBRATION; rm large large.lz4
  expect 1 "$pack" --backend cuda --device 1 -c input; says "there is no device 1"
  expect 1 "$pack" --backend cuda --device 0,1 -c input; says "there is no device 1"
  for devices in 0,1 3,1,2 all; do
    expect 0 env PTXKIT_FAKE_CUDA_DEVICES=4 "$pack" --backend cuda --device $devices -fvv input -o x.lz4; same x.lz4 cpu.lz4
    says "; cuda, device 1"
  done
  says "4 GPUs; cuda, device 0"
  for devices in 0,,1 x all,1 1,1 -1 ""; do
    expect 2 "$pack" --backend cuda "--device=$devices" -c input; says "expected --device N, N,N or all, each N once, found"
  done
  rm x.lz4
  expect 1 "$pack" --backend cuda -BD -c input; says "the reproducible encoder has no linked blocks"
  expect 0 "$pack" --policy gpu -BD input -o linked.lz4
  expect 1 "$pack" --backend cuda -dc linked.lz4; says "the cuda backend lacks decompression of linked blocks"
  expect 0 "$pack" --policy gpu -dc linked.lz4; same out input
  export PTXKIT_FAKE_CUDA=cuEventSynchronize:1:716
  expect 1 "$pack" --backend cuda -f input -o x.lz4; says "CUDA_ERROR_MISALIGNED_ADDRESS"; says "run ptx-debug analyze"; absent x.lz4
  expect 0 "$pack" --policy gpu -f input -o x.lz4; says "continuing on the CPU: device 0, Fake GPU: cuEventSynchronize: error 716"
  [ "$(wc -l <err)" = 1 ] || fail "one message expected"
  same x.lz4 cpu.lz4
  export PTXKIT_FAKE_CUDA=cuInit:1:100
  expect 1 "$pack" --backend cuda -c input; says "CUDA_ERROR_NO_DEVICE"
  expect 0 "$pack" --policy gpu -c input; says "using the CPU"
  unset PTXKIT_FAKE_CUDA
  export PTXKIT_FAKE_CUDA_VERSION=10020
  expect 1 "$pack" --backend cuda -c input; says "the driver is too old"
  expect 0 "$pack" --policy gpu -c input; says "using the CPU"; says "too old"; [ "$(wc -l <err)" = 1 ] || fail "one message expected"
  expect 0 "$pack" --policy gpu -qc input; silent
}

section_emulator() {
  seq 1 9000 >input
  expect 0 "$pack" --reproducible --backend cpu -B5 input -o cpu.lz4
  expect 0 "$pack" --backend emulator -B5 -vv input -o emulator.lz4; same cpu.lz4 emulator.lz4; says "PTX emulator"; says "reproducible encoder"
  expect 0 "$pack" -f -3 --backend cpu -B5 input -o cpu3.lz4
  expect 0 "$pack" -f -3 --backend emulator -B5 input -o emulator3.lz4; same cpu3.lz4 emulator3.lz4
  rm cpu3.lz4 emulator3.lz4
  expect 0 "$pack" --backend emulator -dc cpu.lz4; same out input
  expect 1 "$pack" --backend emulator -BD -c input; says "the reproducible encoder has no linked blocks"
  seq 1 30000 | "$pack" -qc -BD >linked.lz4
  expect 1 "$pack" --backend emulator -dc linked.lz4; says "the emulator backend lacks decompression of linked blocks; use --backend cpu"
}

# --auto and --trial choose a codec for each input; --list -v prints where the bytes of a file go.
section_choose() {
  local way
  cat "$source_folder"/docs/*.md | head -c 500000 >text; head -c 300000 /dev/urandom >noise; : >empty
  for way in --auto --trial --trial=ratio; do
    expect 0 "$pack" $way -fv -m text noise empty
    says "ptx-pack: text: bbw is chosen: "; says "ptx-pack: noise: lz4 is chosen: "; says "ptx-pack: empty: lz4 is chosen: "
    present text.ptz noise.lz4 empty.lz4; absent text.lz4 noise.ptz empty.ptz
    expect 0 "$pack" -dc text.ptz; same out text; expect 0 "$pack" -dc noise.lz4; same out noise
    rm text.ptz noise.lz4 empty.lz4
    expect 0 "$pack" $way -c text; mv out chosen; expect 0 "$pack" --codec bbw -c text; same out chosen
    expect 0 "$pack" $way text -o named; same named chosen; rm named
    expect 0 "$pack" $way -c <text; same out chosen
    expect 1 "$pack" $way -c < <(cat text); says "standard input: expected a file to choose a codec for, found a pipe or a device; name one with --codec"
    expect 2 "$pack" $way --codec lzr text; says "and --codec exclude each other"
    expect 2 "$pack" $way -d text.lz4; says "is for compression"
    expect 2 "$pack" $way text.lz4; says "add -z to compress text.lz4"
    for flag in -B5 -1 -3 --reproducible --no-frame-crc; do
      expect 2 "$pack" $way $flag text; says "for a codec that --codec names, not for ${way%=*}"
    done
  done
  # Noise that is repeated: LZ77 finds it, and the Burrows-Wheeler transform takes more for the rest.
  head -c 60000 noise >part; cat part part >copies
  expect 0 "$pack" --auto -fv copies; says "copies: lzr is chosen: entropy 8.00 bits a byte, 50 % in matches"; rm copies.ptz
  expect 0 "$pack" --trial=speed -fv text; says "text: lz4 is chosen: lz4 "; says ", bbw "; rm text.lz4
  expect 0 "$pack" --trial=speed -fv noise; says "noise: lz4 is chosen: "; rm noise.lz4
  expect 2 "$pack" --trial=size text; says "expected --trial, --trial=ratio or --trial=speed, found --trial=size"
  expect 2 "$pack" --auto --trial text; says "--auto and --trial exclude each other"
  # bbw does not fit into so little memory
  for way in --auto --trial; do
    expect 0 "$pack" $way --memory 42M -fv text; says "text: deflate-like is chosen: "; grep -q "bbw" err && fail "bbw was tried"
    expect 0 "$pack" $way --memory 43M -fv text; says "text: bbw is chosen: "
  done

  expect 0 "$pack" --list text.ptz; [ "$(wc -l <out)" = 2 ] || fail "--list should print two lines"
  local file
  expect 0 "$pack" text; expect 0 "$pack" --codec lzf -f text -o f.ptz; expect 0 "$pack" --codec lzr:lanes=4,chunk=1K text -o c.ptz
  expect 0 "$pack" noise
  for file in text.ptz text.lz4 f.ptz c.ptz noise.lz4; do
    expect 0 "$pack" --list -v $file; silent
    [ "$(awk '$3 == "bytes" { sum += $2 } END { print sum }' out)" = "$(stat -c %s $file)" ] || fail "the budget of $file is not its size"
  done
  prints "  stored             300000 bytes"
  expect 0 "$pack" --list -v text.ptz; prints "  column "; prints "  rows "; prints "  tables "
  for file in f.ptz c.ptz; do
    expect 0 "$pack" --list -v $file; prints "  literals "; prints "  lengths "; prints "  offsets "; prints "  flags "; prints "  tables "
  done
  expect 0 "$pack" --list -v text.lz4; prints "  offsets "; grep -q tables out && fail "LZ4 has no tables"
  # Damage that --list does not look at: the first length; the size of the first stream.
  cp text.lz4 bad.lz4; head -c 400 /dev/zero | tr '\0' '\377' | dd of=bad.lz4 bs=1 seek=19 conv=notrunc status=none
  expect 0 "$pack" --list bad.lz4; expect 1 "$pack" --list -v bad.lz4; says "bad.lz4, frame 0, block 0, byte 15: a block is damaged"
  cp f.ptz bad.ptz; printf '\xff' | dd of=bad.ptz bs=1 seek=50 conv=notrunc status=none
  expect 0 "$pack" --list bad.ptz; expect 1 "$pack" --list -v bad.ptz; says "bad.ptz: block 0 is damaged"
}

# Every file of the corpus, decoded by lz4 -d; the emulator gets the first 256 KiB.
section_corpus() {
  need_lz4
  local folder=${PTXKIT_CORPUS:-$source_folder/../shared/corpus}
  [ -d "$folder" ] || { echo "SKIPPED: no corpus: PTXKIT_CORPUS names no folder"; exit 77; }
  for file in "$folder"/*; do
    [ -f "$file" ] || continue
    expect 0 "$pack" -f --backend cpu --reproducible "$file" -o cpu.lz4
    lz4 -dcq cpu.lz4 | cmp -s - "$file" || fail "lz4 does not read the cpu backend's output: $file"
    head -c 262144 "$file" >start
    expect 0 "$pack" -f --backend emulator start -o emulator.lz4
    lz4 -dcq emulator.lz4 | cmp -s - start || fail "lz4 does not read the emulator backend's output: $file"
    expect 0 "$pack" -f --backend cpu --reproducible start -o cpu.lz4; same cpu.lz4 emulator.lz4
  done
  [ -s cpu.lz4 ] || fail "the corpus folder $folder holds no file"
}

"section_$section"
[ $failures = 0 ] && echo "passed: $section"
exit $((failures != 0))
