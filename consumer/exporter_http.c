/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_http.c - the exporter's HTTP, by libmicrohttpd.
 *
 *      accept --> headers read --> GET, HEAD: a look, the whole answer in memory --> sent, closed
 *                    |  (a body is refused)
 *                    +--> other methods 405, other paths 404, other hosts 403
 *
 * One thread reads, looks and sends, by epoll: who sends or reads slowly has a buffer and waits alone. A connection
 * carries one request and ends LIFE_S seconds after it was accepted, however busy it is: shut down by the
 * main thread, which waits for a signal meanwhile. Further connections than CONNECTION_CAP wait in the kernel; where few
 * files may be open, further ones than leave a look its own.
 *
 * Pages of other sites must not read it through a name that they let point here: on a loopback address only requests
 * for localhost or a numeric address are answered.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "consumer/exporter.h"
#include "consumer/exporter_accept.h"
#include "shm/clock.h"

#define CONNECTION_CAP 256u
#define FILES_OWN      32u    /* descriptors of the server itself and of a look */
#define MEMORY_LEN     16384u /* of a connection: request line and headers */
#define LIFE_S         20u    /* twice the default time-out of a scrape */
#define BACKLOG        64

struct http {
	struct stoup_exporter *exporter;
	int loopback;
	pthread_mutex_t lock;
	struct {
		int fd; /* -1: free */
		uint64_t accepted_ns;
	} connections[CONNECTION_CAP];
};

/* ---- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status,
	const char *type, char *text, size_t len, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(len, text, mode);
	enum MHD_Result rc;

	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
		"img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return rc;
}

static enum MHD_Result words(
	struct MHD_Connection *connection, unsigned int status, const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8", (char *)(uintptr_t)text,
		strlen(text), MHD_RESPMEM_PERSISTENT);
}

/* What `print` writes of a look of now. */
static enum MHD_Result looked(struct http *http, struct MHD_Connection *connection,
	const char *type, void (*print)(const struct stoup_exporter *, FILE *, const void *),
	const void *arg)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int failed;

	if (!out)
		return words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	stoup_exporter_look(http->exporter);
	if (http->exporter->find_rc < 0 && http->exporter->pool_cnt == 0) {
		fclose(out);
		free(text);
		return words(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"which pools there are could not be looked for: no memory or descriptors left\n");
	}
	print(http->exporter, out, arg);
	failed = ferror(out);
	if (fclose(out) != 0 || failed) {
		free(text);
		return words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	}
	return answer(connection, MHD_HTTP_OK, type, text, len, MHD_RESPMEM_MUST_FREE);
}

static void print_metrics(const struct stoup_exporter *exporter, FILE *out, const void *arg)
{
	stoup_exporter_metrics(exporter, out, arg != NULL);
}

static void print_json(const struct stoup_exporter *exporter, FILE *out, const void *arg)
{
	stoup_exporter_json(exporter, out, arg);
}

static enum MHD_Result metrics(struct http *http, struct MHD_Connection *connection)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	int open = stoup_accept_open(accept);

	return looked(http, connection,
		open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		     : "text/plain; version=0.0.4; charset=utf-8",
		print_metrics, open ? "" : NULL);
}

static enum MHD_Result page(struct MHD_Connection *connection)
{
	size_t len;
	const char *text = stoup_exporter_page(&len);

	return answer(connection, MHD_HTTP_OK, "text/html; charset=utf-8", (char *)(uintptr_t)text,
		len, MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result path_answer(
	struct http *http, struct MHD_Connection *connection, const char *path)
{
	if (strcmp(path, "/") == 0)
		return page(connection);
	if (strcmp(path, "/metrics") == 0)
		return metrics(http, connection);
	if (strcmp(path, "/stat.json") == 0)
		return looked(http, connection, "application/json", print_json,
			MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "pool"));
	if (strcmp(path, "/healthz") == 0)
		return words(connection, MHD_HTTP_OK, "ok\n");
	return words(connection, MHD_HTTP_NOT_FOUND,
		"not found; there are /, /metrics, /stat.json and /healthz\n");
}

/* ---- requests --------------------------------------------------------------------------------- */

struct count {
	const char *name;
	uint32_t cnt;
};

static enum MHD_Result header_count(
	void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct count *count = arg;

	(void)kind;
	(void)value;
	count->cnt += strcasecmp(name, count->name) == 0;
	return MHD_YES;
}

/* Which of two is meant is not to be guessed: others may guess otherwise. */
static int is_twice(struct MHD_Connection *connection, const char *name)
{
	struct count count = {name, 0};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, header_count, &count);
	return count.cnt > 1;
}

static int has_body(struct MHD_Connection *connection)
{
	const char *len = MHD_lookup_connection_value(
		connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (len && strcmp(len, "0") != 0) ||
	       MHD_lookup_connection_value(
		       connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

/* Called with the headers alone, and again when all of the request is there. */
static enum MHD_Result request(void *arg, struct MHD_Connection *connection, const char *path,
	const char *method, const char *version, const char *upload, size_t *upload_len,
	void **seen)
{
	static int headers;
	struct http *http = arg;

	(void)version;
	(void)upload;
	if (*seen) {
		*upload_len = 0;
		return path_answer(http, connection, path);
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone\n");
	if (is_twice(connection, MHD_HTTP_HEADER_HOST) ||
		is_twice(connection, MHD_HTTP_HEADER_CONTENT_LENGTH))
		return words(connection, MHD_HTTP_BAD_REQUEST,
			"a header stands there twice, of which one is wanted\n");
	if (has_body(connection))
		return words(connection, MHD_HTTP_BAD_REQUEST, "no body is wanted\n");
	if (http->loopback && !stoup_host_local(MHD_lookup_connection_value(
				      connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST)))
		return words(connection, MHD_HTTP_FORBIDDEN,
			"only for localhost and numeric addresses: set Host so\n");
	*seen = &headers;
	return MHD_YES;
}

/* ---- connections ------------------------------------------------------------------------------ */

static void connection_note(void *arg, struct MHD_Connection *connection, void **ret,
	enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	int from = code == MHD_CONNECTION_NOTIFY_STARTED ? -1 : info ? info->connect_fd : -1;
	struct http *http = arg;

	(void)ret;
	if (!info)
		return;
	pthread_mutex_lock(&http->lock);
	for (uint32_t i = 0; i < CONNECTION_CAP; i++) {
		if (http->connections[i].fd != from)
			continue;
		http->connections[i].fd = from < 0 ? info->connect_fd : -1;
		http->connections[i].accepted_ns = stoup_clock_ns();
		break;
	}
	pthread_mutex_unlock(&http->lock);
}

/* A descriptor in the table is open: it is closed after its end was noted. */
static void connections_end(struct http *http)
{
	uint64_t now = stoup_clock_ns();

	pthread_mutex_lock(&http->lock);
	for (uint32_t i = 0; i < CONNECTION_CAP; i++)
		if (http->connections[i].fd >= 0 &&
			now - http->connections[i].accepted_ns > LIFE_S * UINT64_C(1000000000))
			shutdown(http->connections[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&http->lock);
}

/* ---- the socket ------------------------------------------------------------------------------- */

static int socket_open(const struct stoup_exporter_listen *listen_at, struct stoup_error *err)
{
	const int on = 1;
	int fd =
		socket(listen_at->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return stoup_error_set(
			err, -errno, "--listen %s: %s", listen_at->shown, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (listen_at->address.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&listen_at->address, listen_at->address_len) == 0 &&
		listen(fd, BACKLOG) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return stoup_error_set(err, rc, "--listen %s: %s%s", listen_at->shown, strerror(-rc),
		rc == -EADDRINUSE
			? "; another exporter? `ss -ltnp` tells who; or choose another port"
		: rc == -EACCES        ? "; ports below 1024 are root's: choose another one"
		: rc == -EADDRNOTAVAIL ? "; no interface of this machine has that address"
				       : "");
}

/* What it listens at, with the port that was chosen. */
static void socket_tell(int fd)
{
	struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
	const struct sockaddr_in6 *v6 = (const void *)&at;
	const struct sockaddr_in *v4 = (const void *)&at;
	char host[INET6_ADDRSTRLEN] = "?";
	socklen_t len = sizeof(at);

	getsockname(fd, (struct sockaddr *)&at, &len);
	if (at.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		printf("listening on http://[%s]:%u\n", host, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		printf("listening on http://%s:%u\n", host, ntohs(v4->sin_port));
	}
	fflush(stdout);
}

/* ---- serving ---------------------------------------------------------------------------------- */

/* How many connections leave a look the descriptors that it needs. 0: none. */
static uint32_t connection_cap(rlim_t *ret_files)
{
	const rlim_t wanted = CONNECTION_CAP + FILES_OWN;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return CONNECTION_CAP;
	if (files.rlim_cur < wanted && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
		setrlimit(RLIMIT_NOFILE, &files);
		getrlimit(RLIMIT_NOFILE, &files);
	}
	*ret_files = files.rlim_cur;
	return files.rlim_cur >= wanted      ? CONNECTION_CAP
	       : files.rlim_cur <= FILES_OWN ? 0
	                                     : (uint32_t)(files.rlim_cur - FILES_OWN);
}

static struct MHD_Daemon *start(struct http *http, int fd, uint32_t cap)
{
	return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, request, http,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, cap,
		MHD_OPTION_CONNECTION_TIMEOUT, LIFE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)MEMORY_LEN, MHD_OPTION_NOTIFY_CONNECTION, connection_note, http,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

int stoup_exporter_serve(struct stoup_exporter *exporter,
	const struct stoup_exporter_listen *listen_at, struct stoup_error *err)
{
	const struct timespec second = {.tv_sec = 1};
	struct http http = {.exporter = exporter, .loopback = listen_at->loopback};
	struct MHD_Daemon *server;
	rlim_t files = 0;
	uint32_t cap = connection_cap(&files);
	sigset_t ends, before;
	int fd, rc = 0;

	if (cap == 0)
		return stoup_error_set(err, -EMFILE,
			"at most %lu files may be open, and it needs %u: raise the limit, `ulimit -n %u`",
			(unsigned long)files, FILES_OWN + 1, CONNECTION_CAP + FILES_OWN);

	for (uint32_t i = 0; i < CONNECTION_CAP; i++)
		http.connections[i].fd = -1;
	fd = socket_open(listen_at, err);
	if (fd < 0)
		return fd;
	pthread_mutex_init(&http.lock, NULL);
	/* Before the thread is made, which takes them over: the main thread alone gets them. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ends, &before);
	server = start(&http, fd, cap);
	if (!server) {
		close(fd);
		rc = stoup_error_set(err, -ENOMEM, "the HTTP server could not be started: %s",
			"no memory, threads or descriptors left; see `ulimit -a`");
		goto out_lock;
	}
	socket_tell(fd);
	while (sigtimedwait(&ends, NULL, &second) < 0)
		connections_end(&http);
	MHD_stop_daemon(server); /* closes the socket */
out_lock:
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_mutex_destroy(&http.lock);
	return rc;
}
