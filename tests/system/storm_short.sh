#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A few hundred deaths of consumers and some of daemons, under workers that check every byte; then a short
# soak. The long forms are commands: tests/storm.sh and tests/soak.sh.
set -euo pipefail

tests=$STOUP_SOURCE_DIR/tests
if [ -n "${STOUP_SANITIZED:-}" ]; then
	"$tests/storm.sh" --consumer-kills 60 --daemon-kills 6
	"$tests/soak.sh" 0.2
else
	"$tests/storm.sh" --consumer-kills 300 --daemon-kills 20
	"$tests/soak.sh" 0.2
fi
