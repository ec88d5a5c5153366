#!/usr/bin/env bash
# Builds the site of the documents. Exit 77 where neither mkdocs nor a package index is at hand.
# usage: tools/docs/site.sh [FOLDER]     (default: build/docs; the site is FOLDER/site)
# mkdocs (163 MB) is installed once, into $PTXKIT_DOCS_ENV or ~/.cache/ptxkit/docs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "${1:-$here/../../build/docs}"
folder=$(cd "${1:-$here/../../build/docs}" && pwd)
pins=$here/requirements.txt
venv=${PTXKIT_DOCS_ENV:-${XDG_CACHE_HOME:-${HOME:-$folder}/.cache}/ptxkit/docs}
pip=("$venv/bin/pip" --quiet --disable-pip-version-check --retries 1 --timeout 20)

mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9  # two runs at a time install once
if ! cmp -s "$pins" "$venv/installed.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  if ! "${pip[@]}" install --no-deps --no-compile -r "$pins"; then
    # A pin that the index does not have is a fault; a missing index is not.
    if "${pip[@]}" download --no-deps --no-cache-dir --dest "$(mktemp -d)" mkdocs >/dev/null 2>&1; then
      echo "site.sh: an index is reachable and lacks what tools/docs/requirements.txt names" >&2
      exit 1
    fi
    echo "site.sh: SKIPPED: no package index is reachable, so there is no mkdocs to build the site with" >&2
    exit 77
  fi
  cp "$pins" "$venv/installed.txt"
fi
exec 9>&-

# With --quiet warnings would not count, whatever --strict says.
if ! words=$(NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --clean -f "$here/mkdocs.yml" --site-dir "$folder/site" 2>&1); then
  printf '%s\n' "$words" >&2
  exit 1
fi
# Every page that the site has to have is there, and no page asks another site for a font, a style or a script.
for page in index performance rules/index rules/F051 log/performance CHANGELOG; do
  [ -s "$folder/site/$page.html" ] || { echo "site.sh: the site has no page $page" >&2; exit 1; }
done
foreign=$(grep -rlE '<(script|link|img)[^>]+(src|href)="?https?://' --include='*.html' "$folder/site" || true)
if [ -n "$foreign" ]; then
  printf 'site.sh: these pages load from another site:\n%s\n' "$foreign" >&2
  exit 1
fi
echo "the site is in $folder/site; its search needs a server: python3 -m http.server -d $folder/site"
