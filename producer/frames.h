/* SPDX-License-Identifier: Apache-2.0 */
/* frames.h - import messages that stand behind their lengths, whatever they mean.
 *
 *      --frame-length u16be --frame-time 5:u64be:ns     [length][message: .....[time]...]
 *      --frame-length u32le --frame-time-first u64le:us [time][length][message]
 *          --> one series of schema `frames`: the message's bytes under its time
 *
 * The length counts the message alone. Times are counts since 1970.
 *
 * Concurrency: one import is one thread's.
 * Limits: messages of STOUP_MESSAGE_LEN_CAP bytes (stoup_types.h).
 */
#ifndef STOUP_PRODUCER_FRAMES_H
#define STOUP_PRODUCER_FRAMES_H

#include "producer/input.h"
#include "producer/sink.h"

/* An integer as it lies in the file. */
struct stoup_frame_int {
	uint8_t len; /* bytes: 1 (lengths only), 2, 4, 8; 0: not given */
	uint8_t is_big;
};

struct stoup_frames_options {
	const char *series; /* required */
	struct stoup_frame_int length;
	struct stoup_frame_int time;
	uint64_t unit_ns;  /* of the time */
	uint32_t time_off; /* in the message */
	int is_time_first; /* before the length instead */
	int allow_partial;
};

/* Set "frame-length", "frame-time" or "frame-time-first". 0; -ENOENT for another name, -EINVAL with text. */
int stoup_frames_option(struct stoup_frames_options *options, const char *name, const char *value,
	struct stoup_error *err);

/* Put the messages of an open input into `sink`. 0, or a negative errno with a text that names file and
 * offset: -EINVAL for options that lack, -EMSGSIZE for a message that is too long, -EBADMSG for one without
 * its time, -ERANGE for a time that is none, -ENODATA for a file that is cut. Blocks. */
int stoup_ingest_frames(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_frames_options *options, struct stoup_error *err);

#endif
