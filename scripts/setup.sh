#!/bin/sh
# Creates the virtual environment given as $1 with the project (editable) and its tools. Run by `make dev`; a second run repairs.
set -eu
venv=$1
python=${PYTHON:-python3}

# Debian packages that are missing: installed when we may, named when we may not.
need() {
    command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || { echo "setup: install these first: $*" >&2; return 1; }
    echo "setup: installing $*" >&2
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "setup: Python 3.11 or newer is needed, $("$python" --version) was found (set PYTHON=...)" >&2; exit 1; }

# The simulated NVML is compiled where it runs. Without a compiler the rest of the project still works, so this is no error.
probe=$(mktemp)
printf '#include <stdio.h>\nint main(void) { return 0; }\n' | cc -x c - -o "$probe" 2>/dev/null ||
    need gcc libc6-dev || echo "setup: no C compiler: the simulated GPU will not run" >&2
rm -f "$probe"

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear "$venv" 2>/dev/null || { need python3-venv && "$python" -m venv --clear "$venv"; }
fi

# Dependency groups came with pip 25.1. A machine that cannot reach a newer one may already have it.
"$venv/bin/python" -m pip install --quiet --upgrade pip ||
    "$venv/bin/python" -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (25, 1))' ||
    { echo "setup: pip 25.1 or newer is needed and could not be installed" >&2; exit 1; }

"$venv/bin/python" -m pip install --quiet --editable . --group dev

# For the chart alone: without it everything else still works.
"$venv/bin/python" scripts/unpack_helm.py || echo "setup: no helm: the chart's tests will not run" >&2
