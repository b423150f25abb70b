/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pins.c - see tool_pins.h. */
#include "consumer/tool_pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "shm/hook.h"

int stoup_tool_pin_ask(
	struct stoup_session *ses, struct stoup_wire_pin *msg, struct stoup_error *err)
{
	struct stoup *st = ses->client;
	int rc;

	pthread_mutex_lock(&st->question);
	rc = stoup_hello_pin(ses, msg, stoup_client_now() + stoup_session_timeout(ses), err);
	pthread_mutex_unlock(&st->question);
	return rc;
}

int stoup_tool_pin_name(struct stoup_wire_pin *msg, const char *series, struct stoup_error *err)
{
	size_t len = strlen(series);

	if (len == 0 || len >= sizeof(msg->text))
		return stoup_error_set(err, -ENAMETOOLONG,
			"'%.60s...' is no name of a series: 1 to %zu bytes", series,
			sizeof(msg->text) - 1);
	memset(msg->text, 0, sizeof(msg->text));
	memcpy(msg->text, series, len);
	return 0;
}

/* Undo what was made, the last one first; the reason of the failure stays. */
static void take_back(struct stoup_session *ses, const struct stoup_series *series,
	const uint8_t *made, size_t cnt, const struct stoup_range *range)
{
	struct stoup_error ignored;

	while (cnt-- > 0) {
		struct stoup_wire_pin msg = {.op = STOUP_PIN_DROP_SAME,
			.from_ns = range->from_ns,
			.to_ns = range->to_ns};

		if (made[cnt] && stoup_tool_pin_name(&msg, series[cnt].name, &ignored) == 0)
			(void)stoup_tool_pin_ask(ses, &msg, &ignored);
	}
}

int stoup_tool_pin_all(struct stoup_session *ses, const struct stoup_series *series, size_t cnt,
	const struct stoup_range *range, struct stoup_wire_pin *ret, struct stoup_error *err)
{
	uint8_t *made = calloc(cnt + 1, 1);
	struct stoup_wire_pin msg = {0};
	int rc = made ? 0 : stoup_error_set(err, -ENOMEM, "no memory for %zu pins", cnt);

	for (size_t i = 0; i < cnt && rc == 0; i++) {
		msg = (struct stoup_wire_pin){
			.op = STOUP_PIN_ADD, .from_ns = range->from_ns, .to_ns = range->to_ns};
		rc = stoup_tool_pin_name(&msg, series[i].name, err);
		if (rc == 0)
			rc = stoup_tool_pin_ask(ses, &msg, err);
		STOUP_HOOK("pin.asked");
		if (rc == 0)
			made[i] = msg.cnt > 0;
		else if (made)
			take_back(ses, series, made, i, range);
	}
	free(made);
	if (rc == 0)
		*ret = msg;
	return rc;
}

int stoup_tool_pin_list(struct stoup_session *ses, struct stoup_wire_pin **ret, size_t *ret_cnt,
	struct stoup_wire_pin *ret_last, struct stoup_error *err)
{
	struct stoup_wire_pin *all = calloc(STOUP_PIN_CAP + 1, sizeof(*all)), msg;
	size_t cnt = 0;
	int rc = all ? 0 : stoup_error_set(err, -ENOMEM, "no memory for a list of pins");

	/* They may change meanwhile: the daemon has at most so many. */
	while (rc == 0 && cnt < STOUP_PIN_CAP + 1) {
		msg = (struct stoup_wire_pin){.op = STOUP_PIN_LIST, .idx = (uint32_t)cnt};
		rc = stoup_tool_pin_ask(ses, &msg, err);
		if (rc == 0)
			all[cnt++] = msg;
	}
	if (rc != -ENOENT) {
		free(all);
		return rc < 0 ? rc : stoup_error_set(err, -EPROTO, "the list of pins has no end");
	}
	*ret = all;
	*ret_cnt = cnt;
	*ret_last = msg;
	return 0;
}
