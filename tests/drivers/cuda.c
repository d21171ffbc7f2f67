/* A driver of our own making: one device, or as many as a test says, and one simulated clock. Kernels are launched by fake_launch. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int (*entry)(void);
static double now = 1000, ready = 0; /* nanoseconds, of the host and of the device */
static unsigned *gate = 0;
int fake_lost = 0, fake_no_wait_value = 0, fake_devices = 1;
char fake_log[65536];
enum { OK = 0, INVALID = 1, NOT_INITIALISED = 3, NO_DEVICE = 100, FOREIGN = 400, NOT_FOUND = 500, NOT_SUPPORTED = 801, LOST = 46 };
static char *current = (char *)7; /* the context, which is 7 more than its device */
static void *context_of(void **stream) { return (size_t)stream > 2 ? *stream : current; } /* the first three are the default */
struct event { double at; void *context; };

static void note(const char *what) {
    if (strlen(fake_log) + strlen(what) + 2 < sizeof fake_log) { strcat(fake_log, what); strcat(fake_log, " "); }
}
static double monotonic(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static int real(void) { return getenv("FAKE_CUDA_REAL") != 0; } /* the host's own clock, and waits that last */
static double at(void) {
    if (real()) now = monotonic();
    return now > ready ? now : ready;
}
double fake_now(void) { return now; }

/* A graph is a list of durations. */
struct graph { int count; double ns[8192]; };
static struct graph *capturing = 0;
int fake_capture_fails = 0;
void fake_launch(double ns) {
    if (capturing) { note("captured"); capturing->ns[capturing->count++ % 8192] = ns; return; }
    note("launch"); now += 3000; ready = at() + ns;
}
int cuStreamBeginCapture(void *s, int mode) { note("begin"); capturing = calloc(1, sizeof *capturing); return OK; }
int cuStreamGetCaptureInfo(void *s, int *status, unsigned long long *id, void **g) {
    *status = capturing ? 1 : 0;
    if (id) *id = 1;
    if (g) *g = capturing;
    return OK;
}
int cuStreamIsCapturing(void *s, int *status) { *status = capturing ? 1 : 0; return OK; }
int cuStreamEndCapture(void *s, void **g) {
    note("end");
    *g = fake_capture_fails ? 0 : capturing;
    capturing = 0;
    return fake_capture_fails ? 901 : OK;
}
int cuGraphInstantiateWithParams(void **exec, void *g, void *p) { *exec = g; return OK; }
int cuGraphInstantiateWithFlags(void **exec, void *g, unsigned long long flags) { *exec = g; return OK; }
int cuUserObjectCreate(void **o, void *p, void *destroy, unsigned count, unsigned f) { *o = (void *)5; return OK; }
int cuGraphRetainUserObject(void *g, void *o, unsigned count, unsigned f) { return OK; }
int cuUserObjectRelease(void *o, unsigned count) { return OK; }
int cuGraphReleaseUserObject(void *g, void *o, unsigned count) { return OK; }
int cuGraphUpload(void *exec, void *s) { return OK; }
int cuGraphDestroy(void *g) { return OK; }
int cuGraphExecDestroy(void *exec) { return OK; }
int cuGraphLaunch(struct graph *exec, void *s) {
    note("graph");
    now += 3000;
    for (int i = 0; i < exec->count; i++) ready = at() + exec->ns[i];
    return OK;
}

/* Memory: a pool that hands out addresses, and a fill that takes its time. */
int cuDeviceGetDefaultMemPool(void **p, int d) { *p = (void *)9; return OK; }
int cuDeviceGetMemPool(void **p, int d) { *p = (void *)9; return OK; }
int cuDeviceSetMemPool(int d, void *p) { return OK; }
int cuMemPoolCreate(void **p, void *options) { *p = (void *)9; return OK; }
int cuMemPoolDestroy(void *p) { return OK; }
int cuMemPoolSetAttribute(void *p, int a, void *v) { return OK; }
int cuMemPoolGetAttribute(void *p, int a, void *v) { *(unsigned long long *)v = 0; return OK; }
int cuMemAllocFromPoolAsync(unsigned long long *d, size_t n, void *p, void *s) { note("alloc"); *d = 1 << 20; return OK; }
int cuMemAllocAsync(unsigned long long *d, size_t n, void *s) { note("alloc"); *d = 1 << 20; return OK; }
int cuMemAlloc_v2(unsigned long long *d, size_t n) { note("alloc"); *d = 1 << 20; return OK; }
int cuMemFreeAsync(unsigned long long d, void *s) { return OK; }
int cuMemFree_v2(unsigned long long d) { return OK; }
int cuMemsetD8Async(unsigned long long d, unsigned char c, size_t n, void *s) { note("fill"); now += 3000; ready = at() + 50000; return OK; }
int cuMemsetD8_v2(unsigned long long d, unsigned char c, size_t n) { note("touch"); now += 3000; ready = at() + 1000; return OK; }
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t n, void *s) { note("copy"); fake_launch(60000); return OK; }

/* With FAKE_CUDA_LOG the driver has a state, as the real one does, and writes who changes it. */
static int initialised = 0;
static int logged(const char *what) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : 0;
    if (log) { fprintf(log, "%s %d\n", what, (int)getpid()); fclose(log); }
    return path != 0;
}
int cuInit(unsigned f) { logged("init"); initialised = 1; return OK; }
int cuDriverGetVersion(int *v) { *v = 13000; return OK; }
int cuGetErrorName(int e, const char **t) { *t = e == LOST ? "CUDA_ERROR_DEVICE_UNAVAILABLE" : "CUDA_ERROR"; return OK; }
int cuGetErrorString(int e, const char **t) { *t = e == LOST ? "device fell off the bus" : "failed"; return OK; }
int cuDeviceGetCount(int *n) {
    *n = fake_devices;
    return getenv("FAKE_CUDA_LOG") && !initialised ? NOT_INITIALISED : OK;
}
int cuDeviceGet(int *d, int i) { *d = i; return i < fake_devices ? OK : INVALID; }
int cuDeviceGetName(char *t, int n, int d) { strncpy(t, "NVIDIA H200", n); return OK; }
int cuDeviceGetUuid_v2(char *u, int d) { memset(u, 0x11 * (d + 1), 16); return OK; }
int cuDeviceGetPCIBusId(char *t, int n, int d) { strncpy(t, "00000000:1B:00.0", n); return OK; }
int cuDeviceTotalMem_v2(size_t *m, int d) { *m = 1ull << 37; return OK; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? 132 : a == 38 ? 1 << 20 : 1; return OK; }
int cuDevicePrimaryCtxRetain(void **c, int d) { logged("context"); *c = (char *)7 + d; return OK; }
int cuDevicePrimaryCtxRelease_v2(int d) { return OK; }
int cuDevicePrimaryCtxGetState(int d, unsigned *f, int *a) { *f = 0; *a = 1; return OK; }
int cuCtxSetCurrent(void *c) { current = c; return OK; }
int cuCtxGetCurrent(void **c) { *c = current; return OK; }
static char *below = 0;
int cuCtxPushCurrent_v2(void *c) { below = current; current = c; return OK; }
int cuCtxPopCurrent_v2(void **c) { *c = current; current = below; return OK; }
/* Called as its first version, it has no second argument but what a register holds. */
int cuCtxGetDevice_v2(int *d, char *c) { *d = (c > (char *)6 && c < (char *)7 + fake_devices ? c : current) - (char *)7; return OK; }
int cuCtxGetDevice(int *d) { return cuCtxGetDevice_v2(d, 0); }
int cuCtxGetStreamPriorityRange(int *least, int *most) { *least = 0; *most = -1; return OK; }
int cuCtxSetLimit(int l, size_t v) { note(current == (char *)7 ? "limit" : "limit1"); return OK; }
int cuCtxResetPersistingL2Cache(void) { note("persisting"); return OK; }
static int settled(void) {
    if (fake_lost) return LOST;
    do now = at() + 500; while (real() && monotonic() < ready);
    return OK;
}
int cuCtxSynchronize(void) { note(current == (char *)7 ? "sync" : "sync1"); return settled(); }
int cuCtxSynchronize_v2(void *c) { note("sync"); return settled(); }
int cuStreamSynchronize(void *s) { note("streamsync"); return settled(); }
int cuStreamCreateWithPriority(void ***s, unsigned f, int p) { *s = malloc(8); **s = current; return OK; }
int cuStreamDestroy_v2(void *s) { return OK; }
int cuStreamGetCtx(void *s, void **c) { *c = context_of(s); return OK; }
int cuStreamGetCtx_v2(void *s, void **c, void **g) { if (g) *g = 0; return cuStreamGetCtx(s, c); }
int cuStreamGetDevice(void *s, int *d) { return cuCtxGetDevice_v2(d, context_of(s)); }
int cuEventCreate(struct event **e, unsigned f) {
    note("create");
    *e = calloc(1, sizeof **e);
    (*e)->context = current;
    return OK;
}
int cuEventDestroy_v2(void *e) { free(e); return OK; }
int cuEventRecord(struct event *e, void *s) {
    if (e->context != context_of(s)) return FOREIGN;
    note("record"); now += 500; e->at = at(); ready = at() + 1000;
    return OK;
}
int cuEventRecordWithFlags(struct event *e, void *s, unsigned f) { return cuEventRecord(e, s); }
int cuEventSynchronize(void *e) { note("eventsync"); return settled(); }
int cuEventQuery(void *e) { return OK; }
int cuEventElapsedTime(float *ms, struct event *a, struct event *b) { *ms = (b->at - a->at) / 1e6; return OK; }
int cuEventElapsedTime_v2(float *ms, struct event *a, struct event *b) { return cuEventElapsedTime(ms, a, b); }
int cuMemHostAlloc(void **p, size_t n, unsigned f) { note("hostalloc"); *p = gate = calloc(1, n); return OK; }
int cuMemHostGetDevicePointer_v2(unsigned long long *d, void *p, unsigned f) { *d = (unsigned long long)p; return OK; }
int cuStreamWaitValue32_v2(void *s, unsigned long long a, unsigned v, unsigned f) {
    note("waitvalue");
    return fake_no_wait_value ? NOT_SUPPORTED : OK;
}
unsigned fake_gate(void) { return gate ? *gate : 0; }

static int unsupported(void) { return NOT_SUPPORTED; }
int cuGetProcAddress_v2(const char *name, void **f, int version, unsigned long long flags, int *status) {
    static const char *tails[] = {"_v3", "_v2", ""};
    char full[256];
    *f = 0;
    for (int i = 0; i < 3 && !*f; i++) {
        strcpy(full, name);
        strcat(full, tails[i]);
        *f = dlsym(RTLD_DEFAULT, full);
    }
    if (!*f) *f = (void *)unsupported;
    if (status) *status = 0;
    return OK;
}
int cuGetProcAddress(const char *name, void **f, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, f, version, flags, 0);
}
