/* Base64 (RFC 4648, section 4), of certificates in a kubeconfig and patches in admission reviews. Pure; thread safe. */
#pragma once

/* The caller frees the text. -EINVAL if the input is not base64, or the result is empty or contains NUL; or -ENOMEM. */
int base64_decode(const char *base64, char **ret_text);

/* The caller frees the text; NULL if out of memory. */
char *base64_encode(const char *text);
