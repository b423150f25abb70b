/* SPDX-License-Identifier: Apache-2.0 */
/* dbn.c - DBN's prelude, its record headers, and which schema a record has. */
#include "producer/dbn.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS        UINT64_C(86400000000000)
#define META_LEN_MIN  120u /* fixed part and four empty tables */
#define TS_OUT_LEN    8u
#define MAPPED_V1_OFF 38u /* stype_out_symbol of a symbol mapping record */
#define MAPPED_V1_LEN 22u
#define MAPPED_V2_OFF 89u
#define MAPPED_V2_LEN 71u

/* ---- prelude --------------------------------------------------------------------------------- */

static int refuse_start(const uint8_t *bytes, size_t len, struct stoup_error *err)
{
	if (len >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0)
		return stoup_error_set(err, -EPROTONOSUPPORT,
			"zstd inside of what was unpacked: it was packed twice, unpack it once by "
			"hand");
	if (len >= 3 && memcmp(bytes, "DBZ", 3) == 0)
		return stoup_error_set(err, -EPROTONOSUPPORT,
			"DBZ, Databento's format before DBN, which stoup does not read: convert it "
			"(dbn old.dbz -o new.dbn, of Databento's dbn-cli), or download it again");
	return stoup_error_set(err, -EBADMSG,
		"no DBN: it begins neither with \"DBN\" nor with a record of a known type and length");
}

int stoup_dbn_prelude(
	const uint8_t *bytes, size_t len, struct stoup_dbn_prelude *ret, struct stoup_error *err)
{
	uint32_t meta_len;
	if (len < 3 || memcmp(bytes, "DBN", 3) != 0)
		return refuse_start(bytes, len, err);
	if (len < STOUP_DBN_PRELUDE_LEN)
		return stoup_error_set(
			err, -EBADMSG, "ends at offset %zu inside the DBN prelude of 8 bytes", len);
	if (bytes[3] < 1 || bytes[3] > STOUP_DBN_VERSION_MAX)
		return stoup_error_set(err, -EPROTONOSUPPORT,
			"DBN version %u: this stoup reads versions 1 to %d", bytes[3],
			STOUP_DBN_VERSION_MAX);
	memcpy(&meta_len, bytes + 4, sizeof(meta_len));
	if (meta_len < META_LEN_MIN)
		return stoup_error_set(err, -EBADMSG,
			"metadata length of %u bytes at offset 4: the shortest possible is %u",
			meta_len, META_LEN_MIN);
	ret->version = bytes[3];
	ret->meta_len = meta_len;
	return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

uint32_t stoup_dbn_date(uint64_t time_ns)
{
	/* Days since 0000-03-01 in eras of 400 years, so that a leap day ends its year. */
	uint32_t days = (uint32_t)(time_ns / DAY_NS) + 719468u;
	uint32_t era = days / 146097u;
	uint32_t doe = days % 146097u;
	uint32_t yoe = (doe - doe / 1460u + doe / 36524u - doe / 146096u) / 365u;
	uint32_t doy = doe - (365u * yoe + yoe / 4u - yoe / 100u);
	uint32_t mp = (5u * doy + 2u) / 153u;
	uint32_t day = doy - (153u * mp + 2u) / 5u + 1u;
	uint32_t month = mp < 10u ? mp + 3u : mp - 9u;
	uint32_t year = yoe + era * 400u + (month <= 2u);
	return year * 10000u + month * 100u + day;
}

int stoup_dbn_record_next(const uint8_t *bytes, size_t len, struct stoup_dbn_record *ret)
{
	ret->len = len > 0 ? bytes[0] * 4u : 0;
	if (len == 0)
		return 0;
	if (ret->len < STOUP_DBN_HEADER_LEN)
		return -EBADMSG;
	if (ret->len > len)
		return 0;
	ret->bytes = bytes;
	ret->rtype = bytes[1];
	memcpy(&ret->publisher_id, bytes + 2, sizeof(ret->publisher_id));
	memcpy(&ret->instrument_id, bytes + 4, sizeof(ret->instrument_id));
	memcpy(&ret->ts_event, bytes + 8, sizeof(ret->ts_event));
	return 1;
}

int stoup_dbn_mapped_symbol(
	const struct stoup_dbn_record *record, uint8_t version, char *ret, size_t cap)
{
	size_t off = version == 1 ? MAPPED_V1_OFF : MAPPED_V2_OFF;
	size_t max = version == 1 ? MAPPED_V1_LEN : MAPPED_V2_LEN;
	if (record->len < off + max)
		return -EBADMSG;
	size_t len = strnlen((const char *)record->bytes + off, max);
	if (len >= cap)
		len = cap - 1;
	memcpy(ret, record->bytes + off, len);
	ret[len] = 0;
	return 0;
}

/* ---- schemas --------------------------------------------------------------------------------- */

static const char *const schema_names[] = {"mbo", "mbp-1", "mbp-10", "tbbo", "trades", "ohlcv-1s",
	"ohlcv-1m", "ohlcv-1h", "ohlcv-1d", "definition", "statistics", "status", "imbalance",
	"ohlcv-eod", "cmbp-1", "cbbo-1s", "cbbo-1m", "tcbbo", "bbo-1s", "bbo-1m"};

#define SCHEMA_TBBO      3
#define SCHEMA_OHLCV_1S  5
#define SCHEMA_OHLCV_1D  8
#define SCHEMA_OHLCV_EOD 13

const char *stoup_dbn_schema_name(uint16_t schema)
{
	if (schema == STOUP_DBN_SCHEMA_MIXED)
		return "mixed";
	return schema < sizeof(schema_names) / sizeof(schema_names[0]) ? schema_names[schema]
	                                                               : NULL;
}

/* The one rtype of all bars before each interval got its own: the file's schema says which. */
static const char *old_bar_name(uint16_t file_schema)
{
	bool is_bar = (file_schema >= SCHEMA_OHLCV_1S && file_schema <= SCHEMA_OHLCV_1D) ||
	              file_schema == SCHEMA_OHLCV_EOD;
	return is_bar ? schema_names[file_schema] : NULL;
}

static const char *name_of(uint8_t rtype, uint8_t version, uint16_t file_schema)
{
	switch (rtype) {
	case 0x00:
		return "trades";
	case 0x01:
		return file_schema == SCHEMA_TBBO ? "tbbo" : "mbp-1";
	case 0x0a:
		return "mbp-10";
	case 0x11:
		return old_bar_name(file_schema);
	case 0x12:
		return "status";
	case 0x13:
		return version == 1   ? "definition-v1"
		       : version == 2 ? "definition-v2"
		                      : "definition";
	case 0x14:
		return "imbalance";
	case STOUP_DBN_RTYPE_ERROR:
		return version == 1 ? "error-v1" : "error";
	case STOUP_DBN_RTYPE_SYMBOL_MAPPING:
		return version == 1 ? "symbol-mapping-v1" : "symbol-mapping";
	case STOUP_DBN_RTYPE_SYSTEM:
		return version == 1 ? "system-v1" : "system";
	case 0x18:
		return version <= 2 ? "statistics-v1" : "statistics";
	case 0x20:
		return "ohlcv-1s";
	case 0x21:
		return "ohlcv-1m";
	case 0x22:
		return "ohlcv-1h";
	case 0x23:
		return "ohlcv-1d";
	case 0x24:
		return "ohlcv-eod";
	case 0xa0:
		return "mbo";
	case 0xb1:
		return "cmbp-1";
	case 0xc0:
		return "cbbo-1s";
	case 0xc1:
		return "cbbo-1m";
	case 0xc2:
		return "tcbbo";
	case 0xc3:
		return "bbo-1s";
	case 0xc4:
		return "bbo-1m";
	default:
		return NULL;
	}
}

const struct stoup_schema *stoup_dbn_schema(uint8_t rtype, uint8_t version, uint16_t file_schema)
{
	const char *name = name_of(rtype, version, file_schema);
	return name ? stoup_schema_by_name(name) : NULL;
}

int stoup_dbn_shape(uint8_t rtype, uint32_t len, struct stoup_dbn_shape *ret)
{
	struct stoup_dbn_shape shape = {0};
	bool is_known = false;
	for (uint8_t version = 1; version <= STOUP_DBN_VERSION_MAX; version++) {
		const struct stoup_schema *schema =
			stoup_dbn_schema(rtype, version, STOUP_DBN_SCHEMA_MIXED);
		if (!schema)
			continue;
		is_known = true;
		if (len != schema->stride && len != schema->stride + TS_OUT_LEN)
			continue;
		shape.schema = schema;
		shape.versions |= 1u << version;
		shape.has_ts_out = len != schema->stride;
	}
	if (!is_known)
		return 0;
	if (!shape.schema)
		return -EBADMSG;
	*ret = shape;
	return 1;
}

int stoup_dbn_is_fragment(const uint8_t *bytes, size_t len)
{
	struct stoup_dbn_shape shape;
	return len >= STOUP_DBN_HEADER_LEN && stoup_dbn_shape(bytes[1], bytes[0] * 4u, &shape) == 1;
}

int stoup_dbn_ts_out(
	const struct stoup_schema *base, struct stoup_schema *ret, struct stoup_error *err)
{
	static const char suffix[] = ".ts_out";
	size_t name_len = strlen(base->name);
	if (name_len + sizeof(suffix) > STOUP_SCHEMA_NAME_CAP)
		return stoup_error_set(
			err, -ENAMETOOLONG, "schema name %s%s is too long", base->name, suffix);
	struct stoup_field *fields = calloc(base->field_cnt + 1, sizeof(*fields));
	if (!fields)
		return stoup_error_set(
			err, -ENOMEM, "no memory for the schema %s%s", base->name, suffix);
	memcpy(fields, base->fields, base->field_cnt * sizeof(*fields));
	fields[base->field_cnt] = (struct stoup_field){.name = "ts_out",
		.off = base->stride,
		.cnt = 1,
		.type = STOUP_TYPE_U64,
		.flags = STOUP_FIELD_NULL | STOUP_FIELD_TIME,
		.null_bits = UINT64_MAX,
		.unit = "ns"};
	*ret = *base;
	memcpy(ret->name + name_len, suffix, sizeof(suffix));
	ret->stride = base->stride + TS_OUT_LEN;
	ret->field_cnt = base->field_cnt + 1;
	ret->fields = fields;
	ret->hash = stoup_schema_hash(ret);
	return 0;
}

void stoup_dbn_ts_out_fini(struct stoup_schema *schema)
{
	free((void *)(uintptr_t)schema->fields);
	schema->fields = NULL;
}
