#!/bin/bash
# A short, seeded part of `make torture`.
bash "$(dirname "$0")/torture.sh" 3 7
