/* Reads a scenario.
 *
 * Scenario: one directive a line, `#` starts a comment, words are separated by blanks, `_` in a name stands for a blank.
 *   driver VERSION
 *   latency MICROSECONDS             every call takes that long
 *   speed FACTOR                     scenario seconds in one real second
 *   late_processes N                 N processes appear between the size call and the fetch call
 *   gpu INDEX uuid=U total=SIZE [reserved=SIZE] [name=N] [accounting=on|off|unsupported]
 *   mig INDEX uuid=U total=SIZE gi=N ci=N [reserved=SIZE] [name=N]      a MIG instance of the GPU with that index
 *   process INDEX pid=P memory=T:SIZE,T:SIZE,...,T:end [kind=compute|graphics|mps] [gi=N ci=N]
 *                                    SIZE may be NA; pid=0 is memory that belongs to no listed process
 *   error CODE [function=NAME] [gpu=INDEX] [from=T] [until=T]
 *   event INDEX at=T type=N data=N   delivered once by nvmlEventSetWait_v2
 * SIZE takes K M G (1024, 1024^2, 1024^3 bytes); T is in scenario seconds since the scenario was loaded.
 * A program that cannot call simulated_nvml_load names a file in PEAKGATE_SIMULATED_NVML. */
#define _GNU_SOURCE
#include "simulation.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_WORDS = 12 };
Simulation sim;

/* ---- time ---- */
double monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
double scenario_time(void) { return sim.virtual_time >= 0 ? sim.virtual_time : (monotonic() - sim.loaded_at) * sim.speed; }

/* ---- the scenario ---- */
typedef struct { int count; char *word[MAX_WORDS]; } Line;

static u64 parse_size(const char *text) {
    char *end;
    double number = strtod(text, &end);
    u64 unit = *end == 'G' ? 1ULL << 30 : *end == 'M' ? 1ULL << 20 : *end == 'K' ? 1ULL << 10 : 1ULL;
    return (u64)(number * (double)unit);
}
static const char *value_of(const Line *line, const char *key, const char *fallback) {
    size_t length = strlen(key);
    for (int i = 1; i < line->count; i++)
        if (!strncmp(line->word[i], key, length) && line->word[i][length] == '=') return line->word[i] + length + 1;
    return fallback;
}
static int keys_known(const Line *line, const char *known) { /* known: " key key " */
    for (int i = 2; i < line->count; i++) {
        const char *equals = strchr(line->word[i], '=');
        char key[40];
        if (!equals || equals - line->word[i] > 30) return 0;
        snprintf(key, sizeof key, " %.*s ", (int)(equals - line->word[i]), line->word[i]);
        if (!strstr(known, key)) return 0;
    }
    return 1;
}
static void copy_name(char *to, const char *from) {
    snprintf(to, 80, "%.79s", from);
    for (char *c = to; *c; c++)
        if (*c == '_') *c = ' ';
}
static int parse_gpu(const Line *line, int mig) {
    if (sim.devices == MAX_DEVICES || !value_of(line, "uuid", NULL) || !value_of(line, "total", NULL)) return 0;
    if (!keys_known(line, mig ? " uuid total reserved name gi ci " : " uuid total reserved name accounting ")) return 0;
    struct nvmlDevice_st *d = &sim.device[sim.devices++];
    const char *accounting = value_of(line, "accounting", "off");
    d->index = atoi(line->word[1]);
    d->total = parse_size(value_of(line, "total", "0"));
    d->reserved = parse_size(value_of(line, "reserved", "0"));
    d->accounting = !strcmp(accounting, "on") ? 1 : !strcmp(accounting, "off") ? 0 : -1;
    d->gi = d->ci = -1;
    snprintf(d->uuid, sizeof d->uuid, "%.79s", value_of(line, "uuid", ""));
    copy_name(d->name, value_of(line, "name", "Simulated_GPU"));
    if (!mig) return 1;
    d->gi = atoi(value_of(line, "gi", "0"));
    d->ci = atoi(value_of(line, "ci", "0"));
    for (int i = 0; i < sim.devices - 1; i++)
        if (!sim.device[i].parent && sim.device[i].index == d->index) d->parent = &sim.device[i];
    return d->parent != NULL;
}
static int parse_steps(Process *p, char *text) { /* 0:600M,3:14G,9:end */
    char *rest;
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *colon = strchr(item, ':');
        if (!colon || p->steps == MAX_STEPS) return 0;
        Step *step = &p->step[p->steps++];
        step->at = atof(item);
        step->end = !strcmp(colon + 1, "end");
        step->bytes = step->end ? 0 : !strcmp(colon + 1, "NA") ? NOT_AVAILABLE : parse_size(colon + 1);
        if (p->steps > 1 && step->at < p->step[p->steps - 2].at) return 0;
    }
    return p->steps > 0;
}
static int parse_process(const Line *line) {
    if (sim.processes == MAX_PROCESSES || !value_of(line, "pid", NULL) || !value_of(line, "memory", NULL)) return 0;
    if (!keys_known(line, " pid memory kind gi ci ")) return 0;
    Process *p = &sim.process[sim.processes++];
    char steps[1024];
    p->index = atoi(line->word[1]);
    p->pid = (unsigned)strtoul(value_of(line, "pid", "0"), NULL, 10);
    p->kind = value_of(line, "kind", "compute")[0];
    p->gi = atoi(value_of(line, "gi", "-1"));
    p->ci = atoi(value_of(line, "ci", "-1"));
    snprintf(steps, sizeof steps, "%s", value_of(line, "memory", ""));
    return parse_steps(p, steps);
}
static int parse_error(const Line *line) {
    if (sim.errors == MAX_ERRORS || !keys_known(line, " function gpu from until ")) return 0;
    ErrorWindow *e = &sim.error[sim.errors++];
    e->code = atoi(line->word[1]);
    e->index = atoi(value_of(line, "gpu", "-1"));
    e->from = atof(value_of(line, "from", "0"));
    e->until = atof(value_of(line, "until", "1e18"));
    snprintf(e->function, sizeof e->function, "%.63s", value_of(line, "function", "*"));
    return e->code > 0;
}
static int parse_event(const Line *line) {
    if (sim.events == MAX_EVENTS || !keys_known(line, " at type data ")) return 0;
    Event *e = &sim.event[sim.events++];
    e->index = atoi(line->word[1]);
    e->at = atof(value_of(line, "at", "0"));
    e->type = strtoull(value_of(line, "type", "8"), NULL, 0);
    e->data = strtoull(value_of(line, "data", "0"), NULL, 0);
    return 1;
}
static int parse_directive(const Line *line) {
    const char *verb = line->word[0], *first = line->word[1];
    if (!strcmp(verb, "gpu")) return parse_gpu(line, 0);
    if (!strcmp(verb, "mig")) return parse_gpu(line, 1);
    if (!strcmp(verb, "process")) return parse_process(line);
    if (!strcmp(verb, "error")) return parse_error(line);
    if (!strcmp(verb, "event")) return parse_event(line);
    if (!strcmp(verb, "driver")) return snprintf(sim.driver, sizeof sim.driver, "%.79s", first) > 0;
    if (!strcmp(verb, "latency")) return (sim.latency_us = atol(first)) >= 0;
    if (!strcmp(verb, "speed")) return (sim.speed = atof(first)) > 0;
    if (!strcmp(verb, "late_processes")) return sim.late_processes = (unsigned)atoi(first), 1;
    return 0;
}
static int parse_line(char *text) {
    Line line = {0};
    char *rest;
    text[strcspn(text, "#\r")] = 0;
    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (line.count == MAX_WORDS) return 0;
        line.word[line.count++] = word;
    }
    return line.count == 0 || (line.count > 1 && parse_directive(&line));
}

/* Loads a scenario's text; returns 0, or the number of the first line that is not understood. */
API int simulated_nvml_load(const char *scenario) {
    memset(&sim, 0, sizeof sim);
    sim.loaded_at = monotonic();
    sim.speed = 1;
    sim.virtual_time = -1;
    snprintf(sim.driver, sizeof sim.driver, "580.65.06");
    int number = 0;
    for (const char *at = scenario; *at; number++) {
        char text[2048];
        size_t length = strcspn(at, "\n");
        if (length >= sizeof text) return number + 1;
        memcpy(text, at, length);
        text[length] = 0;
        if (!parse_line(text)) return number + 1;
        at += length + (at[length] == '\n');
    }
    return 0;
}
/* Stands the scenario's clock at `seconds`; a negative value lets it run again. */
API void simulated_nvml_set_time(double seconds) { sim.virtual_time = seconds; }
/* Calls since the scenario was loaded or this was last asked. */
API long simulated_nvml_calls(void) {
    long calls = sim.calls;
    sim.calls = 0;
    return calls;
}
__attribute__((constructor)) static void load_named_file(void) {
    const char *path = getenv("PEAKGATE_SIMULATED_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    static char text[1 << 16];
    sim.speed = 1;
    sim.virtual_time = -1;
    if (!file) return;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    int line = simulated_nvml_load(text);
    if (line) fprintf(stderr, "simulated NVML: %s: line %d is not understood\n", path, line);
}
