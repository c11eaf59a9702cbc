/* The replay's one pass over a graph in topological order: a node begins when the last of what it waits for allows.
   Edges are sorted by the node they lead to. A copy of the loop in simulate.py, which serves where this is not built. */
#include <stdint.h>

#define GONE -1 /* kind of an edge that a fix has removed */

void simulate(int64_t nodes, const double *duration, int64_t edges, const int64_t *edge_from,
              const int64_t *edge_to, const double *lag, const int8_t *edge_kind, double *finish) {
    int64_t edge = 0;
    for (int64_t node = 0; node < nodes; node++) {
        double begin = 0.0;
        int first = 1;
        for (; edge < edges && edge_to[edge] == node; edge++) {
            if (edge_kind[edge] == GONE) continue;
            double allowed = finish[edge_from[edge]] + lag[edge];
            if (first || allowed > begin) begin = allowed;
            first = 0;
        }
        finish[node] = begin + duration[node];
    }
}
