/// A push that passed every check which needs no knowledge of devices.
package struct CheckedPush {
    package let head: PushHead
    /// Whether the payload asks for the device to be woken.
    package let wakes: Bool
}
