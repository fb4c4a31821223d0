/*
 * A libnvidia-ml.so.1 that shows GPUs from a description instead of from hardware.
 *
 * Why C and not a fake Python module: nvidia-ml-py then runs unmodified, with its ctypes layouts,
 * struct versions and error mapping, which is where a driver's bugs live.
 *
 * The description is text, one "key value" per line (nvml_driver/simulated/profile.py writes it
 * from a JSON profile). It arrives by nvmlSimulatedLoad(), or, in a process that only knows NVML,
 * at nvmlInit from the file that NVML_SIMULATED_PROFILE names. Everything is copied into fixed
 * arrays with checked lengths; nothing here allocates. Signatures and numbers are those of NVML's
 * public API reference.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum {
    MAX_GPUS = 256,
    MAX_FAULTS = 16,
    MAX_TEXT = 96,
    MAX_LINE = 256,
    MAX_PROFILE = 1024 * 1024,
};

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    ARGUMENT_VERSION_MISMATCH = 25,
    IN_USE = 19,
};

typedef struct {
    char function[MAX_TEXT];
    int result;
} fault_t;

typedef struct {
    char name[MAX_TEXT];
    char uuid[MAX_TEXT];
    unsigned minor;
    int brand;
    unsigned architecture;
    int cc_major, cc_minor;
    unsigned long long memory_total, memory_used;
    bool has_memory;
    unsigned pci_domain, pci_bus, pci_device;
    unsigned pci_device_id, pci_subsystem_id;
    bool has_addressing_mode;
    unsigned addressing_mode;
    bool has_mig;
    unsigned mig_mode;
    bool has_numa;
    int numa_node;
    fault_t faults[MAX_FAULTS];
    unsigned fault_count;
} gpu_t;

typedef struct {
    char driver_version[MAX_TEXT];
    char nvml_version[MAX_TEXT];
    int cuda_driver_version;
    gpu_t gpus[MAX_GPUS];
    unsigned gpu_count;
    fault_t faults[MAX_FAULTS];
    unsigned fault_count;
} profile_t;

typedef gpu_t *device_t;

static profile_t current;
static profile_t incoming; /* parsed here first: a bad text never replaces a good one */
static bool loaded;
static unsigned init_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- reading the description ---------------------------------------------------------------- */

static bool read_signed(const char *text, long long low, long long high, long long *out)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
        return false;
    *out = value;
    return true;
}

static bool read_text(const char *text, char *out)
{
    size_t length = strlen(text);
    if (length == 0 || length >= MAX_TEXT)
        return false;
    memcpy(out, text, length + 1);
    return true;
}

static bool read_fault(const char *text, fault_t *faults, unsigned *count)
{
    const char *space = strchr(text, ' ');
    long long result = 0;
    if (*count >= MAX_FAULTS || space == NULL || space == text
        || (size_t)(space - text) >= MAX_TEXT || !read_signed(space + 1, 1, 999, &result))
        return false;
    memcpy(faults[*count].function, text, (size_t)(space - text));
    faults[*count].function[space - text] = '\0';
    faults[*count].result = (int)result;
    (*count)++;
    return true;
}

static bool read_gpu_line(gpu_t *gpu, const char *key, const char *value)
{
    long long number = 0;
    int end = -1;
    if (strcmp(key, "name") == 0)
        return read_text(value, gpu->name);
    if (strcmp(key, "uuid") == 0)
        return read_text(value, gpu->uuid);
    if (strcmp(key, "compute_capability") == 0)
        return sscanf(value, "%3d.%3d%n", &gpu->cc_major, &gpu->cc_minor, &end) == 2
               && value[end] == '\0';
    if (strcmp(key, "pci_bus_id") == 0)
        return sscanf(value, "%8x:%2x:%2x.0%n", &gpu->pci_domain, &gpu->pci_bus, &gpu->pci_device,
                      &end) == 3
               && end > 0 && value[end] == '\0' && gpu->pci_device < 32;
    if (strcmp(key, "fault") == 0)
        return read_fault(value, gpu->faults, &gpu->fault_count);
    if (strcmp(key, "memory_total") == 0) {
        gpu->has_memory = read_signed(value, 0, LLONG_MAX, &number);
        gpu->memory_total = (unsigned long long)number;
        return gpu->has_memory;
    }
    if (!read_signed(value, INT_MIN, UINT_MAX, &number))
        return false;
    if (strcmp(key, "numa_node") == 0) {
        gpu->has_numa = true;
        gpu->numa_node = (int)number;
        return number <= INT_MAX;
    }
    if (number < 0)
        return false;
    if (strcmp(key, "minor") == 0)
        gpu->minor = (unsigned)number;
    else if (strcmp(key, "brand") == 0)
        gpu->brand = (int)number;
    else if (strcmp(key, "architecture") == 0)
        gpu->architecture = (unsigned)number;
    else if (strcmp(key, "memory_used") == 0)
        gpu->memory_used = (unsigned long long)number;
    else if (strcmp(key, "pci_device_id") == 0)
        gpu->pci_device_id = (unsigned)number;
    else if (strcmp(key, "pci_subsystem_id") == 0)
        gpu->pci_subsystem_id = (unsigned)number;
    else if (strcmp(key, "addressing_mode") == 0)
        gpu->has_addressing_mode = true, gpu->addressing_mode = (unsigned)number;
    else if (strcmp(key, "mig_mode") == 0)
        gpu->has_mig = true, gpu->mig_mode = (unsigned)number;
    else
        return false;
    return true;
}

static bool read_system_line(profile_t *profile, const char *key, const char *value)
{
    long long number = 0;
    if (strcmp(key, "driver_version") == 0)
        return read_text(value, profile->driver_version);
    if (strcmp(key, "nvml_version") == 0)
        return read_text(value, profile->nvml_version);
    if (strcmp(key, "fault") == 0)
        return read_fault(value, profile->faults, &profile->fault_count);
    if (strcmp(key, "cuda_driver_version") == 0 && read_signed(value, 0, INT_MAX, &number)) {
        profile->cuda_driver_version = (int)number;
        return true;
    }
    return false;
}

static int complain(char *error, size_t size, unsigned line, const char *what)
{
    if (error != NULL && size > 0)
        snprintf(error, size, "simulated NVML: line %u: %s", line, what);
    return INVALID_ARGUMENT;
}

static int parse(const char *text, size_t length, char *error, size_t error_size)
{
    static const char header[] = "nvml-simulated 1";
    char line[MAX_LINE];
    unsigned number = 0;
    gpu_t *gpu = NULL;

    memset(&incoming, 0, sizeof incoming);
    if (length > MAX_PROFILE)
        return complain(error, error_size, 0, "the description is larger than 1 MiB");
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && text[end] != '\n')
            end++;
        number++;
        if (end - at >= sizeof line || memchr(text + at, '\0', end - at) != NULL)
            return complain(error, error_size, number, "the line is too long or not text");
        memcpy(line, text + at, end - at);
        line[end - at] = '\0';
        at = end + 1;

        if (number == 1) {
            if (strcmp(line, header) != 0)
                return complain(error, error_size, number, "must be 'nvml-simulated 1'");
            continue;
        }
        if (line[0] == '\0')
            continue;
        if (strcmp(line, "gpu") == 0) {
            if (incoming.gpu_count >= MAX_GPUS)
                return complain(error, error_size, number, "more than 256 GPUs");
            gpu = &incoming.gpus[incoming.gpu_count++];
            continue;
        }
        char *value = strchr(line, ' ');
        if (value == NULL)
            return complain(error, error_size, number, "must be 'key value'");
        *value++ = '\0';
        bool good = gpu != NULL ? read_gpu_line(gpu, line, value)
                                : read_system_line(&incoming, line, value);
        if (!good)
            return complain(error, error_size, number, "unknown key or bad value");
    }
    if (number == 0)
        return complain(error, error_size, 1, "must be 'nvml-simulated 1'");
    return SUCCESS;
}

static int load(const char *text, size_t length, char *error, size_t error_size)
{
    if (init_count > 0) {
        complain(error, error_size, 0, "cannot change the GPUs while NVML is initialised");
        return IN_USE;
    }
    int result = parse(text, length, error, error_size);
    if (result == SUCCESS) {
        current = incoming;
        loaded = true;
    }
    return result;
}

/* Only for processes that nobody could hand a description to. */
static int load_from_environment(void)
{
    static char text[MAX_PROFILE + 1];
    char error[MAX_LINE] = "";
    const char *path = getenv("NVML_SIMULATED_PROFILE");
    FILE *file = path != NULL && *path != '\0' ? fopen(path, "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "simulated NVML: NVML_SIMULATED_PROFILE names no readable file\n");
        return DRIVER_NOT_LOADED;
    }
    size_t length = fread(text, 1, sizeof text, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed || load(text, length, error, sizeof error) != SUCCESS) {
        fprintf(stderr, "%s (%s)\n", failed ? "simulated NVML: cannot read" : error, path);
        return DRIVER_NOT_LOADED;
    }
    return SUCCESS;
}

/* Marks this library as simulated; a driver asks for this symbol before it believes in a GPU. */
API int nvmlSimulatedLoad(const char *text, size_t length, char *error, size_t error_size)
{
    if (text == NULL)
        return INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    int result = load(text, length, error, error_size);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- rules that every function shares ------------------------------------------------------- */

static int fault_of(const fault_t *faults, unsigned count, const char *function)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(faults[i].function, function) == 0 || strcmp(faults[i].function, "*") == 0)
            return faults[i].result;
    return SUCCESS;
}

static int check_system(const char *function, const void *out)
{
    if (init_count == 0)
        return UNINITIALIZED;
    if (out == NULL)
        return INVALID_ARGUMENT;
    return fault_of(current.faults, current.fault_count, function);
}

/* A handle is a pointer into `current.gpus`; compared as numbers, for it may be anything. */
static bool is_handle(device_t device)
{
    uintptr_t at = (uintptr_t)device, first = (uintptr_t)current.gpus;
    return at >= first && at < first + current.gpu_count * sizeof(gpu_t)
           && (at - first) % sizeof(gpu_t) == 0;
}

static int check_device(const char *function, device_t device, const void *out)
{
    int result = check_system(function, out);
    if (result != SUCCESS)
        return result;
    if (!is_handle(device))
        return INVALID_ARGUMENT;
    return fault_of(device->faults, device->fault_count, function);
}

#define CHECK_SYSTEM(out)                                                                          \
    do {                                                                                           \
        int checked_ = check_system(__func__, out);                                                \
        if (checked_ != SUCCESS)                                                                   \
            return checked_;                                                                       \
    } while (0)

#define CHECK_DEVICE(device, out)                                                                  \
    do {                                                                                           \
        int checked_ = check_device(__func__, device, out);                                        \
        if (checked_ != SUCCESS)                                                                   \
            return checked_;                                                                       \
    } while (0)

static int give_text(const char *text, char *out, unsigned size)
{
    size_t length = strlen(text);
    if (length >= size)
        return INSUFFICIENT_SIZE;
    memcpy(out, text, length + 1);
    return SUCCESS;
}

/* ---- initialisation -------------------------------------------------------------------------- */

API int nvmlInitWithFlags(unsigned flags)
{
    int result = SUCCESS;
    (void)flags;
    pthread_mutex_lock(&lock);
    if (!loaded)
        result = load_from_environment();
    if (result == SUCCESS)
        result = fault_of(current.faults, current.fault_count, "nvmlInit_v2");
    if (result == SUCCESS)
        init_count++;
    pthread_mutex_unlock(&lock);
    return result;
}

API int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

API int nvmlInit(void) { return nvmlInitWithFlags(0); }

API int nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    int result = init_count > 0 ? SUCCESS : UNINITIALIZED;
    if (init_count > 0)
        init_count--;
    pthread_mutex_unlock(&lock);
    return result;
}

API const char *nvmlErrorString(int result)
{
    switch (result) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case IN_USE: return "In Use";
    case ARGUMENT_VERSION_MISMATCH: return "Argument Version Mismatch";
    default: return "Unknown Error";
    }
}

/* ---- system ---------------------------------------------------------------------------------- */

API int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    CHECK_SYSTEM(version);
    return give_text(current.driver_version, version, length);
}

API int nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    CHECK_SYSTEM(version);
    return give_text(current.nvml_version, version, length);
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    CHECK_SYSTEM(version);
    *version = current.cuda_driver_version;
    return SUCCESS;
}

API int nvmlSystemGetCudaDriverVersion(int *version)
{
    CHECK_SYSTEM(version);
    *version = current.cuda_driver_version;
    return SUCCESS;
}

/* ---- finding devices ------------------------------------------------------------------------- */

API int nvmlDeviceGetCount_v2(unsigned *count)
{
    CHECK_SYSTEM(count);
    *count = current.gpu_count;
    return SUCCESS;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device)
{
    CHECK_SYSTEM(device);
    if (index >= current.gpu_count)
        return INVALID_ARGUMENT;
    const gpu_t *gpu = &current.gpus[index];
    int result = fault_of(gpu->faults, gpu->fault_count, __func__);
    if (result == SUCCESS)
        *device = &current.gpus[index];
    return result;
}

API int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device)
{
    CHECK_SYSTEM(device);
    if (uuid == NULL)
        return INVALID_ARGUMENT;
    for (unsigned i = 0; i < current.gpu_count; i++)
        if (strcmp(current.gpus[i].uuid, uuid) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    return NOT_FOUND;
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device_t *device)
{
    unsigned domain = 0, bus = 0, slot = 0;
    int end = -1;
    CHECK_SYSTEM(device);
    if (bus_id == NULL || sscanf(bus_id, "%8x:%2x:%2x.0%n", &domain, &bus, &slot, &end) != 3
        || end < 0 || bus_id[end] != '\0')
        return INVALID_ARGUMENT;
    for (unsigned i = 0; i < current.gpu_count; i++) {
        const gpu_t *gpu = &current.gpus[i];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == slot)
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NOT_FOUND;
}

API int nvmlDeviceGetIndex(device_t device, unsigned *index)
{
    CHECK_DEVICE(device, index);
    *index = (unsigned)(device - current.gpus);
    return SUCCESS;
}

/* ---- what a device is ------------------------------------------------------------------------ */

API int nvmlDeviceGetName(device_t device, char *name, unsigned length)
{
    CHECK_DEVICE(device, name);
    return give_text(device->name, name, length);
}

API int nvmlDeviceGetUUID(device_t device, char *uuid, unsigned length)
{
    CHECK_DEVICE(device, uuid);
    return give_text(device->uuid, uuid, length);
}

API int nvmlDeviceGetMinorNumber(device_t device, unsigned *minor)
{
    CHECK_DEVICE(device, minor);
    *minor = device->minor;
    return SUCCESS;
}

API int nvmlDeviceGetBrand(device_t device, int *brand)
{
    CHECK_DEVICE(device, brand);
    *brand = device->brand;
    return SUCCESS;
}

API int nvmlDeviceGetArchitecture(device_t device, unsigned *architecture)
{
    CHECK_DEVICE(device, architecture);
    *architecture = device->architecture;
    return SUCCESS;
}

API int nvmlDeviceGetCudaComputeCapability(device_t device, int *major, int *minor)
{
    CHECK_DEVICE(device, major);
    if (minor == NULL)
        return INVALID_ARGUMENT;
    *major = device->cc_major;
    *minor = device->cc_minor;
    return SUCCESS;
}

typedef struct {
    unsigned long long total, free, used;
} memory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_v2_t;

API int nvmlDeviceGetMemoryInfo(device_t device, memory_t *memory)
{
    CHECK_DEVICE(device, memory);
    if (!device->has_memory)
        return NOT_SUPPORTED;
    unsigned long long used = device->memory_used;
    if (used > device->memory_total)
        used = device->memory_total;
    *memory = (memory_t){device->memory_total, device->memory_total - used, used};
    return SUCCESS;
}

API int nvmlDeviceGetMemoryInfo_v2(device_t device, memory_v2_t *memory)
{
    memory_t plain;
    CHECK_DEVICE(device, memory);
    if (memory->version != (sizeof(memory_v2_t) | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    int result = nvmlDeviceGetMemoryInfo(device, &plain);
    if (result != SUCCESS)
        return result;
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return SUCCESS;
}

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info_t;

API int nvmlDeviceGetPciInfo_v3(device_t device, pci_info_t *pci)
{
    CHECK_DEVICE(device, pci);
    memset(pci, 0, sizeof *pci);
    pci->domain = device->pci_domain;
    pci->bus = device->pci_bus;
    pci->device = device->pci_device;
    pci->pci_device_id = device->pci_device_id;
    pci->pci_subsystem_id = device->pci_subsystem_id;
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0",
             device->pci_domain & 0xffffu, device->pci_bus & 0xffu, device->pci_device & 0x1fu);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", device->pci_domain,
             device->pci_bus & 0xffu, device->pci_device & 0x1fu);
    return SUCCESS;
}

typedef struct {
    unsigned version, value;
} addressing_mode_t;

API int nvmlDeviceGetAddressingMode(device_t device, addressing_mode_t *mode)
{
    CHECK_DEVICE(device, mode);
    if (mode->version != (sizeof(addressing_mode_t) | 1u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    if (!device->has_addressing_mode)
        return NOT_SUPPORTED;
    mode->value = device->addressing_mode;
    return SUCCESS;
}

API int nvmlDeviceGetNumaNodeId(device_t device, int *node)
{
    CHECK_DEVICE(device, node);
    if (!device->has_numa)
        return NOT_SUPPORTED;
    *node = device->numa_node;
    return SUCCESS;
}

API int nvmlDeviceGetVirtualizationMode(device_t device, int *mode)
{
    CHECK_DEVICE(device, mode);
    *mode = 0; /* NVML_GPU_VIRTUALIZATION_MODE_NONE */
    return SUCCESS;
}

/* ---- MIG: its mode is told, instances do not exist yet --------------------------------------- */

API int nvmlDeviceGetMigMode(device_t device, unsigned *now, unsigned *pending)
{
    CHECK_DEVICE(device, now);
    if (pending == NULL)
        return INVALID_ARGUMENT;
    if (!device->has_mig)
        return NOT_SUPPORTED;
    *now = *pending = device->mig_mode;
    return SUCCESS;
}

API int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *count)
{
    CHECK_DEVICE(device, count);
    *count = device->has_mig ? 7 : 0;
    return SUCCESS;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *mig)
{
    (void)index;
    CHECK_DEVICE(device, mig);
    return device->has_mig ? NOT_FOUND : NOT_SUPPORTED;
}

API int nvmlDeviceIsMigDeviceHandle(device_t device, unsigned *is_mig)
{
    CHECK_DEVICE(device, is_mig);
    *is_mig = 0;
    return SUCCESS;
}

API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t mig, device_t *device)
{
    CHECK_DEVICE(mig, device);
    return NOT_FOUND;
}
