/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_reply.c - a daemon that answers libstoup with anything: messages, descriptors, shared objects.
 *
 *      bytes[0]   flags: 1 volumes are to be asked for; 2 blocks are not resident; 4 there is a newer
 *                 snapshot behind the one of the reply
 *      bytes[1]   how a request ends: 0 granted, else an error (negative errno), with bytes[2] its detail
 *      bytes[3]   the buffer that is granted
 *      then       [target][u16 offset][u8 length][bytes] ... changes of what a good daemon would send
 *      Questions for files are answered with one whose blocks lie where the catalogs say at first.
 *      target     0 reply, 1 answer about volumes, 2 control, 3 page, 4 and 5 catalogs,
 *                 6 replace descriptor `offset` by one of kind `length`, 7 send `offset` bytes only
 *
 * Checked beside the sanitizers: attaching, listing, scanning, renewing and detaching end, and whatever a span
 * hands out lies in the data region: its bytes are all FILL, and nothing else is. A span of a file lies in its
 * mapping: it can be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "consumer/stoup.h"
#include "shm/catalog.h"
#include "shm/control.h"
#include "shm/futex.h"
#include "shm/lease.h"
#include "shm/page.h"
#include "shm/region.h"
#include "shm/wire.h"
#include "tests/fuzz/fuzz.h"

#define FILL         0x11
#define DATA_LEN     (8u * 4096u)
#define VOLUME_CNT   2u
#define BLOCK_CNT    4u
#define BLOCK_LEN    4096u
#define CATALOG_LEN  (2u * 4096u)
#define CELL_CAP     64u
#define SPAN_CAP     64
#define QUESTION_CAP 12
#define FD_CAP       (STOUP_WIRE_FD_FIXED + VOLUME_CNT)

/* What the daemon is going to say; made anew for each input. */
static struct plan {
	struct stoup_wire_reply reply;
	struct stoup_wire_volumes volumes;
	size_t reply_len;
	uint8_t *control, *page, *catalogs[VOLUME_CNT];
	size_t control_len, page_len;
	int fds[FD_CAP], bell_fd;
	int error;
	uint64_t detail, word;
} plan;

static char pool[32], dir[64];
static int listen_fd;
static sem_t served; /* the daemon's thread is done with a connection */

/* ---- a good daemon's objects ------------------------------------------------------------------ */

static void make_control(uint64_t snapshot_seq)
{
	const struct stoup_control_config config = {
		.consumer_cap = 2, .cell_cap = CELL_CAP, .buffer_cap = 8, .volume_cap = 4};
	struct stoup_control *c;

	plan.control_len = stoup_control_footprint(&config);
	plan.control = aligned_alloc(4096, plan.control_len);
	MUST(plan.control != NULL);
	memset(plan.control, 0, plan.control_len);
	c = (struct stoup_control *)(void *)plan.control;
	stoup_control_format(c, &config);
	c->data_len = DATA_LEN;
	c->lease_bytes_cap = DATA_LEN;
	c->block_len_max = BLOCK_LEN;
	c->daemon_pid = UINT32_MAX; /* nobody: its death is certain when the socket is closed */
	atomic_store(&c->asleep, 1);
	atomic_store(&c->heartbeat_ns, INT64_MAX);
	atomic_store(&c->snapshot_seq, snapshot_seq);
	for (uint32_t i = 0; i < 8; i++) {
		atomic_store(&stoup_control_buffers(c)[i].off, i * 4096);
		atomic_store(&stoup_control_buffers(c)[i].len, BLOCK_LEN);
		atomic_store(&stoup_control_buffers(c)[i].gen, 7);
	}
	for (uint32_t v = 0; v < VOLUME_CNT; v++)
		atomic_store(&stoup_control_volumes(c)[v].state, STOUP_VOLUME_SERVED);
	atomic_store(&stoup_control_errors(c)[0].seq, 2);
	strcpy(stoup_control_errors(c)[0].text, "block 1 is damaged");
	stoup_control_announce(c);
	memcpy(c->instance, "0123456789abcdef", 16);
}

static void make_schema(struct stoup_catalog *c)
{
	static const struct stoup_field fields[2] = {
		{.name = "ts", .cnt = 1, .type = STOUP_TYPE_I64, .flags = 6},
		{.name = "value", .off = 8, .cnt = 1, .type = STOUP_TYPE_U64}};
	struct stoup_catalog_schema *schema = (void *)((char *)c + c->schema_off);
	struct stoup_schema hashed = {
		.name = "pair", .stride = 16, .align = 8, .field_cnt = 2, .fields = fields};

	memcpy((char *)c + c->field_off, fields, sizeof(fields));
	*schema = (struct stoup_catalog_schema){.name = "pair",
		.stride = 16,
		.align = 8,
		.hash = stoup_schema_hash(&hashed),
		.field_cnt = 2};
}

/* Blocks of 256 records; series A/A has the first two, B/B halves of the others. */
static void make_catalog(uint32_t volume)
{
	const struct stoup_catalog_counts counts = {.schema_cnt = 1,
		.field_cnt = 2,
		.series_cnt = 2,
		.block_cnt = BLOCK_CNT,
		.segment_cnt = BLOCK_CNT,
		.string_len = 24};
	struct stoup_catalog *c = aligned_alloc(4096, CATALOG_LEN);
	struct stoup_catalog_series *series;
	struct stoup_catalog_segment *segments;
	struct stoup_catalog_block *blocks;

	MUST(c && stoup_catalog_footprint(&counts) == CATALOG_LEN);
	memset(c, 0, CATALOG_LEN);
	stoup_catalog_format(c, &counts, volume);
	c->ingest_seq = volume + 1;
	make_schema(c);
	series = (void *)((char *)c + c->series_off);
	segments = (void *)((char *)c + c->segment_off);
	blocks = (void *)((char *)c + c->block_off);
	memcpy((char *)c + c->string_off, "A/A\0B/B\0/data/x.stoup", 22);
	c->path_off = 8;
	for (uint32_t i = 0; i < 2; i++)
		series[i] = (struct stoup_catalog_series){.name_off = i * 4,
			.name_len = 3,
			.segment_first = i * 2,
			.segment_cnt = 2,
			.record_cnt = 512 >> i,
			.first_key = 1000 * volume + 1,
			.last_key = 1000 * volume + 999};
	for (uint32_t i = 0; i < BLOCK_CNT; i++) {
		blocks[i] = (struct stoup_catalog_block){.raw_len = BLOCK_LEN,
			.stored_len = BLOCK_LEN,
			.stored_off = (1 + (uint64_t)i) * BLOCK_LEN};
		segments[i] = (struct stoup_catalog_segment){.block_idx = i,
			.raw_off = i < 2 ? 0 : 2048,
			.record_cnt = i < 2 ? 256 : 128,
			.series_idx = i / 2,
			.ordinal = i % 2 * (i < 2 ? 256u : 128u),
			.first_key = 1000 * volume + 1 + i % 2 * 500,
			.last_key = 1000 * volume + 499 + i % 2 * 500};
		atomic_store(&stoup_catalog_residency(c)[i], stoup_word(7, volume * BLOCK_CNT + i));
	}
	plan.catalogs[volume] = (uint8_t *)c;
}

static void make_plan(struct fuzz_in *in)
{
	uint8_t flags = fuzz_u8(in);

	memset(&plan, 0, sizeof(plan));
	plan.error = -(int)fuzz_u8(in);
	plan.detail = fuzz_u8(in);
	plan.word = stoup_word(7, fuzz_u8(in) % 16);
	make_control(flags & 4 ? 2 : 1);
	plan.page_len = stoup_page_footprint(CELL_CAP);
	plan.page = aligned_alloc(4096, plan.page_len);
	MUST(plan.page != NULL);
	memset(plan.page, 0, plan.page_len);
	stoup_page_format((struct stoup_page *)(void *)plan.page,
		((struct stoup_control *)(void *)plan.control)->instance, 5, 0, CELL_CAP);
	for (uint32_t v = 0; v < VOLUME_CNT; v++) {
		make_catalog(v);
		for (uint32_t i = 0; flags & 2 && i < BLOCK_CNT; i++)
			atomic_store(&stoup_catalog_residency(
					     (struct stoup_catalog *)(void *)plan.catalogs[v])[i],
				0);
	}
	plan.reply = (struct stoup_wire_reply){.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.abi_major = STOUP_ABI_MAJOR,
		.fingerprint = stoup_abi_fingerprint(),
		.attach_no = 5,
		.volume_cnt = VOLUME_CNT,
		.volume_here = flags & 1 ? 0 : VOLUME_CNT,
		.snapshot_seq = 1};
	memcpy(plan.reply.instance, "0123456789abcdef", 16);
	plan.reply_len = sizeof(plan.reply);
	plan.volumes = (struct stoup_wire_volumes){.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_VOLUMES,
		.cnt = VOLUME_CNT,
		.volume_cnt = VOLUME_CNT,
		.snapshot_seq = flags & 4 ? 2 : 1};
}

/* ---- changes ---------------------------------------------------------------------------------- */

static void replace_fd(uint32_t which, uint8_t kind)
{
	int *fd = &plan.fds[which % FD_CAP], other;

	switch (kind % 5) {
	case 0:
		other = open("/dev/null", O_RDWR | O_CLOEXEC);
		break;
	case 1:
		other = memfd_create("empty", MFD_CLOEXEC);
		break;
	case 2:
		other = eventfd(0, EFD_CLOEXEC);
		break;
	case 3: /* one page of an object that had more */
		other = memfd_create("short", MFD_CLOEXEC);
		MUST(ftruncate(other, 4096) == 0);
		break;
	default:
		other = fcntl(plan.fds[kind % FD_CAP], F_DUPFD_CLOEXEC, 3);
		break;
	}
	MUST(other >= 0);
	close(*fd);
	*fd = other;
}

static void change(struct fuzz_in *in, int fds_are_made)
{
	while (in->left > 0) {
		struct target {
			void *at;
			size_t len;
		} targets[] = {{&plan.reply, sizeof(plan.reply)},
			{&plan.volumes, sizeof(plan.volumes)}, {plan.control, plan.control_len},
			{plan.page, plan.page_len}, {plan.catalogs[0], CATALOG_LEN},
			{plan.catalogs[1], CATALOG_LEN}};
		uint8_t which = fuzz_u8(in) % 8;
		size_t off = fuzz_u16(in), len = fuzz_u8(in);
		const uint8_t *bytes;

		if (which == 6 && fds_are_made)
			replace_fd((uint32_t)off, (uint8_t)len);
		else if (which == 7)
			plan.reply_len = off % (sizeof(plan.reply) + 1);
		if (which >= 6)
			continue;
		off %= targets[which].len;
		len = fuzz_take(in, len, &bytes);
		if (!fds_are_made)
			memcpy((uint8_t *)targets[which].at + off, bytes,
				len < targets[which].len - off ? len : targets[which].len - off);
	}
}

static void make_fds(void)
{
	static uint8_t data[DATA_LEN];

	memset(data, FILL, sizeof(data));
	plan.fds[STOUP_WIRE_FD_CONTROL] = fuzz_file(plan.control, plan.control_len);
	plan.fds[STOUP_WIRE_FD_DATA] = fuzz_file(data, sizeof(data));
	plan.fds[STOUP_WIRE_FD_PAGE] = fuzz_file(plan.page, plan.page_len);
	plan.fds[STOUP_WIRE_FD_DOORBELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	plan.bell_fd = fcntl(plan.fds[STOUP_WIRE_FD_DOORBELL], F_DUPFD_CLOEXEC, 3);
	for (uint32_t v = 0; v < VOLUME_CNT; v++)
		plan.fds[STOUP_WIRE_FD_FIXED + v] = fuzz_file(plan.catalogs[v], CATALOG_LEN);
}

static void plan_fini(void)
{
	for (uint32_t i = 0; i < FD_CAP; i++)
		close(plan.fds[i]);
	close(plan.bell_fd);
	for (uint32_t v = 0; v < VOLUME_CNT; v++)
		free(plan.catalogs[v]);
	free(plan.control);
	free(plan.page);
}

/* ---- the daemon's thread ---------------------------------------------------------------------- */

/* End all requests as the plan says. */
static void end_requests(struct stoup_page *page)
{
	uint64_t bits = stoup_request_take(page);

	for (; bits; bits &= bits - 1) {
		uint32_t idx = (uint32_t)__builtin_ctzll(bits);
		struct stoup_slot *slot = &page->slots[idx];
		uint32_t cell = atomic_load(&slot->cell_idx) % CELL_CAP;

		if (plan.error == 0)
			stoup_lease_grant(&page->cells[cell],
				stoup_ticket(idx, atomic_load(&slot->seq)), plan.word);
		if (stoup_request_done(slot, plan.error, plan.detail))
			stoup_futex_wake(&slot->state, 1);
	}
}

/* A good file for whatever volume; nobody else has a hand in it. */
static void answer_file(int sock_fd, struct stoup_wire_file *msg)
{
	uint8_t head[64] = "\x89STOUP\r\n";
	int fd = memfd_create("fuzz-file", MFD_CLOEXEC);

	memcpy(head + 16, msg->id, sizeof(msg->id));
	MUST(fd >= 0 && ftruncate(fd, (1 + BLOCK_CNT) * BLOCK_LEN) == 0);
	MUST(pwrite(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head));
	stoup_wire_send(sock_fd, msg, sizeof(*msg), &fd, 1);
	close(fd);
}

/* Answer questions and requests until the client hangs up, or has asked often enough. */
static void converse(int fd, struct stoup_page *page)
{
	_Alignas(8) uint8_t bytes[512];
	uint64_t rung;
	uint32_t cnt, questions = 0;
	int fds[STOUP_WIRE_FD_CAP];

	for (;;) {
		struct pollfd p[2] = {
			{.fd = fd, .events = POLLIN}, {.fd = plan.bell_fd, .events = POLLIN}};

		poll(p, 2, -1);
		if (p[1].revents && read(plan.bell_fd, &rung, 8) == 8 && page)
			end_requests(page);
		if (!p[0].revents)
			continue;
		if (stoup_wire_recv(fd, bytes, sizeof(bytes), fds, STOUP_WIRE_FD_CAP, &cnt) <= 0 ||
			questions++ == QUESTION_CAP)
			return;
		if (((struct stoup_wire_file *)(void *)bytes)->kind == STOUP_WIRE_FILE) {
			answer_file(fd, (struct stoup_wire_file *)(void *)bytes);
			continue;
		}
		cnt = plan.volumes.cnt < VOLUME_CNT ? plan.volumes.cnt : VOLUME_CNT;
		stoup_wire_send(fd, &plan.volumes, sizeof(plan.volumes),
			plan.fds + STOUP_WIRE_FD_FIXED, cnt);
	}
}

static void *serve(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		struct stoup_wire_hello hello;
		int fds[STOUP_WIRE_FD_CAP];
		struct stoup_region page = {.fd = -1, .ro_fd = -1};
		uint32_t cnt;

		MUST(fd >= 0);
		if (stoup_wire_recv(fd, &hello, sizeof(hello), fds, STOUP_WIRE_FD_CAP, &cnt) > 0) {
			cnt = plan.reply.volume_here < VOLUME_CNT ? plan.reply.volume_here
			                                          : VOLUME_CNT;
			if (stoup_region_map(plan.fds[STOUP_WIRE_FD_PAGE],
				    stoup_page_footprint(CELL_CAP), 1, 0, &page, NULL) < 0)
				page.base = NULL;
			stoup_wire_send(fd, &plan.reply, plan.reply_len, plan.fds,
				plan.reply.error ? 0 : STOUP_WIRE_FD_FIXED + cnt);
			converse(fd, page.base);
			stoup_region_fini(&page);
		}
		close(fd);
		sem_post(&served);
	}
	return NULL;
}

static void remove_socket(void)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/stoup/%s.sock", dir, pool);
	unlink(path);
	snprintf(path, sizeof(path), "%s/stoup", dir);
	rmdir(path);
	rmdir(dir);
}

static void start(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	pthread_t thread;
	char path[80];

	if (pool[0])
		return;
	snprintf(pool, sizeof(pool), "fuzz-%d", (int)getpid());
	snprintf(dir, sizeof(dir), "/tmp/stoup-fuzz-%d-XXXXXX", (int)getpid());
	MUST(mkdtemp(dir) != NULL);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(path, sizeof(path), "%s/stoup", dir);
	MUST(mkdir(path, 0700) == 0);
	MUST(snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s.sock", path, pool) <
		(int)sizeof(addr.sun_path));
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	MUST(bind(listen_fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	MUST(listen(listen_fd, 4) == 0 && sem_init(&served, 0, 0) == 0);
	MUST(pthread_create(&thread, NULL, serve, NULL) == 0);
	atexit(remove_socket);
}

/* ---- the client ------------------------------------------------------------------------------- */

static void read_span(const struct stoup_span *span, int fill)
{
	const uint8_t *bytes = span->base;
	size_t len = span->record_cnt * span->stride;

	MUST(span->record_cnt > 0 && len <= DATA_LEN);
	for (size_t i = 0; i < len; i++)
		MUST(((const volatile uint8_t *)bytes)[i] == FILL || !fill);
}

static void scan(struct stoup *st, const struct stoup_series *series, int64_t from_ns,
	int64_t to_ns, uint32_t flags)
{
	const struct stoup_range range = {.from_ns = from_ns, .to_ns = to_ns, .flags = flags};
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span;
	int rc = stoup_scan(st, series, &range, &cur, &err);

	MUST(rc == 0 || (err.code == rc && err.text[0]));
	for (int i = 0; rc >= 0 && i < SPAN_CAP; i++) {
		rc = stoup_next(cur, &span);
		if (rc > 0)
			read_span(&span, !(flags & (STOUP_DIRECT | STOUP_DIRECT_OR_POOL)));
		if (rc == 0)
			break;
	}
	if (err.code == 0) {
		MUST(rc >= 0 || stoup_cursor_error(cur)->text[0]);
		stoup_cursor_close(cur);
	}
}

static void use(struct stoup *st)
{
	int64_t cnt = stoup_series_cnt(st);
	struct stoup_series series;
	struct stoup_error err = {0};

	for (int64_t i = 0; i < cnt && i < 8; i++) {
		MUST(stoup_series_at(st, (uint64_t)i, &series) == 0);
		MUST(strlen(series.name) < CATALOG_LEN && series.schema->stride <= 65535);
		int64_t first = series.first_key > 0 ? series.first_key : 1;

		scan(st, &series, 0, 0, 0);
		scan(st, &series, first, INT64_MAX, 0);
		scan(st, &series, 0, 0, STOUP_BACKWARD);
		scan(st, &series, 2, series.last_key > 2 ? series.last_key : 2, STOUP_BACKWARD);
		scan(st, &series, 0, 0, STOUP_DIRECT_OR_POOL);
		scan(st, &series, first, INT64_MAX, STOUP_DIRECT | STOUP_BACKWARD);
	}
	MUST(stoup_series_find(st, "A/", &series, &err) < 0 ? err.text[0] : 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct stoup_options opt;
	struct fuzz_in in = {bytes, len}, again;
	struct stoup_error err = {0};
	struct stoup *st = NULL;
	int rc;

	start();
	make_plan(&in);
	again = in;
	change(&in, 0);
	make_fds();
	change(&again, 1);
	stoup_options_init(&opt);
	opt.timeout_ns = UINT64_C(200000000); /* where the doorbell leads nowhere, nobody answers */
	opt.flags = STOUP_NO_RECONNECT;
	rc = stoup_attach(pool, &opt, &st, &err);
	/* A refusal has the daemon's own text. */
	MUST(rc == 0 || (rc < 0 && !st && (err.text[0] || plan.reply.error)));
	if (rc == 0) {
		use(st);
		rc = stoup_refresh(st, &err);
		MUST(rc >= 0 || (err.code == rc && err.text[0]));
		if (rc > 0)
			use(st);
		MUST(stoup_detach(st) == 0);
	}
	sem_wait(&served);
	plan_fini();
	return 0;
}
