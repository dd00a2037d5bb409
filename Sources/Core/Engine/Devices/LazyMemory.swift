/// A value that costs a pointer until it is first changed. Whoever lets go of one calls `deallocate`.
@safe
struct LazyMemory<Value> {
    private var pointer: UnsafeMutablePointer<Value>?

    init() {
        unsafe self.pointer = nil
    }

    /// The value; nil while it was never changed.
    var value: Value? {
        unsafe self.pointer?.pointee
    }

    /// Changes the value, which begins as `initial`.
    mutating func change<Result>(from initial: @autoclosure () -> Value, _ body: (inout Value) -> Result) -> Result {
        if let pointer = unsafe self.pointer { return unsafe body(&pointer.pointee) }
        let pointer = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        unsafe pointer.initialize(to: initial())
        unsafe self.pointer = pointer
        return unsafe body(&pointer.pointee)
    }

    func deallocate() {
        unsafe self.pointer?.deinitialize(count: 1)
        unsafe self.pointer?.deallocate()
    }
}
