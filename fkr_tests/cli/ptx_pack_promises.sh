#!/usr/bin/env bash
# Tests what ptx-pack guarantees for files under adverse conditions: closed descriptors, no threads, concurrent writers,
# limits, signals, owners. usage: ptx_pack_promises.sh PROGRAM SECTION
# Exit: 0 passed, 1 failed, 77 skipped (something the section needs is absent).
set -u
pack=$1 section=$2
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d) && trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT && cd "$work"
. "$source_folder/fkr_tests/cli/pack_common.sh"

# What can go wrong with a file is tried with LZ4, and with a codec of each other format.
other_codecs="lzr zstd gzip"
suffix_of() { case $1 in lz4) echo .lz4 ;; zstd) echo .zst ;; gzip) echo .gz ;; *) echo .ptz ;; esac; }

# Without some standard descriptors nothing is lost: the input is removed only after its output exists.
section_closed_descriptors() {
  seq 1 1000 >kept
  local closed
  for closed in '<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
    cp kept x
    bash -c "exec '$pack' --rm x $closed" || fail "--rm with $closed: exit $?"
    absent x; present x.lz4
    bash -c "exec '$pack' -d --rm x.lz4 $closed" || fail "-d --rm with $closed: exit $?"
    absent x.lz4; same x kept
    local codec
    for codec in $other_codecs; do
      cp kept x; bash -c "exec '$pack' --codec $codec --rm x $closed" || fail "--codec $codec --rm with $closed: exit $?"
      absent x; expect 0 "$pack" -d --rm x"$(suffix_of $codec)"; same x kept
    done
    rm -f x
  done
  # A missing standard output accepts no bytes.
  cp kept x; expect 1 bash -c "exec '$pack' -c x >&-"; says "standard output: cannot write: Bad file descriptor"
  expect 1 bash -c "exec '$pack' --list x.lz4 >&- </dev/null"
  expect 1 bash -c "exec '$pack' -c <&- >out"; says "standard input: cannot read: Bad file descriptor"
}

# An output that is a device, a pipe, a descriptor or a link is written to and not replaced.
section_written_through() {
  seq 1 1000 >x; "$pack" -q -c x >expected
  echo old >target; ln -s target link; ln -s nowhere dangling; mkdir d; ln -s ../target d/link
  expect 1 "$pack" -o link x; says "link: the output exists already; add -f to overwrite it"
  [ "$(cat target)" = old ] || fail "the target of a link was written without -f"
  expect 0 "$pack" -f -o link x; [ -L link ] || fail "the link was replaced"; same target expected
  echo old >target; expect 0 "$pack" -f -o d/link x; [ -L d/link ] || fail "the link was replaced"; same target expected
  expect 1 "$pack" -o dangling x; says "dangling: the output exists already"; absent nowhere
  expect 0 "$pack" -f -o dangling x; [ -L dangling ] || fail "the link was replaced"; same nowhere expected
  ln -s loop loop; expect 1 "$pack" -f -o loop x; says "loop: cannot open: Too many levels of symbolic links"
  cp expected in.lz4; ln -s target in; expect 0 "$pack" -d -f in.lz4; [ -L in ] || fail "the link was replaced"; same target x
  # Descriptors under any name, from their current position. A link of our own comes first, to protect the system's
  # links.
  local name; ln -s /proc/self/fd/1 mine
  for name in mine /dev/stdout /dev/fd/1 /proc/self/fd/1; do
    { printf start; "$pack" -f -o $name x; } >file || fail "exit $?"
    { printf start; cat expected; } | cmp -s - file || fail "$name was not written through"
    [ -L mine ] || { fail "a link to standard output was replaced"; return; }
    { printf start; "$pack" -f -o $name x; } >>file
    { printf start; cat expected; printf start; cat expected; } | cmp -s - file || fail "$name >> was not appended to"
    "$pack" -o $name x | cmp -s - expected || fail "$name is a pipe"
  done
  "$pack" -o /dev/fd/5 x 5>five; same five expected
  mkfifo pipe; cat pipe >piped & "$pack" -f -o pipe x; wait $!; [ -p pipe ] || fail "the pipe was replaced"; same piped expected
  expect 0 "$pack" -f -o /dev/null x; [ -c /dev/null ] || fail "/dev/null was replaced"
  # Such an output does not permit --rm.
  expect 1 "$pack" --rm x -o /dev/null; says "/dev/null: --rm needs an output file, found a device"; present x
  expect 1 bash -c "'$pack' --rm x -o /dev/stdout >out2"; present x
  expect 1 bash -c "'$pack' -c x >>x"; says "standard output: the output is the input"
}

# Compares with lz4 on the same outputs, if it is installed.
section_written_through_as_lz4() {
  need_lz4
  seq 1 1000 >x
  local program kinds
  for program in "$pack" lz4; do
    rm -f link target pipe; echo old >target; ln -s target link; mkfifo pipe
    "$program" -q -f x link; cat pipe >/dev/null & "$program" -q -f x pipe; wait $!
    kinds=$(stat -c '%n %F' link pipe /dev/null | tr '\n' ';')
    [ "$kinds" = "link symbolic link;pipe fifo;/dev/null character special file;" ] || fail "$program: $kinds"
    "$pack" -dc target | cmp -s - x || fail "$program did not write through the link"
  done
}

# The second writer does not overwrite, and reports it.
section_appears_meanwhile() {
  mkfifo pipe
  "$pack" -q pipe -o x.lz4 2>err & local job=$!
  exec 7>pipe; head -c 3000000 /dev/urandom >&7; echo other >x.lz4; exec 7>&-
  wait $job && fail "an output that appeared meanwhile was overwritten"
  says "x.lz4: the output exists already; add -f to overwrite it"; [ "$(cat x.lz4)" = other ] || fail "x.lz4 was overwritten"
  "$pack" -qf pipe -o x.lz4 & job=$!
  exec 7>pipe; head -c 3000000 /dev/urandom >&7; exec 7>&-
  wait $job || fail "-f should overwrite"; expect 0 "$pack" -t x.lz4
  # One of two concurrent processes reports it.
  rm x.lz4; mkfifo other; seq 1 9000 >data
  "$pack" -q pipe -o x.lz4 2>err1 & local one=$!
  "$pack" -q other -o x.lz4 2>err2 & local two=$!
  exec 7>pipe 8>other; cat data >&7; cat data >&8; exec 7>&- 8>&-
  local sum=0; wait $one || sum=$((sum + 1)); wait $two || sum=$((sum + 1))
  [ $sum = 1 ] || fail "of two writers $sum failed"
  cat err1 err2 >err; says "x.lz4: the output exists already"; expect 0 "$pack" -t x.lz4
  rm -f pipe other err err1 err2 out data; only x.lz4
}

# With -f too, no output replaces another input or output of the run, and the time line replaces neither.
section_same_run() {
  seq 1 1000 >one; seq 5 2000 >two; "$pack" -q one -o x.lz4; "$pack" -q --codec zstd two -o x.zst
  local options; mkdir folder
  for options in "-m" "-m --rm"; do
    cp x.lz4 x.zst folder; rm -f folder/x
    # shellcheck disable=SC2086
    expect 1 "$pack" -d -f $options folder/x.lz4 folder/x.zst
    says "folder/x: this run has written the output already, from another input; name another output of folder/x.zst with -o"
    same folder/x one; present folder/x.zst
  done
  rm folder/*; cp x.lz4 x.zst folder; expect 1 "$pack" -rdf --rm folder; same folder/x one; same folder/x.zst x.zst
  # Under another name of it: a link.
  rm folder/*; cp x.lz4 folder; cp x.zst folder/y.zst; ln -s x folder/y
  expect 1 "$pack" -rdf --rm folder; same folder/x one; same folder/y.zst x.zst
  # Inputs that come later, and earlier.
  cp one a; cp x.lz4 a.lz4; expect 1 "$pack" -z -mf --rm a a.lz4
  says "a.lz4: the output is another input of this run; name another output of a with -o"
  present a; "$pack" -dc a.lz4.lz4 | cmp -s - x.lz4 || fail "a.lz4 was compressed after it was replaced"
  cp x.lz4 a.lz4; expect 1 "$pack" -z -mf a.lz4 a; same a.lz4 x.lz4
  cp x.lz4 b.lz4; "$pack" -q --codec gzip one -o b.lz4.gz; expect 1 "$pack" -mdf b.lz4 b.lz4.gz; same b.lz4 x.lz4; same b one
  # Separate runs do as before, and so does one whose names are apart.
  expect 0 "$pack" -df x.lz4; expect 0 "$pack" -df x.zst; same x two
  expect 0 "$pack" -mf one two; expect 0 "$pack" -mf one two; expect 0 "$pack" -mdf one.lz4 two.lz4

  cp one kept; ln -s one link; ln one hard; local name
  for name in one ./one folder/../one link hard; do
    expect 2 "$pack" -f --trace $name one -o out.lz4; says "$name: --trace names an input, which would be overwritten"
    same one kept; absent out.lz4
  done
  for name in out.lz4 "./out.lz4"; do
    expect 2 "$pack" -f --trace $name one -o out.lz4; says "$name: --trace and an output are the same file"; absent out.lz4
    cp x.lz4 out.lz4; expect 2 "$pack" -f --trace $name one -o out.lz4; same out.lz4 x.lz4; rm out.lz4
  done
  expect 2 "$pack" -f --auto --trace two.ptz two; says "two.ptz: --trace and an output are the same file"
  expect 2 "$pack" -t --trace x.lz4 x.lz4; says "--trace names an input"; expect 0 "$pack" -t x.lz4
  echo old >line; expect 2 "$pack" --trace line -t x.lz4; says "line: the file of --trace exists already; add -f to overwrite it"
  [ "$(cat line)" = old ] || fail "--trace overwrites without -f"
  expect 0 "$pack" -f --trace line -t x.lz4; grep -q traceEvents line || fail "no time line"
  expect 0 "$pack" --trace new -t x.lz4; expect 0 "$pack" --trace /dev/null -t x.lz4
  rm -rf ./*.lz4 line new out.lz4; time_line_and_links; time_line_and_standard_descriptors; time_line_meanwhile
}

# Links that lead to no file yet name the outputs that will be there.
time_line_and_links() {
  local options
  cp kept a; mkdir -p folder; ln -s a.lz4 dangling; ln -s ../dangling folder/twice; ln -s "$work/./folder/../a.lz4" absolute
  for options in "" -f; do
    for name in dangling folder/twice absolute; do
      # shellcheck disable=SC2086
      expect 2 "$pack" $options --rm --trace $name a; says "$name: --trace and an output are the same file"
      same a kept; absent a.lz4; [ -L $name ] || fail "$name was replaced"
    done
  done
  expect 0 "$pack" --rm a; cp a.lz4 packed; ln -s a to_a; expect 2 "$pack" -d --rm --trace to_a a.lz4
  says "to_a: --trace and an output are the same file"; same a.lz4 packed; absent a
  cp kept a; ln -s real.out to_real; expect 2 "$pack" -f --rm --trace real.out a -o to_real
  says "real.out: --trace and an output are the same file"; same a kept; absent real.out
  ln -s elsewhere to_nothing; expect 2 "$pack" --trace to_nothing -t packed; says "to_nothing: the file of --trace exists already"
  absent elsewhere; expect 0 "$pack" -f --trace to_nothing -t packed; [ -L to_nothing ] || fail "the link was replaced"
  grep -q traceEvents elsewhere || fail "no time line where the link leads"
  rm -rf dangling absolute folder to_a to_real to_nothing elsewhere
}

# What the standard descriptors lead to is not replaced.
time_line_and_standard_descriptors() {
  cp kept a; expect 2 bash -c "'$pack' -f --trace a -o out.lz4 <a"; says "a: --trace names an input"; same a kept; absent out.lz4
  : >whole; bash -c "'$pack' -f --trace whole -c a >whole" 2>err && fail "--trace replaces standard output"
  says "whole: --trace and an output are the same file"
  bash -c "'$pack' -f --trace said -vt packed 2>said" && fail "--trace replaces standard error"
  grep -q "said: --trace names the file of a standard descriptor" said || fail "what was said is lost"
  { "$pack" -c --trace /dev/stdout a 2>err && fail "--trace writes between the output's bytes"; } | wc -c | grep -qx 0 || fail "output was written"
  says "/dev/stdout: --trace and an output are the same file"
  "$pack" -t --trace /dev/stdout packed | grep -q traceEvents || fail "no time line on standard output"
  rm -f out.lz4 whole said
}

# A file that appears at its name while the run works stays.
time_line_meanwhile() {
  local job flag
  mkfifo pipe
  for flag in "" -f; do
    # shellcheck disable=SC2086
    "$pack" -q $flag pipe -o meanwhile.lz4 --trace line 2>err & job=$!
    exec 7>pipe; head -c 3000000 /dev/zero >&7; ln a line; exec 7>&-
    if [ -z "$flag" ]; then
      wait $job && fail "a file that appeared meanwhile was overwritten"; says "line: the output exists already"; same line kept
    else
      wait $job || fail "-f should overwrite"; grep -q traceEvents line || fail "no time line"
    fi
    same a kept; expect 0 "$pack" -t meanwhile.lz4; rm -f line meanwhile.lz4
  done
  # Under -f too, where it is an output of the run: the second input waits until the first is done.
  "$pack" -qmf --trace line a pipe 2>err & job=$!
  exec 7>pipe; for _ in $(seq 200); do [ -e a.lz4 ] && break; sleep 0.05; done
  ln a.lz4 line; exec 7>&-
  wait $job && fail "--trace replaced an output"; says "line: the time line is lost: an input or an output of the run lies in its place"
  [ line -ef a.lz4 ] || fail "an output was replaced"; "$pack" -dc a.lz4 | cmp -s - a || fail "an output was lost"
  rm -f line a.lz4 pipe.lz4 pipe
}

# The input is removed only if nothing has written to it since. The program is stopped while it reads.
section_changed_input() {
  local codec job file attempt change
  for codec in lz4 $other_codecs; do
    for change in 'echo more >>x' 'printf Y | dd of=x bs=1 seek=19999999 conv=notrunc status=none' 'cp x y; mv y x'; do
      for attempt in $(seq 50); do
        head -c 20000000 /dev/zero | tr '\0' X >x; rm -f x.*
        "$pack" -T1 --codec $codec --rm x 2>err & job=$!
        while kill -0 $job 2>/dev/null; do
          for file in /proc/$job/fd/*; do [ "$file" -ef x ] && break 2; done
        done
        kill -STOP $job 2>/dev/null; [ -e x ] && break
        kill -CONT $job; wait $job
      done
      [ -e x ] || { fail "never stopped in time"; continue; }
      eval "$change"; kill -CONT $job
      wait $job && fail "$codec, $change: an input that has changed was removed"
      present x; grep -qE "the input (changed while it was read|is kept: it has changed since it was read)" err || { fail "$codec, $change"; cat err; }
    done
    rm -f x.*; expect 0 "$pack" --codec $codec --rm x; absent x
  done
}

# The size of files in /proc and /sys is meaningless.
section_made_when_read() {
  local file codec
  for file in /proc/cpuinfo /proc/self/mounts /sys/kernel/mm/transparent_hugepage/enabled; do
    [ -r $file ] || continue
    expect 0 "$pack" -c $file; silent; cp out packed; "$pack" -dc packed >plain; [ -s plain ] || fail "$file is empty"
    for codec in $other_codecs; do expect 0 "$pack" --codec $codec -c $file; silent; done
    expect 0 "$pack" -c <$file; silent
  done
  "$pack" -dc <("$pack" -c /proc/version) | cmp -s - /proc/version || fail "/proc/version differs"
  : >empty; expect 0 "$pack" empty; [ "$(stat -c %s empty.lz4)" = 23 ] || fail "an empty file has a known size: $(stat -c %s empty.lz4)"
}

# Without threads the work is still done.
section_no_threads() {
  need_root; chmod 777 .
  seq 1 300000 >x; "$pack" -q -T1 -c x >expected; "$pack" -q --codec lzr -c x >expected.ptz
  "$pack" -q --codec zstd -c x >expected.zst; "$pack" -q --codec gzip -c x >expected.gz
  # Copies the program, because another user may have no access to the build folder.
  cp "$pack" ./program; chmod 755 program
  local flags
  for flags in "ulimit -u 1" "ulimit -v 60000" "ulimit -v 90000"; do
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -c x"; same out expected
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -dc expected"; same out x
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -dc expected.ptz"; same out x
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -dc expected.zst"; same out x
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -c --codec zstd x"; same out expected.zst
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -c --codec gzip x"; same out expected.gz
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -dc expected.gz"; same out x
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program -T8 -c --codec lzr x"; same out expected.ptz
    expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$flags; exec ./program --policy mixed -T8 -c x"
  done
  expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "ulimit -u 1; exec ./program -v -T8 -c x"
  says "using 1 of 8 threads: the system has no more to give"; [ "$(wc -l <err)" = 2 ] || fail "one message expected"
  expect 0 timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "ulimit -u 1; exec ./program -T8 -c x"; silent
  # Memory may run out at any point: that must be an error, never an abort.
  local kilobytes code codec
  seq 1 500 >small
  for kilobytes in $(seq 10000 2000 90000); do
    (bash -c "ulimit -v $kilobytes; exec ./program --version") >out 2>err || continue  # too little for the program
    timeout 60 bash -c "ulimit -v $kilobytes; exec ./program -T1 -c --backend emulator small" >out 2>err; code=$?
    [ $code -le 1 ] || { fail "with $kilobytes KiB on the emulator: exit $code"; head -c 300 err; }
    [ $code != 0 ] || "$pack" -dc out | cmp -s - small || fail "with $kilobytes KiB the emulator's output is wrong"
    for codec in bbw zstd gzip; do
      timeout 60 bash -c "ulimit -v $kilobytes; exec ./program -T4 -c --codec $codec x" >out 2>err; code=$?
      [ $code -le 1 ] || { fail "with $kilobytes KiB: exit $code"; head -c 300 err; }
      [ $code != 0 ] || "$pack" -dc out | cmp -s - x || fail "with $kilobytes KiB the output of $codec is wrong"
    done
  done
}

# After any signal, no temporary file is left and no output is put in place.
section_signals() {
  local signal job code codec=zstd
  for signal in HUP INT QUIT ABRT PIPE ALRM TERM USR1 USR2 XCPU XFSZ VTALRM PROF IO KILL; do
    [ $signal != KILL ] || has_unnamed_files || continue
    mkfifo pipe
    codec=$([ "$codec" = zstd ] && echo lz4 || echo zstd)  # in turns
    (exec env --default-signal "$pack" -q --codec $codec pipe -o result) & job=$!
    exec 7>pipe; head -c 9000000 /dev/urandom >&7
    kill -$signal $job; wait $job 2>/dev/null; code=$?
    exec 7>&-
    [ $code -gt 128 ] || fail "SIG$signal: expected an end by signal, found exit $code"
    rm -f pipe core*
    [ -z "$(ls -A)" ] || { fail "left behind after SIG$signal: $(ls -A)"; rm -rf ./* .ptx-pack.*; }
  done
}
# The same with named temporary files, as on file systems without O_TMPFILE: strace makes the flag fail.
section_signals_with_names() {
  strace -qq -o /dev/null true 2>/dev/null || { echo "SKIPPED: strace (Debian package strace) is absent or may not trace here"; exit 77; }
  local signal job code found
  # Files without a name are asked for as "." of their folder. strace resolves that in the root folder, so that it does
  # not mean the working folder. Names with folders, lest one is opened as ".".
  local pack_here=("$pack" --sandbox=off --trace "$work/line")
  local refuse=(env -C / strace -f -qq -o /dev/null -P . -e inject=openat:error=EOPNOTSUPP env -C "$work")
  mkfifo pipe
  for signal in HUP INT QUIT ABRT ALRM TERM USR1 USR2 XFSZ; do
    (exec env --default-signal "${refuse[@]}" "${pack_here[@]}" -q "$work/pipe" -o "$work/result.lz4") & job=$!
    exec 7>pipe; head -c 9000000 /dev/urandom >&7
    for _ in $(seq 100); do [ "$(ls .ptx-pack.* 2>/dev/null | wc -l)" = 2 ] && break; sleep 0.05; done
    [ "$(ls .ptx-pack.* 2>/dev/null | wc -l)" = 2 ] || fail "two temporary files expected while running"
    found=$(pgrep -P $job | head -1); kill -$signal "$found"; wait $job 2>/dev/null; code=$?
    exec 7>&-
    [ $code -gt 128 ] || fail "SIG$signal: expected an end by signal, found exit $code"
    rm -f core*
    [ "$(ls -A)" = pipe ] || { fail "left behind after SIG$signal: $(ls -A)"; rm -f result.lz4 line .ptx-pack.*; }
  done
  "${refuse[@]}" "${pack_here[@]}" -q "$work/pipe" -o "$work/result.lz4" & job=$!
  exec 7>pipe; head -c 90000 /dev/zero >&7; exec 7>&-; wait $job || fail "without O_TMPFILE: exit $?"
  expect 0 "$pack" -t result.lz4; grep -q traceEvents line || fail "no time line"; seq 1 9 >x; rm line
  expect 1 "${refuse[@]}" "${pack_here[@]}" "$work/x" -o "$work/result.lz4"; says "result.lz4: the output exists already"
  expect 0 "${refuse[@]}" "${pack_here[@]}" -f "$work/x" -o "$work/result.lz4"; "$pack" -dc result.lz4 | cmp -s - x || fail "-f without O_TMPFILE"
  rm -f out err x line result.lz4; only pipe
}
# File systems without O_TMPFILE, without RENAME_NOREPLACE, and without hard links: nothing is overwritten either.
section_old_file_systems() {
  strace -qq -o /dev/null true 2>/dev/null || { echo "SKIPPED: strace (Debian package strace) is absent or may not trace here"; exit 77; }
  has_unnamed_files || { echo "SKIPPED: no O_TMPFILE in $work"; exit 77; }
  seq 1 1000 >x; "$pack" -qc x >expected
  strace -f -qq -e trace=openat -o log "$pack" -T1 -q x; rm x.lz4
  local nth; nth=$(grep -n O_TMPFILE log | cut -d: -f1 | head -1); rm log
  [ -n "$nth" ] || { fail "no O_TMPFILE was asked for"; return; }
  local lacks
  for lacks in "renameat2:error=EINVAL" "renameat2:error=ENOSYS" "renameat2:error=EINVAL -e inject=linkat:error=EPERM"; do
    # shellcheck disable=SC2086
    old() { strace -f -qq -o /dev/null -e inject=openat:error=EOPNOTSUPP:when=$nth -e inject=$lacks "$@"; }
    expect 0 old "$pack" -T1 x; same x.lz4 expected
    echo other >x.lz4; expect 0 old "$pack" -T1 -f x; same x.lz4 expected; rm x.lz4
    rm -f pipe; mkfifo pipe; old "$pack" -T1 -q pipe -o x.lz4 2>err & local job=$!
    exec 7>pipe; for _ in $(seq 100); do ls .ptx-pack.* >/dev/null 2>&1 && break; sleep 0.05; done
    echo other >x.lz4; exec 7>&-
    wait $job && fail "an output that appeared meanwhile was overwritten: $lacks"
    says "x.lz4: the output exists already"; [ "$(cat x.lz4)" = other ] || fail "x.lz4 was overwritten"; rm x.lz4
  done
  rm -f out err pipe; only expected x
}
has_unnamed_files() { python3 -c 'import os; os.close(os.open(".", os.O_TMPFILE | os.O_RDWR))' 2>/dev/null; }

# File names of maximum length.
section_long_names() {
  local length name
  for length in 243 244 245 249 251; do
    name=$(printf 'n%.0s' $(seq $length)); seq 1 100 >$name
    expect 0 "$pack" $name; present $name.lz4; mv $name kept
    expect 0 "$pack" -d $name.lz4; same $name kept; expect 0 "$pack" -df $name.lz4; rm -f $name*
  done
  name=$(printf 'n%.0s' $(seq 252)); seq 1 100 >$name; expect 1 "$pack" $name; says "cannot write: File name too long"
}

# Text on a terminal contains no control characters and none that change its direction.
section_names() {
  local name
  for name in $'a\u202Eb' $'a\u2066b' $'a\u200Fb' $'a\u061Cb' $'a\u009bb' $'a\x9bb' $'a\u2028b' $'a\eb'; do
    seq 1 9 >"$name"; expect 0 "$pack" -v "$name"; says "a?b -> a?b.lz4: "
    expect 1 "$pack" "$name"; says "a?b.lz4: the output exists already"
    expect 0 "$pack" --list "$name.lz4"; prints "  a?b.lz4"; rm -f "$name"*
  done
  name=$'na\u00efve \u4e2d\u6587'; seq 1 9 >"$name"; expect 0 "$pack" -v "$name"; says "$name -> "
}

# A full standard output is an error in every mode that writes to it.
section_full_output() {
  [ -w /dev/full ] || { echo "SKIPPED: no /dev/full"; exit 77; }
  seq 1 100 >x; "$pack" -q x
  expect 1 bash -c "'$pack' --list x.lz4 >/dev/full"; says "standard output: cannot write: No space left on device"
  expect 1 bash -c "'$pack' -m --list $(printf 'x.lz4 %.0s' $(seq 300)) >/dev/full"; says "standard output: cannot write"
  [ "$(wc -l <err)" = 1 ] || fail "one message expected"
  expect 1 bash -c "'$pack' -b x >/dev/full"; says "standard output: cannot write"
  # A full standard error is not an error.
  expect 0 bash -c "'$pack' -vv --rm x -o y.lz4 2>/dev/full"; absent x; present y.lz4
  bash -c "'$pack' nothing 2>/dev/full"; [ $? = 1 ] || fail "an input that is missing"
}

section_unreadable_folder() {
  need_root
  mkdir -p t/a t/b t/c good; seq 1 9 >t/a/x; cp t/a/x t/b/x; cp t/a/x t/c/x; cp t/a/x good/x
  chmod -R 777 .; chmod 0 t/b; cp "$pack" ./program
  expect 1 as_nobody ./program -r t good; says "t/b: cannot read the directory: Permission denied"
  [ "$(wc -l <err)" = 1 ] || fail "one message expected"
  present t/a/x.lz4 t/c/x.lz4 good/x.lz4; absent t/b/x.lz4
  expect 1 as_nobody ./program -tr t good; says "t/b: cannot read the directory"
  chmod 755 t/b; expect 0 as_nobody ./program -tr t good
}

# Owners are taken over as far as permitted; rights are never granted to another user or group.
section_owners() {
  need_root; chmod 777 .; cp "$pack" ./program; chmod 755 program
  seq 1 9 >x; chown 1234:2345 x; chmod 6750 x
  expect 0 "$pack" -f x; [ "$(stat -c '%u:%g %a' x.lz4)" = "1234:2345 6750" ] || fail "as root: $(stat -c '%u:%g %a' x.lz4)"
  rm -f x.lz4; chmod 4755 x
  expect 0 as_nobody ./program x; [ "$(stat -c '%u:%g %a' x.lz4)" = "65534:65534 755" ] || fail "setuid: $(stat -c '%u:%g %a' x.lz4)"
  silent; rm -f x.lz4
  expect 0 as_nobody ./program -v x; says "x.lz4: the owner is not taken over: Operation not permitted"; rm -f x.lz4
  # The caller's group does not get the rights of the file's group.
  chown 65534:2345 x; chmod 640 x
  expect 0 as_nobody ./program x; [ "$(stat -c '%g %a' x.lz4)" = "65534 600" ] || fail "group: $(stat -c '%g %a' x.lz4)"; rm -f x.lz4
  chmod 2654 x
  expect 0 as_nobody ./program x; [ "$(stat -c '%g %a' x.lz4)" = "65534 644" ] || fail "common bits: $(stat -c '%g %a' x.lz4)"; rm -f x.lz4
  # A group of the caller is taken over.
  chown 1:2345 x; chmod 664 x
  expect 0 setpriv --reuid 65534 --regid 65534 --groups 2345 ./program x
  [ "$(stat -c '%u:%g %a' x.lz4)" = "65534:2345 664" ] || fail "a group of the caller's: $(stat -c '%u:%g %a' x.lz4)"; rm -f x.lz4
  # user::rw-, user:1:rw-, group::r--, mask::rw-, other::---; the mode shows the mask.
  python3 -c 'import os, struct
entries = (1, 6, -1), (2, 6, 1), (4, 4, -1), (16, 6, -1), (32, 0, -1)
os.setxattr("x", "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *e) for e in entries))' 2>/dev/null ||
    { echo "no access control lists here"; return 0; }
  [ "$(stat -c %a x)" = 660 ] || fail "the list: $(stat -c %a x)"
  expect 0 "$pack" x; [ "$(stat -c %a x.lz4)" = 640 ] || fail "an access control list: $(stat -c %a x.lz4)"; rm -f x.lz4
}

# A user namespace with one user, as in rootless containers: other users have no number there.
section_unmapped_owner() {
  need_root
  unshare --user --map-root-user true 2>/dev/null || { echo "SKIPPED: no user namespaces here (unshare --user)"; exit 77; }
  chmod 777 .; seq 1 9 >x; chown 1234:2345 x; chmod 644 x
  expect 0 unshare --user --map-root-user "$pack" x; silent; present x.lz4
  expect 0 unshare --user --map-root-user "$pack" -v -f x; says "x.lz4: the owner is not taken over"
  [ "$(grep -c 'taken over' err)" = 1 ] || fail "one message expected"
  expect 0 unshare --user --map-root-user "$pack" -d -f x.lz4; silent
  # A file system that refuses modes: fchmod and futimens fail with EPERM.
  command -v strace >/dev/null && strace -qq -o /dev/null true 2>/dev/null || return 0
  expect 0 strace -f -qq -o /dev/null -e inject=fchmod,utimensat:error=EPERM "$pack" -f x; silent
  expect 0 strace -f -qq -o /dev/null -e inject=fchmod,utimensat:error=EPERM "$pack" -v -f x; says "the mode is not taken over: Operation not permitted"
}

# Frames of different block sizes, in any order, within any budget that holds the largest block.
section_budget_of_mixed_frames() {
  local from to memory
  make_input; cat input input input >raw
  for from in 4 5 6 7; do "$pack" -q -B$from raw -o b$from.lz4; done
  "$pack" -q -BD -B4 raw -o d4.lz4; "$pack" -q -BD -B7 raw -o d7.lz4
  cat raw raw >twice
  for memory in 24M 64M 8G; do
    for from in b4 b5 b6 b7 d4 d7; do
      for to in b4 b7 d4 d7; do
        cat $from.lz4 $to.lz4 >both.lz4
        "$pack" -T3 -dc --memory $memory both.lz4 2>err | cmp -s - twice || { fail "$from then $to in $memory"; head -c 300 err; }
      done
    done
  done
  { printf '\x50\x2a\x4d\x18\x00\x00\x00\x00'; cat b4.lz4 b7.lz4 b5.lz4 b6.lz4; } >all.lz4
  expect 0 "$pack" -t --memory 24M all.lz4
  printf X | dd of=all.lz4 bs=1 seek=$(($(stat -c %s all.lz4) - 30000)) conv=notrunc status=none
  expect 1 "$pack" -t --memory 24M all.lz4; says "all.lz4, frame 4"
}

# A frame of one-byte blocks must take fewer than 1500 instructions for each block.
section_tiny_blocks() {
  command -v valgrind >/dev/null || { echo "SKIPPED: no valgrind"; exit 77; }
  local count size
  tiny() { python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex("04224d186040" + sys.argv[2]) + b"\x01\0\0\x80x" * int(sys.argv[1]) + bytes(4))' $1 82; }
  for count in 20000 120000; do
    tiny $count >tiny.lz4; expect 0 "$pack" -T1 -t tiny.lz4
    "$pack" -T1 -dc tiny.lz4 | tr -d x | wc -c | grep -qx 0 || fail "the content is wrong"
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=counts.$count "$pack" -T1 -dc tiny.lz4 >decoded 2>/dev/null || fail "under valgrind"
    [ "$(stat -c %s decoded)" = $count ] || fail "$count bytes expected"
  done
  local few many each
  few=$(sed -n 's/^summary: //p' counts.20000); many=$(sed -n 's/^summary: //p' counts.120000)
  each=$(((many - few) / 100000)); echo "$each instructions a block"
  [ $each -lt 1500 ] || fail "$each instructions for a block of one byte"
  # System calls dominated the time: one for 16 KiB is expected, not three for each block.
  command -v strace >/dev/null && strace -qq -o /dev/null true 2>/dev/null || return 0
  strace -f -c -o calls "$pack" -T1 -dc tiny.lz4 >decoded
  local calls; calls=$(awk '$NF == "read" || $NF == "write" { sum += $4 } END { print sum + 0 }' calls)
  [ "$calls" -lt 500 ] || fail "$calls reads and writes for 600 KB"
}

# The calibration file must be a small regular file.
section_calibration_file() {
  seq 1 100 >x; mkfifo pipe; head -c 3000000 /dev/zero >long
  local rates
  for rates in /dev/zero /dev/random pipe long "$work" /nowhere; do
    expect 0 env PTXKIT_CALIBRATION=$rates timeout 20 python3 -c 'import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
sys.exit(code or (peak > 200000 and f"{peak} KiB"))' "$pack" -c x
    silent
  done
}

# Bytes before the file offset of standard input are ignored.
section_range_of_standard_input() {
  make_input; local codec
  for codec in lz4 $other_codecs "zstd --seekable"; do
    # shellcheck disable=SC2086
    "$pack" -qf --codec $codec input -o packed; { printf 'some bytes'; cat packed; } >both
    expect 0 bash -c "(head -c 10 >/dev/null; dd bs=1 count=0 status=none; python3 -c 'import os; os.lseek(0, 10, 0)'; exec '$pack' --range 1000:2000) <both"
    tail -c +1001 input | head -c 1000 | cmp -s - out || fail "range of $codec on a seekable standard input"
    expect 0 bash -c "'$pack' --range 1000:2000 <packed"; tail -c +1001 input | head -c 1000 | cmp -s - out || fail "range of $codec from the start"
  done
}

# Pages of zeros become holes in decoded files, as with lz4.
section_sparse() {
  head -c 50000 /dev/urandom >start; { cat start; head -c 40000000 /dev/zero; cat start; head -c 3000000 /dev/zero; } >x
  local codec used
  for codec in lz4 $other_codecs; do
    "$pack" -qf --codec $codec x -o packed
    blocks() { expect 0 "$pack" -d -f "$@" packed -o back; same back x; used=$(du -k back | cut -f1); }
    blocks; [ $used -lt 2000 ] || fail "$used KiB where holes can be ($codec)"
    blocks --no-sparse; [ $used -gt 40000 ] || fail "$used KiB with --no-sparse ($codec)"
    "$pack" -dc packed >back; same back x; [ "$(du -k back | cut -f1)" -gt 40000 ] || fail "holes on standard output, which nobody asked for"
    "$pack" -dc --sparse packed >back; same back x; [ "$(du -k back | cut -f1)" -lt 2000 ] || fail "no holes on standard output with --sparse"
    { printf ab; "$pack" -dc --sparse packed; printf yz; } >back; { printf ab; cat x; printf yz; } | cmp -s - back || fail "others write to the same standard output"
    { printf ab; "$pack" -dc --sparse packed; printf yz; } >>back2; { printf ab; cat x; printf yz; } | cmp -s - back2 || fail "appending"; rm back2
    # Overwritten ranges must not become holes.
    tr '\0' 'q' <x >back; "$pack" -dc --sparse packed 1<>back; same back x
    "$pack" -dc --sparse packed | cmp -s - x || fail "a pipe has no holes"
  done
  expect 0 "$pack" -d --range 1000:30000000 -f packed -o part; tail -c +1001 x | head -c 29999000 | cmp -s - part || fail "a sparse range"
  head -c 8192 /dev/zero >x; "$pack" -qf x -o packed; expect 0 "$pack" -d -f packed -o back; same back x
  expect 2 "$pack" --sparse x; says "--sparse and --no-sparse are for decompression"
  expect 2 "$pack" -t --no-sparse packed; says "--sparse and --no-sparse are for decompression"
  expect 2 "$pack" -d --sparse --no-sparse packed; says "--sparse and --no-sparse exclude each other"
}

# The environment variables of an MPI job alone change nothing.
section_ranks_unasked() {
  seq 1 1000 >x; "$pack" -q -c x >expected; head -c 100 expected >bad.lz4; cp expected good.lz4
  local rank variables
  for rank in 0 1; do
    for variables in "OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2" "PMI_RANK=$rank PMI_SIZE=2"; do
      # shellcheck disable=SC2086
      {
        env $variables "$pack" -c <x | "$pack" -dc | cmp -s - x || fail "$variables: standard input was left out"
        expect 0 env $variables "$pack" -c x; same out expected
        expect 1 env $variables "$pack" -t bad.lz4; says "truncated"
        expect 0 env $variables "$pack" --list good.lz4; prints "good.lz4"
      }
    done
  done
}

"section_$section"
[ $failures = 0 ] && echo "passed: $section"
exit $((failures != 0))
