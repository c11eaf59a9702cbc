/* Kineto (Chrome trace) JSON -> columns of events.
 *
 * A forgiving scanner for one job: it walks the array of events, keeps the keys that every analysis needs and
 * the arguments in the caller's table, and remembers where the rest of the arguments lie. An event that breaks
 * the grammar is skipped, and scanning goes on at the next text that looks like an event: profilers write
 * unescaped quotes, raw newlines and `inf`, and one bad event must not cost the file.
 *
 * `tolerant.py` is the same parser in Python; the tests hold the two together, so a rule is changed in both.
 *
 * The text is given in windows. No byte at or behind a window's end is ever read, nothing of a window is kept
 * after the call (strings are copied into arenas), and there is no global state: one Scanner per thread.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { VERSION = 1 };                                               /* of this file's interface; see native.py */
enum { MORE, LIMIT, DONE, TRUNCATED, NO_MEMORY = -1, TOO_MANY = -2 }; /* what scan_feed returns */
enum { INTEGER, TRIPLE, TEXT };                                     /* kinds of arguments; events.py, Field */
enum { CATEGORIES, NAMES, LABELS, TEXTS, DICTIONARIES };
enum { PHASE, CATEGORY, NAME, PROCESS, THREAD, TIME, DURATION, FLOW, ARGS_OFFSET, ARGS_LENGTH, COLUMNS };
static const uint8_t WIDTHS[COLUMNS] = {1, 4, 4, 4, 4, 8, 8, 8, 8, 4};

#define MISSING INT64_MIN
#ifndef EVENT_LIMIT                      /* the tests build with smaller limits */
#define EVENT_LIMIT ((int64_t)64 << 20)  /* a longer event is malformed: an unclosed bracket must not eat the file */
#define WASTE_LIMIT ((int64_t)256 << 20) /* bytes that may be read twice for malformed events; see scan_feed */
#endif
#define RESYNC_SPACE 255                 /* white space that a resynchronisation looks through */
#define RESYNC_KEEP 2048                 /* longest text that it looks at, rounded up */
#define MAX_FIELDS 64                    /* one bit each in Event.present */
#define FIELD_TABLE 256

typedef const uint8_t *Bytes;
typedef struct { Bytes at; int64_t length; } Span; /* at == NULL: absent */

/* Strings by code, in order of first appearance, back to back in one arena. */
typedef struct {
    uint8_t *arena;
    uint64_t *ends; /* string i is arena[ends[i - 1] .. ends[i]), the first one from 0 */
    struct { uint32_t hash; int32_t code; } *table; /* open addressing; code is one more than the string's, 0: free */
    uint64_t arena_size, count, capacity, table_size;
} Dictionary;

typedef struct {
    char *key;
    uint32_t key_length, kind;
    uint32_t *rows;
    int64_t *values; /* one a row, three for a TRIPLE */
    uint64_t count, capacity;
} Field;

typedef struct {
    Span category, name, process, thread, args;
    int64_t time, duration, flow;
    uint64_t present; /* bit i: field i has a value in `numbers` or `texts` */
    uint8_t phase;
} Event;

typedef struct {
    uint64_t count, capacity;
    void *columns[COLUMNS];
    Dictionary dictionaries[DICTIONARIES];
    Field fields[MAX_FIELDS];
    uint32_t field_count;
    uint8_t field_table[FIELD_TABLE]; /* hash of a key -> one more than its field, 0: free */
    int64_t skipped, first_skipped, waste;
    int resynchronising, error;
    /* The event being read. It is filed only when it is complete, so a malformed one leaves no trace. */
    Event event;
    int64_t numbers[MAX_FIELDS][3];
    Span texts[MAX_FIELDS];
    Bytes end, failed; /* where reading must stop; where the grammar broke, NULL when the text ended first */
} Scanner;

static Bytes starve(Scanner *s) { s->failed = NULL; return NULL; }
static Bytes fail(Scanner *s, Bytes at) { s->failed = at; return NULL; }

/* ---- Sixteen bytes at a time ------------------------------------------------------------------------------- */

#if defined(__SSE2__)
typedef __m128i Lanes;
static inline Lanes load(Bytes p) { return _mm_loadu_si128((const __m128i *)p); }
static inline Lanes equal(Lanes v, char c) { return _mm_cmpeq_epi8(v, _mm_set1_epi8(c)); }
static inline Lanes either(Lanes a, Lanes b) { return _mm_or_si128(a, b); }
static inline Lanes above_space(Lanes v) { return _mm_cmpeq_epi8(_mm_max_epu8(v, _mm_set1_epi8(0x21)), v); }
static inline Lanes lower(Lanes v) { return _mm_or_si128(v, _mm_set1_epi8(0x20)); }
static inline int first(Lanes v) { /* the first lane set, 16 when none is */
    int mask = _mm_movemask_epi8(v);
    return mask ? __builtin_ctz((unsigned)mask) : 16;
}
#define LANES 16
#elif defined(__ARM_NEON) && defined(__aarch64__)
typedef uint8x16_t Lanes;
static inline Lanes load(Bytes p) { return vld1q_u8(p); }
static inline Lanes equal(Lanes v, char c) { return vceqq_u8(v, vdupq_n_u8((uint8_t)c)); }
static inline Lanes either(Lanes a, Lanes b) { return vorrq_u8(a, b); }
static inline Lanes above_space(Lanes v) { return vcgeq_u8(v, vdupq_n_u8(0x21)); }
static inline Lanes lower(Lanes v) { return vorrq_u8(v, vdupq_n_u8(0x20)); }
static inline int first(Lanes v) { /* four bits a lane: shifting right and narrowing is NEON's movemask */
    uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(v), 4)), 0);
    return mask ? __builtin_ctzll(mask) >> 2 : 16;
}
#define LANES 16
#else
#define LANES 0 /* portable: the byte loops below do all the work */
#endif

/* ---- Tokens: each takes a position before s->end and gives the one behind the token, or NULL ---------------- */

static inline Bytes skip_space(Scanner *s, Bytes p) {
    if (LIKELY(p < s->end && *p > ' ')) return p;
    if (LIKELY(s->end - p > 1 && p[1] > ' ')) return p + 1;
#if LANES
    for (; s->end - p >= LANES; p += LANES) {
        int at = first(above_space(load(p)));
        if (LIKELY(at < LANES)) return p + at;
    }
#endif
    while (p < s->end && *p <= ' ') p++;
    return p < s->end ? p : starve(s);
}

/* p is at the opening quote. Any byte may stand in a string; a backslash hides the next one. */
static inline Bytes skip_string(Scanner *s, Bytes p) {
    Bytes end = s->end;
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
    return starve(s);
}

/* p is at a bracket. Two counters instead of a stack: nesting costs nothing, and a lost bracket is noticed at
 * the next closing one of the other kind. */
static Bytes skip_nested(Scanner *s, Bytes p) {
    Bytes end = s->end;
    int64_t lists = 0, objects = 0;
    while (p < end) {
#if LANES
        if (LIKELY(end - p >= LANES)) {
            Lanes v = load(p), folded = lower(v); /* [ and { differ by one bit, as do ] and } */
            int at = first(either(equal(v, '"'), either(equal(folded, '{'), equal(folded, '}'))));
            p += at;
            if (at == LANES) continue;
        }
#endif
        switch (*p) {
        case '"':
            p = skip_string(s, p);
            if (!p) return NULL;
            continue;
        case '[': lists++; break;
        case '{': objects++; break;
        case ']': lists--; break;
        case '}': objects--; break;
        default: p++; continue;
        }
        if (UNLIKELY(lists < 0 || objects < 0)) return fail(s, p);
        p++;
        if (lists == 0 && objects == 0) return p;
    }
    return starve(s);
}

static inline int ends_token(uint8_t c) { return c == ',' || c == '}' || c == ']' || c <= ' '; }

/* Any value; `inf`, `NaN` and other bare words count as values. */
static inline Bytes skip_value(Scanner *s, Bytes p) {
    if (*p == '"') return skip_string(s, p);
    if (*p == '[' || *p == '{') return skip_nested(s, p);
    Bytes q = p;
    while (q < s->end && !ends_token(*q)) q++;
    if (UNLIKELY(q == s->end)) return starve(s);
    return q > p ? q : fail(s, p);
}

/* A key's text; gives the position of its value. */
static inline Bytes read_key(Scanner *s, Bytes p, Span *key) {
    if (UNLIKELY(*p != '"')) return fail(s, p);
    Bytes q = skip_string(s, p);
    if (UNLIKELY(!q)) return NULL;
    *key = (Span){p + 1, q - p - 2};
    q = skip_space(s, q);
    if (UNLIKELY(!q)) return NULL;
    return LIKELY(*q == ':') ? skip_space(s, q + 1) : fail(s, q);
}

/* After a value: the position of the next key, or of the text behind the object with *closed set. */
static inline Bytes next_key(Scanner *s, Bytes p, int *closed) {
    p = skip_space(s, p);
    if (UNLIKELY(!p)) return NULL;
    if (*p == ',') {
        p = skip_space(s, p + 1);
        if (LIKELY(!p || *p != '}')) return p;
    }
    if (UNLIKELY(*p != '}')) return fail(s, p);
    *closed = 1;
    return p + 1;
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

/* A value that should be a number; anything else is skipped over and gives MISSING. The common forms are read
 * in one pass: up to 16 digits, which fit with three more, and a fraction of any length. */
static inline Bytes read_number(Scanner *s, Bytes p, int scale, int64_t *number) {
    Bytes q = p, end = s->end;
    int negative = *q == '-';
    uint64_t value = 0;
    q += negative;
    Bytes digits = q;
    while (q < end && is_digit(*q)) value = value * 10 + (uint64_t)(*q++ - '0');
    if (LIKELY(q > digits && q - digits <= 16)) {
        int places = 0;
        if (q < end && *q == '.')
            for (q++; q < end && is_digit(*q); q++)
                if (places < scale) value = value * 10 + (uint64_t)(*q - '0'), places++;
        for (; places < scale; places++) value *= 10;
        if (LIKELY(q < end && ends_token(*q))) {
            *number = UNLIKELY(value > INT64_MAX) ? MISSING : negative ? -(int64_t)value : (int64_t)value;
            return q;
        }
    }
    q = skip_value(s, p);
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

/* ---- Dictionaries ------------------------------------------------------------------------------------------ */

static inline uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u; /* 2^64 over the golden ratio: spreads every bit upward */
    return hash ^ hash >> 29;                   /* and the upper ones down again */
}

static inline uint32_t hash_bytes(Bytes p, int64_t length) {
    uint64_t hash = (uint64_t)length, word = 0;
    if (length < 8) {
        for (int64_t i = 0; i < length; i++) word = word << 8 | p[i];
        return (uint32_t)mix(hash, word);
    }
    for (; length > 8; p += 8, length -= 8) {
        memcpy(&word, p, 8);
        hash = mix(hash, word);
    }
    memcpy(&word, p + length - 8, 8); /* the last eight, some of them for the second time */
    return (uint32_t)mix(hash, word);
}

/* Makes room for `needed` elements of `width` bytes, at least doubling; 0 when memory is short. */
static int reserve(void *array, uint64_t *capacity, uint64_t needed, size_t width) {
    if (LIKELY(needed <= *capacity)) return 1;
    uint64_t larger = *capacity * 2 > needed ? *capacity * 2 : needed;
    if (larger > SIZE_MAX / width) return 0;
    void *old, *moved;
    memcpy(&old, array, sizeof old);
    moved = realloc(old, larger * width);
    if (!moved) return 0;
    memcpy(array, &moved, sizeof moved);
    *capacity = larger;
    return 1;
}

static int grow_table(Dictionary *d) {
    uint64_t size = d->table_size ? d->table_size * 4 : 1024;
    void *memory = calloc(size, sizeof *d->table);
    if (!memory) return 0;
    Dictionary larger = *d;
    larger.table = memory;
    for (uint64_t i = 0; i < d->table_size; i++) {
        if (!d->table[i].code) continue;
        uint64_t slot = d->table[i].hash & (size - 1);
        while (larger.table[slot].code) slot = (slot + 1) & (size - 1);
        larger.table[slot] = d->table[i];
    }
    free(d->table);
    d->table = larger.table;
    d->table_size = size;
    return 1;
}

static inline Span string_of(const Dictionary *d, uint64_t code) {
    uint64_t start = code ? d->ends[code - 1] : 0;
    return (Span){d->arena + start, (int64_t)(d->ends[code] - start)};
}

/* The code of a string, given a new one if need be; -1 and s->error when there is no room. */
static int32_t intern(Scanner *s, int which, Span text) {
    Dictionary *d = &s->dictionaries[which];
    if (UNLIKELY(d->count * 2 >= d->table_size) && !grow_table(d)) return s->error = NO_MEMORY, -1;
    uint32_t hash = hash_bytes(text.at, text.length);
    uint64_t slot = hash & (d->table_size - 1);
    for (; d->table[slot].code; slot = (slot + 1) & (d->table_size - 1)) {
        if (d->table[slot].hash != hash) continue;
        Span known = string_of(d, (uint64_t)d->table[slot].code - 1);
        if (known.length == text.length && !memcmp(known.at, text.at, (size_t)text.length)) return d->table[slot].code - 1;
    }
    if (d->count >= INT32_MAX - 1) return s->error = TOO_MANY, -1;
    uint64_t start = d->count ? d->ends[d->count - 1] : 0, end = start + (uint64_t)text.length;
    if (!reserve(&d->ends, &d->capacity, d->count + 1, sizeof *d->ends) ||
        !reserve(&d->arena, &d->arena_size, end + 1, 1)) /* + 1: the arena of an empty string exists */
        return s->error = NO_MEMORY, -1;
    memcpy(d->arena + start, text.at, (size_t)text.length);
    d->ends[d->count++] = end;
    d->table[slot].hash = hash;
    d->table[slot].code = (int32_t)d->count;
    return (int32_t)d->count - 1;
}

/* ---- Filing events ----------------------------------------------------------------------------------------- */

static int reserve_events(Scanner *s, uint64_t needed) {
    if (LIKELY(needed <= s->capacity)) return 1;
    if (needed >= UINT32_MAX) return s->error = TOO_MANY, 0; /* rows are uint32 */
    uint64_t capacity = s->capacity;
    for (int i = 0; i < COLUMNS; i++) {
        capacity = s->capacity; /* all columns grow alike; a failure leaves some larger than needed */
        if (!reserve(&s->columns[i], &capacity, needed < 4096 ? 4096 : needed, WIDTHS[i])) return s->error = NO_MEMORY, 0;
    }
    s->capacity = capacity;
    return 1;
}

static int reserve_field(Scanner *s, Field *field, uint64_t needed) {
    if (LIKELY(needed <= field->capacity)) return 1;
    uint64_t rows = field->capacity, values = field->capacity;
    if (needed < 256) needed = 256;
    if (!reserve(&field->rows, &rows, needed, sizeof *field->rows) ||
        !reserve(&field->values, &values, needed, sizeof *field->values * (field->kind == TRIPLE ? 3 : 1)))
        return s->error = NO_MEMORY, 0;
    field->capacity = rows;
    return 1;
}

#define COLUMN(type, index) ((type *)s->columns[index])
#define CODE(which, span) ((span).at ? intern(s, which, span) : -1)

/* Appends s->event. Strings get their codes here and in this order, which is what makes codes reproducible. */
static int file_event(Scanner *s, Bytes data, int64_t base) {
    const Event *e = &s->event;
    uint64_t row = s->count;
    if (!reserve_events(s, row + 1)) return 0;
    COLUMN(uint8_t, PHASE)[row] = e->phase;
    COLUMN(int32_t, CATEGORY)[row] = CODE(CATEGORIES, e->category);
    COLUMN(int32_t, NAME)[row] = CODE(NAMES, e->name);
    COLUMN(int32_t, PROCESS)[row] = CODE(LABELS, e->process);
    COLUMN(int32_t, THREAD)[row] = CODE(LABELS, e->thread);
    COLUMN(int64_t, TIME)[row] = e->time;
    COLUMN(int64_t, DURATION)[row] = e->duration;
    COLUMN(int64_t, FLOW)[row] = e->flow;
    COLUMN(int64_t, ARGS_OFFSET)[row] = e->args.at ? base + (e->args.at - data) : -1;
    COLUMN(uint32_t, ARGS_LENGTH)[row] = (uint32_t)e->args.length; /* at most EVENT_LIMIT */
    for (uint64_t rest = e->present; rest; rest &= rest - 1) {
        int index = __builtin_ctzll(rest);
        Field *field = &s->fields[index];
        if (!reserve_field(s, field, field->count + 1)) return 0;
        uint64_t at = field->count++;
        field->rows[at] = (uint32_t)row;
        if (field->kind == TRIPLE) memcpy(field->values + 3 * at, s->numbers[index], 3 * sizeof(int64_t));
        else field->values[at] = field->kind == TEXT ? intern(s, TEXTS, s->texts[index]) : s->numbers[index][0];
    }
    s->count++;
    return s->error == 0;
}

/* ---- Events ------------------------------------------------------------------------------------------------ */

static inline uint32_t hash_key(Bytes key, int64_t length) { /* length > 0; keys differ early, late or in length */
    return ((uint32_t)length * 37u + key[0] * 5u + key[length - 1] * 11u + key[length / 2] * 3u) % FIELD_TABLE;
}

static inline int find_field(const Scanner *s, Span key) {
    if (key.length == 0) return -1;
    for (uint32_t slot = hash_key(key.at, key.length);; slot = (slot + 1) % FIELD_TABLE) {
        int index = s->field_table[slot] - 1;
        if (index < 0) return -1;
        const Field *field = &s->fields[index];
        if (field->key_length == key.length && !memcmp(field->key, key.at, (size_t)key.length)) return index;
    }
}

/* p is at the brace of the arguments. A repeated key counts the last time. */
static Bytes read_args(Scanner *s, Bytes p) {
    Bytes start = p;
    int closed = 0;
    s->event.present = 0;
    p = skip_space(s, p + 1);
    if (UNLIKELY(!p)) return NULL;
    if (*p == '}') closed = 1, p++;
    while (!closed) {
        Span key;
        Bytes value = read_key(s, p, &key);
        if (UNLIKELY(!value)) return NULL;
        int index = find_field(s, key), kept = 0;
        if (index < 0) {
            p = skip_value(s, value);
        } else if (s->fields[index].kind == INTEGER) {
            p = read_number(s, value, 0, s->numbers[index]);
            kept = s->numbers[index][0] != MISSING;
        } else {
            p = skip_value(s, value);
            if (UNLIKELY(!p)) return NULL;
            s->texts[index] = (Span){value, p - value};
            kept = s->fields[index].kind == TEXT || triple(value, p, s->numbers[index]);
        }
        if (UNLIKELY(!p)) return NULL;
        if (index >= 0) s->event.present = (s->event.present & ~(1ull << index)) | (uint64_t)kept << index;
        p = next_key(s, p, &closed);
        if (UNLIKELY(!p)) return NULL;
    }
    s->event.args = (Span){start, p - start};
    return p;
}

/* A string's body, or nothing for other values. */
static inline Bytes read_string(Scanner *s, Bytes p, Span *body) {
    Bytes q = skip_value(s, p);
    if (LIKELY(q != NULL)) *body = *p == '"' ? (Span){p + 1, q - p - 2} : (Span){NULL, 0};
    return q;
}

static inline Bytes read_label(Scanner *s, Bytes p, Span *raw) {
    Bytes q = skip_value(s, p);
    if (LIKELY(q != NULL)) *raw = (Span){p, q - p};
    return q;
}

static inline int is(Span key, const char *name, int64_t length) {
    return key.length == length && !memcmp(key.at, name, (size_t)length);
}
#define IS(key, name) is(key, name, sizeof(name) - 1)

static inline Bytes read_member(Scanner *s, Span key, Bytes p) {
    Event *e = &s->event;
    if (IS(key, "ph")) {
        Span phase;
        p = read_string(s, p, &phase);
        e->phase = p && phase.length > 0 ? phase.at[0] : 0;
        return p;
    }
    if (IS(key, "ts")) return read_number(s, p, 3, &e->time);
    if (IS(key, "dur")) return read_number(s, p, 3, &e->duration);
    if (IS(key, "id")) return read_number(s, p, 0, &e->flow);
    if (IS(key, "pid")) return read_label(s, p, &e->process);
    if (IS(key, "tid")) return read_label(s, p, &e->thread);
    if (IS(key, "cat")) return read_string(s, p, &e->category);
    if (IS(key, "name")) return read_string(s, p, &e->name);
    if (IS(key, "args")) {
        if (LIKELY(*p == '{')) return read_args(s, p);
        e->args = (Span){NULL, 0};
        e->present = 0;
    }
    return skip_value(s, p);
}

/* p is at an event's brace; fills s->event. */
static Bytes read_event(Scanner *s, Bytes p) {
    int closed = 0;
    s->event = (Event){.time = MISSING, .duration = MISSING, .flow = MISSING};
    p = skip_space(s, p + 1);
    if (UNLIKELY(!p)) return NULL;
    if (UNLIKELY(*p == '}')) closed = 1, p++;
    while (!closed) {
        Span key;
        p = read_key(s, p, &key);
        if (UNLIKELY(!p)) return NULL;
        p = read_member(s, key, p);
        if (UNLIKELY(!p)) return NULL;
        p = next_key(s, p, &closed);
        if (UNLIKELY(!p)) return NULL;
    }
    return p;
}

/* ---- Finding the next event -------------------------------------------------------------------------------- */

static Bytes some_space(Bytes p, Bytes end) { /* past at most RESYNC_SPACE white bytes */
    for (int i = 0; i < RESYNC_SPACE && p < end && *p <= ' '; i++) p++;
    return p;
}

static int starts_with_one_of(Bytes p, Bytes end, const char *const *words) { /* a quoted word */
    for (; *words; words++) {
        int64_t length = (int64_t)strlen(*words);
        if (end - p >= length + 2 && p[0] == '"' && !memcmp(p + 1, *words, (size_t)length) && p[length + 1] == '"')
            return 1;
    }
    return 0;
}

/* The next `{` that looks like an event's (it follows a comma or the opening bracket, and its first key is one
 * that events have), or the `]` that looks like the end of the events; NULL when neither is in p..end. */
static Bytes resynchronise(Bytes p, Bytes end, int final) {
    static const char *const EVENT_KEYS[] = {"ph", "name", "cat", "pid", "tid", "ts", "dur", "id", "args", "bp", "s", 0};
    static const char *const TAIL_KEYS[] = {"displayTimeUnit", "baseTimeNanoseconds", "traceName",
                                            "schemaVersion", "deviceProperties", "INFO", 0};
    for (Bytes at = p; at < end; at++) {
        if (LIKELY(*at != '{' && *at != ']')) continue;
        Bytes before = at;
        for (int i = 0; i < RESYNC_SPACE && before > p && before[-1] <= ' '; i++) before--;
        if (before == p) continue;
        Bytes after = some_space(at + 1, end);
        if (*at == '{') {
            if ((before[-1] == ',' || before[-1] == '[') && starts_with_one_of(after, end, EVENT_KEYS)) return at;
        } else if (before[-1] == '}') {
            if (after < end && *after == ',' && starts_with_one_of(some_space(after + 1, end), end, TAIL_KEYS)) return at;
            if (!final) continue;
            if (after < end && *after == '}') after = some_space(after + 1, end);
            if (after == end) return at;
        }
    }
    return NULL;
}

/* ---- The interface ----------------------------------------------------------------------------------------- */

EXPORT uint32_t scan_version(void) { return VERSION; }

EXPORT void scan_free(Scanner *s) {
    if (!s) return;
    for (int i = 0; i < COLUMNS; i++) free(s->columns[i]);
    for (int i = 0; i < DICTIONARIES; i++) {
        free(s->dictionaries[i].arena);
        free(s->dictionaries[i].ends);
        free(s->dictionaries[i].table);
    }
    for (uint32_t i = 0; i < s->field_count; i++) {
        free(s->fields[i].key);
        free(s->fields[i].rows);
        free(s->fields[i].values);
    }
    free(s);
}

/* A scanner that keeps these arguments; NULL when memory is short or there are more than MAX_FIELDS. */
EXPORT Scanner *scan_new(const char *const *keys, const uint32_t *kinds, uint32_t count) {
    Scanner *s = count <= MAX_FIELDS ? calloc(1, sizeof *s) : NULL;
    if (!s) return NULL;
    s->first_skipped = -1;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(keys[i]);
        Field *field = &s->fields[s->field_count++];
        field->key = malloc(length + 1);
        field->key_length = (uint32_t)length;
        field->kind = kinds[i];
        if (!field->key || !length) return scan_free(s), NULL;
        memcpy(field->key, keys[i], length + 1);
        uint32_t slot = hash_key((Bytes)keys[i], (int64_t)length);
        while (s->field_table[slot]) slot = (slot + 1) % FIELD_TABLE;
        s->field_table[slot] = (uint8_t)(i + 1);
    }
    return s;
}

/* Reads events from data[from] on, which must lie between two events. `base` is the offset of data[0] in the file,
 * `final` says that the file ends with this window. Stops before an event that starts at or behind `until`.
 * Gives a status, and in *position where it stopped: the next window must begin there. */
EXPORT int scan_feed(Scanner *s, const uint8_t *data, int64_t size, int64_t base, int64_t from, int64_t until, int final,
                     int64_t *position) {
    Bytes p = data + from, end = data + size;
    for (;;) {
        if (UNLIKELY(s->resynchronising)) {
            Bytes found = resynchronise(p, end, final);
            if (!found) {
                Bytes keep = end - p > RESYNC_KEEP ? end - RESYNC_KEEP : p;
                *position = final ? size : keep - data;
                return final ? TRUNCATED : MORE;
            }
            s->resynchronising = 0;
            p = found;
        }
        while (p < end && (*p <= ' ' || *p == ',')) p++;
        *position = p - data;
        if (UNLIKELY(p == end)) return final ? TRUNCATED : MORE;
        if (UNLIKELY(*p == ']')) return ++*position, DONE;
        if (UNLIKELY(p - data >= until)) return LIMIT;
        if (LIKELY(*p == '{')) {
            int cut = end - p >= EVENT_LIMIT;
            s->end = cut ? p + EVENT_LIMIT : end;
            Bytes after = read_event(s, p);
            if (LIKELY(after != NULL)) {
                if (UNLIKELY(!file_event(s, data, base))) return s->error;
                p = after;
                continue;
            }
            if (!s->failed && !cut) { /* the text ends inside the event: cut off, unless more events follow */
                if (!final) return MORE;
                if (!resynchronise(p + 1, end, final)) return *position = size, TRUNCATED;
            }
            s->waste += (s->failed ? s->failed : s->end) - p;
        }
        /* Malformed. The search goes on right behind its first byte, so that what follows is not lost with it;
         * but a hostile file could have the same text read again and again, so that has a bound. */
        s->skipped++;
        if (s->first_skipped < 0) s->first_skipped = base + (p - data);
        s->resynchronising = 1;
        if (*p == '{') p = s->waste <= WASTE_LIMIT ? p + 1 : s->failed ? s->failed : s->end;
    }
}

/* A likely start of an event at or behind `from`, or `size`: where a second thread may begin on trial. */
EXPORT int64_t scan_boundary(const uint8_t *data, int64_t size, int64_t from) {
    Bytes found = from < size ? resynchronise(data + from, data + size, 0) : NULL;
    return found && *found == '{' ? found - data : size;
}

/* Appends the events of `other`, which scanned the text right behind that of `s`. 0, or an error. */
EXPORT int scan_merge(Scanner *s, const Scanner *other) {
    int32_t *codes[DICTIONARIES] = {0};
    static const int8_t CODED[COLUMNS] = {-1, CATEGORIES, NAMES, LABELS, LABELS, -1, -1, -1, -1, -1};
    uint64_t row = s->count;
    if (!reserve_events(s, row + other->count)) return s->error;
    for (int i = 0; i < DICTIONARIES; i++) {
        const Dictionary *d = &other->dictionaries[i];
        codes[i] = malloc((d->count + 1) * sizeof **codes);
        if (!codes[i]) s->error = NO_MEMORY;
        for (uint64_t code = 0; code < d->count && !s->error; code++) codes[i][code] = intern(s, i, string_of(d, code));
    }
    for (int i = 0; i < COLUMNS && !s->error && other->count; i++) {
        if (CODED[i] < 0) {
            memcpy((uint8_t *)s->columns[i] + row * WIDTHS[i], other->columns[i], other->count * WIDTHS[i]);
            continue;
        }
        int32_t *to = COLUMN(int32_t, i) + row;
        const int32_t *from = other->columns[i];
        for (uint64_t k = 0; k < other->count; k++) to[k] = from[k] < 0 ? -1 : codes[CODED[i]][from[k]];
    }
    for (uint32_t i = 0; i < s->field_count && !s->error; i++) {
        Field *to = &s->fields[i];
        const Field *from = &other->fields[i];
        uint64_t width = to->kind == TRIPLE ? 3 : 1;
        if (!from->count || !reserve_field(s, to, to->count + from->count)) continue;
        for (uint64_t k = 0; k < from->count; k++) to->rows[to->count + k] = from->rows[k] + (uint32_t)row;
        memcpy(to->values + width * to->count, from->values, from->count * width * sizeof *to->values);
        for (uint64_t k = 0; to->kind == TEXT && k < from->count; k++)
            to->values[to->count + k] = codes[TEXTS][from->values[k]];
        to->count += from->count;
    }
    for (int i = 0; i < DICTIONARIES; i++) free(codes[i]);
    if (s->error) return s->error;
    s->count += other->count;
    s->skipped += other->skipped;
    s->waste += other->waste;
    s->resynchronising = other->resynchronising;
    if (s->first_skipped < 0) s->first_skipped = other->first_skipped;
    return 0;
}

/* What was read. The arrays belong to the scanner and live until it is fed, merged into or freed. */
EXPORT uint64_t scan_count(const Scanner *s) { return s->count; }

EXPORT const void *scan_column(const Scanner *s, uint32_t index) { return s->columns[index]; }

EXPORT void scan_skipped(const Scanner *s, int64_t out[3]) {
    out[0] = s->skipped, out[1] = s->first_skipped, out[2] = s->waste;
}

EXPORT uint64_t scan_dictionary(const Scanner *s, uint32_t index, const uint64_t **ends, const uint8_t **arena) {
    *ends = s->dictionaries[index].ends, *arena = s->dictionaries[index].arena;
    return s->dictionaries[index].count;
}

EXPORT uint64_t scan_field(const Scanner *s, uint32_t index, const uint32_t **rows, const int64_t **values) {
    *rows = s->fields[index].rows, *values = s->fields[index].values;
    return s->fields[index].count;
}
