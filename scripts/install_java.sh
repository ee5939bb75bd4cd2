#!/usr/bin/env bash
# Install a Java 17+ runtime with the system's package manager, where that is allowed.
# Never fails: without Java everything that needs no Spark still works.
set -uo pipefail

say_how() {
  echo "No Java 17+ found and none could be installed: install one (for example: $1) or set JAVA_HOME; only what runs on Spark needs it." >&2
  exit 0
}

as_root=()
if [[ "$(id -u)" != 0 ]]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    as_root=(false)
  fi
fi
run() { "${as_root[@]+"${as_root[@]}"}" "$@" >&2; }

if command -v apt-get >/dev/null; then
  how="sudo apt-get install openjdk-17-jre-headless"
  export DEBIAN_FRONTEND=noninteractive
  for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    run apt-get install -y -q --no-install-recommends "$package" 2>/dev/null && exit 0
  done
  run apt-get update -q || say_how "$how"
  for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    run apt-get install -y -q --no-install-recommends "$package" && exit 0
  done
elif command -v dnf >/dev/null; then
  how="sudo dnf install java-17-openjdk-headless"
  run dnf install -y -q java-17-openjdk-headless && exit 0
  run dnf install -y -q java-21-openjdk-headless && exit 0
elif command -v apk >/dev/null; then
  how="apk add openjdk17-jre-headless"
  run apk add --quiet openjdk17-jre-headless && exit 0
elif command -v brew >/dev/null; then
  how="brew install openjdk@17"
  brew install --quiet openjdk@17 >&2 && exit 0
else
  how="the OpenJDK package of your system"
fi
say_how "$how"
