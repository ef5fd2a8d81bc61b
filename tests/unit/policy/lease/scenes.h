/*
 * Number of random scenes that a test plays. Under a sanitizer, where a scene takes five times as long, only the first fifth:
 * the build without a sanitizer covers the policy with all of them.
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
