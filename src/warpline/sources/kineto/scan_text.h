/* Tokens and numbers of forgiving JSON: the part of the scanner that walks over text and keeps nothing.
 *
 * Each reader takes a position before the cursor's end and gives the one behind the token, or NULL: then `failed`
 * tells where the grammar broke, or is NULL when the text ended first. No byte at or behind the end is read.
 */
#include <stdint.h>
#include <string.h>

#define MISSING INT64_MIN

typedef const uint8_t *Bytes;
typedef struct { Bytes at; int64_t length; } Span; /* at == NULL: absent */
typedef struct { Bytes end, failed; } Cursor;

static Bytes starve(Cursor *c) { c->failed = NULL; return NULL; }
static Bytes fail(Cursor *c, Bytes at) { c->failed = at; return NULL; }

/* ---- Tokens ------------------------------------------------------------------------------------------------ */

static inline Bytes skip_space(Cursor *c, Bytes p) {
    while (p < c->end && *p <= ' ') p++;
    return p < c->end ? p : starve(c);
}

/* p is at the opening quote. Any byte may stand in a string; a backslash hides the next one. */
static inline Bytes skip_string(Cursor *c, Bytes p) {
    Bytes end = c->end;
    for (p++; p < end;) {
        if (*p == '"') return p + 1;
        if (*p == '\\') {
            if (end - p < 2) break;
            p++;
        }
        p++;
    }
    return starve(c);
}

/* p is at a bracket. Two counters instead of a stack: nesting costs nothing, and a lost bracket is noticed at
 * the next closing one of the other kind. */
static Bytes skip_nested(Cursor *c, Bytes p) {
    int64_t lists = 0, objects = 0;
    while (p < c->end) {
        switch (*p) {
        case '"':
            p = skip_string(c, p);
            if (!p) return NULL;
            continue;
        case '[': lists++; break;
        case '{': objects++; break;
        case ']': lists--; break;
        case '}': objects--; break;
        default: p++; continue;
        }
        if (lists < 0 || objects < 0) return fail(c, p);
        p++;
        if (!lists && !objects) return p;
    }
    return starve(c);
}

static inline int ends_token(uint8_t c) { return c == ',' || c == '}' || c == ']' || c <= ' '; }

/* Any value; `inf`, `NaN` and other bare words count as values. */
static inline Bytes skip_value(Cursor *c, Bytes p) {
    if (*p == '"') return skip_string(c, p);
    if (*p == '[' || *p == '{') return skip_nested(c, p);
    Bytes q = p;
    while (q < c->end && !ends_token(*q)) q++;
    if (q == c->end) return starve(c);
    return q > p ? q : fail(c, p);
}

/* A key's text; gives the position of its value. */
static inline Bytes read_key(Cursor *c, Bytes p, Span *key) {
    if (*p != '"') return fail(c, p);
    Bytes q = skip_string(c, p);
    if (!q) return NULL;
    *key = (Span){p + 1, q - p - 2};
    q = skip_space(c, q);
    if (!q) return NULL;
    return (*q == ':') ? skip_space(c, q + 1) : fail(c, q);
}

/* After a value: the position of the next key, or of the text behind the object with *closed set. */
static inline Bytes next_key(Cursor *c, Bytes p, int *closed) {
    p = skip_space(c, p);
    if (!p) return NULL;
    if (*p == ',') {
        p = skip_space(c, p + 1);
        if (!p || *p != '}') return p;
    }
    if (*p != '}') return fail(c, p);
    *closed = 1;
    return p + 1;
}

/* A string's body, or nothing for other values. */
static inline Bytes read_string(Cursor *c, Bytes p, Span *body) {
    Bytes q = skip_value(c, p);
    if (q != NULL) *body = *p == '"' ? (Span){p + 1, q - p - 2} : (Span){NULL, 0};
    return q;
}

static inline Bytes read_label(Cursor *c, Bytes p, Span *raw) {
    Bytes q = skip_value(c, p);
    if (q != NULL) *raw = (Span){p, q - p};
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

/* A value that should be a number; anything else is skipped over and gives MISSING. */
static inline Bytes read_number(Cursor *c, Bytes p, int scale, int64_t *number) {
    Bytes q = skip_value(c, p);
    if (q != NULL) *number = decimal(p, q, scale);
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
