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
#define _DEFAULT_SOURCE 1 /* for getentropy */
#include <sys/random.h>
#include <unistd.h>

#include "scan_keys.h"

#ifndef EVENT_LIMIT /* the tests build with smaller limits */
#define EVENT_LIMIT ((int64_t)64 << 20)  /* a longer event is malformed: an unclosed bracket must not eat the file */
#define WASTE_LIMIT ((int64_t)256 << 20) /* bytes that may be read twice for malformed events; see scan_feed */
#endif
#define RESYNC_SPACE 255 /* white space that a resynchronisation looks through */
#define RESYNC_KEEP 2048 /* longest text that it looks at, rounded up */

/* ---- Events ------------------------------------------------------------------------------------------------ */

/* p is at the brace of the arguments. A repeated key counts the last time. */
static Bytes read_args(Scanner *s, Bytes p) {
    Bytes start = p++;
    s->event.present = 0;
    for (int is_first = 1;; is_first = 0) {
        int index, kept = 0;
        p = next_member(s, p, is_first, 1, &index);
        if (!p) return NULL;
        if (index == CLOSED) break;
        if (index < 0) {
            p = skip_value(&s->cursor, p);
        } else if (s->fields[index].kind == INTEGER) {
            p = read_number(&s->cursor, p, 0, s->numbers[index]);
            kept = s->numbers[index][0] != MISSING;
        } else {
            Bytes value = p;
            p = skip_value(&s->cursor, value);
            if (!p) return NULL;
            s->texts[index] = (Span){value, p - value};
            kept = s->fields[index].kind == TEXT || triple(value, p, s->numbers[index]);
        }
        if (!p) return NULL;
        if (index >= 0) s->event.present = (s->event.present & ~(1ull << index)) | (uint64_t)kept << index;
    }
    s->event.args = (Span){start, p - start};
    return p;
}

static inline Bytes read_member(Scanner *s, int member, Bytes p) {
    Event *e = &s->event;
    Span phase;
    switch (member) {
    case PHASE_KEY:
        p = read_string(&s->cursor, p, &phase);
        e->phase = p && phase.length > 0 ? phase.at[0] : 0;
        return p;
    case TIME_KEY: return read_number(&s->cursor, p, 3, &e->time);
    case DURATION_KEY: return read_number(&s->cursor, p, 3, &e->duration);
    case PROCESS_KEY: return read_label(&s->cursor, p, &e->process);
    case THREAD_KEY: return read_label(&s->cursor, p, &e->thread);
    case CATEGORY_KEY: return read_string(&s->cursor, p, &e->category);
    case NAME_KEY: return read_string(&s->cursor, p, &e->name);
    case ARGS_KEY:
        if (*p == '{') return read_args(s, p);
        e->args = (Span){NULL, 0};
        e->present = 0;
    }
    return skip_value(&s->cursor, p);
}

/* p is at an event's brace; fills s->event. */
static Bytes read_event(Scanner *s, Bytes p) {
    s->event = (Event){.time = MISSING, .duration = MISSING};
    p++;
    for (int is_first = 1;; is_first = 0) {
        int member;
        p = next_member(s, p, is_first, 0, &member);
        if (!p || member == CLOSED) return p;
        p = read_member(s, member, p);
        if (!p) return NULL;
    }
}

static inline Bytes skip_gap(Bytes p, Bytes end) { /* commas and white space between two events */
    while (p < end && (*p <= ' ' || *p == ',')) p++;
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
    static const char *const EVENT_KEYS[] = {"ph", "name", "cat", "pid", "tid", "ts",
                                             "dur", "id", "args", "bp", "s", 0};
    static const char *const TAIL_KEYS[] = {"displayTimeUnit", "baseTimeNanoseconds", "traceName",
                                            "schemaVersion", "deviceProperties", "INFO", 0};
    for (Bytes at = p; at < end; at++) {
        if (*at != '{' && *at != ']') continue;
        Bytes before = at;
        for (int i = 0; i < RESYNC_SPACE && before > p && before[-1] <= ' '; i++) before--;
        if (before == p) continue;
        Bytes after = some_space(at + 1, end);
        if (*at == '{') {
            if ((before[-1] == ',' || before[-1] == '[') && starts_with_one_of(after, end, EVENT_KEYS)) return at;
        } else if (before[-1] == '}') {
            if (after < end && *after == ',' && starts_with_one_of(some_space(after + 1, end), end, TAIL_KEYS))
                return at;
            if (!final) continue;
            if (after < end && *after == '}') after = some_space(after + 1, end);
            if (after == end) return at;
        }
    }
    return NULL;
}

/* ---- The interface ----------------------------------------------------------------------------------------- */

void scan_free(Scanner *s) {
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

/* A scanner that keeps these arguments; NULL when memory or random numbers are short, or there are more than MAX_FIELDS. */
Scanner *scan_new(const char *const *keys, const uint32_t *kinds, uint32_t count) {
    Scanner *s = count <= MAX_FIELDS ? calloc(1, sizeof *s) : NULL;
    if (!s) return NULL;
    if (getentropy(&s->seed, sizeof s->seed)) return free(s), NULL;
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
 * `final` says that the file ends with this window. Gives a status, and in *position where it stopped: the next window
 * must begin there. */
int scan_feed(Scanner *s, const uint8_t *data, int64_t size, int64_t base, int64_t from, int final,
              int64_t *position) {
    Bytes p = data + from, end = data + size;
    for (;;) {
        if (s->resynchronising) {
            Bytes found = resynchronise(p, end, final);
            if (!found) {
                Bytes keep = end - p > RESYNC_KEEP ? end - RESYNC_KEEP : p;
                *position = final ? size : keep - data;
                return final ? TRUNCATED : MORE;
            }
            s->resynchronising = 0;
            p = found;
        }
        p = skip_gap(p, end);
        *position = p - data;
        if (p == end) return final ? TRUNCATED : MORE;
        if (*p == ']') return ++*position, DONE;
        if (*p == '{') {
            int cut = end - p >= EVENT_LIMIT;
            s->cursor.end = cut ? p + EVENT_LIMIT : end;
            Bytes after = read_event(s, p);
            if (after != NULL) {
                if (!file_event(s, data, base)) return s->error;
                p = after;
                continue;
            }
            if (!s->cursor.failed && !cut) { /* the text ends inside the event: cut off, unless more events follow */
                if (!final) return MORE;
                if (!resynchronise(p + 1, end, final)) return *position = size, TRUNCATED;
            }
            s->waste += (s->cursor.failed ? s->cursor.failed : s->cursor.end) - p;
        }
        /* Malformed. The search goes on right behind its first byte, so that what follows is not lost with it;
         * but a hostile file could have the same text read again and again, so that has a bound. */
        s->skipped++;
        if (s->first_skipped < 0) s->first_skipped = base + (p - data);
        s->resynchronising = 1;
        if (*p == '{') p = s->waste <= WASTE_LIMIT ? p + 1 : s->cursor.failed ? s->cursor.failed : s->cursor.end;
    }
}

/* What was read. Columns and fields are handed over: each belongs to the caller, who frees it with scan_release when it
 * needs it no more; the scanner has no events then. Dictionaries live until it is fed or freed. */
uint64_t scan_count(const Scanner *s) { return s->count; }

void scan_release(void *array) { free(array); }

void *scan_take_column(Scanner *s, uint32_t index) {
    void *column = s->columns[index];
    s->columns[index] = NULL;
    s->count = s->capacity = 0;
    return column;
}

void scan_skipped(const Scanner *s, int64_t out[3]) {
    out[0] = s->skipped, out[1] = s->first_skipped, out[2] = s->waste;
}

uint64_t scan_dictionary(const Scanner *s, uint32_t index, const uint64_t **ends, const uint8_t **arena) {
    *ends = s->dictionaries[index].ends, *arena = s->dictionaries[index].arena;
    return s->dictionaries[index].count;
}

uint64_t scan_take_field(Scanner *s, uint32_t index, uint32_t **rows, int64_t **values) {
    Field *field = &s->fields[index];
    uint64_t count = field->count;
    *rows = field->rows, *values = field->values;
    field->rows = NULL, field->values = NULL;
    field->count = field->capacity = 0;
    return count;
}
