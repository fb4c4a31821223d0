/*
 * A libnvidia-ml.so.1 that shows GPUs from a description instead of from hardware.
 *
 * Why C and not a fake Python module: nvidia-ml-py then runs unmodified, with its ctypes layouts,
 * struct versions and error mapping, which is where a driver's bugs live.
 *
 * A description makes a machine (describe.c says how it reads). A process may have several: a
 * thread selects the one that its nvmlInit talks to, and a handle knows its machine. What changes
 * while a machine runs are MIG mode and instances (mig.c), which a state file can keep from one
 * process to the next as hardware would (state.c), injected events (events.c) and faults.
 *
 * One recursive lock guards everything but the waiting for events. Signatures, structs and
 * numbers are those of NVML's public API reference.
 */
#ifndef NVML_SIMULATED_H
#define NVML_SIMULATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define API __attribute__((visibility("default")))

enum {
    MAX_GPUS = 256,
    MAX_FAULTS = 32,
    MAX_TEXT = 96,
    MAX_PATH = 4096,
    MAX_LINE = MAX_PATH + 64,
    MAX_DESCRIPTION = 1024 * 1024,
    MAX_MIG_PROFILES = 18,
    MAX_PLACEMENTS = 8,
    MAX_SLICES = 8,
    MAX_GIS = 2 * MAX_SLICES, /* ids are those of a binary tree over the memory slices */
    MAX_CIS = 8,
};

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16,
    IN_USE = 19,
    OUT_OF_MEMORY = 20,
    INSUFFICIENT_RESOURCES = 23,
    ARGUMENT_VERSION_MISMATCH = 25,
    INVALID_STATE = 29,
    UNKNOWN = 999,
};

typedef unsigned long long u64;

/* A function's calls number `first` to `last`, counted from 1, answer `result`. */
typedef struct {
    char function[MAX_TEXT];
    int result;
    unsigned first, last, calls;
} fault_t;

typedef struct {
    fault_t list[MAX_FAULTS];
    unsigned count;
} faults_t;

typedef struct {
    char name[MAX_TEXT];
    unsigned index, id, slices, instances;
    unsigned multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    u64 memory_mb;
    unsigned size, starts[MAX_PLACEMENTS], start_count;
} mig_profile_t;

struct gpu;
struct gi;

typedef struct {
    struct gi *gi;
    bool used;
    unsigned profile, start, size, serial;
} ci_t;

typedef struct gi {
    struct gpu *gpu;
    bool used;
    unsigned id, profile, start, size; /* `profile` is a place in the GPU's table */
    ci_t cis[MAX_CIS];
} gi_t;

struct machine;

typedef struct gpu {
    struct machine *machine;
    char name[MAX_TEXT];
    char uuid[MAX_TEXT];
    unsigned minor;
    int brand;
    unsigned architecture;
    int cc_major, cc_minor;
    u64 memory_total, memory_used;
    bool has_memory;
    unsigned pci_domain, pci_bus, pci_device;
    unsigned pci_device_id, pci_subsystem_id;
    bool has_addressing_mode;
    unsigned addressing_mode;
    bool has_numa;
    int numa_node;
    u64 event_types;
    unsigned recovery_action; /* NVML_GPU_RECOVERY_ACTION_* */
    bool has_mig;
    unsigned mig_mode, boot_mig_mode, mig_slices;
    mig_profile_t mig_profiles[MAX_MIG_PROFILES];
    unsigned mig_profile_count;
    struct {
        unsigned profile, start;
    } boot_instances[MAX_SLICES];
    unsigned boot_instance_count;
    gi_t gis[MAX_GIS];
    unsigned created; /* compute instances, ever: a new one is a new device */
    faults_t faults;
} gpu_t;

typedef struct machine {
    struct machine *next;
    char driver_version[MAX_TEXT];
    char nvml_version[MAX_TEXT];
    int cuda_driver_version;
    gpu_t *gpus;
    unsigned gpu_count;
    faults_t faults;
    unsigned init_count;
    char state_path[MAX_PATH];
    char control_path[MAX_PATH];
    off_t control_at;
    int inotify; /* tells of additions to the control file; -1: there is none */
} machine_t;

typedef void *device_t;

/* core.c */
void simulated_lock(void);
void simulated_unlock(int *held);
/* Holds the lock until the end of the block, however that is left. */
#define LOCKED                                                                                     \
    __attribute__((cleanup(simulated_unlock))) int held_ = 0;                                      \
    simulated_lock();                                                                              \
    (void)held_

extern machine_t *machines;
machine_t *selected_machine(void);
int fault_of(faults_t *faults, const char *function);
int check_machine(const char *function, const void *out);
int check_gpu(const char *function, device_t handle, const void *out, gpu_t **gpu);
int check_any(const char *function, device_t handle, const void *out, gpu_t **gpu, ci_t **ci);
bool locate(const void *handle, gpu_t **gpu, gi_t **gi, ci_t **ci);
int give_text(const char *text, char *out, unsigned size);

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int checked_ = (call);                                                                     \
        if (checked_ != SUCCESS)                                                                   \
            return checked_;                                                                       \
    } while (0)

/* describe.c */
machine_t *describe(const char *text, size_t length, char *error, size_t error_size);
int control(machine_t *machine, const char *text, size_t length, char *error, size_t error_size);
bool read_number(const char *text, long long low, long long high, long long *out);
char *next_word(char **rest);

/* mig.c */
const mig_profile_t *profile_of(const gi_t *gi);
gi_t *place_gi(gpu_t *gpu, unsigned profile, unsigned start, int *result);
ci_t *place_ci(gi_t *gi, unsigned profile, int slot, int *result);
unsigned mig_index(const ci_t *ci);
void mig_uuid(const ci_t *ci, char out[MAX_TEXT]);
void mig_boot(machine_t *machine);
int mig_control(gpu_t *gpu, char *words); /* obeys the rest of a control line */

/* state.c */
int state_begin(machine_t *machine, int *token); /* locks the file and reads it */
int state_end(machine_t *machine, int token);    /* writes and unlocks it */
void state_read(machine_t *machine);

/* events.c */
void events_drop(machine_t *machine);
void events_wake(machine_t *machine);
int events_post(gpu_t *gpu, u64 type, u64 data, unsigned gi, unsigned ci);
void control_follow(machine_t *machine);

#endif
