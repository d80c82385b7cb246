#!/usr/bin/env bash
# Make .venv with the core and every plugin, editable, at the versions of constraints.txt.
#
#   scripts/bootstrap.sh [options for `uv pip install`, such as --group dev]
#
# It needs Python 3.11 or newer and pip. uv comes from the PATH; where there is none that is recent enough, pip puts one
# into .tools/. Nothing outside of this folder is changed but the caches of pip and uv. PYTHON names another interpreter,
# CONSTRAINTS another file of versions (/dev/null for none), WITHOUT the folder of a plugin to leave out.
#
# Where pip reaches an index, uv does, too: it takes pip's index and certificates from pip's variables and settings, and
# trusts the system's certificates, a company's own among them. Variables of uv itself (UV_…) win.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON="${PYTHON:-python3}"
UV_REQUIREMENT="uv>=0.9"
export UV_PYTHON_DOWNLOADS="${UV_PYTHON_DOWNLOADS:-never}"
export UV_NO_PROGRESS="${UV_NO_PROGRESS:-1}"

fail() {
  echo "bootstrap: $*" >&2
  exit 1
}

of_pip() {
  # A setting of pip, as pip itself finds it: its variable, then its files. (`pip config get` does not see all files.)
  local variable
  variable="PIP_$(tr 'a-z-' 'A-Z_' <<<"$1")"
  echo "${!variable:-$("$PYTHON" -m pip config list 2>/dev/null | sed -n "s/^global\.$1='\(.*\)'\$/\1/p" | tail -n 1 || true)}"
}

as_pip_does() {
  # The second name is that of versions before 0.11, which later ones take for the same.
  export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-${UV_NATIVE_TLS:-1}}"
  export UV_NATIVE_TLS="${UV_NATIVE_TLS:-$UV_SYSTEM_CERTS}"
  local trusted index
  trusted="$(of_pip cert)"
  trusted="${trusted:-${REQUESTS_CA_BUNDLE:-${CURL_CA_BUNDLE:-}}}"
  if [ -d "$trusted" ]; then
    export SSL_CERT_DIR="$trusted"
    unset SSL_CERT_FILE
  elif [ -n "$trusted" ]; then
    export SSL_CERT_FILE="$trusted"
  fi
  index="$(of_pip index-url)"
  if [ -n "$index" ] && [ -z "${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-}}" ]; then
    export UV_DEFAULT_INDEX="$index"
  fi
}

works() {
  # uv itself refuses here if it is older than `required-version` in pyproject.toml. A shim on the PATH may stand for
  # a uv that is not there, so it is asked and not only looked for.
  "$1" pip list --quiet --python "$PYTHON" >/dev/null 2>&1
}

find_uv() {
  if works uv; then
    command -v uv
    return
  fi
  local private="$PWD/.tools/uv"
  if ! works "$private/bin/uv"; then
    echo "bootstrap: installing uv into .tools/" >&2
    mkdir -p .tools
    echo '*' >.tools/.gitignore
    # --target needs no virtual environment, and is allowed where the system's Python is managed by its distribution.
    "$PYTHON" -m pip install --quiet --upgrade --target "$private" "$UV_REQUIREMENT" >&2 ||
      fail "pip could not install uv. Check the network and pip's settings, or put uv on the PATH."
  fi
  echo "$private/bin/uv"
}

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  fail "$PYTHON is not Python 3.11 or newer. Name one: make PYTHON=/path/to/python3.11 …"

uv="$(find_uv)"
as_pip_does
[ -x .venv/bin/python ] || "$uv" venv --quiet --python "$PYTHON" .venv

editable=()
for project in core/pyproject.toml plugins/*/*/pyproject.toml; do
  folder="$(dirname "$project")"
  [ -f "$project" ] && [ "$folder" != "${WITHOUT:-}" ] && editable+=(--editable "$folder")
done
VIRTUAL_ENV="$PWD/.venv" "$uv" pip install --quiet --constraints "${CONSTRAINTS:-constraints.txt}" "${editable[@]}" "$@"
