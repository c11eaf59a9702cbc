/* Random intervals through nest.c, and random graphs through simulate.c, under the sanitizers, held to their definitions.
 *
 *     cc -g -O1 -fsanitize=address,undefined fuzz_nest.c -o fuzz && ./fuzz ROUNDS SEED
 *
 * Every array lies in a malloc of exactly its size, so that one row too far is an error.
 */
#include NEST
#include SIMULATE

#include <math.h>
#include <stdio.h>

enum { MOST = 40 };
static uint64_t state;

static uint64_t random_below(uint64_t bound) { /* xorshift; repeatability is what matters */
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return bound ? state % bound : 0;
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

static int64_t *numbers(int64_t count) {
    int64_t *made = calloc(count ? (size_t)count : 1, sizeof *made);
    if (!made) exit(2);
    return made;
}

static int64_t a_time(int wide) { /* the readers let no time past this bound through */
    int64_t bound = (int64_t)1 << 60;
    if (!wide) return (int64_t)random_below(60);
    switch (random_below(4)) {
    case 0: return bound;
    case 1: return -bound;
    case 2: return (int64_t)(random_below((uint64_t)bound * 2)) - bound;
    default: return (int64_t)random_below(60) - 30;
    }
}

/* As in nest.c, from its words: in half nanoseconds, an empty interval is open for half of one. */
static int64_t close_of(int64_t start, int64_t end) { return end > start ? 2 * end : 2 * start + 1; }

static int holds(int64_t outer, int64_t open, int64_t close, int64_t slack) {
    return outer >= close || (close - outer <= slack && outer - open > close - outer);
}

static int after(const int64_t *lanes, const int64_t *starts, const int64_t *ends, int64_t a, int64_t b) {
    if (lanes[a] != lanes[b]) return lanes[a] > lanes[b];
    return starts[a] != starts[b] ? starts[a] > starts[b] : ends[a] < ends[b];
}

static void swap(int64_t *values, int64_t at) {
    int64_t value = values[at];
    values[at] = values[at - 1], values[at - 1] = value;
}

static void nest_once(void) {
    int wide = random_below(4) == 0;
    int64_t count = (int64_t)random_below(MOST), tick = (int64_t)random_below(3) * (int64_t)random_below(5);
    int64_t *lanes = numbers(count), *starts = numbers(count), *ends = numbers(count);
    for (int64_t i = 0; i < count; i++) {
        lanes[i] = (int64_t)random_below(3), starts[i] = a_time(wide);
        int64_t other = a_time(wide);
        ends[i] = other > starts[i] ? other : starts[i];
    }
    for (int64_t i = 1; i < count; i++) /* into the order that nest.c wants */
        for (int64_t j = i; j && after(lanes, starts, ends, j - 1, j); j--) swap(lanes, j), swap(starts, j), swap(ends, j);
    int64_t *parents = numbers(count), *depths = numbers(count);
    if (!nest_parents(lanes, starts, ends, count, tick, parents, depths)) exit(2);
    for (int64_t i = 0; i < count; i++) {
        int64_t parent = parents[i];
        if (parent < NONE || parent >= i) fail("a parent behind its child");
        if (depths[i] != (parent == NONE ? 0 : depths[parent] + 1)) fail("depth is not the parent's and one");
        if (parent == NONE) continue;
        if (lanes[parent] != lanes[i]) fail("a parent on another lane");
        if (!holds(close_of(starts[parent], ends[parent]), 2 * starts[i], close_of(starts[i], ends[i]), 2 * tick)) fail("a parent that does not enclose");
    }
    int64_t asked = (int64_t)random_below(MOST);
    int64_t *lane = numbers(asked), *moment = numbers(asked), *found = numbers(asked);
    for (int64_t i = 0; i < asked; i++) lane[i] = (int64_t)random_below(4), moment[i] = a_time(wide);
    nest_innermost(lanes, starts, ends, parents, count, lane, moment, asked, found);
    for (int64_t i = 0; i < asked; i++) {
        int64_t last = NONE;
        for (int64_t row = 0; row < count; row++)
            if (lanes[row] == lane[i] && starts[row] <= moment[i]) last = row;
        while (last != NONE && ends[last] <= moment[i]) last = parents[last];
        if (found[i] != last) fail("another interval is innermost");
    }
    uint8_t *marked = malloc(count ? (size_t)count : 1);
    int64_t *nearest = numbers(count);
    if (!marked) exit(2);
    for (int64_t i = 0; i < count; i++) marked[i] = random_below(2) == 0;
    if (!nest_nearest_marked(parents, marked, count, nearest)) fail("parents come before children, and it says no");
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i;
        while (at != NONE && !marked[at]) at = parents[at];
        if (nearest[i] != at) fail("another ancestor is nearest");
    }
    int64_t *all[] = {lanes, starts, ends, parents, depths, lane, moment, found, nearest};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(marked);
}

static double a_number(void) {
    static const double ODD[] = {0.0, -0.0, 1e308, -1e308, 1e-308, INFINITY, 1.5};
    return random_below(8) ? (double)random_below(1000) : ODD[random_below(7)];
}

static void simulate_once(void) {
    int64_t nodes = (int64_t)random_below(MOST), edges = 0;
    int64_t *from = numbers(nodes * 3), *to = numbers(nodes * 3);
    double *duration = malloc((nodes ? (size_t)nodes : 1) * sizeof(double)), *finish = malloc((nodes ? (size_t)nodes : 1) * sizeof(double));
    double *lag = malloc((nodes ? (size_t)nodes * 3 : 1) * sizeof(double));
    int8_t *kind = malloc(nodes ? (size_t)nodes * 3 : 1);
    if (!duration || !finish || !lag || !kind) exit(2);
    for (int64_t node = 0; node < nodes; node++) {
        duration[node] = a_number();
        for (uint64_t wanted = node ? random_below(4) : 0; wanted; wanted--, edges++)
            to[edges] = node, from[edges] = (int64_t)random_below((uint64_t)node), lag[edges] = a_number(),
            kind[edges] = (int8_t)random_below(5) - 1;
    }
    simulate(nodes, duration, edges, from, to, lag, kind, finish);
    for (int64_t node = 0; node < nodes; node++) {
        double begin = 0.0;
        int first = 1;
        for (int64_t edge = 0; edge < edges; edge++)
            if (to[edge] == node && kind[edge] != GONE) {
                double allowed = finish[from[edge]] + lag[edge];
                if (first || allowed > begin) begin = allowed;
                first = 0;
            }
        double wanted = begin + duration[node];
        if (!(finish[node] == wanted || (isnan(finish[node]) && isnan(wanted)))) fail("another end");
    }
    free(from), free(to), free(duration), free(finish), free(lag), free(kind);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    long rounds = atol(arguments[1]);
    state = strtoull(arguments[2], NULL, 10) * 2 + 1;
    for (long round = 0; round < rounds; round++) nest_once(), simulate_once();
    printf("%ld rounds\n", rounds);
    return 0;
}
