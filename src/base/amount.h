/* Writes amounts of memory for messages. Thread safe. */
#pragma once

#include <stdint.h>

struct amount {
	char text[32];
};

/* Returns a text for people, such as "4 GiB" or "517.5 MiB": rounded to four digits. */
struct amount amount(uint64_t bytes);
