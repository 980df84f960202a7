#!/usr/bin/env bash
# Checks the snapshots, and leaves the verdict to a later step: by then the report has been handed on.
#
# In: BINARY, SNAPSHOTS, ARGUMENTS, SARIF, FOLDER (where it is run), BASE (a folder to compare with, or empty), RUNNER_TEMP.
# Out, to GITHUB_OUTPUT: `exit-code`, `sarif`. The job's summary and annotations are written as well.
set -euo pipefail
summary="$RUNNER_TEMP/memlint-summary.md"
errors="$RUNNER_TEMP/memlint-errors.txt"
rm -f "$SARIF" "$summary"
# Green means judged. A variable, so that --strict among the arguments is not given twice.
export MEMLINT_STRICT=true
code=0
# xargs splits and unquotes like a shell, but expands and runs nothing.
if words="$(printf '%s\n' "$SNAPSHOTS" "$ARGUMENTS" | tr -d '\r' | xargs printf '%s\n' 2> "$errors")"; then
  mapfile -t arguments < <(printf '%s\n' "$words" | sed '/^$/d')
  # What a baseline knows does not count; then a base to compare with is not wanted, and memlint takes one of them alone.
  if [ -n "${BASE:-}" ] && ! grep -q '^--baseline' <<< "$words"; then arguments+=(--against "$BASE"); fi
  "$BINARY" check "${arguments[@]}" --output-format github \
    --output-file "sarif=$SARIF" --output-file "markdown=$summary" 2> "$errors" || code=$?
else
  code=2
fi
cat "$errors" >&2
if [ "$code" -gt 1 ]; then
  reason="$(tr -s '[:space:]' ' ' < "$errors" | cut -c1-1000)"
  echo "::error title=memlint: no verdict::${reason//'%'/%25}"
  if [ ! -s "$summary" ]; then printf '## memlint: no verdict\n\n```text\n%s\n```\n' "$reason" > "$summary"; fi
fi
if [ -f "$summary" ]; then cat "$summary" >> "$GITHUB_STEP_SUMMARY"; fi
if [ -f "$SARIF" ]; then echo "sarif=$FOLDER/$SARIF" >> "$GITHUB_OUTPUT"; fi
echo "exit-code=$code" >> "$GITHUB_OUTPUT"
