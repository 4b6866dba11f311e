/* Reads a scenario: one directive a line, `#` starts a comment, words are separated by blanks. docs/simulated-nvml.md has the grammar.
 *
 * A directive is a row of `directives`, and its KEY=VALUE words are rows of a table: the key, how its value is read, where it goes.
 * A program that cannot call simulated_nvml_load names a file in PEAKGATE_SIMULATED_NVML. */
#define _GNU_SOURCE
#include "values.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 32, LINE_LENGTH = 2048 };
Simulation sim;

typedef struct { int count; char *word[MAX_WORDS]; } Line;
typedef struct { const char *name; Reader read; size_t offset; int required; } Key;
#define KEY(type, name, read, field) { name, read, offsetof(type, field), 0 }
#define NEEDED(type, name, read, field) { name, read, offsetof(type, field), 1 }

static const Key gpu_keys[] = {
    NEEDED(struct nvmlDevice_st, "uuid", read_text, uuid), NEEDED(struct nvmlDevice_st, "total", read_number, total),
    KEY(struct nvmlDevice_st, "reserved", read_number, reserved), KEY(struct nvmlDevice_st, "name", read_name, name),
    KEY(struct nvmlDevice_st, "accounting", read_series, accounting), KEY(struct nvmlDevice_st, "mig", read_switch, mig),
    KEY(struct nvmlDevice_st, "bar1", read_number, bar1_total), KEY(struct nvmlDevice_st, "bar1_used", read_number, bar1_used),
    KEY(struct nvmlDevice_st, "minor", read_whole, minor), KEY(struct nvmlDevice_st, "pci", read_text, pci),
    KEY(struct nvmlDevice_st, "persistence", read_series, persistence), KEY(struct nvmlDevice_st, "temperature", read_series, temperature),
    KEY(struct nvmlDevice_st, "gpu_utilization", read_series, gpu_utilization),
    KEY(struct nvmlDevice_st, "memory_utilization", read_series, memory_utilization),
    KEY(struct nvmlDevice_st, "power", read_watts, power_mw), KEY(struct nvmlDevice_st, "power_limit", read_watts, power_limit_mw),
    KEY(struct nvmlDevice_st, "fan", read_series, fan)};
static const Key mig_keys[] = {
    NEEDED(struct nvmlDevice_st, "uuid", read_text, uuid), NEEDED(struct nvmlDevice_st, "total", read_number, total),
    KEY(struct nvmlDevice_st, "reserved", read_number, reserved), KEY(struct nvmlDevice_st, "name", read_name, name),
    KEY(struct nvmlDevice_st, "bar1", read_number, bar1_total), KEY(struct nvmlDevice_st, "bar1_used", read_number, bar1_used),
    KEY(struct nvmlDevice_st, "gi", read_whole, gi), KEY(struct nvmlDevice_st, "ci", read_whole, ci),
    KEY(struct nvmlDevice_st, "slot", read_whole, slot), KEY(struct nvmlDevice_st, "from", read_seconds, from),
    KEY(struct nvmlDevice_st, "until", read_seconds, until)};
static const Key process_keys[] = {
    NEEDED(Process, "pid", read_whole, pid), NEEDED(Process, "memory", read_memory, memory), KEY(Process, "kind", read_kinds, kind),
    KEY(Process, "gi", read_whole, gi), KEY(Process, "ci", read_whole, ci),
    KEY(Process, "sm_utilization", read_series, sm_utilization), KEY(Process, "memory_utilization", read_series, memory_utilization)};
static const Key error_keys[] = {KEY(ErrorWindow, "function", read_text, function), KEY(ErrorWindow, "gpu", read_whole, index),
                                 KEY(ErrorWindow, "from", read_seconds, from), KEY(ErrorWindow, "until", read_seconds, until)};
static const Key event_keys[] = {KEY(Event, "at", read_seconds, at), KEY(Event, "type", read_number, type),
                                 KEY(Event, "data", read_number, data), KEY(Event, "gi", read_whole, gi), KEY(Event, "ci", read_whole, ci)};
static const Key latency_keys[] = {KEY(Latency, "function", read_text, function)};
static const Key driver_keys[] = {KEY(Driver, "from", read_seconds, from), KEY(Driver, "cuda", read_text, cuda)};
static const Key late_keys[] = {KEY(Simulation, "times", read_count, late_times)};

/* ---- directives: each has what a new row begins with ---- */
static int read_keys(const Line *line, const Key *keys, size_t count, void *to) {
    unsigned given = 0;
    for (int i = 2; i < line->count; i++) {
        char *equals = strchr(line->word[i], '=');
        size_t k = 0, length = equals ? (size_t)(equals - line->word[i]) : 0;
        while (k < count && (strlen(keys[k].name) != length || strncmp(keys[k].name, line->word[i], length))) k++;
        if (!equals || k == count || !keys[k].read(equals + 1, (char *)to + keys[k].offset)) return 0;
        given |= 1u << k;
    }
    for (size_t k = 0; k < count; k++)
        if (keys[k].required && !(given & 1u << k)) return 0;
    return 1;
}
#define READ_KEYS(line, keys, to) read_keys(line, keys, COUNT(keys), to)
#define NEW_ROW(array, counter) (sim.counter < (int)COUNT(sim.array) ? &sim.array[sim.counter++] : NULL)

static int read_gpu(const Line *line) {
    struct nvmlDevice_st *d = NEW_ROW(device, devices);
    if (!d || !read_whole(line->word[1], &d->index)) return 0;
    d->gi = d->ci = d->slot = -1;
    d->minor = d->index;
    d->accounting.steps = d->persistence.steps = 1; /* both off */
    snprintf(d->name, TEXT_LENGTH, "Simulated GPU");
    snprintf(d->pci, TEXT_LENGTH, "0:%x:0", d->index + 1);
    return READ_KEYS(line, gpu_keys, d) && d->reserved <= d->total;
}
static int read_mig(const Line *line) {
    int instances = 0;
    struct nvmlDevice_st *d = NEW_ROW(device, devices);
    if (!d || !read_whole(line->word[1], &d->index)) return 0;
    for (struct nvmlDevice_st *other = sim.device; other < d; other++) {
        if (other->index != d->index) continue;
        if (other->parent) instances++;
        else d->parent = other;
    }
    d->slot = instances;
    d->until = 1e18;
    if (!d->parent) return 0;
    d->parent->mig = NVML_DEVICE_MIG_ENABLE;
    snprintf(d->name, TEXT_LENGTH, "%s", d->parent->name);
    snprintf(d->pci, TEXT_LENGTH, "%s", d->parent->pci);
    return READ_KEYS(line, mig_keys, d) && d->reserved <= d->total;
}
static int read_process(const Line *line) {
    Process *p = NEW_ROW(process, processes);
    if (!p || !read_whole(line->word[1], &p->index)) return 0;
    p->kind = COMPUTE;
    p->gi = p->ci = -1;
    return READ_KEYS(line, process_keys, p);
}
static int read_error(const Line *line) {
    ErrorWindow *e = NEW_ROW(error, errors);
    if (!e || !read_whole(line->word[1], &e->code)) return 0;
    *e = (ErrorWindow){ .function = "*", .index = -1, .code = e->code, .until = 1e18 };
    return READ_KEYS(line, error_keys, e) && e->code > 0;
}
static int read_event(const Line *line) {
    Event *e = NEW_ROW(event, events);
    if (!e || !read_whole(line->word[1], &e->index)) return 0;
    e->type = nvmlEventTypeXidCriticalError;
    e->gi = e->ci = -1; /* 0xFFFFFFFF outside MIG (nvml.h) */
    return READ_KEYS(line, event_keys, e);
}
static int read_latency(const Line *line) {
    Latency *l = NEW_ROW(latency, latencies);
    return l && read_text("*", l->function) && read_count(line->word[1], &l->microseconds) && READ_KEYS(line, latency_keys, l);
}
static int read_driver(const Line *line) { /* the first one replaces the default */
    Driver *d = sim.drivers == 1 && !sim.driver[0].cuda[0] ? &sim.driver[0] : NEW_ROW(driver, drivers);
    return d && read_text(line->word[1], d->version) && snprintf(d->cuda, TEXT_LENGTH, "13.0") > 0 && READ_KEYS(line, driver_keys, d);
}
static int read_late_processes(const Line *line) {
    sim.late_times = -1;
    return read_count(line->word[1], &sim.late_processes) && READ_KEYS(line, late_keys, &sim);
}
static int read_speed(const Line *line) { return line->count == 2 && read_seconds(line->word[1], &sim.speed) && sim.speed > 0; }
static int read_epoch(const Line *line) { return line->count == 2 && read_seconds(line->word[1], &sim.epoch); }
static int read_privileged(const Line *line) {
    u64 yes = 0;
    return line->count == 2 && read_switch(line->word[1], &yes) && (sim.privileged = (int)yes, yes <= 1);
}

static const struct { const char *verb; int (*read)(const Line *line); } directives[] = {
    { "gpu", read_gpu }, { "mig", read_mig }, { "process", read_process }, { "error", read_error }, { "event", read_event },
    { "latency", read_latency }, { "driver", read_driver }, { "late_processes", read_late_processes }, { "speed", read_speed },
    { "epoch", read_epoch }, { "privileged", read_privileged }};

static int read_line(char *text) {
    Line line = {0};
    char *rest;
    text[strcspn(text, "#\r")] = 0;
    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (line.count == MAX_WORDS) return 0;
        line.word[line.count++] = word;
    }
    for (size_t i = 0; i < COUNT(directives) && line.count > 1; i++)
        if (!strcmp(line.word[0], directives[i].verb)) return directives[i].read(&line);
    return line.count == 0;
}
static int read_lines(const char *scenario) {
    int number = 1;
    for (const char *at = scenario; *at; number++) {
        char text[LINE_LENGTH];
        size_t length = strcspn(at, "\n");
        if (length >= sizeof text) return number;
        memcpy(text, at, length);
        text[length] = 0;
        if (!read_line(text)) return number;
        at += length + (at[length] == '\n');
    }
    return 0;
}

/* ---- loading ---- */
static void forget(void) {
    memset(&sim, 0, sizeof sim);
    forget_calls();
    forget_event_sets();
    sim.loaded_at = monotonic();
    sim.speed = 1;
    sim.virtual_time = -1;
    sim.epoch = -1;
    sim.privileged = geteuid() == 0;
    sim.drivers = 1;
    snprintf(sim.driver[0].version, TEXT_LENGTH, "580.65.06");
}
/* Loads a scenario's text; returns 0, or the number of the first line that is not understood. */
API int simulated_nvml_load(const char *scenario) {
    forget();
    map_shared_clock();
    int bad_line = read_lines(scenario);
    if (!sim.driver[0].cuda[0]) snprintf(sim.driver[0].cuda, TEXT_LENGTH, "13.0");
    sim.library = (int)(driver_now() - sim.driver);
    if (sim.epoch < 0) sim.epoch = wall() - scenario_time();
    return bad_line;
}
__attribute__((constructor)) static void load_named_file(void) {
    const char *path = getenv("PEAKGATE_SIMULATED_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    static char text[1 << 16];
    forget();
    if (path && !file) fprintf(stderr, "simulated NVML: %s cannot be read\n", path);
    if (!file) return;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    int line = simulated_nvml_load(text);
    if (line) fprintf(stderr, "simulated NVML: %s: line %d is not understood\n", path, line);
}
