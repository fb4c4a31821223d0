/*
 * Every function of NVML that no other file has, so that programs which look for a symbol find it.
 * What a profile does not say is not supported; the table of functions is functions.h.
 */
#include <string.h>

#include "simulated.h"

static int unsupported_of_device(const char *function, device_t device)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(function, device, function, &gpu, &ci));
    return NOT_SUPPORTED;
}

static int unsupported_of_instance(const char *function, void *handle)
{
    LOCKED;
    gpu_t *gpu;
    gi_t *gi;
    ci_t *ci;
    CHECK(check_machine(function, function));
    return locate(handle, &gpu, &gi, &ci) && gi != NULL ? NOT_SUPPORTED : INVALID_ARGUMENT;
}

static int unsupported_of_system(const char *function)
{
    LOCKED;
    CHECK(check_machine(function, function));
    return NOT_SUPPORTED;
}

static int no_processes(const char *function, device_t device, unsigned *count)
{
    LOCKED;
    gpu_t *gpu;
    ci_t *ci;
    CHECK(check_any(function, device, count, &gpu, &ci));
    *count = 0;
    return SUCCESS;
}

static int count_none(const char *function, unsigned *count)
{
    LOCKED;
    CHECK(check_machine(function, count));
    *count = 0;
    return SUCCESS;
}

/* A caller passes more than these take, which the calling conventions of Linux allow. */
#define DEVICE(name)                                                                               \
    API int name(device_t device) { return unsupported_of_device(#name, device); }
#define INSTANCE(name)                                                                             \
    API int name(void *handle) { return unsupported_of_instance(#name, handle); }
#define SYSTEM(name)                                                                               \
    API int name(void) { return unsupported_of_system(#name); }

#define WRITTEN(name, handle)
#define UNSUPPORTED(name, handle) handle(name)
#define COUNT_NONE(name, handle)                                                                   \
    API int name(unsigned *count) { return count_none(#name, count); }
#define NO_PROCESSES(name, handle)                                                                 \
    API int name(device_t device, unsigned *count, void *infos)                                    \
    {                                                                                              \
        (void)infos;                                                                               \
        return no_processes(#name, device, count);                                                 \
    }
#define FUNCTION(behaviour, name, handle, parameters) behaviour(name, handle)
#include "functions.h"
