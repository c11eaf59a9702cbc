/* What the keys of an event and of its arguments mean. */
#include "scan_columns.h"

#define CLOSED -2 /* instead of a key: the end of the object */
enum { OTHER, PHASE_KEY, TIME_KEY, DURATION_KEY, PROCESS_KEY, THREAD_KEY, CATEGORY_KEY, NAME_KEY, ARGS_KEY };

#define IS(key, name) (!memcmp((key).at, name, sizeof(name) - 1))

static int member_of(Span key) { /* what a key of an event means */
    switch (key.length) {
    case 2: return IS(key, "ph") ? PHASE_KEY : IS(key, "ts") ? TIME_KEY : OTHER;
    case 3:
        return IS(key, "dur") ? DURATION_KEY : IS(key, "pid") ? PROCESS_KEY : IS(key, "tid") ? THREAD_KEY
             : IS(key, "cat") ? CATEGORY_KEY : OTHER;
    case 4: return IS(key, "name") ? NAME_KEY : IS(key, "args") ? ARGS_KEY : OTHER;
    default: return OTHER;
    }
}

static inline uint32_t hash_key(Bytes key, int64_t length) { /* length > 0; keys differ early, late or in length */
    return ((uint32_t)length * 37u + key[0] * 5u + key[length - 1] * 11u + key[length / 2] * 3u) % FIELD_TABLE;
}

static int find_field(const Scanner *s, Span key) { /* the argument of that name, -1 when it is not kept */
    if (key.length == 0) return -1;
    for (uint32_t slot = hash_key(key.at, key.length);; slot = (slot + 1) % FIELD_TABLE) {
        int index = s->field_table[slot] - 1;
        if (index < 0) return -1;
        const Field *field = &s->fields[index];
        if (field->key_length == key.length && !memcmp(field->key, key.at, (size_t)key.length)) return index;
    }
}

/* p is behind a value, or, if `is_first`, behind the brace that opened the object. Gives the position of the next value, or that
 * behind the object, and in *meaning what its key means, or CLOSED. */
static inline Bytes next_member(Scanner *s, Bytes p, int is_first, int in_args, int *meaning) {
    int closed = 0;
    Span key;
    p = is_first ? skip_space(&s->cursor, p) : next_key(&s->cursor, p, &closed);
    if (!p) return NULL;
    if (is_first && *p == '}') closed = 1, p++;
    *meaning = CLOSED;
    if (closed) return p;
    p = read_key(&s->cursor, p, &key);
    if (!p) return NULL;
    *meaning = in_args ? find_field(s, key) : member_of(key);
    return p;
}
