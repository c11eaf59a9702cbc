/* The scanner on several threads under the thread sanitizer, as blocks.py uses it: every block is scanned on trial by a
 * thread with a scanner of its own, scanners go from thread to thread, and one thread merges the results meanwhile.
 *
 *     cc -g -O1 -fsanitize=thread -pthread race_scan.c -o race && ./race ROUNDS SEED FILE...
 */
#define _DEFAULT_SOURCE
#include SCANNER

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, BLOCKS = 64 };
static const char *const KEYS[] = {"correlation", "stream", "External id", "bytes", "grid", "block", "Input Dims", "name"};
static const uint32_t KINDS[] = {INTEGER, INTEGER, INTEGER, INTEGER, TRIPLE, TRIPLE, TEXT, TEXT};

typedef struct {
    const uint8_t *data;
    int64_t base, size, begin, position;
    int status, done;
    Scanner *scanner;
} Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Block blocks[BLOCKS];
static int next_block, count;
static Scanner *spare[BLOCKS];
static int spares;

static Scanner *new_scanner(void) {
    Scanner *s = scan_new(KEYS, KINDS, sizeof KINDS / sizeof *KINDS);
    if (!s) exit(2);
    return s;
}

static void *try_blocks(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        Block *block = next_block < count ? &blocks[next_block++] : NULL;
        Scanner *scanner = block && spares ? spare[--spares] : NULL;
        pthread_mutex_unlock(&lock);
        if (!block) return NULL;
        if (!scanner) scanner = new_scanner();
        block->begin = scan_boundary(block->data, block->size);
        block->status = scan_feed(scanner, block->data, block->size, block->base, block->begin, 0, &block->position);
        block->scanner = scanner;
        pthread_mutex_lock(&lock);
        block->done = 1;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
}

/* Events of the whole text, with each block's trial merged where the scan before it arrives exactly at its begin. */
static uint64_t on_threads(const uint8_t *data, int64_t size, int64_t length) {
    pthread_t threads[THREADS];
    int64_t read = 0, position;
    Scanner *s = new_scanner();
    for (count = 0, next_block = 0; count < BLOCKS && count * length < size; count++) {
        int64_t base = count * length, end = count == BLOCKS - 1 || base + length > size ? size : base + length;
        blocks[count] = (Block){.data = data + base, .base = base, .size = end - base};
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, try_blocks, NULL)) exit(2);
    int status = MORE;
    for (int i = 0; i < count; i++) {
        Block *block = &blocks[i];
        pthread_mutex_lock(&lock);
        while (!block->done) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        int64_t middle = block->base + block->begin, end = block->base + block->size;
        if (status == MORE && block->begin < block->size) {
            status = scan_feed(s, data + read, middle - read, read, 0, 0, &position);
            read += position;
            if (status == MORE && read == middle && s->waste + block->scanner->waste <= WASTE_LIMIT) {
                scan_merge(s, block->scanner);
                status = block->status, read = block->base + block->position;
            } else if (status == MORE) {
                status = scan_feed(s, data + read, end - read, read, 0, 0, &position);
                read += position;
            }
        }
        pthread_mutex_lock(&lock);
        scan_clear(block->scanner);
        spare[spares++] = block->scanner;
        pthread_mutex_unlock(&lock);
    }
    if (status == MORE) scan_feed(s, data + read, size - read, read, 0, 1, &position);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    while (spares) scan_free(spare[--spares]);
    uint64_t found = s->count;
    scan_free(s);
    return found;
}

int main(int arguments, char **argument) {
    if (arguments < 4) return 2;
    long rounds = atol(argument[1]);
    uint64_t state = strtoull(argument[2], NULL, 10) * 2 + 1;
    for (long round = 0; round < rounds; round++) {
        FILE *file = fopen(argument[3 + round % (arguments - 3)], "rb");
        if (!file) return 2;
        static uint8_t data[1 << 16];
        int64_t size = (int64_t)fread(data, 1, sizeof data, file), position;
        fclose(file);
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        Scanner *whole = new_scanner();
        scan_feed(whole, data, size, 0, 0, 1, &position);
        uint64_t found = on_threads(data, size, 64 + (int64_t)(state % 4000));
        if (found != whole->count) {
            fprintf(stderr, "%llu events on threads, not %llu\n", (unsigned long long)found, (unsigned long long)whole->count);
            abort();
        }
        scan_free(whole);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
