/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - what libstoup shows to a linker.
 *
 * The build puts this file in front of every source of the library (-include). The library is
 * compiled with hidden visibility; a function is visible when a public header declares it, so that
 * no declaration needs an attribute and nothing is exported by forgetting one. libstoup.map then
 * lists the exports by name.
 *
 *      public headers --visible--> objects --libstoup.map--> symbols of libstoup.so
 *
 * Invariant: a symbol of libstoup.so is declared in a public header and named in libstoup.map.
 */
#ifndef STOUP_CONSUMER_EXPORT_H
#define STOUP_CONSUMER_EXPORT_H

#pragma GCC visibility push(default)
#include "shm/stoup_types.h"
#if __has_include("shm/stoup_records.h")
#include "shm/stoup_records.h"
#endif
#if __has_include("shm/stoup_doc.h")
#include "shm/stoup_doc.h"
#endif
#if __has_include("shm/stoup_text.h")
#include "shm/stoup_text.h"
#endif
#if __has_include("consumer/stoup.h")
#include "consumer/stoup.h"
#endif
#if __has_include("consumer/stoup_merge.h")
#include "consumer/stoup_merge.h"
#endif
#if __has_include("consumer/stoup_arrow.h")
#include "consumer/stoup_arrow.h"
#endif
#if __has_include("consumer/stoup_filter.h")
#include "consumer/stoup_filter.h"
#endif
#if __has_include("consumer/stoup_bars.h")
#include "consumer/stoup_bars.h"
#endif
#if __has_include("consumer/stoup_docs.h")
#include "consumer/stoup_docs.h"
#endif
#pragma GCC visibility pop

#endif
