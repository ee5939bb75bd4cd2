#!/usr/bin/env bash
# Print the home of a Java 17 or newer; print nothing when there is none.
set -euo pipefail

major() {  # the major version of the java binary $1, or 0
  local line
  line=$("$1" -version 2>&1 | grep -m1 -E 'version "[0-9]+' || true)
  line=$(sed -E 's/.*version "([0-9]+).*/\1/' <<<"$line")
  [[ "$line" =~ ^[0-9]+$ ]] && echo "$line" || echo 0
}

home_of() {  # the home folder of the java binary $1, links followed
  local real
  real=$("$1" -XshowSettings:properties -version 2>&1 | sed -nE 's/^ *java\.home = //p' | head -1)
  echo "$real"
}

candidates=()
[[ -n "${JAVA_HOME:-}" ]] && candidates+=("$JAVA_HOME/bin/java")
command -v java >/dev/null && candidates+=("$(command -v java)")
for home in /usr/lib/jvm/* /opt/homebrew/opt/openjdk* /usr/local/opt/openjdk*; do
  [[ -x "$home/bin/java" ]] && candidates+=("$home/bin/java")
done

for java in "${candidates[@]+"${candidates[@]}"}"; do
  if [[ -x "$java" ]] && (($(major "$java") >= 17)); then
    home_of "$java"
    exit 0
  fi
done
