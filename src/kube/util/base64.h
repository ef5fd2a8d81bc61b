/*
 * Encodes and decodes Base64 (RFC 4648, section 4). kubeconfig files use it for certificates, and admission reviews for
 * patches. Pure; thread safe.
 */
#pragma once

/*
 * Decodes to a text, which the caller frees. Returns -EINVAL if the input is not base64, or the
 * result is empty or contains NUL; or -ENOMEM.
 */
int base64_decode(const char *base64, char **ret_text);

/* Returns the encoded text, which the caller frees, or NULL if out of memory. */
char *base64_encode(const char *text);
