/*
 * What `allot tasks` shows, from what the daemon tells. Pure: JSON in, text out.
 *
 *     CONTAINER     ENGINE  STATE     TASKS    MEMORY  GPU TIME  FROZEN
 *     3f4c1a0b9d8e  docker  waiting       1  80.0 MiB      0.3s    2.1s
 *
 *         PID  NAME     CONTAINER     TENANT    MEMORY  GPU TIME   LASTED  ENDED
 *       12345  python3  3f4c1a0b9d8e  -       80.0 MiB      0.3s     4.0s
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Memory is of all cards together; of a task that has ended, the most that it held. */
void tasks_table_write(const json_t *reply, FILE *out);
