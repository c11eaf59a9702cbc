/* Tokens and numbers of forgiving JSON: the part of the scanner that walks over text and keeps nothing.
 *
 * Each reader takes a position before the cursor's end and gives the one behind the token, or NULL: then `failed`
 * tells where the grammar broke, or is NULL when the text ended first. No byte at or behind the end is read.
 */
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RARE __attribute__((noinline, cold)) /* kept small, and out of the way */
#define MISSING INT64_MIN

typedef const uint8_t *Bytes;
typedef struct { Bytes at; int64_t length; } Span; /* at == NULL: absent */
typedef struct { Bytes end, failed; } Cursor;

static Bytes starve(Cursor *c) { c->failed = NULL; return NULL; }
static Bytes fail(Cursor *c, Bytes at) { c->failed = at; return NULL; }

/* ---- Sixteen bytes at a time ------------------------------------------------------------------------------- */

#if defined(__SSE2__)
typedef __m128i Lanes;
static inline Lanes load(Bytes p) { return _mm_loadu_si128((const __m128i *)p); }
static inline Lanes equal(Lanes v, char c) { return _mm_cmpeq_epi8(v, _mm_set1_epi8(c)); }
static inline Lanes either(Lanes a, Lanes b) { return _mm_or_si128(a, b); }
static inline Lanes above_space(Lanes v) { return _mm_cmpeq_epi8(_mm_max_epu8(v, _mm_set1_epi8(0x21)), v); }
static inline Lanes at_most_space(Lanes v) { return _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x20)), v); }
static inline Lanes lower(Lanes v) { return _mm_or_si128(v, _mm_set1_epi8(0x20)); }
static inline uint64_t bits(Lanes v) { return (unsigned)_mm_movemask_epi8(v); } /* one for each lane that is set */
#define LANES 16
#define LANE_BITS 1
#elif defined(__ARM_NEON) && defined(__aarch64__)
typedef uint8x16_t Lanes;
static inline Lanes load(Bytes p) { return vld1q_u8(p); }
static inline Lanes equal(Lanes v, char c) { return vceqq_u8(v, vdupq_n_u8((uint8_t)c)); }
static inline Lanes either(Lanes a, Lanes b) { return vorrq_u8(a, b); }
static inline Lanes above_space(Lanes v) { return vcgeq_u8(v, vdupq_n_u8(0x21)); }
static inline Lanes at_most_space(Lanes v) { return vcleq_u8(v, vdupq_n_u8(0x20)); }
static inline Lanes lower(Lanes v) { return vorrq_u8(v, vdupq_n_u8(0x20)); }
static inline uint64_t bits(Lanes v) { /* shifting right and narrowing gives four bits a lane, of which one is kept */
    uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(v), 4)), 0);
    return mask & 0x1111111111111111u;
}
#define LANES 16
#define LANE_BITS 4
#else
#define LANES 0 /* portable: the byte loops below do all the work */
#define LANE_BITS 1
#endif

static inline int lane(uint64_t mask) { return __builtin_ctzll(mask) / LANE_BITS; } /* the first one that is set */
#if LANES
static inline int first(Lanes v) { return bits(v) ? lane(bits(v)) : LANES; }
#endif

/* ---- Tokens ------------------------------------------------------------------------------------------------ */

static inline Bytes skip_space(Cursor *c, Bytes p) {
    if (LIKELY(p < c->end && *p > ' ')) return p;
    if (LIKELY(c->end - p > 1 && p[1] > ' ')) return p + 1;
#if LANES
    for (; c->end - p >= LANES; p += LANES) {
        int at = first(above_space(load(p)));
        if (LIKELY(at < LANES)) return p + at;
    }
#endif
    while (p < c->end && *p <= ' ') p++;
    return p < c->end ? p : starve(c);
}

/* p is at the opening quote. Any byte may stand in a string; a backslash hides the next one. */
static inline Bytes skip_string(Cursor *c, Bytes p) {
    Bytes end = c->end;
    for (p++; p < end;) {
#if LANES
        if (LIKELY(end - p >= LANES)) {
            Lanes v = load(p);
            int at = first(either(equal(v, '"'), equal(v, '\\')));
            p += at;
            if (at == LANES) continue;
        }
#endif
        if (*p == '"') return p + 1;
        if (UNLIKELY(*p == '\\')) {
            if (end - p < 2) break;
            p++;
        }
        p++;
    }
    return starve(c);
}

/* Quotes and brackets in the text from p to *next. */
static inline uint64_t brackets(Bytes p, Bytes end, Bytes *next) {
#if LANES
    if (LIKELY(end - p >= LANES)) {
        Lanes v = load(p), folded = lower(v); /* [ and { differ by one bit, as do ] and } */
        *next = p + LANES;
        return bits(either(equal(v, '"'), either(equal(folded, '{'), equal(folded, '}'))));
    }
#endif
    (void)end;
    *next = p + 1;
    return *p == '"' || (*p | 0x20) == '{' || (*p | 0x20) == '}';
}

/* p is at a bracket. Two counters instead of a stack: nesting costs nothing, and a lost bracket is noticed at
 * the next closing one of the other kind. */
static Bytes skip_nested(Cursor *c, Bytes p) {
    uint64_t open = 0; /* lists in the lower half, objects in the upper */
    for (Bytes next; p < c->end; p = next) {
        for (uint64_t found = brackets(p, c->end, &next); found; found &= found - 1) {
            Bytes at = p + lane(found);
            if (*at == '"') {
                next = skip_string(c, at);
                if (UNLIKELY(!next)) return NULL;
                break;
            }
            open += ((*at & 2u) - UINT64_C(1)) << (*at & 0x20); /* bit 1: an opening one; bit 5: an object's */
            if (UNLIKELY(open & 0x8000000080000000u)) return fail(c, at);
            if (!open) return at + 1;
        }
    }
    return starve(c);
}

static inline int ends_token(uint8_t c) { return c == ',' || c == '}' || c == ']' || c <= ' '; }

/* Any value; `inf`, `NaN` and other bare words count as values. */
static inline Bytes skip_value(Cursor *c, Bytes p) {
    if (*p == '"') return skip_string(c, p);
    if (*p == '[' || *p == '{') return skip_nested(c, p);
    Bytes q = p;
#if LANES
    if (LIKELY(c->end - q >= LANES)) {
        Lanes v = load(q);
        int at = first(either(either(equal(v, ','), equal(lower(v), '}')), at_most_space(v)));
        q += at;
        if (LIKELY(at < LANES)) return at ? q : fail(c, p);
    }
#endif
    while (q < c->end && !ends_token(*q)) q++;
    if (UNLIKELY(q == c->end)) return starve(c);
    return q > p ? q : fail(c, p);
}

/* A key's text; gives the position of its value. */
static inline Bytes read_key(Cursor *c, Bytes p, Span *key) {
    if (UNLIKELY(*p != '"')) return fail(c, p);
    Bytes q = skip_string(c, p);
    if (UNLIKELY(!q)) return NULL;
    *key = (Span){p + 1, q - p - 2};
    q = skip_space(c, q);
    if (UNLIKELY(!q)) return NULL;
    return LIKELY(*q == ':') ? skip_space(c, q + 1) : fail(c, q);
}

/* After a value: the position of the next key, or of the text behind the object with *closed set. */
static inline Bytes next_key(Cursor *c, Bytes p, int *closed) {
    p = skip_space(c, p);
    if (UNLIKELY(!p)) return NULL;
    if (*p == ',') {
        p = skip_space(c, p + 1);
        if (LIKELY(!p || *p != '}')) return p;
    }
    if (UNLIKELY(*p != '}')) return fail(c, p);
    *closed = 1;
    return p + 1;
}

/* A string's body, or nothing for other values. */
static inline Bytes read_string(Cursor *c, Bytes p, Span *body) {
    Bytes q = skip_value(c, p);
    if (LIKELY(q != NULL)) *body = *p == '"' ? (Span){p + 1, q - p - 2} : (Span){NULL, 0};
    return q;
}

static inline Bytes read_label(Cursor *c, Bytes p, Span *raw) {
    Bytes q = skip_value(c, p);
    if (LIKELY(q != NULL)) *raw = (Span){p, q - p};
    return q;
}

/* ---- Numbers ----------------------------------------------------------------------------------------------- */

static inline int is_digit(uint8_t c) { return (uint8_t)(c - '0') <= 9; }

/* The text p..q, quoted or not, times ten to the `scale`, cut toward zero. MISSING when it is not a number as a
 * whole or exceeds int64. Exact: the digits that survive the shift are at most 19. */
static int64_t decimal(Bytes p, Bytes q, int scale) {
    if (q - p >= 2 && *p == '"' && q[-1] == '"') p++, q--;
    int negative = p < q && *p == '-';
    p += negative;
    Bytes whole = p;
    while (p < q && is_digit(*p)) p++;
    Bytes point = p, digits_end = p;
    int64_t fraction = 0;
    if (p < q && *p == '.') {
        for (p++; p < q && is_digit(*p); p++) fraction++;
        digits_end = p;
    }
    if ((point - whole) + fraction == 0) return MISSING;
    int64_t exponent = 0;
    if (p < q && (*p == 'e' || *p == 'E')) {
        p++;
        int below = p < q && *p == '-';
        if (p < q && (*p == '-' || *p == '+')) p++;
        if (p == q) return MISSING;
        for (; p < q && is_digit(*p); p++)
            if (exponent < (1 << 30)) exponent = exponent * 10 + (*p - '0');
        if (exponent > (1 << 30)) exponent = 1 << 30;
        if (below) exponent = -exponent;
    }
    if (p != q) return MISSING;
    int64_t shift = exponent - fraction + scale;
    while (whole < digits_end && (*whole == '0' || *whole == '.')) whole++; /* leading zeros carry nothing */
    int64_t kept = shift + (digits_end - whole) - (whole <= point && point < digits_end); /* digits of the result */
    if (whole == digits_end || kept <= 0) return 0;
    if (kept > 19) return MISSING;
    uint64_t value = 0;
    for (int64_t i = 0; i < kept; i++) {
        if (whole < digits_end && *whole == '.') whole++;
        value = value * 10 + (whole < digits_end ? (uint64_t)(*whole++ - '0') : 0);
    }
    if (value > INT64_MAX) return MISSING; /* 19 digits fit uint64 */
    return negative ? -(int64_t)value : (int64_t)value;
}

/* The digits at p, of which the first eight count: how many there are, and their number. */
static inline int digits_at(Bytes p, uint64_t *number) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word;
    memcpy(&word, p, 8);
    word -= 0x3030303030303030u; /* what borrows, or carries below, is no digit, and falsifies only what comes after it */
    uint64_t others = (word | (word + 0x7676767676767676u)) & 0x8080808080808080u;
    int count = others ? __builtin_ctzll(others) / 8 : 8;
    word = count ? word << (64 - 8 * count) : 0; /* zeros in front */
    word = word * 10 + (word >> 8);              /* neighbours are added to numbers of two, four, eight digits */
    *number = ((word & 0x000000FF000000FFu) * 0x000F424000000064u + (word >> 16 & 0x000000FF000000FFu) * 0x0000271000000001u)
              >> 32;
#else
    int count = 0;
    for (*number = 0; count < 8 && is_digit(p[count]); count++) *number = *number * 10 + (uint64_t)(p[count] - '0');
#endif
    return count;
}

/* A value that should be a number; anything else is skipped over and gives MISSING. The common form is read in one pass:
 * up to 16 digits, which fit with three more, and a fraction of up to eight. */
static inline Bytes read_number(Cursor *c, Bytes p, int scale, int64_t *number) {
    static const uint64_t POWERS[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    int negative = *p == '-';
    Bytes q = p + negative;
    if (LIKELY(c->end - q > 32)) {
        uint64_t value, more;
        int count = digits_at(q, &value), places = 0;
        q += count;
        if (count == 8) {
            int second = digits_at(q, &more);
            value = value * POWERS[second] + more;
            q += second;
        }
        if (scale && *q == '.') {
            places = digits_at(q + 1, &more);
            q += 1 + places;
            int kept = places < scale ? places : scale;
            value = value * POWERS[kept] + (UNLIKELY(places > kept) ? more / POWERS[places - kept] : more);
            if (kept < scale) value *= POWERS[scale - kept];
        } else if (scale) {
            value *= POWERS[scale];
        }
        if (LIKELY(count && ends_token(*q))) {
            *number = UNLIKELY(value > INT64_MAX) ? MISSING : negative ? -(int64_t)value : (int64_t)value;
            return q;
        }
    }
    q = skip_value(c, p);
    if (LIKELY(q != NULL)) *number = decimal(p, q, scale);
    return q;
}

/* `[x, y, z]` in p..q, bare or inside a string; 0 when it is something else. */
static int triple(Bytes p, Bytes q, int64_t numbers[3]) {
    if (q - p >= 2 && *p == '"') p++, q--;
    if (q - p < 2 || *p != '[' || q[-1] != ']') return 0;
    q--;
    for (int i = 0; i < 3; i++) {
        Bytes start = p + 1, stop = start; /* behind the bracket or the comma */
        while (stop < q && *stop != ',') stop++;
        if ((stop == q) != (i == 2)) return 0;
        p = stop;
        while (start < stop && *start <= ' ') start++;
        while (start < stop && stop[-1] <= ' ') stop--;
        numbers[i] = decimal(start, stop, 0);
        if (numbers[i] == MISSING) return 0;
    }
    return 1;
}
