/* NVML as a whole: begin, end, versions, names of errors. */
#include "simulation.h"
#include <stdio.h>

API nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    ENTER_NODE();
    sim.initialized++;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvmlReturn_t nvmlShutdown(void) {
    if (!sim.initialized) return NVML_ERROR_UNINITIALIZED;
    sim.initialized--;
    return NVML_SUCCESS;
}

#define NAMED(code) case code: return #code
API const char *nvmlErrorString(nvmlReturn_t result) {
    switch ((int)result) {
        NAMED(NVML_SUCCESS);
        NAMED(NVML_ERROR_UNINITIALIZED);
        NAMED(NVML_ERROR_INVALID_ARGUMENT);
        NAMED(NVML_ERROR_NOT_SUPPORTED);
        NAMED(NVML_ERROR_NO_PERMISSION);
        NAMED(NVML_ERROR_NOT_FOUND);
        NAMED(NVML_ERROR_INSUFFICIENT_SIZE);
        NAMED(NVML_ERROR_DRIVER_NOT_LOADED);
        NAMED(NVML_ERROR_TIMEOUT);
        NAMED(NVML_ERROR_IRQ_ISSUE);
        NAMED(NVML_ERROR_LIBRARY_NOT_FOUND);
        NAMED(NVML_ERROR_FUNCTION_NOT_FOUND);
        NAMED(NVML_ERROR_GPU_IS_LOST);
        NAMED(NVML_ERROR_RESET_REQUIRED);
        NAMED(NVML_ERROR_OPERATING_SYSTEM);
        NAMED(NVML_ERROR_LIB_RM_VERSION_MISMATCH);
        NAMED(NVML_ERROR_INSUFFICIENT_RESOURCES);
        NAMED(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        NAMED(NVML_ERROR_NOT_READY);
        default: return "NVML_ERROR_UNKNOWN";
    }
}

API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    ENTER_NODE();
    int needed = snprintf(version, length, "%s", driver_now()->version);
    return needed < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) { /* CUDA's major version, then the driver's */
    int major = 0;
    ENTER_NODE();
    sscanf(driver_now()->cuda, "%d", &major);
    int needed = snprintf(version, length, "%d.%s", major, driver_now()->version);
    return needed < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    int major = 0, minor = 0;
    ENTER_NODE();
    sscanf(driver_now()->cuda, "%d.%d", &major, &minor);
    *version = major * 1000 + minor * 10;
    return NVML_SUCCESS;
}
API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }
