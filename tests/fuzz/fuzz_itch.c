/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_itch.c - any bytes as a day of ITCH 5.0, through a real input.
 *
 *      bytes[0]   options: allow partial, allow steps, raw, some symbols, another day
 *      bytes[1..] the file, whatever it is packed with
 *
 * Checked beside the sanitizers: what an order event says of its order is what the events before it left,
 * by a list instead of a map; keys lie in the day; a raw message is what the file has at its offset.
 */
#include "fuzz.h"
#include "producer/ingest_itch.h"
#include "producer/itch.h"
#include "producer/itch_schema.h"

#define SERIES_MAX 4096u
#define ORDER_MAX  256u
#define DAY_NS     INT64_C(86400000000000)

#define OPTION_PARTIAL 1u
#define OPTION_STEPS   2u
#define OPTION_RAW     4u
#define OPTION_SYMBOLS 8u
#define OPTION_SUMMER  16u

struct target {
	const uint8_t *file;
	size_t file_len;
	int is_plain;
	int64_t midnight;
	char kinds[SERIES_MAX]; /* 'm' order events, 'r' raw messages, 'o' all else */
	uint32_t strides[SERIES_MAX];
	uint32_t series_cnt;
	struct stoup_itch_order orders[ORDER_MAX];
	size_t order_cnt;
	int is_full; /* more orders than the list takes: no longer compared */
};

static int64_t take_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	struct target *target = arg;
	uint32_t i = target->series_cnt++ % SERIES_MAX;

	MUST(strlen(name) < STOUP_SERIES_NAME_CAP);
	MUST(strncmp(name, "X%2FY/", 6) == 0);
	if (strcmp(schema->name, "itch50") == 0)
		target->kinds[i] = 'r';
	else {
		MUST(stoup_schema_valid(schema, err) == 0);
		target->kinds[i] = strcmp(schema->name, "itch-mbo") == 0 ? 'm' : 'o';
	}
	target->strides[i] = schema->stride;
	return i;
}

static struct stoup_itch_order *listed(struct target *target, uint64_t ref)
{
	for (size_t i = 0; i < target->order_cnt; i++)
		if (target->orders[i].ref == ref)
			return &target->orders[i];
	return NULL;
}

static void list_remove(struct target *target, struct stoup_itch_order *order)
{
	*order = target->orders[--target->order_cnt];
}

static void check_event(struct target *target, const struct stoup_itch_mbo *e)
{
	int is_new = e->type == 'A' || e->type == 'F' || e->type == 'U';
	uint64_t old_ref = e->type == 'U' ? e->prev_ref : e->order_ref;
	struct stoup_itch_order *order = listed(target, old_ref);

	MUST(e->side == 'B' || e->side == 'S');
	MUST(e->type == 'U' || e->prev_ref == UINT64_MAX);
	if (target->is_full)
		return;
	if (e->type == 'A' || e->type == 'F')
		MUST(!order && e->before == 0 && e->order_price == e->price);
	else {
		MUST(order && order->left == e->before && order->price == e->order_price &&
			order->side == e->side && order->locate == e->locate);
		MUST(memcmp(order->mpid, e->mpid, sizeof(e->mpid)) == 0);
	}
	if (!is_new) {
		MUST(e->left == e->before - e->size && e->size <= e->before);
		order->left = e->left;
	}
	if (order && (is_new || order->left == 0))
		list_remove(target, order);
	if (!is_new)
		return;
	MUST(e->left == e->size && e->size > 0 && !listed(target, e->order_ref));
	target->is_full = target->order_cnt == ORDER_MAX;
	if (target->is_full)
		return;
	target->orders[target->order_cnt] = (struct stoup_itch_order){.ref = e->order_ref,
		.price = e->price,
		.left = e->left,
		.locate = e->locate,
		.side = e->side};
	memcpy(target->orders[target->order_cnt++].mpid, e->mpid, sizeof(e->mpid));
}

static int take_record(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct target *target = arg;
	struct stoup_itch_mbo event;
	int64_t ts;

	(void)err;
	MUST(series_idx < SERIES_MAX);
	memcpy(&ts, record, sizeof(ts));
	MUST(ts == key);
	MUST(key >= target->midnight && key < target->midnight + DAY_NS);
	MUST(!target->is_plain || where->file_off < target->file_len);
	if (target->kinds[series_idx] != 'm')
		return 0;
	MUST(target->strides[series_idx] == sizeof(event));
	memcpy(&event, record, sizeof(event));
	check_event(target, &event);
	return 0;
}

static int take_message(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	uint32_t len, const struct stoup_where *where, struct stoup_error *err)
{
	const struct target *target = arg;

	(void)err;
	MUST(series_idx < SERIES_MAX && target->kinds[series_idx] == 'r');
	MUST(key >= target->midnight && key < target->midnight + DAY_NS);
	if (!target->is_plain)
		return 0;
	MUST(where->file_off + len <= target->file_len);
	MUST(memcmp(target->file + where->file_off, bytes, len) == 0);
	return 0;
}

static void drop_note(void *arg, const char *text)
{
	(void)arg;
	MUST(strlen(text) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct target target;
	const struct stoup_sink sink = {.arg = &target,
		.series = take_series,
		.put = take_record,
		.message = take_message,
		.note = drop_note};
	const struct stoup_intake filter = {.symbols = "A*,Z"};
	struct stoup_itch_options options = {.dataset = "X/Y"};
	struct stoup_input *input;
	struct stoup_error err = {0};
	char path[64];
	int fd, rc;

	if (len < 2)
		return 0;
	memset(&target, 0, sizeof(target));
	target.file = bytes + 1;
	target.file_len = len - 1;
	options.allow_partial = (bytes[0] & OPTION_PARTIAL) != 0;
	options.allow_steps = (bytes[0] & OPTION_STEPS) != 0;
	options.raw = bytes[0] & OPTION_RAW ? STOUP_ITCH_RAW_ALSO : STOUP_ITCH_RAW_NO;
	options.filter = bytes[0] & OPTION_SYMBOLS ? &filter : NULL;
	options.date = bytes[0] & OPTION_SUMMER ? "20190701" : "2019-01-30";
	target.midnight =
		(bytes[0] & OPTION_SUMMER ? INT64_C(1561953600) : INT64_C(1548824400)) * 1000000000;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, target.file, target.file_len) != (ssize_t)target.file_len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = stoup_input_open(path, &input, &err);
	if (rc == 0) {
		target.is_plain = strcmp(stoup_input_packing(input), "plain") == 0;
		rc = stoup_ingest_itch(&sink, input, &options, &err);
		stoup_input_close(input);
	}
	MUST(rc <= 0);
	MUST(rc == 0 || (err.code == rc && err.text[0]));
	close(fd);
	return 0;
}
