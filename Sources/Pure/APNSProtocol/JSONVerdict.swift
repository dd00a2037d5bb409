/// What `JSONGate` finds a document to be.
package enum JSONVerdict: Hashable, Sendable {
    /// Not a JSON text, or one nested deeper than the gate allows.
    case notJSON
    /// A JSON text, but not an object.
    case notAnObject
    /// An object that asks for the device to be woken.
    case wakes
    /// Any other object.
    case doesNotWake
}
