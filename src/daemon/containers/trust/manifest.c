#include "daemon/containers/trust/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIRST_LINE "allot-manifest 1"
#define DIGITS (2 * SHA256_BYTES)

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hash(const char *text, uint8_t ret[SHA256_BYTES])
{
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);
		if (low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* sha256sum writes "<hash>  name" in text mode, "<hash> *name" in binary mode. */
static bool read_entry(const char *line, size_t length, struct manifest_entry *ret)
{
	if (length <= DIGITS + 2 || length - DIGITS - 2 >= sizeof(ret->name) ||
	    !read_hash(line, ret->sha256) || line[DIGITS] != ' ' || !strchr(" *", line[DIGITS + 1]))
		return false;
	memcpy(ret->name, line + DIGITS + 2, length - DIGITS - 2);
	ret->name[length - DIGITS - 2] = '\0';
	return !strchr(ret->name, '/');
}

static bool is_first_line(const char *line, size_t length)
{
	return length == strlen(FIRST_LINE) && !memcmp(line, FIRST_LINE, length);
}

int manifest_parse(const char *text, size_t size, struct manifest *ret, struct error *err)
{
	unsigned number = 0;
	ret->count = 0;
	if (strlen(text) != size)
		return error_set(err, EINVAL, "has a NUL at byte %zu: must be text", strlen(text));
	for (const char *line = text; *line; number++) {
		size_t length = strcspn(line, "\n");
		const char *next = line + length + (line[length] == '\n');
		if (number == 0 && !is_first_line(line, length))
			return error_set(err, EINVAL, "line 1: must be '" FIRST_LINE "'");
		if (number > 0 && length > 0 && *line != '#') {
			if (ret->count == MANIFEST_MAX_ENTRIES)
				return error_set(err, EINVAL, "line %u: more than %d files",
						 number + 1, MANIFEST_MAX_ENTRIES);
			if (!read_entry(line, length, &ret->entry[ret->count++]))
				return error_set(
					err, EINVAL,
					"line %u: must be a SHA-256 in 64 lower-case digits, "
					"two spaces and a file's name, as sha256sum prints it",
					number + 1);
		}
		line = next;
	}
	return ret->count ? 0 : error_set(err, EINVAL, "names no file");
}

bool manifest_has(const struct manifest *manifest, const char *name,
		  const uint8_t sha256[SHA256_BYTES])
{
	for (unsigned i = 0; i < manifest->count; i++)
		if (!strcmp(manifest->entry[i].name, name) &&
		    !memcmp(manifest->entry[i].sha256, sha256, SHA256_BYTES))
			return true;
	return false;
}

void manifest_format(const uint8_t sha256[SHA256_BYTES], char ret[2 * SHA256_BYTES + 1])
{
	for (unsigned i = 0; i < SHA256_BYTES; i++)
		snprintf(ret + (size_t)2 * i, 3, "%02x", sha256[i]);
}
