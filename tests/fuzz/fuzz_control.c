/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_control.c - a control object with any bytes in it, read as monitors read it.
 *
 *      bytes[0..3]  caps: consumers, buffers, volumes; what to print
 *      then         [u32 offset][u8 length][bytes] ... changes of a good object
 *
 * The object is a real one, under its name in /dev/shm: `stoup stat`, `holders` and `log` run on it as
 * they are, in all forms, and `stoup exporter --once`; screens of `stoup top` are drawn of it. Checked beside the
 * sanitizers: what they print as JSON is JSON, metrics are lines of a name, labels of whole strings in UTF-8, and a
 * number, and a screen commands no terminal.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include "consumer/tool_top.h"
#include "consumer/tools.h"
#include "shm/control.h"
#include "shm/json.h"
#include "tests/fuzz/fuzz.h"

#define PRINT_CAP (8u << 20) /* bytes of one output */

static char pool[40], name[80];

static void unlink_name(void)
{
	shm_unlink(name);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

static const char *skip_blank(const char *at)
{
	while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
		at++;
	return at;
}

static const char *json_string(const char *at)
{
	MUST(*at++ == '"');
	for (; *at != '"'; at++) {
		MUST((unsigned char)*at >= 0x20);
		if (*at != '\\')
			continue;
		at++;
		if (*at == 'u')
			for (int i = 0; i < 4; i++)
				MUST(isxdigit((unsigned char)*++at));
		else
			MUST(*at && strchr("\"\\/bfnrt", *at));
	}
	return at + 1;
}

static const char *json_number(const char *at)
{
	at += *at == '-';
	MUST(isdigit((unsigned char)*at));
	while (isdigit((unsigned char)*at) || (*at && strchr(".eE+-", *at)))
		at++;
	return at;
}

/* One value; the end of it. Aborts at what is none. */
static const char *json_value(const char *at, int depth)
{
	static const char *const words[] = {"true", "false", "null"};
	char close;

	MUST(depth < 8);
	at = skip_blank(at);
	for (int i = 0; i < 3; i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return at + strlen(words[i]);
	if (*at == '"')
		return json_string(at);
	if (*at != '{' && *at != '[')
		return json_number(at);
	close = *at++ == '{' ? '}' : ']';
	at = skip_blank(at);
	if (*at == close)
		return at + 1;
	for (;;) {
		if (close == '}') {
			at = skip_blank(json_string(skip_blank(at)));
			MUST(*at++ == ':');
		}
		at = skip_blank(json_value(at, depth + 1));
		if (*at == close)
			return at + 1;
		MUST(*at++ == ',');
	}
}

/* ---- metrics ---------------------------------------------------------------------------------- */

/* A label's text up to its quote. */
static const char *metrics_string(const char *at)
{
	MUST(*at++ == '"');
	while (*at != '"') {
		size_t len = stoup_utf8_len((const unsigned char *)at, strlen(at));

		MUST(len > 0 && *at != '\n');
		if (*at == '\\') {
			MUST(at[1] == '\\' || at[1] == '"' || at[1] == 'n');
			len = 2;
		}
		at += len;
	}
	return at + 1;
}

static void metrics_lines(const char *at)
{
	while (*at) {
		const char *end = strchr(at, '\n');

		MUST(end != NULL);
		if (*at == '#') {
			MUST(strncmp(at, "# HELP stoup_", 13) == 0 ||
				strncmp(at, "# TYPE stoup_", 13) == 0);
			at = end + 1;
			continue;
		}
		MUST(strncmp(at, "stoup_", 6) == 0);
		at += strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
		for (int first = 1; *at == (first ? '{' : ','); first = 0) {
			at += 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");
			MUST(*at++ == '=');
			at = metrics_string(at);
		}
		at += *at == '}';
		MUST(*at++ == ' ');
		MUST(strspn(at, "0123456789.") == strcspn(at, "\n") && *at != '\n');
		at = strchr(at, '\n') + 1;
	}
}

/* ---- the tools -------------------------------------------------------------------------------- */

/* Run a command with its output going into memory; the caller frees the text. */
static char *run(int (*command)(int, char **), const char *option, int *ret_status)
{
	char *argv[4] = {(char[]){"stat"}, pool, NULL, NULL};
	FILE *was_out = stdout, *was_err = stderr;
	char *text = NULL;
	size_t len = 0;

	if (option) {
		argv[1] = (char *)(uintptr_t)option;
		argv[2] = pool;
	}
	stdout = open_memstream(&text, &len);
	stderr = fopen("/dev/null", "we");
	MUST(stdout && stderr);
	*ret_status = command(option ? 3 : 2, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = was_out;
	stderr = was_err;
	MUST(*ret_status == 0 || *ret_status == 1);
	MUST(len < PRINT_CAP && strlen(text) <= len);
	return text;
}

static void print_all(unsigned what)
{
	int status;
	char *text;

	if (what & 8) {
		text = run(stoup_cmd_exporter, "--once", &status);
		MUST(status == 0);
		metrics_lines(text);
		free(text);
		return;
	}
	switch (what & 7) {
	case 0:
		free(run(stoup_cmd_stat, NULL, &status));
		break;
	case 1:
		free(run(stoup_cmd_stat, "--all", &status));
		break;
	case 2:
		text = run(stoup_cmd_stat, "--json", &status);
		if (status == 0)
			MUST(*skip_blank(json_value(text, 0)) == 0);
		free(text);
		break;
	case 3:
		free(run(stoup_cmd_holders, NULL, &status));
		break;
	case 4:
	case 5:
		text = run(what & 1 ? stoup_cmd_holders : stoup_cmd_log, "--json", &status);
		if (status == 0)
			MUST(*skip_blank(json_value(text, 0)) == 0);
		free(text);
		break;
	case 6:
		free(run(stoup_cmd_stat, "--histograms", &status));
		break;
	default:
		free(run(stoup_cmd_log, NULL, &status));
		break;
	}
}

/* ---- screens ---------------------------------------------------------------------------------- */

static void draw_screen(struct stoup_top *top, uint32_t rows, uint32_t cols, int utf8)
{
	struct stoup_top_screen screen;

	MUST(stoup_top_screen_init(&screen, rows, cols, utf8) == 0);
	stoup_top_draw(top, &screen);
	for (uint32_t i = 0; i < rows * cols; i++) {
		uint32_t glyph = screen.cells[i].glyph;

		MUST(glyph == 0 || glyph >= ' ');
		MUST(glyph < 127 || (utf8 && glyph > 0x9f && glyph < 0x110000));
		MUST(screen.cells[i].style < STOUP_TOP_STYLE_CNT);
	}
	stoup_top_screen_fini(&screen);
}

/* Two looks at it, in each view and map. */
static void draw_all(const struct stoup_control *c, size_t len)
{
	struct stoup_top *top = calloc(1, sizeof(*top));
	struct stoup_top_store *store = NULL;

	MUST(top && stoup_top_store_create(&store) == 0);
	setlocale(LC_CTYPE, "C.UTF-8");
	top->interval = 1;
	top->names = (struct stoup_top_names){stoup_top_store_series, store};
	for (uint32_t i = 0; i < 2; i++) {
		top->now = i;
		if (stoup_watch_read(c, len, &top->looks[i], NULL) < 0)
			break;
		stoup_top_looked(top);
		stoup_top_store_look(store, &top->looks[i]);
		for (uint32_t view = 0; view < STOUP_TOP_VIEW_CNT; view++) {
			stoup_top_key(top, STOUP_TOP_KEY_TAB);
			stoup_top_key(top, i ? 's' : 'c');
			draw_screen(top, i ? 40 : 24, i ? 120 : 80, (int)(view % 2));
		}
	}
	stoup_watch_fini(&top->looks[0]);
	stoup_watch_fini(&top->looks[1]);
	stoup_top_store_destroy(store);
	free(top);
}

/* ---- the object ------------------------------------------------------------------------------- */

static struct stoup_control *make(const struct stoup_control_config *config, size_t len)
{
	struct stoup_control *c = aligned_alloc(STOUP_OS_PAGE_LEN, len);

	MUST(c != NULL);
	memset(c, 0, len);
	stoup_control_format(c, config);
	c->daemon_pid = (uint32_t)getpid();
	c->daemon_start = stoup_process_start(c->daemon_pid);
	c->data_len = 1 << 20;
	snprintf(c->pool_name, sizeof(c->pool_name), "%s", pool);
	stoup_control_announce(c);
	return c;
}

static void change(struct stoup_control *c, size_t len, struct fuzz_in *in)
{
	while (in->left > 0) {
		size_t off = fuzz_int(in, 3) % len, cnt;
		const uint8_t *bytes;

		cnt = fuzz_take(in, fuzz_u8(in), &bytes);
		if (cnt > len - off)
			cnt = len - off;
		memcpy((uint8_t *)c + off, bytes, cnt);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	struct stoup_control_config config = {.cell_cap = 64};
	struct stoup_error err = {0};
	struct stoup_control *c;
	size_t total;
	uint8_t what;
	int fd, rc;

	config.consumer_cap = fuzz_u8(&in) % 8 + 1u;
	config.buffer_cap = fuzz_u8(&in) % 32 + 1u;
	config.volume_cap = fuzz_u8(&in) % 8 + 1u;
	what = fuzz_u8(&in);
	total = stoup_control_footprint(&config);
	if (!name[0]) {
		snprintf(pool, sizeof(pool), "fuzz-%d", (int)getpid());
		stoup_control_name((uint32_t)geteuid(), pool, name, sizeof(name));
		atexit(unlink_name);
	}
	c = make(&config, total);
	change(c, total, &in);
	/* First as bytes of exactly its length: reads beyond it show. */
	rc = stoup_control_verify(c, total, &err);
	MUST(rc == 0 || ((rc == -EPROTO || rc == -EAGAIN) && err.text[0]));
	draw_all(c, total);
	shm_unlink(name);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	MUST(fd >= 0 && pwrite(fd, c, total, 0) == (ssize_t)total);
	close(fd);
	print_all(what);
	free(c);
	return 0;
}
