/* SPDX-License-Identifier: Apache-2.0 */
/* helper_worker.c - a consumer for the system tests: scans a series and says what it saw, as JSON.
 *
 * usage: helper_worker POOL SERIES [option...]
 *   --hold N       keep leases on the first N spans until the end
 *   --roll K       keep leases on the last K spans: the oldest is released after the newest was taken
 *   --wait         after the scan: print "scanned", wait for standard input to end, then read all held
 *                  spans again and print the sums
 *   --deaf         before --wait: close all descriptors but the standard ones, and read on
 *   --write        try to write the first byte of the first span: the kernel must kill this process
 *   --passes N     scan N times; SIGTERM makes the present one the last
 *   --steps        before each pass: print {"ready": true} and wait for a line of standard input
 *   --gate         after each span: print {"ready": true} and wait for a line of standard input
 *   --pause US     sleep after each span
 *   --from NS, --to NS   the range
 *   --direct       map the volumes; --direct-or-pool: or not
 *   --backward     from its end to its begin; first_key is then the highest
 *   --timeout MS   longest wait of one stoup_next
 *   --price F --size F   fields to sum (default price, size)
 *   --key F        field that first_key and last_key are taken from (default: the schema's key)
 *   --alarm US     a signal every so often, that interrupts what it meets
 *   --retry        go on after -ETIMEDOUT and -ENOBUFS
 *   --skip         go on behind damaged blocks
 *   --end-with-daemon    -EPIPE at once when the daemon ends
 *   --reconnect MS longest wait for another daemon
 *   --wait-mode N  STOUP_WAIT_* (default 0); --ahead N  options.ahead_cnt (-1: none)
 *   --populate     STOUP_POPULATE
 *   --mark N       after N spans: print "mark", wait for a line of standard input, or for its end
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "consumer/stoup.h"

#define HOLD_CAP 4096

__extension__ typedef __int128 wide;

struct worker {
	const char *price_name, *size_name, *key_name;
	long hold_cnt, roll_cnt, passes, pause_us, timeout_ms, reconnect_ms, mark_cnt, ahead_cnt;
	uint32_t wait_mode, option_flags;
	struct stoup_range range;
	int wait, write, retry, skip, steps, gate, deaf, end_with_daemon;
	/* results */
	uint64_t records, spans, checksum, retries, skipped;
	uint64_t next_ordinal,
		gaps; /* spans that did not begin where the one before ended; backward, the
	                              * other way round */
	wide price, size;
	int64_t first_key, last_key;
	struct stoup_span held[HOLD_CAP];
	struct stoup_lease leases[HOLD_CAP];
	long held_cnt;
};

static int64_t value_of(const struct stoup_field *field, const char *record)
{
	int64_t i64 = 0;
	uint32_t u32;

	if (!field)
		return 0;
	if (stoup_type_len(field->type) == 8) {
		memcpy(&i64, record + field->off, 8);
		return field->flags & STOUP_FIELD_NULL && (uint64_t)i64 == field->null_bits ? 0
		                                                                            : i64;
	}
	memcpy(&u32, record + field->off, 4);
	return field->flags & STOUP_FIELD_NULL && u32 == field->null_bits ? 0 : (int64_t)u32;
}

static int64_t key_of(const struct worker *w, const struct stoup_span *span, uint64_t idx)
{
	const struct stoup_field *field =
		w->key_name ? stoup_schema_field(span->schema, w->key_name) : NULL;
	uint32_t off = field ? field->off : span->schema->key_off;
	int64_t key;

	memcpy(&key, (const char *)span->base + idx * span->stride + off, sizeof(key));
	return key;
}

static uint64_t sum_bytes(const struct stoup_span *span)
{
	const unsigned char *at = span->base;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint64_t i = 0; i < span->record_cnt * span->stride; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void look(struct worker *w, const struct stoup_span *span)
{
	const struct stoup_field *price = stoup_schema_field(span->schema, w->price_name);
	const struct stoup_field *size = stoup_schema_field(span->schema, w->size_name);

	int backward = (w->range.flags & STOUP_BACKWARD) != 0;

	if (w->records == 0)
		w->first_key = key_of(w, span, backward ? span->record_cnt - 1 : 0);
	w->last_key = key_of(w, span, backward ? 0 : span->record_cnt - 1);
	for (uint64_t i = 0; i < span->record_cnt; i++) {
		const char *record = (const char *)span->base + i * span->stride;

		w->price += value_of(price, record);
		w->size += value_of(size, record);
	}
	w->gaps += w->spans > 0 &&
	           span->ordinal + (backward ? span->record_cnt : 0) != w->next_ordinal;
	w->next_ordinal = span->ordinal + (backward ? 0 : span->record_cnt);
	w->records += span->record_cnt;
	w->spans++;
	w->checksum = w->checksum * 31 + sum_bytes(span);
}

static void print_wide(wide v)
{
	char text[48];
	int at = sizeof(text);
	int minus = v < 0;

	text[--at] = 0;
	if (minus)
		v = -v;
	do
		text[--at] = (char)('0' + (int)(v % 10));
	while ((v /= 10) > 0);
	if (minus)
		text[--at] = '-';
	fputs(text + at, stdout);
}

static void report(struct stoup *st, const struct worker *w, int rc, const char *text)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	uint64_t held_bytes = 0;

	stoup_stats(st, &stats);
	for (long i = 0; i < w->hold_cnt && i < w->held_cnt; i++)
		held_bytes += w->held[i].record_cnt * w->held[i].stride;
	printf("{\"rc\": %d, \"records\": %" PRIu64 ", \"spans\": %" PRIu64 ", \"price\": ", rc,
		w->records, w->spans);
	print_wide(w->price);
	printf(", \"size\": ");
	print_wide(w->size);
	printf(", \"first_key\": %" PRId64 ", \"last_key\": %" PRId64 ", \"checksum\": %" PRIu64
	       ", \"retries\": %" PRIu64 ", \"hits\": %" PRIu64 ", \"misses\": %" PRIu64
	       ", \"reconnects\": %" PRIu64 ", \"gaps\": %" PRIu64 ", \"skipped\": %" PRIu64
	       ", \"held\": %ld, \"held_bytes\": %" PRIu64 ", \"leases\": %" PRIu64
	       ", \"direct\": %" PRIu64 ", \"direct_alone\": %" PRIu64 ", \"doorbells\": %" PRIu64
	       ", \"text\": \"",
		w->first_key, w->last_key, w->checksum, w->retries, stats.hit_cnt, stats.miss_cnt,
		stats.reconnect_cnt, w->gaps, w->skipped, w->held_cnt, held_bytes, stats.lease_cnt,
		stats.direct_cnt, stats.direct_alone_cnt, stats.doorbell_cnt);
	for (; *text; text++)
		if (*text != '"' && *text != '\\' && (unsigned char)*text >= 0x20)
			putchar(*text);
	printf("\"}\n");
	fflush(stdout);
}

/* Slide the window of leases by one span. */
static int roll(struct worker *w, const struct stoup_span *span)
{
	struct stoup_lease *oldest = &w->leases[w->held_cnt++ % w->roll_cnt];

	if (w->held_cnt > w->roll_cnt)
		stoup_release(oldest);
	return stoup_hold(span, oldest);
}

static int roll_end(struct worker *w)
{
	long cnt = w->held_cnt < w->roll_cnt ? w->held_cnt : w->roll_cnt;

	for (long i = 0; i < cnt; i++)
		if (stoup_release(&w->leases[i]) < 0)
			return -EPROTO;
	w->held_cnt = 0;
	return 0;
}

/* Say where it stands, and go on when it is told. */
static void stand(const char *word)
{
	char byte = 0;

	puts(word);
	fflush(stdout);
	while (byte != '\n' && read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static void step(void)
{
	stand("{\"ready\": true}");
}

/* One pass; the return of stoup_next that ended it. */
static int scan(struct worker *w, struct stoup_cursor *cur)
{
	struct stoup_span span;
	int rc;

	while ((rc = stoup_next(cur, &span)) != 0) {
		if (rc < 0 && w->retry && (rc == -ETIMEDOUT || rc == -ENOBUFS) &&
			w->retries++ < 1000)
			continue;
		if (rc == -EBADMSG && w->skip) {
			w->skipped += (uint64_t)stoup_cursor_skip(cur);
			continue;
		}
		if (rc < 0)
			return rc;
		if (w->write)
			*(volatile char *)(uintptr_t)span.base = 1;
		look(w, &span);
		if (w->held_cnt < w->hold_cnt) {
			rc = stoup_hold(&span, &w->leases[w->held_cnt]);
			if (rc < 0)
				return rc;
			w->held[w->held_cnt++] = span;
		}
		if (w->roll_cnt > 0 && (rc = roll(w, &span)) < 0)
			return rc;
		if (w->mark_cnt > 0 && w->spans == (uint64_t)w->mark_cnt)
			stand("mark");
		if (w->gate)
			step();
		if (w->pause_us > 0)
			usleep((useconds_t)w->pause_us);
	}
	return 0;
}

static uint64_t held_sum(const struct worker *w)
{
	uint64_t sum = 0;

	for (long i = 0; i < w->held_cnt; i++)
		sum = sum * 31 + sum_bytes(&w->held[i]);
	return sum;
}

static volatile sig_atomic_t last_pass;

static void end_after_this_pass(int sig)
{
	(void)sig;
	last_pass = 1;
}

static int work(struct worker *w, struct stoup *st, const struct stoup_series *series)
{
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	uint64_t before;
	int rc = 0;

	for (long pass = 0; pass < w->passes && rc == 0 && !last_pass; pass++) {
		if (w->steps)
			step();
		rc = stoup_scan(st, series, &w->range, &cur, &err);
		if (rc < 0) {
			report(st, w, rc, err.text);
			return rc;
		}
		rc = scan(w, cur);
		report(st, w, rc, rc < 0 ? stoup_cursor_error(cur)->text : "");
		stoup_cursor_close(cur);
	}
	if (w->wait) {
		char byte;

		if (w->deaf)
			close_range(3, ~0U, 0);
		before = held_sum(w);
		printf("scanned\n");
		fflush(stdout);
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
		printf("{\"held_unchanged\": %s}\n", held_sum(w) == before ? "true" : "false");
	}
	if (w->roll_cnt > 0)
		return roll_end(w) < 0 ? -EPROTO : rc;
	for (long i = 0; i < w->held_cnt; i++)
		if (stoup_release(&w->leases[i]) < 0 || stoup_release(&w->leases[i]) != -EINVAL)
			rc = -EPROTO;
	return rc;
}

static const struct option options[] = {
	{"hold", required_argument, NULL, 'h'},
	{"roll", required_argument, NULL, 'R'},
	{"wait", no_argument, NULL, 'w'},
	{"deaf", no_argument, NULL, 'd'},
	{"write", no_argument, NULL, 'W'},
	{"passes", required_argument, NULL, 'p'},
	{"pause", required_argument, NULL, 'u'},
	{"from", required_argument, NULL, 'f'},
	{"to", required_argument, NULL, 't'},
	{"timeout", required_argument, NULL, 'T'},
	{"price", required_argument, NULL, 'P'},
	{"size", required_argument, NULL, 'S'},
	{"key", required_argument, NULL, 'k'},
	{"alarm", required_argument, NULL, 'a'},
	{"retry", no_argument, NULL, 'r'},
	{"skip", no_argument, NULL, 'j'},
	{"steps", no_argument, NULL, 's'},
	{"end-with-daemon", no_argument, NULL, 'e'},
	{"reconnect", required_argument, NULL, 'c'},
	{"mark", required_argument, NULL, 'm'},
	{"gate", no_argument, NULL, 'g'},
	{"wait-mode", required_argument, NULL, 'M'},
	{"ahead", required_argument, NULL, 'A'},
	{"populate", no_argument, NULL, 'F'},
	{"backward", no_argument, NULL, 'b'},
	{"direct", no_argument, NULL, 'D'},
	{"direct-or-pool", no_argument, NULL, 'O'},
	{NULL, 0, NULL, 0},
};

static void alarm_hit(int signo)
{
	(void)signo;
}

/* Without SA_RESTART: each sleep and each call that can be interrupted is. */
static void alarm_start(long us)
{
	const struct sigaction action = {.sa_handler = alarm_hit};
	const struct itimerval timer = {
		.it_interval = {.tv_usec = us}, .it_value = {.tv_usec = us}};

	if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &timer, NULL) < 0)
		exit(2);
}

static void set_option(struct worker *w, int which)
{
	switch (which) {
	case 'h':
		w->hold_cnt = strtol(optarg, NULL, 10);
		break;
	case 'R':
		w->roll_cnt = strtol(optarg, NULL, 10);
		break;
	case 'w':
		w->wait = 1;
		break;
	case 'd':
		w->deaf = 1;
		break;
	case 'W':
		w->write = 1;
		break;
	case 'p':
		w->passes = strtol(optarg, NULL, 10);
		break;
	case 'u':
		w->pause_us = strtol(optarg, NULL, 10);
		break;
	case 'f':
		w->range.from_ns = strtoll(optarg, NULL, 10);
		break;
	case 't':
		w->range.to_ns = strtoll(optarg, NULL, 10);
		break;
	case 'T':
		w->timeout_ms = strtol(optarg, NULL, 10);
		break;
	case 'P':
		w->price_name = optarg;
		break;
	case 'S':
		w->size_name = optarg;
		break;
	case 'k':
		w->key_name = optarg;
		break;
	case 'a':
		alarm_start(strtol(optarg, NULL, 10));
		break;
	case 'r':
		w->retry = 1;
		break;
	case 'j':
		w->skip = 1;
		break;
	case 's':
		w->steps = 1;
		break;
	case 'e':
		w->end_with_daemon = 1;
		break;
	case 'c':
		w->reconnect_ms = strtol(optarg, NULL, 10);
		break;
	case 'b':
		w->range.flags |= STOUP_BACKWARD;
		break;
	case 'D':
		w->range.flags |= STOUP_DIRECT;
		break;
	case 'O':
		w->range.flags |= STOUP_DIRECT_OR_POOL;
		break;
	case 'M':
		w->wait_mode = (uint32_t)strtol(optarg, NULL, 10);
		break;
	case 'A':
		w->ahead_cnt = strtol(optarg, NULL, 10);
		break;
	case 'F':
		w->option_flags |= STOUP_POPULATE;
		break;
	case 'g':
		w->gate = 1;
		break;
	case 'm':
		w->mark_cnt = strtol(optarg, NULL, 10);
		break;
	default:
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct worker w = {.passes = 1, .price_name = "price", .size_name = "size"};
	struct stoup_options opt;
	struct stoup_series series;
	struct stoup_error err = {0};
	struct stoup *st = NULL;
	int which, rc;

	signal(SIGTERM, end_after_this_pass);
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(&w, which);
	if (optind != argc - 2 || w.hold_cnt > HOLD_CAP || w.roll_cnt > HOLD_CAP)
		return 2;
	stoup_options_init(&opt);
	if (w.timeout_ms)
		opt.timeout_ns = (uint64_t)w.timeout_ms * 1000000;
	opt.reconnect_ns = (uint64_t)w.reconnect_ms * 1000000;
	opt.flags = w.option_flags | (w.end_with_daemon ? STOUP_NO_RECONNECT : 0);
	opt.wait = w.wait_mode;
	opt.ahead_cnt = (uint32_t)w.ahead_cnt;
	rc = stoup_attach(argv[optind], &opt, &st, &err);
	if (rc == 0)
		rc = stoup_series_find(st, argv[optind + 1], &series, &err);
	if (rc < 0) {
		printf("{\"rc\": %d, \"text\": \"%s\"}\n", rc, err.text);
		stoup_detach(st);
		return 1;
	}
	rc = work(&w, st, &series);
	if (stoup_detach(st) < 0)
		return 3;
	return rc < 0;
}
