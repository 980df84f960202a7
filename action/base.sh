#!/usr/bin/env bash
# Fetches what the base branch of a pull request has recorded last, to compare with. Where there is none, the head is judged by itself.
#
# In: ARTIFACT (its name, empty to compare with nothing), GITHUB_BASE_REF (empty unless this is a pull request), GITHUB_REPOSITORY,
# RUNNER_TEMP, GITHUB_TOKEN for `gh`, with the permission `actions: read`.
# Out, to GITHUB_OUTPUT: `folder`, where there is a recording.
set -euo pipefail
if [ -z "${ARTIFACT:-}" ] || [ -z "${GITHUB_BASE_REF:-}" ]; then exit; fi
folder="$RUNNER_TEMP/memlint-base"
rm -rf "$folder"

if ! found="$(gh api "repos/$GITHUB_REPOSITORY/actions/artifacts?name=$ARTIFACT&per_page=100")"; then
  echo "::warning title=memlint: nothing to compare with::The artifacts of $GITHUB_BASE_REF cannot be listed (permissions: actions: read). All findings count."
  exit
fi
# A fork may have a branch of the same name; what it recorded is not the base.
run="$(jq -r --arg branch "$GITHUB_BASE_REF" '
  [.artifacts[]
    | select(.expired | not)
    | select(.workflow_run.head_branch == $branch and .workflow_run.head_repository_id == .workflow_run.repository_id)]
  | sort_by(.created_at) | last | .workflow_run.id // empty' <<< "$found")"
if [ -z "$run" ]; then
  echo "::notice title=memlint: nothing to compare with::$GITHUB_BASE_REF has no artifact $ARTIFACT yet. All findings count."
elif gh run download "$run" --repo "$GITHUB_REPOSITORY" --name "$ARTIFACT" --dir "$folder"; then
  echo "Comparing with what run $run of $GITHUB_BASE_REF recorded."
  echo "folder=$folder" >> "$GITHUB_OUTPUT"
else
  echo "::warning title=memlint: nothing to compare with::What run $run of $GITHUB_BASE_REF recorded cannot be fetched. All findings count."
fi
