/* SPDX-License-Identifier: Apache-2.0 */
/* importer_binary.h - entries of the table of importers (importer.h) for binary feeds: ITCH 5.0,
 * Dukascopy's bi5, and messages behind their lengths.
 *
 * Concurrency: immutable.
 */
#ifndef STOUP_PRODUCER_IMPORTER_BINARY_H
#define STOUP_PRODUCER_IMPORTER_BINARY_H

#include "producer/importer.h"

extern const struct stoup_importer stoup_importer_itch;
extern const struct stoup_importer stoup_importer_bi5;
extern const struct stoup_importer stoup_importer_frames;

#endif
