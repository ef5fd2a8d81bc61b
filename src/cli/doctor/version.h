/* Version numbers in what programs say of themselves. Pure; thread safe. */
#pragma once

#include <stdbool.h>

#define VERSION_TEXT_MAX 64

/*
 * The first number with a dot in it, with what is joined to it: "1.7.24" of "containerd github.com/x v1.7.24 88bf",
 * "28.3.0" of "Docker version 28.3.0, build 1". False, and "", where there is none.
 */
bool version_find(const char *text, char ret[VERSION_TEXT_MAX]);
/* The first that is a word of its own, of digits and dots alone: "580.65.06" of "... x86_64  580.65.06  ...". */
bool version_find_word(const char *text, char ret[VERSION_TEXT_MAX]);
