/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_files.c - see ingest_files.h. */
#include "producer/ingest_files.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "producer/intake.h"

#define LEFT_OUT_CAP 160 /* bytes of names in the note */

/* What a file is known by. */
struct identity {
	dev_t dev;
	ino_t ino;
	size_t idx;
};

struct expand {
	struct stoup_files files;
	struct identity *identities;
	size_t identity_cnt;
	const struct stoup_importer *importer; /* of --format; NULL: any */
	const struct stoup_files_options *options;
	const struct stoup_sink *sink;
};

/* ---- names ------------------------------------------------------------------------------------- */

static int ends_with(const char *name, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);

	return len > suffix_len && strncasecmp(name + len - suffix_len, suffix, suffix_len) == 0;
}

/* Length of the name without what it is packed with. */
static size_t unpacked_len(const char *name)
{
	static const char *const packings[] = {".zst", ".gz", ".xz", ".lz4", ".zip"};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
		if (ends_with(name, len, packings[i]))
			return len - strlen(packings[i]);
	return len;
}

static int is_of(const struct stoup_importer *importer, const char *name)
{
	size_t len = unpacked_len(name);

	for (size_t i = 0; importer->suffixes && importer->suffixes[i]; i++)
		if (ends_with(name, len, importer->suffixes[i]))
			return 1;
	/* A zip archive says what is in it by its members. */
	return ends_with(name, strlen(name), ".zip") && importer->takes_zip;
}

static int is_data(const struct expand *expand, const char *name)
{
	if (expand->importer)
		return is_of(expand->importer, name);
	for (size_t i = 0; stoup_importers[i]; i++)
		if (is_of(stoup_importers[i], name))
			return 1;
	return 0;
}

/* Is a file asked for? By its name, or by its path below the directory. */
static int is_asked(const struct expand *expand, const char *path, const char *name)
{
	const struct stoup_files_options *options = expand->options;
	const char *in = options->include, *out = options->exclude;

	if (out && (stoup_intake_match(out, name) || stoup_intake_match(out, path)))
		return 0;
	return !in || stoup_intake_match(in, name) || stoup_intake_match(in, path);
}

/* ---- what is left out --------------------------------------------------------------------------- */

struct left_out {
	size_t root_len; /* of the directory's path */
	size_t unasked_cnt;
	size_t cnt, shown, len;
	char names[LEFT_OUT_CAP];
};

static void leave_out(struct left_out *left, const char *name)
{
	size_t len = strlen(name);

	left->cnt++;
	if (left->len + len + 3 >= sizeof(left->names))
		return;
	if (left->len > 0)
		left->names[left->len++] = ' ';
	memcpy(left->names + left->len, name, len + 1);
	left->len += len;
	left->shown++;
}

static void left_out_tell(
	const struct expand *expand, const char *path, const struct left_out *left)
{
	if (left->cnt > 0)
		stoup_sink_note(expand->sink,
			"%s: %zu file%s left out, whose names are of no format that is known: %s%s",
			path, left->cnt, left->cnt == 1 ? " was" : "s were", left->names,
			left->shown == left->cnt ? "" : " ...");
}

/* ---- the list ---------------------------------------------------------------------------------- */

static int file_room(struct expand *expand, struct stoup_error *err)
{
	struct stoup_files *files = &expand->files;
	size_t cap = files->cap ? files->cap * 2 : 64;
	struct identity *identities;
	struct stoup_file *grown;

	if (files->cnt < files->cap)
		return 0;
	grown = realloc(files->at, cap * sizeof(*grown));
	if (grown)
		files->at = grown;
	identities = realloc(expand->identities, cap * sizeof(*identities));
	if (identities)
		expand->identities = identities;
	if (!grown || !identities)
		return stoup_error_set(err, -ENOMEM, "no memory for a list of files");
	files->cap = cap;
	return 0;
}

/* A file, or one of those in a zip. */
static int file_add(struct expand *expand, const char *path, const char *member, int64_t member_idx,
	struct stoup_error *err)
{
	struct stoup_files *files = &expand->files;
	struct stoup_file file = {.member = member_idx};
	int rc = file_room(expand, err);

	if (rc < 0)
		return rc;
	file.path = strdup(path);
	if (asprintf(&file.name, "%s%s%s", path, member ? "/" : "", member ? member : "") < 0)
		file.name = NULL;
	if (!file.path || !file.name) {
		free(file.path);
		free(file.name);
		return stoup_error_set(err, -ENOMEM, "no memory for a list of files");
	}
	files->at[files->cnt++] = file;
	return 0;
}

/* The files of a zip that has several, of which one at least is data. 1; 0: it is a file like others. */
static int zip_add(struct expand *expand, const char *path, struct stoup_error *err)
{
	struct left_out left = {0};
	uint32_t cnt = 0, data_cnt = 0, i;
	char **names = NULL;
	int rc = stoup_input_zip_members(path, &names, &cnt, err);

	for (i = 0; i < cnt; i++)
		data_cnt += (uint32_t)is_data(expand, names[i]);
	for (i = 0; i < cnt && rc == 0 && cnt > 1 && data_cnt > 0; i++) {
		if (is_data(expand, names[i]))
			rc = file_add(expand, path, names[i], i, err);
		else
			leave_out(&left, names[i]);
	}
	for (i = 0; i < cnt; i++)
		free(names[i]);
	free(names);
	left_out_tell(expand, path, &left);
	return rc < 0 ? rc : cnt > 1 && data_cnt > 0;
}

static int path_add(
	struct expand *expand, const char *path, const struct stat *st, struct stoup_error *err)
{
	int rc = file_room(expand, err);

	if (rc == 0 && st && S_ISREG(st->st_mode)) {
		expand->identities[expand->identity_cnt++] =
			(struct identity){st->st_dev, st->st_ino, expand->files.cnt};
		expand->files.file_len += (uint64_t)st->st_size;
		if (ends_with(path, strlen(path), ".zip"))
			rc = zip_add(expand, path, err);
	}
	return rc == 0 ? file_add(expand, path, NULL, -1, err) : rc < 0 ? rc : 0;
}

/* ---- directories ------------------------------------------------------------------------------- */

static int entry_cmp(const FTSENT **a, const FTSENT **b)
{
	return strverscmp((*a)->fts_name, (*b)->fts_name);
}

static const char *below(const char *path)
{
	return path + strspn(path, "/");
}

static int found_add(struct expand *expand, FTSENT *entry, struct stoup_error *err)
{
	size_t begin = expand->files.cnt;
	int rc = path_add(expand, entry->fts_path, entry->fts_statp, err);

	for (size_t i = begin; i < expand->files.cnt; i++)
		expand->files.at[i].found = 1;
	return rc;
}

/* One entry of a directory tree. */
static int entry_add(struct expand *expand, FTS *fts, FTSENT *entry, struct left_out *left,
	struct stoup_error *err)
{
	if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
		fts_set(fts, entry, FTS_SKIP);
		return 0;
	}
	switch (entry->fts_info) {
	case FTS_F:
		if (!is_asked(expand, below(entry->fts_path + left->root_len), entry->fts_name)) {
			left->unasked_cnt++;
			return 0;
		}
		if (is_data(expand, entry->fts_name))
			return found_add(expand, entry, err);
		leave_out(left, entry->fts_name);
		return 0;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return stoup_error_set(err, -entry->fts_errno, "%s: %s", entry->fts_path,
			strerror(entry->fts_errno));
	case FTS_DC:
		return stoup_error_set(
			err, -ELOOP, "%s: a directory that contains itself", entry->fts_path);
	case FTS_SLNONE:
		return stoup_error_set(err, -ENOENT, "%s: a link to nothing", entry->fts_path);
	default:
		return 0;
	}
}

static int directory_add(struct expand *expand, char *path, struct stoup_error *err)
{
	char *const roots[] = {path, NULL};
	struct left_out left = {.root_len = strlen(path)};
	size_t before = expand->files.cnt;
	FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, entry_cmp);
	FTSENT *entry;
	int rc = 0;

	if (!fts)
		return stoup_error_set(err, -errno, "%s: %s", path, strerror(errno));
	while (rc == 0 && (errno = 0, entry = fts_read(fts)))
		rc = entry_add(expand, fts, entry, &left, err);
	if (rc == 0 && errno != 0)
		rc = stoup_error_set(err, -errno, "%s: %s", path, strerror(errno));
	fts_close(fts);
	if (rc < 0)
		return rc;
	if (expand->files.cnt == before && left.unasked_cnt > 0)
		return stoup_error_set(err, -ENOENT,
			"%s: nothing is left of it: %zu file%s not asked for (--include, --exclude)%s%s",
			path, left.unasked_cnt, left.unasked_cnt == 1 ? " is" : "s are",
			left.cnt ? ", and the names of others are of no format that is known: "
				 : "",
			left.names);
	if (expand->files.cnt == before)
		return stoup_error_set(err, -ENOENT,
			"%s: no file below it has the name of a format that is known%s%s", path,
			left.cnt ? ", such as .dbn.zst or .csv.gz; name files one by one: " : "",
			left.names);
	left_out_tell(expand, path, &left);
	return 0;
}

/* ---- the call ---------------------------------------------------------------------------------- */

static int arg_add(struct expand *expand, const char *arg, struct stoup_error *err)
{
	struct stat st;
	char *path;
	int rc;

	/* What is not there is told by opening it. */
	if (strcmp(arg, "-") == 0 || stat(arg, &st) < 0)
		return path_add(expand, arg, NULL, err);
	if (!S_ISDIR(st.st_mode))
		return path_add(expand, arg, &st, err);
	path = strdup(arg);
	if (!path)
		return stoup_error_set(err, -ENOMEM, "no memory for a name");
	rc = directory_add(expand, path, err);
	free(path);
	return rc;
}

static int identity_cmp(const void *a, const void *b)
{
	const struct identity *ia = a, *ib = b;

	if (ia->dev != ib->dev)
		return ia->dev < ib->dev ? -1 : 1;
	if (ia->ino != ib->ino)
		return ia->ino < ib->ino ? -1 : 1;
	return ia->idx < ib->idx ? -1 : ia->idx > ib->idx;
}

static int twice_check(struct expand *expand, struct stoup_error *err)
{
	struct identity *id = expand->identities;

	if (expand->identity_cnt == 0)
		return 0;
	qsort(id, expand->identity_cnt, sizeof(*id), identity_cmp);
	for (size_t i = 1; i < expand->identity_cnt; i++)
		if (id[i].dev == id[i - 1].dev && id[i].ino == id[i - 1].ino)
			return stoup_error_set(err, -EINVAL,
				"%.110s and %.110s are one file: its records would be there twice",
				expand->files.at[id[i - 1].idx].path,
				expand->files.at[id[i].idx].path);
	return 0;
}

int stoup_files_expand(const char *const *args, size_t arg_cnt,
	const struct stoup_files_options *options, const struct stoup_sink *sink,
	struct stoup_files *ret, struct stoup_error *err)
{
	struct expand expand = {
		.importer = options->format ? stoup_importer_named(options->format) : NULL,
		.options = options,
		.sink = sink};
	int rc = 0;

	for (size_t i = 0; i < arg_cnt && rc == 0; i++)
		rc = arg_add(&expand, args[i], err);
	if (rc == 0)
		rc = twice_check(&expand, err);
	free(expand.identities);
	if (rc < 0) {
		stoup_files_fini(&expand.files);
		return rc;
	}
	*ret = expand.files;
	return 0;
}

void stoup_files_fini(struct stoup_files *files)
{
	for (size_t i = 0; i < files->cnt; i++) {
		free(files->at[i].path);
		free(files->at[i].name);
	}
	free(files->at);
	*files = (struct stoup_files){0};
}
