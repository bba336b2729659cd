#!/usr/bin/env bash
# Refuses secrets in plain text: a hook of pre-commit, and a step of CI, since a hook can be left out. Reads the files named, or all that git knows.
# It knows the usual slips only; the rule is that a secret stands in a vault.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Bytes, so that no encoding makes grep take a text for something else.
export LC_ALL=C
files=("$@")
if [[ $# -eq 0 ]]; then
  mapfile -d '' files < <(git ls-files -z)
fi
names='vault_\w+|sglang_server_(admin_)?api_key|sglang_model_hub_token|ansible_((become|ssh)_)?pass(word)?'
# Directly behind the colon: what ansible-vault encrypt_string prints, a name of something else, or nothing in quotes.
good="!vault\s+[|>]|[\"']?\{\{|(\"\"|'')([\s,}]|\$)"
secret="(?<!\w)($names)[\"']?\s*(:|=(?!=))(?!\s*($good))"
found=0
# FILE PATTERN SENTENCE: says where, never what.
refuse() {
  local line lines
  lines=$(grep -anP -e "$2" -- "$1" | cut -d : -f 1) || [[ $? -eq 1 ]]
  for line in $lines; do
    printf '%s:%s: %s\n' "$1" "$line" "$3" >&2
    found=1
  done
}
for file in "${files[@]}"; do
  [[ -f $file && ! -L $file ]] || continue
  refuse "$file" '-----BEGIN [A-Z ]*PRIVATE KEY-----' "holds a private key; keep it in the forge's secrets, out of git"
  case $file in
    inventory/snapshots/* | inventory/benchmarks/* | inventory/deployed/*) ;;
    inventory/*)
      refuse "$file" "$secret" "holds a secret in plain text, or no value on this line; encrypt it (ansible-vault encrypt_string), or write \"\" for none"
      ;;
  esac
done
exit "$found"
