/*
 * Calls the simulated NVML in ways that no sane program would: mutated descriptions, handles that
 * are stale or garbage, instances made and destroyed at random, sets freed while they are waited
 * for. AddressSanitizer and UndefinedBehaviorSanitizer watch; this program only has to survive.
 *
 * Arguments: a seed, a number of rounds, and files with good descriptions.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle_t;
void *nvmlSimulatedOpen(const char *, size_t, char *, size_t);
int nvmlSimulatedClose(void *);
void *nvmlSimulatedSelect(void *);
int nvmlSimulatedControl(void *, const char *, size_t, char *, size_t);
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *);
int nvmlDeviceGetHandleByIndex_v2(unsigned, handle_t *);
int nvmlDeviceGetHandleByUUID(const char *, handle_t *);
int nvmlDeviceGetName(handle_t, char *, unsigned);
int nvmlDeviceGetUUID(handle_t, char *, unsigned);
int nvmlDeviceGetMinorNumber(handle_t, unsigned *);
int nvmlDeviceGetMemoryInfo(handle_t, void *);
int nvmlDeviceGetPciInfo_v3(handle_t, void *);
int nvmlDeviceSetMigMode(handle_t, unsigned, int *);
int nvmlDeviceGetGpuInstanceProfileInfo(handle_t, unsigned, void *);
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle_t, unsigned, void *, unsigned *);
int nvmlDeviceCreateGpuInstance(handle_t, unsigned, handle_t *);
int nvmlDeviceGetGpuInstances(handle_t, unsigned, handle_t *, unsigned *);
int nvmlDeviceGetGpuInstanceById(handle_t, unsigned, handle_t *);
int nvmlGpuInstanceGetInfo(handle_t, void *);
int nvmlGpuInstanceDestroy(handle_t);
int nvmlGpuInstanceCreateComputeInstance(handle_t, unsigned, handle_t *);
int nvmlGpuInstanceGetComputeInstances(handle_t, unsigned, handle_t *, unsigned *);
int nvmlComputeInstanceGetInfo_v2(handle_t, void *);
int nvmlComputeInstanceDestroy(handle_t);
int nvmlDeviceGetMigDeviceHandleByIndex(handle_t, unsigned, handle_t *);
int nvmlEventSetCreate(handle_t *);
int nvmlEventSetFree(handle_t);
int nvmlDeviceRegisterEvents(handle_t, unsigned long long, handle_t);
int nvmlEventSetWait_v2(handle_t, void *, unsigned);

enum { POOL = 32 };

static uint64_t state;

static uint32_t random_number(uint32_t below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

static char *mutated(const char *text, size_t length, size_t *out)
{
    char *copy = malloc(length + 64);
    memcpy(copy, text, length);
    for (uint32_t n = random_number(6); n > 0 && length > 1; n--) {
        size_t at = random_number((uint32_t)length);
        switch (random_number(4)) {
        case 0: copy[at] = (char)random_number(256); break;
        case 1: copy[at] = "0123456789 -\n"[random_number(13)]; break;
        case 2: length = at + 1; break;
        default: memmove(copy + at, copy + at + 1, length - at - 1); length--;
        }
    }
    *out = length;
    return copy;
}

static handle_t pool[POOL];

static handle_t any(void)
{
    handle_t found = pool[random_number(POOL)];
    uintptr_t off = random_number(16) == 0 ? random_number(64) - 32u : 0;
    return (handle_t)((uintptr_t)found + off);
}

static void keep(int result, handle_t made)
{
    if (result == 0)
        pool[random_number(POOL)] = made;
}

static void call(void *machine)
{
    /* Exactly as large as NVML's largest structure here, on the heap, so that one byte too much is
     * seen. Lists are as long as a caller has to make them. */
    char *room = malloc(96);
    handle_t *list = malloc(16 * sizeof *list);
    handle_t made = NULL;
    unsigned count = 8, number = random_number(24);
    int status;
    char text[128], error[64];
    int length;
    switch (random_number(24)) {
    case 0: keep(nvmlDeviceGetHandleByIndex_v2(random_number(10), &made), made); break;
    case 1: nvmlDeviceGetName(any(), room, random_number(96)); break;
    case 2: nvmlDeviceGetUUID(any(), room, random_number(96)); break;
    case 3: nvmlDeviceGetMinorNumber(any(), &count); break;
    case 4: nvmlDeviceGetMemoryInfo(any(), room); break;
    case 5: nvmlDeviceGetPciInfo_v3(any(), room); break;
    case 6: nvmlDeviceSetMigMode(any(), random_number(3), &status); break;
    case 7: nvmlDeviceGetGpuInstanceProfileInfo(any(), random_number(24), room); break;
    case 8: nvmlDeviceGetGpuInstancePossiblePlacements_v2(any(), number, room, &count); break;
    case 9:
    case 10:
    case 11: keep(nvmlDeviceCreateGpuInstance(any(), number, &made), made); break;
    case 12: nvmlDeviceGetGpuInstances(any(), number, list, &count); break;
    case 13: keep(nvmlDeviceGetGpuInstanceById(any(), random_number(20), &made), made); break;
    case 14: nvmlGpuInstanceGetInfo(any(), room); break;
    case 15: nvmlGpuInstanceDestroy(any()); break;
    case 16:
    case 17: keep(nvmlGpuInstanceCreateComputeInstance(any(), random_number(9), &made), made); break;
    case 18: nvmlGpuInstanceGetComputeInstances(any(), random_number(9), list, &count); break;
    case 19: nvmlComputeInstanceGetInfo_v2(any(), room); break;
    case 20: nvmlComputeInstanceDestroy(any()); break;
    case 21: keep(nvmlDeviceGetMigDeviceHandleByIndex(any(), random_number(8), &made), made); break;
    case 22:
        length = snprintf(text, sizeof text, "%s %u %u %u\n",
                          (const char *[]){"event", "fault", "recovery", "clear"}[random_number(4)],
                          random_number(10), random_number(16), random_number(100));
        nvmlSimulatedControl(machine, text, (size_t)length, error, sizeof error);
        break;
    default: nvmlDeviceGetHandleByUUID("MIG-0", &made); break;
    }
    free(list);
    free(room);
}

static void *wait_for_events(void *set)
{
    char room[40];
    for (int i = 0; i < 3; i++)
        nvmlEventSetWait_v2(set, room, 20);
    return NULL;
}

static void use(void *machine)
{
    handle_t set = NULL, gpu = NULL;
    pthread_t waiter;
    nvmlSimulatedSelect(machine);
    if (nvmlInit_v2() != 0)
        return;
    bool waits = nvmlEventSetCreate(&set) == 0;
    for (unsigned i = 0; waits && nvmlDeviceGetHandleByIndex_v2(i, &gpu) == 0; i++) {
        pool[i % POOL] = gpu;
        nvmlDeviceRegisterEvents(gpu, 8, set);
    }
    waits = waits && pthread_create(&waiter, NULL, wait_for_events, set) == 0;
    for (int i = 0; i < 300; i++)
        call(machine);
    if (random_number(2))
        nvmlEventSetFree(set);
    nvmlShutdown();
    if (waits)
        pthread_join(waiter, NULL);
    nvmlEventSetFree(set);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    unsigned used = 0;
    for (int round = 0; round < atoi(argv[2]); round++) {
        char error[64];
        static char text[1 << 20];
        FILE *file = fopen(argv[3 + random_number((uint32_t)argc - 3)], "rb");
        if (file == NULL)
            return 2;
        size_t length = fread(text, 1, sizeof text, file), changed = length;
        fclose(file);
        char *copy = random_number(3) == 0 ? mutated(text, length, &changed) : malloc(length);
        if (changed == length)
            memcpy(copy, text, length);
        void *machine = nvmlSimulatedOpen(copy, changed, error, sizeof error);
        free(copy);
        if (machine != NULL) {
            use(machine);
            nvmlSimulatedSelect(NULL);
            if (nvmlSimulatedClose(machine) == 0)
                used++;
        }
    }
    printf("%u\n", used);
    return 0;
}
