/* Base64 (RFC 4648, section 4), as kubeconfig holds its certificates and admission its patches. Pure; thread safe. */
#pragma once

/* A text without NUL inside, to be freed. -EINVAL: it is no base64, or no text; -ENOMEM. */
int base64_decode(const char *base64, char **ret_text);

/* To be freed. NULL: no memory. */
char *base64_encode(const char *text);
