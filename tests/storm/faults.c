/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c - what the soak adds to the kills. */
#include "storm/storm.h"

void storm_fault_turn(struct storm *s)
{
	(void)s;
}

uint64_t storm_fault_due(const struct storm *s)
{
	(void)s;
	return 0;
}

void storm_fault_end(struct storm *s)
{
	(void)s;
}

void storm_fault_report(const struct storm *s)
{
	(void)s;
}
