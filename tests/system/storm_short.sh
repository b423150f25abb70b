#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A few hundred deaths of consumers and some of daemons, under workers that check every byte; then a short
# soak, and a storm of forks. The long forms are commands: tests/storm.sh, tests/soak.sh, tests/storm_forks.sh.
set -euo pipefail

tests=$STOUP_SOURCE_DIR/tests
if [ -n "${STOUP_SANITIZED:-}" ]; then
	"$tests/storm.sh" --consumer-kills 60 --daemon-kills 6
	"$tests/soak.sh" 0.2
	"$tests/storm_forks.sh" 10
else
	"$tests/storm.sh" --consumer-kills 300 --daemon-kills 20
	"$tests/soak.sh" 0.2
	"$tests/storm_forks.sh" 20
fi
