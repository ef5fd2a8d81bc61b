/*
 * A page's files, which are part of the program: a program's own and those that both have (src/http/dashboard/site), as embed.py
 * writes them down. Constant; thread safe.
 */
#pragma once

#include <stddef.h>

struct page_file {
	const char *path; /* as it is asked for: "/", "/page.css" */
	const char *type; /* its Content-Type */
	const unsigned char *bytes;
	size_t size;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;
