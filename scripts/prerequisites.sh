#!/usr/bin/env bash
# Checks what must be on the machine before `make` can do the rest:
#
#   scripts/prerequisites.sh [python] [java] [maven] [chromium] [ssh]      (all five without an argument)
#
# One line on stderr for each that is missing, saying how to get it; exit code 1 if any is.
set -euo pipefail

python="${PYTHON:-python3}"
java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
missing=0

miss() {
  echo "missing: $*" >&2
  missing=1
}

python_is_new_enough() {
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

need_python() {
  if ! python_is_new_enough; then
    miss "Python 3.11 or newer ($python is $(version_of "$python" --version)); install it (Debian: apt install" \
      "python3 python3-venv), or name another: make PYTHON=python3.12"
  elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    miss "Python's venv module; install it (Debian: apt install python3-venv)"
  fi
}

# The first line that a command prints about its version, or "not there".
version_of() {
  local text
  text="$("$@" 2>&1)" || text="not there"
  echo "${text%%$'\n'*}"
}

need_java() {
  local line major=0
  line="$(version_of "$java" -version)"
  [[ "$line" =~ version\ \"([0-9]+) ]] && major="${BASH_REMATCH[1]}"
  if ((major < 17)); then
    miss "Java 17 or newer ($java is ${line}); install it (Debian: apt install openjdk-17-jre-headless)," \
      "or point JAVA_HOME at it"
  fi
}

need_maven() {
  if ! command -v mvn >/dev/null; then
    miss "Maven (the command mvn); install it (Debian: apt install maven)"
  fi
}

# The names are those of tests/browser.py.
need_chromium() {
  local name
  for name in "${KREASSIGN_CHROMIUM:-chromium}" chromium-browser google-chrome-stable google-chrome; do
    ! command -v "$name" >/dev/null || return 0
    [[ -z "${KREASSIGN_CHROMIUM:-}" ]] || break
  done
  miss "Chromium, in which pages are tested; install it (Debian: apt install chromium), or name one:" \
    "KREASSIGN_CHROMIUM=/path/of/chrome"
}

# Signs releases, and verifies them.
need_ssh() {
  if ! command -v ssh-keygen >/dev/null; then
    miss "OpenSSH (the command ssh-keygen); install it (Debian: apt install openssh-client)"
  fi
}

[[ $# -gt 0 ]] || set -- python java maven chromium ssh
for wanted in "$@"; do
  "need_$wanted"
done
exit "$missing"
