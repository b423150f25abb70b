/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_check.c - `stoup check`: is this machine fit for a pool, and what would mend it? */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "producer/check.h"
#include "producer/cmd.h"
#include "shm/region.h"
#include "shm/wire.h"

#define POOL_LEN_DEFAULT (UINT64_C(512) << 20) /* as stoupd without --size, at most */

static const char usage_text[] =
	"usage: stoup check [options] [POOL|STORE/]\n"
	"\n"
	"Is this machine fit for a pool? Each line is ok, warning or problem, with what was found,\n"
	"what is wanted, and the command that mends it. Needs no daemon and changes nothing; the\n"
	"limits are those of the user who asks. A POOL is looked at besides, or a STORE (a text\n"
	"with a slash, or a directory).\n"
	"\n"
	"  --size SIZE      bytes of the pool to be (default: what the store decodes to, at most\n"
	"                   512M; without a store 512M)\n"
	"  --backing KIND   of the pool to be: posix (default), memfd, hugetlb\n"
	"  --mlock          it is to be locked in memory\n"
	"  --json           {\"problems\": 0, \"warnings\": 0, \"checks\": [{\"check\": ..., \"level\": ...,\n"
	"                   \"found\": ..., \"wanted\": ..., \"mend\": ...}]}\n"
	"  --root DIR       look at files below DIR instead of / (for tests)\n"
	"\n"
	"Exit status: 0 all is ok or a warning, 1 there is a problem, 2 usage.\n";

enum {
	OPT_SIZE = 256,
	OPT_BACKING,
	OPT_MLOCK,
	OPT_JSON,
	OPT_ROOT,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"size", required_argument, NULL, OPT_SIZE},
	{"backing", required_argument, NULL, OPT_BACKING},
	{"mlock", no_argument, NULL, OPT_MLOCK},
	{"json", no_argument, NULL, OPT_JSON},
	{"root", required_argument, NULL, OPT_ROOT},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static int backing(const char *text, uint32_t *ret)
{
	static const char *const words[] = {"posix", "memfd", "hugetlb"};
	static const uint32_t kinds[] = {
		STOUP_BACKING_POSIX, STOUP_BACKING_MEMFD, STOUP_BACKING_HUGETLB};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0) {
			*ret = kinds[i];
			return 0;
		}
	fprintf(stderr, "stoup check: --backing '%s': not one of posix, memfd, hugetlb\n", text);
	return -EINVAL;
}

static int set_option(struct stoup_check *c, int which, const char *arg, int *json)
{
	switch (which) {
	case OPT_SIZE:
		if (stoup_size_parse(arg, &c->pool_len) == 0 && c->pool_len > 0)
			return 0;
		fprintf(stderr, "stoup check: --size '%s': a size is wanted, such as 64M or 4G\n",
			arg);
		return -EINVAL;
	case OPT_BACKING:
		return backing(arg, &c->backing);
	case OPT_MLOCK:
		c->mlock = 1;
		return 0;
	case OPT_JSON:
		*json = 1;
		return 0;
	case OPT_ROOT:
		c->root = arg;
		return 0;
	default:
		return -EINVAL;
	}
}

/* What the one argument means: as for `stoup cat`, a name without a slash that is a directory is a store, unless a
 * pool has it; here that is not asked, so that a directory wins. */
static int set_target(struct stoup_check *c, const char *text)
{
	struct stoup_error err = {0};
	struct stat st;

	if (strchr(text, '/') || (stat(text, &st) == 0 && S_ISDIR(st.st_mode))) {
		c->store_path = text;
		return 0;
	}
	if (stoup_pool_name_valid(text, &err) < 0) {
		fprintf(stderr, "stoup check: %s\n", err.text);
		return -EINVAL;
	}
	c->pool = text;
	return 0;
}

/* 0, 1 for help, -EINVAL (told). */
static int parse(struct stoup_check *c, int argc, char **argv, int *json)
{
	int which;

	optind = 0;
	while ((which = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (which == OPT_HELP) {
			fputs(usage_text, stdout);
			return 1;
		}
		if (which == '?' || set_option(c, which, optarg, json) < 0)
			return -EINVAL;
	}
	if (optind + 1 < argc) {
		fprintf(stderr, "stoup check: '%s': one pool or store is wanted\n",
			argv[optind + 1]);
		return -EINVAL;
	}
	return optind < argc ? set_target(c, argv[optind]) : 0;
}

int stoup_cmd_check(int argc, char **argv)
{
	struct stoup_check *c = calloc(1, sizeof(*c));
	int json = 0, rc;

	if (!c) {
		fprintf(stderr, "stoup check: out of memory\n");
		return STOUP_EXIT_FAIL;
	}
	c->root = "";
	c->backing = STOUP_BACKING_POSIX;
	rc = parse(c, argc, argv, &json);
	if (rc != 0) {
		free(c);
		if (rc < 0)
			fputs("try: stoup help check\n", stderr);
		return rc < 0 ? STOUP_EXIT_USAGE : STOUP_EXIT_OK;
	}
	stoup_check_container(c);
	stoup_check_store(c);
	if (c->pool_len == 0)
		c->pool_len = POOL_LEN_DEFAULT;
	stoup_check_pools(c);
	stoup_check_memory(c);
	stoup_check_kernel(c);
	stoup_check_access(c);
	if (json)
		stoup_check_print_json(c, stdout);
	else
		stoup_check_print(c, stdout);
	rc = stoup_check_count(c, STOUP_CHECK_PROBLEM) > 0 ? STOUP_EXIT_FAIL : STOUP_EXIT_OK;
	stoup_store_close(c->store);
	free(c);
	return rc;
}
