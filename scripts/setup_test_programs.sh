#!/bin/sh
# Installs the servers that the tests start for themselves, where they are missing and we may. Run by `make test` and `make bench`.
set -u
PATH=$PATH:/usr/sbin
have() { command -v "$1" >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/"$1" >/dev/null 2>&1; }
library() { ls /usr/lib/*/$1 /usr/lib/$1 /usr/share/$1 2>/dev/null | grep -q .; }
missing=
have initdb && have postgres || missing=postgresql
have pgbouncer || missing="$missing pgbouncer"
have prometheus && have promtool || missing="$missing prometheus"
# A cluster of Slurm runs only as root.
if [ "$(id -u)" = 0 ]; then
    have munged || missing="$missing munge"
    for name in slurmctld slurmd; do have $name || missing="$missing $name"; done
    have sbatch || missing="$missing slurm-client"
    library 'slurm*/job_submit_lua.so' || missing="$missing slurm-wlm-basic-plugins"
    library lua/5.1/socket.lua || missing="$missing lua-socket"
    for version in 5.1 5.4; do have lua$version || missing="$missing lua$version"; done
fi
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "setup: installing$(printf ' %s' $missing) for the tests" >&2
    # RUNLEVEL=1: the packages start no servers of their own (invoke-rc.d(8)).
    export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; } ||
        echo "setup: could not install $missing: the tests that need them will not run" >&2
else
    echo "setup: the tests that need these will be skipped; install them first: $missing" >&2
fi
