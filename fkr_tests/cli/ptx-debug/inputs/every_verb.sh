# Runs every verb that reads PTX on each FILE and on standard input; prints the ones that fail, print nothing, or depend
# on --jobs.
# usage: every_verb.sh FILE...
for verb in check print stats info "cfg --dot" analyze; do
  for file in "$@"; do
    ptx-debug $verb "$file" >said 2>errors && test -s said || echo "$verb $file: exit $?"
  done
  ptx-debug $verb - <"$1" >said 2>errors && test -s said || echo "$verb -: exit $?"
  for jobs in 1 8; do ptx-debug $verb --jobs $jobs "$@" >jobs$jobs 2>errors; done
  cmp jobs1 jobs8
done
