package import Engine
package import Policy
package import Wire

/// Keeps what the dispatcher tells workers, in its order.
package final class RecordingOutput: DispatchOutput {
    package enum Event: Hashable, Sendable {
        case delivered(Delivery)
        case expired(WakeID, StreamAddress, ExpirationReason)
        case released(WakeID, StreamAddress)
        case drained(StreamAddress)
        /// Conditions of a device have changed: what they are.
        case conditions(DeviceToken, Conditions, StreamAddress)
    }

    package private(set) var events: [Event] = []

    package init() {}

    package func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        var delivery = Delivery(
            wake: wake.id,
            stream: stream,
            token: wake.token,
            topic: wake.topic,
            kind: wake.kind,
            deadline: wake.deadline
        )
        switch wake.cause {
        case .task(let task): delivery.task = task
        case .push(var push, let content):
            // What the handle names is gone after the call, and it differs from run to run.
            push.handle = .none
            delivery.push = push
            delivery.apnsID = content?.apnsID
            delivery.payload = content?.payload.array ?? []
        }
        self.events.append(.delivered(delivery))
    }

    package func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason) {
        self.events.append(.expired(wake, stream, reason))
    }

    package func released(_ wake: WakeID, on stream: StreamAddress) {
        self.events.append(.released(wake, stream))
    }

    package func drained(_ stream: StreamAddress) {
        self.events.append(.drained(stream))
    }

    package func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress) {
        self.events.append(.conditions(token, conditions, stream))
    }

    /// Takes the events since the last call.
    package func take() -> [Event] {
        defer { self.events.removeAll() }
        return self.events
    }

    /// The wakes delivered since the events were last taken.
    package var deliveries: [Delivery] {
        self.events.compactMap {
            guard case .delivered(let delivery) = $0 else { return nil }
            return delivery
        }
    }

    /// The wakes expired since the events were last taken.
    package var expirations: [WakeID] {
        self.events.compactMap {
            guard case .expired(let wake, _, _) = $0 else { return nil }
            return wake
        }
    }
}

/// A wake as its worker was told of it.
package struct Delivery: Hashable, Sendable {
    package let wake: WakeID
    package let stream: StreamAddress
    package let token: DeviceToken
    package let topic: String
    package let kind: LaunchKind
    package let deadline: Instant
    /// nil for a task.
    package fileprivate(set) var push: PendingPush?
    /// nil for a push.
    package fileprivate(set) var task: LaunchedTask?
    /// nil for an empty wake, and for a task.
    package fileprivate(set) var apnsID: APNsID?
    /// Empty for an empty wake, and for a task.
    package fileprivate(set) var payload: [UInt8] = []
}
