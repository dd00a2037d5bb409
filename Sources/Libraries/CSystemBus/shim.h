#ifndef WAKEGATE_CSYSTEMBUS_SHIM_H
#define WAKEGATE_CSYSTEMBUS_SHIM_H
// Without _GNU_SOURCE: with it the system's types differ from those of the Glibc module.
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

// Starts to connect to the bus at `address`, or to the system's bus if it is NULL, without waiting. Returns 0 or a
// negative error number.
static inline int wakegate_bus_open(sd_bus **bus, const char *address) {
    sd_bus *made = NULL;
    int result;
    if (address == NULL) return sd_bus_open_system(bus);
    if ((result = sd_bus_new(&made)) < 0) return result;
    if ((result = sd_bus_set_address(made, address)) >= 0 && (result = sd_bus_set_bus_client(made, 1)) >= 0)
        result = sd_bus_start(made);
    if (result < 0) {
        sd_bus_close_unref(made);
        return result;
    }
    *bus = made;
    return 0;
}

// Calls a method with one or two strings; `second` is NULL for one. The reply is a message with `cookie`. Does not
// start a service that is not running. Returns 0 or a negative error number.
static inline int wakegate_bus_call(sd_bus *bus, const char *service, const char *path, const char *interface,
                                    const char *member, const char *first, const char *second, uint64_t *cookie) {
    sd_bus_message *message = NULL;
    int result = sd_bus_message_new_method_call(bus, &message, service, path, interface, member);
    if (result >= 0) result = sd_bus_message_set_auto_start(message, 0);
    if (result >= 0) result = sd_bus_message_append_basic(message, SD_BUS_TYPE_STRING, first);
    if (result >= 0 && second != NULL) result = sd_bus_message_append_basic(message, SD_BUS_TYPE_STRING, second);
    if (result >= 0) result = sd_bus_send(bus, message, cookie);
    sd_bus_message_unref(message);
    return result;
}

// Returns the boolean in a message's variant, 0 or 1; -1 for other contents.
static inline int wakegate_bus_boolean(sd_bus_message *message) {
    int value = 0;
    if (!sd_bus_message_has_signature(message, "v")) return -1;
    if (sd_bus_message_enter_container(message, SD_BUS_TYPE_VARIANT, "b") <= 0) return -1;
    if (sd_bus_message_read_basic(message, SD_BUS_TYPE_BOOLEAN, &value) <= 0) return -1;
    return value != 0;
}

// Returns the unsigned number in a message's variant; -1 for other contents.
static inline int64_t wakegate_bus_unsigned(sd_bus_message *message) {
    uint32_t value = 0;
    if (sd_bus_message_rewind(message, 1) < 0 || !sd_bus_message_has_signature(message, "v")) return -1;
    if (sd_bus_message_enter_container(message, SD_BUS_TYPE_VARIANT, "u") <= 0) return -1;
    if (sd_bus_message_read_basic(message, SD_BUS_TYPE_UINT32, &value) <= 0) return -1;
    return (int64_t)value;
}

// Returns the name of the error in a message; NULL if it is not an error.
static inline const char *wakegate_bus_error(sd_bus_message *message) {
    const sd_bus_error *error = sd_bus_message_get_error(message);
    return error == NULL ? NULL : error->name;
}

#endif
