/* SPDX-License-Identifier: Apache-2.0 */
/* stoupd_main.c - the command line of the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "producer/cmd.h"
#include "producer/cpu_list.h"
#include "producer/daemon.h"

#define REQUEST_TIMEOUT_NS UINT64_C(30000000000) /* a starved request fails after that */
#define CONSUMERS_DEFAULT  128u
#define TAKEOVER_NS                                                                                \
	UINT64_C(5000000000) /* a worker notices the end of its daemon well within that */
#define SPIN_CAP_NS                                                                                \
	UINT64_C(                                                                                  \
		1000000000) /* beyond a second it is for ever: the tick wakes it five times in one */
#define LINGER_NS UINT64_C(2000000000) /* workers that start one after the other share a pool */

static const char usage_text[] =
	"usage: stoupd --store DIR --pool NAME [options]\n"
	"\n"
	"Serve the volumes of a store to the processes of this machine, from one pool of shared\n"
	"memory.\n"
	"\n"
	"  --store DIR            a store (may be given several times)\n"
	"  --pool NAME            the pool's name: what consumers attach to\n"
	"  --size SIZE            bytes of the pool: 512M, 4G (default: all that the store decodes to,\n"
	"                         at most 512M)\n"
	"  --backing KIND         posix (default), memfd (sealed, outside of /dev/shm), hugetlb\n"
	"  --consumers N          consumers at once (default 128, at most 256)\n"
	"  --cells N              leases of one consumer (default and at most 1024)\n"
	"  --lease-bytes SIZE     bytes that one consumer may hold (default: a quarter of the pool, all of\n"
	"                         a pool that holds all data; at least one largest block)\n"
	"  --quota GROUP=SIZE|N%  bytes that the consumers of a group may hold together, or user:NAME=SIZE of a user; up to\n"
	"                         16 times, the first that fits counts\n"
	"  --pin-max SIZE|N%      bytes that pins may keep (stoup pin): default 50%, at most 75% of the pool; 0: none\n"
	"  --requests N           requests of one consumer in flight (default and at most 64)\n"
	"  --request-timeout TIME wait for a block of programs that set no time-out (30s)\n"
	"  --threads N            decode workers (default: one for each of --cpus, else for each core)\n"
	"  --cpus LIST            pin the decode workers to these processors, such as 2,5-7\n"
	"  --spin TIME            poll that long for requests before going to sleep, and with --cpus the\n"
	"                         workers for jobs (default 0; at most 1s): for isolated processors\n"
	"  --reader KIND          auto (default), io_uring, pread\n"
	"  --depth N              reads in flight (default 16)\n"
	"  --direct SWITCH        O_DIRECT for bytes that are not in the page cache: auto, on, off\n"
	"  --cached SWITCH        look into the page cache first: auto, off\n"
	"  --mlock                lock the pool in memory\n"
	"  --takeover-wait TIME   wait for memory that the pool of the daemon before still has (5s)\n"
	"  --no-watch             do not watch the stores: SIGHUP and attaches tell of new volumes\n"
	"  --group NAME           group that may attach (default for root: stoup, where it exists)\n"
	"  --allow-user USER, --allow-group GROUP\n"
	"                         may attach besides (each up to 16 times; names or numbers)\n"
	"  --monitor-user USER, --monitor-group GROUP\n"
	"                         may look (stoup stat), not attach\n"
	"  --socket-mode OCTAL    mode of the socket (default: 0600, with a group 0660, with lists 0666:\n"
	"                         then the credentials decide)\n"
	"  --auto                 end --linger after the last consumer\n"
	"  --linger TIME          with --auto (2s)\n"
	"  --ready-fd N           write \"ready\" or the reason of a failure to this descriptor\n"
	"  --log-level LEVEL      error, warning (what peers bring about), info (default), debug\n"
	"  --quiet                the same as --log-level warning\n"
	"  --version, --help\n"
	"\n"
	"SIGTERM stops in order. Exit status: 0 done, 1 failed, 2 usage.\n";

static const char version_text[] = "stoupd " STOUP_VERSION
#ifdef STOUP_HOOKS
				   " (with hooks: for tests only)"
#endif
				   "\n";

enum {
	OPT_STORE = 256,
	OPT_POOL,
	OPT_SIZE,
	OPT_BACKING,
	OPT_CONSUMERS,
	OPT_CELLS,
	OPT_LEASE_BYTES,
	OPT_PIN_MAX,
	OPT_QUOTA,
	OPT_REQUEST_TIMEOUT,
	OPT_THREADS,
	OPT_CPUS,
	OPT_SPIN,
	OPT_READER,
	OPT_DEPTH,
	OPT_DIRECT,
	OPT_CACHED,
	OPT_GROUP,
	OPT_REQUESTS,
	OPT_MLOCK,
	OPT_TAKEOVER_WAIT,
	OPT_NO_WATCH,
	OPT_ALLOW_USER,
	OPT_ALLOW_GROUP,
	OPT_MONITOR_USER,
	OPT_MONITOR_GROUP,
	OPT_SOCKET_MODE,
	OPT_AUTO,
	OPT_LINGER,
	OPT_READY_FD,
	OPT_QUIET,
	OPT_LOG_LEVEL,
	OPT_VERSION,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"store", required_argument, NULL, OPT_STORE},
	{"pool", required_argument, NULL, OPT_POOL},
	{"size", required_argument, NULL, OPT_SIZE},
	{"backing", required_argument, NULL, OPT_BACKING},
	{"consumers", required_argument, NULL, OPT_CONSUMERS},
	{"cells", required_argument, NULL, OPT_CELLS},
	{"lease-bytes", required_argument, NULL, OPT_LEASE_BYTES},
	{"pin-max", required_argument, NULL, OPT_PIN_MAX},
	{"quota", required_argument, NULL, OPT_QUOTA},
	{"request-timeout", required_argument, NULL, OPT_REQUEST_TIMEOUT},
	{"threads", required_argument, NULL, OPT_THREADS},
	{"cpus", required_argument, NULL, OPT_CPUS},
	{"spin", required_argument, NULL, OPT_SPIN},
	{"reader", required_argument, NULL, OPT_READER},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"direct", required_argument, NULL, OPT_DIRECT},
	{"cached", required_argument, NULL, OPT_CACHED},
	{"group", required_argument, NULL, OPT_GROUP},
	{"requests", required_argument, NULL, OPT_REQUESTS},
	{"mlock", no_argument, NULL, OPT_MLOCK},
	{"takeover-wait", required_argument, NULL, OPT_TAKEOVER_WAIT},
	{"no-watch", no_argument, NULL, OPT_NO_WATCH},
	{"allow-user", required_argument, NULL, OPT_ALLOW_USER},
	{"allow-group", required_argument, NULL, OPT_ALLOW_GROUP},
	{"monitor-user", required_argument, NULL, OPT_MONITOR_USER},
	{"monitor-group", required_argument, NULL, OPT_MONITOR_GROUP},
	{"socket-mode", required_argument, NULL, OPT_SOCKET_MODE},
	{"auto", no_argument, NULL, OPT_AUTO},
	{"linger", required_argument, NULL, OPT_LINGER},
	{"ready-fd", required_argument, NULL, OPT_READY_FD},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

static const char *asked = "?"; /* the option that is being read, for the texts */

static int number(const char *text, uint32_t low, uint32_t high, uint32_t *ret)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < low || value > high) {
		fprintf(stderr, "stoupd: --%s '%s': a number from %u to %u is wanted\n", asked,
			text, low, high);
		return -EINVAL;
	}
	*ret = (uint32_t)value;
	return 0;
}

static int bytes(const char *text, uint64_t *ret)
{
	if (stoup_size_parse(text, ret) == 0 && *ret > 0)
		return 0;
	fprintf(stderr, "stoupd: --%s '%s': a size is wanted, such as 64M or 4G\n", asked, text);
	return -EINVAL;
}

static int duration(const char *text, uint64_t *ret)
{
	int64_t ns;

	if (stoup_duration_parse(text, &ns) < 0 || ns < 0) {
		fprintf(stderr, "stoupd: --%s '%s': a duration is wanted, such as 250ms or 30s\n",
			asked, text);
		return -EINVAL;
	}
	*ret = (uint64_t)ns;
	return 0;
}

/* One of a list of words; its place. */
static int word(const char *text, const char *const *words, uint32_t *ret)
{
	for (uint32_t i = 0; words[i]; i++)
		if (strcmp(text, words[i]) == 0) {
			*ret = i;
			return 0;
		}
	fprintf(stderr, "stoupd: --%s '%s': not one of", asked, text);
	for (uint32_t i = 0; words[i]; i++)
		fprintf(stderr, "%s %s", i ? "," : "", words[i]);
	fprintf(stderr, "\n");
	return -EINVAL;
}

static const char *const backing_words[] = {"posix", "memfd", "hugetlb", NULL};
static const char *const reader_words[] = {"auto", "io_uring", "pread", NULL};
static const char *const switch_words[] = {"auto", "on", "off", NULL};

/* Monitors and errors name a store to people who stand in other directories. Links stay links: they are followed anew at
 * each look. */
static const char *absolute(const char *path, uint32_t idx)
{
	static char *kept[STOUP_STORE_CAP]; /* as long as the program runs */
	char *cwd = path[0] == '/' || path[0] == 0 ? NULL : getcwd(NULL, 0);

	if (cwd && asprintf(&kept[idx], "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path) < 0)
		kept[idx] = NULL;
	free(cwd);
	return kept[idx] ? kept[idx] : path;
}

static int add_store(struct stoup_daemon_options *opt, const char *path)
{
	if (opt->store_cnt == STOUP_STORE_CAP) {
		fprintf(stderr, "stoupd: more than %u stores\n", STOUP_STORE_CAP);
		return -EINVAL;
	}
	opt->store_path[opt->store_cnt] = absolute(path, opt->store_cnt);
	opt->store_cnt++;
	return 0;
}

static int reading_option(struct stoup_daemon_options *opt, int which, const char *arg)
{
	uint32_t value = 0;
	int rc;

	switch (which) {
	case OPT_READER:
		rc = word(arg, reader_words, &value);
		opt->reader.kind = (enum stoup_reader_kind)value;
		return rc;
	case OPT_DIRECT:
		rc = word(arg, switch_words, &value);
		opt->reader.direct = (enum stoup_reader_switch)value;
		return rc;
	case OPT_CACHED:
		rc = word(arg, switch_words, &value);
		opt->reader.cached = (enum stoup_reader_switch)value;
		return rc;
	default:
		return number(arg, 1, STOUP_READER_DEPTH_CAP, &opt->reader.depth);
	}
}

/* Everybody who may connect can do so by reading and writing; the daemon's user always can. */
static int socket_mode(const char *text, uint32_t *ret)
{
	unsigned long value;
	char *end;

	value = strtoul(text, &end, 8);
	if (end == text || *end || text[0] == '-' || value > 0666 || (value & 0111) ||
		(value & 0600) != 0600) {
		fprintf(stderr,
			"stoupd: --socket-mode '%s': an octal mode from 0600 to 0666 is wanted\n",
			text);
		return -EINVAL;
	}
	*ret = (uint32_t)value;
	return 0;
}

static int access_option(struct stoup_daemon_options *opt, int which, const char *arg)
{
	static const char *const names[] = {
		"--allow-user", "--allow-group", "--monitor-user", "--monitor-group"};
	struct stoup_access_list *list = which == OPT_ALLOW_USER || which == OPT_ALLOW_GROUP
	                                         ? &opt->access.attach
	                                         : &opt->access.monitor;
	struct stoup_error err = {0};

	if (which == OPT_SOCKET_MODE)
		return socket_mode(arg, &opt->access.socket_mode);
	if (stoup_access_add(
		    list, arg, which == OPT_ALLOW_GROUP || which == OPT_MONITOR_GROUP, &err) == 0)
		return 0;
	fprintf(stderr, "stoupd: %s: %s\n", names[which - OPT_ALLOW_USER], err.text);
	return -EINVAL;
}

static int cpu_option(struct stoup_daemon_options *opt, int which, const char *arg)
{
	struct stoup_error err = {0};

	if (which == OPT_CPUS) {
		if (stoup_cpu_list_parse(arg, NULL, 0, opt->cpus, STOUP_DECODE_THREAD_CAP,
			    &opt->cpu_cnt, &err) == 0)
			return 0;
		fprintf(stderr, "stoupd: --cpus %s\n", err.text);
		return -EINVAL;
	}
	if (which == OPT_THREADS)
		return number(arg, 1, STOUP_DECODE_THREAD_CAP, &opt->decode_threads);
	if (duration(arg, &opt->spin_ns) < 0)
		return -EINVAL;
	if (opt->spin_ns <= SPIN_CAP_NS)
		return 0;
	fprintf(stderr, "stoupd: --spin '%s': at most 1s is wanted\n", arg);
	return -EINVAL;
}

/* SIZE, or N% of the pool. */
static int share(const char *text, uint32_t percent_max, uint64_t *ret_bytes, uint32_t *ret_percent)
{
	size_t len = strlen(text);
	unsigned long value;
	char *end;

	*ret_bytes = 0;
	*ret_percent = 0;
	if (len > 1 && text[len - 1] == '%') {
		value = strtoul(text, &end, 10);
		if (end == text + len - 1 && text[0] >= '0' && text[0] <= '9' &&
			value <= percent_max) {
			*ret_percent = (uint32_t)value;
			return 0;
		}
	} else if (stoup_size_parse(text, ret_bytes) == 0) {
		return 0;
	}
	fprintf(stderr,
		"stoupd: --%s '%s': a size such as 64M is wanted, or a part of the pool from 0%% to %u%%\n",
		asked, text, percent_max);
	return -EINVAL;
}

static int quota_option(struct stoup_daemon_options *opt, const char *arg)
{
	struct stoup_quota_option *quota = &opt->quotas[opt->quota_cnt];
	struct stoup_error err = {0};

	if (opt->quota_cnt == STOUP_QUOTA_CAP) {
		fprintf(stderr, "stoupd: --quota '%s': more than %u of them\n", arg,
			STOUP_QUOTA_CAP);
		return -EINVAL;
	}
	if (stoup_quota_parse(arg, quota, &err) < 0) {
		fprintf(stderr, "stoupd: --quota '%.80s': %s\n", arg, err.text);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < opt->quota_cnt; i++)
		if (opt->quotas[i].kind == quota->kind && opt->quotas[i].id == quota->id) {
			fprintf(stderr,
				"stoupd: --quota '%s': its %s has one already, '%s'; mend: leave out one of them\n",
				arg, quota->kind == STOUP_QUOTA_USER ? "user" : "group",
				opt->quotas[i].name);
			return -EINVAL;
		}
	if (share(quota->value, 100, &quota->bytes, &quota->percent) < 0)
		return -EINVAL;
	if (quota->bytes == 0 && quota->percent == 0) {
		fprintf(stderr,
			"stoupd: --quota '%s': more than 0 is wanted; who may not read at all is not admitted: --group, "
			"--allow-user\n",
			arg);
		return -EINVAL;
	}
	opt->quota_cnt++;
	return 0;
}

static int memory_option(struct stoup_daemon_options *opt, int which, const char *arg)
{
	switch (which) {
	case OPT_REQUESTS:
		return number(arg, 1, STOUP_SLOT_CNT, &opt->request_cap);
	case OPT_MLOCK:
		opt->mlock = 1;
		return 0;
	case OPT_TAKEOVER_WAIT:
		return duration(arg, &opt->takeover_ns);
	case OPT_NO_WATCH:
		opt->watch = 0;
		return 0;
	case OPT_SIZE:
		return bytes(arg, &opt->pool_len);
	case OPT_BACKING:
		return word(arg, backing_words, &opt->backing);
	case OPT_LEASE_BYTES:
		return bytes(arg, &opt->lease_bytes_cap);
	case OPT_QUOTA:
		return quota_option(opt, arg);
	case OPT_PIN_MAX:
		return share(arg, STOUP_PIN_PERCENT_MAX, &opt->pin_bytes_cap, &opt->pin_percent);
	default:
		return access_option(opt, which, arg);
	}
}

static int set_option(struct stoup_daemon_options *opt, int which, const char *arg)
{
	uint32_t value;

	switch (which) {
	case OPT_STORE:
		return add_store(opt, arg);
	case OPT_POOL:
		opt->pool = arg;
		return 0;
	case OPT_CONSUMERS:
		return number(arg, 1, STOUP_CONSUMER_CAP, &opt->consumer_cap);
	case OPT_CELLS:
		return number(arg, 1, STOUP_CELL_CAP, &opt->cell_cap);
	case OPT_REQUEST_TIMEOUT:
		if (duration(arg, &opt->request_timeout_ns) < 0)
			return -EINVAL;
		if (opt->request_timeout_ns > 0)
			return 0;
		fprintf(stderr, "stoupd: --request-timeout '%s': more than 0 is wanted\n", arg);
		return -EINVAL;
	case OPT_THREADS:
	case OPT_CPUS:
	case OPT_SPIN:
		return cpu_option(opt, which, arg);
	case OPT_GROUP:
		opt->group = arg;
		return 0;
	case OPT_AUTO:
		opt->automatic = 1;
		return 0;
	case OPT_LINGER:
		return duration(arg, &opt->linger_ns);
	case OPT_READY_FD:
		if (number(arg, 0, 1u << 20, &value) < 0)
			return -EINVAL;
		opt->ready_fd = (int)value;
		if (fcntl(opt->ready_fd, F_GETFL) >= 0)
			return 0;
		fprintf(stderr, "stoupd: --ready-fd %u: no such descriptor is open\n", value);
		return -EINVAL;
	case OPT_QUIET:
		opt->quiet = 1;
		return 0;
	case OPT_LOG_LEVEL:
		if (stoup_log_parse(arg, &opt->log_level) == 0)
			return 0;
		fprintf(stderr,
			"stoupd: --log-level '%s': not one of error, warning, info, debug\n", arg);
		return -EINVAL;
	case OPT_READER:
	case OPT_DIRECT:
	case OPT_CACHED:
	case OPT_DEPTH:
		return reading_option(opt, which, arg);
	default:
		return memory_option(opt, which, arg);
	}
}

static int parse(int argc, char **argv, struct stoup_daemon_options *opt)
{
	struct stoup_error err;
	int which, idx = 0;

	while ((which = getopt_long(argc, argv, "", long_options, &idx)) != -1) {
		if (which == '?')
			return -EINVAL;
		asked = long_options[idx].name;
		if (which == OPT_HELP || which == OPT_VERSION) {
			fputs(which == OPT_HELP ? usage_text : version_text, stdout);
			return 1;
		}
		if (set_option(opt, which, optarg) < 0)
			return -EINVAL;
	}
	if (optind < argc) {
		fprintf(stderr, "stoupd: '%s': stores are named by --store\n", argv[optind]);
		return -EINVAL;
	}
	if (opt->store_cnt == 0 || !opt->pool) {
		fprintf(stderr, "stoupd: --store and --pool are needed\n");
		return -EINVAL;
	}
	if (stoup_pool_name_valid(opt->pool, &err) < 0) {
		fprintf(stderr, "stoupd: %s\n", err.text);
		return -EINVAL;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct stoup_daemon_options opt = {.consumer_cap = CONSUMERS_DEFAULT,
		.cell_cap = STOUP_CELL_CAP,
		.request_timeout_ns = REQUEST_TIMEOUT_NS,
		.linger_ns = LINGER_NS,
		.request_cap = STOUP_SLOT_CNT,
		.pin_percent = STOUP_PIN_PERCENT,
		.takeover_ns = TAKEOVER_NS,
		.watch = 1,
		.ready_fd = -1};
	struct stoup_error err = {0};
	struct stoup_log log;
	int rc;

	stoup_process_prepare();
	rc = parse(argc, argv, &opt);
	if (rc < 0) {
		fprintf(stderr, "try: stoupd --help\n");
		return STOUP_EXIT_USAGE;
	}
	if (rc > 0)
		return STOUP_EXIT_OK;
	if (stoup_daemon_run(&opt, &err) < 0) {
		stoup_log_init(&log, opt.pool, STOUP_LOG_ERROR);
		stoup_log_line(&log, STOUP_LOG_ERROR, stoup_now_ns(), err.text);
		return STOUP_EXIT_FAIL;
	}
	return STOUP_EXIT_OK;
}
