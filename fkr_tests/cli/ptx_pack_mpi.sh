#!/usr/bin/env bash
# Tests ptx-pack-mpi with four ranks on this machine, beside ptx-pack.
# usage: ptx_pack_mpi.sh PTX_PACK PTX_PACK_MPI SECTION [FAKE_CUDA]    PTX_PACK_MPI may be empty: not built
# Exit: 0 passed, 1 failed, 77 skipped (Open MPI is absent).
set -u
pack=$1 shared=$2 section=$3 fake_cuda=${4-}
[ -n "$shared" ] && command -v mpirun >/dev/null ||
  { echo "SKIPPED: no MPI (Debian packages libopenmpi-dev and openmpi-bin; then configure again)"; exit 77; }
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mpi_words=
work=$(mktemp -d) && trap 'chmod -R u+rwx "$work"; rm -rf "$work" "$mpi_words"' EXIT && cd "$work"
. "$source_folder/fkr_tests/cli/pack_common.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0
# Without mpirun's own words on a failed rank: --quiet until Open MPI 4, blocks between dashes and errors of PMIX since 5. Ranks of one
# machine need the loopback interface only.
export OMPI_MCA_btl_tcp_if_include=lo
quiet=$(mpirun --version | grep -q 'Open MPI) 4' && echo --quiet)
mpi_words=$(mktemp)
# shellcheck disable=SC2086
run_mpi() {
  mpirun $quiet --oversubscribe "$@" 2>"$mpi_words"; local code=$?
  sed '/^-----/,/^-----/d; /PMIX ERROR/d' "$mpi_words" >&2
  return $code
}
with() { (export "$1"; shift; "$@"); }
ranks() { local count=$1; shift; run_mpi -n "$count" "$shared" "$@" </dev/null; }
# One message, whatever the number of ranks.
says_once() {
  says "$1"
  [ "$(grep -c '^ptx-pack-mpi: ' err)" = 1 ] || { fail "expected one message"; head -c 1000 err; }
}
# Sets the file apart from others in ./out and ./err, which `only` would count.
alone() { mkdir -p alone && cd alone && rm -rf ./* ./.ptx-pack.* 2>/dev/null; }

# The bytes are those of one process: sizes around blocks, ranks and rounds, several codecs and options.
section_same_bytes() {
  seq 1 700000 >text
  head -c 100000 /dev/urandom >noise
  local size codec count
  for size in 0 1 65535 65536 65537 150000 4000000; do
    head -c $size text >x
    for codec in lz4 lzr bbw; do
      expect 0 "$pack" --backend cpu -f --codec $codec x -o one
      expect 0 ranks 4 -f --codec $codec x -o many; silent; same one many
    done
  done
  cat noise text noise >x  # stored blocks
  for options in "-B4 -BX" "-B7" "--no-content-size" "--no-frame-crc -B5" "--reproducible" "-3" "--codec lzr -1" "--codec lzf" "--codec deflate-like"; do
    # shellcheck disable=SC2086
    expect 0 "$pack" --backend cpu -f $options x -o one
    # shellcheck disable=SC2086
    expect 0 ranks 3 -f $options x -o many; same one many
  done
  expect 0 "$pack" --backend cpu -f x -o one
  for count in 1 2 4 7; do expect 0 ranks $count -f x -o many; same one many; done
  # A rank takes 32 MiB a round: several rounds, the last one short.
  for _ in $(seq 30); do cat text; done >big  # 147 MB
  expect 0 "$pack" --backend cpu -f big -o one; expect 0 ranks 2 -f big -o many; same one many
  expect 0 "$pack" --backend cpu -f -1 --codec lzr big -o one; expect 0 ranks 2 -f -1 --codec lzr big -o many; same one many
  # Without mpirun it is a job of one rank. Several inputs are shared one after another.
  expect 0 "$shared" -f x -o many; expect 0 "$pack" -f x -o one; same one many
  cp text y; expect 0 ranks 2 -m x y; for name in x y; do "$pack" -f $name -o one; same one $name.lz4; done
  expect 0 ranks 3 --rm x -fv; says "x -> x.lz4: "; says " on 3 ranks"; absent x
  chmod 640 y; touch -d 2001-01-01 y; expect 0 ranks 2 -f y
  [ "$(stat -c '%a %y' y)" = "$(stat -c '%a %y' y.lz4)" ] || fail "mode and times are the input's"
}

# Decompression and -t, of files of other programs too.
section_reading() {
  make_input
  for _ in 1 2 3 4 5; do cat input; done >x
  local size codec
  for size in 0 1 65536 65537 15000000; do
    head -c $size x >y
    for codec in lz4 lzr; do
      "$pack" -f --codec $codec y -o packed
      expect 0 ranks 4 -t packed; silent
      expect 0 ranks 4 -d -f packed -o back; silent; same y back
    done
  done
  for options in -B7 -BX --no-content-size --no-frame-crc "--codec bbw"; do
    # shellcheck disable=SC2086
    "$pack" -f $options x -o packed
    expect 0 ranks 3 -d -f packed -o back; same x back
  done
  # Several frames, some empty, with a skippable one between; blocks that are short in the middle of a frame.
  : >empty; "$pack" -f empty -o e.lz4; "$pack" -f -BX x -o x.lz4
  printf '\x50\x2a\x4d\x18\x03\x00\x00\x00abc' >skip
  cat e.lz4 skip x.lz4 e.lz4 x.lz4 skip >frames.lz4; cat x x >xx
  expect 0 ranks 4 -d -f frames.lz4 -o back; same xx back
  python3 - <<'PYTHON'
import struct
data = open("input", "rb").read()[:200000]
with open("short.lz4", "wb") as out:
    out.write(bytes.fromhex("04224d1860408 2".replace(" ", "")))
    at = 0
    for i in range(200):
        piece = data[at:at + 1 + i * 7 % 1000]
        at += len(piece)
        out.write(struct.pack("<I", len(piece) | 1 << 31) + piece)
    out.write(bytes(4))
open("short", "wb").write(data[:at])
PYTHON
  expect 0 "$pack" -d -f short.lz4 -o back; same short back
  expect 0 ranks 4 -d -f short.lz4 -o back; same short back
  if command -v lz4 >/dev/null; then
    lz4 -q -f -BI -B4 x foreign.lz4; expect 0 ranks 4 -d -f foreign.lz4 -o back; same x back
  fi
  for _ in $(seq 10); do cat x; done >big; "$pack" -q big
  expect 0 ranks 2 -d --rm -fv big.lz4 -o back; same big back; absent big.lz4; says "on 2 ranks"
}

# What is wrong with an input or a command is said once, with the words of ptx-pack, and leaves nothing behind.
section_errors() {
  make_input; cp input kept
  "$pack" -q input; "$pack" -q --codec lzr input; alone; cp ../input ../input.lz4 ../input.ptz .
  local name at one; shopt -s dotglob
  for name in input.lz4 input.ptz; do
    for at in 0 5 20 40 1000 500000 -20 -3; do
      python3 - $name $at <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 0x55
open("bad", "wb").write(data)
PYTHON
      options=""; [ $name = input.ptz ] && options="--codec lzr"
      # shellcheck disable=SC2086
      "$pack" $options -t bad 2>../one && { fail "$name with byte $at changed was taken"; continue; }
      one=$(sed 's/^ptx-pack: //' ../one)
      for mode in -t "-d -o back"; do
        # shellcheck disable=SC2086
        ranks 4 $options $mode bad >../out 2>../err; [ $? = 1 ] || fail "exit of $mode with byte $at of $name"
        (cd .. && says_once "$one")
      done
      rm bad; only "input input.lz4 input.ptz"
    done
    head -c 300000 $name >cut; ranks 4 -d cut -o back >../out 2>../err; (cd .. && says_once "cut"); rm cut; only "input input.lz4 input.ptz"
  done
  cd ..; expect 1 ranks 4 -d kept -o back; says_once "kept, frame 0, byte 0: not an LZ4 file"
  "$pack" -BD input -o linked.lz4; expect 1 ranks 4 -d linked.lz4 -o back; says_once "linked.lz4, byte 0: ranks cannot share a frame whose blocks are linked; decompress it with ptx-pack"
  expect 1 ranks 4 nothing; says_once "nothing: cannot open: No such file or directory"
  expect 1 ranks 4 input; says_once "input.lz4: the output exists already; add -f to overwrite it"
  cp input two; "$pack" --codec lzf two; "$pack" -q -B5 input -o two.lz4; cp two.lz4 kept.lz4
  expect 1 ranks 2 -dmf --rm two.lz4 two.ptz; says_once "two: this run has written the output already, from another input"; present two.ptz
  cp kept.lz4 two.lz4; expect 1 ranks 2 -zmf two.lz4 two; says_once "two.lz4: the output is another input of this run"; same two.lz4 kept.lz4
  rm two two.* kept.lz4
  expect 1 ranks 4 input -o nowhere/x; says_once "nowhere/x: cannot create a file beside it: No such file or directory"
  expect 1 ranks 4 input -o /dev/null; says_once "/dev/null: expected a file to write, found a device"
  expect 1 ranks 4 /dev/null -o x; says_once "/dev/null: expected a file whose size is known"
  expect 1 ranks 4 -d kept; says_once "expected a name that ends in .lz4, .ptz, .zst or .gz"
  expect 1 ranks 4 -f input -o input; says_once "input: the output is the input"; same input kept
  PTXKIT_LIBCUDA=/nowhere expect 1 ranks 4 --backend cuda -f input; says_once "no NVIDIA driver"
  expect 1 ranks 2 -qq nothing; silent
  expect 0 with PTXKIT_LIBCUDA=/nowhere run_mpi -n 4 "$shared" --policy gpu -vf input
  says_once "using the CPU: no NVIDIA driver"
  local words
  for words in -b "-c input" - "-r ." "-BD input" "--list x.lz4" --measure-rates "--auto input" "--trial input" "--memory 64M input" "--policy mixed input" \
    "--range 1:2 x.lz4 -o y" "--sandbox=require input" "--share-by-rank input" "-d --sparse input.lz4" "--trace t input" "--verify input"; do
    # shellcheck disable=SC2086
    expect 2 ranks 4 $words; says_once " "; grep -q "refused" err || fail "$words is not refused"
  done
  expect 2 ranks 4 --wrong input; says_once "unknown option '--wrong'"
  expect 0 ranks 4 --help; prints "mpirun ptx-pack-mpi BIG"; [ "$(grep -c 'mpirun ptx-pack-mpi BIG' out)" = 1 ] || fail "help is printed more than once"
  # Ranks with other command lines or other files.
  run_mpi -n 1 true : -n 1 true 2>/dev/null || { echo "not tested: this mpirun crashes with two programs"; return; }
  expect 2 run_mpi -n 1 "$shared" -f input : -n 1 "$shared" -f kept; says_once "rank 1 on"; says "its command line is not that of rank 0"
  mkdir a b; cp input a/x; head -c 1000 input >b/x
  expect 1 run_mpi -n 1 -wdir "$work/a" "$shared" x : -n 1 -wdir "$work/b" "$shared" x
  says_once "rank 1 on "; says "expected $(stat -c %s input) bytes, as rank 0 sees them, found 1000; every rank must see the same file"
  cp input b/x; expect 1 run_mpi -n 1 -wdir "$work/a" "$shared" x : -n 1 -wdir "$work/b" "$shared" x
  says_once "x.lz4: cannot open the unfinished output: No such file or directory; write to a folder that the machines of all ranks share"
  [ "$(ls -A a) $(ls -A b)" = "x x" ] || fail "something is left: $(ls -A a b)"
}

# The process of a rank of the mpirun with process id $1.
process_of_rank() {
  local process
  for process in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$process" && return
  done
}
# interrupt WHOM WHEN: runs the job and kills a rank, or mpirun itself, at a moment.
interrupt() {
  local whom=$1 when=$2 job victim= tries=0
  # shellcheck disable=SC2086
  mpirun $quiet --oversubscribe -n 4 "$shared" --codec lzr --rm x </dev/null >../out 2>../err & job=$!
  while kill -0 $job 2>/dev/null; do
    case $when in
      started) [ -n "$(process_of_rank $job 3)" ] && break ;;
      created) [ -n "$(ls .ptx-pack.* 2>/dev/null)" ] && break ;;
      written) [ -n "$(find . -name '.ptx-pack.*' -size +100k)" ] && break ;;
    esac
    tries=$((tries + 1)); [ $tries -lt 20000 ] || break
  done
  if [ "$whom" = mpirun ]; then victim=$job; else victim=$(process_of_rank $job "$whom"); fi
  [ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null || fail "rank $whom could not be killed when $when"
  # An mpirun of Open MPI 4 may wait for ever for ranks that are dead.
  for _ in $(seq 300); do kill -0 $job 2>/dev/null || break; sleep 0.1; done
  if kill -0 $job 2>/dev/null; then
    echo "mpirun hung after $whom was killed when $when"
    kill -KILL $job
  fi
  wait $job && fail "mpirun reports success after $whom was killed when $when"
  for _ in $(seq 600); do pgrep -f "$shared --codec lzr --rm x" >/dev/null || break; sleep 0.1; done
  if [ "$whom" = mpirun ] && [ -e x.ptz ]; then  # ranks of Open MPI 5 outlive it and finish their work
    "$pack" -dc x.ptz | cmp -s - ../kept || fail "killed mpirun when $when: the output is wrong"
    mv x.ptz ../finished; cp ../kept x
  fi
  [ "$(ls -A)" = x ] || { fail "killed $whom when $when: left $(ls -A | tr '\n' ' ')"; rm -f .ptx-pack.*; }
  cmp -s x ../kept || { fail "killed $whom when $when: the input is lost"; cp ../kept x; }
}
section_killed() {
  seq 1 700000 >text; for _ in $(seq 32); do cat text; done >kept; rm text  # 157 MB, two rounds
  alone; cp ../kept x
  local whom when
  for when in started created written; do
    for whom in 0 3 mpirun; do interrupt $whom $when; done
  done
  cd ..
}

section_full_disk() {
  make_input; for _ in 1 2 3 4 5; do cat input; done >x; mkdir small
  "$pack" -q x; "$pack" -q --codec lzr x
  local mounted=
  if mount -t tmpfs -o size=1m none small 2>/dev/null; then
    mounted=1
    for words in "x -o small/x" "--codec lzr x -o small/x" "-d x.lz4 -o small/x" "-d x.ptz -o small/x"; do
      # shellcheck disable=SC2086
      expect 1 ranks 4 --rm $words; says_once "small/x: cannot write: No space left on device"
      [ -z "$(ls -A small)" ] || fail "left on the full disk: $(ls -A small)"
    done
    # Open MPI's other MPI-IO reports no error.
    expect 1 with OMPI_MCA_io=ompio run_mpi -n 4 "$shared" x -o small/x; says_once "small/x: cannot write: "
    [ -z "$(ls -A small)" ] || fail "left on the full disk: $(ls -A small)"
    umount small
  fi
  # A limit on file sizes, with the signal and without it.
  for _ in $(seq 5); do cat x x; done >large; mv large x; "$pack" -qf x  # Open MPI 5 has files of megabytes itself
  local limited="ulimit -f 65536; exec '$shared' --rm -d x.lz4 -o small/x"
  expect 1 run_mpi -n 4 bash -c "trap '' XFSZ; $limited"
  says_once "small/x: cannot write: File too large"
  run_mpi -n 4 bash -c "$limited" >out 2>err && fail "a limit on file sizes was ignored"
  [ -z "$(ls -A small)" ] || fail "left: $(ls -A small)"
  present x x.lz4 x.ptz
  [ -n "$mounted" ] || echo "a full disk could not be mounted here; the limit on file sizes was tested"
}

# Ranks of one machine take GPUs in turn.
section_devices() {
  [ -n "$fake_cuda" ] || { echo "SKIPPED: the fake driver is not built"; exit 77; }
  export PTXKIT_LIBCUDA=$fake_cuda PTXKIT_FAKE_CUDA_DEVICES=3
  make_input
  "$pack" --reproducible --backend cpu input -o one.lz4
  expect 0 ranks 4 --backend cuda -vvf input; same one.lz4 input.lz4
  local rank device
  for pair in 0:0 1:1 2:2 3:0; do grep -q "^  rank ${pair%:*} on .*cuda, device ${pair#*:}" err || { fail "rank ${pair%:*} has not GPU ${pair#*:}"; cat err; }; done
  expect 0 ranks 4 --backend cuda --device 2,1 -vvf input; same one.lz4 input.lz4
  for pair in 0:2 1:1 2:2 3:1; do grep -q "^  rank ${pair%:*} on .*cuda, device ${pair#*:}" err || fail "rank ${pair%:*} has not GPU ${pair#*:} of --device 2,1"; done
  expect 0 ranks 4 --policy gpu -dvvf one.lz4 -o back; same input back; says "cuda, device 2"
  expect 1 ranks 4 --backend cuda --device 7 -f input; says_once "there is no device 7"
}

"section_$section"
[ $failures = 0 ] && echo "passed"
exit $((failures != 0))
