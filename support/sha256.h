/* SHA-256 (FIPS 180-4), for digests that are written down. */
#ifndef VISA_SUPPORT_SHA256_H
#define VISA_SUPPORT_SHA256_H

#include "support/arena.h"

/* 64 hexadecimal digits. */
const char *sha256_text(const unsigned char *bytes, size_t count, arena *a);

#endif
