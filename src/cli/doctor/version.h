/* Finds version numbers in the output of programs. Pure; thread safe. */
#pragma once

#include <stdbool.h>

#define VERSION_TEXT_MAX 64

/*
 * Writes the first number that contains a dot: "1.7.24" in "containerd github.com/x v1.7.24 88bf", "28.3.0" in "Docker version
 * 28.3.0, build 1". Returns false, and writes "", if there is none.
 */
bool version_find(const char *text, char ret[VERSION_TEXT_MAX]);
/*
 * Writes the first number that stands between spaces and contains a dot: "580.65.06" in "... x86_64  580.65.06  ...". Returns
 * false, and writes "", if there is none.
 */
bool version_find_word(const char *text, char ret[VERSION_TEXT_MAX]);
