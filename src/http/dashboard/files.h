/*
 * The files of a web page, compiled into the program by embed.py: files of the program itself, and those that allotd and
 * allot-scheduler share (src/http/dashboard/site). Constant; thread safe.
 */
#pragma once

#include <stddef.h>

struct page_file {
	const char *path; /* in a request: "/", "/page.css" */
	const char *type;
	const unsigned char *bytes;
	size_t size;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;
