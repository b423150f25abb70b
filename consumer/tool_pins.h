/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pins.h - pins as the tools make and list them: questions to the daemon, one at a time.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_PINS_H
#define STOUP_CONSUMER_TOOL_PINS_H

#include "consumer/client.h"
#include "shm/wire.h"

/* Ask; *msg is the question, and then the answer. As stoup_hello_pin, within the handle's time-out. */
int stoup_tool_pin_ask(
	struct stoup_session *ses, struct stoup_wire_pin *msg, struct stoup_error *err);

/* What a question names. -ENAMETOOLONG with text. */
int stoup_tool_pin_name(struct stoup_wire_pin *msg, const char *series, struct stoup_error *err);

/* Pin all series of the range, or none: those that this call made are taken back when one is refused. *ret has the numbers of
 * all pins of the pool. */
int stoup_tool_pin_all(struct stoup_session *ses, const struct stoup_series *series, size_t cnt,
	const struct stoup_range *range, struct stoup_wire_pin *ret, struct stoup_error *err);

/* All pins of the pool; *ret is for free(). *ret_last: the answer that said that there are no more, with the numbers of
 * all. */
int stoup_tool_pin_list(struct stoup_session *ses, struct stoup_wire_pin **ret, size_t *ret_cnt,
	struct stoup_wire_pin *ret_last, struct stoup_error *err);

#endif
