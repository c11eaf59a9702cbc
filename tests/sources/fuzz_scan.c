/* Feeds mutated traces to the scanner under the address and undefined-behaviour sanitizers.
 *
 *     cc -g -O1 -fsanitize=address,undefined fuzz_scan.c -o fuzz && ./fuzz ROUNDS SEED FILE...
 *
 * With clang's libFuzzer, which keeps what reaches new code (`make fuzz-native`):
 *
 *     clang -g -O1 -DLIBFUZZER -fsanitize=fuzzer,address,undefined fuzz_scan.c -o fuzz && ./fuzz CORPUS
 *
 * Every input lies in a malloc of exactly its size, so that reading one byte too far is an error, and is scanned
 * whole, in small windows (each in a malloc of its own, freed at once: nothing of it may be kept), in two merged
 * parts, and at the end of a page behind which no memory is. All ways must count the same events.
 */
#define _DEFAULT_SOURCE
#include SCANNER

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const KEYS[] = {"correlation", "stream", "External id", "bytes", "grid", "block", "Input Dims", "name"};
static const uint32_t KINDS[] = {INTEGER, INTEGER, INTEGER, INTEGER, TRIPLE, TRIPLE, TEXT, TEXT};
static const char *const PIECES[] = {"\"", "\\", "{", "}", "[", "]", ",", ":", "{\"ph\":", ",{\"name\":\"", "1e999", "-",
                                     "\"args\":{", "\"grid\":[1,2,", "],\"traceName\":", "9999999999999999999", ".5"};
static uint64_t state;

static uint64_t random_below(uint64_t bound) { /* xorshift; quality does not matter here, repeatability does */
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return bound ? state % bound : 0;
}

static uint8_t *exact_copy(const uint8_t *data, int64_t size) {
    uint8_t *copy = malloc(size ? (size_t)size : 1);
    if (!copy) exit(2);
    memcpy(copy, data, (size_t)size);
    return copy;
}

static Scanner *new_scanner(void) {
    Scanner *s = scan_new(KEYS, KINDS, sizeof KINDS / sizeof *KINDS);
    if (!s) exit(2);
    return s;
}

static void expect(const Scanner *one, const Scanner *other, const char *what) {
    if (one->count == other->count && one->skipped == other->skipped && one->waste == other->waste &&
        one->first_skipped == other->first_skipped) return;
    fprintf(stderr, "%s: %llu events and %lld skipped, not %llu and %lld\n", what, (unsigned long long)other->count,
            (long long)other->skipped, (unsigned long long)one->count, (long long)one->skipped);
    abort();
}

static int64_t scan_whole(Scanner *s, const uint8_t *data, int64_t size) {
    int64_t position;
    scan_feed(s, data, size, 0, 0, 1, &position);
    return position;
}

static void scan_windows(Scanner *s, const uint8_t *data, int64_t size) {
    int64_t start = 0, end = 0, position;
    for (;;) {
        int64_t more = 1 + (int64_t)random_below(64) + (end - start); /* at least as much again as is left over */
        end = size - end > more ? end + more : size;
        uint8_t *window = exact_copy(data + start, end - start);
        int status = scan_feed(s, window, end - start, start, 0, end == size, &position);
        free(window);
        if (status != MORE) return;
        start += position;
    }
}

static void scan_guarded(Scanner *s, const uint8_t *data, int64_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), length = ((size_t)size + page - 1) / page * page;
    uint8_t *memory = mmap(NULL, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + length, page, PROT_NONE)) exit(2);
    memcpy(memory + length - size, data, (size_t)size);
    scan_whole(s, memory + length - size, size);
    munmap(memory, length + page);
}

static void try_input(const uint8_t *data, int64_t size) {
    static void (*const WAYS[])(Scanner *, const uint8_t *, int64_t) = {scan_windows, scan_guarded};
    static const char *const NAMES[] = {"windows", "guard page"};
    uint8_t *exact = exact_copy(data, size);
    Scanner *whole = new_scanner();
    scan_whole(whole, exact, size);
    for (int i = 0; i < 2; i++) {
        Scanner *s = new_scanner();
        WAYS[i](s, exact, size);
        expect(whole, s, NAMES[i]);
        scan_free(s);
    }
    scan_free(whole);
    free(exact);
}

static int64_t mutate(uint8_t *data, int64_t size, int64_t room) {
    for (uint64_t changes = 1 + random_below(8); changes && size; changes--) {
        int64_t at = (int64_t)random_below((uint64_t)size), length = (int64_t)random_below(40);
        const char *piece = PIECES[random_below(sizeof PIECES / sizeof *PIECES)];
        switch (random_below(5)) {
        case 0: data[at] ^= (uint8_t)(1u << random_below(8)); break;
        case 1: data[at] = (uint8_t)random_below(256); break;
        case 2:
            if (length > size - at) length = size - at;
            memmove(data + at, data + at + length, (size_t)(size - at - length));
            size -= length;
            break;
        case 3:
            length = (int64_t)strlen(piece);
            if (size + length > room) break;
            memmove(data + at + length, data + at, (size_t)(size - at));
            memcpy(data + at, piece, (size_t)length);
            size += length;
            break;
        default:
            if (random_below(4) == 0) size = at;
        }
    }
    return size;
}

#ifdef LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    state = size * 2 + 1;
    for (size_t i = 0; i < size && i < 64; i++) state = state * 31 + data[i];
    state |= 1;
    try_input(data, (int64_t)size);
    return 0;
}
#else
int main(int count, char **arguments) {
    if (count < 4) return 2;
    long rounds = atol(arguments[1]);
    state = strtoull(arguments[2], NULL, 10) * 2 + 1;
    for (long round = 0; round < rounds; round++) {
        FILE *file = fopen(arguments[3 + round % (count - 3)], "rb");
        if (!file) return 2;
        static uint8_t data[1 << 16];
        int64_t size = (int64_t)fread(data, 1, sizeof data / 2, file);
        fclose(file);
        try_input(data, round < count - 3 ? size : mutate(data, size, sizeof data));
    }
    printf("%ld inputs\n", rounds);
    return 0;
}
#endif
