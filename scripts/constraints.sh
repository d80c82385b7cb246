#!/usr/bin/env bash
# Write constraints.txt anew: the newest versions of all that the development environment installs.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=.venv/bin/uv
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
export VIRTUAL_ENV="$fresh/venv"

"$uv" venv --quiet --python .venv/bin/python "$VIRTUAL_ENV"
editable=()
for project in core/pyproject.toml plugins/*/*/pyproject.toml; do
  [ -f "$project" ] && editable+=(--editable "$(dirname "$project")")
done
"$uv" pip install --quiet --upgrade --group dev "${editable[@]}"
{
  echo "# What the development environment installs. Written by \`make constraints\`; names and versions only."
  # 2.13.0+cpu is 2.13.0 wherever that is built otherwise.
  "$uv" pip freeze --exclude-editable | sed 's/+[^ ]*$//' | LC_ALL=C sort
} >"$fresh/constraints.txt"
# A line with a URL or a path would tie everybody to one machine.
if grep -n '[@/]' "$fresh/constraints.txt"; then
  echo "constraints: the lines above are no names and versions" >&2
  exit 1
fi
mv "$fresh/constraints.txt" constraints.txt
