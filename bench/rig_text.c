/* SPDX-License-Identifier: Apache-2.0 */
/* rig_text.c - texts, stores of messages, crowds. */
#include "bench/rig_text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "producer/import.h"
#include "producer/json_doc.h"
#include "producer/store.h"

#define CAPTURE  "json/binance-usdm-btcusdt-20240808.jsonl.gz"
#define LINE_CAP (1u << 20)

/* ---- texts ------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static struct bench_texts texts_new(uint64_t cnt_cap, size_t len_cap)
{
	struct bench_texts texts = {.cap = len_cap + BENCH_TEXT_PADDING};

	texts.bytes = bench_alloc(texts.cap);
	texts.off = calloc(cnt_cap + 1, sizeof(*texts.off));
	if (!texts.off)
		bench_die("no memory for texts");
	return texts;
}

static void texts_add(struct bench_texts *texts, const char *text, size_t len)
{
	uint64_t at = texts->off[texts->cnt];

	memcpy(texts->bytes + at, text, len);
	texts->off[++texts->cnt] = at + len;
}

struct bench_texts bench_texts_make(uint64_t cnt, uint32_t from_len, uint32_t to_len)
{
	struct bench_texts texts = texts_new(cnt, cnt * to_len);
	uint64_t state = 1;
	char text[4096];

	if (to_len > sizeof(text))
		bench_die("texts of %u bytes", to_len);
	for (uint32_t i = 0; i < to_len; i++)
		text[i] = (char)('a' + mix(&state) % 26);
	for (uint64_t i = 0; i < cnt; i++) {
		text[i % from_len] = (char)('A' + mix(&state) % 26);
		texts_add(&texts, text, from_len + mix(&state) % (to_len - from_len + 1));
	}
	return texts;
}

/* One message like those of a crypto exchange's streams: of ten, seven quotes, two trades, one book. */
static size_t line_make(char *dst, uint64_t *state, uint64_t i)
{
	uint64_t t = UINT64_C(1723161256322) + i / 4, kind = mix(state) % 10;
	unsigned cents = (unsigned)(mix(state) % 100), lots = (unsigned)(mix(state) % 5000);
	int len;

	if (kind < 7)
		return (size_t)sprintf(dst,
			"{\"stream\":\"btcusdt@bookTicker\",\"data\":{\"e\":\"bookTicker\",\"u\":%" PRIu64
			",\"s\":\"BTCUSDT\",\"b\":\"61800.%02u\",\"B\":\"%u.507\",\"a\":\"61801.%02u\","
			"\"A\":\"%u.510\",\"T\":%" PRIu64 ",\"E\":%" PRIu64 "}}",
			5123107839020 + i, cents, lots, cents, lots, t, t);
	if (kind < 9)
		return (size_t)sprintf(dst,
			"{\"stream\":\"btcusdt@trade\",\"data\":{\"e\":\"trade\",\"E\":%" PRIu64
			",\"T\":%" PRIu64 ",\"s\":\"BTCUSDT\",\"t\":%" PRIu64
			",\"p\":\"61800.%02u\",\"q\":\"0.%03u\",\"X\":\"MARKET\",\"m\":false}}",
			t, t, 5266583935 + i, cents, lots % 1000);
	len = sprintf(dst,
		"{\"stream\":\"btcusdt@depth@0ms\",\"data\":{\"e\":\"depthUpdate\",\"E\":%" PRIu64
		",\"T\":%" PRIu64 ",\"s\":\"BTCUSDT\",\"U\":%" PRIu64 ",\"b\":[",
		t, t, 5123107832006 + i);
	for (unsigned level = 0; level < 40; level++)
		len += sprintf(dst + len, "%s[\"%u.%02u\",\"%u.%03u\"]", level ? "," : "",
			61800 - level, cents, lots, lots % 1000);
	return (size_t)(len + sprintf(dst + len, "],\"a\":[]}}"));
}

/* The captured lines without their time; 0 where there are none. */
static int capture_read(struct bench_texts *texts)
{
	const char *data = getenv("STOUP_DATA");
	char command[4200], *line = NULL;
	size_t cap = 0;
	ssize_t len;
	FILE *in;

	if (!data || snprintf(command, sizeof(command), "%s/%s", data, CAPTURE) >= 4096 ||
		access(command, R_OK) < 0 || strchr(data, '\''))
		return 0;
	snprintf(command, sizeof(command), "exec gzip -dc '%s/%s'", data, CAPTURE);
	in = popen(command, "re");
	if (!in)
		bench_die("%s: %s", command, strerror(errno));
	while ((len = getline(&line, &cap, in)) > 0) {
		char *text = strchr(line, ' ');

		len -= line[len - 1] == '\n';
		if (!text || texts->cnt == LINE_CAP ||
			texts->off[texts->cnt] + (size_t)len > texts->cap - BENCH_TEXT_PADDING)
			bench_die("%s: not the file that was captured", CAPTURE);
		texts_add(texts, text + 1, (size_t)(line + len - text) - 1);
	}
	free(line);
	if (pclose(in) != 0)
		bench_die("%s failed", command);
	return texts->cnt > 0;
}

struct bench_texts bench_texts_json(size_t len, int *ret_real)
{
	struct bench_texts one = texts_new(LINE_CAP, 64u << 20), all;
	uint64_t state = 1, i = 0;
	char text[4096];

	*ret_real = capture_read(&one);
	while (!*ret_real && one.cnt < 100000)
		texts_add(&one, text, line_make(text, &state, one.cnt));
	all = texts_new(len / 32 + 1, len);
	while (1) {
		const char *at = one.bytes + one.off[i];
		size_t text_len = one.off[i + 1] - one.off[i];

		if (bench_texts_len(&all) + text_len > len)
			break;
		texts_add(&all, at, text_len);
		i = i + 1 < one.cnt ? i + 1 : 0;
	}
	bench_texts_free(&one);
	return all;
}

void bench_texts_free(struct bench_texts *texts)
{
	bench_free(texts->bytes, texts->cap);
	free(texts->off);
}

/* ---- stores ----------------------------------------------------------------------------------- */

static void put(struct stoup_import *import, uint32_t idx, const struct bench_texts *texts,
	uint64_t i, uint8_t *room)
{
	const char *text = texts->bytes + texts->off[i];
	size_t len = texts->off[i + 1] - texts->off[i];
	struct stoup_where where = {.file = "texts", .line = i + 1};
	const void *bytes = text;
	struct stoup_json_fault fault;
	struct stoup_error err = {0};

	if (room) {
		int64_t doc_len = stoup_json_to_doc(text, len, room, &fault);

		if (doc_len < 0)
			bench_die("line %" PRIu64 ": offset %zu: %s", i + 1, fault.off, fault.what);
		bytes = room;
		len = (size_t)doc_len;
	}
	if (stoup_import_put_message(import, idx, BENCH_KEY_0 + (int64_t)i * BENCH_KEY_STEP, bytes,
		    (uint32_t)len, &where, &err) < 0)
		bench_die("%s", err.text);
}

void bench_texts_store(
	const char *path, const char *series, const char *schema, const struct bench_texts *texts)
{
	struct stoup_import_options options = {.store_path = path,
		.block_len = BENCH_PIECE_LEN,
		.volume_len = UINT64_C(4) << 30,
		.memory_len = 64u << 20,
		.quiet = 1};
	struct stoup_import *import = NULL;
	struct stoup_error err = {0};
	uint8_t *room = NULL;
	int64_t idx;

	if (strcmp(schema, "bipf") == 0) {
		room = malloc(STOUP_JSON_DOC_CAP(LINE_CAP));
		if (!room)
			bench_die("no memory for a document");
	}
	if (stoup_encoding_parse("none", NULL, &options.encoding) < 0 ||
		stoup_import_begin(&options, &import, &err) < 0)
		bench_die("%s: %s", path, err.text);
	idx = stoup_import_series(import, series, stoup_schema_by_name(schema), &err);
	if (idx < 0)
		bench_die("%s: %s", path, err.text);
	for (uint64_t i = 0; i < texts->cnt; i++)
		put(import, (uint32_t)idx, texts, i, room);
	if (stoup_import_finish(import, &err) < 0)
		bench_die("%s: %s", path, err.text);
	stoup_import_destroy(import);
	free(room);
}

/* ---- a crowd ---------------------------------------------------------------------------------- */

_Noreturn static void worker(
	int go_fd, int done_fd, bench_worker_make make, const void *arg, bench_pass pass)
{
	void *own = make(arg);
	uint64_t result = 0;
	char go;

	/* Once to say that it is ready, then at each go. */
	do {
		if (write(done_fd, &result, sizeof(result)) != sizeof(result))
			_exit(1);
		if (read(go_fd, &go, 1) != 1)
			_exit(0);
		result = pass(own);
	} while (1);
}

static uint64_t results_read(const struct bench_team *team)
{
	uint64_t sum = 0, one;

	for (uint32_t i = 0; i < team->cnt; i++) {
		if (read(team->done_fd, &one, sizeof(one)) != sizeof(one))
			bench_die("a worker ended: %s", strerror(errno));
		sum += one;
	}
	return sum;
}

void bench_team_start(struct bench_team *team, uint32_t cnt, bench_worker_make make,
	const void *arg, bench_pass pass)
{
	int go[2], done[2];

	if (cnt > BENCH_CROWD_CAP || pipe(go) < 0 || pipe(done) < 0)
		bench_die("pipes of %u workers: %s", cnt, strerror(errno));
	*team = (struct bench_team){.cnt = cnt};
	fflush(stdout);
	for (uint32_t i = 0; i < cnt; i++) {
		team->pids[i] = fork();
		if (team->pids[i] < 0)
			bench_die("fork: %s", strerror(errno));
		if (team->pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(go[1]);
			close(done[0]);
			worker(go[0], done[1], make, arg, pass);
		}
	}
	close(go[0]);
	close(done[1]);
	team->go_fd = go[1];
	team->done_fd = done[0];
	results_read(team);
}

uint64_t bench_team_pass(void *arg)
{
	static const char go[BENCH_CROWD_CAP] = {0};
	const struct bench_team *team = arg;

	if (write(team->go_fd, go, team->cnt) != (ssize_t)team->cnt)
		bench_die("workers: %s", strerror(errno));
	return results_read(team);
}

void bench_team_end(struct bench_team *team)
{
	/* Teams that were made later have this one's pipe as well: its end says nothing. */
	for (uint32_t i = 0; i < team->cnt; i++)
		kill(team->pids[i], SIGKILL);
	close(team->go_fd);
	for (uint32_t i = 0; i < team->cnt; i++)
		waitpid(team->pids[i], NULL, 0);
	close(team->done_fd);
}
