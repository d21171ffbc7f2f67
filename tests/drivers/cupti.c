/* A CUPTI of our own making: records that a test hands over as bytes go into the buffers that the client gives. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { OK = 0, INVALID = 1, NO_MORE = 12, EMPTY = 30, TAKEN = 39, KINDS = 128, ROOM = 1 << 22, DEEP = 64 };
typedef void (*request)(uint8_t **buffer, size_t *size, size_t *most);
typedef void (*complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

static request ask;
static complete give;
static uint8_t waiting[ROOM];
static size_t filled, sizes[KINDS], lost;
static int on[KINDS], depth;
static uint64_t ids[DEEP];
static uint8_t *spare;
static size_t spare_size;
int fake_taken = 0, fake_refused = -1, fake_counts = 1, fake_ahead = 0; /* whether a buffer is asked for before it is needed */
size_t fake_most = ROOM; /* bytes of one flush that buffers of 256 KiB hold, larger ones that much more */

static size_t size_of(const uint8_t *record) { return sizes[*(const uint32_t *)record % KINDS]; }

void fake_size(int kind, size_t size) { sizes[kind % KINDS] = size; }
int fake_on(int kind) { return on[kind % KINDS]; }
uint64_t fake_id(void) { return depth ? ids[(depth - 1) % DEEP] : 0; }
void fake_add(const uint8_t *record) {
    if (!on[*(const uint32_t *)record % KINDS] || filled + size_of(record) > ROOM) return;
    memcpy(waiting + filled, record, size_of(record));
    filled += size_of(record);
}

static void ask_ahead(void) {
    size_t most = 0;
    if (fake_ahead && ask && !spare) ask(&spare, &spare_size, &most);
}
int cuptiActivityRegisterCallbacks(request a, complete g) {
    if (fake_taken) return TAKEN;
    ask = a, give = g;
    return OK;
}
int cuptiActivityEnable(int kind) {
    if (fake_taken || kind == fake_refused) return TAKEN;
    on[kind % KINDS] = 1;
    ask_ahead();
    return OK;
}
int cuptiActivityDisable(int kind) { on[kind % KINDS] = 0; return OK; }
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) { ids[depth++ % DEEP] = id; return OK; }
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last) {
    if (!depth) return EMPTY;
    depth--;
    if (last) *last = ids[depth % DEEP];
    return OK;
}
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
    *dropped = lost;
    lost = 0;
    return OK;
}
int cuptiActivityFlushAll(uint32_t flag) {
    size_t at = 0;
    while (at < filled && ask) {
        uint8_t *buffer = 0;
        size_t size = 0, most = 0, used = 0, number = 0;
        if (spare) buffer = spare, size = spare_size, spare = 0;
        else ask(&buffer, &size, &most);
        if (!buffer) return INVALID;
        size_t end = size >> 18 && fake_most * (size >> 18) < filled ? fake_most * (size >> 18) : filled;
        for (; at < end && used + size_of(waiting + at) <= size && (!most || number < most); number++) {
            size_t next = size_of(waiting + at);
            memcpy(buffer + used, waiting + at, next);
            used += next, at += next;
        }
        if (!number) at += size_of(waiting + at), lost += fake_counts; /* no room even for one */
        give(0, 0, buffer, size, used);
        if (at >= end)
            for (; at < filled; at += size_of(waiting + at)) lost += fake_counts;
    }
    filled = 0;
    ask_ahead();
    return OK;
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    uint8_t *next = *record ? *record + size_of(*record) : buffer;
    if (!valid || next >= buffer + valid) return NO_MORE;
    *record = next;
    return OK;
}
int cuptiGetResultString(int result, const char **text) { *text = "a fault of our own making"; return OK; }
int cuptiGetErrorMessage(int result, const char **text) { return cuptiGetResultString(result, text); }
int cuptiGetVersion(uint32_t *version) { *version = 130000; return OK; }
