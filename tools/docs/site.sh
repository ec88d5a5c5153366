#!/usr/bin/env bash
# Builds the site of the documents. Exit 77 where neither mkdocs nor a package index is at hand.
# usage: tools/docs/site.sh [FOLDER]     (default: build/docs; the site is FOLDER/site, mkdocs lives in FOLDER/venv)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "${1:-$here/../../build/docs}"
folder=$(cd "${1:-$here/../../build/docs}" && pwd)
pins=$here/requirements.txt
pip=("$folder/venv/bin/pip" --quiet --disable-pip-version-check --retries 1 --timeout 20)

if ! cmp -s "$pins" "$folder/venv/installed.txt"; then
  rm -rf "$folder/venv"
  python3 -m venv "$folder/venv"
  if ! "${pip[@]}" install -r "$pins"; then
    # A pin that the index does not have is a fault; no index is none of ours.
    if "${pip[@]}" download --no-deps --no-cache-dir --dest "$folder/probe" mkdocs >/dev/null 2>&1; then
      echo "site.sh: an index is reachable and lacks what tools/docs/requirements.txt names" >&2
      exit 1
    fi
    echo "site.sh: SKIPPED: no package index is reachable, so there is no mkdocs to build the site with" >&2
    exit 77
  fi
  cp "$pins" "$folder/venv/installed.txt"
fi

NO_MKDOCS_2_WARNING=1 "$folder/venv/bin/mkdocs" build --quiet --strict --clean -f "$here/mkdocs.yml" --site-dir "$folder/site"
# Every page that the site has to have is there, and no page asks another site for a font, a style or a script.
for page in index performance rules/index rules/F051 log/performance CHANGELOG; do
  [ -s "$folder/site/$page.html" ] || { echo "site.sh: the site has no page $page" >&2; exit 1; }
done
if grep -rlE '<(script|link|img)[^>]+(src|href)="?https?://' --include='*.html' "$folder/site" | head -5 | grep .; then
  echo "site.sh: these pages load from another site" >&2
  exit 1
fi
echo "the site is in $folder/site; its search needs a server: python3 -m http.server -d $folder/site"
