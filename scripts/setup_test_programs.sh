#!/bin/sh
# Installs the servers that the tests start for themselves, where they are missing and we may. Run by `make test` and `make bench`.
set -u
PATH=$PATH:/usr/sbin
have() { command -v "$1" >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/"$1" >/dev/null 2>&1; }
missing=
have initdb && have postgres || missing=postgresql
have pgbouncer || missing="$missing pgbouncer"
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "setup: installing$(printf ' %s' $missing) for the tests" >&2
    # RUNLEVEL=1: the packages start no servers of their own (invoke-rc.d(8)).
    export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; } ||
        echo "setup: could not install $missing: tests on PostgreSQL will not run" >&2
else
    echo "setup: tests on PostgreSQL will be skipped; install these first: $missing" >&2
fi
