/*
 * Formats the daemon's reply to `tasks` as the tables of `allot tasks`. Pure: JSON in, text out.
 *
 *     CONTAINER     ENGINE  STATE     TASKS    MEMORY  GPU TIME   FROZEN  NAME
 *     3f4c1a0b9d8e  docker  waiting       1  80.0 MiB      0.3s     2.1s  web
 *
 *         PID  NAME     CONTAINER     TENANT    MEMORY  GPU TIME   LASTED  STATE
 *       12345  python3  3f4c1a0b9d8e  -       80.0 MiB      0.3s     4.0s  runs
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* MEMORY is the sum over all GPUs; for an ended task (process), the most that the task held. */
void tasks_table_write(const json_t *reply, FILE *out);
