/* AMD's management library of our own making: two cards, their state in exported integers. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int fake_hang = 0;       /* what never returns: 1 the start, 3 the clocks */
int fake_metrics_status = 2; /* cards before MI300 have no counters of what held their clocks */
int fake_ticks = 1000, fake_held = 0, fake_tick_step = 1000, fake_held_step = 0, fake_violation_reads = 0;
int fake_hung = 0;       /* calls that did not return */
static void hang(int at) { while (fake_hang == at) { fake_hung++; pause(); } }
int fake_permission = 0; /* status that setting clocks returns */
int fake_memory_status = 0, fake_reset_status = 0, fake_clock_status = 0;
int fake_throttle_after = -1; /* looks until the clocks are held down */
int fake_heat = 0;           /* by heat, and not by the power cap */
int fake_lost_after = -1;     /* looks until the driver is gone */
int fake_clock = 2100, fake_temperature = 50, fake_pid = 0, fake_cap = 0, fake_above = 0, fake_memory_least = 0;
int fake_sets = 0, fake_resets = 0, fake_looks = 0, fake_cards = 2, fake_unnumbered = 0;

enum { OK = 0, NOT_SUPPORTED = 2, NOT_LOADED = 34 };
enum { GFX = 0, MEM = 4, CRITICAL = 5, AUTO = 0, OFFSET = 424 };
static int of(void *h) { return (int)(intptr_t)h; }
static void *handle(int at) { return (void *)(intptr_t)at; }
static int gone(void) { return fake_lost_after >= 0 && fake_looks > fake_lost_after; }

int amdsmi_init(uint64_t flags) { hang(1); return fake_cards ? OK : NOT_LOADED; }
int amdsmi_shut_down(void) { return OK; }
int amdsmi_get_socket_handles(uint32_t *n, void **h) {
    *n = fake_cards;
    for (int i = 0; h && i < fake_cards; i++) h[i] = handle(101 + i);
    return OK;
}
int amdsmi_get_processor_handles(void *socket, uint32_t *n, void **h) {
    *n = 1;
    if (h) h[0] = handle(of(socket) - 100);
    return OK;
}
int amdsmi_get_gpu_device_uuid(void *h, unsigned *n, char *text) {
    snprintf(text, *n, "%dff74a1-0000-1000-80f6-2ec6f9c5de6b", of(h) + 10);
    return OK;
}
int amdsmi_get_gpu_device_bdf(void *h, uint64_t *bdf) { /* function 3 bits, device 5, bus 8, domain 48 */
    *bdf = (uint64_t)(0x5 + 0x21 * (of(h) - 1)) << 8;
    return OK;
}
struct asic {
    char market[256]; uint32_t vendor; char maker[256]; uint32_t subvendor; uint64_t device; uint32_t rev;
    char serial[256]; uint32_t oam, units; uint64_t target; uint32_t subsystem, reserved[21];
};
int amdsmi_get_gpu_asic_info(void *h, struct asic *a) {
    memset(a, 0, sizeof *a);
    strcpy(a->market, "AMD Instinct MI300X");
    strcpy(a->serial, "1F");
    a->units = 304;
    a->target = 0x942;
    return OK;
}
struct driver { char version[256], date[256], name[256]; };
int amdsmi_get_gpu_driver_info(void *h, struct driver *d) {
    memset(d, 0, sizeof *d);
    strcpy(d->version, "6.12.12");
    return OK;
}
struct numbers { uint32_t render, card, hsa, hip; char uuid[256]; };
int amdsmi_get_gpu_enumeration_info(void *h, struct numbers *e) {
    memset(e, 0, sizeof *e);
    e->hip = fake_unnumbered ? 0xffffffffu : of(h) - 1;
    snprintf(e->uuid, sizeof e->uuid, "GPU-%d2ec6f9c5de6b", of(h));
    return OK;
}
int amdsmi_get_gpu_memory_total(void *h, int kind, uint64_t *bytes) { *bytes = 206141652992ull; return OK; }
struct clock { uint32_t now, least, most; uint8_t locked, sleeping; uint32_t reserved[4]; };
int amdsmi_get_clock_info(void *h, int kind, struct clock *c) {
    memset(c, 0, sizeof *c);
    hang(3);
    if (kind == GFX) fake_looks++;
    if (gone()) return NOT_LOADED;
    if (fake_clock_status) return fake_clock_status;
    int capped = fake_cap && fake_cap < fake_clock ? fake_cap + fake_above : fake_clock;
    c->now = kind == MEM ? 1300 : capped;
    c->most = kind == MEM ? 1300 : fake_cap ? fake_cap : 2100;
    c->least = kind == MEM ? 900 : 132;
    return OK;
}
int amdsmi_get_temp_metric(void *h, int sensor, int metric, int64_t *t) {
    *t = metric == CRITICAL ? 100 : fake_temperature;
    return OK;
}
struct power { uint64_t socket; uint32_t now, mean; uint64_t gfx, soc, memory; uint32_t limit; uint64_t reserved[18]; };
int amdsmi_get_power_info(void *h, struct power *p) {
    memset(p, 0xff, sizeof *p);
    p->socket = 640; p->now = p->mean = 0xffff;
    return OK;
}
struct violations { uint64_t counted[15]; uint8_t prochot, power, socket, vr, hbm, limit; uint64_t more[8 * 64 + 4 * 8 + 3 * 64]; };
int amdsmi_get_violation_status(void *h, struct violations *v) {
    fake_violation_reads++;
    memset(v, 0xff, sizeof *v);
    v->prochot = v->socket = v->vr = 0;
    int down = fake_throttle_after >= 0 && fake_looks > fake_throttle_after;
    v->power = down && !fake_heat;
    v->socket = down && fake_heat;
    return OK;
}
int amdsmi_get_gpu_metrics_info(void *h, unsigned char *m) { /* a counter, then what held the clocks, in its ticks */
    if (fake_metrics_status) return fake_metrics_status;
    memset(m, 0xff, OFFSET + 6 * sizeof(uint64_t));
    uint64_t held = fake_held += fake_held_step;
    uint64_t told[6] = {fake_ticks += fake_tick_step, 0, fake_heat ? 0 : held, fake_heat ? held : 0, 0, 0};
    memcpy(m + OFFSET, told, sizeof told);
    return OK;
}
int amdsmi_get_gpu_perf_level(void *h, int *level) { *level = fake_cap ? 8 : AUTO; return OK; }
int amdsmi_get_gpu_process_list(void *h, uint32_t *n, char *list) { /* the number follows a name of 256 bytes */
    *n = fake_pid ? 1 : 0;
    if (fake_pid) *(uint32_t *)(list + 256) = fake_pid;
    return OK;
}
int amdsmi_set_gpu_perf_determinism_mode(void *h, uint64_t mhz) {
    if (fake_permission) return fake_permission;
    fake_sets++;
    fake_cap = (int)mhz;
    return OK;
}
int amdsmi_set_gpu_clk_limit(void *h, int kind, int limit, uint64_t mhz) {
    if (fake_memory_status) return fake_memory_status;
    fake_memory_least = kind == MEM && limit == 0 ? (int)mhz : -1;
    return OK;
}
int amdsmi_set_gpu_perf_level(void *h, int level) {
    if (fake_reset_status) return fake_reset_status;
    fake_resets += level == AUTO;
    fake_cap = fake_memory_least = 0;
    return OK;
}
