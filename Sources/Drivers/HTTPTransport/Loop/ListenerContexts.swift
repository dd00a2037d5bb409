/// What each listener shows in its TLS handshakes; every loop asks when it accepts, any thread changes it.
///
/// `@unchecked Sendable`: `lock` guards the contexts.
final class ListenerContexts: @unchecked Sendable {
    private let lock = System.Lock()
    /// By listener; nil for those in cleartext.
    private var contexts: [TLSContext?]

    init(_ contexts: [TLSContext?]) {
        self.contexts = contexts
    }

    func context(listener index: Int) -> TLSContext? {
        self.lock.take()
        defer { self.lock.release() }
        return self.contexts[index]
    }

    /// Gives every listener that has one another context.
    func replace(with context: TLSContext) {
        self.lock.take()
        defer { self.lock.release() }
        for index in self.contexts.indices where self.contexts[index] != nil { self.contexts[index] = context }
    }
}
