/* A management library of our own making: four cards, their state in exported integers; card 3 may be cut by MIG. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fake_hang = 0;           /* what never returns: 1 the start, 2 finding a device, 3 its clocks, 4 putting them back */
int fake_hung = 0;           /* calls that did not return */
static void hang(int at) { while (fake_hang == at || (getenv("FAKE_HANG") && atoi(getenv("FAKE_HANG")) == at)) { fake_hung++; pause(); } }
int fake_permission = 0;     /* status that setting clocks returns */
int fake_throttle_after = -1; /* looks until the clocks are held down */
int fake_held_by = 4;        /* by which reason: 4 power cap, 0x20 and 0x40 heat, 0x80 power brake */
int fake_watts = 650, fake_swing = 0; /* the power of every second look is higher by the second */
int fake_drawn = 0;          /* the power of this moment; 0: no other */
int fake_drop_lock_after = -1; /* looks until the lock is lost */
int fake_lost_after = -1;    /* looks until the card is off the bus */
int fake_temperature = 50, fake_cooling = 0, fake_pid = 0, fake_reasons = 1;
int fake_mig = 0, fake_unlike = 0, fake_memory_locked = 0, fake_memory_status = 0, fake_memory_clock = 3201;
int fake_locked = 0, fake_sets = 0, fake_resets = 0, fake_looks = 0, fake_reset_status = 0;
unsigned long long fake_violation = 0;
int fake_ecc = 0, fake_xid = 0; /* errors that were not corrected, and errors that wait to be heard */
int fake_remapped = 0, fake_remap_pending = 0, fake_remap_failed = 0, fake_no_health = 0;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, SMALL = 7, LOST = 15 };
/* Handles: 1 to 4 are cards, 11 and 12 the instances of the fourth. */
#define CARDS 4
static int of(void *h) { return (int)(intptr_t)h; }
static int mig(void) { return fake_mig || getenv("FAKE_MIG"); }
static const char *uuid(int h) {
    static char text[64];
    snprintf(text, sizeof text, h > 10 ? "MIG-a%d111111-2222-3333-4444-555555555555" : "GPU-%d1111111-2222-3333-4444-555555555555", h > 10 ? h - 10 : h);
    return text;
}
static const char *bus(int h) {
    static char text[32];
    snprintf(text, sizeof text, "00000000:%XB:00.0", 2 * (h > 10 ? CARDS : h) - 1);
    return text;
}
static int gone(void) { return fake_lost_after >= 0 && fake_looks > fake_lost_after; }

int nvmlInitWithFlags(unsigned f) { hang(1); return OK; }
int nvmlInit_v2(void) { hang(1); return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int s) {
    return s == 4 ? "Insufficient Permissions" : s == 3 ? "Not Supported" : s == 15 ? "GPU is lost" : "Failed";
}
int nvmlSystemGetDriverVersion(char *t, unsigned n) { strncpy(t, "999.1", n); return OK; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = CARDS; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(intptr_t)(i + 1); return i < CARDS ? OK : INVALID; }
static int find(const char *(*name)(int), const char *wanted, void **h) {
    for (int i = 1; i <= CARDS + 2; i++) {
        int at = i <= CARDS ? i : i + 10 - CARDS;
        if (strcmp(name(at), wanted) || (at > 10 && !mig())) continue;
        *h = (void *)(intptr_t)at;
        return OK;
    }
    return NOT_FOUND;
}
int nvmlDeviceGetHandleByUUID(const char *u, void **h) { hang(2); return find(uuid, u, h); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *b, void **h) { return find(bus, b, h); }
int nvmlDeviceGetName(void *h, char *t, unsigned n) {
    strncpy(t, of(h) > 10 ? "NVIDIA H200 MIG 1g.18gb" : fake_unlike && of(h) == 2 ? "NVIDIA L4" : "NVIDIA H200", n);
    return OK;
}
int nvmlDeviceGetIndex(void *h, unsigned *i) { *i = of(h) - 1; return OK; }
int nvmlDeviceGetUUID(void *h, char *t, unsigned n) { strncpy(t, uuid(of(h)), n); return OK; }
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char name[32]; };
int nvmlDeviceGetPciInfo_v3(void *h, struct pci *p) { memset(p, 0, sizeof *p); strcpy(p->name, bus(of(h))); return OK; }
int nvmlDeviceGetMemoryInfo(void *h, unsigned long long *m) {
    m[0] = of(h) > 10 ? 18253611008ull : 150754820096ull; m[1] = m[0]; m[2] = 0;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(void *h, unsigned *n) { *n = mig() && of(h) == CARDS ? 7 : 0; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *h, unsigned i, void **part) {
    *part = (void *)(intptr_t)(11 + i);
    return mig() && of(h) == CARDS && i < 2 ? OK : NOT_FOUND;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **h) { *h = (void *)(intptr_t)CARDS; return OK; }
int nvmlDeviceGetGpuInstanceId(void *part, unsigned *id) { *id = of(part) - 4; return of(part) > 10 ? OK : INVALID; }
int nvmlDeviceGetEnforcedPowerLimit(void *h, unsigned *w) { *w = 700000; return OK; }
int nvmlDeviceGetPowerManagementDefaultLimit(void *h, unsigned *w) { *w = 700000; return OK; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *w) { *w = (fake_watts + fake_looks % 2 * fake_swing) * 1000; return OK; }
static unsigned long long fake_joules;
int nvmlDeviceGetTotalEnergyConsumption(void *h, unsigned long long *mj) {
    fake_joules += fake_watts;
    *mj = fake_joules * 1000;
    return of(h) > 10 ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *later) { *now = *later = 1; return mig() && of(h) == CARDS ? OK : NOT_SUPPORTED; }

int nvmlDeviceGetClockInfo(void *h, int kind, unsigned *mhz) {
    hang(3);
    if (kind == 1) fake_looks++;
    if (gone()) return LOST;
    int held = fake_locked && !(fake_drop_lock_after >= 0 && fake_looks > fake_drop_lock_after);
    *mhz = kind == 2 ? fake_memory_clock : held ? fake_locked : 1980;
    return OK;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *h, unsigned long long *r) {
    int down = fake_throttle_after >= 0 && fake_looks > fake_throttle_after;
    if (down) fake_violation += 1000000000ull;
    *r = fake_reasons | (down ? fake_held_by : 0);
    return OK;
}
int nvmlDeviceGetTemperature(void *h, int sensor, unsigned *t) { *t = fake_temperature; fake_temperature -= fake_cooling; return OK; }
int nvmlDeviceGetTemperatureThreshold(void *h, int kind, unsigned *t) { *t = 90; return OK; }
struct field { unsigned id, scope; long long stamp, latency; unsigned type, status; unsigned long long number; };
int nvmlDeviceGetFieldValues(void *h, int n, struct field *f) {
    unsigned counter = fake_held_by == 0x20 ? 269 : fake_held_by == 0x40 ? 270 : fake_held_by == 0x80 ? 271 : 74;
    for (int i = 0; i < n; i++) { f[i].status = OK; f[i].number = f[i].id == counter ? fake_violation : 0; }
    if (n == 1 && f->id == 186) f->number = (fake_drawn ? fake_drawn : fake_watts) * 1000;
    return OK;
}
struct process { unsigned pid; unsigned long long memory; unsigned gpu, compute; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *n, struct process *p) { /* not on the second instance */
    if (!fake_pid || of(h) == 12) { *n = 0; return OK; }
    if (!p || *n < 1) { *n = 1; return SMALL; }
    memset(p, 0, sizeof *p);
    p->pid = fake_pid;
    *n = 1;
    return OK;
}
int nvmlDeviceSetGpuLockedClocks(void *h, unsigned low, unsigned high) {
    if (fake_permission || getenv("FAKE_DENIED")) return fake_permission ? fake_permission : 4;
    fake_sets++;
    fake_locked = low == 0xffffff01u ? 1365 : (int)high;
    return OK;
}
int nvmlDeviceResetGpuLockedClocks(void *h) {
    hang(4);
    if (fake_reset_status) return fake_reset_status;
    fake_resets++;
    fake_locked = 0;
    return OK;
}
int nvmlDeviceGetMaxClockInfo(void *h, int kind, unsigned *mhz) { *mhz = kind == 2 ? 3201 : 1980; return OK; }
int nvmlDeviceSetMemoryLockedClocks(void *h, unsigned low, unsigned high) {
    if (fake_memory_status) return fake_memory_status;
    fake_memory_locked = (int)high;
    return fake_permission;
}
int nvmlDeviceResetMemoryLockedClocks(void *h) { fake_memory_locked = 0; return fake_memory_status ? fake_memory_status : fake_reset_status; }

int nvmlDeviceGetTotalEccErrors(void *h, int kind, int counter, unsigned long long *n) {
    *n = kind == 1 ? fake_ecc : 2;
    return fake_no_health ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetRemappedRows(void *h, unsigned *corrected, unsigned *not, unsigned *pending, unsigned *failed) {
    *corrected = fake_remapped; *not = 0; *pending = (fake_remap_pending || getenv("FAKE_REMAP_PENDING")) && of(h) == 1; *failed = fake_remap_failed;
    return fake_no_health ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetRetiredPagesPendingStatus(void *h, unsigned *pending) { return NOT_SUPPORTED; }
int nvmlEventSetCreate(void **set) { *set = (void *)7; return fake_no_health ? NOT_SUPPORTED : OK; }
int nvmlDeviceRegisterEvents(void *h, unsigned long long kinds, void *set) { return OK; }
struct event { void *device; unsigned long long type, data; unsigned gpu, compute; };
int nvmlEventSetWait_v2(void *set, struct event *e, unsigned patience) {
    if (!fake_xid) return 10;
    fake_xid--;
    e->type = 8;
    e->data = 79;
    return OK;
}
int nvmlEventSetFree(void *set) { return OK; }
