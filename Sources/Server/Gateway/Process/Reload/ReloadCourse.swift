/// How far the reloads of a gateway are: what follows of whatever happens, without doing it.
///
/// One configuration is read at a time, while the engine may still have to take those before it.
package struct ReloadCourse: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        /// What reloads reach into is not there yet.
        case unattached
        case idle
        /// A configuration is read, and brought into force everywhere but in the engine.
        case reading
        /// Nothing is reloaded any more.
        case stopped
    }

    package enum Event: Hashable, Sendable {
        case attached
        /// Somebody wants a reload: whether there is something to read again, and whether the gateway is shutting down.
        case asked(hasSource: Bool, isDraining: Bool)
        /// What was read is in force everywhere but in the engine.
        case applied
        /// What was read is faulty, and nothing has changed.
        case refused
        /// The engine goes on with a configuration it was handed.
        case taken
        case stopped
    }

    /// What is to be done.
    package enum Step: Hashable, Sendable {
        /// Read the configuration.
        case begin
        /// Say that the gateway is shutting down.
        case sayShutdown
        /// Say that there is nothing to read again.
        case sayNothing
        /// Hand the configuration to the engine.
        case handOver
        /// Tell of the faults.
        case tellFaults
        /// Tell that the configuration is in force.
        case tellTaken
    }

    package private(set) var phase = Phase.unattached
    /// The configurations that the engine was handed and has not taken.
    package private(set) var handedOver = 0

    package init() {}

    /// - Returns: what is to be done; nil for nothing.
    @discardableResult
    package mutating func take(_ event: Event) -> Step? {
        switch event {
        case .attached:
            if self.phase == .unattached { self.phase = .idle }
            return nil
        case .asked(let hasSource, let isDraining):
            return self.asked(hasSource: hasSource, isDraining: isDraining)
        case .applied:
            guard self.phase == .reading else { return nil }
            self.phase = .idle
            self.handedOver += 1
            return .handOver
        case .refused:
            guard self.phase == .reading else { return nil }
            self.phase = .idle
            return .tellFaults
        case .taken:
            guard self.handedOver > 0 else { return nil }
            self.handedOver -= 1
            return .tellTaken
        case .stopped:
            self.phase = .stopped
            return nil
        }
    }

    private mutating func asked(hasSource: Bool, isDraining: Bool) -> Step? {
        switch self.phase {
        case .unattached, .stopped: return .sayShutdown
        case .reading: return nil
        case .idle:
            if isDraining { return .sayShutdown }
            guard hasSource else { return .sayNothing }
            self.phase = .reading
            return .begin
        }
    }
}
