#!/usr/bin/env bash
# Gives the interpreter the name by which runs call it.
set -euo pipefail
ln -s python3.13 "$1/usr/bin/python3"
