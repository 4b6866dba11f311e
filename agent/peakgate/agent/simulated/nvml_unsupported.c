/* What gpustat and nvitop ask besides, and no scenario can script: the function is there, and this GPU does not support it. */
#include "simulation.h"

#define UNSUPPORTED(name, ...)                                                  \
    API nvmlReturn_t name(nvmlDevice_t device, __VA_ARGS__) {                   \
        ENTER(device);                                                          \
        return NVML_ERROR_NOT_SUPPORTED;                                        \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"

UNSUPPORTED(nvmlDeviceGetEncoderUtilization, unsigned int *utilization, unsigned int *period_us)
UNSUPPORTED(nvmlDeviceGetDecoderUtilization, unsigned int *utilization, unsigned int *period_us)
UNSUPPORTED(nvmlDeviceGetClockInfo, nvmlClockType_t type, unsigned int *mhz)
UNSUPPORTED(nvmlDeviceGetMaxClockInfo, nvmlClockType_t type, unsigned int *mhz)
UNSUPPORTED(nvmlDeviceGetPcieThroughput, nvmlPcieUtilCounter_t counter, unsigned int *value)
UNSUPPORTED(nvmlDeviceGetDisplayActive, nvmlEnableState_t *active)
UNSUPPORTED(nvmlDeviceGetDisplayMode, nvmlEnableState_t *mode)
UNSUPPORTED(nvmlDeviceGetDriverModel_v2, nvmlDriverModel_t *current, nvmlDriverModel_t *pending)
UNSUPPORTED(nvmlDeviceGetPerformanceState, nvmlPstates_t *state)
UNSUPPORTED(nvmlDeviceGetTotalEccErrors, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *errors)
UNSUPPORTED(nvmlDeviceGetComputeMode, nvmlComputeMode_t *mode)
UNSUPPORTED(nvmlDeviceGetCudaComputeCapability, int *major, int *minor)
