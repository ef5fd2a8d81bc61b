/*
 * Formats the daemon's reply to `list` as the table of `allot ps`. Pure: JSON in, text out. Values that
 * the daemon omitted are shown as "-".
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
 * Makes the table at most `width` columns wide if possible. To fit, drops WAITED, then CONTAINER, then the step columns, and
 * then cuts names (to 8 columns at least). With TABLE_UNLIMITED, for a pipe or a file, drops and cuts nothing.
 */
void table_write(const json_t *list, int width, FILE *out);
