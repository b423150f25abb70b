/* SPDX-License-Identifier: Apache-2.0 */
/* documents.cc - documents through stoup.hpp: usage: documents POOL SERIES QUESTION PATH [ROOM]; prints the key of each
 * message that the question holds of and the value at the path, then how many are no documents. */
#include <stoup.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static int failed_cnt;

#define CHECK(claim)                                                                               \
	do {                                                                                       \
		if (!(claim)) {                                                                    \
			std::printf("FAILED: %s:%d: %s\n", __FILE__, __LINE__, #claim);            \
			failed_cnt++;                                                              \
		}                                                                                  \
	} while (0)

/* {"a":1,"b":[true,null,"x"],"c":2.5,"d":"61800.30"} */
static const unsigned char bytes[] = {0xad, 0x02, 0x08, 'a', 0x22, 1, 0, 0, 0, 0x08, 'b', 0x2c, 0x0e, 1, 0x06, 0x08, 'x',
	0x08, 'c', 0x43, 0, 0, 0, 0, 0, 0, 4, 0x40, 0x08, 'd', 0x40, '6', '1', '8', '0', '0', '.', '3', '0'};

template <class F> static int code_of(F call)
{
	try {
		call();
	} catch (const stoup::error &e) {
		return e.code();
	}
	return 0;
}

static void check_values(const stoup::document &doc)
{
	stoup::path second("b[1]");
	std::string keys;

	CHECK(doc.type() == STOUP_DOC_OBJECT && doc.at("a").integer() == 1);
	CHECK(doc.at(second).is_null() && doc.at("b").at(0u).boolean() && doc.at("b").at(2u).text() == "x");
	CHECK(!doc.find("z") && !doc.find(stoup::path("b[9]")) && !doc.at("b").find(3u));
	CHECK(doc.at("c").number() == 2.5 && doc.at("d").decimal(-2) == 6180030 && doc.at("d").number() == 61800.3);
	CHECK(doc.json() == R"({"a":1,"b":[true,null,"x"],"c":2.5,"d":"61800.30"})");
	CHECK(code_of([&] { (void)doc.at("z"); }) == ENOENT);
	CHECK(code_of([&] { (void)doc.at("a").text(); }) == EINVAL);
	CHECK(code_of([&] { (void)doc.at("c").integer(); }) == EDOM);
	CHECK(code_of([&] { (void)doc.at("d").decimal(0); }) == EDOM);
	CHECK(code_of([&] { (void)doc.at("a").boolean(); }) == EINVAL);
	CHECK(doc.at("a") < doc.at("c") && doc.at("a") == doc.at("a") && doc.at(second) < doc.at("d"));
	auto walk = doc.inside();
	for (const auto &[key, value] : walk)
		keys += std::string(key) + value.json();
	CHECK(keys == R"(a1b[true,null,"x"]c2.5d"61800.30")" && !walk.broken());
	keys.clear();
	for (const auto &[key, value] : doc.at("b").inside())
		keys += std::string(key) + value.json();
	CHECK(keys == R"(truenull"x")");
	auto nothing = doc.at("a").inside();
	CHECK(nothing.begin() == nothing.end() && !nothing.broken());
}

static void check_errors(const stoup::document &doc)
{
	unsigned char lie[sizeof(bytes)];

	CHECK(code_of([] { stoup::path bad("a..b"); }) == EINVAL);
	CHECK(code_of([] { stoup::filter bad("a ="); }) == EINVAL);
	CHECK(!stoup::path::try_make("") && !stoup::filter::try_make("").has_value());
	CHECK(!stoup::document::try_of(std::as_bytes(std::span(bytes, sizeof(bytes) - 1))));
	std::memcpy(lie, bytes, sizeof(lie));
	lie[9] = 0xf8; /* a key that reaches beyond the object */
	auto broken = stoup::document::try_of(std::as_bytes(std::span(lie)));
	CHECK(broken && broken->try_find("d").error().code() == EBADMSG);
	auto walk = broken->inside();
	for (const auto &one : walk)
		CHECK(one.key == "a");
	CHECK(walk.broken());
	CHECK(stoup::filter("c > 2 and b[2] = 'x'").holds(doc) && !stoup::filter("c > 2.5").holds(doc));
	CHECK(stoup::filter("d = 1").try_holds(*broken).error().code() == EBADMSG);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	try {
		stoup::document doc(std::as_bytes(std::span(bytes)));
		stoup::client st(argv[1]);
		stoup::filter asked(argv[3]);
		stoup::path at(argv[4]);
		std::vector<std::uint32_t> room(std::strtoul(argv[5], nullptr, 10));
		std::uint64_t broken = 0;

		check_values(doc);
		check_errors(doc);
		for (std::span<const stoup::message> span : st.scan(st.find<stoup::message>(argv[2]))) {
			auto selection = asked.selected(span, room);

			for (std::uint32_t i : selection) {
				auto found = stoup::document(span[i]).find(at);

				std::printf("%lld %s\n", static_cast<long long>(span[i].key()),
					found ? found->json().c_str() : "");
			}
			broken += selection.broken();
		}
		std::printf("%llu\n", static_cast<unsigned long long>(broken));
	} catch (const std::exception &e) {
		std::printf("FAILED: thrown: %s\n", e.what());
		return 1;
	}
	return failed_cnt ? 1 : 0;
}
