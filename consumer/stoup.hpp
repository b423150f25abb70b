/* SPDX-License-Identifier: Apache-2.0 */
/* stoup.hpp - stoup.h for C++20: the same calls with owners, typed spans and ranges. Header only.
 *
 *      #include <stoup.hpp>
 *
 *      stoup::client st("prices");                                     // or "path/to/store/"
 *      auto es = st.find<stoup_mbo>("GLBX.MDP3/ESH4/mbo");             // checks the layout, once
 *      __int128 sum = 0;
 *
 *      for (std::span<const stoup_mbo> span : st.scan(es))             // inside the pool, no copy
 *              for (const stoup_mbo &r : span)
 *                      if (r.price != INT64_MAX)                       // undefined
 *                              sum += static_cast<__int128>(r.price) * r.size;
 *
 * What fails throws stoup::error, which has the errno and the library's text. Each call that throws has
 * a twin with try_ in front that is noexcept and returns stoup::expected; without exceptions
 * (-fno-exceptions) those alone are there:
 *
 *      for (;;) {
 *              auto span = cursor.try_next();
 *              if (!span)
 *                      return fail(span.error().what());
 *              if (span->empty())                                      // the end: no span has 0 records
 *                      break;
 *              ...
 *      }
 *
 * Costs: the loop over a span is the loop that C compiles to; a span costs one stoup_next. Nothing is
 * allocated but one word for each attachment, and what list() and lookup() return.
 *
 * Questions: ranges by time and by record number, limits, seek, count; as-of of one series (cursor::asof) and of many
 * (client::lookup); merges of one struct (a cursor) or of several (merged, whose runs are visited); where, a filter of
 * records; bars; replay, a cursor or a merge by the clock.
 *
 * Owners: client, cursor, lease and array can be moved, not copied. All but the client keep the attachment,
 * so that they may outlive the client they came from. A series is a value; it is good as long as any of
 * those is there, and for that attachment alone. A span is good until the next call on its cursor, or as long
 * as a lease on it: what has no name does not give one, so that no span outlives its owner by an oversight
 * ("use of deleted function records() &&": name the array or the lease). One that was moved from gives EINVAL.
 *
 * Threads: as in stoup.h: a client may be used by all threads, a cursor by one at a time, a lease may be
 * destroyed by any.
 *
 * `stoup` is a class, not a namespace: C has the type `struct stoup` already, which is what the C calls
 * point to; nothing is ever made of it. `using st = stoup;` shortens the names.
 */
#ifndef STOUP_HPP
#define STOUP_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "stoup.hpp needs C++20 (-std=c++20); stoup.h is for C and for older C++"
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <ratio>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <version>
#ifdef __cpp_lib_expected
#include <expected>
#endif

#include <sys/types.h>
#include <unistd.h>

#include "stoup.h"
#include "stoup_bars.h"
#include "stoup_docs.h"
#include "stoup_filter.h"

struct stoup {
	stoup() = delete;
	stoup(const stoup &) = delete;
	stoup &operator=(const stoup &) = delete;
	~stoup() = delete;

	enum class way { forward, backward };

	template <class T> class series;
	template <class T> class lease;
	template <class T, way W = way::forward> class cursor;
	template <class... T> class merged;
	template <class From> class replay;
	template <class B = ::stoup_bar_record> class bars;

	/* ---- times ------------------------------------------------------------------------- */

	/* A key: nanoseconds since 1970, UTC. std::chrono converts days, seconds and the like. */
	using time = std::chrono::sys_time<std::chrono::nanoseconds>;

	static constexpr time at(std::int64_t ns) noexcept
	{
		return time(std::chrono::nanoseconds(ns));
	}

	/* A text of a record, up to its NUL padding. */
	template <std::size_t N> static constexpr std::string_view text(const char (&field)[N]) noexcept
	{
		std::size_t len = 0;

		while (len < N && field[len] != '\0')
			len++;
		return std::string_view(field, len);
	}

	/* ---- messages ---------------------------------------------------------------------- */

	/* A message of variable length, in place. Series of such messages are found, scanned, held as those of
	 * records are:
	 *
	 *      for (std::span<const stoup::message> span : st.scan(st.find<stoup::message>("X/btc/json")))
	 *              for (const stoup::message &m : span)
	 *                      parse(m.key(), m.text());
	 *
	 * It knows its bytes by where it stands: so take it by reference, it cannot be copied. By key:
	 * std::ranges::lower_bound(span, key, {}, &stoup::message::key). */
	class message {
	public:
		message() = delete;
		message(const message &) = delete;
		message &operator=(const message &) = delete;

		/* Nanoseconds since 1970, see at(). */
		std::int64_t key() const noexcept { return head()->key; }
		std::span<const std::byte> bytes() const noexcept
		{
			return {reinterpret_cast<const std::byte *>(head() + 1), head()->len};
		}
		std::string_view text() const noexcept
		{
			return {reinterpret_cast<const char *>(head() + 1), head()->len};
		}

	private:
		const ::stoup_message_head *head() const noexcept
		{
			return reinterpret_cast<const ::stoup_message_head *>(
				reinterpret_cast<const char *>(this) - distance_);
		}

		std::uint32_t distance_; /* back to its head: an entry of the table */
	};
	static_assert(sizeof(message) == STOUP_MESSAGE_STRIDE);

	/* ---- errors ------------------------------------------------------------------------ */

	/* What went wrong. `what` says what, where, and what mends it. */
	class error : public std::exception {
	public:
		explicit error(const ::stoup_error &from) noexcept : detail_(from) {}
		error(int errno_value, const char *text) noexcept : detail_()
		{
			::stoup_error_set(&detail_, -errno_value, "%s", text);
		}

		/* The errno, positive: ENOENT, ETIMEDOUT, ... as the calls of stoup.h list them. */
		int code() const noexcept { return -detail_.code; }
		const char *what() const noexcept override { return detail_.text; }
		/* For comparisons with std::errc. */
		std::error_code error_code() const noexcept
		{
			return std::error_code(code(), std::generic_category());
		}

	private:
		::stoup_error detail_;
	};

	/* The figures of an attachment. (C++ finds the function of that name first.) */
	using figures = struct ::stoup_stats;

	/* A value, or the error that stands in its place: the part of std::expected<T, error> that one
	 * needs, the same in every C++ from 20 on, so that files compiled by different ones may be linked.
	 * Where the standard library has std::expected it converts to that. */
	template <class T> class [[nodiscard]] expected {
	public:
		using value_type = T;
		using error_type = stoup::error;

		expected(T value) noexcept : good_(true) { std::construct_at(&value_, std::move(value)); }
		expected(const stoup::error &error) noexcept : good_(false)
		{
			std::construct_at(&error_, error);
		}
		expected(expected &&other) noexcept : good_(other.good_)
		{
			if (good_)
				std::construct_at(&value_, std::move(other.value_));
			else
				std::construct_at(&error_, other.error_);
		}
		expected(const expected &) = delete;
		expected &operator=(const expected &) = delete;
		~expected()
		{
			if (good_)
				std::destroy_at(&value_);
			else
				std::destroy_at(&error_);
		}

		bool has_value() const noexcept { return good_; }
		explicit operator bool() const noexcept { return good_; }
		/* As of std::expected: of the one that is there. */
		T &operator*() & noexcept { return value_; }
		const T &operator*() const & noexcept { return value_; }
		/* A value, not std's reference: what has no name is gone before the loop over it begins. */
		T operator*() && noexcept { return std::move(value_); }
		T *operator->() noexcept { return &value_; }
		const T *operator->() const noexcept { return &value_; }
		const stoup::error &error() const noexcept { return error_; }
#ifdef __cpp_exceptions
		/* The value; throws the error where there is none. */
		T value() &&
		{
			if (!good_) [[unlikely]]
				throw error_;
			return std::move(value_);
		}
		T &value() &
		{
			if (!good_) [[unlikely]]
				throw error_;
			return value_;
		}
		const T &value() const & { return const_cast<expected *>(this)->value(); }
#endif
#ifdef __cpp_lib_expected
		operator std::expected<T, stoup::error>() &&
		{
			if (good_)
				return std::move(value_);
			return std::unexpected(error_);
		}
#endif

	private:
		bool good_;
		union {
			T value_;
			stoup::error error_;
		};
	};

	/* The value of what has none. */
	struct done {};

	/* ---- layouts ----------------------------------------------------------------------- */

	/* One field of a record: see STOUP_RECORD. */
	struct field {
		const char *name;
		std::uint32_t off, type, cnt;
	};

	/* What a struct overlays: `schemas`, the names of built-in schemas, or `fields`, a list. The structs
	 * of stoup_records.h are known below; STOUP_RECORD makes one for a struct of one's own. */
	template <class T> struct record;

	/* STOUP_TYPE_* of a member. Arrays are texts (char) or bytes (std::uint8_t, std::byte). */
	template <class M> static constexpr std::uint32_t type_code() noexcept
	{
		using element = std::remove_cv_t<std::remove_extent_t<M>>;

		static_assert(!std::is_array_v<element>, "fields are no arrays of arrays");
		if constexpr (std::is_same_v<element, char>) {
			return STOUP_TYPE_CHAR;
		} else if constexpr (std::is_same_v<element, std::byte>) {
			return STOUP_TYPE_BYTES;
		} else if constexpr (std::is_array_v<M>) {
			static_assert(std::is_same_v<element, std::uint8_t>,
				"a field of several elements is text (char) or bytes (std::uint8_t)");
			return STOUP_TYPE_BYTES;
		} else if constexpr (std::is_enum_v<element>) {
			return type_code<std::underlying_type_t<element>>();
		} else if constexpr (std::is_floating_point_v<element>) {
			static_assert(sizeof(element) == 4 || sizeof(element) == 8);
			return sizeof(element) == 4 ? STOUP_TYPE_F32 : STOUP_TYPE_F64;
		} else {
			static_assert(std::is_integral_v<element> && sizeof(element) <= 8,
				"a field is an integer, a float, a text or bytes");
			return integer_code(sizeof(element), std::is_signed_v<element>);
		}
	}

	template <class M> static constexpr field field_of(const char *name, std::size_t off) noexcept
	{
		return field{name, static_cast<std::uint32_t>(off), type_code<M>(),
			static_cast<std::uint32_t>(std::is_array_v<M> ? std::extent_v<M> : 1)};
	}

	/* ---- series ------------------------------------------------------------------------ */

	/* A series as stoup_series_find tells it. */
	class series_info {
	public:
		explicit series_info(const ::stoup_series &raw) noexcept : raw_(raw) {}

		std::string_view name() const noexcept { return raw_.name; }
		const ::stoup_schema &schema() const noexcept { return *raw_.schema; }
		std::uint64_t size() const noexcept { return raw_.record_cnt; }
		bool empty() const noexcept { return raw_.record_cnt == 0; }
		/* Keys of the first and the last record; 1970 where there is none. */
		time first() const noexcept { return at(raw_.first_key); }
		time last() const noexcept { return at(raw_.last_key); }
		const ::stoup_series &raw() const noexcept { return raw_; }

		/* The same with its records as T. EINVAL: T does not overlay them; the text says which
		 * field differs, and how. */
		template <class T> expected<series<T>> try_as() const noexcept
		{
			::stoup_error err;

			if (require<T>(raw_, &err) < 0)
				return error(err);
			return series<T>(raw_);
		}
#ifdef __cpp_exceptions
		template <class T> series<T> as() const { return try_as<T>().value(); }
#endif

	private:
		::stoup_series raw_;
	};

	/* A series whose records are known to be objects of T. */
	template <class T> class series : public series_info {
	public:
		using record_type = T;

	private:
		friend class series_info;
		explicit series(const ::stoup_series &raw) noexcept : series_info(raw) {}
	};

	/* An end of a range: a time, or none. A time of a coarser clock that nanoseconds do not reach (before
	 * 1677-09-21, after 2262-04-11) is the first or the last that they do: conversions of std::chrono
	 * would wrap to some time between. */
	class bound {
	public:
		constexpr bound() noexcept = default;
		constexpr bound(std::nullopt_t) noexcept {}
		constexpr bound(const std::optional<time> &from) noexcept : at_(from) {}
		template <class D>
			requires std::is_convertible_v<std::chrono::sys_time<D>, time>
		constexpr bound(std::chrono::sys_time<D> from) noexcept : at_(fit(from))
		{
		}

		/* As of std::optional. */
		constexpr bool has_value() const noexcept { return at_.has_value(); }
		constexpr explicit operator bool() const noexcept { return at_.has_value(); }
		constexpr const time &operator*() const noexcept { return *at_; }
		constexpr const time *operator->() const noexcept { return &*at_; }
		constexpr void reset() noexcept { at_.reset(); }
		constexpr operator const std::optional<time> &() const noexcept { return at_; }
		friend constexpr bool operator==(const bound &a, const bound &b) noexcept
		{
			return a.at_ == b.at_;
		}

	private:
		template <class D> static constexpr time fit(std::chrono::sys_time<D> from) noexcept
		{
			if constexpr (std::ratio_greater_v<typename D::period, std::nano>) {
				if (from > std::chrono::time_point_cast<D>(time::max()))
					return time::max();
				if (from < std::chrono::time_point_cast<D>(time::min()))
					return time::min();
			}
			return from;
		}

		std::optional<time> at_{};
	};

	/* Which part of a series: keys in [from, to), either end open where it is left out:
	 *      st.scan(es, {.from = std::chrono::sys_days(2024y / 3 / 1)})
	 * The very time 1970-01-01T00:00:00Z cannot be an end of it: EINVAL. */
	struct range {
		bound from{};
		bound to{};
		std::uint32_t flags = 0; /* STOUP_DIRECT, STOUP_FROM_AFTER ...: all but STOUP_BACKWARD */
		std::uint32_t limit = 0; /* at most so many records; 0 = all */
	};

	/* Records [from, to) by their numbers:
	 *      st.scan(es, stoup::ordinals(1000, 2000)) */
	static constexpr range ordinals(std::uint64_t from, std::uint64_t to = UINT64_MAX) noexcept
	{
		constexpr std::uint64_t most = INT64_MAX;
		range part;

		part.flags = STOUP_ORDINALS;
		if (to <= from || from >= most) /* nothing; 0 would be an open end */
			from = to = 1;
		if (from > 0)
			part.from = at(static_cast<std::int64_t>(from));
		if (to < most)
			part.to = at(static_cast<std::int64_t>(to));
		return part;
	}

	/* ---- the attachment, shared by client, cursors and leases ------------------------------ */

	class attachment {
	public:
		attachment() noexcept = default;
		attachment(const attachment &other) noexcept : at_(other.at_)
		{
			if (at_)
				at_->owner_cnt.fetch_add(1, std::memory_order_relaxed);
		}
		attachment(attachment &&other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
		attachment &operator=(attachment other) noexcept
		{
			std::swap(at_, other.at_);
			return *this;
		}
		/* The last owner detaches. */
		~attachment()
		{
			if (at_ && at_->owner_cnt.fetch_sub(1, std::memory_order_acq_rel) == 1) {
				::stoup_detach(at_->handle);
				delete at_;
			}
		}

		::stoup *get() const noexcept { return at_ ? at_->handle : nullptr; }
		/* Takes `handle`; false, and it is detached, where there is no memory. */
		bool own(::stoup *handle) noexcept
		{
			at_ = new (std::nothrow) shared{handle, 1};
			if (!at_)
				::stoup_detach(handle);
			return at_ != nullptr;
		}

	private:
		struct shared {
			::stoup *handle;
			std::atomic<std::size_t> owner_cnt;
		};
		shared *at_ = nullptr;
	};

	/* ---- leases ------------------------------------------------------------------------ */

	/* Keeps the records of one span where they are, until it is destroyed. */
	template <class T> class lease {
	public:
		lease() noexcept = default;
		lease(attachment home, const ::stoup_lease &raw, std::span<const T> records) noexcept
			: home_(std::move(home)), raw_(raw), records_(records)
		{
		}
		lease(lease &&other) noexcept
			: home_(std::move(other.home_)), raw_(std::exchange(other.raw_, {})),
			  records_(std::exchange(other.records_, {}))
		{
		}
		lease &operator=(lease &&other) noexcept
		{
			if (this != &other) {
				reset();
				home_ = std::move(other.home_);
				raw_ = std::exchange(other.raw_, {});
				records_ = std::exchange(other.records_, {});
			}
			return *this;
		}
		~lease() { reset(); }

		std::span<const T> records() const & noexcept { return records_; }
		std::span<const T> records() const && = delete; /* gone with the lease: name it */
		explicit operator bool() const noexcept { return home_.get() != nullptr; }
		/* Give it back now. */
		void reset() noexcept
		{
			if (home_.get())
				::stoup_release(&raw_);
			records_ = {};
			home_ = attachment();
		}

	private:
		attachment home_{};
		::stoup_lease raw_{};
		std::span<const T> records_{};
	};

	/* All records of a range as one span, until it is destroyed: see stoup_array. */
	template <class T> class array {
	public:
		array() noexcept : raw_() {}
		array(attachment home, const struct ::stoup_array &raw) noexcept
			: home_(std::move(home)), raw_(raw)
		{
		}
		array(array &&other) noexcept
			: home_(std::move(other.home_)), raw_(std::exchange(other.raw_, {}))
		{
		}
		array &operator=(array &&other) noexcept
		{
			if (this != &other) {
				reset();
				home_ = std::move(other.home_);
				raw_ = std::exchange(other.raw_, {});
			}
			return *this;
		}
		~array() { reset(); }

		std::span<const T> records() const & noexcept
		{
			return std::span<const T>(static_cast<const T *>(raw_.base), raw_.record_cnt);
		}
		std::span<const T> records() const && = delete; /* gone with the array: name it */
		/* In the volume's own file, not in the pool? */
		bool direct() const noexcept { return raw_.direct != 0; }
		explicit operator bool() const noexcept { return home_.get() != nullptr; }
		void reset() noexcept
		{
			if (home_.get())
				::stoup_array_release(&raw_);
			raw_ = {};
			home_ = attachment();
		}

	private:
		attachment home_;
		struct ::stoup_array raw_;
	};

	/* ---- as of ------------------------------------------------------------------------- */

	/* The record that was known at a time, or none: good until the next call on its cursor. */
	template <class T> class found {
	public:
		explicit operator bool() const noexcept { return raw_.record_cnt != 0; }
		const T &operator*() const noexcept { return *static_cast<const T *>(raw_.base); }
		const T *operator->() const noexcept { return static_cast<const T *>(raw_.base); }
		/* With its number (ordinal). */
		const ::stoup_span &raw() const noexcept { return raw_; }

	private:
		template <class, way> friend class cursor;
		::stoup_span raw_{};
	};

	/* ---- cursors ----------------------------------------------------------------------- */

	template <class T, way W> class record_view;
	template <class T, way W> class record_reader;

	/* A scan: an input range of spans. Backward, the spans come from the end of the range to its begin,
	 * the records inside of each lie in memory as ever; records() is in order either way. */
	template <class T, way W> class cursor {
	public:
		using item = std::span<const T>;

		cursor(attachment home, ::stoup_cursor *raw) noexcept : home_(std::move(home)), raw_(raw) {}
		cursor(cursor &&other) noexcept
			: home_(std::move(other.home_)), raw_(std::exchange(other.raw_, nullptr)),
			  span_(std::exchange(other.span_, {}))
		{
		}
		cursor &operator=(cursor &&other) noexcept
		{
			if (this != &other) {
				::stoup_cursor_close(raw_);
				home_ = std::move(other.home_);
				raw_ = std::exchange(other.raw_, nullptr);
				span_ = std::exchange(other.span_, {});
			}
			return *this;
		}
		~cursor() { ::stoup_cursor_close(raw_); }

		/* The next span; an empty one is the end. After ETIMEDOUT, EBUSY and EPIPE call it again,
		 * after EBADMSG and EIO skip. */
		expected<std::span<const T>> try_next() && = delete; /* gone with the cursor: name it */
		expected<std::span<const T>> try_next() & noexcept
		{
			if (advance() < 0) [[unlikely]]
				return error(*::stoup_cursor_error(raw_));
			return records_here();
		}

		/* Step over the segment at which the scan failed: how many records are left out. */
		expected<std::uint64_t> try_skip() noexcept
		{
			std::int64_t left_out = ::stoup_cursor_skip(raw_);

			if (left_out < 0)
				return error(static_cast<int>(-left_out),
					left_out == -ECHILD ? "the cursor belongs to the parent process"
							    : "the scan has not failed: nothing to skip");
			return static_cast<std::uint64_t>(left_out);
		}

		/* Keep the records of the span that came last beyond the next call. */
		expected<lease<T>> try_hold() const noexcept { return held_as<T>(span_); }
		expected<lease<T>> try_hold(const found<T> &one) const noexcept
		{
			return held_as<T>(one.raw());
		}

		/* Go on at a time, within the range, whatever was read before: see stoup_seek. */
		expected<done> try_seek(time to) noexcept
		{
			int rc = ::stoup_seek(raw_, to.time_since_epoch().count());

			span_ = {};
			if (rc == -EINVAL && !raw_)
				return error(EINVAL, "there is no cursor: it was moved from");
			if (rc < 0)
				return error(*::stoup_cursor_error(raw_));
			return done();
		}

		/* The last record at or before a time, or strictly before it, within the range: in any order of times,
		 * and apart from the scan. Bars count from their close. See stoup_asof. */
		expected<found<T>> try_asof(time) && = delete; /* gone with the cursor: name it */
		expected<found<T>> try_asof(time when) & noexcept { return look(::stoup_asof, when); }
		expected<found<T>> try_asof_before(time) && = delete;
		expected<found<T>> try_asof_before(time when) & noexcept
		{
			return look(::stoup_asof_before, when);
		}

		/* Of a merge: which of its series the span that came last is of. */
		std::uint32_t source() const noexcept { return ::stoup_cursor_source(raw_); }
		/* Of a scan with a filter: segments that it did not read. */
		std::uint64_t left_out() const noexcept { return ::stoup_cursor_left_out(raw_); }

		/* The span that came last, with the number of its first record (ordinal) and its keys. */
		const ::stoup_span &raw() const noexcept { return span_; }
		::stoup_cursor *get() const noexcept { return raw_; }

#ifdef __cpp_exceptions
		std::span<const T> next() && = delete; /* gone with the cursor: name it */
		std::span<const T> next() &
		{
			if (advance() < 0) [[unlikely]]
				raise(raw_);
			return records_here();
		}
		std::uint64_t skip() { return try_skip().value(); }
		lease<T> hold() const { return try_hold().value(); }
		lease<T> hold(const found<T> &one) const { return try_hold(one).value(); }
		void seek(time to) { try_seek(to).value(); }
		found<T> asof(time) && = delete; /* gone with the cursor: name it */
		found<T> asof(time when) & { return try_asof(when).value(); }
		found<T> asof_before(time) && = delete;
		found<T> asof_before(time when) & { return try_asof_before(when).value(); }

		/* Single pass: begin() fetches the next span. A cursor that is moved leaves its iterators
		 * behind. After a throw the cursor is where it was: skip(), or begin() again. */
		class iterator {
		public:
			using iterator_concept = std::input_iterator_tag;
			using value_type = std::span<const T>;
			using difference_type = std::ptrdiff_t;

			iterator() noexcept = default;
			explicit iterator(cursor &from) : from_(&from), now_(from.next()) {}
			std::span<const T> operator*() const noexcept { return now_; }
			iterator &operator++()
			{
				now_ = {};
				now_ = from_->next();
				return *this;
			}
			void operator++(int) { ++*this; }
			friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept
			{
				return it.now_.empty();
			}

		private:
			cursor *from_ = nullptr;
			std::span<const T> now_{};
		};
		iterator begin() { return iterator(*this); }
		std::default_sentinel_t end() const noexcept { return {}; }

		/* The records one by one, over the borders of spans: an input range of const T &. Of a
		 * cursor that has no name it takes the cursor along. */
		record_view<T, W> records() & noexcept { return record_view<T, W>(*this); }
		record_reader<T, W> records() && noexcept { return record_reader<T, W>(std::move(*this)); }
#endif

	private:
		template <class...> friend class merged;
		template <class> friend class replay;
		template <class> friend class bars;

		/* A span that came by another call of the library, such as stoup_replay_next. */
		item take(const ::stoup_span &span) noexcept
		{
			span_ = span;
			return records_here();
		}
		template <class U> expected<lease<U>> held_as(const ::stoup_span &span) const noexcept
		{
			::stoup_lease held;
			int rc = ::stoup_hold(&span, &held);

			if (rc < 0)
				return error(-rc, hold_text(rc));
			return lease<U>(home_, held,
				std::span<const U>(static_cast<const U *>(span.base), span.record_cnt));
		}
		expected<found<T>> look(int (*call)(::stoup_cursor *, std::int64_t, ::stoup_span *),
			time when) noexcept
		{
			found<T> answer;

			if (!raw_)
				return error(EINVAL, "there is no cursor: it was moved from");
			if (call(raw_, when.time_since_epoch().count(), &answer.raw_) < 0)
				return error(*::stoup_cursor_error(raw_));
			return answer;
		}
		int advance() noexcept
		{
			int rc = ::stoup_next(raw_, &span_);

			if (rc <= 0) [[unlikely]] { /* nothing to read, nothing to hold */
				span_.base = nullptr;
				span_.record_cnt = 0;
				span_.client = nullptr;
			}
			return rc;
		}
#ifdef __cpp_exceptions
		/* Out of the way, so that next() is small enough for the loop of its caller. */
		[[noreturn, gnu::cold, gnu::noinline]] static void raise(const ::stoup_cursor *at)
		{
			throw error(*::stoup_cursor_error(at));
		}
#endif
		std::span<const T> records_here() const noexcept
		{
			return std::span<const T>(static_cast<const T *>(span_.base), span_.record_cnt);
		}

		attachment home_;
		::stoup_cursor *raw_;
		::stoup_span span_{};
	};

#ifdef __cpp_exceptions
	/* Single pass over what next() gives, up to an empty one. */
	template <class From> class step_iterator {
	public:
		using iterator_concept = std::input_iterator_tag;
		using value_type = typename From::item;
		using difference_type = std::ptrdiff_t;

		step_iterator() noexcept = default;
		explicit step_iterator(From &from) : from_(&from), now_(from.next()) {}
		const value_type &operator*() const noexcept { return now_; }
		step_iterator &operator++()
		{
			now_ = {};
			now_ = from_->next();
			return *this;
		}
		void operator++(int) { ++*this; }
		friend bool operator==(const step_iterator &it, std::default_sentinel_t) noexcept
		{
			return it.now_.empty();
		}

	private:
		From *from_ = nullptr;
		value_type now_{};
	};

	template <class T, way W> class record_iterator {
	public:
		using iterator_concept = std::input_iterator_tag;
		using value_type = T;
		using difference_type = std::ptrdiff_t;

		record_iterator() noexcept = default;
		explicit record_iterator(cursor<T, W> &from) : from_(&from) { fetch(); }
		const T &operator*() const noexcept { return *at_; }
		const T *operator->() const noexcept { return at_; }
		record_iterator &operator++()
		{
			if (at_ != last_)
				at_ += W == way::forward ? 1 : -1;
			else
				fetch();
			return *this;
		}
		void operator++(int) { ++*this; }
		friend bool operator==(const record_iterator &it, std::default_sentinel_t) noexcept
		{
			return !it.at_;
		}

	private:
		void fetch()
		{
			at_ = last_ = nullptr;
			std::span<const T> span = from_->next();

			if (span.empty())
				return;
			at_ = W == way::forward ? &span.front() : &span.back();
			last_ = W == way::forward ? &span.back() : &span.front();
		}

		cursor<T, W> *from_ = nullptr;
		const T *at_ = nullptr, *last_ = nullptr;
	};

	/* The records of a cursor that stays where it is. */
	template <class T, way W> class record_view {
	public:
		explicit record_view(cursor<T, W> &from) noexcept : from_(&from) {}
		record_iterator<T, W> begin() const { return record_iterator<T, W>(*from_); }
		std::default_sentinel_t end() const noexcept { return {}; }

	private:
		cursor<T, W> *from_;
	};

	/* The records of a cursor of its own. */
	template <class T, way W> class record_reader {
	public:
		explicit record_reader(cursor<T, W> &&from) noexcept : from_(std::move(from)) {}
		record_iterator<T, W> begin() { return record_iterator<T, W>(from_); }
		std::default_sentinel_t end() const noexcept { return {}; }

	private:
		cursor<T, W> from_;
	};
#endif

	/* ---- forks ------------------------------------------------------------------------- */

	/* A fork whose child inherits cursors and leases:
	 *
	 *      auto forking = st.prepare_fork();
	 *      pid_t pid = fork();
	 *      if (pid == 0)
	 *              forking.child();            // fails: touch no span from before, the handles say ECHILD
	 *      else
	 *              forking.parent(pid > 0);
	 *
	 * From prepare_fork on, other threads that use the client wait for child or parent. Destroyed without
	 * either, it is as if the fork had failed. */
	class forking {
	public:
		forking(attachment home, const ::stoup_fork &raw) noexcept
			: home_(std::move(home)), raw_(raw), owner_(::getpid())
		{
		}
		forking(forking &&other) noexcept
			: home_(std::move(other.home_)), raw_(other.raw_), owner_(std::exchange(other.owner_, 0))
		{
		}
		forking &operator=(forking &&) = delete;
		~forking() { parent(false); }

		void parent(bool forked) noexcept
		{
			if (owner_ == ::getpid())
				::stoup_fork_parent(&raw_, forked);
			owner_ = 0;
		}
		expected<done> try_child() noexcept
		{
			::stoup_error err;

			if (owner_ == 0 || owner_ == ::getpid())
				return error(EINVAL, "child: not called in a child of the process that prepared the fork");
			owner_ = 0;
			if (::stoup_fork_child(&raw_, &err) < 0)
				return error(err);
			return done();
		}
#ifdef __cpp_exceptions
		void child() { try_child().value(); }
#endif

	private:
		attachment home_;
		::stoup_fork raw_;
		pid_t owner_; /* that has yet to say how it went; 0 = nobody */
	};

	/* ---- the client -------------------------------------------------------------------- */

	/* stoup_options with the defaults. */
	struct options : ::stoup_options {
		options() noexcept { ::stoup_options_init(this); }
	};

	/* A text with a NUL at its end, of either kind. */
	struct zstring {
		zstring(const char *from) noexcept : at(from) {}
		zstring(const std::string &from) noexcept : at(from.c_str()) {}
		const char *at;
	};

	/* ---- documents -------------------------------------------------------------------------
	 *
	 *      stoup::path price("data.p");
	 *      stoup::filter trades("data.e = 'trade' and data.p >= 61800");
	 *      std::uint32_t room[1024];
	 *
	 *      for (std::span<const stoup::message> span : st.scan(st.find<stoup::message>("X/btc/bipf")))
	 *              for (std::uint32_t i : trades.selected(span, room))   // each that it holds of, in place
	 *                      use(stoup::document(span[i]).at(price).text());
	 *
	 * A document is a view, as good as the span that it is in; a path and a filter are owners, immutable, for all
	 * threads. Numbers are exact: integer() and decimal() fail rather than round. */
	class path {
	public:
		static expected<path> try_make(zstring text) noexcept
		{
			::stoup_doc_path *made;
			::stoup_error err;

			if (::stoup_doc_path_create(text.at, &made, &err) < 0)
				return error(err);
			return path(made);
		}
#ifdef __cpp_exceptions
		explicit path(zstring text) : path(try_make(text).value()) {}
#endif
		const ::stoup_doc_path *get() const noexcept { return made_.get(); }

	private:
		struct destroy {
			void operator()(::stoup_doc_path *made) const noexcept { ::stoup_doc_path_destroy(made); }
		};
		explicit path(::stoup_doc_path *made) noexcept : made_(made) {}
		std::unique_ptr<::stoup_doc_path, destroy> made_;
	};

	/* One value of a document, or all of it. Calls that find nothing return none; bytes that are no document are
	 * an error, EBADMSG, where they are come by. */
	class document {
	public:
		class member;
		class walk;

		static expected<document> try_of(std::span<const std::byte> bytes) noexcept
		{
			::stoup_doc doc;

			if (::stoup_doc_open(bytes.data(), bytes.size(), &doc) < 0)
				return no_document();
			return document(doc);
		}
		static expected<document> try_of(const message &from) noexcept { return try_of(from.bytes()); }
		explicit document(const ::stoup_doc &doc) noexcept : doc_(doc) {}

		/* STOUP_DOC_STRING ... */
		unsigned type() const noexcept { return doc_.type; }
		bool is_null() const noexcept { return ::stoup_doc_is_null(&doc_) == 1; }

		expected<std::optional<document>> try_find(const path &at) const noexcept
		{
			::stoup_doc found;

			return answer(::stoup_doc_seek(&doc_, at.get(), &found), found);
		}
		expected<std::optional<document>> try_find(std::string_view key) const noexcept
		{
			::stoup_doc found;

			return answer(::stoup_doc_get(&doc_, key.data(), key.size(), &found), found);
		}
		expected<std::optional<document>> try_find(std::uint32_t idx) const noexcept
		{
			::stoup_doc found;

			return answer(::stoup_doc_at(&doc_, idx, &found), found);
		}

		/* In place, without a zero at its end. */
		expected<std::string_view> try_text() const noexcept
		{
			const char *text;
			std::size_t len;

			if (::stoup_doc_string(&doc_, &text, &len) < 0)
				return error(EINVAL, "the value is no string");
			return std::string_view(text, len);
		}
		expected<bool> try_boolean() const noexcept
		{
			int found = ::stoup_doc_bool(&doc_);

			if (found < 0)
				return error(EINVAL, "the value is neither true nor false");
			return found == 1;
		}
		/* EDOM for one with a fraction, ERANGE beyond 64 bits, EINVAL for what is no number. */
		expected<std::int64_t> try_integer() const noexcept
		{
			std::int64_t found;
			int rc = ::stoup_doc_int(&doc_, &found);

			return rc < 0 ? no_number(rc) : expected<std::int64_t>(found);
		}
		/* The value times 10 to the -exp10, of a number or a string that has a decimal: of "61800.30" at -2
		 * 6180030. Errors as above; EDOM for digits below. */
		expected<std::int64_t> try_decimal(int exp10) const noexcept
		{
			std::int64_t found;
			int rc = ::stoup_doc_decimal(&doc_, exp10, &found);

			return rc < 0 ? no_number(rc) : expected<std::int64_t>(found);
		}
		/* The nearest double, also of a string that has a decimal. */
		expected<double> try_number() const noexcept
		{
			double found;
			int rc = ::stoup_doc_double(&doc_, &found);

			if (rc < 0)
				return error(-rc, "the value is no number, or one beyond double");
			return found;
		}

		/* As stoup_doc_compare: numbers by value whatever their form. */
		friend std::weak_ordering operator<=>(const document &a, const document &b) noexcept
		{
			return ::stoup_doc_compare(&a.doc_, &b.doc_) <=> 0;
		}
		friend bool operator==(const document &a, const document &b) noexcept
		{
			return ::stoup_doc_compare(&a.doc_, &b.doc_) == 0;
		}

		/* The members of an object, the elements of an array; of other values nothing. */
		walk inside() const noexcept;

#ifdef __cpp_exceptions
		explicit document(const message &from) : document(try_of(from).value()) {}
		explicit document(std::span<const std::byte> bytes) : document(try_of(bytes).value()) {}
		std::optional<document> find(const path &at) const { return try_find(at).value(); }
		std::optional<document> find(std::string_view key) const { return try_find(key).value(); }
		std::optional<document> find(std::uint32_t idx) const { return try_find(idx).value(); }
		/* What must be there: throws ENOENT where it is not. */
		document at(const path &where) const { return there(find(where)); }
		document at(std::string_view key) const { return there(find(key)); }
		document at(std::uint32_t idx) const { return there(find(idx)); }
		std::string_view text() const { return try_text().value(); }
		bool boolean() const { return try_boolean().value(); }
		std::int64_t integer() const { return try_integer().value(); }
		std::int64_t decimal(int exp10) const { return try_decimal(exp10).value(); }
		double number() const { return try_number().value(); }
		/* JSON without blanks: every value comes back as it was. */
		std::string json() const
		{
			std::string made;
			std::int64_t len = ::stoup_doc_json(&doc_, nullptr, 0);

			if (len < 0)
				throw no_document();
			made.resize(static_cast<std::size_t>(len));
			::stoup_doc_json(&doc_, made.data(), made.size());
			return made;
		}
#endif
		const ::stoup_doc *get() const noexcept { return &doc_; }

	private:
		static error no_document() noexcept
		{
			return error(EBADMSG, "the bytes are no document: stoup_doc_valid says where and why");
		}
		static expected<std::int64_t> no_number(int rc) noexcept
		{
			return error(-rc, rc == -EDOM ? "the number has digits below those asked for"
					: rc == -ERANGE ? "the number is beyond 64 bits"
							: "the value is no number");
		}
		static expected<std::optional<document>> answer(int rc, const ::stoup_doc &found) noexcept
		{
			if (rc < 0)
				return no_document();
			return rc == 0 ? std::optional<document>() : std::optional<document>(document(found));
		}
#ifdef __cpp_exceptions
		static document there(std::optional<document> found)
		{
			if (!found)
				throw error(ENOENT, "the document has no value there");
			return *found;
		}
#endif
		::stoup_doc doc_;
	};

	/* A question, compiled once. */
	class filter {
	public:
		static expected<filter> try_make(zstring text) noexcept
		{
			::stoup_doc_filter *made;
			::stoup_error err;

			if (::stoup_doc_filter_create(text.at, &made, &err) < 0)
				return error(err);
			return filter(made);
		}
#ifdef __cpp_exceptions
		explicit filter(zstring text) : filter(try_make(text).value()) {}
		bool holds(const document &of) const { return try_holds(of).value(); }
#endif
		expected<bool> try_holds(const document &of) const noexcept
		{
			int rc = ::stoup_doc_match(made_.get(), of.get());

			if (rc < 0)
				return error(EBADMSG, "the bytes are no document");
			return rc == 1;
		}

		/* The first numbers of messages from `from` on that it holds of, ascending, as many as `room` takes;
		 * fewer mean that the whole span was looked at. Messages that are no documents are left out, and
		 * added to *broken. */
		std::span<const std::uint32_t> select(std::span<const message> among, std::span<std::uint32_t> room,
			std::uint64_t from = 0, std::uint64_t *broken = nullptr) const noexcept
		{
			::stoup_span raw{};

			raw.base = among.data();
			raw.record_cnt = among.size();
			raw.stride = STOUP_MESSAGE_STRIDE;
			raw.schema = ::stoup_schema_by_name("bipf");
			return room.first(static_cast<std::size_t>(::stoup_doc_filter_span(
				made_.get(), &raw, from, room.data(), room.size(), broken)));
		}

		/* All of them, however many: a range of numbers that is filled `room` by `room`. */
		class selection;
		selection selected(std::span<const message> among, std::span<std::uint32_t> room) const noexcept;

	private:
		struct destroy {
			void operator()(::stoup_doc_filter *made) const noexcept
			{
				::stoup_doc_filter_destroy(made);
			}
		};
		explicit filter(::stoup_doc_filter *made) noexcept : made_(made) {}
		std::unique_ptr<::stoup_doc_filter, destroy> made_;
	};

	/* ---- merges ----------------------------------------------------------------------------
	 *
	 *      for (auto run : st.merge(trades, quotes))               // of different structs, in one order of time
	 *              run.visit([&](std::span<const stoup_trade> some) { ... },
	 *                        [&](std::span<const stoup_mbp1> some) { ... });
	 *
	 * One callable for each series, in their order, or one that takes them all. Merges of one struct are cursors
	 * (st.merge(vector_of_series)), whose source() says which series the span is of. */
	template <class... T> class merged {
	public:
		template <std::size_t I> using record_of = std::tuple_element_t<I, std::tuple<T...>>;

		/* Records of one series, up to where another one has an earlier one: good until the next call. */
		class run {
		public:
			run() noexcept = default;
			std::uint32_t source() const noexcept { return source_; }
			std::uint64_t size() const noexcept { return raw_.record_cnt; }
			bool empty() const noexcept { return raw_.record_cnt == 0; }
			const ::stoup_span &raw() const noexcept { return raw_; }
			/* The records where they are of series I, else none. */
			template <std::size_t I> std::span<const record_of<I>> get() const noexcept
			{
				return {static_cast<const record_of<I> *>(raw_.base),
					source_ == I ? raw_.record_cnt : 0};
			}
			template <class... F>
				requires(sizeof...(F) == sizeof...(T) || sizeof...(F) == 1)
			void visit(F &&...calls) const
			{
				call(std::index_sequence_for<T...>(), std::forward_as_tuple(calls...));
			}

		private:
			friend class merged;
			run(const ::stoup_span &raw, std::uint32_t source) noexcept
				: raw_(raw), source_(source)
			{
			}
			template <std::size_t... I, class Calls>
			void call(std::index_sequence<I...>, const Calls &calls) const
			{
				constexpr bool one = std::tuple_size_v<Calls> == 1;

				(void)((!empty() && source_ == I &&
					       (std::get<one ? 0 : I>(calls)(get<I>()), true)) ||
					...);
			}
			::stoup_span raw_{};
			std::uint32_t source_ = 0;
		};
		using item = run;

		explicit merged(cursor<std::byte> from) noexcept : from_(std::move(from)) {}

		/* As of cursor; an empty run is the end. */
		expected<run> try_next() && = delete; /* gone with the merge: name it */
		expected<run> try_next() & noexcept
		{
			auto some = from_.try_next();

			if (!some)
				return some.error();
			return here();
		}
		expected<std::uint64_t> try_skip() noexcept { return from_.try_skip(); }
		expected<done> try_seek(time to) noexcept { return from_.try_seek(to); }
		/* Keep the run that came last, which is of series I: EINVAL where it is not. */
		template <std::size_t I> expected<lease<record_of<I>>> try_hold() const noexcept
		{
			if (from_.source() != I)
				return error(EINVAL, "the run that came last is of another series");
			return from_.template held_as<record_of<I>>(from_.raw());
		}
		::stoup_cursor *get() const noexcept { return from_.get(); }

#ifdef __cpp_exceptions
		run next() && = delete;
		run next() & { return try_next().value(); }
		std::uint64_t skip() { return try_skip().value(); }
		void seek(time to) { try_seek(to).value(); }
		template <std::size_t I> lease<record_of<I>> hold() const
		{
			return try_hold<I>().value();
		}
		using iterator = step_iterator<merged>;
		iterator begin() { return iterator(*this); }
		std::default_sentinel_t end() const noexcept { return {}; }
#endif

	private:
		template <class> friend class replay;
		run here() const noexcept { return run(from_.raw(), from_.source()); }
		run take(const ::stoup_span &span) noexcept
		{
			from_.take(span);
			return here();
		}
		cursor<std::byte> from_;
	};

	/* ---- filters of records ----------------------------------------------------------------
	 *
	 *      stoup::where dear(es, "price > 4800 and side = 'B'");
	 *      std::uint32_t room[1024];
	 *
	 *      for (std::span<const stoup_mbo> span : st.scan(es, dear))     // segments that have none are not read
	 *              for (std::uint32_t i : dear.selected(span, room))
	 *                      use(span[i]);
	 *
	 * Immutable, for all threads; the language is in stoup_filter.h. Good as long as the attachment of its series. */
	template <class T> class where {
	public:
		class selection;

		static expected<where> try_make(const series<T> &of, zstring text) noexcept
		{
			::stoup_filter *made;
			::stoup_error err;

			if (::stoup_filter_create(&of.schema(), text.at, &made, &err) < 0)
				return error(err);
			return where(&of.schema(), made);
		}

		bool holds(const T &record) const noexcept
		{
			return ::stoup_filter_match(made_.get(), &record) == 1;
		}
		/* The first numbers of records from `from` on that match, ascending, as many as `room` takes; fewer mean
		 * that the whole span was looked at. EFBIG for more than 2^32 records: cut them. */
		expected<std::span<const std::uint32_t>> try_select(std::span<const T> among,
			std::span<std::uint32_t> room, std::uint64_t from = 0) const noexcept
		{
			::stoup_span raw{};
			std::int64_t cnt;

			raw.base = among.data();
			raw.record_cnt = among.size();
			raw.stride = sizeof(T);
			raw.schema = schema_;
			cnt = ::stoup_filter_span(made_.get(), &raw, from, room.data(), room.size());
			if (cnt < 0)
				return error(static_cast<int>(-cnt), "the filter cannot be asked of that span");
			return std::span<const std::uint32_t>(room.first(static_cast<std::size_t>(cnt)));
		}
		::stoup_filter *get() const noexcept { return made_.get(); }

#ifdef __cpp_exceptions
		where(const series<T> &of, zstring text) : where(try_make(of, text).value()) {}
		std::span<const std::uint32_t> select(std::span<const T> among,
			std::span<std::uint32_t> room, std::uint64_t from = 0) const
		{
			return try_select(among, room, from).value();
		}
		/* All of them, however many: a range of numbers that is filled `room` by `room`. */
		selection selected(std::span<const T> among, std::span<std::uint32_t> room) const
		{
			return selection(*this, among, room);
		}
#endif

	private:
		struct destroy {
			void operator()(::stoup_filter *made) const noexcept { ::stoup_filter_destroy(made); }
		};
		where(const ::stoup_schema *schema, ::stoup_filter *made) noexcept
			: schema_(schema), made_(made)
		{
		}
		const ::stoup_schema *schema_;
		std::unique_ptr<::stoup_filter, destroy> made_;
	};

	/* ---- bars ------------------------------------------------------------------------------
	 *
	 *      for (const stoup_bar_record &bar : st.bars(es, "1m"))
	 *              use(bar.close, bar.volume);                // integers of the scales that bars.schema() tells
	 *
	 * Or st.bars<stoup_bar_record_f64>(...) in doubles. See stoup_bars.h: nothing looks ahead. */
	struct bars_spec : ::stoup_bars_spec {
		bars_spec() noexcept : ::stoup_bars_spec() { struct_len = sizeof(::stoup_bars_spec); }
		/* "1m", "100t", "5000v" ...; the other members may be set afterwards. */
		static expected<bars_spec> try_make(zstring text) noexcept
		{
			bars_spec made;
			::stoup_error err;

			if (::stoup_bars_spec_parse(text.at, &made, &err) < 0)
				return error(err);
			return made;
		}
#ifdef __cpp_exceptions
		bars_spec(const char *text) : bars_spec(try_make(text).value()) {}
		bars_spec(const std::string &text) : bars_spec(try_make(text).value()) {}
#endif
	};

	template <class B> class bars {
		static_assert(std::is_same_v<B, ::stoup_bar_record> ||
				      std::is_same_v<B, ::stoup_bar_record_f64>,
			"bars are stoup_bar_record or stoup_bar_record_f64");

	public:
		using item = std::optional<B>;

		bars(bars &&) noexcept = default;
		bars &operator=(bars &&) = delete;

		/* Of what a forward cursor yields from its place on, which is the bars' from now on. */
		template <class T>
		static expected<bars> try_make(cursor<T> from, const bars_spec &spec) noexcept
		{
			::stoup_bars *made;
			::stoup_error err;

			if (::stoup_bars_open(from.get(), &spec, &made, &err) < 0)
				return error(err);
			return bars(std::move(from.home_), std::exchange(from.raw_, nullptr), made);
		}

		/* The next bar; none is the end. After ETIMEDOUT and the like call it again. */
		expected<std::optional<B>> try_next() noexcept
		{
			B bar;
			int rc;

			if constexpr (std::is_same_v<B, ::stoup_bar_record>)
				rc = ::stoup_bars_next(made_.get(), &bar);
			else
				rc = ::stoup_bars_next_f64(made_.get(), &bar);
			if (rc < 0)
				return error(*::stoup_bars_error(made_.get()));
			return rc > 0 ? std::optional<B>(bar) : std::optional<B>();
		}
		/* Scales of prices and volumes; NULL of a merge that has not yielded yet. */
		const ::stoup_schema *schema() const noexcept { return ::stoup_bars_schema(made_.get()); }
		/* Step over the segment at which the last step failed. */
		std::int64_t skip() noexcept { return ::stoup_cursor_skip(from_.get()); }
		::stoup_bars *get() const noexcept { return made_.get(); }

#ifdef __cpp_exceptions
		template <class T>
		bars(cursor<T> from, const bars_spec &spec)
			: bars(try_make(std::move(from), spec).value())
		{
		}
		std::optional<B> next() { return try_next().value(); }

		class iterator {
		public:
			using iterator_concept = std::input_iterator_tag;
			using value_type = B;
			using difference_type = std::ptrdiff_t;

			iterator() noexcept = default;
			explicit iterator(bars &from) : from_(&from), now_(from.next()) {}
			const B &operator*() const noexcept { return *now_; }
			const B *operator->() const noexcept { return &*now_; }
			iterator &operator++()
			{
				now_ = from_->next();
				return *this;
			}
			void operator++(int) { ++*this; }
			friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept
			{
				return !it.now_;
			}

		private:
			bars *from_ = nullptr;
			std::optional<B> now_{};
		};
		iterator begin() { return iterator(*this); }
		std::default_sentinel_t end() const noexcept { return {}; }
#endif

	private:
		struct close_cursor {
			void operator()(::stoup_cursor *raw) const noexcept { ::stoup_cursor_close(raw); }
		};
		struct close_bars {
			void operator()(::stoup_bars *made) const noexcept { ::stoup_bars_close(made); }
		};
		bars(attachment home, ::stoup_cursor *from, ::stoup_bars *made) noexcept
			: home_(std::move(home)), from_(from), made_(made)
		{
		}
		/* They go in the opposite order. */
		attachment home_;
		std::unique_ptr<::stoup_cursor, close_cursor> from_;
		std::unique_ptr<::stoup_bars, close_bars> made_;
	};

	/* ---- replay ----------------------------------------------------------------------------
	 *
	 *      stoup::replay tape(st.merge(trades, quotes), {.speed = 10});
	 *
	 *      for (auto run : tape)                               // waits until each is due
	 *              run.visit(on_trades, on_quotes);
	 *
	 * Of a cursor it yields spans, of a merge runs. A signal ends a wait with EINTR: go on by begin(), or try_next. */
	struct replay_options : ::stoup_replay_options {
		struct named {
			double speed = 1; /* or INFINITY */
			std::optional<time> start{}; /* records before it come at once */
			std::chrono::nanoseconds max_gap{0}; /* 0: gaps are kept */
			bool paused = false;
		};
		replay_options() noexcept : replay_options(named()) {}
		replay_options(const named &from) noexcept : ::stoup_replay_options()
		{
			struct_len = sizeof(::stoup_replay_options);
			speed = from.speed;
			start_ns = from.start ? from.start->time_since_epoch().count() : 0;
			max_gap_ns = static_cast<std::uint64_t>(from.max_gap.count());
			flags = from.paused ? STOUP_REPLAY_PAUSED : 0;
		}
	};

	template <class From> class replay {
	public:
		using item = typename From::item;

		replay(replay &&) noexcept = default;
		replay &operator=(replay &&) = delete;

		static expected<replay> try_make(From from, const replay_options &opt = {}) noexcept
		{
			::stoup_replay *made;
			::stoup_error err;

			if (::stoup_replay_open(from.get(), &opt, &made, &err) < 0)
				return error(err);
			return replay(std::move(from), made);
		}

		/* What is due, or becomes due within `timeout`; an empty one: nothing did, or it is the end, see
		 * ended(). */
		expected<item> try_next(std::chrono::nanoseconds) && = delete;
		expected<item> try_next(std::chrono::nanoseconds timeout) & noexcept
		{
			return step(timeout.count() > 0 ? static_cast<std::uint64_t>(timeout.count()) : 0);
		}
		expected<item> try_next() && = delete; /* gone with the replay: name it */
		expected<item> try_next() & noexcept { return step(STOUP_REPLAY_WAIT); }
		bool ended() const noexcept { return ended_; }

		void pause() noexcept { ::stoup_replay_pause(made_.get()); }
		void resume() noexcept { ::stoup_replay_resume(made_.get()); }
		expected<done> try_speed(double speed) noexcept
		{
			if (::stoup_replay_speed(made_.get(), speed) < 0)
				return error(EINVAL, "a speed is from 0.001 to 1e9, or INFINITY");
			return done();
		}
		::stoup_replay_state stats() const noexcept
		{
			::stoup_replay_state state{};

			state.struct_len = sizeof(state);
			::stoup_replay_stats(made_.get(), &state);
			return state;
		}
		/* For poll and epoll. */
		int fd() const noexcept { return ::stoup_replay_fd(made_.get()); }
		/* What is replayed, for skip, hold and source. */
		From &from() noexcept { return from_; }
		::stoup_replay *get() const noexcept { return made_.get(); }

#ifdef __cpp_exceptions
		explicit replay(From from, const replay_options &opt = {})
			: replay(try_make(std::move(from), opt).value())
		{
		}
		replay(From from, const replay_options::named &opt)
			: replay(std::move(from), replay_options(opt))
		{
		}
		item next() && = delete;
		item next() & { return try_next().value(); }
		item next(std::chrono::nanoseconds) && = delete;
		item next(std::chrono::nanoseconds timeout) & { return try_next(timeout).value(); }
		void speed(double speed) { try_speed(speed).value(); }
		using iterator = step_iterator<replay>;
		iterator begin() { return iterator(*this); }
		std::default_sentinel_t end() const noexcept { return {}; }
#endif

	private:
		struct close {
			void operator()(::stoup_replay *made) const noexcept { ::stoup_replay_close(made); }
		};
		replay(From from, ::stoup_replay *made) noexcept : from_(std::move(from)), made_(made) {}
		expected<item> step(std::uint64_t timeout_ns) noexcept
		{
			::stoup_span span{};
			int rc = ended_ ? 0 : ::stoup_replay_next(made_.get(), timeout_ns, &span);

			if (rc == -EINTR)
				return error(EINTR, "a signal came while the replay waited: go on, or end");
			if (rc < 0)
				return error(*::stoup_cursor_error(from_.get()));
			if (rc == 1)
				return from_.take(span);
			ended_ = rc == 0;
			return item();
		}
		From from_;
		std::unique_ptr<::stoup_replay, close> made_;
		bool ended_ = false;
	};

#ifdef __cpp_exceptions
	/* ---- as of, of many series ------------------------------------------------------------- */

	/* What was known of each at a time:
	 *
	 *      auto book = st.lookup(quotes);                      // a vector of series
	 *      for (const auto &quote : book.asof(when))
	 *              if (quote)
	 *                      use(quote->bid_px);
	 *
	 * Keeps a block of each leased. */
	template <class T> class lookup {
	public:
		explicit lookup(std::vector<cursor<T>> all) : cursors_(std::move(all)), found_(cursors_.size())
		{
			for (const cursor<T> &one : cursors_)
				raws_.push_back(one.get());
		}
		/* In the order of the series; good until the next call. */
		std::span<const found<T>> asof(time) && = delete;
		std::span<const found<T>> asof(time when) &
		{
			static_assert(sizeof(found<T>) == sizeof(::stoup_span) &&
				      std::is_standard_layout_v<found<T>>);
			std::int64_t rc = ::stoup_asof_all(raws_.data(), raws_.size(),
				when.time_since_epoch().count(),
				reinterpret_cast<::stoup_span *>(found_.data()));

			for (std::size_t i = 0; rc < 0 && i < raws_.size(); i++)
				if (::stoup_cursor_error(raws_[i])->code == rc)
					throw error(*::stoup_cursor_error(raws_[i]));
			if (rc < 0)
				throw error(static_cast<int>(-rc), "the series cannot be looked up together");
			return found_;
		}
		/* Keep an answer beyond the next call. */
		lease<T> hold(const found<T> &one) const { return cursors_.front().hold(one); }
		std::size_t size() const noexcept { return cursors_.size(); }

	private:
		std::vector<cursor<T>> cursors_;
		std::vector<::stoup_cursor *> raws_{};
		std::vector<found<T>> found_;
	};
#endif

	/* How much a range has; see stoup_count. (C++ finds the function of that name first.) */
	using extent = struct ::stoup_count;

	class client {
	public:
		static expected<client> try_attach(zstring pool) noexcept
		{
			return attach_with(pool.at, nullptr);
		}
		static expected<client> try_attach(zstring pool, const ::stoup_options &opt) noexcept
		{
			return attach_with(pool.at, &opt);
		}
		client(client &&) noexcept = default;
		client &operator=(client &&) noexcept = default;

		expected<series_info> try_find(zstring name) const noexcept
		{
			::stoup_series found;
			::stoup_error err;

			if (::stoup_series_find(get(), name.at, &found, &err) < 0)
				return error(err);
			return series_info(found);
		}
		template <class T> expected<series<T>> try_find(zstring name) const noexcept
		{
			auto found = try_find(name);

			if (!found)
				return found.error();
			return found->template try_as<T>();
		}

		/* How many series, and the idx-th by name. */
		expected<std::uint64_t> try_series_cnt() const noexcept
		{
			std::int64_t cnt = ::stoup_series_cnt(get());

			if (cnt < 0)
				return error(static_cast<int>(-cnt), why(cnt, "the series cannot be counted"));
			return static_cast<std::uint64_t>(cnt);
		}
		expected<series_info> try_series_at(std::uint64_t idx) const noexcept
		{
			::stoup_series found;
			int rc = ::stoup_series_at(get(), idx, &found);

			if (rc < 0)
				return error(-rc, why(rc, "there is no series of that number"));
			return series_info(found);
		}

		template <class T>
		expected<cursor<T>> try_scan(const series<T> &from, const range &part = whole()) const noexcept
		{
			return scan_with<T, way::forward>(from, part);
		}
		template <class T>
		expected<cursor<T, way::backward>> try_scan_backward(
			const series<T> &from, const range &part = whole()) const noexcept
		{
			return scan_with<T, way::backward>(from, part);
		}

		/* The same without the segments of which the index says that no record matches: see where. */
		template <class T>
		expected<cursor<T>> try_scan(const series<T> &from, const where<T> &asked,
			const range &part = whole()) const noexcept
		{
			return scan_with<T, way::forward>(from, part, asked.get());
		}
		template <class T>
		expected<cursor<T, way::backward>> try_scan_backward(const series<T> &from,
			const where<T> &asked, const range &part = whole()) const noexcept
		{
			return scan_with<T, way::backward>(from, part, asked.get());
		}

		/* Several series in one order of time, those named first first at equal times; see stoup_merge. Of one
		 * struct, in a vector or array: */
		template <std::ranges::contiguous_range R,
			class T = typename std::ranges::range_value_t<R>::record_type>
		expected<cursor<T>> try_merge(const R &from, const range &part = whole()) const noexcept
		{
			return merge_array<T, way::forward>(from, part);
		}
		template <std::ranges::contiguous_range R,
			class T = typename std::ranges::range_value_t<R>::record_type>
		expected<cursor<T, way::backward>> try_merge_backward(
			const R &from, const range &part = whole()) const noexcept
		{
			return merge_array<T, way::backward>(from, part);
		}
		/* Of different ones. Backward, the runs come in the opposite order; inside, records lie as ever. */
		template <class... T>
		expected<merged<T...>> try_merge(const range &part, const series<T> &...from) const noexcept
		{
			return merge_each(part, 0, from...);
		}
		template <class... T>
		expected<merged<T...>> try_merge_backward(
			const range &part, const series<T> &...from) const noexcept
		{
			return merge_each(part, STOUP_BACKWARD, from...);
		}

		/* Bars of the trades of a series; of several: bars<>(st.merge(...), spec). */
		template <class B = ::stoup_bar_record, class T>
		expected<stoup::bars<B>> try_bars(const series<T> &from, const bars_spec &spec,
			const range &part = whole()) const noexcept
		{
			auto scanned = try_scan(from, part);

			if (!scanned)
				return scanned.error();
			return stoup::bars<B>::try_make(std::move(*scanned), spec);
		}

		/* How many records a range has: exactly, which reads two blocks at most, or from the index alone. */
		expected<std::uint64_t> try_count(
			const series_info &of, const range &part = whole()) const noexcept
		{
			auto found = extent_of(of, part, 1);

			return found ? expected<std::uint64_t>(found->record_max) : found.error();
		}
		expected<extent> try_estimate(const series_info &of, const range &part = whole()) const noexcept
		{
			return extent_of(of, part, 0);
		}

		/* Wait until the store has news: was there some? See stoup_wait_news. */
		expected<bool> try_wait(std::chrono::nanoseconds timeout) const noexcept
		{
			::stoup_error err;
			int rc = ::stoup_wait_news(get(),
				timeout.count() > 0 ? static_cast<std::uint64_t>(timeout.count()) : 0, &err);

			if (rc < 0)
				return error(err);
			return rc > 0;
		}

		/* All of it as one array, where it lies in one piece; EFBIG where it does not. */
		template <class T>
		expected<array<T>> try_array_of(const series<T> &from, const range &part = whole()) const noexcept
		{
			struct ::stoup_array made;
			::stoup_range keys;
			::stoup_error err;

			if (range_of(part, 0, &keys, &err) < 0 ||
				::stoup_array(get(), &from.raw(), &keys, &made, &err) < 0)
				return error(err);
			return array<T>(home_, made);
		}

		/* What was known of DATASET/SYMBOL at a time (nothing: of all times the last): see
		 * stoup_definition_at. */
		expected<::stoup_instrument> try_definition_at(
			zstring symbol, std::optional<time> at = std::nullopt) const noexcept
		{
			::stoup_instrument found{};
			::stoup_error err;

			found.struct_len = sizeof(found);
			if (::stoup_definition_at(get(), symbol.at,
				    at ? at->time_since_epoch().count() : INT64_MAX, &found, &err) < 0)
				return error(err);
			return found;
		}

		/* Take the newest snapshot: was there news? */
		expected<bool> try_refresh() noexcept
		{
			::stoup_error err;
			int rc = ::stoup_refresh(get(), &err);

			if (rc < 0)
				return error(err);
			return rc > 0;
		}
		/* Is the pool alive? */
		expected<done> try_health() const noexcept
		{
			::stoup_error err;

			if (::stoup_health(get(), &err) < 0)
				return error(err);
			return done();
		}
		expected<figures> try_stats() const noexcept
		{
			figures stats{};
			int rc;

			stats.struct_len = sizeof(stats);
			rc = ::stoup_stats(get(), &stats);
			if (rc < 0)
				return error(-rc, why(rc, "the attachment has no figures"));
			return stats;
		}
		expected<forking> try_prepare_fork() noexcept
		{
			::stoup_fork state;
			::stoup_error err;

			if (::stoup_fork_prepare(get(), &state, &err) < 0)
				return error(err);
			return forking(home_, state);
		}

		/* For the calls of stoup.h. */
		::stoup *get() const noexcept { return home_.get(); }

#ifdef __cpp_exceptions
		explicit client(zstring pool) : client(try_attach(pool).value()) {}
		client(zstring pool, const ::stoup_options &opt) : client(try_attach(pool, opt).value()) {}

		series_info find(zstring name) const { return try_find(name).value(); }
		template <class T> series<T> find(zstring name) const
		{
			return try_find<T>(name).value();
		}
		/* All series by name. */
		std::vector<series_info> list() const
		{
			std::uint64_t cnt = try_series_cnt().value();
			std::vector<series_info> all;

			all.reserve(cnt);
			for (std::uint64_t i = 0; i < cnt; i++)
				all.push_back(try_series_at(i).value());
			return all;
		}
		template <class T>
		cursor<T> scan(const series<T> &from, const range &part = whole()) const
		{
			return try_scan(from, part).value();
		}
		template <class T>
		cursor<T, way::backward> scan_backward(
			const series<T> &from, const range &part = whole()) const
		{
			return try_scan_backward(from, part).value();
		}
		template <class T>
		cursor<T> scan(
			const series<T> &from, const where<T> &asked, const range &part = whole()) const
		{
			return try_scan(from, asked, part).value();
		}
		template <class T>
		cursor<T, way::backward> scan_backward(
			const series<T> &from, const where<T> &asked, const range &part = whole()) const
		{
			return try_scan_backward(from, asked, part).value();
		}
		template <std::ranges::contiguous_range R,
			class T = typename std::ranges::range_value_t<R>::record_type>
		cursor<T> merge(const R &from, const range &part = whole()) const
		{
			return try_merge(from, part).value();
		}
		template <std::ranges::contiguous_range R,
			class T = typename std::ranges::range_value_t<R>::record_type>
		cursor<T, way::backward> merge_backward(const R &from, const range &part = whole()) const
		{
			return try_merge_backward(from, part).value();
		}
		template <class... T> merged<T...> merge(const range &part, const series<T> &...from) const
		{
			return try_merge(part, from...).value();
		}
		template <class... T>
			requires(sizeof...(T) > 0)
		merged<T...> merge(const series<T> &...from) const
		{
			return try_merge(whole(), from...).value();
		}
		template <class... T>
		merged<T...> merge_backward(const range &part, const series<T> &...from) const
		{
			return try_merge_backward(part, from...).value();
		}
		template <class B = ::stoup_bar_record, class T>
		stoup::bars<B> bars(
			const series<T> &from, const bars_spec &spec, const range &part = whole()) const
		{
			return try_bars<B>(from, spec, part).value();
		}
		/* As-of of many series at once. */
		template <std::ranges::input_range R,
			class T = typename std::ranges::range_value_t<R>::record_type>
		stoup::lookup<T> lookup(const R &from, const range &part = whole()) const
		{
			std::vector<cursor<T>> all;

			for (const series<T> &one : from)
				all.push_back(scan(one, part));
			return stoup::lookup<T>(std::move(all));
		}
		std::uint64_t count(const series_info &of, const range &part = whole()) const
		{
			return try_count(of, part).value();
		}
		extent estimate(const series_info &of, const range &part = whole()) const
		{
			return try_estimate(of, part).value();
		}
		bool wait(std::chrono::nanoseconds timeout) const { return try_wait(timeout).value(); }
		template <class T> array<T> array_of(const series<T> &from, const range &part = whole()) const
		{
			return try_array_of(from, part).value();
		}
		::stoup_instrument definition_at(zstring symbol, std::optional<time> at = std::nullopt) const
		{
			return try_definition_at(symbol, at).value();
		}
		bool refresh() { return try_refresh().value(); }
		void health() const { try_health().value(); }
		figures stats() const { return try_stats().value(); }
		forking prepare_fork() { return try_prepare_fork().value(); }
#endif

	private:
		client() noexcept = default;

		static expected<client> attach_with(const char *pool, const ::stoup_options *opt) noexcept
		{
			::stoup *handle;
			::stoup_error err;
			client made;

			if (::stoup_attach(pool, opt, &handle, &err) < 0)
				return error(err);
			if (!made.home_.own(handle))
				return error(ENOMEM, "no memory for the attachment");
			return made;
		}

		template <class T, way W>
		expected<cursor<T, W>> scan_with(const series<T> &from, const range &part,
			::stoup_filter *asked = nullptr) const noexcept
		{
			::stoup_range keys;
			::stoup_cursor *made;
			::stoup_error err;

			if (range_of(part, W == way::backward ? STOUP_BACKWARD : 0, &keys, &err) < 0 ||
				(asked ? ::stoup_scan_where(get(), &from.raw(), &keys, asked, &made, &err)
				       : ::stoup_scan(get(), &from.raw(), &keys, &made, &err)) < 0)
				return error(err);
			return cursor<T, W>(home_, made);
		}

		template <class T, way W, class R>
		expected<cursor<T, W>> merge_array(const R &from, const range &part) const noexcept
		{
			static_assert(std::is_same_v<std::ranges::range_value_t<R>, series<T>> &&
					      sizeof(series<T>) == sizeof(::stoup_series),
				"a merge takes series of one struct in one piece");
			::stoup_cursor *made;
			::stoup_error err;

			if (merge_raw(reinterpret_cast<const ::stoup_series *>(std::ranges::data(from)),
				    std::ranges::size(from), part, W == way::backward ? STOUP_BACKWARD : 0,
				    &made, &err) < 0)
				return error(err);
			return cursor<T, W>(home_, made);
		}
		template <class... T>
		expected<merged<T...>> merge_each(const range &part, std::uint32_t direction,
			const series<T> &...from) const noexcept
		{
			const ::stoup_series all[] = {from.raw()...};
			::stoup_cursor *made;
			::stoup_error err;

			if (merge_raw(all, sizeof...(T), part, direction, &made, &err) < 0)
				return error(err);
			return merged<T...>(cursor<std::byte>(home_, made));
		}
		int merge_raw(const ::stoup_series *from, std::size_t cnt, const range &part,
			std::uint32_t direction, ::stoup_cursor **ret, ::stoup_error *err) const noexcept
		{
			::stoup_range keys;
			int rc = range_of(part, direction, &keys, err);

			return rc < 0 ? rc : ::stoup_merge(get(), from, cnt, &keys, ret, err);
		}
		expected<extent> extent_of(const series_info &of, const range &part, int exact) const noexcept
		{
			::stoup_range keys;
			::stoup_error err;
			extent found;

			if (range_of(part, 0, &keys, &err) < 0 ||
				::stoup_count(get(), &of.raw(), &keys, exact, &found, &err) < 0)
				return error(err);
			return found;
		}

		/* Of the calls that give no text. */
		const char *why(std::int64_t rc, const char *text) const noexcept
		{
			return !get()         ? "no attachment: the client was moved from"
			       : rc == -ECHILD ? "the client belongs to the parent process: attach anew"
					       : text;
		}

		attachment home_{};
	};

	static std::string_view version() noexcept { return ::stoup_version(); }

private:
	static range whole() noexcept { return range(); }

	static int range_of(const range &part, std::uint32_t direction, ::stoup_range *ret,
		::stoup_error *err) noexcept
	{
		if ((part.from && *part.from == time()) || (part.to && *part.to == time()))
			return ::stoup_error_set(err, -EINVAL,
				"a range cannot begin or end at 1970-01-01T00:00:00Z itself: leave that end open, or "
				"take the nanosecond beside it");
		if (part.flags & STOUP_BACKWARD)
			return ::stoup_error_set(
				err, -EINVAL, "STOUP_BACKWARD is no flag of a range here: call scan_backward");
		*ret = {};
		ret->from_ns = part.from ? part.from->time_since_epoch().count() : 0;
		ret->to_ns = part.to ? part.to->time_since_epoch().count() : 0;
		ret->flags = part.flags | direction;
		ret->limit = part.limit;
		return 0;
	}

	static const char *hold_text(int rc) noexcept
	{
		switch (-rc) {
		case EINVAL:
			return "the bytes of the span are no longer held: hold it before the next call on its cursor";
		case EDQUOT:
			return "this process holds its share of the pool already: release a lease, or serve with a "
			       "larger --lease-bytes";
		case ECHILD:
			return "the span belongs to the parent process: prepare the fork, or attach anew";
		case ENOMEM:
			return "no memory for a lease";
		default:
			return "the span cannot be held";
		}
	}

	static constexpr std::uint32_t integer_code(std::size_t len, bool is_signed) noexcept
	{
		std::uint32_t code = len == 1 ? STOUP_TYPE_U8
				   : len == 2 ? STOUP_TYPE_U16
				   : len == 4 ? STOUP_TYPE_U32
					      : STOUP_TYPE_U64;

		return code + (is_signed ? STOUP_TYPE_I8 - STOUP_TYPE_U8 : 0);
	}

	/* Of the schemas that a struct overlays the one that the series has, or an error that names them. */
	static int require_schema(const ::stoup_series &from, std::span<const char *const> names,
		std::size_t record_len, ::stoup_error *err) noexcept
	{
		::stoup_error text{};
		const char *sep = "";

		for (const char *name : names)
			if (names.size() == 1 || std::strcmp(name, from.schema->name) == 0)
				return ::stoup_schema_require(&from, name, record_len, err);
		for (std::size_t i = 0; i < names.size(); i++) {
			::stoup_error_set(&text, -EINVAL, "%s%s%s", text.text, sep, names[i]);
			sep = i + 2 < names.size() ? ", " : " or ";
		}
		return ::stoup_error_set(err, -EINVAL, "%.120s has schema %s, not %.90s", from.name,
			from.schema->name, text.text);
	}

	static int require_field(const ::stoup_series &from, std::size_t record_len, const field &wanted,
		::stoup_error *err) noexcept
	{
		const ::stoup_require one{wanted.name, wanted.off, wanted.type};
		int rc = ::stoup_schema_require_fields(&from, record_len, &one, 1, err);
		const ::stoup_field *found;

		if (rc < 0)
			return rc;
		found = ::stoup_schema_field(from.schema, wanted.name);
		if (found->cnt != wanted.cnt)
			return ::stoup_error_set(err, -EINVAL,
				"%.100s: field %s has %u elements; the struct has %u", from.name, wanted.name,
				static_cast<unsigned>(found->cnt), static_cast<unsigned>(wanted.cnt));
		return 0;
	}

	static int require_messages(const ::stoup_series &from, ::stoup_error *err) noexcept
	{
		if (from.schema->flags & STOUP_SCHEMA_VARIABLE)
			return 0;
		return ::stoup_error_set(err, -EINVAL,
			"%.120s has records of schema %s, no messages: find it with their struct", from.name,
			from.schema->name);
	}

	template <class T> static int require(const ::stoup_series &from, ::stoup_error *err) noexcept
	{
		if constexpr (std::is_same_v<T, message>)
			return require_messages(from, err);
		else
			return require_records<T>(from, err);
	}

	template <class T>
	static int require_records(const ::stoup_series &from, ::stoup_error *err) noexcept
	{
		int rc = 0;

		static_assert(std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>,
			"a record is a plain struct of fields");
		static_assert(requires { sizeof(record<T>); },
			"say what the struct overlays: STOUP_RECORD(type, member, ...)");
		if constexpr (requires { record<T>::schemas; }) {
			rc = require_schema(from, record<T>::schemas, sizeof(T), err);
		} else {
			for (const field &wanted : record<T>::fields)
				if (rc == 0)
					rc = require_field(from, sizeof(T), wanted, err);
		}
		if (rc == 0 && alignof(T) > from.schema->align)
			rc = ::stoup_error_set(err, -EINVAL,
				"%.120s has records aligned to %u bytes, the struct needs %zu: ingest with a "
				"schema that says align",
				from.name, from.schema->align, alignof(T));
		return rc;
	}
};

/* ---- walks over documents -------------------------------------------------------------------------- */

class stoup::document::member {
public:
	/* Of an element empty. */
	std::string_view key;
	document value;
};

/* for (const auto &[key, value] : doc.inside()) ...; walk.broken() afterwards: it ended at bytes that are none. */
class stoup::document::walk {
public:
	class iterator {
	public:
		using iterator_concept = std::input_iterator_tag;
		using difference_type = std::ptrdiff_t;
		using value_type = member;

		const member &operator*() const noexcept { return home_->now_; }
		iterator &operator++() noexcept
		{
			home_->step();
			return *this;
		}
		void operator++(int) noexcept { home_->step(); }
		bool operator==(std::default_sentinel_t) const noexcept { return home_->rc_ <= 0; }

	private:
		friend class walk;
		explicit iterator(walk *home) noexcept : home_(home) {}
		walk *home_;
	};

	iterator begin() noexcept
	{
		if (!begun_)
			step();
		return iterator(this);
	}
	std::default_sentinel_t end() const noexcept { return {}; }
	bool broken() const noexcept { return rc_ < 0; }

private:
	friend class document;
	explicit walk(const ::stoup_doc &of) noexcept : now_{{}, document(of)}
	{
		if (::stoup_doc_iterate(&of, &iter_) < 0)
			iter_ = {};
	}
	void step() noexcept
	{
		::stoup_doc key{}, value{};

		begun_ = true;
		rc_ = ::stoup_doc_next(&iter_, &key, &value);
		if (rc_ > 0)
			now_ = {std::string_view(reinterpret_cast<const char *>(key.payload), key.payload_len),
				document(value)};
	}
	::stoup_doc_iter iter_;
	member now_;
	int rc_ = 0;
	bool begun_ = false;
};

inline stoup::document::walk stoup::document::inside() const noexcept
{
	return walk(doc_);
}

class stoup::filter::selection {
public:
	class iterator {
	public:
		using iterator_concept = std::input_iterator_tag;
		using difference_type = std::ptrdiff_t;
		using value_type = std::uint32_t;

		std::uint32_t operator*() const noexcept { return home_->found_[home_->at_]; }
		iterator &operator++() noexcept
		{
			home_->step();
			return *this;
		}
		void operator++(int) noexcept { home_->step(); }
		bool operator==(std::default_sentinel_t) const noexcept
		{
			return home_->at_ == home_->found_.size();
		}

	private:
		friend class selection;
		explicit iterator(selection *home) noexcept : home_(home) {}
		selection *home_;
	};

	iterator begin() noexcept { return iterator(this); }
	std::default_sentinel_t end() const noexcept { return {}; }
	/* Messages so far that are no documents. */
	std::uint64_t broken() const noexcept { return broken_; }

private:
	friend class filter;
	selection(const filter &asked, std::span<const message> among, std::span<std::uint32_t> room) noexcept
		: asked_(&asked), among_(among), room_(room)
	{
		found_ = asked_->select(among_, room_, 0, &broken_);
	}
	void step() noexcept
	{
		if (++at_ < found_.size() || found_.size() < room_.size())
			return;
		found_ = asked_->select(among_, room_, std::uint64_t{found_.back()} + 1, &broken_);
		at_ = 0;
	}
	const filter *asked_;
	std::span<const message> among_;
	std::span<std::uint32_t> room_;
	std::span<const std::uint32_t> found_;
	std::size_t at_ = 0;
	std::uint64_t broken_ = 0;
};

inline stoup::filter::selection stoup::filter::selected(
	std::span<const message> among, std::span<std::uint32_t> room) const noexcept
{
	return selection(*this, among, room);
}

#ifdef __cpp_exceptions
template <class T> class stoup::where<T>::selection {
public:
	class iterator {
	public:
		using iterator_concept = std::input_iterator_tag;
		using difference_type = std::ptrdiff_t;
		using value_type = std::uint32_t;

		std::uint32_t operator*() const noexcept { return home_->found_[home_->at_]; }
		iterator &operator++()
		{
			home_->step();
			return *this;
		}
		void operator++(int) { home_->step(); }
		bool operator==(std::default_sentinel_t) const noexcept
		{
			return home_->at_ == home_->found_.size();
		}

	private:
		friend class selection;
		explicit iterator(selection *home) noexcept : home_(home) {}
		selection *home_;
	};

	iterator begin() noexcept { return iterator(this); }
	std::default_sentinel_t end() const noexcept { return {}; }

private:
	friend class where;
	selection(const where &asked, std::span<const T> among, std::span<std::uint32_t> room)
		: asked_(&asked), among_(among), room_(room), found_(asked.select(among, room))
	{
	}
	void step()
	{
		if (++at_ < found_.size() || found_.size() < room_.size())
			return;
		found_ = asked_->select(among_, room_, std::uint64_t{found_.back()} + 1);
		at_ = 0;
	}
	const where *asked_;
	std::span<const T> among_;
	std::span<std::uint32_t> room_;
	std::span<const std::uint32_t> found_;
	std::size_t at_ = 0;
};

template <class T, stoup::way W>
inline constexpr bool std::ranges::enable_view<stoup::record_view<T, W>> = true;
/* Its iterators point to the cursor, which stays: what an algorithm finds may be looked at. */
template <class T, stoup::way W>
inline constexpr bool std::ranges::enable_borrowed_range<stoup::record_view<T, W>> = true;
#endif

/* ---- structs of one's own ---------------------------------------------------------------------- */

/* A misspelt member is then one line from gcc, not one for each of the thousand macros that make the list. */
#pragma GCC system_header

/* Say what a struct overlays, once, outside of any namespace. Each member is a field of the same name:
 *
 *      struct quote { std::int64_t ts, bid, ask; };
 *      STOUP_RECORD(quote, ts, bid, ask);
 *
 * A field whose name is no member's is given by STOUP_FIELD_AS in a list of one's own:
 *
 *      template <> struct stoup::record<quote> {
 *              static constexpr stoup::field fields[] = {
 *                      STOUP_FIELD(quote, ts), STOUP_FIELD_AS(quote, bid, "bid.px")};
 *      };
 *
 * The struct has the length of a record, fields that are left out included. */
#define STOUP_FIELD_AS(type, member, name)                                                         \
	stoup::field_of<decltype(type::member)>(name, offsetof(type, member))
#define STOUP_FIELD(type, member) STOUP_FIELD_AS(type, member, #member)
#define STOUP_RECORD(type, ...)                                                                    \
	template <> struct stoup::record<type> {                                                   \
		static constexpr stoup::field fields[] = {                                         \
			STOUP_DETAIL_EACH(STOUP_DETAIL_LIST(type, __VA_ARGS__))};                  \
	}

/* A list of any length: each round of EACH expands the tail that the one before left. */
#define STOUP_DETAIL_EACH(...)                                                                     \
	STOUP_DETAIL_4(STOUP_DETAIL_4(STOUP_DETAIL_4(STOUP_DETAIL_4(__VA_ARGS__))))
#define STOUP_DETAIL_4(...)                                                                        \
	STOUP_DETAIL_3(STOUP_DETAIL_3(STOUP_DETAIL_3(STOUP_DETAIL_3(__VA_ARGS__))))
#define STOUP_DETAIL_3(...)                                                                        \
	STOUP_DETAIL_2(STOUP_DETAIL_2(STOUP_DETAIL_2(STOUP_DETAIL_2(__VA_ARGS__))))
#define STOUP_DETAIL_2(...)                                                                        \
	STOUP_DETAIL_1(STOUP_DETAIL_1(STOUP_DETAIL_1(STOUP_DETAIL_1(__VA_ARGS__))))
#define STOUP_DETAIL_1(...) __VA_ARGS__
#define STOUP_DETAIL_NONE
#define STOUP_DETAIL_LIST(type, member, ...)                                                       \
	STOUP_FIELD(type, member)                                                                  \
	__VA_OPT__(, STOUP_DETAIL_AGAIN STOUP_DETAIL_NONE()(type, __VA_ARGS__))
#define STOUP_DETAIL_AGAIN() STOUP_DETAIL_LIST

/* ---- the structs of stoup_records.h -------------------------------------------------------------- */

#define STOUP_DETAIL_BUILTIN(type, ...)                                                            \
	template <> struct stoup::record<::type> {                                                 \
		static constexpr const char *schemas[] = {__VA_ARGS__};                            \
	}
STOUP_DETAIL_BUILTIN(stoup_mbo, "mbo");
STOUP_DETAIL_BUILTIN(stoup_trade, "trades");
STOUP_DETAIL_BUILTIN(stoup_mbp1, "mbp-1", "tbbo");
STOUP_DETAIL_BUILTIN(stoup_mbp10, "mbp-10");
STOUP_DETAIL_BUILTIN(stoup_bbo, "bbo-1s", "bbo-1m");
STOUP_DETAIL_BUILTIN(stoup_cmbp1, "cmbp-1", "tcbbo");
STOUP_DETAIL_BUILTIN(stoup_cbbo, "cbbo-1s", "cbbo-1m");
STOUP_DETAIL_BUILTIN(stoup_ohlcv, "ohlcv-1s", "ohlcv-1m", "ohlcv-1h", "ohlcv-1d", "ohlcv-eod");
STOUP_DETAIL_BUILTIN(stoup_status_msg, "status");
STOUP_DETAIL_BUILTIN(stoup_imbalance, "imbalance");
STOUP_DETAIL_BUILTIN(stoup_definition_v1, "definition-v1");
STOUP_DETAIL_BUILTIN(stoup_definition_v2, "definition-v2");
STOUP_DETAIL_BUILTIN(stoup_definition, "definition");
STOUP_DETAIL_BUILTIN(stoup_statistics_v1, "statistics-v1");
STOUP_DETAIL_BUILTIN(stoup_statistics, "statistics");
STOUP_DETAIL_BUILTIN(stoup_error_msg_v1, "error-v1");
STOUP_DETAIL_BUILTIN(stoup_error_msg, "error");
STOUP_DETAIL_BUILTIN(stoup_symbol_mapping_msg_v1, "symbol-mapping-v1");
STOUP_DETAIL_BUILTIN(stoup_symbol_mapping_msg, "symbol-mapping");
STOUP_DETAIL_BUILTIN(stoup_system_msg_v1, "system-v1");
STOUP_DETAIL_BUILTIN(stoup_system_msg, "system");
STOUP_DETAIL_BUILTIN(stoup_event64, "event64");
STOUP_DETAIL_BUILTIN(stoup_itch_mbo, "itch-mbo");
STOUP_DETAIL_BUILTIN(stoup_itch_trade, "itch-trade");
STOUP_DETAIL_BUILTIN(stoup_tick, "tick");
STOUP_DETAIL_BUILTIN(stoup_bar, "bar");
#undef STOUP_DETAIL_BUILTIN

#endif
