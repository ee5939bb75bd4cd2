#!/usr/bin/env bash
# Makes sure that a Java 17+ runtime is on this machine, for what runs on Spark.
# Does nothing when there is one; otherwise installs the system's package if it may.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/install_package.sh"

found() { [[ -n "$("$here/find_java.sh")" ]]; }

install_if_missing "Java 17+" ", or set JAVA_HOME; only what runs on Spark needs it." \
  apt-get=openjdk-17-jre-headless,openjdk-21-jre-headless,default-jre-headless \
  dnf=java-17-openjdk-headless,java-21-openjdk-headless,java-latest-openjdk-headless \
  apk=openjdk17-jre-headless,openjdk21-jre-headless \
  brew=openjdk@17
