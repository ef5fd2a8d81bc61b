/* Captures what the code under test writes to stderr, such as its log. */
#pragma once

#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

struct captured_log {
	FILE *file;
	int stderr_copy;
};

static inline struct captured_log captured_log_begin(void)
{
	struct captured_log l = { .file = tmpfile(), .stderr_copy = dup(STDERR_FILENO) };

	assert_non_null(l.file);
	assert_int_equal(dup2(fileno(l.file), STDERR_FILENO), STDERR_FILENO);
	return l;
}

/* Ends the capture, and returns how many lines contain `word`. */
static inline unsigned captured_log_end(struct captured_log *l, const char *word)
{
	char line[1024];
	unsigned count = 0;

	dup2(l->stderr_copy, STDERR_FILENO);
	close(l->stderr_copy);
	rewind(l->file);
	while (fgets(line, sizeof(line), l->file))
		count += strstr(line, word) != NULL;
	fclose(l->file);
	return count;
}
