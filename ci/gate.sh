#!/usr/bin/env bash
# `warpline gate` for a CI job: the answer goes to the step summary, or to standard output where there is none.
# TRACES and BUDGETS are lists; BASELINE, METRIC, JUNIT, COMMENT and INCONCLUSIVE (pass or fail) as in action.yml.
set -uo pipefail
read -r -d '' -a traces <<< "${TRACES:?name the recordings in TRACES}" || true
options=(--metric "${METRIC:-step}")
[ -n "${BASELINE:-}" ] && options+=(--baseline "$BASELINE")
[ -n "${JUNIT:-}" ] && options+=(--junit "$JUNIT" -f)
[ -n "${COMMENT:-}" ] && options+=(--comment "$COMMENT" -f)
while IFS= read -r budget; do
  [ -n "${budget// /}" ] && options+=(--budget "$budget")
done <<< "${BUDGETS:-}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
warpline gate "${traces[@]}" "${options[@]}" -o "$folder/gate.md"
code=$?
[ -f "$folder/gate.md" ] && cat "$folder/gate.md" >> "${GITHUB_STEP_SUMMARY:-/dev/stdout}"
[ "$code" -eq 4 ] && [ "${INCONCLUSIVE:-pass}" = pass ] && exit 0
exit "$code"
