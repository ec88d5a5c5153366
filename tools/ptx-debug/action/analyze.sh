#!/usr/bin/env bash
# The step of action.yml. Its inputs arrive as PTX_* variables, never as part of a command line.
set -euo pipefail

if [ -n "$PTX_DEBUG" ]; then
  program=$PTX_DEBUG
elif [ -n "$PTX_WHEEL" ]; then
  program=$RUNNER_TEMP/ptxkit/bin/ptx-debug
else
  program=$GITHUB_ACTION_PATH/../../../build/bin/ptx-debug
fi
words=(analyze --format github)
[ "$PTX_FALSIFY" != true ] || words+=(--falsify)
[ -z "$PTX_MIN_SCORE" ] || words+=("--min-score=$PTX_MIN_SCORE")
[ -z "$PTX_FAIL_ON" ] || words+=("--fail-on=$PTX_FAIL_ON")
[ -z "$PTX_BASELINE" ] || words+=("--baseline=$PTX_BASELINE")
[ -z "$PTX_SARIF" ] || words+=("--sarif=$PTX_SARIF")
[ -z "$PTX_HTML" ] || words+=("--html=$PTX_HTML")

files=()
while IFS= read -r pattern; do
  [ -n "$pattern" ] || continue
  # A pattern without a match stays as it is, and ptx-debug reports it as missing. With an empty IFS the shell expands
  # patterns without splitting words: a name that contains blanks or a line end stays one name.
  IFS=
  # shellcheck disable=SC2206
  files+=($pattern)
done <<<"$PTX_FILES"
if [ "${#files[@]}" -eq 0 ]; then
  echo "::error::ptx-debug: the input 'files' names no file"
  exit 64
fi

status=0
report=$("$program" "${words[@]}" -- "${files[@]}") || status=$?
printf '%s\n' "$report"
echo "exit-code=$status" >>"$GITHUB_OUTPUT"
{
  printf '### ptx-debug: exit %s\n\n' "$status"
  # Indented text is a code block that no file name can close.
  grep -v '^::' <<<"$report" | sed 's/^/    /' || true
} >>"$GITHUB_STEP_SUMMARY"
exit "$status"
