/* From one value to the next: the text between them, with the next key in it, is mostly that of an event before.
 *
 * A link is such a text, for example `,\n    "tid": `, with what its key means. Each link remembers which ones came after
 * it; where the text is one of these, a few comparisons stand for taking it apart. A text that is new is read by the
 * grammar, so links change the speed and never the result.
 */
#include "scan_columns.h"

#define CLOSED -2 /* meaning of a link that closes its object */
enum { NOWHERE, EVENT_OPENED, ARGS_OPENED, FIRST_LINK }; /* links without a text; NOWHERE stands for all not remembered */

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
        if (field->key_length == key.length && same_bytes((Bytes)field->key, key.at, key.length)) return index;
    }
}

static inline uint64_t difference(const Link *link, Bytes p, int from, int to) { /* in these words */
    uint64_t word, different = 0;
    for (int i = from; i < to; i++) {
        memcpy(&word, p + 8 * i, 8);
        different |= (word ^ link->text[i]) & link->mask[i];
    }
    return different;
}

static inline int stands_at(const Link *link, Bytes p) { /* at least LINK_BYTES follow p */
    return !difference(link, p, 0, USUAL_WORDS) &&
           (LIKELY(link->length <= 8 * USUAL_WORDS) || !difference(link, p, USUAL_WORDS, LINK_WORDS));
}

/* Puts a link first among those that came after another. */
static inline void came_after(Link *from, int place, Link *link) {
    for (; place > 0; place--) from->next[place] = from->next[place - 1];
    from->next[0] = link;
}

/* The link of the text p..q, which came after `from`. */
static RARE Link *remember(Scanner *s, Link *from, Bytes p, Bytes q, int meaning, int in_args) {
    int64_t length = q - p;
    int found = FIRST_LINK;
    uint64_t text[LINK_WORDS] = {0};
    Link *nowhere = &s->links[NOWHERE];
    nowhere->meaning = meaning;
    if (length > LINK_BYTES || length == 0 || from == nowhere) return nowhere;
    memcpy(text, p, (size_t)length);
    for (; found < s->link_count; found++) {
        const Link *link = &s->links[found];
        if (link->length == length && link->in_args == in_args && !memcmp(link->text, text, sizeof text)) break;
    }
    if (found == MAX_LINKS) return nowhere;
    Link *link = &s->links[found];
    if (found == s->link_count) {
        s->link_count++;
        memcpy(link->text, text, sizeof text);
        memset(link->mask, 255, (size_t)length);
        link->length = length, link->meaning = meaning, link->in_args = in_args;
    }
    came_after(from, NEXT_LINKS - 1, link);
    return link;
}

/* The same as next_member by the grammar. */
static RARE Bytes read_link(Scanner *s, Bytes start, Link **at, int in_args) {
    Link *from = *at;
    int closed = 0, meaning = CLOSED, first = from == &s->links[EVENT_OPENED] || from == &s->links[ARGS_OPENED];
    Bytes p = first ? skip_space(&s->cursor, start) : next_key(&s->cursor, start, &closed);
    if (UNLIKELY(!p)) return NULL;
    if (first && *p == '}') closed = 1, p++;
    if (!closed) {
        Span key;
        p = read_key(&s->cursor, p, &key);
        if (UNLIKELY(!p)) return NULL;
        meaning = in_args ? find_field(s, key) : member_of(key);
    }
    *at = remember(s, from, start, p, meaning, in_args);
    return p;
}

/* p is behind a value, or behind the brace that opened the object. Gives the position of the next value, or that behind
 * the object. `at` is the link that led here, and becomes the one that is taken: it says what the key means, or CLOSED. */
static inline Bytes next_member(Scanner *s, Bytes p, Link **at, int in_args) {
    Link *from = *at;
    if (LIKELY(s->cursor.end - p > LINK_BYTES)) {
        for (int place = 0; place < NEXT_LINKS && LIKELY(from->next[place] != NULL); place++) {
            Link *link = from->next[place];
            if (!stands_at(link, p)) continue;
            Bytes value = p + link->length;
            if (UNLIKELY(*value <= ' ' && link->meaning != CLOSED)) break; /* more white space than there was before */
            if (UNLIKELY(place)) came_after(from, place, link);
            *at = link;
            return value;
        }
    }
    return read_link(s, p, at, in_args);
}
