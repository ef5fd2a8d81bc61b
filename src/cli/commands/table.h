/*
 * What `allot ps` shows, from what the daemon lists. Pure: JSON in, text out. Values that the daemon
 * left out are shown as "-".
 *
 *     GPU 0: NVIDIA H200, 139.8 GiB, 3.7 GiB used, 98 % busy
 *
 *                            MEMORY             COMPUTE %
 *     TENANT  GPU  STATE      ASKED      GOT    ASKED  LIMIT  1s    60s   REFUSED  WAITED
 *     a         0  running  4.0 GiB  3.2 GiB       45     45  45.1  44.9        0    2.1s
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#define TABLE_UNLIMITED INT_MAX

/*
 * Writes the table to out, at most `width` columns wide where that can be: WAITED is left out first,
 * then CONTAINER, then names are cut, to 8 columns at least. TABLE_UNLIMITED: nothing is left out or
 * cut, for a pipe or a file.
 */
void table_write(const json_t *list, int width, FILE *out);
