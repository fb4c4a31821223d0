/* Machines, handles, faults, and the functions that every NVML client begins and ends with. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simulated.h"

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static _Thread_local machine_t *selected;
static machine_t *from_environment;
machine_t *machines;

void simulated_lock(void) { pthread_mutex_lock(&lock); }

void simulated_unlock(int *held)
{
    (void)held;
    pthread_mutex_unlock(&lock);
}

static void unlock_in_parent(void) { pthread_mutex_unlock(&lock); }

/* Its owner is a thread of the parent, so the child cannot unlock it. */
static void renew_in_child(void)
{
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

/* A process that forks while another of its threads is in here: the child finds the lock free. */
__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(simulated_lock, unlock_in_parent, renew_in_child);
}

machine_t *selected_machine(void) { return selected != NULL ? selected : from_environment; }

static void adopt(machine_t *machine)
{
    machine->next = machines;
    machines = machine;
    mig_boot(machine);
    state_read(machine);
}

/* ---- what Python uses; nvmlSimulatedOpen also marks this library as simulated ---------------- */

API void *nvmlSimulatedOpen(const char *text, size_t length, char *error, size_t error_size)
{
    LOCKED;
    machine_t *machine = text != NULL ? describe(text, length, error, error_size) : NULL;
    if (machine != NULL)
        adopt(machine);
    return machine;
}

static bool known(const machine_t *machine)
{
    for (const machine_t *each = machines; each != NULL; each = each->next)
        if (each == machine)
            return true;
    return false;
}

API int nvmlSimulatedClose(void *handle)
{
    LOCKED;
    machine_t *machine = handle;
    if (!known(machine))
        return INVALID_ARGUMENT;
    if (machine->init_count > 0)
        return IN_USE;
    for (machine_t **at = &machines; *at != NULL; at = &(*at)->next) {
        if (*at == machine) {
            *at = machine->next;
            break;
        }
    }
    if (selected == machine)
        selected = NULL;
    if (machine->inotify >= 0)
        close(machine->inotify);
    free(machine->gpus);
    free(machine);
    return SUCCESS;
}

/* Which machine this thread's nvmlInit and nvmlShutdown mean; gives back the one before. */
API void *nvmlSimulatedSelect(void *handle)
{
    LOCKED;
    void *before = known(selected) ? selected : NULL;
    selected = known(handle) ? handle : NULL;
    return before;
}

API int nvmlSimulatedControl(void *handle, const char *text, size_t length, char *error,
                             size_t error_size)
{
    LOCKED;
    if (!known(handle) || text == NULL)
        return INVALID_ARGUMENT;
    return control(handle, text, length, error, error_size);
}

/* Only for processes that nobody could hand a description to. */
static int load_from_environment(void)
{
    char error[MAX_LINE] = "";
    const char *path = getenv("NVML_SIMULATED_PROFILE");
    FILE *file = path != NULL && *path != '\0' ? fopen(path, "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "simulated NVML: NVML_SIMULATED_PROFILE names no readable file\n");
        return DRIVER_NOT_LOADED;
    }
    char *text = malloc(MAX_DESCRIPTION + 1);
    size_t length = text != NULL ? fread(text, 1, MAX_DESCRIPTION + 1, file) : 0;
    bool failed = text == NULL || ferror(file) != 0;
    fclose(file);
    machine_t *machine = failed ? NULL : describe(text, length, error, sizeof error);
    free(text);
    if (machine == NULL) {
        fprintf(stderr, "%s (%s)\n", failed ? "simulated NVML: cannot read" : error, path);
        return DRIVER_NOT_LOADED;
    }
    adopt(machine);
    from_environment = machine;
    return SUCCESS;
}

/* ---- rules that every function shares -------------------------------------------------------- */

int fault_of(faults_t *faults, const char *function)
{
    for (unsigned i = 0; i < faults->count; i++) {
        fault_t *fault = &faults->list[i];
        if (strcmp(fault->function, function) != 0 && strcmp(fault->function, "*") != 0)
            continue;
        if (fault->calls < UINT_MAX)
            fault->calls++;
        if (fault->calls >= fault->first && fault->calls <= fault->last)
            return fault->result;
    }
    return SUCCESS;
}

/* The selected machine is initialised, the result has a place, and no fault says otherwise. */
int check_machine(const char *function, const void *out)
{
    machine_t *machine = selected_machine();
    if (machine == NULL || machine->init_count == 0)
        return UNINITIALIZED;
    if (out == NULL)
        return INVALID_ARGUMENT;
    return fault_of(&machine->faults, function);
}

/*
 * What a handle points to: a GPU, a GPU instance, or a compute instance, which is a MIG device,
 * too. Compared as numbers, for it may be anything. An instance that is gone is not found.
 */
bool locate(const void *handle, gpu_t **gpu, gi_t **gi, ci_t **ci)
{
    uintptr_t at = (uintptr_t)handle;
    for (machine_t *machine = machines; machine != NULL; machine = machine->next) {
        uintptr_t first = (uintptr_t)machine->gpus;
        if (at < first || at >= first + machine->gpu_count * sizeof(gpu_t))
            continue;
        gpu_t *found = &machine->gpus[(at - first) / sizeof(gpu_t)];
        *gpu = found;
        *gi = NULL;
        *ci = NULL;
        if (at == (uintptr_t)found)
            return true;
        for (unsigned g = 0; g < MAX_GIS; g++) {
            gi_t *instance = &found->gis[g];
            if (!instance->used)
                continue;
            *gi = instance;
            if (at == (uintptr_t)instance)
                return true;
            for (unsigned c = 0; c < MAX_CIS; c++) {
                *ci = &instance->cis[c];
                if (instance->cis[c].used && at == (uintptr_t)*ci)
                    return true;
            }
            *ci = NULL;
        }
        return false;
    }
    return false;
}

static int check_located(const char *function, gpu_t *gpu, const void *out)
{
    if (gpu->machine->init_count == 0)
        return UNINITIALIZED;
    if (out == NULL)
        return INVALID_ARGUMENT;
    CHECK(fault_of(&gpu->machine->faults, function));
    return fault_of(&gpu->faults, function);
}

static int not_a_handle(void)
{
    machine_t *machine = selected_machine();
    return machine == NULL || machine->init_count == 0 ? UNINITIALIZED : INVALID_ARGUMENT;
}

/* The handle is a GPU. */
int check_gpu(const char *function, device_t handle, const void *out, gpu_t **gpu)
{
    gi_t *gi;
    ci_t *ci;
    if (!locate(handle, gpu, &gi, &ci) || gi != NULL)
        return not_a_handle();
    return check_located(function, *gpu, out);
}

/* The handle is a GPU or a MIG device. */
int check_any(const char *function, device_t handle, const void *out, gpu_t **gpu, ci_t **ci)
{
    gi_t *gi;
    if (!locate(handle, gpu, &gi, ci) || (gi != NULL && *ci == NULL))
        return not_a_handle();
    return check_located(function, *gpu, out);
}

int give_text(const char *text, char *out, unsigned size)
{
    size_t length = strlen(text);
    if (length >= size)
        return INSUFFICIENT_SIZE;
    memcpy(out, text, length + 1);
    return SUCCESS;
}

/* ---- initialisation --------------------------------------------------------------------------- */

API int nvmlInitWithFlags(unsigned flags)
{
    LOCKED;
    (void)flags;
    if (selected_machine() == NULL)
        CHECK(load_from_environment());
    machine_t *machine = selected_machine();
    control_follow(machine);
    CHECK(fault_of(&machine->faults, "nvmlInit_v2"));
    state_read(machine);
    machine->init_count++;
    return SUCCESS;
}

API int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

API int nvmlInit(void) { return nvmlInitWithFlags(0); }

API int nvmlShutdown(void)
{
    LOCKED;
    machine_t *machine = selected_machine();
    if (machine == NULL || machine->init_count == 0)
        return UNINITIALIZED;
    if (--machine->init_count == 0)
        events_drop(machine);
    return SUCCESS;
}

API const char *nvmlErrorString(int result)
{
    static const struct {
        int result;
        const char *text;
    } texts[] = {
        {SUCCESS, "Success"},
        {UNINITIALIZED, "Uninitialized"},
        {INVALID_ARGUMENT, "Invalid Argument"},
        {NOT_SUPPORTED, "Not Supported"},
        {NO_PERMISSION, "Insufficient Permissions"},
        {NOT_FOUND, "Not Found"},
        {INSUFFICIENT_SIZE, "Insufficient Size"},
        {DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {TIMEOUT, "Timeout"},
        {FUNCTION_NOT_FOUND, "Function Not Found"},
        {GPU_IS_LOST, "GPU is lost"},
        {RESET_REQUIRED, "GPU requires restart"},
        {IN_USE, "In use by another client"},
        {OUT_OF_MEMORY, "Insufficient Memory"},
        {INSUFFICIENT_RESOURCES, "Insufficient Resources"},
        {ARGUMENT_VERSION_MISMATCH, "Argument Version Mismatch"},
        {INVALID_STATE, "Invalid State"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].result == result)
            return texts[i].text;
    return "Unknown Error";
}

/* ---- system ----------------------------------------------------------------------------------- */

API int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    LOCKED;
    CHECK(check_machine(__func__, version));
    return give_text(selected_machine()->driver_version, version, length);
}

API int nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    LOCKED;
    CHECK(check_machine(__func__, version));
    return give_text(selected_machine()->nvml_version, version, length);
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    LOCKED;
    CHECK(check_machine(__func__, version));
    *version = selected_machine()->cuda_driver_version;
    return SUCCESS;
}

API int nvmlSystemGetCudaDriverVersion(int *version)
{
    LOCKED;
    CHECK(check_machine(__func__, version));
    *version = selected_machine()->cuda_driver_version;
    return SUCCESS;
}
