/* Shared by the files that read a description: spec.c, spec_links.c and spec_mig.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sim_card_info;
struct spec;
struct spec_card;

/* The parser's position, for errors. */
struct spec_at {
	const char *origin;
	unsigned int line; /* 0: after the last line */
	char *error;
	size_t error_size;
};

/* Writes one line to at->error and returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int spec_fail(const struct spec_at *at, const char *format,
						    ...);

/* Set the keys nvlink and pcie of a card. */
int spec_set_nvlink(const struct spec_at *at, struct spec_card *card, const char *value);
int spec_set_pcie(const struct spec_at *at, struct spec_card *card, const char *value);

/*
 * Call when all cards are known. Connects the cards behind switches and checks that both ends of
 * each link name each other.
 */
int spec_finish_links(const struct spec_at *at, struct spec *spec);

/*
 * spec_set_mig sets the key mig of a card. spec_finish_mig adds an entry for each instance; call it
 * when all cards are known and linked.
 */
int spec_set_mig(const struct spec_at *at, struct spec_card *card, const char *value);
int spec_finish_mig(const struct spec_at *at, struct spec *spec);

/* Makes a UUID from seed and index, the same each time: sets uuid_bytes, and uuid with `prefix`. */
void spec_make_uuid(struct sim_card_info *info, const char *prefix, const char *seed,
		    uint32_t index);
