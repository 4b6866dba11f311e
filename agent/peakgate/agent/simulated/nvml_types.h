/* The part of NVML's types that the simulation needs, by NVML's own names.
 *
 * Compile with -DOFFICIAL_HEADER to take them, and every prototype, from NVIDIA's nvml.h instead: a function of ours that differs from
 * NVIDIA's declaration then does not compile. The suite does that, and compares the layout of each structure below with NVIDIA's. */
#ifndef SIMULATED_NVML_TYPES_H
#define SIMULATED_NVML_TYPES_H

#ifdef OFFICIAL_HEADER
#define NVML_NO_UNVERSIONED_FUNC_DEFS /* declares the older versions of functions as well */
#include <nvml.h>
#else

#define NVML_VALUE_NOT_AVAILABLE (-1)
#define NVML_DEVICE_MIG_DISABLE 0x0
#define NVML_DEVICE_MIG_ENABLE 0x1
#define nvmlEventTypeXidCriticalError 0x8LL
#define nvmlEventMigConfigChange 0x100LL
#define NVML_STRUCT_VERSION(data, version) (unsigned int)(sizeof(nvml##data##_v##version##_t) | (version << 24U))

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_NOT_READY = 27,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;
typedef enum {
    NVML_FEATURE_DISABLED = 0,
    NVML_FEATURE_ENABLED = 1
} nvmlEnableState_t;
typedef enum {
    NVML_TEMPERATURE_GPU = 0
} nvmlTemperatureSensors_t;
typedef enum {
    NVML_CLOCK_GRAPHICS = 0
} nvmlClockType_t;
typedef enum {
    NVML_PCIE_UTIL_TX_BYTES = 0
} nvmlPcieUtilCounter_t;
typedef enum {
    NVML_PSTATE_0 = 0
} nvmlPstates_t;
typedef enum {
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
} nvmlMemoryErrorType_t;
typedef enum {
    NVML_VOLATILE_ECC = 0
} nvmlEccCounterType_t;
typedef enum {
    NVML_COMPUTEMODE_DEFAULT = 0
} nvmlComputeMode_t;
typedef enum {
    NVML_DRIVER_WDDM = 0
} nvmlDriverModel_t;

typedef struct {
    char busIdLegacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;
typedef struct {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;
typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t;
typedef nvmlProcessInfo_v2_t nvmlProcessInfo_t;
typedef struct {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct {
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned long long time;
    unsigned long long startTime;
    unsigned int isRunning;
    unsigned int reserved[5];
} nvmlAccountingStats_t;
typedef struct {
    unsigned int pid;
    unsigned int isRunning;
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned int sampleCount;
    unsigned long long sumGpuUtil;
    unsigned long long sumFbUtil;
    unsigned long long time;
    unsigned long long startTime;
} nvmlAccountingStats_v2_t;
typedef struct {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;
typedef struct {
    unsigned long long bar1Total;
    unsigned long long bar1Free;
    unsigned long long bar1Used;
} nvmlBAR1Memory_t;
typedef struct {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature;
} nvmlTemperature_v1_t;
typedef nvmlTemperature_v1_t nvmlTemperature_t;
typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType;
    unsigned long long eventData;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlEventData_t;

#define nvmlMemory_v2 NVML_STRUCT_VERSION(Memory, 2)
#define nvmlTemperature_v1 NVML_STRUCT_VERSION(Temperature, 1)

#endif
#endif
