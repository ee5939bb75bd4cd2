# Installs one thing with the system's package manager, where that is allowed; to be sourced.
#
#   install_if_missing WHAT AFTERWARD MANAGER=PACKAGE[,PACKAGE…] …
#
# `found` must be defined: it succeeds when the thing is on this machine. A manager's packages are
# tried in turn until it does. All that a failure says is one line, with the way out in it.

may_run() {  # may the manager $1 be used here? Sets `as_root`, what stands before its command
  as_root=()
  command -v "$1" >/dev/null || return 1
  if [[ "$1" == brew ]]; then
    [[ "$(id -u)" != 0 ]]  # it refuses root
  elif [[ "$(id -u)" != 0 ]]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null && as_root=(sudo -n)
  fi
}

rooted() { "${as_root[@]+"${as_root[@]}"}" "$@" </dev/null; }

refresh_lists() {  # a failure here is left to the installation, which may still succeed
  case "$1" in
    apt-get) rooted apt-get -o DPkg::Lock::Timeout=120 update -qq ;;
    apk) rooted apk update --quiet ;;
  esac
}

add_package() {  # with the manager $1, the package $2
  case "$1" in
    apt-get)  # sudo drops the environment, so `env` comes after it
      rooted env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
        install -y -qq --no-install-recommends "$2" ;;
    dnf) rooted dnf install -y -q "$2" ;;
    apk) rooted apk add --quiet "$2" ;;
    brew) brew install --quiet "$2" </dev/null ;;
  esac
}

by_hand() {  # the command that a person types, for the manager $1 and the package $2
  case "$1" in
    apt-get) echo "sudo apt-get update && sudo apt-get install $2" ;;
    dnf) echo "sudo dnf install $2" ;;
    apk) echo "apk add $2 (as root)" ;;
    brew) echo "brew install $2" ;;
  esac
}

install_if_missing() {
  local what=$1 afterward=$2 how="" why="no package manager is known here"
  local choice manager package packages
  shift 2
  found && return 0
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  for choice in "$@"; do
    manager=${choice%%=*}
    IFS=, read -r -a packages <<<"${choice#*=}"
    command -v "$manager" >/dev/null || continue
    if may_run "$manager"; then
      how=$(by_hand "$manager" "${packages[0]}")
      echo "Installing $what with $manager …" >&2
      refresh_lists "$manager" >"$log" 2>&1
      for package in "${packages[@]}"; do
        add_package "$manager" "$package" >>"$log" 2>&1 && found && return 0
      done
      why="$manager failed ($(grep -v '^[[:space:]]*$' "$log" | tail -n 1))"
      break
    elif [[ -z "$how" ]]; then
      how=$(by_hand "$manager" "${packages[0]}")
      why="installing it takes root, or sudo without a password"
    fi
  done
  echo "$what was not found, and $why. Install it${how:+: $how}$afterward" >&2
  return 1
}
