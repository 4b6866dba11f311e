/* The scenario's clock: real time, or the time that a test says, in this process or for several by a file.
 *
 * PEAKGATE_SIMULATED_NVML_CLOCK names a file of eight bytes, a native double of scenario seconds that its writer changes while we read;
 * a negative value lets real time run. */
#define _GNU_SOURCE
#include "simulation.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const volatile double *shared_clock;

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
double monotonic(void) { return seconds_of(CLOCK_MONOTONIC); }
double wall(void) { return seconds_of(CLOCK_REALTIME); }

double scenario_time(void) {
    if (sim.virtual_time >= 0) return sim.virtual_time;
    double shared = shared_clock ? *shared_clock : -1;
    return shared >= 0 ? shared : (monotonic() - sim.loaded_at) * sim.speed;
}
u64 wall_microseconds(double scenario_seconds) { return (u64)((sim.epoch + scenario_seconds) * 1e6); }

void map_shared_clock(void) {
    const char *path = getenv("PEAKGATE_SIMULATED_NVML_CLOCK");
    if (shared_clock || !path) return;
    struct stat file;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    void *mapped = MAP_FAILED;
    if (descriptor >= 0 && !fstat(descriptor, &file) && file.st_size >= (off_t)sizeof(double))
        mapped = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, descriptor, 0);
    if (descriptor >= 0) close(descriptor);
    if (mapped == MAP_FAILED)
        fprintf(stderr, "simulated NVML: the clock %s cannot be read\n", path);
    else
        shared_clock = mapped;
}

/* Stands the scenario's clock at `seconds`; a negative value gives it back to the shared clock or to real time. */
API void simulated_nvml_set_time(double seconds) { sim.virtual_time = seconds; }
/* The scenario second that it is. */
API double simulated_nvml_time(void) { return scenario_time(); }
