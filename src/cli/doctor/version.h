/* Finds version numbers in the output of programs. Pure; thread safe. */
#pragma once

#include <stdbool.h>

#define VERSION_TEXT_MAX 64

/* Writes the first number with a dot: "1.7.24" in "containerd github.com/x v1.7.24 88bf"; "" and false if none. */
bool version_find(const char *text, char ret[VERSION_TEXT_MAX]);
/* Like version_find(), for a number between spaces: "580.65.06" in "... x86_64  580.65.06  ...". */
bool version_find_word(const char *text, char ret[VERSION_TEXT_MAX]);
