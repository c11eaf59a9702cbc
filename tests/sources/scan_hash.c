/* The hash of the scanner's dictionaries, for test_scan_hash.py. */
#include "../../src/warpline/sources/kineto/scan.c"

uint32_t hash_of(uint64_t seed, uint64_t other_seed, const uint8_t *text, int64_t length) {
    return hash_bytes((Seed){seed, other_seed}, text, length);
}

uint64_t seed_of(const Scanner *s) { return s->seed.hash; }
