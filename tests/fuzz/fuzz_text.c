/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_text.c - views of texts between pages that may not be read, against plain loops; and texts of specs of bars.
 *
 *      bytes[0]   length of the first text
 *      bytes[1]   a byte to split by
 *      the rest   the first text, which begins a page, and the second, which ends one
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include "consumer/stoup_bars.h"
#include "shm/stoup_text.h"
#include "tests/fuzz/fuzz.h"

#define PAGE     4096u
#define TEXT_CAP 1024u

static char *page_of(unsigned idx)
{
	static char *pages[2];

	if (!pages[idx]) {
		char *at = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		MUST(at != MAP_FAILED);
		MUST(mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
		pages[idx] = at + PAGE;
	}
	return pages[idx];
}

static int same(struct stoup_text_view a, struct stoup_text_view b)
{
	if (a.len != b.len)
		return 0;
	for (size_t i = 0; i < a.len; i++)
		if (a.ptr[i] != b.ptr[i])
			return 0;
	return 1;
}

static void try_compare(struct stoup_text_view a, struct stoup_text_view b)
{
	int order = stoup_text_compare(a, b), starts = 1, ends = 1;
	int64_t at = stoup_text_find(a, b);

	MUST(stoup_text_equal(a, b) == same(a, b) && (order == 0) == same(a, b));
	MUST((order < 0) == (stoup_text_compare(b, a) > 0));
	MUST(!same(a, b) || stoup_text_hash(a) == stoup_text_hash(b));
	MUST(!same(a, b) || stoup_text_equal_case(a, b));
	for (size_t i = 0; i < b.len; i++) {
		starts &= i < a.len && a.ptr[i] == b.ptr[i];
		ends &= b.len <= a.len && a.ptr[a.len - b.len + i] == b.ptr[i];
	}
	MUST(stoup_text_starts(a, b) == starts && stoup_text_ends(a, b) == ends);
	MUST(at >= -1 && at <= (int64_t)a.len);
	MUST(at < 0 ? !starts && !ends
		    : same(stoup_text_slice(a, (size_t)at, (size_t)at + b.len), b));
}

static void try_parts(struct stoup_text_view text, char byte)
{
	struct stoup_text_view rest = text, part, trimmed = stoup_text_trim(text);
	size_t separators = 0, parts = 0, len = 0;
	char room[TEXT_CAP];

	for (size_t i = 0; i < text.len; i++)
		separators += text.ptr[i] == byte;
	while (stoup_text_split(&rest, byte, &part)) {
		MUST(part.ptr == text.ptr + len + parts);
		MUST(stoup_text_find_byte(part, byte) == -1);
		len += part.len;
		parts++;
	}
	MUST(parts == separators + 1 && len + separators == text.len);
	MUST(same(stoup_text_trim(trimmed), trimmed));
	MUST(trimmed.len == 0 || !strchr(" \t\n\v\f\r", trimmed.ptr[0]) || trimmed.ptr[0] == 0);
	memset(room, 'x', sizeof(room));
	len = (unsigned char)byte;
	MUST(stoup_text_copy(text, room, len) == text.len);
	MUST(room[len] == 'x');
	if (len > 0)
		MUST(room[text.len < len ? text.len : len - 1] == 0);
}

static void try_values(struct stoup_text_view text)
{
	int64_t value = 7, exact = 7, ns = 7;
	uint64_t u_value = 7;
	double number = 7;
	int exp10 = 7, rc = stoup_text_i64(text, &value), u_rc = stoup_text_u64(text, &u_value);
	int any_rc = stoup_text_decimal_any(text, &exact, &exp10);
	int decimal_rc = stoup_text_decimal(text, 0, &ns), double_rc;

	MUST(rc == 0 || (value == 7 && (rc == -EINVAL || rc == -ERANGE)));
	MUST(u_rc == 0 || (u_value == 7 && (u_rc == -EINVAL || u_rc == -ERANGE)));
	MUST((rc == -EINVAL) == (u_rc == -EINVAL));
	MUST(rc != 0 || u_rc != 0 || (uint64_t)value == u_value);
	/* An integer is a decimal of the same value. */
	MUST(rc != 0 || (decimal_rc == 0 && ns == value && any_rc == 0));
	MUST((any_rc == -EINVAL) == (decimal_rc == -EINVAL));
	MUST(any_rc == 0 || (exact == 7 && exp10 == 7));
	double_rc = stoup_text_double(text, &number);
	MUST((double_rc == -EINVAL) == (any_rc == -EINVAL));
	MUST(double_rc == 0 ? isfinite(number) : number == 7);
	if (any_rc == 0) {
		MUST(exact == 0 ? exp10 == 0 : exact % 10 != 0);
		MUST(exp10 < 0 ? decimal_rc == -EDOM : decimal_rc != -EDOM);
		if (exp10 >= -18 && exp10 <= 18)
			MUST(stoup_text_decimal(text, exp10, &ns) == 0 && ns == exact);
	}
	ns = 7;
	rc = stoup_text_time(text, &ns);
	MUST(rc == 0 || (ns == 7 && (rc == -EINVAL || rc == -ERANGE || rc == -EDOM)));
}

static void try_spec(struct stoup_text_view text)
{
	struct stoup_bars_spec spec = {.struct_len = sizeof(spec), .offset_ns = 5};
	struct stoup_error err = {0};
	char copy[TEXT_CAP];

	stoup_text_copy(text, copy, sizeof(copy));
	if (stoup_bars_spec_parse(copy, &spec, &err) < 0) {
		MUST(err.code == -EINVAL && err.text[0] && spec.kind == 0 && spec.step == 0);
		return;
	}
	MUST(spec.kind >= STOUP_BARS_TIME && spec.kind <= STOUP_BARS_NOTIONAL && spec.step > 0);
	MUST(spec.step_exp10 <= 0 && spec.step_exp10 >= -18 && spec.offset_ns == 5);
	MUST(isdigit((unsigned char)copy[0]) || copy[0] == '.');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len < TEXT_CAP ? len : TEXT_CAP};
	struct stoup_text_view a, b;
	size_t first_len = fuzz_u8(&in);
	char byte = (char)fuzz_u8(&in);
	const uint8_t *at;

	a.len = fuzz_take(&in, first_len, &at);
	a.ptr = memcpy(page_of(0), at, a.len);
	b.len = in.left;
	b.ptr = memcpy(page_of(1) + PAGE - b.len, in.at, b.len);
	try_compare(a, b);
	try_compare(b, a);
	try_parts(a, byte);
	try_parts(b, byte);
	try_values(a);
	try_values(b);
	try_spec(a);
	MUST(stoup_text_padded(b.ptr, b.len).len == strnlen(b.ptr, b.len));
	return 0;
}
