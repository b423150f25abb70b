/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - main() of a fuzz target built without libFuzzer: feeds it every file of a corpus.
 *
 *      corpus/NAME/<file> ... --bytes--> LLVMFuzzerTestOneInput
 *
 * Each input is handed over in a heap buffer of exactly its length, so that the address sanitizer
 * sees a read of one byte too many. Beside the file itself, every prefix of a small one is tried
 * and every single byte of it flipped: the cheap mutations that find most missing length checks. A slow
 * target does without: usage: fuzz_NAME CORPUS [--as-is].
 *
 * Invariant: a corpus that is empty or absent is a failure, never a pass.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REPLAY_FILE_CAP   (64u << 20) /* bytes: a corpus holds small files */
#define REPLAY_MUTATE_CAP 4096u       /* bytes: up to here all prefixes and byte flips are tried */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Run the target on a copy of exactly `len` bytes. Returns 0, or -ENOMEM. */
static int replay_exact(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
	return 0;
}

static int replay_mutations(uint8_t *bytes, size_t len)
{
	int rc = 0;

	for (size_t cut = 0; cut < len && !rc; cut++)
		rc = replay_exact(bytes, cut);
	for (size_t at = 0; at < len && !rc; at++) {
		bytes[at] ^= 0xff;
		rc = replay_exact(bytes, len);
		bytes[at] ^= 0xff;
	}
	return rc;
}

static int replay_file(const char *path, int as_is)
{
	int rc = -EIO;
	uint8_t *bytes = NULL;
	struct stat st;
	FILE *file = fopen(path, "rb");

	if (!file)
		return -errno;
	if (fstat(fileno(file), &st) || st.st_size > (off_t)REPLAY_FILE_CAP)
		goto out_close;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes || fread(bytes, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
		goto out_free;
	rc = replay_exact(bytes, (size_t)st.st_size);
	if (!rc && !as_is && (size_t)st.st_size <= REPLAY_MUTATE_CAP)
		rc = replay_mutations(bytes, (size_t)st.st_size);
out_free:
	free(bytes);
out_close:
	fclose(file);
	return rc;
}

int main(int argc, char **argv)
{
	unsigned file_cnt = 0;
	char path[4096];
	struct dirent *entry;
	int as_is = argc == 3 && strcmp(argv[2], "--as-is") == 0;
	DIR *dir = argc == 2 || as_is ? opendir(argv[1]) : NULL;

	if (!dir) {
		fprintf(stderr, "%s: cannot open the corpus directory %s\n", argv[0],
			argc > 1 ? argv[1] : "(none given)");
		return 1;
	}
	while ((entry = readdir(dir))) {
		int len = snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		int rc;

		if (entry->d_name[0] == '.' || len < 0 || (size_t)len >= sizeof(path))
			continue;
		rc = replay_file(path, as_is);
		if (rc) {
			fprintf(stderr, "%s: %s\n", path, strerror(-rc));
			closedir(dir);
			return 1;
		}
		file_cnt++;
	}
	closedir(dir);
	if (!file_cnt) {
		fprintf(stderr, "%s: the corpus %s is empty\n", argv[0], argv[1]);
		return 1;
	}
	printf("%u inputs replayed\n", file_cnt);
	return 0;
}
