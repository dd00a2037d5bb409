// Starts the commands of a worker, and a guard process that ends them when the worker dies.
//
// In C because between `fork` and `exec` only async-signal-safe functions may run, which Swift code does not guarantee.
#ifndef WAKEGATE_CPROCESS_H
#define WAKEGATE_CPROCESS_H
#include <sys/types.h>

// A command: the program and its environment.
struct wakegate_command {
    // The path of the program; PATH is not searched.
    const char *program;
    char *const *arguments;
    char *const *environment;
    // Descriptors that become its standard input, output and error; -1 to inherit.
    int input;
    int output;
    int errors;
    // A descriptor that the command gets as `progress_number`, which is 3 or more; -1 for none.
    int progress;
    int progress_number;
    // The pipe on which it registers its process group with the guard.
    int guard;
};

// Starts a command in a new process group, which is registered with the guard before the command runs.
//
// Returns its process id, or -1 with errno if it could not be started; the guard has then forgotten it.
pid_t wakegate_command_start(const struct wakegate_command *command);

// Starts a guard. When every write end of the pipe `*registry` is closed, the guard sends SIGTERM to each registered
// group, and SIGKILL two seconds later to each group that still exists; then it ends. A group is registered by writing
// its number, and removed by writing the negative number, four bytes each in the machine's byte order.
//
// Returns the guard's process id, or -1 with errno.
pid_t wakegate_guard_start(int *registry);

// Returns the process id of a child that has ended and is not yet reaped; 0 if there is none.
pid_t wakegate_ended_child(void);

#endif
