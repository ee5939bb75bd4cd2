#!/usr/bin/env bash
# Makes sure that a PostgreSQL server is on this machine, for the tests of the catalog.
# Does nothing when there is one; otherwise installs the system's package if it may.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/install_package.sh"

found() {
  local initdb
  for initdb in "$(command -v initdb)" /usr/lib/postgresql/*/bin/initdb \
    /opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb; do
    [[ -x "$initdb" ]] && return 0
  done
  return 1
}

# Debian makes and starts a server of its own with the package, unless told not to.
no_server_of_debian() {
  local file=/etc/postgresql-common/createcluster.conf
  [[ -e "$file" ]] && return
  rooted mkdir -p "$(dirname "$file")"
  echo "create_main_cluster = false" | "${as_root[@]+"${as_root[@]}"}" tee "$file" >/dev/null
}
if ! found && may_run apt-get; then no_server_of_debian; fi

install_if_missing "PostgreSQL" "; only the tests of the catalog need it." \
  apt-get=postgresql dnf=postgresql-server apk=postgresql brew=postgresql@17
