/* Between the files that read a description: spec.c and spec_links.c. */
#ifndef ALLOT_SIM_SPEC_INSIDE_H
#define ALLOT_SIM_SPEC_INSIDE_H

#include "sim/server/spec.h"

/* Where a parser stands, for errors. */
struct spec_at {
	const char *origin;
	unsigned int line; /* 0: behind the last */
	char *error;
	size_t error_size;
};

/* Writes the one line; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int spec_fail(const struct spec_at *at, const char *format,
						    ...);

/* The keys nvlink and pcie of a card. */
int spec_set_nvlink(const struct spec_at *at, struct spec_card *card, const char *value);
int spec_set_pcie(const struct spec_at *at, struct spec_card *card, const char *value);

/* When all cards are known: who is behind a switch, and whether both ends name each other. */
int spec_finish_links(const struct spec_at *at, struct spec *spec);

#endif
