#!/usr/bin/env bash
# Refuses secrets in plain text: a hook of pre-commit, and a step of CI, since a hook can be left out. Reads the files named, or all that git knows.
# It knows the usual slips only; the rule is that a secret stands in a vault.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=("$@")
if [[ $# -eq 0 ]]; then
  mapfile -d '' files < <(git ls-files -z)
fi
found=0
refuse() {
  printf '%s: %s\n' "$1" "$2" >&2
  found=1
}
begins_vaulted() { [[ $(head -n 1 -- "$1") == \$ANSIBLE_VAULT\;* ]]; }
for file in "${files[@]}"; do
  [[ -f $file && ! -L $file ]] || continue
  if grep -qE -- '-----BEGIN [A-Z ]*PRIVATE KEY-----' "$file"; then
    refuse "$file" "holds a private key; keep it in the forge's secrets, out of git"
  fi
  case $file in
    inventory/*.yml | inventory/*.yaml | inventory/*.json) ;;
    *) continue ;;
  esac
  begins_vaulted "$file" && continue
  # Values of secret variables are vaulted, or named by a variable that is.
  if grep -E '^\s*"?(vault_\w+|sglang_server_(admin_)?api_key|sglang_model_hub_token)"?\s*:\s*[^[:space:]#]' "$file" |
    grep -vE ':\s*(!vault(\s|$)|"?\{\{|""|'\'\'')' >/dev/null; then
    refuse "$file" "holds a secret in plain text; encrypt the value (ansible-vault encrypt_string), see inventory/group_vars/all/vault.yml.example"
  fi
done
exit "$found"
