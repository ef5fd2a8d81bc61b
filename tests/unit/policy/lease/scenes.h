/*
 * How many scenes of chance a test plays. Under a sanitizer, where one takes five times as long, the first fifth of them: what
 * all of them say of the policy, the unit tests have said without it.
 */
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SCENES_UNDER_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SCENES_UNDER_SANITIZER
#endif

#ifdef SCENES_UNDER_SANITIZER
#define SCENES(count) ((count) / 5)
#else
#define SCENES(count) (count)
#endif
