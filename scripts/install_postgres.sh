#!/bin/sh
# Makes sure that a PostgreSQL server is on this machine, for the tests of the catalog.
# Does nothing when there is one; otherwise installs the system's package if it may.
set -eu

for initdb in "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb; do
    if [ -x "$initdb" ]; then
        exit 0
    fi
done

if [ "$(id -u)" = 0 ]; then
    sudo=""
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo="sudo -n"
else
    echo "No PostgreSQL server was found. Install one, say with: sudo apt-get install postgresql" >&2
    exit 1
fi

if command -v apt-get >/dev/null; then
    # The tests start servers of their own: no cluster is to be made or started here.
    $sudo mkdir -p /etc/postgresql-common
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        echo "create_main_cluster = false" | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
    fi
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql
elif command -v dnf >/dev/null; then
    $sudo dnf install -y -q postgresql-server
elif command -v brew >/dev/null; then
    brew install postgresql
else
    echo "No PostgreSQL server was found, and no package manager to install one with." >&2
    exit 1
fi
