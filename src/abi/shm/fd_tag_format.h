/*
 * A tag on an open file stays with the file wherever its descriptor is sent. The library tags each descriptor of exported GPU
 * memory. By the tag, the processes of a tenant recognize the memory. Otherwise they could not, because all descriptors of the
 * driver refer to the same device file. The tag is a read lock of the open file description (fcntl(2)), which blocks nothing.
 * Its range begins at the memory's key, and its length is the memory's number of pages.
 *
 * /proc/PID/fdinfo shows the tag of a descriptor. /proc/locks shows all tags. A tag is there as long as the file is open: while
 * any process has a descriptor of it, or one is under way in a socket.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FD_TAG_PAGE (2ULL << 20)
#define FD_TAG_KEY_BITS 61 /* key and length must fit in a file offset */
/* A key is a random number. Its bits from here on are the index of the memory's device in the exporter's tenant, or REGION_HOST. */
#define FD_TAG_DEVICE_SHIFT 56
/*
 * Any user can make many locks, so readers read at most FD_TAG_LOCKS_MOST bytes of /proc/locks: some 12,000 locks, which took
 * 25 ms. They spend at most 1/FD_TAG_COST_PART of their time on it, except before an allocation is refused.
 */
#define FD_TAG_LOCKS_MOST (1U << 20)
#define FD_TAG_COST_PART 20

struct fd_tag {
	uint64_t key; /* never 0 */
	/* number of pages of FD_TAG_PAGE bytes; 0 for a pool or a multicast object */
	uint64_t pages;
};

static inline const char *fd_tag_number(const char *at, uint64_t *ret)
{
	*ret = 0;
	while (*at == ' ')
		at++;
	for (; *at >= '0' && *at <= '9'; at++)
		*ret = *ret * 10 + (uint64_t)(*at - '0');
	return at;
}

/*
 * Parses a tag. `line` begins at OFDLCK in "1: OFDLCK ADVISORY READ -1 00:06:142 START END", so START is its sixth word.
 * Returns false if the lock is none.
 */
static inline bool fd_tag_parse(const char *line, struct fd_tag *ret_tag)
{
	uint64_t start, end;

	for (int words = 0; words < 5; words++) {
		while (*line == ' ')
			line++;
		while (*line && *line != ' ' && *line != '\n')
			line++;
	}
	line = fd_tag_number(line, &start);
	fd_tag_number(line, &end);
	if (!start || end < start || start >> FD_TAG_KEY_BITS)
		return false;
	*ret_tag = (struct fd_tag){ .key = start, .pages = end - start };
	return true;
}
