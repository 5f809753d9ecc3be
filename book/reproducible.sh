#!/usr/bin/env bash
# Build the committed book twice, in two folders with different names, and compare every page.
set -euo pipefail
cd "$(dirname "$0")/.."
jb=$PWD/.venv/bin/jupyter-book
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for name in one another-folder; do
  mkdir "$work/$name"
  git archive HEAD | tar -x -C "$work/$name"
  cp -r book/vendor "$work/$name/book/"
  echo "== building in a folder called $name =="
  (cd "$work/$name" && "$jb" build --quiet -W -n --keep-going . >build.log 2>&1) ||
    { tail -40 "$work/$name/build.log"; exit 1; }
done

cd "$work"
differing=0
pages=$(cd one/_build/html && find . -name '*.html' | sort)
for page in $pages; do
  if ! cmp --silent "one/_build/html/$page" "another-folder/_build/html/$page"; then
    differing=$((differing + 1))
    echo "$page differs:"
    diff "one/_build/html/$page" "another-folder/_build/html/$page" | cut -c1-300 | head -20 || true
  fi
done
echo "$(wc -w <<<"$pages") pages compared, $differing differ"
[ "$differing" = 0 ]
