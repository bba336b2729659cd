# shellcheck shell=bash
# Sourced by what needs the records that are not on this branch yet: a commit of the records branch in a scratch tree, and its files over the work tree.
branch=llmops/records
recorded=(inventory/benchmarks inventory/deployed inventory/snapshots reports)
export GIT_AUTHOR_NAME=${GIT_AUTHOR_NAME:-llmops records} GIT_AUTHOR_EMAIL=${GIT_AUTHOR_EMAIL:-records@localhost}
export GIT_COMMITTER_NAME=${GIT_COMMITTER_NAME:-$GIT_AUTHOR_NAME} GIT_COMMITTER_EMAIL=${GIT_COMMITTER_EMAIL:-$GIT_AUTHOR_EMAIL}
main=$(git rev-parse HEAD)
scratch=$(mktemp -d)
trap 'git worktree remove --force "$scratch/tree" 2>/dev/null || rm -rf "$scratch/tree"; rmdir "$scratch"' EXIT
git worktree add --quiet --detach "$scratch/tree" "$main"

in_scratch() { git -C "$scratch/tree" -c core.hooksPath=/dev/null "$@"; }

# Checks out in the scratch tree what a record goes on top of: this commit, and the records that are not in it yet.
prepare() {
  local tip
  tip=$(git ls-remote --heads origin "refs/heads/$branch" | cut -f 1)
  if [[ -n $tip ]]; then
    git fetch --quiet --no-tags origin "refs/heads/$branch"
  fi
  if [[ -z $tip ]] || git merge-base --is-ancestor "$tip" "$main"; then
    in_scratch checkout --quiet --detach "$main"
  else
    in_scratch checkout --quiet --detach "$tip"
    # Where both sides changed a record, what was seen on a host last is on the branch of records.
    in_scratch merge --quiet --no-edit -X ours -m "Merge $main into the records" "$main" ||
      { echo "$branch and this commit cannot be merged: merge that branch by hand, then run this again" >&2; return 1; }
  fi
}

# Lays the records over the work tree; HEAD and the index stay as they are.
overlay() {
  local path
  for path in "${recorded[@]}"; do
    if in_scratch cat-file -e "HEAD:$path" 2>/dev/null; then
      git restore --source="$(in_scratch rev-parse HEAD)" --worktree -- "$path"
    fi
  done
}
