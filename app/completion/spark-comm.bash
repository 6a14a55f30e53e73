# SPDX-License-Identifier: AGPL-3.0-only
# Completion for bash. It asks the tool for its verbs and options, so it cannot be behind.
# shellcheck shell=bash

_spark_comm() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]-} tool=${COMP_WORDS[0]} choices
  local i
  COMPREPLY=()
  for ((i = 2; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then # the program of `launch` and its arguments
      compopt -o default
      return
    fi
  done
  if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $verb == help ]]; }; then
    choices=$("$tool" help 2>/dev/null | sed -n '/^Subcommands:/,$ s/^  \([a-z]\+\) .*/\1/p')
  elif [[ $word == -* ]]; then
    choices=$("$tool" help "$verb" 2>/dev/null | grep -o -- '\(^\|[ ,]\)--\?[a-z][a-z-]*' | tr -d ' ,' | sort -u)
  else
    compopt -o default
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -F _spark_comm spark-comm
