/* Where events are kept: columns, dictionaries of strings, sparse arguments. Memory grows with what is present. */
#include <stdlib.h>

#include "scan_text.h"

enum { MORE, DONE, TRUNCATED, NO_MEMORY = -1, TOO_MANY = -2 }; /* what scan_feed returns; scanner.py, Status */
enum { INTEGER, TRIPLE, TEXT };                                /* kinds of arguments; events.py, Field */
enum { CATEGORIES, NAMES, LABELS, TEXTS, DICTIONARIES };
enum { PHASE, CATEGORY, NAME, PROCESS, THREAD, TIME, DURATION, ARGS_OFFSET, ARGS_LENGTH, COLUMNS };
static const uint8_t WIDTHS[COLUMNS] = {1, 4, 4, 4, 4, 8, 8, 8, 4};

#define MAX_FIELDS 64 /* one bit each in Event.present */
#define FIELD_TABLE 256

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
    int64_t time, duration;
    uint64_t present; /* bit i: field i has a value in `numbers` or `texts` */
    uint8_t phase;
} Event;

typedef struct { uint64_t hash, word; } Seed; /* of the hashes */

typedef struct {
    uint64_t count, capacity;
    void *columns[COLUMNS];
    Dictionary dictionaries[DICTIONARIES];
    Seed seed;
    Field fields[MAX_FIELDS];
    uint32_t field_count;
    uint8_t field_table[FIELD_TABLE]; /* hash of a key -> one more than its field, 0: free */
    int64_t skipped, first_skipped, waste;
    int resynchronising, error;
    /* The event being read. It is filed only when it is complete, so a malformed one leaves no trace. */
    Event event;
    int64_t numbers[MAX_FIELDS][3];
    Span texts[MAX_FIELDS];
    Cursor cursor;
} Scanner;

/* ---- Dictionaries ------------------------------------------------------------------------------------------ */

/* Both halves of a product of 128 bits. Without the seed, which is random, nobody can foresee the result, and so nobody can
 * make a file whose strings collide. */
static inline uint64_t mix(Seed seed, uint64_t hash, uint64_t word) {
    __extension__ unsigned __int128 product = (unsigned __int128)(hash ^ seed.hash) * (word ^ seed.word);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_bytes(Seed seed, Bytes p, int64_t length) {
    uint64_t hash = (uint64_t)length, word = 0;
    if (length < 8) {
        for (int64_t i = 0; i < length; i++) word = word << 8 | p[i];
        return (uint32_t)mix(seed, hash, word);
    }
    for (; length > 8; p += 8, length -= 8) {
        memcpy(&word, p, 8);
        hash = mix(seed, hash, word);
    }
    memcpy(&word, p + length - 8, 8); /* the last eight, some of them for the second time */
    return (uint32_t)mix(seed, hash, word);
}

/* Makes room for `needed` elements of `width` bytes, at least doubling; 0 when memory is short. */
static int reserve(void *array, uint64_t *capacity, uint64_t needed, size_t width) {
    if (needed <= *capacity) return 1;
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

static inline int is_string(const Dictionary *d, int32_t code, Span text) {
    Span known = string_of(d, (uint64_t)code);
    return known.length == text.length && !memcmp(known.at, text.at, (size_t)text.length);
}

/* The code of a string, a new one if need be; -1 and s->error when there is no room. */
static int32_t intern(Scanner *s, int which, Span text) {
    Dictionary *d = &s->dictionaries[which];
    if (d->count * 2 >= d->table_size && !grow_table(d)) return s->error = NO_MEMORY, -1;
    uint32_t hash = hash_bytes(s->seed, text.at, text.length);
    uint64_t slot = hash & (d->table_size - 1);
    for (; d->table[slot].code; slot = (slot + 1) & (d->table_size - 1))
        if (d->table[slot].hash == hash && is_string(d, d->table[slot].code - 1, text)) return d->table[slot].code - 1;
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
    if (needed <= s->capacity) return 1;
    if (needed >= UINT32_MAX) return s->error = TOO_MANY, 0; /* rows are uint32 */
    uint64_t capacity = s->capacity;
    for (int i = 0; i < COLUMNS; i++) {
        capacity = s->capacity; /* all columns grow alike; a failure leaves some larger than needed */
        if (!reserve(&s->columns[i], &capacity, needed < 4096 ? 4096 : needed, WIDTHS[i]))
            return s->error = NO_MEMORY, 0;
    }
    s->capacity = capacity;
    return 1;
}

static int reserve_field(Scanner *s, Field *field, uint64_t needed) {
    if (needed <= field->capacity) return 1;
    uint64_t rows = field->capacity, values = field->capacity;
    if (needed < 256) needed = 256;
    if (!reserve(&field->rows, &rows, needed, sizeof *field->rows) ||
        !reserve(&field->values, &values, needed, sizeof *field->values * (field->kind == TRIPLE ? 3 : 1)))
        return s->error = NO_MEMORY, 0;
    field->capacity = rows;
    return 1;
}

#define COLUMN(type, index) ((type *)s->columns[index])

static inline void file_code(Scanner *s, int column, int dictionary, Span text) {
    COLUMN(int32_t, column)[s->count] = text.at ? intern(s, dictionary, text) : -1;
}

/* Appends s->event. Nothing reads an event without a phase, and `{}` would take 20 times its bytes: one as the first
 * tells a list of other objects from an empty one, later ones are dropped. Strings get their codes here and in this
 * order, which is what makes codes reproducible. */
static int file_event(Scanner *s, Bytes data, int64_t base) {
    const Event *e = &s->event;
    uint64_t row = s->count;
    if (!e->phase && row) return 1;
    if (!reserve_events(s, row + 1)) return 0;
    COLUMN(uint8_t, PHASE)[row] = e->phase;
    file_code(s, CATEGORY, CATEGORIES, e->category);
    file_code(s, NAME, NAMES, e->name);
    file_code(s, PROCESS, LABELS, e->process);
    file_code(s, THREAD, LABELS, e->thread);
    COLUMN(int64_t, TIME)[row] = e->time;
    COLUMN(int64_t, DURATION)[row] = e->duration;
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
