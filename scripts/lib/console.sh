# shellcheck shell=bash
# What every script says, and how it ends. Sourced, never run.

# say TEXT: one line of progress.
say() { printf '%s\n' "$*"; }

# warn TEXT: something the user has to know, on stderr.
warn() { printf 'WARNING %s\n' "$*" >&2; }

# die ASKED FOUND TODO: a refusal in one line; the exit code is the toolkit's EXIT_REFUSED.
die() {
  printf '%s: %s; %s\n' "$1" "$2" "$3" >&2
  exit 2
}

# number OPTION WORD: WORD, which has to be one from 1 on.
number() {
  [[ "$2" =~ ^[1-9][0-9]*$ ]] || die "$1 $2" "not a number from 1 on" "write $1 N"
  printf '%s' "$2"
}

# usage FILE: a script's header comment is its usage text.
usage() { sed -n '2,/^[^#]/ { /^#/ s/^# \{0,1\}//p; }' "$1"; }
