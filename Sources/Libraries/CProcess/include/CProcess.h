// Starts the commands of a worker, and a process that ends them when the worker dies.
//
// It is in C because between `fork` and `exec` only functions that are safe in signal handlers may run, which no Swift
// code promises.
#ifndef WAKEGATE_CPROCESS_H
#define WAKEGATE_CPROCESS_H
#include <sys/types.h>

// A command: what runs, and what it finds.
struct wakegate_command {
    // The path of the program; PATH is not searched.
    const char *program;
    char *const *arguments;
    char *const *environment;
    // Descriptors that become its standard input, output and error; -1 for our own.
    int input;
    int output;
    int errors;
    // A descriptor that the command finds under `progress_number`, which is 3 or more; -1 for none.
    int progress;
    int progress_number;
    // Where it registers its process group with the guard.
    int guard;
};

// Starts a command in a process group of its own, which the guard knows before the command runs.
//
// Returns its process identifier, or -1 with errno when it could not be started; then the guard has forgotten it.
pid_t wakegate_command_start(const struct wakegate_command *command);

// Starts a guard: when every write end of the pipe `*registry` is closed, it sends SIGTERM to each group it knows, and
// SIGKILL two seconds later to those that are still there; then it ends. Groups are made known by writing their number,
// and forgotten by writing its negative, four bytes each in the machine's order.
//
// Returns the guard's process identifier, or -1 with errno.
pid_t wakegate_guard_start(int *registry);

// The process identifier of a child that has ended and was not reaped yet; 0 when there is none.
pid_t wakegate_ended_child(void);

#endif
