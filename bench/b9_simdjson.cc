/* SPDX-License-Identifier: Apache-2.0 */
/* b9_simdjson.cc - simdjson's On Demand interface, which parses no more than is asked for. */
#include "bench/b9_peers.h"

#include <simdjson.h>

using namespace simdjson;

namespace
{

const size_t batch_len = 1000000; /* of iterate_many: its own default */

bool is_wanted(simdjson_result<ondemand::object> doc, std::int64_t wanted)
{
	std::int64_t value;

	return doc.find_field("data").get_object().find_field("T").get_int64().get(value) == SUCCESS &&
	       value == wanted;
}

uint64_t one_by_one(void *arg)
{
	static ondemand::parser parser;
	const bench_b9 *b9 = static_cast<const bench_b9 *>(arg);
	uint64_t found_cnt = 0;

	for (uint64_t i = 0; i < b9->cnt; i++) {
		size_t len = b9->off[i + 1] - b9->off[i];
		padded_string_view text(b9->bytes + b9->off[i], len, len + SIMDJSON_PADDING);
		ondemand::document doc;

		if (parser.iterate(text).get(doc) != SUCCESS)
			std::abort();
		found_cnt += is_wanted(doc.get_object(), b9->wanted);
	}
	return found_cnt;
}

uint64_t many(void *arg)
{
	static ondemand::parser parser;
	const bench_b9 *b9 = static_cast<const bench_b9 *>(arg);
	uint64_t found_cnt = 0;
	ondemand::document_stream stream;

	parser.threaded = false;
	if (parser.iterate_many(b9->bytes, b9->off[b9->cnt], batch_len).get(stream) != SUCCESS)
		std::abort();
	for (auto doc : stream)
		found_cnt += is_wanted(doc.get_object(), b9->wanted);
	return found_cnt;
}

} // namespace

extern "C" {
uint64_t (*const bench_b9_simdjson)(void *b9) = one_by_one;
uint64_t (*const bench_b9_simdjson_many)(void *b9) = many;

const char *bench_simdjson_version(void)
{
	return SIMDJSON_STRINGIFY(SIMDJSON_VERSION);
}
}
