/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the lines of a check, and how files are read for it. */
#include "producer/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include "producer/memory.h"
#include "shm/format.h"
#include "shm/json.h"

static const char *const level_words[] = {"ok", "warning", "problem"};

/* ---- lines ------------------------------------------------------------------------------------ */

struct stoup_check_line *stoup_check_line(
	struct stoup_check *c, const char *name, enum stoup_check_level level)
{
	struct stoup_check_line *line;

	/* The last one is written again: a machine with so many faults is told the first of them. */
	line = &c->lines[c->line_cnt < STOUP_CHECK_LINE_CAP ? c->line_cnt++
							    : STOUP_CHECK_LINE_CAP - 1];
	memset(line, 0, sizeof(*line));
	line->name = name;
	line->level = level;
	return line;
}

#define PRINT_TEXT(member)                                                                         \
	do {                                                                                       \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, fmt);                                                               \
		vsnprintf(line->member, sizeof(line->member), fmt, args);                          \
		va_end(args);                                                                      \
	} while (0)

void stoup_check_found(struct stoup_check_line *line, const char *fmt, ...)
{
	PRINT_TEXT(found);
}

void stoup_check_wanted(struct stoup_check_line *line, const char *fmt, ...)
{
	PRINT_TEXT(wanted);
}

void stoup_check_mend(struct stoup_check_line *line, const char *fmt, ...)
{
	PRINT_TEXT(mend);
}

uint32_t stoup_check_count(const struct stoup_check *c, enum stoup_check_level level)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < c->line_cnt; i++)
		cnt += c->lines[i].level == level;
	return cnt;
}

/* ---- printing --------------------------------------------------------------------------------- */

/* A terminal is told nothing by names that others chose. */
static void put_plain(FILE *out, const char *text)
{
	char plain[sizeof(((struct stoup_check_line *)0)->mend) +
		   sizeof(((struct stoup_check_line *)0)->found)];

	snprintf(plain, sizeof(plain), "%s", text);
	stoup_utf8_plain(plain);
	fputs(plain, out);
}

void stoup_check_print(const struct stoup_check *c, FILE *out)
{
	uint32_t warnings, problems;

	for (uint32_t i = 0; i < c->line_cnt; i++) {
		const struct stoup_check_line *line = &c->lines[i];

		fprintf(out, "%-8s %-12s ", level_words[line->level], line->name);
		put_plain(out, line->found);
		if (line->wanted[0]) {
			fputs("; wanted: ", out);
			put_plain(out, line->wanted);
		}
		if (line->mend[0]) {
			fprintf(out, "\n%21s mend: ", "");
			put_plain(out, line->mend);
		}
		putc('\n', out);
	}
	warnings = stoup_check_count(c, STOUP_CHECK_WARNING);
	problems = stoup_check_count(c, STOUP_CHECK_PROBLEM);
	fprintf(out, "%u ok, %u warning%s, %u problem%s\n", stoup_check_count(c, STOUP_CHECK_OK),
		warnings, STOUP_PLURAL(warnings), problems, STOUP_PLURAL(problems));
}

static void json_member(FILE *out, const char *name, const char *text)
{
	fprintf(out, ", \"%s\": ", name);
	if (text[0])
		stoup_json_string(out, text);
	else
		fputs("null", out);
}

void stoup_check_print_json(const struct stoup_check *c, FILE *out)
{
	fprintf(out, "{\"problems\": %u, \"warnings\": %u,\n\"checks\": [",
		stoup_check_count(c, STOUP_CHECK_PROBLEM),
		stoup_check_count(c, STOUP_CHECK_WARNING));
	for (uint32_t i = 0; i < c->line_cnt; i++) {
		const struct stoup_check_line *line = &c->lines[i];

		fprintf(out, "%s\n  {\"check\": \"%s\", \"level\": \"%s\"", i ? "," : "",
			line->name, level_words[line->level]);
		json_member(out, "found", line->found);
		json_member(out, "wanted", line->wanted);
		json_member(out, "mend", line->mend);
		putc('}', out);
	}
	fputs("\n]}\n", out);
}

/* ---- files ------------------------------------------------------------------------------------ */

const char *stoup_check_path(const struct stoup_check *c, const char *path, char *dst)
{
	if (snprintf(dst, PATH_MAX, "%s%s", c->root, path) >= PATH_MAX)
		dst[0] = 0; /* no such file */
	return dst;
}

int stoup_check_read(const struct stoup_check *c, const char *path, char *dst, size_t cap)
{
	char full[PATH_MAX];
	ssize_t len;
	int fd = open(stoup_check_path(c, path, full), O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	dst[0] = 0;
	if (fd < 0)
		return -errno;
	len = read(fd, dst, cap - 1);
	rc = len < 0 ? -errno : (int)len;
	close(fd);
	if (rc < 0)
		return rc;
	if (rc > 0 && dst[rc - 1] == '\n')
		rc--;
	dst[rc] = 0;
	return rc;
}

uint64_t stoup_check_number(const struct stoup_check *c, const char *path, const char *key)
{
	char full[PATH_MAX];

	return stoup_memory_number(stoup_check_path(c, path, full), key);
}
