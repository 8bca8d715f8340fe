#!/bin/sh
# Calls a scoring API as an agent does, and prints its answer:
#
#     samples/sample-scorer/hack/test_scoring.sh http://localhost:8000 samples/sample-scorer/static/data.json
set -eu
path=$(curl -fsS "$1/config" | jq -r '.scoring.path // "/scoring"')
curl -fsS -H 'Content-Type: application/json' --data-binary "@$2" "$1$path" | jq
