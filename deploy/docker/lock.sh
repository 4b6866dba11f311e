#!/bin/sh
# Pins what the images install: newest versions that pyproject.toml allows, with the hashes of all their files. Needs uv on the path; run
# it from the top of the repository after a change of the dependencies, and before a release.
set -eu
lock() {
    target=deploy/docker/$1
    shift
    uv pip compile --quiet --upgrade --python-version 3.12 --python-platform x86_64-manylinux_2_28 --generate-hashes --no-annotate --no-header \
        --output-file "$target" "$@"
}
lock requirements.txt --extra all pyproject.toml
lock requirements-agent.txt --extra agent --extra client pyproject.toml
printf 'hatchling\n' | lock requirements-build.txt -
