#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# model.sh - the models of the lease protocol hold, and each seeded fault breaks one. 77: Spin is absent.
set -euo pipefail
exec "$(dirname -- "${BASH_SOURCE[0]}")/model/run.sh"
