/* Between the files that read a description: spec.c, spec_links.c and spec_mig.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sim_card_info;
struct spec;
struct spec_card;

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

/* The key mig of a card; and, when all cards are known and linked, an entry for each instance. */
int spec_set_mig(const struct spec_at *at, struct spec_card *card, const char *value);
int spec_finish_mig(const struct spec_at *at, struct spec *spec);

/* A UUID made of a text, the same each time: its bytes, and its text behind `prefix`. */
void spec_make_uuid(struct sim_card_info *info, const char *prefix, const char *seed,
		    uint32_t index);
