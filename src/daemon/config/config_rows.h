#pragma once

#include <stddef.h>

#include "base/clock.h"

#define AT(field) offsetof(struct config, field)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define US(n) ((n)*NSEC_PER_USEC)
#define MS(n) ((n)*NSEC_PER_MSEC)
#define S(n) ((n)*NSEC_PER_SEC)
#define PCT(n) SETTINGS_PERCENT_BOUND(n)
