/* Who encloses whom: one pass over sorted intervals with a stack, and the questions that its tree answers.
 *
 * `nesting_numpy.py` does the same with sorting alone and serves where this is not built; the tests hold the two
 * together, and against the definition. Rows are sorted by (lane, start, longest first); NONE is -1.
 */
#include <stdint.h>
#include <stdlib.h>

enum { NONE = -1 };

/* When an interval closes, in half nanoseconds since the moment: an empty one is open for half of one, so that it has a
 * parent and is nobody's. Doubled times would not fit in 64 bits; doubled differences do. */
static inline int64_t closing(int64_t start, int64_t end, int64_t moment) {
    return end > start ? 2 * (end - moment) : 2 * (start - moment) + 1;
}

/* Whether an interval that began earlier encloses one that opens at 0: it ends no earlier, or so little earlier (`slack`)
 * that rounding explains it and most of the inner one lies inside. */
static inline int encloses(int64_t outer_close, int64_t close, int64_t slack) {
    if (outer_close >= close) return 1;
    return close - outer_close <= slack && outer_close > close - outer_close;
}

/* The parent of a row is the last row before it, on its lane, that encloses it. A row that does not enclose the one at
 * hand encloses no later one that this one leaves out, so it leaves the stack for good. 0 when memory is short. */
int nest_parents(const int64_t *lanes, const int64_t *starts, const int64_t *ends, int64_t count, int64_t tick,
                 int64_t *parents, int64_t *depths) {
    int64_t capacity = 1024, size = 0, *stack = malloc((size_t)capacity * sizeof *stack);
    if (!stack) return 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t close = closing(starts[i], ends[i], starts[i]);
        if (i && lanes[i] != lanes[i - 1]) size = 0;
        while (size) {
            int64_t top = stack[size - 1];
            if (encloses(closing(starts[top], ends[top], starts[i]), close, 2 * tick)) break;
            size--;
        }
        parents[i] = size ? stack[size - 1] : NONE;
        depths[i] = size;
        if (size == capacity) {
            int64_t *larger = realloc(stack, 2 * (size_t)capacity * sizeof *stack);
            if (!larger) return free(stack), 0;
            stack = larger, capacity *= 2;
        }
        stack[size++] = i;
    }
    free(stack);
    return 1;
}

/* First row in low..high that is of a later lane, or of this one and after the moment. */
static int64_t first_after(const int64_t *lanes, const int64_t *starts, int64_t low, int64_t high, int64_t lane,
                           int64_t moment) {
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (lanes[middle] > lane || (lanes[middle] == lane && starts[middle] > moment)) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* For each moment on a lane, the innermost interval that is open then. Questions come nearly sorted, so the search
 * begins where the last one ended and widens from there; and who asks again after the last interval has begun goes on
 * where the last climb from it ended, so that no deep nest is climbed twice (unless memory is short). */
void nest_innermost(const int64_t *lanes, const int64_t *starts, const int64_t *ends, const int64_t *parents,
                    int64_t count, const int64_t *asked_lanes, const int64_t *moments, int64_t asked,
                    int64_t *found) {
    typedef struct {
        int64_t open, since; /* the row that is open above this one, from the moment `since` on if that is not 0 */
    } Climb;
    Climb *climbs = calloc((size_t)count + 1, sizeof *climbs);
    int64_t at = 0;
    for (int64_t i = 0; i < asked; i++) {
        int64_t lane = asked_lanes[i], moment = moments[i], low = 0, high = count;
        int ahead = at < count && (lanes[at] < lane || (lanes[at] == lane && starts[at] <= moment));
        for (int64_t step = 1; ahead && low < high; step *= 2) { /* everything before `low` is not after the moment */
            low = at + 1;
            int64_t next = at + step;
            if (next >= count) break;
            if (lanes[next] > lane || (lanes[next] == lane && starts[next] > moment)) {
                high = next;
                break;
            }
            at = next;
        }
        if (!ahead) high = at < count ? at : count;
        at = first_after(lanes, starts, low, high, lane, moment);
        int64_t row = at - 1;
        if (row >= 0 && lanes[row] != lane) row = NONE;
        Climb *climb = climbs && row != NONE ? climbs + row : NULL;
        if (climb && climb->since && climb->since <= moment) row = climb->open;
        while (row != NONE && ends[row] <= moment) row = parents[row];
        if (climb) climb->open = row, climb->since = moment;
        found[i] = row;
        at = at ? at - 1 : 0;
    }
    free(climbs);
}

/* For each row, itself if it is marked, else its nearest marked ancestor. 0 when a parent does not come before its
 * child, which this single pass needs. */
int nest_nearest_marked(const int64_t *parents, const uint8_t *marked, int64_t count, int64_t *nearest) {
    for (int64_t i = 0; i < count; i++) {
        if (parents[i] >= i) return 0;
        nearest[i] = marked[i] ? i : parents[i] == NONE ? NONE : nearest[parents[i]];
    }
    return 1;
}
