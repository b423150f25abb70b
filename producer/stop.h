/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - Ctrl-C in the middle of long work on a store.
 *
 *      SIGINT, SIGTERM, SIGHUP --> flag --asked between records and blocks--> -EINTR --> clean up --> the
 *      signal again, so that the shell sees what ended the program
 *
 * The first signal sets the flag; a second one ends the program at once, which costs nothing but files that
 * the next writer removes. Signals that were ignored (nohup) stay ignored.
 *
 * Concurrency: the flag may be asked for by any thread.
 */
#ifndef STOUP_PRODUCER_STOP_H
#define STOUP_PRODUCER_STOP_H

#include "shm/stoup_types.h"

/* Catch the signals. Once, by a command. */
void stoup_stop_catch(void);

/* Was the program asked to stop? 0; -EINTR with text. Cheap. */
int stoup_stop_asked(struct stoup_error *err);

/* End by the signal that was caught, if one was; else return. The last thing of a command. */
void stoup_stop_raise(void);

#endif
